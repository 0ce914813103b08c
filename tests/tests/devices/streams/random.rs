//! Threads that allocate, launch, copy and release at random, and check their results.

use super::{add, added};
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer, Stream};

/// A buffer, with its expected contents.
struct Kept {
    buffer: DeviceBuffer<u32>,
    expected: Vec<u32>,
}

/// Runs `threads` threads of `steps` steps each, with buffers of up to `most` elements.
pub fn threads(device: &Device, threads: u64, steps: usize, most: usize) {
    let shared = device.upload(&(0..most as u32).collect::<Vec<_>>()).unwrap();
    std::thread::scope(|s| {
        for seed in 1..=threads {
            let shared = &shared;
            s.spawn(move || thread(device, shared, &mut Random::new(seed), steps, most));
        }
    });
    device.trim_memory().unwrap();
}

fn thread(device: &Device, shared: &DeviceBuffer<u32>, random: &mut Random, steps: usize, most: usize) {
    let streams: Vec<Stream> = (0..3).map(|_| device.stream().unwrap()).collect();
    let mut kept: Vec<Kept> = Vec::new();
    for step in 0..steps {
        let stream = &streams[random.below(3)];
        let n = 1 + random.below(most);
        match random.below(7) {
            0 | 1 => {
                let expected: Vec<_> = (0..n as u32).map(|i| i.wrapping_mul(step as u32)).collect();
                kept.push(Kept { buffer: stream.upload(&expected).unwrap(), expected });
            }
            2 | 3 => {
                let Some(at) = kept.len().checked_sub(1).map(|last| random.below(last + 1)) else { continue };
                let Kept { buffer, expected } = &mut kept[at];
                let x = shared.range(0..expected.len()).unwrap();
                add::launch(stream, 3, x, buffer).unwrap();
                expected.iter_mut().zip(0..).for_each(|(y, x)| *y = added(3, x, *y));
            }
            4 => {
                let Some(last) = kept.last() else { continue };
                let mut buffer = device.alloc(last.expected.len()).unwrap();
                stream.copy(&last.buffer, &mut buffer).unwrap();
                let expected = last.expected.clone();
                kept.push(Kept { buffer, expected });
            }
            5 if !kept.is_empty() => {
                let Kept { buffer, expected } = kept.swap_remove(random.below(kept.len()));
                let mut pinned = device.pinned(expected.len()).unwrap();
                stream.download_to(&buffer, &mut pinned).unwrap();
                drop(buffer);
                assert_eq!(pinned.as_slice().unwrap(), expected, "step {step}");
            }
            _ if kept.len() > 20 => kept.truncate(5),
            _ => {}
        }
    }
    for Kept { buffer, expected } in &kept {
        assert_eq!(&buffer.download().unwrap(), expected);
    }
    streams.iter().for_each(|stream| stream.wait().unwrap());
}
