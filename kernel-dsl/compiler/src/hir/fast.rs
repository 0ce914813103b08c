//! The functions of `fast::`, which the hardware approximates.

use crate::approximation::Approximation;
use serde::{Deserialize, Serialize};

/// A function of `fast::`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Fast {
    /// One instruction.
    One(Approximation),
    /// eˣ: 2 to the x · log₂ e.
    Exp,
    /// The natural logarithm: ln 2 times that to base 2.
    Ln,
    /// a · (1 / b).
    Div,
    /// One instruction from sm_75, and 1 − 2 / (e²ˣ + 1) before.
    Tanh,
}
