//! Streams: work in the order in which it was submitted, beside the work of other streams and of the host.
//!
//! Which operation of one stream must not overtake which of another is known from the memory that they use ([`uses`](self::uses)):
//! nobody has to say it, and nobody can forget it. What is not told by memory, an [`Event`] says.

mod event;
mod prepared;
mod profiling;
mod queue;

pub use event::Event;
pub use prepared::Prepared;
use profiling::Recording;
pub(crate) use queue::Queue;

use crate::cuda::{CudaStream, Variant};
use crate::device::Backend;
use crate::hazard::{Access, AccessSet};
use crate::{BufferView, Device, DeviceBuffer, Error, PinnedBuffer, Result, Work};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Argument, Artifact, Element, Launcher};
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Work for a device, done in the order in which it is submitted, while the host goes on.
///
/// A kernel takes it in place of a [`Device`]: `saxpy::launch(&stream, …)` returns once the launch is submitted. What a checked launch finds is the
/// error of whatever next waits for the stream: [`wait`](Stream::wait).
///
/// Buffers are borrowed only while work is submitted. An operation that uses what another stream is still to write, or writes what another is
/// still to read, waits for that by itself, on the device; so does the host where it reads a buffer, and so does whoever gets the
/// memory of a buffer that was dropped meanwhile. Only views that were [detached](crate::BufferView::detached) are the caller's business.
///
/// On the CPU each operation is over when it has been submitted. Errors come where they would on a GPU.
///
/// ```
/// # fn main() -> runtime::Result<()> {
/// let device = runtime::Device::cpu();
/// let stream = device.stream()?;
/// let mut x = stream.upload(&[1.0f32, 2.0, 3.0])?;
/// stream.fill_zero(&mut x)?;
/// stream.wait()?;
/// assert_eq!(x.download()?, [0.0; 3]);
/// # Ok(())
/// # }
/// ```
///
/// Dropping a stream does not end its work; an error that nobody waited for is not told.
pub struct Stream {
    device: Device,
    queue: Queue,
    /// On the CPU: what the first launch since the last wait found that found anything.
    found: Mutex<Option<Error>>,
    /// The same, while it is profiled.
    recording: Recording,
}

impl Device {
    /// A new stream.
    pub fn stream(&self) -> Result<Stream> {
        let queue = match self.backend() {
            Backend::Cpu(_) => Queue::Cpu,
            Backend::Cuda(cuda) => Queue::Cuda(cuda.clone(), cuda.acquire_stream()?),
        };
        Ok(Stream { device: self.clone(), queue, found: Mutex::default(), recording: Recording::default() })
    }
}

impl Stream {
    /// Where what a profile tells is noted.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The device that does the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The driver's handle, a `CUstream`, for whatever else speaks to the driver, such as a library that submits work of its own here; it is good
    /// as long as the stream. What is done with it is not noted: only this stream's work is in order with it. `None` on the CPU.
    pub fn driver_handle(&self) -> Option<*mut c_void> {
        self.queue.stream().map(|stream| stream.handle())
    }

    /// Waits until all that was submitted is over. The error is what the first checked launch found, since the last wait, that found
    /// anything; or what the driver says, which concerns all of the device.
    pub fn wait(&self) -> Result<()> {
        self.queue.wait()?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Marks the place between what was submitted so far and what comes.
    pub fn record(&self) -> Result<Event> {
        Event::new(&self.device, &self.queue)
    }

    /// Has what is submitted from now on wait until `event` is over: on the device, where both are of GPUs.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        match self.queue.stream() {
            Some(stream) => event.hold(stream),
            None => event.wait(),
        }
    }

    /// A buffer that holds a copy of `data`. The data may change or go as soon as this returns: it passes through pinned memory of the
    /// device's own.
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        let mut pinned = self.device.pinned(data.len())?;
        pinned.as_mut_slice()?.copy_from_slice(data);
        let mut buffer = self.device.alloc(data.len())?;
        self.upload_to(&mut buffer, &pinned)?;
        Ok(buffer)
    }

    /// Copies all of `from` to a buffer of as many elements. Both are of the stream's device.
    pub fn upload_to<T: Element>(&self, to: &mut DeviceBuffer<T>, from: &PinnedBuffer<T>) -> Result<()> {
        self.same_device(to.device(), "the buffer")?;
        self.same_device(from.device(), "the pinned buffer")?;
        same_length("to the device", to.len(), from.len())?;
        let used = AccessSet::written(to.uses()).and(Access::Read(from.uses()));
        // SAFETY: both are as long, their uses are noted, and by these whoever writes or frees either waits.
        let copy = || unsafe { self.queue.write(&used, to.address(), from.pointer(), to.bytes()) };
        self.recording.time(|| Work::Upload { bytes: to.bytes() }, copy)
    }

    /// Copies all of a buffer to `to`, which has as many elements; who then looks at them waits for it. Both are of the stream's device.
    pub fn download_to<T: Element>(&self, from: &DeviceBuffer<T>, to: &mut PinnedBuffer<T>) -> Result<()> {
        self.same_device(from.device(), "the buffer")?;
        self.same_device(to.device(), "the pinned buffer")?;
        same_length("from the device", from.len(), to.len())?;
        let memory = to.pointer_mut();
        let used = AccessSet::read(from.uses()).and(Access::Write(to.uses()));
        // SAFETY: as in `upload_to`; `to` is exclusive.
        let copy = || unsafe { self.queue.read(&used, from.address(), memory, from.bytes()) };
        self.recording.time(|| Work::Download { bytes: from.bytes() }, copy)
    }

    /// Copies all elements of a buffer to one of as many of the stream's device. The first may be of another device: between two GPUs
    /// the copy runs beside the host, from memory to memory where they reach each other's; from the CPU it passes through pinned
    /// memory; to the CPU it has ended when this returns, as everything there has.
    pub fn copy<T: Element>(&self, from: &DeviceBuffer<T>, to: &mut DeviceBuffer<T>) -> Result<()> {
        self.same_device(to.device(), "the buffer to write")?;
        same_length("between buffers", to.len(), from.len())?;
        let copy = || match (from.device().backend(), self.device.backend()) {
            _ if from.device().id() == self.device.id() => {
                let used = AccessSet::read(from.uses()).and(Access::Write(to.uses()));
                // SAFETY: both are as long, and two: one of them is exclusive. Their uses are noted.
                unsafe { self.queue.copy(&used, from.address(), to.address(), to.bytes()) }
            }
            (Backend::Cuda(other), Backend::Cuda(_)) => {
                let (read, written) = (AccessSet::read(from.uses()), AccessSet::written(to.uses()));
                // SAFETY: as above.
                unsafe { self.queue.copy_from(&written, to.address(), (other, &read, from.address()), to.bytes()) }
            }
            (Backend::Cpu(_), _) => {
                let mut pinned = self.device.pinned(from.len())?;
                from.copy_to(pinned.as_mut_slice()?)?;
                self.upload_to(to, &pinned)
            }
            (Backend::Cuda(_), Backend::Cpu(_)) => match to.as_mut_slice() {
                Some(to) => from.copy_to(to),
                None => Ok(()),
            },
        };
        self.recording.time(|| Work::Copy { bytes: from.bytes() }, copy)
    }

    /// Says that the stream's work reads a view's memory where launches do not show it: in a struct with the view
    /// [detached](BufferView::detached). What is submitted from now on waits for who writes that memory now, and who writes or frees it later
    /// waits for what has been submitted by now. So this is called before such a launch and after it.
    ///
    /// # Errors
    /// Where the view is of another device, or the driver refuses to wait.
    pub fn reads<T: Element, const R: usize>(&self, view: &BufferView<'_, T, R>) -> Result<()> {
        if view.device_id() != self.device.id() {
            let found = "another device or a recording".to_string();
            return Err(Error::OtherDevice { what: "the view", found, stream: self.device.to_string() });
        }
        match &self.queue {
            Queue::Cpu => Ok(()),
            Queue::Cuda(cuda, stream) => cuda.note(stream, &view.used()),
        }
    }

    /// Sets all elements to 0.
    pub fn fill_zero<T: Element>(&self, buffer: &mut DeviceBuffer<T>) -> Result<()> {
        self.same_device(buffer.device(), "the buffer")?;
        let used = AccessSet::written(buffer.uses());
        // SAFETY: the buffer's own bytes, exclusive; the use is noted.
        let fill = || unsafe { self.queue.fill(&used, buffer.address(), buffer.bytes(), 0) };
        self.recording.time(|| Work::Fill { bytes: buffer.bytes() }, fill)
    }

    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    pub(crate) fn same_device(&self, other: &Device, what: &'static str) -> Result<()> {
        if self.device.id() == other.id() {
            return Ok(());
        }
        Err(Error::OtherDevice { what, found: other.to_string(), stream: self.device.to_string() })
    }

    /// Submits a launch.
    ///
    /// # Safety
    /// The kernel is free of out-of-bounds accesses and races for these arguments, unless it is the checked form.
    unsafe fn submit(
        &self,
        form: Variant,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        match &self.queue {
            Queue::Cpu => {
                // SAFETY: by the caller's promise.
                let run = || unsafe { self.device.run(form, kernel, constants, block, arguments) };
                let work = || self.device.work(kernel, constants, block, arguments);
                self.later(self.recording.time(work, run))
            }
            Queue::Cuda(cuda, stream) => {
                self.device.approved(kernel, constants, block, arguments, |program, approved| {
                    let mut launch = cuda.ready(form, kernel, program, approved)?;
                    // SAFETY: the memory of the arguments is borrowed, and noted for whoever frees it; the rest by the caller's promise.
                    unsafe { cuda.submit(stream, &mut launch) }
                })
            }
        }
    }

    /// What a launch on the CPU gives: what it found is told later.
    pub(crate) fn later(&self, launched: Result<()>) -> Result<()> {
        match launched {
            Err(found @ Error::Violation(_)) => {
                self.found.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(found);
                Ok(())
            }
            other => other,
        }
    }
}

fn same_length(direction: &'static str, buffer: usize, slice: usize) -> Result<()> {
    if buffer == slice { Ok(()) } else { Err(Error::Length { direction, buffer, slice }) }
}

/// As for [`Device`], only that a launch is submitted when its function returns. Arguments that do not meet the contract are refused
/// at once.
impl Launcher for Stream {
    type Error = Error;

    fn launch(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // SAFETY: it is the checked form.
        unsafe { self.submit(Variant::Checked, kernel, constants, block, arguments) }
    }

    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.submit(Variant::Unchecked, kernel, constants, block, arguments) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Queue::Cuda(cuda, stream) = &self.queue {
            cuda.give_lane(stream);
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.device)
    }
}

impl Queue {
    fn stream(&self) -> Option<&Arc<CudaStream>> {
        match self {
            Queue::Cpu => None,
            Queue::Cuda(_, stream) => Some(stream),
        }
    }
}
