//! The target architectures.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A PTX target by its compute capability: `Target::SM_61` is `sm_61`. [`Target::ALL`] lists all
/// targets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Target(u16);

impl Target {
    /// Pascal: GTX 10xx, Tesla P4 and P40. The main target of this project.
    pub const SM_61: Target = Target(61);
    /// Volta: V100.
    pub const SM_70: Target = Target(70);
    /// Turing: RTX 20xx, T4.
    pub const SM_75: Target = Target(75);
    /// Ampere: A100.
    pub const SM_80: Target = Target(80);
    /// Ampere: RTX 30xx, A10, A40.
    pub const SM_86: Target = Target(86);
    /// Ada: RTX 40xx, L4, L40.
    pub const SM_89: Target = Target(89);
    /// Hopper: H100, H200.
    pub const SM_90: Target = Target(90);

    /// All supported targets, oldest first.
    pub const ALL: [Target; 7] =
        [Target::SM_61, Target::SM_70, Target::SM_75, Target::SM_80, Target::SM_86, Target::SM_89, Target::SM_90];

    /// Returns the target with compute capability `major`.`minor`, given as a two-digit number such
    /// as 61.
    pub fn new(sm: u16) -> Option<Target> {
        Target::ALL.into_iter().find(|t| t.0 == sm)
    }

    /// Returns the number in the name: 61 for `sm_61`.
    pub const fn sm(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// Error returned when a string names no supported target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownTarget(String);

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown target `{}`; the targets are {}", self.0, Target::ALL.map(|t| t.to_string()).join(", "))
    }
}

impl std::error::Error for UnknownTarget {}

impl FromStr for Target {
    type Err = UnknownTarget;

    /// Parses a target, such as `sm_61`.
    fn from_str(name: &str) -> Result<Target, UnknownTarget> {
        let known = Target::ALL.into_iter().find(|t| t.to_string() == name);
        known.ok_or_else(|| UnknownTarget(name.to_string()))
    }
}

impl TryFrom<u16> for Target {
    type Error = UnknownTarget;

    fn try_from(sm: u16) -> Result<Target, UnknownTarget> {
        Target::new(sm).ok_or_else(|| UnknownTarget(format!("sm_{sm}")))
    }
}

impl From<Target> for u16 {
    fn from(target: Target) -> u16 {
        target.sm()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse_from_their_printed_form() {
        for target in Target::ALL {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        assert!(Target::ALL.is_sorted());
        let error = "sm_35".parse::<Target>().unwrap_err().to_string();
        assert_eq!(error, "unknown target `sm_35`; the targets are sm_61, sm_70, sm_75, sm_80, sm_86, sm_89, sm_90");
    }

    #[test]
    fn an_unknown_target_does_not_decode() {
        let bytes = postcard::to_stdvec(&35u16).unwrap();
        assert!(postcard::from_bytes::<Target>(&bytes).is_err());
    }
}
