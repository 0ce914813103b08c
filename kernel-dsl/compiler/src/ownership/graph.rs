//! The control-flow graph of a function: its accesses to variables, in the order of evaluation.
//!
//! A borrow is an access that starts a loan. The variables that may hold the loan are known for the
//! whole function, as in rustc's borrow checker, which ignores the order of assignments there.

use crate::source::Span;
use std::collections::BTreeSet;

/// A variable or a part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct VariablePlace {
    pub local: usize,
    pub path: Vec<PlaceProjection>,
}

impl VariablePlace {
    /// Returns the place of a whole variable.
    pub(super) fn of(local: usize) -> VariablePlace {
        VariablePlace { local, path: Vec::new() }
    }

    /// Returns a part of the place.
    pub(super) fn part(mut self, projection: PlaceProjection) -> VariablePlace {
        self.path.push(projection);
        self
    }
}

/// A step from a value to a part of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum PlaceProjection {
    Field(u32),
    Element,
    Target,
}

/// The effect of an access on its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PlaceAccess {
    Read,
    /// Takes the value, which leaves the place without one.
    Move,
    Write,
    /// Gives a variable its value at its declaration.
    Define,
    /// Declares a variable without a value.
    Declare,
    /// Starts the loan with this number.
    Borrow(usize),
    /// Ends the scope of a variable.
    End,
}

/// An access, or a step without one.
#[derive(Clone, Debug)]
pub(super) struct FlowNode {
    pub access: Option<(PlaceAccess, VariablePlace)>,
    /// Variables whose loans the step passes on.
    pub uses: Vec<usize>,
    pub span: Span,
    pub next: Vec<usize>,
}

/// A reference to a place, from its `&` on.
#[derive(Clone, Debug)]
pub(super) struct Loan {
    pub place: VariablePlace,
    pub mutable: bool,
    pub span: Span,
}

/// A variable of the program, or a temporary.
#[derive(Clone, Default, Debug)]
pub(super) struct GraphVariable {
    pub name: String,
    pub mutable: bool,
    /// Declared without a value.
    pub late: bool,
    pub temporary: bool,
    /// The loans that the variable may hold by themselves.
    pub loans: BTreeSet<usize>,
    /// The variables whose loans it may hold too.
    pub flows: BTreeSet<usize>,
}

/// The graph. The first node is the entry.
#[derive(Default)]
pub(super) struct AccessGraph {
    pub nodes: Vec<FlowNode>,
    pub loans: Vec<Loan>,
    pub variables: Vec<GraphVariable>,
    /// Mistakes that need no analysis of the graph.
    pub mistakes: Vec<(Span, String)>,
}

impl AccessGraph {
    /// Adds a node that no path leads to yet. Returns its number.
    pub(super) fn add(&mut self, access: Option<(PlaceAccess, VariablePlace)>, span: Span) -> usize {
        self.nodes.push(FlowNode { access, uses: Vec::new(), span, next: Vec::new() });
        self.nodes.len() - 1
    }
}
