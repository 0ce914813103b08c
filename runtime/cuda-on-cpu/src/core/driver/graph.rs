//! Captures, graphs and their executables.

use super::Driver;
use super::context::capture_mode;
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::{
    AttributeValue, Capture, ExecutableGraph, ExecutableNode, Graph, Mode, Node, NodeShape, Operation,
};
use crate::core::handle::Handle;
use crate::core::memory::AllocationKind;
use crate::core::stream::{NON_BLOCKING, StreamArgument};
use crate::core::work::StreamWork;
use cudarc::driver::sys::CUresult;
use std::sync::Arc;

/// The reason why an executable graph cannot be updated: `CUgraphExecUpdateResultInfo`.
#[derive(PartialEq, Eq, Debug)]
pub struct UpdateMismatch {
    /// The number of the reason: `CUgraphExecUpdateResult`.
    pub result: u32,
    /// The node of the new graph that does not fit; null if the number of nodes does not.
    pub node: Handle,
    /// The dependency of the node that does not fit, if one does not.
    pub from: Handle,
}

/// `CU_GRAPH_EXEC_UPDATE_ERROR_…`
const TOPOLOGY_CHANGED: u32 = 2;
const NODE_TYPE_CHANGED: u32 = 3;
const UNSUPPORTED_FUNCTION_CHANGE: u32 = 7;

/// Returns the first mismatch between the nodes of an executable graph and those of a graph.
fn mismatch(old: &[NodeShape], new: &[NodeShape]) -> Option<UpdateMismatch> {
    let no_node = Handle(0);
    if old.len() != new.len() {
        return Some(UpdateMismatch { result: TOPOLOGY_CHANGED, node: no_node, from: no_node });
    }
    old.iter().zip(new).find_map(|(before, now)| {
        let of_node = |result, from| Some(UpdateMismatch { result, node: now.node, from });
        if before.kind != now.kind {
            return of_node(NODE_TYPE_CHANGED, no_node);
        }
        if before.after.len() != now.after.len() {
            return of_node(TOPOLOGY_CHANGED, no_node);
        }
        if let Some((_, other)) = before.after.iter().zip(&now.after).find(|(before, now)| before != now) {
            return of_node(TOPOLOGY_CHANGED, new[*other].node);
        }
        mismatch(&before.inner, &now.inner)
    })
}

impl Driver {
    /// Starts a capture: from now on the stream records its operations instead of running them. The
    /// nodes are added to the graph in `into`, after the nodes named there, or else to a new graph.
    pub fn begin_capture(&self, queue: &StreamArgument, mode: Mode, into: Option<(Handle, Vec<Handle>)>) -> Result {
        let StreamArgument::Made(stream) = queue else {
            let why = "the default stream cannot capture";
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, why));
        };
        if stream.capture().is_some() {
            return Err(Error::new(CUresult::CUDA_ERROR_ILLEGAL_STATE, "the stream captures already"));
        }
        let (graph, after) = match into {
            Some((graph, after)) => {
                self.check_nodes(graph, &after)?;
                (self.graphs.get(graph)?, after)
            }
            None => (self.create_graph(), Vec::new()),
        };
        let capture = Arc::new(Capture::new(self.id(), stream.handle, mode, (graph, after)));
        stream.set_capture(Some(capture.clone()));
        self.captures.lock().push(capture);
        Ok(())
    }

    /// Ends the capture and returns the recorded graph.
    pub fn end_capture(&self, queue: &StreamArgument) -> Result<Arc<Graph>> {
        let Some((stream, capture)) = queue.capturing() else {
            return Err(Error::new(CUresult::CUDA_ERROR_ILLEGAL_STATE, "the stream does not capture"));
        };
        if capture.origin != stream.handle {
            let why = "the capture was begun in another stream";
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, why));
        }
        if capture.mode != Mode::Relaxed && capture.thread != std::thread::current().id() {
            let why = "another thread began the capture";
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, why));
        }
        self.leave_capture(&capture);
        if let Err(error) = capture.finish() {
            let _ = self.destroy_graph(capture.graph.handle);
            return Err(error);
        }
        Ok(capture.graph.clone())
    }

    /// Adds a node for an operation of a stream that captures.
    pub(super) fn capture(&self, capture: &Capture, stream: Handle, operation: Operation) -> Result {
        let graph = capture.graph.handle;
        capture.add(stream, |after| self.nodes.insert(|handle| Node::new(handle, graph, operation, after)))
    }

    /// Removes all streams from the capture.
    pub(super) fn leave_capture(&self, capture: &Arc<Capture>) {
        for stream in capture.streams() {
            if let Ok(stream) = self.streams.get(stream)
                && stream.capture().is_some_and(|other| Arc::ptr_eq(&other, capture))
            {
                stream.set_capture(None);
            }
        }
        capture.end();
        self.captures.lock().retain(|other| !Arc::ptr_eq(other, capture));
    }

    /// Creates an empty graph.
    pub fn create_graph(&self) -> Arc<Graph> {
        self.graphs.insert(Graph::new)
    }

    /// Destroys a graph; its executables stay valid.
    pub fn destroy_graph(&self, graph: Handle) -> Result {
        let graph = self.graphs.remove(graph)?;
        for node in graph.nodes() {
            let _ = self.nodes.remove(node.handle);
            self.end_node(&node.operation());
        }
        // An event that was recorded in the capture of the graph may still refer to it.
        drop(graph.take_all_references());
        Ok(())
    }

    /// Destroys the graph or the allocation of a destroyed node.
    fn end_node(&self, operation: &Operation) {
        match operation {
            Operation::Child(child) => _ = self.destroy_graph(child.handle),
            Operation::Allocate { address, .. } => _ = self.free(*address),
            _ => {}
        }
    }

    fn check_nodes(&self, graph: Handle, nodes: &[Handle]) -> Result {
        for node in nodes {
            if self.nodes.get(*node)?.graph != graph {
                return Err(Error::value("a node depends on a node of another graph"));
            }
        }
        Ok(())
    }

    /// Adds a node to a graph, after the nodes `after`.
    pub fn add_node(&self, graph: Handle, operation: Operation, after: Vec<Handle>) -> Result<Arc<Node>> {
        let graph = self.graphs.get(graph)?;
        self.check_operation(&operation)?;
        self.check_nodes(graph.handle, &after)?;
        let node = self.nodes.insert(|handle| Node::new(handle, graph.handle, operation, after));
        graph.add(node.clone());
        Ok(node)
    }

    /// Adds a node that contains a clone of another graph.
    pub fn add_child(&self, graph: Handle, child: Handle, after: Vec<Handle>) -> Result<Arc<Node>> {
        self.graphs.get(graph)?;
        let child = self.clone_graph(child)?;
        self.add_node(graph, Operation::Child(child), after)
    }

    /// Adds a node that allocates memory in the current context, until the graph is destroyed.
    pub fn add_allocation(&self, graph: Handle, bytes: usize, after: Vec<Handle>) -> Result<(Arc<Node>, u64)> {
        self.graphs.get(graph)?;
        let address = self.allocate(AllocationKind::Device, bytes)?;
        let node = self.add_node(graph, Operation::Allocate { address, bytes: bytes as u64 }, after)?;
        Ok((node, address))
    }

    /// Removes a node from its graph.
    pub fn destroy_node(&self, node: Handle) -> Result {
        let node = self.nodes.remove(node)?;
        if let Ok(graph) = self.graphs.get(node.graph) {
            graph.remove(node.handle);
        }
        self.end_node(&node.operation());
        Ok(())
    }

    /// Adds or removes dependencies. Each dependency is a pair of the earlier and the later node.
    pub fn change_dependencies(&self, graph: Handle, edges: &[(Handle, Handle)], adds: bool) -> Result {
        let graph = self.graphs.get(graph)?;
        for (from, to) in edges {
            self.check_nodes(graph.handle, &[*from, *to])?;
            let node = self.nodes.get(*to)?;
            if adds {
                if from == to || !node.add_after(*from) {
                    return Err(Error::value("the graph has this dependency already"));
                }
                if graph.ordered().is_err() {
                    node.remove_after(*from);
                    return Err(Error::value("the dependency would form a cycle"));
                }
            } else if !node.remove_after(*from) {
                return Err(Error::value("the graph does not have this dependency"));
            }
        }
        Ok(())
    }

    /// Clones a graph.
    pub fn clone_graph(&self, graph: Handle) -> Result<Arc<Graph>> {
        let original = self.graphs.get(graph)?;
        let clone = self.create_graph();
        for node in original.ordered()? {
            let operation = match node.operation() {
                Operation::Child(child) => Operation::Child(self.clone_graph(child.handle)?),
                // A clone has the addresses of the original, which owns the memory.
                Operation::Allocate { .. } => Operation::Empty,
                operation => operation,
            };
            let after = node.after().iter().filter_map(|node| clone.clone_of(*node)).collect();
            let copy = self.nodes.insert(|handle| Node::new(handle, clone.handle, operation, after));
            copy.copy_attributes(&node);
            clone.set_clone(node.handle, copy.handle);
            clone.add(copy);
        }
        original.own_references().into_iter().for_each(|references| clone.keep(references));
        Ok(clone)
    }

    /// Rejects an operation that its context cannot run. A kernel runs in the context of its
    /// function, of whatever device.
    fn check_operation(&self, operation: &Operation) -> Result {
        match operation {
            Operation::Launch(launch) => {
                launch.function.module.context.check()?;
                launch.function.check(launch.grid)
            }
            Operation::Copy(copy) => copy.check(),
            Operation::Fill(fill) => fill.check(),
            _ => Ok(()),
        }
    }

    /// Replaces the operation of a node in its graph; executables are unaffected.
    pub fn set_node(&self, node: Handle, operation: Operation) -> Result {
        let node = self.nodes.get(node)?;
        self.check_operation(&operation)?;
        node.set_operation(operation.with_attributes_of(&node.operation()))
    }

    /// Replaces the operation of a node in an executable graph.
    pub fn set_step(&self, executable: Handle, node: Handle, operation: Operation) -> Result {
        let (executable, node) = (self.executables.get(executable)?, self.nodes.get(node)?);
        self.check_operation(&operation)?;
        executable.change(node.handle, |step| {
            if step.operation.kind() != operation.kind() {
                return Err(Error::value("the node has another type"));
            }
            step.operation = operation.with_attributes_of(&step.operation);
            Ok(())
        })
    }

    /// Replaces the operations of a child graph in an executable graph by those of a graph with the
    /// same nodes.
    pub fn set_child(&self, executable: Handle, node: Handle, graph: Handle) -> Result {
        let (executable, node) = (self.executables.get(executable)?, self.nodes.get(node)?);
        let Operation::Child(child) = node.operation() else {
            return Err(Error::value("the node has another type"));
        };
        let (old, new) = (child.steps()?, self.graphs.get(graph)?.parts()?);
        if mismatch(&child.shape()?, &new.shape).is_some() {
            return Err(Error::value("the graph has other nodes than the child graph"));
        }
        let mut steps = executable.steps();
        let place = |node: Handle| steps.iter().position(|step| step.node == node);
        let places: Option<Vec<usize>> = old.iter().map(|step| place(step.node)).collect();
        let places = places.ok_or_else(|| Error::value("the node does not belong to the instantiated graph"))?;
        for (place, step) in places.into_iter().zip(new.steps) {
            steps[place].operation = step.operation;
        }
        Ok(())
    }

    /// Sets an attribute of a kernel node. The value is valid.
    pub fn set_node_attribute(&self, node: &Node, id: u32, value: AttributeValue) -> Result {
        const COOPERATIVE: u32 = 2;
        let Operation::Launch(mut launch) = node.operation() else {
            return Err(Error::value("only kernel nodes have attributes"));
        };
        if id == COOPERATIVE {
            launch.cooperative = value[0] as u32 != 0;
            node.set_operation(Operation::Launch(launch))?;
        }
        node.set_attribute(id, value);
        Ok(())
    }

    /// Copies the attributes of a kernel node to another one.
    pub fn copy_node_attributes(&self, to: &Node, from: &Node) -> Result {
        to.copy_attributes(from);
        to.set_operation(to.operation().with_attributes_of(&from.operation()))
    }

    /// Instantiates an executable graph.
    pub fn instantiate(&self, graph: Handle, flags: u64) -> Result<Arc<ExecutableGraph>> {
        let context = self.current()?;
        let parts = self.graphs.get(graph)?.parts()?;
        Ok(self.executables.insert(|handle| ExecutableGraph::new(handle, context, flags, parts)))
    }

    /// Replaces the operations of an executable graph by those of a graph with the same nodes.
    /// Returns the mismatch if the graph does not fit.
    pub fn update(&self, executable: Handle, graph: Handle) -> Result<Option<UpdateMismatch>> {
        let (executable, graph) = (self.executables.get(executable)?, self.graphs.get(graph)?);
        let new = graph.parts()?;
        if let Some(mismatch) = mismatch(&executable.shape, &new.shape) {
            return Ok(Some(mismatch));
        }
        let mut steps = executable.steps();
        let moved = |(old, new): &(&ExecutableNode, &ExecutableNode)| match (&old.operation, &new.operation) {
            (Operation::Launch(old), Operation::Launch(new)) => {
                !Arc::ptr_eq(&old.function.module.context, &new.function.module.context)
            }
            _ => false,
        };
        if let Some((_, new)) = steps.iter().zip(&new.steps).find(moved) {
            let mismatch = UpdateMismatch { result: UNSUPPORTED_FUNCTION_CHANGE, node: new.node, from: Handle(0) };
            return Ok(Some(mismatch));
        }
        for (step, new) in steps.iter_mut().zip(new.steps) {
            step.operation = new.operation;
        }
        drop(steps);
        // User objects of the old graph may end here, without a lock.
        drop(executable.replace_objects(new.objects));
        Ok(None)
    }

    /// Submits all operations of a graph to a stream of any context.
    pub fn launch_graph(&self, executable: Handle, queue: &StreamArgument) -> Result {
        let executable = self.executables.get(executable)?;
        let mut works = Vec::new();
        let objects = executable.objects();
        if !objects.is_empty() {
            works.push(StreamWork::Keep(objects));
        }
        let mut recorded = Vec::new();
        for step in executable.steps().iter().filter(|step| step.enabled) {
            works.push(match &step.operation {
                Operation::Launch(launch) => StreamWork::Launch(launch.clone()),
                Operation::Copy(copy) => StreamWork::Copy(copy.clone()),
                Operation::Fill(fill) => StreamWork::Fill(fill.clone()),
                Operation::Call(function) => StreamWork::Call(*function),
                Operation::Launched(works) => StreamWork::Graph(works.clone()),
                Operation::Record(event) => {
                    let call = event.begin();
                    recorded.push((event.clone(), call));
                    StreamWork::Record(event.clone(), call)
                }
                Operation::Child(_)
                | Operation::Empty
                | Operation::Wait(_)
                | Operation::Allocate { .. }
                | Operation::Free(_) => continue,
            });
        }
        self.submit(queue, StreamWork::Graph(works.into()))?;
        let ticket = self.engine.last();
        recorded.iter().for_each(|(event, call)| event.submitted(*call, ticket));
        Ok(())
    }

    /// Rejects a call that could disturb a capture, and invalidates that capture.
    pub fn refuse_unsafe(&self, what: &str) -> Result {
        let mode = capture_mode();
        if mode == Mode::Relaxed {
            return Ok(());
        }
        let here = std::thread::current().id();
        let disturbed = |capture: &&Arc<Capture>| match capture.mode {
            Mode::Relaxed => false,
            Mode::ThreadLocal => capture.thread == here,
            Mode::Global => capture.thread == here || mode == Mode::Global,
        };
        let captures = self.captures.lock();
        let Some(capture) = captures.iter().find(disturbed) else { return Ok(()) };
        capture.invalidate(what);
        let why = format!("a stream captures, which {what} would disturb");
        Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, why))
    }

    /// Rejects work of the legacy stream that would wait for a capturing stream.
    pub(super) fn refuse_implicit(&self, context: &Arc<Context>) -> Result {
        let captures = self.captures.lock();
        let waits = |handle: &Handle| {
            let stream = self.streams.get(*handle);
            stream.is_ok_and(|s| s.flags & NON_BLOCKING == 0 && Arc::ptr_eq(&s.context, context))
        };
        let Some(capture) = captures.iter().find(|capture| capture.streams().iter().any(waits)) else { return Ok(()) };
        capture.invalidate("the legacy stream was given work");
        let why = "the legacy stream would wait for a stream that captures";
        Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, why))
    }
}
