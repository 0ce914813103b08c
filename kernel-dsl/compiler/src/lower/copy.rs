//! Operations of the whole block on an array in shared memory. Each thread handles its share.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::mem_layout::Leaves;
use super::lowerer::value::{LoweredPlace, SharedHandle, Val, ViewValue};
use super::pack::Pack;
use crate::Scalar;
use crate::hir::TypeId;
use crate::ir::{self, Binary, Comparison, For, Op, Type, Unroll, Values};
use smallvec::SmallVec;

/// The largest number of steps of each thread for which a copy is unrolled.
const UNROLLED_COPY: u32 = 16;

impl<'h> Lowerer<'h> {
    /// Lowers a copy of the block from `from` to `to`. Thread t copies the elements t, t + threads,
    /// …; elements out of bounds become zero.
    pub(super) fn copy_from(&mut self, to: &SharedHandle, from: &ViewValue) {
        let n = self.elements_per_access(to, from);
        self.distribute(to, n, &mut |lowerer, indices| {
            let scalars = match n {
                1 => lowerer.load_or_zero(from, indices),
                _ => lowerer.wide_piece(from, indices, n, None),
            };
            lowerer.put(to, indices, n, &scalars, None);
        });
    }

    /// Lowers a fill of `of` with `value` by the block. Each thread fills the elements that it
    /// would copy.
    pub(super) fn fill(&mut self, of: &SharedHandle, ty: TypeId, value: &Val) {
        let scalars = self.scalars_of(ty, value);
        self.distribute(of, 1, &mut |lowerer, indices| lowerer.put(of, indices, 1, &scalars, None));
    }

    /// Returns the scalars of an element of a view; zeros if it is out of bounds.
    fn load_or_zero(&mut self, from: &ViewValue, indices: &[MaybeConst]) -> Values {
        let inside = self.bounds_test(&from.extents, indices);
        let zeros = self.zeros(&from.mem_layout);
        let leaves = self.leaves_of(&from.mem_layout, 1);
        let LoweredPlace::Memory { place, policy, .. } = self.view_place(from, indices) else { return Values::new() };
        let align = super::memory_value::align_of(&place, &from.mem_layout);
        self.load_scalars(&place, &leaves, align, policy, Some((inside, &zeros)))
    }

    /// Stores the scalars of an element, or the registers of a pack of `n` elements, in one access.
    pub(super) fn put(
        &mut self,
        to: &SharedHandle,
        indices: &[MaybeConst],
        n: u32,
        scalars: &[ir::Value],
        exists: Option<MaybeConst>,
    ) {
        let LoweredPlace::Memory { place, .. } = to.place(indices) else { return };
        if let Some(pack) = Pack::of(to.mem_layout(), n).filter(|_| n > 1) {
            let (place, element, guard) = (pack.place(place), pack.register(), exists.map(|k| k.value));
            self.builder.effect(Op::Store { place, element, values: scalars.into(), guard });
            return;
        }
        let leaves: Leaves = self.leaves_of(to.mem_layout(), 1);
        let align = super::memory_value::align_of(&place, to.mem_layout());
        self.store_scalars(&place, &leaves, align, scalars, exists);
    }

    /// Distributes the elements of an array over the threads of the block, in packs of `n` adjacent
    /// elements: thread t gets packs t, t + threads, …. `each` gets the indices of the first
    /// element of a pack.
    pub(super) fn distribute(&mut self, to: &SharedHandle, n: u32, each: &mut dyn FnMut(&mut Self, &[MaybeConst])) {
        let each = &mut |lowerer: &mut Self, pack: &[MaybeConst]| {
            let indices = lowerer.first_of_pack(pack, n);
            each(lowerer, &indices);
        };
        let mut shape: SmallVec<[u32; 3]> = match to {
            SharedHandle::Fixed { array, prefix, .. } => {
                self.builder.kernel.shared[array.0 as usize].shape[prefix.len()..].iter().copied().collect()
            }
            SharedHandle::Dynamic(view) => return self.distribute_dynamic(&view.extents.clone(), each),
        };
        if let Some(last) = shape.last_mut() {
            *last /= n;
        }
        let elements: u32 = shape.iter().product();
        if elements == 0 {
            return;
        }
        let block = self.builder.kernel.block;
        let (Some(threads), Some(width)) = (block.threads(), block.extent(0)) else {
            let extents: SmallVec<[MaybeConst; 3]> = shape.iter().map(|n| self.index(*n)).collect();
            return self.distribute_dynamic(&extents, each);
        };
        let steps = elements.div_ceil(threads);
        // If a row is as long as the block is wide, a thread keeps its column, and the other axes
        // select rows.
        let by_rows = shape.len() > 1 && shape[shape.len() - 1] == width && width > 1;
        let (first, stride, count) = match by_rows {
            true => (self.outer_index(), threads / width, elements / width),
            false => (self.thread_index(), threads, elements),
        };
        let mut step = |lowerer: &mut Self, k: MaybeConst| {
            let stride = lowerer.index(stride);
            let skip = lowerer.binary(Binary::Mul, Scalar::Usize, k, stride);
            let item = lowerer.binary(Binary::Add, Scalar::Usize, first, skip);
            let all = elements.is_multiple_of(threads);
            if all {
                lowerer.item(&shape, item, by_rows, each);
                return;
            }
            let count = lowerer.index(count);
            let inside = lowerer.compare(Comparison::Lt, Scalar::Usize, item, count);
            lowerer.builder.enter([]);
            lowerer.item(&shape, item, by_rows, each);
            let then = lowerer.builder.leave();
            lowerer.builder.enter([]);
            let otherwise = lowerer.builder.leave();
            lowerer.builder.effect(Op::If { condition: inside.value, then, otherwise });
        };
        if steps == 1 {
            let zero = self.index(0);
            step(self, zero);
            return;
        }
        let (start, end, one) = (self.index(0).value, self.index(steps).value, self.index(1).value);
        let label = self.label();
        let k = self.builder.enter([Type::Scalar(Scalar::Usize)])[0];
        step(self, MaybeConst::unknown(k));
        let body = self.builder.leave();
        let unroll = if steps <= UNROLLED_COPY { Unroll::Full } else { Unroll::Auto };
        let counted = For { label, start, end, step: one, unroll, inits: Values::new(), body };
        self.builder.effect(Op::For(Box::new(counted)));
    }

    /// Distributes elements as `distribute` does, for an unknown number of steps.
    fn distribute_dynamic(&mut self, extents: &[MaybeConst], each: &mut dyn FnMut(&mut Self, &[MaybeConst])) {
        let (first, step, one) = (self.thread_index(), self.block_threads(), self.index(1));
        let all = extents.iter().fold(one, |n, extent| self.binary(Binary::Mul, Scalar::Usize, n, *extent));
        let label = self.label();
        let item = self.builder.enter([Type::Scalar(Scalar::Usize)])[0];
        let indices = self.row_major(MaybeConst::unknown(item), extents.len(), |_, d| extents[d]);
        each(self, &indices);
        let body = self.builder.leave();
        let (start, end, step) = (first.value, all.value, step.value);
        let counted = For { label, start, end, step, unroll: Unroll::Auto, inits: Values::new(), body };
        self.builder.effect(Op::For(Box::new(counted)));
    }

    /// Lowers one element of a thread's share. `item` counts elements, or rows if `by_rows`.
    fn item(&mut self, shape: &[u32], item: MaybeConst, by_rows: bool, each: &mut dyn FnMut(&mut Self, &[MaybeConst])) {
        let column = by_rows.then(|| self.thread(0));
        let mut indices = self.row_major(item, shape.len() - usize::from(by_rows), |l, d| l.index(shape[d]));
        indices.extend(column);
        each(self, &indices);
    }

    /// Returns the indices of element `item` of an array, in row-major order. The first extent is
    /// not needed.
    pub(super) fn row_major(
        &mut self,
        item: MaybeConst,
        rank: usize,
        mut extent: impl FnMut(&mut Self, usize) -> MaybeConst,
    ) -> SmallVec<[MaybeConst; 3]> {
        let mut indices = SmallVec::new();
        let mut rest = item;
        for d in (1..rank).rev() {
            let extent = extent(self, d);
            indices.push(self.binary(Binary::Rem, Scalar::Usize, rest, extent));
            rest = self.binary(Binary::Div, Scalar::Usize, rest, extent);
        }
        if rank > 0 {
            indices.push(rest);
        }
        indices.reverse();
        indices
    }
}
