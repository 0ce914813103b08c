//! Tests of views of buffers as arguments: disjoint parts, other element types, and rejected views.

use kernel_dsl::prelude::*;
use runtime::{Device, Error};

/// Computes y ← x + 1.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
pub fn next(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = x[i].wrapping_add(1);
    }
}

/// Computes y ← x + 1, four elements at a time.
#[kernel(block = 32, grid = (y.len() / 4).div_ceil(32))]
#[requires(x.len() == y.len(), y.len() % 4 == 0, x.aligned(4), y.aligned(4))]
pub fn next_four(x: &[u32], y: &mut [u32]) {
    let i = 4 * grid::index();
    if i < y.len() {
        let four: [u32; 4] = x.load(i);
        y.store(i, four.map(|x| x.wrapping_add(1)));
    }
}

/// Computes y ← −x.
#[kernel(block = (8, 8), grid = (y.cols().div_ceil(8), y.rows().div_ceil(8)))]
#[requires(x.rows() == y.rows(), x.cols() == y.cols())]
pub fn negate(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let (row, col) = (block::y() * 8 + thread::y(), block::x() * 8 + thread::x());
    if row < y.rows() && col < y.cols() {
        y[(row, col)] = -x[(row, col)];
    }
}

fn all(device: &Device) {
    parts(device);
    rows(device);
    types(device);
    streams(device);
    refused(device);
}

fn count(n: usize) -> Vec<u32> {
    (0..n as u32).collect()
}

/// Uses the two halves of one buffer as the input and the output of one launch.
fn parts(device: &Device) {
    let mut buffer = device.upload(&count(100)).unwrap();
    let (low, mut high) = buffer.split_at_mut(50).unwrap();
    let low = low.shared();
    next::launch(device, low, high.reborrow()).unwrap();
    let (left, right) = high.split_at(20).unwrap();
    next::launch(device, low.slice(0..20).unwrap(), left).unwrap();
    next::launch(device, low.slice(20..50).unwrap(), right).unwrap();
    let mut expected = count(100);
    for i in 0..50 {
        expected[50 + i] = i as u32 + 1;
    }
    assert_eq!(buffer.download().unwrap(), expected);
}

/// Splits a matrix by rows, writes some of them and reads the others.
fn rows(device: &Device) {
    let data: Vec<f32> = (0..60).map(|i| i as f32).collect();
    let mut buffer = device.upload(&data).unwrap();
    let (top, bottom) = buffer.view_mut([6, 10]).unwrap().split_at(2).unwrap();
    let (middle, bottom) = bottom.split_at(2).unwrap();
    assert_eq!((top.extents(), middle.extents(), bottom.extents()), ([2, 10], [2, 10], [2, 10]));
    negate::launch(device, top.shared(), bottom).unwrap();
    negate::launch(device, buffer.view([6, 10]).unwrap().slice(1..1).unwrap(), middle_of_nothing(device)).unwrap();
    let expected: Vec<f32> = (0..60).map(|i| if i < 40 { i as f32 } else { -((i - 40) as f32) }).collect();
    assert_eq!(buffer.download().unwrap(), expected);
}

/// Returns a view of no rows of ten elements.
fn middle_of_nothing<'a>(device: &Device) -> runtime::BufferViewMut<'a, f32, 2> {
    let nothing = Box::leak(Box::new(device.zeros::<f32>(0).unwrap()));
    nothing.view_mut([0, 10]).unwrap()
}

/// Views bits of floats as integers, and bytes as words.
fn types(device: &Device) {
    let mut floats = device.upload(&[1.0f32, -2.0, 0.5, 4.0]).unwrap();
    let mut bits = device.zeros::<u32>(4).unwrap();
    next::launch(device, floats.cast::<u32>().unwrap(), &mut bits).unwrap();
    let expected = [1.0f32, -2.0, 0.5, 4.0].map(|x| x.to_bits() + 1);
    assert_eq!(bits.download().unwrap(), expected);
    next::launch(device, &bits, floats.cast_mut::<u32>().unwrap()).unwrap();
    assert_eq!(floats.download().unwrap(), expected.map(|x| f32::from_bits(x + 1)));
    let bytes = device.upload(&(0..16).collect::<Vec<u8>>()).unwrap();
    let mut words = device.zeros::<u32>(2).unwrap();
    next::launch(device, bytes.range(4..12).unwrap().cast::<u32>().unwrap(), &mut words).unwrap();
    assert_eq!(words.download().unwrap(), [0x0706_0505, 0x0b0a_0909]);
    assert_eq!(bytes.cast::<[u8; 4]>().unwrap().extents(), [4]);
}

/// Uses parts of one buffer on several streams, from several threads, and then the whole buffer.
fn streams(device: &Device) {
    let x = device.upload(&count(40)).unwrap();
    let mut buffer = device.zeros::<u32>(160).unwrap();
    for round in 1..4 {
        let (low, high) = buffer.split_at_mut(80).unwrap();
        let (a, b) = low.split_at(40).unwrap();
        let (c, d) = high.split_at(40).unwrap();
        std::thread::scope(|scope| {
            for mut part in [a, b, c, d] {
                let x = &x;
                scope.spawn(move || {
                    let stream = device.stream().unwrap();
                    for _ in 0..round {
                        next::launch(&stream, x, part.reborrow()).unwrap();
                    }
                });
            }
        });
        // The download waits for all of the streams.
        let expected: Vec<u32> = (0..160).map(|i| i % 40 + 1).collect();
        assert_eq!(buffer.download().unwrap(), expected);
        device.stream().unwrap().fill_zero(&mut buffer).unwrap();
    }
    assert_eq!(buffer.download().unwrap(), [0; 160]);
}

fn refused(device: &Device) {
    let said = |result: Result<(), Error>| result.unwrap_err().to_string();
    let mut buffer = device.upload(&count(16)).unwrap();
    let x = device.upload(&count(16)).unwrap();
    next_four::launch(device, &x, &mut buffer).unwrap();
    // A slice with insufficient alignment.
    let error = said(next_four::launch(device, x.range(1..9).unwrap(), buffer.range_mut(0..8).unwrap()));
    assert!(error.contains("x.aligned(4)"), "{error}");
    let error = said(next::launch(device, &x, buffer.range_mut(3..16).unwrap()));
    assert!(error.contains("x.len() == y.len()"), "{error}");
    assert!(buffer.split_at_mut(17).is_err() && buffer.range(9..17).is_err());
    assert!(buffer.view_mut([4, 4]).unwrap().slice(2..5).is_err());
    let odd = device.zeros::<u8>(7).unwrap();
    assert_eq!(
        odd.cast::<u16>().unwrap_err().to_string(),
        "cannot view 7 u8 as u16: 7 bytes are not a multiple of its size, 2"
    );
    let error = odd.range(1..5).unwrap().cast::<u32>().unwrap_err().to_string();
    assert!(error.contains("which is not aligned to 4"), "{error}");
    assert_eq!(buffer.as_slice().is_some(), device.is_cpu());
    // An empty view is accepted everywhere.
    let mut none = device.zeros::<u32>(0).unwrap();
    assert_eq!(none.as_slice().map(<[u32]>::len), device.is_cpu().then_some(0));
    let (low, high) = none.split_at_mut(0).unwrap();
    next::launch(device, low.shared(), high).unwrap();
    next::launch(device, none.cast::<f32>().unwrap().cast::<u32>().unwrap(), buffer.range_mut(16..16).unwrap())
        .unwrap();
    assert_eq!(buffer.download().unwrap(), (1..17).collect::<Vec<u32>>());
}

#[test]
fn cpu_accepts_views() {
    all(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_accepts_views() {
    all(&Device::cuda(0).unwrap());
}

#[test]
fn memory_of_the_cpu_device_is_host_memory() {
    let device = Device::cpu();
    let mut buffer = device.zeros::<u32>(8).unwrap();
    buffer.as_mut_slice().unwrap().copy_from_slice(&count(8));
    let address = buffer.as_slice().unwrap().as_ptr();
    assert_eq!(address.addr() as u64, buffer.device_address());
    let mut y = device.zeros(8).unwrap();
    next::launch(&device, &buffer, &mut y).unwrap();
    assert_eq!(y.as_slice().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8]);
}
