//! Seed 21130.
//! Fault: the PTX interpreter. The interpreter did not count a branch to the end, in a loop without
//! another end, as an end of the paths. Lanes that had diverged before therefore never reconverged.
//!
//! the PTX interpreter reports: error[divergent-warp]:
//!   is executed by lanes 0x00ff0000 together; its
//!   members are 0xffffffff, and of these 0xffffffff have not ended
//!   94 | shfl.sync.bfly.b32 %r43, %r41, 4, 0x181F, 0xFFFFFFFF
//!   compiled from: +5 let w30: f64 = warp::group::<8>().sum(w15);

#[kernel(block = (8, 8), grid = 1)]
fn k21130(y0: &mut [i8]) {
    let i = grid::index();
    let w15: f64 = block::sum(1.0f64);
    y0[i] = ('found: { if (1usize == 29) { break 'found 1i8; } if (thread::y() != 6) { break 'found 1i8; } 1i8 });
    { let mut n16 = 1u32 & 7; 'l17: while n16 > 0 { n16 -= 1;
        let w30: f64 = warp::group::<8>().sum(w15);
    } }
}
