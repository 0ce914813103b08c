//! Reductions and scans by a closure of the kernel, over values of any parts.
//!
//! The closure is inlined once a step, and runs where both of its values are there and nowhere else: an overflow in
//! it, or an access, is one that the kernel asked for.

use super::Lowerer;
use super::cooperation::LANES;
use super::exchange::Exchange;
use super::value::{Known, Val};
use crate::Scalar;
use crate::hir::TypeId;
use crate::ir::{Binary, Comparison, Op, Shuffle};
use crate::source::Span;

/// A number of lanes or warps, and the largest that it can be.
#[derive(Clone, Copy)]
pub(super) struct Count {
    most: u32,
    /// The number, where it is not the largest in any case.
    known: Option<Known>,
}

impl Count {
    /// That number.
    pub fn exactly(n: u32) -> Count {
        Count { most: n, known: None }
    }
}

impl<'h> Lowerer<'h> {
    fn combined(&mut self, span: Span, combine: u32, a: Val, b: Val) -> Val {
        let value = self.call_callable(span, combine, vec![a, b]);
        self.at(span);
        value
    }

    /// The butterfly over segments of `width` lanes, widest first.
    pub(super) fn reduced(&mut self, span: Span, mut x: Val, combine: u32, width: u32) -> Val {
        let mut distance = width / 2;
        while distance > 0 {
            let other = self.shuffled(&x, Shuffle::Xor, distance, width);
            x = self.combined(span, combine, x, other);
            distance /= 2;
        }
        x
    }

    /// The inclusive scan over the first `count` of `width` lanes: at distances 1, 2, 4, … each lane that has one so far below it
    /// combines that one's value with its own. The others keep theirs.
    pub(super) fn scanned(
        &mut self,
        (ty, span): (TypeId, Span),
        mut x: Val,
        combine: u32,
        width: u32,
        count: Count,
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

    fn number_of(&mut self, count: Count) -> Known {
        count.known.unwrap_or_else(|| self.index(count.most))
    }

    /// The warps of the block.
    fn warps(&mut self) -> Count {
        let known = self.builder.kernel.block.threads().is_none().then(|| self.warp_count());
        Count { most: self.most_warps(), known }
    }

    /// The butterfly in each warp, and then over the warps' results.
    pub(super) fn block_reduced(&mut self, (ty, span): (TypeId, Span), x: Val, combine: u32) -> Val {
        let own = self.reduced(span, x, combine, LANES);
        let warps = self.most_warps();
        if warps < 2 {
            return own;
        }
        let (lane, warp, zero) = (self.group_lane(LANES), self.warp(span), self.index(0));
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let exchange = self.exchange(&own, warp, first);
        if let Some(count) = self.warps().known {
            return self.reduced_at_launch((ty, span), &exchange, count, combine);
        }
        let segment = warps.next_power_of_two();
        let (size, half) = (self.index(segment), self.index(segment / 2));
        let from = self.binary(Binary::Rem, Scalar::Usize, lane, size);
        if segment == warps {
            let others = self.exchanged_value(&exchange, from, None);
            return self.reduced(span, others, combine, segment);
        }
        // A warp that is not there stands for its partner in the widest step, in which neither of the two changes.
        let low = self.binary(Binary::Rem, Scalar::Usize, from, half);
        let count = self.index(warps);
        let beyond = self.compare(Comparison::Ge, Scalar::Usize, from, count);
        let op = Op::Select { condition: beyond.value, yes: low.value, no: from.value };
        let from = Known { value: self.builder.scalar(op, Scalar::Usize), bits: None };
        let mut others = self.exchanged_value(&exchange, from, None);
        let partner = self.shuffled(&others, Shuffle::Xor, segment / 2, segment);
        let pairs = self.index(warps - segment / 2);
        let both = self.compare(Comparison::Lt, Scalar::Usize, low, pairs);
        let kept = others.clone();
        others = self.choose_of(ty, span, both, |l| l.combined(span, combine, others, partner), |_| kept);
        match segment / 2 {
            1 => others,
            rest => self.reduced(span, others, combine, rest),
        }
    }

    /// The butterfly over the `count` values of an exchange, of which there are most where all of the block's warps are.
    ///
    /// Its widest step is at half the next power of two above `count`: where a step is wider, and in that one where a warp has
    /// no partner, nothing is combined. Lane l has the value of the warp that l comes to by wider steps.
    fn reduced_at_launch(
        &mut self,
        (ty, span): (TypeId, Span),
        exchange: &Exchange,
        count: Known,
        combine: u32,
    ) -> Val {
        let segment = self.most_warps().next_power_of_two();
        let (lane, size) = (self.group_lane(LANES), self.index(segment));
        let mut from = self.binary(Binary::Rem, Scalar::Usize, lane, size);
        let mut distance = segment / 2;
        while distance > 0 {
            let by = self.index(distance);
            let low = self.binary(Binary::Rem, Scalar::Usize, from, by);
            let beyond = self.compare(Comparison::Ge, Scalar::Usize, from, count);
            let op = Op::Select { condition: beyond.value, yes: low.value, no: from.value };
            from = Known { value: self.builder.scalar(op, Scalar::Usize), bits: None };
            distance /= 2;
        }
        let mut x = self.exchanged_value(exchange, from, None);
        let mut distance = segment / 2;
        while distance > 0 {
            let by = self.index(distance);
            let partner = self.shuffled(&x, Shuffle::Xor, distance, segment);
            let low = self.binary(Binary::Rem, Scalar::Usize, lane, by);
            let other = self.binary(Binary::Add, Scalar::Usize, low, by);
            let both = self.compare(Comparison::Lt, Scalar::Usize, other, count);
            let kept = x.clone();
            x = self.choose_of(ty, span, both, |l| l.combined(span, combine, x, partner), |_| kept);
            distance /= 2;
        }
        x
    }

    /// What the threads before this one have, and what all have.
    pub(super) fn block_scanned(&mut self, (ty, span): (TypeId, Span), x: Val, identity: Val, combine: u32) -> Val {
        let through = self.scanned((ty, span), x, combine, LANES, Count::exactly(LANES));
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
        // Each warp scans the sums of all, so that nobody waits for one that does.
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
