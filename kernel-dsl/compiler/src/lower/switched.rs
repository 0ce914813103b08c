//! Shared arrays among which a kernel chooses at run time: variables that are assigned, such as two
//! that `swap` exchanges, and arrays of handles.
//!
//! Arrays of one type and shape that are created in the same braces become the rows of one array
//! with a further dimension. A handle is that array with its first index fixed, so that a choice
//! is a number. The oracle and the checked form check this index as they check every index.

use super::lowerer::Lowerer;
use super::lowerer::shared_arrays::SwitchedMember;
use super::lowerer::value::{SharedHandle, Val};
use crate::hir::{self, Expr, ExprKind, TypeId};
use crate::ir::{SharedArray, SharedId};
use smallvec::SmallVec;

impl<'h> Lowerer<'h> {
    /// Returns whether arrays of type `ty` can be chosen at run time.
    pub(super) fn switches(&self, ty: TypeId) -> bool {
        self.shared.switched.types.iter().any(|switched| self.ty(*switched) == self.ty(ty))
    }

    /// Returns whether `ty` is an array of handles.
    pub(super) fn is_shared_array(&self, ty: TypeId) -> bool {
        matches!(self.ty(ty), hir::Type::Array(element, _) if matches!(self.ty(*element), hir::Type::Shared { .. }))
    }

    /// Lowers a new shared array that becomes a row of an array: of one with the same shape from
    /// the same braces, or of a new one.
    pub(super) fn switched(&mut self, member: SwitchedMember) -> Val {
        let SwitchedMember { name, shape, pitch, mem_layout, layout } = member;
        let shape: SmallVec<[u32; 3]> = std::iter::once(1).chain(shape).collect();
        let strides = super::layout::strides(&shape, pitch);
        let (element, braces) = (mem_layout.element(), self.shared.plan.innermost());
        let arrays = &mut self.builder.kernel.shared;
        let is_like = |array: &SharedArray| {
            array.shape[1..] == shape[1..]
                && (&array.strides, &array.element, &array.layout) == (&strides, &element, &layout)
        };
        let mut open = self.shared.switched.open.iter();
        let found = open.find(|(id, within)| *within == braces && is_like(&arrays[id.0 as usize]));
        let (array, row) = match found {
            Some((id, _)) => {
                let array = &mut arrays[id.0 as usize];
                array.shape[0] += 1;
                if array.name != name {
                    array.name += "_";
                    array.name += &name;
                }
                (*id, array.shape[0] - 1)
            }
            None => {
                let array = SharedArray { name, element, shape, strides, layout, over: None, offset: 0 };
                let id = self.declare_shared(array);
                self.shared.switched.open.push((id, braces));
                (id, 0)
            }
        };
        let at = self.index(row).value;
        self.shared.switched.rows.insert(at, row);
        Val::Shared(SharedHandle::Fixed { array, mem_layout, prefix: [at].into_iter().collect() })
    }

    /// Lowers an array of handles: the array with these rows.
    pub(super) fn shared_arrays(&mut self, e: &'h Expr, parts: &'h [Expr]) -> Val {
        let mistakes = self.errors.len();
        // Arrays that are created here are rows of a separate array.
        let creates = parts.iter().all(|part| matches!(part.kind, ExprKind::Intrinsic { .. }));
        let others = if creates { std::mem::take(&mut self.shared.switched.open) } else { Vec::new() };
        let name = self.name_hint;
        let mut handles = Vec::new();
        for part in parts {
            self.name_hint = name;
            handles.push(self.expr(part));
        }
        self.name_hint = None;
        self.shared.switched.open.extend(others);
        if self.errors.len() > mistakes || self.builder.ended() {
            return Val::Unit;
        }
        let row = |handle: &Val| match handle {
            Val::Shared(SharedHandle::Fixed { array, prefix, .. }) if prefix.len() == 1 => {
                Some((*array, *self.shared.switched.rows.get(&prefix[0])?))
            }
            _ => None,
        };
        let rows: Option<Vec<_>> = handles.iter().map(row).collect();
        let array = rows.and_then(|rows| {
            let (array, _) = *rows.first()?;
            let in_order = rows.iter().enumerate().all(|(i, row)| *row == (array, i as u32));
            let all = self.builder.kernel.shared[array.0 as usize].shape[0] as usize == rows.len();
            (in_order && all).then_some(array)
        });
        match (array, handles.first()) {
            (Some(array), Some(Val::Shared(handle))) => {
                self.shared.switched.fix(array);
                let mem_layout = handle.mem_layout().clone();
                Val::Shared(SharedHandle::Fixed { array, mem_layout, prefix: SmallVec::new() })
            }
            _ => {
                self.error_with_help(
                    e.span,
                    "an array of shared arrays must name all arrays of one type and shape of its braces, in the order of their creation",
                    "create them in the array, `[Shared::<f32, 1>::new([N]), Shared::new([N])]`; or index `Shared::new([2, N])` by `.at(i)`",
                );
                Val::Unit
            }
        }
    }

    /// Reports a handle that a variable cannot name.
    pub(super) fn cannot_switch(&mut self, array: SharedId) {
        let span = self.builder.kernel.locations[self.builder.location.0 as usize].span;
        let name = self.builder.kernel.shared[array.0 as usize].name.clone();
        self.error_with_help(
            span,
            format!("a variable that names a part of `{name}` cannot name another shared array"),
            "exchange only arrays of one shape, created in the same braces, or parts of one array: `tiles.at(i)`",
        );
    }
}
