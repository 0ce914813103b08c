//! Graphs: captures, and their replay.

use super::{exports, handle, pointer, put, put_if, wanted};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::Mode;
use crate::core::handle::Handle;
use cudarc::driver::sys;
use std::ffi::{c_char, c_uint};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_…`: free what leaked, upload, launch from the device, keep priorities. There is nothing here to
/// free, and nothing to upload; priorities are one.
const FREE_UPLOAD_PRIORITY: u64 = 1 | 2 | 8;
const DEVICE_LAUNCH: u64 = 4;

/// # Safety
/// `to` is null or the caller's.
unsafe fn instantiate(driver: &Driver, to: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) -> Result {
    wanted(to)?;
    match flags & !FREE_UPLOAD_PRIORITY {
        0 => {}
        DEVICE_LAUNCH if flags == DEVICE_LAUNCH => return Err(Error::unsupported("graphs that the device launches")),
        _ => return Err(Error::value(format!("{flags:#x} are no flags of an executable graph"))),
    }
    let made = driver.instantiate(handle(graph))?;
    // SAFETY: by the caller's promise.
    unsafe { put(to, pointer(made.handle)) }
}

exports! {
    fn cuStreamBeginCapture_v2(stream: sys::CUstream, mode: c_uint) = call |driver| {
        driver.begin_capture(&driver.queue(handle(stream))?, Mode::of(mode)?)
    };

    fn cuStreamEndCapture(stream: sys::CUstream, graph: *mut sys::CUgraph) = call |driver| {
        wanted(graph)?;
        // SAFETY: the caller's, by cuda.h.
        unsafe { put(graph, pointer(Handle(0)))? };
        let captured = driver.end_capture(&driver.queue(handle(stream))?)?;
        // SAFETY: as above.
        unsafe { put(graph, pointer(captured.handle)) }
    };

    fn cuGraphDestroy(graph: sys::CUgraph) = call |driver| {
        driver.graphs.remove(handle(graph)).map(|_| ())
    };

    fn cuGraphGetNodes(graph: sys::CUgraph, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let graph = driver.graphs.get(handle(graph))?;
        if !nodes.is_null() {
            return Err(Error::unsupported("handles of a graph's nodes: they are counted only"));
        }
        // SAFETY: the caller's, by cuda.h.
        unsafe { put(count, graph.works.len()) }
    };

    fn cuGraphInstantiate_v2(
        executable: *mut sys::CUgraphExec,
        graph: sys::CUgraph,
        node: *mut sys::CUgraphNode,
        log: *mut c_char,
        room: usize,
    ) = call |driver| {
        // SAFETY: the caller's, by cuda.h. There is nothing to say.
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
        // SAFETY: the caller's, by cuda.h.
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
