//! Block masks: for each head, the blocks of keys that a block of queries sees.
//!
//! A mask is made from a function of head, block of queries and block of keys. [`local`],
//! [`strided`], [`global`] and [`random`] return such functions, and a closure combines several:
//!
//! ```
//! use kernels_rs::attention::mask::{BlockMask, BlockSize, global, local};
//! let (near, first) = (local(1), global(1));
//! let mask = BlockMask::new(BlockSize::Small, 2, [300, 300], |h, q, k| near(h, q, k) || first(h, q, k));
//! assert_eq!(mask.lists()[2], [0, 1, 2, 3]);
//! assert_eq!(mask.density(), 19.0 / 25.0);
//! ```

use super::plan::{AttentionTile, ListInputs, PlanKey, PlannedSchedule, Plans};
use super::span::{KEYS, Listed};
use crate::operand::rejected;
use crate::{Queue, QueueMemory};
use runtime::{BufferView, Error};
use std::iter::repeat_n;
use std::sync::Arc;

/// The number of queries and keys of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockSize {
    /// 64 queries and 64 keys.
    Small,
    /// 128 queries and 128 keys.
    Large,
}

impl BlockSize {
    /// Returns the number of queries, which is also the number of keys.
    pub const fn get(self) -> usize {
        match self {
            BlockSize::Small => 64,
            BlockSize::Large => 128,
        }
    }
}

/// The blocks of keys that each head and block of queries sees, in ascending order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockMask {
    size: BlockSize,
    heads: usize,
    lengths: [usize; 2],
    lists: Vec<Vec<u32>>,
}

impl BlockMask {
    /// Returns the mask of the blocks for which `sees(head, block of queries, block of keys)` is
    /// true, for `heads` heads and sequences of the given numbers of queries and keys.
    pub fn new(
        size: BlockSize,
        heads: usize,
        lengths: [usize; 2],
        sees: impl Fn(usize, usize, usize) -> bool,
    ) -> BlockMask {
        let [rows, cols] = lengths.map(|n| n.div_ceil(size.get()));
        let list = |head, row| (0..cols).filter(|col| sees(head, row, *col)).map(|col| col as u32).collect();
        let lists =
            (0..heads).flat_map(|head| (0..rows).map(move |row| (head, row))).map(|(h, r)| list(h, r)).collect();
        BlockMask { size, heads, lengths, lists }
    }

    /// Returns the lists of blocks, one for each block of queries of each head.
    pub fn lists(&self) -> &[Vec<u32>] {
        &self.lists
    }

    /// Returns the fraction of all blocks that are seen.
    pub fn density(&self) -> f64 {
        let all = self.lists.len() * self.lengths[1].div_ceil(self.size.get());
        self.lists.iter().map(Vec::len).sum::<usize>() as f64 / all.max(1) as f64
    }

    /// Uploads the mask to a device, or for a graph that is being recorded.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub fn upload(&self, on: &impl Queue) -> Result<DeviceMask, Error> {
        let [rows, cols] = self.lengths.map(|n| n.div_ceil(self.size.get()));
        Ok(DeviceMask {
            size: self.size,
            heads: self.heads,
            lengths: self.lengths,
            lengths_of_lists: self.lists.iter().map(Vec::len).collect(),
            plans: Plans::new(on.device().clone()),
            of_queries: Lists::upload(on, &self.lists, self.heads, rows)?,
            of_keys: Lists::upload(on, &self.transposed(), self.heads, cols)?,
        })
    }

    /// Returns the transposed mask: for each head and block of keys the blocks of queries that see
    /// it, in ascending order.
    fn transposed(&self) -> Vec<Vec<u32>> {
        let [rows, cols] = self.lengths.map(|n| n.div_ceil(self.size.get()));
        let mut transposed = vec![Vec::new(); self.heads * cols];
        for (at, list) in self.lists.iter().enumerate() {
            for col in list {
                if let Some(of_keys) = transposed.get_mut(at / rows * cols + *col as usize) {
                    of_keys.push((at % rows) as u32);
                }
            }
        }
        transposed
    }
}

/// Concatenated lists of blocks.
#[derive(Debug)]
struct Lists {
    /// Where each list begins, [head, list + 1].
    starts: QueueMemory<u32>,
    blocks: QueueMemory<u32>,
    shape: [usize; 2],
}

/// The lists as views, which a launch takes.
pub(super) struct ListViews<'a> {
    starts: BufferView<'a, u32, 2>,
    blocks: BufferView<'a, u32, 1>,
}

impl ListViews<'_> {
    /// Returns the pattern of these lists, with blocks of `size` rows.
    ///
    /// # Safety
    /// The lists must outlive the use of the pattern: a launch within
    /// [`reading`](ListViews::reading).
    pub unsafe fn pattern(&self, size: usize) -> Listed {
        // SAFETY: the caller keeps the lists alive.
        unsafe {
            let shift = (size / KEYS).ilog2() as usize;
            Listed { rows: self.starts.detached(), blocks: self.blocks.detached(), shift }
        }
    }

    /// Queues a launch that reads the lists.
    pub fn reading(&self, on: &impl Queue, launch: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        on.reading(&self.starts, || on.reading(&self.blocks, launch))
    }
}

impl Lists {
    /// Uploads `each` lists for each of `heads` heads.
    fn upload(on: &impl Queue, lists: &[Vec<u32>], heads: usize, each: usize) -> Result<Lists, Error> {
        let mut starts = Vec::with_capacity(heads * (each + 1));
        let mut blocks: Vec<u32> = Vec::new();
        for head in 0..heads {
            for list in lists.iter().skip(head * each).take(each) {
                starts.push(blocks.len() as u32);
                blocks.extend(list);
            }
            starts.push(blocks.len() as u32);
        }
        let keep = |numbers: &[u32]| on.keep(on.device().upload(numbers)?);
        Ok(Lists { starts: keep(&starts)?, blocks: keep(&blocks)?, shape: [heads, each + 1] })
    }

    fn views(&self) -> Result<ListViews<'_>, Error> {
        Ok(ListViews { starts: self.starts.view(self.shape)?, blocks: self.blocks.view([self.blocks.len()])? })
    }
}

/// A mask on a device, or in a graph.
#[derive(Debug)]
pub struct DeviceMask {
    size: BlockSize,
    heads: usize,
    lengths: [usize; 2],
    /// The number of key blocks that each block of queries sees.
    lengths_of_lists: Vec<usize>,
    /// The plans for the mask's lists.
    plans: Plans,
    of_queries: Lists,
    of_keys: Lists,
}

impl DeviceMask {
    /// Returns the number of queries, and of keys, of a block.
    pub(super) fn size(&self) -> usize {
        self.size.get()
    }

    /// Returns the assignment of work to blocks. The lists of all heads are repeated `list_repeats`
    /// times, once for each sequence and each piece of a value.
    pub(super) fn plan(&self, tile: AttentionTile, list_repeats: usize) -> Result<Arc<PlannedSchedule>, Error> {
        // A block of the mask is a whole number of tiles of queries.
        let (of_block, keys) = (self.size() / tile.height, self.size() / KEYS);
        let lists = || self.lengths_of_lists.iter().flat_map(|n| repeat_n(n * keys, of_block)).collect();
        self.plans.plan(PlanKey { tile, heads: self.heads, list_repeats, seen: ListInputs::Listed }, lists)
    }

    /// Returns the lists of blocks of keys. Fails if the mask has other extents.
    pub(super) fn of_queries(&self, heads: usize, lengths: [usize; 2]) -> Result<ListViews<'_>, Error> {
        self.check_extents(heads, lengths)?;
        self.of_queries.views()
    }

    /// Returns the lists of blocks of queries for each block of keys. Fails if the mask has other
    /// extents.
    pub(super) fn of_keys(&self, heads: usize, lengths: [usize; 2]) -> Result<ListViews<'_>, Error> {
        self.check_extents(heads, lengths)?;
        self.of_keys.views()
    }

    fn check_extents(&self, heads: usize, lengths: [usize; 2]) -> Result<(), Error> {
        if (heads, lengths) == (self.heads, self.lengths) {
            return Ok(());
        }
        let [queries, keys] = self.lengths;
        Err(rejected(format!(
            "the mask has {} heads, {queries} queries and {keys} keys, and the call has {heads}, {} and {}",
            self.heads, lengths[0], lengths[1]
        )))
    }
}

/// Returns the pattern of blocks at a distance of at most `reach` from the diagonal.
pub fn local(reach: usize) -> impl Fn(usize, usize, usize) -> bool {
    move |_, row, col| row.abs_diff(col) <= reach
}

/// Returns the pattern of blocks at a distance from the diagonal that is a multiple of `step`
/// (Child and others, 2019).
pub fn strided(step: usize) -> impl Fn(usize, usize, usize) -> bool {
    move |_, row, col| row.abs_diff(col).is_multiple_of(step.max(1))
}

/// Returns the pattern of the first `n` blocks: these queries see all keys, and all queries see
/// these keys (Beltagy and others, 2020).
pub fn global(n: usize) -> impl Fn(usize, usize, usize) -> bool {
    move |_, row, col| row < n || col < n
}

/// Returns a random pattern: each block of each head is seen with probability `density`. The
/// pattern depends on the seed only.
pub fn random(density: f64, seed: u64) -> impl Fn(usize, usize, usize) -> bool {
    move |head, row, col| {
        // SplitMix64's finalizer over the coordinates (Steele, Lea and Flood, 2014).
        let place = (head as u64) << 42 ^ (row as u64) << 21 ^ col as u64;
        let mut x = seed.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64 <= density
    }
}
