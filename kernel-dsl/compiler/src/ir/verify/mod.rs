//! Invariants that hold for IR as lowered and between any two passes.
//!
//! * Each value has one definition, which precedes its uses in the same region or in nested
//!   regions.
//! * Operands, results, region parameters and the values of terminators have the types that the
//!   operation requires.
//! * Each region ends with its only terminator.
//! * `Break` and `Continue` name a construct around them.
//!
//! The function `Verifier::operation` lists all operations by group. The rules of each group are in
//! the module that the group names.

mod control;
mod copies;
mod memory;
mod reports;
mod threads;
mod values;

use super::*;
use crate::error::{Error, Errors};
use crate::scalar::Scalar;
use std::collections::HashSet;

/// Checks `kernel`.
///
/// # Errors
/// All violations of the rules.
pub fn verify(kernel: &Kernel) -> Result<(), Errors> {
    let n = kernel.values.len();
    let mut v = Verifier {
        kernel,
        defined: vec![false; n],
        visible: vec![false; n],
        open: Vec::new(),
        labels: HashSet::new(),
        errors: Vec::new(),
    };
    if kernel.values.contains(&S(Scalar::U128)) {
        v.errors.push(Error::without_span(
            "IR is malformed: a value has type `u128`, which lowering splits into two words",
        ));
    }
    v.region(&kernel.body, &[]);
    if v.errors.is_empty() { Ok(()) } else { Err(Errors(v.errors)) }
}

impl Kernel {
    /// Returns an error at `location`, or of the whole kernel if the location is unknown.
    pub fn error(&self, location: Location, message: impl Into<String>) -> Error {
        let place = self.locations.get(location.0 as usize);
        match place.and_then(|l| Some((self.sources.get(l.source as usize)?, l.span))) {
            Some((source, span)) => Error::at(source, span, message),
            None => Error::without_span(message),
        }
    }
}

/// A construct around the current instruction that `Break` or `Continue` may name.
struct OpenConstruct<'a> {
    label: Label,
    /// The values that receive those of a `Break`.
    leave: &'a [Value],
    /// The values that receive those of a `Continue`; `None` if the construct is not a loop.
    next: Option<&'a [Value]>,
}

struct Verifier<'a> {
    kernel: &'a Kernel,
    defined: Vec<bool>,
    visible: Vec<bool>,
    open: Vec<OpenConstruct<'a>>,
    labels: HashSet<Label>,
    errors: Vec<Error>,
}

use Type::Scalar as S;

impl<'a> Verifier<'a> {
    fn error(&mut self, inst: &Inst, what: impl std::fmt::Display) {
        let text = self.kernel.text(inst).to_string();
        let line = text.lines().next().unwrap_or_default();
        self.errors.push(self.kernel.error(inst.location, format!("IR is malformed: {what}, in `{line}`")));
    }

    fn check(&mut self, inst: &Inst, holds: bool, what: impl std::fmt::Display) {
        if !holds {
            self.error(inst, what);
        }
    }

    fn ty(&self, v: Value) -> Type {
        // The verifier reports a value without a definition at its use, so any type serves here.
        self.kernel.values.get(v.0 as usize).copied().unwrap_or(S(Scalar::Bool))
    }

    fn define(&mut self, inst: Option<&Inst>, values: &[Value]) {
        for v in values {
            let fault = match self.defined.get_mut(v.0 as usize) {
                None => Some("is not in the kernel's table of values"),
                Some(d) if *d => Some("is defined twice"),
                Some(d) => {
                    *d = true;
                    self.visible[v.0 as usize] = true;
                    None
                }
            };
            if let Some(fault) = fault {
                match inst {
                    Some(i) => self.error(i, format_args!("{v} {fault}")),
                    None => self.errors.push(Error::without_span(format!("IR is malformed: {v} {fault}"))),
                }
            }
        }
    }

    fn hide(&mut self, values: &[Value]) {
        for v in values {
            if let Some(slot) = self.visible.get_mut(v.0 as usize) {
                *slot = false;
            }
        }
    }

    /// Verifies a region. `yields` are values of the types that its `Yield` carries.
    fn region(&mut self, region: &'a Region, yields: &[Value]) {
        self.define(None, &region.parameters);
        for (i, inst) in region.insts.iter().enumerate() {
            let last = i + 1 == region.insts.len();
            if inst.op.is_terminator() != last {
                self.error(inst, if last { "a region ends without terminator" } else { "a terminator is not last" });
            }
            self.inst(inst, yields);
        }
        if region.insts.is_empty() {
            self.errors.push(Error::without_span("IR is malformed: a region is empty"));
        }
        self.hide(&region.parameters);
        region.insts.iter().for_each(|i| self.hide(&i.results));
    }

    fn inst(&mut self, inst: &'a Inst, yields: &[Value]) {
        let mut unseen = None;
        inst.op.for_each_operand(|v| {
            if !self.visible.get(v.0 as usize).is_some_and(|d| *d) {
                unseen = Some(v);
            }
        });
        if let Some(v) = unseen {
            return self.error(inst, format_args!("{v} is used where it has no definition"));
        }
        self.operation(inst, yields);
        self.define(Some(inst), &inst.results);
    }

    /// Checks types, arities and indices of an instruction.
    fn operation(&mut self, inst: &'a Inst, yields: &[Value]) {
        if inst.op.is_pure() && inst.results.len() != 1 {
            return self.error(inst, "it has one result");
        }
        match &inst.op {
            // Values and addresses: `values`.
            Op::Constant(bits) => self.constant(inst, *bits),
            Op::Parameter(index) => self.parameter(inst, *index),
            Op::Table(table) => self.table(inst, *table),
            Op::Special(special) => self.special(inst, *special),
            Op::Unary(op, a) => self.unary(inst, *op, *a),
            Op::Binary(op, a, b) => self.binary(inst, *op, *a, *b),
            Op::MulAdd(a, b, c) => self.mul_add(inst, [*a, *b, *c]),
            Op::Approximate(_, a) => self.approximate(inst, *a),
            Op::Bits(what, operands) => self.bits(inst, *what, operands),
            Op::Compare(comparison, a, b) => self.compare(inst, *comparison, *a, *b),
            Op::Select { condition, yes, no } => self.select(inst, *condition, *yes, *no),
            Op::Cast(a) => self.cast(inst, *a),
            Op::Bitcast(a) => self.bitcast(inst, *a),
            Op::Offset { base, terms, .. } => self.offset(inst, *base, terms),
            // Memory and locals: `memory`.
            Op::Dynamic { array, extents } => self.dynamic(inst, *array, extents),
            Op::Load { place, element, guard, .. } => self.load(inst, place, *element, guard.as_ref()),
            Op::Store { place, element, values, guard } => self.store(inst, place, *element, values, *guard),
            Op::MarkUndef { place, element, count, guard } => self.mark_undef(inst, place, *element, *count, *guard),
            Op::LifetimeStart(array) => self.lifetime_start(inst, *array),
            Op::Atomic { operation, place, element, values } => self.atomic(inst, *operation, place, *element, values),
            Op::ReadLocal { local, index } => self.read_local(inst, *local, *index),
            Op::WriteLocal { local, index, value } => self.write_local(inst, *local, *index, *value),
            // Asynchronous copies: `copies`.
            Op::CopyAsync(copy) => self.copy_async(inst, copy),
            Op::CopyCommit => self.copy_commit(inst),
            Op::CopyWait(group) => self.copy_wait(inst, *group),
            // Operations of several threads: `threads`.
            Op::GridSync | Op::BlockSync | Op::WarpSync | Op::Fence(_) => self.ordering(inst),
            Op::Shuffle { value, selector, width, .. } => self.shuffle(inst, *value, *selector, *width),
            Op::Vote { mode, value } => self.vote(inst, *mode, *value),
            Op::Match(value) => self.match_any(inst, *value),
            Op::Reduce(operation, value) => self.reduce(inst, *operation, *value),
            // Reports to a reader or the host, and inline PTX: `reports`.
            Op::DbgValue { value, .. } => self.dbg_value(inst, *value),
            Op::Panic { values, .. } => self.panic(inst, values),
            Op::Log { values, .. } => self.log(inst, values),
            Op::RecordViolation { record, state, values } => self.record_violation(inst, *record, *state, values),
            Op::Inline { code, inputs } => self.inline(inst, code, inputs),
            // Control flow: `control`.
            Op::If { condition, then, otherwise } => self.branch(inst, *condition, [then, otherwise]),
            Op::For(counted) => self.counted(inst, counted),
            Op::Loop { label, inits, body } => self.endless(inst, *label, inits, body),
            Op::Block { label, body } => self.block(inst, *label, body),
            Op::Yield(values) => self.yielded(inst, values, yields),
            Op::Break(label, values) => self.jump(inst, *label, values, |open| Some(open.leave)),
            Op::Continue(label, values) => self.jump(inst, *label, values, |open| open.next),
            Op::Return => {}
        }
    }

    /// Returns the type of the first result; `bool` if there is none.
    fn first_result_type(&self, inst: &Inst) -> Type {
        inst.results.first().map_or(S(Scalar::Bool), |v| self.ty(*v))
    }

    /// Returns whether `values` has the length and the types of `like`.
    fn have_same_types(&self, values: &[Value], like: &[Value]) -> bool {
        values.len() == like.len() && values.iter().zip(like).all(|(a, b)| self.ty(*a) == self.ty(*b))
    }
}
