//! Before everything else: initialising, versions, what codes mean.

use super::{exports, get, process, put};
use crate::core::error::{Error, description, name};
use crate::core::image;
use cudarc::driver::sys::CUresult;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::sync::atomic::Ordering;

/// # Safety
/// As `put`.
unsafe fn put_text(
    code: c_uint,
    to: *mut *const c_char,
    find: fn(u32) -> Option<&'static std::ffi::CStr>,
) -> crate::core::error::Result {
    let text = find(code);
    // SAFETY: by the caller's promise. The text lives as long as the library.
    unsafe { put(to, text.map_or(ptr::null(), std::ffi::CStr::as_ptr))? };
    text.map(|_| ()).ok_or_else(|| Error::value(format!("{code} is no code of an error")))
}

/// There is no such function in NVIDIA's driver: by it this one is known. The number is that of its version.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu() -> c_int {
    1
}

/// Sets which calls fail from now on, as `CUDA_ON_CPU_FAIL` does, and counts calls from 0 again; null is none. Whether the text is
/// understood.
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
    // SAFETY: by the caller's promise.
    match unsafe { super::text(fault) }.ok().and_then(|text| text.parse().ok()) {
        Some(fault) => {
            injection.set(Some(fault));
            1
        }
        None => 0,
    }
}

/// How many calls there were, since that was set, that it may have meant.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_calls() -> u64 {
    process().driver.injection.calls()
}

/// How many objects the process has that somebody must end: contexts, allocations, modules, streams, events, graphs made ready.
#[unsafe(no_mangle)]
pub extern "C" fn cuda_on_cpu_objects() -> u64 {
    process().driver.objects() as u64
}

exports! {
    fn cuInit(flags: c_uint) = guard || {
        super::no_flags(flags)?;
        let process = process();
        if process.driver.settings.visible == 0 {
            let why = "CUDA_VISIBLE_DEVICES names no device that there is";
            return Err(Error::new(CUresult::CUDA_ERROR_NO_DEVICE, why));
        }
        process.initialised.store(true, Ordering::Release);
        Ok(())
    };

    fn cuDriverGetVersion(version: *mut c_int) = guard || {
        // SAFETY: the caller's, by cuda.h.
        unsafe { put(version, image::DRIVER) }
    };

    fn cuGetErrorName(code: c_uint, to: *mut *const c_char) = guard || {
        // SAFETY: the caller's, by cuda.h.
        unsafe { put_text(code, to, name) }
    };

    fn cuGetErrorString(code: c_uint, to: *mut *const c_char) = guard || {
        // SAFETY: the caller's, by cuda.h.
        unsafe { put_text(code, to, description) }
    };

    fn cuProfilerStart() = call |_driver| {
        Ok(())
    };

    fn cuProfilerStop() = call |_driver| {
        Ok(())
    };

    fn cuGetProcAddress(symbol: *const c_char, to: *mut *mut c_void, version: c_int, flags: u64) = guard || {
        // SAFETY: the caller's, by cuda.h.
        unsafe { super::proc_address::find(symbol, to, version, flags) }
    };

    fn cuGetProcAddress_v2(
        symbol: *const c_char,
        to: *mut *mut c_void,
        version: c_int,
        flags: u64,
        status: *mut c_uint,
    ) = guard || {
        // SAFETY: the caller's, by cuda.h.
        let found = unsafe { super::proc_address::find(symbol, to, version, flags) };
        // SAFETY: as above. 0 is found, 1 is not.
        unsafe { super::put_if(status, c_uint::from(found.is_err())) };
        found
    };

    fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) = call |_driver| {
        // SAFETY: the caller's, by cuda.h.
        let next = crate::core::graph::Mode::of(unsafe { get(mode)? })?;
        let before = crate::core::driver::set_capture_mode(next);
        // SAFETY: as above.
        unsafe { put(mode, before as c_uint) }
    };
}
