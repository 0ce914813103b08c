//! The target of queued work, and its scratch memory.

use crate::counters::BlockCounters;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::launch::Refusal;
use kernel_dsl::launcher::{LaunchForm, Launcher, ValueArgument};
use kernel_dsl::{Argument, Artifact, Element, GenericArgument};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error, Recording, Slot, SlotMut, Stream};
use std::sync::Arc;

/// The target of queued work, which also allocates memory: a device, a stream, or a recording,
/// whose graph executes the work when it is replayed.
pub trait Queue: Launcher<Error = Error> {
    /// Returns the device that executes the work.
    fn device(&self) -> &Device;

    /// Queues `launch`, which reads a view's memory although its arguments do not show the view: a
    /// struct contains the view [detached](BufferView::detached).
    ///
    /// # Errors
    /// Returns the errors of the launch, and an error if the driver refuses to wait for writers of
    /// the memory.
    fn reading<T: Element, const R: usize>(
        &self,
        view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Converts a buffer to memory for launches that are queued here.
    ///
    /// # Errors
    /// Returns an error if the buffer belongs to another device.
    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<QueueMemory<T>, Error> {
        Ok(QueueMemory::Buffer(buffer))
    }

    /// Shares a buffer with several owners, such as the weights of a model, as memory that launches
    /// queued here read.
    ///
    /// # Errors
    /// Returns an error if the buffer belongs to another device.
    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<SharedBuffer<T>, Error> {
        Ok(SharedBuffer::Buffer(buffer.clone()))
    }

    /// Allocates uninitialized memory for the results that one launch passes to the next.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    fn scratch<T: Element>(&self, len: usize) -> Result<QueueMemory<T>, Error> {
        self.keep(self.device().alloc(len)?)
    }

    /// Returns at least `len` words that are 0 before each launch, for launches that set them back
    /// to 0.
    ///
    /// # Errors
    /// Returns an error if memory is insufficient.
    fn counters(&self, len: usize) -> Result<BlockCounters, Error> {
        self.keep(self.device().zeros(len)?).map(BlockCounters::owned)
    }
}

/// A launch on a device ends before its function returns, so that only earlier writers are waited
/// for.
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

    fn counters(&self, len: usize) -> Result<BlockCounters, Error> {
        BlockCounters::borrowed(self.device(), len)
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

    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<SharedBuffer<T>, Error> {
        Stream::share(self, buffer)?;
        Ok(SharedBuffer::Buffer(buffer.clone()))
    }

    /// Returns words that a launch clears, if launches are recorded: these use other memory later.
    fn counters(&self, len: usize) -> Result<BlockCounters, Error> {
        if !self.records_launches() {
            return BlockCounters::borrowed(self.device(), len);
        }
        BlockCounters::cleared(self, len)
    }
}

/// Kept buffers belong to the graph. So does scratch memory: each recorded call has separate
/// memory.
impl Queue for Recording<'_> {
    fn device(&self) -> &Device {
        Recording::device(self)
    }

    /// Runs `launch` without further synchronization: slots belong to the graph.
    fn reading<T: Element, const R: usize>(
        &self,
        _view: &BufferView<'_, T, R>,
        launch: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        launch()
    }

    fn keep<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<QueueMemory<T>, Error> {
        self.own(buffer).map(QueueMemory::Slot)
    }

    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<SharedBuffer<T>, Error> {
        Recording::share(self, buffer.clone()).map(SharedBuffer::Slot)
    }
}

/// A queue for the launches of a library's call. A refused launch is an error of the call's
/// arguments: its message does not name the kernel, which the caller may not know.
pub(crate) struct LibraryCall<'q, Q: ?Sized>(pub &'q Q);

impl<Q: Launcher<Error = Error> + ?Sized> Launcher for LibraryCall<'_, Q> {
    type Error = Error;

    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Error> {
        // SAFETY: the caller satisfies the requirements of this method, which are those of the
        // inner one.
        let launched = unsafe { self.0.submit(form, kernel, constants, block, arguments) };
        launched.map_err(|error| match error {
            Error::Refused { refusals, .. } => Error::RefusedArguments { refusals },
            other => other,
        })
    }
}

/// Returns a function for errors of arguments that replaces names of a kernel's parameters by the
/// caller's names. Each pair is a parameter and the caller's name.
pub(crate) fn renaming_parameters(names: &'static [[&'static str; 2]]) -> impl Fn(Error) -> Error {
    let named = |text: String| {
        names.iter().fold(text, |text, [from, to]| text.replace(&format!("`{from}`"), &format!("`{to}`")))
    };
    move |error| match error {
        Error::RefusedArguments { refusals } => {
            let mut renamed = Vec::new();
            for Refusal(why) in refusals {
                let refusal = Refusal(named(why));
                // Several parameters may view one argument.
                if !renamed.contains(&refusal) {
                    renamed.push(refusal);
                }
            }
            Error::RefusedArguments { refusals: renamed }
        }
        other => other,
    }
}

/// A device struct that a launch can pass and that a kernel can be compiled for, such as an
/// epilogue or a score.
pub trait LaunchStruct: GenericArgument + ValueArgument {}

impl<E: GenericArgument + ValueArgument> LaunchStruct for E {}

/// Memory of a device, or of a graph that is being recorded. The memory is freed when the last
/// launch that uses it has ended, or with the graph.
#[derive(Debug)]
pub enum QueueMemory<T: Element> {
    /// Memory of a device.
    Buffer(DeviceBuffer<T>),
    /// Memory of a graph.
    Slot(SlotMut<T>),
}

impl<T: Element> QueueMemory<T> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            QueueMemory::Buffer(buffer) => buffer.len(),
            QueueMemory::Slot(slot) => slot.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a view, as [`DeviceBuffer::view`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view`].
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            QueueMemory::Buffer(buffer) => buffer.view(extents),
            QueueMemory::Slot(slot) => slot.view(extents),
        }
    }

    /// Returns a view with strides, as [`DeviceBuffer::view_strided`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view_strided`].
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            QueueMemory::Buffer(buffer) => buffer.view_strided(extents, strides),
            QueueMemory::Slot(slot) => slot.view_strided(extents, strides),
        }
    }

    /// Returns a mutable view with strides, as [`DeviceBuffer::view_strided_mut`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view_strided_mut`].
    pub fn view_strided_mut<const R: usize>(
        &mut self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferViewMut<'_, T, R>, Error> {
        match self {
            QueueMemory::Buffer(buffer) => buffer.view_strided_mut(extents, strides),
            QueueMemory::Slot(slot) => slot.view_strided_mut(extents, strides),
        }
    }

    /// Returns a mutable view, as [`DeviceBuffer::view_mut`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view_mut`].
    pub fn view_mut<const R: usize>(&mut self, extents: [usize; R]) -> Result<BufferViewMut<'_, T, R>, Error> {
        match self {
            QueueMemory::Buffer(buffer) => buffer.view_mut(extents),
            QueueMemory::Slot(slot) => slot.view_mut(extents),
        }
    }
}

/// A read-only buffer with several owners: memory of a device, or a slot of a graph that is being
/// recorded.
#[derive(Debug)]
pub enum SharedBuffer<T: Element> {
    /// A buffer of a device.
    Buffer(Arc<DeviceBuffer<T>>),
    /// A slot of a graph.
    Slot(Slot<T>),
}

impl<T: Element> SharedBuffer<T> {
    /// Returns a view, as [`DeviceBuffer::view`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view`].
    pub fn view<const R: usize>(&self, extents: [usize; R]) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            SharedBuffer::Buffer(buffer) => buffer.view(extents),
            SharedBuffer::Slot(slot) => slot.view(extents),
        }
    }

    /// Returns a view with strides, as [`DeviceBuffer::view_strided`] does.
    ///
    /// # Errors
    /// Returns the errors of [`DeviceBuffer::view_strided`].
    pub fn view_strided<const R: usize>(
        &self,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Result<BufferView<'_, T, R>, Error> {
        match self {
            SharedBuffer::Buffer(buffer) => buffer.view_strided(extents, strides),
            SharedBuffer::Slot(slot) => slot.view_strided(extents, strides),
        }
    }
}
