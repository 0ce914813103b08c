//! Seed 418.
//! Fault: the pass `predicated_loads`. A select whose `yes` had become a masked load followed a
//! select that had been removed, because it tested the load's own condition. The pass took the
//! remaining select for one of this kind, and removed it too.
//!
//! the interpreter after all passes leaves 0xffffffffffffff81 in hash[0], the interpreter as
//!   lowered 0x3

#[kernel(block = 32, grid = 1)]
fn k418(x0: &[u32], hash: &mut [u64]) {
    let i = grid::index();
    let mut h: u64 = 0;
    let b7: u32 = x0.get(1usize * 37).copied().unwrap_or(u32::MAX);
    let mut b8: i8 = 1i8;
    let w9: u32 = warp::group::<8>().ballot(true);
    let b19: usize = (((b7 ^ 27u32) & 63) as usize);
    b8 ^= 1i8.rotate_right((match ((b19 < 15), true) { (true, true) => b7, (true, false) => 1u32, (false, _) => w9 }));
    h = h.rotate_left(5) ^ (b8 as u64);
    hash[i] = h;
}
