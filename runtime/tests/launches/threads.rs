//! Thread safety: the `Send` and `Sync` bounds of the public types. This file does not compile if a
//! bound is violated.

use kernel_dsl::prelude::*;
use kernel_dsl::{Argument, Call, launcher};
use runtime::{
    BufferView, BufferViewMut, Device, DeviceBuffer, Error, Event, Graph, PinnedBuffer, Prepared, Recording, Slot,
    SlotMut, Stream,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}

/// Compiles only if `$T` does not implement `$Trait`: otherwise `check` is ambiguous.
macro_rules! is_not {
    ($T:ty: $Trait:ident) => {
        const _: () = {
            trait Ambiguous<A> {
                fn check() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Is;
            impl<T: ?Sized + $Trait> Ambiguous<Is> for T {}
            let _ = <$T as Ambiguous<_>>::check;
        };
    };
}

// A clone of a mutable argument would be a second writer on another thread.
is_not!(Argument<'static>: Send);
is_not!(Argument<'static>: Sync);
is_not!(launcher::ArgumentMemory<'static>: Send);
is_not!(Call<'static>: Send);
is_not!(Call<'static>: Sync);
// A `Prepared` may hold a call.
is_not!(Prepared<'static>: Send);
is_not!(Prepared<'static>: Sync);
// Launches are recorded through `&`.
is_not!(Recording<'static>: Sync);

#[test]
fn owners_of_memory_or_work_can_be_sent() {
    send::<Device>();
    sync::<Device>();
    send::<Stream>();
    sync::<Stream>();
    send::<Event>();
    sync::<Event>();
    send::<DeviceBuffer<f32>>();
    sync::<DeviceBuffer<f32>>();
    send::<PinnedBuffer<f32>>();
    sync::<PinnedBuffer<f32>>();
    send::<BufferView<'static, f32, 2>>();
    sync::<BufferView<'static, f32, 2>>();
    send::<BufferViewMut<'static, f32, 2>>();
    send::<Graph<'static>>();
    sync::<Graph<'static>>();
    send::<Recording<'static>>();
    send::<Slot<f32>>();
    sync::<SlotMut<f32>>();
    send::<Error>();
    sync::<Error>();
}

/// Checks that two threads can write parts of one buffer concurrently, each on a separate stream,
/// and that all of it is read afterwards.
#[test]
fn threads_write_parts_of_one_buffer() {
    let device = Device::cpu();
    let mut buffer = device.zeros::<u32>(100).unwrap();
    let (low, high) = buffer.split_at_mut(40).unwrap();
    std::thread::scope(|scope| {
        for (part, value) in [(low, 1), (high, 2)] {
            let device = &device;
            scope.spawn(move || {
                let stream = device.stream().unwrap();
                set::launch(&stream, value, part).unwrap();
                stream.wait().unwrap();
            });
        }
    });
    let expected: Vec<u32> = (0..100).map(|i| if i < 40 { 1 } else { 2 }).collect();
    assert_eq!(buffer.as_slice().unwrap(), expected);
}

/// Checks that two threads can concurrently write and read halves of a transposed matrix, whose
/// address ranges overlap.
#[test]
fn threads_write_columns_of_one_buffer() {
    const ROWS: usize = 40;
    const COLUMNS: usize = 48;
    const ROUNDS: u32 = 20;
    let device = Device::cpu();
    let mut buffer = device.zeros::<u32>(ROWS * COLUMNS).unwrap();
    let columns = buffer.view_mut([ROWS, COLUMNS]).unwrap().strided().transposed();
    let (left, right) = columns.split_at(COLUMNS / 2).unwrap();
    std::thread::scope(|scope| {
        for (mut part, value) in [(left, 1), (right, 2)] {
            let device = &device;
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    increase::launch(device, value, part.reborrow()).unwrap();
                }
            });
        }
    });
    let expected = |i: usize| ROUNDS * if i % COLUMNS < COLUMNS / 2 { 1 } else { 2 };
    assert_eq!(buffer.as_slice().unwrap(), (0..ROWS * COLUMNS).map(expected).collect::<Vec<_>>());
}

/// Computes y ← y + value.
#[kernel(block = (8, 8), grid = (y.cols().div_ceil(8), y.rows().div_ceil(8)))]
pub fn increase(value: u32, mut y: StridedMut<u32, 2>) {
    let (row, col) = (block::y() * 8 + thread::y(), block::x() * 8 + thread::x());
    if row < y.rows() && col < y.cols() {
        y[(row, col)] += value;
    }
}

/// Sets every element of y to `value`.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
pub fn set(value: u32, y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = value;
    }
}
