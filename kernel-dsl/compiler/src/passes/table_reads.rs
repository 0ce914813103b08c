//! Loads with known results: reads of tables at constant indices, and loads that are masked in all
//! lanes.

use super::constants::Constants;
use super::simplify::Simplifier;
use crate::ir::{AccessPlace, ElementIndex, Op, Table, TableId, Type, Value, Values};
use crate::scalar::Scalar;
use std::collections::HashMap;

/// The tables of a kernel that a pass rewrites, and the values that hold their addresses.
#[derive(Debug)]
pub struct TableReads<'t> {
    tables: &'t [Table],
    bases: HashMap<Value, TableId>,
}

impl<'t> TableReads<'t> {
    /// Creates the state for a kernel with these tables, before any of their addresses is recorded.
    pub fn new(tables: &'t [Table]) -> TableReads<'t> {
        TableReads { tables, bases: HashMap::new() }
    }

    /// Records that `result` is the address of a table, if `op` is one.
    pub fn note(&mut self, op: &Op, result: Value) {
        if let Op::Table(table) = op {
            self.bases.insert(result, *table);
        }
    }

    /// Returns the `n` results of a load that needs no access: all its lanes are masked, or each
    /// index into a table is constant. Drops a mask that masks no lane.
    pub fn known(&self, simplifier: &mut Simplifier, op: &mut Op, n: usize) -> Option<Values> {
        let Op::Load { place, element, guard, .. } = op else { return None };
        match guard.as_ref().and_then(|g| simplifier.constants.bits(g.condition)) {
            Some(0) => return guard.take().map(|g| g.otherwise),
            Some(_) => *guard = None,
            None if guard.is_some() => return None,
            None => {}
        }
        let bits = self.read(&simplifier.constants, place, *element, n as u32)?;
        Some(bits.into_iter().map(|bits| simplifier.constant(Type::Scalar(*element), bits)).collect())
    }

    /// Returns the bits of `n` scalars at a place in a table, if each index is constant.
    fn read(&self, constants: &Constants, place: &AccessPlace, scalar: Scalar, n: u32) -> Option<Vec<u64>> {
        let AccessPlace::Global { base, within: Some(within), .. } = place else { return None };
        let table = self.tables.get(self.bases.get(base)?.0 as usize)?;
        let mut at = within.offset;
        for ElementIndex { index, extent, bytes } in &within.indices {
            at += constants.bits(*index).filter(|i| i < &u64::from(*extent))? as u32 * bytes;
        }
        (0..n).map(|i| table.bits(at + i * scalar.bytes(), scalar)).collect()
    }
}
