//! Captures of streams to graphs.

use super::array::{check_edges, handles};
use crate::core::driver::Driver;
use crate::core::error::{Error, Result};
use crate::core::graph::Mode;
use crate::core::handle::Handle;
use crate::ffi::{check_result_pointer, exports, handle, pointer, put, put_if};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::c_uint;

/// Writes the state of a stream's capture.
///
/// # Safety
/// The result pointers are null or valid for writes.
unsafe fn capture_info(
    driver: &Driver,
    stream: sys::CUstream,
    (status, id, graph): (*mut c_uint, *mut u64, *mut sys::CUgraph),
    (nodes, edges, count): (*mut *const sys::CUgraphNode, *mut *const u64, *mut usize),
) -> Result {
    let queue = driver.queue(handle(stream))?;
    check_result_pointer(status)?;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match queue.capturing() {
            None => put(status, 0),
            Some((stream, capture)) if capture.is_valid() => {
                let front = capture.show_front(stream.handle)?;
                put_if(id, capture.id);
                put_if(graph, pointer(capture.graph.handle));
                put_if(nodes, front.nodes.cast());
                put_if(edges, front.edges);
                put_if(count, front.count);
                put(status, 1)
            }
            Some(_) => put(status, 2),
        }
    }
}

/// Changes the nodes that the next node of a capturing stream depends on.
///
/// # Safety
/// `nodes` is null or has `count` elements.
unsafe fn set_dependencies(
    driver: &Driver,
    stream: sys::CUstream,
    (nodes, count): (*mut sys::CUgraphNode, usize),
    flags: c_uint,
) -> Result {
    let queue = driver.queue(handle(stream))?;
    let Some((stream, capture)) = queue.capturing() else {
        return Err(Error::new(CUresult::CUDA_ERROR_ILLEGAL_STATE, "the stream does not capture"));
    };
    // SAFETY: guaranteed by the caller.
    let nodes = unsafe { handles(nodes, count)? };
    match flags {
        0 => capture.join(stream.handle, &nodes),
        1 => capture.set_front(stream.handle, nodes),
        _ => Err(Error::value(format!("invalid flags of an update: {flags:#x}"))),
    }
}

exports! {
    fn cuStreamBeginCapture_v2(stream: sys::CUstream, mode: c_uint) as cuStreamBeginCapture_v2_ptsz = call |driver| {
        driver.begin_capture(&driver.queue(handle(stream))?, Mode::of(mode)?, None)
    };

    fn cuStreamBeginCaptureToGraph(stream: sys::CUstream, graph: sys::CUgraph, after: *const sys::CUgraphNode, edges: *const u64, count: usize, mode: c_uint) as cuStreamBeginCaptureToGraph_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let after = unsafe {
            check_edges(edges, count)?;
            handles(after, count)?
        };
        driver.begin_capture(&driver.queue(handle(stream))?, Mode::of(mode)?, Some((handle(graph), after)))
    };

    fn cuStreamEndCapture(stream: sys::CUstream, graph: *mut sys::CUgraph) as cuStreamEndCapture_ptsz = call |driver| {
        check_result_pointer(graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(graph, pointer(Handle(0)))? };
        let captured = driver.end_capture(&driver.queue(handle(stream))?)?;
        // SAFETY: as above.
        unsafe { put(graph, pointer(captured.handle)) }
    };

    fn cuStreamGetCaptureInfo_v2(stream: sys::CUstream, status: *mut c_uint, id: *mut u64, graph: *mut sys::CUgraph, nodes: *mut *const sys::CUgraphNode, count: *mut usize) as cuStreamGetCaptureInfo_v2_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { capture_info(driver, stream, (status, id, graph), (nodes, std::ptr::null_mut(), count)) }
    };

    fn cuStreamGetCaptureInfo_v3(stream: sys::CUstream, status: *mut c_uint, id: *mut u64, graph: *mut sys::CUgraph, nodes: *mut *const sys::CUgraphNode, edges: *mut *const u64, count: *mut usize) as cuStreamGetCaptureInfo_v3_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { capture_info(driver, stream, (status, id, graph), (nodes, edges, count)) }
    };

    fn cuStreamUpdateCaptureDependencies(stream: sys::CUstream, nodes: *mut sys::CUgraphNode, count: usize, flags: c_uint) as cuStreamUpdateCaptureDependencies_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { set_dependencies(driver, stream, (nodes, count), flags) }
    };

    fn cuStreamUpdateCaptureDependencies_v2(stream: sys::CUstream, nodes: *mut sys::CUgraphNode, edges: *const u64, count: usize, flags: c_uint) as cuStreamUpdateCaptureDependencies_v2_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            check_edges(edges, count)?;
            set_dependencies(driver, stream, (nodes, count), flags)
        }
    };
}
