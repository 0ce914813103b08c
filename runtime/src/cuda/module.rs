//! Kernels loaded on a CUDA device, one module an instance, and their launches.

use super::context::Context;
use super::version;
use crate::Error;
use cudarc::driver::sys::{self, CUjit_option as JitOption};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::SharedMemory;
use kernel_dsl::compiler::{self, Target, lower};
use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// Characters of the driver's log that an error keeps.
const LOG_BYTES: usize = 16 << 10;

/// A loaded module and its one entry.
pub(super) struct Module {
    context: Arc<Context>,
    module: sys::CUmodule,
    function: sys::CUfunction,
    shared: SharedMemory,
}

// SAFETY: module and function handles may be used from any thread, and from several at once.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

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
pub(super) fn shared_memory(
    target: Target,
    program: &Monomorphic,
    ptx: &str,
    name: &str,
) -> Result<SharedMemory, Error> {
    if !ptx.contains(".extern .shared") {
        return Ok(SharedMemory { fixed: 0, dynamic: Vec::new() });
    }
    let lowered = lower::lower_monomorphic(program, target);
    let kernel = lowered.map_err(|source| Error::Compile { instance: name.to_string(), source })?;
    Ok(kernel.shared_memory())
}

impl Module {
    pub(super) fn load(
        context: Arc<Context>,
        ptx: &str,
        entry: &str,
        instance: &str,
        shared: &SharedMemory,
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
            || format!("loading its module of {} bytes of PTX", ptx.len()),
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
        let mut loaded = Module { context, module, function: ptr::null_mut(), shared: shared.clone() };
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

    /// The entry.
    pub(super) fn function(&self) -> sys::CUfunction {
        self.function
    }

    /// What launches must know of its shared memory.
    pub(super) fn shared(&self) -> &SharedMemory {
        &self.shared
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded in `load`; the device, which waits for its streams, has gone before.
        let _ =
            self.context.run(|| "unloading a module".into(), |driver| unsafe { (driver.module_unload)(self.module) });
    }
}
