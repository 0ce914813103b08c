//! Seed 1164.
//! Fault: the pass `predicated_loads`. A select whose `yes` had become a masked load followed a
//! select that had been removed, because it tested the load's own condition. The pass took the
//! remaining select for one of this kind, and removed it too.
//!
//! the interpreter after all passes leaves 0x1 in y0[56], the interpreter as lowered 0x0

#[kernel(block = (32, 2), grid = 1)]
fn k1164(x0: &[u16], v: View<i32, 2>, y0: &mut [i32]) {
    let i = grid::index();
    let mut b10: u16 = 1u16.clamp(3, 99).checked_div(x0.get(block::x() * 37).copied().unwrap_or(u16::MAX)).unwrap_or(1u16);
    let b12: f32 = { let mut n11: u32 = 0; 'l13: loop { n11 += 1; if x0.get(1usize * 37).copied().unwrap_or(54u16).is_multiple_of(b10) { break 1.0f32; } if n11 > 5 { break 1.0f32; }
        let o15: i32 = y0.compare_exchange(i, v.get((1usize, 1usize)).unwrap_or(1048576i32), 1i32);
    } };
}
