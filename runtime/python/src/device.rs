//! Open devices, and streams.

use crate::error;
use crate::foreign::Held;
use crate::fork::{self, ForkLock};
use kernel_dsl_compiler::lock::Lock;
use kernels_rs::rotary::{PairLayout, Rotary};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use runtime::{Device, DeviceBuffer, Event, RecordedLaunches};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::fmt;
use std::panic::resume_unwind;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The devices, which cache compiled kernels and memory between calls.
pub static OPENED: ForkLock<Vec<(Where, Arc<Opened>)>> = ForkLock::new();

/// The place of an array, and the device that computes on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// Host memory, and the CPU device.
    Cpu,
    /// A GPU, by the driver's number.
    Cuda(usize),
}

impl fmt::Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Where::Cpu => f.write_str("cpu"),
            Where::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
        }
    }
}

impl Where {
    /// Parses `cpu`, `cuda` or `cuda:1`, or an object that prints so, such as a `torch.device`.
    pub fn of(name: &Bound<'_, PyAny>) -> PyResult<Where> {
        let name = name.str()?.to_string();
        let ordinal = |text: &str| text.parse().ok().map(Where::Cuda);
        let found = match name.split_once(':') {
            None if name == "cpu" => Some(Where::Cpu),
            None if name == "cuda" => Some(Where::Cuda(0)),
            Some(("cuda", number)) => ordinal(number),
            _ => None,
        };
        found.ok_or_else(|| PyValueError::new_err(format!("no device `{name}`: expected cpu, cuda or cuda:N")))
    }

    /// Opens the device, once in a process.
    pub fn open(self, py: Python<'_>) -> PyResult<Arc<Opened>> {
        py.detach(|| self.open_detached()).map_err(|e| error::runtime(py, e))
    }

    /// Opens the device, once in a process, without the GIL.
    pub fn open_detached(self) -> runtime::Result<Arc<Opened>> {
        let mut opened = OPENED.lock();
        opened.retain(|(_, device)| device.device.lost().is_none());
        if let Some((_, device)) = opened.iter().find(|(place, _)| *place == self) {
            return Ok(device.clone());
        }
        let device = Arc::new(Opened::new(self)?);
        opened.push((self, device.clone()));
        Ok(device)
    }
}

/// An open device with the stream of its synchronous calls.
pub struct Opened {
    pub device: Device,
    pub stream: runtime::Stream,
    /// The lock that a thread holds from a launch to the end of the wait. Each thread thus gets
    /// only the errors of its calls.
    calls: Lock<()>,
    later: Lock<Later>,
    pub recording: FunctionRecording,
    /// Tables of rotary embeddings. None is dropped, because recorded launches read them.
    rotary: Lock<Vec<(RotaryKey, Arc<Rotary>)>>,
    /// Frequencies of rotary embeddings, by their bits.
    frequencies: Lock<Vec<UploadedFrequencies>>,
}

/// The bits of frequencies, and the frequencies in memory of the device.
type UploadedFrequencies = (Vec<u32>, Arc<DeviceBuffer<f32>>);

/// The layout, the bits of the frequencies, and the axes.
type RotaryKey = (PairLayout, Vec<u32>, Vec<u32>);

/// The maximum number of rotary tables, and of lists of frequencies. A model has one, or one for
/// each kind of layer.
const MAX_ROTARY_TABLES: usize = 64;

/// The recording of a function's launches.
#[derive(Default)]
pub struct FunctionRecording(Lock<Option<(ThreadId, Progress)>>);

/// The work that the function has submitted.
enum Progress {
    Nothing,
    /// One call with these launches.
    Call(RecordedLaunches),
    /// Work that cannot be repeated.
    Other,
}

impl FunctionRecording {
    /// Begins to record the calls of this thread. Returns false if another recording has not ended.
    pub fn begin(&self) -> bool {
        let mut recording = self.lock();
        let free = recording.is_none();
        if free {
            *recording = Some((thread::current().id(), Progress::Nothing));
        }
        free
    }

    /// Ends the recording, and returns the launches if they can be repeated.
    pub fn end(&self) -> Option<RecordedLaunches> {
        match self.lock().take() {
            Some((_, Progress::Call(launches))) => Some(launches),
            _ => None,
        }
    }

    /// Runs a call, and notes its launches if this thread records.
    fn call(
        &self,
        stream: &runtime::Stream,
        submit: impl FnOnce(&runtime::Stream) -> runtime::Result<()>,
    ) -> runtime::Result<()> {
        if !self.is_here() {
            return submit(stream);
        }
        let (done, launches) = stream.record_launches(submit);
        self.note(launches);
        done
    }

    /// Notes the launches of a call, or work that cannot be repeated.
    fn note(&self, launches: Option<RecordedLaunches>) {
        if let Some((thread, progress)) = &mut *self.lock()
            && *thread == thread::current().id()
        {
            *progress = match (&progress, launches) {
                (Progress::Nothing, Some(launches)) => Progress::Call(launches),
                _ => Progress::Other,
            };
        }
    }

    fn is_here(&self) -> bool {
        self.lock().as_ref().is_some_and(|(thread, _)| *thread == thread::current().id())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<(ThreadId, Progress)>> {
        self.0.lock()
    }
}

/// Buffers of calls in flight. Dropping a buffer waits for its work, so each buffer is dropped only
/// after its work is complete. The buffers keep no memory alive.
#[derive(Default)]
struct Later {
    /// The buffers of the last calls.
    newest: Vec<Box<dyn Send>>,
    /// The buffers of earlier calls, oldest first, with the event that ends their work.
    marked: VecDeque<(Event, Vec<Box<dyn Send>>)>,
}

/// The number of calls that share an event. Recording an event takes as long as a launch.
const CALLS_OF_EVENT: usize = 32;

/// The time between two looks for signals while a launch runs on the CPU.
const SIGNAL_PERIOD: Duration = Duration::from_millis(50);

/// The stack in bytes of a thread that launches, as that of a process's main thread.
const WORKER_STACK_BYTES: usize = 8 << 20;

/// Returns whether this thread is the one that handles Python's signals.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    main.eq(threading.call_method0(intern!(py, "get_ident"))?)
}

impl Opened {
    fn new(place: Where) -> runtime::Result<Opened> {
        let device = match place {
            Where::Cpu => Device::cpu(),
            Where::Cuda(ordinal) => Device::cuda(ordinal)?,
        };
        Ok(Opened {
            stream: device.stream()?,
            device,
            calls: Lock::default(),
            later: Lock::default(),
            recording: FunctionRecording::default(),
            rotary: Lock::default(),
            frequencies: Lock::default(),
        })
    }

    /// Returns whether another thread was in a call when the process forked.
    pub fn is_held(&self) -> bool {
        let Opened { calls, later, recording, rotary, frequencies, .. } = self;
        let in_call = fork::is_held(calls) || fork::is_held(later) || fork::is_held(&recording.0);
        in_call || fork::is_held(rotary) || fork::is_held(frequencies)
    }

    /// Submits work to the stream and waits for it.
    pub fn complete(&self, submit: impl FnOnce(&runtime::Stream) -> runtime::Result<()>) -> runtime::Result<()> {
        let _calls = self.calls.lock();
        let submitted = submit(&self.stream);
        self.recording.note(None);
        // Work may be in flight even if a later submission failed.
        let waited = self.stream.wait();
        submitted.and(waited)
    }

    /// Runs work that launches kernels, without the GIL. On the CPU, an exception that a signal
    /// raises in the main thread stops the running launches: `KeyboardInterrupt` for Ctrl-C.
    pub fn interruptible<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> runtime::Result<T> + Send,
    ) -> PyResult<T> {
        // Python handles signals in its main thread only.
        if self.handle().is_some() || !is_main_thread(py)? {
            return py.detach(work).map_err(|e| error::runtime(py, e));
        }
        thread::scope(|scope| {
            // The channel carries nothing: its sender is dropped when the work ends.
            let (running, mut ended) = mpsc::channel::<()>();
            let run = move || {
                let _running = running;
                work()
            };
            let worker = thread::Builder::new().stack_size(WORKER_STACK_BYTES).spawn_scoped(scope, run);
            let worker = worker.map_err(|e| error::DeviceError::new_err(format!("cannot start a thread: {e}")))?;
            let mut raised = None;
            loop {
                let ended = &mut ended;
                if py.detach(move || ended.recv_timeout(SIGNAL_PERIOD)) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
                raised = raised.or(py.check_signals().err());
                // The work may launch another kernel after the one that was stopped.
                if raised.is_some() {
                    self.device.interrupt();
                }
            }
            let done = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            match raised {
                Some(raised) => Err(raised),
                None => done.map_err(|e| error::runtime(py, e)),
            }
        })
    }

    /// Submits work to the stream, after all work of `handle` and before later work of it.
    ///
    /// # Safety
    /// `handle` is a live `CUstream` of the device's primary context, or a default stream.
    pub unsafe fn ordered(
        &self,
        handle: usize,
        submit: impl FnOnce(&runtime::Stream) -> runtime::Result<()>,
    ) -> runtime::Result<()> {
        let _calls = self.calls.lock();
        let handle = ptr::without_provenance_mut::<c_void>(handle);
        // SAFETY: by the caller's promise.
        unsafe { self.stream.wait_for_handle(handle)? };
        let submitted = self.recording.call(&self.stream, submit);
        // SAFETY: as above.
        let held = unsafe { self.stream.hold_handle(handle) };
        submitted.and(held)
    }

    /// Returns the table of a rotary embedding, computed on first use.
    pub fn rotary(&self, layout: PairLayout, frequencies: &[f32], axes: &[u32]) -> runtime::Result<Arc<Rotary>> {
        let bits = frequencies.iter().map(|f| f.to_bits()).collect();
        let key = (layout, bits, axes.to_vec());
        let mut tables = self.rotary.lock();
        if let Some((_, table)) = tables.iter().find(|(known, _)| *known == key) {
            return Ok(table.clone());
        }
        let table = Arc::new(Rotary::with_axes(&self.stream, layout, frequencies, axes)?);
        if tables.len() < MAX_ROTARY_TABLES {
            tables.push((key, table.clone()));
        } else {
            // This table may be dropped before recorded launches run again, so the call cannot be
            // repeated.
            self.recording.note(None);
        }
        Ok(table)
    }

    /// Returns frequencies in memory of the device, uploaded at first use.
    pub fn frequencies(&self, frequencies: &[f32]) -> runtime::Result<Arc<DeviceBuffer<f32>>> {
        let key: Vec<_> = frequencies.iter().map(|f| f.to_bits()).collect();
        let mut lists = self.frequencies.lock();
        if let Some((_, list)) = lists.iter().find(|(known, _)| *known == key) {
            return Ok(list.clone());
        }
        let list = Arc::new(self.device.upload(frequencies)?);
        if lists.len() < MAX_ROTARY_TABLES {
            lists.push((key, list.clone()));
        } else {
            // Recorded launches may outlive this list, too.
            self.recording.note(None);
        }
        Ok(list)
    }

    /// Drops the buffers of a submitted call after its work, without waiting for it.
    pub fn drop_later(&self, buffers: Box<dyn Send>) {
        let mut later = self.later.lock();
        later.newest.push(buffers);
        if later.newest.len() < CALLS_OF_EVENT {
            return;
        }
        let newest = std::mem::take(&mut later.newest);
        match self.stream.record() {
            Ok(event) => later.marked.push_back((event, newest)),
            // The device is lost, so that dropping the buffers does not wait.
            Err(_) => drop(newest),
        }
        while later.marked.front().is_some_and(|(event, _)| event.is_complete().unwrap_or(true)) {
            later.marked.pop_front();
        }
    }

    /// Returns the driver's handle of the stream as a number; `None` on the CPU.
    pub fn handle(&self) -> Option<usize> {
        self.stream.driver_handle().map(|handle| handle.addr())
    }
}

/// A queue of calls. A call with a stream returns once it is submitted, and `wait` completes it.
///
/// Arrays of submitted calls stay alive until `wait`. On the CPU a call is complete when it
/// returns, and its violations are raised by `wait`.
#[pyclass(frozen, module = "kernels_rs")]
pub struct Stream {
    pub opened: Arc<Opened>,
    pub place: Where,
    pub stream: runtime::Stream,
    held: Lock<Vec<Held>>,
    /// The operations of the device's own stream that this stream already waits for.
    awaited: AtomicU64,
}

#[pymethods]
impl Stream {
    /// Makes a stream of a device.
    #[new]
    #[pyo3(signature = (device = None))]
    fn new(py: Python<'_>, device: Option<&Bound<'_, PyAny>>) -> PyResult<Stream> {
        let place = device.map_or(Ok(Where::Cuda(0)), Where::of)?;
        let opened = place.open(py)?;
        let stream = opened.device.stream().map_err(|e| error::runtime(py, e))?;
        Ok(Stream { opened, place, stream, held: Lock::default(), awaited: AtomicU64::new(0) })
    }

    /// Waits until all submitted calls are complete, and raises the first error.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        // A call that another thread submits meanwhile keeps its arrays until the next wait.
        let held = std::mem::take(&mut *self.held());
        let waited = py.detach(|| self.stream.wait());
        drop(held);
        waited.map_err(|e| error::runtime(py, e))
    }

    /// Returns the device: "cuda:0".
    #[getter]
    fn device(&self) -> String {
        self.place.to_string()
    }

    /// Returns the driver's handle (`CUstream`) as a number; None on the CPU.
    #[getter]
    fn handle(&self) -> Option<usize> {
        self.stream.driver_handle().map(|handle| handle.addr())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        self.wait(py)
    }

    fn __repr__(&self) -> String {
        format!("Stream(device='{}')", self.place)
    }
}

impl Stream {
    /// Keeps the memory of a submitted call until the next wait.
    pub fn hold(&self, held: Vec<Held>) {
        self.held().extend(held);
    }

    /// Makes later work wait for all work submitted to the device's own stream.
    pub fn follow(&self, opened: &Opened) -> runtime::Result<()> {
        let submitted = opened.stream.submitted();
        if self.awaited.load(Ordering::Acquire) != submitted {
            self.stream.wait_for(&opened.stream.record()?)?;
            self.awaited.store(submitted, Ordering::Release);
        }
        Ok(())
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Held>> {
        self.held.lock()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The driver may still use the memory of arrays.
        let Err(error) = self.stream.wait() else { return };
        // An error has no caller to go to. Python prints the report of a check.
        if error.report().is_some() {
            let _ = Python::try_attach(|py| {
                // Python drops the stream while another exception is on its way.
                let pending = PyErr::take(py);
                error::runtime(py, error).write_unraisable(py, None);
                if let Some(pending) = pending {
                    pending.restore(py);
                }
            });
        }
    }
}

/// The stream of a call.
pub enum On {
    Stream(Py<Stream>),
    Handle(usize),
}

impl On {
    /// Reads a stream of this package, a number, or an object of PyTorch or CuPy.
    pub fn of(stream: &Bound<'_, PyAny>, place: Where) -> PyResult<On> {
        if let Ok(own) = stream.cast::<Stream>() {
            let of = own.get().place;
            if of != place {
                return Err(PyValueError::new_err(format!(
                    "the stream belongs to {of}, and the arrays are on {place}"
                )));
            }
            return Ok(On::Stream(own.clone().unbind()));
        }
        if let Ok(handle) = stream.extract() {
            return Ok(On::Handle(handle));
        }
        for attribute in ["cuda_stream", "ptr"] {
            if let Ok(handle) = stream.getattr(attribute) {
                return Ok(On::Handle(handle.extract()?));
            }
        }
        Err(PyTypeError::new_err(
            "`stream`: expected a Stream, a stream of PyTorch or CuPy, or the number of a CUstream",
        ))
    }
}

/// Sets how many warp instructions a block may run on the CPU before its loop counts as endless.
///
/// None is the default: 2³⁰, about a minute for one block.
#[pyfunction]
#[pyo3(signature = (count))]
pub fn set_instruction_limit(py: Python<'_>, count: Option<u64>) -> PyResult<()> {
    Where::Cpu.open(py)?.device.set_instruction_limit(count);
    Ok(())
}

/// Returns the names of the devices of this machine: "cpu", and "cuda:N" for each supported GPU.
#[pyfunction]
pub fn devices(py: Python<'_>) -> Vec<String> {
    let gpus = (0..).map(Where::Cuda).take_while(|place| place.open(py).is_ok());
    std::iter::once(Where::Cpu).chain(gpus).map(|place| place.to_string()).collect()
}
