//! Collective operations of the threads of a block.
//!
//! Values pass through exchange arrays in shared memory: one for each scalar of a value, shared by
//! all uses of a type. Each use writes, synchronizes and reads. The next use must not write before
//! all threads have read, so it synchronizes first, unless it is certainly the first use.

use super::cooperation::{LANES, operator, word_type};
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{Storage, Val};
use crate::Scalar;
use crate::hir::collective::Reduction;
use crate::hir::{Collective, Expr};
use crate::ir::{self, Binary, CachePolicy, Comparison, Guard, Op, SharedArray, SharedId, SharedLayout, Vote};
use crate::source::Span;

/// A value in shared memory: its shape, and the arrays of its scalars.
pub(super) struct ExchangedValue {
    form: Val,
    arrays: Vec<SharedId>,
}

/// Returns the neutral element of a reduction: x + −0 is x, also for −0, and `min` and `max` ignore
/// a NaN.
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
    /// Lowers a collective operation of the block.
    pub(super) fn of_block(&mut self, e: &'h Expr, operation: Collective, arguments: &'h [Expr]) -> Val {
        let values: Vec<Val> = arguments.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        self.whole_warps(e.span);
        let (Some(first), false) = (arguments.first(), self.builder.ended()) else { return Val::Unit };
        let of = (first.ty, e.span);
        if matches!(operation, Collective::Number(_)) && self.is_double(first) {
            return Val::Unit;
        }
        match (operation, values.as_slice()) {
            (Collective::Number(reduction), [Val::Scalar(x)]) => {
                let ty = self.scalar_type(first.ty);
                let own = self.numbers_reduced(operator(reduction), ty, *x, LANES);
                Val::Scalar(self.reduce_over_warps(operator(reduction), ty, own, identity(reduction, ty)))
            }
            (Collective::Vote(mode), [Val::Scalar(p)]) => Val::Scalar(self.block_vote(mode, *p)),
            (Collective::Count, [Val::Scalar(p)]) => {
                let own = self.lanes_with(*p);
                let count = self.reduce_over_warps(Binary::Add, Scalar::U32, own, 0);
                Val::Scalar(self.cast(count, Scalar::U32, Scalar::Usize))
            }
            (Collective::Broadcast, [x, Val::Scalar(from)]) => self.block_broadcast(e.span, x, *from),
            (Collective::Reduce, [x, Val::Callable(combine)]) => self.block_reduced(of, x.clone(), *combine),
            (Collective::Scan, [x, identity, Val::Callable(combine)]) => {
                self.block_scanned(of, x.clone(), identity.clone(), *combine)
            }
            // An argument has an error, or yields no value because control leaves it, as `return`
            // does.
            _ => Val::Unit,
        }
    }

    /// Lowers the reduction over the values `own` of the warps; `missing` is used for warps that do
    /// not exist.
    fn reduce_over_warps(&mut self, op: Binary, ty: Scalar, own: MaybeConst, missing: u64) -> MaybeConst {
        let warps = self.most_warps();
        if warps < 2 {
            return own;
        }
        let others = self.of_warps(ty, own, missing);
        self.numbers_reduced(op, ty, others, warps.next_power_of_two())
    }

    fn block_vote(&mut self, mode: Vote, p: MaybeConst) -> MaybeConst {
        let own = self.vote(mode, p);
        if self.most_warps() < 2 {
            return own;
        }
        let word = self.cast(own, Scalar::Bool, Scalar::U32);
        let others = self.of_warps(Scalar::U32, word, u64::from(mode == Vote::All));
        let zero = self.number(Scalar::U32, 0);
        let others = self.compare(Comparison::Ne, Scalar::U32, others, zero);
        self.vote(mode, others)
    }

    /// Lowers a broadcast of the value `x` of thread `from`.
    fn block_broadcast(&mut self, span: Span, x: &Val, from: MaybeConst) -> Val {
        if self.most_warps() < 2 {
            return self.lane_broadcast(span, x, from, LANES);
        }
        let threads = self.builder.kernel.block.most_threads();
        self.source_exists(span, "thread", from, threads);
        let thread = self.thread_index();
        let writes = self.compare(Comparison::Eq, Scalar::Usize, thread, from);
        let first = self.index(0);
        let exchange = self.exchange(x, first, writes);
        self.exchanged_value(&exchange, first, None)
    }

    /// Returns, in lane l, the value `own` of warp l mod m, or `missing` if that warp does not
    /// exist. m is the largest number of warps, rounded up to a power of two. `missing` is neutral,
    /// so that a butterfly over m lanes reduces the warps that exist.
    fn of_warps(&mut self, ty: Scalar, own: MaybeConst, missing: u64) -> MaybeConst {
        let warps = self.most_warps();
        let (lane, warp) = (self.group_lane(LANES), self.warp(Span::default()));
        let zero = self.index(0);
        let first = self.compare(Comparison::Eq, Scalar::Usize, lane, zero);
        let exchange = self.exchange(&Val::Scalar(own), warp, first);
        let segment = warps.next_power_of_two();
        let mut from = lane;
        if segment < LANES {
            let size = self.index(segment);
            from = self.binary(Binary::Rem, Scalar::Usize, lane, size);
        }
        let all = self.builder.kernel.block.threads() == Some(segment * LANES);
        let there = (!all).then(|| {
            let count = self.warp_count();
            (self.compare(Comparison::Lt, Scalar::Usize, from, count), missing)
        });
        let read = self.load_exchanged(exchange.arrays[0], word_type(ty), from, there);
        self.out_of_word(ty, read)
    }

    /// Publishes `x` at `index` to all threads, from the threads where `writes` holds.
    pub(super) fn exchange(&mut self, x: &Val, index: MaybeConst, writes: MaybeConst) -> ExchangedValue {
        let mut parts = Vec::new();
        self.scalars(x, &mut parts);
        let words: Vec<_> = parts.into_iter().map(|(ty, k)| (word_type(ty), self.word(ty, k))).collect();
        let mut used = self.inliner.in_a_loop();
        let mut arrays = Vec::new();
        for (i, (ty, _)) in words.iter().enumerate() {
            let number = words[..i].iter().filter(|(other, _)| other == ty).count();
            let known = self.shared.exchange_array(*ty, number);
            used |= known.is_some();
            arrays.push(known.unwrap_or_else(|| self.exchange_array(*ty, number)));
        }
        if used {
            self.builder.effect(Op::BlockSync);
        }
        for (array, (element, word)) in arrays.iter().zip(words) {
            let place =
                ir::AccessPlace::Shared { array: *array, indices: [index.value].into_iter().collect(), within: None };
            let values = [word.value].into_iter().collect();
            self.builder.effect(Op::Store { place, element, values, guard: Some(writes.value) });
        }
        self.builder.effect(Op::BlockSync);
        ExchangedValue { form: x.clone(), arrays }
    }

    /// Adds the exchange array for scalar number `number` of type `ty`.
    fn exchange_array(&mut self, ty: Scalar, number: usize) -> SharedId {
        let array = SharedId(self.builder.kernel.shared.len() as u32);
        let name = if number == 0 { format!("block_{ty}") } else { format!("block_{ty}_{number}") };
        self.builder.kernel.shared.push(SharedArray {
            name,
            element: ty.into(),
            shape: [self.most_warps()].into_iter().collect(),
            strides: [1].into_iter().collect(),
            layout: SharedLayout::Exchange,
            over: None,
            offset: 0,
        });
        self.shared.add_exchange_array(ty, array);
        array
    }

    /// Lowers a read of the exchanged value at `index`. Lanes where `there` is false get zeros.
    pub(super) fn exchanged_value(
        &mut self,
        exchange: &ExchangedValue,
        index: MaybeConst,
        there: Option<MaybeConst>,
    ) -> Val {
        let mut arrays = exchange.arrays.iter();
        self.each_scalar(&exchange.form, &mut |l, ty, own| match arrays.next() {
            Some(array) => {
                let word = l.load_exchanged(*array, word_type(ty), index, there.map(|k| (k, 0)));
                l.out_of_word(ty, word)
            }
            None => own,
        })
    }

    fn load_exchanged(
        &mut self,
        array: SharedId,
        ty: Scalar,
        index: MaybeConst,
        there: Option<(MaybeConst, u64)>,
    ) -> MaybeConst {
        let guard = there.map(|(condition, missing)| {
            let otherwise = self.number(ty, missing).value;
            Guard { condition: condition.value, otherwise: [otherwise].into_iter().collect() }
        });
        let place = ir::AccessPlace::Shared { array, indices: [index.value].into_iter().collect(), within: None };
        let op = Op::Load { place, element: ty, policy: CachePolicy::Coherent, guard };
        MaybeConst::unknown(self.builder.scalar(op, ty))
    }

    /// Collects the scalars of a value, in order.
    pub(super) fn scalars(&mut self, value: &Val, all: &mut Vec<(Scalar, MaybeConst)>) {
        match value {
            Val::Scalar(k) => self.push_scalar(*k, all),
            Val::Tuple(parts) => parts.iter().for_each(|p| self.scalars(p, all)),
            Val::Option(some, inner) => {
                self.push_scalar(*some, all);
                self.scalars(inner, all);
            }
            Val::Array(storage) => self.registers(storage, all),
            _ => {}
        }
    }

    fn registers(&mut self, storage: &Storage, all: &mut Vec<(Scalar, MaybeConst)>) {
        match storage {
            Storage::Unit | Storage::Shared { .. } | Storage::Pending { .. } => {}
            Storage::Tuple(parts) => parts.iter().for_each(|p| self.registers(p, all)),
            Storage::Leaf { dims, .. } => {
                let count: u32 = dims.iter().product();
                for i in 0..count {
                    if let Some(k) = self.register(storage, i) {
                        self.push_scalar(k, all);
                    }
                }
            }
        }
    }

    fn push_scalar(&self, k: MaybeConst, all: &mut Vec<(Scalar, MaybeConst)>) {
        for word in k.words() {
            if let ir::Type::Scalar(ty) = self.builder.kernel.ty(word) {
                all.push((ty, if k.high.is_some() { MaybeConst::unknown(word) } else { k }));
            }
        }
    }
}
