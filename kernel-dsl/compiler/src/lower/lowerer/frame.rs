//! The calls that are being inlined, and the values of their variables.

use super::mem_layout::MemLayout;
use super::value::{Storage, Val};
use crate::hir::{self, Expr, FunctionId, Pattern, TypeId};
use crate::ir::{Label, Location, TableId};
use std::collections::HashMap;

/// A function being lowered.
#[derive(Clone)]
pub(in crate::lower) struct FunctionFrame<'h> {
    /// Identifies the call.
    pub id: u32,
    pub function: &'h hir::Function,
    /// The bindings of the function's locals so far.
    pub bindings: Vec<LocalBinding>,
    /// The `const`s of the body so far.
    pub constants: HashMap<hir::LocalId, BodyConstant<'h>>,
    /// Index into the kernel's sources.
    pub source: u32,
    /// The call that is being inlined.
    pub caller: Option<Location>,
    pub loops: Vec<LoopFrame>,
    /// For an inlined function: the block that `return` breaks out of.
    pub exit: Option<Exit>,
}

#[derive(Clone)]
pub(in crate::lower) struct LoopFrame {
    pub id: hir::LabelId,
    /// The label that `continue` jumps to.
    pub label: Label,
    /// The label that `break` jumps to.
    pub leave: Label,
    /// The variable for the value of `break`.
    pub result: Option<Storage>,
    /// Whether this is a loop, and not a labeled block.
    pub repeats: bool,
}

#[derive(Clone)]
pub(in crate::lower) struct Exit {
    pub label: Label,
    pub result: Storage,
    pub returns: TypeId,
    pub used: bool,
}

/// The binding of a function's local.
#[derive(Clone, Debug)]
pub(in crate::lower) enum LocalBinding {
    /// Not bound yet.
    Unset,
    /// A value that never changes.
    Value(Val),
    /// A variable that is assigned.
    Variable(Storage),
}

/// A `const` of a body.
#[derive(Clone, Debug)]
pub(in crate::lower) struct BodyConstant<'h> {
    pub value: &'h Expr,
    /// The table of a constant that contains an array. Registers are used only where the whole
    /// value is used.
    pub table: Option<(TableId, MemLayout)>,
}

/// A closure or function value.
#[derive(Clone, Debug)]
pub(in crate::lower) enum Callable<'h> {
    Function(FunctionId),
    Closure {
        /// The call in which the closure was created.
        frame: u32,
        parameters: &'h [Pattern],
        types: &'h [TypeId],
        returns: TypeId,
        body: &'h Expr,
    },
}
