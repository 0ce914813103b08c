//! The control-flow graph of a function: its accesses to variables, in the order of evaluation.
//!
//! A borrow is an access that starts a loan. The variables that may hold the loan are known for the
//! whole function, as in rustc's borrow checker, which ignores the order of assignments there.

use super::types::AppliedType;
use crate::hir::{
    Block, CallTrait, Expr, ExprKind, Function, Intrinsic, Items, LabelId, LocalId, Pattern, Size, Statement, Type,
    TypeId,
};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A variable or a part of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct VariablePlace {
    pub local: usize,
    pub path: Vec<PlaceProjection>,
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

    /// Returns the trait of a closure parameter; `None` of another parameter.
    fn call_trait(&self, function: &Function, parameter: usize) -> Option<CallTrait> {
        match function.types[function.locals[parameter].ty.0 as usize] {
            Type::Function { calls, .. } => Some(calls),
            _ => None,
        }
    }

    /// Rejects a closure, as argument of a call, that lacks the trait of the parameter.
    fn check_call_trait(&mut self, argument: &'f Expr, calls: CallTrait) {
        let (writes, takes) = match argument.kind {
            ExprKind::Local(id) => {
                let local = id.0 as usize;
                (self.writers.contains(&local), self.takers.contains(&local))
            }
            _ => self.closure_form(argument),
        };
        let does = match calls {
            CallTrait::Fn if writes => "changes",
            CallTrait::Fn | CallTrait::FnMut if takes => "takes",
            _ => return,
        };
        if self.at.is_some() {
            let (wanted, name) = (if does == "changes" { "FnMut" } else { "FnOnce" }, calls.name());
            let message = format!(
                "this closure {does} what it captures, and the parameter is `{name}`: declare the parameter `{wanted}`, or return the value instead"
            );
            self.graph.mistakes.push((argument.span, message));
        }
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

    fn bind_value(&mut self, pattern: &'f Pattern, value: &'f Expr, span: Span) {
        if let Pattern::Local(id) = pattern {
            let local = id.0 as usize;
            let (writes, takes) = self.closure_form(value);
            let held = self.operand(value);
            if writes {
                self.writers.insert(local);
            }
            if takes {
                self.takers.insert(local);
            }
            self.define_from(local, held, span);
            self.scope.push(local);
            return;
        }
        let place = self.place_of(value);
        self.bind(pattern, place, span);
    }

    /// Returns whether the value is a closure that writes to what it captures, and whether it takes
    /// it.
    fn closure_form(&mut self, value: &'f Expr) -> (bool, bool) {
        match &value.kind {
            ExprKind::Closure { parameters, body } => {
                let (captures, _) = self.captures(parameters, body);
                (
                    captures.values().any(|c| *c == CaptureMode::Write),
                    captures.values().any(|c| *c == CaptureMode::Take),
                )
            }
            _ => (false, false),
        }
    }

    /// Returns the place of an expression, or of the temporary that holds its value.
    fn place_of(&mut self, value: &'f Expr) -> VariablePlace {
        if let Some(place) = self.place(value) {
            return place;
        }
        let held = self.operand(value);
        let local = self.temporary();
        self.define_from(local, held, value.span);
        VariablePlace { local, path: Vec::new() }
    }

    /// Binds the names of a pattern to the parts of a place.
    fn bind(&mut self, pattern: &'f Pattern, place: VariablePlace, span: Span) {
        let with = |projection| {
            let mut place = place.clone();
            place.path.push(projection);
            place
        };
        match pattern {
            Pattern::Ignore => {}
            Pattern::Local(id) => self.bind_name(*id, place, span),
            Pattern::Named(id, inner) => {
                self.bind(inner, place.clone(), span);
                self.bind_name(*id, place, span);
            }
            Pattern::Borrowed(id, inner) => {
                self.bind(inner, place.clone(), span);
                let local = id.0 as usize;
                let mutable = self.ty(self.function.locals[local].ty).reference() == Some(true);
                self.define_from(local, [], span);
                self.borrow(place, mutable, local, span);
                self.scope.push(local);
            }
            Pattern::Parts(parts) => {
                for (part, at) in parts.iter().zip(0..) {
                    self.bind(part, with(PlaceProjection::Field(at)), span);
                }
            }
            Pattern::Some(inner) => self.bind(inner, with(PlaceProjection::Field(0)), span),
            Pattern::Dereference(inner) => self.bind(inner, with(PlaceProjection::Target), span),
            Pattern::Value(_) | Pattern::Range { .. } => self.access(PlaceAccess::Read, place, span),
            Pattern::None => {}
            Pattern::Any(all) => {
                let start = self.at;
                let mut ends = Vec::new();
                let depth = self.scope.len();
                for one in all {
                    self.at = start;
                    self.scope.truncate(depth);
                    self.bind(one, place.clone(), span);
                    ends.extend(self.at.take());
                }
                self.join(&ends);
            }
        }
    }

    fn bind_name(&mut self, id: LocalId, place: VariablePlace, span: Span) {
        let local = id.0 as usize;
        let ty = self.function.locals[local].ty;
        let from = self.holds_references(ty).then_some(place.local);
        self.take(place, ty, span);
        self.define_from(local, from, span);
        self.scope.push(local);
    }

    /// Reads or moves the value of a place.
    fn take(&mut self, place: VariablePlace, ty: TypeId, span: Span) {
        // A closure that writes to what it captures is not `Copy`.
        let writes = place.path.is_empty() && self.writers.contains(&place.local);
        if self.is_copy(ty) && !writes {
            return self.access(PlaceAccess::Read, place, span);
        }
        let behind = place.path.iter().find(|p| !matches!(p, PlaceProjection::Field(_)));
        if let (Some(behind), Some(_)) = (behind, self.at) {
            let what = match behind {
                PlaceProjection::Target => "a reference",
                _ => "an element",
            };
            let advice = match self.ty(ty).item_name(self.items) {
                Some(name) => format!("derive `Clone, Copy` for `{name}`, or use a reference to it, `&…`"),
                None => "use a reference to it, `&…`".to_string(),
            };
            self.graph.mistakes.push((span, format!("this value cannot be moved out of {what}: {advice}")));
        }
        self.access(PlaceAccess::Move, place, span);
    }

    /// Starts a loan of a place, which `holder` holds.
    fn borrow(&mut self, place: VariablePlace, mutable: bool, holder: usize, span: Span) {
        let loan = self.graph.loans.len();
        // A reference to a target of a reference is valid no longer than that reference's loan.
        if place.path.contains(&PlaceProjection::Target) {
            self.graph.variables[holder].flows.insert(place.local);
        }
        self.graph.loans.push(Loan { place: place.clone(), mutable, span });
        self.graph.variables[holder].loans.insert(loan);
        self.access(PlaceAccess::Borrow(loan), place, span);
    }

    /// Returns the place that an expression names, and evaluates the indices in it; `None` for a
    /// value.
    fn place(&mut self, e: &'f Expr) -> Option<VariablePlace> {
        let with = |mut place: VariablePlace, projection| {
            place.path.push(projection);
            place
        };
        match &e.kind {
            ExprKind::Local(id) => Some(VariablePlace { local: id.0 as usize, path: Vec::new() }),
            ExprKind::Field { base, field } => Some(with(self.place_of(base), PlaceProjection::Field(*field))),
            ExprKind::Dereference(base) => Some(with(self.place_of(base), PlaceProjection::Target)),
            ExprKind::Index { base, index } => {
                let target = self.ty(base.ty).reference().is_some();
                let mut place = self.place_of(base);
                if target {
                    place.path.push(PlaceProjection::Target);
                }
                self.operand(index);
                Some(with(place, PlaceProjection::Element))
            }
            _ => None,
        }
    }

    /// Evaluates an argument: a `&mut` reference is borrowed again, and not moved.
    fn argument(&mut self, e: &'f Expr) -> Option<usize> {
        self.reborrowed(e, true)
    }

    /// Evaluates the value of a block or arm. A `&mut` reference may become a `&` reference there,
    /// and counts as one.
    fn tail(&mut self, e: &'f Expr) -> Option<usize> {
        self.reborrowed(e, false)
    }

    /// Evaluates an operand. The place of a `&mut` reference is borrowed again, and written if
    /// `mutable`.
    fn reborrowed(&mut self, e: &'f Expr, mutable: bool) -> Option<usize> {
        if self.ty(e.ty).reference() == Some(true)
            && let Some(mut place) = self.place(e)
        {
            place.path.push(PlaceProjection::Target);
            let held = self.temporary();
            self.define_from(held, [], e.span);
            self.borrow(place, mutable, held, e.span);
            return Some(held);
        }
        self.operand(e)
    }

    fn all(&mut self, all: impl IntoIterator<Item = &'f Expr>) -> Vec<Option<usize>> {
        // The receiver of a method is borrowed mutably once the arguments are evaluated.
        let mut all = all.into_iter().peekable();
        let receiver = all.next_if(|e| match &e.kind {
            ExprKind::Reference(inner) => e.span == inner.span && self.ty(e.ty).reference() == Some(true),
            _ => false,
        });
        let mut values: Vec<_> = all.map(|e| self.argument(e)).collect();
        if let Some(receiver) = receiver {
            values.push(self.argument(receiver));
        }
        values
    }

    /// Uses the values that a call takes, so that their loans last until it.
    fn consumed(&mut self, values: &[Option<usize>], span: Span) {
        for value in values.iter().flatten() {
            self.use_of(*value, span);
        }
    }

    /// Evaluates an expression. Returns the variable that holds the loans of its value, if any.
    fn operand(&mut self, e: &'f Expr) -> Option<usize> {
        if let Some(place) = self.place(e) {
            let local = place.local;
            self.take(place, e.ty, e.span);
            return self.holding(e.ty, &[Some(local)], e.span);
        }
        match &e.kind {
            ExprKind::Literal(_)
            | ExprKind::LongLiteral(_)
            | ExprKind::Generic(_)
            | ExprKind::Function { .. }
            | ExprKind::MethodValue { .. }
            | ExprKind::SizeOf(_) => None,
            ExprKind::Local(_) | ExprKind::Field { .. } | ExprKind::Index { .. } | ExprKind::Dereference(_) => None,
            ExprKind::Unary(_, a) | ExprKind::Cast(a) => {
                self.operand(a);
                None
            }
            ExprKind::Repeat(a) => {
                let few = matches!(self.function.ty(e.ty), Type::Array(_, Size::Known(0 | 1)));
                if !few && !self.is_copy(a.ty) && self.at.is_some() {
                    let message = "`[value; n]` copies its value, which is not `Copy`: write each element".to_string();
                    self.graph.mistakes.push((a.span, message));
                }
                let held = self.operand(a);
                self.holding(e.ty, &[held], e.span)
            }
            ExprKind::Binary(_, a, b) => {
                self.operand(a);
                self.operand(b);
                None
            }
            ExprKind::Compare(_, a, b) => {
                for side in [a, b] {
                    self.compared(side);
                }
                None
            }
            ExprKind::AndAlso(a, b) | ExprKind::OrElse(a, b) => {
                self.operand(a);
                let short: Vec<usize> = self.at.into_iter().collect();
                self.operand(b);
                self.join(&short);
                None
            }
            ExprKind::Assign { place, operator, value } => {
                let held = match operator {
                    None => self.argument(value),
                    Some(_) => self.operand(value),
                };
                if let Some(place) = self.place(place) {
                    self.graph.variables[place.local].flows.extend(held);
                    if operator.is_some() {
                        self.access(PlaceAccess::Read, place.clone(), e.span);
                    }
                    if let Some(node) = self.add(Some((PlaceAccess::Write, place)), e.span) {
                        self.graph.nodes[node].uses = held.into_iter().collect();
                    }
                }
                None
            }
            ExprKind::Intrinsic { intrinsic, arguments } => {
                let (mut held, mut lent) = (Vec::new(), None);
                let calls = match intrinsic {
                    Intrinsic::ArrayFrom | Intrinsic::ArrayMap => CallTrait::FnMut,
                    _ => CallTrait::Fn,
                };
                for (i, argument) in arguments.iter().enumerate() {
                    let ty = &self.function.types[argument.ty.0 as usize];
                    if matches!(ty, Type::Function { .. }) {
                        self.check_call_trait(argument, calls);
                    }
                    let handle = matches!(ty, Type::Slice { .. } | Type::Shared { .. } | Type::View { .. });
                    let by_reference = matches!(intrinsic, Intrinsic::IsSome | Intrinsic::ArrayLen);
                    if i == 0 && (handle || by_reference) {
                        let place = self.place_of(argument);
                        held.push(Some(place.local));
                        self.access(PlaceAccess::Read, place.clone(), argument.span);
                        lent = handle.then_some(place);
                    } else {
                        held.push(self.argument(argument));
                    }
                }
                let holder = self.holding(e.ty, &held, e.span);
                if let (Some(holder), Some(mut place)) = (holder, lent) {
                    place.path.push(PlaceProjection::Target);
                    self.borrow(place, false, holder, e.span);
                }
                holder
            }
            ExprKind::Call { arguments, .. }
            | ExprKind::CallMethod { arguments, .. }
            | ExprKind::CallItem { arguments, .. } => {
                if let ExprKind::Call { function, .. } = &e.kind {
                    let called = &self.functions[function.0 as usize];
                    for (index, argument) in arguments.iter().enumerate() {
                        if let Some(calls) = self.call_trait(called, index) {
                            self.check_call_trait(argument, calls);
                        }
                    }
                }
                let held = self.all(arguments);
                self.consumed(&held, e.span);
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Tuple(all) | ExprKind::Array(all) => {
                let held = self.all(all);
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Struct { fields, rest } => {
                let held = self.all(fields.iter().map(|(_, e)| e));
                if let Some(rest) = rest {
                    match self.place(rest) {
                        // Only the other fields are taken, which are mostly numbers.
                        Some(place) if self.is_copy(rest.ty) => self.access(PlaceAccess::Read, place, rest.span),
                        Some(_) => {}
                        None => drop(self.operand(rest)),
                    }
                }
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Inline { arguments, .. } | ExprKind::Log { values: arguments, .. } => {
                arguments.iter().for_each(|e| self.compared(e));
                None
            }
            ExprKind::Assertion { condition, values, .. } => {
                if let Some(condition) = condition {
                    self.operand(condition);
                }
                let before = self.at;
                values.iter().for_each(|e| self.compared(e));
                match condition {
                    Some(_) => {
                        let ends: Vec<usize> = before.into_iter().collect();
                        self.join(&ends);
                    }
                    None => self.at = None,
                }
                None
            }
            ExprKind::Reference(inner) => {
                let mutable = self.ty(e.ty).reference() == Some(true);
                let place = self.place_of(inner);
                let held = self.temporary();
                self.define_from(held, [], e.span);
                self.borrow(place, mutable, held, e.span);
                Some(held)
            }
            ExprKind::If { condition, then, otherwise } => {
                self.operand(condition);
                let start = self.at;
                let first = self.block(then);
                let end: Vec<usize> = self.at.into_iter().collect();
                self.at = start;
                let second = otherwise.as_ref().and_then(|e| self.operand(e));
                self.join(&end);
                self.holding(e.ty, &[first, second], e.span)
            }
            ExprKind::Match { value, arms } => {
                let place = self.place_of(value);
                let (mut held, mut ends) = (Vec::new(), Vec::new());
                let mut start = self.at;
                for arm in arms {
                    self.at = start;
                    let depth = self.scope.len();
                    self.bind(&arm.pattern, place.clone(), arm.body.span);
                    if let Some(guard) = &arm.guard {
                        self.operand(guard);
                        let failed: Vec<usize> = self.at.into_iter().chain(start).collect();
                        let matched = self.at.take();
                        start = self.join(&failed);
                        self.at = matched;
                    }
                    held.push(self.tail(&arm.body));
                    self.end_scope(depth);
                    self.scope.truncate(depth);
                    ends.extend(self.at.take());
                }
                self.at = None;
                self.join(&ends);
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Closure { parameters, body } => Some(self.closure(parameters, body, e.span)),
            ExprKind::CallValue { callee, arguments } => {
                let mut held = self.all(arguments);
                if let Some(place) = self.place(callee) {
                    let local = place.local;
                    let name = &self.graph.variables[local].name;
                    if self.writers.contains(&local) && !self.graph.variables[local].mutable && self.at.is_some() {
                        let message = if local < self.function.parameters as usize {
                            format!(
                                "`{name}` is `FnMut`, and a call may change what it captures: declare it `mut {name}`"
                            )
                        } else {
                            format!(
                                "the closure `{name}` changes what it captures, so its variable must be `mut`: `let mut {name} = …`"
                            )
                        };
                        self.graph.mistakes.push((callee.span, message));
                    }
                    let takes = self.takers.contains(&local);
                    self.access(if takes { PlaceAccess::Move } else { PlaceAccess::Read }, place, callee.span);
                    if takes {
                        self.consumed(&held, e.span);
                        held.push(Some(local));
                        return self.holding(e.ty, &held, e.span);
                    }
                    held.push(Some(local));
                } else {
                    held.push(self.operand(callee));
                }
                self.consumed(&held, e.span);
                self.holding(e.ty, &held, e.span)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::Labeled { label, body } => {
                let result = self.enter(*label, None);
                let value = self.block(body);
                self.define_from(result, value, e.span);
                let target = self.loops.pop();
                let breaks = target.map(|t| t.breaks).unwrap_or_default();
                self.join(&breaks);
                self.holding(e.ty, &[Some(result)], e.span)
            }
            ExprKind::Loop { label, body } => {
                let start = self.join(&[]);
                let result = self.enter(*label, start);
                self.block(body);
                self.back(start);
                let breaks = self.loops.pop().map(|t| t.breaks).unwrap_or_default();
                self.at = None;
                self.join(&breaks);
                self.holding(e.ty, &[Some(result)], e.span)
            }
            ExprKind::While { label, condition, body } => {
                let start = self.join(&[]);
                self.operand(condition);
                let end = self.at;
                self.enter(*label, start);
                self.block(body);
                self.back(start);
                self.at = end;
                let breaks = self.loops.pop().map(|t| t.breaks).unwrap_or_default();
                self.join(&breaks);
                None
            }
            ExprKind::For { label, pattern, range, body } => {
                self.operand(&range.start);
                self.operand(&range.end);
                if let Some(step) = &range.step {
                    self.operand(step);
                }
                let start = self.join(&[]);
                let end = self.at;
                self.enter(*label, start);
                let depth = self.scope.len();
                if let Some(counted) = range.enumerate {
                    self.define(counted, e.span);
                }
                pattern.variables(&mut |id| self.define(id, e.span));
                self.block(body);
                self.end_scope(depth);
                self.scope.truncate(depth);
                self.back(start);
                self.at = end;
                let breaks = self.loops.pop().map(|t| t.breaks).unwrap_or_default();
                self.join(&breaks);
                None
            }
            ExprKind::Break { label, value } => {
                let value = value.as_ref().and_then(|e| self.operand(e));
                if let Some(target) = self.loops.iter().rposition(|t| t.label == *label) {
                    let (result, scope) = (self.loops[target].result, self.loops[target].scope);
                    self.define_from(result, value, e.span);
                    self.end_scope(scope);
                    let end = self.at.take();
                    self.loops[target].breaks.extend(end);
                }
                self.at = None;
                None
            }
            ExprKind::Continue { label } => {
                if let Some(target) = self.loops.iter().rposition(|t| t.label == *label) {
                    let (start, scope) = (self.loops[target].start, self.loops[target].scope);
                    self.end_scope(scope);
                    self.back(start);
                }
                self.at = None;
                None
            }
            ExprKind::Return(value) => {
                let held = value.as_ref().and_then(|e| self.operand(e));
                self.end_scope(0);
                self.consumed(&[held], e.span);
                self.at = None;
                None
            }
        }
    }

    fn define(&mut self, id: LocalId, span: Span) {
        let local = id.0 as usize;
        self.access(PlaceAccess::Define, VariablePlace { local, path: Vec::new() }, span);
        self.scope.push(local);
    }

    /// Reads the value of an expression without taking it.
    fn compared(&mut self, e: &'f Expr) {
        match self.place(e) {
            Some(place) => self.access(PlaceAccess::Read, place, e.span),
            None => drop(self.operand(e)),
        }
    }

    fn enter(&mut self, label: LabelId, start: Option<usize>) -> usize {
        let result = self.temporary();
        let scope = self.scope.len();
        self.loops.push(LoopTarget { label, start, breaks: Vec::new(), result, scope });
        result
    }

    fn back(&mut self, start: Option<usize>) {
        if let (Some(at), Some(start)) = (self.at.take(), start) {
            self.graph.nodes[at].next.push(start);
        }
    }

    /// Adds a closure: the loans of its captures, and its body on a separate path.
    fn closure(&mut self, parameters: &'f [Pattern], body: &'f Expr, span: Span) -> usize {
        let (captures, inner) = self.captures(parameters, body);
        if self.at.is_some() {
            self.graph.mistakes.extend(super::analysis::mistakes(inner));
        }
        let held = self.temporary();
        self.define_from(held, [], span);
        for (place, capture) in captures {
            match capture {
                CaptureMode::Read => self.borrow(place, false, held, span),
                CaptureMode::Write => self.borrow(place, true, held, span),
                CaptureMode::Take => self.access(PlaceAccess::Move, place, span),
            }
        }
        held
    }

    /// Returns the variables that a closure captures, and how.
    fn captures(
        &mut self,
        parameters: &'f [Pattern],
        body: &'f Expr,
    ) -> (BTreeMap<VariablePlace, CaptureMode>, AccessGraph) {
        // The body's own graph has its accesses, by variables of which some are its own.
        let mut inner = GraphBuilder {
            function: self.function,
            functions: self.functions,
            items: self.items,
            graph: AccessGraph { variables: self.graph.variables.clone(), ..AccessGraph::default() },
            at: None,
            loops: Vec::new(),
            scope: Vec::new(),
            writers: self.writers.clone(),
            takers: self.takers.clone(),
        };
        inner.graph.nodes.push(FlowNode { access: None, uses: Vec::new(), span: Span::default(), next: Vec::new() });
        inner.at = Some(0);
        let mut own = BTreeSet::new();
        for parameter in parameters {
            parameter.variables(&mut |id| own.extend([id.0 as usize]));
        }
        inner.operand(body);
        let known = self.graph.variables.len();
        let mut captures: BTreeMap<VariablePlace, CaptureMode> = BTreeMap::new();
        for node in &inner.graph.nodes {
            let Some((access, place)) = &node.access else { continue };
            if matches!(access, PlaceAccess::Define | PlaceAccess::Declare) {
                own.insert(place.local);
            }
            if place.local >= known || own.contains(&place.local) || matches!(access, PlaceAccess::End) {
                continue;
            }
            let called = inner.writers.contains(&place.local) && *access == PlaceAccess::Read;
            let capture = match access {
                PlaceAccess::Write => CaptureMode::Write,
                PlaceAccess::Borrow(loan) if inner.graph.loans[*loan].mutable => CaptureMode::Write,
                PlaceAccess::Move => CaptureMode::Take,
                _ if called => CaptureMode::Write,
                _ => CaptureMode::Read,
            };
            // A place behind an element is captured as the whole array.
            let end = place.path.iter().position(|p| *p == PlaceProjection::Element).unwrap_or(place.path.len());
            let place = VariablePlace { local: place.local, path: place.path[..end].to_vec() };
            let known = captures.entry(place).or_insert(capture);
            *known = (*known).max(capture);
        }
        (captures, inner.graph)
    }
}

/// How a closure captures a place, from the weakest to the strongest way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum CaptureMode {
    Read,
    Write,
    Take,
}
