//! Work of several streams on the same memory, ordered by the calls alone.

use super::{add, added, beyond};
use runtime::Device;
use std::time::Duration;

const N: usize = 1000;

/// Runs all tests of this file; `times` is the length of a launch.
pub fn all(device: &Device, times: u32) {
    writes_are_seen(device, times);
    reads_are_waited_for(device, times);
    memory_changes_hands(device, times);
    pinned_memory_is_waited_for(device, times);
    events_say_when(device, times);
    streams_are_reused(device, times);
    launches_are_prepared_once(device, times);
}

fn count() -> Vec<u32> {
    (0..N as u32).collect()
}

/// Returns the result of `rounds` launches on zeros.
fn expected(rounds: u32, times: u32) -> Vec<u32> {
    count().iter().map(|x| (0..rounds).fold(0, |y, _| added(times, *x, y))).collect()
}

/// Writes one buffer from several streams alternately.
fn writes_are_seen(device: &Device, times: u32) {
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    let x = device.upload(&count()).unwrap();
    let mut y = device.zeros(N).unwrap();
    for round in 0..12 {
        let stream = &streams[round * 7 % 4];
        if round % 2 == 0 {
            add::launch(stream, times, &x, &mut y).unwrap();
        } else {
            // SAFETY: each thread accesses only its own elements, in bounds.
            unsafe { add::launch_unchecked(stream, times, &x, &mut y).unwrap() };
        }
    }
    assert_eq!(y.download().unwrap(), expected(12, times));
}

/// Overwrites the input of slow launches from another stream, and from the device.
fn reads_are_waited_for(device: &Device, times: u32) {
    let (slow, other, quick) = (device.stream().unwrap(), device.stream().unwrap(), device.stream().unwrap());
    let mut x = device.upload(&count()).unwrap();
    let mut sums: Vec<_> = (0..6).map(|_| device.zeros(N).unwrap()).collect();
    for (i, y) in sums.iter_mut().enumerate() {
        add::launch([&slow, &other][i % 2], times, &x, y).unwrap();
    }
    quick.fill_zero(&mut x).unwrap();
    quick.wait().unwrap();
    assert_eq!(x.download().unwrap(), vec![0; N]);
    for y in sums {
        assert_eq!(y.download().unwrap(), expected(1, times));
    }
    // The same input, overwritten from the host.
    let mut x = device.upload(&count()).unwrap();
    let mut y = device.zeros(N).unwrap();
    add::launch(&slow, times, &x, &mut y).unwrap();
    x.copy_from(&[5; N]).unwrap();
    assert_eq!((x.download().unwrap(), y.download().unwrap()), (vec![5; N], expected(1, times)));
}

/// Drops buffers while they are in use; the next owner of their memory waits.
fn memory_changes_hands(device: &Device, times: u32) {
    let (slow, quick) = (device.stream().unwrap(), device.stream().unwrap());
    let mut results = Vec::new();
    for _ in 0..8 {
        let mut y = device.zeros(N).unwrap();
        {
            let x = slow.upload(&count()).unwrap();
            add::launch(&slow, times, &x, &mut y).unwrap();
        }
        // This allocation most likely reuses the memory of x.
        let garbage = quick.upload(&[77u32; N]).unwrap();
        results.push((y, garbage));
    }
    for (y, garbage) in &results {
        assert_eq!(y.download().unwrap(), expected(1, times));
        assert_eq!(garbage.download().unwrap(), [77; N]);
    }
    // The exact amount is unknown here: the pool of a GPU belongs to the process, and other tests
    // use it too.
    let held = device.memory();
    assert!(held.in_use >= 16 * 4 * N as u64, "{held}");
}

/// Checks, on a separate device, that all live memory counts as in use, and nothing else.
pub fn dropped_memory_is_not_in_use(device: &Device) {
    let held: Vec<_> = (0..16).map(|_| device.zeros::<u32>(N).unwrap()).collect();
    let with = device.memory().in_use;
    assert!(with >= 16 * 4 * N as u64, "{}", device.memory());
    drop(held);
    assert_eq!(device.memory().in_use, 0, "{}", device.memory());
}

fn pinned_memory_is_waited_for(device: &Device, times: u32) {
    let stream = device.stream().unwrap();
    let mut pinned = device.pinned::<u32>(N).unwrap();
    let mut result = device.pinned::<u32>(N).unwrap();
    let mut x = device.alloc(N).unwrap();
    for round in 1..5 {
        // Waits for the upload of the last round.
        pinned.as_mut_slice().unwrap().iter_mut().zip(0..).for_each(|(p, i)| *p = round * i);
        stream.upload_to(&mut x, &pinned).unwrap();
        let mut y = device.zeros(N).unwrap();
        add::launch(&stream, times, &x, &mut y).unwrap();
        stream.download_to(&y, &mut result).unwrap();
        let expected: Vec<_> = count().iter().map(|x| added(times, round * x, 0)).collect();
        assert_eq!(result.as_slice().unwrap(), expected);
    }
    // The next owner of memory that a copy still writes does not see it change.
    let mut y = device.zeros(N).unwrap();
    (0..2).for_each(|_| add::launch(&stream, times, &x, &mut y).unwrap());
    stream.download_to(&y, &mut result).unwrap();
    drop(result);
    let next = device.pinned::<u32>(N).unwrap();
    let seen = next.as_slice().unwrap().to_vec();
    stream.wait().unwrap();
    assert_eq!(next.as_slice().unwrap(), seen);
    let mut copied = device.alloc(N).unwrap();
    stream.copy(&x, &mut copied).unwrap();
    assert_eq!(copied.download().unwrap(), x.download().unwrap());
}

fn events_say_when(device: &Device, times: u32) {
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let x = device.upload(&count()).unwrap();
    let mut y = device.zeros(N).unwrap();
    let start = stream.record().unwrap();
    add::launch(&stream, times, &x, &mut y).unwrap();
    let end = stream.record().unwrap();
    other.wait_for(&end).unwrap();
    let behind = other.record().unwrap();
    behind.wait().unwrap();
    assert!(start.is_complete().unwrap() && end.is_complete().unwrap());
    assert!(end.duration_since(&start).unwrap() > Duration::ZERO);
    assert_eq!(start.duration_since(&end).unwrap(), Duration::ZERO);
}

/// Drops streams while they work; new streams reuse their slots.
fn streams_are_reused(device: &Device, times: u32) {
    let x = device.upload(&count()).unwrap();
    let mut y = device.zeros(N).unwrap();
    for _ in 0..50 {
        add::launch(&device.stream().unwrap(), times / 10, &x, &mut y).unwrap();
    }
    assert_eq!(y.download().unwrap(), expected(50, times / 10));
}

/// Alternates prepared launches with others; a prepared launch is checked as well.
fn launches_are_prepared_once(device: &Device, times: u32) {
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let x = device.upload(&count()).unwrap();
    let mut y = device.zeros(N).unwrap();
    for round in 0..3 {
        let on = [&stream, &other][round % 2];
        let mut checked = on.prepare(add::call(times, &x, &mut y)).unwrap();
        (0..5).for_each(|_| checked.launch().unwrap());
        drop(checked);
        // SAFETY: each thread accesses only its own elements, in bounds.
        let mut bare = unsafe { other.prepare_unchecked(add::call(times, &x, &mut y)).unwrap() };
        (0..5).for_each(|_| bare.launch().unwrap());
    }
    assert_eq!(y.download().unwrap(), expected(30, times));
    let shorter = x.range(0..N - 1).unwrap();
    let refused = stream.prepare(add::call(1, shorter, &mut y)).unwrap_err();
    assert!(refused.to_string().contains("requires `x.len() == y.len()`"), "{refused}");
    let mut wrong = stream.prepare(beyond::call(x.range(0..8).unwrap(), y.range_mut(0..8).unwrap())).unwrap();
    wrong.launch().unwrap();
    wrong.launch().unwrap();
    assert!(stream.wait().is_err());
    stream.wait().unwrap();
    let nothing = device.zeros(0).unwrap();
    let mut empty = device.zeros(0).unwrap();
    stream.prepare(add::call(1, &nothing, &mut empty)).unwrap().launch().unwrap();
}
