//! Seed 3052.
//! Fault: the pass `masked`. A select whose `yes` had become a masked load, behind a select by the load's own condition that was left
//! out, was taken for such a one itself and left out too.
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
