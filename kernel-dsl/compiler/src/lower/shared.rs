//! Arrays in shared memory: creation, indexing, and reuse of their bytes.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::mem_layout::MemLayout;
use super::lowerer::shared_arrays::{Alias, SharedArrayEvent, SwitchedMember};
use super::lowerer::value::{CacheHint, SharedHandle, Val, ViewValue};
use crate::Scalar;
use crate::hir::{self, Expr, ExprKind};
use crate::ir::{self, Binary, DynamicArray, DynamicId, Op, SharedArray, SharedId, SharedLayout, Swizzle, Type};
use crate::source::Span;
use smallvec::SmallVec;

/// The layout of the rows of a new array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RowLayout {
    Packed,
    /// The pitch follows the shape.
    Pitch,
    Padded,
    Swizzled,
}

impl<'h> Lowerer<'h> {
    /// Lowers a new shared array. The shape, and the pitch if given, are compile-time constants.
    pub(super) fn shared(&mut self, e: &'h Expr, arguments: &'h [Expr], wanted: RowLayout) -> Val {
        let Some(mem_layout) = self.shared_mem_layout(e) else { return Val::Unit };
        let name = self.name_hint.take().unwrap_or("shared").to_string();
        let Some(shape) = self.shape(e, &arguments[0]) else { return Val::Unit };
        let row = shape[shape.len() - 1];
        let mut pitch = row;
        if let Some(given) = arguments.get(1) {
            match self.constant(given) {
                Some(n) if n >= u64::from(pitch) => pitch = n as u32,
                Some(n) => self.error(given.span, format!("the pitch {n} is smaller than a row of {pitch} elements")),
                None => self.error(given.span, "the pitch of a shared array must be a compile-time constant"),
            }
        }
        let element = mem_layout.element();
        let layout = match wanted {
            RowLayout::Packed => SharedLayout::Packed,
            RowLayout::Pitch => SharedLayout::Pitch,
            RowLayout::Padded => SharedLayout::Padded { pad: 0 },
            RowLayout::Swizzled => match Swizzle::of(row.saturating_mul(element.bytes())) {
                Some(swizzle) => SharedLayout::Swizzled(swizzle),
                None => {
                    self.error_with_help(
                        arguments[0].span,
                        format!(
                            "cannot swizzle rows of {row} elements of {} bytes: a row must be a multiple of {} bytes",
                            element.bytes(),
                            Swizzle::PIECE
                        ),
                        "make rows a multiple of 16 bytes, or use `Shared::padded`",
                    );
                    return Val::Unit;
                }
            },
        };
        let rows: u64 = shape[..shape.len() - 1].iter().fold(1, |n: u64, d| n.saturating_mul(u64::from(*d)));
        let bytes = rows.saturating_mul(u64::from(pitch)).saturating_mul(u64::from(element.bytes()));
        if bytes > u64::from(ir::SHARED_LIMIT) {
            let message = format!(
                "`{name}` needs {bytes} bytes of shared memory; the limit is {} bytes per block",
                ir::SHARED_LIMIT
            );
            self.error_with_help(e.span, message, super::layout::SHARED_LIMIT_HELP);
            return Val::Unit;
        }
        if self.switches(e.ty) {
            return self.switched(SwitchedMember { name, shape, pitch, mem_layout, layout });
        }
        let strides = super::layout::strides(&shape, pitch);
        let id = self.declare_shared(SharedArray { name, element, shape, strides, layout, over: None, offset: 0 });
        Val::Shared(SharedHandle::Fixed { array: id, mem_layout, prefix: SmallVec::new() })
    }

    /// Adds an array, whose lifetime begins here.
    pub(super) fn declare_shared(&mut self, array: SharedArray) -> SharedId {
        let is_padded = matches!(array.layout, SharedLayout::Padded { .. });
        let id = self.add_shared(array);
        self.shared.plan.events.push(SharedArrayEvent::Declare(id));
        self.builder.effect(Op::LifetimeStart(id));
        if is_padded {
            self.shared.plan.padded.push(id);
        }
        id
    }

    fn add_shared(&mut self, array: SharedArray) -> SharedId {
        self.builder.kernel.shared.push(array);
        SharedId(self.builder.kernel.shared.len() as u32 - 1)
    }

    /// Returns the memory layout of the elements of the array that `e` creates.
    fn shared_mem_layout(&mut self, e: &Expr) -> Option<MemLayout> {
        let hir::Type::Shared { element, .. } = self.ty(e.ty) else { return None };
        let mem_layout = self.mem_layout(*element);
        if mem_layout.is_none() {
            self.error(e.span, "shared memory can hold numbers, and arrays, tuples and structs of numbers");
        }
        mem_layout
    }

    /// Returns the extents of an array, which must be constant.
    fn shape(&mut self, e: &'h Expr, shape: &'h Expr) -> Option<SmallVec<[u32; 3]>> {
        let rank = self.hir_rank(e);
        let found: Option<SmallVec<[u32; 3]>> = match &shape.kind {
            ExprKind::Array(parts) => parts.iter().map(|p| self.constant(p).map(|n| n as u32)).collect(),
            ExprKind::Repeat(value) => self.constant(value).map(|n| (0..rank).map(|_| n as u32).collect()),
            _ => None,
        };
        if found.is_none() {
            self.error_with_help(
                shape.span,
                "the shape of a shared array must be a compile-time constant",
                "write an array of numbers and generic constants: `Shared::<f32, 2>::new([T, 32])`; for a shape known only at launch, use `Shared::dynamic`",
            );
        }
        found
    }

    /// Lowers a new array whose extents the launch evaluates.
    pub(super) fn shared_dynamic(&mut self, e: &'h Expr, shape: &'h Expr) -> Val {
        let Some(mem_layout) = self.shared_mem_layout(e) else { return Val::Unit };
        let name = self.name_hint.take().unwrap_or("shared").to_string();
        // The extents do not pass through an array in registers: the launch must see how they are
        // computed.
        let extents: SmallVec<[MaybeConst; 2]> = match &shape.kind {
            ExprKind::Array(parts) => parts.iter().map(|p| self.scalar(p)).collect(),
            ExprKind::Repeat(value) => {
                let extent = self.scalar(value);
                (0..self.hir_rank(e)).map(|_| extent).collect()
            }
            _ => self.indices(shape),
        };
        self.at(e.span);
        if extents.len() != self.hir_rank(e) as usize {
            return Val::Unit;
        }
        let array = DynamicId(self.builder.kernel.dynamic.len() as u32);
        let element = mem_layout.element();
        self.builder.kernel.dynamic.push(DynamicArray { name, element, extents: SmallVec::new() });
        let values = extents.iter().map(|k| k.value).collect();
        let base = self.builder.value(Op::Dynamic { array, extents: values }, Type::Shared);
        self.shared.dynamic_bases.push(base);
        let mut strides: SmallVec<[Option<ir::Value>; 2]> = SmallVec::from_elem(None, extents.len());
        let mut stride: Option<MaybeConst> = None;
        for d in (0..extents.len().saturating_sub(1)).rev() {
            let inner = extents[d + 1];
            let next = match stride {
                Some(stride) => self.binary(Binary::Mul, Scalar::Usize, stride, inner),
                None => inner,
            };
            strides[d] = Some(next.value);
            stride = Some(next);
        }
        Val::Shared(SharedHandle::Dynamic(ViewValue {
            base,
            extents,
            strides,
            mem_layout,
            mutable: true,
            hint: CacheHint::None,
            aligned: 1,
        }))
    }

    /// Lowers the array with its first index fixed.
    pub(super) fn shared_at(&mut self, handle: &SharedHandle, i: MaybeConst) -> Val {
        match handle {
            SharedHandle::Fixed { array, mem_layout, prefix } => {
                let prefix = prefix.iter().copied().chain([i.value]).collect();
                Val::Shared(SharedHandle::Fixed { array: *array, mem_layout: mem_layout.clone(), prefix })
            }
            SharedHandle::Dynamic(view) => match self.view_at(view, i) {
                Val::View(view) => Val::Shared(SharedHandle::Dynamic(view)),
                other => other,
            },
        }
    }

    /// Lowers an array of this shape that reuses the bytes of another, whose contents are lost.
    pub(super) fn shared_over(&mut self, e: &'h Expr, of: &Val, shape: &'h Expr) -> Val {
        let Some(mem_layout) = self.shared_mem_layout(e) else { return Val::Unit };
        let name = self.name_hint.take().unwrap_or("shared").to_string();
        let Some(own) = self.shape(e, shape) else { return Val::Unit };
        let Some((under, prefix)) = self.fixed(of, e.span) else { return Val::Unit };
        self.at(e.span);
        let outer: SmallVec<[u32; 3]> =
            self.builder.kernel.shared[under.0 as usize].shape[..prefix.len()].iter().copied().collect();
        let row = own[own.len() - 1];
        let shape: SmallVec<[u32; 3]> = outer.into_iter().chain(own).collect();
        let strides = super::layout::strides(&shape, row);
        let element = mem_layout.element();
        let array =
            SharedArray { name, element, shape, strides, layout: SharedLayout::Packed, over: Some(under), offset: 0 };
        let id = self.add_shared(array);
        self.shared.plan.aliases.push(Alias {
            array: id,
            kept: prefix.len(),
            cast: false,
            location: self.builder.location,
        });
        self.builder.effect(Op::LifetimeStart(id));
        Val::Shared(SharedHandle::Fixed { array: id, mem_layout, prefix })
    }

    /// Lowers a cast: the same bytes as elements of another type. The last extent changes
    /// accordingly.
    pub(super) fn shared_cast(&mut self, e: &'h Expr, of: &Val) -> Val {
        let Some(mem_layout) = self.shared_mem_layout(e) else { return Val::Unit };
        if let Val::Shared(SharedHandle::Dynamic(view)) = of {
            return self.dynamic_cast(e.span, view, mem_layout);
        }
        let Some((under, prefix)) = self.fixed(of, e.span) else { return Val::Unit };
        let of = self.builder.kernel.shared[under.0 as usize].clone();
        let (from, to) = (of.element.bytes(), mem_layout.bytes());
        let mut shape = of.shape;
        let last = shape.len() - 1;
        let bytes = shape[last].saturating_mul(from);
        if !bytes.is_multiple_of(to) {
            let message =
                format!("cannot cast `{}`: a row has {bytes} bytes, not a multiple of the element size {to}", of.name);
            self.error(e.span, message);
            return Val::Unit;
        }
        shape[last] = bytes / to;
        let array = SharedArray { element: mem_layout.element(), shape, over: Some(under), ..of };
        let id = self.add_shared(array);
        let kept = last;
        self.shared.plan.aliases.push(Alias { array: id, kept, cast: true, location: self.builder.location });
        Val::Shared(SharedHandle::Fixed { array: id, mem_layout, prefix })
    }

    fn dynamic_cast(&mut self, span: Span, view: &ViewValue, mem_layout: MemLayout) -> Val {
        let (from, to) = (view.mem_layout.bytes(), mem_layout.bytes());
        // A view with a moved origin may begin between two elements of the new type.
        let whole = view.extents.len() == 1 && self.shared.dynamic_bases.contains(&view.base);
        if !from.is_multiple_of(to) && !whole {
            let message = format!(
                "cannot cast from elements of {from} bytes to elements of {to}: a row may not be a multiple of the new size"
            );
            self.error_with_help(
                span,
                message,
                "cast an array of rank 1, or cast to elements whose size divides the old one",
            );
            return Val::Unit;
        }
        let (from, to) = (self.index(from), self.index(to));
        let mut scaled = |k: MaybeConst| {
            let bytes = self.binary(Binary::Mul, Scalar::Usize, k, from);
            self.binary(Binary::Div, Scalar::Usize, bytes, to)
        };
        let mut view = ViewValue { mem_layout, aligned: 1, ..view.clone() };
        if let Some(last) = view.extents.last_mut() {
            *last = scaled(*last);
        }
        for stride in view.strides.iter_mut().flatten() {
            *stride = scaled(MaybeConst::unknown(*stride)).value;
        }
        Val::Shared(SharedHandle::Dynamic(view))
    }

    /// Returns the array of fixed size that a value names, and its first indices.
    fn fixed(&mut self, of: &Val, span: Span) -> Option<(SharedId, SmallVec<[ir::Value; 3]>)> {
        match of {
            Val::Shared(SharedHandle::Fixed { array, prefix, .. }) => {
                self.shared.switched.fix(*array);
                Some((*array, prefix.clone()))
            }
            Val::Shared(SharedHandle::Dynamic(_)) => {
                self.error_with_help(
                    span,
                    "an array of dynamic size cannot be reused: its size is known only at launch",
                    "make the array large enough for both uses and view its bytes with `cast`; or give it a constant shape",
                );
                None
            }
            _ => None,
        }
    }
}
