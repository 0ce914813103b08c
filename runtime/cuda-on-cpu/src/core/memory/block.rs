//! Bytes in host memory that hold what is in the device's.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

/// A row of bytes: its own, or the program's that it has registered.
///
/// Kernels and copies reach it through the lock of its [`Space`](super::Space). Of host-pinned and managed memory the program
/// has the address as well: it keeps to CUDA's rules, by which it may not touch what a kernel or copy under way uses.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
    /// How it was allocated, if it is its own.
    layout: Option<Layout>,
}

// SAFETY: bytes may be used from any thread; who uses them when is the lock's affair, and the program's as said above.
unsafe impl Send for Block {}

impl Block {
    /// Zeroes, without touching them where the system can do so; `None` where there is not as much memory.
    pub fn zeroed(bytes: u64, alignment: usize) -> Option<Block> {
        let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0)?;
        let layout = Layout::from_size_align(bytes, alignment).ok()?;
        // SAFETY: the layout has bytes.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Block { start, bytes, layout: Some(layout) })
    }

    /// Memory of the program.
    ///
    /// # Safety
    /// As many bytes are there from `start` on, initialised, until this is dropped.
    pub unsafe fn of_program(start: NonNull<u8>, bytes: usize) -> Block {
        Block { start, bytes, layout: None }
    }

    /// Where it begins, for the host.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.bytes as u64
    }

    /// To write.
    pub fn get_mut(&mut self) -> &mut [u8] {
        // SAFETY: they are there, as many and initialised; nobody else has them, as the type says.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated with this layout, and not used any more.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}
