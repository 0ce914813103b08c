//! Accesses as the walk collects them, and the state of the collection.

use super::super::launch_bytes::AccessBytes;
use super::super::linear::{LinearVariable, Polynomial};
use crate::analyses::memory::AccessKind;
use crate::ir::{AccessPlace, Location, Value};
use std::collections::HashMap;

/// Result of the analysis of an access.
pub struct AccessBounds {
    pub location: Location,
    pub kind: AccessKind,
    pub place: AccessPlace,
    pub bytes: u32,
    /// Branches and loops that keep the indices below their extents; `None` without a proof.
    pub proof: Option<Vec<Location>>,
    /// Formula of the accessed bytes; `None` unless the bytes and all conditions of the access are
    /// understood.
    pub formula: Option<AccessBytes>,
}

/// State of the collection of accesses.
#[derive(Default)]
pub struct AccessCollector {
    /// The accesses in program order.
    pub accesses: Vec<AccessBounds>,
    /// Start of the facts of each enclosing branch or loop in the list of facts, with its location.
    pub fact_groups: Vec<(usize, Location)>,
    /// Whether control reaches this point under more conditions than the facts express.
    pub has_unexpressed_conditions: bool,
    /// Iteration numbers of loops, each with a polynomial that is ≥ 0 while the loop continues.
    pub iterations: HashMap<LinearVariable, Polynomial>,
    /// Byte offsets from the start of a buffer, a table, or an array of dynamic size.
    pub addresses: HashMap<Value, Polynomial>,
    /// Locations of the conditions.
    pub condition_locations: HashMap<Value, Location>,
}
