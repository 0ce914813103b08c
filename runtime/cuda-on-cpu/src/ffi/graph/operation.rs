//! Operations of nodes: from the parameters of a call, and back.

use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::{Node, Operation};
use crate::core::work::HostFunction;
use crate::ffi::function::launch_of;
use crate::ffi::layout::{
    AllocationNode, ChildNode, Copy3D, CopyNode, HostNode, KernelNode, KernelNodeV2, MemsetNode, NodeParameters,
};
use crate::ffi::{get, handle, pointer};
use cudarc::driver::sys;
use runtime_ptx::Grid;
use std::ffi::c_uint;

/// `CU_GRAPH_NODE_TYPE_…`
pub(super) const KERNEL: c_uint = 0;
const MEMCPY: c_uint = 1;
const MEMSET: c_uint = 2;
const HOST: c_uint = 3;
pub(super) const CHILD: c_uint = 4;
const EMPTY: c_uint = 5;
const WAIT: c_uint = 6;
const RECORD: c_uint = 7;
pub(super) const ALLOCATION: c_uint = 10;
const FREE: c_uint = 11;

/// Returns the operation of a kernel node.
///
/// # Safety
/// The requirements of `cuLaunchKernel` hold.
pub(super) unsafe fn kernel(driver: &Driver, node: KernelNode) -> Result<Operation> {
    let KernelNode { function, grid, block, shared, pointers, extra } = node;
    let grid = Grid { grid, block, dynamic_shared: shared };
    // SAFETY: guaranteed by the caller.
    let launch = unsafe { launch_of(driver, &driver.current()?, function, grid, (pointers, extra)) };
    launch.map(Operation::Launch)
}

/// Returns the operation of a copy node.
///
/// # Safety
/// The program keeps the host memory valid.
pub(super) unsafe fn copy(driver: &Driver, given: *const Copy3D) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    let copy = unsafe { get(given)?.read(&driver.current()?, None)? };
    Ok(Operation::Copy(driver.with_owners(copy)))
}

/// Returns the operation of a fill node.
///
/// # Safety
/// `given` is null or valid.
pub(super) unsafe fn fill(driver: &Driver, given: *const MemsetNode) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    unsafe { get(given)?.fill(&driver.current()?).map(Operation::Fill) }
}

/// Returns the operation of a host node.
///
/// # Safety
/// `given` is null or valid.
pub(super) unsafe fn host(given: *const HostNode) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    let HostNode { function, data } = unsafe { get(given)? };
    let function = function.ok_or_else(|| Error::value("the function is null"))?;
    Ok(Operation::Call(HostFunction::Plain { function, data }))
}

/// Returns the operation that the parameters of a node of any type describe.
///
/// # Safety
/// The parameters meet the requirements of the function that adds a node of the type.
pub(super) unsafe fn operation(driver: &Driver, given: &NodeParameters) -> Result<Operation> {
    // SAFETY: guaranteed by the caller. Each layout is that of the type.
    unsafe {
        match given.kind {
            KERNEL => kernel(driver, given.content::<KernelNodeV2>().node()),
            MEMCPY => copy(driver, &given.content::<CopyNode>().copy),
            MEMSET => fill(driver, &given.content::<MemsetNode>()),
            HOST => host(&given.content::<HostNode>()),
            EMPTY => Ok(Operation::Empty),
            WAIT => Ok(Operation::Wait(driver.events.get(handle(given.content::<sys::CUevent>()))?)),
            RECORD => Ok(Operation::Record(driver.events.get(handle(given.content::<sys::CUevent>()))?)),
            FREE => Ok(Operation::Free(given.content::<u64>())),
            kind @ 8..=13 => Err(Error::unsupported(format!("a node of type {kind}"))),
            kind => Err(Error::value(format!("a node of the unknown type {kind}"))),
        }
    }
}

/// Returns the parameters of a kernel node. The parameters stay valid until the node changes.
pub(super) fn kernel_of(driver: &Driver, node: sys::CUgraphNode) -> Result<KernelNode> {
    let node = driver.nodes.get(handle(node))?;
    let Operation::Launch(launch) = node.operation() else { return Err(other_type(&node)) };
    Ok(KernelNode {
        function: pointer(launch.function.handle),
        grid: launch.grid.grid,
        block: launch.grid.block,
        shared: launch.grid.dynamic_shared,
        pointers: node.show_parameters(&launch),
        extra: std::ptr::null_mut(),
    })
}

/// Returns the parameters of a node.
pub(super) fn parameters_of(driver: &Driver, node: sys::CUgraphNode) -> Result<NodeParameters> {
    let known = driver.nodes.get(handle(node))?;
    Ok(match known.operation() {
        Operation::Launch(_) => NodeParameters::of(KERNEL, KernelNodeV2::from(kernel_of(driver, node)?)),
        Operation::Copy(copy) => NodeParameters::of(MEMCPY, CopyNode::from(Copy3D::of(&copy))),
        Operation::Fill(fill) => NodeParameters::of(MEMSET, MemsetNode::of(&fill)),
        Operation::Call(HostFunction::Plain { function, data }) => {
            NodeParameters::of(HOST, HostNode { function: Some(function), data })
        }
        Operation::Child(child) => NodeParameters::of(CHILD, ChildNode { graph: pointer(child.handle), ownership: 0 }),
        Operation::Empty => NodeParameters::of(EMPTY, 0u64),
        Operation::Wait(event) => NodeParameters::of(WAIT, event.handle.0),
        Operation::Record(event) => NodeParameters::of(RECORD, event.handle.0),
        Operation::Allocate { address, bytes } => {
            NodeParameters::of(ALLOCATION, AllocationNode::of(address, bytes as usize))
        }
        Operation::Free(address) => NodeParameters::of(FREE, address),
        Operation::Call(HostFunction::WithStatus { .. }) | Operation::Launched(_) => {
            return Err(Error::unsupported("the parameters of this node"));
        }
    })
}

/// Returns the error of a call that expects another type of node.
pub(super) fn other_type(node: &Node) -> Error {
    Error::value(format!("the node has type {}", node.operation().kind()))
}
