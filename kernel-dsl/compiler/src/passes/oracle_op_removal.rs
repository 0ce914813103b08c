//! Oracle-op removal: drops operations that only the oracle runs. Marks of undefined bytes in
//! shared memory and names of variables have no effect on the machine. A failing assertion has the
//! effect of its [`FailureEffect`]: none, the end of the thread, or a trap without a message.

use crate::assertion::FailureEffect;
use crate::error::Errors;
use crate::ir::{Inst, Kernel, Op, Region};

/// Drops marks, names and assertions.
pub fn oracle_op_removal(kernel: &mut Kernel) -> Result<(), Errors> {
    region(&mut kernel.body);
    Ok(())
}

fn region(region: &mut Region) {
    region.insts.retain(|inst| !is_dropped(inst));
    for inst in &mut region.insts {
        if let Op::Panic { values, .. } = &mut inst.op {
            values.clear();
        }
        inst.op.regions_mut().into_iter().for_each(self::region);
    }
}

fn is_dropped(inst: &Inst) -> bool {
    match &inst.op {
        Op::MarkUndef { .. } | Op::LifetimeStart(_) | Op::DbgValue { .. } => true,
        Op::Panic { outcome, .. } => *outcome != FailureEffect::Trap,
        // Lowering makes a branch for each assertion alone, so the whole branch can go.
        Op::If { otherwise, .. } => otherwise.panics() == Some(FailureEffect::Continue),
        _ => false,
    }
}
