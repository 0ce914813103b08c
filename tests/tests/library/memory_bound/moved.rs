//! Copies, transposes, fills, element-wise functions.

use super::arrays::{Stored, holds, indices};
use kernel_dsl::half::f16;
use kernel_dsl::{GenericArgument, Number};
use kernels_rs::activation::{geglu, silu, swiglu};
use kernels_rs::elementwise::{gate, map, map2, map3};
use kernels_rs::permute::{copy, fill, transpose_batch};
use runtime::Device;
use runtime::testing::{Draw, Random};

on_each_device! {
    cpu_copies gpu_copies copies;
    cpu_transposes gpu_transposes transposes;
    cpu_fills gpu_fills fills;
    cpu_maps gpu_maps maps;
    cpu_gates gpu_gates gates;
}

const SHAPES: [[usize; 4]; 9] = [
    [1, 1, 1, 1],
    [2, 3, 4, 5],
    [1, 1, 7, 64],
    [3, 1, 20, 33],
    [2, 2, 16, 32],
    [1, 40, 1, 24],
    [2, 0, 3, 3],
    [5, 1, 1, 1],
    [1, 2, 70, 18],
];

/// Returns random elements.
fn all<T: Draw>(random: &mut Random, n: usize) -> Vec<T> {
    random.values(n)
}

fn same<T: PartialEq + Copy + Into<f64>>(expected: T, got: T) -> Result<(), f64> {
    if got == expected { Ok(()) } else { Err(expected.into()) }
}

fn copies(device: &Device) {
    fn of<T: Draw + Number + GenericArgument + Into<f64>>(device: &Device, random: &mut Random) {
        for extents in SHAPES {
            for _ in 0..3 {
                let mut of_x = extents;
                of_x[random.below(4)] = 1;
                let from = if random.below(3) == 0 { of_x } else { extents };
                let x = Stored::new(device, random, from, all::<T>);
                let mut y = Stored::new(device, random, extents, all::<T>);
                copy(device, x.view(), y.view_mut()).unwrap();
                let what = format!("{from:?} by {:?} to {extents:?} by {:?}", x.strides, y.strides);
                holds(&what, &y, |at, got| same(x.at(at), got));
            }
        }
    }
    let mut random = Random::new(11);
    of::<f32>(device, &mut random);
    of::<f16>(device, &mut random);
    of::<i8>(device, &mut random);
    of::<f64>(device, &mut random);
}

fn transposes(device: &Device) {
    let mut random = Random::new(12);
    for [batch, rows, cols] in [[1, 1, 1], [2, 64, 64], [3, 65, 33], [1, 16, 200], [1, 0, 3], [2, 5, 4]] {
        let x = device.upload(&random.values::<f32>(batch * rows * cols)).unwrap();
        let mut y = device.zeros::<f32>(batch * rows * cols).unwrap();
        let from = x.view([batch, rows, cols]).unwrap();
        transpose_batch(device, &from, &mut y.view_mut([batch, cols, rows]).unwrap()).unwrap();
        let (x, y) = (x.download().unwrap(), y.download().unwrap());
        for [_, b, r, c] in indices([1, batch, rows, cols]) {
            assert_eq!(y[(b * cols + c) * rows + r], x[(b * rows + r) * cols + c], "{batch} of {rows} × {cols}");
        }
    }
    let (x, mut y) = (device.zeros::<f32>(6).unwrap(), device.zeros::<f32>(6).unwrap());
    assert!(transpose_batch(device, &x.view([1, 2, 3]).unwrap(), &mut y.view_mut([1, 2, 3]).unwrap()).is_err());
    // One matrix does not match the transposes of several.
    let mut many = device.zeros::<f32>(30).unwrap();
    let refused = transpose_batch(device, &x.view([1, 2, 3]).unwrap(), &mut many.view_mut([5, 3, 2]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("y: extents [5, 3, 2], expected [1, 3, 2]"), "{said}");
}

fn fills(device: &Device) {
    let mut random = Random::new(13);
    for extents in SHAPES {
        let mut y = Stored::new(device, &mut random, extents, all::<f32>);
        fill(device, 2.5f32, y.view_mut()).unwrap();
        holds(&format!("{extents:?}"), &y, |_, got| same(2.5, got));
        let mut y = Stored::new(device, &mut random, extents, all::<i8>);
        fill(device, -3i8, y.view_mut()).unwrap();
        holds(&format!("{extents:?}"), &y, |_, got| same(-3, got));
    }
}

#[kernel_dsl::device(value)]
fn difference(a: f32, b: f32) -> f32 {
    a - b
}

#[kernel_dsl::device(value)]
fn product_and_sum(a: f32, b: f32, c: f32) -> f32 {
    a * b + c
}

/// Compares within `units` units in the last place.
fn near(expected: f64, got: f32, units: f64) -> Result<(), f64> {
    let off = units * 2f64.powi(-24) * expected.abs() + 1e-44;
    if (f64::from(got) - expected).abs() <= off { Ok(()) } else { Err(expected) }
}

/// Checks functions defined outside the library, of one to three inputs that are broadcast
/// separately.
fn maps(device: &Device) {
    let mut random = Random::new(14);
    for extents in SHAPES {
        for _ in 0..2 {
            let mut some = || {
                let mut of = extents;
                for n in &mut of {
                    *n = if random.below(4) == 0 { 1 } else { *n };
                }
                Stored::new(device, &mut random, of, all::<f32>)
            };
            let [a, b, c] = [some(), some(), some()];
            let mut y = Stored::new(device, &mut random, extents, all::<f32>);
            let what = format!("{:?}, {:?}, {:?} to {extents:?} by {:?}", a.extents, b.extents, c.extents, y.strides);
            let [va, vb, vc] = [&a, &b, &c].map(|x| move |at| f64::from(x.at(at)));
            map(device, silu {}, a.view(), y.view_mut()).unwrap();
            holds(&what, &y, |at, got| near(va(at) / (1.0 + (-va(at)).exp()), got, 6.0));
            map2(device, difference {}, a.view(), b.view(), y.view_mut()).unwrap();
            holds(&what, &y, |at, got| same(a.at(at) - b.at(at), got));
            map3(device, product_and_sum {}, a.view(), b.view(), c.view(), y.view_mut()).unwrap();
            holds(&what, &y, |at, got| {
                let (product, sum) = (va(at) * vb(at), va(at) * vb(at) + vc(at));
                let off = (product.abs() + sum.abs()) * 2f64.powi(-24) + 1e-44;
                if (f64::from(got) - sum).abs() <= off { Ok(()) } else { Err(sum) }
            });
        }
    }
    // Different element types, and a row that is broadcast.
    let (a, b) = (random.values::<f16>(5 * 24), random.values::<f32>(24));
    let (da, db) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let mut y = device.zeros::<f16>(5 * 24).unwrap();
    let (va, vb) = (da.view([5, 24]).unwrap().strided(), db.view([24]).unwrap().strided());
    map2(device, difference {}, va, vb, y.view_mut([5, 24]).unwrap().strided()).unwrap();
    for (i, y) in y.download().unwrap().into_iter().enumerate() {
        assert_eq!(y, f16::from_f32(a[i].to_f32() - b[i % 24]), "at {i}");
    }
    assert!(map2(device, difference {}, va, va, y.view_mut([24, 5]).unwrap().strided()).is_err());
}

/// Checks gates with both halves in one matrix, and in two.
fn gates(device: &Device) {
    let mut random = Random::new(15);
    for [rows, n] in [[3, 16], [1, 1], [5, 7], [0, 4]] {
        let x = random.values::<f32>(rows * 2 * n);
        let dx = device.upload(&x).unwrap();
        let both = dx.view([rows, 2 * n]).unwrap().strided();
        let mut y = device.zeros::<f32>(rows * n).unwrap();
        gate(device, swiglu {}, both, y.view_mut([rows, n]).unwrap().strided()).unwrap();
        let silu = |x: f64| x / (1.0 + (-x).exp());
        let halves = |i: usize| {
            let at = i / n * 2 * n + i % n;
            (f64::from(x[at]), f64::from(x[at + n]))
        };
        for (i, y) in y.download().unwrap().into_iter().enumerate() {
            let (a, b) = halves(i);
            near(silu(a) * b, y, 8.0).unwrap();
        }
        gate(device, geglu {}, both, y.view_mut([rows, n]).unwrap().strided()).unwrap();
        for (i, y) in y.download().unwrap().into_iter().enumerate() {
            let (a, b) = halves(i);
            // The sum 1 + erf loses digits near −1, so that the bound is relative to x·b and not to
            // the result.
            let expected = 0.5 * a * (1.0 + erf(a / std::f64::consts::SQRT_2)) * b;
            assert!(
                (f64::from(y) - expected).abs() <= 8.0 * (a * b).abs() * 2f64.powi(-24) + 1e-40,
                "{y}, not {expected}"
            );
        }
    }
    // The same number of elements, in other rows.
    let (x, mut y) = (device.zeros::<f32>(16).unwrap(), device.zeros::<f32>(8).unwrap());
    let both = x.view([2, 8]).unwrap().strided();
    gate(device, swiglu {}, both, y.view_mut([2, 4]).unwrap().strided()).unwrap();
    for extents in [[4, 2], [1, 8]] {
        let refused = gate(device, swiglu {}, both, y.view_mut(extents).unwrap().strided());
        let said = refused.unwrap_err().to_string();
        let wanted = format!("x: extents [2, 8], expected [{}, {}]", extents[0], 2 * extents[1]);
        assert!(said.contains(&wanted), "{said}");
    }
}

/// Computes erf by its series, for |x| ≤ 1.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..40 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}
