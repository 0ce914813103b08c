//! The C interface: each exported function is a shell over [`core`](crate::core).
//!
//! [`exports!`] declares them. A function never unwinds into its caller, and says in the log why it refuses. Numbers that
//! are enumerations in C are numbers here, for a caller may pass any.

mod context;
mod copy;
mod device;
mod entry;
mod function;
mod graph;
mod layout;
mod memory;
mod module;
mod pool;
mod proc_address;
mod stream;
mod unsupported;

use crate::core::driver::Driver;
use crate::core::engine::in_host_function;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use crate::core::inject::is_sticky;
use crate::core::log::Log;
use crate::core::settings::Settings;
use cudarc::driver::sys::CUresult;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Declares exported functions, by the signatures of cuda.h.
///
/// `fn name(…) = call |driver| …;` has the driver, and is refused before `cuInit`; `= guard || …` is not. Both give a `Result`.
/// After `as` comes an older name of the same signature, under which it is exported too.
macro_rules! exports {
    ($(fn $name:ident $signature:tt $(as $other:ident)? = $how:ident $body:expr;)*) => {
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
            )?
        )*

        /// The function of that name.
        pub(super) fn find(name: &str) -> Option<*mut std::ffi::c_void> {
            match name {
                $(
                    stringify!($name) => Some($name as *mut std::ffi::c_void),
                    $(stringify!($other) => Some($other as *mut std::ffi::c_void),)?
                )*
                _ => None,
            }
        }
    };
}
use exports;

/// The driver of this process, and whether `cuInit` was called.
struct Process {
    driver: Driver,
    initialised: AtomicBool,
}

fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let (settings, mut wrong) = Settings::read(|name| std::env::var(name).ok());
        let log = settings.log.as_deref().map_or(Ok(Log::default()), Log::open).unwrap_or_else(|why| {
            wrong.push(why);
            Log::default()
        });
        for line in wrong {
            eprintln!("cuda-on-cpu: {line}");
        }
        Process { driver: Driver::new(settings, log), initialised: AtomicBool::new(false) }
    })
}

/// Runs an exported function: what it gives as a code, why in the log.
fn guard(name: &str, body: impl FnOnce() -> Result) -> CUresult {
    let error = match catch_unwind(AssertUnwindSafe(|| fail(name).map_or_else(body, Err))) {
        Ok(Ok(())) => return CUresult::CUDA_SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => Error::new(CUresult::CUDA_ERROR_UNKNOWN, "a mistake in this library"),
    };
    // That something is not ready is an answer.
    if error.code != CUresult::CUDA_ERROR_NOT_READY {
        // The log is as safe as can be: it may be what has panicked.
        let _ = catch_unwind(AssertUnwindSafe(|| process().driver.log.refused(name, &error)));
    }
    error.code
}

/// What a call is to fail with, if it is asked for. What codes mean is always told.
fn fail(name: &str) -> Option<Error> {
    if matches!(name, "cuGetErrorName" | "cuGetErrorString") {
        return None;
    }
    let driver = &process().driver;
    let error = driver.injection.meets(name)?;
    if let (true, Some(context)) = (is_sticky(error.code), driver.top()) {
        context.fail(error.clone());
    }
    Some(error)
}

/// The same, with the driver.
fn call(name: &str, body: impl FnOnce(&Driver) -> Result) -> CUresult {
    guard(name, || {
        let process = process();
        if !process.initialised.load(Ordering::Acquire) {
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_INITIALIZED, "cuInit has not been called"));
        }
        if in_host_function() {
            let why = "a host function of a stream calls the driver";
            return Err(Error::new(CUresult::CUDA_ERROR_NOT_PERMITTED, why));
        }
        body(&process.driver)
    })
}

/// Writes what a call gives.
///
/// # Safety
/// `to` is null, or the caller's for a `T`.
unsafe fn put<T>(to: *mut T, value: T) -> Result {
    if to.is_null() {
        return Err(Error::value("a pointer to a result is null"));
    }
    // SAFETY: by the caller's promise. C may give an address that is not aligned.
    unsafe { to.write_unaligned(value) };
    Ok(())
}

/// The same where null means that the caller does not want it.
///
/// # Safety
/// As there.
unsafe fn put_if<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { to.write_unaligned(value) };
    }
}

/// Refuses a null pointer to a result before anything is done.
fn wanted<T>(to: *mut T) -> Result {
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
    // SAFETY: by the caller's promise.
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
    // SAFETY: by the caller's promise.
    unsafe { CStr::from_ptr(from) }.to_str().map_err(|_| Error::value("a text is not UTF-8"))
}

/// The handle that a pointer is.
fn handle<T>(pointer: *mut T) -> Handle {
    Handle(pointer.addr() as u64)
}

/// The pointer that a handle is.
fn pointer<T>(handle: Handle) -> *mut T {
    std::ptr::without_provenance_mut(handle.0 as usize)
}

/// Refuses flags, of which there are none.
fn no_flags(flags: impl Into<u64>) -> Result {
    match flags.into() {
        0 => Ok(()),
        flags => Err(Error::value(format!("flags {flags:#x}, where there are none"))),
    }
}
