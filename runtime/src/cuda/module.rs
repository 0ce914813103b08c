//! Kernels loaded on a CUDA device, one module an instance, and their launches.

use super::checked::CheckedModule;
use super::context::Context;
use super::info::DeviceInfo;
use super::version;
use crate::Error;
use crate::cache::Cache;
use crate::contract::Approved;
use cudarc::driver::sys::{self, CUjit_option as JitOption};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Instance, Monomorphic};
use kernel_dsl::compiler::ir::SharedMemory;
use kernel_dsl::compiler::lower::checked::Checked;
use kernel_dsl::compiler::{self, Target, analyses, lower};
use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// Characters of the driver's log that an error keeps.
const LOG_BYTES: usize = 16 << 10;

/// A CUDA device and the kernels loaded there.
pub(crate) struct Cuda {
    context: Arc<Context>,
    /// By the artifact's address, which is static.
    modules: Cache<(usize, Instance), Module>,
    checked: Cache<(usize, Instance), CheckedModule>,
}

/// A loaded module and its one entry.
pub(super) struct Module {
    pub(super) context: Arc<Context>,
    module: sys::CUmodule,
    function: sys::CUfunction,
    shared: SharedMemory,
}

// SAFETY: module and function handles may be used from any thread, and from several at once.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Cuda {
    /// Device `ordinal`, if it is one that kernels run on.
    pub fn open(ordinal: usize) -> Result<Cuda, Error> {
        Ok(Cuda { context: Arc::new(Context::open(ordinal)?), modules: Cache::default(), checked: Cache::default() })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    /// New memory; `bytes` > 0.
    pub fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        self.context.allocate(bytes)
    }

    /// See [`Context::free`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn free(&self, address: u64) {
        // SAFETY: by the caller's promise.
        unsafe { self.context.free(address) }
    }

    /// See [`Context::fill`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn fill(&self, address: u64, bytes: usize, value: u8) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        unsafe { self.context.fill(address, bytes, value) }
    }

    /// See [`Context::write`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn write(&self, address: u64, from: &[u8]) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        unsafe { self.context.write(address, from) }
    }

    /// See [`Context::read`].
    ///
    /// # Safety
    /// As there.
    pub unsafe fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Error> {
        // SAFETY: by the caller's promise.
        unsafe { self.context.read(address, to) }
    }

    /// Runs the instance's PTX to its end: the declared one, or one compiled now. The module is loaded once.
    ///
    /// # Safety
    /// The kernel is free of out-of-bounds accesses and races for these arguments.
    pub unsafe fn run(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &Approved,
    ) -> Result<(), Error> {
        let instance = program.instance();
        let name = instance.name(artifact.name);
        let module = self.modules.get_or_make((ptr::from_ref(artifact).addr(), instance.clone()), || {
            self.context.info.require_target(artifact.target, &name)?;
            let ptx = ptx(artifact, artifact.target, program, &name)?;
            let shared = shared_memory(artifact.target, program, &ptx, &name)?;
            Module::load(self.context.clone(), &ptx, &instance.entry(artifact.name), &name, shared)
        })?;
        // SAFETY: the arguments were approved against the kernel that this is; the rest by the caller's promise.
        unsafe { module.launch(approved, &name, None) }
    }

    /// Runs the instance's checked form to its end. It is compiled and loaded once.
    pub fn run_checked(
        &self,
        artifact: &'static Artifact,
        program: &Monomorphic,
        approved: &Approved,
    ) -> Result<(), Error> {
        let instance = program.instance();
        let name = instance.name(artifact.name);
        let module = self.checked.get_or_make((ptr::from_ref(artifact).addr(), instance.clone()), || {
            self.context.info.require_target(artifact.target, &name)?;
            let failed = |source| Error::Compile { instance: name.clone(), source };
            let form = Checked::of(analyses::lowered_monomorphic(program, artifact.target).map_err(failed)?);
            let ptx = form.ptx().map_err(failed)?;
            let (entry, shared) = (instance.entry(artifact.name), form.kernel.shared_memory());
            let module = Module::load(self.context.clone(), &ptx, &entry, &name, shared)?;
            Ok::<_, Error>(CheckedModule::new(module, form))
        })?;
        module.launch(approved, &name)
    }
}

/// The instance's PTX for `target`: the declared one, or one compiled now.
pub(crate) fn ptx(
    artifact: &'static Artifact,
    target: Target,
    program: &Monomorphic,
    name: &str,
) -> Result<Cow<'static, str>, Error> {
    match artifact.instances.iter().find(|declared| declared.constants == program.instance().0) {
        Some(declared) if artifact.target == target => Ok(declared.ptx.into()),
        _ => compiler::compile_monomorphic(program, target)
            .map(Cow::Owned)
            .map_err(|source| Error::Compile { instance: name.to_string(), source }),
    }
}

/// What launches must know of the instance's shared memory. Only where they give it is there anything to know.
fn shared_memory(target: Target, program: &Monomorphic, ptx: &str, name: &str) -> Result<SharedMemory, Error> {
    if !ptx.contains(".extern .shared") {
        return Ok(SharedMemory { fixed: 0, dynamic: Vec::new() });
    }
    let lowered = lower::lower_monomorphic(program, target);
    let kernel = lowered.map_err(|source| Error::Compile { instance: name.to_string(), source })?;
    Ok(kernel.shared_memory())
}

impl Module {
    fn load(
        context: Arc<Context>,
        ptx: &str,
        entry: &str,
        instance: &str,
        shared: SharedMemory,
    ) -> Result<Module, Error> {
        version::check_ptx(ptx, context.driver.version(), instance)?;
        // Text ends at its first NUL for the driver; PTX that holds one is cut there and refused by the assembler.
        let text = CString::new(ptx.split('\0').next().unwrap_or_default()).unwrap_or_default();
        let mut log = vec![0u8; LOG_BYTES];
        let mut options =
            [JitOption::CU_JIT_ERROR_LOG_BUFFER as i32, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as i32];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let mut module = ptr::null_mut();
        let loaded = context.run(
            || "loading its module".to_string(),
            // SAFETY: the text ends with a NUL; as many options as values, each of the kind that its option takes: a buffer and
            // its size. All outlive the call.
            |driver| unsafe {
                let options = options.as_mut_ptr();
                (driver.module_load)(&mut module, text.as_ptr().cast(), 2, options, values.as_mut_ptr())
            },
        );
        if let Err(error) = loaded {
            let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
            let log = String::from_utf8_lossy(&log[..end]).trim_end().to_string();
            return Err(match error {
                Error::Driver(source) => Error::Load { instance: instance.to_string(), source: source.into(), log },
                other => other,
            });
        }
        let mut loaded = Module { context, module, function: ptr::null_mut(), shared };
        let name = CString::new(entry).unwrap_or_default();
        let mut function = ptr::null_mut();
        loaded.context.run(
            || format!("finding entry {entry} in the module of {instance}"),
            // SAFETY: the module is loaded; the name ends with a NUL.
            |driver| unsafe { (driver.module_function)(&mut function, module, name.as_ptr()) },
        )?;
        loaded.function = function;
        Ok(loaded)
    }

    /// Runs the entry and waits for its end. The checked form takes the address of a record after the arguments.
    ///
    /// # Safety
    /// The arguments are those that the entry takes; the kernel is free of out-of-bounds accesses and races for them.
    pub(super) unsafe fn launch(&self, approved: &Approved, instance: &str, record: Option<u64>) -> Result<(), Error> {
        let mut values = approved.parameters();
        let shared = approved.shared_bytes(instance, &self.shared)?;
        values.extend(record);
        let mut pointers: Vec<*mut c_void> = values.iter_mut().map(|v| ptr::from_mut(v).cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (approved.shape().grid, approved.shape().block);
        self.context.run(
            || format!("running {instance} in {gx} × {gy} × {gz} blocks of {bx} × {by} × {bz} threads"),
            // SAFETY: there is a pointer for each parameter of the entry, to at least as many bytes as the parameter has; the rest
            // by the caller's promise. The default stream is waited for, so that an error is this launch's.
            |driver| unsafe {
                let launched = (driver.launch)(
                    self.function,
                    gx,
                    gy,
                    gz,
                    bx,
                    by,
                    bz,
                    shared,
                    ptr::null_mut(),
                    pointers.as_mut_ptr(),
                    ptr::null_mut(),
                );
                match launched {
                    0 => (driver.stream_wait)(ptr::null_mut()),
                    code => code,
                }
            },
        )
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in `load`; every launch of it has ended.
        let _ =
            self.context.run(|| "unloading a module".into(), |driver| unsafe { (driver.module_unload)(self.module) });
    }
}
