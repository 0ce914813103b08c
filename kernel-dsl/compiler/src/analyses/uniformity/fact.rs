//! What is known of a value: m·U + tₙ in thread n, and verdicts.

use super::threads::{Threads, gcd};
use super::verdict::{Entry, Hop, Scope, Verdict, Verdicts};
use crate::ir::Location;

/// All bits of a lane's index.
pub(super) const ALL_LANES: u8 = 31;

/// Of a value.
#[derive(Clone, Debug)]
pub(super) struct Fact {
    /// The m of m·U + tₙ; 0 where the value is known but for the thread. Only of unsigned integers is it more than 1, and
    /// only there does an unknown U stand beside tₙ, which are signed then.
    pub multiple: u64,
    /// The tₙ.
    pub threads: Threads,
    /// Of U.
    pub base: Verdicts,
    /// Of tₙ.
    pub varies: Verdicts,
    /// Bits of the lane's index that the value does not depend on: lanes that differ in these alone have the same.
    pub lanes: u8,
}

impl Fact {
    /// A known number.
    pub fn known(threads: Threads, varies: Verdicts) -> Fact {
        Fact { multiple: 0, threads, base: Verdicts::UNIFORM, varies, lanes: 0 }
    }

    /// The same known number for all threads.
    pub fn constant(bits: u64) -> Fact {
        Fact::known(Threads::Same(bits), Verdicts::UNIFORM)
    }

    /// A value that nothing is known of but the verdicts.
    pub fn opaque(base: Verdicts) -> Fact {
        Fact { multiple: 1, threads: Threads::Same(0), base, varies: Verdicts::UNIFORM, lanes: 0 }
    }

    /// What nobody has written, and what control does not reach.
    pub fn undefined() -> Fact {
        Fact::opaque(Verdicts::UNIFORM)
    }

    pub fn verdicts(&self) -> Verdicts {
        self.base.join(self.varies)
    }

    pub fn is_known(&self) -> bool {
        self.multiple == 0
    }

    /// The known number of all threads.
    pub fn same(&self) -> Option<u64> {
        self.threads.same().filter(|_| self.is_known())
    }

    /// Bits of the lane's index that it does not depend on.
    pub fn merged_lanes(&self) -> u8 {
        match self.verdicts().at(Scope::Warp).verdict {
            Verdict::Uniform => ALL_LANES,
            _ => self.lanes,
        }
    }

    /// A copy, told as `hop` at `location`.
    pub fn told(&self, hop: Hop, location: Location) -> Fact {
        let (base, varies) = (self.base.told(hop, location), self.varies.told(hop, location));
        Fact { base, varies, ..self.clone() }
    }

    /// The value where threads come here for different reasons. A known number is what it is however they came.
    pub fn tainted(mut self, by: Verdicts) -> Fact {
        if !by.is_uniform() && !self.is_known() {
            self.base = self.base.join(by);
            self.lanes = 0;
        }
        self
    }

    /// One or the other, the same way for all threads. `small`: whether it is an unsigned integer
    /// of at most 32 bits.
    pub fn or(&self, other: &Fact, small: bool) -> Fact {
        let base = self.base.join(other.base);
        let varies = self.varies.join(other.varies);
        let lanes = self.merged_lanes() & other.merged_lanes();
        if self.multiple == other.multiple && self.threads == other.threads {
            return Fact { multiple: self.multiple, threads: self.threads.clone(), base, varies, lanes };
        }
        // What they have in common: a common distance, up to a common divisor.
        let distance = self.threads.zip(&other.threads, |a, b| Some(a.wrapping_sub(b)));
        if let (true, Some(Threads::Same(distance))) = (small, distance) {
            let multiple = gcd(gcd(self.multiple, other.multiple), (distance as i64).unsigned_abs());
            if multiple > 0 {
                return Fact { multiple, threads: self.threads.clone(), base, varies, lanes };
            }
        }
        Fact { lanes, ..Fact::opaque(base.join(varies)) }
    }

    /// Whether the same is known, whatever the causes.
    pub fn agrees(&self, other: &Fact) -> bool {
        self.multiple == other.multiple
            && self.threads == other.threads
            && self.lanes == other.lanes
            && self.base.agrees(&other.base)
            && self.varies.agrees(&other.varies)
    }

    /// Proves that the lanes of a warp have the same.
    pub fn settle_warp(&mut self) {
        let uniform = Verdicts::UNIFORM.at(Scope::Warp);
        if self.threads.agree(Scope::Warp) {
            self.base.set(Scope::Warp, uniform);
            self.varies.set(Scope::Warp, uniform);
        } else {
            *self = Fact::opaque(self.verdicts());
            self.base.set(Scope::Warp, uniform);
        }
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
    let warp: Entry = verdicts.at(Scope::Warp);
    if warp.verdict == Verdict::Uniform {
        verdicts.set(Scope::Block, warp);
    }
}
