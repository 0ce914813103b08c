//! Builds the graph of a function from its HIR. This file has the current path and the scope; the
//! files beside it walk the program.

mod call;
mod closure;
mod control;
mod expression;
mod pattern;
mod place;

use super::graph::{AccessGraph, FlowNode, GraphVariable, PlaceAccess, VariablePlace};
use super::types::AppliedType;
use crate::hir::{Block, CallTrait, Expr, Function, Items, LabelId, LocalId, Statement, TypeId};
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
    /// The node that `return` leads to, and the variables of the function in scope.
    scope: Vec<usize>,
    /// Closures that write to what they capture, by variable.
    writers: BTreeSet<usize>,
    /// Closures that take what they capture, by variable.
    takers: BTreeSet<usize>,
}

/// A loop or labeled block.
struct LoopTarget {
    label: LabelId,
    start: Option<usize>,
    breaks: Vec<usize>,
    result: usize,
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
        let graph = AccessGraph { variables: variables.collect(), ..AccessGraph::default() };
        let mut builder = GraphBuilder {
            function,
            functions,
            items,
            graph,
            at: None,
            loops: Vec::new(),
            scope: Vec::new(),
            writers: BTreeSet::new(),
            takers: BTreeSet::new(),
        };
        builder.graph.nodes.push(FlowNode { access: None, uses: Vec::new(), span: Span::default(), next: Vec::new() });
        builder.at = Some(0);
        for parameter in 0..function.parameters as usize {
            match builder.call_trait(function, parameter) {
                Some(CallTrait::FnMut) => drop(builder.writers.insert(parameter)),
                Some(CallTrait::FnOnce) => drop(builder.takers.insert(parameter)),
                Some(CallTrait::Fn) | None => {}
            }
            builder.access(PlaceAccess::Define, VariablePlace { local: parameter, path: Vec::new() }, Span::default());
        }
        if let Some(value) = builder.block(&function.body) {
            builder.use_of(value, Span::default());
        }
        builder.graph
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

    fn add(&mut self, access: Option<(PlaceAccess, VariablePlace)>, span: Span) -> Option<usize> {
        let at = self.at?;
        self.graph.nodes.push(FlowNode { access, uses: Vec::new(), span, next: Vec::new() });
        let new = self.graph.nodes.len() - 1;
        self.graph.nodes[at].next.push(new);
        self.at = Some(new);
        Some(new)
    }

    fn access(&mut self, access: PlaceAccess, place: VariablePlace, span: Span) {
        self.add(Some((access, place)), span);
    }

    fn define(&mut self, id: LocalId, span: Span) {
        let local = id.0 as usize;
        self.access(PlaceAccess::Define, VariablePlace { local, path: Vec::new() }, span);
        self.scope.push(local);
    }

    /// Gives a variable a value with the loans of other variables.
    fn define_from(&mut self, local: usize, of: impl IntoIterator<Item = usize>, span: Span) {
        let of: Vec<usize> = of.into_iter().collect();
        self.graph.variables[local].flows.extend(&of);
        if let Some(node) = self.add(Some((PlaceAccess::Define, VariablePlace { local, path: Vec::new() })), span) {
            self.graph.nodes[node].uses = of;
        }
    }

    fn use_of(&mut self, local: usize, span: Span) {
        self.access(PlaceAccess::Read, VariablePlace { local, path: Vec::new() }, span);
    }

    /// Adds a node to which several paths lead.
    fn join(&mut self, ends: &[usize]) -> Option<usize> {
        if ends.is_empty() && self.at.is_none() {
            return None;
        }
        self.graph.nodes.push(FlowNode { access: None, uses: Vec::new(), span: Span::default(), next: Vec::new() });
        let new = self.graph.nodes.len() - 1;
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
        self.end_scope(depth);
        self.scope.truncate(depth);
        value
    }

    /// Ends the scope of the variables declared since.
    fn end_scope(&mut self, depth: usize) {
        let ended: Vec<_> = self.scope[depth..].iter().rev().copied().collect();
        for local in ended {
            self.access(PlaceAccess::End, VariablePlace { local, path: Vec::new() }, Span::default());
        }
    }

    fn statement(&mut self, statement: &'f Statement) {
        match statement {
            Statement::Let { pattern, value: None, span } => pattern.variables(&mut |id| {
                let local = id.0 as usize;
                self.access(PlaceAccess::Declare, VariablePlace { local, path: Vec::new() }, *span);
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
            Statement::Expr(e) => self.discarded(e),
            Statement::Assert { .. } => {}
        }
    }

    /// Evaluates an expression whose value is dropped. A place is not read.
    fn discarded(&mut self, e: &'f Expr) {
        self.operand(e);
    }
}
