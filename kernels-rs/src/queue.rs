//! Where work goes, and the memory that it needs on the way.

use kernel_dsl::Element;
use kernel_dsl::launcher::Launcher;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error, Recording, SlotMut, Stream};

/// Where work is queued, and memory comes from: a device, a stream of it, or a recording, whose graph does the work when it is replayed.
pub trait Queue: Launcher<Error = Error> {
    /// The device that the work runs on.
    fn device(&self) -> &Device;

    /// A buffer as the launches that are queued here take it.
    ///
    /// # Errors
    /// Where it is another device's.
    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<Memory<T>, Error> {
        Ok(Memory::Buffer(buffer))
    }

    /// Memory for what one launch leaves to the next. What it holds at first is anything.
    ///
    /// # Errors
    /// Where memory is short.
    fn scratch<T: Element>(&self, len: usize) -> Result<Memory<T>, Error> {
        self.keep(self.device().alloc(len)?)
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

/// What is kept is the graph's. Scratch memory, too: each call that is recorded has its own.
impl Queue for Recording<'_> {
    fn device(&self) -> &Device {
        Recording::device(self)
    }

    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<Memory<T>, Error> {
        self.own(buffer).map(Memory::Slot)
    }
}

/// Memory of a device, or of a graph in the making. It goes back when the last launch that uses it has run, or with the graph.
#[derive(Debug)]
pub enum Memory<T: Element> {
    /// Of a device.
    Buffer(DeviceBuffer<T>),
    /// Of a graph.
    Slot(SlotMut<T>),
}

impl<T: Element> Memory<T> {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self {
            Memory::Buffer(buffer) => buffer.len(),
            Memory::Slot(slot) => slot.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As [`DeviceBuffer::view`].
    ///
    /// # Errors
    /// As there.
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            Memory::Buffer(buffer) => buffer.view(extents),
            Memory::Slot(slot) => slot.view(extents),
        }
    }

    /// As [`DeviceBuffer::view_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> Result<BufferViewMut<'_, T, R>, Error> {
        match self {
            Memory::Buffer(buffer) => buffer.view_mut(extents),
            Memory::Slot(slot) => slot.view_mut(extents),
        }
    }
}
