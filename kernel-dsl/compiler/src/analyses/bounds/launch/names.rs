//! The names in the launch clauses of a kernel: extents of arguments, and constants of the
//! instance. Some extents are equal in every launch.

use crate::hir::{Constant, Expr, ExprKind, Intrinsic, LocalId, Monomorphic};
use crate::ir::{Comparison, Kernel, Role};
use crate::launch;
use std::collections::HashMap;

/// Extent of an argument: indices of the argument and of the dimension.
pub type Extent = (u32, u32);

/// Extents that `#[requires(…)]` keeps equal.
#[derive(Default)]
pub struct EqualExtents {
    /// For each extent, the first of the extents equal to it.
    first: HashMap<Extent, Extent>,
}

impl EqualExtents {
    /// Returns the equalities of extents in the instance's `#[requires(…)]`; `names` resolves the
    /// extents.
    pub fn of(program: &Monomorphic, names: &NameResolver<'_>) -> EqualExtents {
        let mut equal = EqualExtents::default();
        for requirement in &program.program().launch.requires {
            equal.require(&requirement.condition, names);
        }
        equal
    }

    /// Returns the first of the extents that are equal to `extent`.
    pub fn representative(&self, extent: Extent) -> Extent {
        self.first.get(&extent).copied().unwrap_or(extent)
    }

    fn require(&mut self, condition: &Expr, names: &NameResolver<'_>) {
        match &names.side(condition).kind {
            ExprKind::AndAlso(a, b) => {
                self.require(a, names);
                self.require(b, names);
            }
            ExprKind::Compare(Comparison::Eq, a, b) => {
                if let (Some(a), Some(b)) = (names.extent(a), names.extent(b)) {
                    self.unite(a, b);
                }
            }
            _ => {}
        }
    }

    fn unite(&mut self, a: Extent, b: Extent) {
        let (a, b) = (self.representative(a), self.representative(b));
        let (low, high) = (a.min(b), a.max(b));
        self.first.values_mut().filter(|first| **first == high).for_each(|first| *first = low);
        self.first.extend([(high, low), (low, low)]);
    }
}

/// Returns the extent that a parameter holds, if any.
pub fn extent_of(kernel: &Kernel, parameter: u32) -> Option<Extent> {
    let parameter = kernel.parameters.get(parameter as usize)?;
    match parameter.role {
        Role::Extent(dimension) => Some((parameter.argument, dimension)),
        _ => None,
    }
}

/// Resolver of the kernel's names in launch expressions.
pub struct NameResolver<'p> {
    program: &'p Monomorphic,
    /// Launch argument of each parameter that corresponds to exactly one.
    arguments: HashMap<u32, u32>,
    /// Whether an `if` that the instance's constants decide is replaced by the side that is taken.
    has_sides: bool,
}

impl<'p> NameResolver<'p> {
    /// Maps the parameters of an instance to its launch arguments.
    pub fn of(program: &'p Monomorphic) -> NameResolver<'p> {
        let all = program.arguments();
        let alone = |parameter: u32| all.iter().filter(|a| a.parameter == parameter).count() == 1;
        let arguments = all.iter().enumerate().filter(|(_, a)| alone(a.parameter));
        let arguments = arguments.map(|(i, a)| (a.parameter, i as u32)).collect();
        NameResolver { program, arguments, has_sides: false }
    }

    /// Replaces an `if` that the instance's constants decide by the side that is taken.
    pub fn with_sides(self) -> NameResolver<'p> {
        NameResolver { has_sides: true, ..self }
    }

    /// Returns the expression, or the taken side of an `if` that the instance's constants decide.
    pub fn side<'e>(&self, e: &'e Expr) -> &'e Expr {
        match e.kind {
            ExprKind::If { .. } if self.has_sides => launch::evaluated_side(self.program, e),
            _ => e,
        }
    }

    /// Returns the launch argument of a parameter that corresponds to exactly one.
    pub fn argument(&self, parameter: LocalId) -> Option<u32> {
        self.arguments.get(&parameter.0).copied()
    }

    /// Returns the extent of an argument, if the expression is one.
    pub fn extent(&self, e: &Expr) -> Option<Extent> {
        let ExprKind::Intrinsic { intrinsic: Intrinsic::Extent(dimension), arguments } = &self.side(e).kind else {
            return None;
        };
        let ExprKind::Local(LocalId(parameter)) = arguments.first()?.kind else { return None };
        let dimension = match dimension {
            Some(dimension) => u32::from(*dimension),
            None => self.number(arguments.get(1)?)? as u32,
        };
        Some((self.argument(LocalId(parameter))?, dimension))
    }

    /// Returns the value of a number or of a constant of the instance.
    pub fn number(&self, e: &Expr) -> Option<u64> {
        match &self.side(e).kind {
            ExprKind::Literal(n) => Some(*n),
            ExprKind::Generic(i) => match self.program.instance().0.get(*i as usize)? {
                Constant::Usize(n) => Some((*n).into()),
                Constant::Integer(n) => u64::try_from(*n).ok(),
                _ => None,
            },
            _ => None,
        }
    }
}
