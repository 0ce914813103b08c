//! Functions of contexts.

use super::{check_result_pointer, exports, handle, no_flags, pointer, put, put_if};
use crate::core::error::Error;
use crate::core::handle::Handle;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

/// Creates a context, makes it current, and writes its handle.
///
/// # Safety
/// `to` is null or valid for writes.
unsafe fn create(
    driver: &crate::core::driver::Driver,
    to: *mut sys::CUcontext,
    flags: c_uint,
    device: sys::CUdevice,
) -> crate::core::error::Result {
    check_result_pointer(to)?;
    let context = driver.create_context(flags, device)?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(context.handle)) }
}

fn limit(number: c_uint) -> crate::core::error::Result<usize> {
    let why = || Error::new(CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT, format!("unknown limit {number}"));
    Some(number as usize).filter(|number| *number < 7).ok_or_else(why)
}

exports! {
    fn cuCtxCreate_v2(context: *mut sys::CUcontext, flags: c_uint, device: sys::CUdevice) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { create(driver, context, flags, device) }
    };

    fn cuCtxCreate_v3(
        context: *mut sys::CUcontext,
        _affinities: *mut c_void,
        count: c_int,
        flags: c_uint,
        device: sys::CUdevice,
    ) = call |driver| {
        if count != 0 {
            let why = "a context for some of the multiprocessors";
            return Err(Error::new(CUresult::CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, why));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { create(driver, context, flags, device) }
    };

    fn cuCtxCreate_v4(
        context: *mut sys::CUcontext,
        parameters: *mut c_void,
        flags: c_uint,
        device: sys::CUdevice,
    ) = call |driver| {
        if !parameters.is_null() {
            return Err(Error::unsupported("a context with parameters"));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { create(driver, context, flags, device) }
    };

    fn cuCtxDestroy_v2(context: sys::CUcontext) as cuCtxDestroy = call |driver| {
        driver.destroy_context(handle(context))
    };

    fn cuCtxAttach(context: *mut sys::CUcontext, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        let current = driver.current()?;
        current.attach();
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(context, pointer(current.handle)) }
    };

    fn cuCtxDetach(context: sys::CUcontext) = call |driver| {
        let context = driver.contexts.get(handle(context))?;
        if context.detach() { Ok(()) } else { driver.destroy_context(context.handle) }
    };

    fn cuCtxPushCurrent_v2(context: sys::CUcontext) as cuCtxPushCurrent = call |driver| {
        driver.push(handle(context))
    };

    fn cuCtxPopCurrent_v2(context: *mut sys::CUcontext) as cuCtxPopCurrent = call |driver| {
        let popped = driver.pop()?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_if(context, pointer(popped.handle)) };
        Ok(())
    };

    fn cuCtxSetCurrent(context: sys::CUcontext) = call |driver| {
        driver.set_current(handle(context))
    };

    fn cuCtxGetCurrent(context: *mut sys::CUcontext) = call |driver| {
        let current = driver.top().map_or(Handle(0), |context| context.handle);
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(context, pointer(current)) }
    };

    fn cuCtxGetDevice(device: *mut sys::CUdevice) = call |driver| {
        // A failed context still has its device.
        let none = || Error::new(CUresult::CUDA_ERROR_INVALID_CONTEXT, "no context is current on this thread");
        let current = driver.top().ok_or_else(none)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(device, current.device as sys::CUdevice) }
    };

    fn cuCtxGetDevice_v2(device: *mut sys::CUdevice, context: sys::CUcontext) = call |driver| {
        let queried = if context.is_null() { driver.current()? } else { driver.contexts.get(handle(context))? };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(device, queried.device as sys::CUdevice) }
    };

    fn cuCtxGetFlags(flags: *mut c_uint) = call |driver| {
        let current = driver.current()?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(flags, current.flags.load(Ordering::Relaxed)) }
    };

    fn cuCtxSetFlags(flags: c_uint) = call |driver| {
        driver.current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    };

    fn cuCtxGetId(context: sys::CUcontext, id: *mut u64) = call |driver| {
        let context =
            if context.is_null() { driver.current()? } else { driver.contexts.get(handle(context))? };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(id, context.id) }
    };

    fn cuCtxGetApiVersion(context: sys::CUcontext, version: *mut c_uint) = call |driver| {
        if !context.is_null() {
            driver.contexts.get(handle(context))?;
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires. The version is that of
        // `cuCtxCreate_v2`.
        unsafe { put(version, 3020) }
    };

    fn cuCtxSynchronize() = call |driver| {
        driver.synchronize_context()
    };

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) = call |driver| {
        driver.current()?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires. There is only one priority.
        unsafe {
            put_if(least, 0);
            put_if(greatest, 0);
        }
        Ok(())
    };

    fn cuCtxGetLimit(value: *mut usize, number: c_uint) = call |driver| {
        let known = driver.current()?.preferences().limits[limit(number)?];
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, known) }
    };

    fn cuCtxSetLimit(number: c_uint, value: usize) = call |driver| {
        driver.current()?.preferences().limits[limit(number)?] = value;
        Ok(())
    };

    fn cuCtxGetCacheConfig(config: *mut c_uint) = call |driver| {
        let known = driver.current()?.preferences().cache;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(config, known) }
    };

    fn cuCtxSetCacheConfig(config: c_uint) = call |driver| {
        driver.current()?.preferences().cache = config;
        Ok(())
    };

    fn cuCtxGetSharedMemConfig(config: *mut c_uint) = call |driver| {
        let known = driver.current()?.preferences().shared_bank;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(config, known) }
    };

    fn cuCtxSetSharedMemConfig(config: c_uint) = call |driver| {
        driver.current()?.preferences().shared_bank = config;
        Ok(())
    };

    fn cuCtxResetPersistingL2Cache() = call |driver| {
        driver.current().map(|_| ())
    };

    fn cuCtxEnablePeerAccess(peer: sys::CUcontext, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        driver.current()?;
        driver.contexts.get(handle(peer))?;
        let why = "devices access memory of other devices by copies only";
        Err(Error::new(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, why))
    };

    fn cuCtxDisablePeerAccess(peer: sys::CUcontext) = call |driver| {
        driver.current()?;
        driver.contexts.get(handle(peer))?;
        Err(Error::new(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access was not enabled"))
    };
}
