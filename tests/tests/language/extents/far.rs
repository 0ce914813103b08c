//! Buffers of more than 2³¹ bytes: calls that access their last elements. Each family also runs on
//! the CPU, with few elements.

use super::number;
use kernel_dsl::{Element, Float, GenericArgument, Number};
use kernels_rs::attention::{Attention, Decode, KvCache, Qkv, Scratch};
use kernels_rs::gemm::Gemm;
use kernels_rs::permute::{copy, gather, transpose_batch};
use kernels_rs::quant::{Igemm, Quantized};
use kernels_rs::reduce::{self, ArgMax, Sum};
use kernels_rs::rowwise::{Norm, Softmax};
use kernels_rs::sampling::Sample;
use kernels_rs::scan;
use runtime::{Device, DeviceBuffer};

/// Number of elements of a row.
const COLS: usize = 64;

/// Returns a device buffer of zeros that ends with `values`.
fn ending<T: Element + Number + GenericArgument>(device: &Device, n: usize, values: &[T]) -> DeviceBuffer<T> {
    let (mut all, end) = (device.zeros::<T>(n).unwrap(), device.upload(values).unwrap());
    let last = all.range_mut(n - values.len()..n).unwrap();
    copy(device, end.view([values.len()]).unwrap().strided(), last.strided()).unwrap();
    all
}

/// Returns the last `n` elements.
fn end<T: Element + Number + GenericArgument>(device: &Device, of: &DeviceBuffer<T>, n: usize) -> Vec<T> {
    let mut last = device.zeros::<T>(n).unwrap();
    let range = of.range(of.len() - n..of.len()).unwrap();
    copy(device, range.strided(), last.view_mut([n]).unwrap().strided()).unwrap();
    last.download().unwrap()
}

fn row() -> Vec<f32> {
    (0..COLS).map(number).collect()
}

fn close(got: &[f32], reference: impl Iterator<Item = f64>) {
    let reference: Vec<f64> = reference.collect();
    let near = |(x, y): (&f32, &f64)| (f64::from(*x) - y).abs() <= 1e-4 * (1.0 + y.abs());
    assert!(got.len() == reference.len() && got.iter().zip(&reference).all(near), "{got:?}, not {reference:?}");
}

/// Checks reductions, scans, copies and gathers of `rows` rows.
fn words(device: &Device, rows: usize) {
    let n = rows * COLS;
    let x = ending(device, n, &row());
    let sum: f32 = row().iter().sum();
    let (mut y, mut one, mut place) =
        (device.zeros::<f32>(n).unwrap(), device.zeros(1).unwrap(), device.zeros(1).unwrap());
    reduce::all(device, Sum, &x.view([rows, COLS]).unwrap(), &mut one.view_mut([1]).unwrap()).unwrap();
    reduce::rows(device, ArgMax, &x.view([1, n]).unwrap(), &mut place.view_mut([1]).unwrap()).unwrap();
    assert_eq!(one.download().unwrap(), [sum]);
    let top = row().iter().position(|x| *x == 5.0).unwrap();
    assert_eq!(place.download().unwrap(), [(n - COLS + top) as u32]);
    scan::inclusive(device, &x.view([1, n]).unwrap(), &mut y.view_mut([1, n]).unwrap()).unwrap();
    assert_eq!(end(device, &y, 1), [sum]);
    // The last row becomes the last column of the transpose.
    let transposed = &mut y.view_mut([1, COLS, rows]).unwrap();
    transpose_batch(device, &x.view([1, rows, COLS]).unwrap(), transposed).unwrap();
    let mut last = device.zeros::<f32>(COLS).unwrap();
    let column = y.view([COLS, rows]).unwrap().strided().transposed().slice(rows - 1..rows).unwrap();
    copy(device, column, last.view_mut([1, COLS]).unwrap().strided()).unwrap();
    assert_eq!(last.download().unwrap(), row());
    let index = device.upload(&[(rows - 1) as u32]).unwrap();
    let to = &mut last.view_mut([1, COLS]).unwrap();
    gather(device, &x.view([rows, COLS]).unwrap(), &index.view([1]).unwrap(), to).unwrap();
    assert_eq!(last.download().unwrap(), row());
}

/// Checks softmax, norms and sampling of `rows` rows.
fn rows(device: &Device, rows: usize) {
    let shape = [rows, COLS];
    let x = ending(device, rows * COLS, &row());
    let (x, mut y) = (x.view(shape).unwrap(), device.zeros::<f32>(rows * COLS).unwrap());
    Softmax::new().run(device, &x, &mut y.view_mut(shape).unwrap()).unwrap();
    let sum: f64 = row().iter().map(|x| f64::from(*x).exp()).sum();
    close(&end(device, &y, COLS), row().iter().map(|x| f64::from(*x).exp() / sum));
    Norm::rms(0.0).run(device, &x, &mut y.view_mut(shape).unwrap()).unwrap();
    let square = row().iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / COLS as f64;
    close(&end(device, &y, COLS), row().iter().map(|x| f64::from(*x) / square.sqrt()));
    let mut tokens = device.zeros::<u32>(rows).unwrap();
    Sample::new(1).temperature(0.0).run(device, &x, &mut tokens.view_mut([rows]).unwrap()).unwrap();
    let top = row().iter().position(|x| *x == 5.0).unwrap();
    assert_eq!(end(device, &tokens, 1), [top as u32]);
}

/// Checks products of `rows` rows of floats, and of four times as many rows of bytes.
fn products(device: &Device, rows: usize) {
    let (a, b) = (ending(device, rows * COLS, &row()), device.upload(&row()).unwrap());
    let mut c = device.zeros::<f32>(rows).unwrap();
    let (a, b) = (a.view([1, rows, COLS]).unwrap(), b.view([1, COLS, 1]).unwrap());
    Gemm::new().run(device, &a, &b, &mut c.view_mut([1, rows, 1]).unwrap()).unwrap();
    let square: f32 = row().iter().map(|x| x * x).sum();
    assert_eq!(end(device, &c, 1), [square]);
    let bytes: Vec<i8> = row().iter().map(|x| *x as i8).collect();
    let rows = 4 * rows;
    let (a, b) = (ending(device, rows * COLS, &bytes), device.upload(&bytes).unwrap());
    let mut c = device.zeros::<i32>(rows).unwrap();
    let (a, b) = (a.view([1, rows, COLS]).unwrap(), b.view([1, 1, COLS]).unwrap());
    let (a, b) = (Quantized::new(a), Quantized::new(b));
    Igemm::new().transpose_b().run(device, a, b, &mut c.view_mut([1, rows, 1]).unwrap()).unwrap();
    assert_eq!(end(device, &c, 1), [square as i32]);
}

/// Checks attention of sequences of eight keys, stored as `T`. Only the last value of the last
/// sequence is not 0.
fn attention<T: Float + kernels_rs::attention::cache::StoredElement + GenericArgument + Number>(
    device: &Device,
    sequences: usize,
) {
    const KEYS: usize = 8;
    let n = sequences * KEYS * COLS;
    let of_v: Vec<T> = row().into_iter().map(T::from_f32).collect();
    let (q, k, v) =
        (device.zeros::<T>(sequences * COLS).unwrap(), device.zeros::<T>(n).unwrap(), ending(device, n, &of_v));
    let lengths = device.upload(&vec![KEYS as u32; sequences]).unwrap();
    let mut o = device.zeros::<T>(sequences * COLS).unwrap();
    let cache = [sequences, 1, KEYS, COLS];
    let (k, v) = (k.view(cache).unwrap(), v.view(cache).unwrap());
    let shape = [sequences, 1, COLS];
    let mut scratch = Scratch::new(device, shape, 1, KEYS).unwrap();
    let (of_q, lengths) = (q.view(shape).unwrap(), lengths.view([sequences]).unwrap());
    Decode::new()
        .run(device, &of_q, KvCache::new(k, v), &lengths, &mut o.view_mut(shape).unwrap(), &mut scratch)
        .unwrap();
    let reference = || row().into_iter().map(|x| f64::from(x) / KEYS as f64);
    let wide = |o: Vec<T>| o.into_iter().map(T::to_f32).collect::<Vec<_>>();
    close(&wide(end(device, &o, COLS)), reference());
    let shape = [sequences, 1, 1, COLS];
    let mut o = device.zeros::<T>(sequences * COLS).unwrap();
    let qkv = Qkv { q: q.view(shape).unwrap(), k, v };
    Attention::new().run(device, qkv, &mut o.view_mut(shape).unwrap(), None).unwrap();
    close(&wide(end(device, &o, COLS)), reference());
}

#[test]
fn cpu_calls_stay_inside_buffers() {
    let device = Device::cpu();
    words(&device, 70);
    rows(&device, 70);
    products(&device, 70);
    attention::<f32>(&device, 3);
}

/// Number of rows that exceed 2³¹ bytes.
const FAR_ROWS: usize = (1 << 31) / 4 / COLS + 70;

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_calls_stay_inside_buffers() {
    if super::is_emulated() {
        println!("skipped: the GPU is emulated");
        return;
    }
    let device = Device::cuda(0).unwrap();
    words(&device, FAR_ROWS);
    rows(&device, FAR_ROWS);
    products(&device, FAR_ROWS);
    attention::<f32>(&device, FAR_ROWS / 8);
}
