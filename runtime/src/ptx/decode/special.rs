//! Registers that the hardware sets.

use super::super::code::Special;
use super::super::registers::Place;
use super::operand::Source;
use super::{Decoded, Decoder, Result};
use crate::ptx::code::Kind;
use kernel_dsl::compiler::ptx::SpecialRegister;
use smallvec::smallvec;

/// What a special register holds, if the interpreter has it.
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
        // One multiprocessor does it all, one grid.
        SmId | GridId => Special::Constant(0),
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

/// A clock: whether its upper half is meant.
pub(super) fn clock(register: SpecialRegister) -> Option<bool> {
    use SpecialRegister::*;
    match register {
        Clock | Clock64 | GlobalTimer | GlobalTimerLo => Some(false),
        ClockHi | GlobalTimerHi => Some(true),
        _ => None,
    }
}

impl<'m> Decoder<'m> {
    /// A special register as an operand.
    pub(super) fn special(&mut self, register: SpecialRegister) -> Result<Source> {
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

    /// A reading of a clock.
    pub(super) fn read_clock(&mut self, to: Source, high: bool) -> Decoded {
        let place: Place = to.place;
        Decoded { kind: Kind::Clock { to: place, high }, reads: smallvec![], writes: smallvec![to.id] }
    }
}
