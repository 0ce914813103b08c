//! The sizes of arrays that the launch evaluates.

use crate::error::{Error, Errors};
use crate::ir::{Formula, Inst, Kernel, NoFormula, Op, Region, Value};
use smallvec::SmallVec;

/// An array that is made: how, and where.
struct Made {
    array: usize,
    extents: SmallVec<[Value; 2]>,
    inst: Inst,
    looped: bool,
    nested: bool,
}

/// Takes the extents of each array of dynamic size out for the launch.
pub(super) fn sizes(kernel: &mut Kernel) -> Result<(), Errors> {
    if kernel.dynamic.is_empty() {
        return Ok(());
    }
    let mut made = Vec::new();
    collect(&kernel.body, false, false, &mut made);
    let mut errors: Vec<Error> = Vec::new();
    for Made { array, extents, inst, looped, nested } in &made {
        let name = &kernel.dynamic[*array].name;
        if *looped {
            let message = format!("`{name}`, an array of dynamic size, is made in a loop");
            errors.push(kernel.error(inst.location, message).help("make it once, before the loop"));
            continue;
        }
        if *nested && kernel.dynamic.len() > 1 {
            let message = format!("`{name}`, one of several arrays of dynamic size, is made in a branch");
            errors.push(
                kernel.error(inst.location, message).help("make each of them where all threads come, in no `if`"),
            );
            continue;
        }
        match extents.iter().map(|v| Formula::of(kernel, *v)).collect() {
            Ok(extents) => kernel.dynamic[*array].extents = extents,
            Err(why) => {
                let why = match why {
                    NoFormula::Special => "it depends on the thread or block",
                    NoFormula::Opaque => "it comes through memory, a loop or a `let mut`",
                };
                let message = format!("the launch cannot tell the size of `{name}`: {why}");
                let help = "compute it from the kernel's parameters and constants alone";
                errors.push(kernel.error(inst.location, message).help(help));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}

fn collect(region: &Region, looped: bool, nested: bool, made: &mut Vec<Made>) {
    for inst in &region.insts {
        if let Op::Dynamic { array, extents } = &inst.op {
            let (array, extents) = (array.0 as usize, extents.clone());
            made.push(Made { array, extents, inst: inst.clone(), looped, nested });
        }
        let looped = looped || matches!(inst.op, Op::For(_) | Op::Loop { .. });
        inst.op.regions().into_iter().for_each(|r| collect(r, looped, true, made));
    }
}
