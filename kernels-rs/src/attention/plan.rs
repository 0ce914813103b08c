//! Schedules as tables on a device, each made once.

use super::schedule::{Schedule, Work};
use super::simulation::{Cost, Places};
use runtime::{Device, DeviceBuffer, Error};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Numbers of a row of the table.
pub(super) const NUMBERS: usize = 8;
/// Bytes of the tables that are kept.
const KEPT: usize = 16 << 20;
/// The tiles of keys of a list's last part, or of a list that is not cut: all that there are. Sequences need not be as long as a call's longest.
const ALL: usize = 1 << 30;

/// The form of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tile {
    /// Queries of a block.
    pub height: usize,
    /// Elements of a value that it has.
    pub width: usize,
    /// Tiles of keys of a step.
    pub step: usize,
    pub threads: usize,
}

impl Tile {
    /// Where a device runs such blocks. A multiprocessor has registers for 512 threads, or 384 of those that have more. The costs are those of an H200; where a
    /// step is of one tile of keys, a block leaves as much for half of the products or less.
    pub const fn places(self, multiprocessors: usize) -> Places {
        let pace: &[f64] = match if self.step == 2 { 384 } else { 512 } / self.threads {
            ..=2 => &[0.7, 1.0],
            3 => &[0.475, 0.949, 1.0],
            _ => &[0.45, 0.65, 0.85, 1.0],
        };
        let cost = match self.step {
            2 => Cost { step: 2, some: 0.8, begin: 0.03, part: 0.33 },
            step => Cost { step, some: 0.0, begin: 0.06, part: 1.4 },
        };
        Places { multiprocessors, pace, oldest: if self.step == 2 { 0.1 } else { 0.0 }, cost }
    }
}

/// What decides how long lists of tiles of keys are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// A band of each sequence.
    Band {
        /// Queries.
        longest: usize,
        keys: usize,
        left: usize,
        right: usize,
    },
    /// The lists of a mask.
    Listed,
}

/// What a plan is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Asked {
    pub tile: Tile,
    pub heads: usize,
    /// Pieces of sequences.
    pub others: usize,
    pub seen: Seen,
}

/// A schedule on a device.
#[derive(Debug)]
pub(super) struct Plan {
    /// A row for each block, as [`flash_attention`](super::prefill::flash_attention) takes it.
    pub table: Arc<DeviceBuffer<u32>>,
    pub blocks: usize,
    /// Parts that leave something.
    pub slots: usize,
}

/// Those that were last asked for.
#[derive(Debug)]
pub(super) struct Plans {
    device: Device,
    /// The last first.
    kept: Mutex<VecDeque<(Asked, Arc<Plan>)>>,
}

impl Plans {
    /// None yet.
    pub fn new(device: Device) -> Plans {
        Plans { device, kept: Mutex::default() }
    }

    /// The plan for this, where `lists` has the tiles of keys of each tile of queries of all heads of a sequence.
    pub fn plan(&self, asked: Asked, lists: impl FnOnce() -> Vec<usize>) -> Result<Arc<Plan>, Error> {
        // What panics while this is held leaves it whole.
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(of, _)| *of == asked)
            && let Some(found) = kept.remove(at)
        {
            kept.push_front(found.clone());
            return Ok(found.1);
        }
        let plan = Arc::new(self.made(asked, &lists())?);
        kept.push_front((asked, plan.clone()));
        let mut bytes = 0;
        kept.retain(|(_, plan)| {
            bytes += plan.blocks * NUMBERS * size_of::<u32>();
            bytes <= KEPT
        });
        Ok(plan)
    }

    fn made(&self, Asked { tile, heads, others, seen }: Asked, lists: &[usize]) -> Result<Plan, Error> {
        let rows = lists.len() / heads.max(1);
        let all = lists.repeat(others);
        let work = Work {
            lists: &all,
            rows,
            bytes: tile.height * (tile.width + 2) * size_of::<f32>(),
            scattered: seen == Seen::Listed,
        };
        let Schedule { items, slots } = Schedule::new(work, &tile.places(self.device.facts().multiprocessors as usize));
        let mut table = Vec::with_capacity(items.len() * NUMBERS);
        for item in &items {
            let (tile, head, other) = (item.list % rows, item.list / rows % heads, item.list / rows / heads);
            let tiles = if item.part + 1 >= item.parts { ALL } else { item.tiles };
            let row: [usize; NUMBERS] = [tile, head, other, item.before, tiles, item.part, item.parts, item.slot];
            table.extend(row.map(|n| n as u32));
        }
        Ok(Plan { table: Arc::new(self.device.upload(&table)?), blocks: items.len(), slots })
    }
}
