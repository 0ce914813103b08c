//! Accesses by method: several elements at once, masked at the edge, and atomic.

use super::Lowerer;
use super::value::{Known, Place, Val, View};
use crate::Scalar;
use crate::hir::{self, Expr, Intrinsic};
use crate::ir::{self, Binary, Comparison, Dim, Guard, Layout, Op, Type, Values, WIDEST};
use crate::source::Span;
use smallvec::SmallVec;

/// Elements of an access at most.
const MOST: u32 = 16;

impl<'h> Lowerer<'h> {
    /// `x.load(at)` and its kin: the receiver, the indices, and what else there is.
    pub(super) fn access(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let [of, at, rest @ ..] = arguments else { return Val::Unit };
        let base = self.expr(of);
        let indices = self.indices(at);
        let values: SmallVec<[Val; 2]> = rest.iter().map(|a| self.expr(a)).collect();
        self.at(e.span);
        let Some(Place::Memory { place, element, policy }) = self.memory_place(&base, &indices) else {
            return Val::Unit;
        };
        match (intrinsic, base, values.as_slice()) {
            (Intrinsic::Load, base, []) => {
                let Some(n) = self.elements(e.ty, e.span) else { return Val::Unit };
                self.rows_are_aligned(&base, n, e.span);
                let op = Op::Load { place, element, policy, guard: None };
                let loaded = self.builder.emit(op, (0..n).map(|_| Type::Scalar(element)));
                self.array(e, &loaded)
            }
            (Intrinsic::Store, base, [Val::Array(_)]) => {
                let Some(n) = self.elements(rest[0].ty, e.span) else { return Val::Unit };
                self.rows_are_aligned(&base, n, e.span);
                let values = self.taken_apart(&rest[0], &values[0]);
                self.builder.effect(Op::Store { place, element, values, guard: None });
                Val::Unit
            }
            (Intrinsic::LoadOr, Val::View(view), [Val::Scalar(other)]) => {
                let Some(n) = self.elements(e.ty, e.span) else { return Val::Unit };
                let loaded = self.load_or(&view, &indices, n, *other);
                self.array(e, &loaded)
            }
            (Intrinsic::StoreIn, Val::View(view), [Val::Array(_)]) => {
                if self.elements(rest[0].ty, e.span).is_some() {
                    let values = self.taken_apart(&rest[0], &values[0]);
                    self.store_in(&view, &indices, &values);
                }
                Val::Unit
            }
            (Intrinsic::Atomic(operation), _, values) => {
                let values: Values = values.iter().filter_map(Val::scalar).map(|k| k.value).collect();
                if values.len() != operation.operands() {
                    return Val::Unit;
                }
                let op = Op::Atomic { operation, place, element, values };
                Val::Scalar(Known { value: self.builder.scalar(op, element), bits: None })
            }
            // An argument whose control went elsewhere, or had an error.
            _ => Val::Unit,
        }
    }

    /// The length of the array type `ty`, if so many elements can be accessed at once.
    fn elements(&mut self, ty: hir::TypeId, span: Span) -> Option<u32> {
        let hir::Type::Array(_, size) = self.ty(ty) else { return None };
        let n = self.size(*size);
        if n.is_power_of_two() && n <= MOST {
            return Some(n);
        }
        self.error_with_help(
            span,
            format!("an access takes 1, 2, 4, 8 or 16 elements at once, not {n}"),
            "make it several accesses, or access elements one by one by their index",
        );
        None
    }

    /// Says so where the rows of a shared array lie such that an access of `n` elements cannot be aligned in all of them.
    fn rows_are_aligned(&mut self, base: &Val, n: u32, span: Span) {
        let Val::Shared(handle) = base else { return };
        let array = &self.builder.kernel.shared[handle.array.0 as usize];
        let at_once = n.min(WIDEST / array.element.bytes());
        let [.., pitch, _] = array.strides[..] else { return };
        // A pad is chosen to suit the accesses.
        if matches!(array.layout, Layout::Padded { .. }) || pitch % at_once == 0 {
            return;
        }
        let message = format!(
            "the rows of `{}` start {pitch} elements apart, so {at_once} elements at once cannot be aligned in all of them",
            array.name
        );
        self.error_with_help(
            span,
            message,
            format!("make rows a multiple of {at_once} elements, or let `Shared::padded` choose the pitch"),
        );
    }

    /// An array of these elements, of the type of `e`.
    fn array(&mut self, e: &Expr, elements: &[ir::Value]) -> Val {
        let array = self.storage(e.ty, self.name_hint.unwrap_or("loaded"));
        for (i, value) in elements.iter().enumerate() {
            let i = self.index(i as u32);
            let element = self.element(&array, i);
            self.write_storage(&element, Val::Scalar(Known { value: *value, bits: None }));
        }
        Val::Array(array)
    }

    /// The elements of `array`, which is the value of `e`.
    fn taken_apart(&mut self, e: &Expr, array: &Val) -> Values {
        let (Val::Array(storage), hir::Type::Array(element, size)) = (array, self.ty(e.ty)) else {
            return Values::new();
        };
        let elements = (0..self.size(*size)).filter_map(|i| {
            let i = self.index(i);
            let place = self.element(storage, i);
            self.peek_storage(&place, *element).scalar().map(|k| k.value)
        });
        elements.collect()
    }

    /// Whether an element is there at all.
    fn inside(&mut self, view: &View, indices: &[Known]) -> Known {
        let mut all = None;
        for (index, extent) in indices.iter().zip(&view.extents) {
            let below = self.compare(Comparison::Lt, Scalar::Usize, *index, *extent);
            all = Some(match all {
                None => below,
                Some(all) => self.binary(Binary::And, Scalar::Bool, all, below),
            });
        }
        all.expect("a view has a dimension")
    }

    /// Elements that are inside, and `other` for those that are not. Where the first is outside, all are; otherwise they
    /// are counted from the first, so that no index overflows.
    fn load_or(&mut self, view: &View, indices: &[Known], n: u32, other: Known) -> Values {
        let (element, policy) = (view.element, view.policy());
        let inside = self.inside(view, indices);
        let load = |lowerer: &mut Self, place, condition: Option<Known>| {
            let guard = condition.map(|c| Guard { condition: c.value, otherwise: [other.value].into_iter().collect() });
            lowerer.builder.scalar(Op::Load { place, element, policy, guard }, element)
        };
        if n == 1 {
            let Place::Memory { place, .. } = self.view_place(view, indices) else { return Values::new() };
            return [load(self, place, Some(inside))].into_iter().collect();
        }
        self.builder.enter([]);
        let loaded =
            self.counted_from(view, indices, n, |lowerer, _, place, condition| load(lowerer, place, condition));
        self.builder.effect(Op::Yield(loaded.into_iter().collect()));
        let then = self.builder.leave();
        self.builder.enter([]);
        self.builder.effect(Op::Yield((0..n).map(|_| other.value).collect()));
        let otherwise = self.builder.leave();
        let types = (0..n).map(|_| Type::Scalar(element));
        self.builder.emit(Op::If { condition: inside.value, then, otherwise }, types)
    }

    /// Stores the values whose elements are inside.
    fn store_in(&mut self, view: &View, indices: &[Known], values: &[ir::Value]) {
        let element = view.element;
        let inside = self.inside(view, indices);
        let store = |lowerer: &mut Self, place, value: ir::Value, condition: Option<Known>| {
            let (values, guard) = ([value].into_iter().collect(), condition.map(|c| c.value));
            lowerer.builder.effect(Op::Store { place, element, values, guard });
        };
        if let [value] = values {
            let Place::Memory { place, .. } = self.view_place(view, indices) else { return };
            return store(self, place, *value, Some(inside));
        }
        self.builder.enter([]);
        self.counted_from(view, indices, values.len() as u32, |lowerer, i, place, condition| {
            store(lowerer, place, values[i as usize], condition);
        });
        let then = self.builder.leave();
        self.builder.enter([]);
        let otherwise = self.builder.leave();
        self.builder.effect(Op::If { condition: inside.value, then, otherwise });
    }

    /// Accesses `n` elements from `indices` on, an element that is there: with the place of each and, but for the first,
    /// whether it is there.
    fn counted_from<R>(
        &mut self,
        view: &View,
        indices: &[Known],
        n: u32,
        mut access: impl FnMut(&mut Self, u32, ir::Place, Option<Known>) -> R,
    ) -> Vec<R> {
        let terms = indices.iter().zip(&view.strides).map(|(k, stride)| (k.value, *stride)).collect();
        let base = self.builder.value(Op::Offset { base: view.base, terms, bytes: view.element.bytes() }, Type::Global);
        let (index, extent) = (indices[indices.len() - 1], view.extents[view.extents.len() - 1]);
        let left = self.binary(Binary::Sub, Scalar::Usize, extent, index);
        let mut all = Vec::with_capacity(n as usize);
        for i in 0..n {
            let k = self.index(i);
            let there = (i > 0).then(|| self.compare(Comparison::Lt, Scalar::Usize, k, left));
            let dim = Dim { index: k.value, extent: left.value, stride: None };
            all.push(access(
                self,
                i,
                ir::Place::Global { base, dims: [dim].into_iter().collect(), within: None },
                there,
            ));
        }
        all
    }

    /// The element of a slice, view or shared array at `indices`.
    pub(super) fn memory_place(&self, base: &Val, indices: &[Known]) -> Option<Place> {
        match base {
            Val::View(view) => Some(self.view_place(view, indices)),
            Val::Shared(handle) => {
                let element = handle.element;
                let indices = handle.prefix.iter().copied().chain(indices.iter().map(|k| k.value)).collect();
                let place = ir::Place::Shared { array: handle.array, indices, within: None };
                Some(Place::Memory { place, element, policy: ir::Policy::Coherent })
            }
            _ => None,
        }
    }
}
