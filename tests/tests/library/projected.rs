//! Tests of a norm followed by a product, on the CPU and on a GPU, against plain Rust in `f64`. Few
//! rows use one kernel, more rows several.

use kernel_dsl::half::f16;
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::activation::{geglu, swiglu};
use kernels_rs::rowwise::Norm;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

/// Rows, columns of W or of each of its halves, and depth.
const SHAPES: [[usize; 3]; 9] = [
    [1, 33, 64],
    [2, 5, 4099],
    [3, 17, 40],
    [5, 9, 520],
    [8, 40, 24],
    [9, 12, 40],
    [20, 130, 33],
    [0, 3, 8],
    [2, 3, 0],
];

/// Numbers on the host and on a device.
struct Numbers<T: kernel_dsl::Element> {
    wide: Vec<f64>,
    buffer: DeviceBuffer<T>,
}

fn drawn<T: Float>(device: &Device, random: &mut Random, n: usize) -> Numbers<T> {
    let all: Vec<T> = random.values::<f32>(n).into_iter().map(T::from_f32).collect();
    Numbers { wide: all.iter().map(|x| f64::from(x.to_f32())).collect(), buffer: device.upload(&all).unwrap() }
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Checks all shapes. `near` is the relative error from rounding norm(x), the halves and y to W's
/// type.
fn all<T: Float + GenericArgument>(device: &Device, near: f64) {
    let mut random = Random::new(41);
    for (n, [rows, cols, depth]) in SHAPES.into_iter().enumerate() {
        let x = drawn::<f32>(device, &mut random, rows * depth);
        let (weight, bias) = (drawn::<T>(device, &mut random, depth), drawn::<T>(device, &mut random, depth));
        let (w, of_columns) =
            (drawn::<T>(device, &mut random, 2 * cols * depth), drawn::<f32>(device, &mut random, cols));
        let (of_weight, of_bias) = (weight.buffer.view([depth]).unwrap(), bias.buffer.view([depth]).unwrap());
        let (of_x, of_columns_bias) = (x.buffer.view([rows, depth]).unwrap(), of_columns.buffer.view([cols]).unwrap());
        for centered in [false, true] {
            let what = format!("{rows} × {cols} × {depth}, layer {centered}");
            let norm = if centered { Norm::layer(1e-5) } else { Norm::rms(1e-5) }.weight(&of_weight);
            let norm = if n % 2 == 0 { norm.bias(&of_bias) } else { norm };
            let mut normed = Vec::new();
            for row in x.wide.chunks(depth.max(1)).take(rows) {
                let count = depth.max(1) as f64;
                let mean = if centered { row.iter().sum::<f64>() / count } else { 0.0 };
                let factor = 1.0 / (row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count + 1e-5).sqrt();
                let add = |k: usize| if n % 2 == 0 { bias.wide[k] } else { 0.0 };
                normed.extend(row.iter().enumerate().map(|(k, x)| (x - mean) * factor * weight.wide[k] + add(k)));
            }
            let sum = |r: usize, c: usize| -> (f64, f64) {
                let terms = (0..depth).map(|k| normed[r * depth + k] * w.wide[c * depth + k]);
                terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()))
            };
            let compare = |got: Vec<T>, of: &dyn Fn(usize, usize) -> (f64, f64)| {
                for (at, got) in got.into_iter().enumerate() {
                    let ((expected, size), got) = (of(at / cols, at % cols), f64::from(got.to_f32()));
                    let off = near * (1.0 + size);
                    assert!((got - expected).abs() <= off, "{what}: {at} is {got}, not {expected}, by more than {off}");
                }
            };
            let nothing = || device.upload(&vec![T::from_f32(f32::NAN); rows * cols]).unwrap();
            let mut y = nothing();
            let (half, with) = (w.buffer.view([2 * cols, depth]).unwrap().slice(0..cols).unwrap(), n % 3 > 0);
            let added = with.then_some(&of_columns_bias);
            norm.project(device, &of_x, &half, added, &mut y.view_mut([rows, cols]).unwrap()).unwrap();
            let plain = |r: usize, c: usize| {
                let (value, size) = sum(r, c);
                (value + if with { of_columns.wide[c] } else { 0.0 }, size + 4.0)
            };
            compare(y.download().unwrap(), &plain);

            let both = w.buffer.view([2 * cols, depth]).unwrap();
            let gated = |gate: &dyn Fn(f64) -> f64, r: usize, c: usize| {
                let ((a, of_a), (b, of_b)) = (sum(r, c), sum(r, cols + c));
                (gate(a) * b, 1.2 * of_a * (1.0 + b.abs()) + of_b * (1.0 + a.abs()) + of_a * of_b * near)
            };
            let mut y = nothing();
            norm.project_gated(device, swiglu {}, &of_x, &both, &mut y.view_mut([rows, cols]).unwrap()).unwrap();
            compare(y.download().unwrap(), &|r, c| gated(&silu, r, c));
            if n == 0 {
                let mut y = nothing();
                norm.project_gated(device, geglu {}, &of_x, &both, &mut y.view_mut([rows, cols]).unwrap()).unwrap();
                // The difference between x·Φ(x) and x·s(1.702·x) (Hendrycks and Gimpel, 2016) is
                // small, yet large enough to distinguish the gates.
                let gelu = |x: f64| x / (1.0 + (-1.702 * x).exp());
                for (at, got) in y.download().unwrap().into_iter().enumerate() {
                    let (b, got) = (sum(at / cols, cols + at % cols).0, f64::from(got.to_f32()));
                    let expected = gelu(sum(at / cols, at % cols).0) * b;
                    assert!(
                        (got - expected).abs() <= 0.03 * b.abs() + near * 40.0,
                        "{what}: {at} is {got}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn cpu_norms_and_products_agree_with_the_reference() {
    all::<f32>(&Device::cpu(), 1e-5);
    all::<f16>(&Device::cpu(), 2e-3);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_norms_and_products_agree_with_the_reference() {
    all::<f32>(&Device::cuda(0).unwrap(), 1e-5);
    all::<f16>(&Device::cuda(0).unwrap(), 2e-3);
}

/// Checks a mean that is a thousand times the deviation of x: none of it remains in the product.
#[test]
fn large_means_cancel() {
    let device = Device::cpu();
    let x: Vec<f32> = (0..64).map(|i| 1000.0 + if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let (x, w) = (device.upload(&x).unwrap(), device.upload(&[1.0f32; 64]).unwrap());
    let mut y = device.zeros::<f32>(1).unwrap();
    let (x, w) = (x.view([1, 64]).unwrap(), w.view([1, 64]).unwrap());
    Norm::layer(0.0).project(&device, &x, &w, None, &mut y.view_mut([1, 1]).unwrap()).unwrap();
    assert_eq!(y.download().unwrap(), [0.0]);
}

/// Rejects operands whose extents do not match.
#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let (x, mut y) = (device.zeros::<f32>(12).unwrap(), device.zeros::<f32>(6).unwrap());
    let (of_x, of_w) = (x.view([2, 6]).unwrap(), x.view([3, 4]).unwrap());
    let refused = Norm::rms(0.0).project(&device, &of_x, &of_w, None, &mut y.view_mut([2, 3]).unwrap());
    assert!(refused.unwrap_err().to_string().contains("w: extents [3, 4]"));
    let (bias, of_w) = (x.view([12]).unwrap(), device.zeros::<f32>(18).unwrap());
    let of_w = of_w.view([3, 6]).unwrap();
    let refused = Norm::rms(0.0).project(&device, &of_x, &of_w, Some(&bias), &mut y.view_mut([2, 3]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("bias: extents [12], expected [3] (a number for each column of y"), "{said}");

    let (no_numbers, weight) = (device.zeros::<f32>(0).unwrap(), device.zeros::<f32>(6).unwrap());
    let none = no_numbers.view([0]).unwrap();
    let refused = Norm::rms(0.0).weight(&none).project(&device, &of_x, &of_w, None, &mut y.view_mut([2, 3]).unwrap());
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("weight: extents [0], expected [6] (a number for each column of x"), "{said}");
    let weight = weight.view([6]).unwrap();
    let norm = Norm::rms(1.0).weight(&weight);
    norm.project(&device, &of_x, &of_w, None, &mut y.view_mut([2, 3]).unwrap()).unwrap();
}

/// Checks y in the case of several kernels: it has a row for each row of x. A y with the same
/// number of elements in other rows is rejected.
#[test]
fn y_has_the_rows_of_x() {
    let device = Device::cpu();
    let (x, w) = (device.zeros::<f32>(9 * 4).unwrap(), device.zeros::<f32>(6 * 4).unwrap());
    let (x, w) = (x.view([9, 4]).unwrap(), w.view([6, 4]).unwrap());
    let mut y = device.zeros::<f32>(27).unwrap();
    let norm = Norm::rms(1.0);
    norm.project_gated(&device, swiglu {}, &x, &w, &mut y.view_mut([9, 3]).unwrap()).unwrap();
    for extents in [[27, 1], [3, 9]] {
        let refused = norm.project_gated(&device, swiglu {}, &x, &w, &mut y.view_mut(extents).unwrap());
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(&format!("y: extents {extents:?}, expected [9, 3]")), "{said}");
    }
}
