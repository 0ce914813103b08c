//! Functions of memory: allocations, and attributes of addresses.

use super::{check_result_pointer, exports, get, handle, no_flags, pointer, put, put_if};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::memory::AllocationKind;
use cudarc::driver::sys::{self, CUpointer_attribute as Attribute, CUresult};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr::{self, NonNull};

/// The alignment of rows in pitched memory, in bytes.
const PITCH: usize = 512;

/// `CU_MEMHOSTALLOC_…`: portable, mapped, write-combined.
const HOST_FLAGS: c_uint = 7;

/// `CU_MEMHOSTREGISTER_…`: portable, mapped, I/O memory, read-only.
const REGISTER_FLAGS: c_uint = 0xf;

/// Allocates pinned memory, and writes its address.
///
/// # Safety
/// `to` is null or valid for writes.
unsafe fn pin(driver: &Driver, to: *mut *mut c_void, bytes: usize, flags: c_uint) -> Result {
    check_result_pointer(to)?;
    if flags & !HOST_FLAGS != 0 {
        return Err(Error::value(format!("invalid flags of pinned memory: {flags:#x}")));
    }
    let address = driver.allocate(AllocationKind::Pinned(flags), bytes)?;
    let memory = driver.current()?.memory().pointer(address, bytes as u64)?;
    // Programs also pass the address as a number.
    memory.expose_provenance();
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, memory.cast()) }
}

/// Writes an attribute of an address. Returns `false` if the address is unknown to the driver.
///
/// # Safety
/// `to` is valid for writes of the attribute's size.
unsafe fn describe(driver: &Driver, to: *mut c_void, attribute: c_int, address: u64) -> Result<bool> {
    use sys::CUpointer_attribute::*;
    let is = |a: Attribute| attribute == a as c_int;
    check_result_pointer(to)?;
    let owner = driver.owner(address);
    let context = match &owner {
        Some(owner) => owner.clone(),
        None => driver.current()?,
    };
    let memory = context.memory();
    let found = memory.find(address).filter(|found| !found.allocation.leaving);
    // SAFETY: guaranteed by the caller, in each case.
    unsafe {
        let Some(found) = found else {
            // Zeroes for unknown memory: no context, no pointer, and an ordinal without a device.
            match attribute {
                _ if is(CU_POINTER_ATTRIBUTE_CONTEXT) => put(to.cast(), ptr::null_mut::<c_void>())?,
                _ if is(CU_POINTER_ATTRIBUTE_MEMORY_TYPE) => put(to.cast(), 0u32)?,
                _ if is(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) => put(to.cast(), -2i32)?,
                _ if is(CU_POINTER_ATTRIBUTE_DEVICE_POINTER) || is(CU_POINTER_ATTRIBUTE_HOST_POINTER) => {
                    put(to.cast(), 0u64)?;
                }
                _ if is(CU_POINTER_ATTRIBUTE_IS_MANAGED) || is(CU_POINTER_ATTRIBUTE_MAPPED) => put(to.cast(), 0u8)?,
                _ => {}
            }
            return Ok(false);
        };
        let kind = found.allocation.kind;
        match attribute {
            _ if is(CU_POINTER_ATTRIBUTE_CONTEXT) => put(to.cast(), pointer::<c_void>(context.handle))?,
            _ if is(CU_POINTER_ATTRIBUTE_MEMORY_TYPE) => {
                // Managed memory counts as device memory, as in NVIDIA's driver.
                let of_host = matches!(kind, AllocationKind::Pinned(_) | AllocationKind::Registered(_));
                put(to.cast(), if of_host { 1u32 } else { 2u32 })?;
            }
            _ if is(CU_POINTER_ATTRIBUTE_DEVICE_POINTER) => put(to.cast(), address)?,
            _ if is(CU_POINTER_ATTRIBUTE_HOST_POINTER) => {
                if !kind.is_of_host() {
                    put(to.cast(), 0u64)?;
                    return Err(Error::value(format!("the host does not have {address:#x}")));
                }
                put(to.cast(), address)?;
            }
            _ if is(CU_POINTER_ATTRIBUTE_BUFFER_ID) => put(to.cast(), found.allocation.id)?,
            _ if is(CU_POINTER_ATTRIBUTE_IS_MANAGED) => put(to.cast(), u8::from(kind == AllocationKind::Managed))?,
            _ if is(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) => put(to.cast(), context.device as i32)?,
            _ if is(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) => put(to.cast(), found.start)?,
            _ if is(CU_POINTER_ATTRIBUTE_RANGE_SIZE) => put(to.cast(), found.allocation.block.len() as usize)?,
            _ if is(CU_POINTER_ATTRIBUTE_MAPPED) => put(to.cast(), 1u8)?,
            _ if is(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES) => put(to.cast(), 0u64)?,
            _ if is(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS) => put(to.cast(), 3u32)?,
            _ if is(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE) => {
                let pool = if let AllocationKind::Pool(pool) = kind { pool } else { crate::core::handle::Handle(0) };
                put(to.cast(), pointer::<c_void>(pool))?;
            }
            _ if is(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
                || is(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
                || is(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE) =>
            {
                put(to.cast(), 0u8)?;
            }
            _ => return Err(Error::value(format!("unknown attribute of a pointer: {attribute}"))),
        }
    }
    Ok(true)
}

exports! {
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) = call |driver| {
        let (all, left) = driver.supply(driver.current()?.device).bytes();
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(free, left as usize)?;
            put(total, all as usize)
        }
    };

    fn cuMemAlloc_v2(address: *mut sys::CUdeviceptr, bytes: usize) = call |driver| {
        check_result_pointer(address)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(address, driver.allocate(AllocationKind::Device, bytes)?) }
    };

    fn cuMemAllocPitch_v2(
        address: *mut sys::CUdeviceptr,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: c_uint,
    ) = call |driver| {
        check_result_pointer(address)?;
        check_result_pointer(pitch)?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(Error::value(format!("elements of {element} bytes, not of 4, 8 or 16")));
        }
        let row = width.checked_next_multiple_of(PITCH);
        let Some((row, bytes)) = row.and_then(|row| Some((row, row.checked_mul(height)?))) else {
            return Err(Error::new(CUresult::CUDA_ERROR_OUT_OF_MEMORY, "the size exceeds the address space"));
        };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put(address, driver.allocate(AllocationKind::Device, bytes)?)?;
            put(pitch, row)
        }
    };

    fn cuMemAllocManaged(address: *mut sys::CUdeviceptr, bytes: usize, flags: c_uint) = call |driver| {
        check_result_pointer(address)?;
        // Attached to all streams, or to the host.
        if !matches!(flags, 1 | 2) {
            return Err(Error::value(format!("invalid flags of managed memory: {flags:#x}")));
        }
        let managed = driver.allocate(AllocationKind::Managed, bytes)?;
        driver.current()?.memory().pointer(managed, bytes as u64)?.expose_provenance();
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(address, managed) }
    };

    fn cuMemFree_v2(address: sys::CUdeviceptr) = call |driver| {
        driver.free(address)
    };

    fn cuMemGetAddressRange_v2(
        start: *mut sys::CUdeviceptr,
        bytes: *mut usize,
        address: sys::CUdeviceptr,
    ) = call |driver| {
        let why = || Error::new(CUresult::CUDA_ERROR_NOT_FOUND, format!("{address:#x} is in no allocation"));
        let context = driver.owner(address).ok_or_else(why)?;
        let memory = context.memory();
        let found = memory.find(address).filter(|found| !found.allocation.leaving).ok_or_else(why)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe {
            put_if(start, found.start);
            put_if(bytes, found.allocation.block.len() as usize);
        }
        Ok(())
    };

    fn cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, flags: c_uint) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { pin(driver, memory, bytes, flags) }
    };

    fn cuMemAllocHost_v2(memory: *mut *mut c_void, bytes: usize) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { pin(driver, memory, bytes, 0) }
    };

    fn cuMemFreeHost(memory: *mut c_void) = call |driver| {
        driver.free_host(memory.addr() as u64)
    };

    fn cuMemHostRegister_v2(memory: *mut c_void, bytes: usize, flags: c_uint) = call |driver| {
        if flags & !REGISTER_FLAGS != 0 {
            return Err(Error::value(format!("invalid flags of registered memory: {flags:#x}")));
        }
        let start = NonNull::new(memory.cast()).ok_or_else(|| Error::value("the memory is null"))?;
        // SAFETY: the caller keeps the memory valid until it is unregistered, as cuda.h requires.
        unsafe { driver.register(start, bytes, flags) }
    };

    fn cuMemHostUnregister(memory: *mut c_void) = call |driver| {
        driver.unregister(memory.addr() as u64)
    };

    fn cuMemHostGetDevicePointer_v2(address: *mut sys::CUdeviceptr, memory: *mut c_void, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        let given = memory.addr() as u64;
        if !driver.current()?.memory().is_pinned(given, 1) {
            return Err(Error::value(format!("{given:#x} is in no pinned memory")));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(address, given) }
    };

    fn cuMemHostGetFlags(flags: *mut c_uint, memory: *mut c_void) = call |driver| {
        let context = driver.current()?;
        let space = context.memory();
        match space.find(memory.addr() as u64).map(|found| found.allocation.kind) {
            // SAFETY: the caller's pointer is valid, as cuda.h requires.
            Some(AllocationKind::Pinned(made) | AllocationKind::Registered(made)) => unsafe { put(flags, made) },
            _ => Err(Error::value(format!("{:#x} is in no pinned memory", memory.addr()))),
        }
    };

    fn cuPointerGetAttribute(to: *mut c_void, attribute: c_int, address: sys::CUdeviceptr) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        match unsafe { describe(driver, to, attribute, address)? } {
            true => Ok(()),
            false => Err(Error::value(format!("{address:#x} is in no allocation"))),
        }
    };

    fn cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut c_int,
        to: *mut *mut c_void,
        address: sys::CUdeviceptr,
    ) = call |driver| {
        for index in 0..count as usize {
            // SAFETY: both arrays have the given number of elements, as cuda.h requires.
            unsafe {
                let attribute = get(attributes.wrapping_add(index))?;
                // Unknown memory gives zeroes, not an error.
                describe(driver, get(to.wrapping_add(index))?, attribute, address)?;
            }
        }
        Ok(())
    };

    fn cuPointerSetAttribute(_value: *const c_void, _attribute: c_int, address: sys::CUdeviceptr) = call |driver| {
        // The only settable attribute makes copies synchronous, and here they already are.
        driver.current()?.memory().check(address, 1)
    };

    fn cuMemPrefetchAsync(
        address: sys::CUdeviceptr,
        bytes: usize,
        _device: sys::CUdevice,
        stream: sys::CUstream,
    ) as cuMemPrefetchAsync_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        queue.context().memory().check(address, bytes as u64)
    };

    fn cuMemPrefetchAsync_v2(
        address: sys::CUdeviceptr,
        bytes: usize,
        _location: u64,
        flags: c_uint,
        stream: sys::CUstream,
    ) as cuMemPrefetchAsync_v2_ptsz = call |driver| {
        no_flags(flags)?;
        let queue = driver.queue(handle(stream))?;
        queue.context().memory().check(address, bytes as u64)
    };

    fn cuMemAdvise(
        address: sys::CUdeviceptr,
        bytes: usize,
        _advice: c_uint,
        _device: sys::CUdevice,
    ) = call |driver| {
        driver.current()?.memory().check(address, bytes as u64)
    };

    fn cuMemAdvise_v2(address: sys::CUdeviceptr, bytes: usize, _advice: c_uint, _location: u64) = call |driver| {
        driver.current()?.memory().check(address, bytes as u64)
    };

    fn cuStreamAttachMemAsync(
        stream: sys::CUstream,
        address: sys::CUdeviceptr,
        _bytes: usize,
        _flags: c_uint,
    ) as cuStreamAttachMemAsync_ptsz = call |driver| {
        let queue = driver.queue(handle(stream))?;
        queue.context().memory().check(address, 1)
    };
}
