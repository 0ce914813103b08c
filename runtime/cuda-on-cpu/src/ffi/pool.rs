//! Functions of stream-ordered memory pools.

use super::layout::{MemoryAccessDescription, MemoryLocation, PoolProperties};
use super::{check_result_pointer, exports, get, handle, pointer, put};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::handle::Handle;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::Ordering;

/// Returns the index of a pool attribute. Attributes 5 to 8 are the reserved and used memory, each
/// with its current and highest value.
fn attribute(number: c_uint) -> Result<usize> {
    let why = || Error::value(format!("unknown attribute of a pool: {number}"));
    Some(number as usize).filter(|number| (1..=8).contains(number)).ok_or_else(why)
}

/// Returns whether the attribute has 64 bits instead of 32.
fn is_wide(attribute: usize) -> bool {
    attribute >= 4
}

/// Writes the handle of the device's default pool if `own`, otherwise of its current pool.
///
/// # Safety
/// `to` is null or valid for writes.
unsafe fn put_pool(driver: &Driver, to: *mut sys::CUmemoryPool, device: sys::CUdevice, own: bool) -> Result {
    driver.device(device)?;
    let pool = if own { driver.default_pool() } else { driver.current_pool() };
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(pool)) }
}

/// The location of a device in a [`MemoryLocation`]. Locations of the host have higher numbers.
const DEVICE_LOCATION: c_uint = 1;

/// The access of no one, of readers, and of readers and writers.
const ACCESSES: [c_uint; 3] = [0, 1, READ_AND_WRITE];

/// The access of readers and writers.
const READ_AND_WRITE: c_uint = 3;

/// Sets the access of a location to a pool. The memory of a pool is accessible to its own device
/// only, so nothing changes. The codes are those of NVIDIA's driver 580 on an H200.
fn set_access(driver: &Driver, pool: Handle, wanted: MemoryAccessDescription) -> Result {
    let MemoryAccessDescription { location: MemoryLocation { location, device }, access } = wanted;
    if !ACCESSES.contains(&access) {
        return Err(Error::value(format!("unknown access to a pool: {access}")));
    }
    if location != DEVICE_LOCATION || access == 1 {
        return Err(Error::unsupported("a pool can only be made accessible to devices that read and write"));
    }
    let is_own = driver.pools.get(pool)?.is_of(driver.device(device)?);
    if is_own == (access == READ_AND_WRITE) {
        return Ok(());
    }
    let why = if is_own { "the pool stays accessible to its device" } else { "devices access their own memory only" };
    Err(Error::new(CUresult::CUDA_ERROR_INVALID_DEVICE, why))
}

exports! {
    fn cuMemAllocAsync(address: *mut sys::CUdeviceptr, bytes: usize, stream: sys::CUstream) as cuMemAllocAsync_ptsz = call |driver| {
        check_result_pointer(address)?;
        let queue = driver.queue(handle(stream))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(address, driver.allocate_ordered(None, bytes, &queue)?) }
    };

    fn cuMemAllocFromPoolAsync(
        address: *mut sys::CUdeviceptr,
        bytes: usize,
        pool: sys::CUmemoryPool,
        stream: sys::CUstream,
    ) as cuMemAllocFromPoolAsync_ptsz = call |driver| {
        check_result_pointer(address)?;
        let queue = driver.queue(handle(stream))?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(address, driver.allocate_ordered(Some(handle(pool)), bytes, &queue)?) }
    };

    fn cuMemFreeAsync(address: sys::CUdeviceptr, stream: sys::CUstream) as cuMemFreeAsync_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        driver.free_ordered(address, &queue)
    };

    fn cuDeviceGetDefaultMemPool(pool: *mut sys::CUmemoryPool, device: sys::CUdevice) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_pool(driver, pool, device, true) }
    };

    fn cuDeviceGetMemPool(pool: *mut sys::CUmemoryPool, device: sys::CUdevice) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put_pool(driver, pool, device, false) }
    };

    fn cuDeviceSetMemPool(device: sys::CUdevice, pool: sys::CUmemoryPool) = call |driver| {
        driver.device(device)?;
        driver.set_current_pool(handle(pool))
    };

    fn cuMemPoolCreate(pool: *mut sys::CUmemoryPool, properties: *const PoolProperties) = call |driver| {
        check_result_pointer(pool)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let PoolProperties { allocation, handles, location, device } = unsafe { get(properties)? };
        // The supported type is pinned memory on a device.
        if allocation != 1 || location != 1 {
            return Err(Error::value("only pools of device memory are supported"));
        }
        if handles != 0 {
            return Err(Error::unsupported("pools are not shared between processes"));
        }
        // SAFETY: as above.
        unsafe { put(pool, pointer(driver.create_pool(driver.device(device)?).handle)) }
    };

    fn cuMemPoolDestroy(pool: sys::CUmemoryPool) = call |driver| {
        driver.destroy_pool(handle(pool))
    };

    fn cuMemPoolTrimTo(pool: sys::CUmemoryPool, _bytes: usize) = call |driver| {
        // Freed memory is not cached, so there is nothing to trim.
        driver.pools.get(handle(pool)).map(|_| ())
    };

    fn cuMemPoolGetAccess(access: *mut c_uint, pool: sys::CUmemoryPool, at: *const MemoryLocation) = call |driver| {
        check_result_pointer(access)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let MemoryLocation { location, device } = unsafe { get(at)? };
        let pool = driver.pools.get(handle(pool))?;
        let is_accessible = match location {
            0 => return Err(Error::value("the location of an access to a pool is invalid")),
            DEVICE_LOCATION => {
                let no_device = |_| Error::value(format!("there is no device {device}"));
                pool.is_of(driver.device(device).map_err(no_device)?)
            }
            _ => false,
        };
        // SAFETY: as above.
        unsafe { put(access, if is_accessible { READ_AND_WRITE } else { 0 }) }
    };

    fn cuMemPoolSetAccess(pool: sys::CUmemoryPool, list: *const MemoryAccessDescription, count: usize) = call |driver| {
        if list.is_null() {
            return Err(Error::value("the list of accesses is null"));
        }
        driver.pools.get(handle(pool))?;
        (0..count).try_for_each(|index| {
            // SAFETY: the caller's list has `count` elements, as cuda.h requires.
            set_access(driver, handle(pool), unsafe { get(list.wrapping_add(index))? })
        })
    };

    fn cuMemPoolGetAttribute(pool: sys::CUmemoryPool, number: c_uint, value: *mut c_void) = call |driver| {
        let pool = driver.pools.get(handle(pool))?;
        let number = attribute(number)?;
        let known = match number {
            5..=8 => driver.used_of_pool(pool.handle)?,
            _ => pool.attributes[number].load(Ordering::Relaxed),
        };
        // SAFETY: the caller's pointer is valid for the attribute's width, as cuda.h requires.
        unsafe { if is_wide(number) { put(value.cast(), known) } else { put(value.cast(), known as c_int) } }
    };

    fn cuMemPoolSetAttribute(pool: sys::CUmemoryPool, number: c_uint, value: *mut c_void) = call |driver| {
        let pool = driver.pools.get(handle(pool))?;
        let number = attribute(number)?;
        // SAFETY: the caller's pointer is valid for the attribute's width, as cuda.h requires.
        let set = unsafe {
            if is_wide(number) { get(value.cast::<u64>())? } else { get(value.cast::<c_int>())? as u32 as u64 }
        };
        // Only the high-water marks can be set among the memory attributes, and only to 0.
        if number == 5 || number == 7 || number > 5 && set != 0 {
            return Err(Error::value("the amount of memory in use cannot be set"));
        }
        pool.attributes[number].store(set, Ordering::Relaxed);
        Ok(())
    };
}
