//! Copies past the registers, on the targets that have them (`cp.async`).

use super::Lowerer;
use super::value::{Handle, Known, Place, Val, View};
use crate::Scalar;
use crate::hir::Expr;
use crate::ir::{AsyncCopy, Binary, Op, WIDEST};
use crate::target::Target;

/// Bytes that one such copy moves at least.
const LEAST: u32 = 4;

impl<'h> Lowerer<'h> {
    /// Whether copies of the view's elements can go past the registers: the target has it, and their bytes come in fours at least.
    pub(super) fn past_registers(&self, to: &Handle, from: &View) -> bool {
        self.builder.kernel.target >= Target::SM_80 && self.chunk(to, from) >= LEAST
    }

    /// Bytes that a copy moves at once.
    fn chunk(&self, to: &Handle, from: &View) -> u32 {
        match from.cell.scalar() {
            Some(Scalar::Bool) => 1,
            Some(scalar) => scalar.bytes() * self.at_once_of(to, from),
            None => from.cell.element().align().min(WIDEST),
        }
    }

    /// The whole block begins to copy, each thread its pieces; they are of the group that is open.
    pub(super) fn begin_copies(&mut self, to: &Handle, from: &View) {
        let n = self.at_once_of(to, from);
        let chunk = self.chunk(to, from);
        self.shared_out(to, n, &mut |l, indices| {
            let inside = l.inside(&from.extents, indices);
            match from.cell.scalar() {
                Some(scalar) => {
                    let bytes = l.bytes_there(from, indices, n, scalar);
                    l.begin_copy(to, from, indices, (scalar, n, 0), (inside, bytes));
                }
                None => {
                    for at in (0..from.cell.bytes()).step_by(chunk as usize) {
                        l.begin_copy(to, from, indices, (Scalar::U32, chunk / 4, at), (inside, None));
                    }
                }
            }
        });
    }

    /// Bytes of a piece of `n` numbers that lie inside the view; `None` where none or all do.
    fn bytes_there(&mut self, from: &View, indices: &[Known], n: u32, scalar: Scalar) -> Option<Known> {
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
        to: &Handle,
        from: &View,
        indices: &[Known],
        (element, count, at): (Scalar, u32, u32),
        (inside, bytes): (Known, Option<Known>),
    ) {
        let (Place::Memory { place: to, .. }, Place::Memory { place: from, .. }) =
            (to.place(indices), self.view_place(from, indices))
        else {
            return;
        };
        let (to, from) = (self.further(&to, at, element), self.further(&from, at, element));
        let (inside, bytes) = (Some(inside.value), bytes.map(|k| k.value));
        let copy = AsyncCopy { to, from, element, count, guard: None, inside, bytes };
        self.builder.effect(Op::CopyAsync(Box::new(copy)));
    }

    /// Closes the open group; its number.
    pub(super) fn close_group(&mut self) -> Known {
        Known { value: self.builder.scalar(Op::CopyCommit, Scalar::Usize), bits: None }
    }

    /// Lowers `to.cp_async(from)`: a copy of the group that the next commit closes.
    pub(super) fn pipeline_copy(&mut self, e: &Expr, to: &Val, from: &Val) {
        let (Val::Shared(to), Val::View(from)) = (to, from) else { return };
        if self.builder.kernel.target < Target::SM_80 {
            return;
        }
        if !self.past_registers(to, from) {
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
