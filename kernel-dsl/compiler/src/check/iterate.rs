//! What a `for` runs over: ranges, and the shares of a thread.

use super::{
    Checker, Labelled,
    types::{Id, Kind, Ty},
};
use crate::Scalar;
use crate::hir::{self, Expr, ExprKind, Intrinsic, LocalId, Statement, TypeId};
use crate::syntax::{self, Mark, Pattern};
use proc_macro2::Ident;

/// What a `for` runs over.
struct Iteration {
    range: hir::Range,
    /// The type of the range's indices.
    index: Id,
    /// Of `block::share(shape)`, whose elements are counted by the range: the variable of the shape, and its value.
    shape: Option<(LocalId, Expr)>,
    /// `.enumerate()`
    enumerate: bool,
}

impl Checker<'_> {
    pub(super) fn for_loop(
        &mut self,
        label: &Option<Ident>,
        pattern: &Pattern,
        iterator: &syntax::Expr,
        body: &syntax::Block,
    ) -> (ExprKind, Id) {
        let unit = self.table.add(Ty::Unit);
        let Some(over) = self.iteration(iterator) else { return (ExprKind::Tuple(Vec::new()), self.wrong()) };
        let Iteration { mut range, index, shape, enumerate } = over;
        let depth = self.scope.len();
        let mark = iterator.mark;
        if shape.is_none() && !enumerate {
            let pattern = self.bind(pattern, index, false, mark);
            let (label, body) = self.body_of_for(label, body, depth);
            return (ExprKind::For { label, pattern, range: Box::new(range), body }, unit);
        }
        // What the program binds is made of the index, and bound at the start of the body.
        let at = |kind, ty: Id| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let usize = self.table.scalar(Scalar::Usize);
        let own = self.hidden("index", index);
        let mut item = at(ExprKind::Local(own), index);
        let mut number = item.clone();
        let share = |name: Intrinsic, shape: &(LocalId, Expr), number: &Expr| ExprKind::Intrinsic {
            intrinsic: name,
            arguments: vec![at(ExprKind::Local(shape.0), Id(shape.1.ty.0)), number.clone()],
        };
        match &shape {
            Some(shape) => item = at(share(Intrinsic::ShareAt, shape, &number), Id(shape.1.ty.0)),
            None => {
                let counted = self.hidden("number", usize);
                range.enumerate = Some(counted);
                number = at(ExprKind::Local(counted), usize);
            }
        }
        let has = shape.as_ref().map(|shape| {
            let bool = self.table.scalar(Scalar::Bool);
            at(share(Intrinsic::ShareHas, shape, &number), bool)
        });
        if enumerate {
            let pair = self.table.add(Ty::Tuple(vec![Id(number.ty.0), Id(item.ty.0)]));
            item = at(ExprKind::Tuple(vec![number, item]), pair);
        }
        let pattern = self.bind(pattern, Id(item.ty.0), false, mark);
        let (label, mut body) = self.body_of_for(label, body, depth);
        body.statements.insert(0, Statement::Let { pattern, value: Some(item), span: mark.span });
        if let Some(has) = has {
            let inside = ExprKind::If { condition: Box::new(has), then: body, otherwise: None };
            body = hir::Block { statements: vec![Statement::Expr(at(inside, unit))], value: None };
        }
        let whole = ExprKind::For { label, pattern: hir::Pattern::Local(own), range: Box::new(range), body };
        let Some((variable, value)) = shape else { return (whole, unit) };
        // The shape is worked out once.
        let bound = Statement::Let { pattern: hir::Pattern::Local(variable), value: Some(value), span: mark.span };
        let block = hir::Block { statements: vec![bound, Statement::Expr(at(whole, unit))], value: None };
        (ExprKind::Block(block), unit)
    }

    fn body_of_for(&mut self, label: &Option<Ident>, body: &syntax::Block, depth: usize) -> (hir::LabelId, hir::Block) {
        let label = self.enter_loop(label, Labelled::Counted);
        let body = self.loop_body(body);
        self.loops.pop();
        self.scope.truncate(depth);
        (label, body)
    }

    /// `start..end`, `.step_by(n)`, `.rev()`, a share, `.enumerate()`, and `unroll(…)` or `rolled(…)` around them.
    fn iteration(&mut self, e: &syntax::Expr) -> Option<Iteration> {
        use syntax::ExprKind as E;
        match &e.kind {
            E::Range(start, end) => {
                let index = self.table.add(Ty::Unknown(Kind::Integer));
                let (start, end) = (self.wanted(start, index), self.wanted(end, index));
                Some(counted(start, end, None, index))
            }
            E::Method { receiver, name, arguments, .. } if name == "step_by" && arguments.len() == 1 => {
                let mut over = self.range(receiver, e.mark, "stepped")?;
                if over.range.step.is_some() {
                    self.mistake(e.mark, "a range can be stepped once");
                }
                let usize = self.table.scalar(Scalar::Usize);
                over.range.step = Some(self.wanted(&arguments[0], usize));
                Some(over)
            }
            E::Method { receiver, name, arguments, .. } if name == "rev" && arguments.is_empty() => {
                let mut over = self.range(receiver, e.mark, "reversed")?;
                over.range.order = match (over.range.order, &over.range.step) {
                    (hir::Order::Ascending, None) => hir::Order::Descending,
                    (hir::Order::Ascending, Some(_)) => hir::Order::Reversed,
                    (order, _) => {
                        self.mistake(e.mark, "a range can be reversed once");
                        order
                    }
                };
                Some(over)
            }
            E::Method { receiver, name, arguments, .. } if name == "enumerate" && arguments.is_empty() => {
                let mut over = self.iteration(receiver)?;
                if std::mem::replace(&mut over.enumerate, true) {
                    self.mistake(e.mark, "a range is enumerated once");
                }
                Some(over)
            }
            E::Call(path, arguments) if arguments.len() == 1 => self.around(path, &arguments[0], e),
            _ => {
                self.mistake(e.mark, WHAT);
                None
            }
        }
    }

    /// A range that more is asked of; a share and numbered ones are done.
    fn range(&mut self, e: &syntax::Expr, mark: Mark, what: &str) -> Option<Iteration> {
        let over = self.iteration(e)?;
        if over.shape.is_some() {
            self.mistake(mark, format!("a share is not {what}: it goes through the thread's elements in order"));
            return None;
        }
        if over.enumerate {
            self.mistake(mark, format!("a range is {what} first and enumerated last: `(a..b)….enumerate()`"));
            return None;
        }
        Some(over)
    }

    /// A call of one argument: how a loop is compiled, or what the prelude runs over.
    fn around(&mut self, path: &syntax::Path, argument: &syntax::Expr, e: &syntax::Expr) -> Option<Iteration> {
        let name = path.name();
        match name.as_str() {
            "unroll_by" => {
                let over = self.iteration(argument)?;
                let usize = self.table.scalar(Scalar::Usize);
                self.coerce(over.index, usize, argument.mark);
                if over.enumerate || over.shape.is_some() {
                    self.mistake(argument.mark, "`unroll_by` stands around a range of `usize`; `.enumerate()` goes behind it: `unroll_by::<2>(0..n).enumerate()`");
                }
                let copies = match path.segments.last().map_or(&[][..], |s| &s.arguments) {
                    [copies] => self.size(copies),
                    _ => self.table.unknown(),
                };
                match *self.table.get(copies) {
                    Ty::Size(size) => self.unrolled(over, hir::Unroll::By(size), path.mark),
                    Ty::Wrong => None,
                    _ => {
                        self.mistake(path.mark, "say how many copies there are to be: `unroll_by::<4>(0..n)`");
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
                self.mistake(e.mark, WHAT);
                None
            }
        }
    }

    fn unrolled(&mut self, mut over: Iteration, unroll: hir::Unroll, mark: Mark) -> Option<Iteration> {
        if over.range.unroll != hir::Unroll::Auto {
            self.mistake(mark, "a loop is either unrolled or rolled, and once");
        }
        over.range.unroll = unroll;
        Some(over)
    }

    /// `block::share([rows, columns])`
    fn share(&mut self, path: &syntax::Path, shape: &syntax::Expr, mark: Mark) -> Iteration {
        let usize = self.table.scalar(Scalar::Usize);
        let rank = self.table.add(Ty::Unknown(Kind::Size));
        let ty = self.table.add(Ty::Array(usize, rank));
        let shape = self.wanted(shape, ty);
        self.confirm(path, "block::share", Some(rank), false);
        let variable = self.hidden("shape", ty);
        let at = |kind, ty: Id| Expr { kind, ty: TypeId(ty.0), span: mark.span };
        let local = at(ExprKind::Local(variable), ty);
        let count = ExprKind::Intrinsic { intrinsic: Intrinsic::ShareCount, arguments: vec![local] };
        let zero = self.literal(super::Literal::Integer(0, mark));
        let over = counted(at(zero, usize), at(count, usize), None, usize);
        Iteration { shape: Some((variable, shape)), ..over }
    }

    /// `grid::stride(n)`, `block::stride(n)`: from the thread's index on, by the number of threads.
    fn stride(
        &mut self,
        path: &syntax::Path,
        end: &syntax::Expr,
        [first, step]: [Intrinsic; 2],
        mark: Mark,
    ) -> Iteration {
        let usize = self.table.scalar(Scalar::Usize);
        self.confirm(path, &path.name(), None, false);
        let of = |intrinsic| Expr {
            kind: ExprKind::Intrinsic { intrinsic, arguments: Vec::new() },
            ty: TypeId(usize.0),
            span: mark.span,
        };
        let end = self.wanted(end, usize);
        counted(of(first), end, Some(of(step)), usize)
    }
}

const WHAT: &str = "a `for` in a kernel runs over a range, `block::share(shape)`, `grid::stride(n)` or `block::stride(n)`: with `.step_by(n)` and `.rev()` on a range, `.enumerate()` behind, and `unroll(…)`, `unroll_by::<F>(…)` or `rolled(…)` around it all, if need be";

fn counted(start: Expr, end: Expr, step: Option<Expr>, index: Id) -> Iteration {
    let range =
        hir::Range { start, end, step, unroll: hir::Unroll::Auto, order: hir::Order::Ascending, enumerate: None };
    Iteration { range, index, shape: None, enumerate: false }
}
