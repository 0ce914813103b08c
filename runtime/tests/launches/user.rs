//! User-visible behavior of kernels on the CPU device: the allowed names, and the detected faults.

use kernel_dsl::ScalarElement;
use kernel_dsl::prelude::*;
use runtime::{Device, DeviceBuffer, Result};

#[kernel(block = 32, grid = 1)]
fn plane(v: View<f32, 3>, out: &mut [f32], y: usize) {
    let row = v.at(0).at(y);
    if thread::x() < 4 {
        out[thread::x()] = row[thread::x()];
    }
}

/// Checks an index such as `v.at(0).at(4)`, which begins in the buffer, but in another plane.
#[test]
fn an_index_that_at_fixed_has_its_extent() -> Result<()> {
    let device = Device::cpu();
    let v: Vec<f32> = (0..24).map(|i| i as f32).collect();
    let (v, mut out) = (device.upload(&v)?, device.zeros(4)?);
    plane::launch(&device, v.view([2, 3, 4])?, &mut out, 2)?;
    assert_eq!(out.download()?, [8.0, 9.0, 10.0, 11.0]);
    let error = plane::launch(&device, v.view([2, 3, 4])?, &mut out, 4).expect_err("there are 3 rows");
    assert!(error.to_string().contains("is out of bounds of `v`"), "{error}");
    Ok(())
}

#[kernel(block = 32, grid = 1)]
fn either(a: View<f32, 2>, b: View<f32, 2>, out: &mut [f32], first: bool) {
    let row = if first { a.at(1) } else { b.at(0) };
    if thread::x() < row.len() {
        out[thread::x()] = row[thread::x()];
    }
}

#[test]
fn row_view_can_leave_a_branch() -> Result<()> {
    let device = Device::cpu();
    let (a, b) = (device.upload(&[0.0f32, 1.0, 2.0, 3.0])?, device.upload(&[4.0f32, 5.0, 6.0, 7.0])?);
    let mut out = device.zeros(2)?;
    for (first, expected) in [(true, [2.0, 3.0]), (false, [4.0, 5.0])] {
        either::launch(&device, a.view([2, 2])?, b.view([2, 2])?, &mut out, first)?;
        assert_eq!(out.download()?, expected);
    }
    Ok(())
}

#[kernel(block = 32, grid = 1)]
fn steps(out: &mut [u32], step: usize) {
    let mut n = 0;
    for _ in (0..10).step_by(step) {
        n += 1;
    }
    out[thread::x()] = n;
}

/// Checks that a step of zero is reported and ends the launch.
#[test]
fn a_step_of_zero_is_reported() -> Result<()> {
    let device = Device::cpu();
    let mut out = device.zeros(32)?;
    steps::launch(&device, &mut out, 3)?;
    assert_eq!(out.download()?, [4; 32]);
    let error = steps::launch(&device, &mut out, 0).expect_err("the loop would not end");
    assert!(error.to_string().contains("the loop steps by 0"), "{error}");
    assert!(!error.to_string().contains("goes on"), "{error}");
    Ok(())
}

#[allow(non_snake_case)]
#[kernel(block = 32, grid = 1)]
fn names(x: &[f32], x_len: f32, größe: f32, r#in: f32, WARP_SZ: f32, tid: f32, ret: &mut [f32]) {
    let mov = thread::x();
    ret[mov] = x[mov] + x_len + größe + r#in + WARP_SZ + tid;
}

#[test]
fn parameters_have_any_name() -> Result<()> {
    let device = Device::cpu();
    let (x, mut out) = (device.upload(&[1.0f32; 32])?, device.zeros(32)?);
    names::launch(&device, &x, 2.0, 4.0, 8.0, 16.0, 32.0, &mut out)?;
    assert_eq!(out.download()?, [63.0; 32]);
    for name in [".u32 x_len,", ".f32 x_len_,", ".f32 gr__e,", ".f32 in,", ".f32 WARP_SZ_,"] {
        assert!(names::PTX.contains(name), "{name}\n{}", names::PTX);
    }
    Ok(())
}

/// A tensor whose extents are an array, as a host describes it.
#[device]
#[derive(Clone, Copy, Debug, DeviceCopy)]
struct Extents {
    extent: [i32; 3],
    scale: u32,
}

#[kernel(block = 32, grid = p.extent[1] as usize)]
#[requires(p.extent[0] as usize == y.len())]
fn scaled(p: Extents, y: &mut [u32]) {
    let i = thread::x();
    if block::x() == 0 && i < y.len() {
        y[i] *= p.scale;
    }
}

/// Checks that launch conditions and extents read elements of an array inside a parameter.
#[test]
fn launch_conditions_read_arrays_in_parameters() -> Result<()> {
    let device = Device::cpu();
    let mut y = device.upload(&[1u32, 2, 3])?;
    let of = |extent| Extents { extent, scale: 5 };
    scaled::launch(&device, of([3, 2, 9]), &mut y)?;
    assert_eq!(y.download()?, [5, 10, 15]);
    let error = scaled::launch(&device, of([4, 2, 9]), &mut y).expect_err("y has three elements");
    let expected = "requires `p.extent[0] as usize == y.len()`: p.extent[0] is 4, y.len() is 3";
    assert!(error.to_string().contains(expected), "{error}");
    let error = scaled::launch(&device, of([3, -1, 9]), &mut y).expect_err("no grid has −1 blocks");
    assert!(error.to_string().contains("p.extent[1] is -1"), "{error}");
    assert_eq!(y.download()?, [5, 10, 15]);
    Ok(())
}

/// Applies each assignment operator that the bound `Float` includes.
#[device]
fn assigned_float<T: Float>(x: T, y: T) -> T {
    let mut z = y;
    z += x * y;
    z -= T::from_f32(0.5);
    z *= x;
    z /= T::from_f32(3.0);
    z
}

/// Applies each assignment operator that the bound `Integer` includes.
#[device]
fn assigned_integer<T: Integer>(x: T, y: T) -> T {
    let mut z = x;
    z &= y;
    z |= x;
    z ^= y;
    z <<= 3;
    z >>= 1;
    if z != T::default() {
        z /= y;
    }
    z
}

#[kernel(block = 32, grid = y.len().div_ceil(32), instances(T = f32 | f64 | f16 | bf16 | Float16<4, 7>))]
#[requires(x.len() == y.len())]
fn assign_floats<T: Float>(x: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = assigned_float(x[i], y[i]);
    }
}

#[kernel(block = 32, grid = y.len().div_ceil(32), instances(T = u8 | i16 | u32 | i64))]
#[requires(x.len() == y.len())]
fn assign_integers<T: Integer>(x: &[T], y: &mut [T]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = assigned_integer(x[i], y[i]);
    }
}

#[test]
fn generic_numbers_have_the_assignment_operators() -> Result<()> {
    fn check<T: ScalarElement>(
        values: [T; 4],
        launch: impl Fn(&Device, &DeviceBuffer<T>, &mut DeviceBuffer<T>) -> Result<()>,
        host: impl Fn(T, T) -> T,
    ) -> Result<()> {
        let device = Device::cpu();
        let turned = [values[2], values[3], values[1], values[1]];
        let (x, mut y) = (device.upload(&values)?, device.upload(&turned)?);
        launch(&device, &x, &mut y)?;
        let expected: Vec<_> = values.iter().zip(turned).map(|(x, y)| host(*x, y).bits()).collect();
        assert_eq!(y.download()?.into_iter().map(T::bits).collect::<Vec<_>>(), expected);
        Ok(())
    }
    fn floats<T: Float>(launch: impl Fn(&Device, &DeviceBuffer<T>, &mut DeviceBuffer<T>) -> Result<()>) -> Result<()> {
        check([1.5, -2.25, 0.125, 7.0].map(T::from_f32), launch, assigned_float)
    }
    floats(|device, x, y| assign_floats::<f32>::launch(device, x, y))?;
    floats(|device, x, y| assign_floats::<f64>::launch(device, x, y))?;
    floats(|device, x, y| assign_floats::<f16>::launch(device, x, y))?;
    floats(|device, x, y| assign_floats::<bf16>::launch(device, x, y))?;
    floats(|device, x, y| assign_floats::<Float16<4, 7>>::launch(device, x, y))?;
    check([9u8, 2, 5, 7], |device, x, y| assign_integers::<u8>::launch(device, x, y), assigned_integer)?;
    check([-9i16, 2, 5, 7], |device, x, y| assign_integers::<i16>::launch(device, x, y), assigned_integer)?;
    check([9u32, 2, 5, 7], |device, x, y| assign_integers::<u32>::launch(device, x, y), assigned_integer)?;
    check([-9i64, 2, 5, 7], |device, x, y| assign_integers::<i64>::launch(device, x, y), assigned_integer)
}
