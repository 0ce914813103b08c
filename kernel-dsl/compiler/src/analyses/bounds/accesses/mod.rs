//! Accesses: a proof that each is in bounds, and the formula of its bytes.
//!
//! The walk reaches an access with the facts of its dominating conditions, grouped by branch or
//! loop. `proof` looks for a minimal set of these groups that keeps each index below its extent.

mod collector;
mod proof;

pub use collector::{AccessBounds, AccessCollector};

use super::launch::EqualExtents;
use super::launch_bytes::{AccessBytes, VariableMeanings};
use super::linear::Polynomial;
use super::variables::VariableTable;
use super::walk::SymbolicAnalysis;
use crate::analyses::memory::AccessKind;
use crate::ir::{AccessPlace, AsyncCopy, Dim, Guard, Inst, Kernel, Location, Op, Type, Value};
use crate::scalar::Scalar;
use proof::BoundedIndex;
use smallvec::SmallVec;

/// Returns the accesses of a kernel in program order, and the meanings of the variables of their
/// formulas. The kernel must still contain places.
pub fn collect(table: VariableTable, kernel: &Kernel, equal: &EqualExtents) -> (Vec<AccessBounds>, VariableMeanings) {
    let mut kernel = kernel.clone();
    let constants = [0, 1].map(|_| kernel.value(Type::Scalar(Scalar::Bool)));
    let mut body = std::mem::take(&mut kernel.body);
    let mut analysis = SymbolicAnalysis::new(table, &kernel, equal, constants);
    analysis.collector = Some(AccessCollector::default());
    analysis.visit_region(&mut body);
    let collector = analysis.collector.take().unwrap_or_default();
    let meanings = VariableMeanings::of(&analysis.table, &kernel, equal, &collector.iterations);
    (collector.accesses, meanings)
}

/// Access of an instruction.
struct InstructionAccess<'a> {
    kind: AccessKind,
    place: &'a AccessPlace,
    element: Scalar,
    /// Number of elements whose indices must be in bounds.
    elements: u32,
    bytes: u32,
    /// The access happens only where all these conditions hold.
    guards: SmallVec<[Value; 2]>,
}

impl SymbolicAnalysis<'_> {
    /// Returns whether control reaches this point under more conditions than the facts express.
    pub fn has_unexpressed_conditions(&self) -> bool {
        self.collector.as_ref().is_some_and(|collector| collector.has_unexpressed_conditions)
    }

    /// Sets whether control reaches this point under more conditions than the facts express.
    pub fn set_unexpressed_conditions(&mut self, unexpressed: bool) {
        if let Some(collector) = &mut self.collector {
            collector.has_unexpressed_conditions = unexpressed;
        }
    }

    /// Records that the following facts come from the branch or loop at `location`.
    pub fn begin_facts_of(&mut self, location: Location) {
        let first = self.facts.len();
        if let Some(collector) = &mut self.collector {
            collector.fact_groups.push((first, location));
        }
    }

    /// Collects the accesses of an instruction, and records the address that it computes.
    pub fn collect_accesses(&mut self, inst: &Inst) {
        if let (Op::Compare(..) | Op::Binary(..), [result], Some(collector)) =
            (&inst.op, &inst.results[..], &mut self.collector)
        {
            collector.condition_locations.insert(*result, inst.location);
        }
        for access in accesses_of(inst) {
            self.collect_access(inst.location, access);
        }
        match &inst.op {
            Op::Parameter(_) | Op::Table(_) | Op::Dynamic { .. } => {
                let result = inst.results[0];
                if self.scalar(result).is_none() {
                    self.set_address(result, Polynomial::default());
                }
            }
            Op::Offset { base, terms, bytes } => {
                let first = self.collector.as_ref().and_then(|collector| collector.addresses.get(base).cloned());
                let moved = first.and_then(|first| {
                    terms.iter().try_fold(first, |sum, (index, stride)| {
                        let elements = self.strided(*index, *stride)?;
                        Some(sum.plus_multiple(&elements, (*bytes).into()))
                    })
                });
                if let Some(moved) = moved {
                    self.set_address(inst.results[0], moved);
                }
            }
            _ => {}
        }
    }

    fn set_address(&mut self, value: Value, offset: Polynomial) {
        if let Some(collector) = &mut self.collector {
            collector.addresses.insert(value, offset);
        }
    }

    fn collect_access(&mut self, location: Location, access: InstructionAccess<'_>) {
        let scope = self.open_scope();
        let unexpressed = self.has_unexpressed_conditions();
        for condition in &access.guards {
            // For a branch that became a guard, the location is that of the branch.
            let computed = self.collector.as_ref().and_then(|c| c.condition_locations.get(condition).copied());
            self.enter(computed.unwrap_or(location), *condition, true);
        }
        let indices = self.bounded_indices(&access);
        let proof = self.prove_bounds(&indices);
        // A copy may read fewer bytes than the indices cover, so those bytes have no formula.
        let is_whole = access.bytes == access.elements * access.element.bytes();
        let formula = if is_whole && !self.has_unexpressed_conditions() { self.byte_formula(&access) } else { None };
        self.close_scope(scope);
        self.set_unexpressed_conditions(unexpressed);
        let InstructionAccess { kind, place, bytes, .. } = access;
        if let Some(collector) = &mut self.collector {
            collector.accesses.push(AccessBounds { location, kind, place: place.clone(), bytes, proof, formula });
        }
    }

    /// Returns index · stride, or the index without a stride.
    fn strided(&mut self, index: Value, stride: Option<Value>) -> Option<Polynomial> {
        let index = self.number(index);
        match stride {
            Some(stride) => index.times(&self.number(stride)),
            None => Some(index),
        }
    }

    /// Returns the indices of an access, outermost first.
    fn bounded_indices(&mut self, access: &InstructionAccess<'_>) -> Vec<BoundedIndex> {
        let InstructionAccess { place, element, elements, .. } = *access;
        let mut indices: Vec<BoundedIndex> = match place {
            AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. } => {
                let bounded =
                    |d: &Dim| BoundedIndex { index: self.number(d.index), extent: self.number(d.extent), elements: 1 };
                dims.iter().map(bounded).collect()
            }
            AccessPlace::Shared { array, indices, .. } => {
                let shape = self.kernel.shared[array.0 as usize].shape.iter();
                let shape = shape.map(|n| Polynomial::constant((*n).into()));
                let bounded = |(index, extent): (&Value, Polynomial)| BoundedIndex {
                    index: self.number(*index),
                    extent,
                    elements: 1,
                };
                indices.iter().zip(shape).map(bounded).collect()
            }
            AccessPlace::Address { .. } => Vec::new(),
        };
        if let Some(last) = indices.last_mut() {
            last.elements = place.reach(elements, element);
        }
        let steps = place.element_offset().map(|within| &within.indices[..]).unwrap_or_default();
        for (i, step) in steps.iter().enumerate() {
            let is_last = i + 1 == steps.len() && step.bytes == element.bytes();
            indices.push(BoundedIndex {
                index: self.number(step.index),
                extent: Polynomial::constant(step.extent.into()),
                elements: if is_last { elements } else { 1 },
            });
        }
        indices
    }

    /// Returns the formula of the accessed bytes, relative to the start of the buffer or array.
    fn byte_formula(&mut self, access: &InstructionAccess<'_>) -> Option<AccessBytes> {
        let InstructionAccess { place, element, bytes, .. } = *access;
        let unit = place.unit(element);
        let mut first = match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                let mut first = self.collector.as_ref()?.addresses.get(base)?.clone();
                for dim in dims {
                    first = first.plus_multiple(&self.strided(dim.index, dim.stride)?, unit.into());
                }
                first
            }
            AccessPlace::Shared { array, indices, .. } => {
                let array = &self.kernel.shared[array.0 as usize];
                if array.swizzle().is_some() {
                    return None;
                }
                let strides = array.strides.iter().map(|stride| i128::from(*stride) * i128::from(unit));
                let add =
                    |sum: Polynomial, (index, stride): (&Value, i128)| sum.plus_multiple(&self.number(*index), stride);
                indices.iter().zip(strides).fold(Polynomial::default(), add)
            }
            AccessPlace::Address { .. } => return None,
        };
        if let Some(within) = place.element_offset() {
            first = first.plus_constant(within.offset.into());
            for step in &within.indices {
                first = first.plus_multiple(&self.number(step.index), step.bytes.into());
            }
        }
        Some(AccessBytes { first, bytes, conditions: self.facts.clone() })
    }
}

/// Returns the accesses of an instruction.
fn accesses_of(inst: &Inst) -> SmallVec<[InstructionAccess<'_>; 2]> {
    let mut accesses = SmallVec::new();
    match &inst.op {
        Op::Load { place, element, guard, .. } => {
            let elements = inst.results.len() as u32;
            let guards = guard.iter().map(|Guard { condition, .. }| *condition).collect();
            let bytes = elements * element.bytes();
            let element = *element;
            accesses.push(InstructionAccess { kind: AccessKind::Load, place, element, elements, bytes, guards });
        }
        Op::Store { place, element, values, guard } => {
            let elements = values.len() as u32;
            let guards = guard.iter().copied().collect();
            let bytes = elements * element.bytes();
            let element = *element;
            accesses.push(InstructionAccess { kind: AccessKind::Store, place, element, elements, bytes, guards });
        }
        Op::Atomic { place, element, .. } => {
            let (kind, element, guards) = (AccessKind::Atomic, *element, SmallVec::new());
            accesses.push(InstructionAccess { kind, place, element, elements: 1, bytes: element.bytes(), guards });
        }
        Op::CopyAsync(copy) => {
            let AsyncCopy { from, to, element, count, guard, inside, .. } = &**copy;
            let (element, bytes) = (*element, copy.size());
            let guards = guard.iter().chain(inside).copied().collect();
            let kind = AccessKind::Load;
            accesses.push(InstructionAccess { kind, place: from, element, elements: 1, bytes, guards });
            let guards = guard.iter().copied().collect();
            let kind = AccessKind::Store;
            accesses.push(InstructionAccess { kind, place: to, element, elements: *count, bytes, guards });
        }
        _ => {}
    }
    accesses
}
