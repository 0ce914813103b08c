//! What is known about a value: m·U + tₙ in thread n, and verdicts.

use super::threads::{Threads, gcd};
use super::verdict::{Entry, Hop, UniformScope, Verdict, Verdicts};
use crate::ir::Location;

/// All bits of a lane's index.
pub(super) const ALL_LANES: u8 = 31;
/// The bit beside them for the warp's index.
pub const WARPS: u8 = 32;

/// Of a value.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// The m of m·U + tₙ; 0 where the value is known except the thread. Only of unsigned integers
    /// is it more than 1, and only there does an unknown U stand beside tₙ, which are signed then.
    pub multiple: u64,
    /// The tₙ.
    pub threads: Threads,
    /// Of U.
    pub base: Verdicts,
    /// Of tₙ.
    pub varies: Verdicts,
    /// Bits of the lane's index, and [`WARPS`], that the value does not depend on: threads of a
    /// block that differ in these alone have the same.
    pub merged: u8,
}

impl Fact {
    /// A known number.
    pub fn known(threads: Threads, varies: Verdicts) -> Fact {
        let merged = threads.merged();
        Fact { multiple: 0, threads, base: Verdicts::UNIFORM, varies, merged }
    }

    /// Returns the same known number for all threads.
    pub fn constant(bits: u64) -> Fact {
        Fact::known(Threads::Same(bits), Verdicts::UNIFORM)
    }

    /// A value that nothing is known of but the verdicts.
    pub fn opaque(base: Verdicts) -> Fact {
        Fact { multiple: 1, threads: Threads::Same(0), base, varies: Verdicts::UNIFORM, merged: 0 }
    }

    /// Returns the fact about an unwritten value, and about unreachable code.
    pub fn undefined() -> Fact {
        Fact::opaque(Verdicts::UNIFORM)
    }

    pub fn verdicts(&self) -> Verdicts {
        self.base.join(self.varies)
    }

    pub fn is_known(&self) -> bool {
        self.multiple == 0
    }

    /// Returns the known number of all threads.
    pub fn same(&self) -> Option<u64> {
        self.threads.same().filter(|_| self.is_known())
    }

    /// Returns the bits that it does not depend on.
    pub fn merged(&self) -> u8 {
        let uniform = |scope| self.verdicts().at(scope).verdict == Verdict::Uniform;
        match (uniform(UniformScope::Block), uniform(UniformScope::Warp)) {
            (true, _) => ALL_LANES | WARPS,
            (false, true) => ALL_LANES | self.merged,
            (false, false) => self.merged,
        }
    }

    /// Returns an opaque value that does not depend on `merged`.
    pub fn merging(merged: u8, verdicts: Verdicts) -> Fact {
        let mut fact = Fact { merged, ..Fact::opaque(verdicts) };
        if merged & ALL_LANES == ALL_LANES {
            fact.base.set(UniformScope::Warp, Verdicts::UNIFORM.at(UniformScope::Warp));
            if merged & WARPS != 0 {
                fact.base.set(UniformScope::Block, Verdicts::UNIFORM.at(UniformScope::Block));
            }
        }
        fact
    }

    /// A copy, told as `hop` at `location`.
    pub fn told(&self, hop: Hop, location: Location) -> Fact {
        let (base, varies) = (self.base.told(hop, location), self.varies.told(hop, location));
        Fact { base, varies, ..self.clone() }
    }

    /// Returns the value where threads come here for different reasons. A known number is what it
    /// is however they came.
    pub fn tainted(mut self, by: Verdicts) -> Fact {
        if !by.is_uniform() && !self.is_known() {
            self.base = self.base.join(by);
            self.merged = 0;
        }
        self
    }

    /// Returns the one or the other, the same way for all threads. `small`: whether it is an
    /// unsigned integer of at most 32 bits.
    pub fn or(&self, other: &Fact, small: bool) -> Fact {
        let base = self.base.join(other.base);
        let varies = self.varies.join(other.varies);
        let merged = self.merged() & other.merged();
        if self.multiple == other.multiple && self.threads == other.threads {
            return Fact { multiple: self.multiple, threads: self.threads.clone(), base, varies, merged };
        }
        // What they have in common: a common distance, up to a common divisor.
        let distance = self.threads.zip(&other.threads, |a, b| Some(a.wrapping_sub(b)));
        if let (true, Some(Threads::Same(distance))) = (small, distance) {
            let multiple = gcd(gcd(self.multiple, other.multiple), (distance as i64).unsigned_abs());
            if multiple > 0 {
                return Fact { multiple, threads: self.threads.clone(), base, varies, merged };
            }
        }
        Fact::merging(merged, base.join(varies))
    }

    /// Returns whether the tₙ are the same up to what U may hold: one multiple of m for all
    /// threads.
    fn same_threads(&self, other: &Fact) -> bool {
        self.threads == other.threads
            || self.multiple > 0
                && match self.threads.zip(&other.threads, |a, b| Some(a.wrapping_sub(b))) {
                    Some(Threads::Same(distance)) => (distance as i64).unsigned_abs().is_multiple_of(self.multiple),
                    _ => false,
                }
    }

    /// Returns whether the same is known, whatever the causes.
    pub fn agrees(&self, other: &Fact) -> bool {
        self.multiple == other.multiple
            && self.same_threads(other)
            // Which bits are noted, and which follow from the verdicts, is all the same.
            && self.merged() == other.merged()
            && self.base.agrees(&other.base)
            && self.varies.agrees(&other.varies)
    }

    /// In a block of one warp, what is the same for the warp is for the block.
    pub fn settle_only_warp(&mut self) {
        for verdicts in [&mut self.base, &mut self.varies] {
            settle_only_warp(verdicts);
        }
    }
}

/// In a block of one warp, what is the same for the warp is for the block.
pub(super) fn settle_only_warp(verdicts: &mut Verdicts) {
    let warp: Entry = verdicts.at(UniformScope::Warp);
    if warp.verdict == Verdict::Uniform {
        verdicts.set(UniformScope::Block, warp);
    }
}
