//! Views with a moved origin.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{Val, ViewValue};
use crate::Scalar;
use crate::ir::{Comparison, Op};
use smallvec::SmallVec;

impl<'h> Lowerer<'h> {
    /// Lowers a view with its origin moved by `indices`; past the end the view is empty.
    pub(super) fn offset(&mut self, view: &ViewValue, at: &[Val]) -> Val {
        let at: SmallVec<[MaybeConst; 2]> = at
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
        let ty = self.builder.kernel.ty(view.base);
        let base = self.builder.value(Op::Offset { base: view.base, terms, bytes: view.mem_layout.bytes() }, ty);
        let extents =
            view.extents.iter().zip(&at).map(|(extent, k)| self.saturating_sub(Scalar::Usize, *extent, *k)).collect();
        let moved = at.last().map_or(1, |last| self.divisor(*last));
        Val::View(ViewValue { base, extents, aligned: super::wide::gcd(view.aligned, moved), ..view.clone() })
    }

    /// Lowers a view, or an array of dynamic size, with its first index fixed; past the end the
    /// view is empty.
    pub(super) fn view_at(&mut self, view: &ViewValue, i: MaybeConst) -> Val {
        let terms = [(i.value, view.strides[0])].into_iter().collect();
        let ty = self.builder.kernel.ty(view.base);
        let base = self.builder.value(Op::Offset { base: view.base, terms, bytes: view.mem_layout.bytes() }, ty);
        let inside = self.compare(Comparison::Lt, Scalar::Usize, i, view.extents[0]).value;
        let none = self.index(0).value;
        let mut within = |extent: &MaybeConst| {
            let op = Op::Select { condition: inside, yes: extent.value, no: none };
            let value = self.builder.scalar(op, Scalar::Usize);
            let divisor = self.divisor(*extent);
            self.divides(value, divisor);
            MaybeConst::unknown(value)
        };
        let extents = view.extents[1..].iter().map(&mut within).collect();
        // With several dimensions, the first stride keeps the alignment. A slice moves by one
        // element.
        let aligned = if view.strides.len() > 1 { view.aligned } else { 1 };
        Val::View(ViewValue {
            base,
            extents,
            strides: view.strides[1..].iter().copied().collect(),
            aligned,
            ..view.clone()
        })
    }
}
