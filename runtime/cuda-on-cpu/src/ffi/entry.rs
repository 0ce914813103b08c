//! Initialization, versions and descriptions of codes.

use super::proc_address::{LookupResult, find as look_up, not_found};
use super::{exports, get, process, put};
use crate::core::error::{Error, description, name};
use crate::core::image;
use cudarc::driver::sys::CUresult;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

/// Writes the address of the text that `find` returns for a code; null for an unknown code.
///
/// # Safety
/// The requirements of `put` hold.
unsafe fn put_text(
    code: c_uint,
    to: *mut *const c_char,
    find: fn(u32) -> Option<&'static std::ffi::CStr>,
) -> crate::core::error::Result {
    let text = find(code);
    // SAFETY: guaranteed by the caller. The text lives as long as the library.
    unsafe { put(to, text.map_or(ptr::null(), std::ffi::CStr::as_ptr))? };
    text.map(|_| ()).ok_or_else(|| Error::value(format!("unknown error code {code}")))
}

/// Returns the version of this library. NVIDIA's driver lacks this function, so programs can
/// recognize the library by it.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu() -> c_int {
    1
}

/// Sets the injected fault, as `CUDA_ON_CPU_FAIL` does, and resets the count of calls; null removes
/// the fault. Returns whether the text is valid.
///
/// # Safety
/// `fault` is null or a text that ends with NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuda_on_cpu_fail(fault: *const c_char) -> c_int {
    let injection = &process().driver.injection;
    if fault.is_null() {
        injection.set(None);
        return 1;
    }
    // SAFETY: guaranteed by the caller.
    match unsafe { super::text(fault) }.ok().and_then(|text| text.parse().ok()) {
        Some(fault) => {
            injection.set(Some(fault));
            1
        }
        None => 0,
    }
}

/// Returns the number of calls that matched the fault's function since the fault was set.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_calls() -> u64 {
    process().driver.injection.calls()
}

/// Returns the number of objects that the program must destroy: contexts, allocations, modules,
/// streams, events, executable graphs.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_objects() -> u64 {
    process().driver.objects() as u64
}

exports! {
    fn cuInit(flags: c_uint) = guard || {
        super::no_flags(flags)?;
        let process = process();
        if process.driver.settings.visible == 0 {
            let why = "CUDA_VISIBLE_DEVICES names no existing device";
            return Err(Error::new(CUresult::CUDA_ERROR_NO_DEVICE, why));
        }
        let here = std::process::id();
        match process.initialized.compare_exchange(0, here, Ordering::AcqRel, Ordering::Acquire) {
            Err(id) if id != here => Err(super::forked()),
            _ => Ok(()),
        }
    };

    fn cuDriverGetVersion(version: *mut c_int) = guard || {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(version, image::DRIVER) }
    };

    fn cuGetErrorName(code: c_uint, to: *mut *const c_char) = guard || {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_text(code, to, name) }
    };

    fn cuGetErrorString(code: c_uint, to: *mut *const c_char) = guard || {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_text(code, to, description) }
    };

    fn cuProfilerStart() = call |_driver| {
        Ok(())
    };

    fn cuProfilerStop() = call |_driver| {
        Ok(())
    };

    fn cuGetProcAddress(symbol: *const c_char, to: *mut *mut c_void, version: c_int, flags: u64) = guard || {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        match unsafe { look_up(symbol, to, version, flags)? } {
            LookupResult::Function(_) => Ok(()),
            // SAFETY: as above.
            LookupResult::Nothing | LookupResult::Later => Err(unsafe { not_found(symbol, version) }),
        }
    };

    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        to: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut c_uint,
    ) = guard || {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let found = unsafe { look_up(symbol, to, version, flags)? };
        // SAFETY: as above.
        unsafe { super::put_if(status, found.status()) };
        // `status` reports that there is no function. If it is null, the returned code reports it.
        // SAFETY: as above.
        if found.status() != 0 && status.is_null() { Err(unsafe { not_found(symbol, version) }) } else { Ok(()) }
    };

    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) = call |_driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let next = crate::core::graph::Mode::of(unsafe { get(mode)? })?;
        let before = crate::core::driver::set_capture_mode(next);
        // SAFETY: as above.
        unsafe { put(mode, before as c_uint) }
    };
}
