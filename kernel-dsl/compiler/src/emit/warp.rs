//! Warp operations and fences. All 32 lanes take part in a warp operation, so the member mask is
//! full.

use super::{Emitter, scalar_type};
use crate::ir::{Binary, FenceScope, Shuffle, Value, Vote};
use crate::ptx::{self, Modifier, Opcode, Operand};
use crate::target::Target;

/// The mask of all lanes.
pub(super) const ALL_LANES: Operand = Operand::Bits(0xffff_ffff);

impl Emitter<'_> {
    pub(super) fn shuffle(&mut self, result: Value, mode: Shuffle, value: Value, selector: Value, width: u32) {
        if !matches!(width, 2 | 4 | 8 | 16 | 32) {
            return self.malformed("a shuffle whose width is not a power of two up to 32");
        }
        let how = match mode {
            Shuffle::Index | Shuffle::Broadcast => Modifier::Idx,
            Shuffle::Xor => Modifier::Bfly,
            Shuffle::Up => Modifier::Up,
            Shuffle::Down => Modifier::Down,
        };
        // The lane-index bits that select the segment, and the last lane of the segment that may be
        // read.
        let segment = u64::from(32 - width) << 8 | if mode == Shuffle::Up { 0 } else { 31 };
        let selector = match (mode, self.operand(selector)) {
            // The hardware uses the low five bits of a distance. A distance of 32 becomes 0, so the
            // lane reads itself. Any distance beyond the segment has this effect too.
            (Shuffle::Up | Shuffle::Down, Operand::Integer(n)) => Operand::Integer(n.min(32)),
            (Shuffle::Up | Shuffle::Down, distance) => {
                let capped = self.register(ptx::Type::U32);
                self.op(Opcode::Min, [Modifier::U32], [capped.into(), distance, Operand::Integer(32)]);
                capped.into()
            }
            (_, selector) => selector,
        };
        let trade = |e: &mut Self, to: Operand, from: Operand| {
            e.op(
                Opcode::Shfl,
                [Modifier::Sync, how, Modifier::B32],
                [to, from, selector.clone(), Operand::Bits(segment), ALL_LANES],
            );
        };
        let Some(s) = self.scalar(value) else { return };
        if s == crate::scalar::Scalar::Bool {
            return self.malformed("a shuffle of `bool`");
        }
        let value = self.operand(value);
        if s.bits() != 64 {
            let d = self.define(result);
            return trade(self, d.into(), value);
        }
        let mut halves = || [0, 1].map(|_| Operand::Register(self.builder.register(ptx::Type::U32)));
        let (own, other) = (halves(), halves());
        self.op(Opcode::Mov, [Modifier::B64], [Operand::Vector(own.to_vec()), value]);
        for (from, to) in own.into_iter().zip(&other) {
            trade(self, to.clone(), from);
        }
        let d = self.define(result);
        self.op(Opcode::Mov, [Modifier::B64], [d.into(), Operand::Vector(other.to_vec())]);
    }

    pub(super) fn vote(&mut self, result: Value, mode: Vote, value: Value) {
        let (how, ty) = match mode {
            Vote::Ballot => (Modifier::Ballot, Modifier::B32),
            Vote::All => (Modifier::All, Modifier::Pred),
            Vote::Any => (Modifier::Any, Modifier::Pred),
        };
        let (value, d) = (self.operand(value), self.define(result));
        self.op(Opcode::Vote, [Modifier::Sync, how, ty], [d.into(), value, ALL_LANES]);
    }

    pub(super) fn matching(&mut self, result: Value, value: Value) {
        let Some(s) = self.scalar(value) else { return };
        let bits = if s.bits() == 64 { Modifier::B64 } else { Modifier::B32 };
        let (value, d) = (self.operand(value), self.define(result));
        self.op(Opcode::Match, [Modifier::Any, Modifier::Sync, bits], [d.into(), value, ALL_LANES]);
    }

    pub(super) fn reduce(&mut self, result: Value, operation: Binary, value: Value) {
        let Some(s) = self.scalar(value) else { return };
        let how = match operation {
            Binary::Add => Modifier::Add,
            Binary::Min => Modifier::Min,
            Binary::Max => Modifier::Max,
            _ => return self.malformed("a reduction that is not a sum, minimum or maximum"),
        };
        let ty = scalar_type(s).modifier();
        let (value, d) = (self.operand(value), self.define(result));
        self.op(Opcode::Redux, [Modifier::Sync, how, ty], [d.into(), value, ALL_LANES]);
    }

    /// Emits `fence`; before sm_70, which lacks `fence`, emits `membar`, which orders more.
    pub(super) fn fence(&mut self, scope: FenceScope) {
        if self.kernel.target < Target::SM_70 {
            let level = match scope {
                FenceScope::Block => Modifier::Cta,
                FenceScope::Grid => Modifier::Gl,
                FenceScope::System => Modifier::Sys,
            };
            return self.op(Opcode::Membar, [level], []);
        }
        let scope = match scope {
            FenceScope::Block => Modifier::Cta,
            FenceScope::Grid => Modifier::Gpu,
            FenceScope::System => Modifier::Sys,
        };
        self.op(Opcode::Fence, [Modifier::AcqRel, scope], []);
    }
}
