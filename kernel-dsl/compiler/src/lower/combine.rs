//! Reductions and scans by a closure of the kernel, over values of any parts.
//!
//! The closure is inlined once a step, and runs where both of its values are there and nowhere else: an overflow in
//! it, or an access, is one that the kernel asked for.

use super::Lowerer;
use super::cooperation::LANES;
use super::value::{Known, Val};
use crate::Scalar;
use crate::hir::TypeId;
use crate::ir::{Binary, Comparison, Op, Shuffle};
use crate::source::Span;

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
        count: u32,
    ) -> Val {
        let lane = self.group_lane(width);
        let mut distance = 1;
        while distance < count {
            let earlier = self.shuffled(&x, Shuffle::Up, distance, width);
            let by = self.index(distance);
            let mut takes = self.compare(Comparison::Ge, Scalar::Usize, lane, by);
            if count < width {
                let count = self.index(count);
                let counts = self.compare(Comparison::Lt, Scalar::Usize, lane, count);
                takes = self.binary(Binary::And, Scalar::Bool, takes, counts);
            }
            let own = x.clone();
            x = self.choose_of(ty, span, takes, |l| l.combined(span, combine, earlier, x), |_| own);
            distance *= 2;
        }
        x
    }

    /// The butterfly in each warp, and then over the warps' results.
    pub(super) fn block_reduced(&mut self, (ty, span): (TypeId, Span), x: Val, combine: u32) -> Val {
        let own = self.reduced(span, x, combine, LANES);
        let warps = self.warps();
        if warps < 2 {
            return own;
        }
        let (lane, warp, zero) = (self.group_lane(LANES), self.warp(span), self.index(0));
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let exchange = self.exchange(&own, warp, first);
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

    /// What the threads before this one have, and what all have.
    pub(super) fn block_scanned(&mut self, (ty, span): (TypeId, Span), x: Val, identity: Val, combine: u32) -> Val {
        let through = self.scanned((ty, span), x, combine, LANES, LANES);
        let before = self.shuffled(&through, Shuffle::Up, 1, LANES);
        let (lane, zero) = (self.group_lane(LANES), self.index(0));
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let warps = self.warps();
        if warps < 2 {
            let total = self.shuffled(&through, Shuffle::Index, LANES - 1, LANES);
            let prefix = self.choose_of(ty, span, first, |_| identity, |_| before);
            return Val::Tuple(vec![prefix, total]);
        }
        let (warp, end) = (self.warp(span), self.index(LANES - 1));
        let last = self.compare(Comparison::Eq, Scalar::Usize, lane, end);
        let exchange = self.exchange(&through, warp, last);
        let there = (warps < LANES).then(|| {
            let count = self.index(warps);
            self.compare(Comparison::Lt, Scalar::Usize, lane, count)
        });
        // Each warp scans the sums of all, so that nobody waits for one that does.
        let sums = self.exchanged_value(&exchange, lane, there);
        let sums = self.scanned((ty, span), sums, combine, LANES, warps);
        let total = self.shuffled(&sums, Shuffle::Index, warps - 1, LANES);
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
