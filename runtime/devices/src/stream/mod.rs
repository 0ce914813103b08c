//! Streams: work in submission order, concurrent with other streams and with the host.
//!
//! The order between streams follows from the memory that operations use
//! ([`hazard`](crate::hazard)); the program does not state it. An [`Event`] states an order that
//! memory does not show.

mod event;
mod prepared;
mod profiling;
mod queue;
mod recorded;

pub use event::Event;
pub use prepared::Prepared;
use profiling::ProfiledOperations;
pub(crate) use queue::OperationQueue;
use recorded::Recorder;
pub use recorded::{RecordedLaunches, RecordedMemory};

use crate::buffer::{RawBuffer, same_length};
use crate::cuda::CudaStream;
use crate::device::Backend;
use crate::hazard::{AccessSet, BufferAccess};
use crate::{BufferView, Device, DeviceBuffer, Error, PinnedBuffer, ProfiledWork, Result};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::{Argument, Artifact, Element, LaunchForm, Launcher};
use runtime_simt::Lock;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// An in-order queue of work for a device. The host continues while the stream works.
///
/// A kernel takes a stream in place of a [`Device`]: `saxpy::launch(&stream, …)` returns once the
/// launch is submitted. A violation found by a checked launch is the error of the next wait for the
/// stream: [`wait`](Stream::wait).
///
/// Buffers are borrowed only during submission. An operation waits on the device for other streams'
/// pending writes to its memory, and before a write for their pending reads. The host waits in the
/// same way when it reads a buffer, and so does the next owner of a dropped buffer's memory. The
/// caller is responsible only for views that were [detached](crate::BufferView::detached).
///
/// On the CPU an operation is complete when it has been submitted. Errors are reported at the same
/// calls as on a GPU.
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
/// Dropping a stream does not cancel its work; an error that no wait returned is lost.
pub struct Stream {
    device: Device,
    queue: OperationQueue,
    /// On the CPU: the first violation since the last wait.
    found: Lock<Option<Error>>,
    /// On the CPU: the profile that is being recorded.
    recording: ProfiledOperations,
    /// On a GPU: the launches of a call that is being recorded.
    recorder: Recorder,
}

impl Device {
    /// Opens a new stream.
    ///
    /// # Errors
    /// If the device is lost, or has the maximum number of streams.
    pub fn stream(&self) -> Result<Stream> {
        let queue = match self.backend() {
            Backend::Cpu(_) => OperationQueue::Cpu,
            Backend::Cuda(cuda) => OperationQueue::Cuda(cuda.clone(), cuda.acquire_stream()?),
        };
        let (recording, recorder) = (ProfiledOperations::default(), Recorder::default());
        Ok(Stream { device: self.clone(), queue, found: Lock::default(), recording, recorder })
    }
}

impl Stream {
    /// Returns the recorder of profiles.
    pub(crate) fn recording(&self) -> &ProfiledOperations {
        &self.recording
    }

    /// Returns the device that runs the work.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the driver's handle, a `CUstream`, for other users of the driver, such as a library
    /// that submits its own work. The handle is valid as long as the stream. Work submitted through
    /// the handle is not tracked: only this stream's work is ordered with it. `None` on the CPU.
    pub fn driver_handle(&self) -> Option<*mut c_void> {
        self.queue.stream().map(|stream| stream.handle())
    }

    /// Waits until all submitted work is complete.
    ///
    /// # Errors
    /// Returns the first violation that a checked launch found since the last wait, or a driver
    /// error, which concerns the whole device.
    pub fn wait(&self) -> Result<()> {
        self.queue.wait()?;
        self.found.lock().take().map_or(Ok(()), Err)
    }

    /// Returns the number of operations submitted so far: launches, copies and fills. The number is
    /// 0 on the CPU, where an operation is complete when it is submitted.
    pub fn submitted(&self) -> u64 {
        self.queue.stream().map_or(0, |stream| stream.last_point().count)
    }

    /// Returns an event that is complete when all work submitted so far is complete.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn record(&self) -> Result<Event> {
        Event::new(&self.device, &self.queue)
    }

    /// Makes later work wait until `event` is complete. If stream and event both belong to GPUs,
    /// the wait is on the device, otherwise on the host.
    ///
    /// # Errors
    /// If one of the devices is lost.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        match self.queue.stream() {
            Some(stream) => event.delay(stream),
            None => event.wait(),
        }
    }

    /// Makes later work wait for all work that other code has submitted to `handle`, a `CUstream`.
    /// On the CPU this function has no effect.
    ///
    /// # Errors
    /// If the device is lost.
    ///
    /// # Safety
    /// `handle` is a live stream of the device's primary context, or one of the driver's default
    /// streams: null, 1 or 2.
    pub unsafe fn wait_for_handle(&self, handle: *mut c_void) -> Result<()> {
        // SAFETY: by the caller's promise.
        self.queue.stream().map_or(Ok(()), |stream| unsafe { stream.wait_for_handle(handle) })
    }

    /// Makes later work of `handle`, a `CUstream` of other code, wait for all work submitted here.
    /// On the CPU this function has no effect.
    ///
    /// # Errors
    /// If the device is lost.
    ///
    /// # Safety
    /// `handle` is as [`wait_for_handle`](Stream::wait_for_handle) requires.
    pub unsafe fn hold_handle(&self, handle: *mut c_void) -> Result<()> {
        // SAFETY: by the caller's promise.
        self.queue.stream().map_or(Ok(()), |stream| unsafe { stream.hold_handle(handle) })
    }

    /// Allocates a buffer with a copy of `data`. The caller may change or drop `data` after the
    /// return, because the copy is staged in pinned memory.
    ///
    /// # Errors
    /// If the device is out of memory or lost.
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<DeviceBuffer<T>> {
        let mut pinned = self.device.pinned(data.len())?;
        pinned.as_mut_slice()?.copy_from_slice(data);
        let mut buffer = self.device.alloc(data.len())?;
        self.upload_to(&mut buffer, &pinned)?;
        Ok(buffer)
    }

    /// Copies all elements of `from` to `to`, while the host continues.
    ///
    /// # Errors
    /// If the lengths differ, or one of the buffers belongs to another device.
    pub fn upload_to<T: Element>(&self, to: &mut DeviceBuffer<T>, from: &PinnedBuffer<T>) -> Result<()> {
        self.same_device(to.device(), "the buffer")?;
        self.same_device(from.device(), "the pinned buffer")?;
        same_length(("the pinned buffer", from.len()), ("the buffer", to.len()))?;
        let used = AccessSet::written(to.uses()).and(BufferAccess::Read(from.uses()));
        // SAFETY: both have equal length. The accesses to both are tracked, so a later write or
        // free of either waits.
        let copy = || unsafe { self.queue.write(&used, to.address(), from.pointer(), to.bytes()) };
        self.recording.time(|| ProfiledWork::Upload { bytes: to.bytes() }, copy)
    }

    /// Copies all elements of `from` to `to`, while the host continues. Reading `to` waits for the
    /// copy.
    ///
    /// # Errors
    /// If the lengths differ, or one of the buffers belongs to another device.
    pub fn download_to<T: Element>(&self, from: &DeviceBuffer<T>, to: &mut PinnedBuffer<T>) -> Result<()> {
        self.same_device(from.device(), "the buffer")?;
        self.same_device(to.device(), "the pinned buffer")?;
        same_length(("the buffer", from.len()), ("the pinned buffer", to.len()))?;
        let memory = to.pointer_mut();
        let used = AccessSet::read(from.uses()).and(BufferAccess::Write(to.uses()));
        // SAFETY: as in `upload_to`; `to` is exclusive.
        let copy = || unsafe { self.queue.read(&used, from.address(), memory, from.bytes()) };
        self.recording.time(|| ProfiledWork::Download { bytes: from.bytes() }, copy)
    }

    /// Copies all bytes of `from` to `to`.
    ///
    /// # Safety
    /// Both belong to the stream's device, are equally long and are distinct. No other thread
    /// submits work that uses the memory of `to`.
    #[doc(hidden)]
    pub unsafe fn copy_raw(&self, from: &RawBuffer, to: &RawBuffer) -> Result<()> {
        let used = AccessSet::read(from.uses()).and(BufferAccess::Write(to.uses()));
        // SAFETY: by the caller's promise. The accesses are tracked.
        unsafe { self.queue.copy(&used, from.address(), to.address(), to.bytes()) }
    }

    /// Copies all elements of a buffer to a buffer of equal length on the stream's device. The
    /// source may belong to another device. Between two GPUs the copy runs concurrently with the
    /// host, directly where they have peer access. A copy from the CPU to a GPU passes through
    /// pinned memory. A copy to the CPU is complete when this function returns.
    ///
    /// # Errors
    /// If the lengths differ, or `to` belongs to another device than the stream.
    pub fn copy<T: Element>(&self, from: &DeviceBuffer<T>, to: &mut DeviceBuffer<T>) -> Result<()> {
        self.same_device(to.device(), "the buffer to write")?;
        same_length(("the buffer to read", from.len()), ("the buffer to write", to.len()))?;
        let copy = || match (from.device().backend(), self.device.backend()) {
            _ if from.device().id() == self.device.id() => {
                let used = AccessSet::read(from.uses()).and(BufferAccess::Write(to.uses()));
                // SAFETY: both have equal length, and they are distinct because one of them is
                // exclusive. The accesses to both are tracked.
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
        self.recording.time(|| ProfiledWork::Copy { bytes: from.bytes() }, copy)
    }

    /// Declares that the stream's work reads the memory of a view that no launch argument shows,
    /// because a struct contains the view [detached](BufferView::detached). Later work waits for
    /// pending writes to that memory, and later writes or frees of it wait for the work submitted
    /// so far. Call this function both before and after such a launch.
    ///
    /// # Errors
    /// If the view belongs to another device, or the driver rejects the wait.
    pub fn reads<T: Element, const R: usize>(&self, view: &BufferView<'_, T, R>) -> Result<()> {
        if view.device_id() != self.device.id() {
            let found = "another device or a recording".to_string();
            return Err(Error::OtherDevice { item: "the view", found, stream: self.device.to_string() });
        }
        match &self.queue {
            OperationQueue::Cpu => Ok(()),
            OperationQueue::Cuda(cuda, stream) => cuda.record_accesses(stream, &view.access()),
        }
    }

    /// Sets all elements to 0, in stream order.
    ///
    /// # Errors
    /// If the buffer belongs to another device.
    pub fn fill_zero<T: Element>(&self, buffer: &mut DeviceBuffer<T>) -> Result<()> {
        self.same_device(buffer.device(), "the buffer")?;
        let used = AccessSet::written(buffer.uses());
        // SAFETY: these are the buffer's own bytes, which are exclusive; the write is tracked.
        let fill = || unsafe { self.queue.fill(&used, buffer.address(), buffer.bytes(), 0) };
        self.recording.time(|| ProfiledWork::Fill { bytes: buffer.bytes() }, fill)
    }

    pub(crate) fn queue(&self) -> &OperationQueue {
        &self.queue
    }

    pub(crate) fn same_device(&self, other: &Device, what: &'static str) -> Result<()> {
        if self.device.id() == other.id() {
            return Ok(());
        }
        Err(Error::OtherDevice { item: what, found: other.to_string(), stream: self.device.to_string() })
    }

    /// Returns the result of a launch on the CPU, except that a violation is kept for the next
    /// wait.
    pub(crate) fn defer_violation(&self, launched: Result<()>) -> Result<()> {
        match launched {
            Err(found @ Error::Violation(_)) => {
                self.found.lock().get_or_insert(found);
                Ok(())
            }
            other => other,
        }
    }
}

impl Stream {
    /// Submits a launch of the kernel's unchecked PTX to a stream of other code. No tracker,
    /// profile or watchdog covers the launch. On the CPU the launch runs here, checked.
    ///
    /// # Errors
    /// If the arguments violate the kernel's contract, the kernel cannot be loaded, or the device
    /// is lost.
    ///
    /// # Safety
    /// `handle` is as [`wait_for_handle`](Stream::wait_for_handle) requires. For these arguments
    /// the kernel is free of out-of-bounds accesses and races. The memory is alive until the
    /// launch is over, and in the order of `handle` no other code uses it meanwhile.
    pub unsafe fn submit_to(
        &self,
        handle: *mut c_void,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let OperationQueue::Cuda(cuda, _) = &self.queue else {
            // SAFETY: by the caller's promise.
            return unsafe { self.submit(LaunchForm::Unchecked, kernel, constants, block, arguments) };
        };
        self.device.validated(kernel, constants, block, arguments, |program, validated| {
            let launch = cuda.prepare_launch(LaunchForm::Unchecked, kernel, program, validated)?.into_launch();
            // SAFETY: the unchecked form has no record; the caller guarantees the rest.
            unsafe { cuda.submit_untracked(handle, &launch) }
        })
    }
}

/// Submits launches: like [`Device`], except that the function returns after submission. Arguments
/// that violate the contract are rejected at once.
impl Launcher for Stream {
    type Error = Error;

    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        match &self.queue {
            OperationQueue::Cpu => {
                // SAFETY: by the caller's promise.
                let run = || unsafe { self.device.submit(form, kernel, constants, block, arguments) };
                let work = || self.device.work(kernel, constants, block, arguments);
                self.defer_violation(self.recording.time(work, run))
            }
            OperationQueue::Cuda(cuda, stream) => {
                self.device.validated(kernel, constants, block, arguments, |program, validated| {
                    let mut launch = cuda.prepare_launch(form, kernel, program, validated)?;
                    // SAFETY: the memory of the arguments is borrowed, and tracked so that a free
                    // waits; the caller guarantees the rest.
                    unsafe { cuda.submit(stream, &mut launch)? };
                    self.recorder.add(launch, validated);
                    Ok(())
                })
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let OperationQueue::Cuda(cuda, stream) = &self.queue {
            cuda.release_stream(stream);
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.device)
    }
}

impl OperationQueue {
    fn stream(&self) -> Option<&Arc<CudaStream>> {
        match self {
            OperationQueue::Cpu => None,
            OperationQueue::Cuda(_, stream) => Some(stream),
        }
    }
}
