//! Seed 60.
//! Fault: the pass `predicated_loads`. A select whose `yes` had become a masked load followed a
//! select that had been removed, because it tested the load's own condition. The pass took the
//! remaining select for one of this kind, and removed it too.
//!
//! the interpreter after all passes leaves 0xa9ec1d88 in hash[2], the interpreter as lowered
//!   0x29ec1d88

#[kernel(block = 32, grid = 1)]
fn k60(x0: &[f32], x3: &[f32], hash: &mut [u64]) {
    let t = thread::index();
    let i = grid::index();
    let mut h: u64 = 0;
    let mut b20: usize = (t & 63);
    let b39: f32 = ({ let (p, q) = (x0.get(b20 * 37).copied().unwrap_or((-3.75f32)), x3[1usize]); if q.is_nan() { p } else { p.copysign(q) } });
    h = h.rotate_left(5) ^ ((if b39.is_nan() { 7 } else { b39.to_bits() }) as u64);
    hash[i] = h;
}
