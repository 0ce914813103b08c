//! Graphs: captured or hand-built work that is launched as a whole.
//!
//! A node has an operation, and the nodes that it depends on. A capture adds a node for each
//! operation of its streams; events carry dependencies from stream to stream. An executable graph
//! runs the operations in a topological order, the order of addition where dependencies allow it.

use super::context::Context;
use super::error::{Error, Result};
use super::event::Event;
use super::handle::{Handle, HandleType};
use super::memory::{Fill, MemoryCopy};
use super::user_object::GraphReferences;
use super::work::{HostFunction, StreamWork, ValidatedLaunch};
use cudarc::driver::sys::CUresult;
use runtime_simt::Lock;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Arc, MutexGuard};
use std::thread::ThreadId;

/// The calls that a thread may make while a stream captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// No thread may make calls that could disturb a capture.
    Global = 0,
    /// The capturing thread may not make calls that could disturb the capture; other threads may.
    ThreadLocal = 1,
    /// All threads may make any call.
    Relaxed = 2,
}

impl Mode {
    /// Parses a mode from its number.
    pub fn of(number: u32) -> Result<Mode> {
        [Mode::Global, Mode::ThreadLocal, Mode::Relaxed]
            .into_iter()
            .find(|mode| *mode as u32 == number)
            .ok_or_else(|| Error::value(format!("invalid capture mode: {number}")))
    }
}

/// The operation of a node.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A kernel launch.
    Launch(ValidatedLaunch),
    /// A copy.
    Copy(MemoryCopy),
    /// A fill with a repeated value.
    Fill(Fill),
    /// A call of a host function.
    Call(HostFunction),
    /// The nodes of another graph.
    Child(Arc<Graph>),
    /// The operations of an executable graph that was launched during a capture.
    Launched(Arc<[StreamWork]>),
    /// Nothing: the node only joins dependencies.
    Empty,
    /// A wait for an event. All earlier work is complete in any case.
    Wait(Arc<Event>),
    /// The recording of an event.
    Record(Arc<Event>),
    /// An allocation, which exists until the graph is destroyed.
    #[allow(missing_docs)]
    Allocate { address: u64, bytes: u64 },
    /// The release of an allocation of a graph.
    Free(u64),
}

impl Operation {
    /// Returns the number of the node's type: `CUgraphNodeType`.
    pub fn kind(&self) -> u32 {
        match self {
            Operation::Launch(_) => 0,
            Operation::Copy(_) => 1,
            Operation::Fill(_) => 2,
            Operation::Call(_) => 3,
            Operation::Child(_) | Operation::Launched(_) => 4,
            Operation::Empty => 5,
            Operation::Wait(_) => 6,
            Operation::Record(_) => 7,
            Operation::Allocate { .. } => 10,
            Operation::Free(_) => 11,
        }
    }

    /// Returns the operation with the attributes of an earlier one: new parameters of a kernel node
    /// do not change whether its launch is cooperative.
    pub fn with_attributes_of(mut self, earlier: &Operation) -> Operation {
        if let (Operation::Launch(launch), Operation::Launch(earlier)) = (&mut self, earlier) {
            launch.cooperative = earlier.cooperative;
        }
        self
    }
}

impl From<StreamWork> for Operation {
    fn from(work: StreamWork) -> Operation {
        match work {
            StreamWork::Launch(launch) => Operation::Launch(launch),
            StreamWork::Copy(copy) => Operation::Copy(copy),
            StreamWork::Fill(fill) => Operation::Fill(fill),
            StreamWork::Free(address) => Operation::Free(address),
            StreamWork::Record(event, _) => Operation::Record(event),
            StreamWork::Call(function) => Operation::Call(function),
            StreamWork::Graph(works) => Operation::Launched(works),
            StreamWork::Keep(_) => Operation::Empty,
        }
    }
}

/// A node of a graph.
#[derive(Debug)]
pub struct Node {
    /// The node's handle.
    pub handle: Handle,
    /// The graph of the node.
    pub graph: Handle,
    operation: Lock<Operation>,
    after: Lock<Vec<Handle>>,
    /// The attributes that the program set, by `CUlaunchAttributeID`.
    attributes: Lock<BTreeMap<u32, AttributeValue>>,
    /// The parameters of a launch, as the program sees them.
    shown: Lock<Option<Shown>>,
}

/// The value of an attribute: `CUlaunchAttributeValue`.
pub type AttributeValue = [u64; 8];

/// Parameters of a launch in memory that a program reads through pointers.
#[derive(Debug)]
struct Shown {
    values: Box<[u64]>,
    pointers: Box<[usize]>,
}

/// A graph.
#[derive(Debug)]
pub struct Graph {
    /// The graph's handle.
    pub handle: Handle,
    nodes: Lock<Vec<Arc<Node>>>,
    /// For a clone, the node of each original node.
    clones: Lock<HashMap<Handle, Handle>>,
    /// The references to user objects.
    objects: Lock<Vec<GraphReferences>>,
}

/// The parts of a node that an update of an executable graph may not change: the type, the
/// dependencies, and the nodes of a child graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeShape {
    /// The node.
    pub node: Handle,
    /// The number of the type.
    pub kind: u32,
    /// The positions of the nodes that the node depends on.
    pub after: Vec<usize>,
    /// The nodes of the child graph, if the node has one.
    pub inner: Vec<NodeShape>,
}

/// The parts of a graph that an executable graph needs.
#[derive(Debug)]
pub struct GraphParts {
    /// The parts that an update may not change.
    pub shape: Vec<NodeShape>,
    /// The operations.
    pub steps: Vec<ExecutableNode>,
    /// New references to the user objects.
    pub objects: Vec<GraphReferences>,
}

/// A node of an executable graph.
#[derive(Clone, Debug)]
pub struct ExecutableNode {
    /// The graph's node from which this node was instantiated.
    pub node: Handle,
    /// The operation.
    pub operation: Operation,
    /// Whether launches run the operation.
    pub enabled: bool,
}

/// An executable graph.
#[derive(Debug)]
pub struct ExecutableGraph {
    /// The executable graph's handle.
    pub handle: Handle,
    /// The context that the executable graph belongs to.
    pub context: Arc<Context>,
    /// The flags given at instantiation.
    pub flags: u64,
    /// The nodes of the graph at the instantiation.
    pub shape: Vec<NodeShape>,
    steps: Lock<Vec<ExecutableNode>>,
    /// The references to the user objects of the graph.
    objects: Lock<Arc<[GraphReferences]>>,
}

impl HandleType for Graph {
    const KIND: u8 = 0x46;
    const NAME: &'static str = "graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl HandleType for Node {
    const KIND: u8 = 0x49;
    const NAME: &'static str = "node of a graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl HandleType for ExecutableGraph {
    const KIND: u8 = 0x47;
    const NAME: &'static str = "executable graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl Node {
    /// Creates a node.
    pub fn new(handle: Handle, graph: Handle, operation: Operation, after: Vec<Handle>) -> Node {
        let (operation, after) = (Lock::new(operation), Lock::new(after));
        Node { handle, graph, operation, after, attributes: Lock::default(), shown: Lock::default() }
    }

    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        self.operation.lock().clone()
    }

    /// Replaces the operation by one of the same type.
    pub fn set_operation(&self, operation: Operation) -> Result {
        let mut current = self.operation.lock();
        if current.kind() != operation.kind() {
            return Err(Error::value("the node has another type"));
        }
        *current = operation;
        *self.shown.lock() = None;
        Ok(())
    }

    /// Returns the value of an attribute, if the program set it.
    pub fn attribute(&self, id: u32) -> Option<AttributeValue> {
        self.attributes.lock().get(&id).copied()
    }

    /// Sets an attribute.
    pub fn set_attribute(&self, id: u32, value: AttributeValue) {
        self.attributes.lock().insert(id, value);
    }

    /// Copies the attributes of another node.
    pub fn copy_attributes(&self, from: &Node) {
        let attributes = from.attributes.lock().clone();
        *self.attributes.lock() = attributes;
    }

    /// Returns the nodes that the node depends on.
    pub fn after(&self) -> Vec<Handle> {
        self.after.lock().clone()
    }

    /// Adds a dependency; returns false if the node has it already.
    pub fn add_after(&self, node: Handle) -> bool {
        let mut after = self.after.lock();
        let is_new = !after.contains(&node);
        if is_new {
            after.push(node);
        }
        is_new
    }

    /// Removes a dependency; returns false if the node does not have it.
    pub fn remove_after(&self, node: Handle) -> bool {
        let mut after = self.after.lock();
        let before = after.len();
        after.retain(|other| *other != node);
        after.len() < before
    }

    /// Returns the addresses of a launch's parameters, which stay valid until the node changes.
    pub fn show_parameters(&self, launch: &ValidatedLaunch) -> *mut *mut c_void {
        let mut shown = self.shown.lock();
        let shown = shown.get_or_insert_with(|| {
            let slots: Vec<_> = launch.function.program.slots().collect();
            let words: usize = slots.iter().map(|slot| slot.bytes.div_ceil(8)).sum();
            let (mut values, mut starts, mut at) = (vec![0u64; words].into_boxed_slice(), Vec::new(), 0);
            for slot in slots {
                for (i, byte) in launch.parameters[slot.offset..][..slot.bytes].iter().enumerate() {
                    values[at + i / 8] |= u64::from(*byte) << (8 * (i % 8));
                }
                starts.push(at);
                at += slot.bytes.div_ceil(8);
            }
            let base = values.as_mut_ptr().expose_provenance();
            let pointers = starts.iter().map(|start| base + 8 * start).collect();
            Shown { values, pointers }
        });
        // The program may write the values, too.
        shown.values.as_mut_ptr().expose_provenance();
        shown.pointers.as_mut_ptr().cast()
    }
}

impl Graph {
    /// Creates an empty graph.
    pub fn new(handle: Handle) -> Graph {
        Graph { handle, nodes: Lock::default(), clones: Lock::default(), objects: Lock::default() }
    }

    /// Adds references to a user object.
    pub fn keep(&self, references: GraphReferences) {
        let mut objects = self.objects.lock();
        match objects.iter_mut().find(|other| other.object() == references.object()) {
            Some(other) => other.join(references),
            None => objects.push(references),
        }
    }

    /// Takes references to a user object out of the graph. The object may end when these are
    /// dropped.
    pub fn take_references(&self, object: Handle, count: u32) -> Result<GraphReferences> {
        let mut objects = self.objects.lock();
        let place = objects.iter().position(|other| other.object() == object);
        let place = place.ok_or_else(|| Error::value("the graph has no reference to the object"))?;
        let taken = objects[place].split(count)?;
        if objects[place].is_empty() {
            objects.remove(place);
        }
        Ok(taken)
    }

    /// Takes all references to user objects out of the graph.
    pub fn take_all_references(&self) -> Vec<GraphReferences> {
        std::mem::take(&mut *self.objects.lock())
    }

    /// Returns new references to the user objects of the graph, without those of child graphs.
    pub fn own_references(&self) -> Vec<GraphReferences> {
        self.objects.lock().clone()
    }

    /// Returns new references to the user objects of the graph and of its child graphs.
    fn references(&self) -> Vec<GraphReferences> {
        let mut references = self.own_references();
        for node in self.nodes() {
            if let Operation::Child(child) = node.operation() {
                references.extend(child.references());
            }
        }
        references
    }

    /// Returns what an update may not change, in the order of the steps.
    pub fn shape(&self) -> Result<Vec<NodeShape>> {
        let nodes = self.ordered()?;
        let places: HashMap<Handle, usize> = nodes.iter().enumerate().map(|(i, node)| (node.handle, i)).collect();
        let shape = |node: &Arc<Node>| -> Result<NodeShape> {
            let operation = node.operation();
            let inner = if let Operation::Child(child) = &operation { child.shape()? } else { Vec::new() };
            let after = node.after().iter().filter_map(|node| places.get(node).copied()).collect();
            Ok(NodeShape { node: node.handle, kind: operation.kind(), after, inner })
        };
        nodes.iter().map(shape).collect()
    }

    /// Adds a node.
    pub fn add(&self, node: Arc<Node>) {
        self.nodes.lock().push(node);
    }

    /// Removes a node, and the dependencies on it.
    pub fn remove(&self, node: Handle) {
        let mut nodes = self.nodes.lock();
        nodes.retain(|other| other.handle != node);
        nodes.iter().for_each(|other| _ = other.remove_after(node));
    }

    /// Returns the nodes, in the order of addition.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().clone()
    }

    /// Returns the dependencies, each with the earlier node first and then the later one.
    pub fn edges(&self) -> Vec<(Handle, Handle)> {
        let nodes = self.nodes();
        nodes.iter().flat_map(|node| node.after().into_iter().map(|after| (after, node.handle))).collect()
    }

    /// Returns the nodes in a topological order: each follows the nodes that it depends on.
    pub fn ordered(&self) -> Result<Vec<Arc<Node>>> {
        let mut waiting = self.nodes();
        let (mut done, mut order) = (Vec::new(), Vec::new());
        while !waiting.is_empty() {
            let before = order.len();
            waiting.retain(|node| {
                let is_ready = node.after().iter().all(|after| done.contains(after));
                if is_ready {
                    done.push(node.handle);
                    order.push(node.clone());
                }
                !is_ready
            });
            if order.len() == before {
                return Err(Error::value("the dependencies of the graph form a cycle"));
            }
        }
        Ok(order)
    }

    /// Records the clone of a node.
    pub fn set_clone(&self, original: Handle, clone: Handle) {
        self.clones.lock().insert(original, clone);
    }

    /// Returns the clone of a node of the original graph.
    pub fn clone_of(&self, original: Handle) -> Option<Handle> {
        self.clones.lock().get(&original).copied()
    }

    /// Returns the parts of the graph that an executable needs.
    pub fn parts(&self) -> Result<GraphParts> {
        Ok(GraphParts { shape: self.shape()?, steps: self.steps()?, objects: self.references() })
    }

    /// Returns the steps of an executable of the graph, in order.
    pub fn steps(&self) -> Result<Vec<ExecutableNode>> {
        let mut steps = Vec::new();
        for node in self.ordered()? {
            match node.operation() {
                Operation::Child(child) => steps.extend(child.steps()?),
                operation => steps.push(ExecutableNode { node: node.handle, operation, enabled: true }),
            }
        }
        Ok(steps)
    }
}

impl ExecutableGraph {
    /// Creates an executable of a graph.
    pub fn new(handle: Handle, context: Arc<Context>, flags: u64, parts: GraphParts) -> ExecutableGraph {
        let GraphParts { shape, steps, objects } = parts;
        let (steps, objects) = (Lock::new(steps), Lock::new(objects.into()));
        ExecutableGraph { handle, context, flags, shape, steps, objects }
    }

    /// Returns the references to user objects.
    pub fn objects(&self) -> Arc<[GraphReferences]> {
        self.objects.lock().clone()
    }

    /// Replaces the references to user objects, and returns the old ones.
    pub fn replace_objects(&self, objects: Vec<GraphReferences>) -> Arc<[GraphReferences]> {
        std::mem::replace(&mut *self.objects.lock(), objects.into())
    }

    /// Locks the steps.
    pub fn steps(&self) -> MutexGuard<'_, Vec<ExecutableNode>> {
        self.steps.lock()
    }

    /// Changes the step of a node for later launches.
    pub fn change(&self, node: Handle, change: impl FnOnce(&mut ExecutableNode) -> Result) -> Result {
        let mut steps = self.steps();
        match steps.iter_mut().find(|step| step.node == node) {
            Some(step) => change(step),
            None => Err(Error::value("the node does not belong to the instantiated graph")),
        }
    }
}

/// A capture in progress.
#[derive(Debug)]
pub struct Capture {
    /// The capture's ID, unique in the process.
    pub id: u64,
    /// The stream in which the capture began.
    pub origin: Handle,
    /// The calls that threads may make during the capture.
    pub mode: Mode,
    /// The thread that began the capture.
    pub thread: ThreadId,
    /// The graph to which the capture adds nodes.
    pub graph: Arc<Graph>,
    state: Lock<CaptureState>,
}

/// The state of a capture.
#[derive(Debug, Default)]
struct CaptureState {
    /// For each stream, the nodes that its next node depends on.
    fronts: BTreeMap<Handle, Vec<Handle>>,
    /// The reason of the invalidation.
    invalid: Option<String>,
    /// Whether the capture has ended.
    ended: bool,
    /// The handles that the program last received.
    shown: Box<[u64]>,
    /// The data of the dependencies that the program last received: zeros.
    shown_edges: Box<[u64]>,
}

/// The dependencies of the next node of a stream, in memory that a program reads.
#[derive(Clone, Copy, Debug)]
pub struct ShownFront {
    /// The handles of the nodes.
    pub nodes: *const u64,
    /// The data of each dependency: `CUgraphEdgeData`.
    pub edges: *const u64,
    /// The number of dependencies.
    pub count: usize,
}

impl Capture {
    /// Creates a capture that begins in the stream `origin`, after these nodes of the graph.
    pub fn new(id: u64, origin: Handle, mode: Mode, (graph, after): (Arc<Graph>, Vec<Handle>)) -> Capture {
        let fronts = BTreeMap::from([(origin, after)]);
        let state = Lock::new(CaptureState { fronts, ..CaptureState::default() });
        Capture { id, origin, mode, thread: std::thread::current().id(), graph, state }
    }

    /// Adds a node for an operation of a stream: `make` creates it after the given nodes.
    pub fn add(&self, stream: Handle, make: impl FnOnce(Vec<Handle>) -> Arc<Node>) -> Result {
        let mut state = self.valid()?;
        let node = make(state.fronts.get(&stream).cloned().unwrap_or_default());
        state.fronts.insert(stream, vec![node.handle]);
        self.graph.add(node);
        Ok(())
    }

    /// Returns the nodes that the next node of the stream depends on.
    pub fn front(&self, stream: Handle) -> Result<Vec<Handle>> {
        Ok(self.valid()?.fronts.get(&stream).cloned().unwrap_or_default())
    }

    /// Adds nodes that the next node of the stream depends on.
    pub fn join(&self, stream: Handle, after: &[Handle]) -> Result {
        let mut state = self.valid()?;
        let front = state.fronts.entry(stream).or_default();
        front.extend(after);
        front.sort_unstable();
        front.dedup();
        Ok(())
    }

    /// Sets the nodes that the next node of the stream depends on.
    pub fn set_front(&self, stream: Handle, after: Vec<Handle>) -> Result {
        self.valid()?.fronts.insert(stream, after);
        Ok(())
    }

    /// Returns the handles in a stream's front, which stay there until the next call.
    pub fn show_front(&self, stream: Handle) -> Result<ShownFront> {
        let mut state = self.valid()?;
        state.shown = state.fronts.get(&stream).into_iter().flatten().map(|node| node.0).collect();
        let count = state.shown.len();
        state.shown_edges = vec![0; count].into();
        Ok(ShownFront { nodes: state.shown.as_ptr(), edges: state.shown_edges.as_ptr(), count })
    }

    /// Invalidates the capture.
    pub fn invalidate(&self, why: &str) {
        self.state.lock().invalid.get_or_insert_with(|| why.to_string());
    }

    /// Marks the capture as ended.
    pub fn end(&self) {
        self.state.lock().ended = true;
    }

    /// Returns whether the capture has ended.
    pub fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Returns whether the capture is still valid.
    pub fn is_valid(&self) -> bool {
        self.state.lock().invalid.is_none()
    }

    /// Returns the streams that take part.
    pub fn streams(&self) -> Vec<Handle> {
        self.state.lock().fronts.keys().copied().collect()
    }

    /// Fails unless every participating stream has joined the origin stream.
    pub fn finish(&self) -> Result {
        let state = self.valid()?;
        let nodes: HashMap<Handle, Arc<Node>> =
            self.graph.nodes().into_iter().map(|node| (node.handle, node)).collect();
        let mut open = state.fronts.get(&self.origin).cloned().unwrap_or_default();
        let mut joined: Vec<Handle> = Vec::new();
        while let Some(node) = open.pop() {
            if !joined.contains(&node) {
                joined.push(node);
                open.extend(nodes.get(&node).map(|node| node.after()).unwrap_or_default());
            }
        }
        let unjoined = state.fronts.iter().find(|(_, front)| front.iter().any(|node| !joined.contains(node)));
        if let Some((stream, _)) = unjoined {
            let why = format!("the stream {:#x} was not joined to the stream of the capture", stream.0);
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, why));
        }
        Ok(())
    }

    fn valid(&self) -> Result<MutexGuard<'_, CaptureState>> {
        let state = self.state.lock();
        match &state.invalid {
            Some(why) => {
                let why = format!("the capture was invalidated before: {why}");
                Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, why))
            }
            None => Ok(state),
        }
    }
}
