//! A GPU that is open: its context, streams, memory, and the kernels loaded there.

use super::context::Context;
use super::info::DeviceInfo;
use super::lane::{Lane, Lanes};
use super::launch::{Launch, Loaded, Ready, Residency};
use super::mark::Mark;
use super::module::{Module, ptx, shared_memory};
use crate::cache::Cache;
use crate::contract::Approved;
use crate::pool::{Pool, Source};
use crate::stream::{Pending, Used};
use crate::{Error, Result};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::analyses;
use kernel_dsl::compiler::hir::{Instance, Monomorphic};
use kernel_dsl::compiler::lower::checked::Checked;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What the environment has where a device's memory is to be the driver's each time.
const NO_POOL: &str = "KERNELS_NO_POOL";

/// A CUDA device. There is one of each number in a process: that is what lets the streams of all who use it know of one another.
pub(crate) struct Cuda {
    context: Arc<Context>,
    lanes: Lanes,
    memory: Pool,
    pinned: Pool,
    /// By the artifact's address, which is static.
    modules: Cache<(usize, Instance), Arc<Module>>,
    checked: Cache<(usize, Instance), (Arc<Module>, Arc<Checked>)>,
}

/// Which form of a kernel is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Every access checked.
    Checked,
    /// Its own PTX.
    Bare,
}

/// Device memory.
struct DeviceMemory<'a>(&'a Cuda);
/// Host memory that the device copies from and to by itself.
struct PinnedMemory<'a>(&'a Cuda);

impl Cuda {
    /// Device `ordinal`, if it is one that kernels run on.
    pub fn open(ordinal: usize) -> Result<Arc<Cuda>> {
        /// Those that are open: the driver, too, has one primary context of each in a process.
        static OPEN: Mutex<Vec<(usize, Weak<Cuda>)>> = Mutex::new(Vec::new());
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, cuda)| cuda.strong_count() > 0);
        if let Some(cuda) = open.iter().find(|(o, _)| *o == ordinal).and_then(|(_, cuda)| cuda.upgrade()) {
            return Ok(cuda);
        }
        let context = Arc::new(Context::open(ordinal)?);
        let cuda = Arc::new(Cuda {
            lanes: Lanes::new(context.clone())?,
            context,
            memory: if std::env::var_os(NO_POOL).is_some() { Pool::bare() } else { Pool::default() },
            pinned: Pool::default(),
            modules: Cache::default(),
            checked: Cache::default(),
        });
        open.push((ordinal, Arc::downgrade(&cuda)));
        Ok(cuda)
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
    pub fn first_lane(&self) -> Arc<Lane> {
        self.lanes.first()
    }

    /// A lane that nobody has.
    pub fn take_lane(&self) -> Result<Arc<Lane>> {
        self.lanes.take()
    }

    /// Gives a lane back.
    pub fn give_lane(&self, lane: &Lane) {
        self.lanes.give(lane);
    }

    /// Waits on the host for all of this.
    pub fn wait_for(&self, pending: &Pending) -> Result<()> {
        self.lanes.wait_for(pending)
    }

    /// Sets every byte.
    ///
    /// # Safety
    /// `bytes` bytes at `address` are one allocation's, `used` says that they are written, and nobody else uses them.
    pub unsafe fn fill(&self, lane: &Lane, used: &Used<'_>, address: u64, bytes: usize, value: u8) -> Result<()> {
        let doing = || format!("filling {bytes} bytes at {address:#x}");
        // SAFETY: by the caller's promise.
        self.lanes.submit(lane, used, doing, |driver, stream| unsafe {
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
        lane: &Lane,
        used: &Used<'_>,
        address: u64,
        from: *const u8,
        bytes: usize,
    ) -> Result<()> {
        let doing = || format!("copying {bytes} bytes to the device at {address:#x}");
        // SAFETY: by the caller's promise.
        self.lanes.submit(lane, used, doing, |driver, stream| unsafe {
            (driver.copy_to_device_in)(address, from.cast(), bytes, stream)
        })
    }

    /// Copies from the device.
    ///
    /// # Safety
    /// As many bytes at `address` are one allocation's, `used` says that they are read, and nobody writes them; `to` lives, and
    /// nobody else uses it, until the copy is over.
    pub unsafe fn read(&self, lane: &Lane, used: &Used<'_>, address: u64, to: *mut u8, bytes: usize) -> Result<()> {
        let doing = || format!("copying {bytes} bytes from the device at {address:#x}");
        // SAFETY: by the caller's promise.
        self.lanes.submit(lane, used, doing, |driver, stream| unsafe {
            (driver.copy_to_host_in)(to.cast(), address, bytes, stream)
        })
    }

    /// Copies within the device.
    ///
    /// # Safety
    /// As many bytes at both are of allocations, `used` says that the first are read and the second written, and nobody writes the
    /// first or uses the second.
    pub unsafe fn copy(&self, lane: &Lane, used: &Used<'_>, from: u64, to: u64, bytes: usize) -> Result<()> {
        let doing = || format!("copying {bytes} bytes from {from:#x} to {to:#x}");
        // SAFETY: by the caller's promise.
        self.lanes.submit(lane, used, doing, |driver, stream| unsafe { (driver.copy_in)(to, from, bytes, stream) })
    }

    /// Copies from another device. Its streams wait for what the copy does with its memory, and the copy for theirs.
    ///
    /// # Safety
    /// As for [`copy`](Cuda::copy), where `used` says that the second is written, and the first is `other`'s, whose uses `read` are.
    pub unsafe fn copy_from(
        &self,
        lane: &Arc<Lane>,
        used: &Used<'_>,
        to: u64,
        (other, read, from): (&Arc<Cuda>, &Used<'_>, u64),
        bytes: usize,
    ) -> Result<()> {
        let doing = || format!("copying {bytes} bytes from {from:#x} of {} to {to:#x}", other.info());
        let contexts = (self.context.handle(), other.context.handle());
        // A moment is of one device: on the other the copy is what a lane there waits for.
        let there = other.lanes.take()?;
        let copied = (|| {
            other.lanes.submit(&there, read, doing, |_, _| 0)?;
            Mark::record(&there)?.hold(lane)?;
            // SAFETY: by the caller's promise; both contexts are alive.
            self.lanes.submit(lane, used, doing, |driver, stream| unsafe {
                (driver.copy_between)(to, contexts.0, from, contexts.1, bytes, stream)
            })?;
            Mark::record(lane)?.hold(&there)?;
            other.lanes.submit(&there, read, doing, |_, _| 0)
        })();
        other.lanes.give(&there);
        copied
    }

    /// What the driver says of the blocks of a launch of the kernel's own PTX.
    pub fn residency(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &Approved<'_, '_>,
    ) -> Result<Residency> {
        self.launch(Form::Bare, artifact, program, approved)?.residency(&self.context)
    }

    /// Makes a launch of the instance ready. Its module is compiled and loaded once.
    pub fn ready<'m>(
        &self,
        form: Form,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &Approved<'_, 'm>,
    ) -> Result<Ready<'m>> {
        Ok(Ready::new(self.launch(form, artifact, program, approved)?, approved))
    }

    /// The same without the memory that it uses.
    pub(super) fn launch(
        &self,
        form: Form,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &Approved<'_, '_>,
    ) -> Result<Launch> {
        let instance = program.instance();
        let (key, name) = ((ptr::from_ref(artifact).addr(), instance.clone()), instance.name(artifact.name));
        let failed = |source| Error::Compile { instance: name.clone(), source };
        let load = |ptx: &str, shared| {
            self.context.info.require_target(artifact.target, &name)?;
            Module::load(self.context.clone(), ptx, &instance.entry(artifact.name), &name, shared).map(Arc::new)
        };
        let kernel = match form {
            Form::Bare => Loaded::Bare(
                self.modules
                    .get_or_make(key, || {
                        let ptx = ptx(artifact, artifact.target, program, &name)?;
                        load(&ptx, shared_memory(artifact.target, program, &ptx, &name)?)
                    })?
                    .as_ref()
                    .clone(),
            ),
            Form::Checked => {
                let checked = self.checked.get_or_make(key, || {
                    let form = Checked::of(analyses::lowered_monomorphic(program, artifact.target).map_err(failed)?);
                    let module = load(&form.ptx().map_err(failed)?, form.kernel.shared_memory())?;
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
    pub unsafe fn submit(&self, lane: &Lane, launch: &mut Ready<'_>) -> Result<()> {
        // SAFETY: by the caller's promise.
        unsafe { launch.submit(&self.lanes, lane, &mut lane.state()) }
    }

    /// Runs a launch to its end, on the device's own lane: what is found is this launch's.
    ///
    /// # Safety
    /// As for [`submit`](Cuda::submit).
    pub unsafe fn run(&self, launch: &mut Ready<'_>) -> Result<()> {
        let lane = self.lanes.first();
        let mut state = lane.state();
        // SAFETY: by the caller's promise.
        unsafe { launch.submit(&self.lanes, &lane, &mut state)? };
        self.lanes.wait_in(&lane, &mut state)
    }

    /// Waits for all that a lane was given; the error is what was found on the way, the oldest first.
    pub fn wait(&self, lane: &Lane) -> Result<()> {
        self.lanes.wait_in(lane, &mut lane.state())
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) fn lanes(&self) -> &Lanes {
        &self.lanes
    }
}

impl Source for DeviceMemory<'_> {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        self.0.context.allocate(bytes as usize)
    }

    fn name(&self) -> String {
        self.0.context.info.to_string()
    }

    fn wait_for(&self, pending: &Pending) -> Result<()> {
        self.0.wait_for(pending)
    }

    unsafe fn release(&self, address: u64, _: u64) {
        // SAFETY: by the caller's promise.
        unsafe { self.0.context.free(address) }
    }
}

impl Source for PinnedMemory<'_> {
    fn reserve(&self, bytes: u64) -> Result<u64> {
        self.0.context.allocate_pinned(bytes as usize)
    }

    fn name(&self) -> String {
        format!("the host, pinned for {}", self.0.context.info)
    }

    fn wait_for(&self, pending: &Pending) -> Result<()> {
        self.0.wait_for(pending)
    }

    unsafe fn release(&self, address: u64, _: u64) {
        // SAFETY: by the caller's promise.
        unsafe { self.0.context.free_pinned(address) }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Nobody is left who could be told. What a device that fails does not give back goes with its context.
        let _ = self.lanes.wait();
        let _ = self.memory.trim(&DeviceMemory(self));
        let _ = self.pinned.trim(&PinnedMemory(self));
    }
}
