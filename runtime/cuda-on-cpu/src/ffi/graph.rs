//! Functions of graphs: captures, kernel nodes added by hand, and launches.

use super::{exports, get, handle, no_flags, pointer, put, put_if, wanted};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::Mode;
use crate::core::handle::Handle;
use crate::core::work::Launch;
use cudarc::driver::sys;
use runtime_ptx::Grid;
use std::ffi::{c_char, c_uint};
use std::slice;

/// Accepted flags of `CUDA_GRAPH_INSTANTIATE_FLAG_…`: free on launch, upload, use node priorities.
/// None has an effect here: nothing is freed or uploaded, and there is only one priority.
const FREE_UPLOAD_PRIORITY: u64 = 1 | 2 | 8;
const DEVICE_LAUNCH: u64 = 4;

/// # Safety
/// `to` is null or valid for writes.
unsafe fn instantiate(driver: &Driver, to: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) -> Result {
    wanted(to)?;
    match flags & !FREE_UPLOAD_PRIORITY {
        0 => {}
        DEVICE_LAUNCH if flags == DEVICE_LAUNCH => return Err(Error::unsupported("graphs that the device launches")),
        _ => return Err(Error::value(format!("invalid flags of an executable graph: {flags:#x}"))),
    }
    let made = driver.instantiate(handle(graph))?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(made.handle)) }
}

/// Returns the launch of a kernel node.
///
/// # Safety
/// The requirements of `cuLaunchKernel` hold.
unsafe fn launch_of(driver: &Driver, node: sys::CUDA_KERNEL_NODE_PARAMS_v1) -> Result<Launch> {
    let grid = Grid {
        grid: [node.gridDimX, node.gridDimY, node.gridDimZ],
        block: [node.blockDimX, node.blockDimY, node.blockDimZ],
        dynamic_shared: node.sharedMemBytes,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { super::function::launch_of(driver, node.func, grid, node.kernelParams, node.extra) }
}

exports! {
    fn cuStreamBeginCapture_v2(stream: sys::CUstream, mode: c_uint) = call |driver| {
        driver.begin_capture(&driver.queue(handle(stream))?, Mode::of(mode)?)
    };

    fn cuStreamEndCapture(stream: sys::CUstream, graph: *mut sys::CUgraph) = call |driver| {
        wanted(graph)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(graph, pointer(Handle(0)))? };
        let captured = driver.end_capture(&driver.queue(handle(stream))?)?;
        // SAFETY: as above.
        unsafe { put(graph, pointer(captured.handle)) }
    };

    fn cuGraphCreate(graph: *mut sys::CUgraph, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        wanted(graph)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(graph, pointer(driver.create_graph().handle)) }
    };

    fn cuGraphDestroy(graph: sys::CUgraph) = call |driver| {
        driver.destroy_graph(handle(graph))
    };

    fn cuGraphAddKernelNode(
        node: *mut sys::CUgraphNode,
        graph: sys::CUgraph,
        after: *const sys::CUgraphNode,
        count: usize,
        parameters: *const sys::CUDA_KERNEL_NODE_PARAMS_v1,
    ) = call |driver| {
        wanted(node)?;
        let after: Vec<_> = match (after.is_null(), count) {
            (_, 0) => Vec::new(),
            (true, _) => return Err(Error::value("the dependencies of the node are null")),
            // SAFETY: the caller's array has `count` elements, as cuda.h requires.
            (false, _) => unsafe { slice::from_raw_parts(after, count) }.iter().map(|node| handle(*node)).collect(),
        };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let launch = unsafe { launch_of(driver, get(parameters)?)? };
        let added = driver.add_launch(handle(graph), launch, &after)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(node, pointer(added.handle)) }
    };

    fn cuGraphExecKernelNodeSetParams(
        executable: sys::CUgraphExec,
        node: sys::CUgraphNode,
        parameters: *const sys::CUDA_KERNEL_NODE_PARAMS_v1,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let launch = unsafe { launch_of(driver, get(parameters)?)? };
        driver.set_launch(handle(executable), handle(node), launch)
    };

    fn cuGraphGetNodes(graph: sys::CUgraph, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let graph = driver.graphs.get(handle(graph))?;
        if !nodes.is_null() {
            return Err(Error::unsupported("handles of a graph's nodes: they are counted only"));
        }
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(count, graph.works().len()) }
    };

    fn cuGraphInstantiate_v2(
        executable: *mut sys::CUgraphExec,
        graph: sys::CUgraph,
        node: *mut sys::CUgraphNode,
        log: *mut c_char,
        room: usize,
    ) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires. The result has no further
        // information.
        unsafe {
            put_if(node, pointer(Handle(0)));
            if room > 0 {
                put_if(log, 0);
            }
            instantiate(driver, executable, graph, 0)
        }
    };

    fn cuGraphInstantiateWithFlags(
        executable: *mut sys::CUgraphExec,
        graph: sys::CUgraph,
        flags: u64,
    ) = call |driver| {
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { instantiate(driver, executable, graph, flags) }
    };

    fn cuGraphExecDestroy(executable: sys::CUgraphExec) = call |driver| {
        driver.executables.remove(handle(executable)).map(|_| ())
    };

    fn cuGraphUpload(executable: sys::CUgraphExec, stream: sys::CUstream) = call |driver| {
        driver.queue(handle(stream))?;
        driver.executables.get(handle(executable)).map(|_| ())
    };

    fn cuGraphLaunch(executable: sys::CUgraphExec, stream: sys::CUstream) = call |driver| {
        driver.launch_graph(handle(executable), &driver.queue(handle(stream))?)
    };
}
