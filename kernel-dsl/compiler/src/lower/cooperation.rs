//! What lanes of a group and threads of a block do together.
//!
//! A reduction is a butterfly, widest first: all lanes end with the same bits, whichever they are. Over a block it is one
//! in each warp and then one over the warps' results, which go through an array in shared memory. The array is the
//! compiler's own, one for a type of value. Each use writes, waits, and reads; the next use must not write before all
//! have read, so it waits first, unless there can have been no use before.

use super::Lowerer;
use super::value::{Known, Val};
use crate::Scalar;
use crate::hir::intrinsic::Reduction;
use crate::hir::{self, Expr, Intrinsic};
use crate::ir::{self, Binary, Comparison, Guard, Layout, Op, Policy, SharedArray, SharedId, Shuffle, Vote};
use crate::source::Span;
use crate::target::Target;

/// Lanes of a warp.
const LANES: u32 = 32;

/// What a reduction does with two values.
pub(super) fn operator(reduction: Reduction) -> Binary {
    match reduction {
        Reduction::Sum => Binary::Add,
        Reduction::Max => Binary::Max,
        Reduction::Min => Binary::Min,
    }
}

/// The bits that change no value: x + −0 is x, for −0 too, and a NaN loses against any number.
fn identity(reduction: Reduction, ty: Scalar) -> u64 {
    let float = |single: f32, double: f64| match ty {
        Scalar::F32 => u64::from(single.to_bits()),
        _ => double.to_bits(),
    };
    let least = if ty.is_signed() { ty.mask() & !(ty.mask() >> 1) } else { 0 };
    match (reduction, ty.is_float()) {
        (Reduction::Sum, true) => float(-0.0, -0.0),
        (Reduction::Sum, false) => 0,
        (_, true) => float(f32::NAN, f64::NAN),
        (Reduction::Max, false) => least,
        (Reduction::Min, false) => ty.mask() & !least,
    }
}

impl<'h> Lowerer<'h> {
    pub(super) fn group(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let of = arguments.first().map_or(e.ty, |receiver| receiver.ty);
        let hir::Type::Group(size) = self.ty(of) else { return Val::Unit };
        let width = self.size(*size);
        let values: Vec<Val> = arguments.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        if !matches!(width, 2 | 4 | 8 | 16 | 32) {
            if intrinsic == Intrinsic::GroupNew {
                self.error_with_help(
                    e.span,
                    format!("there is no group of {width} lanes"),
                    "a group has 2, 4, 8, 16 or 32 lanes of a warp",
                );
            }
            return Val::Unit;
        }
        self.whole_warps(e.span);
        let ty = arguments.get(1).map_or(Scalar::Usize, |a| self.scalar_type(a.ty));
        let known = |i: usize| match values.get(i) {
            Some(Val::Scalar(k)) => Some(*k),
            _ => None,
        };
        match (intrinsic, known(1), known(2)) {
            (Intrinsic::GroupLane, ..) => Val::Scalar(self.group_lane(width)),
            (Intrinsic::GroupIndex, ..) => {
                if self.builder.kernel.block[0] == width {
                    return Val::Scalar(self.outer_index());
                }
                let (index, lanes) = (self.thread_index(), self.index(width));
                Val::Scalar(self.binary(Binary::Div, Scalar::Usize, index, lanes))
            }
            (Intrinsic::GroupReduce(reduction), Some(x), _) => Val::Scalar(match width {
                LANES => self.warp_reduce(operator(reduction), ty, x),
                _ => self.butterfly(operator(reduction), ty, x, width),
            }),
            (Intrinsic::GroupShuffle(mode), Some(x), Some(lane)) => {
                let selector = self.cast(lane, Scalar::Usize, Scalar::U32).value;
                let value = self.builder.scalar(Op::Shuffle { mode, value: x.value, selector, width }, ty);
                Val::Scalar(Known { value, bits: None })
            }
            (Intrinsic::GroupVote(mode), Some(p), _) => Val::Scalar(self.group_vote(mode, p, width)),
            // The handle itself, or an argument whose control went elsewhere.
            _ => Val::Unit,
        }
    }

    fn group_lane(&mut self, width: u32) -> Known {
        let x = self.builder.kernel.block[0];
        if x == width {
            return self.thread(0);
        }
        // Rows of whole groups: the other axes say nothing of the lane.
        let index = if x.is_multiple_of(width) { self.thread(0) } else { self.thread_index() };
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

    fn vote(&mut self, mode: Vote, p: Known) -> Known {
        let returns = if mode == Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
        Known { value: self.builder.scalar(Op::Vote { mode, value: p.value }, returns), bits: None }
    }

    /// A reduction over the warp: one instruction where the target has it, else a butterfly.
    pub(super) fn warp_reduce(&mut self, op: Binary, ty: Scalar, value: Known) -> Known {
        if self.builder.kernel.target >= Target::SM_80 && ty.is_integer() && ty.bits() == 32 {
            return Known { value: self.builder.scalar(Op::Reduce(op, value.value), ty), bits: None };
        }
        self.butterfly(op, ty, value, LANES)
    }

    /// A butterfly over segments of `width` lanes, widest first, so that all lanes of one end with the same bits.
    pub(super) fn butterfly(&mut self, op: Binary, ty: Scalar, mut value: Known, width: u32) -> Known {
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

    pub(super) fn block_reduce(&mut self, span: Span, reduction: Reduction, ty: Scalar, x: Known) -> Known {
        self.whole_warps(span);
        let own = self.warp_reduce(operator(reduction), ty, x);
        let warps = self.builder.kernel.threads() / LANES;
        if warps < 2 {
            return own;
        }
        let others = self.of_warps(ty, own, identity(reduction, ty));
        self.butterfly(operator(reduction), ty, others, warps.next_power_of_two())
    }

    pub(super) fn block_vote(&mut self, span: Span, mode: Vote, p: Known) -> Known {
        self.whole_warps(span);
        let own = self.vote(mode, p);
        if self.builder.kernel.threads() / LANES < 2 {
            return own;
        }
        let word = self.cast(own, Scalar::Bool, Scalar::U32);
        let others = self.of_warps(Scalar::U32, word, u64::from(mode == Vote::All));
        let zero = self.number(Scalar::U32, 0);
        let others = self.compare(Comparison::Ne, Scalar::U32, others, zero);
        self.vote(mode, others)
    }

    /// The `x` of thread `from`.
    pub(super) fn broadcast(&mut self, span: Span, ty: Scalar, x: Known, from: Known) -> Known {
        self.whole_warps(span);
        if self.builder.kernel.threads() <= LANES {
            let selector = self.cast(from, Scalar::Usize, Scalar::U32).value;
            let op = Op::Shuffle { mode: Shuffle::Index, value: x.value, selector, width: LANES };
            return Known { value: self.builder.scalar(op, ty), bits: None };
        }
        let thread = self.thread_index();
        let writes = self.compare(Comparison::Eq, Scalar::Usize, thread, from);
        let first = self.index(0);
        let stored = stored(ty);
        let x = self.cast(x, ty, stored);
        let array = self.exchange(stored, first, x, writes);
        let read = self.exchanged_value(array, stored, first, None);
        self.cast(read, stored, ty)
    }

    /// Lane l gets the `own` of warp l modulo the next power of two above the number of warps; `missing` where there is none.
    fn of_warps(&mut self, ty: Scalar, own: Known, missing: u64) -> Known {
        let warps = self.builder.kernel.threads() / LANES;
        let (lane, warp) = (self.lane(Span::default()), self.warp(Span::default()));
        let zero = self.index(0);
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let stored = stored(ty);
        let own = self.cast(own, ty, stored);
        let array = self.exchange(stored, warp, own, first);
        let segment = warps.next_power_of_two();
        let mut from = lane;
        if segment < LANES {
            let size = self.index(segment);
            from = self.binary(Binary::Rem, Scalar::Usize, lane, size);
        }
        let guard = (segment != warps).then(|| {
            let count = self.index(warps);
            let there = self.compare(Comparison::Lt, Scalar::Usize, from, count);
            let otherwise = self.number(stored, missing);
            Guard { condition: there.value, otherwise: [otherwise.value].into_iter().collect() }
        });
        let read = self.exchanged_value(array, stored, from, guard);
        self.cast(read, stored, ty)
    }

    /// Writes `x` at `index` in the threads where `writes` holds, for all threads to read.
    fn exchange(&mut self, ty: Scalar, index: Known, x: Known, writes: Known) -> SharedId {
        let known = self.exchanged.iter().find(|(of, _)| *of == ty).map(|(_, array)| *array);
        let looped = self.frames.iter().any(|f| !f.loops.is_empty());
        let array = known.unwrap_or_else(|| {
            let array = SharedId(self.builder.kernel.shared.len() as u32);
            self.builder.kernel.shared.push(SharedArray {
                name: format!("block_{ty}"),
                element: ty,
                shape: [self.builder.kernel.threads() / LANES].into_iter().collect(),
                strides: [1].into_iter().collect(),
                layout: Layout::Packed,
                offset: 0,
            });
            self.exchanged.push((ty, array));
            array
        });
        if known.is_some() || looped {
            self.builder.effect(Op::BlockSync);
        }
        let place = ir::Place::Shared { array, indices: [index.value].into_iter().collect() };
        let values = [x.value].into_iter().collect();
        self.builder.effect(Op::Store { place, element: ty, values, guard: Some(writes.value) });
        self.builder.effect(Op::BlockSync);
        array
    }

    fn exchanged_value(&mut self, array: SharedId, ty: Scalar, index: Known, guard: Option<Guard>) -> Known {
        let place = ir::Place::Shared { array, indices: [index.value].into_iter().collect() };
        let op = Op::Load { place, element: ty, policy: Policy::Coherent, guard };
        Known { value: self.builder.scalar(op, ty), bits: None }
    }
}

/// What a value is in memory: `usize` is a word of 32 bits.
fn stored(ty: Scalar) -> Scalar {
    if ty == Scalar::Usize { Scalar::U32 } else { ty }
}
