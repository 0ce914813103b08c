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
    /// Whether `end` is one more than the last index modulo 2ⁿ, so that `end` may be the type's
    /// smallest value.
    wraps: bool,
}

/// The body of a `for`.
#[derive(Clone, Copy)]
struct LoopBody<'h> {
    span: Span,
    id: LabelId,
    pattern: &'h Pattern,
    index: hir::TypeId,
    /// For a loop that counts numbers: the range of the indices.
    numbered: Option<LoopRange>,
    /// For an enumerated loop: the variable of the number.
    number: Option<LocalId>,
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
        let mut wraps = false;
        if range.closed {
            (ty, start, end, wraps) = self.half_open(ty, start, end, range.end.span);
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
        let mut counter = LoopRange { ty, start, end, step, order: range.order, wraps };
        let number = range.enumerate;
        let mut body = LoopBody { span, id, pattern, index: range.start.ty, numbered: None, number, block };
        if number.is_some() || wraps {
            self.at(span);
            body.numbered = Some(counter);
            counter = self.numbers(counter, number.is_some());
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

    /// Returns the type and the bounds of the half-open range with the indices of `start..=end`,
    /// and whether its end may have wrapped.
    ///
    /// An end that is certainly below the largest value changes no type. Otherwise a range of at
    /// most 32 bits is counted in a wider type. A range of 64 bits wraps, and its numbers are
    /// counted. A `usize` has no wider type of indices, so its end must be below the largest value.
    fn half_open(
        &mut self,
        ty: Scalar,
        start: MaybeConst,
        end: MaybeConst,
        span: Span,
    ) -> (Scalar, MaybeConst, MaybeConst, bool) {
        let largest = if ty.is_signed() { ty.mask() >> 1 } else { ty.mask() };
        if ty == Scalar::Usize && end.bits == Some(largest) {
            self.error_with_help(
                span,
                "an inclusive range of `usize` cannot end at the largest value",
                "iterate over a range of `u32` and cast the index",
            );
        }
        let below = ty == Scalar::Usize || self.is_below_largest(ty, end);
        let wide = match (ty.bits(), ty.is_signed()) {
            (..32, true) => Scalar::I32,
            (..32, false) => Scalar::U32,
            (32, true) if !below => Scalar::I64,
            (32, false) if !below => Scalar::U64,
            _ => ty,
        };
        let wraps = wide == ty && !below;
        let (start, end) = (self.cast(start, ty, wide), self.cast(end, ty, wide));
        let one = self.number(wide, 1);
        self.at(span);
        let add = if wraps { Binary::WrappingAdd } else { Binary::Add };
        (wide, start, self.binary(add, wide, end, one), wraps)
    }

    /// Returns whether a number is certainly less than the largest value of its type: a constant, a
    /// number of a narrower type, or a quotient, remainder or part of the bits of a number.
    fn is_below_largest(&self, ty: Scalar, number: MaybeConst) -> bool {
        let largest = if ty.is_signed() { ty.mask() >> 1 } else { ty.mask() };
        let constant = |value| match self.builder.defined(value) {
            Some(Op::Constant(bits)) => Some(*bits),
            _ => None,
        };
        if let Some(bits) = number.bits.or_else(|| constant(number.value)) {
            return bits != largest;
        }
        match self.builder.defined(number.value) {
            Some(Op::Cast(narrow)) => match self.builder.kernel.ty(*narrow) {
                Type::Scalar(Scalar::Bool) => true,
                Type::Scalar(from) => {
                    let keeps_sign = ty.is_signed() || !from.is_signed();
                    from.is_integer() && from.bits() < ty.bits() && keeps_sign
                }
                _ => false,
            },
            Some(Op::Binary(op, _, by)) => match (op, constant(*by)) {
                // A remainder is nearer to 0 than the divisor.
                (Binary::Rem, Some(by)) => by != 0 && by <= largest,
                (Binary::And | Binary::Min, Some(by)) => by < largest,
                (Binary::Div, Some(by)) => !ty.is_signed() && by > 1,
                (Binary::Shr, Some(by)) => by > 0 && by < u64::from(ty.bits()),
                _ => false,
            },
            _ => false,
        }
    }

    fn count(&mut self, label: Label, [start, end, step]: [MaybeConst; 3], unroll: Unroll, body: ir::Region) {
        let (start, end, step) = (start.value, end.value, step.value);
        self.builder.effect(Op::For(Box::new(For { label, start, end, step, unroll, inits: Values::new(), body })));
    }

    /// Lowers one iteration. `at` is the index that this iteration would have in ascending order.
    fn iteration(&mut self, label: Label, leave: Label, counter: LoopRange, at: MaybeConst, body: LoopBody<'h>) {
        let mut index = self.in_order(counter, at);
        if let Some(number) = body.number {
            self.bind_local(number, Val::Scalar(index));
        }
        if let Some(range) = body.numbered {
            let at = self.index_of(range, counter.ty, index);
            index = self.in_order(range, at);
        }
        // The counter of an inclusive range may be wider than its indices.
        let counted = body.numbered.map_or(counter.ty, |range| range.ty);
        let wanted = self.scalar_type(body.index);
        index = self.cast(index, counted, wanted);
        self.frame_mut().loops.push(LoopFrame { id: body.id, label, leave, result: None, repeats: true });
        self.bind(body.pattern, body.index, Val::Scalar(index));
        self.block(body.block);
        self.frame_mut().loops.pop();
    }

    /// Returns the numbers of a range's indices: 0, 1, 2, …. Numbers that a program sees are
    /// `usize`; others have the unsigned type of the indices.
    fn numbers(&mut self, range: LoopRange, seen: bool) -> LoopRange {
        let LoopRange { ty, wraps, .. } = range;
        let bare = super::method::unsigned(ty);
        let mut count = if wraps { self.count_to_last(range) } else { self.count_to_end(range) };
        if seen && bare.bits() == 64 {
            // A longer range ends with the last index that has a number.
            let most = self.number(bare, u32::MAX.into());
            count = self.binary(Binary::Min, bare, count, most);
        }
        let of = if seen { Scalar::Usize } else { bare };
        let end = self.cast(count, bare, of);
        let (start, step) = (self.number(of, 0), self.number(of, 1));
        LoopRange { ty: of, start, end, step, order: IterationOrder::Ascending, wraps: false }
    }

    /// Returns the number of indices of a half-open range.
    fn count_to_end(&mut self, range: LoopRange) -> MaybeConst {
        let LoopRange { ty, start, end, step, .. } = range;
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
        self.div_ceil(bare, length, step)
    }

    /// Returns the number of indices of a range that wraps. All 2ⁿ indices count as 2ⁿ − 1: n is
    /// 64, so that no loop reaches the last one.
    fn count_to_last(&mut self, range: LoopRange) -> MaybeConst {
        let LoopRange { ty, start, end, step, .. } = range;
        let bare = super::method::unsigned(ty);
        let one = self.number(ty, 1);
        let last = self.binary(Binary::WrappingSub, ty, end, one);
        let any = self.compare(Comparison::Le, ty, start, last);
        let reach = self.binary(Binary::WrappingSub, ty, last, start);
        let mut steps = self.cast(reach, ty, bare);
        if step.bits != Some(1) {
            let step = self.cast(step, ty, bare);
            steps = self.binary(Binary::Div, bare, steps, step);
        }
        let most = self.number(bare, bare.mask() - 1);
        let steps = self.binary(Binary::Min, bare, steps, most);
        let (zero, one) = (self.number(bare, 0), self.number(bare, 1));
        let count = self.binary(Binary::Add, bare, steps, one);
        self.select(bare, any, count, zero)
    }

    /// Returns the index with this number, of type `of`, in the ascending range.
    fn index_of(&mut self, range: LoopRange, of: Scalar, number: MaybeConst) -> MaybeConst {
        let LoopRange { ty, start, step, .. } = range;
        let number = self.cast(number, of, ty);
        let (mul, add) = match ty.is_signed() {
            true => (Binary::WrappingMul, Binary::WrappingAdd),
            false => (Binary::Mul, Binary::Add),
        };
        let gone = self.binary(mul, ty, number, step);
        self.binary(add, ty, start, gone)
    }

    /// Converts an index in ascending order to the index in the range's own order. Requires `start`
    /// ≤ `at` < `end`, or an `at` before the `end` that wrapped.
    fn in_order(&mut self, counter: LoopRange, at: MaybeConst) -> MaybeConst {
        let LoopRange { ty, start, end, step, order, wraps } = counter;
        if order == IterationOrder::Ascending {
            return at;
        }
        // The distance between signed indices may overflow, but is correct modulo 2ⁿ. So is the
        // distance to an end that wrapped.
        let (add, sub) = match ty.is_signed() || wraps {
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
