//! Schedules as tables on a device. Each is computed once.

use super::schedule::{Work, WorkSchedule};
use super::simulation::{BlockCost, BlockSlots};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::lock::Lock;
use runtime::{Device, DeviceBuffer, Error};
use std::collections::VecDeque;
use std::sync::Arc;

/// The number of columns of the table.
pub(super) const TABLE_COLUMNS: usize = 8;
/// The maximum number of bytes of cached tables.
const MAX_TABLE_BYTES: usize = 16 << 20;
/// The number of key tiles that the table gives for a list's last part, or for an uncut list: more
/// than any list has. The kernel stops at the end of each sequence, which the host does not know.
const ALL_TILES: usize = 1 << 30;

/// The template parameters of a kernel that decide its cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AttentionTile {
    /// Queries of a block.
    pub height: usize,
    /// Elements of a value that a block computes.
    pub width: usize,
    /// Tiles of keys of a step.
    pub step: usize,
    pub threads: usize,
}

impl AttentionTile {
    /// Returns the numbers that the kernel is compiled with: `WIDTH`, `THREADS`, `ROW_GROUPS`, and
    /// what the kernel derives from them.
    pub fn constants(self) -> [Constant; 7] {
        let AttentionTile { height, width, step, threads } = self;
        let (pieces, loads) = (width / (32 * step), (2 * width).div_ceil(threads));
        [width, threads, step, height, pieces, loads, 512 / threads].map(|n| Constant::Usize(n as u32))
    }

    /// Returns the device's capacity for such blocks. A multiprocessor has registers for 512
    /// threads, or for 384 threads of kernels with steps of two tiles. The costs were measured on
    /// an H200. A part costs relatively more if a step has one tile of keys: the block stores the
    /// same partial results for half the work or less.
    pub const fn block_slots(self, multiprocessors: usize) -> BlockSlots {
        let pace: &[f64] = match if self.step == 2 { 384 } else { 512 } / self.threads {
            ..=2 => &[0.7, 1.0],
            3 => &[0.475, 0.949, 1.0],
            _ => &[0.45, 0.65, 0.85, 1.0],
        };
        let cost = match self.step {
            2 => BlockCost { step: 2, partial_step: 0.8, begin: 0.03, part: 0.33 },
            step => BlockCost { step, partial_step: 0.0, begin: 0.06, part: 1.4 },
        };
        BlockSlots { multiprocessors, pace, age_preference: if self.step == 2 { 0.1 } else { 0.0 }, cost }
    }
}

/// The inputs that determine the lengths of the lists of key tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ListInputs {
    /// A band of each sequence.
    Band {
        /// The number of queries of the longest sequence.
        longest: usize,
        keys: usize,
        left: usize,
        right: usize,
    },
    /// The lists of a mask.
    Listed,
}

/// The key of a cached plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlanKey {
    pub tile: AttentionTile,
    pub heads: usize,
    /// The number of repetitions of all heads' lists: one for each sequence and each piece of a
    /// value.
    pub list_repeats: usize,
    pub seen: ListInputs,
}

/// A schedule on a device.
#[derive(Debug)]
pub(super) struct PlannedSchedule {
    /// A row for each block, in the format of [`flash_attention`](super::prefill::flash_attention).
    pub table: Arc<DeviceBuffer<u32>>,
    pub blocks: usize,
    /// The number of parts that store partial results.
    pub slots: usize,
}

/// A cache of the most recently used plans.
#[derive(Debug)]
pub(super) struct Plans {
    device: Device,
    /// Most recently used first.
    kept: Lock<VecDeque<(PlanKey, Arc<PlannedSchedule>)>>,
}

impl Plans {
    /// Returns an empty cache.
    pub fn new(device: Device) -> Plans {
        Plans { device, kept: Lock::default() }
    }

    /// Returns the plan for `key`. `lists` gives the number of key tiles for each tile of queries
    /// of all heads of a sequence.
    pub fn plan(&self, key: PlanKey, lists: impl FnOnce() -> Vec<usize>) -> Result<Arc<PlannedSchedule>, Error> {
        let mut kept = self.kept.lock();
        if let Some(at) = kept.iter().position(|(of, _)| *of == key)
            && let Some(found) = kept.remove(at)
        {
            kept.push_front(found.clone());
            return Ok(found.1);
        }
        let plan = Arc::new(self.build_plan(key, &lists())?);
        kept.push_front((key, plan.clone()));
        let mut bytes = 0;
        kept.retain(|(_, plan)| {
            bytes += plan.blocks * TABLE_COLUMNS * size_of::<u32>();
            bytes <= MAX_TABLE_BYTES
        });
        Ok(plan)
    }

    fn build_plan(
        &self,
        PlanKey { tile, heads, list_repeats, seen }: PlanKey,
        lists: &[usize],
    ) -> Result<PlannedSchedule, Error> {
        let rows = lists.len() / heads.max(1);
        let all = lists.repeat(list_repeats);
        let work = Work {
            lists: &all,
            rows,
            bytes: tile.height * (tile.width + 2) * size_of::<f32>(),
            scattered: seen == ListInputs::Listed,
        };
        let WorkSchedule { items, slots } =
            WorkSchedule::new(work, &tile.block_slots(self.device.facts().multiprocessors as usize));
        let mut table = Vec::with_capacity(items.len() * TABLE_COLUMNS);
        for item in &items {
            let (tile, head, other) = (item.list % rows, item.list / rows % heads, item.list / rows / heads);
            let tiles = if item.part + 1 >= item.parts { ALL_TILES } else { item.tiles };
            let row: [usize; TABLE_COLUMNS] = [tile, head, other, item.before, tiles, item.part, item.parts, item.slot];
            table.extend(row.map(|n| n as u32));
        }
        Ok(PlannedSchedule { table: Arc::new(self.device.upload(&table)?), blocks: items.len(), slots })
    }
}
