//! The indices of a thread, lane and warp within the block, and their counts.

use super::cooperation::LANES;
use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use crate::Scalar;
use crate::ir::{Binary, Op, Special};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    pub(super) fn special(&mut self, special: Special) -> MaybeConst {
        MaybeConst::unknown(self.builder.scalar(Op::Special(special), Scalar::Usize))
    }

    /// Lowers the thread index along an axis; 0 along an axis that the block does not have.
    pub(super) fn thread(&mut self, axis: u8) -> MaybeConst {
        match self.builder.kernel.block.extent(axis) {
            Some(1) => self.index(0),
            _ => self.special(Special::Thread(axis)),
        }
    }

    /// Lowers x + dim_x · (y + dim_y · z), without the axes that the block does not have.
    pub(super) fn thread_index(&mut self) -> MaybeConst {
        // If the launch chooses the first extent, all other extents are 1.
        let Some(x) = self.builder.kernel.block.extent(0) else { return self.thread(0) };
        let outer = self.outer_index();
        let inner = self.thread(0);
        match (x, outer.bits) {
            (1, _) => outer,
            (_, Some(0)) => inner,
            _ => {
                let dim = self.index(x);
                let rows = self.binary(Binary::Mul, Scalar::Usize, outer, dim);
                self.binary(Binary::Add, Scalar::Usize, rows, inner)
            }
        }
    }

    /// Lowers y + dim_y · z.
    pub(super) fn outer_index(&mut self) -> MaybeConst {
        let block = self.builder.kernel.block;
        let inner = self.thread(1);
        let Some(y) = block.extent(1) else { return inner };
        if block.extent(2) == Some(1) {
            return inner;
        }
        let plane = self.thread(2);
        if y == 1 {
            return plane;
        }
        let dim = self.index(y);
        let planes = self.binary(Binary::Mul, Scalar::Usize, plane, dim);
        self.binary(Binary::Add, Scalar::Usize, planes, inner)
    }

    /// Lowers the number of threads of a block along an axis.
    pub(super) fn block_dim(&mut self, axis: u8) -> MaybeConst {
        match self.builder.kernel.block.extent(axis) {
            Some(n) => self.index(n),
            None => {
                let dim = self.special(Special::BlockDim(axis));
                let divisor = self.builder.kernel.block.divisor(axis);
                self.divides(dim.value, divisor);
                dim
            }
        }
    }

    /// Lowers the number of threads of a block.
    pub(super) fn block_threads(&mut self) -> MaybeConst {
        let block = self.builder.kernel.block;
        let Some(open) = block.open() else { return self.index(block.most_threads()) };
        let extent = self.block_dim(open.axis as u8);
        match block.max_extents()[..open.axis].iter().product() {
            1 => extent,
            inner => {
                let inner = self.index(inner);
                self.binary(Binary::Mul, Scalar::Usize, extent, inner)
            }
        }
    }

    /// Returns the largest number of warps of the block, which consists of whole warps.
    pub(super) fn most_warps(&self) -> u32 {
        self.builder.kernel.block.most_threads() / LANES
    }

    /// Lowers the number of warps of the block, which consists of whole warps.
    pub(super) fn warp_count(&mut self) -> MaybeConst {
        if let Some(threads) = self.builder.kernel.block.threads() {
            return self.index(threads / LANES);
        }
        let (threads, lanes) = (self.block_threads(), self.index(LANES));
        self.binary(Binary::Div, Scalar::Usize, threads, lanes)
    }

    pub(super) fn whole_warps(&mut self, span: Span) {
        let block = self.builder.kernel.block;
        if block.has_whole_warps() {
            return;
        }
        let (message, help) = match block.threads() {
            Some(threads) => (
                format!("this operation needs whole warps of 32 threads; the block has {threads} threads"),
                "make the block size a multiple of 32",
            ),
            None => (
                format!(
                    "this operation needs whole warps of 32 threads; a block of {} to {} threads may not be a multiple of 32",
                    block.least_threads(),
                    block.most_threads()
                ),
                "allow only whole warps, `32..=1024` or `(64..=1024).step_by(64)`; round up, `n.next_multiple_of(32).min(1024)`; or add `#[requires(block::threads() % 32 == 0)]`",
            ),
        };
        // Reported once, however many operations need warps.
        if self.errors.iter().all(|e| e.message != message) {
            self.error_with_help(span, message, help);
        }
    }

    pub(super) fn lane(&mut self, span: Span) -> MaybeConst {
        self.whole_warps(span);
        if self.builder.kernel.block.extent(0) == Some(LANES) {
            return self.thread(0);
        }
        let index = self.thread_index();
        let lanes = self.index(LANES);
        self.binary(Binary::Rem, Scalar::Usize, index, lanes)
    }

    pub(super) fn warp(&mut self, span: Span) -> MaybeConst {
        self.whole_warps(span);
        if self.builder.kernel.block.extent(0) == Some(LANES) {
            return self.outer_index();
        }
        let index = self.thread_index();
        let lanes = self.index(LANES);
        self.binary(Binary::Div, Scalar::Usize, index, lanes)
    }
}
