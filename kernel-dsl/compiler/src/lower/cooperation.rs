//! What lanes of a group hand one another. A warp is the group of 32.
//!
//! Values are taken apart into scalars: each is a shuffle of its own. What is narrower than a register travels in one.

use super::Lowerer;
use super::combine::Count;
use super::value::{Known, Storage, Val};
use crate::Scalar;
use crate::hir::collective::Reduction;
use crate::hir::{self, Collective, Expr, Intrinsic};
use crate::ir::{self, Binary, Comparison, Op, Shuffle, Unary, Vote};
use crate::target::Target;

/// Lanes of a warp.
pub(super) const LANES: u32 = 32;

/// What a reduction does with two values.
pub(super) fn operator(reduction: Reduction) -> Binary {
    match reduction {
        Reduction::Sum => Binary::Add,
        Reduction::Max => Binary::Max,
        Reduction::Min => Binary::Min,
    }
}

impl<'h> Lowerer<'h> {
    /// `warp::group::<W>()`, and what it knows of the lane.
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
            // The handle holds nothing.
            _ => Val::Unit,
        }
    }

    /// What the lanes of a group do together; the first argument is the group.
    pub(super) fn of_group(&mut self, e: &'h Expr, operation: Collective, arguments: &'h [Expr]) -> Val {
        let Some((group, arguments)) = arguments.split_first() else { return Val::Unit };
        self.expr(group);
        match self.ty(group.ty) {
            hir::Type::Group(size) => self.of_lanes(e, operation, self.size(*size), arguments),
            _ => Val::Unit,
        }
    }

    /// What groups of `width` lanes do together.
    pub(super) fn of_lanes(&mut self, e: &'h Expr, operation: Collective, width: u32, arguments: &'h [Expr]) -> Val {
        let values: Vec<Val> = arguments.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        self.whole_warps(e.span);
        // Of a group that there is not, it was said where it was made.
        let (Some(first), true, false) = (arguments.first(), is_width(width), self.builder.ended()) else {
            return Val::Unit;
        };
        let (span, ty) = (e.span, first.ty);
        match (operation, values.as_slice()) {
            (Collective::Number(reduction), [Val::Scalar(x)]) => {
                let scalar = self.scalar_type(ty);
                Val::Scalar(self.numbers_reduced(operator(reduction), scalar, *x, width))
            }
            (Collective::Reduce, [x, Val::Callable(combine)]) => self.reduced(span, x.clone(), *combine, width),
            (Collective::Scan, [x, Val::Callable(combine)]) => {
                let all = Count::exactly(width);
                self.scanned((ty, span), x.clone(), *combine, width, all)
            }
            (Collective::ExclusiveScan, [x, identity, Val::Callable(combine)]) => {
                let through = self.scanned((ty, span), x.clone(), *combine, width, Count::exactly(width));
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
                let selector = self.cast(*lane, Scalar::Usize, Scalar::U32).value;
                self.shuffled_by(x, mode, selector, width)
            }
            (Collective::Broadcast, [x, Val::Scalar(lane)]) => {
                let selector = self.cast(*lane, Scalar::Usize, Scalar::U32).value;
                self.shuffled_by(x, Shuffle::Index, selector, width)
            }
            (Collective::Match, [Val::Scalar(x)]) => {
                Val::Scalar(Known { value: self.builder.scalar(Op::Match(x.value), Scalar::U32), bits: None })
            }
            (Collective::Vote(mode), [Val::Scalar(p)]) => Val::Scalar(self.group_vote(mode, *p, width)),
            // An argument whose control went elsewhere, or had an error.
            _ => Val::Unit,
        }
    }

    pub(super) fn group_lane(&mut self, width: u32) -> Known {
        let block = self.builder.kernel.block;
        if block.extent(0) == Some(width) {
            return self.thread(0);
        }
        // Rows of whole groups: the other axes say nothing of the lane.
        let rows = block.divisor(0).is_multiple_of(width);
        let index = if rows { self.thread(0) } else { self.thread_index() };
        let lanes = self.index(width);
        self.binary(Binary::Rem, Scalar::Usize, index, lanes)
    }

    /// A vote of the warp, of which each group looks at its own bits.
    fn group_vote(&mut self, mode: Vote, p: Known, width: u32) -> Known {
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

    pub(super) fn vote(&mut self, mode: Vote, p: Known) -> Known {
        let returns = if mode == Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
        Known { value: self.builder.scalar(Op::Vote { mode, value: p.value }, returns), bits: None }
    }

    /// A reduction of numbers over groups of `width` lanes: of whole warps one instruction where the target has it, else a
    /// butterfly.
    pub(super) fn numbers_reduced(&mut self, op: Binary, ty: Scalar, value: Known, width: u32) -> Known {
        let one = self.builder.kernel.target >= Target::SM_80 && ty.is_integer() && ty.bits() == 32;
        if width == LANES && one {
            return Known { value: self.builder.scalar(Op::Reduce(op, value.value), ty), bits: None };
        }
        self.butterfly(op, ty, value, width)
    }

    /// A butterfly over segments of `width` lanes, widest first, so that all lanes of one end with the same bits.
    fn butterfly(&mut self, op: Binary, ty: Scalar, mut value: Known, width: u32) -> Known {
        let mut distance = width / 2;
        while distance > 0 {
            let selector = self.builder.constant(Scalar::U32, u64::from(distance));
            let shuffle = Op::Shuffle { mode: Shuffle::Xor, value: value.value, selector, width };
            let other = Known { value: self.builder.scalar(shuffle, ty), bits: None };
            value = self.binary(op, ty, value, other);
            distance /= 2;
        }
        value
    }

    /// Each part of `x` from another lane of the segment, at a distance or place that is constant.
    pub(super) fn shuffled(&mut self, x: &Val, mode: Shuffle, selector: u32, width: u32) -> Val {
        let selector = self.builder.constant(Scalar::U32, u64::from(selector));
        self.shuffled_by(x, mode, selector, width)
    }

    pub(super) fn shuffled_by(&mut self, x: &Val, mode: Shuffle, selector: ir::Value, width: u32) -> Val {
        self.each_scalar(x, &mut |l, ty, own| {
            let own = l.word(ty, own);
            let op = Op::Shuffle { mode, value: own.value, selector, width };
            let value = l.builder.scalar(op, word_type(ty));
            l.out_of_word(ty, Known { value, bits: None })
        })
    }

    /// The value in which `f` has been done to each number and truth value; an array gets registers of its own.
    pub(super) fn each_scalar(&mut self, value: &Val, f: &mut dyn FnMut(&mut Self, Scalar, Known) -> Known) -> Val {
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

    fn one_scalar(&mut self, k: Known, f: &mut dyn FnMut(&mut Self, Scalar, Known) -> Known) -> Known {
        match self.builder.kernel.ty(k.value) {
            ir::Type::Scalar(ty) => f(self, ty, k),
            _ => k,
        }
    }

    fn each_register(&mut self, from: &Storage, f: &mut dyn FnMut(&mut Self, Scalar, Known) -> Known) -> Storage {
        match from {
            Storage::Unit | Storage::Pending { .. } => Storage::Unit,
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

    /// What a value of type `ty` is in a register that lanes can trade.
    pub(super) fn word(&mut self, ty: Scalar, k: Known) -> Known {
        if ty.is_half() {
            let code = Known { value: self.builder.scalar(Op::Bitcast(k.value), Scalar::U16), bits: None };
            return self.cast(code, Scalar::U16, Scalar::U32);
        }
        self.cast(k, ty, word_type(ty))
    }

    /// The value of type `ty` that [`Lowerer::word`] made a word of.
    pub(super) fn out_of_word(&mut self, ty: Scalar, word: Known) -> Known {
        if ty.is_half() {
            let code = self.cast(word, Scalar::U32, Scalar::U16);
            return Known { value: self.builder.scalar(Op::Bitcast(code.value), ty), bits: None };
        }
        if ty == Scalar::Bool {
            let zero = self.number(Scalar::U32, 0);
            return self.compare(Comparison::Ne, Scalar::U32, word, zero);
        }
        self.cast(word, word_type(ty), ty)
    }

    /// Lanes where `p` holds, of all lanes of the warp.
    pub(super) fn lanes_with(&mut self, p: Known) -> Known {
        let ballot = self.vote(Vote::Ballot, p);
        let count = self.builder.scalar(Op::Unary(Unary::CountOnes, ballot.value), Scalar::U32);
        Known { value: count, bits: None }
    }
}

/// The type that a value of type `ty` travels in: of 32 bits at least. In memory, where `usize` has no place, it is this one too.
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
