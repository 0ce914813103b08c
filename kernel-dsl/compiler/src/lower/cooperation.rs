//! Collective operations of a group of lanes. A warp is a group of 32 lanes.
//!
//! Values are split into scalars, and each scalar takes one shuffle. Scalars narrower than a
//! register are widened to one.

use super::combine::BoundedCount;
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{Storage, Val};
use crate::Scalar;
use crate::hir::collective::Reduction;
use crate::hir::{self, Collective, Expr, Intrinsic};
use crate::ir::{self, Binary, Comparison, Op, Shuffle, Unary, Vote};
use crate::source::Span;
use crate::target::Target;

/// The number of lanes of a warp.
pub(super) const LANES: u32 = 32;

/// Returns the operation that combines two values of a reduction.
pub(super) fn operator(reduction: Reduction) -> Binary {
    match reduction {
        Reduction::Sum => Binary::Add,
        Reduction::Max => Binary::Max,
        Reduction::Min => Binary::Min,
    }
}

impl<'h> Lowerer<'h> {
    /// Lowers `warp::group::<W>()`.
    pub(super) fn group(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let of = arguments.first().map_or(e.ty, |receiver| receiver.ty);
        let hir::Type::Group(size) = self.ty(of) else { return Val::Unit };
        let width = self.size(*size);
        self.at(e.span);
        if !is_width(width) {
            if intrinsic == Intrinsic::GroupNew {
                self.error_with_help(
                    e.span,
                    format!("invalid group size {width}"),
                    "a group must have 2, 4, 8, 16 or 32 lanes",
                );
            }
            return Val::Unit;
        }
        self.whole_warps(e.span);
        match intrinsic {
            Intrinsic::GroupLane => Val::Scalar(self.group_lane(width)),
            Intrinsic::GroupIndex if self.builder.kernel.block.extent(0) == Some(width) => {
                Val::Scalar(self.outer_index())
            }
            Intrinsic::GroupIndex => {
                let (index, lanes) = (self.thread_index(), self.index(width));
                Val::Scalar(self.binary(Binary::Div, Scalar::Usize, index, lanes))
            }
            // A group handle has no parts.
            _ => Val::Unit,
        }
    }

    /// Lowers a collective operation of a group; the first argument is the group.
    pub(super) fn of_group(&mut self, e: &'h Expr, operation: Collective, arguments: &'h [Expr]) -> Val {
        let Some((group, arguments)) = arguments.split_first() else { return Val::Unit };
        self.expr(group);
        match self.ty(group.ty) {
            hir::Type::Group(size) => self.of_lanes(e, operation, self.size(*size), arguments),
            _ => Val::Unit,
        }
    }

    /// Lowers a collective operation of groups of `width` lanes.
    pub(super) fn of_lanes(&mut self, e: &'h Expr, operation: Collective, width: u32, arguments: &'h [Expr]) -> Val {
        let values: Vec<Val> = arguments.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        self.whole_warps(e.span);
        // The error of an invalid group was reported where the group was created.
        let (Some(first), true, false) = (arguments.first(), is_width(width), self.builder.ended()) else {
            return Val::Unit;
        };
        let (span, ty) = (e.span, first.ty);
        if matches!(operation, Collective::Number(_) | Collective::Match) && self.is_double(first) {
            return Val::Unit;
        }
        match (operation, values.as_slice()) {
            (Collective::Number(reduction), [Val::Scalar(x)]) => {
                let scalar = self.scalar_type(ty);
                Val::Scalar(self.numbers_reduced(operator(reduction), scalar, *x, width))
            }
            (Collective::Reduce, [x, Val::Callable(combine)]) => self.reduced(span, x.clone(), *combine, width),
            (Collective::Scan, [x, Val::Callable(combine)]) => {
                let all = BoundedCount::exactly(width);
                self.scanned((ty, span), x.clone(), *combine, width, all)
            }
            (Collective::ExclusiveScan, [x, identity, Val::Callable(combine)]) => {
                let through = self.scanned((ty, span), x.clone(), *combine, width, BoundedCount::exactly(width));
                let before = self.shuffled(&through, Shuffle::Up, 1, width);
                let (lane, zero) = (self.group_lane(width), self.index(0));
                let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
                self.choose_of(ty, span, first, |_| identity.clone(), |_| before)
            }
            (Collective::Shuffle(mode @ (Shuffle::Up | Shuffle::Down)), [x, Val::Scalar(by)]) => {
                let selector = self.cast(*by, Scalar::Usize, Scalar::U32).value;
                let found = self.shuffled_by(x, mode, selector, width);
                let lane = self.group_lane(width);
                let there = match mode {
                    Shuffle::Up => self.compare(Comparison::Ge, Scalar::Usize, lane, *by),
                    _ => {
                        let all = self.index(width);
                        let left = self.binary(Binary::Sub, Scalar::Usize, all, lane);
                        self.compare(Comparison::Lt, Scalar::Usize, *by, left)
                    }
                };
                Val::Option(there, Box::new(found))
            }
            (Collective::Shuffle(mode), [x, Val::Scalar(lane)]) => {
                self.source_exists(span, if mode == Shuffle::Xor { "XOR mask" } else { "lane" }, *lane, width);
                let selector = self.cast(*lane, Scalar::Usize, Scalar::U32).value;
                self.shuffled_by(x, mode, selector, width)
            }
            (Collective::Broadcast, [x, Val::Scalar(lane)]) => self.lane_broadcast(span, x, *lane, width),
            (Collective::Match, [Val::Scalar(x)]) => {
                Val::Scalar(MaybeConst::unknown(self.builder.scalar(Op::Match(x.value), Scalar::U32)))
            }
            (Collective::Vote(mode), [Val::Scalar(p)]) => Val::Scalar(self.group_vote(mode, *p, width)),
            // An argument has an error, or yields no value because control leaves it, as `return`
            // does.
            _ => Val::Unit,
        }
    }

    pub(super) fn group_lane(&mut self, width: u32) -> MaybeConst {
        let block = self.builder.kernel.block;
        if block.extent(0) == Some(width) {
            return self.thread(0);
        }
        // A row of the block is a whole number of groups, so that the other axes do not affect the
        // lane.
        let rows = block.divisor(0).is_multiple_of(width);
        let index = if rows { self.thread(0) } else { self.thread_index() };
        let lanes = self.index(width);
        self.binary(Binary::Rem, Scalar::Usize, index, lanes)
    }

    /// Lowers a broadcast of the value `x` of lane `from` of each group of `width` lanes. The
    /// oracle reports a lane that does not exist.
    pub(super) fn lane_broadcast(&mut self, span: Span, x: &Val, from: MaybeConst, width: u32) -> Val {
        self.source_exists(span, "lane", from, width);
        let selector = self.cast(from, Scalar::Usize, Scalar::U32).value;
        let mode = if from.bits.is_some() { Shuffle::Index } else { Shuffle::Broadcast };
        self.shuffled_by(x, mode, selector, width)
    }

    /// Reports a constant source of an exchange that is not below the number of sources.
    pub(super) fn source_exists(&mut self, span: Span, what: &str, source: MaybeConst, count: u32) {
        if let Some(source) = source.bits.filter(|source| *source >= u64::from(count)) {
            self.error_with_help(
                span,
                format!("there is no {what} {source} here: {what}s are 0 to {}", count - 1),
                "pass a smaller number",
            );
        }
    }

    /// Lowers a vote of the warp; each group uses its own bits.
    fn group_vote(&mut self, mode: Vote, p: MaybeConst, width: u32) -> MaybeConst {
        if width == LANES {
            return self.vote(mode, p);
        }
        let ballot = self.vote(Vote::Ballot, p);
        let lane = self.group_lane(LANES);
        let first = self.index(LANES - width);
        let first = self.binary(Binary::And, Scalar::Usize, lane, first);
        let first = self.cast(first, Scalar::Usize, Scalar::U32);
        let own = self.binary(Binary::Shr, Scalar::U32, ballot, first);
        let all = self.number(Scalar::U32, (1 << width) - 1);
        let own = self.binary(Binary::And, Scalar::U32, own, all);
        match mode {
            Vote::Ballot => own,
            Vote::All => self.compare(Comparison::Eq, Scalar::U32, own, all),
            Vote::Any => {
                let none = self.number(Scalar::U32, 0);
                self.compare(Comparison::Ne, Scalar::U32, own, none)
            }
        }
    }

    pub(super) fn vote(&mut self, mode: Vote, p: MaybeConst) -> MaybeConst {
        let returns = if mode == Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
        MaybeConst::unknown(self.builder.scalar(Op::Vote { mode, value: p.value }, returns))
    }

    /// Lowers a reduction of numbers over groups of `width` lanes: one instruction for whole warps
    /// if the target has it, otherwise a butterfly.
    pub(super) fn numbers_reduced(&mut self, op: Binary, ty: Scalar, value: MaybeConst, width: u32) -> MaybeConst {
        let one = self.builder.kernel.target >= Target::SM_80 && ty.is_integer() && ty.bits() == 32;
        if width == LANES && one {
            return MaybeConst::unknown(self.builder.scalar(Op::Reduce(op, value.value), ty));
        }
        self.butterfly(op, ty, value, width)
    }

    /// Lowers a butterfly over segments of `width` lanes, widest first, so that all lanes of a
    /// segment get the same bits.
    fn butterfly(&mut self, op: Binary, ty: Scalar, mut value: MaybeConst, width: u32) -> MaybeConst {
        let mut distance = width / 2;
        while distance > 0 {
            let selector = self.builder.constant(Scalar::U32, u64::from(distance));
            let shuffle = Op::Shuffle { mode: Shuffle::Xor, value: value.value, selector, width };
            let other = MaybeConst::unknown(self.builder.scalar(shuffle, ty));
            value = self.binary(op, ty, value, other);
            distance /= 2;
        }
        value
    }

    /// Lowers a shuffle of each part of `x` from another lane of the segment, at a constant
    /// distance or position.
    pub(super) fn shuffled(&mut self, x: &Val, mode: Shuffle, selector: u32, width: u32) -> Val {
        let selector = self.builder.constant(Scalar::U32, u64::from(selector));
        self.shuffled_by(x, mode, selector, width)
    }

    pub(super) fn shuffled_by(&mut self, x: &Val, mode: Shuffle, selector: ir::Value, width: u32) -> Val {
        self.each_scalar(x, &mut |l, ty, own| {
            let own = l.word(ty, own);
            let op = Op::Shuffle { mode, value: own.value, selector, width };
            let value = l.builder.scalar(op, word_type(ty));
            l.out_of_word(ty, MaybeConst::unknown(value))
        })
    }

    /// Lowers the value that results from applying `f` to each scalar of a value; an array gets new
    /// registers.
    pub(super) fn each_scalar(
        &mut self,
        value: &Val,
        f: &mut dyn FnMut(&mut Self, Scalar, MaybeConst) -> MaybeConst,
    ) -> Val {
        match value {
            Val::Scalar(k) => Val::Scalar(self.one_scalar(*k, f)),
            Val::Tuple(parts) => Val::Tuple(parts.iter().map(|p| self.each_scalar(p, f)).collect()),
            Val::Option(some, inner) => {
                let some = self.one_scalar(*some, f);
                Val::Option(some, Box::new(self.each_scalar(inner, f)))
            }
            Val::Array(from) => Val::Array(self.each_register(from, f)),
            Val::View(_) | Val::Shared(_) | Val::Reference(_) | Val::Callable(_) | Val::Pending(_) => {
                let span = self.builder.kernel.locations[self.builder.location.0 as usize].span;
                self.error_with_help(
                    span,
                    "lanes and threads cannot exchange this value: it contains a view, a shared array, a copy in flight or a closure",
                    "exchange the index of the data instead",
                );
                Val::Unit
            }
            Val::Unit => Val::Unit,
        }
    }

    fn one_scalar(
        &mut self,
        k: MaybeConst,
        f: &mut dyn FnMut(&mut Self, Scalar, MaybeConst) -> MaybeConst,
    ) -> MaybeConst {
        match self.builder.kernel.ty(k.value) {
            ir::Type::Scalar(ty) if let Some(high) = k.high => {
                let [low, high] = [k.value, high].map(|word| f(self, ty, MaybeConst::unknown(word)));
                self.double(low, high)
            }
            ir::Type::Scalar(ty) => f(self, ty, k),
            _ => k,
        }
    }

    fn each_register(
        &mut self,
        from: &Storage,
        f: &mut dyn FnMut(&mut Self, Scalar, MaybeConst) -> MaybeConst,
    ) -> Storage {
        match from {
            Storage::Unit | Storage::Shared { .. } | Storage::Pending { .. } => Storage::Unit,
            Storage::Tuple(parts) => Storage::Tuple(parts.iter().map(|p| self.each_register(p, f)).collect()),
            Storage::Leaf { local, element, dims, .. } => {
                let name = self.builder.kernel.locals[local.0 as usize].name.clone();
                let to = self.leaf(*element, &name, dims.clone());
                let count: u32 = dims.iter().product();
                for i in 0..count {
                    if let Some(k) = self.register(from, i) {
                        let k = self.one_scalar(k, f);
                        self.set_register(&to, i, k);
                    }
                }
                to
            }
        }
    }

    /// Lowers a value of type `ty` to a register that lanes can exchange.
    pub(super) fn word(&mut self, ty: Scalar, k: MaybeConst) -> MaybeConst {
        if ty.is_half() {
            let code = MaybeConst::unknown(self.builder.scalar(Op::Bitcast(k.value), Scalar::U16));
            return self.cast(code, Scalar::U16, Scalar::U32);
        }
        self.cast(k, ty, word_type(ty))
    }

    /// Lowers the inverse of [`Lowerer::word`]: a register back to a value of type `ty`.
    pub(super) fn out_of_word(&mut self, ty: Scalar, word: MaybeConst) -> MaybeConst {
        if ty.is_half() {
            let code = self.cast(word, Scalar::U32, Scalar::U16);
            return MaybeConst::unknown(self.builder.scalar(Op::Bitcast(code.value), ty));
        }
        if ty == Scalar::Bool {
            let zero = self.number(Scalar::U32, 0);
            return self.compare(Comparison::Ne, Scalar::U32, word, zero);
        }
        self.cast(word, word_type(ty), ty)
    }

    /// Lowers the mask of the warp's lanes in which `p` holds.
    pub(super) fn lanes_with(&mut self, p: MaybeConst) -> MaybeConst {
        let ballot = self.vote(Vote::Ballot, p);
        let count = self.builder.scalar(Op::Unary(Unary::CountOnes, ballot.value), Scalar::U32);
        MaybeConst::unknown(count)
    }
}

/// Returns the type in which lanes exchange a value of type `ty`, with at least 32 bits. Exchange
/// arrays in shared memory use the same type.
pub(super) fn word_type(ty: Scalar) -> Scalar {
    match ty {
        Scalar::I8 | Scalar::I16 => Scalar::I32,
        Scalar::Usize | Scalar::Bool => Scalar::U32,
        narrow if narrow.bits() < 32 => Scalar::U32,
        wide => wide,
    }
}

fn is_width(lanes: u32) -> bool {
    matches!(lanes, 2 | 4 | 8 | 16 | 32)
}
