//! An open GPU: its context, streams, memory, and loaded kernels.

use super::context::Context;
use super::event::CudaEvent;
use super::info::DeviceInfo;
use super::launch::{BlockFigures, DriverLaunch, LoadedKernel, Ready};
use super::loss::Loss;
use super::module::{LoadedEntry, load_or_make, shared_memory, stored_ptx};
use super::operation::StreamOperation;
use super::stream::{CudaStream, StreamTable};
use crate::cache::InstanceCache;
use crate::contract::ValidatedArgs;
use crate::hazard::{AccessSet, WaitSet};
use crate::instance::LaunchedInstance;
use crate::pool::{DevicePool, SegmentSource};
use crate::store::Store;
use crate::trace::span;
use crate::{Error, Result};
use kernel_dsl::compiler::driver;
use kernel_dsl::compiler::ir::SharedMemoryNeed;
use kernel_dsl::compiler::lower::checked::{CheckedKernel, MODERATE_ARGUMENT_LIMIT};
use kernel_dsl::{Artifact, LaunchForm};
use runtime_simt::{Lock, SharedLock};
use std::ffi::c_void;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The environment variable that disables the memory pool.
const NO_POOL: &str = "KERNELS_NO_POOL";

/// A CUDA device. The process has one instance for each device that is not lost, so that all
/// streams of the device know each other.
pub(crate) struct Cuda {
    context: Arc<Context>,
    /// The identity of the device's memory, unique among all devices including lost ones.
    id: u64,
    streams: StreamTable,
    memory: DevicePool,
    pinned: DevicePool,
    /// The lock that is held for writing while a thread sets the time limit, and for reading by
    /// operations during which none may be set.
    limiting: SharedLock<()>,
    /// The cache of compiled kernels.
    store: Lock<Option<Store>>,
    /// The loaded kernels.
    modules: InstanceCache<LoadedEntry>,
    /// Checked forms for extents, strides and `usize` arguments up to [`MODERATE_ARGUMENT_LIMIT`].
    checked: InstanceCache<(Arc<LoadedEntry>, Arc<CheckedKernel>)>,
    /// Checked forms for all other launches.
    checked_large: InstanceCache<(Arc<LoadedEntry>, Arc<CheckedKernel>)>,
}

/// The open devices of the process, including lost ones. Like the driver's primary context, there
/// is one for each device that is not lost.
struct OpenDevices {
    devices: Vec<(usize, Weak<Cuda>)>,
    /// The number of devices that were opened after a loss of the same device.
    lost: u64,
}

/// Device memory.
struct CudaMemory<'a>(&'a Cuda);
/// Page-locked host memory, which the device copies without the host.
struct PinnedMemory<'a>(&'a Cuda);

impl Cuda {
    /// Opens device `ordinal`, if it is supported.
    pub fn open(ordinal: usize) -> Result<Arc<Cuda>> {
        static OPEN_DEVICES: Lock<OpenDevices> = Lock::new(OpenDevices { devices: Vec::new(), lost: 0 });
        let mut open = OPEN_DEVICES.lock();
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
        // The driver on the CPU compiles nothing, and needs no cache except in a test.
        let store = if context.driver.is_on_cpu() && !Store::is_requested() { None } else { Store::of_environment() };
        let cuda = Arc::new(Cuda {
            streams: StreamTable::new(context.clone())?,
            limiting: SharedLock::default(),
            store: Lock::new(store),
            context,
            id: 1 + ordinal as u64 + (open.lost << 32),
            memory: if std::env::var_os(NO_POOL).is_some() { DevicePool::uncached() } else { DevicePool::default() },
            pinned: DevicePool::default(),
            modules: InstanceCache::default(),
            checked: InstanceCache::default(),
            checked_large: InstanceCache::default(),
        });
        open.devices.push((ordinal, Arc::downgrade(&cuda)));
        // Lost devices may be dropped here, while the lock is held; their drop does not take it.
        drop(known);
        Ok(cuda)
    }

    /// Returns the PCI address of the device, such as `00000000:3b:00.0`.
    pub fn pci_address(&self) -> Result<String> {
        self.context.driver.pci_address(self.context.info.ordinal)
    }

    /// Returns the loss, if the device is lost.
    pub fn lost(&self) -> Option<&Arc<Loss>> {
        self.context.lost()
    }

    /// Fails if the device is lost.
    pub fn check(&self) -> Result<()> {
        self.context.check()
    }

    /// Returns the time limit of waits, if there is one.
    pub fn watchdog_timeout(&self) -> Option<Duration> {
        self.context.watchdog_timeout()
    }

    /// Sets the time limit. Work submitted without a limit has no events that show its progress.
    /// This function first waits for such work, without a limit.
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        let _limiting = self.limiting.write();
        if limit.is_some() && self.watchdog_timeout().is_none() {
            self.context.set_timed(true);
            self.streams.wait_for_untimed();
        }
        self.context.set_watchdog_timeout(limit);
        self.context.set_timed(limit.is_some());
    }

    /// Runs `act` if there is no time limit. No limit can be set until `act` returns.
    pub fn unlimited<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let _limiting = self.limiting.read();
        self.watchdog_timeout().is_none().then(act)
    }

    /// Returns the cache of compiled kernels.
    fn store(&self) -> Option<Store> {
        self.store.lock().clone()
    }

    /// Sets the cache of compiled kernels; `None` disables it.
    pub fn set_store(&self, store: Option<Store>) {
        *self.store.lock() = store;
    }

    /// Returns the identity of the device's memory.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Runs `attempt`; if it runs out of memory, releases all cached memory and runs it once more.
    pub(super) fn with_memory<T>(&self, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let why = match attempt() {
            Err(why) if why.is_out_of_memory() => why,
            other => return other,
        };
        let given_back = self.memory.trim(&CudaMemory(self))? + self.pinned.trim(&PinnedMemory(self))?;
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

    /// Returns the properties of the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// Returns the bytes of device memory that no program uses, if the driver reports them.
    pub fn free_memory(&self) -> Option<u64> {
        self.context.free_memory().map(|(free, _)| free as u64)
    }

    /// Returns the pool of device memory and its source.
    pub fn memory(&self) -> (&DevicePool, impl SegmentSource + '_) {
        (&self.memory, CudaMemory(self))
    }

    /// Returns the pool of pinned memory and its source.
    pub fn pinned(&self) -> (&DevicePool, impl SegmentSource + '_) {
        (&self.pinned, PinnedMemory(self))
    }

    /// Returns the device's default stream.
    pub fn default_stream(&self) -> Arc<CudaStream> {
        self.streams.default_stream()
    }

    /// Returns an unused stream.
    pub fn acquire_stream(&self) -> Result<Arc<CudaStream>> {
        self.check()?;
        self.with_memory(|| self.streams.take())
    }

    /// Marks the end of all work submitted to a stream so far.
    pub fn record_event(&self, stream: &Arc<CudaStream>) -> Result<CudaEvent> {
        self.with_memory(|| CudaEvent::record(stream))
    }

    /// Returns a stream to the table of unused streams.
    pub fn release_stream(&self, stream: &CudaStream) {
        self.streams.give_back(stream);
    }

    /// Waits on the host until all pending accesses are complete.
    pub fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        self.streams.wait_for(pending)
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// `bytes` bytes at `address` belong to one allocation, `used` records the write, and no other
    /// code uses them.
    pub unsafe fn fill(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        bytes: usize,
        value: u8,
    ) -> Result<()> {
        let operation = StreamOperation::Fill { bytes, at: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.memory_fill_in)(address, value, bytes, stream)
        })
    }

    /// Copies `from` to the device.
    ///
    /// # Safety
    /// `from.len()` bytes at `address` belong to one allocation, `used` records the write, and no
    /// other code uses them. `from` stays alive and unwritten until the copy is complete.
    pub unsafe fn write(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let operation = StreamOperation::Upload { bytes, to: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.copy_to_device_in)(address, from.cast(), bytes, stream)
        })
    }

    /// Copies from the device.
    ///
    /// # Safety
    /// `bytes` bytes at `address` belong to one allocation, `used` records the read, and no other
    /// code writes them. `to` stays alive and otherwise unused until the copy is complete.
    pub unsafe fn read(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        address: u64,
        to: *mut u8,
        bytes: usize,
    ) -> Result<()> {
        let operation = StreamOperation::Download { bytes, from: address };
        // SAFETY: by the caller's promise.
        self.streams.submit(stream, used, operation, |driver, stream| unsafe {
            (driver.copy_to_host_in)(to.cast(), address, bytes, stream)
        })
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// `bytes` bytes at both addresses belong to allocations. `used` records the read of the first
    /// and the write of the second. No other code writes the first or uses the second.
    pub unsafe fn copy(
        &self,
        stream: &CudaStream,
        used: &AccessSet<'_>,
        from: u64,
        to: u64,
        bytes: usize,
    ) -> Result<()> {
        let operation = StreamOperation::Copy { bytes, from, to };
        // SAFETY: by the caller's promise.
        self.streams
            .submit(stream, used, operation, |driver, stream| unsafe { (driver.copy_in)(to, from, bytes, stream) })
    }

    /// Records that work on the stream, submitted before and after this call, has these accesses.
    pub fn record_accesses(&self, stream: &CudaStream, used: &AccessSet<'_>) -> Result<()> {
        self.streams.record_accesses(stream, used)
    }

    /// Copies from another device. The other device's streams wait for the copy's accesses to its
    /// memory, and the copy for theirs.
    ///
    /// # Safety
    /// The requirements of [`copy`](Cuda::copy) apply. `used` records the write, and the source is
    /// memory of `other` whose accesses `read` tracks.
    pub unsafe fn copy_from(
        &self,
        stream: &Arc<CudaStream>,
        used: &AccessSet<'_>,
        to: u64,
        (other, read, from): (&Arc<Cuda>, &AccessSet<'_>, u64),
        bytes: usize,
    ) -> Result<()> {
        let operation = StreamOperation::Copy { bytes, from, to };
        let contexts = (self.context.handle(), other.context.handle());
        // A timeline point belongs to one device, so a stream of the other device represents the
        // copy there.
        let there = other.streams.take()?;
        let copied = (|| {
            other.streams.submit(&there, read, operation, |_, _| 0)?;
            CudaEvent::record(&there)?.delay(stream)?;
            // SAFETY: by the caller's promise; both contexts are alive.
            self.streams.submit(stream, used, operation, |driver, stream| unsafe {
                (driver.copy_between)(to, contexts.0, from, contexts.1, bytes, stream)
            })?;
            CudaEvent::record(stream)?.delay(&there)?;
            other.streams.submit(&there, read, operation, |_, _| 0)
        })();
        if copied.is_err() {
            // The copy may be in flight, and the other device's later work would not wait for it.
            // The host therefore waits here.
            let _ = stream.finish();
        }
        other.streams.give_back(&there);
        copied
    }

    /// Returns the driver's figures for the blocks of a launch of the unchecked PTX.
    pub fn residency(
        &self,
        artifact: &'static Artifact,
        program: &LaunchedInstance,
        validated: &ValidatedArgs<'_, '_>,
    ) -> Result<BlockFigures> {
        self.launch(LaunchForm::Unchecked, artifact, program, validated)?.residency(&self.context)
    }

    /// Makes a launch of the instance ready. The instance's module is compiled and loaded once.
    pub fn prepare_launch<'m>(
        &self,
        form: LaunchForm,
        artifact: &'static Artifact,
        program: &LaunchedInstance,
        validated: &ValidatedArgs<'_, 'm>,
    ) -> Result<Ready<'m>> {
        Ok(Ready::new(self.launch(form, artifact, program, validated)?, validated))
    }

    /// Makes the launch without tracking the memory that it uses.
    pub(super) fn launch(
        &self,
        form: LaunchForm,
        artifact: &'static Artifact,
        program: &LaunchedInstance,
        validated: &ValidatedArgs<'_, '_>,
    ) -> Result<DriverLaunch> {
        DriverLaunch::new(&self.context, self.load(form, artifact, program, || validated.max_number())?, validated)
    }

    /// Compiles and loads the instance's module, so that launches find it, unless an extent is very
    /// large. Several threads may load modules at the same time: the driver compiles them in
    /// parallel.
    pub fn preload(&self, form: LaunchForm, artifact: &'static Artifact, program: &LaunchedInstance) -> Result<()> {
        self.load(form, artifact, program, || 0).map(drop)
    }

    /// Returns the instance's module, which is compiled and loaded once. `largest` is the launch's
    /// largest extent, stride or `usize` argument, which selects the checked form.
    fn load(
        &self,
        form: LaunchForm,
        artifact: &'static Artifact,
        program: &LaunchedInstance,
        largest: impl FnOnce() -> u64,
    ) -> Result<LoadedKernel> {
        let instance = program.instance();
        let name = || artifact.instance_name(&instance.0);
        let load = |ptx: &str, shared: SharedMemoryNeed, name: &str| {
            self.context.info.require_target(artifact.target, name)?;
            self.streams.quiesce()?;
            let load = || LoadedEntry::load(self.context.clone(), ptx, &instance.entry(artifact.name), name, &shared);
            self.with_memory(load)
        };
        Ok(match form {
            LaunchForm::Unchecked => {
                let loaded = match program.loaded.get() {
                    Some(loaded) => loaded,
                    None => {
                        let loaded = self.modules.get_or_make(artifact, &instance.0, || {
                            let name = name();
                            span!("compile", instance = %name);
                            let store = self.store();
                            let ptx = stored_ptx(store.as_ref(), artifact, program, &name)?;
                            load(&ptx, shared_memory(artifact.target, program, &ptx, &name)?, &name)
                        })?;
                        program.loaded.get_or_init(|| loaded)
                    }
                };
                LoadedKernel::Unchecked(loaded.clone())
            }
            LaunchForm::Checked => {
                let (forms, variant, limit) = match largest() > MODERATE_ARGUMENT_LIMIT.into() {
                    true => (&self.checked_large, "checked-large", u32::MAX),
                    false => (&self.checked, "checked", MODERATE_ARGUMENT_LIMIT),
                };
                let checked = forms.get_or_make(artifact, &instance.0, || {
                    let name = name();
                    span!("compile", instance = %name);
                    let failed = |source| Error::Compile { instance: name.clone(), source };
                    let lowered = driver::lowered_monomorphic(program, artifact.target).map_err(failed)?;
                    let form = CheckedKernel::of_instance(lowered, program).with_arguments_up_to(limit);
                    let make = || form.ptx().map_err(failed);
                    let store = self.store();
                    let ptx = match &store {
                        Some(store) => load_or_make(store, artifact, program, variant, make)?,
                        None => make()?,
                    };
                    let module = load(&ptx, form.kernel.shared_memory(), &name)?;
                    Ok::<_, Error>((Arc::new(module), Arc::new(form)))
                })?;
                let (module, form) = checked.as_ref().clone();
                LoadedKernel::Checked(module, form)
            }
        })
    }

    /// Submits a launch.
    ///
    /// # Safety
    /// The memory of its arguments is alive. For these arguments the kernel is free of
    /// out-of-bounds accesses and races, unless it is the checked form.
    pub unsafe fn submit(&self, stream: &CudaStream, launch: &mut Ready<'_>) -> Result<()> {
        let mut state = stream.state();
        // SAFETY: by the caller's promise.
        self.with_memory(|| unsafe { launch.submit(&self.streams, stream, &mut state) })
    }

    /// Submits a launch to a stream of other code. No tracker records the launch.
    ///
    /// # Safety
    /// `handle` is a live stream of the device's primary context, or a default stream of the
    /// driver. The launch has no record. The kernel is free of out-of-bounds accesses and races for
    /// its parameters, whose memory is alive until the launch is over.
    pub unsafe fn submit_untracked(&self, handle: *mut c_void, launch: &DriverLaunch) -> Result<()> {
        // SAFETY: by the caller's promise.
        self.with_memory(|| unsafe { launch.submit_untracked(&self.context, handle.cast()) })
    }

    /// Runs a launch to its end on the device's default stream, and returns its violation.
    ///
    /// # Safety
    /// The requirements of [`submit`](Cuda::submit) apply.
    pub unsafe fn run(&self, launch: &mut Ready<'_>) -> Result<()> {
        let stream = self.streams.default_stream();
        let mut state = stream.state();
        // SAFETY: by the caller's promise.
        self.with_memory(|| unsafe { launch.submit(&self.streams, &stream, &mut state) })?;
        self.streams.wait_in(&stream, &mut state)
    }

    /// Waits for all work of a stream, and returns the oldest violation or error of this work.
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

impl SegmentSource for CudaMemory<'_> {
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

impl SegmentSource for PinnedMemory<'_> {
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
        // No caller is left that could get an error. Memory that a failing device does not release
        // is freed with its context.
        let _ = self.streams.wait();
        let _ = self.memory.trim(&CudaMemory(self));
        let _ = self.pinned.trim(&PinnedMemory(self));
    }
}
