//! Predicated-load folding: a select after a predicated load becomes the load's value for masked
//! lanes.
//!
//! `x.get(i).unwrap_or(y)` is a predicated load that gives masked lanes zero, and a select by the
//! same condition between the loaded value and `y`. If `y` is constant, the load gives `y`
//! directly, and the pass removes the select.

use super::constants::Constants;
use super::rewrite::rewrite;
use crate::error::Errors;
use crate::ir::*;

/// Removes selects on the condition of a masked load: the load itself gives the selected constant
/// to masked lanes.
pub fn predicated_loads(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut constants = Constants::of(kernel);
    let mut uses = LoadUses { loaded: vec![None; kernel.values.len()], changed: false };
    uses.loads(&kernel.body);
    uses.selects(&kernel.body, &constants);
    if !uses.changed {
        return Ok(());
    }
    let mut replacements: Vec<Value> = (0..kernel.values.len() as u32).map(Value).collect();
    replace(&mut kernel.body, &mut kernel.values, &uses.loaded, &mut constants, &mut replacements);
    constants.place(&mut kernel.body);
    Ok(())
}

/// A value of a masked load.
#[derive(Clone, Copy)]
struct MaskedLoad {
    /// The condition, which holds in the lanes that load.
    condition: Value,
    /// The value for masked lanes that the uses of the load select.
    masked: MaskedValue,
}

#[derive(Clone, Copy, PartialEq)]
enum MaskedValue {
    /// No use has been visited yet.
    Open,
    /// The constant with these bits. Each use is a select by the load's condition between the
    /// loaded value and this constant.
    Bits(u64),
    /// The value for masked lanes has another use.
    Kept,
}

struct LoadUses {
    /// The predicated load that defines each value, if one does.
    loaded: Vec<Option<MaskedLoad>>,
    /// Whether a load was found whose masked lanes can get another value.
    changed: bool,
}

impl LoadUses {
    fn loads(&mut self, region: &Region) {
        for inst in &region.insts {
            if let Op::Load { guard: Some(guard), .. } = &inst.op {
                for result in &inst.results {
                    self.loaded[result.0 as usize] =
                        Some(MaskedLoad { condition: guard.condition, masked: MaskedValue::Open });
                }
            }
            inst.op.regions().into_iter().for_each(|inner| self.loads(inner));
        }
    }

    fn selects(&mut self, region: &Region, constants: &Constants) {
        for inst in &region.insts {
            match inst.op {
                Op::Select { condition, yes, no } => {
                    let chosen = constants.bits(no).filter(|_| self.is_of(yes, condition));
                    self.note_use(yes, chosen.map_or(MaskedValue::Kept, MaskedValue::Bits));
                    [condition, no].into_iter().for_each(|value| self.note_use(value, MaskedValue::Kept));
                }
                _ => inst.op.for_each_operand(|value| self.note_use(value, MaskedValue::Kept)),
            }
            inst.op.regions().into_iter().for_each(|inner| self.selects(inner, constants));
        }
    }

    /// Returns whether `value` comes from a load under this condition.
    fn is_of(&self, value: Value, condition: Value) -> bool {
        self.loaded[value.0 as usize].is_some_and(|loaded| loaded.condition == condition)
    }

    fn note_use(&mut self, value: Value, masked: MaskedValue) {
        if let Some(loaded) = &mut self.loaded[value.0 as usize] {
            loaded.masked =
                if loaded.masked == MaskedValue::Open || loaded.masked == masked { masked } else { MaskedValue::Kept };
            self.changed |= matches!(loaded.masked, MaskedValue::Bits(_));
        }
    }
}

/// Makes loads give the selected constants, and removes the selects.
fn replace(
    region: &mut Region,
    types: &mut Vec<Type>,
    loaded: &[Option<MaskedLoad>],
    constants: &mut Constants,
    replacements: &mut [Value],
) {
    let masked = |value: Value| match loaded.get(value.0 as usize) {
        Some(Some(MaskedLoad { masked: MaskedValue::Bits(bits), .. })) => Some(*bits),
        _ => None,
    };
    rewrite(&mut region.insts, |inst, _| {
        // The test must come before operands are replaced: a removed select may be the operand of a
        // select with another condition.
        if let Op::Select { yes, .. } = inst.op
            && masked(yes).is_some()
        {
            replacements[inst.results[0].0 as usize] = yes;
            return false;
        }
        inst.op.map_operands(|value| replacements.get(value.0 as usize).copied().unwrap_or(value));
        match &mut inst.op {
            Op::Load { guard: Some(guard), .. } => {
                for (result, otherwise) in inst.results.iter().zip(&mut guard.otherwise) {
                    if let Some(bits) = masked(*result) {
                        *otherwise = constants.get(types, types[result.0 as usize], bits);
                    }
                }
            }
            op => op.regions_mut().into_iter().for_each(|inner| replace(inner, types, loaded, constants, replacements)),
        }
        true
    });
}
