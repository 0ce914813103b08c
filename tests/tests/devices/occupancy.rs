//! Tests of the occupancy calculator: against values computed by hand for sm_61, and against the
//! driver on a GPU.

use kernel_dsl::compiler::analyses::occupancy::OccupancyLimit;
use kernel_dsl::prelude::*;
use runtime::{Device, Error};

/// Computes out[b], the maximum of the block's part of x.
#[kernel(block = 32..=1024, grid = out.len())]
#[requires(!out.is_empty())]
pub fn largest(x: &[f32], out: &mut [f32]) {
    let mut best = f32::NEG_INFINITY;
    for i in grid::stride(x.len()) {
        best = best.max(x[i]);
    }
    let best = block::max(best);
    if thread::index() == 0 {
        out[block::x()] = best;
    }
}

/// Reverses blocks of `n` elements through shared memory whose size the launch sets.
#[kernel(block = 32..=512, grid = x.len().div_ceil(n))]
#[requires(n > 0, x.len() % n == 0)]
pub fn reverse(n: usize, x: &mut [f32]) {
    let mut s = Shared::<f32, 1>::dynamic([n]);
    let start = block::x() * n;
    for i in block::stride(n) {
        s[i] = x[start + i];
    }
    block::sync();
    for i in block::stride(n) {
        x[start + i] = s[n - 1 - i];
    }
}

/// Computes exponentials, with launch bounds for four resident blocks, which limit its registers.
#[kernel(block = 256, grid = y.len().div_ceil(256), min_blocks = 4)]
#[requires(x.len() == y.len())]
pub fn bounded(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = math::exp(x[i]);
    }
}

#[test]
fn cpu_occupancy_matches_the_table() {
    let device = Device::cpu();
    let x = device.zeros::<f32>(4096).unwrap();
    let mut out = device.zeros(8).unwrap();
    for (threads, blocks) in [(32, 32), (64, 32), (128, 16), (256, 8), (1024, 2)] {
        let found = device.residency(&largest::call(threads, &x, &mut out)).unwrap();
        assert_eq!((found.threads, found.occupancy.blocks, found.by_driver), (threads as u32, blocks, None));
    }
    // A multiprocessor has 96 KB of shared memory, allocated in units of 256 bytes.
    let mut y = device.zeros(8192).unwrap();
    let found = device.residency(&reverse::call(32, 8192, &mut y)).unwrap();
    assert_eq!((found.shared, found.occupancy.blocks), (32 << 10, 3));
    assert_eq!(found.occupancy.limited_by, [OccupancyLimit::SharedMemory]);
    // The result is the largest block that reaches full occupancy. If shared memory limits the
    // number of blocks, it is the block with the highest occupancy.
    assert_eq!(device.best_block(&largest::call(32, &x, &mut out)).unwrap(), 1024);
    let best = device.best_block(&reverse::call(32, 8192, &mut y)).unwrap();
    assert_eq!(best, 512);
    reverse::call(32, 8192, &mut y).in_blocks_of(best).launch(&device).unwrap();
}

#[test]
fn fixed_blocks_are_rejected() {
    let device = Device::cpu();
    let x = device.zeros::<f32>(100).unwrap();
    let mut y = device.zeros(100).unwrap();
    let error = device.best_block(&bounded::call(&x, &mut y)).unwrap_err();
    assert!(error.to_string().contains("the kernel fixes its size"), "{error}");
    let mut few = device.zeros(99).unwrap();
    assert!(matches!(device.residency(&bounded::call(&x, &mut few)), Err(Error::Refused { .. })));
    let (none, mut nothing) = (device.zeros::<f32>(0).unwrap(), device.zeros(0).unwrap());
    let error = device.residency(&bounded::call(&none, &mut nothing)).unwrap_err();
    assert!(error.to_string().contains("the launch has no blocks"), "{error}");
    // No block satisfies a contract that cannot be satisfied.
    assert!(matches!(device.best_block(&largest::call(32, &x, &mut nothing)), Err(Error::Refused { .. })));
}

/// Compares the calculator with the driver, for each limit.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_occupancy_matches_the_driver() {
    let device = Device::cuda(0).unwrap();
    let x = device.zeros::<f32>(1 << 20).unwrap();
    let mut y = device.zeros(1 << 20).unwrap();
    let mut out = device.zeros(8).unwrap();
    let alike = |call: &kernel_dsl::Call| {
        let found = device.residency(call).unwrap();
        assert_eq!(Some(found.occupancy.blocks), found.by_driver, "{found:?}");
        found
    };
    for threads in (32..=1024).step_by(32) {
        alike(&largest::call(threads, &x, &mut out));
    }
    for n in [1, 64, 256, 1 << 10, 1 << 11, 1 << 12, 3 << 10, 12 << 10] {
        let whole = (1 << 20) / n * n;
        let mut part = device.zeros(whole).unwrap();
        for threads in [32, 96, 256, 512] {
            alike(&reverse::call(threads, n, &mut part));
        }
    }
    let found = alike(&bounded::call(&x, &mut y));
    assert!(found.occupancy.blocks >= 4, "the launch bounds require them: {found:?}");
    let best = device.best_block(&largest::call(32, &x, &mut out)).unwrap();
    let warps = |threads| alike(&largest::call(threads, &x, &mut out)).occupancy.warps;
    let most = (32..=1024).step_by(32).map(warps).max();
    assert_eq!(Some(alike(&largest::call(best, &x, &mut out)).occupancy.warps), most);
}
