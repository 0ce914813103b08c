//! Blocks, bindings and control flow.

use super::checker::{FunctionChecker, LabeledConstruct, Loop};
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{self, ExprKind, LabelId, Statement};
use crate::syntax::{self, Pattern, SpanPair};
use proc_macro2::Ident;
use std::collections::HashSet;

impl FunctionChecker<'_> {
    /// Checks a block. Returns the block and its type. Names bound inside go out of scope.
    pub(super) fn block(&mut self, block: &syntax::Block, expected: Option<TypeIndex>) -> (hir::Block, TypeIndex) {
        let depth = self.scope.len();
        let mut diverges = false;
        let mut statements = Vec::with_capacity(block.statements.len());
        // A constant is in scope in its whole block.
        let mut constants = HashSet::new();
        for statement in &block.statements {
            let syntax::Statement::Constant { name, ty, value, mark } = statement else { continue };
            if !constants.insert(name) {
                self.report(*mark, format!("this block has two constants `{name}`: rename one of them"));
            }
            let ty = self.ty(ty);
            let number = self.number(value);
            let value = self.expr_of_type(value, ty);
            let local = self.declare(name.to_string(), ty, *mark);
            self.locals[local.0 as usize].constant = true;
            self.constants.extend(number.map(|n| (local, n)));
            statements.push(Statement::Let {
                pattern: hir::Pattern::Local(local),
                value: Some(value),
                span: mark.span,
            });
        }
        for statement in &block.statements {
            self.project();
            match statement {
                syntax::Statement::Constant { .. } => {}
                syntax::Statement::Let { pattern, ty, value, otherwise, mark } => {
                    let ty = match ty {
                        Some(ty) => self.ty(ty),
                        None => self.table.unknown(),
                    };
                    let value = value.as_ref().map(|v| self.expr_of_type(v, ty));
                    let plain = value.is_some();
                    let otherwise = otherwise.as_ref().map(|b| {
                        let (block, ty) = self.block(b, None);
                        let never = self.table.add(Ty::Never);
                        self.coerce(ty, never, b.mark);
                        block
                    });
                    let pattern = self.bind(pattern, ty, !plain, *mark);
                    if let (hir::Pattern::Local(local), true, Some(span)) = (&pattern, plain, name_span(statement)) {
                        self.bound.push((span, *local));
                    }
                    statements.push(match (value, otherwise) {
                        (Some(value), Some(otherwise)) => {
                            Statement::LetElse { pattern, value, otherwise, span: mark.span }
                        }
                        (value, _) => Statement::Let { pattern, value, span: mark.span },
                    });
                }
                syntax::Statement::Expr(e) => {
                    let e = self.expr(e, None);
                    diverges |= matches!(self.table.get(TypeIndex(e.ty.0)), Ty::Never);
                    statements.push(Statement::Expr(e));
                }
                syntax::Statement::Unit(e) => {
                    let unit = self.table.add(Ty::Unit);
                    let e = self.expr_of_type(e, unit);
                    diverges |= matches!(self.table.get(TypeIndex(e.ty.0)), Ty::Never);
                    statements.push(Statement::Expr(e));
                }
                syntax::Statement::Assert { condition, message } => {
                    let bool = self.table.scalar(Scalar::Bool);
                    let condition = self.expr_of_type(condition, bool);
                    statements.push(Statement::Assert { condition, message: message.clone() });
                }
            }
        }
        let value = block.value.as_ref().map(|v| Box::new(self.expr(v, expected)));
        let ty = match &value {
            Some(v) => TypeIndex(v.ty.0),
            None if diverges => self.table.add(Ty::Never),
            None => self.table.add(Ty::Unit),
        };
        self.scope.truncate(depth);
        (hir::Block { statements, value }, ty)
    }

    pub(super) fn branch(
        &mut self,
        condition: &syntax::Expr,
        then: &syntax::Block,
        otherwise: Option<&syntax::Expr>,
        expected: Option<TypeIndex>,
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        let condition = Box::new(self.expr_of_type(condition, bool));
        let (block, mut ty) = self.block(then, expected);
        let otherwise = match otherwise {
            Some(e) => {
                let end = match &e.kind {
                    syntax::ExprKind::Block(b) => end(b),
                    _ => e.mark,
                };
                let e = self.expr(e, expected.or(Some(ty)));
                let other = TypeIndex(e.ty.0);
                if matches!(self.table.get(ty), Ty::Never) {
                    ty = other;
                } else {
                    self.coerce(other, ty, end);
                }
                Some(Box::new(e))
            }
            None => {
                let unit = self.table.add(Ty::Unit);
                self.coerce(ty, unit, end(then));
                ty = unit;
                None
            }
        };
        (ExprKind::If { condition, then: block, otherwise }, ty)
    }

    pub(super) fn enter_loop(&mut self, label: &Option<Ident>, what: LabeledConstruct) -> LabelId {
        let id = LabelId(self.labels);
        self.labels += 1;
        self.loops.push(Loop { label: label.as_ref().map(|l| l.to_string()), id, result: None, what });
        id
    }

    pub(super) fn loop_body(&mut self, body: &syntax::Block) -> hir::Block {
        let unit = self.table.add(Ty::Unit);
        let (block, ty) = self.block(body, Some(unit));
        self.coerce(ty, unit, body.value.as_ref().map_or(body.mark, |v| v.mark));
        block
    }

    pub(super) fn endless(&mut self, label: &Option<Ident>, body: &syntax::Block) -> (ExprKind, TypeIndex) {
        let label = self.enter_loop(label, LabeledConstruct::Loop);
        let body = self.loop_body(body);
        let result = self.loops.pop().and_then(|l| l.result);
        let ty = result.unwrap_or_else(|| self.table.add(Ty::Never));
        (ExprKind::Loop { label, body }, ty)
    }

    pub(super) fn while_loop(
        &mut self,
        label: &Option<Ident>,
        condition: &syntax::Expr,
        body: &syntax::Block,
    ) -> (ExprKind, TypeIndex) {
        let bool = self.table.scalar(Scalar::Bool);
        let condition = Box::new(self.expr_of_type(condition, bool));
        let label = self.enter_loop(label, LabeledConstruct::Counted);
        let body = self.loop_body(body);
        self.loops.pop();
        (ExprKind::While { label, condition, body }, self.table.add(Ty::Unit))
    }

    pub(super) fn labeled(
        &mut self,
        label: &Ident,
        body: &syntax::Block,
        expected: Option<TypeIndex>,
    ) -> (ExprKind, TypeIndex) {
        let id = self.enter_loop(&Some(label.clone()), LabeledConstruct::Block);
        let (block, ty) = self.block(body, expected);
        let broken = self.loops.pop().and_then(|l| l.result);
        let ty = match broken {
            Some(broken) => {
                self.coerce(ty, broken, end(body));
                broken
            }
            None => ty,
        };
        (ExprKind::Labeled { label: id, body: block }, ty)
    }

    fn find_loop(&mut self, label: &Option<Ident>, mark: SpanPair) -> Option<usize> {
        let name = label.as_ref().map(|l| l.to_string());
        // Without a label, only a loop matches. A block needs its label.
        let named = |l: &Loop| if name.is_none() { l.what != LabeledConstruct::Block } else { l.label == name };
        let found = self.loops.iter().rposition(named);
        if found.is_none() {
            self.report(mark, "no enclosing loop or block has this label");
        }
        found
    }

    pub(super) fn break_loop(
        &mut self,
        label: &Option<Ident>,
        value: Option<&syntax::Expr>,
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let never = self.table.add(Ty::Never);
        let Some(at) = self.find_loop(label, mark) else { return (ExprKind::Tuple(Vec::new()), never) };
        let expected = self.loops[at].result;
        let value = value.map(|v| Box::new(self.expr(v, expected)));
        let ty = match &value {
            Some(v) => TypeIndex(v.ty.0),
            None => self.table.add(Ty::Unit),
        };
        if value.is_some() && self.loops[at].what == LabeledConstruct::Counted {
            self.report(mark, "only a `loop` or a labeled block can `break` with a value");
        }
        match expected {
            Some(expected) => {
                self.coerce(ty, expected, mark);
            }
            // The `break` is not reached: another one gives the type.
            None if matches!(self.table.get(ty), Ty::Never) => {}
            None => self.loops[at].result = Some(ty),
        }
        (ExprKind::Break { label: self.loops[at].id, value }, never)
    }

    pub(super) fn continue_loop(&mut self, label: &Option<Ident>, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let never = self.table.add(Ty::Never);
        match self.find_loop(label, mark) {
            Some(at) if self.loops[at].what == LabeledConstruct::Block => {
                self.report(mark, "`continue` needs a loop, and this label names a block");
                (ExprKind::Tuple(Vec::new()), never)
            }
            Some(at) => (ExprKind::Continue { label: self.loops[at].id }, never),
            None => (ExprKind::Tuple(Vec::new()), never),
        }
    }
}

/// Returns the tokens of a block's value, or those of the block if it has no value.
pub(super) fn end(block: &syntax::Block) -> SpanPair {
    block.value.as_ref().map_or(block.mark, |v| v.mark)
}

fn name_span(statement: &syntax::Statement) -> Option<proc_macro2::Span> {
    match statement {
        syntax::Statement::Let { pattern: Pattern::Name { name, .. }, .. } => Some(name.span()),
        _ => None,
    }
}
