//! Checks that prepared launches and replays of graphs do not allocate.
//!
//! The test has its own process, because it replaces the global allocator with one that counts.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system allocator with a counter of allocations.
struct Counting;

thread_local! {
    /// Number of allocations of this thread. The driver's own threads are not counted.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system allocator. The thread-local counter has no
// destructor and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller satisfies the requirements of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller satisfies the requirements of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Computes y ← y + x.
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn add(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = y[i].wrapping_add(x[i]);
    }
}

/// Returns the number of allocations of this thread while `act` runs.
fn allocations(act: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    act();
    COUNT.get() - before
}

#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

/// Runs on a GPU only: on the CPU the interpreter runs, which allocates.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_launches_and_replays_allocate_nothing() {
    const ROUNDS: u32 = 50;
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let x = device.upload(&[1u32; 100]).unwrap();
    let (mut checked, mut bare) = (device.zeros(100).unwrap(), device.zeros(100).unwrap());
    let mut prepared = stream.prepare(add::call(&x, &mut checked)).unwrap();
    // SAFETY: each thread accesses only its own elements, in bounds.
    let mut prepared_bare = unsafe { stream.prepare_unchecked(add::call(&x, &mut bare)) }.unwrap();

    let recording = device.record();
    let slot = recording.borrow(&x).unwrap();
    // More buffers than an access set holds without an allocation.
    let sums: Vec<_> = (0..20).map(|_| recording.own(device.zeros(100).unwrap()).unwrap()).collect();
    for (i, sum) in sums.iter().enumerate() {
        match i % 2 {
            0 => add::launch(&recording, slot, *sum).unwrap(),
            // SAFETY: each thread accesses only its own elements, in bounds.
            _ => unsafe { add::launch_unchecked(&recording, slot, *sum) }.unwrap(),
        }
    }
    let mut graph = recording.finish().unwrap();

    let mut all = |rounds: u32| {
        for _ in 0..rounds {
            prepared.launch().unwrap();
            prepared_bare.launch().unwrap();
            graph.replay(&stream).unwrap();
            // On the device, this replay waits for the accesses of the other stream to the same
            // memory.
            graph.replay(&other).unwrap();
        }
    };
    // The first rounds allocate the lists, which are reused after each wait.
    all(2);
    let counted = allocations(|| all(ROUNDS));
    assert_eq!(counted, 0);
    stream.wait().unwrap();
    other.wait().unwrap();
    drop((prepared, prepared_bare));
    assert_eq!(checked.download().unwrap(), [ROUNDS + 2; 100]);
    assert_eq!(bare.download().unwrap(), [ROUNDS + 2; 100]);
    for sum in sums {
        assert_eq!(graph.buffer(sum).unwrap().download().unwrap(), [2 * (ROUNDS + 2); 100]);
    }
}
