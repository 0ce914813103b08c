//! `block::share(shape)`: the elements of a row-major array, distributed over the threads of a
//! block. Thread t has the elements t, t + threads, t + 2 · threads, ….
//!
//! The checker turns a `for` over a share into a counted loop. The loop counts to the largest
//! number of elements that a thread has. An `if` around the body skips the iterations for which the
//! thread has no element.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::Val;
use crate::Scalar;
use crate::hir::{self, Expr, Intrinsic};
use crate::ir::{Binary, Comparison};

impl<'h> Lowerer<'h> {
    pub(super) fn share(&mut self, e: &'h Expr, intrinsic: Intrinsic, arguments: &'h [Expr]) -> Val {
        let Some(shape) = arguments.first().map(|shape| self.indices(shape)) else { return Val::Unit };
        let number = arguments.get(1).map(|number| self.scalar(number));
        self.at(e.span);
        let Some(elements) = self.product(&shape) else { return Val::Unit };
        let threads = self.block_threads();
        match (intrinsic, number) {
            (Intrinsic::ShareCount, _) => Val::Scalar(self.div_ceil(Scalar::Usize, elements, threads)),
            (Intrinsic::ShareHas, Some(number)) => {
                let zero = self.index(0);
                let rest = self.binary(Binary::Rem, Scalar::Usize, elements, threads);
                let even = self.compare(Comparison::Eq, Scalar::Usize, rest, zero);
                if even.bits == Some(1) {
                    return Val::Scalar(even);
                }
                let element = self.element_of_share(number);
                let inside = self.compare(Comparison::Lt, Scalar::Usize, element, elements);
                Val::Scalar(self.binary(Binary::Or, Scalar::Bool, even, inside))
            }
            (Intrinsic::ShareAt, Some(number)) => {
                let element = self.element_of_share(number);
                let at = self.row_major(element, shape.len(), |_, d| shape[d]);
                let hir::Type::Array(..) = self.ty(e.ty) else { return Val::Unit };
                let array = self.storage(e.ty, "share");
                for (i, index) in at.into_iter().enumerate() {
                    let i = self.index(i as u32);
                    let place = self.element(&array, i);
                    self.write_storage(&place, Val::Scalar(index));
                }
                Val::Array(array)
            }
            _ => Val::Unit,
        }
    }

    /// Lowers element number `number` of a thread.
    fn element_of_share(&mut self, number: MaybeConst) -> MaybeConst {
        let threads = self.block_threads();
        let first = self.thread_index();
        let skipped = self.binary(Binary::Mul, Scalar::Usize, number, threads);
        self.binary(Binary::Add, Scalar::Usize, skipped, first)
    }

    fn product(&mut self, shape: &[MaybeConst]) -> Option<MaybeConst> {
        let (first, rest) = shape.split_first()?;
        Some(rest.iter().fold(*first, |all, n| self.binary(Binary::Mul, Scalar::Usize, all, *n)))
    }
}
