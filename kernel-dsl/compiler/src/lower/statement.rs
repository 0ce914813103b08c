//! Blocks and control flow.

use super::lowerer::Lowerer;
use super::lowerer::frame::LoopFrame;
use super::lowerer::maybe_const::MaybeConst;
use super::lowerer::value::{CacheHint, Val, ViewValue};
use crate::Scalar;
use crate::hir::{self, Expr, LabelId, Pattern, Statement, TypeId};
use crate::ir::{self, Op, Region, Type, Values};
use crate::source::Span;

impl<'h> Lowerer<'h> {
    /// Lowers a block and its value. The lifetime of a shared array created in the block ends with
    /// the block, unless the value refers to the array.
    pub(super) fn block(&mut self, block: &'h hir::Block) -> Val {
        let opened = self.shared.plan.open();
        let value = self.statements(block, 0);
        self.shared.plan.close(opened, &value);
        value
    }

    /// Lowers the statements from number `first` on, and the block's value.
    pub(super) fn statements(&mut self, block: &'h hir::Block, first: usize) -> Val {
        for (i, statement) in block.statements.iter().enumerate().skip(first) {
            if self.builder.ended() {
                return Val::Unit;
            }
            if self.token_variable(statement).is_some() {
                return self.with_token(block, i);
            }
            self.statement(statement);
        }
        block.value.as_ref().map_or(Val::Unit, |v| self.expr(v))
    }

    pub(super) fn statement(&mut self, statement: &'h Statement) {
        match statement {
            Statement::Let { pattern, value: None, span } => {
                self.at(*span);
                self.declare(pattern, *span);
            }
            Statement::Let { pattern: Pattern::Local(id), value: Some(value), span }
                if self.function().locals[id.0 as usize].constant =>
            {
                self.at(*span);
                self.bind_constant(*id, value);
            }
            Statement::Let { pattern, value: Some(value), span } => {
                if let Pattern::Local(id) = pattern {
                    self.name_hint = Some(&self.function().locals[id.0 as usize].name);
                }
                let val = self.expr(value);
                self.name_hint = None;
                self.at(*span);
                self.bind(pattern, value.ty, val);
            }
            Statement::LetElse { pattern, value, otherwise, span } => {
                self.let_else(*span, pattern, value, otherwise);
            }
            Statement::Expr(e) => {
                self.expr(e);
            }
            Statement::Assert { condition, message } => match self.constant_condition(condition) {
                Some(0) => {
                    let what = if message.is_empty() { "the assertion fails for this instance" } else { message };
                    self.error(condition.span, what);
                }
                Some(_) => {}
                None => {
                    self.error(condition.span, "the condition of a `const` assertion must be a compile-time constant")
                }
            },
        }
    }

    /// Lowers an arm of a branch, which yields `types` if control reaches its end.
    pub(super) fn arm(&mut self, types: Option<&[Type]>, lower: impl FnOnce(&mut Self) -> Val) -> (Region, Val) {
        self.builder.enter([]);
        let value = lower(self);
        if let (Some(types), false) = (types, self.builder.ended()) {
            let values = self.flatten(&value);
            if values.len() == types.len() {
                self.builder.effect(Op::Yield(values));
            } else {
                // This point is unreachable: a nested construct left the arm in both branches.
                self.builder.effect(Op::Return);
            }
        }
        (self.builder.leave(), value)
    }

    pub(super) fn branch(
        &mut self,
        e: &'h Expr,
        condition: &'h Expr,
        then: &'h hir::Block,
        otherwise: Option<&'h Expr>,
    ) -> Val {
        let condition = self.scalar(condition);
        self.choose(e, condition, |l| l.block(then), |l| otherwise.map_or(Val::Unit, |o| l.expr(o)))
    }

    /// Lowers a branch `e`: the value of `then` if the condition holds, otherwise that of
    /// `otherwise`.
    pub(super) fn choose(
        &mut self,
        e: &'h Expr,
        condition: MaybeConst,
        then: impl FnOnce(&mut Self) -> Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        self.choose_of(e.ty, e.span, condition, then, otherwise)
    }

    /// Lowers [`Lowerer::choose`] for a value of type `ty`, at `span`.
    pub(super) fn choose_of(
        &mut self,
        ty: TypeId,
        span: Span,
        condition: MaybeConst,
        then: impl FnOnce(&mut Self) -> Val,
        otherwise: impl FnOnce(&mut Self) -> Val,
    ) -> Val {
        // The instance or the target decides: the other branch need not be valid there.
        if let Some(bits) = condition.bits {
            return if bits != 0 { then(self) } else { otherwise(self) };
        }
        if matches!(self.ty(ty), hir::Type::Pending) {
            return self.choose_pending(condition, span, then, otherwise);
        }
        let parts = self.parts(ty);
        match parts {
            Some(types) => {
                let (then, a) = self.arm(Some(&types), then);
                let (otherwise, b) = self.arm(Some(&types), otherwise);
                self.at(span);
                let op = Op::If { condition: condition.value, then, otherwise };
                let results = self.builder.emit(op, types);
                let mut value = self.rebuild(ty, &mut results.iter().copied());
                value.merge_properties(&a, &b);
                value
            }
            // Arrays are passed in registers.
            None if self.storable(ty) => {
                let result = self.storage(ty, "result");
                let write = |l: &mut Self, value: Val| {
                    if !l.builder.ended() {
                        l.write_storage(&result, value);
                    }
                    Val::Unit
                };
                let (then, _) = self.arm(None, |l| {
                    let value = then(l);
                    write(l, value)
                });
                let (otherwise, _) = self.arm(None, |l| {
                    let value = otherwise(l);
                    write(l, value)
                });
                self.at(span);
                self.builder.effect(Op::If { condition: condition.value, then, otherwise });
                self.peek_storage(&result, ty)
            }
            // Shared arrays and references are resolved at compile time: both arms must yield the
            // same one.
            None => {
                let (before, told) = (self.builder.kernel.values.len(), self.errors.len());
                let (then, a) = self.arm(None, then);
                let (otherwise, b) = self.arm(None, otherwise);
                // An arm that control leaves yields no value.
                let (value, same) = match (then.yielded().is_some(), otherwise.yielded().is_some()) {
                    (true, true) => (a.clone(), a == b),
                    (true, false) => (a, true),
                    (false, _) => (b, true),
                };
                self.at(span);
                self.builder.effect(Op::If { condition: condition.value, then, otherwise });
                match self.ty(ty) {
                    _ if self.errors.len() > told => {}
                    _ if same && value.all_values(&mut |v| (v.0 as usize) < before) => {}
                    _ if same => self.error_with_help(
                        span,
                        "a shared array or reference created in a branch cannot leave the branch",
                        "create it before the branch",
                    ),
                    hir::Type::Function { .. } => self.error_with_help(
                        span,
                        "closures are resolved at compile time; this one would be chosen at run time",
                        "call it in each branch",
                    ),
                    hir::Type::Option(of) if matches!(self.ty(*of), hir::Type::Reference { .. }) => self
                        .error_with_help(
                            span,
                            "references are resolved at compile time; the target of this one would be chosen at run time",
                            "use the value instead of a reference: `.get(i).copied()`",
                        ),
                    hir::Type::Reference { .. } => self.error_with_help(
                        span,
                        "references are resolved at compile time; the variable of this one would be chosen at run time",
                        "use the variable in each branch",
                    ),
                    _ if self.names_places(ty) => self.error_with_help(
                        span,
                        "references are resolved at compile time; the target of one in this value would be chosen at run time",
                        "use the value instead of a reference: `.get(i).copied()`",
                    ),
                    _ => self.error_with_help(
                        span,
                        "shared arrays are resolved at compile time; this one would be chosen at run time",
                        "put both into one array and index it: `Shared::new([2, …])` and `.at(i)`",
                    ),
                }
                value
            }
        }
    }

    /// Lowers `a && b` and `a || b`. The right side runs only if the left side does not decide the
    /// result.
    pub(super) fn lazy(&mut self, span: Span, a: &'h Expr, b: &'h Expr, and: bool) -> Val {
        let a = self.scalar(a);
        match a.bits {
            Some(bits) if (bits != 0) == and => return Val::Scalar(self.scalar(b)),
            Some(_) => return Val::Scalar(a),
            None => {}
        }
        let types = [Type::Scalar(Scalar::Bool)];
        let (decided, _) = self.arm(Some(&types), |l| Val::Scalar(l.scalar(b)));
        let (short, _) = self.arm(Some(&types), |l| {
            let value = l.builder.constant(Scalar::Bool, u64::from(!and));
            Val::Scalar(MaybeConst::unknown(value))
        });
        self.at(span);
        let (then, otherwise) = if and { (decided, short) } else { (short, decided) };
        let results = self.builder.emit(Op::If { condition: a.value, then, otherwise }, types);
        Val::Scalar(MaybeConst::unknown(results[0]))
    }

    pub(super) fn endless(&mut self, e: &'h Expr, id: LabelId, body: &'h hir::Block) -> Val {
        let label = self.label();
        if !self.storable(e.ty) {
            self.error_with_help(
                e.span,
                "`break` cannot return a shared array, a reference or a closure from a loop",
                "`break` with the numbers it depends on, and create it after the loop",
            );
        }
        let result = self.storage(e.ty, "result");
        self.frame_mut().loops.push(LoopFrame { id, label, leave: label, result: Some(result.clone()), repeats: true });
        self.builder.enter([]);
        self.block(body);
        let body = self.builder.leave();
        self.frame_mut().loops.pop();
        self.at(e.span);
        self.builder.effect(Op::Loop { label, inits: Values::new(), body });
        self.read_storage(&result, e.ty)
    }

    /// Lowers `'label: { … }`, which `break 'label value` leaves.
    pub(super) fn labeled(&mut self, e: &'h Expr, id: LabelId, body: &'h hir::Block) -> Val {
        let label = self.label();
        if !self.storable(e.ty) {
            self.error_with_help(
                e.span,
                "`break` cannot return a shared array, a reference or a closure from a labeled block",
                "`break` with the numbers it depends on, and create it after the block",
            );
        }
        let result = self.storage(e.ty, "result");
        let frame = LoopFrame { id, label, leave: label, result: Some(result.clone()), repeats: false };
        self.frame_mut().loops.push(frame);
        self.builder.enter([]);
        let value = self.block(body);
        if !self.builder.ended() {
            self.write_storage(&result, value);
        }
        let body = self.builder.leave();
        self.frame_mut().loops.pop();
        self.at(e.span);
        self.builder.effect(Op::Block { label, body });
        self.read_storage(&result, e.ty)
    }

    pub(super) fn while_loop(&mut self, span: Span, id: LabelId, condition: &'h Expr, body: &'h hir::Block) {
        let label = self.label();
        self.frame_mut().loops.push(LoopFrame { id, label, leave: label, result: None, repeats: true });
        self.builder.enter([]);
        let k = self.scalar(condition);
        self.builder.enter([]);
        let go_on = self.builder.leave();
        self.builder.enter([]);
        self.builder.effect(Op::Break(label, Values::new()));
        let stop = self.builder.leave();
        self.builder.effect(Op::If { condition: k.value, then: go_on, otherwise: stop });
        self.block(body);
        let body = self.builder.leave();
        self.frame_mut().loops.pop();
        self.at(span);
        self.builder.effect(Op::Loop { label, inits: Values::new(), body });
    }

    pub(super) fn break_loop(&mut self, span: Span, id: LabelId, value: Option<&'h Expr>) {
        let value = value.map(|v| self.expr(v));
        self.at(span);
        let Some(target) = self.frame().loops.iter().find(|l| l.id == id) else {
            self.error(span, "no enclosing loop or block to `break` from");
            return;
        };
        let (label, result) = (target.leave, target.result.clone());
        if let (Some(value), Some(result)) = (value, result) {
            self.write_storage(&result, value);
        }
        self.builder.effect(Op::Break(label, Values::new()));
    }

    pub(super) fn continue_loop(&mut self, span: Span, id: LabelId) {
        self.at(span);
        match self.frame().loops.iter().find(|l| l.id == id).map(|l| l.label) {
            Some(label) => self.builder.effect(Op::Continue(label, Values::new())),
            None => self.error(span, "no enclosing loop to `continue`"),
        }
    }

    /// Returns the IR values that make up a value; see [`Lowerer::parts`].
    pub(super) fn flatten(&self, value: &Val) -> Values {
        match value {
            Val::Scalar(k) => k.words().collect(),
            Val::Tuple(parts) => parts.iter().flat_map(|p| self.flatten(p)).collect(),
            Val::Option(some, value) => std::iter::once(some.value).chain(self.flatten(value)).collect(),
            Val::View(v) => {
                let strides = v.strides.iter().flatten().copied();
                std::iter::once(v.base).chain(v.extents.iter().map(|k| k.value)).chain(strides).collect()
            }
            _ => Values::new(),
        }
    }

    /// Lowers a value of type `ty` from its parts.
    pub(super) fn rebuild(&self, ty: TypeId, parts: &mut dyn Iterator<Item = ir::Value>) -> Val {
        let mut known = || parts.next().map(MaybeConst::unknown);
        match self.ty(ty) {
            hir::Type::Scalar(Scalar::U128) => self.joined(parts),
            hir::Type::Scalar(_) => known().map_or(Val::Unit, Val::Scalar),
            hir::Type::Option(inner) => match known() {
                Some(some) => Val::Option(some, Box::new(self.rebuild(*inner, parts))),
                None => Val::Unit,
            },
            hir::Type::Tuple(types) => Val::Tuple(types.iter().map(|t| self.rebuild(*t, parts)).collect()),
            hir::Type::Slice { element, mutable } => self.rebuild_view(*element, 1, *mutable, false, parts),
            hir::Type::View { element, rank, mutable, strided } => {
                self.rebuild_view(*element, *rank, *mutable, *strided, parts)
            }
            _ => Val::Unit,
        }
    }

    fn rebuild_view(
        &self,
        element: TypeId,
        rank: u32,
        mutable: bool,
        strided: bool,
        parts: &mut dyn Iterator<Item = ir::Value>,
    ) -> Val {
        let (Some(base), Some(mem_layout)) = (parts.next(), self.mem_layout(element)) else { return Val::Unit };
        let extents = parts.take(rank as usize).map(MaybeConst::unknown).collect();
        let strides = (0..rank).map(|d| if strided || d + 1 < rank { parts.next() } else { None }).collect();
        Val::View(ViewValue { base, extents, strides, mem_layout, mutable, hint: CacheHint::None, aligned: 1 })
    }

    /// Ends the code after an expression of type `!`.
    pub(super) fn diverged(&mut self, e: &Expr) {
        if matches!(self.ty(e.ty), hir::Type::Never) && !self.builder.ended() {
            self.builder.effect(Op::Return);
        }
    }
}
