//! The buffers of a graph, and the launches that use them.

use super::slot::{BASE, SlotId};
use crate::buffer::RawBuffer;
use crate::hazard::{self, Hazards, TimelinePoint};
use crate::{Device, DeviceBuffer, Error, Result, contract};
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::launch::Refusal;
use kernel_dsl::compiler::{ElementType, Scalar};
use kernel_dsl::launcher::{ArgumentMemory, ArgumentShape};
use kernel_dsl::{Argument, Artifact, Element, LaunchForm};
use std::sync::Arc;
use std::{fmt, ptr};

/// A buffer of a graph, which lives as long as the graph.
pub(super) struct SlotBuffer<'g> {
    held: GraphBuffer<'g>,
    pub element: ElementType,
    /// The length in bytes: a replacement must have the same length.
    pub bytes: usize,
    /// The address for which the launches were last prepared.
    bound: u64,
    /// The access of the launches to the buffer, if any.
    pub access: Option<AccessMode>,
}

/// The ways in which a graph has a buffer.
enum GraphBuffer<'g> {
    Own(RawBuffer),
    Exclusive(&'g mut RawBuffer),
    Borrowed(&'g RawBuffer),
    Shared(Arc<RawBuffer>),
}

/// The access of launches to a buffer. A launch that reads and writes counts as a write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum AccessMode {
    Read,
    Write,
}

impl<'g> SlotBuffer<'g> {
    /// Moves a buffer into the graph.
    pub fn own<T: Element>(buffer: DeviceBuffer<T>) -> SlotBuffer<'g> {
        SlotBuffer::new::<T>(GraphBuffer::Own(buffer.into_raw()))
    }

    /// Borrows a buffer exclusively, for launches to write.
    pub fn exclusive<T: Element>(buffer: &'g mut DeviceBuffer<T>) -> SlotBuffer<'g> {
        SlotBuffer::new::<T>(GraphBuffer::Exclusive(buffer.raw_mut()))
    }

    /// Borrows a buffer for launches to read.
    pub fn borrowed<T: Element>(buffer: &'g DeviceBuffer<T>) -> SlotBuffer<'g> {
        SlotBuffer::new::<T>(GraphBuffer::Borrowed(buffer.raw()))
    }

    /// Shares a buffer for launches to read.
    pub fn shared<T: Element>(buffer: Arc<DeviceBuffer<T>>) -> SlotBuffer<'g> {
        SlotBuffer::new::<T>(GraphBuffer::Shared(DeviceBuffer::shared_raw(buffer)))
    }

    fn new<T: Element>(held: GraphBuffer<'g>) -> SlotBuffer<'g> {
        let mut lent = SlotBuffer { held, element: T::TYPE, bytes: 0, bound: 0, access: None };
        (lent.bytes, lent.bound) = (lent.raw().bytes(), lent.raw().address());
        lent
    }

    pub fn raw(&self) -> &RawBuffer {
        match &self.held {
            GraphBuffer::Own(raw) => raw,
            GraphBuffer::Exclusive(raw) => raw,
            GraphBuffer::Borrowed(raw) => raw,
            GraphBuffer::Shared(raw) => raw,
        }
    }

    /// Returns the buffer for writing, if the graph has it exclusively.
    pub fn raw_mut(&mut self) -> Option<&mut RawBuffer> {
        match &mut self.held {
            GraphBuffer::Own(raw) => Some(raw),
            GraphBuffer::Exclusive(raw) => Some(raw),
            GraphBuffer::Borrowed(_) | GraphBuffer::Shared(_) => None,
        }
    }

    /// Returns whether the buffer's address has changed since the launches were prepared.
    pub fn has_moved(&self) -> bool {
        self.raw().address() != self.bound
    }

    /// Records that the launches were prepared for the current address.
    pub fn mark_prepared(&mut self) {
        self.bound = self.raw().address();
    }

    /// Returns whether launches may write the buffer.
    fn is_mutable(&self) -> bool {
        matches!(self.held, GraphBuffer::Own(_) | GraphBuffer::Exclusive(_))
    }
}

/// The accesses of all launches of a graph to its buffers, as one set.
pub(super) struct GraphAccesses<'a, 'g>(pub &'a [SlotBuffer<'g>]);

impl GraphAccesses<'_, '_> {
    fn uses(&self) -> impl Iterator<Item = hazard::BufferAccess<'_>> {
        self.0.iter().filter_map(|lent| match lent.access? {
            AccessMode::Read => Some(hazard::BufferAccess::Read(lent.raw().uses())),
            AccessMode::Write => Some(hazard::BufferAccess::Write(lent.raw().uses())),
        })
    }
}

impl Hazards for GraphAccesses<'_, '_> {
    fn for_each_dependency(&self, wait: &mut dyn FnMut(TimelinePoint) -> Result<()>) -> Result<()> {
        self.uses().try_for_each(|used| used.for_each_dependency(wait))
    }

    fn record_operation(&self, point: TimelinePoint) {
        self.uses().for_each(|used| used.record_operation(point));
    }
}

/// A launch of a graph.
#[derive(Clone)]
pub(super) struct GraphLaunch {
    pub kernel: &'static Artifact,
    pub constants: Vec<Constant>,
    pub block: Option<usize>,
    pub form: LaunchForm,
    pub arguments: Vec<RecordedArgument>,
}

/// An argument of a recorded launch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RecordedArgument {
    Scalar {
        ty: Scalar,
        bits: u64,
    },
    /// Elements of a slot, from a byte offset on.
    Memory {
        slot: usize,
        element: ElementType,
        offset: u64,
        shape: ArgumentShape,
        mutable: bool,
    },
}

impl GraphLaunch {
    /// Makes a launch from arguments whose memory lies in slots of `recording`.
    pub fn new(
        device: &Device,
        recording: u64,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        given: &[Argument<'_>],
    ) -> Result<GraphLaunch> {
        let program = device.instance(kernel, constants)?;
        let mut refusals = Vec::new();
        let mut arguments = Vec::new();
        for (index, argument) in given.iter().enumerate() {
            match RecordedArgument::new(recording, argument) {
                Some(argument) => arguments.push(argument),
                None => refusals.push(Refusal(format!(
                    "argument {}: its memory is not lent to this recording: lend it the buffer, and pass the slot",
                    contract::name(&program, index)
                ))),
            }
        }
        match refusals.is_empty() {
            true => Ok(GraphLaunch { kernel, constants: constants.to_vec(), block, form, arguments }),
            false => Err(Error::Refused { instance: program.instance_name(), refusals }),
        }
    }

    /// Returns whether both launches have the same kernel, instance and variant.
    pub fn is_like(&self, other: &GraphLaunch) -> bool {
        // A kernel may have two artifacts, in its type and in the registry, so names are compared.
        let name = |kernel: &Artifact| (kernel.module, kernel.name);
        let same = ptr::eq(self.kernel, other.kernel)
            || name(self.kernel) == name(other.kernel) && self.kernel.hir == other.kernel.hir;
        same && self.constants == other.constants && self.form == other.form
    }

    /// Returns the arguments for a launch on the device.
    ///
    /// # Safety
    /// While the arguments are used, the launch has the slots exclusively.
    pub unsafe fn arguments<'a>(&self, device: &Device, slots: &'a [SlotBuffer<'_>]) -> Vec<Argument<'a>> {
        let arguments = self.arguments.iter().map(|given| match given {
            RecordedArgument::Scalar { ty, bits } => Argument::Scalar { ty: *ty, bits: *bits },
            RecordedArgument::Memory { slot, element, offset, shape, mutable } => {
                let lent = &slots[*slot];
                let (address, mutable) = (lent.raw().address() + offset, *mutable && lent.is_mutable());
                // SAFETY: the shape was that of a view of the slot, whose length has not changed.
                // The graph has the buffer, exclusively if it is mutable; the caller guarantees the
                // rest. The tracker is the buffer's own.
                let memory = unsafe {
                    ArgumentMemory::new(*element, device.id(), address, shape.clone(), mutable)
                        .owned_by(lent.raw().uses())
                };
                Argument::Memory(memory)
            }
        });
        arguments.collect()
    }

    /// Returns the slots that the launch uses, with their access. `writes` states which arguments
    /// the launch writes.
    pub fn accesses(&self, writes: impl Fn(usize) -> bool) -> Vec<(usize, AccessMode)> {
        let slots = self.arguments.iter().enumerate().filter_map(|(index, given)| match given {
            RecordedArgument::Scalar { .. } => None,
            RecordedArgument::Memory { slot, .. } => {
                Some((*slot, if writes(index) { AccessMode::Write } else { AccessMode::Read }))
            }
        });
        slots.collect()
    }

    /// Returns the launch's slots in the order of its arguments.
    pub fn slots(&self) -> impl Iterator<Item = usize> + '_ {
        self.arguments.iter().filter_map(|given| match given {
            RecordedArgument::Scalar { .. } => None,
            RecordedArgument::Memory { slot, .. } => Some(*slot),
        })
    }
}

impl fmt::Display for GraphLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            LaunchForm::Checked => "a checked launch",
            LaunchForm::Unchecked => "an unchecked launch",
        };
        write!(f, "{form} of {}", self.kernel.instance_name(&self.constants))
    }
}

impl RecordedArgument {
    fn new(recording: u64, argument: &Argument<'_>) -> Option<RecordedArgument> {
        match argument {
            Argument::Scalar { ty, bits } => Some(RecordedArgument::Scalar { ty: *ty, bits: *bits }),
            Argument::Memory(memory) => {
                let id = SlotId::of(memory.device()).filter(|id| id.recording == recording)?;
                Some(RecordedArgument::Memory {
                    slot: id.slot,
                    element: memory.element(),
                    // A view without elements in a struct argument may have address 0.
                    offset: memory.address().saturating_sub(BASE),
                    shape: memory.shape().clone(),
                    mutable: memory.mutable(),
                })
            }
        }
    }
}
