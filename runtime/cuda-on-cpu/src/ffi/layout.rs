//! Structures of cuda.h in their memory layout. Enumerations of C are plain numbers here, so that
//! any bits are valid.

use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::memory::{Copy, Extent, HostPointer, Place, Side};
use cudarc::driver::sys;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::{offset_of, size_of};
use std::sync::Arc;

/// `CU_MEMORYTYPE_…`
const HOST: c_uint = 1;
const DEVICE: c_uint = 2;
const ARRAY: c_uint = 3;
const UNIFIED: c_uint = 4;

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy2D {
    from: Side2D,
    to: Side2D,
    width: usize,
    height: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Side2D {
    x: usize,
    y: usize,
    kind: c_uint,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    pitch: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, whose contexts are in the reserved fields.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Copy3D {
    from: Side3D,
    to: Side3D,
    width: usize,
    height: usize,
    depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Side3D {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: c_uint,
    host: *mut c_void,
    device: u64,
    array: *mut c_void,
    context: *mut c_void,
    pitch: usize,
    height: usize,
}

const _: () = assert!(
    size_of::<Copy2D>() == size_of::<sys::CUDA_MEMCPY2D>()
        && offset_of!(Copy2D, to) == offset_of!(sys::CUDA_MEMCPY2D, dstXInBytes)
        && offset_of!(Copy2D, to) + offset_of!(Side2D, pitch) == offset_of!(sys::CUDA_MEMCPY2D, dstPitch)
        && offset_of!(Side2D, device) == offset_of!(sys::CUDA_MEMCPY2D, srcDevice)
        && offset_of!(Copy2D, height) == offset_of!(sys::CUDA_MEMCPY2D, Height)
);
const _: () = assert!(
    size_of::<Copy3D>() == size_of::<sys::CUDA_MEMCPY3D>()
        && size_of::<Copy3D>() == size_of::<sys::CUDA_MEMCPY3D_PEER>()
        && offset_of!(Copy3D, to) == offset_of!(sys::CUDA_MEMCPY3D, dstXInBytes)
        && offset_of!(Side3D, context) == offset_of!(sys::CUDA_MEMCPY3D_PEER, srcContext)
        && offset_of!(Copy3D, to) + offset_of!(Side3D, height) == offset_of!(sys::CUDA_MEMCPY3D, dstHeight)
        && offset_of!(Copy3D, depth) == offset_of!(sys::CUDA_MEMCPY3D, Depth)
);

impl From<Side2D> for Side3D {
    fn from(side: Side2D) -> Side3D {
        let Side2D { x, y, kind, host, device, array, pitch } = side;
        Side3D { x, y, z: 0, level: 0, kind, host, device, array, context: std::ptr::null_mut(), pitch, height: 0 }
    }
}

impl From<Copy2D> for Copy3D {
    fn from(copy: Copy2D) -> Copy3D {
        let Copy2D { from, to, width, height } = copy;
        Copy3D { from: from.into(), to: to.into(), width, height, depth: 1 }
    }
}

impl Copy3D {
    /// Returns the described copy, in the memory of `context`.
    ///
    /// # Safety
    /// The program must keep the host memory valid until the copy is complete.
    pub unsafe fn read(&self, context: &Arc<Context>) -> Result<Copy> {
        let Copy3D { from, to, width, height, depth } = self;
        let extent = Extent { width: *width as u64, height: *height as u64, depth: *depth as u64 };
        // SAFETY: guaranteed by the caller.
        unsafe { Ok(Copy { from: from.read(context, extent)?, to: to.read(context, extent)?, extent }) }
    }
}

impl Side3D {
    /// # Safety
    /// The requirements of `Copy3D::read` hold.
    unsafe fn read(&self, context: &Arc<Context>, extent: Extent) -> Result<Side> {
        if self.level != 0 {
            return Err(Error::value("a level of detail, which only arrays have"));
        }
        // A pitch of 0 means rows without gaps.
        let pitch = if self.pitch == 0 { extent.width } else { self.pitch as u64 };
        let rows = if self.height == 0 { extent.height } else { self.height as u64 };
        let overflow = || Error::value("the copy exceeds the address space");
        let layer = rows.checked_mul(pitch).ok_or_else(overflow)?;
        let parts = [(self.x as u64, 1), (self.y as u64, pitch), (self.z as u64, layer)];
        let offset = parts.iter().try_fold(0u64, |sum, (n, stride)| sum.checked_add(n.checked_mul(*stride)?));
        let offset = offset.ok_or_else(overflow)?;
        let at = |start: u64| start.checked_add(offset).ok_or_else(overflow);
        let host = |start: *mut c_void| {
            // SAFETY: guaranteed by the caller.
            unsafe { HostPointer::new(start.cast::<u8>().wrapping_add(offset as usize)) }
        };
        let place = match self.kind {
            HOST if self.host.is_null() => return Err(Error::value("the pointer to host memory is null")),
            HOST => Place::Host(host(self.host)),
            DEVICE => Place::Device(context.clone(), at(self.device)?),
            UNIFIED => {
                // SAFETY: guaranteed by the caller.
                let side = unsafe { unified(context, at(self.device)?) };
                side.place
            }
            ARRAY => return Err(Error::unsupported("copies of arrays")),
            kind => return Err(Error::value(format!("unknown kind of memory: {kind}"))),
        };
        Ok(Side { place, pitch, layer })
    }
}

/// Returns the side of a copy at a unified address, which identifies its memory.
///
/// # Safety
/// The program must keep host memory at that address valid until the copy is complete.
pub unsafe fn unified(context: &Arc<Context>, address: u64) -> Side {
    if context.memory().find(address).is_some() || crate::core::memory::RANGE.contains(&address) {
        return Side::row(Place::Device(context.clone(), address));
    }
    // The program exposed the pointer's provenance.
    let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: guaranteed by the caller.
    Side::row(Place::Host(unsafe { HostPointer::new(pointer) }))
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: sys::CUstream,
    attributes: *const LaunchAttribute,
    count: c_uint,
}

/// `CUlaunchAttribute`
#[repr(C)]
#[derive(Clone, Copy)]
struct LaunchAttribute {
    id: c_uint,
    padding: [u8; 4],
    value: [u64; 8],
}

impl LaunchConfig {
    /// Rejects attributes that require more than an ordinary launch in stream order.
    ///
    /// # Safety
    /// The array has the given number of attributes.
    pub unsafe fn check(&self) -> Result {
        if self.count > 0 && self.attributes.is_null() {
            return Err(Error::value("the attributes of the launch are null"));
        }
        for index in 0..self.count as usize {
            // SAFETY: guaranteed by the caller.
            let LaunchAttribute { id, value, .. } = unsafe { self.attributes.add(index).read_unaligned() };
            let first = value[0] as u32;
            match id {
                // Hints without effect here: ignore, access policy, shared-memory carve-out,
                // priority, memory domains.
                0 | 1 | 8 | 9 | 10 | 14 => {}
                // A value of 0 means not cooperative.
                2 if first == 0 => {}
                // A cluster of one block is equivalent to no cluster.
                4 if first == 1 && value[0] >> 32 == 1 && value[1] as u32 == 1 => {}
                // Programmatic dependence: the previous kernel is complete in any case.
                6 => {}
                _ => return Err(Error::unsupported(format!("attribute {id} of a launch"))),
            }
        }
        Ok(())
    }
}

/// The fields of `CUmemPoolProps` that are read: the allocation type, the handle types, and the
/// location's type and ID.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProperties {
    pub allocation: c_uint,
    pub handles: c_uint,
    pub location: c_uint,
    pub device: c_int,
}
