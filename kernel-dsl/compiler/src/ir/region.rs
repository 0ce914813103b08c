//! Regions, and the loops that repeat one.

use super::{Inst, Label, Op, Value, Values};
use crate::assertion::FailureEffect;

/// A sequence of instructions with parameters, ended by a terminator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Region {
    /// Values that the construct defines each time that it enters the region. For `For`: the index
    /// and the carried values. For `Loop`: the carried values. Otherwise none.
    pub parameters: Values,
    /// Instructions. The last is the terminator.
    pub insts: Vec<Inst>,
}

impl Region {
    /// Returns the effect in the unchecked form of the failure that ends the region; `None` if the
    /// region does not end with a failure.
    pub fn panics(&self) -> Option<FailureEffect> {
        match self.insts.as_slice() {
            [.., Inst { op: Op::Panic { outcome, .. }, .. }, Inst { op: Op::Return, .. }] => Some(*outcome),
            _ => None,
        }
    }

    /// Returns the values that the region yields, or `None` if it ends with another terminator.
    pub fn yielded(&self) -> Option<&Values> {
        match &self.insts.last()?.op {
            Op::Yield(values) => Some(values),
            _ => None,
        }
    }
}

/// A counted loop.
#[derive(Clone, PartialEq, Debug)]
pub struct For {
    /// The label that `Break` and `Continue` name.
    pub label: Label,
    /// First index, whose integer type is also that of `end` and `step`.
    pub start: Value,
    /// Exclusive upper bound of the index.
    pub end: Value,
    /// Step of the index, > 0.
    pub step: Value,
    /// How the kernel requests unrolling.
    pub unroll: Unroll,
    /// First values of the carried parameters.
    pub inits: Values,
    /// The parameters are the index and the carried values, which `Yield` and `Continue` pass on.
    /// The results of the loop are the carried values after the last iteration, or those of
    /// `Break`.
    pub body: Region,
}

/// Whether a loop is to be unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroll {
    /// The compiler decides.
    Auto,
    /// `unroll(…)`: a copy for each iteration; start, end and step must be constant.
    Full,
    /// `rolled(…)`, or an already unrolled loop: neither passes nor ptxas unroll it
    /// (`.pragma "nounroll"`).
    Never,
}
