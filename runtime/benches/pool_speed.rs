//! Measures allocation and release of memory that the pool already holds, in nanoseconds: the
//! fastest of many rounds.

use runtime::Device;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() -> runtime::Result<()> {
    const COUNT: u32 = 10_000;
    let device = Device::cpu();
    // Other live allocations, as in a real program.
    let _others: Vec<_> = (1..100).map(|i| device.pinned::<u8>(i << 10)).collect::<Result<_, _>>()?;
    for bytes in [256usize, 64 << 10, 1 << 20, 100 << 20] {
        let mut best = Duration::MAX;
        for _ in 0..200 {
            let start = Instant::now();
            for _ in 0..COUNT {
                drop(black_box(device.pinned::<u8>(bytes)?));
            }
            best = best.min(start.elapsed() / COUNT);
        }
        println!("{bytes:>10} bytes: {:>4} ns", best.as_nanos());
    }
    Ok(())
}
