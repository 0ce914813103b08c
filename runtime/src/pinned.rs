//! Memory of the host that a device copies from and to by itself.

use crate::buffer::{RawBuffer, bytes_of};
use crate::device::Memory;
use crate::hazard::HazardTracker;
use crate::{Device, Result};
use kernel_dsl::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// `len` elements of the host's memory, page-locked, so that a [`Stream`](crate::Stream) copies them while the host goes on.
///
/// It is kept for the next when it is dropped, as a [`DeviceBuffer`](crate::DeviceBuffer) is. Looking at it waits for copies that are to
/// write it, those of who had the memory before among them; writing, for those that are to read it, too.
pub struct PinnedBuffer<T: Element> {
    raw: RawBuffer,
    len: usize,
    element: PhantomData<T>,
}

impl Device {
    /// Page-locked memory for `len` elements, which are what it held before.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let raw = RawBuffer::new(self, Memory::Pinned, bytes_of::<T>(self, len)?)?;
        Ok(PinnedBuffer { raw, len, element: PhantomData })
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The device that copies from and to it.
    pub fn device(&self) -> &Device {
        self.raw.device()
    }

    /// The elements, once the copy that writes them is over.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.device().backend().wait_for(&self.uses().before_read())?;
        if self.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: the memory is ours, as long, aligned to 256, initialised, and every bit pattern is an `Element`; who writes it needs it exclusively,
        // and the last that did is over.
        Ok(unsafe { std::slice::from_raw_parts(self.pointer().cast(), self.len) })
    }

    /// The elements, once all copies are over.
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.device().backend().wait_for(&self.uses().before_write())?;
        self.raw.forget_uses();
        if self.is_empty() {
            return Ok(&mut []);
        }
        // SAFETY: as above; all who used it have ended, and `self` is exclusive.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pointer_mut().cast(), self.len) })
    }

    pub(crate) fn pointer(&self) -> *const u8 {
        ptr::with_exposed_provenance(self.raw.address() as usize)
    }

    pub(crate) fn pointer_mut(&mut self) -> *mut u8 {
        ptr::with_exposed_provenance_mut(self.raw.address() as usize)
    }

    pub(crate) fn uses(&self) -> &HazardTracker {
        self.raw.uses()
    }
}

impl<T: Element> fmt::Debug for PinnedBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedBuffer<{}>({} elements for {})", T::TYPE, self.len, self.device())
    }
}
