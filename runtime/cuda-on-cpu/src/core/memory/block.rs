//! Host memory that holds the contents of device memory.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// A contiguous range of bytes: owned, or registered memory of the program.
///
/// Kernels and copies access a block under the lock of its [`Allocations`](super::Allocations). For
/// host-pinned and managed memory the program has the address as well. CUDA's rules then forbid the
/// program to access bytes that a kernel or copy in flight uses.
#[derive(Debug)]
pub struct MemoryBlock {
    start: NonNull<u8>,
    bytes: usize,
    /// The layout of an owned block's allocation.
    layout: Option<Layout>,
}

// SAFETY: the bytes have no thread affinity. The lock of the `Allocations` and the program, by the
// rules above, prevent concurrent access.
unsafe impl Send for MemoryBlock {}

impl MemoryBlock {
    /// Allocates zeroed bytes, without touching the pages where the system supports it. Returns
    /// `None` if out of memory.
    pub fn zeroed(bytes: u64, alignment: usize) -> Option<MemoryBlock> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        let layout = Layout::from_size_align(bytes, alignment).ok()?;
        // SAFETY: the size of the layout is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(MemoryBlock { start, bytes, layout: Some(layout) })
    }

    /// Wraps memory of the program.
    ///
    /// # Safety
    /// `bytes` bytes from `start` on must stay allocated and initialized until the block is
    /// dropped.
    pub unsafe fn of_program(start: NonNull<u8>, bytes: usize) -> MemoryBlock {
        MemoryBlock { start, bytes, layout: None }
    }

    /// Returns the host address of the first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns the bytes, mutably.
    pub fn get_mut(&mut self) -> &mut [u8] {
        // SAFETY: `bytes` initialized bytes start there, and `&mut self` makes the access
        // exclusive, as documented on the type.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: the block was allocated with this layout, and this is its last use.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}
