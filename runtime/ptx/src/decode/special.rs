//! Special registers, which the hardware sets.

use super::super::code::{NO_DRIVER, Special};
use super::super::registers::RegisterPlace;
use super::operand::OperandLocation;
use super::{Decoded, Decoder, Result};
use crate::code::InstructionKind;
use kernel_dsl_compiler::ptx::SpecialRegister;
use smallvec::smallvec;

/// Returns the contents of a special register, if they are known and constant in a block.
fn known(register: SpecialRegister) -> Option<Special> {
    use SpecialRegister::*;
    Some(match register {
        TidX => Special::Thread(0),
        TidY => Special::Thread(1),
        TidZ => Special::Thread(2),
        NtidX => Special::Threads(0),
        NtidY => Special::Threads(1),
        NtidZ => Special::Threads(2),
        CtaidX => Special::Block(0),
        CtaidY => Special::Block(1),
        CtaidZ => Special::Block(2),
        NctaidX => Special::Blocks(0),
        NctaidY => Special::Blocks(1),
        NctaidZ => Special::Blocks(2),
        LaneId => Special::Lane,
        WarpId => Special::Warp,
        NwarpId => Special::Warps,
        // There is one multiprocessor and one grid.
        SmId | GridId => Special::Constant(0),
        // The whole shared memory is available to the kernel, and the launch is not part of a
        // graph.
        ReservedSmemBegin | ReservedSmemEnd | ReservedSmemCap | ReservedSmem0 | ReservedSmem1 | CurrentGraphExec => {
            Special::Constant(0)
        }
        NsmId => Special::Constant(1),
        LanemaskEq => Special::LanesEqual,
        LanemaskLt => Special::LanesBelow { inclusive: false },
        LanemaskLe => Special::LanesBelow { inclusive: true },
        LanemaskGt => Special::LanesAbove { inclusive: false },
        LanemaskGe => Special::LanesAbove { inclusive: true },
        DynamicSmemSize => Special::DynamicShared,
        TotalSmemSize => Special::TotalShared,
        _ => return None,
    })
}

/// Returns the reason why the contents of a special register cannot be known; `None` if they can.
fn unknown_reason(register: SpecialRegister) -> Option<&'static str> {
    use SpecialRegister::*;
    match register {
        Pm0 | Pm0Wide | Pm1 | Pm1Wide | Pm2 | Pm2Wide | Pm3 | Pm3Wide | Pm4 | Pm4Wide | Pm5 | Pm5Wide | Pm6
        | Pm6Wide | Pm7 | Pm7Wide => Some("it counts events for a profiler, and there is none"),
        Envreg0 | Envreg3 | Envreg4 | Envreg5 | Envreg6 | Envreg7 | Envreg8 | Envreg9 | Envreg10 | Envreg11
        | Envreg12 | Envreg13 | Envreg14 | Envreg15 | Envreg16 | Envreg17 | Envreg18 | Envreg19 | Envreg20
        | Envreg21 | Envreg22 | Envreg23 | Envreg24 | Envreg25 | Envreg26 | Envreg27 | Envreg28 | Envreg29
        | Envreg30 | Envreg31 => Some(NO_DRIVER),
        _ => None,
    }
}

/// Returns whether a register is the upper half of the address of the grid's workspace, or `None`
/// for other registers.
fn workspace(register: SpecialRegister) -> Option<bool> {
    match register {
        SpecialRegister::Envreg1 => Some(true),
        SpecialRegister::Envreg2 => Some(false),
        _ => None,
    }
}

/// Returns whether a register is the upper half of a clock, or `None` for other registers.
fn clock(register: SpecialRegister) -> Option<bool> {
    use SpecialRegister::*;
    match register {
        Clock | Clock64 | GlobalTimer | GlobalTimerLo => Some(false),
        ClockHi | GlobalTimerHi => Some(true),
        _ => None,
    }
}

impl<'m> Decoder<'m> {
    /// Returns a special register as an operand.
    pub(super) fn special(&mut self, register: SpecialRegister) -> Result<OperandLocation> {
        if let Some(known) = self.specials.get(&register) {
            return Ok(*known);
        }
        let Some(special) = known(register) else {
            return Err(format!("the interpreter has no `{register}`"));
        };
        let source = self.fresh(register.ty().bits());
        self.code.specials.push((source.place, source.id, special));
        self.specials.insert(register, source);
        Ok(source)
    }

    /// Returns a register with the value of a special register at this instruction.
    pub(super) fn read_special(&mut self, register: SpecialRegister) -> Result<OperandLocation> {
        let to = self.fresh(register.ty().bits());
        let Some(decoded) = self.reading(to, register) else { return self.special(register) };
        let site = self.site;
        self.push(None, decoded, site);
        Ok(to)
    }

    /// Returns an instruction that reads a special register, if its value is not constant in a
    /// block.
    pub(super) fn reading(&mut self, to: OperandLocation, register: SpecialRegister) -> Option<Decoded> {
        if let Some(high) = clock(register) {
            return Some(self.read_clock(to, high));
        }
        if let Some(high) = workspace(register) {
            let kind = InstructionKind::Workspace { to: to.place, high };
            return Some(Decoded { kind, reads: smallvec![], writes: smallvec![to.id] });
        }
        unknown_reason(register).map(|reason| self.partial(to, &[], reason, |_| (0, false)))
    }

    /// Returns an instruction that reads a clock.
    fn read_clock(&mut self, to: OperandLocation, high: bool) -> Decoded {
        let place: RegisterPlace = to.place;
        Decoded { kind: InstructionKind::Clock { to: place, high }, reads: smallvec![], writes: smallvec![to.id] }
    }
}
