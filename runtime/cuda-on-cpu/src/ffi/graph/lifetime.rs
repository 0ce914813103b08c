//! Graphs as a whole: their creation, clones, destruction, and their print.

use crate::core::error::Error;
use crate::ffi::{check_result_pointer, exports, handle, no_flags, pointer, put, text};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_char, c_uint};

exports! {
    fn cuGraphCreate(graph: *mut sys::CUgraph, flags: c_uint) = call |driver| {
        no_flags(flags)?;
        check_result_pointer(graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(graph, pointer(driver.create_graph().handle)) }
    };

    fn cuGraphDestroy(graph: sys::CUgraph) = call |driver| {
        driver.destroy_graph(handle(graph))
    };

    fn cuGraphClone(clone: *mut sys::CUgraph, graph: sys::CUgraph) = call |driver| {
        check_result_pointer(clone)?;
        let made = driver.clone_graph(handle(graph))?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(clone, pointer(made.handle)) }
    };

    fn cuGraphNodeFindInClone(clone: *mut sys::CUgraphNode, node: sys::CUgraphNode, graph: sys::CUgraph) = call |driver| {
        let found = driver.graphs.get(handle(graph))?.clone_of(handle(node));
        let found = found.ok_or_else(|| Error::value("the graph has no clone of this node"))?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(clone, pointer(found)) }
    };

    fn cuGraphDebugDotPrint(graph: sys::CUgraph, path: *const c_char, _flags: c_uint) = call |driver| {
        let graph = driver.graphs.get(handle(graph))?;
        let nodes = graph.nodes();
        let nodes = nodes.iter().map(|node| format!("\"{:#x}\" [label=\"type {}\"];\n", node.handle.0, node.operation().kind()));
        let edges = graph.edges();
        let edges = edges.iter().map(|(from, to)| format!("\"{:#x}\" -> \"{:#x}\";\n", from.0, to.0));
        let dot: String = ["digraph {\n".to_string()].into_iter().chain(nodes).chain(edges).chain(["}\n".to_string()]).collect();
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        let path = unsafe { text(path)? };
        let why = |e| Error::new(CUresult::CUDA_ERROR_OPERATING_SYSTEM, format!("{path} cannot be written: {e}"));
        std::fs::write(path, dot).map_err(why)
    };
}
