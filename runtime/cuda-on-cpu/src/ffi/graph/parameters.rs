//! Parameters and attributes of the nodes of graphs and of executable graphs.

use super::operation::{CHILD, KERNEL, copy, fill, host, kernel, kernel_of, operation, other_type, parameters_of};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::{AttributeValue, Node, Operation};
use crate::core::work::HostFunction;
use crate::ffi::layout::{
    AllocationNode, COOPERATIVE, ChildNode, Copy3D, HostNode, KernelNode, KernelNodeV2, MemsetNode, NodeParameters,
    check_attribute,
};
use crate::ffi::{exports, get, handle, pointer, put};
use cudarc::driver::sys;
use std::ffi::c_uint;
use std::sync::Arc;

/// Returns a kernel node.
fn kernel_node(driver: &Driver, node: sys::CUgraphNode) -> Result<Arc<Node>> {
    let node = driver.nodes.get(handle(node))?;
    if node.operation().kind() == KERNEL { Ok(node) } else { Err(other_type(&node)) }
}

exports! {
    fn cuGraphNodeGetParams(node: sys::CUgraphNode, parameters: *mut NodeParameters) = call |driver| {
        let known = parameters_of(driver, node)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(parameters, known) }
    };

    fn cuGraphNodeSetParams(node: sys::CUgraphNode, parameters: *mut NodeParameters) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { operation(driver, &get(parameters)?)? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *mut NodeParameters) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let given = get(parameters)?;
            if given.kind == CHILD {
                let ChildNode { graph, .. } = given.content();
                return driver.set_child(handle(executable), handle(node), handle(graph));
            }
            driver.set_step(handle(executable), handle(node), operation(driver, &given)?)
        }
    };

    fn cuGraphKernelNodeGetParams(node: sys::CUgraphNode, parameters: *mut KernelNode) = call |driver| {
        let known = kernel_of(driver, node)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, known) }
    };

    fn cuGraphKernelNodeGetParams_v2(node: sys::CUgraphNode, parameters: *mut KernelNodeV2) = call |driver| {
        let known = kernel_of(driver, node)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, KernelNodeV2::from(known)) }
    };

    fn cuGraphKernelNodeSetParams(node: sys::CUgraphNode, parameters: *const KernelNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { kernel(driver, get(parameters)?)? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecKernelNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const KernelNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { kernel(driver, get(parameters)?)? };
        driver.set_step(handle(executable), handle(node), operation)
    };

    fn cuGraphKernelNodeSetParams_v2(node: sys::CUgraphNode, parameters: *const KernelNodeV2) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { kernel(driver, get(parameters)?.node())? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecKernelNodeSetParams_v2(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const KernelNodeV2) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { kernel(driver, get(parameters)?.node())? };
        driver.set_step(handle(executable), handle(node), operation)
    };

    fn cuGraphKernelNodeGetAttribute(node: sys::CUgraphNode, id: c_uint, value: *mut AttributeValue) = call |driver| {
        let node = kernel_node(driver, node)?;
        let mut known = node.attribute(id).unwrap_or_default();
        match (id, node.operation()) {
            // The default domain is 0, and the remote one is 1, a byte each.
            (9, _) if node.attribute(id).is_none() => known[0] = 0x100,
            (COOPERATIVE, Operation::Launch(launch)) => known[0] = launch.cooperative.into(),
            // The attributes with a default of zero: access policy, priority, memory domains,
            // shared-memory carve-out.
            (1 | 8 | 9 | 10 | 14, _) => {}
            _ => return Err(Error::value(format!("kernel nodes have no attribute {id}"))),
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(value, known) }
    };

    fn cuGraphKernelNodeSetAttribute(node: sys::CUgraphNode, id: c_uint, value: *const AttributeValue) = call |driver| {
        let node = kernel_node(driver, node)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let value = unsafe { get(value)? };
        check_attribute(id, &value)?;
        driver.set_node_attribute(&node, id, value)
    };

    fn cuGraphKernelNodeCopyAttributes(to: sys::CUgraphNode, from: sys::CUgraphNode) = call |driver| {
        let (to, from) = (kernel_node(driver, to)?, kernel_node(driver, from)?);
        driver.copy_node_attributes(&to, &from)
    };

    fn cuGraphMemcpyNodeGetParams(node: sys::CUgraphNode, parameters: *mut Copy3D) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Copy(copy) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, Copy3D::of(&copy)) }
    };

    fn cuGraphMemcpyNodeSetParams(node: sys::CUgraphNode, parameters: *const Copy3D) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { copy(driver, parameters)? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecMemcpyNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const Copy3D, _context: sys::CUcontext) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { copy(driver, parameters)? };
        driver.set_step(handle(executable), handle(node), operation)
    };

    fn cuGraphMemsetNodeGetParams(node: sys::CUgraphNode, parameters: *mut MemsetNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Fill(fill) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, MemsetNode::of(&fill)) }
    };

    fn cuGraphMemsetNodeSetParams(node: sys::CUgraphNode, parameters: *const MemsetNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { fill(driver, parameters)? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecMemsetNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const MemsetNode, _context: sys::CUcontext) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { fill(driver, parameters)? };
        driver.set_step(handle(executable), handle(node), operation)
    };

    fn cuGraphHostNodeGetParams(node: sys::CUgraphNode, parameters: *mut HostNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Call(HostFunction::Plain { function, data }) = node.operation() else {
            return Err(other_type(&node));
        };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, HostNode { function: Some(function), data }) }
    };

    fn cuGraphHostNodeSetParams(node: sys::CUgraphNode, parameters: *const HostNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { host(parameters)? };
        driver.set_node(handle(node), operation)
    };

    fn cuGraphExecHostNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, parameters: *const HostNode) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let operation = unsafe { host(parameters)? };
        driver.set_step(handle(executable), handle(node), operation)
    };

    fn cuGraphChildGraphNodeGetGraph(node: sys::CUgraphNode, graph: *mut sys::CUgraph) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Child(child) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(graph, pointer(child.handle)) }
    };

    fn cuGraphExecChildGraphNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, graph: sys::CUgraph) = call |driver| {
        driver.set_child(handle(executable), handle(node), handle(graph))
    };

    fn cuGraphEventRecordNodeGetEvent(node: sys::CUgraphNode, event: *mut sys::CUevent) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Record(known) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(event, pointer(known.handle)) }
    };

    fn cuGraphEventRecordNodeSetEvent(node: sys::CUgraphNode, event: sys::CUevent) = call |driver| {
        driver.set_node(handle(node), Operation::Record(driver.events.get(handle(event))?))
    };

    fn cuGraphExecEventRecordNodeSetEvent(executable: sys::CUgraphExec, node: sys::CUgraphNode, event: sys::CUevent) = call |driver| {
        driver.set_step(handle(executable), handle(node), Operation::Record(driver.events.get(handle(event))?))
    };

    fn cuGraphEventWaitNodeGetEvent(node: sys::CUgraphNode, event: *mut sys::CUevent) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Wait(known) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(event, pointer(known.handle)) }
    };

    fn cuGraphEventWaitNodeSetEvent(node: sys::CUgraphNode, event: sys::CUevent) = call |driver| {
        driver.set_node(handle(node), Operation::Wait(driver.events.get(handle(event))?))
    };

    fn cuGraphExecEventWaitNodeSetEvent(executable: sys::CUgraphExec, node: sys::CUgraphNode, event: sys::CUevent) = call |driver| {
        driver.set_step(handle(executable), handle(node), Operation::Wait(driver.events.get(handle(event))?))
    };

    fn cuGraphMemAllocNodeGetParams(node: sys::CUgraphNode, parameters: *mut AllocationNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Allocate { address, bytes } = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(parameters, AllocationNode::of(address, bytes as usize)) }
    };

    fn cuGraphMemFreeNodeGetParams(node: sys::CUgraphNode, address: *mut sys::CUdeviceptr) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Free(known) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(address, known) }
    };
}
