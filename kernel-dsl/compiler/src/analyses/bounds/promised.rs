//! The guarantees of every launch of a kernel: equal or known extents, and the number of blocks
//! along an axis.

use crate::hir::{Constant, Expr, ExprKind, Intrinsic, LocalId, Monomorphic};
use crate::ir::{Binary, Comparison, Kernel, Op, Region, Role, Special, Value};
use crate::launch;
use std::collections::HashMap;

/// Extent of an argument: indices of the argument and of the dimension.
pub(super) type Extent = (u32, u32);

/// Conditions whose violation makes a launch fail.
pub struct Promised {
    /// For each extent, the first of the extents equal to it.
    first: HashMap<Extent, Extent>,
    known: HashMap<Extent, u64>,
    /// Number of blocks along each axis, if it is an extent.
    grid: [Option<Extent>; 3],
}

impl Promised {
    /// Returns the facts that `grid` and `#[requires(…)]` state about an instance.
    pub fn of(program: &Monomorphic) -> Promised {
        Promised::read(program, &NameResolver::of(program))
    }

    /// Returns the facts that `grid` and `#[requires(…)]` state, as `reader` reads them.
    pub(super) fn read(program: &Monomorphic, reader: &NameResolver<'_>) -> Promised {
        let launch = &program.program().launch;
        let mut promised = Promised::nothing();
        for requirement in &launch.requires {
            promised.require(&requirement.condition, reader);
        }
        for (axis, blocks) in launch.grid.iter().enumerate() {
            promised.grid[axis] = reader.extent(blocks).map(|e| promised.first(e));
        }
        promised
    }

    /// Returns an empty set of guarantees.
    pub(super) fn nothing() -> Promised {
        Promised { first: HashMap::new(), known: HashMap::new(), grid: [None; 3] }
    }

    /// Returns the first of the extents that are equal to `extent`.
    pub(super) fn first(&self, extent: Extent) -> Extent {
        self.first.get(&extent).copied().unwrap_or(extent)
    }

    fn require(&mut self, condition: &Expr, reader: &NameResolver<'_>) {
        match &reader.side(condition).kind {
            ExprKind::AndAlso(a, b) => {
                self.require(a, reader);
                self.require(b, reader);
            }
            ExprKind::Compare(Comparison::Eq, a, b) => match (reader.extent(a), reader.extent(b)) {
                (Some(a), Some(b)) => self.equal(a, b),
                (Some(of), None) => self.is(of, reader.number(b)),
                (None, Some(of)) => self.is(of, reader.number(a)),
                (None, None) => {}
            },
            _ => {}
        }
    }

    fn equal(&mut self, a: Extent, b: Extent) {
        let (a, b) = (self.first(a), self.first(b));
        let (low, high) = (a.min(b), a.max(b));
        self.first.values_mut().filter(|first| **first == high).for_each(|first| *first = low);
        self.first.extend([(high, low), (low, low)]);
        if let Some(n) = self.known.remove(&high) {
            self.known.insert(low, n);
        }
    }

    fn is(&mut self, extent: Extent, n: Option<u64>) {
        if let Some(n) = n {
            let first = self.first(extent);
            self.known.insert(first, n);
        }
    }

    /// Replaces uses by the guaranteed facts: equal extents become one, and a block's index is
    /// below the number of blocks.
    pub fn apply(&self, kernel: &mut Kernel) {
        let mut defined = HashMap::new();
        let mut body = std::mem::take(&mut kernel.body);
        self.region(kernel, &mut body, &mut defined);
        kernel.body = body;
    }

    fn region(&self, kernel: &Kernel, region: &mut Region, defined: &mut HashMap<Value, Term>) {
        for inst in &mut region.insts {
            match &inst.op {
                Op::Parameter(p) => {
                    let Some(extent) = extent_of(kernel, *p) else { continue };
                    let first = self.first(extent);
                    if let Some(n) = self.known.get(&first) {
                        inst.op = Op::Constant(*n);
                        continue;
                    }
                    let first = first_parameter(kernel, first).unwrap_or(*p);
                    inst.op = Op::Parameter(first);
                    defined.insert(inst.results[0], Term::Extent(self.first(extent), 0));
                }
                Op::Special(Special::Block(axis)) => {
                    defined.insert(inst.results[0], Term::Block(*axis));
                }
                Op::Constant(1) => {
                    defined.insert(inst.results[0], Term::One);
                }
                Op::Binary(Binary::Add | Binary::WrappingAdd, a, b) => {
                    // The grid is smaller than the largest number, so the sum does not wrap.
                    if let (Some(Term::Extent(e, 0)), Some(Term::One)) = (defined.get(a), defined.get(b)) {
                        let sum = Term::Extent(*e, 1);
                        defined.insert(inst.results[0], sum);
                    }
                }
                Op::Compare(comparison, a, b) => {
                    let (Some(Term::Block(axis)), Some(Term::Extent(extent, more))) = (defined.get(a), defined.get(b))
                    else {
                        continue;
                    };
                    // An index below the extent is also below the extent plus one.
                    if self.grid[usize::from(*axis)] != Some(*extent) || *more > 1 {
                        continue;
                    }
                    let holds = matches!(comparison, Comparison::Lt | Comparison::Le | Comparison::Ne);
                    inst.op = Op::Constant(holds.into());
                }
                _ => {}
            }
            inst.op.regions_mut().into_iter().for_each(|inner| self.region(kernel, inner, defined));
        }
    }
}

/// Value with known properties.
#[derive(Clone, Copy)]
enum Term {
    Block(u8),
    /// Extent plus a constant.
    Extent(Extent, u8),
    One,
}

/// Returns the extent that a parameter holds, if any.
pub(super) fn extent_of(kernel: &Kernel, parameter: u32) -> Option<Extent> {
    let parameter = kernel.parameters.get(parameter as usize)?;
    match parameter.role {
        Role::Extent(dimension) => Some((parameter.argument, dimension)),
        _ => None,
    }
}

fn first_parameter(kernel: &Kernel, extent: Extent) -> Option<u32> {
    (0..kernel.parameters.len() as u32).find(|p| extent_of(kernel, *p) == Some(extent))
}

/// Resolver of the kernel's names in launch expressions.
pub(super) struct NameResolver<'p> {
    program: &'p Monomorphic,
    /// Launch argument of each parameter that corresponds to exactly one.
    arguments: HashMap<u32, u32>,
    /// Whether an `if` that the instance's constants decide is read as its side.
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

    /// Reads an `if` that the instance's constants decide as its side.
    pub fn with_sides(self) -> NameResolver<'p> {
        NameResolver { has_sides: true, ..self }
    }

    /// Returns the expression, or the side that it is read as.
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
