//! Functions of graphs: captures, nodes and their parameters, executables and updates.

use super::layout::{
    AllocationNode, COOPERATIVE, ChildNode, Copy3D, CopyNode, HostNode, InstantiateParams, KernelNode, KernelNodeV2,
    MemsetNode, NodeParameters, UpdateInfo, check_attribute,
};
use super::{check_result_pointer, exports, get, handle, no_flags, pointer, put, put_if, text};
use crate::core::driver::{Driver, UpdateMismatch};
use crate::core::error::{Error, Result};
use crate::core::graph::{AttributeValue, Mode, Node, Operation};
use crate::core::handle::Handle;
use crate::core::user_object::{Destructor, UserObject};
use crate::core::work::HostFunction;
use cudarc::driver::sys::{self, CUresult};
use runtime_ptx::Grid;
use std::ffi::{c_char, c_uint, c_void};
use std::sync::Arc;

/// Accepted flags of `CUDA_GRAPH_INSTANTIATE_FLAG_…`: free on launch, upload, use node priorities.
/// None has an effect here: nothing is freed or uploaded, and there is only one priority.
const FREE_UPLOAD_PRIORITY: u64 = 1 | UPLOAD | 8;
const UPLOAD: u64 = 2;
const DEVICE_LAUNCH: u64 = 4;

/// `CU_GRAPH_NODE_TYPE_…`
const KERNEL: c_uint = 0;
const MEMCPY: c_uint = 1;
const MEMSET: c_uint = 2;
const HOST: c_uint = 3;
const CHILD: c_uint = 4;
const EMPTY: c_uint = 5;
const WAIT: c_uint = 6;
const RECORD: c_uint = 7;
const ALLOCATION: c_uint = 10;
const FREE: c_uint = 11;

/// `CU_GRAPH_USER_OBJECT_MOVE`: the graph gets references of the program.
const MOVE: c_uint = 1;

/// Instantiates a graph, and writes the handle of the executable graph.
///
/// # Safety
/// `to` is null or valid for writes.
unsafe fn instantiate(driver: &Driver, to: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) -> Result {
    check_result_pointer(to)?;
    match flags & !FREE_UPLOAD_PRIORITY {
        0 => {}
        DEVICE_LAUNCH if flags == DEVICE_LAUNCH => return Err(Error::unsupported("graphs that the device launches")),
        _ => return Err(Error::value(format!("invalid flags of an executable graph: {flags:#x}"))),
    }
    let made = driver.instantiate(handle(graph), flags)?;
    // SAFETY: guaranteed by the caller.
    unsafe { put(to, pointer(made.handle)) }
}

/// Returns the operation of a kernel node.
///
/// # Safety
/// The requirements of `cuLaunchKernel` hold.
unsafe fn kernel(driver: &Driver, node: KernelNode) -> Result<Operation> {
    let KernelNode { function, grid, block, shared, pointers, extra } = node;
    let grid = Grid { grid, block, dynamic_shared: shared };
    // SAFETY: guaranteed by the caller.
    let launch = unsafe { super::function::launch_of(driver, &driver.current()?, function, grid, (pointers, extra)) };
    launch.map(Operation::Launch)
}

/// Returns the parameters of a kernel node. The parameters stay valid until the node changes.
fn kernel_of(driver: &Driver, node: sys::CUgraphNode) -> Result<KernelNode> {
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

fn other_type(node: &Node) -> Error {
    Error::value(format!("the node has type {}", node.operation().kind()))
}

/// Returns the operation of a copy node.
///
/// # Safety
/// The program keeps the host memory valid.
unsafe fn copy(driver: &Driver, given: *const Copy3D) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    let copy = unsafe { get(given)?.read(&driver.current()?, None)? };
    Ok(Operation::Copy(driver.with_owners(copy)))
}

/// Returns the operation of a fill node.
///
/// # Safety
/// `given` is null or valid.
unsafe fn fill(driver: &Driver, given: *const MemsetNode) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    unsafe { get(given)?.fill(&driver.current()?).map(Operation::Fill) }
}

/// Returns the operation of a host node.
///
/// # Safety
/// `given` is null or valid.
unsafe fn host(given: *const HostNode) -> Result<Operation> {
    // SAFETY: guaranteed by the caller.
    let HostNode { function, data } = unsafe { get(given)? };
    let function = function.ok_or_else(|| Error::value("the function is null"))?;
    Ok(Operation::Call(HostFunction::Plain { function, data }))
}

/// Returns the operation that the parameters of a node of any type describe.
///
/// # Safety
/// The parameters meet the requirements of the function that adds a node of the type.
unsafe fn operation(driver: &Driver, given: &NodeParameters) -> Result<Operation> {
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

/// Returns the parameters of a node.
fn parameters_of(driver: &Driver, node: sys::CUgraphNode) -> Result<NodeParameters> {
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

/// Returns a kernel node.
fn kernel_node(driver: &Driver, node: sys::CUgraphNode) -> Result<Arc<Node>> {
    let node = driver.nodes.get(handle(node))?;
    if node.operation().kind() == KERNEL { Ok(node) } else { Err(other_type(&node)) }
}

/// Rejects dependencies with data, such as those on a part of a kernel.
///
/// # Safety
/// `data` is null, or has `count` elements.
unsafe fn check_edges(data: *const u64, count: usize) -> Result {
    if data.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    match (0..count).find(|index| unsafe { data.wrapping_add(*index).read_unaligned() } != 0) {
        None => Ok(()),
        Some(index) => Err(Error::unsupported(format!("the data of dependency {index}"))),
    }
}

/// Writes the data of dependencies, zeros, beside the `count` nodes written to an array.
///
/// # Safety
/// `data` is null, or has `count` elements; `count` is valid.
unsafe fn put_edges<T>(data: *mut u64, nodes: *const T, count: *const usize) -> Result {
    if data.is_null() || nodes.is_null() {
        return Ok(());
    }
    // SAFETY: guaranteed by the caller.
    (0..unsafe { get(count)? }).try_for_each(|index| unsafe { put(data.wrapping_add(index), 0) })
}

/// Returns the handles of an array.
///
/// # Safety
/// `from` is null, or has `count` elements.
unsafe fn handles(from: *const sys::CUgraphNode, count: usize) -> Result<Vec<Handle>> {
    if from.is_null() && count > 0 {
        return Err(Error::value("an array of nodes is null"));
    }
    // SAFETY: guaranteed by the caller.
    (0..count).map(|index| unsafe { get(from.wrapping_add(index)) }.map(handle)).collect()
}

/// Returns dependencies from two arrays of nodes.
///
/// # Safety
/// Each array is null, or has `count` elements.
unsafe fn edges(
    from: *const sys::CUgraphNode,
    to: *const sys::CUgraphNode,
    count: usize,
) -> Result<Vec<(Handle, Handle)>> {
    // SAFETY: guaranteed by the caller.
    let (from, to) = unsafe { (handles(from, count)?, handles(to, count)?) };
    Ok(from.into_iter().zip(to).collect())
}

/// Writes handles to an array with room for `count`, and their number; unused elements become null.
/// Writes only the number if the array is null.
///
/// # Safety
/// `to` is null, or valid for `count` elements.
unsafe fn put_handles(to: *mut sys::CUgraphNode, count: *mut usize, list: &[Handle]) -> Result {
    if !to.is_null() {
        // SAFETY: guaranteed by the caller.
        let room = unsafe { get(count)? };
        for index in 0..room {
            let node = list.get(index).copied().unwrap_or(Handle(0));
            // SAFETY: guaranteed by the caller.
            unsafe { put(to.wrapping_add(index), pointer(node))? };
        }
        if room < list.len() {
            return Ok(());
        }
    }
    // SAFETY: guaranteed by the caller.
    unsafe { put(count, list.len()) }
}

/// Writes the nodes of dependencies to two arrays.
///
/// # Safety
/// Each array is null, or valid for `count` elements.
unsafe fn put_edge_nodes(
    (from, to): (*mut sys::CUgraphNode, *mut sys::CUgraphNode),
    count: *mut usize,
    edges: Vec<(Handle, Handle)>,
) -> Result {
    let (first, second): (Vec<Handle>, Vec<Handle>) = edges.into_iter().unzip();
    // SAFETY: guaranteed by the caller.
    unsafe {
        let room = get(count)?;
        put_handles(from, count, &first)?;
        // The second array has the room of the first.
        put(count, if from.is_null() { first.len() } else { room })?;
        put_handles(to, count, &second)
    }
}

/// Returns the nodes that depend on a node.
fn dependents(driver: &Driver, node: sys::CUgraphNode) -> Result<Vec<Handle>> {
    let node = driver.nodes.get(handle(node))?;
    let all = driver.graphs.get(node.graph)?.nodes();
    Ok(all.iter().filter(|other| other.after().contains(&node.handle)).map(|other| other.handle).collect())
}

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

/// Updates an executable graph. Returns what the call writes, and the result of the call.
fn update(driver: &Driver, executable: sys::CUgraphExec, graph: sys::CUgraph) -> Result<(UpdateInfo, Result)> {
    let info = |result, node, from| UpdateInfo { result, node: pointer(node), from: pointer(from) };
    Ok(match driver.update(handle(executable), handle(graph))? {
        None => (info(0, Handle(0), Handle(0)), Ok(())),
        Some(UpdateMismatch { result, node, from }) => {
            let why = format!("the graph differs from the executable graph: CUgraphExecUpdateResult {result}");
            let error = Error::new(CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, why);
            (info(result, node, from), Err(error))
        }
    })
}

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

    fn cuGraphMemAllocNodeGetParams(node: sys::CUgraphNode, parameters: *mut AllocationNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Allocate { address, bytes } = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(parameters, AllocationNode::of(address, bytes as usize)) }
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

    fn cuGraphExecChildGraphNodeSetParams(executable: sys::CUgraphExec, node: sys::CUgraphNode, graph: sys::CUgraph) = call |driver| {
        driver.set_child(handle(executable), handle(node), handle(graph))
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

    fn cuUserObjectCreate(object: *mut *mut c_void, data: *mut c_void, destroy: Option<unsafe extern "C" fn(*mut c_void)>, count: c_uint, flags: c_uint) = call |driver| {
        check_result_pointer(object)?;
        let function = destroy.ok_or_else(|| Error::value("the function is null"))?;
        // The only flag states that calls do not wait for the function.
        if flags != 1 {
            return Err(Error::value(format!("invalid flags of a user object: {flags:#x}")));
        }
        let function = HostFunction::Plain { function, data };
        let made = UserObject::create(&driver.user_objects, Destructor::new(move || function.call()), count)?;
        // SAFETY: the caller's pointer is valid, as cuda.h requires.
        unsafe { put(object, pointer(made.handle)) }
    };

    fn cuUserObjectRetain(object: *mut c_void, count: c_uint) = call |driver| {
        driver.user_objects.get(handle(object))?.retain(count)
    };

    fn cuUserObjectRelease(object: *mut c_void, count: c_uint) = call |driver| {
        driver.user_objects.get(handle(object))?.release(count)
    };

    fn cuGraphRetainUserObject(graph: sys::CUgraph, object: *mut c_void, count: c_uint, flags: c_uint) = call |driver| {
        if flags & !MOVE != 0 {
            return Err(Error::value(format!("invalid flags of references to a user object: {flags:#x}")));
        }
        let graph = driver.graphs.get(handle(graph))?;
        graph.keep(driver.user_objects.get(handle(object))?.refer(count, flags == MOVE)?);
        Ok(())
    };

    fn cuGraphReleaseUserObject(graph: sys::CUgraph, object: *mut c_void, count: c_uint) = call |driver| {
        driver.graphs.get(handle(graph))?.take_references(handle(object), count).map(drop)
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

    fn cuGraphMemcpyNodeGetParams(node: sys::CUgraphNode, parameters: *mut Copy3D) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Copy(copy) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, Copy3D::of(&copy)) }
    };

    fn cuGraphMemsetNodeGetParams(node: sys::CUgraphNode, parameters: *mut MemsetNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Fill(fill) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, MemsetNode::of(&fill)) }
    };

    fn cuGraphHostNodeGetParams(node: sys::CUgraphNode, parameters: *mut HostNode) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Call(HostFunction::Plain { function, data }) = node.operation() else {
            return Err(other_type(&node));
        };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(parameters, HostNode { function: Some(function), data }) }
    };

    fn cuGraphChildGraphNodeGetGraph(node: sys::CUgraphNode, graph: *mut sys::CUgraph) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Child(child) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(graph, pointer(child.handle)) }
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

    fn cuGraphMemFreeNodeGetParams(node: sys::CUgraphNode, address: *mut sys::CUdeviceptr) = call |driver| {
        let node = driver.nodes.get(handle(node))?;
        let Operation::Free(known) = node.operation() else { return Err(other_type(&node)) };
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(address, known) }
    };

    fn cuGraphNodeSetEnabled(executable: sys::CUgraphExec, node: sys::CUgraphNode, enabled: c_uint) = call |driver| {
        driver.executables.get(handle(executable))?.change(handle(node), |step| {
            step.enabled = enabled != 0;
            Ok(())
        })
    };

    fn cuGraphNodeGetEnabled(executable: sys::CUgraphExec, node: sys::CUgraphNode, enabled: *mut c_uint) = call |driver| {
        let mut known = 0;
        driver.executables.get(handle(executable))?.change(handle(node), |step| {
            known = c_uint::from(step.enabled);
            Ok(())
        })?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(enabled, known) }
    };

    fn cuGraphInstantiate_v2(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, node: *mut sys::CUgraphNode, log: *mut c_char, room: usize) as cuGraphInstantiate = call |driver| {
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

    fn cuGraphInstantiateWithFlags(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, flags: u64) = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { instantiate(driver, executable, graph, flags) }
    };

    fn cuGraphInstantiateWithParams(executable: *mut sys::CUgraphExec, graph: sys::CUgraph, params: *mut InstantiateParams) as cuGraphInstantiateWithParams_ptsz = call |driver| {
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            let given = get(params)?;
            let upload = || driver.queue(handle(given.upload_stream)).map(|_| ());
            let ready = if given.flags & UPLOAD == 0 { Ok(()) } else { upload() };
            let done = ready.and_then(|()| instantiate(driver, executable, graph, given.flags));
            // `CUDA_GRAPH_INSTANTIATE_SUCCESS`, or `…_ERROR`. No node is at fault.
            put(params, InstantiateParams { node: pointer(Handle(0)), result: c_uint::from(done.is_err()), ..given })?;
            done
        }
    };

    fn cuGraphExecGetFlags(executable: sys::CUgraphExec, flags: *mut u64) = call |driver| {
        let known = driver.executables.get(handle(executable))?.flags;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put(flags, known) }
    };

    fn cuGraphExecDestroy(executable: sys::CUgraphExec) = call |driver| {
        driver.executables.remove(handle(executable)).map(|_| ())
    };

    fn cuGraphExecUpdate(executable: sys::CUgraphExec, graph: sys::CUgraph, node: *mut sys::CUgraphNode, result: *mut c_uint) = call |driver| {
        let (info, updated) = update(driver, executable, graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe {
            put_if(node, info.node);
            put_if(result, info.result);
        }
        updated
    };

    fn cuGraphExecUpdate_v2(executable: sys::CUgraphExec, graph: sys::CUgraph, info: *mut UpdateInfo) = call |driver| {
        let (found, updated) = update(driver, executable, graph)?;
        // SAFETY: the caller's pointers are valid, as cuda.h requires.
        unsafe { put_if(info, found) };
        updated
    };

    fn cuGraphUpload(executable: sys::CUgraphExec, stream: sys::CUstream) as cuGraphUpload_ptsz = call |driver| {
        driver.queue(handle(stream))?;
        driver.executables.get(handle(executable)).map(|_| ())
    };

    fn cuGraphLaunch(executable: sys::CUgraphExec, stream: sys::CUstream) as cuGraphLaunch_ptsz = call |driver| {
        driver.launch_graph(handle(executable), &driver.queue(handle(stream))?)
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
