//! Arrays whose size the launch evaluates.

use crate::error::{Error, Errors};
use crate::ir::{DynamicId, Formula, Inst, Kernel, NoFormula, Op, Region, Type, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The instruction that creates an array, and whether it is in a loop or in any construct.
struct DynamicArrayDef {
    array: usize,
    extents: SmallVec<[Value; 2]>,
    inst: Inst,
    looped: bool,
    nested: bool,
}

/// Extracts the extents of each array of dynamic size as formulas for the launch.
pub(super) fn sizes(kernel: &mut Kernel) -> Result<(), Errors> {
    if kernel.dynamic.is_empty() {
        return Ok(());
    }
    let mut made = Vec::new();
    collect(&kernel.body, false, false, &mut made);
    let mut errors: Vec<Error> = Vec::new();
    for DynamicArrayDef { array, extents, inst, looped, .. } in &made {
        let name = &kernel.dynamic[*array].name;
        if *looped {
            let message = format!(
                "the array `{name}` of dynamic size is created in a loop; every iteration would reuse the same bytes with their old contents"
            );
            errors.push(kernel.error(inst.location, message).help("create the array once, before the loop"));
            continue;
        }
        match extents.iter().map(|v| Formula::of(kernel, *v)).collect() {
            Ok(extents) => kernel.dynamic[*array].extents = extents,
            Err(why) => {
                let why = match why {
                    NoFormula::Special => "the size depends on the thread or block",
                    NoFormula::Opaque => "the size depends on memory, a loop or a `let mut` variable",
                };
                let message = format!("cannot compute the size of `{name}` at launch: {why}");
                let help = "compute the size from the kernel's parameters and constants only";
                errors.push(kernel.error(inst.location, message).help(help));
            }
        }
    }
    if !errors.is_empty() {
        return Err(Errors(errors));
    }
    // The offset of an array follows from the sizes of the arrays before it, so these sizes must be
    // known on each path to it.
    if kernel.dynamic.len() > 1 && made.iter().any(|m| m.nested) { all_first(kernel, &made) } else { Ok(()) }
}

/// Moves the creation of all arrays to the start of the kernel, in their order.
fn all_first(kernel: &mut Kernel, made: &[DynamicArrayDef]) -> Result<(), Errors> {
    let (mut insts, mut moved) = (Vec::new(), HashMap::new());
    let mut in_order: Vec<&DynamicArrayDef> = made.iter().collect();
    in_order.sort_by_key(|m| m.array);
    for DynamicArrayDef { array, inst, .. } in in_order {
        let formulas = kernel.dynamic[*array].extents.clone();
        let extents = formulas.iter().map(|f| f.write(kernel, &mut insts, inst.location)).collect::<Option<_>>();
        let Some(extents) = extents else {
            let name = &kernel.dynamic[*array].name;
            let message = format!(
                "the size of `{name}` is computed inside a branch, while several arrays of dynamic size exist and one is created in a branch"
            );
            let help = "create all arrays of dynamic size outside branches; or compute the size without a branch, with `min` or `max`";
            return Err(Errors(vec![kernel.error(inst.location, message).help(help)]));
        };
        let address = kernel.value(Type::Shared);
        let op = Op::Dynamic { array: DynamicId(*array as u32), extents };
        insts.push(Inst { op, results: [address].into_iter().collect(), location: inst.location });
        moved.extend(inst.results.iter().map(|old| (*old, address)));
    }
    let mut body = std::mem::take(&mut kernel.body);
    rename(&mut body, &moved);
    body.insts.splice(0..0, insts);
    kernel.body = body;
    Ok(())
}

/// Removes the instructions that create arrays, and replaces their results by those in `moved`.
fn rename(region: &mut Region, moved: &HashMap<Value, Value>) {
    region.insts.retain(|inst| !matches!(inst.op, Op::Dynamic { .. }));
    for inst in &mut region.insts {
        inst.op.map_operands(|v| moved.get(&v).copied().unwrap_or(v));
        inst.op.regions_mut().into_iter().for_each(|r| rename(r, moved));
    }
}

fn collect(region: &Region, looped: bool, nested: bool, made: &mut Vec<DynamicArrayDef>) {
    for inst in &region.insts {
        if let Op::Dynamic { array, extents } = &inst.op {
            let (array, extents) = (array.0 as usize, extents.clone());
            made.push(DynamicArrayDef { array, extents, inst: inst.clone(), looped, nested });
        }
        let looped = looped || matches!(inst.op, Op::For(_) | Op::Loop { .. });
        inst.op.regions().into_iter().for_each(|r| collect(r, looped, true, made));
    }
}
