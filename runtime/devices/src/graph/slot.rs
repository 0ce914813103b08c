//! Placeholders for buffers while launches are recorded.

use crate::Result;
use crate::view::{AccessTracker, BufferStrided, BufferStridedMut, BufferView, BufferViewMut, ViewLayout, ViewOrigin};
use kernel_dsl::launcher::{SliceArgument, SliceMutArgument};
use kernel_dsl::{Argument, Element};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

/// The identity of a slot in a recording. The identity serves as the device number of memory in the
/// slot, so that only recorded launches accept such memory.
///
/// ```text
/// 63   62          24 23        0
/// ┌───┬──────────────┬──────────┐
/// │ 1 │   recording  │   slot   │      the host and GPUs have small numbers
/// └───┴──────────────┴──────────┘
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotId {
    pub recording: u64,
    pub slot: usize,
}

/// The bit that distinguishes the device number of a slot from the number of a device.
const LENT_BIT: u64 = 1 << 63;
/// The number of bits of a slot's index.
const SLOT_BITS: u32 = 24;

/// The maximum number of slots of a recording.
pub(super) const MAX_SLOTS: usize = 1 << SLOT_BITS;

/// The address of a slot's memory during recording, aligned like any buffer. The memory is never
/// accessed.
pub(super) const BASE: u64 = 1 << 40;

impl SlotId {
    /// Returns the device number of the slot's memory.
    fn device(self) -> u64 {
        LENT_BIT | self.recording << SLOT_BITS | self.slot as u64
    }

    /// Returns the slot with this device number.
    pub fn of(device: u64) -> Option<SlotId> {
        let slot = (device & (MAX_SLOTS as u64 - 1)) as usize;
        (device & LENT_BIT != 0).then_some(SlotId { recording: (device & !LENT_BIT) >> SLOT_BITS, slot })
    }

    fn origin<'a>(self) -> ViewOrigin<'a> {
        ViewOrigin { device: self.device(), address: BASE, tracker: AccessTracker::Untracked }
    }
}

/// A buffer of a recording, for launches to read.
///
/// Launches of the recording take the slot in place of a `&DeviceBuffer`, any number of times, and
/// the slot's views in place of the buffer's. Launches outside the recording reject the slot.
pub struct Slot<T: Element> {
    pub(super) id: SlotId,
    len: usize,
    element: PhantomData<T>,
}

/// A buffer of a recording, for launches to read and write. Launches of the recording take the slot
/// in place of a `&mut DeviceBuffer`, any number of times. A launch with the same slot twice is
/// rejected, because its arguments overlap.
pub struct SlotMut<T: Element> {
    pub(super) id: SlotId,
    len: usize,
    element: PhantomData<T>,
}

macro_rules! slot {
    ($Slot:ident) => {
        impl<T: Element> Clone for $Slot<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T: Element> Copy for $Slot<T> {}

        impl<T: Element> fmt::Debug for $Slot<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}<{}>({} of {} elements)", stringify!($Slot), T::TYPE, self.id.slot, self.len)
            }
        }

        impl<T: Element> $Slot<T> {
            pub(super) fn new(id: SlotId, len: usize) -> $Slot<T> {
                $Slot { id, len, element: PhantomData }
            }

            /// Returns the number of elements.
            pub fn len(&self) -> usize {
                self.len
            }

            /// Returns whether there are no elements.
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Returns a view, like [`DeviceBuffer::view`](crate::DeviceBuffer::view).
            ///
            /// # Errors
            /// Returns the errors of [`DeviceBuffer::view`](crate::DeviceBuffer::view).
            pub fn view<'a, const R: usize>(self, extents: [usize; R]) -> Result<BufferView<'a, T, R>> {
                Ok(BufferView::new(self.id.origin(), ViewLayout::row_major::<T>(self.len, extents)?))
            }

            /// Returns a view, like
            /// [`DeviceBuffer::view_strided`](crate::DeviceBuffer::view_strided).
            ///
            /// # Errors
            /// Returns the errors of
            /// [`DeviceBuffer::view_strided`](crate::DeviceBuffer::view_strided).
            pub fn view_strided<'a, const R: usize>(
                self,
                extents: [usize; R],
                strides: [usize; R],
            ) -> Result<BufferView<'a, T, R>> {
                Ok(BufferView::new(self.id.origin(), ViewLayout::strided::<T>(self.len, extents, strides)?))
            }

            /// Returns a view, like [`DeviceBuffer::strided`](crate::DeviceBuffer::strided).
            ///
            /// # Errors
            /// Returns the errors of [`DeviceBuffer::strided`](crate::DeviceBuffer::strided).
            pub fn strided<'a, const R: usize>(
                self,
                start: usize,
                extents: [usize; R],
                strides: [usize; R],
            ) -> Result<BufferStrided<'a, T, R>> {
                Ok(BufferStrided::new(
                    self.id.origin(),
                    ViewLayout::with_strides::<T>(self.len, start, extents, strides)?,
                ))
            }

            /// Returns a view, like [`DeviceBuffer::range`](crate::DeviceBuffer::range).
            ///
            /// # Errors
            /// Returns the errors of [`DeviceBuffer::range`](crate::DeviceBuffer::range).
            pub fn range<'a>(self, range: Range<usize>) -> Result<BufferView<'a, T, 1>> {
                Ok(BufferView::new(self.id.origin(), ViewLayout::range::<T>(self.len, range)?))
            }
        }

        impl<'a, T: Element> SliceArgument<'a, T> for $Slot<T> {
            fn argument(self) -> Argument<'a> {
                let layout = ViewLayout::contiguous(self.len);
                SliceArgument::argument(BufferView::<T, 1>::new(self.id.origin(), layout))
            }
        }
    };
}
slot!(Slot);
slot!(SlotMut);

impl<T: Element> SlotMut<T> {
    /// Returns the slot for reading.
    pub fn read(self) -> Slot<T> {
        Slot::new(self.id, self.len)
    }

    /// Returns a view, like [`DeviceBuffer::view_mut`](crate::DeviceBuffer::view_mut).
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view_mut`](crate::DeviceBuffer::view_mut).
    pub fn view_mut<'a, const R: usize>(self, extents: [usize; R]) -> Result<BufferViewMut<'a, T, R>> {
        Ok(BufferViewMut::new(self.id.origin(), ViewLayout::row_major::<T>(self.len, extents)?))
    }

    /// Returns a view, like
    /// [`DeviceBuffer::view_strided_mut`](crate::DeviceBuffer::view_strided_mut).
    ///
    /// # Errors
    /// Returns the errors of
    /// [`DeviceBuffer::view_strided_mut`](crate::DeviceBuffer::view_strided_mut).
    pub fn view_strided_mut<'a, const R: usize>(
        self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferViewMut<'a, T, R>> {
        let layout = ViewLayout::strided::<T>(self.len, extents, strides)?.check_distinct::<T>(self.len)?;
        Ok(BufferViewMut::new(self.id.origin(), layout))
    }

    /// Returns a view, like [`DeviceBuffer::strided_mut`](crate::DeviceBuffer::strided_mut).
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::strided_mut`](crate::DeviceBuffer::strided_mut).
    pub fn strided_mut<'a, const R: usize>(
        self,
        start: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferStridedMut<'a, T, R>> {
        let layout = ViewLayout::with_strides::<T>(self.len, start, extents, strides)?.check_distinct::<T>(self.len)?;
        Ok(BufferStridedMut::new(self.id.origin(), layout))
    }

    /// Returns a view, like [`DeviceBuffer::range_mut`](crate::DeviceBuffer::range_mut).
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::range_mut`](crate::DeviceBuffer::range_mut).
    pub fn range_mut<'a>(self, range: Range<usize>) -> Result<BufferViewMut<'a, T, 1>> {
        Ok(BufferViewMut::new(self.id.origin(), ViewLayout::range::<T>(self.len, range)?))
    }
}

/// A slot of any element type, for [`Recording::load`](super::Recording::load).
#[derive(Clone, Copy, Debug)]
pub struct AnySlot(pub(super) SlotId);

impl<T: Element> From<Slot<T>> for AnySlot {
    fn from(slot: Slot<T>) -> AnySlot {
        AnySlot(slot.id)
    }
}

impl<T: Element> From<SlotMut<T>> for AnySlot {
    fn from(slot: SlotMut<T>) -> AnySlot {
        AnySlot(slot.id)
    }
}

impl<T: Element> From<SlotMut<T>> for Slot<T> {
    fn from(slot: SlotMut<T>) -> Slot<T> {
        slot.read()
    }
}

impl<'a, T: Element> SliceMutArgument<'a, T> for SlotMut<T> {
    fn argument(self) -> Argument<'a> {
        SliceMutArgument::argument(BufferViewMut::<T, 1>::new(self.id.origin(), ViewLayout::contiguous(self.len)))
    }
}
