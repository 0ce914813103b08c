//! Copies that bypass registers, on targets with `cp.async`.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{LoweredPlace, SharedHandle, Val, ViewValue};
use crate::Scalar;
use crate::hir::Expr;
use crate::ir::{AsyncCopy, Binary, MAX_VECTOR_BYTES, Op};
use crate::target::Target;

/// The smallest number of bytes of one `cp.async`.
const MIN_COPY_BYTES: u32 = 4;

impl<'h> Lowerer<'h> {
    /// Returns whether a copy of the view's elements can bypass registers: the target has
    /// `cp.async`, and one access has at least 4 bytes.
    pub(super) fn bypasses_registers(&self, to: &SharedHandle, from: &ViewValue) -> bool {
        self.builder.kernel.target >= Target::SM_80 && self.chunk(to, from) >= MIN_COPY_BYTES
    }

    /// Returns the number of bytes of one access of a copy.
    fn chunk(&self, to: &SharedHandle, from: &ViewValue) -> u32 {
        match from.mem_layout.scalar() {
            Some(Scalar::Bool) => 1,
            Some(scalar) => scalar.bytes() * self.elements_per_access(to, from),
            None => from.mem_layout.element().align().min(MAX_VECTOR_BYTES),
        }
    }

    /// Issues a copy by the block in the open group. Each thread copies its own packs.
    pub(super) fn begin_copies(&mut self, to: &SharedHandle, from: &ViewValue) {
        let n = self.elements_per_access(to, from);
        let chunk = self.chunk(to, from);
        self.distribute(to, n, &mut |l, indices| {
            let inside = l.bounds_test(&from.extents, indices);
            match from.mem_layout.scalar() {
                Some(scalar) => {
                    let bytes = l.bytes_there(from, indices, n, scalar);
                    l.begin_copy(to, from, indices, (scalar, n, 0), (inside, bytes));
                }
                None => {
                    for at in (0..from.mem_layout.bytes()).step_by(chunk as usize) {
                        l.begin_copy(to, from, indices, (Scalar::U32, chunk / 4, at), (inside, None));
                    }
                }
            }
        });
    }

    /// Lowers the number of bytes of a pack of `n` numbers that are inside the view; `None` if a
    /// pack is always entirely inside or outside.
    fn bytes_there(&mut self, from: &ViewValue, indices: &[MaybeConst], n: u32, scalar: Scalar) -> Option<MaybeConst> {
        if n == 1 || self.ends_with_rows(from, n) {
            return None;
        }
        let (last, extent) = (*indices.last()?, *from.extents.last()?);
        let left = self.saturating_sub(Scalar::Usize, extent, last);
        let (most, size) = (self.index(n), self.index(scalar.bytes()));
        let there = self.binary(Binary::Min, Scalar::Usize, left, most);
        Some(self.binary(Binary::Mul, Scalar::Usize, there, size))
    }

    fn begin_copy(
        &mut self,
        to: &SharedHandle,
        from: &ViewValue,
        indices: &[MaybeConst],
        (element, count, at): (Scalar, u32, u32),
        (inside, bytes): (MaybeConst, Option<MaybeConst>),
    ) {
        let (LoweredPlace::Memory { place: to, .. }, LoweredPlace::Memory { place: from, .. }) =
            (to.place(indices), self.view_place(from, indices))
        else {
            return;
        };
        let (to, from) = (self.place_after(&to, at, element), self.place_after(&from, at, element));
        let (inside, bytes) = (Some(inside.value), bytes.map(|k| k.value));
        let copy = AsyncCopy { to, from, element, count, guard: None, inside, bytes };
        self.builder.effect(Op::CopyAsync(Box::new(copy)));
    }

    /// Closes the open group. Returns its number.
    pub(super) fn close_group(&mut self) -> MaybeConst {
        MaybeConst::unknown(self.builder.scalar(Op::CopyCommit, Scalar::Usize))
    }

    /// Lowers `to.cp_async(from)`: a copy of the group that the next commit closes.
    pub(super) fn pipeline_copy(&mut self, e: &Expr, to: &Val, from: &Val) {
        let (Val::Shared(to), Val::View(from)) = (to, from) else { return };
        if self.builder.kernel.target < Target::SM_80 {
            return;
        }
        if !self.bypasses_registers(to, from) {
            self.error_with_help(
                e.span,
                "`cp_async` copies 4, 8 or 16 bytes at a time; these elements are not known to be aligned to that",
                "declare the alignment with `#[requires(x.aligned(n))]` and use rows of whole pieces without a pad; or use `copy_async`, which falls back to registers",
            );
            return;
        }
        self.begin_copies(to, from);
    }
}
