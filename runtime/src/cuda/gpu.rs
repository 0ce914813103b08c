//! A GPU that is open: its context, streams, memory, and the kernels loaded there.

use super::context::Context;
use super::info::DeviceInfo;
use super::launch::{Launch, Loaded, Ready, Residency};
use super::loss::Loss;
use super::mark::Mark;
use super::module::{Module, kept, shared_memory, stored_ptx};
use super::operation::Operation;
use super::stream::{CudaStream, StreamTable};
use crate::cache::Cache;
use crate::contract::ValidatedArgs;
use crate::hazard::{AccessSet, WaitSet};
use crate::pool::{Pool, Source};
use crate::store::Store;
use crate::trace::span;
use crate::{Error, Result};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::analyses;
use kernel_dsl::compiler::hir::{Instance, Monomorphic};
use kernel_dsl::compiler::ir::SharedMemory;
use kernel_dsl::compiler::lower::checked::Checked;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

/// What the environment has where a device's memory is to be the driver's each time.
const NO_POOL: &str = "KERNELS_NO_POOL";

/// A CUDA device. There is one of each number in a process that is not lost: that is what lets the streams of all who use it know of one
/// another.
pub(crate) struct Cuda {
    context: Arc<Context>,
    /// What its memory is known by: no other has the same, lost ones among them.
    id: u64,
    streams: StreamTable,
    memory: Pool,
    pinned: Pool,
    /// Written to set a limit of time, and read by who must not be met by a new one.
    limiting: RwLock<()>,
    /// What was compiled is kept there.
    store: Mutex<Option<Store>>,
    /// By the artifact's address, which is static.
    modules: Cache<(usize, Instance), Arc<Module>>,
    checked: Cache<(usize, Instance), (Arc<Module>, Arc<Checked>)>,
}

/// Which form of a kernel is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Variant {
    /// Every access checked.
    Checked,
    /// Its own PTX.
    Unchecked,
}

/// Those that are open, lost ones among them: the driver, too, has one primary context of each in a process.
struct Open {
    devices: Vec<(usize, Weak<Cuda>)>,
    /// How many were opened beside one that was lost.
    lost: u64,
}

/// Device memory.
struct DeviceMemory<'a>(&'a Cuda);
/// Host memory that the device copies from and to by itself.
struct PinnedMemory<'a>(&'a Cuda);

impl Cuda {
    /// Device `ordinal`, if it is one that kernels run on.
    pub fn open(ordinal: usize) -> Result<Arc<Cuda>> {
        static OPEN: Mutex<Open> = Mutex::new(Open { devices: Vec::new(), lost: 0 });
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.devices.retain(|(_, cuda)| cuda.strong_count() > 0);
        let known: Vec<_> =
            open.devices.iter().filter(|(o, _)| *o == ordinal).filter_map(|(_, cuda)| cuda.upgrade()).collect();
        if let Some(cuda) = known.iter().find(|cuda| cuda.lost().is_none()) {
            return Ok(cuda.clone());
        }
        let context = Arc::new(Context::open(ordinal, known.is_empty())?);
        if !known.is_empty() {
            open.lost += 1;
        }
        // The driver on the CPU compiles nothing: it has no need of one, but that of a test.
        let store = if context.driver.is_on_cpu() && !Store::is_asked_for() { None } else { Store::of_environment() };
        let cuda = Arc::new(Cuda {
            streams: StreamTable::new(context.clone())?,
            limiting: RwLock::default(),
            store: Mutex::new(store),
            context,
            id: 1 + ordinal as u64 + (open.lost << 32),
            memory: if std::env::var_os(NO_POOL).is_some() { Pool::bare() } else { Pool::default() },
            pinned: Pool::default(),
            modules: Cache::default(),
            checked: Cache::default(),
        });
        open.devices.push((ordinal, Arc::downgrade(&cuda)));
        // Those that are lost may end here, with the lock, which they do not need.
        drop(known);
        Ok(cuda)
    }

    /// Why it is lost, if it is.
    pub fn lost(&self) -> Option<&Arc<Loss>> {
        self.context.lost()
    }

    /// An error if it is lost.
    pub fn check(&self) -> Result<()> {
        self.context.check()
    }

    /// How long the host waits for an operation, if not for ever.
    pub fn watchdog_timeout(&self) -> Option<Duration> {
        self.context.watchdog_timeout()
    }

    /// Sets that. Where there was none, nothing tells how far what was submitted has come, much work or a kernel that does not end: it is
    /// waited for first, without a limit.
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        let _limiting = self.limiting.write().unwrap_or_else(PoisonError::into_inner);
        if limit.is_some() && self.watchdog_timeout().is_none() {
            self.context.set_timed(true);
            self.streams.wait_for_untimed();
        }
        self.context.set_watchdog_timeout(limit);
        self.context.set_timed(limit.is_some());
    }

    /// What `act` gives if there is no limit of time, nor will be before it is over.
    pub fn unlimited<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let _limiting = self.limiting.read().unwrap_or_else(PoisonError::into_inner);
        self.watchdog_timeout().is_none().then(act)
    }

    /// Where what is compiled is kept.
    fn store(&self) -> Option<Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets that.
    pub fn set_store(&self, store: Option<Store>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    /// What its memory is known by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What `attempt` gives; where it is that there is no memory, all that is cached is given back, and it is tried once more.
    pub(super) fn with_memory<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let why = match attempt() {
            Err(why) if why.is_out_of_memory() => why,
            other => return other,
        };
        let given_back = self.memory.trim(&DeviceMemory(self))? + self.pinned.trim(&PinnedMemory(self))?;
        let why = if given_back == 0 { Err(why) } else { attempt() };
        let pool = || Box::new(self.memory.statistics());
        why.map_err(|why| match why {
            Error::OutOfMemory { requested, device, free, pool: None } => {
                Error::OutOfMemory { requested, device, free, pool: Some(pool()) }
            }
            Error::Driver(source) if source.is_out_of_memory() => Error::Exhausted { source, pool: pool() },
            other => other,
        })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    pub fn memory(&self) -> (&Pool, impl Source + '_) {
        (&self.memory, DeviceMemory(self))
    }

    pub fn pinned(&self) -> (&Pool, impl Source + '_) {
        (&self.pinned, PinnedMemory(self))
    }

    /// The device's own lane.
    pub fn default_stream(&self) -> Arc<CudaStream> {
        self.streams.first()
    }

    /// A lane that nobody has.
    pub fn acquire_stream(&self) -> Result<Arc<CudaStream>> {
        self.check()?;
        self.with_memory(|| self.streams.take())
    }

    /// The place behind all that a lane was given so far.
    pub fn mark(&self, stream: &Arc<CudaStream>) -> Result<Mark> {
        self.with_memory(|| Mark::record(stream))
    }

    /// Gives a lane back.
    pub fn give_lane(&self, stream: &CudaStream) {
        self.streams.give(stream);
    }

    /// Waits on the host for all of this.
    pub fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        self.streams.wait_for(pending)
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// `bytes` bytes at `address` are one allocation's, `used` says that they are written, and nobody else uses them.
    pub unsafe fn fill(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        bytes: usize,
        value: u8,
    ) -> Result<()> {
        let operation = Operation::Fill { bytes, at: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.memory_fill_in)(address, value, bytes, stream)
        })
    }

    /// Copies `from` to the device.
    ///
    /// # Safety
    /// As many bytes at `address` are one allocation's, `used` says that they are written, and nobody else uses them; `from` lives,
    /// and nobody writes it, until the copy is over.
    pub unsafe fn write(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let operation = Operation::Upload { bytes, to: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.copy_to_device_in)(address, from.cast(), bytes, stream)
        })
    }

    /// Copies from the device.
    ///
    /// # Safety
    /// As many bytes at `address` are one allocation's, `used` says that they are read, and nobody writes them; `to` lives, and
    /// nobody else uses it, until the copy is over.
    pub unsafe fn read(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let operation = Operation::Download { bytes, from: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.copy_to_host_in)(to.cast(), address, bytes, stream)
        })
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// As many bytes at both are of allocations, `used` says that the first are read and the second written, and nobody writes the
    /// first or uses the second.
    pub unsafe fn copy(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Result<()> {
        let operation = Operation::Copy { bytes, from, to };
        // SAFETY: by the caller's promise.
        self.streams
            .submit(stream, used, operation, |driver, stream| unsafe { (driver.copy_in)(to, from, bytes, stream) })
    }

    /// Notes that work on the lane, before and behind this, does that with memory.
    pub fn note(&self, stream: &CudaStream, used: &AccessSet<'_>) -> Result<()> {
        self.streams.note(stream, used)
    }

    /// Copies from another device. Its streams wait for what the copy does with its memory, and the copy for theirs.
    ///
    /// # Safety
    /// As for [`copy`](Cuda::copy), where `used` says that the second is written, and the first is `other`'s, whose uses `read` are.
    pub unsafe fn copy_from(
        &self,
        stream: &Arc<CudaStream>,
        used: &AccessSet<'_>,
        to: u64,
        (other, read, from): (&Arc<Cuda>, &AccessSet<'_>, u64),
        bytes: usize,
    ) -> Result<()> {
        let operation = Operation::Copy { bytes, from, to };
        let contexts = (self.context.handle(), other.context.handle());
        // A moment is of one device: on the other the copy is what a lane there waits for.
        let there = other.streams.take()?;
        let copied = (|| {
            other.streams.submit(&there, read, operation, |_, _| 0)?;
            Mark::record(&there)?.hold(stream)?;
            // SAFETY: by the caller's promise; both contexts are alive.
            self.streams.submit(stream, used, operation, |driver, stream| unsafe {
                (driver.copy_between)(to, contexts.0, from, contexts.1, bytes, stream)
            })?;
            Mark::record(stream)?.hold(&there)?;
            other.streams.submit(&there, read, operation, |_, _| 0)
        })();
        if copied.is_err() {
            // The copy may be under way, and nobody at the other device would wait for it.
            let _ = stream.finish();
        }
        other.streams.give(&there);
        copied
    }

    /// What the driver says of the blocks of a launch of the kernel's own PTX.
    pub fn residency(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &ValidatedArgs<'_, '_>,
    ) -> Result<Residency> {
        self.launch(Variant::Unchecked, artifact, program, approved)?.residency(&self.context)
    }

    /// Makes a launch of the instance ready. Its module is compiled and loaded once.
    pub fn ready<'m>(
        &self,
        form: Variant,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &ValidatedArgs<'_, 'm>,
    ) -> Result<Ready<'m>> {
        Ok(Ready::new(self.launch(form, artifact, program, approved)?, approved))
    }

    /// The same without the memory that it uses.
    pub(super) fn launch(
        &self,
        form: Variant,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &ValidatedArgs<'_, '_>,
    ) -> Result<Launch> {
        let instance = program.instance();
        let (key, name) = ((ptr::from_ref(artifact).addr(), instance.clone()), instance.name(artifact.name));
        let failed = |source| Error::Compile { instance: name.clone(), source };
        let load = |ptx: &str, shared: SharedMemory| {
            self.context.info.require_target(artifact.target, &name)?;
            self.streams.quiesce()?;
            let load = || Module::load(self.context.clone(), ptx, &instance.entry(artifact.name), &name, &shared);
            self.with_memory(load).map(Arc::new)
        };
        let kernel = match form {
            Variant::Unchecked => Loaded::Unchecked(
                self.modules
                    .get_or_make(key, || {
                        span!("compile", instance = %name);
                        let store = self.store();
                        let ptx = stored_ptx(store.as_ref(), artifact, program, &name)?;
                        load(&ptx, shared_memory(artifact.target, program, &ptx, &name)?)
                    })?
                    .as_ref()
                    .clone(),
            ),
            Variant::Checked => {
                let checked = self.checked.get_or_make(key, || {
                    span!("compile", instance = %name);
                    let form = Checked::of(analyses::lowered_monomorphic(program, artifact.target).map_err(failed)?);
                    let make = || form.ptx().map_err(failed);
                    let store = self.store();
                    let ptx = match &store {
                        Some(store) => kept(store, artifact, program, "checked", make)?,
                        None => make()?,
                    };
                    let module = load(&ptx, form.kernel.shared_memory())?;
                    Ok::<_, Error>((module, Arc::new(form)))
                })?;
                let (module, form) = checked.as_ref().clone();
                Loaded::Checked(module, form)
            }
        };
        Launch::new(kernel, name, approved)
    }

    /// Submits a launch.
    ///
    /// # Safety
    /// The memory of its arguments lives; for these the kernel is free of out-of-bounds accesses and races, unless it is the
    /// checked form.
    pub unsafe fn submit(&self, stream: &CudaStream, launch: &mut Ready<'_>) -> Result<()> {
        let mut state = stream.state();
        // SAFETY: by the caller's promise.
        self.with_memory(|| unsafe { launch.submit(&self.streams, stream, &mut state) })
    }

    /// Runs a launch to its end, on the device's own lane: what is found is this launch's.
    ///
    /// # Safety
    /// As for [`submit`](Cuda::submit).
    pub unsafe fn run(&self, launch: &mut Ready<'_>) -> Result<()> {
        let stream = self.streams.first();
        let mut state = stream.state();
        // SAFETY: by the caller's promise.
        self.with_memory(|| unsafe { launch.submit(&self.streams, &stream, &mut state) })?;
        self.streams.wait_in(&stream, &mut state)
    }

    /// Waits for all that a lane was given; the error is what was found on the way, the oldest first.
    pub fn wait(&self, stream: &CudaStream) -> Result<()> {
        self.streams.wait_in(stream, &mut stream.state())
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn streams(&self) -> &StreamTable {
        &self.streams
    }
}

impl Source for DeviceMemory<'_> {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        self.0.streams.quiesce()?;
        self.0.context.allocate(bytes as usize)
    }

    fn name(&self) -> String {
        self.0.context.info.to_string()
    }

    fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        self.0.wait_for(pending)
    }

    unsafe fn release(&self, address: u64, _: u64) {
        if self.0.streams.quiesce().is_ok() {
            // SAFETY: by the caller's promise.
            unsafe { self.0.context.free(address) }
        }
    }
}

impl Source for PinnedMemory<'_> {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        self.0.streams.quiesce()?;
        self.0.context.allocate_pinned(bytes as usize)
    }

    fn name(&self) -> String {
        format!("the host, pinned for {}", self.0.context.info)
    }

    fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        self.0.wait_for(pending)
    }

    unsafe fn release(&self, address: u64, _: u64) {
        if self.0.streams.quiesce().is_ok() {
            // SAFETY: by the caller's promise.
            unsafe { self.0.context.free_pinned(address) }
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Nobody is left who could be told. What a device that fails does not give back goes with its context.
        let _ = self.streams.wait();
        let _ = self.memory.trim(&DeviceMemory(self));
        let _ = self.pinned.trim(&PinnedMemory(self));
    }
}
