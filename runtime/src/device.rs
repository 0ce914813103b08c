//! Where kernels run.

use crate::cache::Cache;
use crate::contract::ValidatedArgs;
use crate::cpu::Cpu;
use crate::cuda::{Cuda, Driver, Loss, Variant};
use crate::hazard::WaitSet;
use crate::pool::{Allocation, MemoryStatistics, Pool, Source};
use crate::store::Store;
use crate::stream::Queue;
use crate::trace::{event, hears};
use crate::uninit::HOST;
use crate::{Error, Result};
use kernel_dsl::compiler::hir::{Constant, Instance, Monomorphic, monomorphic, serial};
use kernel_dsl::compiler::launch::DeviceFacts;
use kernel_dsl::{Argument, Artifact, Launcher};
use serde::Serialize;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

/// A device: an NVIDIA GPU, or the CPU, where the oracle interprets kernels and checks all that they do.
///
/// Clones are the same device. Two devices made separately for the same GPU, or for the CPU, share memory: a buffer of one
/// is at home on the other.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    backend: Backend,
    choice: Option<Choice>,
    /// By the artifact's address, which is static.
    programs: Cache<(usize, Instance), Monomorphic>,
    /// By their type.
    companions: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// What [`Device::best`] chose, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Choice {
    pub device: String,
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.device, self.reason)
    }
}

impl Device {
    /// The first GPU that kernels run on, else the CPU.
    ///
    /// It says what it chose and why: to subscribers of `tracing`, where the crate has that feature and somebody listens, else the first call
    /// in a process in one line on stderr. [`choice`](Device::choice) tells any time. [`Device::choose`] is the same without a word.
    pub fn best() -> Result<Device> {
        static SAID: Once = Once::new();
        let device = Device::choose()?;
        if let Some(choice) = device.choice() {
            event!(INFO, device = %choice.device, reason = %choice.reason, "device chosen");
            if hears!(INFO) {
                return Ok(device);
            }
            SAID.call_once(|| eprintln!("kernel-dsl: {choice}"));
        }
        Ok(device)
    }

    /// What [`Device::best`] gives, chosen silently.
    pub fn choose() -> Result<Device> {
        let (backend, reason) = match first_gpu() {
            Ok((cuda, false)) => (Backend::Cuda(cuda), "the first GPU that kernels run on".to_string()),
            Ok((cuda, true)) => {
                let reason = "the first GPU that kernels run on, which is none: its driver is cuda-on-cpu";
                (Backend::Cuda(cuda), reason.to_string())
            }
            Err(why) => (Backend::Cpu(Box::default()), format!("no GPU to use: {why}")),
        };
        let choice = Choice { device: backend.to_string(), reason };
        Ok(Device::new(backend, Some(choice)))
    }

    /// GPU number `ordinal`, as the driver counts.
    ///
    /// Where the environment has `KERNELS_NO_POOL`, memory is the driver's each time: for tools that look on, such as Compute Sanitizer, each
    /// buffer is then an allocation of its own.
    ///
    /// The error names what was found and what is needed: a driver of CUDA 8.0 or later (9.0 for kernels that shuffle), and a
    /// device of compute capability 6.1 or later.
    ///
    /// Where the device was [`lost`](Device::lost), this is it in a new context, which has nothing in common with the lost one.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device::new(Backend::Cuda(Cuda::open(ordinal)?), None))
    }

    /// The CPU: kernels run on the interpreter, in host memory.
    pub fn cpu() -> Device {
        Device::new(Backend::Cpu(Box::default()), None)
    }

    /// Why it is this device, if [`Device::best`] or [`Device::choose`] made it.
    pub fn choice(&self) -> Option<&Choice> {
        self.0.choice.as_ref()
    }

    /// Whether it is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0.backend, Backend::Cpu(_))
    }

    /// Why it can no longer be used, if it is lost: a kernel has trapped or left its memory, or the hardware has failed. Every operation says
    /// so from then on, at once, and nothing else of the process is touched. Buffers, streams and launches that are of it can be dropped;
    /// what they held is gone.
    ///
    /// [`Device::cuda`] then opens the GPU anew, in another context. It does so while there still are buffers of the lost device, whose
    /// memory comes back when the last that is of it is dropped.
    ///
    /// The CPU is never lost.
    pub fn lost(&self) -> Option<&Loss> {
        match &self.0.backend {
            Backend::Cpu(_) => None,
            Backend::Cuda(cuda) => cuda.lost().map(|loss| &**loss),
        }
    }

    fn new(backend: Backend, choice: Option<Choice>) -> Device {
        Device(Arc::new(Inner { backend, choice, programs: Cache::default(), companions: Mutex::default() }))
    }

    /// The value of type `T` that is kept with the device, made when it is first asked for: tables, say, that calls of one shape have in common. It goes with
    /// the last clone of the device.
    ///
    /// `make` gets a device of its own, which is the same GPU, or the CPU, for buffers: one of this device would keep it, and so itself, for ever.
    pub fn get_or_init_extension<T: Send + Sync + 'static>(&self, make: impl FnOnce(Device) -> T) -> Arc<T> {
        // A panic of `make` leaves the map as it was.
        let mut companions = self.0.companions.lock().unwrap_or_else(PoisonError::into_inner);
        let get_or_init_extension = companions.entry(TypeId::of::<T>()).or_insert_with(|| {
            let backend = match &self.0.backend {
                Backend::Cpu(_) => Backend::Cpu(Box::default()),
                Backend::Cuda(cuda) => Backend::Cuda(cuda.clone()),
            };
            Arc::new(make(Device::new(backend, None)))
        });
        get_or_init_extension.clone().downcast().unwrap_or_else(|_| unreachable!("companions are kept by their type"))
    }

    /// What memory of this device is known by: 0 is the host's. That of a device that was lost is not that of the one which was opened after.
    pub(crate) fn id(&self) -> u64 {
        match &self.0.backend {
            Backend::Cpu(_) => 0,
            Backend::Cuda(cuda) => cuda.id(),
        }
    }

    /// What launch expressions can ask of it.
    pub fn facts(&self) -> DeviceFacts {
        let multiprocessors = match &self.0.backend {
            // As `kernel_dsl::device` says.
            Backend::Cpu(_) => 2,
            Backend::Cuda(cuda) => cuda.info().multiprocessors,
        };
        DeviceFacts { multiprocessors }
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// How its memory stands: all buffers of it, by whomever they were made, and what is kept for more.
    pub fn memory(&self) -> MemoryStatistics {
        self.0.backend.with_pool(Memory::Device, |pool, _| pool.statistics())
    }

    /// The same of the pinned host memory that it keeps. On the CPU there is one kind of memory.
    pub fn pinned_memory(&self) -> MemoryStatistics {
        self.0.backend.with_pool(Memory::Pinned, |pool, _| pool.statistics())
    }

    /// From now on the device's memory that is held, used or not, grows to `bytes` at most; to all that there is, if `None`.
    pub fn limit_memory(&self, bytes: Option<u64>) {
        self.0.backend.with_pool(Memory::Device, |pool, _| pool.set_limit(bytes));
    }

    /// From now on the host waits for an operation of a stream for as long as `limit` at most: longer, and the launch is taken to be endless.
    /// `None`, which is what a device begins with, waits for ever.
    ///
    /// On the CPU the launch is stopped and reported, as what the oracle finds, and the device goes on. On a GPU nothing ends a kernel
    /// from outside: the device is [lost](Device::lost), with an error that names the kernel; whoever waits for it gets
    /// that error instead of waiting for ever. [`Device::cuda`] makes a new context, in which work goes on beside the
    /// endless kernel; what that takes of the GPU comes back with the end of the process. (Where a display hangs on the card, its driver
    /// has a limit of its own, and ends the kernel.)
    ///
    /// While a limit is set, each operation on a GPU has an event behind it, the host polls where it would sleep, and copies
    /// from and to memory that is not pinned go through memory that is. What was submitted before there was any has no events: setting the
    /// first limit waits for all of it, for ever if it does not end, so set it before what may not. (Work that somebody else captures
    /// meanwhile, by the [driver's handle](crate::Stream::driver_handle) of a stream, cannot be waited for: the driver breaks
    /// the capture off. A [`Recording`](crate::Recording) is no such capture.)
    pub fn set_watchdog_timeout(&self, limit: Option<Duration>) {
        match &self.0.backend {
            Backend::Cpu(cpu) => cpu.set_watchdog_timeout(limit),
            Backend::Cuda(cuda) => cuda.set_watchdog_timeout(limit),
        }
    }

    /// Sets how many warp instructions a block of a launch on the CPU may run before the loop that
    /// it is in is taken to be endless. `None`, which is what a device begins with, is 2³²: minutes
    /// of one block. The launch may have any number of blocks.
    ///
    /// A launch that is stopped is an error that names the loop, and the device goes on. A GPU
    /// counts no instructions, and this sets nothing there: [`Device::set_watchdog_timeout`] does.
    pub fn set_instruction_limit(&self, limit: Option<u64>) {
        if let Backend::Cpu(cpu) = &self.0.backend {
            cpu.set_instruction_limit(limit);
        }
    }

    /// From now on what is compiled for this GPU is kept there, or nowhere: in place of what the [environment](crate::store) says. The CPU
    /// keeps nothing.
    pub fn set_store(&self, store: Option<Store>) {
        if let Backend::Cuda(cuda) = &self.0.backend {
            cuda.set_store(store);
        }
    }

    /// Gives back all memory that is kept and not used, pinned memory too: the number of bytes. It waits for work that may still
    /// use it.
    pub fn trim_memory(&self) -> Result<u64> {
        let trim = |memory| self.0.backend.with_pool(memory, |pool, source| pool.trim(source));
        // On the CPU both are one, and empty the second time.
        Ok(trim(Memory::Device)? + trim(Memory::Pinned)?)
    }

    /// Runs a launch to its end.
    ///
    /// # Safety
    /// On a GPU the kernel is free of out-of-bounds accesses and races for these arguments, unless it is the checked form.
    pub(crate) unsafe fn run(
        &self,
        form: Variant,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        self.approved(kernel, constants, block, arguments, |program, approved| match &self.0.backend {
            Backend::Cpu(cpu) => cpu.run(kernel, program, approved),
            Backend::Cuda(cuda) => {
                let mut launch = cuda.ready(form, kernel, program, approved)?;
                // SAFETY: the arguments borrow their memory; the rest by the caller's promise.
                unsafe { cuda.run(&mut launch) }
            }
        })
    }

    /// What `launch` gives if the arguments meet the kernel's contract and there is anything to run; the default if there is nothing.
    pub(crate) fn approved<'m, T: Default>(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'m>],
        launch: impl FnOnce(&Monomorphic, &ValidatedArgs<'_, 'm>) -> Result<T>,
    ) -> Result<T> {
        let program = self.instance(kernel, constants)?;
        let approved = ValidatedArgs::new(kernel.name, &program, self, block, arguments)?;
        if approved.shape().is_empty() { Ok(T::default()) } else { launch(&program, &approved) }
    }

    /// The instance of `artifact`, decoded and made once.
    pub(crate) fn instance(&self, artifact: &'static Artifact, constants: &[Constant]) -> Result<Arc<Monomorphic>> {
        let instance = Instance(constants.to_vec());
        let key = (ptr::from_ref(artifact).addr(), instance);
        self.0.programs.get_or_make(key.clone(), || {
            let (_, instance) = &key;
            let program = serial::program(artifact.hir)
                .map_err(|source| Error::Hir { kernel: artifact.name.to_string(), source })?;
            monomorphic(&program, instance)
                .map_err(|source| Error::Compile { instance: instance.name(artifact.name), source })
        })
    }
}

/// With whether it is no GPU at all, but the PTX interpreter behind a driver of our own.
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

/// On the CPU both forms run under the oracle. On a GPU `launch` runs the checked form
/// ([`lower::checked`](kernel_dsl::compiler::lower::checked)), compiled when an instance is first launched: accesses out of bounds
/// and overflow of `usize` come back as an error, which tells the first. Races and barriers that not all threads reach are seen by
/// the CPU alone.
///
/// A launch has ended when its function returns.
impl Launcher for Device {
    type Error = Error;

    fn launch(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // SAFETY: it is the checked form.
        unsafe { self.run(Variant::Checked, kernel, constants, block, arguments) }
    }

    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { self.run(Variant::Unchecked, kernel, constants, block, arguments) }
    }
}

/// What does the work.
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
    /// Memory that is still to be written: what it holds is not defined, and on the CPU initialised. With it comes what must be over before it is
    /// written.
    pub fn take(&self, memory: Memory, bytes: usize) -> Result<(Allocation, WaitSet)> {
        if let Backend::Cuda(cuda) = self {
            cuda.check()?;
        }
        event!(TRACE, ?memory, bytes, "memory taken");
        self.with_pool(memory, |pool, source| pool.take(bytes, source))
    }

    /// Takes so many bytes back, for others to have once `pending` is over.
    pub fn give(&self, memory: Memory, (piece, bytes): (Allocation, usize), pending: WaitSet) {
        event!(TRACE, ?memory, address = piece.address, "memory given back");
        if let Backend::Cpu(_) = self {
            HOST.stored(piece.address, bytes);
        }
        self.with_pool(memory, |pool, source| pool.give(piece, pending, source));
    }

    /// What `act` gives of the pool and of where its memory comes from.
    fn with_pool<T>(&self, memory: Memory, act: impl FnOnce(&Pool, &dyn Source) -> T) -> T {
        match (self, memory) {
            (Backend::Cpu(cpu), _) => {
                let (pool, source) = cpu.memory();
                act(pool, &source)
            }
            (Backend::Cuda(cuda), Memory::Device) => {
                let (pool, source) = cuda.memory();
                act(pool, &source)
            }
            (Backend::Cuda(cuda), Memory::Pinned) => {
                let (pool, source) = cuda.pinned();
                act(pool, &source)
            }
        }
    }

    /// Waits on the host for all of this.
    pub fn wait_for(&self, pending: &WaitSet) -> Result<()> {
        match self {
            Backend::Cpu(_) => Ok(()),
            Backend::Cuda(cuda) => cuda.wait_for(pending),
        }
    }

    /// What `act` gives, which waits for work however long that takes; `None`, without a call, where there is a limit of time, and the
    /// host may give up waiting with copies still under way.
    pub fn unlimited<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        match self {
            Backend::Cpu(_) => Some(act()),
            Backend::Cuda(cuda) => cuda.unlimited(act),
        }
    }

    /// The device's own queue.
    pub fn queue(&self) -> Queue {
        match self {
            Backend::Cpu(_) => Queue::Cpu,
            Backend::Cuda(cuda) => Queue::Cuda(cuda.clone(), cuda.default_stream()),
        }
    }
}

/// Whose memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Memory {
    /// What kernels read and write.
    Device,
    /// The host's, where the device copies from and to by itself. On the CPU there is one kind.
    Pinned,
}
