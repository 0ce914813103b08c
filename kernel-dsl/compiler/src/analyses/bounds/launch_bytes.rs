//! The bytes that an access touches in a launch, from the polynomials of its address and its
//! conditions: the minimum and the maximum over all threads and iterations that satisfy the
//! conditions.

use super::launch::{EqualExtents, Extent, extent_of};
use super::linear::{LinearVariable, Polynomial};
use super::variables::{VariableOrigin, VariableTable};
use crate::ir::{Kernel, Special};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// Maximum number of enumerated values of blocks, threads and iterations.
const MAX_ENUMERATED_STEPS: u32 = 1 << 18;

/// Parameters of a launch.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct LaunchParameters {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Value of each of the kernel's parameters; `None` for addresses.
    pub parameters: Vec<Option<u64>>,
}

/// Bytes of an access.
#[derive(Clone, PartialEq)]
pub(super) struct AccessBytes {
    /// Offset of the first byte.
    pub first: Polynomial,
    /// Number of bytes.
    pub bytes: u32,
    /// Polynomials that are all ≥ 0 if and only if the access is executed.
    pub conditions: Vec<Polynomial>,
}

/// Meaning of a variable.
#[derive(Clone)]
pub(super) enum VariableMeaning {
    Unknown,
    /// The kernel's parameter with this index.
    Parameter(u32),
    Special(Special),
    /// The iteration number of a loop, which continues while the polynomial is ≥ 0.
    Iteration(Polynomial),
    Quotient([Polynomial; 2]),
    Ceiling([Polynomial; 2]),
    Min([Polynomial; 2]),
    Max([Polynomial; 2]),
}

/// Meanings of all variables, by number.
pub(super) struct VariableMeanings(pub Vec<VariableMeaning>);

impl VariableMeanings {
    /// Returns the meanings of the variables of `table` in a launch of `kernel`. Each iteration
    /// number of a loop comes with a polynomial that is ≥ 0 while the loop continues.
    pub fn of(
        table: &VariableTable,
        kernel: &Kernel,
        equal: &EqualExtents,
        iterations: &HashMap<LinearVariable, Polynomial>,
    ) -> VariableMeanings {
        let parameter_of = |extent: Extent| {
            let is_equal = |p: &u32| extent_of(kernel, *p).is_some_and(|e| equal.representative(e) == extent);
            (0..kernel.parameters.len() as u32).find(is_equal)
        };
        let meaning = |(variable, origin): (usize, &VariableOrigin)| match origin {
            VariableOrigin::Extent(extent) => {
                parameter_of(*extent).map_or(VariableMeaning::Unknown, VariableMeaning::Parameter)
            }
            VariableOrigin::Parameter(p) => VariableMeaning::Parameter(*p),
            VariableOrigin::Special(special) => VariableMeaning::Special(*special),
            VariableOrigin::Value(_) => match iterations.get(&(variable as LinearVariable)) {
                Some(continues) => VariableMeaning::Iteration(continues.clone()),
                None => VariableMeaning::Unknown,
            },
            VariableOrigin::Wrapped(..) => VariableMeaning::Unknown,
            VariableOrigin::Quotient(operands) => VariableMeaning::Quotient(operands.clone()),
            VariableOrigin::Ceiling(operands) => VariableMeaning::Ceiling(operands.clone()),
            VariableOrigin::Min(operands) => VariableMeaning::Min(operands.clone()),
            VariableOrigin::Max(operands) => VariableMeaning::Max(operands.clone()),
        };
        VariableMeanings(table.origins().iter().enumerate().map(meaning).collect())
    }

    /// Returns the range of bytes touched in a launch; an empty range if there is none.
    pub fn range(&self, formula: &AccessBytes, launched: &LaunchParameters) -> Option<Range<u64>> {
        let mut search = RangeSearch {
            variables: self,
            launched,
            formula,
            conditions: Vec::new(),
            free: Vec::new(),
            values: vec![None; self.0.len()],
            remaining_steps: MAX_ENUMERATED_STEPS,
            found: None,
        };
        let mut seen = BTreeSet::new();
        for polynomial in formula.conditions.iter().chain([&formula.first]) {
            search.assign_known(polynomial, &mut seen)?;
        }
        // Threads and blocks come before iterations, and outer iterations before inner ones, whose
        // ends may depend on them.
        search.free.sort_by_key(|v| (matches!(self.0[*v as usize], VariableMeaning::Iteration(_)), *v));
        let by_depth = |depth| formula.conditions.iter().filter(|c| search.depth(c) == depth).collect();
        search.conditions = (0..=search.free.len()).map(by_depth).collect();
        if !search.holds(0)? {
            return Some(0..0);
        }
        search.enumerate(0)?;
        let Some((first, last)) = search.found else { return Some(0..0) };
        let end = last.checked_add(i128::from(formula.bytes))?;
        Some(u64::try_from(first).ok()?..u64::try_from(end).ok()?)
    }
}

struct RangeSearch<'a> {
    variables: &'a VariableMeanings,
    launched: &'a LaunchParameters,
    formula: &'a AccessBytes,
    /// The conditions of the access, by the number of enumerated variables that determine them.
    conditions: Vec<Vec<&'a Polynomial>>,
    /// Variables to enumerate.
    free: Vec<LinearVariable>,
    values: Vec<Option<i128>>,
    remaining_steps: u32,
    /// Smallest and largest first byte.
    found: Option<(i128, i128)>,
}

impl RangeSearch<'_> {
    /// Assigns the known values to the variables of a polynomial; returns `None` if a variable is
    /// not understood.
    fn assign_known(&mut self, polynomial: &Polynomial, seen: &mut BTreeSet<LinearVariable>) -> Option<()> {
        for variable in polynomial.variables() {
            if !seen.insert(variable) {
                continue;
            }
            let launched = self.launched;
            let of = |extents: [u32; 3], axis: u8| extents.get(usize::from(axis)).copied();
            let known = match &self.variables.0[variable as usize] {
                VariableMeaning::Unknown => return None,
                VariableMeaning::Parameter(p) => Some(launched.parameters.get(*p as usize).copied().flatten()?.into()),
                VariableMeaning::Special(Special::Grid(axis)) => Some(of(launched.grid, *axis)?.into()),
                VariableMeaning::Special(Special::BlockDim(axis)) => Some(of(launched.block, *axis)?.into()),
                VariableMeaning::Special(Special::Thread(_) | Special::Block(_)) => {
                    self.free.push(variable);
                    None
                }
                VariableMeaning::Iteration(continues) => {
                    self.free.push(variable);
                    self.assign_known(continues, seen)?;
                    None
                }
                VariableMeaning::Quotient(operands)
                | VariableMeaning::Ceiling(operands)
                | VariableMeaning::Min(operands)
                | VariableMeaning::Max(operands) => {
                    operands.iter().try_for_each(|operand| self.assign_known(operand, seen))?;
                    None
                }
            };
            self.values[variable as usize] = known;
        }
        Some(())
    }

    /// Returns how many of the enumerated variables determine the value of a polynomial.
    fn depth(&self, polynomial: &Polynomial) -> usize {
        let of = |variable: LinearVariable| match &self.variables.0[variable as usize] {
            VariableMeaning::Quotient(operands)
            | VariableMeaning::Ceiling(operands)
            | VariableMeaning::Min(operands)
            | VariableMeaning::Max(operands) => operands.iter().map(|operand| self.depth(operand)).max().unwrap_or(0),
            _ => self.free.iter().position(|free| *free == variable).map_or(0, |at| at + 1),
        };
        polynomial.variables().into_iter().map(of).max().unwrap_or(0)
    }

    /// Returns whether all conditions hold whose last enumerated variable is number `depth`,
    /// counted from 1. For 0, these are the conditions without enumerated variables.
    fn holds(&self, depth: usize) -> Option<bool> {
        for condition in &self.conditions[depth] {
            if self.value(condition)? < 0 {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Returns the value of a polynomial over known variables.
    fn value(&self, polynomial: &Polynomial) -> Option<i128> {
        let mut sum = 0i128;
        for (monomial, factor) in polynomial.terms() {
            let mut product = factor;
            for variable in monomial {
                product = product.checked_mul(self.variable(*variable)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    fn variable(&self, variable: LinearVariable) -> Option<i128> {
        if let Some(value) = self.values[variable as usize] {
            return Some(value);
        }
        let both = |[a, b]: &[Polynomial; 2]| Some((self.value(a)?, self.value(b)?));
        match &self.variables.0[variable as usize] {
            VariableMeaning::Quotient(operands) => both(operands).filter(|(_, b)| *b > 0).map(|(a, b)| a.div_euclid(b)),
            VariableMeaning::Ceiling(operands) => {
                both(operands).filter(|(_, b)| *b > 0).map(|(a, b)| -(-a).div_euclid(b))
            }
            VariableMeaning::Min(operands) => both(operands).map(|(a, b)| a.min(b)),
            VariableMeaning::Max(operands) => both(operands).map(|(a, b)| a.max(b)),
            _ => None,
        }
    }

    /// Enumerates the values of the variables from the `next`th on; returns `None` if there are too
    /// many.
    fn enumerate(&mut self, next: usize) -> Option<()> {
        let Some(variable) = self.free.get(next).copied() else { return self.evaluate() };
        let (variables, axis) = (self.variables, |extents: [u32; 3], axis: u8| extents.get(usize::from(axis)).copied());
        let end = match &variables.0[variable as usize] {
            VariableMeaning::Special(Special::Thread(of)) => Some(axis(self.launched.block, *of)?),
            VariableMeaning::Special(Special::Block(of)) => Some(axis(self.launched.grid, *of)?),
            _ => None,
        };
        for value in 0..end.unwrap_or(u32::MAX) {
            self.values[variable as usize] = Some(value.into());
            if let VariableMeaning::Iteration(continues) = &variables.0[variable as usize]
                && self.value(continues)? < 0
            {
                break;
            }
            self.remaining_steps = self.remaining_steps.checked_sub(1)?;
            if self.holds(next + 1)? {
                self.enumerate(next + 1)?;
            }
        }
        self.values[variable as usize] = None;
        Some(())
    }

    /// Evaluates the access for one thread in one iteration that meets the conditions.
    fn evaluate(&mut self) -> Option<()> {
        let first = self.value(&self.formula.first)?;
        let (low, high) = self.found.unwrap_or((first, first));
        self.found = Some((low.min(first), high.max(first)));
        Some(())
    }
}
