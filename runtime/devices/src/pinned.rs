//! Host memory that a device copies from and to directly.

use crate::buffer::{RawBuffer, bytes_of};
use crate::device::PoolKind;
use crate::hazard::HazardTracker;
use crate::{Device, Result};
use kernel_dsl::Element;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

/// `len` elements of page-locked host memory, which a [`Stream`](crate::Stream) copies while the
/// host continues.
///
/// The buffer's memory is cached when dropped, like that of a
/// [`DeviceBuffer`](crate::DeviceBuffer). Reading the buffer waits for copies into it, including
/// those of the memory's former owner. Writing the buffer also waits for copies from it.
pub struct PinnedBuffer<T: Element> {
    raw: RawBuffer,
    len: usize,
    element: PhantomData<T>,
}

impl Device {
    /// Allocates page-locked memory for `len` elements. The elements' values are unspecified.
    ///
    /// # Errors
    /// If the size in bytes overflows, memory is insufficient, or the device is lost.
    pub fn pinned<T: Element>(&self, len: usize) -> Result<PinnedBuffer<T>> {
        let raw = RawBuffer::new(self, PoolKind::Pinned, bytes_of::<T>(len)?)?;
        Ok(PinnedBuffer { raw, len, element: PhantomData })
    }
}

impl<T: Element> PinnedBuffer<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the device that copies from and to the buffer.
    pub fn device(&self) -> &Device {
        self.raw.device()
    }

    /// Waits for copies into the buffer, and returns the elements.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.device().backend().wait_for(&self.uses().before_read())?;
        if self.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: the memory is owned, of this length, aligned to 256 and initialized, and every
        // bit pattern is an `Element`. A writer needs it exclusively, and the last write is
        // complete.
        Ok(unsafe { std::slice::from_raw_parts(self.pointer().cast(), self.len) })
    }

    /// Waits for all copies, and returns the elements for writing.
    ///
    /// # Errors
    /// If the device is lost.
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
