//! Where work goes, and the memory that it needs on the way.

use kernel_dsl::launcher::{Launcher, ValueArgument};
use kernel_dsl::{Element, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error, Recording, Slot, SlotMut, Stream};
use std::sync::Arc;

/// Where work is queued, and memory comes from: a device, a stream of it, or a recording, whose graph does the work when it is replayed.
pub trait Queue: Launcher<Error = Error> {
    /// The device that the work runs on.
    fn device(&self) -> &Device;

    /// Queues what `launch` does, which reads a view's memory where launches do not show it: in a struct that has the view
    /// [detached](BufferView::detached).
    ///
    /// # Errors
    /// Those of the launch, and where the driver refuses to wait for those who write the memory.
    fn reading<T: Element, const R: usize>(
        &self,
        view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// A buffer as the launches that are queued here take it.
    ///
    /// # Errors
    /// Where it is another device's.
    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<Memory<T>, Error> {
        Ok(Memory::Buffer(buffer))
    }

    /// A buffer that several own, the weights of a model, say, as launches that are queued here read it.
    ///
    /// # Errors
    /// Where it is another device's.
    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<Shared<T>, Error> {
        Ok(Shared::Buffer(buffer.clone()))
    }

    /// Memory for what one launch leaves to the next. What it holds at first is anything.
    ///
    /// # Errors
    /// Where memory is short.
    fn scratch<T: Element>(&self, len: usize) -> Result<Memory<T>, Error> {
        self.keep(self.device().alloc(len)?)
    }
}

/// A launch has ended when its function returns, so that only those have to be waited for who write before it.
impl Queue for Device {
    fn device(&self) -> &Device {
        self
    }

    fn reading<T: Element, const R: usize>(
        &self,
        view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.is_cpu() {
            let stream = self.stream()?;
            stream.reads(view)?;
            stream.wait()?;
        }
        launch()
    }
}

impl Queue for Stream {
    fn device(&self) -> &Device {
        Stream::device(self)
    }

    fn reading<T: Element, const R: usize>(
        &self,
        view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.reads(view)?;
        launch()?;
        self.reads(view)
    }
}

/// What is kept is the graph's. Scratch memory, too: each call that is recorded has its own.
impl Queue for Recording<'_> {
    fn device(&self) -> &Device {
        Recording::device(self)
    }

    /// Slots are the graph's in any case.
    fn reading<T: Element, const R: usize>(
        &self,
        _view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        launch()
    }

    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<Memory<T>, Error> {
        self.own(buffer).map(Memory::Slot)
    }

    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<Shared<T>, Error> {
        Recording::share(self, buffer.clone()).map(Shared::Slot)
    }
}

/// A device struct that a launch can pass, and a kernel be compiled for: an epilogue, a score.
pub trait Passed: GenericArgument + ValueArgument {}

impl<E: GenericArgument + ValueArgument> Passed for E {}

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

    /// As [`DeviceBuffer::view_strided`].
    ///
    /// # Errors
    /// As there.
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            Memory::Buffer(buffer) => buffer.view_strided(extents, strides),
            Memory::Slot(slot) => slot.view_strided(extents, strides),
        }
    }

    /// As [`DeviceBuffer::view_strided_mut`].
    ///
    /// # Errors
    /// As there.
    pub fn view_strided_mut<const R: usize>(
        &mut self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferViewMut<'_, T, R>, Error> {
        match self {
            Memory::Buffer(buffer) => buffer.view_strided_mut(extents, strides),
            Memory::Slot(slot) => slot.view_strided_mut(extents, strides),
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

/// A buffer that several own, to read: of a device, or lent to a graph in the making.
#[derive(Debug)]
pub enum Shared<T: Element> {
    /// Of a device.
    Buffer(Arc<DeviceBuffer<T>>),
    /// Of a graph.
    Slot(Slot<T>),
}

impl<T: Element> Shared<T> {
    /// As [`DeviceBuffer::view`].
    ///
    /// # Errors
    /// As there.
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            Shared::Buffer(buffer) => buffer.view(extents),
            Shared::Slot(slot) => slot.view(extents),
        }
    }

    /// As [`DeviceBuffer::view_strided`].
    ///
    /// # Errors
    /// As there.
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            Shared::Buffer(buffer) => buffer.view_strided(extents, strides),
            Shared::Slot(slot) => slot.view_strided(extents, strides),
        }
    }
}
