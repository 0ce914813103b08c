//! The launches of a call, repeated with other memory on a stream of other code.

use super::{OperationQueue, Stream};
use crate::buffer::RawBuffer;
use crate::contract::ValidatedArgs;
use crate::cuda::{Cuda, DriverLaunch, Ready};
use crate::{DeviceBuffer, Result};
use kernel_dsl::{Argument, Element};
use runtime_simt::Lock;
use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

/// The launches that a call submitted to a GPU stream, to be repeated with other memory.
/// [`Stream::record_launches`] returns them.
///
/// A repeated launch is the driver's call alone. The arguments are not validated again, and no
/// tracker, profile or watchdog covers the launch.
pub struct RecordedLaunches {
    cuda: Arc<Cuda>,
    launches: Vec<DriverLaunch>,
    memory: Vec<RecordedMemory>,
    /// For each element of `memory`: the index of its launch, and of the parameter with its
    /// address.
    places: Vec<(usize, usize)>,
    /// Shared buffers that the launches read.
    shared: Vec<Arc<RawBuffer>>,
}

/// The memory of an argument of a recorded launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RecordedMemory {
    /// The device address of the first byte.
    pub address: u64,
    /// The number of bytes from the first to the last, gaps included.
    pub bytes: u64,
    /// Whether the kernel may write the memory.
    pub writes: bool,
    /// Whether the memory belongs to a [shared](Stream::share) buffer, which the recorded launches
    /// keep alive.
    pub shared: bool,
}

/// The work since the start of a recording; `None` if nothing is recorded.
#[derive(Default)]
pub(super) struct Recorder(Lock<Option<RecordedWork>>);

/// Launches, and the buffers that were shared with them.
#[derive(Default)]
struct RecordedWork {
    launches: Vec<Launched>,
    shared: Vec<Arc<RawBuffer>>,
}

/// A launch that was submitted, with its memory and the parameters with the addresses.
struct Launched {
    launch: DriverLaunch,
    memory: Vec<(RecordedMemory, usize)>,
}

impl Recorder {
    /// Adds a buffer that later launches read.
    fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) {
        let mut recorded = self.0.lock();
        if let Some(recorded) = &mut *recorded {
            recorded.shared.push(DeviceBuffer::shared_raw(buffer.clone()));
        }
    }

    /// Adds a launch that was just submitted.
    pub fn add(&self, ready: Ready<'_>, validated: &ValidatedArgs<'_, '_>) {
        let mut recorded = self.0.lock();
        let Some(recorded) = &mut *recorded else { return };
        let launch = ready.into_launch();
        if launch.checked().is_some() {
            // The stream owns a checked launch's record. Without this launch the count differs, and
            // `record_launches` returns `None`.
            return;
        }
        let (mut memory, mut parameter) = (Vec::new(), 0);
        for (index, argument) in validated.arguments().iter().enumerate() {
            parameter += match argument {
                Argument::Scalar { .. } => 1,
                Argument::Memory(of) => {
                    let bytes = of.bytes();
                    memory.push((
                        RecordedMemory { address: of.address(), bytes, writes: validated.writes(index), shared: false },
                        parameter,
                    ));
                    1 + of.shape().numbers().count()
                }
            };
        }
        recorded.launches.push(Launched { launch, memory });
    }
}

impl Stream {
    /// Shares a buffer with launches of this stream that read it. A
    /// [recording](Stream::record_launches) of them keeps the buffer.
    ///
    /// # Errors
    /// If the buffer belongs to another device.
    pub fn share<T: Element>(&self, buffer: &Arc<DeviceBuffer<T>>) -> Result<()> {
        self.same_device(buffer.device(), "the shared buffer")?;
        self.recorder.share(buffer);
        Ok(())
    }

    /// Returns whether [`record_launches`](Stream::record_launches) runs, in any thread.
    pub fn records_launches(&self) -> bool {
        self.recorder.0.lock().is_some()
    }

    /// Runs `work`, which submits to this stream, and returns its result and its launches. The
    /// launches are `None` on the CPU, and if the work submits anything other than launches of
    /// unchecked kernels. Examples are a copy, a fill, or a declared read of memory that no
    /// argument shows.
    ///
    /// If another thread submits to the stream meanwhile, the launches are `None`, or include those
    /// of the other thread.
    ///
    /// # Errors
    /// The result is that of `work`. If it is an error, the launches are `None`.
    pub fn record_launches(&self, work: impl FnOnce(&Stream) -> Result<()>) -> (Result<()>, Option<RecordedLaunches>) {
        let OperationQueue::Cuda(cuda, stream) = &self.queue else { return (work(self), None) };
        let recorder = || self.recorder.0.lock();
        let before = stream.last_point().count;
        *recorder() = Some(RecordedWork::default());
        let done = work(self);
        let Some(RecordedWork { launches, shared }) = recorder().take() else { return (done, None) };
        // Every operation increments the count, so a difference reveals other operations.
        if done.is_err() || stream.last_point().count - before != launches.len() as u64 {
            return (done, None);
        }
        let (memory, places) = (Vec::new(), Vec::new());
        let mut all = RecordedLaunches { cuda: cuda.clone(), launches: Vec::new(), memory, places, shared };
        for Launched { launch, memory } in launches {
            for (mut memory, parameter) in memory {
                memory.shared = !memory.writes && all.shared.iter().any(|buffer| memory.is_of(buffer));
                all.memory.push(memory);
                all.places.push((all.launches.len(), parameter));
            }
            all.launches.push(launch);
        }
        (done, Some(all))
    }
}

impl RecordedMemory {
    fn is_of(&self, buffer: &RawBuffer) -> bool {
        let (start, end) = (buffer.address(), buffer.address() + buffer.bytes() as u64);
        self.bytes > 0 && start <= self.address && self.address + self.bytes <= end
    }
}

impl RecordedLaunches {
    /// Returns the memory of all launches, in the order of their arguments.
    pub fn memory(&self) -> &[RecordedMemory] {
        &self.memory
    }

    /// Drops the shared buffers, except those with a byte of `memory`. Later launches need other
    /// addresses for the dropped ones.
    pub fn keep_shared(&mut self, memory: &[RecordedMemory]) {
        self.shared.retain(|buffer| memory.iter().any(|memory| memory.is_of(buffer)));
    }

    /// Submits the launches to a stream of other code, with memory at other addresses, in the
    /// order of [`memory`](RecordedLaunches::memory).
    ///
    /// # Errors
    /// If the device is lost, or the driver rejects a launch.
    ///
    /// # Panics
    /// If the number of addresses is not that of [`memory`](RecordedLaunches::memory).
    ///
    /// # Safety
    /// `handle` is a live `CUstream` of the device's primary context, or one of the driver's
    /// default streams: null, 1 or 2.
    ///
    /// Each address begins memory of this device that is as large as the recorded memory and has
    /// its alignment. The bytes are alive until the launches are over. Memory that is written
    /// shares no byte with memory of another recorded address. In the order of the stream, no other
    /// code uses the bytes meanwhile.
    ///
    /// The values that the kernels read from memory, such as indices, are as valid for these
    /// launches as they were for the recorded ones.
    pub unsafe fn launch(&mut self, handle: *mut c_void, addresses: &[u64]) -> Result<()> {
        assert_eq!(addresses.len(), self.places.len(), "an address for each of the recorded memory");
        for ((launch, parameter), address) in self.places.iter().zip(addresses) {
            self.launches[*launch].set_parameter(*parameter, *address);
        }
        // SAFETY: the recorded arguments were validated, and launches without a record remained;
        // the caller guarantees the rest.
        self.launches.iter().try_for_each(|launch| unsafe { self.cuda.submit_untracked(handle, launch) })
    }
}

impl fmt::Debug for RecordedLaunches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.launches.iter().map(DriverLaunch::instance).collect();
        write!(f, "RecordedLaunches({})", names.join(", "))
    }
}
