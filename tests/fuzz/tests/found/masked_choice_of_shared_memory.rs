//! Seed 5021.
//! Fault: the pass `predicated_loads`. A select whose `yes` had become a masked load followed a
//! select that had been removed, because it tested the load's own condition. The pass took the
//! remaining select for one of this kind, and removed it too.
//!
//! the interpreter after all passes leaves 0x3dcd in hash[0], the interpreter as lowered 0x3f80

#[kernel(block = 32, grid = 1)]
fn k5021(hash: &mut [u64]) {
    let i = grid::index();
    let mut h: u64 = 0;
    let w8: u64 = { let mut s9 = Shared::<u64, 1>::new([40]); s9.fill(10u64); block::sync(); let p = s9.get(block::x()).unwrap_or(1u64); block::sync(); p };
    let b10: u32 = { let mut r11 = [1u32, 1u32, 5, 1u32]; for k in unroll(0..4) { r11[k] = r11[3 - k].wrapping_mul(1u32); } r11[0] ^ r11[1].wrapping_mul(3) ^ r11[2] ^ r11[3] };
    let mut b18: bf16 = (if (b10 <= 1u32) { bf16::ONE } else if w8.is_multiple_of(w8) { bf16::ONE } else { bf16::from_f32(0.1) });
    h = h.rotate_left(5) ^ ((if b18 == b18 { b18.to_bits() } else { 7 }) as u64);
    hash[i] = h;
}
