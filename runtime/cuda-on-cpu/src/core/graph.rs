//! Graphs: what streams were given while they captured, or what was put together by hand, to be given again as a whole.
//!
//! A capture notes each piece of work with what it comes after. Events carry that from stream to stream. A graph runs in
//! the order of its capture, which is one that the dependencies allow; one made by hand in the order in which nodes were added, which come after
//! earlier ones only.

use super::context::Context;
use super::error::{Error, Result};
use super::handle::{Handle, Object};
use super::work::Work;
use cudarc::driver::sys::CUresult;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// What a thread may do while a stream captures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// No thread may do what could disturb a capture.
    Global = 0,
    /// The thread that began it may not.
    ThreadLocal = 1,
    /// All may.
    Relaxed = 2,
}

impl Mode {
    /// By its number.
    pub fn of(number: u32) -> Result<Mode> {
        [Mode::Global, Mode::ThreadLocal, Mode::Relaxed]
            .into_iter()
            .find(|mode| *mode as u32 == number)
            .ok_or_else(|| Error::value(format!("{number} is no mode of capture")))
    }
}

/// A capture that goes on.
#[derive(Debug)]
pub struct Capture {
    /// Numbered through in the process.
    pub id: u64,
    /// The stream that it was begun in.
    pub origin: Handle,
    /// What others may do.
    pub mode: Mode,
    /// The thread that began it.
    pub thread: ThreadId,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    nodes: Vec<Node>,
    /// By stream, the nodes that its next one comes after.
    fronts: BTreeMap<Handle, Vec<usize>>,
    /// Why it came to nothing.
    invalid: Option<String>,
}

#[derive(Debug)]
struct Node {
    work: Work,
    after: Vec<usize>,
}

/// What was captured, or put together.
#[derive(Debug)]
pub struct Graph {
    /// Its handle.
    pub handle: Handle,
    /// In the order of the capture.
    works: Mutex<Vec<Work>>,
}

/// A node that was added by hand: the one of that number.
#[derive(Debug)]
pub struct Added {
    /// Its handle.
    pub handle: Handle,
    /// The graph's.
    pub graph: Handle,
    /// In the order of the graph.
    pub index: usize,
}

/// A graph that can be launched.
#[derive(Debug)]
pub struct Executable {
    /// Its handle.
    pub handle: Handle,
    /// Whose it is.
    pub context: Arc<Context>,
    /// What it was made of, which may have gone.
    pub graph: Handle,
    /// What it does.
    works: Mutex<Arc<[Work]>>,
}

impl Graph {
    /// Of that work.
    pub fn new(handle: Handle, works: &[Work]) -> Graph {
        Graph { handle, works: Mutex::new(works.to_vec()) }
    }

    /// Adds a node; its number.
    pub fn add(&self, work: Work) -> usize {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        works.push(work);
        works.len() - 1
    }

    /// What it does.
    pub fn works(&self) -> Arc<[Work]> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).as_slice().into()
    }
}

impl Executable {
    /// Of what the graph does now.
    pub fn new(handle: Handle, context: Arc<Context>, graph: &Graph) -> Executable {
        Executable { handle, context, graph: graph.handle, works: Mutex::new(graph.works()) }
    }

    /// What it does.
    pub fn works(&self) -> Arc<[Work]> {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has it do that at node `index` from now on; what was launched before stays as it was.
    pub fn set(&self, index: usize, work: Work) {
        let mut works = self.works.lock().unwrap_or_else(PoisonError::into_inner);
        // Nobody else has them, unless a launch is under way.
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
    /// That begins in that stream.
    pub fn new(id: u64, origin: Handle, mode: Mode) -> Capture {
        let fronts = BTreeMap::from([(origin, Vec::new())]);
        let state = Mutex::new(State { fronts, ..State::default() });
        Capture { id, origin, mode, thread: std::thread::current().id(), state }
    }

    /// Notes work of a stream.
    pub fn add(&self, stream: Handle, work: Work) -> Result {
        let mut state = self.valid()?;
        let index = state.nodes.len();
        let after = state.fronts.insert(stream, vec![index]).unwrap_or_default();
        state.nodes.push(Node { work, after });
        Ok(())
    }

    /// The nodes that the next one of the stream comes after.
    pub fn front(&self, stream: Handle) -> Result<Vec<usize>> {
        Ok(self.valid()?.fronts.get(&stream).cloned().unwrap_or_default())
    }

    /// What the stream does next comes after these nodes too.
    pub fn join(&self, stream: Handle, after: &[usize]) -> Result {
        let mut state = self.valid()?;
        let front = state.fronts.entry(stream).or_default();
        front.extend(after);
        front.sort_unstable();
        front.dedup();
        Ok(())
    }

    /// It comes to nothing.
    pub fn invalidate(&self, why: &str) {
        self.lock().invalid.get_or_insert_with(|| why.to_string());
    }

    /// Whether it still can become a graph.
    pub fn is_valid(&self) -> bool {
        self.lock().invalid.is_none()
    }

    /// The streams that take part.
    pub fn streams(&self) -> Vec<Handle> {
        self.lock().fronts.keys().copied().collect()
    }

    /// What was captured, if every stream that takes part has come back to the first.
    pub fn finish(&self) -> Result<Arc<[Work]>> {
        let mut state = self.valid()?;
        let joined = state.behind(self.origin);
        let open = state.fronts.iter().find(|(_, front)| front.iter().any(|node| !joined[*node]));
        if let Some((stream, _)) = open {
            let why = format!("the stream {:#x} was not joined to the stream of the capture again", stream.0);
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED, why));
        }
        Ok(std::mem::take(&mut state.nodes).into_iter().map(|node| node.work).collect())
    }

    fn valid(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        match &state.invalid {
            Some(why) => {
                let why = format!("the capture came to nothing before: {why}");
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
    /// The nodes that a stream's next one comes after, at once or in the end.
    fn behind(&self, stream: Handle) -> Vec<bool> {
        let mut behind = vec![false; self.nodes.len()];
        for node in self.fronts.get(&stream).into_iter().flatten() {
            behind[*node] = true;
        }
        // A node comes after earlier ones.
        for index in (0..self.nodes.len()).rev() {
            if behind[index] {
                self.nodes[index].after.iter().for_each(|node| behind[*node] = true);
            }
        }
        behind
    }
}
