//! (6) 256-bin histogram of bytes: a sub-histogram per warp in shared memory, 16 bytes per load,
//! then one global addition per bin.
use super::trial::{Trial, trials};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

#[kernel(block = 256, min_blocks = 4, grid = 4 * device::multiprocessors())]
#[requires(x.aligned(16), bins.len() == 256)]
pub fn histogram(x: &[u8], bins: &mut [u32]) {
    let h = Shared::<u32, 2>::new([8, 256]);
    h.fill(0); // by the whole block, without a barrier
    block::sync();
    let mine = h.at(warp::index());
    let wide = x.len() / 16;
    let first = grid::index();
    for i in (first..wide).step_by(grid::threads()) {
        let v: [u8; 16] = x.load(16 * i); // four registers: byte arrays are packed
        for j in unroll(0..16) {
            mine.fetch_add(v[j] as usize, 1);
        } // the result is unused: red.shared
    }
    let tail = 16 * wide + first;
    if tail < x.len() {
        mine.fetch_add(x[tail] as usize, 1);
    }
    block::sync();
    let mut n = 0;
    for w in unroll(0..8) {
        n += h[(w, thread::x())];
    }
    if n > 0 {
        bins.fetch_add(thread::x(), n);
    }
}

trials!(histogram, |_| {
    let bytes = |n: usize| {
        let x: Vec<u8> = (0..n).map(|i| (i * i % 251) as u8).collect();
        let mut bins = vec![0u32; 256];
        x.iter().for_each(|v| bins[usize::from(*v)] += 1);
        let expected = [Expected::new(1, bins.iter().map(|n| f64::from(*n)).collect(), Bound::Exact)];
        Trial::new(format!("{n} bytes"), [Input::slice(&x), Input::slice(&[0u32; 256])], expected)
    };
    // The first case takes more than one iteration of the grid.
    [40_003, 5003, 16, 7].into_iter().map(bytes).collect()
});
