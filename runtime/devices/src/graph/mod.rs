//! Graphs: many launches in one, recorded once and replayed by one driver call.
//!
//! ```text
//! Device::record ─▶ Recording ─ buffers lent: Slot, SlotMut ─▶ launches ─ finish ─▶ Graph ─ replay on a stream, again and again
//!                                                                                      └─ update a launch's arguments, exchange a buffer
//! ```
//!
//! A launch borrows its arguments during submission; a graph keeps them for its lifetime. Buffers
//! are therefore lent to a recording once, and launches take slots for them. Slots are `Copy`, and
//! represent a buffer as input and output alike. Only launches of the same recording accept a slot.
//!
//! [`slot`] defines the slots, [`lent`] the buffers and launches behind them, [`recording`] the
//! launcher that records, [`file`] the serialized form.

mod file;
mod lent;
mod recording;
mod slot;

pub use recording::Recording;
pub use slot::{AnySlot, Slot, SlotMut};

use crate::contract::ValidatedArgs;
use crate::cuda::{Cuda, PendingLaunch, Replay};
use crate::device::Backend;
use crate::profile::ProfiledWork;
use crate::stream::{OperationQueue, Stream};
use crate::{Device, DeviceBuffer, Error, Result};
use kernel_dsl::{Call, Element, LaunchForm, Launcher};
use lent::{AccessMode, GraphAccesses, GraphLaunch, SlotBuffer};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A group of launches that are replayed as one, with the buffers that they use.
///
/// On a GPU a replay is one driver call and allocates nothing; launches without common memory may
/// run concurrently. On the CPU they run one after another. On a stream a replay is one operation,
/// ordered by its buffers like any launch.
///
/// Between replays a launch's arguments may change ([`update`](Graph::update)), and the buffer in a
/// slot may be exchanged for another of equal length ([`buffer_mut`](Graph::buffer_mut)).
///
/// ```
/// use kernel_dsl::prelude::*;
///
/// /// y ← y + a·x
/// #[kernel(block = 32, grid = y.len().div_ceil(32))]
/// #[requires(x.len() == y.len())]
/// fn add(a: f32, x: &[f32], y: &mut [f32]) {
///     let i = grid::index();
///     if i < y.len() {
///         y[i] += a * x[i];
///     }
/// }
///
/// fn main() -> runtime::Result<()> {
///     let device = runtime::Device::cpu();
///     let weights = device.upload(&[1.0f32, 2.0])?;
///
///     let recording = device.record();
///     let (w, x, y) = (recording.borrow(&weights)?, recording.own(device.zeros(2)?)?, recording.own(device.zeros(2)?)?);
///     let first = recording.add(add::call(1.0, w, x))?;
///     add::launch(&recording, 1.0, x, y)?;
///     let mut graph = recording.finish()?;
///
///     let stream = device.stream()?;
///     graph.replay(&stream)?;
///     graph.update(first, add::call(3.0, w, x))?;
///     graph.replay(&stream)?;
///     stream.wait()?;
///     assert_eq!(graph.buffer(x)?.download()?, [4.0, 8.0]);
///     assert_eq!(graph.buffer(y)?.download()?, [5.0, 10.0]);
///     Ok(())
/// }
/// ```
pub struct Graph<'g> {
    device: Device,
    recording: u64,
    /// Declared first, so that the driver's graph is dropped before the buffers.
    made: GraphBackend,
    launches: Vec<GraphLaunch>,
    slots: Vec<SlotBuffer<'g>>,
}

/// The device's form of the graph.
enum GraphBackend {
    /// The launches, one by one.
    Cpu,
    Cuda(Arc<Cuda>, OnGpu),
}

/// The driver's form of a graph.
struct OnGpu {
    /// The driver's graph; `None` if no launch has blocks to run.
    replay: Option<Replay>,
    /// The number of each launch's node, if the launch has blocks to run.
    nodes: Vec<Option<usize>>,
    /// Set when a launch gains or loses its blocks, and the graph must be rebuilt.
    stale: bool,
}

/// The identity of a recorded launch, by which its arguments can be changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    recording: u64,
    index: usize,
}

impl<'g> Graph<'g> {
    fn new(
        device: Device,
        recording: u64,
        slots: Vec<SlotBuffer<'g>>,
        launches: Vec<GraphLaunch>,
    ) -> Result<Graph<'g>> {
        let made = match device.backend() {
            Backend::Cpu(_) => GraphBackend::Cpu,
            Backend::Cuda(cuda) => {
                GraphBackend::Cuda(cuda.clone(), OnGpu { replay: None, nodes: Vec::new(), stale: true })
            }
        };
        let mut graph = Graph { device, recording, made, launches, slots };
        graph.note_accesses()?;
        graph.refresh()?;
        Ok(graph)
    }

    /// Returns the device of the graph.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the number of launches.
    pub fn len(&self) -> usize {
        self.launches.len()
    }

    /// Returns whether there are no launches.
    pub fn is_empty(&self) -> bool {
        self.launches.is_empty()
    }

    /// Returns the buffer in a slot.
    ///
    /// # Errors
    /// If the slot belongs to another graph.
    pub fn buffer<T: Element>(&self, slot: impl Into<Slot<T>>) -> Result<&DeviceBuffer<T>> {
        let slot = self.place(slot.into().id)?;
        // SAFETY: the slot was made of a `DeviceBuffer<T>`.
        Ok(unsafe { DeviceBuffer::of_raw(self.slots[slot].raw()) })
    }

    /// Returns the buffer in a slot for writing, or for exchange with another buffer of equal
    /// length. The next replay uses the new buffer.
    ///
    /// # Errors
    /// If the slot belongs to another graph.
    pub fn buffer_mut<T: Element>(&mut self, slot: SlotMut<T>) -> Result<&mut DeviceBuffer<T>> {
        let slot = self.place(slot.id)?;
        let raw = self.slots[slot].raw_mut().ok_or(Error::OtherGraph { item: "the slot" })?;
        // SAFETY: as above.
        Ok(unsafe { DeviceBuffer::of_raw_mut(raw) })
    }

    /// Changes the arguments of a launch for later replays, after checking them against the
    /// kernel's contract. Kernel, instance and variant stay the same.
    ///
    /// # Errors
    /// If the arguments violate the contract, the call has another kernel, or the node or a slot
    /// belongs to another recording. The graph then stays unchanged. An unchecked launch is
    /// rejected too: use [`update_unchecked`](Graph::update_unchecked).
    pub fn update(&mut self, node: Node, call: Call<'_>) -> Result<()> {
        self.change(node, call, LaunchForm::Checked)
    }

    /// Changes the arguments of an unchecked launch.
    ///
    /// # Safety
    /// At every replay the kernel must be free of out-of-bounds accesses and races for these
    /// arguments.
    ///
    /// # Errors
    /// Returns the errors of [`update`](Graph::update), except that unchecked launches are
    /// accepted.
    pub unsafe fn update_unchecked(&mut self, node: Node, call: Call<'_>) -> Result<()> {
        self.change(node, call, LaunchForm::Unchecked)
    }

    fn change(&mut self, node: Node, call: Call<'_>, form: LaunchForm) -> Result<()> {
        if node.recording != self.recording {
            return Err(Error::OtherGraph { item: "the node" });
        }
        let launch = GraphLaunch::new(
            &self.device,
            self.recording,
            form,
            call.kernel(),
            call.constants(),
            call.block(),
            call.arguments(),
        )?;
        let old = &self.launches[node.index];
        if !launch.is_like(old) {
            return Err(Error::OtherKernel { given: launch.to_string(), recorded: old.to_string() });
        }
        self.bind()?;
        let old = std::mem::replace(&mut self.launches[node.index], launch);
        if let Err(why) = self.update_launch(node.index) {
            self.launches[node.index] = old;
            return Err(why);
        }
        if !self.launches[node.index].slots().eq(old.slots()) {
            // The dependencies have changed.
            self.invalidate();
            self.note_accesses()?;
        }
        Ok(())
    }

    /// Submits all launches as one operation of the stream. A violation found by a checked launch
    /// is the error of the next wait for the stream.
    ///
    /// # Errors
    /// If the stream belongs to another device. If a buffer in a slot belongs to another device, or
    /// its length differs from the recorded one.
    pub fn replay(&mut self, stream: &Stream) -> Result<()> {
        stream.same_device(&self.device, "the graph")?;
        self.bind()?;
        self.refresh()?;
        match (&mut self.made, stream.queue()) {
            (GraphBackend::Cuda(_, on_gpu), OperationQueue::Cuda(cuda, stream)) => match &mut on_gpu.replay {
                None => Ok(()),
                // SAFETY: the graph has the buffers, and their accesses are tracked for a later
                // free. The launches were validated for these addresses; the caller that recorded
                // an unchecked launch guaranteed the rest.
                Some(replay) => unsafe { replay.submit(cuda, stream, &GraphAccesses(&self.slots)) },
            },
            _ => {
                let all = || {
                    self.launches.iter().try_for_each(|launch| {
                        // SAFETY: the launch runs to its end here, and `self` is exclusive.
                        let arguments = unsafe { launch.arguments(&self.device, &self.slots) };
                        // SAFETY: on the CPU both forms are checked.
                        stream.defer_violation(unsafe {
                            self.device.submit(launch.form, launch.kernel, &launch.constants, launch.block, &arguments)
                        })
                    })
                };
                stream.recording().time(|| ProfiledWork::Graph { launches: self.launches.len() }, all)
            }
        }
    }

    /// Returns the index of the slot.
    fn place(&self, id: slot::SlotId) -> Result<usize> {
        match id.recording == self.recording && id.slot < self.slots.len() {
            true => Ok(id.slot),
            false => Err(Error::OtherGraph { item: "the slot" }),
        }
    }

    /// Prepares the launches whose buffers have been exchanged once more, for the new addresses.
    fn bind(&mut self) -> Result<()> {
        let home = self.device.id();
        let there = |lent: &SlotBuffer| lent.raw().device().id() == home && lent.raw().bytes() == lent.bytes;
        if self.slots.iter().all(|lent| there(lent) && !lent.has_moved()) {
            return Ok(());
        }
        if let Some((slot, lent)) = self.slots.iter().enumerate().find(|(_, lent)| !there(lent)) {
            let (raw, recorded) = (lent.raw(), lent.bytes);
            return Err(match raw.device().id() == home {
                true => Error::SlotLength { slot, recorded, found: raw.bytes() },
                false => Error::OtherDevice {
                    item: "a buffer of the graph",
                    found: raw.device().to_string(),
                    stream: self.device.to_string(),
                },
            });
        }
        let moved = |launch: &GraphLaunch| launch.slots().any(|slot| self.slots[slot].has_moved());
        let moved: Vec<_> = (0..self.launches.len()).filter(|index| moved(&self.launches[*index])).collect();
        if let Err(why) = moved.into_iter().try_for_each(|index| self.update_launch(index)) {
            // After the failure, some launches have the new addresses and others the old ones.
            self.invalidate();
            return Err(why);
        }
        self.slots.iter_mut().for_each(SlotBuffer::mark_prepared);
        Ok(())
    }

    /// Marks the driver's graph as stale, so that it is rebuilt before the next replay.
    fn invalidate(&mut self) {
        if let GraphBackend::Cuda(_, on_gpu) = &mut self.made {
            on_gpu.stale = true;
        }
    }

    /// Checks a launch against its kernel's contract, and updates its node in the driver's graph.
    fn update_launch(&mut self, index: usize) -> Result<()> {
        let launch = &self.launches[index];
        // SAFETY: the arguments are inspected, and not used for an access.
        let arguments = unsafe { launch.arguments(&self.device, &self.slots) };
        let part = self.device.validated(
            launch.kernel,
            &launch.constants,
            launch.block,
            &arguments,
            |program, validated| match &self.made {
                GraphBackend::Cpu => Ok(None),
                GraphBackend::Cuda(cuda, _) => {
                    PendingLaunch::new(cuda, launch.form, launch.kernel, program, validated, Vec::new()).map(Some)
                }
            },
        )?;
        if let GraphBackend::Cuda(cuda, on_gpu) = &mut self.made {
            match (part, on_gpu.nodes.get(index).copied().flatten(), &mut on_gpu.replay) {
                _ if on_gpu.stale => {}
                (Some(part), Some(node), Some(replay)) => {
                    let set = replay.set(cuda, node, part);
                    on_gpu.stale |= set.is_err();
                    set?;
                }
                (None, None, _) => {}
                _ => on_gpu.stale = true,
            }
        }
        Ok(())
    }

    /// Records which slots the launches read and write.
    fn note_accesses(&mut self) -> Result<()> {
        self.slots.iter_mut().for_each(|lent| lent.access = None);
        for index in 0..self.launches.len() {
            for (slot, access) in self.accesses(index)? {
                let lent = &mut self.slots[slot];
                lent.access = lent.access.max(Some(access));
            }
        }
        Ok(())
    }

    fn accesses(&self, index: usize) -> Result<Vec<(usize, AccessMode)>> {
        let launch = &self.launches[index];
        let program = self.device.instance(launch.kernel, &launch.constants)?;
        Ok(launch.accesses(|argument| program.writes().get(argument).copied().unwrap_or(false)))
    }

    /// Makes the driver's graph, unless the present one matches the launches.
    fn refresh(&mut self) -> Result<()> {
        let GraphBackend::Cuda(cuda, on_gpu) = &self.made else { return Ok(()) };
        if !on_gpu.stale {
            return Ok(());
        }
        let mut order = LaunchOrder::default();
        let (mut parts, mut nodes) = (Vec::new(), Vec::new());
        for (index, launch) in self.launches.iter().enumerate() {
            // SAFETY: the arguments are inspected, and not used for an access.
            let arguments = unsafe { launch.arguments(&self.device, &self.slots) };
            let accesses = self.accesses(index)?;
            let made = |program: &_, validated: &ValidatedArgs<'_, '_>| {
                let after = order.add(parts.len(), &accesses);
                PendingLaunch::new(cuda, launch.form, launch.kernel, program, validated, after).map(Some)
            };
            let part = self.device.validated(launch.kernel, &launch.constants, launch.block, &arguments, made)?;
            nodes.push(part.is_some().then_some(parts.len()));
            parts.extend(part);
        }
        let replay = if parts.is_empty() { None } else { Some(Replay::new(cuda, parts)?) };
        if let GraphBackend::Cuda(_, on_gpu) = &mut self.made {
            *on_gpu = OnGpu { replay, nodes, stale: false };
        }
        Ok(())
    }
}

/// The dependencies between launches, derived from their slots.
#[derive(Default)]
struct LaunchOrder {
    /// The last launch that wrote each slot, and the launches that have read it since.
    slots: BTreeMap<usize, (Option<usize>, Vec<usize>)>,
}

impl LaunchOrder {
    /// Returns the launches that launch `number` depends on.
    fn add(&mut self, number: usize, accesses: &[(usize, AccessMode)]) -> Vec<usize> {
        let mut after = Vec::new();
        for (slot, access) in accesses {
            let (written, read) = self.slots.entry(*slot).or_default();
            after.extend(*written);
            match access {
                AccessMode::Read => {}
                AccessMode::Write => after.extend(read.iter()),
            }
        }
        for (slot, access) in accesses {
            let (written, read) = self.slots.entry(*slot).or_default();
            match access {
                AccessMode::Read => read.push(number),
                AccessMode::Write => (*written, *read) = (Some(number), Vec::new()),
            }
        }
        after.sort_unstable();
        after.dedup();
        // A launch that both reads and writes a slot does not depend on itself.
        after.retain(|other| *other != number);
        after
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} launches, {} slots on {})", self.launches.len(), self.slots.len(), self.device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AccessMode::{Read, Write};

    #[test]
    fn launches_depend_on_conflicting_launches() {
        let mut order = LaunchOrder::default();
        assert_eq!(order.add(0, &[(0, Read), (1, Write)]), [0usize; 0]);
        assert_eq!(order.add(1, &[(0, Read), (2, Write)]), [0usize; 0], "both only read slot 0");
        assert_eq!(order.add(2, &[(1, Read), (2, Read), (3, Write)]), [0, 1]);
        assert_eq!(order.add(3, &[(0, Write)]), [0, 1], "what it overwrites was read");
        assert_eq!(order.add(4, &[(3, Read), (3, Write)]), [2], "parts of one slot");
        assert_eq!(order.add(5, &[(3, Read)]), [4]);
    }
}
