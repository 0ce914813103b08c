//! Where kernels run.

use crate::cache::Cache;
use crate::contract::Approved;
use crate::cpu::Cpu;
use crate::cuda::{Cuda, Driver};
use crate::{Error, Result};
use kernel_dsl::compiler::hir::{Constant, Instance, Monomorphic, monomorphic, serial};
use kernel_dsl::compiler::launch::DeviceFacts;
use kernel_dsl::{Argument, Artifact, Launcher};
use serde::Serialize;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Once};

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
    /// The first call in a process says on stderr, in one line, what it chose and why; [`choice`](Device::choice) tells any
    /// time. [`Device::choose`] is the same without the line.
    pub fn best() -> Result<Device> {
        static SAID: Once = Once::new();
        let device = Device::choose()?;
        if let Some(choice) = device.choice() {
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
            Err(why) => (Backend::Cpu(Cpu::default()), format!("no GPU to use: {why}")),
        };
        let choice = Choice { device: backend.to_string(), reason };
        Ok(Device::new(backend, Some(choice)))
    }

    /// GPU number `ordinal`, as the driver counts.
    ///
    /// The error names what was found and what is needed: a driver of CUDA 8.0 or later (9.0 for kernels that shuffle), and a
    /// device of compute capability 6.1 or later.
    pub fn cuda(ordinal: usize) -> Result<Device> {
        Ok(Device::new(Backend::Cuda(Cuda::open(ordinal)?), None))
    }

    /// The CPU: kernels run on the interpreter, in host memory.
    pub fn cpu() -> Device {
        Device::new(Backend::Cpu(Cpu::default()), None)
    }

    /// Why it is this device, if [`Device::best`] or [`Device::choose`] made it.
    pub fn choice(&self) -> Option<&Choice> {
        self.0.choice.as_ref()
    }

    /// Whether it is the CPU.
    pub fn is_cpu(&self) -> bool {
        matches!(self.0.backend, Backend::Cpu(_))
    }

    fn new(backend: Backend, choice: Option<Choice>) -> Device {
        Device(Arc::new(Inner { backend, choice, programs: Cache::default() }))
    }

    /// What memory of this device is known by: 0 is the host's, then the GPUs by number.
    pub(crate) fn id(&self) -> u64 {
        match &self.0.backend {
            Backend::Cpu(_) => 0,
            Backend::Cuda(cuda) => 1 + cuda.info().ordinal as u64,
        }
    }

    /// What launch expressions can ask of it.
    pub(crate) fn facts(&self) -> DeviceFacts {
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
fn first_gpu() -> Result<(Cuda, bool)> {
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
        let program = self.instance(kernel, constants)?;
        let approved = Approved::new(kernel.name, &program, self, block, arguments)?;
        if approved.shape().is_empty() {
            return Ok(());
        }
        match &self.0.backend {
            Backend::Cpu(cpu) => cpu.run(kernel, &program, &approved),
            Backend::Cuda(cuda) => cuda.run_checked(kernel, &program, &approved),
        }
    }

    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let program = self.instance(kernel, constants)?;
        let approved = Approved::new(kernel.name, &program, self, block, arguments)?;
        if approved.shape().is_empty() {
            return Ok(());
        }
        match &self.0.backend {
            Backend::Cpu(cpu) => cpu.run(kernel, &program, &approved),
            // SAFETY: by the caller's promise.
            Backend::Cuda(cuda) => unsafe { cuda.run(kernel, &program, &approved) },
        }
    }
}

/// What does the work. Memory of no bytes has address 0 and is never touched.
pub(crate) enum Backend {
    Cpu(Cpu),
    Cuda(Cuda),
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backend::Cpu(_) => f.write_str("cpu (interpreter)"),
            Backend::Cuda(cuda) => cuda.info().fmt(f),
        }
    }
}

impl Backend {
    /// New memory, aligned to 256 bytes at least; its contents are not defined.
    pub fn allocate(&self, bytes: usize) -> Result<u64> {
        match self {
            _ if bytes == 0 => Ok(0),
            Backend::Cpu(cpu) => cpu.allocate(bytes),
            Backend::Cuda(cuda) => cuda.allocate(bytes),
        }
    }

    /// Frees memory.
    ///
    /// # Safety
    /// It came from `allocate` with as many bytes, and nobody uses it any more.
    pub unsafe fn free(&self, address: u64, bytes: usize) {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => {}
                Backend::Cpu(cpu) => cpu.free(address, bytes),
                Backend::Cuda(cuda) => cuda.free(address),
            }
        }
    }

    /// Sets all bytes.
    ///
    /// # Safety
    /// They are of one allocation, and nobody else uses them.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if bytes == 0 => Ok(()),
                Backend::Cpu(cpu) => {
                    cpu.fill(address, bytes, value);
                    Ok(())
                }
                Backend::Cuda(cuda) => cuda.fill(address, bytes, value),
            }
        }
    }

    /// Copies from the host.
    ///
    /// # Safety
    /// As many bytes at `address` are of one allocation, and nobody else uses them.
    pub unsafe fn write(&self, address: u64, from: &[u8]) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if from.is_empty() => Ok(()),
                Backend::Cpu(cpu) => {
                    cpu.write(address, from);
                    Ok(())
                }
                Backend::Cuda(cuda) => cuda.write(address, from),
            }
        }
    }

    /// Copies to the host.
    ///
    /// # Safety
    /// As many bytes at `address` are of one allocation, initialised, and nobody writes them.
    pub unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe {
            match self {
                _ if to.is_empty() => Ok(()),
                Backend::Cpu(cpu) => {
                    cpu.read(address, to);
                    Ok(())
                }
                Backend::Cuda(cuda) => cuda.read(address, to),
            }
        }
    }
}
