//! Functions of devices. All devices are alike.

use super::{check_result_pointer, exports, put, put_if};
use crate::core::attribute::of_device;
use crate::core::error::Error;
use cudarc::driver::sys;
use std::ffi::{c_char, c_int, c_uint};

/// Returns the UUID of a device: the same in every process.
fn uuid(device: usize) -> [u8; 16] {
    let mut uuid = *b"kernels-rs cpu 0";
    uuid[15] += device as u8;
    uuid
}

/// Returns the PCI bus ID of a device, which is made up.
fn bus_id(device: usize) -> String {
    format!("0000:{device:02x}:00.0")
}

/// Writes a text with its NUL, truncated to `room` bytes.
///
/// # Safety
/// `to` is null, or valid for writes of `room` bytes.
unsafe fn put_text(to: *mut c_char, room: c_int, text: &str) -> crate::core::error::Result {
    let Some(room) = usize::try_from(room).ok().filter(|room| *room > 0) else {
        return Err(Error::value(format!("a text does not fit {room} bytes")));
    };
    check_result_pointer(to)?;
    let kept = &text.as_bytes()[..text.len().min(room - 1)];
    // SAFETY: the caller guarantees room for these bytes and the NUL.
    unsafe {
        std::ptr::copy_nonoverlapping(kept.as_ptr(), to.cast(), kept.len());
        to.add(kept.len()).write(0);
    }
    Ok(())
}

exports! {
    fn cuDeviceGetCount(count: *mut c_int) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, driver.settings.visible as c_int) }
    };

    fn cuDeviceGet(device: *mut sys::CUdevice, ordinal: c_int) = call |driver| {
        driver.device(ordinal)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(device, ordinal) }
    };

    fn cuDeviceGetName(name: *mut c_char, room: c_int, device: sys::CUdevice) = call |driver| {
        driver.device(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_text(name, room, &driver.settings.name) }
    };

    fn cuDeviceGetPCIBusId(id: *mut c_char, room: c_int, device: sys::CUdevice) = call |driver| {
        let device = driver.device(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_text(id, room, &bus_id(device)) }
    };

    fn cuDeviceGetByPCIBusId(device: *mut sys::CUdevice, id: *const c_char) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let id = unsafe { super::text(id)? };
        match (0..driver.settings.visible).find(|device| bus_id(*device as usize) == id) {
            // SAFETY: the caller's pointer is valid, as cuda.h requires.
            Some(found) => unsafe { put(device, found as c_int) },
            None => Err(Error::new(sys::CUresult::CUDA_ERROR_INVALID_DEVICE, format!("there is no device at {id}"))),
        }
    };

    fn cuDeviceGetUuid(to: *mut [u8; 16], device: sys::CUdevice) as cuDeviceGetUuid_v2 = call |driver| {
        let device = driver.device(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(to, uuid(device)) }
    };

    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: sys::CUdevice) = call |driver| {
        let device = driver.device(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(bytes, driver.supply(device).bytes().0 as usize) }
    };

    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: sys::CUdevice) = call |driver| {
        driver.device(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, of_device(&driver.settings, attribute)?) }
    };

    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: sys::CUdevice) = call |driver| {
        driver.device(device)?;
        let capability = driver.settings.capability;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(major, capability.0 as c_int)?;
            put(minor, capability.1 as c_int)
        }
    };

    fn cuDeviceCanAccessPeer(can: *mut c_int, device: sys::CUdevice, peer: sys::CUdevice) = call |driver| {
        driver.device(device)?;
        driver.device(peer)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(can, 0) }
    };

    fn cuDeviceGetP2PAttribute(value: *mut c_int, attribute: c_uint, device: sys::CUdevice, peer: sys::CUdevice) = call |driver| {
        if driver.device(device)? == driver.device(peer)? {
            let why = "a device is no peer of itself";
            return Err(Error::new(sys::CUresult::CUDA_ERROR_INVALID_DEVICE, why));
        }
        // The rank of the connection, and accesses, atomic operations and arrays by peers.
        if !(1..=4).contains(&attribute) {
            return Err(Error::value(format!("unknown attribute of two devices: {attribute}")));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires. There is no access.
        unsafe { put(value, 0) }
    };

    fn cuDevicePrimaryCtxRetain(context: *mut sys::CUcontext, device: sys::CUdevice) = call |driver| {
        check_result_pointer(context)?;
        let made = driver.retain_primary(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(context, super::pointer(made.handle)) }
    };

    fn cuDevicePrimaryCtxRelease_v2(device: sys::CUdevice) as cuDevicePrimaryCtxRelease = call |driver| {
        driver.release_primary(device)
    };

    fn cuDevicePrimaryCtxReset_v2(device: sys::CUdevice) as cuDevicePrimaryCtxReset = call |driver| {
        driver.reset_primary(device)
    };

    fn cuDevicePrimaryCtxSetFlags_v2(device: sys::CUdevice, flags: c_uint) as cuDevicePrimaryCtxSetFlags = call |driver| {
        driver.set_primary_flags(device, flags)
    };

    fn cuDevicePrimaryCtxGetState(device: sys::CUdevice, flags: *mut c_uint, active: *mut c_int) = call |driver| {
        let (set, is_active) = driver.primary_state(device)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put_if(flags, set);
            put_if(active, is_active.into());
        }
        Ok(())
    };
}
