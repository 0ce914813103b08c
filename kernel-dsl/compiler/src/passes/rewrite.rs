//! Rewriting a region in place: large regions are some megabytes, and fresh memory costs more than the work on it.

use crate::ir::{Inst, Location, Op, Values};

/// Calls `f` on each instruction in order; `f` tells whether it stays, and may put instructions before it.
pub fn rewrite(insts: &mut Vec<Inst>, mut f: impl FnMut(&mut Inst, &mut Vec<Inst>) -> bool) {
    let mut inserts = Vec::new();
    let mut before = Vec::new();
    let mut kept = 0;
    insts.retain_mut(|inst| {
        let keep = f(inst, &mut before);
        inserts.extend(before.drain(..).map(|i| (kept, i)));
        kept += usize::from(keep);
        keep
    });
    insert(insts, inserts);
}

/// Puts each instruction of `inserts` before the one that has its index now; the indices ascend.
fn insert(insts: &mut Vec<Inst>, inserts: Vec<(usize, Inst)>) {
    let mut read = insts.len();
    let mut write = read + inserts.len();
    insts.resize_with(write, || Inst { op: Op::Return, results: Values::new(), location: Location(0) });
    for (at, inst) in inserts.into_iter().rev() {
        while read > at {
            (read, write) = (read - 1, write - 1);
            insts.swap(read, write);
        }
        write -= 1;
        insts[write] = inst;
    }
}
