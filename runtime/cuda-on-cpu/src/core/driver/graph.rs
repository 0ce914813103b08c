//! Captures and the resulting graphs.

use super::context::capture_mode;
use super::{Driver, lock};
use crate::core::context::Context;
use crate::core::error::{Error, Result};
use crate::core::graph::{Added, Capture, Executable, Graph, Mode};
use crate::core::handle::Handle;
use crate::core::stream::{NON_BLOCKING, Queue};
use crate::core::work::{Launch, Work};
use cudarc::driver::sys::CUresult;
use std::sync::Arc;

impl Driver {
    /// Starts a capture: from now on the stream records its operations instead of running them.
    pub fn begin_capture(&self, queue: &Queue, mode: Mode) -> Result {
        let Queue::Made(stream) = queue else {
            let why = "the default stream cannot capture";
            return Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, why));
        };
        if stream.capture().is_some() {
            return Err(Error::new(CUresult::CUDA_ERROR_ILLEGAL_STATE, "the stream captures already"));
        }
        let capture = Arc::new(Capture::new(self.id(), stream.handle, mode));
        stream.set_capture(Some(capture.clone()));
        lock(&self.captures).push(capture);
        Ok(())
    }

    /// Ends the capture and returns the recorded graph.
    pub fn end_capture(&self, queue: &Queue) -> Result<Arc<Graph>> {
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
        let works = capture.finish()?;
        Ok(self.graphs.insert(|handle| Graph::new(handle, &works)))
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
        lock(&self.captures).retain(|other| !Arc::ptr_eq(other, capture));
    }

    /// Creates an empty graph.
    pub fn create_graph(&self) -> Arc<Graph> {
        self.graphs.insert(|handle| Graph::new(handle, &[]))
    }

    /// Destroys a graph; its executables stay valid.
    pub fn destroy_graph(&self, graph: Handle) -> Result {
        let graph = self.graphs.remove(graph)?;
        self.nodes.remove_all(|node| node.graph == graph.handle);
        Ok(())
    }

    /// Adds a kernel node to a graph, after the nodes `after`.
    pub fn add_launch(&self, graph: Handle, launch: Launch, after: &[Handle]) -> Result<Arc<Added>> {
        let graph = self.graphs.get(graph)?;
        self.check_launch(&launch)?;
        for node in after {
            if self.nodes.get(*node)?.graph != graph.handle {
                return Err(Error::value("a node depends on a node of another graph"));
            }
        }
        let index = graph.add(Work::Launch(launch));
        Ok(self.nodes.insert(|handle| Added { handle, graph: graph.handle, index }))
    }

    /// Replaces the launch of a node in an executable graph.
    pub fn set_launch(&self, executable: Handle, node: Handle, launch: Launch) -> Result {
        let (executable, node) = (self.executables.get(executable)?, self.nodes.get(node)?);
        if executable.graph != node.graph {
            return Err(Error::value("the node does not belong to the instantiated graph"));
        }
        self.check_launch(&launch)?;
        // The executable lacks nodes added after its instantiation.
        if node.index >= executable.works().len() {
            return Err(Error::value("the node was added after the graph was instantiated"));
        }
        executable.set(node.index, Work::Launch(launch));
        Ok(())
    }

    fn check_launch(&self, launch: &Launch) -> Result {
        if !Arc::ptr_eq(&launch.function.module.context, &self.current()?) {
            let why = "the function belongs to another context, not to the current one";
            return Err(Error::new(CUresult::CUDA_ERROR_INVALID_HANDLE, why));
        }
        launch.function.check(launch.grid)
    }

    /// Instantiates an executable graph.
    pub fn instantiate(&self, graph: Handle) -> Result<Arc<Executable>> {
        let context = self.current()?;
        let graph = self.graphs.get(graph)?;
        Ok(self.executables.insert(|handle| Executable::new(handle, context, &graph)))
    }

    /// Submits all operations of a graph to a stream.
    pub fn launch_graph(&self, executable: Handle, queue: &Queue) -> Result {
        let executable = self.executables.get(executable)?;
        if !Arc::ptr_eq(&executable.context, queue.context()) {
            return Err(Error::value("the graph and the stream belong to different contexts"));
        }
        self.submit(queue, Work::Graph(executable.works()))
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
        let captures = lock(&self.captures);
        let Some(capture) = captures.iter().find(disturbed) else { return Ok(()) };
        capture.invalidate(what);
        let why = format!("a stream captures, which {what} would disturb");
        Err(Error::new(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, why))
    }

    /// Rejects work of the legacy stream that would wait for a capturing stream.
    pub(super) fn refuse_implicit(&self, context: &Arc<Context>) -> Result {
        let captures = lock(&self.captures);
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
