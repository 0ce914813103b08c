//! Graphs: captured or hand-built work that is launched as a whole.
//!
//! A capture records each operation with the operations that it depends on. Events carry these
//! dependencies from stream to stream. A graph runs in the order of its capture, which satisfies
//! its dependencies. A hand-built graph runs in the order in which its nodes were added, and a node
//! depends on earlier ones only.

use super::context::Context;
use super::error::{Error, Result};
use super::handle::{Handle, Object};
use super::work::Work;
use cudarc::driver::sys::CUresult;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// The calls that a thread may make while a stream captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// No thread may make calls that could disturb a capture.
    Global = 0,
    /// Only the capturing thread may not make calls that could disturb the capture.
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
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    /// For each stream, the nodes that its next node depends on.
    fronts: BTreeMap<Handle, Vec<usize>>,
    /// The reason of the invalidation.
    invalid: Option<String>,
}

#[derive(Debug)]
struct Node {
    work: Work,
    after: Vec<usize>,
}

/// A captured or hand-built graph.
#[derive(Debug)]
pub struct Graph {
    /// The graph's handle.
    pub handle: Handle,
    /// The operations, in order.
    works: Mutex<Vec<Work>>,
}

/// A node that was added by hand.
#[derive(Debug)]
pub struct Added {
    /// The node's handle.
    pub handle: Handle,
    /// The graph of the node.
    pub graph: Handle,
    /// The index of the node's operation in the graph.
    pub index: usize,
}

/// An executable graph.
#[derive(Debug)]
pub struct Executable {
    /// The executable graph's handle.
    pub handle: Handle,
    /// The context that the executable graph belongs to.
    pub context: Arc<Context>,
    /// The graph that it was instantiated from, which may be destroyed by now.
    pub graph: Handle,
    /// The operations, in order.
    works: Mutex<Arc<[Work]>>,
}

impl Graph {
    /// Creates a graph of these operations.
    pub fn new(handle: Handle, works: &[Work]) -> Graph {
        Graph { handle, works: Mutex::new(works.to_vec()) }
    }

    /// Adds a node, and returns its index.
    pub fn add(&self, work: Work) -> usize {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        works.push(work);
        works.len() - 1
    }

    /// Returns the graph's operations.
    pub fn works(&self) -> Arc<[Work]> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).as_slice().into()
    }
}

impl Executable {
    /// Creates an executable of the graph's current operations.
    pub fn new(handle: Handle, context: Arc<Context>, graph: &Graph) -> Executable {
        Executable { handle, context, graph: graph.handle, works: Mutex::new(graph.works()) }
    }

    /// Returns the executable's operations.
    pub fn works(&self) -> Arc<[Work]> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the operation of node `index` for later launches; earlier launches are unaffected.
    pub fn set(&self, index: usize, work: Work) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        // The operations have no other owner, unless a launch is in flight.
        match Arc::get_mut(&mut works) {
            Some(works) => works[index] = work,
            None => {
                let mut changed = works.to_vec();
                changed[index] = work;
                *works = changed.into();
            }
        }
    }
}

impl Object for Graph {
    const KIND: u8 = 0xC6;
    const NAME: &'static str = "graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl Object for Added {
    const KIND: u8 = 0xC9;
    const NAME: &'static str = "node of a graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl Object for Executable {
    const KIND: u8 = 0xC7;
    const NAME: &'static str = "executable graph";
    const REFUSAL: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
}

impl Capture {
    /// Creates a capture that begins in the stream `origin`.
    pub fn new(id: u64, origin: Handle, mode: Mode) -> Capture {
        let fronts = BTreeMap::from([(origin, Vec::new())]);
        let state = Mutex::new(State { fronts, ..State::default() });
        Capture { id, origin, mode, thread: std::thread::current().id(), state }
    }

    /// Records an operation of a stream.
    pub fn add(&self, stream: Handle, work: Work) -> Result {
        let mut state = self.valid()?;
        let index = state.nodes.len();
        let after = state.fronts.insert(stream, vec![index]).unwrap_or_default();
        state.nodes.push(Node { work, after });
        Ok(())
    }

    /// Returns the nodes that the next node of the stream depends on.
    pub fn front(&self, stream: Handle) -> Result<Vec<usize>> {
        Ok(self.valid()?.fronts.get(&stream).cloned().unwrap_or_default())
    }

    /// Adds nodes that the next node of the stream depends on.
    pub fn join(&self, stream: Handle, after: &[usize]) -> Result {
        let mut state = self.valid()?;
        let front = state.fronts.entry(stream).or_default();
        front.extend(after);
        front.sort_unstable();
        front.dedup();
        Ok(())
    }

    /// Invalidates the capture.
    pub fn invalidate(&self, why: &str) {
        self.lock().invalid.get_or_insert_with(|| why.to_string());
    }

    /// Returns whether the capture is still valid.
    pub fn is_valid(&self) -> bool {
        self.lock().invalid.is_none()
    }

    /// Returns the streams that take part.
    pub fn streams(&self) -> Vec<Handle> {
        self.lock().fronts.keys().copied().collect()
    }

    /// Returns the captured operations. Fails unless every participating stream has joined the
    /// origin stream.
    pub fn finish(&self) -> Result<Arc<[Work]>> {
        let mut state = self.valid()?;
        let joined = state.behind(self.origin);
        let open = state.fronts.iter().find(|(_, front)| front.iter().any(|node| !joined[*node]));
        if let Some((stream, _)) = open {
            let why = format!("the stream {:#x} was not joined to the stream of the capture", stream.0);
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, why));
        }
        Ok(std::mem::take(&mut state.nodes).into_iter().map(|node| node.work).collect())
    }

    fn valid(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        match &state.invalid {
            Some(why) => {
                let why = format!("the capture was invalidated before: {why}");
                Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, why))
            }
            None => Ok(state),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing panics while the lock is held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Marks the nodes that a stream's next node depends on, directly or transitively.
    fn behind(&self, stream: Handle) -> Vec<bool> {
        let mut behind = vec![false; self.nodes.len()];
        for node in self.fronts.get(&stream).into_iter().flatten() {
            behind[*node] = true;
        }
        // A node depends only on earlier nodes.
        for index in (0..self.nodes.len()).rev() {
            if behind[index] {
                self.nodes[index].after.iter().for_each(|node| behind[*node] = true);
            }
        }
        behind
    }
}
