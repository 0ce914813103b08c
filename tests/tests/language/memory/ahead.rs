//! Asynchronous copies, and arrays that reuse the memory of others.

use super::values::{check, wide};
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::Device;
use runtime::testing::{Input, Random};

/// Computes column sums of x, reversed. Rows come through shared memory, one ahead; the last
/// threads copy no elements.
#[device]
pub fn sums_of(x: View<f32, 2>, mut y: ViewMut<f32, 1>) {
    let s = Shared::<f32, 2>::new([2, 48]);
    let mut coming = s.at(0).copy_async(x.at(0));
    let mut sum = 0.0;
    for row in 0..x.rows() {
        coming.wait();
        block::sync();
        let next = (row + 1) % 2;
        coming = if row + 1 < x.rows() { s.at(next).copy_async(x.at(row + 1)) } else { Pending::none() };
        if thread::x() < 48 {
            sum += s[(row % 2, 47 - thread::x())];
        }
    }
    coming.wait();
    if thread::x() < y.len() {
        y[thread::x()] = sum;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.rows() > 0, x.cols() <= 48, y.len() == 48)]
pub fn sums(x: View<f32, 2>, y: ViewMut<f32, 1>) {
    sums_of(x, y);
}

/// Begins two copies of halves, as floats and as scaled floats, and returns their token.
#[device]
fn begin(plain: Shared<f32, 2>, scaled: Shared<f32, 2>, x: View<f16, 2>, scale: f32) -> Pending {
    let first = plain.copy_async_map(x, |v| v.to_f32());
    first.and(scaled.copy_async_map(x, |v| v.to_f32() * scale))
}

/// Computes y ← plain + scaled tiles, with a token that begins as `Pending::none()`.
#[device]
pub fn tiles_of(x: View<f16, 2>, mut y: ViewMut<f32, 2>, scale: f32) {
    let (plain, scaled) = (Shared::<f32, 2>::new([8, 10]), Shared::<f32, 2>::padded([8, 10]));
    let mut coming = Pending::none();
    let steps = x.rows().div_ceil(8);
    for step in 0..steps + 1 {
        coming.wait();
        block::sync();
        let (row, col) = (thread::x() / 4, thread::x() % 4);
        if step > 0 {
            for k in 0..3 {
                let (r, c) = ((step - 1) * 8 + row, col + 4 * k);
                if r < y.rows() && c < y.cols() {
                    y[(r, c)] = plain[(row, c)] + scaled[(row, c)];
                }
            }
        }
        block::sync();
        coming = if step < steps { begin(plain, scaled, x.offset((step * 8, 0)), scale) } else { Pending::none() };
    }
    coming.wait();
}

#[kernel(block = 32, grid = 1)]
#[requires(y.rows() == x.rows(), y.cols() == x.cols(), x.cols() <= 10)]
pub fn tiles(x: View<f16, 2>, y: ViewMut<f32, 2>, scale: f32) {
    tiles_of(x, y, scale);
}

/// Reads the second plane of `s`, and then reuses its memory for the sums.
#[device]
pub fn laid_over_of(x: View<f16, 2>, mut y: ViewMut<f32, 1>, mut bits: ViewMut<u32, 1>) {
    let s = Shared::<f16, 3>::swizzled([2, 8, 64]);
    s.at(1).copy_from(x);
    block::sync();
    let (row, col) = (thread::x() / 8, thread::x() % 8);
    let mut sum = 0.0;
    for k in unroll(0..8) {
        sum += s[(1, row, col * 8 + k)].to_f32();
    }
    block::sync();
    let mut p = Shared::<f32, 2>::over(s.at(1), [8, 9]);
    p[(row, col)] = sum;
    block::sync();
    let mut total = 0.0;
    for k in unroll(0..8) {
        total += p[(row, k)];
    }
    y[thread::x()] = total;
    // The same words as integers.
    let words = p.cast::<u32>();
    bits[thread::x()] = words[(row, col)];
}

#[kernel(block = 64, grid = 1)]
#[requires(x.rows() == 8, x.cols() == 64, y.len() == 64, bits.len() == 64)]
pub fn laid_over(x: View<f16, 2>, y: ViewMut<f32, 1>, bits: ViewMut<u32, 1>) {
    laid_over_of(x, y, bits);
}

/// Makes masked accesses to shared memory, from loads marked as streamed.
#[device]
pub fn masked_of(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let s = Shared::<f32, 2>::new([4, 6]);
    let (row, col) = (thread::x() / 4, thread::x() % 4);
    s.fill(0.5);
    block::sync();
    if col < 2 {
        s.store_in((row, col * 4), x.streaming().load_or::<4>((row, col * 4), 0.25));
    }
    block::sync();
    let [_, next] = s.load_or::<2>((row, 2 * col), 7.0);
    let found = s.get((row, col * 2)).unwrap_or(-1.0);
    y[(row, col)] = found + next * 100.0 + (s.rows() * s.cols()) as f32 * 10_000.0;
    if row == 3 {
        y[(row, col)] += y.streaming()[(row, col)] + x.bypass_l1()[(0, col)];
    }
}

#[kernel(block = 16, grid = 1)]
#[requires(x.rows() == 4, x.cols() >= 4, y.rows() == 4, y.cols() == 4)]
pub fn masked(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    masked_of(x, y);
}

fn small(n: usize) -> Vec<f32> {
    let mut random = Random::new(n as u64);
    (0..n).map(|_| random.below(64) as f32 - 32.0).collect()
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|v| f16::from_f32(*v)).collect()
}

fn sums_agree(gpu: Option<&Device>) {
    for (rows, cols) in [(1, 48), (2, 40), (7, 48)] {
        let x = small(rows * cols);
        let column = |c: usize| if c < cols { (0..rows).map(|r| x[r * cols + c]).sum() } else { 0.0 };
        let expected: Vec<f32> = (0..48).map(|i| column(47 - i)).collect();
        let inputs = vec![Input::view(&x, [rows, cols]), Input::view(&[0f32; 48], [48])];
        check(sums::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
        let mut y = vec![0f32; 48];
        // SAFETY: each thread writes its own elements, and the vectors outlive the run.
        unsafe {
            let (x, y) = (View::host(&x, [rows, cols]), ViewMut::host(&mut y, [48]));
            host::run([1, 1, 1], [64, 1, 1], || sums_of(x, y));
        }
        assert_eq!(y, expected);
    }
}

fn tiles_agree(gpu: Option<&Device>) {
    for (rows, cols) in [(8, 10), (3, 7), (29, 9)] {
        let values = small(rows * cols);
        let x = halves(&values);
        let expected: Vec<f32> = values.iter().map(|v| v + v * 0.5).collect();
        let zeros = vec![0f32; rows * cols];
        let inputs = vec![Input::view(&x, [rows, cols]), Input::view(&zeros, [rows, cols]), Input::scalar(0.5f32)];
        check(tiles::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
        let mut y = zeros;
        // SAFETY: as in `sums_agree`.
        unsafe {
            let (x, y) = (View::host(&x, [rows, cols]), ViewMut::host(&mut y, [rows, cols]));
            host::run([1, 1, 1], [32, 1, 1], || tiles_of(x, y, 0.5));
        }
        assert_eq!(y, expected);
    }
}

fn laid_over_agrees(gpu: Option<&Device>) {
    let values = small(512);
    let x = halves(&values);
    let part = |i: usize| values[i * 8..][..8].iter().sum::<f32>();
    let parts: Vec<f32> = (0..64).map(part).collect();
    let expected: Vec<f32> = (0..64).map(|i| parts[i / 8 * 8..][..8].iter().sum()).collect();
    let words: Vec<f64> = parts.iter().map(|p| f64::from(p.to_bits())).collect();
    let (zeros, none) = (vec![0f32; 64], vec![0u32; 64]);
    let inputs = vec![Input::view(&x, [8, 64]), Input::view(&zeros, [64]), Input::view(&none, [64])];
    check(laid_over::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected)), (2, words)]);
    let (mut y, mut bits) = (zeros, none);
    // SAFETY: as in `sums_agree`.
    unsafe {
        let (x, y, bits) = (View::host(&x, [8, 64]), ViewMut::host(&mut y, [64]), ViewMut::host(&mut bits, [64]));
        host::run([1, 1, 1], [64, 1, 1], || laid_over_of(x, y, bits));
    }
    assert_eq!((y, bits), (expected, parts.iter().map(|p| p.to_bits()).collect()));
}

fn masked_agrees(gpu: Option<&Device>) {
    for cols in [4usize, 5, 6, 8] {
        let x = small(4 * cols);
        let at = |row: usize, col: usize| match (col < 6, col < cols) {
            (true, true) => Some(x[row * cols + col]),
            (inside, _) => inside.then_some(0.25),
        };
        let value = |i: usize| {
            let (row, col) = (i / 4, i % 4);
            let first = at(row, 2 * col).unwrap_or(-1.0) + at(row, 2 * col + 1).unwrap_or(7.0) * 100.0 + 240_000.0;
            if row == 3 { first + (first + x[col]) } else { first }
        };
        let expected: Vec<f32> = (0..16).map(value).collect();
        let zeros = vec![0f32; 16];
        let inputs = vec![Input::view(&x, [4, cols]), Input::view(&zeros, [4, 4])];
        check(masked::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&expected))]);
        let mut y = zeros;
        // SAFETY: as in `sums_agree`.
        unsafe {
            let (x, y) = (View::host(&x, [4, cols]), ViewMut::host(&mut y, [4, 4]));
            host::run([1, 1, 1], [16, 1, 1], || masked_of(x, y));
        }
        assert_eq!(y, expected);
    }
    let ptx = masked::PTX;
    assert!(ptx.contains("ld.global.cs.nc.f32") && ptx.contains("ld.global.cs.f32"), "{ptx}");
}

agreements! {
    a_row_ahead gpu_a_row_ahead sums_agree
    tokens_of_functions_and_none gpu_tokens_of_functions_and_none tiles_agree
    arrays_over_others gpu_arrays_over_others laid_over_agrees
    masked_accesses gpu_masked_accesses masked_agrees
}

#[test]
fn ptx_of_copies_ahead_is_as_accepted() {
    insta::assert_snapshot!("copied_ahead", sums::PTX);
    [sums::ARTIFACT, tiles::ARTIFACT, laid_over::ARTIFACT, masked::ARTIFACT]
        .into_iter()
        .for_each(super::every_target::assemble);
}
