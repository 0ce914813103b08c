//! The architectures that PTX is made for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A PTX target by its compute capability: `Target::SM_61` is `sm_61`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Target(u16);

impl Target {
    /// Pascal: GTX 10xx, Tesla P4 and P40. The target that this project exists for.
    pub const SM_61: Target = Target(61);

    /// The targets that the compiler knows, oldest first.
    pub const ALL: [Target; 7] = [Target(61), Target(70), Target(75), Target(80), Target(86), Target(89), Target(90)];

    /// The target of compute capability `major`.`minor` written as two digits, such as 61.
    pub fn new(sm: u16) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.0 == sm)
    }

    /// The number in the name: 61 for `sm_61`.
    pub const fn sm(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}
