//! Drops what only the oracle runs: that bytes of shared memory are undefined is nothing on the machine.

use crate::error::Errors;
use crate::ir::{Kernel, Op, Region};

/// Drops every `Poison` and `Begin`.
pub fn strip(kernel: &mut Kernel) -> Result<(), Errors> {
    region(&mut kernel.body);
    Ok(())
}

fn region(region: &mut Region) {
    region.insts.retain(|inst| !matches!(inst.op, Op::Poison { .. } | Op::Begin(_)));
    for inst in &mut region.insts {
        inst.op.regions_mut().into_iter().for_each(self::region);
    }
}
