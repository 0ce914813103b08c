//! Measures the host's part of a launch before the device's own, in nanoseconds: the fastest of
//! many rounds. The kernel has the parameters and conditions of a matrix product. A handler that
//! does nothing receives the launches.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::time::{Duration, Instant};

/// Stores α + β, for a contract with the conditions of a product.
#[kernel(block = T, grid = (c.dim(1).div_ceil(BM) * c.dim(2).div_ceil(BN), splits, a.dim(0)))]
#[requires(
    splits > 0, c.dim(0) == a.dim(0) * splits, b.dim(0) == a.dim(0),
    if TA { a.dim(2) == c.dim(1) } else { a.dim(1) == c.dim(1) },
    if TB { b.dim(1) == c.dim(2) } else { b.dim(2) == c.dim(2) },
    (if TA { a.dim(1) } else { a.dim(2) }) == (if TB { b.dim(2) } else { b.dim(1) }),
    a.aligned(V), b.aligned(V), c.aligned(V), a.dim(2) % V == 0, b.dim(2) % V == 0, c.dim(2) % V == 0,
)]
fn product<const BM: usize, const BN: usize, const V: usize, const TA: bool, const TB: bool, const T: usize>(
    alpha: f32,
    a: View<f32, 3>,
    b: View<f32, 3>,
    beta: f32,
    mut c: ViewMut<f32, 3>,
    splits: usize,
) {
    if grid::index() == 0 && splits > 0 && a.dim(0) == b.dim(0) && c.dim(0) > 0 {
        c[(0, 0, 0)] = alpha + beta;
    }
}

fn main() -> runtime::Result<()> {
    const COUNT: usize = 1_000;
    let device = Device::cpu_with_handler(Device::cpu().facts(), Box::new(|_, _, _| Ok(())));
    // A few shapes in turn, as the layers of a model have them.
    for shapes in [1, 8] {
        let operands = |i: usize| {
            let m = 64 + 4 * i;
            Ok((m, device.zeros::<f32>(m * 64)?, device.zeros::<f32>(64 * 128)?, device.zeros::<f32>(m * 128)?))
        };
        let mut operands: Vec<_> = (0..shapes).map(operands).collect::<runtime::Result<_>>()?;
        let mut best = Duration::MAX;
        for _ in 0..50 {
            let start = Instant::now();
            for i in 0..COUNT {
                let (m, a, b, c) = &mut operands[i % shapes];
                let (a, b, c) = (a.view([1, *m, 64])?, b.view([1, 64, 128])?, &mut c.view_mut([1, *m, 128])?);
                product::<128, 128, 4, false, false, 256>::launch(&device, 1.0, a, b, 0.0, c, 1)?;
            }
            best = best.min(start.elapsed() / COUNT as u32);
        }
        println!("{shapes} shapes in turn: {:>6} ns", best.as_nanos());
    }
    Ok(())
}
