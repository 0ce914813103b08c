//! Reductions and scans with a closure, over values of any type.
//!
//! Each step inlines the closure once. The closure runs only in lanes where both of its values
//! exist, so that it causes no additional overflow or access.

use super::cooperation::LANES;
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::hir::TypeId;
use crate::ir::{Binary, Comparison, Op, Shuffle};
use crate::source::Span;

/// A number of lanes or warps, with its upper bound.
#[derive(Clone, Copy)]
pub(super) struct BoundedCount {
    most: u32,
    /// The number, unless it always equals the upper bound.
    known: Option<MaybeConst>,
}

impl BoundedCount {
    /// Returns the constant count `n`.
    pub fn exactly(n: u32) -> BoundedCount {
        BoundedCount { most: n, known: None }
    }
}

/// The result of a reduction, valid in the first lane of each segment.
struct Folded {
    value: Val,
    /// Whether all lanes hold the same bits.
    everywhere: bool,
}

impl<'h> Lowerer<'h> {
    fn combined(&mut self, span: Span, combine: u32, a: Val, b: Val) -> Val {
        let value = self.call_callable(span, combine, vec![a, b]);
        self.at(span);
        value
    }

    /// Lowers the reduction over segments of `width` lanes, in lane order, with the result in all
    /// lanes.
    pub(super) fn reduced(&mut self, span: Span, x: Val, combine: u32, width: u32) -> Val {
        let folded = self.folded(span, x, combine, width);
        self.broadcast_first(folded, width)
    }

    /// Lowers a butterfly over segments of `width` lanes, narrowest first. The first lane of a
    /// segment combines values in lane order; the other lanes combine theirs in some order.
    fn folded(&mut self, span: Span, mut x: Val, combine: u32, width: u32) -> Folded {
        let mut everywhere = true;
        let mut distance = 1;
        while distance < width {
            let other = self.shuffled(&x, Shuffle::Xor, distance, width);
            let both = self.combined(span, combine, x.clone(), other.clone());
            everywhere &= self.is_symmetric(&both, &x, &other);
            x = both;
            distance *= 2;
        }
        Folded { value: x, everywhere }
    }

    /// Lowers a broadcast of the value of each segment's first lane.
    fn broadcast_first(&mut self, folded: Folded, width: u32) -> Val {
        match folded.everywhere {
            true => folded.value,
            false => self.shuffled(&folded.value, Shuffle::Index, 0, width),
        }
    }

    /// Returns whether each part of `both` is a commutative operation on the same part of the two
    /// operands. A lane and its partner then get equal results.
    fn is_symmetric(&mut self, both: &Val, a: &Val, b: &Val) -> bool {
        let [both, a, b] = [both, a, b].map(|value| {
            let mut parts = Vec::new();
            self.scalars(value, &mut parts);
            parts
        });
        let mut parts = both.iter().zip(a.iter().zip(&b));
        parts.all(|((_, both), ((_, a), (_, b)))| match self.builder.defined(both.value) {
            Some(Op::Binary(op, x, y)) => {
                op.commutes() && ((*x, *y) == (a.value, b.value) || (*x, *y) == (b.value, a.value))
            }
            _ => false,
        })
    }

    /// Lowers the inclusive scan over the first `count` of `width` lanes. For distances 1, 2, 4, …,
    /// each lane combines its value with that of the lane at this distance below, if that lane
    /// exists.
    pub(super) fn scanned(
        &mut self,
        (ty, span): (TypeId, Span),
        mut x: Val,
        combine: u32,
        width: u32,
        count: BoundedCount,
    ) -> Val {
        let lane = self.group_lane(width);
        let mut distance = 1;
        while distance < count.most {
            let earlier = self.shuffled(&x, Shuffle::Up, distance, width);
            let by = self.index(distance);
            let mut takes = self.compare(Comparison::Ge, Scalar::Usize, lane, by);
            if count.most < width || count.known.is_some() {
                let count = self.number_of(count);
                let counts = self.compare(Comparison::Lt, Scalar::Usize, lane, count);
                takes = self.binary(Binary::And, Scalar::Bool, takes, counts);
            }
            let own = x.clone();
            x = self.choose_of(ty, span, takes, |l| l.combined(span, combine, earlier, x), |_| own);
            distance *= 2;
        }
        x
    }

    fn number_of(&mut self, count: BoundedCount) -> MaybeConst {
        count.known.unwrap_or_else(|| self.index(count.most))
    }

    /// Returns the number of warps of the block.
    fn warps(&mut self) -> BoundedCount {
        let known = self.builder.kernel.block.threads().is_none().then(|| self.warp_count());
        BoundedCount { most: self.most_warps(), known }
    }

    /// Lowers a reduction of the block: first in each warp, then over the results of the warps.
    pub(super) fn block_reduced(&mut self, (ty, span): (TypeId, Span), x: Val, combine: u32) -> Val {
        let own = self.folded(span, x, combine, LANES);
        let warps = self.warps();
        if warps.most < 2 {
            return self.broadcast_first(own, LANES);
        }
        let (lane, warp, zero) = (self.group_lane(LANES), self.warp(span), self.index(0));
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let exchange = self.exchange(&own.value, warp, first);
        let segment = warps.most.next_power_of_two();
        let size = self.index(segment);
        let from = self.binary(Binary::Rem, Scalar::Usize, lane, size);
        if warps.most == segment && warps.known.is_none() {
            let others = self.exchanged_value(&exchange, from, None);
            return self.reduced(span, others, combine, segment);
        }
        let count = self.number_of(warps);
        let there = self.compare(Comparison::Lt, Scalar::Usize, from, count);
        let mut x = self.exchanged_value(&exchange, from, Some(there));
        let mut distance = 1;
        while distance < segment {
            let other = self.shuffled(&x, Shuffle::Xor, distance, segment);
            // Both partners hold the value of a warp if the one with the larger index does.
            let by = self.index(distance);
            let greater = self.binary(Binary::Or, Scalar::Usize, from, by);
            let both = self.compare(Comparison::Lt, Scalar::Usize, greater, count);
            let own = x.clone();
            x = self.choose_of(ty, span, both, |l| l.combined(span, combine, x, other), |_| own);
            distance *= 2;
        }
        self.shuffled(&x, Shuffle::Index, 0, segment)
    }

    /// Lowers the block's exclusive scan: the combined value of the threads before this one, and
    /// that of all threads.
    pub(super) fn block_scanned(&mut self, (ty, span): (TypeId, Span), x: Val, identity: Val, combine: u32) -> Val {
        let through = self.scanned((ty, span), x, combine, LANES, BoundedCount::exactly(LANES));
        let before = self.shuffled(&through, Shuffle::Up, 1, LANES);
        let (lane, zero) = (self.group_lane(LANES), self.index(0));
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let warps = self.warps();
        if warps.most < 2 {
            let total = self.shuffled(&through, Shuffle::Index, LANES - 1, LANES);
            let prefix = self.choose_of(ty, span, first, |_| identity, |_| before);
            return Val::Tuple(vec![prefix, total]);
        }
        let (warp, end) = (self.warp(span), self.index(LANES - 1));
        let last = self.compare(Comparison::Eq, Scalar::Usize, lane, end);
        let exchange = self.exchange(&through, warp, last);
        let there = (warps.most < LANES || warps.known.is_some()).then(|| {
            let count = self.number_of(warps);
            self.compare(Comparison::Lt, Scalar::Usize, lane, count)
        });
        // Each warp scans the sums of all warps, so that no warp waits for another to do it.
        let sums = self.exchanged_value(&exchange, lane, there);
        let sums = self.scanned((ty, span), sums, combine, LANES, warps);
        let total = match warps.known {
            None => self.shuffled(&sums, Shuffle::Index, warps.most - 1, LANES),
            Some(count) => {
                let one = self.index(1);
                let last = self.binary(Binary::Sub, Scalar::Usize, count, one);
                let last = self.cast(last, Scalar::Usize, Scalar::U32).value;
                self.shuffled_by(&sums, Shuffle::Index, last, LANES)
            }
        };
        let one = self.index(1);
        let earlier = self.saturating_sub(Scalar::Usize, warp, one);
        let earlier = self.cast(earlier, Scalar::Usize, Scalar::U32).value;
        let earlier = self.shuffled_by(&sums, Shuffle::Index, earlier, LANES);
        let alone = self.compare(Comparison::Eq, Scalar::Usize, warp, zero);
        let prefix = self.choose_of(
            ty,
            span,
            alone,
            |l| l.choose_of(ty, span, first, |_| identity, |_| before.clone()),
            |l| {
                let both = (earlier.clone(), before.clone());
                l.choose_of(ty, span, first, |_| earlier, |l| l.combined(span, combine, both.0, both.1))
            },
        );
        Val::Tuple(vec![prefix, total])
    }
}
