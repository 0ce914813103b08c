//! The driver's graphs: launches with their dependencies, submitted by one call.
//!
//! A graph is built node by node, not captured from a stream. The dependencies follow from the
//! memory that launches use, so independent launches run concurrently. A node is identified by its
//! index when its arguments change. Capturing would put a stream into a state in which calls of
//! other threads fail.

use super::context::Context;
use super::driver::Driver;
use super::gpu::Cuda;
use super::launch::DriverLaunch;
use super::operation::StreamOperation;
use super::record::GraphRecords;
use super::stream::CudaStream;
use crate::Result;
use crate::contract::ValidatedArgs;
use crate::hazard::{Hazards, TimelinePoint};
use crate::instance::LaunchedInstance;
use cudarc::driver::sys;
use kernel_dsl::{Artifact, LaunchForm};
use std::ptr;
use std::sync::Arc;

/// A launch of a graph that is under construction.
pub(crate) struct PendingLaunch {
    launch: DriverLaunch,
    after: Vec<usize>,
}

impl PendingLaunch {
    /// Makes a launch that depends on the earlier launches with the indices `after`.
    pub fn new(
        cuda: &Cuda,
        form: LaunchForm,
        artifact: &'static Artifact,
        program: &LaunchedInstance,
        validated: &ValidatedArgs<'_, '_>,
        after: Vec<usize>,
    ) -> Result<PendingLaunch> {
        Ok(PendingLaunch { launch: cuda.launch(form, artifact, program, validated)?, after })
    }
}

/// A graph that can be replayed.
pub(crate) struct Replay {
    context: Arc<Context>,
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: Vec<(sys::CUgraphNode, DriverLaunch)>,
    /// The records of the graph's checked launches, if there are any.
    findings: Option<Arc<GraphRecords>>,
    /// The number of each node's record.
    records: Vec<usize>,
    /// Nodes of distinct kernels, for reports of the launches in flight.
    distinct: Vec<usize>,
}

// SAFETY: any thread may use handles of graphs, one at a time: changing or submitting a graph takes
// `&mut`.
unsafe impl Send for Replay {}
// SAFETY: as above; methods with `&self` do not use the handles.
unsafe impl Sync for Replay {}

impl Replay {
    /// Builds the graph of these launches.
    pub fn new(cuda: &Cuda, parts: Vec<PendingLaunch>) -> Result<Replay> {
        let context = cuda.context().clone();
        context.driver.graphs()?;
        let mut records = Vec::with_capacity(parts.len());
        let mut forms = Vec::new();
        for part in &parts {
            records.push(forms.len());
            forms.extend(part.launch.checked().cloned());
        }
        let findings = match forms.is_empty() {
            true => None,
            false => {
                cuda.streams().quiesce()?;
                Some(Arc::new(cuda.with_memory(|| GraphRecords::new(context.clone(), forms.clone()))?))
            }
        };
        let (graph, executable) = (ptr::null_mut(), ptr::null_mut());
        let mut replay = Replay {
            context,
            graph,
            executable,
            nodes: Vec::with_capacity(parts.len()),
            findings,
            records,
            distinct: Vec::new(),
        };
        cuda.with_memory(|| replay.make())?;
        parts.into_iter().try_for_each(|part| replay.add(cuda, part))?;
        cuda.with_memory(|| replay.instantiate())?;
        Ok(replay)
    }

    fn make(&mut self) -> Result<()> {
        let create = self.context.driver.graphs()?.create;
        let mut graph = ptr::null_mut();
        // SAFETY: `graph` outlives the call; flags must be 0.
        self.context.run(|| "making a graph".into(), |_| unsafe { create(&mut graph, 0) })?;
        self.graph = graph;
        Ok(())
    }

    fn add(&mut self, cuda: &Cuda, part: PendingLaunch) -> Result<()> {
        let add = self.context.driver.graphs()?.add_kernel;
        let PendingLaunch { mut launch, after } = part;
        self.report(self.nodes.len(), &mut launch);
        let after: Vec<_> = after.into_iter().map(|number| self.nodes[number].0).collect();
        let (mut node, mut pointers) = (ptr::null_mut(), launch.pointers());
        let parameters = launch.node(&mut pointers);
        cuda.with_memory(|| {
            self.context.run(
                || format!("adding to a graph: {}", launch.operation()),
                // SAFETY: the graph is alive, and `after` are its own nodes; the parameters outlive
                // the call, and the driver copies what they point to.
                |_| unsafe { add(&mut node, self.graph, after.as_ptr(), after.len(), &parameters) },
            )
        })?;
        if !self.distinct.iter().any(|known| self.nodes[*known].1.instance() == launch.instance()) {
            self.distinct.push(self.nodes.len());
        }
        self.nodes.push((node, launch));
        Ok(())
    }

    /// Makes the launch of node `number` write to the record of the node.
    fn report(&self, number: usize, launch: &mut DriverLaunch) {
        if let Some(findings) = &self.findings {
            launch.set_record(findings.record(self.records[number]));
        }
    }

    fn instantiate(&mut self) -> Result<()> {
        let instantiate = self.context.driver.graphs()?.instantiate;
        let mut executable = ptr::null_mut();
        let count = self.nodes.len();
        self.context.run(
            || format!("instantiating a graph of {count} launches"),
            // SAFETY: the graph is alive, `executable` outlives the call, and no other result is
            // requested.
            |_| unsafe { instantiate(&mut executable, self.graph, ptr::null_mut(), ptr::null_mut(), 0) },
        )?;
        self.executable = executable;
        Ok(())
    }

    /// Replaces node `number` by a launch of the same kernel, for subsequent replays.
    pub fn set(&mut self, cuda: &Cuda, number: usize, part: PendingLaunch) -> Result<()> {
        let set = self.context.driver.graphs()?.set_kernel;
        let mut launch = part.launch;
        self.report(number, &mut launch);
        let (node, mut pointers) = (self.nodes[number].0, launch.pointers());
        let parameters = launch.node(&mut pointers);
        cuda.with_memory(|| {
            self.context.run(
                || format!("changing a graph: {}", launch.operation()),
                // SAFETY: the node belongs to the executable, and both are alive; as in `add`.
                |_| unsafe { set(self.executable, node, &parameters) },
            )
        })?;
        self.nodes[number].1 = launch;
        Ok(())
    }

    /// Submits the graph as one operation with the memory accesses `used`.
    ///
    /// # Safety
    /// The memory of all arguments is alive. For these arguments the kernels are free of
    /// out-of-bounds accesses and races, unless they are the checked forms.
    pub unsafe fn submit(&mut self, cuda: &Cuda, stream: &CudaStream, used: &dyn Hazards) -> Result<()> {
        let launch = self.context.driver.graphs()?.launch;
        let mut state = stream.state();
        if let Some(findings) = &self.findings {
            stream.watch_graph(cuda.streams(), &mut state, findings)?;
        }
        let _submitting = self.findings.as_ref().map(|findings| findings.lock());
        self.distinct.iter().for_each(|number| self.nodes[*number].1.note(stream));
        let (executable, count) = (self.executable, self.nodes.len());
        let used = Reporting(used, self.findings.as_deref());
        cuda.with_memory(|| {
            // SAFETY: executable and stream are alive; the rest by the caller's promise.
            let replay = |_: &Driver, stream| unsafe { launch(executable, stream) };
            cuda.streams().submit_in(stream, &mut state, &used, StreamOperation::Replay { launches: count }, replay)
        })
    }
}

/// The accesses of a replay, including its records.
struct Reporting<'a>(&'a dyn Hazards, Option<&'a GraphRecords>);

impl Hazards for Reporting<'_> {
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()> {
        self.0.for_each_dependency(wait)?;
        self.1.map_or(Ok(()), |findings| findings.for_each_dependency(wait))
    }

    fn record_operation(&self, point: TimelinePoint) {
        self.0.record_operation(point);
        self.1.iter().for_each(|findings| findings.record_operation(point));
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        let Ok(graphs) = self.context.driver.graphs() else { return };
        let _ = self.context.run(
            || "ending a graph".into(),
            // SAFETY: both were created in `new`, if they are not null; the driver completes a
            // replay in flight first.
            |_| unsafe {
                if !self.executable.is_null() {
                    (graphs.executable_destroy)(self.executable);
                }
                if self.graph.is_null() { 0 } else { (graphs.destroy)(self.graph) }
            },
        );
    }
}
