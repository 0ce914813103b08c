//! Observation of a launch: an [`InstructionObserver`] sees every instruction that a warp executes,
//! with the addresses of accesses. A model of a GPU counts instructions, sectors and bank conflicts
//! this way.

use super::code::{Inst, InstructionKind, MemoryAccess, Window};
use super::launch::{Checks, Launch, Mismatch, Options, Outcome};
use super::machine::Machine;
use super::memory::{Lookup, window_base, window_of};
use super::program::Program;
use super::registers::LANES;
use super::slice::deciding;
use super::warp::Warp;
use std::sync::Arc;

/// Observer of a launch.
pub trait InstructionObserver {
    /// Records that a block begins.
    fn begin_block(&mut self);

    /// Records an instruction before a warp executes it.
    fn execute(&mut self, executed: &Executed);
}

/// An instruction that a warp executes.
#[derive(Clone, Copy, Debug)]
pub struct Executed {
    /// The line of the PTX text, counted from 1, if the module was read from text.
    pub line: Option<u32>,
    /// The lanes that execute the instruction, without those that its guard excludes.
    pub mask: u32,
    /// The access to memory, if the instruction makes one and has an active lane.
    pub access: Option<ObservedAccess>,
}

/// An access of a warp to memory.
#[derive(Clone, Copy, Debug)]
pub struct ObservedAccess {
    /// The state space.
    pub space: AccessSpace,
    /// The kind of the access.
    pub kind: ObservedAccessKind,
    /// Bytes for each lane.
    pub bytes: u32,
    /// Addresses of the lanes, unspecified for inactive lanes. Buffers do not overlap in the space
    /// of global addresses.
    pub addresses: [u64; LANES],
}

/// State space of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum AccessSpace {
    Global,
    Shared,
    Local,
    Constant,
}

/// Kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ObservedAccessKind {
    Load,
    Store,
    Atomic,
}

impl Program {
    /// Runs the given blocks of a launch, without checks, and passes every instruction to
    /// `observer`. `blocks` are linear indices; x varies fastest.
    ///
    /// Results that decide no address and no jump are not computed (`slice`). So memory does not
    /// have the results of the launch afterwards.
    ///
    /// # Errors
    /// Returns an error if the launch does not fit the entry.
    pub fn observe<'m>(
        &self,
        launch: Launch<'m>,
        blocks: impl Iterator<Item = u64>,
        observer: &'m mut (dyn InstructionObserver + 'm),
    ) -> Result<Outcome, Mismatch> {
        let Launch { grid, block, dynamic_shared, buffers, parameters, options } = launch;
        let mut globals = self.initial_globals();
        let all = self.place(&mut globals, buffers);
        let parameters = self.bind(block, &all, &parameters)?;
        let grid = super::Grid { grid, block, dynamic_shared };
        let setting = self.setting(grid, Lookup::Number, Arc::default(), parameters)?;
        let mut machine = Machine::new(self, &setting, all, Options { checks: Checks::Values, ..options });
        machine.observer = Some(observer);
        machine.deciding = self.deciding.get_or_init(|| deciding(&self.code));
        machine.run(blocks);
        Ok(machine.outcome(self.globals.len()))
    }
}

impl Machine<'_, '_> {
    /// Passes the instruction that a warp is about to execute to the observer.
    pub(super) fn observe(&mut self, warp: &Warp, inst: &Inst, mask: u32) {
        let line = self.program.code.sites[inst.site as usize].line;
        let Some(observer) = self.observer.as_deref_mut() else { return };
        let access = match &inst.kind {
            _ if mask == 0 => None,
            InstructionKind::Load(access) | InstructionKind::StrongLoad(access) => {
                Some((access, ObservedAccessKind::Load))
            }
            InstructionKind::Store(access) => Some((access, ObservedAccessKind::Store)),
            InstructionKind::Atomic(atomic) => Some((&atomic.access, ObservedAccessKind::Atomic)),
            InstructionKind::Copy(copy) => Some((&copy.from, ObservedAccessKind::Load)),
            _ => None,
        };
        let access = access.and_then(|(access, kind)| observed(access, kind, warp, mask));
        observer.execute(&Executed { line, mask, access });
    }
}

/// Returns the access that a warp makes; `None` for parameters.
fn observed(access: &MemoryAccess, kind: ObservedAccessKind, warp: &Warp, mask: u32) -> Option<ObservedAccess> {
    let addresses = access.addresses(&warp.registers);
    let first = addresses[mask.trailing_zeros() as usize % LANES];
    let window = match access.window {
        Window::Generic => window_of(first),
        window => window,
    };
    let space = match window {
        Window::Global | Window::Generic => AccessSpace::Global,
        Window::Shared => AccessSpace::Shared,
        Window::Local => AccessSpace::Local,
        Window::Const => AccessSpace::Constant,
        Window::Param => return None,
    };
    let base = if access.window == Window::Generic { window_base(window) } else { 0 };
    Some(ObservedAccess {
        space,
        kind,
        bytes: access.bytes() as u32,
        addresses: addresses.map(|a| a.wrapping_sub(base)),
    })
}
