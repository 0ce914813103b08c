//! What is done again and again allocates nothing: prepared launches and replays of graphs. Alone in its process, for it counts all that
//! the process allocates.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
struct Counting;

thread_local! {
    /// Allocations of this thread: the driver's own threads are its own business.
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all is the system's; a counter without a destructor is all that is added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: by the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: by the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// y ← y + x
#[kernel(block = 64, grid = y.len().div_ceil(64))]
#[requires(x.len() == y.len())]
pub fn add(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = y[i].wrapping_add(x[i]);
    }
}

/// Allocations of this thread while `act` runs.
fn allocations(act: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    act();
    COUNT.get() - before
}

#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
}

/// On the CPU the interpreter runs, which allocates; so this is of GPUs.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_launches_and_replays_allocate_nothing() {
    const ROUNDS: u32 = 50;
    let device = Device::cuda(0).unwrap();
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let x = device.upload(&[1u32; 100]).unwrap();
    let (mut checked, mut bare) = (device.zeros(100).unwrap(), device.zeros(100).unwrap());
    let mut prepared = stream.prepare(add::call(&x, &mut checked)).unwrap();
    // SAFETY: the kernel looks at its own elements only, which there are.
    let mut prepared_bare = unsafe { stream.prepare_unchecked(add::call(&x, &mut bare)) }.unwrap();

    let recording = device.record();
    let slot = recording.borrow(&x).unwrap();
    // More than are kept without an allocation where memory is listed.
    let sums: Vec<_> = (0..20).map(|_| recording.own(device.zeros(100).unwrap()).unwrap()).collect();
    for (i, sum) in sums.iter().enumerate() {
        match i % 2 {
            0 => add::launch(&recording, slot, *sum).unwrap(),
            // SAFETY: as above.
            _ => unsafe { add::launch_unchecked(&recording, slot, *sum) }.unwrap(),
        }
    }
    let mut graph = recording.finish().unwrap();

    let mut all = |rounds: u32| {
        for _ in 0..rounds {
            prepared.launch().unwrap();
            prepared_bare.launch().unwrap();
            graph.replay(&stream).unwrap();
            // What another stream does with the same memory is waited for, on the device.
            graph.replay(&other).unwrap();
        }
    };
    // Room is made once, and again after each wait.
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
