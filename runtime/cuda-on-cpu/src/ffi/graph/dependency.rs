//! Dependencies between the nodes of a graph.

use super::array::{check_edges, edges, put_edge_nodes, put_edges, put_handles};
use crate::core::driver::Driver;
use crate::core::error::Result;
use crate::core::handle::Handle;
use crate::ffi::{exports, handle};
use cudarc::driver::sys;

/// Returns the nodes that depend on a node.
fn dependents(driver: &Driver, node: sys::CUgraphNode) -> Result<Vec<Handle>> {
    let node = driver.nodes.get(handle(node))?;
    let all = driver.graphs.get(node.graph)?.nodes();
    Ok(all.iter().filter(|other| other.after().contains(&node.handle)).map(|other| other.handle).collect())
}

exports! {
    fn cuGraphGetEdges(graph: sys::CUgraph, from: *mut sys::CUgraphNode, to: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let edges = driver.graphs.get(handle(graph))?.edges();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_edge_nodes((from, to), count, edges) }
    };

    fn cuGraphNodeGetDependencies(node: sys::CUgraphNode, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let list = driver.nodes.get(handle(node))?.after();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_handles(nodes, count, &list) }
    };

    fn cuGraphNodeGetDependentNodes(node: sys::CUgraphNode, nodes: *mut sys::CUgraphNode, count: *mut usize) = call |driver| {
        let list = dependents(driver, node)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_handles(nodes, count, &list) }
    };

    fn cuGraphAddDependencies(graph: sys::CUgraph, from: *const sys::CUgraphNode, to: *const sys::CUgraphNode, count: usize) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let edges = unsafe { edges(from, to, count)? };
        driver.change_dependencies(handle(graph), &edges, true)
    };

    fn cuGraphRemoveDependencies(graph: sys::CUgraph, from: *const sys::CUgraphNode, to: *const sys::CUgraphNode, count: usize) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let edges = unsafe { edges(from, to, count)? };
        driver.change_dependencies(handle(graph), &edges, false)
    };

    fn cuGraphGetEdges_v2(graph: sys::CUgraph, from: *mut sys::CUgraphNode, to: *mut sys::CUgraphNode, data: *mut u64, count: *mut usize) = call |driver| {
        let edges = driver.graphs.get(handle(graph))?.edges();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            put_edge_nodes((from, to), count, edges)?;
            put_edges(data, from, count)
        }
    };

    fn cuGraphNodeGetDependencies_v2(node: sys::CUgraphNode, nodes: *mut sys::CUgraphNode, data: *mut u64, count: *mut usize) = call |driver| {
        let list = driver.nodes.get(handle(node))?.after();
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            put_handles(nodes, count, &list)?;
            put_edges(data, nodes, count)
        }
    };

    fn cuGraphNodeGetDependentNodes_v2(node: sys::CUgraphNode, nodes: *mut sys::CUgraphNode, data: *mut u64, count: *mut usize) = call |driver| {
        let list = dependents(driver, node)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            put_handles(nodes, count, &list)?;
            put_edges(data, nodes, count)
        }
    };

    fn cuGraphAddDependencies_v2(graph: sys::CUgraph, from: *const sys::CUgraphNode, to: *const sys::CUgraphNode, data: *const u64, count: usize) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let edges = unsafe {
            check_edges(data, count)?;
            edges(from, to, count)?
        };
        driver.change_dependencies(handle(graph), &edges, true)
    };

    fn cuGraphRemoveDependencies_v2(graph: sys::CUgraph, from: *const sys::CUgraphNode, to: *const sys::CUgraphNode, data: *const u64, count: usize) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        let edges = unsafe {
            check_edges(data, count)?;
            edges(from, to, count)?
        };
        driver.change_dependencies(handle(graph), &edges, false)
    };
}
