//! The iterators of `for`: ranges, shares of a thread, and register arrays.

use super::checker::{FunctionChecker, LabeledConstruct, Literal};
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::Scalar;
use crate::hir::{self, Expr, ExprKind, Intrinsic, LocalId, Statement, TypeId};
use crate::syntax::{self, Pattern, SpanPair};
use proc_macro2::Ident;

/// The iterator of a `for`.
struct Iteration {
    range: hir::Range,
    /// The type of the range's indices.
    index: TypeIndex,
    /// The items that the range counts, if the loop is over items.
    of: Option<RangeCount>,
    /// `.enumerate()`
    enumerate: bool,
    /// Whether the numbers of `enumerate` count iterations instead of the array's elements, because
    /// the order or the step was changed before.
    counts: bool,
}

/// A checked expression that a `for` iterates over.
enum Iterated {
    Iterator(Box<Iteration>),
    /// A value whose elements the loop takes.
    Value(Expr),
}

/// A value with items that a range counts, and the variable that holds the value during the loop.
struct RangeCount {
    variable: LocalId,
    value: Expr,
    items: IteratorItems,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum IteratorItems {
    /// The items of `block::share(shape)`; the value is the shape.
    Share,
    /// The elements of an array, of this type.
    Array(TypeIndex),
    /// References to the elements of an array, of this type; the value is a reference to the array.
    References { element: TypeIndex, mutable: bool },
    /// The elements of an array, of this type; the value is a reference to the array.
    Targets(TypeIndex),
}

impl FunctionChecker<'_> {
    pub(super) fn for_loop(
        &mut self,
        label: &Option<Ident>,
        pattern: &Pattern,
        iterator: &syntax::Expr,
        body: &syntax::Block,
    ) -> (ExprKind, TypeIndex) {
        let unit = self.table.add(Ty::Unit);
        let Some(over) = self.iteration(iterator) else { return (ExprKind::Tuple(Vec::new()), self.wrong()) };
        let Iteration { mut range, index, of, enumerate, counts } = over;
        let depth = self.scope.len();
        let mark = iterator.mark;
        if of.is_none() && !enumerate {
            let pattern = self.bind(pattern, index, false, mark);
            let (label, body) = self.body_of_for(label, body, depth);
            return (ExprKind::For { label, pattern, range: Box::new(range), body }, unit);
        }
        // The loop pattern is bound at the start of the body, to a value computed from the index.
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let usize = self.table.scalar(Scalar::Usize);
        let own = self.declare_temporary("index", index);
        let mut item = at(ExprKind::Local(own), index);
        let mut number = item.clone();
        let mut has = None;
        if let Some(RangeCount { variable, value, items }) = &of {
            let ty = TypeIndex(value.ty.0);
            let whole = at(ExprKind::Local(*variable), ty);
            match items {
                IteratorItems::Share => {
                    let share =
                        |intrinsic| ExprKind::Intrinsic { intrinsic, arguments: vec![whole.clone(), number.clone()] };
                    item = at(share(Intrinsic::ShareAt), ty);
                    let bool = self.table.scalar(Scalar::Bool);
                    has = Some(at(share(Intrinsic::ShareHas), bool));
                }
                IteratorItems::Array(element) => {
                    let (base, index) = (Box::new(whole), Box::new(number.clone()));
                    item = at(ExprKind::Index { base, index }, *element);
                }
                IteratorItems::References { element, .. } | IteratorItems::Targets(element) => {
                    let array = self.dereferenced(whole);
                    let (base, index) = (Box::new(array), Box::new(number.clone()));
                    item = at(ExprKind::Index { base, index }, *element);
                }
            }
            if let IteratorItems::References { element, mutable } = *items {
                let reference = self.table.add(Ty::Reference { to: element, mutable });
                item = at(ExprKind::Reference(Box::new(item)), reference);
            }
        }
        if enumerate && (of.is_none() || counts) {
            let counted = self.declare_temporary("number", usize);
            range.enumerate = Some(counted);
            number = at(ExprKind::Local(counted), usize);
        }
        if enumerate {
            let pair = self.table.add(Ty::Tuple(vec![TypeIndex(number.ty.0), TypeIndex(item.ty.0)]));
            item = at(ExprKind::Tuple(vec![number, item]), pair);
        }
        let pattern = self.bind(pattern, TypeIndex(item.ty.0), false, mark);
        let (label, mut body) = self.body_of_for(label, body, depth);
        body.statements.insert(0, Statement::Let { pattern, value: Some(item), span: mark.span });
        if let Some(has) = has {
            let inside = ExprKind::If { condition: Box::new(has), then: body, otherwise: None };
            body = hir::Block { statements: vec![Statement::Expr(at(inside, unit))], value: None };
        }
        let whole = ExprKind::For { label, pattern: hir::Pattern::Local(own), range: Box::new(range), body };
        let Some(RangeCount { variable, value, .. }) = of else { return (whole, unit) };
        // The value is evaluated once.
        let bound = Statement::Let { pattern: hir::Pattern::Local(variable), value: Some(value), span: mark.span };
        let block = hir::Block { statements: vec![bound, Statement::Expr(at(whole, unit))], value: None };
        (ExprKind::Block(block), unit)
    }

    fn body_of_for(&mut self, label: &Option<Ident>, body: &syntax::Block, depth: usize) -> (hir::LabelId, hir::Block) {
        let label = self.enter_loop(label, LabeledConstruct::Counted);
        let body = self.loop_body(body);
        self.loops.pop();
        self.scope.truncate(depth);
        (label, body)
    }

    /// Checks an iterator: `start..end`, `start..=end`, `.step_by(n)`, `.rev()`, a share,
    /// `.enumerate()`, and `unroll(…)` or `rolled(…)` around them.
    fn iteration(&mut self, e: &syntax::Expr) -> Option<Iteration> {
        match self.iterated(e)? {
            Iterated::Iterator(over) => Some(*over),
            Iterated::Value(value) => self.elements(value, e.mark),
        }
    }

    /// Checks the expression that a `for` iterates over, or the receiver of an adapter. A method
    /// that the program implements for a value precedes the adapter of its name, as in Rust.
    fn iterated(&mut self, e: &syntax::Expr) -> Option<Iterated> {
        use syntax::ExprKind as E;
        let over = match &e.kind {
            E::Range { start, end, closed } => {
                let index = self.table.add(Ty::Unknown(UnknownKind::Integer));
                let (start, end) = (self.expr_of_type(start, index), self.expr_of_type(end, index));
                let mut over = counted(start, end, None, index);
                over.range.closed = *closed;
                over
            }
            E::Method { receiver, name, generics, arguments } if is_adapter(name, arguments) => {
                let over = match self.iterated(receiver)? {
                    Iterated::Iterator(over) => *over,
                    Iterated::Value(value) => {
                        if let Some(called) = self.own_method(&value, name, generics, arguments, e.mark) {
                            return Some(Iterated::Value(called));
                        }
                        self.elements(value, receiver.mark)?
                    }
                };
                self.refuse_generics(name, generics, e.mark);
                self.adapted(over, name, arguments, e.mark)?
            }
            E::Method { receiver, name, generics, arguments } if name == "iter" || name == "iter_mut" => {
                let array = self.expr(receiver, None);
                let mut array = self.dereferenced(array);
                let ty = TypeIndex(array.ty.0);
                if !matches!(self.table.get(ty), Ty::Array(..)) || !arguments.is_empty() {
                    let (kind, ty) = self.method_of(array, name, generics, arguments, e.mark);
                    return Some(Iterated::Value(Expr { kind, ty: TypeId(ty.0), span: e.mark.span }));
                }
                if let Some(called) = self.own_method(&array, name, generics, arguments, e.mark) {
                    return Some(Iterated::Value(called));
                }
                self.refuse_generics(name, generics, e.mark);
                let mutable = name == "iter_mut";
                if mutable {
                    self.assignable(&mut array, receiver.mark);
                }
                let reference = self.table.add(Ty::Reference { to: ty, mutable });
                let kind = ExprKind::Reference(Box::new(array));
                self.elements(Expr { kind, ty: TypeId(reference.0), span: e.mark.span }, e.mark)?
            }
            E::Call(path, arguments) if arguments.len() == 1 && path.is_builtin() => {
                self.adapter(path, &arguments[0], e)?
            }
            _ => return Some(Iterated::Value(self.expr(e, None))),
        };
        Some(Iterated::Iterator(Box::new(over)))
    }

    /// Checks the call of a method that the program implements for a value; `None` if the value has
    /// no such method.
    fn own_method(
        &mut self,
        value: &Expr,
        name: &Ident,
        generics: &[syntax::TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> Option<Expr> {
        let receiver = self.dereferenced(value.clone());
        match self.table.get(TypeIndex(receiver.ty.0)) {
            Ty::Wrong | Ty::Unknown(_) => return None,
            // Rust's method takes an array by value, so a method of a trait does not precede it.
            Ty::Array(..) if name == "into_iter" => return None,
            _ => {}
        }
        let (kind, ty) = self.nominal_method(&receiver, name, generics, arguments, mark)?;
        Some(Expr { kind, ty: TypeId(ty.0), span: mark.span })
    }

    /// Applies the adapter `name` to an iterator.
    fn adapted(
        &mut self,
        mut over: Iteration,
        name: &Ident,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> Option<Iteration> {
        match name.to_string().as_str() {
            "step_by" => {
                self.require_range(&over, mark, "stepped")?;
                if over.range.step.is_some() {
                    self.report(mark, "`step_by` can be applied only once");
                }
                let usize = self.table.scalar(Scalar::Usize);
                over.range.step = Some(self.expr_of_type(&arguments[0], usize));
            }
            "rev" => {
                self.require_range(&over, mark, "reversed")?;
                over.range.order = match (over.range.order, &over.range.step) {
                    (hir::IterationOrder::Ascending, None) => hir::IterationOrder::Descending,
                    (hir::IterationOrder::Ascending, Some(_)) => hir::IterationOrder::Reversed,
                    (order, _) => {
                        self.report(mark, "`rev` can be applied only once");
                        order
                    }
                };
            }
            "enumerate" => {
                over.counts = over.range.step.is_some() || over.range.order != hir::IterationOrder::Ascending;
                let is_second = std::mem::replace(&mut over.enumerate, true);
                if is_second {
                    self.report(mark, "`enumerate` can be applied only once");
                }
            }
            "copied" | "cloned" => match over.of.as_mut().map(|of| (&mut of.items, over.enumerate)) {
                Some((items, false)) if let IteratorItems::References { element, mutable: false } = *items => {
                    *items = IteratorItems::Targets(element);
                }
                _ => {
                    let message = format!("`{name}` follows `iter` of an array: `for x in array.iter().{name}()`");
                    self.report(mark, message);
                    return None;
                }
            },
            // `into_iter`
            _ => {}
        }
        Some(over)
    }

    /// Checks the elements of a register array, or references to them. The indices are constant, so
    /// the body is copied for each element.
    fn elements(&mut self, value: Expr, mark: SpanPair) -> Option<Iteration> {
        let items = match *self.table.get(TypeIndex(value.ty.0)) {
            Ty::Array(element, _) => Some(IteratorItems::Array(element)),
            Ty::Reference { to, mutable } => match *self.table.get(to) {
                Ty::Array(element, _) => Some(IteratorItems::References { element, mutable }),
                _ => None,
            },
            Ty::Wrong => return None,
            _ => None,
        };
        let Some(items) = items else {
            self.report(mark, NOT_ITERABLE);
            return None;
        };
        Some(self.counted_items(value, Intrinsic::ArrayLen, items, mark))
    }

    /// Makes a range over the items of `value`. The operation `count` computes their number.
    fn counted_items(&mut self, value: Expr, count: Intrinsic, items: IteratorItems, mark: SpanPair) -> Iteration {
        let usize = self.table.scalar(Scalar::Usize);
        let ty = TypeIndex(value.ty.0);
        let variable = self.declare_temporary(if items == IteratorItems::Share { "shape" } else { "array" }, ty);
        let at = |kind, ty: TypeIndex| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let local = at(ExprKind::Local(variable), ty);
        let local = self.dereferenced(local);
        let count = ExprKind::Intrinsic { intrinsic: count, arguments: vec![local] };
        let zero = self.literal(Literal::Integer(0, mark));
        let mut over = counted(at(zero, usize), at(count, usize), None, usize);
        if items != IteratorItems::Share {
            over.range.unroll = hir::Unroll::Full;
        }
        Iteration { of: Some(RangeCount { variable, value, items }), ..over }
    }

    /// Reports an iterator that cannot be stepped or reversed: shares, and what `enumerate` has
    /// numbered by iterations.
    fn require_range(&mut self, over: &Iteration, mark: SpanPair, what: &str) -> Option<()> {
        if over.of.as_ref().is_some_and(|of| of.items == IteratorItems::Share) {
            self.report(mark, format!("a share cannot be {what}: it is iterated in order"));
            return None;
        }
        if over.enumerate && (over.of.is_none() || over.counts) {
            self.report(
                mark,
                format!("an enumerated range cannot be {what}: put `.enumerate()` last, `(a..b)….enumerate()`"),
            );
            return None;
        }
        Some(())
    }

    /// Checks a call with one argument: an unrolling hint, or an iterator of the prelude.
    fn adapter(&mut self, path: &syntax::Path, argument: &syntax::Expr, e: &syntax::Expr) -> Option<Iteration> {
        let name = path.name();
        match name.as_str() {
            "unroll_by" => {
                let over = self.iteration(argument)?;
                let usize = self.table.scalar(Scalar::Usize);
                self.coerce(over.index, usize, argument.mark);
                if over.enumerate || over.of.is_some() {
                    self.report(argument.mark, "`unroll_by` wraps a range of `usize`; put `.enumerate()` after it: `unroll_by::<2>(0..n).enumerate()`");
                }
                let copies = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
                    [copies] => self.size(copies),
                    _ => self.table.unknown(),
                };
                match *self.table.get(copies) {
                    Ty::Size(size) => self.unrolled(over, hir::Unroll::By(size), path.mark),
                    Ty::Wrong => None,
                    _ => {
                        self.report(path.mark, "`unroll_by` needs a constant factor: `unroll_by::<4>(0..n)`");
                        None
                    }
                }
            }
            "unroll" => {
                let over = self.iteration(argument)?;
                self.unrolled(over, hir::Unroll::Full, path.mark)
            }
            "rolled" => {
                let over = self.iteration(argument)?;
                self.unrolled(over, hir::Unroll::Never, path.mark)
            }
            "block::share" => Some(self.share(path, argument, e.mark)),
            "grid::stride" => Some(self.stride(path, argument, [Intrinsic::GridIndex, Intrinsic::GridThreads], e.mark)),
            "block::stride" => {
                Some(self.stride(path, argument, [Intrinsic::ThreadIndex, Intrinsic::BlockThreads], e.mark))
            }
            _ => {
                self.report(e.mark, NOT_ITERABLE);
                None
            }
        }
    }

    fn unrolled(&mut self, mut over: Iteration, unroll: hir::Unroll, mark: SpanPair) -> Option<Iteration> {
        let of_array = over.of.as_ref().is_some_and(|of| of.items != IteratorItems::Share);
        if of_array && unroll == hir::Unroll::Never {
            self.report(
                mark,
                "a loop over an array cannot be `rolled`: its elements are in registers, which cannot be indexed at run time. Remove `rolled`",
            );
        } else if !of_array && over.range.unroll != hir::Unroll::Auto {
            self.report(mark, "a loop takes one of `unroll`, `unroll_by` and `rolled`, only once");
        }
        over.range.unroll = unroll;
        Some(over)
    }

    /// Checks `block::share([rows, columns])`
    fn share(&mut self, path: &syntax::Path, shape: &syntax::Expr, mark: SpanPair) -> Iteration {
        let usize = self.table.scalar(Scalar::Usize);
        let rank = self.table.add(Ty::Unknown(UnknownKind::Size));
        let ty = self.table.add(Ty::Array(usize, rank));
        let shape = self.expr_of_type(shape, ty);
        self.confirm(path, "block::share", &[rank], false);
        self.counted_items(shape, Intrinsic::ShareCount, IteratorItems::Share, mark)
    }

    /// Checks `grid::stride(n)` and `block::stride(n)`: a range that starts at the thread's index
    /// and steps by the number of threads.
    fn stride(
        &mut self,
        path: &syntax::Path,
        end: &syntax::Expr,
        [first, step]: [Intrinsic; 2],
        mark: SpanPair,
    ) -> Iteration {
        let usize = self.table.scalar(Scalar::Usize);
        self.confirm(path, &path.name(), &[], false);
        let of = |intrinsic| Expr {
            kind: ExprKind::Intrinsic { intrinsic, arguments: Vec::new() },
            ty: TypeId(usize.0),
            span: mark.span,
        };
        let end = self.expr_of_type(end, usize);
        counted(of(first), end, Some(of(step)), usize)
    }
}

const NOT_ITERABLE: &str = "a `for` in a kernel iterates over a range, an array, `block::share(shape)`, `grid::stride(n)` or `block::stride(n)`; a range takes `.step_by(n)` and `.rev()`, any iterator takes a final `.enumerate()`, and `unroll(…)`, `unroll_by::<F>(…)` or `rolled(…)` can wrap the whole";

/// Returns whether a method of this name with these arguments is an adapter of iterators.
fn is_adapter(name: &Ident, arguments: &[syntax::Expr]) -> bool {
    match name.to_string().as_str() {
        "rev" | "enumerate" | "into_iter" | "copied" | "cloned" => arguments.is_empty(),
        "step_by" => arguments.len() == 1,
        _ => false,
    }
}

fn counted(start: Expr, end: Expr, step: Option<Expr>, index: TypeIndex) -> Iteration {
    let range = hir::Range {
        start,
        end,
        closed: false,
        step,
        unroll: hir::Unroll::Auto,
        order: hir::IterationOrder::Ascending,
        enumerate: None,
    };
    Iteration { range, index, of: None, enumerate: false, counts: false }
}
