//! Views and shared arrays.

use super::Lowerer;
use super::value::{Handle, Known, Val, View};
use crate::Scalar;
use crate::hir::{self, Expr, ExprKind};
use crate::ir::{self, Binary, Comparison, For, Guard, Layout, Op, SharedArray, SharedId, Type, Unroll, Values};
use smallvec::SmallVec;

/// Copies of at most so many steps a thread are unrolled.
const UNROLLED_COPY: u32 = 16;

impl<'h> Lowerer<'h> {
    /// A new shared array: its shape, and its pitch where one is given, are constants of the instance.
    pub(super) fn shared(&mut self, e: &'h Expr, arguments: &'h [Expr], layout: Layout) -> Val {
        let rank = self.hir_rank(e);
        let element = match self.ty(e.ty) {
            hir::Type::Shared { element, .. } => self.element_scalar(*element, e.span),
            _ => return Val::Unit,
        };
        let name = self.name_hint.take().unwrap_or("shared").to_string();
        let shape: Option<SmallVec<[u32; 3]>> = match &arguments[0].kind {
            ExprKind::Array(parts) => parts.iter().map(|p| self.constant(p).map(|n| n as u32)).collect(),
            ExprKind::Repeat(value) => self.constant(value).map(|n| (0..rank).map(|_| n as u32).collect()),
            _ => None,
        };
        let Some(shape) = shape else {
            self.error_with_help(
                arguments[0].span,
                "the shape of a shared array must be constant for the instance",
                "write it as an array of numbers and generic constants: `Shared::<f32, 2>::new([T, 32])`",
            );
            return Val::Unit;
        };
        let mut pitch = shape[shape.len() - 1];
        if let Some(given) = arguments.get(1) {
            match self.constant(given) {
                Some(n) if n >= u64::from(pitch) => pitch = n as u32,
                Some(n) => self.error(given.span, format!("a pitch of {n} is shorter than a row of {pitch} elements")),
                None => self.error(given.span, "the pitch of a shared array must be constant for the instance"),
            }
        }
        let id = SharedId(self.builder.kernel.shared.len() as u32);
        let strides = super::layout::strides(&shape, pitch);
        let rows: u64 = shape[..shape.len() - 1].iter().fold(1, |n: u64, d| n.saturating_mul(u64::from(*d)));
        let bytes = rows.saturating_mul(u64::from(pitch)).saturating_mul(u64::from(element.bytes()));
        if bytes > u64::from(super::layout::LIMIT) {
            let message =
                format!("`{name}` needs {bytes} bytes of shared memory, and a block has {}", super::layout::LIMIT);
            self.error_with_help(e.span, message, super::layout::WAY_OUT);
            return Val::Unit;
        }
        self.builder.kernel.shared.push(SharedArray { name, element, shape, strides, layout, offset: 0 });
        if matches!(layout, Layout::Padded { .. }) {
            self.padded.push(id);
        }
        Val::Shared(Handle { array: id, prefix: SmallVec::new() })
    }

    /// The same memory from another origin; past the end nothing is left.
    pub(super) fn offset(&mut self, view: &View, at: &[Val]) -> Val {
        let at: SmallVec<[Known; 2]> = at
            .iter()
            .filter_map(|v| match v {
                Val::Scalar(k) => Some(*k),
                _ => None,
            })
            .collect();
        if at.len() != view.extents.len() {
            return Val::Unit;
        }
        let terms = at.iter().zip(&view.strides).map(|(k, stride)| (k.value, *stride)).collect();
        let base = self.builder.value(Op::Offset { base: view.base, terms, element: view.element }, Type::Global);
        let extents =
            view.extents.iter().zip(&at).map(|(extent, k)| self.saturating_sub(Scalar::Usize, *extent, *k)).collect();
        Val::View(View { base, extents, ..view.clone() })
    }

    /// The view with its first index fixed; past the end it is empty.
    pub(super) fn view_at(&mut self, view: &View, i: Known) -> Val {
        let terms = [(i.value, view.strides[0])].into_iter().collect();
        let base = self.builder.value(Op::Offset { base: view.base, terms, element: view.element }, Type::Global);
        let inside = self.compare(Comparison::Lt, Scalar::Usize, i, view.extents[0]).value;
        let none = self.index(0).value;
        let mut within = |extent: &Known| {
            let op = Op::Select { condition: inside, yes: extent.value, no: none };
            Known { value: self.builder.scalar(op, Scalar::Usize), bits: None }
        };
        let extents = view.extents[1..].iter().map(&mut within).collect();
        Val::View(View { base, extents, strides: view.strides[1..].iter().copied().collect(), ..view.clone() })
    }

    /// The whole block fills `to` from `from`, each thread the elements t, t + threads, …, with zero beyond the edge.
    pub(super) fn copy_from(&mut self, to: &Handle, from: &View) {
        self.shared_out(to, &mut |lowerer, indices| lowerer.copy_element(to, from, indices));
    }

    /// The whole block fills `of` with `value`, each thread the elements that it would copy.
    pub(super) fn fill(&mut self, of: &Handle, value: Known) {
        self.shared_out(of, &mut |lowerer, indices| lowerer.store_shared(of, indices, value.value));
    }

    /// Shares the elements of an array out among the threads of the block: t, t + threads, ….
    fn shared_out(&mut self, to: &Handle, each: &mut dyn FnMut(&mut Self, &[Known])) {
        let shape: SmallVec<[u32; 3]> =
            self.builder.kernel.shared[to.array.0 as usize].shape[to.prefix.len()..].iter().copied().collect();
        let elements: u32 = shape.iter().product();
        let threads = self.builder.kernel.threads();
        if elements == 0 {
            return;
        }
        let steps = elements.div_ceil(threads);
        // A row is as long as the block is wide: then a thread keeps its column, and rows go by the other axes.
        let width = self.builder.kernel.block[0];
        let by_rows = shape.len() > 1 && shape[shape.len() - 1] == width && width > 1;
        let (first, stride, count) = match by_rows {
            true => (self.outer_index(), threads / width, elements / width),
            false => (self.thread_index(), threads, elements),
        };
        let mut step = |lowerer: &mut Self, k: Known| {
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
        step(self, Known { value: k, bits: None });
        let body = self.builder.leave();
        let unroll = if steps <= UNROLLED_COPY { Unroll::Full } else { Unroll::Auto };
        let counted = For { label, start, end, step: one, unroll, inits: Values::new(), body };
        self.builder.effect(Op::For(Box::new(counted)));
    }

    /// One element of a share: `item` counts elements, or rows where `by_rows`.
    fn item(&mut self, shape: &[u32], item: Known, by_rows: bool, each: &mut dyn FnMut(&mut Self, &[Known])) {
        let mut indices: SmallVec<[Known; 3]> = SmallVec::new();
        let mut rest = item;
        let mut dims = shape;
        if by_rows {
            indices.push(self.thread(0));
            dims = &shape[..shape.len() - 1];
        }
        for (d, extent) in dims.iter().enumerate().rev() {
            if d == 0 {
                indices.push(rest);
                break;
            }
            let extent = self.index(*extent);
            indices.push(self.binary(Binary::Rem, Scalar::Usize, rest, extent));
            rest = self.binary(Binary::Div, Scalar::Usize, rest, extent);
        }
        indices.reverse();
        each(self, &indices);
    }

    fn copy_element(&mut self, to: &Handle, from: &View, indices: &[Known]) {
        let mut inside: Option<Known> = None;
        for (index, extent) in indices.iter().zip(&from.extents) {
            let fits = self.compare(Comparison::Lt, Scalar::Usize, *index, *extent);
            inside = Some(match inside {
                None => fits,
                Some(inside) => self.binary(Binary::And, Scalar::Bool, inside, fits),
            });
        }
        let Some(inside) = inside else { return };
        let zero = self.builder.constant(from.element, 0);
        let super::value::Place::Memory { place, element, policy } = self.view_place(from, indices) else { return };
        let guard = Some(Guard { condition: inside.value, otherwise: [zero].into_iter().collect() });
        let value = self.builder.scalar(Op::Load { place, element, policy, guard }, element);
        self.store_shared(to, indices, value);
    }

    fn store_shared(&mut self, to: &Handle, indices: &[Known], value: ir::Value) {
        let element = self.builder.kernel.shared[to.array.0 as usize].element;
        let indices = to.prefix.iter().copied().chain(indices.iter().map(|k| k.value)).collect();
        let place = ir::Place::Shared { array: to.array, indices };
        self.builder.effect(Op::Store { place, element, values: [value].into_iter().collect(), guard: None });
    }
}
