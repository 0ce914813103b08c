//! PTX as data.

/// A PTX module.
#[derive(Clone, PartialEq, Debug)]
pub struct Module;
