//! Rewriting of a region in place. Large regions take megabytes, and new memory for them would cost
//! more time than the rewriting.

use crate::ir::{Inst, Location, Op, Values};

/// Calls `f` on each instruction in order. `f` returns whether the instruction stays, and may
/// insert instructions before it by appending them to the given list. The list already holds the
/// instructions inserted so far.
pub fn rewrite(insts: &mut Vec<Inst>, mut f: impl FnMut(&mut Inst, &mut Vec<Inst>) -> bool) {
    let mut inserts = Vec::new();
    // For each insertion: how many instructions stay before it, and how many were inserted before
    // it.
    let mut places: Vec<(usize, usize)> = Vec::new();
    let mut kept = 0;
    insts.retain_mut(|inst| {
        let known = inserts.len();
        let keep = f(inst, &mut inserts);
        if inserts.len() > known {
            places.push((kept, known));
        }
        kept += usize::from(keep);
        keep
    });
    let mut read = insts.len();
    let mut write = read + inserts.len();
    insts.resize_with(write, || Inst { op: Op::Return, results: Values::new(), location: Location(0) });
    for (at, first) in places.into_iter().rev() {
        while read > at {
            (read, write) = (read - 1, write - 1);
            insts.swap(read, write);
        }
        for inst in inserts.drain(first..).rev() {
            write -= 1;
            insts[write] = inst;
        }
    }
}
