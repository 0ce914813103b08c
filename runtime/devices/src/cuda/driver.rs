//! The functions of the driver library, resolved once, and the meaning of their error codes.
//!
//! cudarc finds and opens the library and names its types. The wrappers of cudarc are not used,
//! because they panic if the library or a function is missing. The wrappers also return codes as an
//! `enum` of the bindings' CUDA version, which lacks codes of newer drivers. Here a code is a
//! number, and a missing function is an error with its name. Functions are resolved under the
//! oldest name with the needed meaning, so that old drivers work.

use super::driver_error::{DriverError, DriverStatus};
use super::version::CudaVersion;
use crate::Error;
use cudarc::driver::sys;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

pub(super) const SUCCESS: DriverStatus = 0;
const NO_DEVICE: DriverStatus = 100;
/// The result of a query for work in flight.
pub(super) const NOT_READY: DriverStatus = 600;

/// Defines a table of driver functions, each resolved by its first name or else by its second.
macro_rules! functions {
    (
        $(#[$about:meta])*
        $visible:vis struct $Table:ident { $($field:ident: $Field:ty = $first:expr,)* }
        $($(#[doc = $doc:literal])* $name:ident = $symbol:ident $(| $other:ident)? ($($argument:ty),*);)*
    ) => {
        $(#[$about])*
        $visible struct $Table {
            $($field: $Field,)*
            $($(#[doc = $doc])* pub(super) $name: unsafe extern "C" fn($($argument),*) -> DriverStatus,)*
        }

        impl $Table {
            /// Resolves all functions of `library`, or names those that it lacks.
            fn resolve(library: &Symbols) -> Result<$Table, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(
                    let $name = find(library, &[stringify!($symbol), $(stringify!($other))?]);
                    if $name.is_none() {
                        missing.push(stringify!($symbol));
                    }
                )*
                if !missing.is_empty() {
                    return Err(missing);
                }
                $(
                    let Some($name) = $name else { return Err(missing) };
                    // SAFETY: the driver exports this symbol as a function with this signature, by
                    // cuda.h; the library is never unloaded.
                    let $name = unsafe {
                        std::mem::transmute::<DriverSymbol, unsafe extern "C" fn($($argument),*) -> DriverStatus>($name)
                    };
                )*
                Ok($Table { $($field: $first,)* $($name,)* })
            }
        }
    };
}

functions! {
    /// The driver library: the functions that we call.
    pub(crate) struct Driver {
        version: CudaVersion = CudaVersion { major: 0, minor: 0 },
        on_cpu: bool = false,
        graphs: Option<Graphs> = None,
        cooperative: Option<Cooperative> = None,
        libraries: Option<Libraries> = None,
    }
    init = cuInit(c_uint);
    driver_version = cuDriverGetVersion(*mut c_int);
    error_name = cuGetErrorName(DriverStatus, *mut *const c_char);
    error_string = cuGetErrorString(DriverStatus, *mut *const c_char);
    device_count = cuDeviceGetCount(*mut c_int);
    device_get = cuDeviceGet(*mut sys::CUdevice, c_int);
    device_name = cuDeviceGetName(*mut c_char, c_int, sys::CUdevice);
    device_attribute = cuDeviceGetAttribute(*mut c_int, c_int, sys::CUdevice);
    device_memory = cuDeviceTotalMem_v2(*mut usize, sys::CUdevice);
    context_retain = cuDevicePrimaryCtxRetain(*mut sys::CUcontext, sys::CUdevice);
    /// `_v2` came with CUDA 11.0; the older name has the same meaning to a caller.
    context_release = cuDevicePrimaryCtxRelease_v2 | cuDevicePrimaryCtxRelease(sys::CUdevice);
    context_create = cuCtxCreate_v2(*mut sys::CUcontext, c_uint, sys::CUdevice);
    context_destroy = cuCtxDestroy_v2(sys::CUcontext);
    context_current = cuCtxGetCurrent(*mut sys::CUcontext);
    context_make_current = cuCtxSetCurrent(sys::CUcontext);
    context_push = cuCtxPushCurrent_v2(sys::CUcontext);
    context_pop = cuCtxPopCurrent_v2(*mut sys::CUcontext);
    memory_info = cuMemGetInfo_v2(*mut usize, *mut usize);
    memory_allocate = cuMemAlloc_v2(*mut sys::CUdeviceptr, usize);
    memory_free = cuMemFree_v2(sys::CUdeviceptr);
    memory_fill = cuMemsetD8_v2(sys::CUdeviceptr, u8, usize);
    copy_to_host = cuMemcpyDtoH_v2(*mut c_void, sys::CUdeviceptr, usize);
    memory_fill_in = cuMemsetD8Async(sys::CUdeviceptr, u8, usize, sys::CUstream);
    copy_to_device_in = cuMemcpyHtoDAsync_v2(sys::CUdeviceptr, *const c_void, usize, sys::CUstream);
    copy_to_host_in = cuMemcpyDtoHAsync_v2(*mut c_void, sys::CUdeviceptr, usize, sys::CUstream);
    copy_in = cuMemcpyDtoDAsync_v2(sys::CUdeviceptr, sys::CUdeviceptr, usize, sys::CUstream);
    pinned_allocate = cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    pinned_free = cuMemFreeHost(*mut c_void);
    module_load = cuModuleLoadDataEx(*mut sys::CUmodule, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    module_function = cuModuleGetFunction(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    module_unload = cuModuleUnload(sys::CUmodule);
    launch = cuLaunchKernel(sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, sys::CUstream,
        *mut *mut c_void, *mut *mut c_void);
    stream_create = cuStreamCreate(*mut sys::CUstream, c_uint);
    stream_destroy = cuStreamDestroy_v2(sys::CUstream);
    stream_wait = cuStreamSynchronize(sys::CUstream);
    stream_query = cuStreamQuery(sys::CUstream);
    stream_wait_event = cuStreamWaitEvent(sys::CUstream, sys::CUevent, c_uint);
    event_create = cuEventCreate(*mut sys::CUevent, c_uint);
    event_destroy = cuEventDestroy_v2(sys::CUevent);
    event_record = cuEventRecord(sys::CUevent, sys::CUstream);
    event_query = cuEventQuery(sys::CUevent);
    event_wait = cuEventSynchronize(sys::CUevent);
    /// The time from the first event to the second, in milliseconds.
    event_elapsed = cuEventElapsedTime(*mut f32, sys::CUevent, sys::CUevent);
    /// The arguments are the target, its context, the source, and its context.
    copy_between = cuMemcpyPeerAsync(sys::CUdeviceptr, sys::CUcontext, sys::CUdeviceptr, sys::CUcontext, usize, sys::CUstream);
    function_attribute = cuFuncGetAttribute(*mut c_int, c_int, sys::CUfunction);
    /// The number of blocks that a multiprocessor holds, by threads and bytes of a block.
    occupancy = cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, sys::CUfunction, c_int, usize);
}

functions! {
    /// The functions for graphs, whose oldest forms suffice, in drivers from CUDA 10.1 on.
    pub(super) struct Graphs {}
    create = cuGraphCreate(*mut sys::CUgraph, c_uint);
    destroy = cuGraphDestroy(sys::CUgraph);
    add_kernel = cuGraphAddKernelNode(*mut sys::CUgraphNode, sys::CUgraph, *const sys::CUgraphNode, usize,
        *const sys::CUDA_KERNEL_NODE_PARAMS_v1);
    instantiate = cuGraphInstantiate_v2 | cuGraphInstantiate(*mut sys::CUgraphExec, sys::CUgraph, *mut sys::CUgraphNode,
        *mut c_char, usize);
    executable_destroy = cuGraphExecDestroy(sys::CUgraphExec);
    set_kernel = cuGraphExecKernelNodeSetParams(sys::CUgraphExec, sys::CUgraphNode,
        *const sys::CUDA_KERNEL_NODE_PARAMS_v1);
    launch = cuGraphLaunch(sys::CUgraphExec, sys::CUstream);
}

functions! {
    /// The function for cooperative launches, in drivers from CUDA 9.0 on.
    #[derive(Clone, Copy)]
    pub(super) struct Cooperative {}
    launch = cuLaunchCooperativeKernel(sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        sys::CUstream, *mut *mut c_void);
}

functions! {
    /// The functions for libraries, which are modules without a context, in drivers from CUDA 12.0
    /// on.
    #[derive(Clone, Copy)]
    pub(super) struct Libraries {}
    load = cuLibraryLoadData(*mut Library, *const c_void, *mut c_int, *mut *mut c_void, c_uint, *mut c_int,
        *mut *mut c_void, c_uint);
    unload = cuLibraryUnload(Library);
    kernel = cuLibraryGetKernel(*mut LibraryKernel, Library, *const c_char);
    /// The kernel's function in the current context.
    function = cuKernelGetFunction(*mut sys::CUfunction, LibraryKernel);
}

/// A handle of a library, `CUlibrary`, which the bindings of CUDA 11 lack.
pub(super) type Library = *mut c_void;

/// A handle of a library's kernel, `CUkernel`.
type LibraryKernel = *mut c_void;

/// A symbol that the library of package `cuda-on-cpu` exports and NVIDIA's library lacks.
const ON_CPU: &str = "cuda_on_cpu";

/// A function of unknown signature.
type DriverSymbol = unsafe extern "C" fn();
/// A look-up by NUL-terminated name: the open library, or a test's stand-in.
type Symbols<'a> = dyn Fn(&CStr) -> Option<DriverSymbol> + 'a;

fn find(library: &Symbols, names: &[&str]) -> Option<DriverSymbol> {
    names.iter().find_map(|name| library(&std::ffi::CString::new(*name).ok()?))
}

impl Driver {
    /// Opens and initializes the driver library.
    pub fn open() -> Result<Driver, Error> {
        // SAFETY: opening the driver library runs its initializers, as intended.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::NoDriver);
        }
        Driver::start(&|name| {
            // SAFETY: the library is there, so that this does not panic.
            let library = unsafe { sys::culib() };
            // SAFETY: a symbol of the driver's API is a function; it is called with its true
            // signature only.
            unsafe { library.get::<DriverSymbol>(name.to_bytes_with_nul()) }.ok().map(|symbol| *symbol)
        })
    }

    fn start(library: &Symbols) -> Result<Driver, Error> {
        let mut driver = Driver::resolve(library)
            .map_err(|functions| Error::DriverLacks { functions, needed: CudaVersion::OLDEST })?;
        driver.on_cpu = find(library, &[ON_CPU]).is_some();
        driver.graphs = Graphs::resolve(library).ok();
        driver.cooperative = Cooperative::resolve(library).ok();
        driver.libraries = Libraries::resolve(library).ok();
        let mut version = 0;
        // SAFETY: `version` outlives the call; this function may be called before `cuInit`.
        let code = unsafe { (driver.driver_version)(&mut version) };
        driver.check(code, || "querying the version of the CUDA driver".into())?;
        driver.version = CudaVersion::from_driver(version);
        if driver.version < CudaVersion::OLDEST {
            return Err(Error::DriverTooOld {
                found: driver.version,
                needed: CudaVersion::OLDEST,
                feature: "sm_61".to_string(),
            });
        }
        // SAFETY: flags must be 0.
        match unsafe { (driver.init)(0) } {
            NO_DEVICE => Err(Error::NoDevice { driver: driver.version }),
            code => driver.check(code, || "initializing the CUDA driver".into()).map(|()| driver),
        }
    }

    /// Returns the version of CUDA that the driver supports.
    pub fn version(&self) -> CudaVersion {
        self.version
    }

    /// Returns whether the driver is this project's own, whose device is the PTX interpreter.
    pub fn is_on_cpu(&self) -> bool {
        self.on_cpu
    }

    /// Returns the number of devices.
    pub fn device_count(&self) -> Result<usize, Error> {
        let mut count = 0;
        // SAFETY: `count` outlives the call.
        let code = unsafe { (self.device_count)(&mut count) };
        self.check(code, || "counting the CUDA devices".into())?;
        Ok(count.max(0) as usize)
    }

    /// Returns the functions for graphs, or an error if the driver lacks them.
    pub(super) fn graphs(&self) -> Result<&Graphs, Error> {
        let needed = CudaVersion { major: 10, minor: 1 };
        self.graphs.as_ref().ok_or_else(|| Error::DriverTooOld {
            found: self.version,
            needed,
            feature: "a graph".into(),
        })
    }

    /// Returns the function for cooperative launches, or an error if the driver lacks it.
    pub(super) fn cooperative(&self) -> Result<&Cooperative, Error> {
        let needed = CudaVersion { major: 9, minor: 0 };
        let what = || "a cooperative launch".into();
        self.cooperative.as_ref().ok_or_else(|| Error::DriverTooOld { found: self.version, needed, feature: what() })
    }

    /// Returns the functions for libraries, if the driver has them.
    pub(super) fn libraries(&self) -> Option<Libraries> {
        self.libraries
    }

    /// Fails if `code` is an error; `doing` describes the operation and its operands.
    pub(super) fn check(&self, code: DriverStatus, doing: impl FnOnce() -> String) -> Result<(), Error> {
        self.result(code, doing).map_err(Error::Driver)
    }

    /// Fails with the driver's error alone.
    pub(super) fn result(&self, code: DriverStatus, doing: impl FnOnce() -> String) -> Result<(), DriverError> {
        if code == SUCCESS {
            return Ok(());
        }
        Err(DriverError {
            doing: doing(),
            code,
            name: self.text(self.error_name, code).unwrap_or_else(|| "an error without a name".into()),
            description: self.text(self.error_string, code).unwrap_or_default(),
        })
    }

    fn text(
        &self,
        of: unsafe extern "C" fn(DriverStatus, *mut *const c_char) -> DriverStatus,
        code: DriverStatus,
    ) -> Option<String> {
        let mut text = ptr::null();
        // SAFETY: `text` outlives the call.
        let found = unsafe { of(code, &mut text) } == SUCCESS && !text.is_null();
        // SAFETY: the driver gives a NUL-terminated string that lives as long as the library.
        found.then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_required_functions_is_rejected() {
        let Err(Error::DriverLacks { functions, .. }) = Driver::start(&|_| None) else { panic!("expected a refusal") };
        assert!(functions.contains(&"cuLaunchKernel"));
        assert_eq!(functions.len(), 46);
    }

    /// Returns a driver with a version, a result of `cuInit` and no error names; its other
    /// functions must not be called.
    fn driver(version: DriverSymbol, init: DriverSymbol) -> Result<Driver, Error> {
        unsafe extern "C" fn not_called() {}
        unsafe extern "C" fn no_text(_: DriverStatus, _: *mut *const c_char) -> DriverStatus {
            SUCCESS
        }
        let text: unsafe extern "C" fn(DriverStatus, *mut *const c_char) -> DriverStatus = no_text;
        // SAFETY: called by its true signature only.
        let text: DriverSymbol = unsafe { std::mem::transmute(text) };
        Driver::start(&|name| match name.to_bytes() {
            b"cuDriverGetVersion" => Some(version),
            b"cuInit" => Some(init),
            b"cuGetErrorName" | b"cuGetErrorString" => Some(text),
            b"cuDevicePrimaryCtxRelease_v2" => None,
            _ => Some(not_called),
        })
    }

    fn version_function<const V: c_int>() -> DriverSymbol {
        unsafe extern "C" fn version<const V: c_int>(out: *mut c_int) -> DriverStatus {
            // SAFETY: the caller passes a pointer to an integer.
            unsafe { *out = V };
            SUCCESS
        }
        let version: unsafe extern "C" fn(*mut c_int) -> DriverStatus = version::<V>;
        // SAFETY: called by its true signature only.
        unsafe { std::mem::transmute(version) }
    }

    fn init_function<const C: DriverStatus>() -> DriverSymbol {
        unsafe extern "C" fn init<const C: DriverStatus>(_: c_uint) -> DriverStatus {
            C
        }
        let init: unsafe extern "C" fn(c_uint) -> DriverStatus = init::<C>;
        // SAFETY: called by its true signature only.
        unsafe { std::mem::transmute(init) }
    }

    fn refusal(driver: Result<Driver, Error>) -> String {
        driver.err().expect("to be refused").to_string()
    }

    #[test]
    fn unusable_drivers_are_rejected_with_the_cause() {
        assert_eq!(
            refusal(driver(version_function::<7050>(), init_function::<0>())),
            "the driver supports CUDA 7.5; sm_61 needs CUDA 8.0 or later: update NVIDIA's driver"
        );
        assert!(refusal(driver(version_function::<13000>(), init_function::<100>())).contains("finds no device"));
        assert_eq!(
            refusal(driver(version_function::<13000>(), init_function::<803>())),
            "initializing the CUDA driver: the CUDA driver returned an error without a name (803)"
        );
    }

    #[test]
    fn a_driver_with_only_the_first_release_function_works() {
        assert_eq!(driver(version_function::<9000>(), init_function::<0>()).unwrap().version().to_string(), "9.0");
    }
}
