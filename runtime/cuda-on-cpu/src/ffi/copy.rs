//! Functions of copies and fills.

use super::layout::{Copy2D, Copy3D, unified};
use super::{exports, get, handle};
use crate::core::context::Context;
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::memory::{CopyExtent, CopyPlace, CopySide, Fill, FillValue, HostPointer, MemoryCopy};
use cudarc::driver::sys;
use std::ffi::{c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;

/// Returns the side of a copy in host memory.
///
/// # Safety
/// The program must keep the bytes valid until the copy is complete.
unsafe fn host(pointer: *const c_void) -> CopySide {
    // SAFETY: guaranteed by the caller. The copy does not write to its source.
    CopySide::row(CopyPlace::Host(unsafe { HostPointer::new(pointer.cast::<u8>().cast_mut()) }))
}

fn device(context: &Arc<Context>, address: u64) -> CopySide {
    CopySide::row(CopyPlace::Device(context.clone(), address))
}

/// Returns bytes of the first row of an array.
fn row_of(driver: &Driver, array: sys::CUarray, offset: usize, bytes: usize) -> Result<CopySide> {
    let array = driver.arrays.get(handle(array))?;
    let end = (offset as u64).checked_add(bytes as u64).filter(|end| *end <= array.texels.row);
    let why = || Error::value(format!("a row of {} bytes has no {bytes} at {offset}", array.texels.row));
    end.ok_or_else(why)?;
    Ok(device(&array.context, array.texels.start + offset as u64))
}

fn copy(from: CopySide, to: CopySide, bytes: usize) -> MemoryCopy {
    MemoryCopy { from, to, extent: CopyExtent::row(bytes as u64) }
}

/// Runs a copy in the order of the current context, and waits until the copy is complete.
fn copy_and_wait(driver: &Driver, copy: impl FnOnce(&Arc<Context>) -> Result<MemoryCopy>) -> Result {
    driver.copy_now(driver.with_owners(copy(&driver.current()?)?))
}

/// Submits a copy to a stream.
fn submit_copy(
    driver: &Driver,
    stream: sys::CUstream,
    copy: impl FnOnce(&Arc<Context>) -> Result<MemoryCopy>,
) -> Result {
    let queue = driver.queue(handle(stream))?;
    driver.copy(driver.with_owners(copy(queue.context())?), &queue)
}

/// The area of a fill: a row, or several rows.
struct FillArea {
    address: u64,
    value: FillValue,
    pitch: usize,
    width: usize,
    height: usize,
}

impl FillArea {
    fn row(address: u64, value: FillValue, count: usize) -> FillArea {
        FillArea { address, value, pitch: 0, width: count, height: 1 }
    }

    fn fill(self, context: &Arc<Context>) -> Fill {
        let FillArea { address, value, pitch, width, height } = self;
        let width = (width as u64).saturating_mul(value.width());
        let extent = CopyExtent { width, height: height as u64, depth: 1 };
        Fill { context: context.clone(), address, pitch: pitch as u64, extent, value }
    }
}

fn fill_now(driver: &Driver, area: FillArea) -> Result {
    driver.fill_now(area.fill(&driver.current()?))
}

fn fill_later(driver: &Driver, stream: sys::CUstream, area: FillArea) -> Result {
    let queue = driver.queue(handle(stream))?;
    driver.fill(area.fill(queue.context()), &queue)
}

// SAFETY of all functions below: the host memory of a copy stays valid until the copy is complete,
// as cuda.h requires.
exports! {
    fn cuMemcpy(to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) as cuMemcpy_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |context| Ok(unsafe { copy(unified(context, from), unified(context, to), bytes) }))
    };

    fn cuMemcpyAsync(to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream) as cuMemcpyAsync_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |context| Ok(unsafe { copy(unified(context, from), unified(context, to), bytes) }))
    };

    fn cuMemcpyHtoD_v2(to: sys::CUdeviceptr, from: *const c_void, bytes: usize) as cuMemcpyHtoD_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |context| Ok(copy(unsafe { host(from) }, device(context, to), bytes)))
    };

    fn cuMemcpyHtoDAsync_v2(
        to: sys::CUdeviceptr,
        from: *const c_void,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyHtoDAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |context| Ok(copy(unsafe { host(from) }, device(context, to), bytes)))
    };

    fn cuMemcpyDtoH_v2(to: *mut c_void, from: sys::CUdeviceptr, bytes: usize) as cuMemcpyDtoH_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |context| Ok(copy(device(context, from), unsafe { host(to) }, bytes)))
    };

    fn cuMemcpyDtoHAsync_v2(
        to: *mut c_void,
        from: sys::CUdeviceptr,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyDtoHAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |context| Ok(copy(device(context, from), unsafe { host(to) }, bytes)))
    };

    fn cuMemcpyDtoD_v2(to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize) as cuMemcpyDtoD_v2_ptds = call |driver| {
        copy_and_wait(driver, |context| Ok(copy(device(context, from), device(context, to), bytes)))
    };

    fn cuMemcpyDtoDAsync_v2(
        to: sys::CUdeviceptr,
        from: sys::CUdeviceptr,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyDtoDAsync_v2_ptsz = call |driver| {
        submit_copy(driver, stream, |context| Ok(copy(device(context, from), device(context, to), bytes)))
    };

    fn cuMemcpyPeer(
        to: sys::CUdeviceptr,
        to_context: sys::CUcontext,
        from: sys::CUdeviceptr,
        from_context: sys::CUcontext,
        bytes: usize,
    ) as cuMemcpyPeer_ptds = call |driver| {
        let (there, here) =
            (driver.contexts.get(handle(to_context))?, driver.contexts.get(handle(from_context))?);
        driver.copy_now(copy(device(&here, from), device(&there, to), bytes))
    };

    fn cuMemcpyPeerAsync(
        to: sys::CUdeviceptr,
        to_context: sys::CUcontext,
        from: sys::CUdeviceptr,
        from_context: sys::CUcontext,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyPeerAsync_ptsz = call |driver| {
        let (there, here) =
            (driver.contexts.get(handle(to_context))?, driver.contexts.get(handle(from_context))?);
        driver.copy(copy(device(&here, from), device(&there, to), bytes), &driver.queue(handle(stream))?)
    };

    fn cuMemcpy2D_v2(of: *const Copy2D) as cuMemcpy2DUnaligned_v2 as cuMemcpy2DUnaligned_v2_ptds as cuMemcpy2D_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |context| unsafe { Copy3D::from(get(of)?).read(context, Some(&driver.arrays)) })
    };

    fn cuMemcpy2DAsync_v2(of: *const Copy2D, stream: sys::CUstream) as cuMemcpy2DAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |context| unsafe { Copy3D::from(get(of)?).read(context, Some(&driver.arrays)) })
    };

    fn cuMemcpy3D_v2(of: *const Copy3D) as cuMemcpy3D_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |context| unsafe { get(of)?.read(context, Some(&driver.arrays)) })
    };

    fn cuMemcpy3DAsync_v2(of: *const Copy3D, stream: sys::CUstream) as cuMemcpy3DAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |context| unsafe { get(of)?.read(context, Some(&driver.arrays)) })
    };

    fn cuMemcpy3DPeer(of: *const Copy3D) as cuMemcpy3DPeer_ptds = call |driver| {
        // SAFETY: as above.
        driver.copy_now(unsafe { get(of)?.read_between(&driver.contexts, &driver.arrays)? })
    };

    fn cuMemcpy3DPeerAsync(of: *const Copy3D, stream: sys::CUstream) as cuMemcpy3DPeerAsync_ptsz = call |driver| {
        // SAFETY: as above.
        let copy = unsafe { get(of)?.read_between(&driver.contexts, &driver.arrays)? };
        driver.copy(copy, &driver.queue(handle(stream))?)
    };

    fn cuMemcpyHtoA_v2(to: sys::CUarray, offset: usize, from: *const c_void, bytes: usize) as cuMemcpyHtoA_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |_| Ok(copy(unsafe { host(from) }, row_of(driver, to, offset, bytes)?, bytes)))
    };

    fn cuMemcpyHtoAAsync_v2(
        to: sys::CUarray,
        offset: usize,
        from: *const c_void,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyHtoAAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |_| Ok(copy(unsafe { host(from) }, row_of(driver, to, offset, bytes)?, bytes)))
    };

    fn cuMemcpyAtoH_v2(to: *mut c_void, from: sys::CUarray, offset: usize, bytes: usize) as cuMemcpyAtoH_v2_ptds = call |driver| {
        // SAFETY: as above.
        copy_and_wait(driver, |_| Ok(copy(row_of(driver, from, offset, bytes)?, unsafe { host(to) }, bytes)))
    };

    fn cuMemcpyAtoHAsync_v2(
        to: *mut c_void,
        from: sys::CUarray,
        offset: usize,
        bytes: usize,
        stream: sys::CUstream,
    ) as cuMemcpyAtoHAsync_v2_ptsz = call |driver| {
        // SAFETY: as above.
        submit_copy(driver, stream, |_| Ok(copy(row_of(driver, from, offset, bytes)?, unsafe { host(to) }, bytes)))
    };

    fn cuMemcpyDtoA_v2(to: sys::CUarray, offset: usize, from: sys::CUdeviceptr, bytes: usize) as cuMemcpyDtoA_v2_ptds = call |driver| {
        copy_and_wait(driver, |context| Ok(copy(device(context, from), row_of(driver, to, offset, bytes)?, bytes)))
    };

    fn cuMemcpyAtoD_v2(to: sys::CUdeviceptr, from: sys::CUarray, offset: usize, bytes: usize) as cuMemcpyAtoD_v2_ptds = call |driver| {
        copy_and_wait(driver, |context| Ok(copy(row_of(driver, from, offset, bytes)?, device(context, to), bytes)))
    };

    fn cuMemcpyAtoA_v2(
        to: sys::CUarray,
        to_offset: usize,
        from: sys::CUarray,
        from_offset: usize,
        bytes: usize,
    ) as cuMemcpyAtoA_v2_ptds = call |driver| {
        copy_and_wait(driver, |_| {
            let (from, to) = (row_of(driver, from, from_offset, bytes)?, row_of(driver, to, to_offset, bytes)?);
            Ok(copy(from, to, bytes))
        })
    };

    fn cuMemsetD8_v2(address: sys::CUdeviceptr, value: c_uchar, count: usize) as cuMemsetD8_v2_ptds = call |driver| {
        fill_now(driver, FillArea::row(address, FillValue::Byte(value), count))
    };

    fn cuMemsetD16_v2(address: sys::CUdeviceptr, value: c_ushort, count: usize) as cuMemsetD16_v2_ptds = call |driver| {
        fill_now(driver, FillArea::row(address, FillValue::Half(value), count))
    };

    fn cuMemsetD32_v2(address: sys::CUdeviceptr, value: c_uint, count: usize) as cuMemsetD32_v2_ptds = call |driver| {
        fill_now(driver, FillArea::row(address, FillValue::Word(value), count))
    };

    fn cuMemsetD8Async(address: sys::CUdeviceptr, value: c_uchar, count: usize, stream: sys::CUstream) as cuMemsetD8Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea::row(address, FillValue::Byte(value), count))
    };

    fn cuMemsetD16Async(address: sys::CUdeviceptr, value: c_ushort, count: usize, stream: sys::CUstream) as cuMemsetD16Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea::row(address, FillValue::Half(value), count))
    };

    fn cuMemsetD32Async(address: sys::CUdeviceptr, value: c_uint, count: usize, stream: sys::CUstream) as cuMemsetD32Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea::row(address, FillValue::Word(value), count))
    };

    fn cuMemsetD2D8_v2(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
    ) as cuMemsetD2D8_v2_ptds = call |driver| {
        fill_now(driver, FillArea { address, value: FillValue::Byte(value), pitch, width, height })
    };

    fn cuMemsetD2D16_v2(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
    ) as cuMemsetD2D16_v2_ptds = call |driver| {
        fill_now(driver, FillArea { address, value: FillValue::Half(value), pitch, width, height })
    };

    fn cuMemsetD2D32_v2(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
    ) as cuMemsetD2D32_v2_ptds = call |driver| {
        fill_now(driver, FillArea { address, value: FillValue::Word(value), pitch, width, height })
    };

    fn cuMemsetD2D8Async(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_uchar,
        width: usize,
        height: usize,
        stream: sys::CUstream,
    ) as cuMemsetD2D8Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea { address, value: FillValue::Byte(value), pitch, width, height })
    };

    fn cuMemsetD2D16Async(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_ushort,
        width: usize,
        height: usize,
        stream: sys::CUstream,
    ) as cuMemsetD2D16Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea { address, value: FillValue::Half(value), pitch, width, height })
    };

    fn cuMemsetD2D32Async(
        address: sys::CUdeviceptr,
        pitch: usize,
        value: c_uint,
        width: usize,
        height: usize,
        stream: sys::CUstream,
    ) as cuMemsetD2D32Async_ptsz = call |driver| {
        fill_later(driver, stream, FillArea { address, value: FillValue::Word(value), pitch, width, height })
    };
}
