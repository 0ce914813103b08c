//! The tables of constants of a kernel.

use super::mem_layout::MemLayout;
use crate::hir;
use crate::ir::{self, TableId};
use std::collections::HashMap;

/// The tables of constants of a kernel so far.
#[derive(Clone, Default)]
pub(in crate::lower) struct Tables {
    /// The table of each constant that was used; `None` for a constant without a table.
    pub of_constant: HashMap<hir::FunctionId, Option<(TableId, MemLayout)>>,
    /// The values that hold the address of a table, with that table.
    pub bases: HashMap<ir::Value, TableId>,
    /// Whether the code being lowered only serves to evaluate a constant. The code is removed
    /// again.
    pub evaluating: bool,
}
