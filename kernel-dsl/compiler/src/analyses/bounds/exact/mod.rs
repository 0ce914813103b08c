//! Decisions that hold although a `usize` may wrap, for the checked form of a kernel.
//!
//! The checked form reports a sum, difference or product that wraps, and continues with the wrapped
//! number. So the polynomial of such a result is used only if it is proven not to wrap (`wrap`).
//! Otherwise the result is a new variable with its type as the only fact. All polynomials are then
//! exact in every launch that meets the contract, and so are the facts about them.
//!
//! The walk replaces decided comparisons and checks (`checks`). Two further modules prove more:
//! `grid` uses the cases of the number of blocks, and `extrema` replaces a minimum or maximum by
//! each of its operands.
//!
//! A counted loop of the checked form ends before its index wraps. The index is therefore always
//! the start plus a number of steps.

mod checks;
mod extrema;
mod grid;
mod state;
mod wrap;

pub use state::ExactState;

use super::launch::{EqualExtents, LaunchPromises, LaunchScope, NameResolver};
use super::linear::{LinearVariable, Polynomial};
use super::variables::VariableTable;
use super::walk::SymbolicAnalysis;
use crate::hir::Monomorphic;
use crate::ir::{Inst, Kernel, Location, Op, Parameter, Role, Type, Value};
use crate::scalar::Scalar;

/// Maximum number of eliminations for one kernel. Beyond it, intervals alone decide comparisons.
const MAX_ELIMINATIONS: usize = 2500;

/// Maximum number of distinctions of cases for one kernel.
const MAX_DISTINCTIONS: usize = 300;

/// Replaces the comparisons of the checked form by their outcomes, if every launch of `program`
/// decides them whose extents, strides and `usize` arguments are at most `largest`. Sums,
/// differences and products that are proven not to wrap become exact ones. Branches must still be
/// branches.
pub fn decide_exactly(kernel: &mut Kernel, program: &Monomorphic, largest: u32) {
    let names = NameResolver::of(program).with_sides();
    let equal = EqualExtents::of(program, &names);
    let table = launch_table(kernel, LaunchScope::of(program, &names, &equal), largest);

    let [no, yes] = [0, 1].map(|_| kernel.value(Type::Scalar(Scalar::Bool)));
    let mut body = std::mem::take(&mut kernel.body);
    let mut analysis = SymbolicAnalysis::new(table, kernel, &equal, [no, yes]);
    let cases = analysis.table.launch_cases.clone();
    analysis.exact = Some(ExactState { cases, ..ExactState::default() });
    analysis.set_outcome(no, false);
    analysis.set_outcome(yes, true);
    analysis.assume_grid();
    analysis.visit_region(&mut body);

    let constant = |value: Value, bits: u64| Inst {
        op: Op::Constant(bits),
        results: [value].into_iter().collect(),
        location: Location(0),
    };
    body.insts.splice(0..0, [constant(no, 0), constant(yes, 1)]);
    kernel.body = body;
}

/// Returns the table of a launch whose extents, strides and `usize` arguments are at most
/// `largest`.
fn launch_table(kernel: &Kernel, scope: LaunchScope<'_>, largest: u32) -> VariableTable {
    let is_scalar = |(_, parameter): &(usize, &Parameter)| parameter.role == Role::Value(Scalar::Usize);
    let scalars = kernel.parameters.iter().enumerate().filter(is_scalar);
    let scalars = scalars.map(|(i, parameter)| (parameter.argument, i as u32)).collect();
    let mut table = VariableTable::exact(scalars, largest).with_clauses(scope, LaunchPromises::ALL);
    substitute_multiples(&mut table.launch_facts);
    table
}

/// Adds a copy of each fact with a product in which n · y replaces an extent x = n · y. The copies
/// show that a product of x is a multiple of n too.
fn substitute_multiples(facts: &mut Vec<Polynomial>) {
    let is_equality = |p: &&Polynomial| facts.contains(&p.negated());
    let equal: Vec<(LinearVariable, Polynomial)> =
        facts.iter().filter(is_equality).filter_map(Polynomial::as_multiple).collect();
    for (variable, multiple) in equal {
        let products = facts.iter().filter(|p| p.has_product_with(variable));
        let substituted: Vec<Polynomial> = products.filter_map(|p| p.substitute(variable, &multiple)).collect();
        facts.extend(substituted);
    }
}

impl SymbolicAnalysis<'_> {
    /// Records the outcome of a comparison, or a constant.
    pub fn set_outcome(&mut self, value: Value, holds: bool) {
        if let Some(exact) = &mut self.exact {
            exact.outcomes.insert(value, holds);
        }
    }

    /// Returns the outcome of a condition that is decided.
    pub fn outcome(&self, condition: Value) -> Option<bool> {
        self.exact.as_ref()?.outcomes.get(&condition).copied()
    }

    /// Assumes that `facts` are ≥ 0 until the scope ends. If a fact keeps a product above 0, the
    /// factors are assumed to be above 0 too.
    pub fn assume_facts(&mut self, facts: Vec<Polynomial>) {
        let factors: Vec<Polynomial> = facts.iter().flat_map(Polynomial::bounds_of_factors).collect();
        self.facts.extend(facts);
        self.facts.extend(factors);
    }

    /// Counts an elimination. Returns whether the limit allowed it.
    pub fn may_eliminate(&mut self) -> bool {
        let Some(exact) = &mut self.exact else { return true };
        exact.eliminations += 1;
        exact.eliminations <= MAX_ELIMINATIONS
    }

    /// Counts a distinction of cases. Returns whether the limit allowed it.
    pub fn try_distinguish(&mut self) -> bool {
        let Some(exact) = &mut self.exact else { return false };
        exact.distinctions += 1;
        exact.distinctions <= MAX_DISTINCTIONS
    }
}
