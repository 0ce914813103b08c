//! Seed 19274.
//! Fault: the PTX interpreter. The interpreter did not count a branch to the end, in a loop without
//! another end, as an end of the paths. Lanes that had diverged before therefore never reconverged.
//!
//! the PTX interpreter, the checked form reports: error[divergent-warp]: is executed by lanes
//!   0xff000000 together; its members are 0xffffffff, and of these 0xffffffff have not ended
//!   50 | shfl.sync.up.b32 %s0, 1, 1, 0x1800, 0xFFFFFFFF
//!   compiled from: +3 let w14: i8 = warp::group::<8>().scan(1i8, |a, b| a.wrapping_add(b));

#[kernel(block = 32, grid = 1)]
fn k19274() {
    'l11: for k10 in (0..((if ((thread::x() & 63) > 23) { 50usize } else { 1usize }) & 7)).rev() {
    }
    let w14: i8 = warp::group::<8>().scan(1i8, |a, b| a.wrapping_add(b));
    { let mut n15 = 1u32 & 7; 'l16: while n15 > 0 { n15 -= 1;
    } }
}
