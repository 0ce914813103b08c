//! Structures of cuda.h in their memory layout. Enumerations of C are plain numbers here, so that
//! any bits are valid.

use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::AttributeValue;
use crate::core::handle::HandleTable;
use crate::core::memory::{CopyExtent, CopyPlace, CopySide, Fill, FillValue, HostPointer, MemoryCopy};
use crate::core::texture::TexelArray;
use cudarc::driver::sys;
use runtime_ptx::texture::Texels;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::{MaybeUninit, offset_of, size_of};
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

/// One side of a `CUDA_MEMCPY2D`.
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

/// One side of a `CUDA_MEMCPY3D`.
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
    /// Returns the described copy, in the memory of `context`, or in `arrays` if there can be any.
    ///
    /// # Safety
    /// The program must keep the host memory valid until the copy is complete.
    pub unsafe fn read(&self, context: &Arc<Context>, arrays: Option<&HandleTable<TexelArray>>) -> Result<MemoryCopy> {
        let Copy3D { from, to, width, height, depth } = self;
        let extent = CopyExtent { width: *width as u64, height: *height as u64, depth: *depth as u64 };
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (from, to) = (from.read(context, arrays, extent)?, to.read(context, arrays, extent)?);
            Ok(MemoryCopy { from, to, extent })
        }
    }

    /// Returns the described copy between the contexts that its sides name.
    ///
    /// # Safety
    /// The program must keep the host memory valid until the copy is complete.
    pub unsafe fn read_between(
        &self,
        contexts: &HandleTable<Context>,
        arrays: &HandleTable<TexelArray>,
    ) -> Result<MemoryCopy> {
        let Copy3D { from, to, width, height, depth } = self;
        let extent = CopyExtent { width: *width as u64, height: *height as u64, depth: *depth as u64 };
        let side = |side: &Side3D| {
            let context = contexts.get(super::handle(side.context))?;
            // SAFETY: guaranteed by the caller.
            unsafe { side.read(&context, Some(arrays), extent) }
        };
        Ok(MemoryCopy { from: side(from)?, to: side(to)?, extent })
    }
}

impl Copy3D {
    /// Returns the description of a copy.
    pub fn of(copy: &MemoryCopy) -> Copy3D {
        let CopyExtent { width, height, depth } = copy.extent;
        let side = |side: &CopySide| {
            let (kind, host, device) = match &side.place {
                CopyPlace::Host(pointer) => (HOST, pointer.address(), 0),
                CopyPlace::Staged(bytes) => (HOST, bytes.as_ptr().addr() as u64, 0),
                CopyPlace::Device(_, address) => (DEVICE, 0, *address),
            };
            Side3D {
                x: 0,
                y: 0,
                z: 0,
                level: 0,
                kind,
                host: std::ptr::without_provenance_mut(host as usize),
                device,
                array: std::ptr::null_mut(),
                context: std::ptr::null_mut(),
                pitch: side.pitch as usize,
                height: side.layer.checked_div(side.pitch).unwrap_or(0) as usize,
            }
        };
        let (width, height, depth) = (width as usize, height as usize, depth as usize);
        Copy3D { from: side(&copy.from), to: side(&copy.to), width, height, depth }
    }
}

impl Side3D {
    /// Returns the side of a copy in an array, which must contain the whole box.
    fn of_array(&self, array: &TexelArray, extent: CopyExtent) -> Result<CopySide> {
        if self.level != 0 {
            return Err(Error::unsupported("arrays with levels of detail"));
        }
        let Texels { start, size, row, layer, .. } = array.texels;
        let room = [row, size[1].into(), size[2].into()];
        let at = [self.x as u64, self.y as u64, self.z as u64];
        let wide = [extent.width, extent.height, extent.depth];
        let fits = |i: usize| at[i].checked_add(wide[i]).is_some_and(|end| end <= room[i]);
        let texel = u64::from(array.texels.texel_bytes());
        if !(0..3).all(fits) || !at[0].is_multiple_of(texel) || !wide[0].is_multiple_of(texel) {
            return Err(Error::value(format!(
                "a copy of {wide:?} bytes, rows and layers from {at:?} on, in an array of {room:?} with texels of \
                 {texel} bytes"
            )));
        }
        let address = start + at[0] + at[1] * row + at[2] * layer;
        Ok(CopySide { place: CopyPlace::Device(array.context.clone(), address), pitch: row, layer })
    }

    /// Returns the described side of a copy.
    ///
    /// # Safety
    /// The requirements of `Copy3D::read` hold.
    unsafe fn read(
        &self,
        context: &Arc<Context>,
        arrays: Option<&HandleTable<TexelArray>>,
        extent: CopyExtent,
    ) -> Result<CopySide> {
        if self.kind == ARRAY {
            let arrays = arrays.ok_or_else(|| Error::unsupported("copies of arrays in graphs"))?;
            return self.of_array(&*arrays.get(super::handle(self.array))?, extent);
        }
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
            HOST => CopyPlace::Host(host(self.host)),
            DEVICE => CopyPlace::Device(context.clone(), at(self.device)?),
            UNIFIED => {
                // SAFETY: guaranteed by the caller.
                let side = unsafe { unified(context, at(self.device)?) };
                side.place
            }
            kind => return Err(Error::value(format!("unknown kind of memory: {kind}"))),
        };
        Ok(CopySide { place, pitch, layer })
    }
}

/// Returns the side of a copy at a unified address, which identifies its memory.
///
/// # Safety
/// The program must keep host memory at that address valid until the copy is complete.
pub unsafe fn unified(context: &Arc<Context>, address: u64) -> CopySide {
    if context.memory().find(address).is_some() || crate::core::memory::RANGE.contains(&address) {
        return CopySide::row(CopyPlace::Device(context.clone(), address));
    }
    // The program exposed the pointer's provenance.
    let pointer = std::ptr::with_exposed_provenance_mut(address as usize);
    // SAFETY: guaranteed by the caller.
    CopySide::row(CopyPlace::Host(unsafe { HostPointer::new(pointer) }))
}

/// `CUDA_KERNEL_NODE_PARAMS_v1`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNode {
    pub function: sys::CUfunction,
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub pointers: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct KernelNodeV2 {
    node: KernelNode,
    /// The kernel of a library, instead of the function.
    kernel: *mut c_void,
    context: sys::CUcontext,
}

const _: () = assert!(
    size_of::<KernelNode>() == size_of::<sys::CUDA_KERNEL_NODE_PARAMS_v1>()
        && offset_of!(KernelNode, pointers) == offset_of!(sys::CUDA_KERNEL_NODE_PARAMS_v1, kernelParams)
        && size_of::<KernelNodeV2>() == 72
);

impl From<KernelNode> for KernelNodeV2 {
    fn from(node: KernelNode) -> KernelNodeV2 {
        KernelNodeV2 { node, kernel: std::ptr::null_mut(), context: std::ptr::null_mut() }
    }
}

impl KernelNodeV2 {
    /// Returns the older form of the parameters, with the kernel's handle in place of the
    /// function's.
    pub fn node(self) -> KernelNode {
        let function = if self.node.function.is_null() { self.kernel.cast() } else { self.node.function };
        KernelNode { function, ..self.node }
    }
}

/// `CUDA_MEMSET_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemsetNode {
    address: u64,
    pitch: usize,
    value: c_uint,
    element: c_uint,
    width: usize,
    height: usize,
}

const _: () = assert!(size_of::<MemsetNode>() == size_of::<sys::CUDA_MEMSET_NODE_PARAMS>());

impl MemsetNode {
    /// Returns the described fill, in the memory of `context`.
    pub fn fill(&self, context: &Arc<Context>) -> Result<Fill> {
        let MemsetNode { address, pitch, value, element, width, height } = *self;
        let value = match element {
            1 => FillValue::Byte(value as u8),
            2 => FillValue::Half(value as u16),
            4 => FillValue::Word(value),
            _ => return Err(Error::value(format!("elements of {element} bytes, not of 1, 2 or 4"))),
        };
        let width = (width as u64).saturating_mul(value.width());
        let extent = CopyExtent { width, height: height as u64, depth: 1 };
        Ok(Fill { context: context.clone(), address, pitch: pitch as u64, extent, value })
    }

    /// Returns the description of a fill.
    pub fn of(fill: &Fill) -> MemsetNode {
        let (value, element) = match fill.value {
            FillValue::Byte(value) => (value.into(), 1),
            FillValue::Half(value) => (value.into(), 2),
            FillValue::Word(value) => (value, 4),
        };
        let (width, height) = (fill.extent.width as usize / element as usize, fill.extent.height as usize);
        MemsetNode { address: fill.address, pitch: fill.pitch as usize, value, element, width, height }
    }
}

/// `CUDA_MEM_ALLOC_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct AllocationNode {
    pool: [u64; 11],
    access: *const c_void,
    count: usize,
    pub bytes: usize,
    pub address: u64,
}

impl AllocationNode {
    /// Returns the description of an allocation on the device.
    pub fn of(address: u64, bytes: usize) -> AllocationNode {
        let mut pool = [0; 11];
        // Pinned memory, on a device.
        (pool[0], pool[1]) = (1, 1);
        AllocationNode { pool, access: std::ptr::null(), count: 0, bytes, address }
    }
}

/// `CUDA_MEMCPY_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CopyNode {
    flags: c_int,
    reserved: c_int,
    context: sys::CUcontext,
    pub copy: Copy3D,
}

impl From<Copy3D> for CopyNode {
    fn from(copy: Copy3D) -> CopyNode {
        CopyNode { flags: 0, reserved: 0, context: std::ptr::null_mut(), copy }
    }
}

/// `CUDA_CHILD_GRAPH_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ChildNode {
    pub graph: sys::CUgraph,
    /// `CU_GRAPH_CHILD_GRAPH_OWNERSHIP_…`: 0 if the node gets a clone of the graph.
    pub ownership: c_uint,
}

/// `CUgraphNodeParams`: the parameters of a node of any type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct NodeParameters {
    /// `CUgraphNodeType`
    pub kind: c_uint,
    reserved: [c_uint; 3],
    /// The parameters of the type. Gaps between them may be uninitialized.
    content: MaybeUninit<[u64; 29]>,
    end: u64,
}

// cuda.h of CUDA 12.2 states these sizes.
const _: () = assert!(
    size_of::<NodeParameters>() == 256
        && offset_of!(NodeParameters, content) == 16
        && size_of::<CopyNode>() == 16 + size_of::<sys::CUDA_MEMCPY3D>()
        && size_of::<AllocationNode>() == 120
);

impl NodeParameters {
    /// Returns the parameters of a node.
    pub fn of<T: Copy>(kind: c_uint, content: T) -> NodeParameters {
        const { assert!(size_of::<T>() <= size_of::<[u64; 29]>()) };
        let mut parameters = NodeParameters { kind, reserved: [0; 3], content: MaybeUninit::zeroed(), end: 0 };
        // SAFETY: the value fits, and both are plain data.
        unsafe { (&raw mut parameters.content).cast::<T>().write(content) };
        parameters
    }

    /// Returns the parameters in the layout of the type.
    ///
    /// # Safety
    /// The layout is that of the type of the node.
    pub unsafe fn content<T: Copy>(&self) -> T {
        const { assert!(size_of::<T>() <= size_of::<[u64; 29]>()) };
        // SAFETY: the value fits, and any bits are valid in the layouts of nodes.
        unsafe { (&raw const self.content).cast::<T>().read() }
    }
}

/// `CUDA_HOST_NODE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct HostNode {
    pub function: Option<unsafe extern "C" fn(*mut c_void)>,
    pub data: *mut c_void,
}

/// `CUgraphExecUpdateResultInfo`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UpdateInfo {
    pub result: c_uint,
    pub node: sys::CUgraphNode,
    pub from: sys::CUgraphNode,
}

/// `CUDA_GRAPH_INSTANTIATE_PARAMS`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct InstantiateParams {
    pub flags: u64,
    pub upload_stream: sys::CUstream,
    pub node: sys::CUgraphNode,
    /// `CUDA_GRAPH_INSTANTIATE_…`
    pub result: c_uint,
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
    value: AttributeValue,
}

impl LaunchConfig {
    /// Rejects attributes that require more than a launch in stream order. Returns whether the
    /// launch is cooperative.
    ///
    /// # Safety
    /// The array has the given number of attributes.
    pub unsafe fn check(&self) -> Result<bool> {
        if self.count > 0 && self.attributes.is_null() {
            return Err(Error::value("the attributes of the launch are null"));
        }
        let mut cooperative = false;
        for index in 0..self.count as usize {
            // SAFETY: guaranteed by the caller.
            let LaunchAttribute { id, value, .. } = unsafe { self.attributes.add(index).read_unaligned() };
            check_attribute(id, &value)?;
            if id == COOPERATIVE {
                cooperative = value[0] as u32 != 0;
            }
        }
        Ok(cooperative)
    }
}

/// `CU_LAUNCH_ATTRIBUTE_COOPERATIVE`
pub const COOPERATIVE: c_uint = 2;

/// Rejects an attribute of a launch that requires more than a launch in stream order.
pub fn check_attribute(id: c_uint, value: &AttributeValue) -> Result {
    let first = value[0] as u32;
    match id {
        // Hints without effect here: ignore, access policy, shared-memory carve-out, priority,
        // memory domains.
        0 | 1 | COOPERATIVE | 8 | 9 | 10 | 14 => Ok(()),
        // A cluster of one block is equivalent to no cluster.
        4 if first == 1 && value[0] >> 32 == 1 && value[1] as u32 == 1 => Ok(()),
        // Programmatic dependence: the previous kernel is complete in any case.
        6 => Ok(()),
        _ => Err(Error::unsupported(format!("attribute {id} of a launch"))),
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

/// `CUmemLocation`: the type of a location, and the number of the device.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryLocation {
    pub location: c_uint,
    pub device: c_int,
}

/// `CUmemAccessDesc`: a location, and its access.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryAccessDescription {
    pub location: MemoryLocation,
    pub access: c_uint,
}
