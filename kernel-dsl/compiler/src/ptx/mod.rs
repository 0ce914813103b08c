//! PTX as data.

/// A PTX module.
#[derive(Clone, PartialEq, Debug)]
pub struct Module;

impl std::fmt::Display for Module {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}
