//! Nodes of a graph: their addition, types, lists and destruction.

use super::array::{check_edges, handles, put_handles};
use super::operation::{ALLOCATION, CHILD, copy, fill, host, kernel, operation};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::{Node, Operation};
use crate::core::handle::Handle;
use crate::ffi::layout::{
    AllocationNode, ChildNode, Copy3D, HostNode, KernelNode, KernelNodeV2, MemsetNode, NodeParameters,
};
use crate::ffi::{check_result_pointer, exports, get, handle, pointer, put};
use cudarc::driver::sys;
use std::ffi::c_uint;
use std::sync::Arc;

/// Adds a node.
///
/// # Safety
/// `after` is null or has `count` elements; `to` is null or valid for writes.
unsafe fn add(
    driver: &Driver,
    (to, graph): (*mut sys::CUgraphNode, sys::CUgraph),
    (after, count): (*const sys::CUgraphNode, usize),
    make: impl FnOnce(Handle, Vec<Handle>) -> Result<Arc<Node>>,
) -> Result {
    check_result_pointer(to)?;
    driver.graphs.get(handle(graph))?;
    // SAFETY: guaranteed by the caller.
    let after = unsafe { handles(after, count)? };
    let node = make(handle(graph), after)?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(node.handle)) }
}

/// Adds a node of any type, and writes the address of an allocation back.
///
/// # Safety
/// The parameters meet the requirements of the function that adds a node of the type.
unsafe fn add_any(
    driver: &Driver,
    place: (*mut sys::CUgraphNode, sys::CUgraph),
    after: (*const sys::CUgraphNode, usize),
    parameters: *mut NodeParameters,
) -> Result {
    // SAFETY: guaranteed by the caller. Each layout is that of the type.
    unsafe {
        let given = get(parameters)?;
        match given.kind {
            ALLOCATION => add(driver, place, after, |graph, after| {
                let mut allocation: AllocationNode = given.content();
                let (node, address) = driver.add_allocation(graph, allocation.bytes, after)?;
                allocation.address = address;
                put(parameters, NodeParameters::of(ALLOCATION, allocation))?;
                Ok(node)
            }),
            CHILD => {
                let ChildNode { graph: child, ownership } = given.content();
                if ownership != 0 {
                    return Err(Error::unsupported("child graphs that are moved instead of cloned"));
                }
                add(driver, place, after, |graph, after| driver.add_child(graph, handle(child), after))
            }
            _ => {
                let operation = operation(driver, &given)?;
                add(driver, place, after, |graph, after| driver.add_node(graph, operation, after))
            }
        }
    }
}

exports! {
    fn cuGraphAddKernelNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *const KernelNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = kernel(driver, get(parameters)?)?;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddKernelNode_v2(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *const KernelNodeV2) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = kernel(driver, get(parameters)?.node())?;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddMemcpyNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *const Copy3D, _context: sys::CUcontext) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = copy(driver, parameters)?;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddMemsetNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *const MemsetNode, _context: sys::CUcontext) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = fill(driver, parameters)?;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddHostNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *const HostNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = host(parameters)?;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddEmptyNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = Operation::Empty;
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddEventRecordNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, event: sys::CUevent) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = Operation::Record(driver.events.get(handle(event))?);
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddEventWaitNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, event: sys::CUevent) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = Operation::Wait(driver.events.get(handle(event))?);
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddMemFreeNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, address: sys::CUdeviceptr) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let operation = Operation::Free(address);
            add(driver, (node, graph), (after, count), |graph, after| driver.add_node(graph, operation, after))
        }
    };

    fn cuGraphAddMemAllocNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *mut AllocationNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let mut given = get(parameters)?;
            add(driver, (node, graph), (after, count), |graph, after| {
                let (node, address) = driver.add_allocation(graph, given.bytes, after)?;
                given.address = address;
                put(parameters, given)?;
                Ok(node)
            })
        }
    };

    fn cuGraphAddChildGraphNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, child: sys::CUgraph) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            add(driver, (node, graph), (after, count), |graph, after| driver.add_child(graph, handle(child), after))
        }
    };

    fn cuGraphAddNode(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, count: usize, parameters: *mut NodeParameters) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { add_any(driver, (node, graph), (after, count), parameters) }
    };

    fn cuGraphAddNode_v2(node: *mut sys::CUgraphNode, graph: sys::CUgraph, after: *const sys::CUgraphNode, edges: *const u64, count: usize, parameters: *mut NodeParameters) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            check_edges(edges, count)?;
            add_any(driver, (node, graph), (after, count), parameters)
        }
    };

    fn cuGraphNodeGetType(node: sys::CUgraphNode, kind: *mut c_uint) = call |driver| {
        let known = driver.nodes.get(handle(node))?.operation().kind();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(kind, known) }
    };

    fn cuGraphDestroyNode(node: sys::CUgraphNode) = call |driver| {
        driver.destroy_node(handle(node))
    };

    fn cuGraphGetNodes(graph: sys::CUgraph, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let all = driver.graphs.get(handle(graph))?.nodes();
        let list: Vec<Handle> = all.iter().map(|node| node.handle).collect();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_handles(nodes, count, &list) }
    };

    fn cuGraphGetRootNodes(graph: sys::CUgraph, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let all = driver.graphs.get(handle(graph))?.nodes();
        let list: Vec<Handle> = all.iter().filter(|node| node.after().is_empty()).map(|node| node.handle).collect();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_handles(nodes, count, &list) }
    };
}
