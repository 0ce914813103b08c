//! Where work goes, and the memory that it needs on the way.

use kernel_dsl::Element;
use kernel_dsl::launcher::Launcher;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error, Recording, SlotMut, Stream};

/// Where work is queued, and memory comes from: a device, a stream of it, or a recording, whose graph does the work when it is replayed.
pub trait Queue: Launcher<Error = Error> {
    /// The device that the work runs on.
    fn device(&self) -> &Device;

    /// Memory for what one launch leaves to the next. What it holds at first is anything.
    ///
    /// # Errors
    /// Where memory is short.
    fn scratch<T: Element>(&self, len: usize) -> Result<Scratch<T>, Error> {
        self.device().alloc(len).map(Scratch::Buffer)
    }
}

impl Queue for Device {
    fn device(&self) -> &Device {
        self
    }
}

impl Queue for Stream {
    fn device(&self) -> &Device {
        Stream::device(self)
    }
}

/// Scratch memory is the graph's: each call that is recorded has its own.
impl Queue for Recording<'_> {
    fn device(&self) -> &Device {
        Recording::device(self)
    }

    fn scratch<T: Element>(&self, len: usize) -> Result<Scratch<T>, Error> {
        self.own(Recording::device(self).alloc(len)?).map(Scratch::Slot)
    }
}

/// Memory between launches. It goes back when the last of them has run.
#[derive(Debug)]
pub enum Scratch<T: Element> {
    /// Of a device.
    Buffer(DeviceBuffer<T>),
    /// Of a graph.
    Slot(SlotMut<T>),
}

impl<T: Element> Scratch<T> {
    /// As [`DeviceBuffer::view`].
    ///
    /// # Errors
    /// As there.
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            Scratch::Buffer(buffer) => buffer.view(extents),
            Scratch::Slot(slot) => slot.view(extents),
        }
    }

    /// As [`DeviceBuffer::view_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> Result<BufferViewMut<'_, T, R>, Error> {
        match self {
            Scratch::Buffer(buffer) => buffer.view_mut(extents),
            Scratch::Slot(slot) => slot.view_mut(extents),
        }
    }
}
