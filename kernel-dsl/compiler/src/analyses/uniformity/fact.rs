//! Facts about a value: its form m·U + tₙ in thread n, and verdicts.

use super::threads::{ThreadNumbers, gcd};
use super::verdict::{CauseStep, CausedVerdict, UniformScope, UniformityVerdict, Verdicts};
use crate::ir::Location;

/// All bits of the lane index.
pub(super) const ALL_LANES: u8 = 31;
/// Additional bit for the warp index.
pub(super) const WARPS: u8 = 32;

/// Knowledge about a value.
#[derive(Clone, Debug)]
pub(super) struct UniformityFact {
    /// The m of m·U + tₙ; 0 for a value known up to the thread index. m exceeds 1 only for unsigned
    /// integers. Only unsigned integers have both an unknown U and a tₙ; each tₙ is then read as
    /// signed.
    pub multiple: u64,
    /// The tₙ of m·U + tₙ.
    pub threads: ThreadNumbers,
    /// Verdicts about U.
    pub base: Verdicts,
    /// Verdicts about tₙ.
    pub varies: Verdicts,
    /// Bits of the lane index, and [`WARPS`], that the value does not depend on. Threads of a block
    /// that differ only in these bits have the same value.
    pub merged: u8,
}

impl UniformityFact {
    /// Returns the fact about a known number.
    pub fn known(threads: ThreadNumbers, varies: Verdicts) -> UniformityFact {
        let merged = threads.independent_lane_bits();
        UniformityFact { multiple: 0, threads, base: Verdicts::UNIFORM, varies, merged }
    }

    /// Returns the same known number for all threads.
    pub fn constant(bits: u64) -> UniformityFact {
        UniformityFact::known(ThreadNumbers::Same(bits), Verdicts::UNIFORM)
    }

    /// Returns a fact that contains only verdicts.
    pub fn opaque(base: Verdicts) -> UniformityFact {
        UniformityFact { multiple: 1, threads: ThreadNumbers::Same(0), base, varies: Verdicts::UNIFORM, merged: 0 }
    }

    /// Returns the fact about an unwritten value, and about unreachable code.
    pub fn undefined() -> UniformityFact {
        UniformityFact::opaque(Verdicts::UNIFORM)
    }

    pub fn verdicts(&self) -> Verdicts {
        self.base.join(self.varies)
    }

    pub fn is_known(&self) -> bool {
        self.multiple == 0
    }

    /// Returns the known number of all threads.
    pub fn common_number(&self) -> Option<u64> {
        self.threads.common_number().filter(|_| self.is_known())
    }

    /// Returns the bits of the lane index, and [`WARPS`], that the value does not depend on.
    pub fn independent_lane_bits(&self) -> u8 {
        let uniform = |scope| self.verdicts().at(scope).verdict == UniformityVerdict::Uniform;
        match (uniform(UniformScope::Block), uniform(UniformScope::Warp)) {
            (true, _) => ALL_LANES | WARPS,
            (false, true) => ALL_LANES | self.merged,
            (false, false) => self.merged,
        }
    }

    /// Returns an opaque value that does not depend on `merged`.
    pub fn opaque_without(merged: u8, verdicts: Verdicts) -> UniformityFact {
        let mut fact = UniformityFact { merged, ..UniformityFact::opaque(verdicts) };
        if merged & ALL_LANES == ALL_LANES {
            fact.base.set(UniformScope::Warp, Verdicts::UNIFORM.at(UniformScope::Warp));
            if merged & WARPS != 0 {
                fact.base.set(UniformScope::Block, Verdicts::UNIFORM.at(UniformScope::Block));
            }
        }
        fact
    }

    /// Returns the fact about a copy, with `hop` at `location` added to the trace.
    pub fn with_cause(&self, hop: CauseStep, location: Location) -> UniformityFact {
        let (base, varies) = (self.base.with_cause(hop, location), self.varies.with_cause(hop, location));
        UniformityFact { base, varies, ..self.clone() }
    }

    /// Returns the fact about a value that threads reach on different paths, with the verdicts `by`
    /// of these paths. A known number does not depend on the path.
    pub fn tainted(mut self, by: Verdicts) -> UniformityFact {
        if !by.is_uniform() && !self.is_known() {
            self.base = self.base.join(by);
            self.merged = 0;
        }
        self
    }

    /// Merges the facts about two values of which all threads choose the same one. `small` is
    /// whether the values are unsigned integers of at most 32 bits.
    pub fn or(&self, other: &UniformityFact, small: bool) -> UniformityFact {
        let base = self.base.join(other.base);
        let varies = self.varies.join(other.varies);
        let merged = self.independent_lane_bits() & other.independent_lane_bits();
        if self.multiple == other.multiple && self.threads == other.threads {
            return UniformityFact { multiple: self.multiple, threads: self.threads.clone(), base, varies, merged };
        }
        // If all tₙ differ by one distance, U can absorb it: the new m is a common divisor of it.
        let distance = self.threads.zip(&other.threads, |a, b| Some(a.wrapping_sub(b)));
        if let (true, Some(ThreadNumbers::Same(distance))) = (small, distance) {
            let multiple = gcd(gcd(self.multiple, other.multiple), (distance as i64).unsigned_abs());
            if multiple > 0 {
                return UniformityFact { multiple, threads: self.threads.clone(), base, varies, merged };
            }
        }
        UniformityFact::opaque_without(merged, base.join(varies))
    }

    /// Returns whether the tₙ of both facts differ by one multiple of m in all threads. U can
    /// absorb such a difference.
    fn same_threads(&self, other: &UniformityFact) -> bool {
        self.threads == other.threads
            || self.multiple > 0
                && match self.threads.zip(&other.threads, |a, b| Some(a.wrapping_sub(b))) {
                    Some(ThreadNumbers::Same(distance)) => {
                        (distance as i64).unsigned_abs().is_multiple_of(self.multiple)
                    }
                    _ => false,
                }
    }

    /// Returns whether both facts are equal apart from their causes.
    pub fn agrees(&self, other: &UniformityFact) -> bool {
        self.multiple == other.multiple
            && self.same_threads(other)
            // The comparison includes bits that follow from the verdicts, as
            // `independent_lane_bits` does.
            && self.independent_lane_bits() == other.independent_lane_bits()
            && self.base.agrees(&other.base)
            && self.varies.agrees(&other.varies)
    }

    /// Extends uniformity across the warp to the block, for a block of one warp.
    pub fn settle_only_warp(&mut self) {
        for verdicts in [&mut self.base, &mut self.varies] {
            settle_only_warp(verdicts);
        }
    }
}

/// Extends uniformity across the warp to the block, for a block of one warp.
pub(super) fn settle_only_warp(verdicts: &mut Verdicts) {
    let warp: CausedVerdict = verdicts.at(UniformScope::Warp);
    if warp.verdict == UniformityVerdict::Uniform {
        verdicts.set(UniformScope::Block, warp);
    }
}
