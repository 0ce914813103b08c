//! Tests of graphs, on the CPU and on a GPU: a replay has the results of its launches in sequence.

mod decode;
mod misuse;
mod saved;

use kernel_dsl::prelude::*;
use runtime::doctor::{self, DriverFinding};
use runtime::{Device, Error};
use std::sync::Arc;

/// Computes y ← 3·y + x, `times` times, modulo 2³²; the result depends on the order of launches.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn mix(times: u32, x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        let mut sum = y[i];
        for _ in rolled(0..times) {
            sum = sum.wrapping_mul(3).wrapping_add(x[i]);
        }
        y[i] = sum;
    }
}

/// Computes to ← fromᵀ.
#[kernel(block = (16, 16), grid = (to.cols().div_ceil(16), to.rows().div_ceil(16)))]
#[requires(to.rows() == from.cols(), to.cols() == from.rows())]
pub fn transpose(from: View<u32, 2>, mut to: ViewMut<u32, 2>) {
    let (row, col) = (block::y() * 16 + thread::y(), block::x() * 16 + thread::x());
    if row < to.rows() && col < to.cols() {
        to[(row, col)] = from[(col, row)];
    }
}

/// Reads out of bounds if `offset` is not 0.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == y.len())]
pub fn beyond(offset: usize, x: &[u32], y: &mut [u32]) {
    let i = thread::index();
    if i < x.len() {
        y[i] = x[i + offset];
    }
}

const N: usize = 1000;

fn mixed(times: u32, x: &[u32], y: &mut [u32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y = (0..times).fold(*y, |y, _| y.wrapping_mul(3).wrapping_add(*x));
    }
}

fn count(from: u32) -> Vec<u32> {
    (from..from + N as u32).collect()
}

/// Returns the length of a launch. On a GPU the launch is long enough for the host to run ahead.
fn times() -> u32 {
    match doctor::examine().driver {
        DriverFinding::Found { on_cpu: false, .. } => 50_000,
        _ => 3,
    }
}

fn gpu() -> Device {
    Device::cuda(0).unwrap()
}

/// Declares tests that run on the CPU and on a GPU.
macro_rules! on_both {
    ($($test:path: $cpu:ident $gpu:ident;)*) => {$(
        #[test]
        fn $cpu() {
            $test(&Device::cpu(), 3);
        }

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn $gpu() {
            $test(&gpu(), times());
        }
    )*};
}

on_both! {
    replays: cpu_replays gpu_replays;
    memory_changes_hands: cpu_exchanges_buffers gpu_exchanges_buffers;
    streams_wait: cpu_is_one_operation gpu_is_one_operation;
    findings: cpu_reports_at_the_next_wait gpu_reports_at_the_next_wait;
    many: cpu_keeps_findings_of_many_graphs gpu_keeps_findings_of_many_graphs;
    independent: cpu_replays_independent_launches gpu_replays_independent_launches;
    decode::loops: cpu_decodes gpu_decodes;
    misuse::all: cpu_refuses gpu_refuses;
    saved::round_trip: cpu_loads_saved_graphs gpu_loads_saved_graphs;
}

/// Replays checked and unchecked launches, views, and changed scalars, and compares with the host.
fn replays(device: &Device, times: u32) {
    let weights = device.upload(&count(7)).unwrap();
    let recording = device.record();
    let (w, y) = (recording.borrow(&weights).unwrap(), recording.own(device.upload(&count(0)).unwrap()).unwrap());
    let transposed = recording.own(device.zeros(N).unwrap()).unwrap();
    let first = recording.add(mix::call(times, w, y)).unwrap();
    // SAFETY: each thread accesses only its own elements, in bounds.
    let second = unsafe { recording.add_unchecked(mix::call(1, y, transposed)) }.unwrap();
    transpose::launch(&recording, transposed.view([20, 50]).unwrap(), y.view_mut([50, 20]).unwrap()).unwrap();
    let mut graph = recording.finish().unwrap();
    assert_eq!((graph.len(), graph.is_empty()), (3, false));

    let stream = device.stream().unwrap();
    let (mut y_host, mut transposed_host) = (count(0), vec![0; N]);
    let mut host = |first: u32, second: u32| {
        mixed(first, &count(7), &mut y_host);
        let before = y_host.clone();
        mixed(second, &before, &mut transposed_host);
        for (i, transposed) in transposed_host.iter().enumerate() {
            y_host[i % 50 * 20 + i / 50] = *transposed;
        }
        (y_host.clone(), transposed_host.clone())
    };
    for round in 0..6 {
        graph.update(first, mix::call(times + round, w, y)).unwrap();
        // SAFETY: each thread accesses only its own elements, in bounds.
        unsafe { graph.update_unchecked(second, mix::call(round, y, transposed)) }.unwrap();
        graph.replay(&stream).unwrap();
        graph.replay(&stream).unwrap();
        host(times + round, round);
        let expected = host(times + round, round);
        assert_eq!(graph.buffer(y).unwrap().download().unwrap(), expected.0, "round {round}");
        assert_eq!(graph.buffer(transposed).unwrap().download().unwrap(), expected.1, "round {round}");
    }
    stream.wait().unwrap();
    // The inputs of a launch are exchanged, so that the driver's graph is rebuilt.
    graph.update(first, mix::call(1, transposed, y)).unwrap();
    let (mut y_now, transposed_now) = (y_host, transposed_host);
    mixed(1, &transposed_now, &mut y_now);
    graph.replay(&stream).unwrap();
    // The second launch still has 5 rounds, and reads the result of the first. The third transposes
    // its result.
    let mut transposed_now = transposed_now;
    mixed(5, &y_now, &mut transposed_now);
    assert_eq!(graph.buffer(transposed).unwrap().download().unwrap(), transposed_now);
    drop(graph);
    stream.wait().unwrap();
}

/// Exchanges the buffer in a slot, as with two alternating buffers.
fn memory_changes_hands(device: &Device, times: u32) {
    let stream = device.stream().unwrap();
    let recording = device.record();
    let x = recording.share(Arc::new(device.upload(&count(1)).unwrap())).unwrap();
    let y = recording.own(device.upload(&count(0)).unwrap()).unwrap();
    mix::launch(&recording, times, x, y).unwrap();
    // SAFETY: each thread accesses only its own elements, in bounds.
    unsafe { mix::launch_unchecked(&recording, 1, x, y) }.unwrap();
    let mut graph = recording.finish().unwrap();
    let mut other = device.upload(&count(50)).unwrap();
    let mut host = [count(0), count(50)];
    for _ in 0..5 {
        graph.replay(&stream).unwrap();
        mixed(times + 1, &count(1), &mut host[0]);
        std::mem::swap(graph.buffer_mut(y).unwrap(), &mut other);
        host.swap(0, 1);
    }
    assert_eq!(graph.buffer(y).unwrap().download().unwrap(), host[0]);
    assert_eq!(other.download().unwrap(), host[1]);
    // The slot's old buffer is dropped while it is in use. The next owner of its memory waits.
    graph.replay(&stream).unwrap();
    drop(std::mem::replace(graph.buffer_mut(y).unwrap(), device.zeros(N).unwrap()));
    let garbage = device.upload(&[9u32; N]).unwrap();
    graph.replay(&stream).unwrap();
    let mut expected = vec![0; N];
    mixed(times + 1, &count(1), &mut expected);
    assert_eq!(graph.buffer(y).unwrap().download().unwrap(), expected);
    assert_eq!(garbage.download().unwrap(), [9; N]);
}

/// Checks that a replay waits for writes of its buffers, and that later accesses wait for the
/// replay, on all streams.
fn streams_wait(device: &Device, times: u32) {
    let streams: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
    let mut y = device.upload(&count(0)).unwrap();
    let mut x = device.upload(&count(3)).unwrap();
    let mut host = (count(3), count(0));
    for round in 0..4 {
        mix::launch(&streams[round % 3], times, &y, &mut x).unwrap();
        mixed(times, &host.1.clone(), &mut host.0);
        let recording = device.record();
        let (a, b) = (recording.borrow(&x).unwrap(), recording.lend(&mut y).unwrap());
        mix::launch(&recording, times, a, b).unwrap();
        mix::launch(&recording, 2, a, b).unwrap();
        let mut graph = recording.finish().unwrap();
        for stream in &streams {
            graph.replay(stream).unwrap();
            mixed(times + 2, &host.0, &mut host.1);
        }
        drop(graph);
    }
    assert_eq!(x.download().unwrap(), host.0);
    assert_eq!(y.download().unwrap(), host.1);
}

/// Checks that a finding of a checked launch in a replay is the error of the next wait for its
/// stream, once.
fn findings(device: &Device, times: u32) {
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let recording = device.record();
    let (x, y) = (
        recording.own(device.upload(&count(0)[..32]).unwrap()).unwrap(),
        recording.own(device.zeros(32).unwrap()).unwrap(),
    );
    mix::launch(&recording, times, x, y).unwrap();
    let node = recording.add(beyond::call(0, x, y)).unwrap();
    let mut graph = recording.finish().unwrap();
    graph.replay(&stream).unwrap();
    stream.wait().unwrap();
    graph.update(node, beyond::call(1, x, y)).unwrap();
    for _ in 0..300 {
        graph.replay(&stream).unwrap();
    }
    let error = stream.wait().unwrap_err();
    assert!(matches!(error, Error::Violation(_)), "{error}");
    assert!(error.to_string().contains("index 32 is out of bounds of `x`"), "{error}");
    stream.wait().unwrap();
    // The graph remains usable, and another stream reports its own findings.
    graph.update(node, beyond::call(0, x, y)).unwrap();
    graph.replay(&other).unwrap();
    other.wait().unwrap();
    assert_eq!(graph.buffer(y).unwrap().download().unwrap(), count(0)[..32]);
    graph.update(node, beyond::call(5, x, y)).unwrap();
    graph.replay(&other).unwrap();
    // A finding outlives its graph.
    drop(graph);
    assert!(other.wait().unwrap_err().to_string().contains("is out of bounds of `x`"));
    stream.wait().unwrap();
}

/// Replays more graphs than a stream tracks between two waits, and drops each after its replay.
fn many(device: &Device, _: u32) {
    let stream = device.stream().unwrap();
    let x = device.upload(&count(0)[..32]).unwrap();
    for number in 0..200 {
        let recording = device.record();
        let (x, y) = (recording.borrow(&x).unwrap(), recording.own(device.zeros(32).unwrap()).unwrap());
        beyond::launch(&recording, if [3, 150].contains(&number) { number } else { 0 }, x, y).unwrap();
        recording.finish().unwrap().replay(&stream).unwrap();
    }
    let error = stream.wait().unwrap_err();
    assert!(error.to_string().contains("index 3") && error.to_string().contains("is out of bounds of `x`"), "{error}");
    stream.wait().unwrap();
}

/// Records independent launches, some with an empty grid.
fn independent(device: &Device, times: u32) {
    let recording = device.record();
    let x = recording.own(device.upload(&count(2)).unwrap()).unwrap();
    let nothing = recording.own(device.zeros::<u32>(0).unwrap()).unwrap();
    let sums: Vec<_> = (0..8).map(|i| recording.own(device.upload(&count(i)).unwrap()).unwrap()).collect();
    for sum in &sums {
        mix::launch(&recording, times, x, *sum).unwrap();
        mix::launch(&recording, times, nothing, nothing.range_mut(0..0).unwrap()).unwrap();
    }
    let part = recording.add(mix::call(1, x.range(0..0).unwrap(), sums[0].range_mut(0..0).unwrap())).unwrap();
    let mut graph = recording.finish().unwrap();
    let stream = device.stream().unwrap();
    graph.replay(&stream).unwrap();
    let expected = |i: u32, times| {
        let mut y = count(i);
        mixed(times, &count(2), &mut y);
        y
    };
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(graph.buffer(*sum).unwrap().download().unwrap(), expected(i as u32, times));
    }
    // A launch changes from an empty grid to a full one, and back.
    graph.update(part, mix::call(1, x, sums[0])).unwrap();
    graph.replay(&stream).unwrap();
    assert_eq!(graph.buffer(sums[0]).unwrap().download().unwrap(), expected(0, 2 * times + 1));
    graph.update(part, mix::call(1, x.range(0..0).unwrap(), sums[0].range_mut(0..0).unwrap())).unwrap();
    graph.replay(&stream).unwrap();
    assert_eq!(graph.buffer(sums[0]).unwrap().download().unwrap(), expected(0, 3 * times + 1));
    // An empty graph.
    let mut empty = device.record().finish().unwrap();
    empty.replay(&stream).unwrap();
    stream.wait().unwrap();
}
