//! Load scheduling: among adjacent loads, those whose address is used again come first.
//!
//! A store that replaces an element uses the address of the load before it, which occupies
//! registers. The results of other loads can reuse address registers if those loads come last. Only
//! loads of read-only memory move, and only past loads. Reordering such loads changes no value.

use crate::error::Errors;
use crate::ir::*;

/// Moves loads of read-only memory after adjacent loads.
pub fn load_scheduling(kernel: &mut Kernel) -> Result<(), Errors> {
    let mut uses = vec![0; kernel.values.len()];
    count(&kernel.body, &mut uses);
    region(&mut kernel.body, &uses);
    Ok(())
}

fn count(region: &Region, uses: &mut [u32]) {
    for inst in &region.insts {
        inst.op.for_each_operand(|v| uses[v.0 as usize] += 1);
        inst.op.regions().into_iter().for_each(|r| count(r, uses));
    }
}

fn region(region: &mut Region, uses: &[u32]) {
    for inst in &mut region.insts {
        inst.op.regions_mut().into_iter().for_each(|r| self::region(r, uses));
    }
    // The scan goes backward, so each load moves past loads whose order is already final.
    for at in (0..region.insts.len()).rev() {
        if address(&region.insts[at]).is_some_and(|(base, policy)| uses[base.0 as usize] == 1 && unwritten(policy)) {
            let to = last_beside(&region.insts, at, uses);
            region.insts[at..=to].rotate_left(1);
        }
    }
}

/// Returns the last of the loads adjacent to the load at `at` that use none of its results, and
/// whose address has other uses.
fn last_beside(insts: &[Inst], at: usize, uses: &[u32]) -> usize {
    let mut last = at;
    for (to, inst) in insts.iter().enumerate().skip(at + 1) {
        let mut depends = false;
        inst.op.for_each_operand(|v| depends |= insts[at].results.contains(&v));
        match address(inst) {
            Some((base, _)) if !depends && uses[base.0 as usize] > 1 => last = to,
            None if !depends && inst.op.is_pure() => {}
            _ => break,
        }
    }
    last
}

/// Returns the base and the policy of an unguarded load of global memory.
fn address(inst: &Inst) -> Option<(Value, CachePolicy)> {
    match &inst.op {
        Op::Load { place: AccessPlace::Address { base, .. }, policy, guard: None, .. } => Some((*base, *policy)),
        _ => None,
    }
}

/// Returns whether the launch never writes this memory.
fn unwritten(policy: CachePolicy) -> bool {
    matches!(policy, CachePolicy::ReadOnly | CachePolicy::ReadOnce)
}
