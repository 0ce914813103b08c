//! Devices that run kernels.

use crate::cache::InstanceCache;
use crate::contract::ValidatedArgs;
use crate::cpu::{Cpu, LaunchHandler};
use crate::cuda::{Cuda, Driver, Loss};
use crate::hazard::WaitSet;
use crate::instance::LaunchedInstance;
use crate::pool::{DevicePool, MemoryStatistics, PoolAllocation, SegmentSource};
use crate::store::Store;
use crate::stream::OperationQueue;
use crate::trace::{enabled, event};
use crate::uninit::HOST;
use crate::{Error, Result};
use kernel_dsl::compiler::hir::{Constant, Instance, monomorphic};
use kernel_dsl::compiler::launch::DeviceFacts;
use kernel_dsl::{Argument, Artifact, LaunchForm, Launcher};
use runtime_oracle::Checks;
use runtime_simt::Lock;
use serde::Serialize;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

/// A device: an NVIDIA GPU, or the CPU, where the oracle interprets kernels and checks everything
/// that they do.
///
/// Clones are the same device. Two devices opened separately for the same GPU, or for the CPU,
/// share memory: either accepts the other's buffers.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    backend: Backend,
    choice: Option<Choice>,
    /// The monomorphic programs.
    programs: InstanceCache<LaunchedInstance>,
    /// The extensions by type.
    extensions: Lock<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// The choice of [`Device::best`], with its reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Choice {
    /// The device, as its `Display` prints it.
    pub device: String,
    /// The reason, such as `the first supported GPU`.
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.reason)
    }
}

impl Device {
    /// Opens the first supported GPU, or else the CPU. A machine without a usable GPU is not an
    /// error.
    ///
    /// The choice and its reason are logged as a `tracing` event, if that feature is on and a
    /// subscriber is enabled. Otherwise the first call of a process prints one line on stderr.
    /// [`choice`](Device::choice) returns both at any time. [`Device::choose`] chooses without
    /// logging.
    ///
    /// # Errors
    /// No error is possible today: if no GPU can be opened, the choice is the CPU.
    pub fn best() -> Result<Device> {
        static LOG_ONCE: Once = Once::new();
        let device = Device::choose()?;
        if let Some(choice) = device.choice() {
            event!(INFO, device = %choice.device, reason = %choice.reason, "device chosen");
            if enabled!(INFO) {
                return Ok(device);
            }
            LOG_ONCE.call_once(|| eprintln!("kernel-dsl: {choice}"));
        }
        Ok(device)
    }

    /// Makes the choice of [`Device::best`] without logging.
    ///
    /// # Errors
    /// No error is possible today, as for [`Device::best`].
    pub fn choose() -> Result<Device> {
        let (backend, reason) = match first_gpu() {
            Ok((cuda, false)) => (Backend::Cuda(cuda), "the first supported GPU".to_string()),
            Ok((cuda, true)) => {
                let reason = "emulated device: the driver is cuda-on-cpu";
                (Backend::Cuda(cuda), reason.to_string())
            }
            Err(why) => (Backend::Cpu(Box::default()), format!("no usable GPU: {why}")),
        };
        let choice = Choice { device: backend.to_string(), reason };
        Ok(Device::new(backend, Some(choice)))
    }

    /// Opens GPU number `ordinal`, in the driver's numbering.
    ///
    /// If the environment has `KERNELS_NO_POOL`, each buffer is a separate driver allocation, for
    /// tools such as Compute Sanitizer.
    ///
    /// If the device was [`lost`](Device::lost), this function opens it in a new context,
    /// independent of the lost one. Some drivers do not permit a new context after an illegal
    /// address. The text of the error then advises to drop all objects of the lost device, or to
    /// end the process.
    ///
    /// # Errors
    /// If there is no driver, or no device of this number. If the driver is older than CUDA 8.0
    /// (9.0 for kernels with shuffles), or the compute capability is below 6.1. The text names what
    /// was found and what is required.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device::new(Backend::Cuda(Cuda::open(ordinal)?), None))
    }

    /// Returns the CPU device: kernels run on the interpreter, in host memory. At its end a launch
    /// prints the lines of [`log!`](kernel_dsl::log!) to standard output.
    ///
    /// If stderr is a terminal, a launch that takes longer than two seconds shows the number of
    /// blocks that have ended, until it returns.
    pub fn cpu() -> Device {
        Device::new(Backend::Cpu(Box::default()), None)
    }

    /// Returns the CPU device with other [`facts`](Device::facts), such as those of a GPU.
    ///
    /// A library call may choose a kernel, or the number of partial sums, by the number of
    /// multiprocessors. Another number may thus change the order in which floats are added. Devices
    /// with equal facts give equal bits. A number of 0 counts as 1.
    ///
    /// ```
    /// # fn main() -> Result<(), runtime_devices::Error> {
    /// use runtime_devices::Device;
    /// let card = Device::best()?;
    /// let witness = Device::cpu_with_facts(card.facts());
    /// assert_eq!(witness.facts(), card.facts());
    /// # Ok(()) }
    /// ```
    pub fn cpu_with_facts(facts: DeviceFacts) -> Device {
        Device::new(Backend::Cpu(Box::new(Cpu::with_facts(facts))), None)
    }

    /// Returns a CPU device with other facts. Each launch is only passed to `handler`: no
    /// interpreter runs the kernel. New buffers are zeros, also those of [`alloc`](Device::alloc).
    #[doc(hidden)]
    pub fn cpu_with_handler(facts: DeviceFacts, handler: Box<LaunchHandler>) -> Device {
        Device::new(Backend::Cpu(Box::new(Cpu::with_facts(facts).with_handler(handler))), None)
    }

    /// Returns the choice and its reason, if [`Device::best`] or [`Device::choose`] chose it.
    pub fn choice(&self) -> Option<&Choice> {
        self.0.choice.as_ref()
    }

    /// Returns whether this is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0.backend, Backend::Cpu(_))
    }

    /// Returns the loss, if the device is lost. A device is lost if a kernel traps, accesses memory
    /// outside its buffers or exceeds the time limit, or if the hardware fails. Every later
    /// operation then fails at once with this cause; other devices are unaffected. Buffers, streams
    /// and launches of the device can be dropped; their contents are gone.
    ///
    /// [`Device::cuda`] opens the GPU again, in another context, if the driver permits it, even
    /// while buffers of the lost device exist. The memory of these buffers is freed when the last
    /// object of the lost device is dropped.
    ///
    /// The CPU is never lost.
    pub fn lost(&self) -> Option<&Loss> {
        match &self.0.backend {
            Backend::Cpu(_) => None,
            Backend::Cuda(cuda) => cuda.lost().map(|loss| &**loss),
        }
    }

    fn new(backend: Backend, choice: Option<Choice>) -> Device {
        Device(Arc::new(Inner { backend, choice, programs: InstanceCache::default(), extensions: Lock::default() }))
    }

    /// Returns the device-local singleton of type `T`, created by `make` on first use: for example
    /// tables shared by calls of one shape. The singleton is dropped with the last clone of the
    /// device.
    ///
    /// `make` gets a separate device object for the same GPU or CPU. Buffers in the singleton
    /// belong to that separate object. With a clone of this device instead, such a buffer would
    /// keep the device, and so itself, alive forever.
    pub fn get_or_init_extension<T: Send + Sync + 'static>(&self, make: impl FnOnce(Device) -> T) -> Arc<T> {
        let mut extensions = self.0.extensions.lock();
        let extension = extensions.entry(TypeId::of::<T>()).or_insert_with(|| {
            let backend = match &self.0.backend {
                Backend::Cpu(cpu) => Backend::Cpu(Box::new(Cpu::with_facts(cpu.facts()))),
                Backend::Cuda(cuda) => Backend::Cuda(cuda.clone()),
            };
            Arc::new(make(Device::new(backend, None)))
        });
        extension.clone().downcast().unwrap_or_else(|_| unreachable!("extensions are kept by their type"))
    }

    /// Returns the identity of the device's memory: 0 is the host's. A lost device and its
    /// successor have different identities.
    pub(crate) fn id(&self) -> u64 {
        match &self.0.backend {
            Backend::Cpu(_) => 0,
            Backend::Cuda(cuda) => cuda.id(),
        }
    }

    /// Returns the facts that launch expressions may use.
    pub fn facts(&self) -> DeviceFacts {
        match &self.0.backend {
            Backend::Cpu(cpu) => cpu.facts(),
            Backend::Cuda(cuda) => DeviceFacts { multiprocessors: cuda.info().multiprocessors },
        }
    }

    /// Returns the driver's name of the device, such as `NVIDIA H200`, or `CPU`.
    pub fn name(&self) -> &str {
        match &self.0.backend {
            Backend::Cpu(_) => "CPU",
            Backend::Cuda(cuda) => &cuda.info().name,
        }
    }

    /// Returns the bytes of the device's L2 cache; `None` for the CPU, or if the driver does not
    /// report them.
    pub fn l2_bytes(&self) -> Option<u64> {
        match &self.0.backend {
            Backend::Cpu(_) => None,
            Backend::Cuda(cuda) => cuda.info().l2_bytes.map(u64::from),
        }
    }

    /// Returns what the validation of a launch needs: the identity of the device's memory, and the
    /// device's facts.
    #[doc(hidden)]
    pub fn identity(&self) -> (u64, DeviceFacts) {
        (self.id(), self.facts())
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// Returns the memory statistics of the device: all its buffers, and the cached memory.
    pub fn memory(&self) -> MemoryStatistics {
        self.0.backend.with_pool(PoolKind::Device, |pool, _| pool.statistics())
    }

    /// Returns the statistics of the device's pinned host memory. On the CPU, which has only one
    /// kind of memory, [`memory`](Device::memory) returns the same.
    pub fn pinned_memory(&self) -> MemoryStatistics {
        self.0.backend.with_pool(PoolKind::Pinned, |pool, _| pool.statistics())
    }

    /// Returns the number of bytes that are available for new buffers: those that the driver and
    /// the pool have free, within the limit of [`limit_memory`](Device::limit_memory). Other
    /// programs may allocate them first. `None` for the CPU, or if the driver does not report them.
    pub fn free_memory(&self) -> Option<u64> {
        let Backend::Cuda(cuda) = &self.0.backend else { return None };
        let (statistics, free) = (self.memory(), cuda.free_memory()?);
        let within = statistics.limit.map_or(u64::MAX, |limit| limit.saturating_sub(statistics.in_use));
        Some(free.saturating_add(statistics.cached()).min(within))
    }

    /// Limits the device memory that the pool holds, used or not, to `bytes`; `None` removes the
    /// limit.
    pub fn limit_memory(&self, bytes: Option<u64>) {
        self.0.backend.with_pool(PoolKind::Device, |pool, _| pool.set_limit(bytes));
    }

    /// Sets the maximum time for which the host waits for an operation of a stream. A launch that
    /// takes longer counts as endless. `None`, the default, means no limit.
    ///
    /// On the CPU the launch is stopped and reported like a violation, and the device stays usable.
    /// On a GPU no driver function ends a kernel: the device is [lost](Device::lost), and every
    /// wait returns an error that names the kernel. [`Device::cuda`] then creates a new context, in
    /// which work continues beside the endless kernel. The resources of the endless kernel are
    /// released at the end of the process. On a card with a display, the driver's own time limit
    /// ends the kernel.
    ///
    /// While a limit is set, each operation on a GPU is followed by an event, and the host polls
    /// instead of sleeping. Copies of unpinned memory pass through pinned memory. Work submitted
    /// before the first limit has no events, so this function waits for such work, without a limit.
    /// Set the limit before submitting work that may not end. If other code captures a stream's
    /// work through its [driver handle](crate::Stream::driver_handle), this wait fails and ends the
    /// capture. A [`Recording`](crate::Recording) is not such a capture.
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        match &self.0.backend {
            Backend::Cpu(cpu) => cpu.set_watchdog_timeout(limit),
            Backend::Cuda(cuda) => cuda.set_watchdog_timeout(limit),
        }
    }

    /// Sets how many warp instructions a block of a launch on the CPU may execute before its loop
    /// counts as endless. `None`, the default, is 2³⁰: about a minute for one block. The launch may
    /// have any number of blocks.
    ///
    /// A stopped launch returns an error that names the loop, and the device stays usable. On a GPU
    /// the limit has no effect, because no counter of instructions exists there; use
    /// [`Device::set_watchdog_timeout`].
    pub fn set_instruction_limit(&self, limit: Option<u64>) {
        if let Backend::Cpu(cpu) = &self.0.backend {
            cpu.set_instruction_limit(limit);
        }
    }

    /// Stops the launches that run on the CPU now, from another thread. Each of them returns an
    /// error that names the line where it was stopped. Launches that begin later run.
    ///
    /// On a GPU the function has no effect, because no driver function ends a kernel.
    pub fn interrupt(&self) {
        if let Backend::Cpu(cpu) = &self.0.backend {
            cpu.interrupt();
        }
    }

    /// Sets the extent of the checks of launches on the CPU. The default is [`Checks::All`].
    ///
    /// With [`Checks::Accesses`] races, store conflicts and reads of uninitialized memory are not
    /// reported. With [`Checks::Values`] accesses outside buffers are not reported either: they
    /// have no effect. All extents give the same values for kernels without faults. On a GPU the
    /// setting has no effect: `launch` runs the checked form of each kernel.
    pub fn set_checks(&self, checks: Checks) {
        if let Backend::Cpu(cpu) = &self.0.backend {
            cpu.set_checks(checks);
        }
    }

    /// Sets the cache for kernels compiled for this GPU, or disables it, instead of the
    /// [environment's](crate::store) choice. The CPU caches nothing.
    pub fn set_store(&self, store: Option<Store>) {
        if let Backend::Cuda(cuda) = &self.0.backend {
            cuda.set_store(store);
        }
    }

    /// Releases all cached device memory and pinned memory, after waiting for work that may still
    /// use it. Returns the number of released bytes.
    ///
    /// # Errors
    /// If the device is lost.
    pub fn trim_memory(&self) -> Result<u64> {
        let trim = |memory| self.0.backend.with_pool(memory, |pool, source| pool.trim(source));
        // On the CPU both kinds share one pool, which the second call finds empty.
        Ok(trim(PoolKind::Device)? + trim(PoolKind::Pinned)?)
    }

    /// Compiles and loads both forms of the instance, each on its own thread. A launch then finds
    /// them ready. On the CPU nothing is loaded, but constants that do not fit the kernel are
    /// rejected.
    #[doc(hidden)]
    pub fn load(&self, kernel: &'static Artifact, constants: &[Constant]) -> Result<()> {
        thread::scope(|scope| {
            let checked = scope.spawn(|| self.load_form(LaunchForm::Checked, kernel, constants));
            self.load_form(LaunchForm::Unchecked, kernel, constants)?;
            checked.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Compiles and loads one form of the instance, as [`load`](Device::load) does for both.
    #[doc(hidden)]
    pub fn load_form(&self, form: LaunchForm, kernel: &'static Artifact, constants: &[Constant]) -> Result<()> {
        let program = self.instance(kernel, constants)?;
        let Backend::Cuda(cuda) = &self.0.backend else { return Ok(()) };
        cuda.preload(form, kernel, &program)
    }

    /// Calls `launch` if the arguments meet the kernel's contract and there are blocks to run.
    /// Returns the default if there are none.
    pub(crate) fn validated<'m, T: Default>(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'m>],
        launch: impl FnOnce(&LaunchedInstance, &ValidatedArgs<'_, 'm>) -> Result<T>,
    ) -> Result<T> {
        let program = self.instance(kernel, constants)?;
        let validated = ValidatedArgs::of_instance(&program, self.identity(), block, arguments)?;
        if validated.shape().is_empty() { Ok(T::default()) } else { launch(&program, &validated) }
    }

    /// Returns the instance of `artifact`, decoded and created once.
    pub(crate) fn instance(
        &self,
        artifact: &'static Artifact,
        constants: &[Constant],
    ) -> Result<Arc<LaunchedInstance>> {
        self.0.programs.get_or_make(artifact, constants, || {
            let program =
                artifact.program().map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
            let program = monomorphic(&program, &Instance(constants.to_vec()))
                .map_err(|source| Error::Compile { instance: artifact.instance_name(constants), source })?;
            Ok(LaunchedInstance::new(program))
        })
    }
}

/// Returns the first GPU, and whether it is emulated by the PTX interpreter behind `cuda-on-cpu`.
fn first_gpu() -> Result<(Arc<Cuda>, bool)> {
    let driver = Driver::open()?;
    let mut why = Error::NoDevice { driver: driver.version() };
    for ordinal in 0..driver.device_count()? {
        match Cuda::open(ordinal) {
            Ok(cuda) => return Ok((cuda, driver.is_on_cpu())),
            Err(e) => why = e,
        }
    }
    Err(why)
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.backend.fmt(f)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({self})")
    }
}

/// On the CPU both variants run under the oracle. On a GPU `launch` runs the checked form
/// ([`lower::checked`](kernel_dsl::compiler::lower::checked)), compiled at the first launch of an
/// instance. The first violation that the checked form detects, such as an access out of bounds, is
/// returned as an error. Races and divergent barriers are found on the CPU only.
///
/// A launch is complete when its function returns.
impl Launcher for Device {
    type Error = Error;

    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        self.validated(kernel, constants, block, arguments, |program, validated| match &self.0.backend {
            Backend::Cpu(cpu) => cpu.run(kernel, program, validated),
            Backend::Cuda(cuda) => {
                let mut launch = cuda.prepare_launch(form, kernel, program, validated)?;
                // SAFETY: the arguments borrow their memory; the rest by the caller's promise.
                unsafe { cuda.run(&mut launch) }
            }
        })
    }
}

/// The implementation of a device.
pub(crate) enum Backend {
    Cpu(Box<Cpu>),
    Cuda(Arc<Cuda>),
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backend::Cpu(_) => f.write_str("cpu (interpreter)"),
            Backend::Cuda(cuda) => {
                cuda.info().fmt(f)?;
                if cuda.lost().is_some() { f.write_str(", lost") } else { Ok(()) }
            }
        }
    }
}

impl Backend {
    /// Allocates memory to be written. The content is unspecified; on the CPU the bytes are
    /// initialized. Also returns the accesses to wait for before writing.
    pub fn take(&self, memory: PoolKind, bytes: usize) -> Result<(PoolAllocation, WaitSet)> {
        if let Backend::Cuda(cuda) = self {
            cuda.check()?;
        }
        event!(TRACE, ?memory, bytes, "memory taken");
        self.with_pool(memory, |pool, source| pool.take(bytes, source))
    }

    /// Returns an allocation to its pool. The next owner's first use waits for `pending`.
    pub fn give_back(&self, memory: PoolKind, (piece, bytes): (PoolAllocation, usize), pending: WaitSet) {
        event!(TRACE, ?memory, address = piece.address, "memory given back");
        if let Backend::Cpu(_) = self {
            HOST.stored(piece.address, bytes);
        }
        self.with_pool(memory, |pool, source| pool.give_back(piece, pending, source));
    }

    /// Calls `act` with the pool and its source of memory.
    fn with_pool<T>(&self, memory: PoolKind, act: impl FnOnce(&DevicePool, &dyn SegmentSource) -> T) -> T {
        match (self, memory) {
            (Backend::Cpu(cpu), _) => {
                let (pool, source) = cpu.memory();
                act(pool, &source)
            }
            (Backend::Cuda(cuda), PoolKind::Device) => {
                let (pool, source) = cuda.memory();
                act(pool, &source)
            }
            (Backend::Cuda(cuda), PoolKind::Pinned) => {
                let (pool, source) = cuda.pinned();
                act(pool, &source)
            }
        }
    }

    /// Waits on the host until all pending accesses are complete.
    pub fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        match self {
            Backend::Cpu(_) => Ok(()),
            Backend::Cuda(cuda) => cuda.wait_for(pending),
        }
    }

    /// Calls `act`, which waits for work without a limit. If there is a time limit, returns `None`
    /// without a call. The host could otherwise give up a wait while a copy to borrowed memory is
    /// in flight.
    pub fn unlimited<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        match self {
            Backend::Cpu(_) => Some(act()),
            Backend::Cuda(cuda) => cuda.unlimited(act),
        }
    }

    /// Returns the device's default queue.
    pub fn queue(&self) -> OperationQueue {
        match self {
            Backend::Cpu(_) => OperationQueue::Cpu,
            Backend::Cuda(cuda) => OperationQueue::Cuda(cuda.clone(), cuda.default_stream()),
        }
    }
}

/// The pool of an allocation: device or page-locked host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PoolKind {
    /// Memory that kernels read and write.
    Device,
    /// Page-locked host memory, which the device copies without the host. On the CPU, the same pool
    /// as `Device`.
    Pinned,
}
