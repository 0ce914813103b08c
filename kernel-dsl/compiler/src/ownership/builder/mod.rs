//! Builds the graph of a function from its HIR. This file has the current path and the scope; the
//! files beside it walk the program.

mod call;
mod closure;
mod control;
mod expression;
mod pattern;
mod place;

use super::graph::{AccessGraph, GraphVariable, PlaceAccess, VariablePlace};
use super::types::AppliedType;
use crate::hir::{Block, CallTrait, Function, Items, LabelId, LocalId, Statement, TypeId};
use crate::source::Span;
use std::collections::BTreeSet;

/// Builds the graph of a function.
pub(super) struct GraphBuilder<'f> {
    function: &'f Function,
    functions: &'f [Function],
    items: &'f Items,
    pub graph: AccessGraph,
    /// The last node of the current path; `None` where no path leads.
    at: Option<usize>,
    loops: Vec<LoopTarget>,
    /// The variables in scope, innermost last, without the parameters.
    scope: Vec<usize>,
    /// Closures that write to what they capture, by variable.
    writers: BTreeSet<usize>,
    /// Closures that take what they capture, by variable.
    takers: BTreeSet<usize>,
}

/// A loop or labeled block.
struct LoopTarget {
    label: LabelId,
    /// The node that `continue` leads to.
    start: Option<usize>,
    /// The last nodes of the paths that `break` ends.
    breaks: Vec<usize>,
    /// The temporary that holds the value.
    result: usize,
    /// The number of variables in scope outside.
    scope: usize,
}

impl<'f> GraphBuilder<'f> {
    /// Returns the graph of a function.
    pub(super) fn graph(function: &'f Function, functions: &'f [Function], items: &'f Items) -> AccessGraph {
        let variables = function.locals.iter().map(|local| GraphVariable {
            name: local.name.clone(),
            mutable: local.mutable,
            late: local.late,
            temporary: local.name.is_empty(),
            ..GraphVariable::default()
        });
        let mut builder = GraphBuilder::new(function, functions, items, variables.collect());
        for parameter in 0..function.parameters as usize {
            match builder.call_trait(function, parameter) {
                Some(CallTrait::FnMut) => drop(builder.writers.insert(parameter)),
                Some(CallTrait::FnOnce) => drop(builder.takers.insert(parameter)),
                Some(CallTrait::Fn) | None => {}
            }
            builder.access(PlaceAccess::Define, VariablePlace::of(parameter), Span::default());
        }
        if let Some(value) = builder.block(&function.body) {
            builder.use_of(value, Span::default());
        }
        builder.graph
    }

    /// Creates a builder whose graph has only the entry.
    fn new(
        function: &'f Function,
        functions: &'f [Function],
        items: &'f Items,
        variables: Vec<GraphVariable>,
    ) -> GraphBuilder<'f> {
        let mut graph = AccessGraph { variables, ..AccessGraph::default() };
        let entry = graph.add(None, Span::default());
        GraphBuilder {
            function,
            functions,
            items,
            graph,
            at: Some(entry),
            loops: Vec::new(),
            scope: Vec::new(),
            writers: BTreeSet::new(),
            takers: BTreeSet::new(),
        }
    }

    fn ty(&self, id: TypeId) -> AppliedType<'f> {
        AppliedType::of(&self.function.types, id)
    }

    fn is_copy(&self, id: TypeId) -> bool {
        self.ty(id).is_copy(self.items, &self.function.generics)
    }

    fn holds_references(&self, id: TypeId) -> bool {
        self.ty(id).holds_references()
    }

    /// Adds a node to the current path. Returns its number; `None` where no path leads.
    fn add(&mut self, access: Option<(PlaceAccess, VariablePlace)>, span: Span) -> Option<usize> {
        let at = self.at?;
        let new = self.graph.add(access, span);
        self.graph.nodes[at].next.push(new);
        self.at = Some(new);
        Some(new)
    }

    fn access(&mut self, access: PlaceAccess, place: VariablePlace, span: Span) {
        self.add(Some((access, place)), span);
    }

    /// Declares a variable with a value that holds no loans.
    fn define(&mut self, id: LocalId, span: Span) {
        let local = id.0 as usize;
        self.access(PlaceAccess::Define, VariablePlace::of(local), span);
        self.scope.push(local);
    }

    /// Gives a variable a value with the loans of other variables.
    fn define_from(&mut self, local: usize, of: impl IntoIterator<Item = usize>, span: Span) {
        let of: Vec<usize> = of.into_iter().collect();
        self.graph.variables[local].flows.extend(&of);
        if let Some(node) = self.add(Some((PlaceAccess::Define, VariablePlace::of(local))), span) {
            self.graph.nodes[node].uses = of;
        }
    }

    /// Reads a variable, which uses its loans.
    fn use_of(&mut self, local: usize, span: Span) {
        self.access(PlaceAccess::Read, VariablePlace::of(local), span);
    }

    /// Adds a node to which several paths lead.
    fn join(&mut self, ends: &[usize]) -> Option<usize> {
        if ends.is_empty() && self.at.is_none() {
            return None;
        }
        let new = self.graph.add(None, Span::default());
        for end in ends.iter().copied().chain(self.at) {
            self.graph.nodes[end].next.push(new);
        }
        self.at = Some(new);
        self.at
    }

    fn temporary(&mut self) -> usize {
        self.graph.variables.push(GraphVariable { temporary: true, ..GraphVariable::default() });
        self.graph.variables.len() - 1
    }

    /// Adds a temporary that holds the loans of these variables, if a value of the type holds any.
    fn holding(&mut self, ty: TypeId, of: &[Option<usize>], span: Span) -> Option<usize> {
        if !self.holds_references(ty) || of.iter().all(Option::is_none) {
            return None;
        }
        let new = self.temporary();
        self.define_from(new, of.iter().copied().flatten(), span);
        Some(new)
    }

    fn block(&mut self, block: &'f Block) -> Option<usize> {
        let depth = self.scope.len();
        for statement in &block.statements {
            self.statement(statement);
        }
        let value = block.value.as_ref().and_then(|e| self.tail(e));
        self.leave_scope(depth);
        value
    }

    /// Leaves the scope in which variables after the first `depth` were declared.
    fn leave_scope(&mut self, depth: usize) {
        self.end_scope(depth);
        self.scope.truncate(depth);
    }

    /// Ends the variables after the first `depth` on the current path. A jump calls it; other paths
    /// still have these variables in scope.
    fn end_scope(&mut self, depth: usize) {
        let ended: Vec<_> = self.scope[depth..].iter().rev().copied().collect();
        for local in ended {
            self.access(PlaceAccess::End, VariablePlace::of(local), Span::default());
        }
    }

    fn statement(&mut self, statement: &'f Statement) {
        match statement {
            Statement::Let { pattern, value: None, span } => pattern.variables(&mut |id| {
                let local = id.0 as usize;
                self.access(PlaceAccess::Declare, VariablePlace::of(local), *span);
                self.scope.push(local);
            }),
            Statement::Let { pattern, value: Some(value), span } => self.bind_value(pattern, value, *span),
            Statement::LetElse { pattern, value, otherwise, span } => {
                let place = self.place_of(value);
                let before = self.at;
                self.block(otherwise);
                self.at = before;
                self.bind(pattern, place, *span);
            }
            Statement::Expr(e) => drop(self.operand(e)),
            Statement::Assert { .. } => {}
        }
    }
}
