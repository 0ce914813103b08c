//! Counted loops: `for` over a range, in either order, with or without unrolling.

use super::lowerer::Lowerer;
use super::lowerer::frame::LoopFrame;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::hir::{self, IterationOrder, LabelId, LocalId, Pattern};
use crate::ir::{self, Binary, Comparison, For, Label, Op, Type, Unroll, Value, Values};
use crate::source::Span;

/// The largest factor of `unroll_by`.
const MAX_UNROLL_COPIES: u32 = 256;

/// The range of a loop.
#[derive(Clone, Copy)]
struct LoopRange {
    ty: Scalar,
    start: MaybeConst,
    end: MaybeConst,
    step: MaybeConst,
    order: IterationOrder,
}

/// The body of a `for`.
#[derive(Clone, Copy)]
struct LoopBody<'h> {
    span: Span,
    id: LabelId,
    pattern: &'h Pattern,
    index: hir::TypeId,
    /// For an enumerated loop: the variable of the number, and the range.
    numbered: Option<(LocalId, LoopRange)>,
    block: &'h hir::Block,
}

impl<'h> Lowerer<'h> {
    pub(super) fn for_loop(
        &mut self,
        span: Span,
        id: LabelId,
        pattern: &'h Pattern,
        range: &'h hir::Range,
        block: &'h hir::Block,
    ) {
        let mut ty = self.scalar_type(range.start.ty);
        if ty == Scalar::U128 {
            return self.error_with_help(
                range.start.span,
                "a `for` cannot iterate over a range of `u128`",
                "iterate over a range of `u64` and cast the index, or count in a `while`",
            );
        }
        let mut start = self.scalar(&range.start);
        let mut end = self.scalar(&range.end);
        if range.closed {
            (ty, start, end) = self.half_open(ty, start, end, range.end.span);
        }
        let step = match &range.step {
            Some(step) => {
                let k = self.scalar(step);
                if ty.bits() < 32 {
                    self.error_with_help(
                        step.span,
                        format!("`step_by` is not supported on a range of `{ty}`"),
                        "iterate over `usize` or an integer of 32 or 64 bits, and cast the index",
                    );
                }
                self.cast(k, Scalar::Usize, ty)
            }
            None => self.number(ty, 1),
        };
        if step.bits == Some(0) {
            self.error(range.step.as_ref().map_or(span, |s| s.span), "the step of a loop cannot be 0");
        }
        let mut counter = LoopRange { ty, start, end, step, order: range.order };
        let mut body = LoopBody { span, id, pattern, index: range.start.ty, numbered: None, block };
        if let Some(number) = range.enumerate {
            self.at(span);
            body.numbered = Some((number, counter));
            counter = self.numbers(counter);
        }
        let LoopRange { ty, start, end, step, .. } = counter;
        let unroll = match range.unroll {
            hir::Unroll::Auto => Unroll::Auto,
            hir::Unroll::Full => Unroll::Full,
            hir::Unroll::Never => Unroll::Never,
            hir::Unroll::By(size) => match self.size(size) {
                1 => Unroll::Never,
                copies => return self.unroll_by(copies, counter, body),
            },
        };
        let label = self.label();
        let index = self.builder.enter([Type::Scalar(ty)])[0];
        if ty == Scalar::Usize {
            let divisor = super::wide::gcd(self.divisor(start), self.divisor(step));
            self.divides(index, divisor);
        }
        self.iteration(label, label, counter, MaybeConst::unknown(index), body);
        let region = self.builder.leave();
        // An error of the loop is located at its range.
        let (first, last) = (range.start.span, range.end.span);
        self.at(Span { end_line: last.end_line, end_column: last.end_column, ..first });
        self.count(label, [start, end, step], unroll, region);
    }

    /// Returns the type and the bounds of the half-open range with the indices of `start..=end`.
    /// Ranges of 8 and 16 bits are counted in 32 bits, so that they can end at the largest value.
    fn half_open(
        &mut self,
        ty: Scalar,
        start: MaybeConst,
        end: MaybeConst,
        span: Span,
    ) -> (Scalar, MaybeConst, MaybeConst) {
        let wide = match ty.bits() {
            32.. => ty,
            _ if ty.is_signed() => Scalar::I32,
            _ => Scalar::U32,
        };
        let largest = if ty.is_signed() { ty.mask() >> 1 } else { ty.mask() };
        if wide == ty && end.bits == Some(largest) {
            self.error_with_help(
                span,
                format!("an inclusive range of `{ty}` cannot end at the largest value"),
                "write a `loop` that ends after the last index",
            );
        }
        let (start, end) = (self.cast(start, ty, wide), self.cast(end, ty, wide));
        let one = self.number(wide, 1);
        self.at(span);
        (wide, start, self.binary(Binary::Add, wide, end, one))
    }

    fn count(&mut self, label: Label, [start, end, step]: [MaybeConst; 3], unroll: Unroll, body: ir::Region) {
        let (start, end, step) = (start.value, end.value, step.value);
        self.builder.effect(Op::For(Box::new(For { label, start, end, step, unroll, inits: Values::new(), body })));
    }

    /// Lowers one iteration. `at` is the index that this iteration would have in ascending order.
    fn iteration(&mut self, label: Label, leave: Label, counter: LoopRange, at: MaybeConst, body: LoopBody<'h>) {
        let mut index = self.in_order(counter, at);
        if let Some((number, range)) = body.numbered {
            self.bind_local(number, Val::Scalar(index));
            let at = self.index_of(range, index);
            index = self.in_order(range, at);
        }
        // The counter of an inclusive range may be wider than its indices.
        let counted = body.numbered.map_or(counter.ty, |(_, range)| range.ty);
        let wanted = self.scalar_type(body.index);
        index = self.cast(index, counted, wanted);
        self.frame_mut().loops.push(LoopFrame { id: body.id, label, leave, result: None, repeats: true });
        self.bind(body.pattern, body.index, Val::Scalar(index));
        self.block(body.block);
        self.frame_mut().loops.pop();
    }

    /// Returns the numbers of a range's indices: 0, 1, 2, ….
    fn numbers(&mut self, range: LoopRange) -> LoopRange {
        let LoopRange { ty, start, end, step, order: _ } = range;
        let bare = super::method::unsigned(ty);
        let length = match ty.is_signed() {
            true => {
                let end = self.binary(Binary::Max, ty, start, end);
                let length = self.binary(Binary::WrappingSub, ty, end, start);
                self.cast(length, ty, bare)
            }
            false => self.saturating_sub(ty, end, start),
        };
        let step = self.cast(step, ty, bare);
        let mut count = self.div_ceil(bare, length, step);
        if bare.bits() == 64 {
            // Numbers are `usize`, so a longer range ends with the last index that has a number.
            let most = self.number(bare, u32::MAX.into());
            count = self.binary(Binary::Min, bare, count, most);
        }
        let count = self.cast(count, bare, Scalar::Usize);
        let (zero, one) = (self.index(0), self.index(1));
        LoopRange { ty: Scalar::Usize, start: zero, end: count, step: one, order: IterationOrder::Ascending }
    }

    /// Returns the index with this number in the ascending range.
    fn index_of(&mut self, range: LoopRange, number: MaybeConst) -> MaybeConst {
        let LoopRange { ty, start, step, .. } = range;
        let number = self.cast(number, Scalar::Usize, ty);
        let (mul, add) = match ty.is_signed() {
            true => (Binary::WrappingMul, Binary::WrappingAdd),
            false => (Binary::Mul, Binary::Add),
        };
        let gone = self.binary(mul, ty, number, step);
        self.binary(add, ty, start, gone)
    }

    /// Converts an index in ascending order to the index in the range's own order. Requires `start`
    /// ≤ `at` < `end`.
    fn in_order(&mut self, counter: LoopRange, at: MaybeConst) -> MaybeConst {
        let LoopRange { ty, start, end, step, order } = counter;
        if order == IterationOrder::Ascending {
            return at;
        }
        // The distance between signed indices may overflow, but is correct modulo 2ⁿ.
        let (add, sub) = match ty.is_signed() {
            true => (Binary::WrappingAdd, Binary::WrappingSub),
            false => (Binary::Add, Binary::Sub),
        };
        let gone = self.binary(sub, ty, at, start);
        let one = self.number(ty, 1);
        if order == IterationOrder::Descending {
            let left = self.binary(sub, ty, end, gone);
            return self.binary(sub, ty, left, one);
        }
        let bare = super::method::unsigned(ty);
        // A pass may compute this loop-invariant value before a loop that does not run, so it
        // wraps.
        let length = self.binary(Binary::WrappingSub, ty, end, start);
        let reach = self.binary(Binary::WrappingSub, ty, length, one);
        let (reach, by) = (self.cast(reach, ty, bare), self.cast(step, ty, bare));
        let steps = self.binary(Binary::Div, bare, reach, by);
        let reach = self.binary(Binary::Mul, bare, steps, by);
        let reach = self.cast(reach, bare, ty);
        let left = self.binary(sub, ty, reach, gone);
        self.binary(add, ty, start, left)
    }

    /// Lowers a loop with `copies` bodies per iteration, and a loop for the remaining indices.
    /// Indices are `usize`.
    fn unroll_by(&mut self, copies: u32, counter: LoopRange, body: LoopBody<'h>) {
        if !(1..=MAX_UNROLL_COPIES).contains(&copies) {
            self.error(body.span, format!("the factor of `unroll_by` must be 1 to {MAX_UNROLL_COPIES}, not {copies}"));
            return;
        }
        self.at(body.span);
        let usize = Scalar::Usize;
        let LoopRange { start, end, step, .. } = counter;
        let leave = self.label();
        self.builder.enter([]);
        // The loop runs as long as the index of the last copy is below the end.
        let others = self.index(copies - 1);
        let reach = self.binary(Binary::Mul, usize, others, step);
        let last = self.saturating_sub(usize, end, reach);
        let all = self.index(copies);
        let stride = self.binary(Binary::Mul, usize, all, step);
        // A product, so that the start of the remainder has the same known divisors as the copies.
        let length = self.saturating_sub(usize, last, start);
        let whole = self.div_ceil(usize, length, stride);
        let whole = self.binary(Binary::Mul, usize, whole, stride);
        let rest = self.binary(Binary::Add, usize, start, whole);
        let outer = self.label();
        let base = self.builder.enter([Type::Scalar(usize)])[0];
        let base = MaybeConst::unknown(base);
        let mistakes = self.errors.len();
        self.copies(copies, leave, counter, base, false, body);
        let region = self.builder.leave();
        self.at(body.span);
        self.count(outer, [start, last, stride], Unroll::Never, region);

        // An error in the body is reported once.
        if !divides(copies, counter) && self.errors.len() == mistakes {
            self.copies(copies - 1, leave, counter, rest, true, body);
            self.at(body.span);
        }
        let region = self.builder.leave();
        self.builder.effect(Op::Block { label: leave, body: region });
    }

    /// Lowers one copy of the body for each of `count` indices that start at `base`. If `checked`,
    /// the first index that reaches the end leaves the loop.
    fn copies(
        &mut self,
        count: u32,
        leave: Label,
        counter: LoopRange,
        base: MaybeConst,
        checked: bool,
        body: LoopBody<'h>,
    ) {
        let label = self.label();
        let (zero, count, one) = (self.index(0), self.index(count), self.index(1));
        let phase: Value = self.builder.enter([Type::Scalar(Scalar::Usize)])[0];
        let skip = self.binary(Binary::Mul, Scalar::Usize, MaybeConst::unknown(phase), counter.step);
        let at = self.binary(Binary::Add, Scalar::Usize, base, skip);
        if checked {
            let there = self.compare(Comparison::Lt, Scalar::Usize, at, counter.end);
            self.builder.enter([]);
            let then = self.builder.leave();
            self.builder.enter([]);
            self.builder.effect(Op::Break(leave, Values::new()));
            let otherwise = self.builder.leave();
            self.builder.effect(Op::If { condition: there.value, then, otherwise });
        }
        self.iteration(label, leave, counter, at, body);
        let region = self.builder.leave();
        self.at(body.span);
        self.count(label, [zero, count, one], Unroll::Full, region);
    }
}

/// Returns whether a loop with `copies` bodies per iteration certainly leaves no remainder.
fn divides(copies: u32, counter: LoopRange) -> bool {
    let (Some(start), Some(end), Some(step)) = (counter.start.bits, counter.end.bits, counter.step.bits) else {
        return false;
    };
    step > 0 && end.saturating_sub(start).div_ceil(step) % u64::from(copies) == 0
}
