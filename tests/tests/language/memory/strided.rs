//! Views of any strides: their loads and stores, launches that accept and reject them, and reports
//! of indices out of bounds.

use super::every_target;
use super::values::{check, wide};
use kernel_dsl::prelude::*;
use kernel_dsl::{Kernel, host};
use runtime::testing::Input;
use runtime::{BufferStrided, Device};

/// Computes y ← a·x + y on any strides.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() == y.len(), y.stride(0) > 0)]
fn axpy(a: f32, x: Strided<f32, 1>, mut y: StridedMut<f32, 1>) {
    let i = grid::index();
    if i < x.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}

/// Transposes x by tiles in shared memory, and stores the strides.
#[kernel(block = (8, 8), grid = (y.cols().div_ceil(8), y.rows().div_ceil(8)))]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), strides.len() == 2)]
fn copy(x: Strided<f32, 2>, mut y: ViewMut<f32, 2>, strides: &mut [u32]) {
    let tile = Shared::<f32, 2>::new([8, 8]);
    let (row, col) = (block::y() * 8 + thread::y(), block::x() * 8 + thread::x());
    tile.copy_from(x.offset((block::y() * 8, block::x() * 8)));
    block::sync();
    if row < y.rows() && col < y.cols() {
        y[(row, col)] = tile[(thread::y(), thread::x())];
    }
    if grid::index() == 0 && thread::y() == 0 && block::y() == 0 {
        strides[0] = x.stride(0) as u32;
        strides[1] = x.stride(1) as u32;
    }
}

/// Computes sums of columns, as rows of the transpose. Elements come through a variable, `at`,
/// `get` and a function.
#[device]
fn sum_of(row: Strided<f32, 1>) -> f32 {
    let mut sum = 0.0;
    for i in 0..row.len() {
        sum += row[i];
    }
    sum
}

#[kernel(block = 32, grid = 1)]
#[requires(sums.len() == x.cols(), x.cols() <= 32, x.rows() > 0)]
fn columns(x: View<f32, 2>, mut sums: StridedMut<f32, 1>) {
    let j = thread::x();
    let by_column = x.strided().transposed();
    let mut moving = by_column;
    if j < sums.len() {
        moving = moving.offset((j, 0));
        sums[j] = sum_of(moving.at(0)) + by_column.get((j, 0)).unwrap_or(1e9) - by_column.at(j)[0];
    }
}

#[kernel(block = 32, grid = 1)]
fn counted(values: &[u32], counts: StridedMut<u32, 2>) {
    let v = values[thread::x()] as usize;
    counts.fetch_add((v / 2 % 2, v % 2), 1);
}

fn axpy_agrees(gpu: Option<&Device>) {
    for (n, sx, sy) in [(1, 1, 1), (40, 1, 3), (40, 5, 2), (33, 0, 1), (7, 2, 40)] {
        let x: Vec<f32> = (0..sx * (n - 1) + 1).map(|i| i as f32 * 0.5).collect();
        let y: Vec<f32> = (0..sy * (n - 1) + 1).map(|i| 100.0 - i as f32).collect();
        let at = |i: usize| 2.0f32.mul_add(x[i * sx], y[i * sy]);
        let expected: Vec<f32> = (0..n).map(at).collect();
        let inputs = vec![Input::scalar(2.0f32), Input::strided(&x, [n], [sx]), Input::strided(&y, [n], [sy])];
        check(axpy::ARTIFACT, &[], gpu, inputs, vec![(2, wide(&expected))]);
    }
    every_target::assemble(axpy::ARTIFACT);
}

fn copies_agree(gpu: Option<&Device>) {
    for (rows, cols, strides) in [(3, 5, [1, 3]), (9, 17, [40, 2]), (16, 8, [8, 1]), (10, 10, [1, 10])] {
        let x: Vec<f32> = (0..rows * strides[0] + cols * strides[1]).map(|i| i as f32).collect();
        let expected = (0..rows * cols).map(|i| x[i / cols * strides[0] + i % cols * strides[1]].into()).collect();
        let y = vec![0f32; rows * cols];
        let inputs =
            vec![Input::strided(&x, [rows, cols], strides), Input::view(&y, [rows, cols]), Input::slice(&[0u32; 2])];
        let seen = strides.map(|s| s as f64).to_vec();
        check(copy::ARTIFACT, &[], gpu, inputs, vec![(1, expected), (2, seen)]);
    }
    every_target::assemble(copy::ARTIFACT);
}

fn columns_of(x: View<f32, 2>, mut sums: StridedMut<f32, 1>) {
    let j = thread::x();
    let by_column = x.strided().transposed();
    let mut moving = by_column;
    if j < sums.len() {
        moving = moving.offset((j, 0));
        sums[j] = sum_of(moving.at(0)) + by_column.get((j, 0)).unwrap_or(1e9) - by_column.at(j)[0];
    }
}

fn columns_agree(gpu: Option<&Device>) {
    for (rows, cols) in [(1, 1), (4, 7), (5, 32)] {
        let x: Vec<f32> = (0..rows * cols).map(|i| (i % 17) as f32).collect();
        let sums: Vec<f32> = (0..cols).map(|j| (0..rows).map(|i| x[i * cols + j]).sum()).collect();
        let out = vec![0f32; cols * 2];
        let inputs = vec![Input::view(&x, [rows, cols]), Input::strided(&out, [cols], [2])];
        check(columns::ARTIFACT, &[], gpu, inputs, vec![(1, wide(&sums))]);
        let mut host = out.clone();
        // SAFETY: each thread writes its own element, and the vectors outlive the run.
        unsafe {
            let (x, sums) = (View::host(&x, [rows, cols]), StridedMut::host(&mut host, [cols], [2]));
            host::run([1, 1, 1], [32, 1, 1], || columns_of(x, sums));
        }
        let ours: Vec<f32> = host.iter().step_by(2).copied().collect();
        assert_eq!((&ours, host[1]), (&sums, 0.0), "rustc's reading");
    }
    every_target::assemble(columns::ARTIFACT);
}

fn counts_agree(gpu: Option<&Device>) {
    let values: Vec<u32> = (0..32).map(|i| i * i).collect();
    let count = |v| values.iter().filter(|x| *x % 4 == v).count() as f64;
    let inputs = vec![Input::slice(&values), Input::strided(&[0u32; 12], [2, 2], [1, 9])];
    check(counted::ARTIFACT, &[], gpu, inputs, vec![(1, (0..4).map(count).collect())]);
    every_target::assemble(counted::ARTIFACT);
}

agreements! {
    strides_of_vectors gpu_strides_of_vectors axpy_agrees
    strides_of_matrices gpu_strides_of_matrices copies_agree
    transposed_rows gpu_transposed_rows columns_agree
    strided_counts gpu_strided_counts counts_agree
}

/// Launches with rows, columns and views of a buffer, and with views that are rejected.
fn launches(device: &Device) {
    let matrix: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let (x, mut y) = (device.upload(&matrix).unwrap(), device.upload(&[100f32; 12]).unwrap());
    // Column 1 of a 3 × 4 matrix, onto row 0 of y viewed as 4 × 3.
    axpy::launch(device, 1.0, x.strided(1, [3], [4]).unwrap(), y.range_mut(0..3).unwrap()).unwrap();
    assert_eq!(y.download().unwrap()[..4], [101.0, 105.0, 109.0, 100.0]);
    // A contiguous view is accepted for any strides as well.
    axpy::launch(device, 1.0, x.range(0..3).unwrap(), y.strided_mut(3, [3], [4]).unwrap()).unwrap();
    assert_eq!(y.download().unwrap()[3..], [100.0, 100.0, 100.0, 100.0, 101.0, 100.0, 100.0, 100.0, 102.0]);
    let (mut strides, mut out) = (device.zeros::<u32>(2).unwrap(), device.zeros::<f32>(12).unwrap());
    let transposed: BufferStrided<f32, 2> = x.view([3, 4]).unwrap().strided().transposed();
    copy::launch(device, transposed, out.view_mut([4, 3]).unwrap(), &mut strides).unwrap();
    assert_eq!(out.download().unwrap(), [0.0, 4.0, 8.0, 1.0, 5.0, 9.0, 2.0, 6.0, 10.0, 3.0, 7.0, 11.0]);
    assert_eq!(strides.download().unwrap(), [1, 4]);

    let why = |outcome: Result<(), runtime::Error>| outcome.unwrap_err().to_string();
    assert!(x.strided(2, [3], [4]).is_ok());
    let beyond = x.strided(4, [3], [4]).unwrap_err().to_string();
    assert!(beyond.contains("the view spans 9 elements from element 4 on"), "{beyond}");
    let twice = y.strided_mut(0, [3, 4], [1, 1]).unwrap_err().to_string();
    assert!(twice.contains("two indices of the writable view select the same element"), "{twice}");
    assert!(x.strided(0, [3, 4], [1, 1]).is_ok());
    assert!(x.strided(0, [usize::MAX, 2], [usize::MAX, 1]).is_err());
    let lengths = why(axpy::launch(device, 1.0, x.strided(1, [2], [4]).unwrap(), y.range_mut(0..3).unwrap()));
    assert!(lengths.contains("x.len() is 2, y.len() is 3"), "{lengths}");
    let standing = why(axpy::launch(device, 1.0, x.strided(0, [1], [1]).unwrap(), y.strided_mut(0, [1], [0]).unwrap()));
    assert!(standing.contains("y's strides are [0]"), "{standing}");
}

#[test]
fn cpu_launches_take_strided_views() {
    launches(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_launches_take_strided_views() {
    launches(&Device::cuda(0).unwrap());
}

#[kernel(block = 32, grid = 1)]
fn past(x: Strided<f32, 2>, y: &mut [f32]) {
    y[thread::x()] = x[(thread::x(), 1)];
}

/// Checks that indices are compared with the extents, for any strides.
fn out_of_bounds_is_reported(device: &Device) {
    let (x, mut y) = (device.upload(&[1f32; 64]).unwrap(), device.upload(&[0f32; 32]).unwrap());
    past::launch(device, x.strided(0, [32, 2], [1, 32]).unwrap(), &mut y).unwrap();
    let wrong = past::launch(device, x.strided(0, [31, 2], [1, 32]).unwrap(), &mut y).unwrap_err().to_string();
    assert!(wrong.contains("index (31, 1) is out of bounds of `x`, which is 31 × 2"), "{wrong}");
}

#[test]
fn cpu_bounds_of_strided_views_are_checked() {
    out_of_bounds_is_reported(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_bounds_of_strided_views_are_checked() {
    out_of_bounds_is_reported(&Device::cuda(0).unwrap());
}

/// Uses cache hints of views that pass through a variable and out of a branch.
#[kernel(block = 32, grid = 1)]
fn streamed(n: usize, x: View<f32, 1>, y: &mut [f32]) {
    let mut moving = x.streaming();
    let mut sum = 0.0;
    for _ in rolled(0..n) {
        sum += moving[thread::x()];
        moving = moving.offset(32);
    }
    let chosen = if n > 3 { x.bypass_l1() } else { x.offset(1).bypass_l1() };
    y[thread::x()] = sum + chosen[thread::x()];
}

#[test]
fn policies_of_variables_become_cache_operators() {
    let loads: Vec<_> = streamed::PTX.lines().filter(|l| l.contains("ld.global")).map(str::trim).collect();
    assert!(
        matches!(loads[..], [a, b] if a.starts_with("ld.global.cs.nc.f32") && b.starts_with("ld.global.cg.f32")),
        "{loads:?}"
    );
    let x: Vec<f32> = (0..200).map(|i| i as f32).collect();
    let sums: Vec<f32> = (0..32).map(|i| x[i] + x[i + 32] + x[i + 1]).collect();
    let inputs = vec![Input::scalar(2usize), Input::view(&x, [200]), Input::slice(&[0f32; 32])];
    check(streamed::ARTIFACT, &[], None, inputs, vec![(2, wide(&sums))]);
}
