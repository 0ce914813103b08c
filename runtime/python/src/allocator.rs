//! Memory of the runtime's pool for the tensors of PyTorch, by the two functions of
//! `torch.cuda.memory.CUDAPluggableAllocator`.
//!
//! ```text
//! kernels_rs_allocate ─▶ a freed block of this size and stream ─ none ─▶ the device's pool, ordered before the stream
//! kernels_rs_free     ─▶ a freed block of the stream ─ out of memory ─▶ back to the pool, ordered after the stream
//! ```
//!
//! PyTorch frees a tensor when its work is submitted, not when this work is complete. A block is
//! therefore reused at once only in the order of the same stream. The pool itself receives a block
//! with the work that is in flight, so that its next owner waits for it on the device.
//!
//! `Tensor.record_stream` has no effect on these blocks. Before a tensor is freed, the caller must
//! order the work of other streams that use the tensor before the tensor's own stream. Freed blocks
//! go back to the pool only if an allocation for PyTorch fails, so other allocations can run out of
//! memory first.

use crate::device::{Opened, Where};
use kernel_dsl_compiler::lock::Lock;
use runtime::DeviceBuffer;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::ptr;

/// The granularity of block sizes in bytes. Larger sizes are also multiples of an eighth of their
/// power of two, so that few distinct sizes occur and freed blocks are reused.
const MIN_BLOCK_BYTES: usize = 512;

/// The GPU's number, the handle of the stream, and the bytes of a block.
type BlockKey = (usize, usize, usize);

/// The blocks that PyTorch uses, by address, and the blocks that it has freed.
#[derive(Default)]
struct TorchBlocks {
    used: HashMap<u64, (usize, DeviceBuffer<u8>)>,
    freed: HashMap<BlockKey, Vec<DeviceBuffer<u8>>>,
}

// PyTorch passes no context to an allocator, so that its blocks belong to the process.
static BLOCKS: Lock<Option<TorchBlocks>> = Lock::new(None);

/// Returns the bytes of a block for `bytes` bytes.
fn rounded(bytes: usize) -> usize {
    let step = (bytes.max(1).next_power_of_two() / 8).max(MIN_BLOCK_BYTES);
    bytes.max(1).next_multiple_of(step)
}

impl TorchBlocks {
    fn allocate(&mut self, bytes: usize, ordinal: usize, handle: usize) -> runtime::Result<u64> {
        let bytes = rounded(bytes);
        let freed = self.freed.get_mut(&(ordinal, handle, bytes)).and_then(Vec::pop);
        let block = match freed {
            Some(block) => block,
            None => {
                let opened = Where::Cuda(ordinal).open_detached()?;
                let block = match opened.device.alloc(bytes) {
                    Ok(block) => block,
                    Err(_) => {
                        self.give_back(&opened, ordinal)?;
                        opened.device.alloc(bytes)?
                    }
                };
                // The stream's work follows that of the memory's former owner.
                opened.stream.reads(&block.view_strided([1], [1])?)?;
                // SAFETY: the handle is a live stream of the device, as PyTorch promises.
                unsafe { opened.stream.hold_handle(ptr::without_provenance_mut(handle))? };
                block
            }
        };
        let address = block.device_address();
        self.used.insert(address, (ordinal, block));
        Ok(address)
    }

    fn free(&mut self, address: u64, handle: usize) {
        if let Some((ordinal, block)) = self.used.remove(&address) {
            self.freed.entry((ordinal, handle, block.len())).or_default().push(block);
        }
    }

    /// Returns the freed blocks of a GPU to its pool, once the work on their streams is complete.
    fn give_back(&mut self, opened: &Opened, ordinal: usize) -> runtime::Result<()> {
        for ((_, handle, _), blocks) in self.freed.extract_if(|(of, ..), _| *of == ordinal) {
            // SAFETY: as in `allocate`.
            unsafe { opened.stream.wait_for_handle(ptr::without_provenance_mut(handle))? };
            blocks.iter().try_for_each(|block| opened.stream.reads(&block.view_strided([1], [1])?))?;
        }
        Ok(())
    }
}

/// Allocates device memory for PyTorch. Returns null for 0 bytes, and if memory is insufficient; a
/// lack of memory is printed.
///
/// # Safety
/// `stream` is a live stream of the primary context of GPU `device`, or its default stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kernels_rs_allocate(bytes: isize, device: c_int, stream: *mut c_void) -> *mut c_void {
    let (Ok(bytes @ 1..), Ok(ordinal)) = (usize::try_from(bytes), usize::try_from(device)) else {
        return ptr::null_mut();
    };
    let mut blocks = BLOCKS.lock();
    match blocks.get_or_insert_default().allocate(bytes, ordinal, stream.addr()) {
        Ok(address) => ptr::without_provenance_mut(address as usize),
        Err(error) => {
            eprintln!("kernels_rs: allocating {bytes} bytes of cuda:{ordinal} for PyTorch failed: {error}");
            ptr::null_mut()
        }
    }
}

/// Frees memory of `kernels_rs_allocate` after the work that is in the stream at this time.
///
/// # Safety
/// `address` is null or from `kernels_rs_allocate`, and freed once. `stream` is as there, and alive
/// as long as the process allocates memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn kernels_rs_free(address: *mut c_void, _bytes: isize, _device: c_int, stream: *mut c_void) {
    let mut blocks = BLOCKS.lock();
    blocks.get_or_insert_default().free(address.addr() as u64, stream.addr());
}
