//! Seed 3052.
//! Fault: the pass `predicated_loads`. A select whose `yes` had become a masked load followed a
//! select that had been removed, because it tested the load's own condition. The pass took the
//! remaining select for one of this kind, and removed it too.
//!
//! the interpreter, the checked form leaves 0x1 in y0[0], the interpreter as lowered 0x0

#[kernel(block = 32, grid = 1)]
fn k3052(x2: &[u16], y0: &mut [i32]) {
    let i = grid::index();
    'l31: for k30 in 0..(1usize & 7) {
        if x2.load_or::<4>(k30 * 33, 28u16)[0].is_multiple_of(x2[k30]) {
        } else {
            y0[i] = 1i32;
        }
    }
}
