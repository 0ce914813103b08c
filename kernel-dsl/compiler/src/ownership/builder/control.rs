//! Expressions that choose the next one: branches, loops and jumps.

use super::{GraphBuilder, LoopTarget};
use crate::hir::{Arm, Block, Expr, LabelId, Pattern, Range};
use crate::source::Span;

impl<'f> GraphBuilder<'f> {
    pub(super) fn if_else(
        &mut self,
        e: &'f Expr,
        condition: &'f Expr,
        then: &'f Block,
        otherwise: Option<&'f Expr>,
    ) -> Option<usize> {
        self.operand(condition);
        let start = self.at;
        let first = self.block(then);
        let end: Vec<usize> = self.at.into_iter().collect();
        self.at = start;
        let second = otherwise.and_then(|e| self.operand(e));
        self.join(&end);
        self.holding(e.ty, &[first, second], e.span)
    }

    pub(super) fn match_arms(&mut self, e: &'f Expr, value: &'f Expr, arms: &'f [Arm]) -> Option<usize> {
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
            self.leave_scope(depth);
            ends.extend(self.at.take());
        }
        self.at = None;
        self.join(&ends);
        self.holding(e.ty, &held, e.span)
    }

    /// Evaluates an assertion, or a panic, which has no condition. The message reads `values`.
    pub(super) fn assertion(&mut self, condition: Option<&'f Expr>, values: &'f [Expr]) {
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
    }

    pub(super) fn labeled(&mut self, e: &'f Expr, label: LabelId, body: &'f Block) -> Option<usize> {
        let result = self.enter(label, None);
        let value = self.block(body);
        self.define_from(result, value, e.span);
        self.leave();
        self.holding(e.ty, &[Some(result)], e.span)
    }

    /// Evaluates `loop { … }`.
    pub(super) fn infinite_loop(&mut self, e: &'f Expr, label: LabelId, body: &'f Block) -> Option<usize> {
        let start = self.join(&[]);
        let result = self.enter(label, start);
        self.block(body);
        self.back(start);
        self.leave();
        self.holding(e.ty, &[Some(result)], e.span)
    }

    pub(super) fn while_loop(&mut self, label: LabelId, condition: &'f Expr, body: &'f Block) {
        let start = self.join(&[]);
        self.operand(condition);
        let end = self.at;
        self.enter(label, start);
        self.block(body);
        self.back(start);
        self.at = end;
        self.leave();
    }

    pub(super) fn for_loop(
        &mut self,
        span: Span,
        label: LabelId,
        (pattern, range): (&'f Pattern, &'f Range),
        body: &'f Block,
    ) {
        self.operand(&range.start);
        self.operand(&range.end);
        if let Some(step) = &range.step {
            self.operand(step);
        }
        let start = self.join(&[]);
        let end = self.at;
        self.enter(label, start);
        let depth = self.scope.len();
        if let Some(counted) = range.enumerate {
            self.define(counted, span);
        }
        pattern.variables(&mut |id| self.define(id, span));
        self.block(body);
        self.leave_scope(depth);
        self.back(start);
        self.at = end;
        self.leave();
    }

    pub(super) fn break_from(&mut self, span: Span, label: LabelId, value: Option<&'f Expr>) {
        let value = value.and_then(|e| self.operand(e));
        if let Some(target) = self.loops.iter().rposition(|t| t.label == label) {
            let (result, scope) = (self.loops[target].result, self.loops[target].scope);
            self.define_from(result, value, span);
            self.end_scope(scope);
            let end = self.at.take();
            self.loops[target].breaks.extend(end);
        }
        self.at = None;
    }

    pub(super) fn continue_at(&mut self, label: LabelId) {
        if let Some(target) = self.loops.iter().rposition(|t| t.label == label) {
            let (start, scope) = (self.loops[target].start, self.loops[target].scope);
            self.end_scope(scope);
            self.back(start);
        }
        self.at = None;
    }

    pub(super) fn return_from(&mut self, span: Span, value: Option<&'f Expr>) {
        let held = value.and_then(|e| self.operand(e));
        self.end_scope(0);
        self.consumed(&[held], span);
        self.at = None;
    }

    /// Enters a loop or labeled block. Returns the temporary that holds its value.
    fn enter(&mut self, label: LabelId, start: Option<usize>) -> usize {
        let result = self.temporary();
        let scope = self.scope.len();
        self.loops.push(LoopTarget { label, start, breaks: Vec::new(), result, scope });
        result
    }

    /// Leaves a loop or labeled block: its breaks join the current path.
    fn leave(&mut self) {
        let breaks = self.loops.pop().map(|t| t.breaks).unwrap_or_default();
        self.join(&breaks);
    }

    /// Leads the current path back to the start of a loop.
    fn back(&mut self, start: Option<usize>) {
        if let (Some(at), Some(start)) = (self.at.take(), start) {
            self.graph.nodes[at].next.push(start);
        }
    }
}
