//! Words of memory that are 0 between launches, such as counters of blocks that have ended.
//!
//! The last block of a launch to end can combine the results of all blocks, so that the call needs
//! one launch instead of two. To find the last block, blocks count themselves. A kernel sets its
//! words back to 0 before it ends, and the next launch finds them so: no launch clears them.
//!
//! Blocks of a launch also exchange numbers by such words: a word has the 32 bits of a number, and
//! the flag [`PUBLISHED`] above them.
//!
//! On a device, a call borrows the words for its launches. A graph has separate words.

use crate::QueueMemory;
use crate::permute::rows::fill_rows;
use kernel_dsl::compiler::lock::Lock;
use kernel_dsl::prelude::*;
use runtime::{BufferViewMut, Device, DeviceBuffer, Error, Stream};
use std::sync::Arc;

/// The minimum number of words of a buffer. Calls of different shapes then borrow the same buffer.
const MIN_WORDS: usize = 1024;

/// The flag of a word: whether its number is published.
#[device]
pub const PUBLISHED: u64 = 1 << 32;

/// The number of times that a block polls a word: about 0.2 ms on an H200, many times as long as a
/// block runs.
#[device]
pub const MAX_POLLS: u32 = 256;

/// Counts the block in an element of `ended`, which `counter` returns to one thread. Returns how
/// many of the `blocks` blocks have stored their results. The last block sets the element to 0.
///
/// A barrier separates the results' stores from the call.
#[device]
pub fn count_block(mut ended: ViewMut<u32, 1>, counter: impl Fn() -> usize, blocks: usize) -> usize {
    let mut before = 0u32;
    if thread::index() == 0 {
        let counter = counter();
        fence::grid();
        before = ended.fetch_add(counter, 1);
        fence::grid();
        if before as usize + 1 == blocks {
            ended[counter] = 0;
        }
    }
    block::broadcast(before, 0) as usize + 1
}

/// The words of a device that no call has borrowed. All are 0 once the launches queued so far have
/// ended.
#[derive(Debug)]
pub(crate) struct ClearedWords {
    device: Device,
    free: Lock<Vec<DeviceBuffer<u64>>>,
}

impl ClearedWords {
    pub(crate) fn new(device: Device) -> ClearedWords {
        ClearedWords { device, free: Lock::default() }
    }

    /// Returns at least `len` words.
    fn take(&self, len: usize) -> Result<DeviceBuffer<u64>, Error> {
        let size = len.next_power_of_two().max(MIN_WORDS);
        let mut free = self.free.lock();
        let found = free.iter().rposition(|words| words.len() == size);
        match found.map(|at| free.swap_remove(at)) {
            Some(words) => Ok(words),
            None => self.device.zeros(size),
        }
    }
}

/// Words that are 0 before each launch. Launches that use them set them back to 0.
#[derive(Debug)]
pub struct BlockCounters {
    /// `None` after the words were given back.
    words: Option<QueueMemory<u64>>,
    lender: Option<Arc<ClearedWords>>,
}

impl BlockCounters {
    /// Borrows at least `len` words of a device.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub(crate) fn borrowed(device: &Device, len: usize) -> Result<BlockCounters, Error> {
        if device.is_cpu() {
            // A kernel that an error stops does not set its words back.
            return Ok(BlockCounters::owned(QueueMemory::Buffer(device.zeros(len)?)));
        }
        let lender = device.get_or_init_extension(ClearedWords::new);
        Ok(BlockCounters { words: Some(QueueMemory::Buffer(lender.take(len)?)), lender: Some(lender) })
    }

    /// Allocates `len` words, and queues a launch that clears them.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    pub(crate) fn cleared(stream: &Stream, len: usize) -> Result<BlockCounters, Error> {
        let mut words = stream.device().alloc::<u64>(len)?;
        let mut view = words.view_mut([1, 1, 1, len, 1])?;
        // SAFETY: the kernel accesses elements within the view only. The oracle ran the kernel at
        // and around every edge (`kernels check`).
        unsafe { fill_rows::<u64, 1>::launch_unchecked(stream, 0u64, &mut view)? };
        Ok(BlockCounters::owned(QueueMemory::Buffer(words)))
    }

    /// Takes words that are 0.
    pub(crate) fn owned(words: QueueMemory<u64>) -> BlockCounters {
        BlockCounters { words: Some(words), lender: None }
    }

    /// Returns the first `len` words.
    ///
    /// # Errors
    /// Returns an error if there are fewer.
    pub(crate) fn words(&mut self, len: usize) -> Result<BufferViewMut<'_, u64, 1>, Error> {
        match &mut self.words {
            Some(words) => {
                let all = words.len();
                words.view_mut([all])?.slice(0..len)
            }
            None => unreachable!("words are given back on drop"),
        }
    }

    /// Returns the first `len` halves of words.
    ///
    /// # Errors
    /// Returns an error if there are fewer.
    pub(crate) fn halves(&mut self, len: usize) -> Result<BufferViewMut<'_, u32, 1>, Error> {
        self.words(len.div_ceil(2))?.cast::<u32>()?.slice(0..len)
    }
}

impl Drop for BlockCounters {
    fn drop(&mut self) {
        if let (Some(QueueMemory::Buffer(words)), Some(lender)) = (self.words.take(), &self.lender) {
            lender.free.lock().push(words);
        }
    }
}
