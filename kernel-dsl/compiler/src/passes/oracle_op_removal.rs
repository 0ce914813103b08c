//! Oracle-op removal: drops operations that only the oracle runs. Marks of undefined bytes in
//! shared memory and names of variables have no effect on the machine.

use crate::error::Errors;
use crate::ir::{Kernel, Op, Region};

/// Drops every `Poison`, `Begin` and `Named`.
pub fn oracle_op_removal(kernel: &mut Kernel) -> Result<(), Errors> {
    region(&mut kernel.body);
    Ok(())
}

fn region(region: &mut Region) {
    region.insts.retain(|inst| !matches!(inst.op, Op::MarkUndef { .. } | Op::LifetimeStart(_) | Op::DbgValue { .. }));
    for inst in &mut region.insts {
        inst.op.regions_mut().into_iter().for_each(self::region);
    }
}
