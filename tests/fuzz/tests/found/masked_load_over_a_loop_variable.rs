//! Seed 28149.
//! Fault: emission. The masked load reused the register of its substitute for other lanes, here the
//! variable of the loop, which is still live: `@%p1 ld.global.u32 %r7, …` before `add.u32 %r7, %r7,
//! 1`.
//!
//! the PTX interpreter leaves 0x1f in y1[0], the interpreter as lowered 0x1

#[kernel(block = 32, grid = 1)]
fn k28149(y1: &mut [u32]) {
    let t = thread::index();
    let i = grid::index();
    let mut b3: u32 = y1[i];
    'l11: for k10 in 0..(b3 & 7) {
        let o12: u32 = y1.exchange(i, k10.checked_div(k10).unwrap_or((if ((t & 63) == 14) { k10 } else if (1usize > 10) { 1u32 } else { y1[i] })));
    }
}
