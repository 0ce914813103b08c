//! Recording of launches.

use super::lent::{GraphLaunch, SlotBuffer};
use super::slot::{MAX_SLOTS, Slot, SlotId, SlotMut};
use super::{Graph, Node};
use crate::{Device, DeviceBuffer, Error, Result};
use kernel_dsl::compiler::ElementType;
use kernel_dsl::compiler::hir::Constant;
use kernel_dsl::compiler::launch::Refusal;
use kernel_dsl::{Argument, Artifact, Call, Element, LaunchForm, Launcher};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A graph under construction: a launcher that records launches without running them.
///
/// The caller lends buffers to the recording, for `'g` or permanently, and launches take them as
/// [`Slot`]s. Each launch is checked against its kernel's contract when it is recorded.
pub struct Recording<'g> {
    device: Device,
    number: u64,
    slots: RefCell<Vec<SlotBuffer<'g>>>,
    launches: RefCell<Vec<GraphLaunch>>,
}

impl Device {
    /// Starts a recording of launches for this device.
    pub fn record<'g>(&self) -> Recording<'g> {
        /// The number of the next recording. Numbers repeat after 2³⁹ recordings.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % (1 << 39);
        Recording { device: self.clone(), number, slots: RefCell::default(), launches: RefCell::default() }
    }
}

impl<'g> Recording<'g> {
    /// Moves a buffer into the graph. [`Graph::buffer`] and [`Graph::buffer_mut`] give access to
    /// it.
    ///
    /// # Errors
    /// If the buffer belongs to another device, or the recording has the maximum number of buffers.
    pub fn own<T: Element>(&self, buffer: DeviceBuffer<T>) -> Result<SlotMut<T>> {
        let len = buffer.len();
        Ok(SlotMut::new(self.add_slot(SlotBuffer::own(buffer))?, len))
    }

    /// Borrows a buffer for the graph's lifetime. The graph's launches may read and write the
    /// buffer.
    ///
    /// # Errors
    /// Returns the errors of [`own`](Recording::own).
    pub fn lend<T: Element>(&self, buffer: &'g mut DeviceBuffer<T>) -> Result<SlotMut<T>> {
        let len = buffer.len();
        Ok(SlotMut::new(self.add_slot(SlotBuffer::exclusive(buffer))?, len))
    }

    /// Borrows a buffer for the graph's lifetime. The graph's launches may read the buffer, as
    /// other code may.
    ///
    /// # Errors
    /// Returns the errors of [`own`](Recording::own).
    pub fn borrow<T: Element>(&self, buffer: &'g DeviceBuffer<T>) -> Result<Slot<T>> {
        Ok(Slot::new(self.add_slot(SlotBuffer::borrowed(buffer))?, buffer.len()))
    }

    /// Shares a buffer with several owners, such as the weights of a model used by several graphs.
    /// The graph's launches may read the buffer.
    ///
    /// # Errors
    /// Returns the errors of [`own`](Recording::own).
    pub fn share<T: Element>(&self, buffer: Arc<DeviceBuffer<T>>) -> Result<Slot<T>> {
        let len = buffer.len();
        Ok(Slot::new(self.add_slot(SlotBuffer::shared(buffer))?, len))
    }

    /// Records a launch with every access checked. The node identifies the launch for later changes
    /// of its arguments.
    ///
    /// # Errors
    /// If the arguments violate the kernel's contract, have memory outside slots of this recording,
    /// or the kernel is cooperative.
    pub fn add(&self, call: Call<'_>) -> Result<Node> {
        self.note(LaunchForm::Checked, call.kernel(), call.constants(), call.block(), call.arguments())
    }

    /// Records a launch of the kernel's unchecked PTX.
    ///
    /// # Safety
    /// At every replay the kernel must be free of out-of-bounds accesses and races for these
    /// arguments.
    ///
    /// # Errors
    /// Returns the errors of [`add`](Recording::add).
    pub unsafe fn add_unchecked(&self, call: Call<'_>) -> Result<Node> {
        self.note(LaunchForm::Unchecked, call.kernel(), call.constants(), call.block(), call.arguments())
    }

    /// Builds the graph of all recorded launches.
    ///
    /// # Errors
    /// If a kernel cannot be loaded, or the driver lacks graphs (before CUDA 10.1).
    pub fn finish(self) -> Result<Graph<'g>> {
        Graph::new(self.device, self.number, self.slots.into_inner(), self.launches.into_inner())
    }

    fn add_slot(&self, lent: SlotBuffer<'g>) -> Result<SlotId> {
        if lent.raw().device().id() != self.device.id() {
            return Err(Error::OtherDevice {
                item: "the buffer",
                found: lent.raw().device().to_string(),
                stream: self.device.to_string(),
            });
        }
        let mut slots = self.slots.borrow_mut();
        if slots.len() == MAX_SLOTS {
            return Err(Error::TooManySlots { most: MAX_SLOTS });
        }
        slots.push(lent);
        Ok(SlotId { recording: self.number, slot: slots.len() - 1 })
    }

    /// Returns the device of the graph.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns element type and bytes of a slot of this recording.
    pub(super) fn slot(&self, id: SlotId) -> Result<(ElementType, usize)> {
        let slots = self.slots.borrow();
        let lent = slots.get(id.slot).filter(|_| id.recording == self.number);
        lent.map(|lent| (lent.element, lent.bytes)).ok_or(Error::OtherGraph { item: "the slot" })
    }

    fn note(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<Node> {
        self.push(GraphLaunch::new(&self.device, self.number, form, kernel, constants, block, arguments)?)
    }

    /// Adds a launch, if it fits its kernel's contract.
    pub(super) fn push(&self, launch: GraphLaunch) -> Result<Node> {
        let slots = self.slots.borrow();
        // SAFETY: the arguments are inspected, and not used for an access.
        let arguments = unsafe { launch.arguments(&self.device, &slots) };
        self.device.validated(launch.kernel, &launch.constants, launch.block, &arguments, |program, validated| {
            if !validated.is_cooperative() {
                return Ok(());
            }
            let why = "the kernel is cooperative, and a graph holds no cooperative launches: launch it on a stream";
            Err(Error::Refused { instance: program.instance_name(), refusals: vec![Refusal(why.into())] })
        })?;
        drop(arguments);
        let mut launches = self.launches.borrow_mut();
        launches.push(launch);
        Ok(Node { recording: self.number, index: launches.len() - 1 })
    }
}

/// Records launches of slots. Nothing runs; a violation is reported by the wait after a replay.
impl Launcher for Recording<'_> {
    type Error = Error;

    /// Records a launch. [`Recording::add`] returns its node as well.
    ///
    /// # Safety
    /// For the unchecked form, the requirements of [`Recording::add_unchecked`] apply.
    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        self.note(form, kernel, constants, block, arguments).map(|_| ())
    }
}

impl fmt::Debug for Recording<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (launches, slots) = (self.launches.borrow().len(), self.slots.borrow().len());
        write!(f, "Recording({launches} launches, {slots} slots for {})", self.device)
    }
}
