//! The C interface: each exported function is a thin wrapper over [`core`](crate::core).
//!
//! [`exports!`] declares the functions. A function never unwinds into its caller, and logs why it
//! rejects a call. Enumerations of C are plain numbers here, because a caller may pass any value.

mod at_exit;
mod context;
mod copy;
mod device;
mod entry;
mod function;
mod graph;
mod layout;
mod library;
mod memory;
mod module;
mod page;
mod pool;
mod proc_address;
mod stream;
mod texture;
mod unsupported;

use crate::core::driver::Driver;
use crate::core::engine::in_host_function;
use crate::core::error::{Error, Result};
use crate::core::findings::ProcessFindings;
use crate::core::handle::Handle;
use crate::core::inject::is_sticky;
use crate::core::leaks::LeakCheck;
use crate::core::log::CallLog;
use crate::core::settings::Settings;
use cudarc::driver::sys::CUresult;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Declares exported functions, with the signatures of cuda.h.
///
/// `fn name(…) = call |driver| …;` gives access to the driver, and fails before `cuInit`;
/// `= guard || …` does neither. Both bodies return a `Result`. `as` exports the function under
/// another name with the same signature as well. The other name is an older one, or the name for
/// the per-thread default stream (`_ptds`, `_ptsz`). In this driver that stream has the order of
/// the default stream.
macro_rules! exports {
    ($(fn $name:ident $signature:tt $(as $other:ident)* = $how:ident $body:expr;)*) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name $signature -> cudarc::driver::sys::CUresult {
                $crate::ffi::$how(stringify!($name), $body)
            }

            $(
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $other $signature -> cudarc::driver::sys::CUresult {
                    $crate::ffi::$how(stringify!($other), $body)
                }
            )*
        )*

        /// Returns the function of that name.
        pub(super) fn find(name: &str) -> Option<*mut std::ffi::c_void> {
            match name {
                $(
                    stringify!($name) => Some($name as *mut std::ffi::c_void),
                    $(stringify!($other) => Some($other as *mut std::ffi::c_void),)*
                )*
                _ => None,
            }
        }

        /// The names of the functions.
        pub(super) const NAMES: &[&str] = &[$(stringify!($name), $(stringify!($other),)*)*];
    };
}
use exports;

/// The driver of this process, and whether `cuInit` was called.
struct Process {
    driver: Driver,
    /// The process that called `cuInit`; 0 before. A forked child must not use the driver.
    initialized: AtomicU32,
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let (settings, mut wrong) = Settings::read(|name| std::env::var(name).ok());
        let log = settings.log.as_deref().map_or(Ok(CallLog::default()), CallLog::open).unwrap_or_else(|why| {
            wrong.push(why);
            CallLog::default()
        });
        let (findings, problems) = ProcessFindings::new(&settings);
        wrong.extend(problems);
        for line in wrong {
            eprintln!("cuda-on-cpu: {line}");
        }
        at_exit::prepare(&settings);
        Process { driver: Driver::new(settings, log, findings), initialized: AtomicU32::new(0) }
    })
}

/// Runs an exported function. Returns its code, and logs the reason of an error.
fn guard(name: &'static str, body: impl FnOnce() -> Result) -> CUresult {
    let error = match catch_unwind(AssertUnwindSafe(|| fail(name).map_or_else(body, Err))) {
        Ok(Ok(())) => return CUresult::CUDA_SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => Error::new(CUresult::CUDA_ERROR_UNKNOWN, "internal error of this library"),
    };
    // "Not ready" is a result, not an error.
    if error.code != CUresult::CUDA_ERROR_NOT_READY {
        // The log call is guarded too, because the log may be the code that panicked.
        let _ = catch_unwind(AssertUnwindSafe(|| process().driver.log.refused(name, &error)));
    }
    error.code
}

/// Counts a call, and returns its injected error, if any. Descriptions of codes never fail, and do
/// not count.
fn fail(name: &'static str) -> Option<Error> {
    if matches!(name, "cuGetErrorName" | "cuGetErrorString") {
        return None;
    }
    let driver = &process().driver;
    if driver.settings.leak_check != LeakCheck::No {
        driver.calls.begin(name);
    }
    let error = driver.injection.injected_error(name)?;
    if let (true, Some(context)) = (is_sticky(error.code), driver.top()) {
        context.fail(error.clone());
    }
    Some(error)
}

/// Runs an exported function that needs the driver, like `guard`.
fn call(name: &'static str, body: impl FnOnce(&Driver) -> Result) -> CUresult {
    guard(name, || {
        let process = process();
        match process.initialized.load(Ordering::Acquire) {
            0 => return Err(Error::new(CUresult::CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called")),
            id if id != std::process::id() => return Err(forked()),
            _ => {}
        }
        if in_host_function() {
            let why = "a host function of a stream calls the driver";
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_PERMITTED, why));
        }
        body(&process.driver)
    })
}

/// Returns the error of calls in a child of the process that initialized the driver.
fn forked() -> Error {
    let why = "the process was forked from the one that called cuInit";
    Error::new(CUresult::CUDA_ERROR_NOT_INITIALIZED, why)
}

/// Writes a result of a call.
///
/// # Safety
/// `to` is null, or valid for writes of a `T`.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(Error::value("a pointer to a result is null"));
    }
    // SAFETY: guaranteed by the caller. Addresses from C may be unaligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// Writes a result of a call, unless the caller passed null for an unwanted result.
///
/// # Safety
/// `to` is null, or valid for writes of a `T`.
unsafe fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: guaranteed by the caller.
        unsafe { to.write_unaligned(value) };
    }
}

/// Rejects a null result pointer before the call has any effect.
fn check_result_pointer<T>(to: *mut T) -> Result {
    if to.is_null() { Err(Error::value("a pointer to a result is null")) } else { Ok(()) }
}

/// Reads an argument that is passed by its address.
///
/// # Safety
/// `from` is null, or points to a `T`.
unsafe fn get<T: Copy>(from: *const T) -> Result<T> {
    if from.is_null() {
        return Err(Error::value("a pointer to an argument is null"));
    }
    // SAFETY: guaranteed by the caller.
    Ok(unsafe { from.read_unaligned() })
}

/// Reads a text.
///
/// # Safety
/// `from` is null, or points to a text that ends with NUL.
unsafe fn text<'a>(from: *const c_char) -> Result<&'a str> {
    if from.is_null() {
        return Err(Error::value("a pointer to a text is null"));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| Error::value("a text is not UTF-8"))
}

/// Converts a pointer to the handle that it holds.
fn handle<T>(pointer: *mut T) -> Handle {
    Handle(pointer.addr() as u64)
}

/// Converts a handle to a pointer.
fn pointer<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0 as usize)
}

/// Rejects all flags other than 0.
fn no_flags(flags: impl Into<u64>) -> Result {
    match flags.into() {
        0 => Ok(()),
        flags => Err(Error::value(format!("invalid flags {flags:#x}: this function has none"))),
    }
}
