//! Comparisons that their context, the promises of the launch, or both decide.
//!
//! A `usize` is a polynomial over extents, indices of threads and blocks, iteration numbers of
//! loops, and opaque values. No `usize` wraps, since its overflow is an error of the kernel. So the
//! polynomial is one over the integers. Known facts are the bounds of these variables, the
//! conditions of enclosing branches and loops, and `#[requires]`. Another fact is that a block's
//! index is below the number of blocks from `grid`. A comparison with one possible outcome
//! ([`linear`]) becomes that outcome. Of two comparisons that differ only where operands cannot be
//! equal, such as `<=` and `<`, the stricter one is used.
//!
//! A quotient or remainder by 0 is unspecified: it is a number without properties unless the known
//! facts at its place keep the divisor above 0.
//!
//! For a mutant, as for passes, the result holds where none of its `usize` values wraps. Where one
//! wraps, the oracle reports an error. A value that the program would not have computed may have
//! wrapped: no comparison of it is used, and any outcome is allowed.

mod cases;
mod exact;

pub use exact::decide_exactly;

use self::cases::{Cases, LaunchScope};
use self::exact::ExactDecisions;

use super::linear::{LinearVariable, Polynomial, impossible, impossible_stepwise};
use super::promised::{Extent, NameResolver, Promised, extent_of};
use super::range::{AccessBytes, Meaning, Variables};
use crate::analyses::memory::AccessKind;
use crate::hir::{Expr, ExprKind, Intrinsic, Monomorphic};
use crate::ir::{
    AccessPlace, AsyncCopy, Binary, Comparison, Guard, Inst, Kernel, Location, Op, Region, Special, Type, Unary, Value,
};
use crate::scalar::Scalar;
use smallvec::{SmallVec, smallvec};
use std::collections::{BTreeSet, HashMap};

/// Origin of a variable.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum VariableOrigin {
    Extent(Extent),
    Parameter(u32),
    Special(Special),
    Value(Value),
    /// ⌊a / b⌋
    Quotient([Polynomial; 2]),
    /// ⌈a / b⌉
    Ceiling([Polynomial; 2]),
    /// Minimum (`Least`) or maximum (`Most`) of two numbers.
    Least([Polynomial; 2]),
    Most([Polynomial; 2]),
    /// A sum, difference or product that may have wrapped.
    Wrapped(Binary, [Polynomial; 2]),
}

/// Variables, and facts about them that hold in every launch.
#[derive(Clone, Default)]
pub struct LaunchVariables {
    variables: HashMap<VariableOrigin, LinearVariable>,
    /// Origin of each variable, by number.
    named: Vec<VariableOrigin>,
    /// Polynomials that are ≥ 0 in every launch.
    known: Vec<Polynomial>,
    /// Polynomials about a variable that are ≥ 0 wherever its value is used.
    of: HashMap<LinearVariable, Vec<Polynomial>>,
    /// Operands of a quotient, minimum or maximum.
    made: HashMap<LinearVariable, [Polynomial; 2]>,
    /// Condition and values of a variable that is chosen from two values.
    either: HashMap<LinearVariable, (Value, Value, Value)>,
    /// Number of blocks along each axis.
    grid: [Option<Polynomial>; 3],
    /// The possible numbers of blocks along each axis, with the facts of their cases.
    grids: [Vec<(Vec<Polynomial>, Polynomial)>; 3],
    /// Cases of which one holds in every launch.
    cases: Vec<Cases>,
    /// Parameter of each argument that is a `usize`, if numbers must be exact.
    scalars: HashMap<u32, u32>,
    /// The largest extent, stride and `usize` argument, if that is known.
    largest: Option<u32>,
}

impl LaunchVariables {
    /// Returns the facts of `#[requires]` if `requires`, and of `grid` if `grid`.
    pub(super) fn some(program: &Monomorphic, promised: &Promised, requires: bool, grid: bool) -> LaunchVariables {
        let reader = NameResolver::of(program);
        let scope = LaunchScope::of(program, &reader, promised);
        LaunchVariables::default().read(scope, requires, grid)
    }

    fn read(self, scope: LaunchScope<'_>, requires: bool, grid: bool) -> LaunchVariables {
        let launch = &scope.program.program().launch;
        let mut bounds = self;
        for requirement in launch.requires.iter().filter(|_| requires) {
            bounds.require(&requirement.condition, scope);
        }
        if !grid {
            return bounds;
        }
        for (axis, blocks) in launch.grid.iter().enumerate() {
            bounds.grid[axis] = bounds.expression(blocks, scope.reader, scope.promised);
            if bounds.is_exact() && bounds.grid[axis].is_none() {
                bounds.grids[axis] = bounds.values(blocks, scope).unwrap_or_default();
            }
        }
        if !launch.grid.is_empty() {
            bounds.grid[launch.grid.len()..].fill(Some(Polynomial::constant(1)));
        }
        bounds
    }

    /// Returns whether numbers must be exact, as a `usize` may wrap.
    fn is_exact(&self) -> bool {
        self.largest.is_some()
    }

    fn variable(&mut self, of: VariableOrigin) -> (Polynomial, bool) {
        let next = self.variables.len() as LinearVariable;
        let known = *self.variables.entry(of.clone()).or_insert(next);
        if known == next {
            self.named.push(of);
        }
        (Polynomial::variable(known), known == next)
    }

    fn extent(&mut self, extent: Extent, promised: &Promised) -> Polynomial {
        self.argument(VariableOrigin::Extent(promised.first(extent)))
    }

    /// Returns the variable of an extent, a stride or an argument.
    fn argument(&mut self, of: VariableOrigin) -> Polynomial {
        let (argument, new) = self.variable(of);
        if let (true, Some(largest)) = (new, self.largest) {
            self.at_least(&argument, &Polynomial::constant(largest.into()), &argument);
        }
        argument
    }

    /// Records the fact a ≥ b about a variable.
    fn at_least(&mut self, variable: &Polynomial, a: &Polynomial, b: &Polynomial) {
        for of in variable.variables() {
            self.of.entry(of).or_default().push(a.plus(b, -1));
        }
    }

    fn make(&mut self, variable: &Polynomial, of: [&Polynomial; 2]) {
        for variable in variable.variables() {
            self.made.insert(variable, of.map(Clone::clone));
        }
    }

    /// Returns whether the polynomial of a number is correct even where the number is unused. The
    /// operands of its quotients and choices must not have wrapped: the values in `asked` are used,
    /// so they have not. Sums and products may have wrapped; they are correct modulo 2ⁿ.
    fn is_plain(&self, number: &Polynomial, asked: &[Polynomial]) -> bool {
        number.variables().into_iter().all(|variable| {
            let of = self.made.get(&variable).into_iter().flatten();
            !self.either.contains_key(&variable)
                && of.into_iter().all(|p| (p.is_variable_or_number() || asked.contains(p)) && self.is_plain(p, asked))
        })
    }

    /// Returns the facts about the variables of `asked`, and about their operands. Facts about
    /// values derived from a variable are excluded: such a value may be unused and computed from
    /// wrapped operands. A quotient has facts only where `asked` keeps its divisor above 0.
    fn known_of<'a>(&'a self, asked: &[&'a Polynomial]) -> Vec<&'a Polynomial> {
        self.known_where(asked, asked)
    }

    /// Returns the facts about the variables of `numbers`, and about their operands. A quotient has
    /// facts only where `asked` keeps its divisor above 0.
    fn known_where<'a>(&'a self, numbers: &[&'a Polynomial], asked: &[&Polynomial]) -> Vec<&'a Polynomial> {
        let mut positive: HashMap<&Polynomial, bool> = HashMap::new();
        self.reached(numbers.to_vec(), |variable| {
            let is_positive = |by| *positive.entry(by).or_insert_with(|| self.is_positive(by, asked));
            self.divisor(variable).is_none_or(is_positive)
        })
    }

    /// Returns `asked`, and the facts about the variables that it reaches, if `has_facts`.
    fn reached<'a>(
        &'a self,
        asked: Vec<&'a Polynomial>,
        mut has_facts: impl FnMut(LinearVariable) -> bool,
    ) -> Vec<&'a Polynomial> {
        let mut known = asked;
        let mut seen = BTreeSet::new();
        let mut next = 0;
        while let Some(p) = known.get(next) {
            next += 1;
            for variable in p.variables() {
                if seen.insert(variable) && has_facts(variable) {
                    known.extend(self.of.get(&variable).into_iter().flatten());
                }
            }
        }
        known
    }

    /// Returns the divisor of a variable that is a quotient.
    fn divisor(&self, variable: LinearVariable) -> Option<&Polynomial> {
        let is_quotient =
            matches!(self.named[variable as usize], VariableOrigin::Quotient(_) | VariableOrigin::Ceiling(_));
        self.made.get(&variable).filter(|_| is_quotient).map(|[_, by]| by)
    }

    /// Returns whether a number is at least 1 wherever the polynomials of `asked` are ≥ 0.
    fn is_positive(&self, number: &Polynomial, asked: &[&Polynomial]) -> bool {
        let quotients = if self.is_exact() { MAX_NESTED_QUOTIENTS } else { 0 };
        self.is_positive_with(number, asked, quotients)
    }

    /// Returns whether a number is at least 1 wherever the polynomials of `asked` are ≥ 0. A
    /// quotient's facts are used only if its divisor is proven positive by fewer nested
    /// `quotients`: no proof needs itself.
    fn is_positive_with(&self, number: &Polynomial, asked: &[&Polynomial], quotients: usize) -> bool {
        if let Some(n) = number.number() {
            return n > 0;
        }
        if let (Some([a, b]), true) = (self.least(number), quotients > 0) {
            return [a, b].into_iter().all(|operand| self.is_positive_with(operand, asked, quotients));
        }
        let below = facts(Comparison::Lt, number, &Polynomial::constant(1));
        let asked_below = asked.iter().copied().chain(&below).collect();
        let known = self.reached(asked_below, |variable| {
            let is_positive = |by| quotients > 0 && self.is_positive_with(by, asked, quotients - 1);
            self.divisor(variable).is_none_or(is_positive)
        });
        if quotients > 0 { impossible_stepwise(&known, &below) } else { impossible(&known, &below) }
    }

    /// Returns the operands of a number that is a minimum.
    fn least(&self, number: &Polynomial) -> Option<&[Polynomial; 2]> {
        let variables = number.variables();
        let [variable] = variables[..] else { return None };
        let is_least = matches!(self.named[variable as usize], VariableOrigin::Least(_));
        self.made.get(&variable).filter(|_| is_least && *number == Polynomial::variable(variable))
    }

    /// Returns ⌊a / b⌋ for b ≥ 1. A quotient by 0 is unspecified, so no fact holds for it.
    fn quotient(&mut self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        let (quotient, new) = match (a.number(), b.number()) {
            (_, Some(1)) => return Some(a.clone()),
            (Some(a), Some(b)) if b > 0 => return Some(Polynomial::constant(a / b)),
            _ => self.variable(VariableOrigin::Quotient([a.clone(), b.clone()])),
        };
        if new {
            self.make(&quotient, [a, b]);
            let product = quotient.times(b)?;
            self.at_least(&quotient, a, &product);
            self.at_least(&quotient, &product.plus(b, 1).plus(&Polynomial::constant(1), -1), a);
            self.positive_divisor(&quotient, b);
        }
        Some(quotient)
    }

    /// Records that the divisor of a quotient is at least 1. The facts of a quotient are used only
    /// where that is so.
    fn positive_divisor(&mut self, quotient: &Polynomial, divisor: &Polynomial) {
        if self.is_exact() && divisor.number().is_none() {
            self.at_least(quotient, divisor, &Polynomial::constant(1));
        }
    }

    /// Returns ⌈a / b⌉ for b ≥ 1.
    fn ceiling(&mut self, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        let (quotient, new) = match (a.number(), b.number()) {
            (_, Some(1)) => return Some(a.clone()),
            (Some(a), Some(b)) if b > 0 => return Some(Polynomial::constant((a + b - 1) / b)),
            _ => self.variable(VariableOrigin::Ceiling([a.clone(), b.clone()])),
        };
        if new {
            self.make(&quotient, [a, b]);
            let product = quotient.times(b)?;
            self.at_least(&quotient, &product, a);
            self.at_least(&quotient, &a.plus(b, 1).plus(&Polynomial::constant(1), -1), &product);
            self.positive_divisor(&quotient, b);
        }
        Some(quotient)
    }

    fn extreme(&mut self, operator: Binary, a: &Polynomial, b: &Polynomial) -> Polynomial {
        let both = [a.clone(), b.clone()];
        let least = operator == Binary::Min;
        let (extreme, new) =
            self.variable(if least { VariableOrigin::Least(both) } else { VariableOrigin::Most(both) });
        self.make(&extreme, [a, b]);
        for of in [a, b].into_iter().filter(|_| new) {
            if least { self.at_least(&extreme, of, &extreme) } else { self.at_least(&extreme, &extreme, of) }
        }
        extreme
    }

    /// Returns the result of an operation. A divisor must be at least 1.
    fn binary(&mut self, operator: Binary, a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
        match operator {
            Binary::Add => Some(a.plus(b, 1)),
            Binary::Sub => Some(a.plus(b, -1)),
            Binary::Mul => a.times(b),
            Binary::Div => self.quotient(a, b),
            Binary::Rem => Some(a.plus(&self.quotient(a, b)?.times(b)?, -1)),
            Binary::Min | Binary::Max => Some(self.extreme(operator, a, b)),
            _ => None,
        }
    }

    /// Returns the value of a launch expression, which does not wrap.
    fn expression(&mut self, e: &Expr, reader: &NameResolver<'_>, promised: &Promised) -> Option<Polynomial> {
        if let Some(extent) = reader.extent(e) {
            return Some(self.extent(extent, promised));
        }
        if let Some(n) = reader.number(e) {
            return Some(Polynomial::constant(n.into()));
        }
        if let ExprKind::Local(local) = e.kind {
            let parameter = *self.scalars.get(&reader.argument(local)?)?;
            return Some(self.argument(VariableOrigin::Parameter(parameter)));
        }
        let mut of = |e: &Expr| self.expression(e, reader, promised);
        match &reader.side(e).kind {
            ExprKind::Binary(operator, a, b) => {
                let (a, b) = (of(a)?, of(b)?);
                if is_division(*operator) {
                    self.divides(&b)?;
                }
                self.binary(*operator, &a, &b)
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::Binary(operator @ (Binary::Min | Binary::Max)), arguments } => {
                let (a, b) = (of(arguments.first()?)?, of(arguments.get(1)?)?);
                self.binary(*operator, &a, &b)
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::DivCeil, arguments } => {
                let (a, b) = (of(arguments.first()?)?, of(arguments.get(1)?)?);
                self.divides(&b)?;
                self.ceiling(&a, &b)
            }
            _ => None,
        }
    }

    /// Records that the divisor of a launch expression is at least 1: a launch that divides by 0 is
    /// refused. Returns `None` if the divisor is the constant 0.
    fn divides(&mut self, divisor: &Polynomial) -> Option<()> {
        match divisor.number() {
            Some(n) => (n > 0).then_some(()),
            None => {
                self.known.extend(facts(Comparison::Ge, divisor, &Polynomial::constant(1)));
                Some(())
            }
        }
    }

    fn require(&mut self, condition: &Expr, scope: LaunchScope<'_>) {
        let LaunchScope { reader, promised, .. } = scope;
        match &reader.side(condition).kind {
            ExprKind::AndAlso(a, b) => {
                self.require(a, scope);
                self.require(b, scope);
            }
            ExprKind::OrElse(..) | ExprKind::If { .. } | ExprKind::Compare(Comparison::Ne, ..) if self.is_exact() => {
                let cases = self.cases(condition, true, scope);
                match cases::useful(cases) {
                    Some(mut cases) if cases.len() == 1 => self.known.append(&mut cases[0]),
                    Some(cases) => self.cases.push(cases),
                    None => {}
                }
            }
            ExprKind::Compare(comparison, a, b) if scope.is_usize(a) => {
                let a = self.expression(a, reader, promised);
                let b = self.expression(b, reader, promised);
                if let (Some(a), Some(b)) = (a, b) {
                    self.known.extend(facts(*comparison, &a, &b));
                }
            }
            _ => {}
        }
    }

    /// Rewrites the kernel by a decider that `prepare` completes.
    fn rewrite(&self, kernel: &mut Kernel, promised: &Promised, prepare: impl FnOnce(&mut Decider<'_>)) -> bool {
        let outcomes = [0, 1].map(|bits: u64| (kernel.value(Type::Scalar(Scalar::Bool)), bits));
        let mut body = std::mem::take(&mut kernel.body);
        let mut decider = self.decider(kernel, promised, outcomes.map(|(value, _)| value));
        prepare(&mut decider);
        decider.region(&mut body);
        let changed = decider.changed;
        let constant = |(value, bits)| Inst {
            op: Op::Constant(bits),
            results: [value].into_iter().collect(),
            location: Location(0),
        };
        body.insts.splice(0..0, outcomes.map(constant));
        kernel.body = body;
        changed
    }

    fn decider<'a>(&self, kernel: &'a Kernel, promised: &'a Promised, outcomes: [Value; 2]) -> Decider<'a> {
        Decider {
            outcomes,
            asked_at: HashMap::new(),
            bounds: self.clone(),
            promised,
            kernel,
            numbers: HashMap::new(),
            truths: HashMap::new(),
            remainders: HashMap::new(),
            here: Vec::new(),
            asked: Vec::new(),
            changed: false,
            look: None,
            exact: None,
        }
    }

    /// Returns for each access, in program order, the proof that its indices are in bounds, and the
    /// formula of its bytes. The kernel must still contain places.
    pub(super) fn accesses(&self, kernel: &Kernel, promised: &Promised) -> (Vec<AccessBounds>, Variables) {
        let mut kernel = kernel.clone();
        let outcomes = [0, 1].map(|_| kernel.value(Type::Scalar(Scalar::Bool)));
        let mut body = std::mem::take(&mut kernel.body);
        let mut decider = self.decider(&kernel, promised, outcomes);
        decider.look = Some(AccessCollector::default());
        decider.region(&mut body);
        let look = decider.look.take().unwrap_or_default();
        let variables = decider.bounds.meanings(&kernel, promised, look.turns);
        (look.seen, variables)
    }

    /// Returns the meaning of each variable.
    fn meanings(&self, kernel: &Kernel, promised: &Promised, turns: HashMap<LinearVariable, Polynomial>) -> Variables {
        let parameter = |extent: Extent| {
            let is = |p: &u32| extent_of(kernel, *p).is_some_and(|e| promised.first(e) == extent);
            (0..kernel.parameters.len() as u32).find(is)
        };
        let meaning = |(variable, of): (usize, &VariableOrigin)| {
            let variable = variable as LinearVariable;
            let parts = || self.made.get(&variable).cloned();
            match of {
                VariableOrigin::Extent(extent) => parameter(*extent).map_or(Meaning::Unknown, Meaning::Parameter),
                VariableOrigin::Parameter(p) => Meaning::Parameter(*p),
                VariableOrigin::Special(special) => Meaning::Special(*special),
                VariableOrigin::Value(_) => match turns.get(&variable) {
                    Some(goes_on) => Meaning::Iteration(goes_on.clone()),
                    None => Meaning::Unknown,
                },
                VariableOrigin::Wrapped(..) => Meaning::Unknown,
                VariableOrigin::Quotient(_) => parts().map_or(Meaning::Unknown, Meaning::Quotient),
                VariableOrigin::Ceiling(_) => parts().map_or(Meaning::Unknown, Meaning::Ceiling),
                VariableOrigin::Least(_) => parts().map_or(Meaning::Unknown, Meaning::Least),
                VariableOrigin::Most(_) => parts().map_or(Meaning::Unknown, Meaning::Most),
            }
        };
        Variables(self.named.iter().enumerate().map(meaning).collect())
    }

    /// Returns the value of a polynomial in the thread with these indices, if nothing else
    /// determines it.
    fn in_thread(&self, number: &Polynomial, thread: [u32; 3]) -> Option<i128> {
        let variable = |variable: LinearVariable| {
            let both = || {
                let [a, b] = self.made.get(&variable)?;
                Some((self.in_thread(a, thread)?, self.in_thread(b, thread)?))
            };
            match &self.named[variable as usize] {
                VariableOrigin::Special(Special::Thread(axis)) => {
                    thread.get(usize::from(*axis)).map(|i| i128::from(*i))
                }
                VariableOrigin::Quotient(_) => both().filter(|(_, b)| *b > 0).map(|(a, b)| a.div_euclid(b)),
                VariableOrigin::Ceiling(_) => both().filter(|(_, b)| *b > 0).map(|(a, b)| -(-a).div_euclid(b)),
                VariableOrigin::Least(_) => both().map(|(a, b)| a.min(b)),
                VariableOrigin::Most(_) => both().map(|(a, b)| a.max(b)),
                VariableOrigin::Extent(_)
                | VariableOrigin::Parameter(_)
                | VariableOrigin::Special(_)
                | VariableOrigin::Value(_)
                | VariableOrigin::Wrapped(..) => None,
            }
        };
        number.terms().try_fold(0i128, |sum, (monomial, factor)| {
            let product = monomial.iter().try_fold(factor, |product, v| product.checked_mul(variable(*v)?))?;
            sum.checked_add(product)
        })
    }
}

/// Result of the analysis of an access.
#[derive(Clone)]
pub(super) struct AccessBounds {
    pub location: Location,
    pub kind: AccessKind,
    pub place: AccessPlace,
    pub bytes: u32,
    /// Branches and loops that keep the indices below their extents; `None` without a proof.
    pub proof: Option<Vec<Location>>,
    /// Formula of the accessed bytes; `None` unless the bytes and all conditions of the access are
    /// understood.
    pub formula: Option<AccessBytes>,
}

/// State of the collection of accesses.
#[derive(Default)]
struct AccessCollector {
    seen: Vec<AccessBounds>,
    /// Start of the facts of each enclosing branch or loop in the list of known facts, with its
    /// location.
    groups: Vec<(usize, Location)>,
    /// Whether control reaches this point under more conditions than the known ones.
    obscure: bool,
    /// Iteration numbers of loops, each with a polynomial that is ≥ 0 while the loop continues.
    turns: HashMap<LinearVariable, Polynomial>,
    /// Byte offsets from the start of a buffer, a table, or an array of dynamic size.
    addresses: HashMap<Value, Polynomial>,
    /// Locations of the conditions.
    computed: HashMap<Value, Location>,
}

/// Returns the polynomials in a and b that are ≥ 0 where a comparison holds.
fn facts(comparison: Comparison, a: &Polynomial, b: &Polynomial) -> Vec<Polynomial> {
    let above = |a: &Polynomial, b: &Polynomial, by: i128| a.plus(b, -1).plus(&Polynomial::constant(1), -by);
    match comparison {
        Comparison::Lt => vec![above(b, a, 1)],
        Comparison::Le => vec![above(b, a, 0)],
        Comparison::Gt => vec![above(a, b, 1)],
        Comparison::Ge => vec![above(a, b, 0)],
        Comparison::Eq => vec![above(a, b, 0), above(b, a, 0)],
        Comparison::Ne => Vec::new(),
    }
}

/// Returns whether the result of an operation is unspecified where its second operand is 0.
fn is_division(operator: Binary) -> bool {
    matches!(operator, Binary::Div | Binary::Rem)
}

/// Definition of a truth value.
#[derive(Clone, Copy)]
enum Truth {
    Compare(Comparison, Value, Value),
    And(Value, Value),
    Or(Value, Value),
    Not(Value),
}

struct Decider<'a> {
    /// `false` and `true`.
    outcomes: [Value; 2],
    /// Number of known facts at the last attempt to decide a comparison.
    asked_at: HashMap<Value, usize>,
    bounds: LaunchVariables,
    promised: &'a Promised,
    kernel: &'a Kernel,
    numbers: HashMap<Value, Polynomial>,
    truths: HashMap<Value, Truth>,
    /// Dividend and divisor of each remainder whose divisor is at least 1.
    remainders: HashMap<Value, [Polynomial; 2]>,
    /// Polynomials that are ≥ 0 at this point.
    here: Vec<Polynomial>,
    /// Operands of the comparisons that control depends on.
    asked: Vec<Polynomial>,
    changed: bool,
    /// State of the collection of accesses, if requested.
    look: Option<AccessCollector>,
    /// Set if a `usize` may wrap.
    exact: Option<ExactDecisions>,
}

/// The numbers of the facts that hold at a place.
#[derive(Clone, Copy)]
struct KeptFacts {
    here: usize,
    asked: usize,
    cases: usize,
}

/// Maximum number of quotients whose divisors each need the facts of the next one.
const MAX_NESTED_QUOTIENTS: usize = 2;

/// Maximum number of case distinctions over the two values of a choice.
const MAX_SPLITS: usize = 3;

impl Decider<'_> {
    fn region(&mut self, region: &mut Region) {
        let kept = self.kept();
        let unreported = self.unreported();
        for inst in &mut region.insts {
            self.inst(inst);
        }
        self.leave(kept);
        self.forget_unreported(unreported);
    }

    fn inst(&mut self, inst: &mut Inst) {
        // More facts may hold where a comparison is used than where it is computed.
        inst.op.map_operands(|v| self.outcome(v).unwrap_or(v));
        if let [result] = inst.results[..] {
            self.learn(&mut inst.op, result);
        }
        if self.look.is_some() {
            self.see(inst);
        }
        let at = inst.location;
        match &mut inst.op {
            Op::Compare(comparison, a, b) if self.exact.is_some() => {
                if self.compares_exactly(*a, *b)
                    && let Some(holds) = self.decided_exactly(*comparison, *a, *b)
                {
                    inst.op = Op::Constant(holds.into());
                    self.changed = true;
                    self.settle(inst.results[0], holds);
                }
            }
            // A check, of which one side only records a violation.
            Op::If { condition, then, otherwise }
                if self.exact.is_some()
                    && inst.results.is_empty()
                    && (exact::only_reports(then) && exact::does_nothing(otherwise)
                        || exact::only_reports(otherwise) && exact::does_nothing(then)) =>
            {
                let holds = exact::does_nothing(then);
                if self.decided_check(*condition, holds).is_some() {
                    *condition = self.outcomes[usize::from(holds)];
                    self.changed = true;
                }
            }
            // The rewrites below need that no operand wraps.
            Op::Binary(..) | Op::Select { .. } if self.exact.is_some() => {}
            Op::Compare(comparison, a, b) if self.is_usize(*a) => {
                if let Some(holds) = self.decided(*comparison, *a, *b) {
                    inst.op = Op::Constant(holds.into());
                    self.changed = true;
                } else if let Some(stricter) = self.stricter(*comparison, *a, *b) {
                    *comparison = stricter;
                    self.changed = true;
                }
            }
            // A minimum or maximum equals one operand if that operand never exceeds the other.
            Op::Binary(operator @ (Binary::Min | Binary::Max), a, b) if self.is_usize(*a) => {
                let (operator, a, b) = (*operator, *a, *b);
                if let Some(first) =
                    self.decided(if operator == Binary::Min { Comparison::Le } else { Comparison::Ge }, a, b)
                {
                    inst.op = Op::Select { condition: self.outcomes[usize::from(first)], yes: a, no: b };
                    self.changed = true;
                }
            }
            // If the two values are equal where one is chosen, the result always equals the other.
            Op::Select { condition, yes, no } if self.is_usize(*yes) && self.truths.contains_key(condition) => {
                let (chosen, yes, no) = (*condition, *yes, *no);
                let other = [true, false].into_iter().find(|holds| self.equal_where(chosen, *holds, yes, no));
                if let Some(holds) = other.filter(|_| !self.outcomes.contains(&chosen)) {
                    *condition = self.outcomes[usize::from(!holds)];
                    self.changed = true;
                }
            }
            Op::If { condition, then, otherwise } => {
                for (side, holds) in [(&mut *then, true), (&mut *otherwise, false)] {
                    let (kept, obscure) = (self.kept(), self.is_obscure());
                    self.enter(at, *condition, holds);
                    self.region(side);
                    self.leave(kept);
                    self.obscured(obscure);
                }
                // Threads that left from within a side are missing here, under conditions that are
                // no longer known.
                let within = |side: &Region| side.insts.iter().any(|i| i.op.regions().into_iter().any(escapes));
                if within(then) || within(otherwise) {
                    self.obscured(true);
                }
                // If exactly one side leaves, the code after the branch runs only where the other
                // side was taken.
                if leaves(then) != leaves(otherwise) {
                    self.enter(at, *condition, leaves(otherwise));
                }
                if self.exact.is_some() {
                    self.choose(*condition, then, otherwise, &inst.results);
                }
            }
            Op::For(l) => {
                let kept = self.kept();
                let obscure = self.is_obscure();
                let clear = l.body.parameters.first().is_some_and(|index| self.is_usize(*index));
                self.obscured(obscure || !clear || escapes(&l.body));
                self.group(at);
                if let Some(index) = l.body.parameters.first().copied().filter(|index| self.is_usize(*index)) {
                    let (start, end, step) = (self.number(l.start), self.number(l.end), self.number(l.step));
                    let turn = self.bounds.variable(VariableOrigin::Value(index)).0;
                    let way = step.times(&turn);
                    if let (Some(way), Some(look)) = (&way, &mut self.look) {
                        let goes_on = facts(Comparison::Lt, &start.plus(way, 1), &end).into_iter().next();
                        look.turns.extend(turn.variables().into_iter().zip(goes_on));
                    }
                    let at = way.map_or(turn, |way| start.plus(&way, 1));
                    self.here.push(at.plus(&start, -1));
                    self.here.extend(facts(Comparison::Lt, &at, &end));
                    self.here.extend(facts(Comparison::Ge, &step, &Polynomial::constant(1)));
                    self.asked.extend([at.clone(), end]);
                    self.numbers.insert(index, at);
                }
                self.region(&mut l.body);
                self.leave(kept);
                self.obscured(obscure || returns(&l.body));
            }
            Op::Loop { body, .. } => {
                let obscure = self.is_obscure();
                self.obscured(true);
                self.region(body);
                self.obscured(obscure || returns(body));
            }
            Op::Block { body, .. } => {
                let obscure = self.is_obscure();
                self.region(body);
                self.obscured(obscure || returns(body));
            }
            op => op.regions_mut().into_iter().for_each(|inner| self.region(inner)),
        }
    }

    /// Returns the outcome of a comparison that is decided only with the facts of its use.
    fn outcome(&mut self, value: Value) -> Option<Value> {
        let Some(Truth::Compare(comparison, a, b)) = self.truths.get(&value).copied() else { return None };
        if self.asked_at.insert(value, self.here.len())? >= self.here.len() {
            return None;
        }
        let holds = match self.exact {
            Some(_) => self.decided_exactly(comparison, a, b)?,
            None => self.decided(comparison, a, b)?,
        };
        self.changed = true;
        Some(self.outcomes[usize::from(holds)])
    }

    fn is_usize(&self, value: Value) -> bool {
        self.kernel.ty(value) == Type::Scalar(Scalar::Usize)
    }

    fn number(&mut self, value: Value) -> Polynomial {
        match self.numbers.get(&value) {
            Some(number) => number.clone(),
            None => self.bounds.variable(VariableOrigin::Value(value)).0,
        }
    }

    /// Records the polynomial of a result.
    fn learn(&mut self, op: &mut Op, result: Value) {
        let truth = match &*op {
            Op::Compare(comparison, a, b) if self.is_usize(*a) => Some(Truth::Compare(*comparison, *a, *b)),
            Op::Binary(Binary::And, a, b) => Some(Truth::And(*a, *b)),
            Op::Binary(Binary::Or, a, b) => Some(Truth::Or(*a, *b)),
            Op::Unary(Unary::Not, a) => Some(Truth::Not(*a)),
            _ => None,
        };
        if self.kernel.ty(result) == Type::Scalar(Scalar::Bool) {
            if let Op::Constant(bits) = op {
                self.settle(result, *bits != 0);
            }
            self.truths.extend(truth.map(|truth| (result, truth)));
            self.asked_at.insert(result, self.here.len());
        }
        if !self.is_usize(result) {
            if self.exact.is_some() && self.kernel.ty(result) == Type::Scalar(Scalar::U64) {
                self.learn_wide(op, result);
            }
            return;
        }
        let unwrapped = match op {
            Op::Binary(Binary::WrappingAdd, ..) => Some(Binary::Add),
            Op::Binary(Binary::WrappingSub, ..) => Some(Binary::Sub),
            Op::Binary(Binary::WrappingMul, ..) => Some(Binary::Mul),
            Op::Binary(operator @ (Binary::Add | Binary::Sub | Binary::Mul | Binary::Shl), ..) => Some(*operator),
            _ => None,
        };
        if let (Some(operator), Op::Binary(own, a, b), true) = (unwrapped, &mut *op, self.exact.is_some()) {
            let (x, y) = (self.number(*a), self.number(*b));
            let number = match operator {
                Binary::Shl => y.number().filter(|n| *n < 32).and_then(|n| x.times(&Polynomial::constant(1 << n))),
                _ => self.bounds.binary(operator, &x, &y),
            };
            if self.learn_exactly(operator, [*a, *b], number, result) {
                self.changed |= *own != operator;
                *own = operator;
            }
            return;
        }
        let number = match &*op {
            Op::Constant(bits) => Some(Polynomial::constant((*bits).into())),
            Op::Parameter(p) => Some(match extent_of(self.kernel, *p) {
                Some(extent) => self.bounds.extent(extent, self.promised),
                None => self.bounds.argument(VariableOrigin::Parameter(*p)),
            }),
            Op::Special(special) => Some(self.special(*special)),
            Op::Binary(operator, a, b) => match (operator, self.numbers.get(b).and_then(Polynomial::number)) {
                // Factors and divisors that are powers of two.
                (Binary::Shl, n) => n.filter(|n| *n < 32).and_then(|n| self.by(Binary::Mul, *a, 1 << n)),
                (Binary::Shr | Binary::WrappingShr, n) => {
                    n.filter(|n| *n < 32).and_then(|n| self.by(Binary::Div, *a, 1 << n))
                }
                (Binary::And, n) => n.filter(|n| (n + 1) & n == 0).and_then(|n| {
                    let divided = [self.number(*a), Polynomial::constant(n + 1)];
                    self.remainders.insert(result, divided);
                    self.by(Binary::Rem, *a, n + 1)
                }),
                _ => {
                    let (a, b) = (self.number(*a), self.number(*b));
                    let here = || self.bounds.known.iter().chain(&self.here).collect::<Vec<_>>();
                    let defined = !is_division(*operator) || self.bounds.is_positive(&b, &here());
                    if defined && *operator == Binary::Rem {
                        self.remainders.insert(result, [a.clone(), b.clone()]);
                    }
                    defined.then(|| self.bounds.binary(*operator, &a, &b)).flatten()
                }
            },
            Op::Cast(condition) if self.exact.is_some() => self.rounding_up(*condition),
            Op::Select { condition, yes, no } if self.settled(*condition).is_some() => {
                let chosen = if self.settled(*condition) == Some(true) { *yes } else { *no };
                Some(self.number(chosen))
            }
            Op::Select { condition, yes, no } => {
                let (variable, _) = self.bounds.variable(VariableOrigin::Value(result));
                for of in variable.variables() {
                    self.bounds.either.insert(of, (*condition, *yes, *no));
                }
                Some(variable)
            }
            _ => None,
        };
        if let Some(number) = number {
            self.numbers.insert(result, number);
        }
        if let (Op::Binary(Binary::Div, a, b), true) = (&*op, self.exact.is_some()) {
            self.bound_quotient(*a, *b, result);
        }
    }

    fn by(&mut self, operator: Binary, a: Value, n: i128) -> Option<Polynomial> {
        let a = self.number(a);
        self.bounds.binary(operator, &a, &Polynomial::constant(n))
    }

    fn special(&mut self, special: Special) -> Polynomial {
        let one = Polynomial::constant(1);
        let axis = special.axis();
        match special {
            Special::BlockDim(_) if self.kernel.block.extent(axis).is_some() => {
                let extent = self.kernel.block.extent(axis).unwrap_or(1);
                return Polynomial::constant(extent.into());
            }
            Special::Grid(_) => {
                if let Some(blocks) = &self.bounds.grid[usize::from(axis)] {
                    return blocks.clone();
                }
            }
            _ => {}
        }
        let (variable, new) = self.bounds.variable(VariableOrigin::Special(special));
        if new {
            let above = match special {
                Special::Thread(_) => Some(Polynomial::constant(self.kernel.block.most()[usize::from(axis)].into())),
                Special::Block(_) => self.bounds.grid[usize::from(axis)].clone(),
                Special::Grid(_) | Special::BlockDim(_) => None,
            };
            if let Some(above) = above {
                self.bounds.at_least(&variable, &above.plus(&one, -1), &variable);
            }
        }
        variable
    }

    /// Assumes that a truth value equals `holds` until the region ends.
    fn assume(&mut self, condition: Value, holds: bool) {
        let mut found = Vec::new();
        self.meaning(condition, holds, &mut found);
        if self.exact.is_some() {
            self.know(found);
            self.know_cases(condition, holds);
        } else {
            self.here.extend(found);
        }
        self.compared(condition, holds);
    }

    /// Records the facts that follow from a truth value being `holds`.
    fn compared(&mut self, condition: Value, holds: bool) {
        match (self.truths.get(&condition).copied(), holds) {
            (Some(Truth::Compare(_, a, b)), _) => {
                let both = [self.number(a), self.number(b)];
                self.asked.extend(both);
            }
            (Some(Truth::And(a, b)), true) | (Some(Truth::Or(a, b)), false) => {
                self.compared(a, holds);
                self.compared(b, holds);
            }
            (Some(Truth::Not(a)), _) => self.compared(a, !holds),
            _ => {}
        }
    }

    /// Returns the number of known facts.
    fn kept(&self) -> KeptFacts {
        let cases = self.exact.as_ref().map_or(0, |exact| exact.cases.len());
        KeptFacts { here: self.here.len(), asked: self.asked.len(), cases }
    }

    /// Removes the facts of a region.
    fn leave(&mut self, KeptFacts { here, asked, cases }: KeptFacts) {
        self.here.truncate(here);
        self.asked.truncate(asked);
        self.exact.iter_mut().for_each(|exact| exact.cases.truncate(cases));
        if let Some(look) = &mut self.look {
            while look.groups.pop_if(|(first, _)| *first >= here).is_some() {}
        }
    }

    /// Returns whether control reaches this point under more conditions than are known here.
    fn is_obscure(&self) -> bool {
        self.look.as_ref().is_some_and(|look| look.obscure)
    }

    fn obscured(&mut self, obscure: bool) {
        if let Some(look) = &mut self.look {
            look.obscure = obscure;
        }
    }

    /// Records that the following facts come from the branch or loop at `location`.
    fn group(&mut self, location: Location) {
        let first = self.here.len();
        if let Some(look) = &mut self.look {
            look.groups.push((first, location));
        }
    }

    /// Assumes that the condition of the branch at `location` equals `holds` until the region ends.
    fn enter(&mut self, location: Location, condition: Value, holds: bool) {
        self.group(location);
        self.obscured(self.is_obscure() || self.look.is_some() && !self.is_clear(condition, holds));
        self.assume(condition, holds);
    }

    /// Returns whether the facts of a condition being `holds` express it completely.
    fn is_clear(&self, condition: Value, holds: bool) -> bool {
        match (self.truths.get(&condition).copied(), holds) {
            (Some(Truth::Compare(comparison, ..)), _) => {
                (if holds { comparison } else { comparison.inverse() }) != Comparison::Ne
            }
            (Some(Truth::And(a, b)), true) | (Some(Truth::Or(a, b)), false) => {
                self.is_clear(a, holds) && self.is_clear(b, holds)
            }
            (Some(Truth::Not(a)), _) => self.is_clear(a, !holds),
            _ => condition == self.outcomes[usize::from(holds)],
        }
    }

    /// Collects the accesses of an instruction, and records the address that it computes.
    fn see(&mut self, inst: &Inst) {
        type Asked = SmallVec<[Value; 2]>;
        let guarded = |guard: &Option<Value>| -> Asked { guard.iter().copied().collect() };
        let note = |this: &mut Self, kind, place: &AccessPlace, element: Scalar, n: u32, bytes: u32, asked: Asked| {
            let kept = this.kept();
            let obscure = this.is_obscure();
            for condition in asked {
                // For a branch that became a guard, the location is that of the branch.
                let computed = this.look.as_ref().and_then(|look| look.computed.get(&condition).copied());
                this.enter(computed.unwrap_or(inst.location), condition, true);
            }
            let dims = this.dims(place, element, n);
            let proof = this.proof(&dims);
            // An asynchronous copy reads only the elements that exist.
            let whole = bytes == n * element.bytes();
            let formula = if whole && !this.is_obscure() { this.formula(place, element, bytes) } else { None };
            this.leave(kept);
            this.obscured(obscure);
            let seen = AccessBounds { location: inst.location, kind, place: place.clone(), bytes, proof, formula };
            this.look.iter_mut().for_each(|look| look.seen.push(seen.clone()));
        };
        if let (Op::Compare(..) | Op::Binary(..), [result], Some(look)) = (&inst.op, &inst.results[..], &mut self.look)
        {
            look.computed.insert(*result, inst.location);
        }
        match &inst.op {
            Op::Load { place, element, guard, .. } => {
                let n = inst.results.len() as u32;
                let asked = guard.iter().map(|Guard { condition, .. }| *condition).collect();
                note(self, AccessKind::Load, place, *element, n, n * element.bytes(), asked);
            }
            Op::Store { place, element, values, guard } => {
                let n = values.len() as u32;
                note(self, AccessKind::Store, place, *element, n, n * element.bytes(), guarded(guard));
            }
            Op::Atomic { place, element, .. } => {
                note(self, AccessKind::Atomic, place, *element, 1, element.bytes(), smallvec![]);
            }
            Op::CopyAsync(copy) => {
                let AsyncCopy { from, to, element, count, guard, inside, .. } = &**copy;
                let both = guard.iter().chain(inside).copied().collect();
                note(self, AccessKind::Load, from, *element, 1, copy.size(), both);
                note(self, AccessKind::Store, to, *element, *count, copy.size(), guarded(guard));
            }
            Op::Parameter(_) | Op::Table(_) | Op::Dynamic { .. } => {
                let result = inst.results[0];
                if !matches!(self.kernel.ty(result), Type::Scalar(_)) {
                    self.look.iter_mut().for_each(|look| _ = look.addresses.insert(result, Polynomial::default()));
                }
            }
            Op::Offset { base, terms, bytes } => {
                let first = self.look.as_ref().and_then(|look| look.addresses.get(base).cloned());
                let moved = first.and_then(|first| {
                    terms.iter().try_fold(first, |sum, (index, stride)| {
                        let way = self.elements(*index, *stride)?;
                        Some(sum.plus(&way, (*bytes).into()))
                    })
                });
                if let (Some(moved), Some(look)) = (moved, &mut self.look) {
                    look.addresses.insert(inst.results[0], moved);
                }
            }
            _ => {}
        }
    }

    fn elements(&mut self, index: Value, stride: Option<Value>) -> Option<Polynomial> {
        let index = self.number(index);
        match stride {
            Some(stride) => index.times(&self.number(stride)),
            None => Some(index),
        }
    }

    /// Returns the index, the extent and the number of accessed elements in each dimension.
    fn dims(&mut self, place: &AccessPlace, element: Scalar, n: u32) -> Vec<(Polynomial, Polynomial, u32)> {
        let reach = place.reach(n, element);
        let mut dims: Vec<(Polynomial, Polynomial, u32)> = match place {
            AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. } => {
                dims.iter().map(|d| (self.number(d.index), self.number(d.extent), 1)).collect()
            }
            AccessPlace::Shared { array, indices, .. } => {
                let shape = self.kernel.shared[array.0 as usize].shape.iter();
                let shape = shape.map(|n| Polynomial::constant((*n).into()));
                indices.iter().zip(shape).map(|(i, extent)| (self.number(*i), extent, 1)).collect()
            }
            AccessPlace::Address { .. } => Vec::new(),
        };
        if let Some((.., last)) = dims.last_mut() {
            *last = reach;
        }
        let steps = place.within().map(|w| &w.indices[..]).unwrap_or_default();
        for (i, step) in steps.iter().enumerate() {
            let last = i + 1 == steps.len() && step.bytes == element.bytes();
            let extent = Polynomial::constant(step.extent.into());
            dims.push((self.number(step.index), extent, if last { n } else { 1 }));
        }
        dims
    }

    /// Returns a minimal set of branches and loops that keep all indices below their extents.
    fn proof(&mut self, dims: &[(Polynomial, Polynomial, u32)]) -> Option<Vec<Location>> {
        let groups = self.look.as_ref().map_or(Vec::new(), |look| look.groups.clone());
        let here = std::mem::take(&mut self.here);
        let end = |group: usize| groups.get(group + 1).map_or(here.len(), |(first, _)| *first);
        let facts = |chosen: &[usize]| -> Vec<Polynomial> {
            chosen.iter().flat_map(|group| here[groups[*group].0..end(*group)].iter().cloned()).collect()
        };
        let mut fits = |chosen: &[usize]| {
            self.here = facts(chosen);
            dims.iter().all(|(index, extent, n)| self.is_inside(index, extent, *n))
        };
        let mut chosen: Vec<usize> = (0..groups.len()).collect();
        let mut proof = None;
        if fits(&[]) {
            proof = Some(Vec::new());
        } else if fits(&chosen) {
            for group in (0..groups.len()).rev() {
                let fewer: Vec<usize> = chosen.iter().copied().filter(|g| *g != group).collect();
                if fits(&fewer) {
                    chosen = fewer;
                }
            }
            proof = Some(chosen.iter().map(|group| groups[*group].1).collect());
        }
        self.here = here;
        proof
    }

    /// Returns whether `n` elements from `index` on are in bounds wherever the known facts hold.
    fn is_inside(&mut self, index: &Polynomial, extent: &Polynomial, n: u32) -> bool {
        if self.in_all_threads(index, extent, n) {
            return true;
        }
        let beyond = index.plus(extent, -1).plus(&Polynomial::constant(n.into()), 1);
        let asked = [beyond.plus(&Polynomial::constant(1), -1), index.clone(), extent.clone()];
        self.never(&asked, MAX_SPLITS)
    }

    /// Returns whether `n` elements from `index` on are in bounds in every possible thread, by
    /// enumeration.
    fn in_all_threads(&self, index: &Polynomial, extent: &Polynomial, n: u32) -> bool {
        let [x, y, z] = self.kernel.block.most();
        let fits = |thread: [u32; 3]| {
            let (index, extent) = (self.bounds.in_thread(index, thread)?, self.bounds.in_thread(extent, thread)?);
            (index >= 0 && index + i128::from(n) <= extent).then_some(())
        };
        let mut all = (0..z).flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| [x, y, z])));
        all.try_for_each(fits).is_some()
    }

    /// Returns the formula of the accessed bytes, relative to the start of the buffer or array.
    fn formula(&mut self, place: &AccessPlace, element: Scalar, bytes: u32) -> Option<AccessBytes> {
        let unit = place.unit(element);
        let mut first = match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                let mut first = self.look.as_ref()?.addresses.get(base)?.clone();
                for dim in dims {
                    first = first.plus(&self.elements(dim.index, dim.stride)?, unit.into());
                }
                first
            }
            AccessPlace::Shared { array, indices, .. } => {
                let array = &self.kernel.shared[array.0 as usize];
                if array.swizzle().is_some() {
                    return None;
                }
                let strides = array.strides.iter().map(|stride| i128::from(*stride) * i128::from(unit));
                let terms = indices.iter().zip(strides);
                terms.fold(Polynomial::default(), |sum, (index, stride)| sum.plus(&self.number(*index), stride))
            }
            AccessPlace::Address { .. } => return None,
        };
        if let Some(within) = place.within() {
            first = first.plus(&Polynomial::constant(within.offset.into()), 1);
            for step in &within.indices {
                first = first.plus(&self.number(step.index), step.bytes.into());
            }
        }
        Some(AccessBytes { first, bytes, conditions: self.here.clone() })
    }

    /// Returns the polynomials that are ≥ 0 where a truth value is `holds`.
    fn meaning(&mut self, condition: Value, holds: bool, found: &mut Vec<Polynomial>) {
        match (self.truths.get(&condition).copied(), holds) {
            (Some(Truth::Compare(comparison, a, b)), _) => {
                let (a, b) = (self.number(a), self.number(b));
                found.extend(facts(if holds { comparison } else { comparison.inverse() }, &a, &b));
            }
            (Some(Truth::And(a, b)), true) | (Some(Truth::Or(a, b)), false) => {
                self.meaning(a, holds, found);
                self.meaning(b, holds, found);
            }
            (Some(Truth::Not(a)), _) => self.meaning(a, !holds, found),
            _ => {}
        }
    }

    /// Returns whether the polynomials of `asked` cannot all be ≥ 0 here.
    fn never(&mut self, asked: &[Polynomial], splits: usize) -> bool {
        let here: Vec<&Polynomial> = self.bounds.known.iter().chain(&self.here).chain(asked).collect();
        let known = self.bounds.known_of(&here);
        let impossible = match self.exact {
            Some(_) => impossible_stepwise(&known, asked),
            None => impossible(&known, asked),
        };
        if impossible {
            return true;
        }
        // The contradiction must hold for both values of the choice.
        let mut variables = asked.iter().flat_map(Polynomial::variables);
        let Some((variable, (condition, yes, no))) =
            variables.find_map(|variable| Some((variable, *self.bounds.either.get(&variable)?)))
        else {
            return self.exact.is_some() && (self.never_for_maximum(asked) || self.never_in_cases(asked, &[]));
        };
        if splits == 0 {
            return false;
        }
        [(yes, true), (no, false)].into_iter().all(|(of, holds)| {
            let of = self.number(of);
            let with: Option<Vec<Polynomial>> = asked.iter().map(|p| p.with(variable, &of)).collect();
            let Some(mut with) = with else { return false };
            self.meaning(condition, holds, &mut with);
            if self.exact.is_none() {
                return self.never(&with, splits - 1);
            }
            let kept = self.kept();
            self.know_cases(condition, holds);
            let never = self.never(&with, splits - 1);
            self.leave(kept);
            never
        })
    }

    /// Returns `None` if a comparison of two used numbers never holds: neither number wraps.
    fn possibly(&mut self, comparison: Comparison, a: &Polynomial, b: &Polynomial) -> Option<()> {
        let asked = [facts(comparison, a, b), vec![a.clone(), b.clone()]].concat();
        (!self.never(&asked, MAX_SPLITS)).then_some(())
    }

    fn decided(&mut self, comparison: Comparison, a: Value, b: Value) -> Option<bool> {
        let (a, b) = (self.number(a), self.number(b));
        // A comparison always holds if its opposite never does.
        let mut never = |comparison| match comparison {
            Comparison::Ne => [Comparison::Lt, Comparison::Gt].into_iter().all(|c| self.possibly(c, &a, &b).is_none()),
            _ => self.possibly(comparison, &a, &b).is_none(),
        };
        [true, false].into_iter().find(|holds| never(if *holds { comparison.inverse() } else { comparison }))
    }

    /// Returns whether two numbers are equal wherever a condition equals `holds`.
    fn equal_where(&mut self, condition: Value, holds: bool, a: Value, b: Value) -> bool {
        let (a, b) = (self.number(a), self.number(b));
        let chosen = if holds { &a } else { &b };
        let other = if holds { &b } else { &a };
        let asked = [&self.asked[..], std::slice::from_ref(chosen)].concat();
        if !self.bounds.is_plain(other, &asked) {
            return false;
        }
        [Comparison::Lt, Comparison::Gt].into_iter().all(|comparison| {
            let mut asked = facts(comparison, &a, &b);
            self.meaning(condition, holds, &mut asked);
            self.never(&asked, MAX_SPLITS)
        })
    }

    /// Returns the comparison that is equivalent where both operands are never equal.
    fn stricter(&mut self, comparison: Comparison, a: Value, b: Value) -> Option<Comparison> {
        let stricter = match comparison {
            Comparison::Le => Comparison::Lt,
            Comparison::Ge => Comparison::Gt,
            _ => return None,
        };
        let (a, b) = (self.number(a), self.number(b));
        self.possibly(Comparison::Eq, &a, &b).is_none().then_some(stricter)
    }
}

/// Returns whether control never reaches the end of a side of a branch.
fn leaves(region: &Region) -> bool {
    region.yielded().is_none()
}

/// Returns whether control may leave the region before its end.
fn escapes(region: &Region) -> bool {
    let one = |inst: &Inst| {
        matches!(inst.op, Op::Return | Op::Break(..) | Op::Continue(..)) || inst.op.regions().into_iter().any(escapes)
    };
    region.insts.iter().any(one)
}

/// Returns whether threads may return within the region.
fn returns(region: &Region) -> bool {
    region.insts.iter().any(|inst| matches!(inst.op, Op::Return) || inst.op.regions().into_iter().any(returns))
}
