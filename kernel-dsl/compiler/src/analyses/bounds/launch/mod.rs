//! The facts that every launch of a kernel meets, read from its clauses.
//!
//! `#[requires(…)]` gives inequalities of extents and arguments, and cases of them. The clause
//! `grid` gives the number of blocks. A launch that violates a requirement, or divides by 0 in a
//! clause, is refused before the kernel runs.

mod cases;
mod names;
mod scope;

pub use names::{EqualExtents, Extent, NameResolver, extent_of};
pub use scope::LaunchScope;

use super::linear::{Polynomial, inequalities, informative_cases};
use super::variables::{VariableOrigin, VariableTable, is_division};
use crate::hir::{Expr, ExprKind, Intrinsic, Monomorphic};
use crate::ir::{Binary, Comparison};

/// The clauses of a kernel that a launch is assumed to keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaunchPromises {
    /// Whether the conditions of `#[requires]` hold.
    pub requires: bool,
    /// Whether the grid is that of the kernel.
    pub grid: bool,
}

impl LaunchPromises {
    /// Both clauses, which every launch keeps.
    pub const ALL: LaunchPromises = LaunchPromises { requires: true, grid: true };
}

impl VariableTable {
    /// Returns the facts of a launch that keeps `promises`, for a kernel in which no `usize` wraps.
    pub fn of_launch(program: &Monomorphic, equal: &EqualExtents, promises: LaunchPromises) -> VariableTable {
        let names = NameResolver::of(program);
        let scope = LaunchScope::of(program, &names, equal);
        VariableTable::default().with_clauses(scope, promises)
    }

    /// Adds the facts of a launch that keeps `promises`.
    pub fn with_clauses(mut self, scope: LaunchScope<'_>, promises: LaunchPromises) -> VariableTable {
        let launch = &scope.program.program().launch;
        for requirement in launch.requires.iter().filter(|_| promises.requires) {
            self.require(&requirement.condition, scope);
        }
        if !promises.grid {
            return self;
        }
        for (axis, blocks) in launch.grid.iter().enumerate() {
            self.grid[axis] = self.launch_value(blocks, scope.names, scope.equal);
            if self.is_exact() && self.grid[axis].is_none() {
                self.grid_cases[axis] = self.case_values(blocks, scope).unwrap_or_default();
            }
        }
        if !launch.grid.is_empty() {
            self.grid[launch.grid.len()..].fill(Some(Polynomial::constant(1)));
        }
        self
    }

    /// Adds the facts of a requirement.
    fn require(&mut self, condition: &Expr, scope: LaunchScope<'_>) {
        let LaunchScope { names, equal, .. } = scope;
        match &names.side(condition).kind {
            ExprKind::AndAlso(a, b) => {
                self.require(a, scope);
                self.require(b, scope);
            }
            ExprKind::OrElse(..) | ExprKind::If { .. } | ExprKind::Compare(Comparison::Ne, ..) if self.is_exact() => {
                let cases = self.cases_of_condition(condition, true, scope);
                match informative_cases(cases) {
                    Some(mut cases) if cases.len() == 1 => self.launch_facts.append(&mut cases[0]),
                    Some(cases) => self.launch_cases.push(cases),
                    None => {}
                }
            }
            ExprKind::Compare(comparison, a, b) if scope.is_usize(a) => {
                let a = self.launch_value(a, names, equal);
                let b = self.launch_value(b, names, equal);
                if let (Some(a), Some(b)) = (a, b) {
                    self.launch_facts.extend(inequalities(*comparison, &a, &b));
                }
            }
            _ => {}
        }
    }

    /// Returns the value of an expression of the kernel's clauses, which does not wrap.
    fn launch_value(&mut self, e: &Expr, names: &NameResolver<'_>, equal: &EqualExtents) -> Option<Polynomial> {
        if let Some(extent) = names.extent(e) {
            return Some(self.extent(extent, equal));
        }
        if let Some(n) = names.number(e) {
            return Some(Polynomial::constant(n.into()));
        }
        if let ExprKind::Local(local) = e.kind {
            let parameter = *self.scalar_parameters.get(&names.argument(local)?)?;
            return Some(self.argument(VariableOrigin::Parameter(parameter)));
        }
        let mut value = |e: &Expr| self.launch_value(e, names, equal);
        match &names.side(e).kind {
            ExprKind::Binary(operator, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                if is_division(*operator) {
                    self.require_divisor(&b)?;
                }
                self.binary(*operator, &a, &b)
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::Binary(operator @ (Binary::Min | Binary::Max)), arguments } => {
                let (a, b) = (value(arguments.first()?)?, value(arguments.get(1)?)?);
                self.binary(*operator, &a, &b)
            }
            ExprKind::Intrinsic { intrinsic: Intrinsic::DivCeil, arguments } => {
                let (a, b) = (value(arguments.first()?)?, value(arguments.get(1)?)?);
                self.require_divisor(&b)?;
                self.ceiling(&a, &b)
            }
            _ => None,
        }
    }

    /// Adds the fact that the divisor of a launch expression is at least 1: a launch that divides
    /// by 0 is refused. Returns `None` if the divisor is the constant 0.
    fn require_divisor(&mut self, divisor: &Polynomial) -> Option<()> {
        match divisor.as_constant() {
            Some(n) => (n > 0).then_some(()),
            None => {
                self.launch_facts.extend(inequalities(Comparison::Ge, divisor, &Polynomial::constant(1)));
                Some(())
            }
        }
    }
}
