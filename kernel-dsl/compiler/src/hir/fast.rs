//! The functions of `fast::`, made of hardware approximations.

use crate::approximation::Approximation;
use serde::{Deserialize, Serialize};

/// A function of `fast::`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Fast {
    /// One instruction.
    One(Approximation),
    /// eˣ, computed as 2^(x · log₂ e).
    Exp,
    /// The natural logarithm, computed as ln 2 · log₂ x.
    Ln,
    /// The quotient, computed as a · (1 / b).
    Div,
    /// One instruction from sm_75; before, 1 − 2 / (e²ˣ + 1).
    Tanh,
}
