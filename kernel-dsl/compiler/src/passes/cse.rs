//! Common-subexpression elimination: a pure instruction is replaced by an earlier one with the same
//! operation and operands.
//!
//! The pass is scoped value numbering: a value that a region computes can be reused in the regions
//! inside it, and not after its end.
//!
//! A load of read-only memory is replaced by an earlier load of the same address in the same lanes.
//! So an unrolled epilogue, which needs the same bias for each row, loads it once. The pass does
//! not reuse loads across a loop or a barrier of the block: register pressure is highest there.
//! Other loads stay.

use crate::error::Errors;
use crate::hash::FastMap;
use crate::ir::*;
use crate::ptx::InlineBlock;
use crate::scalar::Scalar;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// Merges instructions that compute the same value.
pub fn cse(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut numbering = Numbering {
        replacements: (0..kernel.values.len() as u32).map(Value).collect(),
        types: &kernel.values,
        known: FastMap::with_capacity_and_hasher(kernel.values.len() / 2, Default::default()),
        open: vec![],
        scope: 0,
        blocks: vec![],
        loads: FastMap::default(),
        segment: 0,
    };
    numbering.region(&mut kernel.body);
    Ok(())
}

/// A load of read-only memory: base and offset, the scalars, and the lanes that load.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LoadKey {
    base: Value,
    offset: i32,
    element: Scalar,
    count: u32,
    lanes: Option<Value>,
    /// The part of the kernel between two loops or barriers.
    segment: u32,
}

/// The results of a load.
struct LoadResults {
    results: Values,
    /// The values of masked lanes.
    otherwise: Values,
    scope: u32,
}

struct Numbering<'k> {
    types: &'k [Type],
    replacements: Vec<Value>,
    /// The value that computes each operation, and its region.
    known: FastMap<OpKey, (Value, u32)>,
    /// Whether each region, by the order in which they begin, is around the current instruction.
    open: Vec<bool>,
    scope: u32,
    /// Blocks of inline PTX so far.
    blocks: Vec<Arc<InlineBlock>>,
    loads: FastMap<LoadKey, LoadResults>,
    segment: u32,
}

impl Numbering<'_> {
    fn region(&mut self, region: &mut Region) {
        let around = std::mem::replace(&mut self.scope, self.open.len() as u32);
        self.open.push(true);
        region.insts.retain_mut(|inst| self.inst(inst));
        self.open[self.scope as usize] = false;
        self.scope = around;
    }

    /// Rewrites an instruction, and returns whether it stays.
    fn inst(&mut self, inst: &mut Inst) -> bool {
        let replacements = &self.replacements;
        inst.op.map_operands(|v| replacements[v.0 as usize]);
        if !inst.op.is_pure() {
            if let Op::Load { .. } = inst.op {
                return self.load(inst);
            }
            let parts = matches!(inst.op, Op::For(_) | Op::Loop { .. } | Op::GridSync | Op::BlockSync);
            self.segment += u32::from(parts);
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            self.segment += u32::from(parts);
            return true;
        }
        let result = inst.results[0];
        let Some(key) = self.key(&inst.op, self.types[result.0 as usize]) else { return true };
        match self.known.entry(key) {
            Entry::Occupied(known) if self.open[known.get().1 as usize] => {
                self.replacements[result.0 as usize] = known.get().0;
                false
            }
            Entry::Occupied(mut gone) => {
                gone.insert((result, self.scope));
                true
            }
            Entry::Vacant(new) => {
                new.insert((result, self.scope));
                true
            }
        }
    }
}

impl Numbering<'_> {
    /// Searches for an earlier load of the same elements. Returns whether this load stays.
    fn load(&mut self, inst: &Inst) -> bool {
        let Op::Load { place: AccessPlace::Address { base, offset }, element, policy: CachePolicy::ReadOnly, guard } =
            &inst.op
        else {
            return true;
        };
        let key = LoadKey {
            base: *base,
            offset: *offset,
            element: *element,
            count: inst.results.len() as u32,
            lanes: guard.as_ref().map(|g| g.condition),
            segment: self.segment,
        };
        let otherwise = guard.as_ref().map(|g| g.otherwise.clone()).unwrap_or_default();
        if let Some(known) = self.loads.get(&key)
            && self.open[known.scope as usize]
            && known.otherwise == otherwise
        {
            for (result, stand) in inst.results.iter().zip(&known.results) {
                self.replacements[result.0 as usize] = *stand;
            }
            return false;
        }
        self.loads.insert(key, LoadResults { results: inst.results.clone(), otherwise, scope: self.scope });
        true
    }

    /// Returns the number of a block of inline PTX. Equal blocks have equal numbers.
    fn block(&mut self, code: &Arc<InlineBlock>) -> u32 {
        let at = self.blocks.iter().position(|b| Arc::ptr_eq(b, code) || b == code);
        if at.is_none() {
            self.blocks.push(code.clone());
        }
        at.unwrap_or(self.blocks.len() - 1) as u32
    }

    fn key(&mut self, op: &Op, ty: Type) -> Option<OpKey> {
        match op {
            Op::Inline { code, .. } => op.inline_key(self.block(code), ty),
            op => op.key(ty),
        }
    }
}
