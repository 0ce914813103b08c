//! Kernels loaded on a CUDA device, one module for each instance.

use super::context::Context;
use super::driver::{Libraries, Library, SUCCESS};
use super::version::{self, CudaVersion};
use crate::Error;
use crate::store::{EntryKey, Store};
use crate::trace::{event, span};
use cudarc::driver::sys::{self, CUjit_option as JitOption};
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::SharedMemoryNeed;
use kernel_dsl::compiler::{self, Target, lower};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_void};
use std::ptr;
use std::sync::Arc;

/// Characters of the driver's log that an error keeps.
const LOG_BYTES: usize = 16 << 10;

/// Loaded code and its one entry.
pub(crate) struct LoadedEntry {
    context: Arc<Context>,
    code: LoadedCode,
    function: sys::CUfunction,
    /// The name of the kernel's instance.
    instance: Arc<str>,
    shared: SharedMemoryNeed,
}

/// Memory for the messages of the driver's compiler.
struct JitLog(Box<[u8]>);

impl Default for JitLog {
    fn default() -> JitLog {
        JitLog(vec![0; LOG_BYTES].into())
    }
}

impl JitLog {
    fn text(&self) -> String {
        let end = self.0.iter().position(|b| *b == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).trim_end().to_string()
    }
}

/// A handle of loaded code.
#[derive(Clone, Copy)]
enum LoadedCode {
    Library(Library, Libraries),
    Module(sys::CUmodule),
}

// SAFETY: handles of libraries, modules and functions may be used from any thread, also from
// several at once.
unsafe impl Send for LoadedEntry {}
// SAFETY: as above.
unsafe impl Sync for LoadedEntry {}

/// Returns the instance's PTX. If the artifact does not declare the instance, `store` caches the
/// PTX.
pub(super) fn stored_ptx(
    store: Option<&Store>,
    artifact: &'static Artifact,
    program: &Monomorphic,
    name: &str,
) -> Result<Cow<'static, str>, Error> {
    let make = || ptx(artifact, artifact.target, program, name);
    let is_declared = artifact.instances.iter().any(|declared| declared.constants == program.instance().0);
    match store {
        Some(store) if !is_declared => {
            load_or_make(store, artifact, program, "bare", || make().map(Cow::into_owned)).map(Cow::Owned)
        }
        _ => make(),
    }
}

/// Returns the cached text of variant `form` of the instance. If there is none, returns the text of
/// `make` and caches it.
pub(super) fn load_or_make(
    store: &Store,
    artifact: &'static Artifact,
    program: &Monomorphic,
    form: &str,
    make: impl FnOnce() -> Result<String, Error>,
) -> Result<String, Error> {
    let (target, instance) = (artifact.target.to_string(), format!("{:?}", program.instance()));
    let parts = [compiler::FINGERPRINT, form, artifact.name, &target, &instance].map(str::as_bytes);
    let key = EntryKey::new(&[&parts[..], &[artifact.hir]].concat());
    if let Some(text) = store.load(&key).and_then(|bytes| String::from_utf8(bytes).ok()) {
        event!(DEBUG, entry = %key.name(), "store: PTX found");
        return Ok(text);
    }
    let text = make()?;
    keep(store, &key, text.as_bytes());
    Ok(text)
}

/// Stores an entry in the cache. A failure is logged, and is not an error.
fn keep(store: &Store, key: &EntryKey, content: &[u8]) {
    match store.save(key, content) {
        Ok(()) => event!(DEBUG, entry = %key.name(), bytes = content.len(), "store: kept"),
        Err(_why) => event!(WARN, entry = %key.name(), why = %_why, "store: cannot be kept"),
    }
}

/// Returns the instance's PTX for `target`: the declared text, or one compiled now.
pub fn ptx(
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

/// Returns the instance's shared memory, as launches need it. The description is empty unless the
/// launch determines the size.
pub(super) fn shared_memory(
    target: Target,
    program: &Monomorphic,
    ptx: &str,
    name: &str,
) -> Result<SharedMemoryNeed, Error> {
    if !ptx.contains(".extern .shared") {
        return Ok(SharedMemoryNeed { fixed: 0, dynamic: Vec::new() });
    }
    let lowered = lower::lower_monomorphic(program, target);
    let kernel = lowered.map_err(|source| Error::Compile { instance: name.to_string(), source })?;
    Ok(kernel.shared_memory())
}

/// Converts PTX for the driver. The driver's text ends at the first NUL: PTX with a NUL is
/// truncated there and rejected by the assembler.
fn text(ptx: &str) -> CString {
    CString::new(ptx.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// Rejects PTX whose `.version` is too new for a driver of CUDA `found`. Versions that the table
/// lacks are left to the driver.
fn check_version(ptx: &str, found: CudaVersion, instance: &str) -> Result<(), Error> {
    match version::required_versions(ptx) {
        Some(((major, minor), needed)) if found < needed => {
            Err(Error::DriverTooOld { found, needed, feature: format!("PTX {major}.{minor} of {instance}") })
        }
        _ => Ok(()),
    }
}

impl LoadedEntry {
    /// Loads PTX.
    pub(super) fn load(
        context: Arc<Context>,
        ptx: &str,
        entry: &str,
        instance: &str,
        shared: &SharedMemoryNeed,
    ) -> Result<LoadedEntry, Error> {
        span!("load", instance, bytes = ptx.len());
        check_version(ptx, context.driver.version(), instance)?;
        let name = CString::new(entry).unwrap_or_default();
        let mut log = JitLog::default();
        let loaded = LoadedCode::load(&context, ptx, &mut log).and_then(|code| {
            let shared = shared.clone();
            let mut loaded =
                LoadedEntry { context, code, function: ptr::null_mut(), instance: instance.into(), shared };
            loaded.function = code.function(&loaded.context, &name, instance)?;
            Ok(loaded)
        });
        loaded.map_err(|error| match error {
            // Where modules are loaded lazily, the driver compiles PTX when the entry is looked up.
            Error::Driver(source) => {
                Error::Load { instance: instance.to_string(), source: source.into(), log: log.text() }
            }
            other => other,
        })
    }

    /// Returns the entry.
    pub(super) fn function(&self) -> sys::CUfunction {
        self.function
    }

    /// Returns the name of the kernel's instance.
    pub(super) fn instance(&self) -> &Arc<str> {
        &self.instance
    }

    /// Returns the kernel's shared memory, as launches need it.
    pub(super) fn shared(&self) -> &SharedMemoryNeed {
        &self.shared
    }
}

impl LoadedCode {
    /// Compiles and loads PTX by the driver's compiler and its cache. If the driver supports
    /// libraries, the PTX is loaded as a library. The driver compiles several libraries at the same
    /// time, but modules of a context one after another. On an H100 machine with 16 cores (driver
    /// 580.159), 12 threads loaded 12 modules of 52,000 lines in 6.2 s. As libraries, the same code
    /// took 1.3 s. `cuLink…` would return machine code for a cache of ours, but compiles it as
    /// relocatable: divisions become calls, and registers follow the callees' conventions. On an
    /// H200 (driver 580.159) this made attention 2 % slower, `silu` 9 % and a log-softmax of `f16`
    /// 21 %.
    ///
    /// The driver writes to `log` until the entry is found.
    fn load(context: &Context, ptx: &str, log: &mut JitLog) -> Result<LoadedCode, Error> {
        let text = text(ptx);
        let text = text.as_ptr().cast();
        let mut options =
            [JitOption::CU_JIT_ERROR_LOG_BUFFER as i32, JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES as i32];
        let mut values = [log.0.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES)];
        let libraries = context.driver.libraries();
        let (mut library, mut module) = (ptr::null_mut(), ptr::null_mut());
        context.run(
            || format!("loading its module of {} bytes of PTX", ptx.len()),
            // SAFETY: the text ends with a NUL. There are equal numbers of options and values, each
            // of its option's type: a buffer and its size. All outlive the call, and the buffer
            // also outlives the look-up of the entry. There are no library options.
            |driver| unsafe {
                let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
                let none = ptr::null_mut();
                match libraries {
                    Some(of) => (of.load)(&mut library, text, options, values, 2, none, ptr::null_mut(), 0),
                    None => (driver.module_load)(&mut module, text, 2, options, values),
                }
            },
        )?;
        Ok(libraries.map_or(LoadedCode::Module(module), |of| LoadedCode::Library(library, of)))
    }

    /// Returns the function of an entry.
    fn function(self, context: &Context, entry: &CStr, instance: &str) -> Result<sys::CUfunction, Error> {
        let (mut function, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        context.run(
            || format!("finding entry {} in the module of {instance}", entry.to_string_lossy()),
            // SAFETY: the code is loaded, and its context is current; the name ends with a NUL.
            |driver| unsafe {
                match self {
                    LoadedCode::Library(library, of) => match (of.kernel)(&mut kernel, library, entry.as_ptr()) {
                        SUCCESS => (of.function)(&mut function, kernel),
                        error => error,
                    },
                    LoadedCode::Module(module) => (driver.module_function)(&mut function, module, entry.as_ptr()),
                }
            },
        )?;
        Ok(function)
    }
}

impl Drop for LoadedEntry {
    fn drop(&mut self) {
        let _ = self.context.run(
            || "unloading a module".into(),
            // SAFETY: loaded in `load`; the device was dropped before, and waited for its streams.
            |driver| unsafe {
                match self.code {
                    LoadedCode::Library(library, of) => (of.unload)(library),
                    LoadedCode::Module(module) => (driver.module_unload)(module),
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda(major: u32, minor: u32) -> CudaVersion {
        CudaVersion { major, minor }
    }

    #[test]
    fn unsupported_ptx_is_rejected_with_both_versions() {
        let ptx = "// made by kernel-dsl\n.version 6.0\n.target sm_61\n";
        assert!(check_version(ptx, cuda(9, 0), "softmax::<4>").is_ok());
        let error = check_version(ptx, cuda(8, 0), "softmax::<4>").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the driver supports CUDA 8.0; PTX 6.0 of softmax::<4> needs CUDA 9.0 or later: update NVIDIA's driver"
        );
        assert!(check_version(".version 99.0", cuda(8, 0), "x").is_ok());
        assert!(check_version("", cuda(8, 0), "x").is_ok());
    }
}
