//! Tests of quantized operations, on the CPU and on a GPU: integer products, block-quantized
//! weights, and quantization of numbers.

use kernel_dsl::Element;
use kernel_dsl::half::f16;
use kernels_rs::QueueMemory;
use kernels_rs::activation::swiglu;
use kernels_rs::elementwise::map2;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::formats::host::{self, Ggml};
use kernels_rs::quant::plan::{QuantPlan, QuantTile};
use kernels_rs::quant::{Activations, Affine, Format, Igemm, Quantized, Routing, Weights, formats};
use kernels_rs::rowwise::Norm;
use runtime::Device;
use runtime::testing::{Extreme, Random};

fn bytes(random: &mut Random, n: usize) -> Vec<i8> {
    (0..n).map(|_| random.bits() as i8).collect()
}

/// A batch of matrices of bytes in memory, with gaps after rows and matrices.
struct Matrices {
    values: Vec<i8>,
    extents: [usize; 3],
    strides: [usize; 3],
}

impl Matrices {
    fn new(random: &mut Random, extents: [usize; 3], gap: usize) -> Matrices {
        let pitch = (extents[2] + gap).max(1);
        let plane = (extents[1] * pitch + gap).max(1);
        Matrices { values: bytes(random, extents[0] * plane), extents, strides: [plane, pitch, 1] }
    }

    fn at(&self, p: usize, [r, c]: [usize; 2], transposed: bool) -> i64 {
        let (r, c) = if transposed { (c, r) } else { (r, c) };
        i64::from(self.values[p * self.strides[0] + r * self.strides[1] + c])
    }
}

/// Checks products of all forms with integer sums and zero points, with all access widths.
fn integers(device: &Device) {
    let mut random = Random::new(3);
    for [n, rows, cols, depth, gap] in
        [[1, 1, 1, 1, 0], [2, 5, 8, 48, 16], [1, 20, 36, 20, 4], [1, 33, 65, 7, 1], [1, 3, 4, 0, 0], [1, 0, 4, 4, 0]]
    {
        for transposed in [[false, false], [false, true], [true, false], [true, true]] {
            let [ta, tb] = transposed;
            let a = Matrices::new(&mut random, if ta { [n, depth, rows] } else { [n, rows, depth] }, gap);
            let b = Matrices::new(&mut random, if tb { [n, cols, depth] } else { [n, depth, cols] }, gap);
            let (da, db) = (device.upload(&a.values).unwrap(), device.upload(&b.values).unwrap());
            let zero_a: Vec<i32> = (0..rows).map(|_| random.below(256) as i32 - 128).collect();
            let zero_b = vec![random.below(256) as i32 - 128];
            let (za, zb) = (device.upload(&zero_a).unwrap(), device.upload(&zero_b).unwrap());
            let mut igemm = Igemm::new();
            if ta {
                igemm = igemm.transpose_a();
            }
            if tb {
                igemm = igemm.transpose_b();
            }
            let (va, vb) =
                (da.view_strided(a.extents, a.strides).unwrap(), db.view_strided(b.extents, b.strides).unwrap());
            for zeros in [false, true] {
                let (mut qa, mut qb) = (Quantized::new(va), Quantized::new(vb));
                if zeros {
                    (qa, qb) = (qa.zero(za.view([rows]).unwrap()), qb.zero(zb.view([1]).unwrap()));
                }
                let mut c = device.zeros::<i32>(n * rows * cols).unwrap();
                igemm.run(device, qa, qb, &mut c.view_mut([n, rows, cols]).unwrap()).unwrap();
                for (i, x) in c.download().unwrap().into_iter().enumerate() {
                    let (p, r, c) = (i / (rows * cols), i / cols % rows, i % cols);
                    let (za, zb) = if zeros { (i64::from(zero_a[r]), i64::from(zero_b[0])) } else { (0, 0) };
                    let sum: i64 = (0..depth).map(|k| (a.at(p, [r, k], ta) - za) * (b.at(p, [k, c], tb) - zb)).sum();
                    assert_eq!(
                        i64::from(x),
                        sum,
                        "{n} of {rows} × {cols} × {depth}, {transposed:?}, {zeros} at {p}, {r}, {c}"
                    );
                }
            }
        }
    }
}

#[test]
fn cpu_products_of_integers_are_exact() {
    integers(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_products_of_integers_are_exact() {
    integers(&Device::cuda(0).unwrap());
}

/// Checks scales of rows and columns, and results as bytes, which are rounded to even and saturate.
fn scales(device: &Device) {
    let a = device.upload(&[100i8, 100, 1, 2]).unwrap();
    let b = device.upload(&[127i8, 127, 1, 1]).unwrap();
    let (a, b) = (a.view([1, 2, 2]).unwrap(), b.view([1, 2, 2]).unwrap());
    let (rows, cols) = (device.upload(&[1.0f32, 0.5]).unwrap(), device.upload(&[1.0f32, -0.25]).unwrap());
    let (a, b) = (Quantized::new(a).scale(rows.view([2]).unwrap()), Quantized::new(b).scale(cols.view([2]).unwrap()));
    let igemm = Igemm::new().transpose_b();
    let mut real = device.zeros::<f32>(4).unwrap();
    igemm.run(device, a, b, &mut real.view_mut([1, 2, 2]).unwrap()).unwrap();
    // The sums are 25400, 200, 381 and 3.
    assert_eq!(real.download().unwrap(), [25400.0, -50.0, 190.5, -0.375]);
    let mut half = device.zeros::<f16>(4).unwrap();
    igemm.run(device, a, b, &mut half.view_mut([1, 2, 2]).unwrap()).unwrap();
    assert_eq!(half.download().unwrap().map_f32(), [25408.0, -50.0, 190.5, -0.375]);
    let mut byte = device.zeros::<i8>(4).unwrap();
    igemm.output(4.0, -1).run(device, a, b, &mut byte.view_mut([1, 2, 2]).unwrap()).unwrap();
    // The scaled values are 6350, −12.5, 47.625 and −0.09. The values are rounded, and the zero
    // point −1 is added.
    assert_eq!(byte.download().unwrap(), [127, -13, 47, -1]);
}

trait MapF32 {
    fn map_f32(self) -> Vec<f32>;
}

impl MapF32 for Vec<f16> {
    fn map_f32(self) -> Vec<f32> {
        self.into_iter().map(f16::to_f32).collect()
    }
}

#[test]
fn cpu_scaled_products_agree_with_the_reference() {
    scales(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_scaled_products_agree_with_the_reference() {
    scales(&Device::cuda(0).unwrap());
}

/// Rejects operands whose extents do not match.
#[test]
fn extents_are_compared() {
    let device = Device::cpu();
    let a = device.upload(&[1i8; 12]).unwrap();
    let mut c = device.zeros::<i32>(9).unwrap();
    let (left, right) = (a.view([1, 3, 4]).unwrap(), a.view([1, 3, 4]).unwrap());
    let mut c = c.view_mut([1, 3, 3]).unwrap();
    Igemm::new().transpose_b().run(&device, Quantized::new(left), Quantized::new(right), &mut c).unwrap();
    let error = Igemm::new().run(&device, Quantized::new(left), Quantized::new(right), &mut c).unwrap_err();
    assert!(error.to_string().contains("B: extents [1, 3, 4], expected [1, 4, 3]"), "{error}");
    let zeros = device.upload(&[1, 2]).unwrap();
    let error = Igemm::new()
        .transpose_b()
        .run(&device, Quantized::new(left).zero(zeros.view([2]).unwrap()), Quantized::new(right), &mut c)
        .unwrap_err();
    assert!(error.to_string().contains("the zero points of A are 2; expected 1 for all, 3 for one per row"), "{error}");
    // An empty list differs from a missing list.
    let (none, no_scale) = (device.zeros::<i32>(0).unwrap(), device.zeros::<f32>(0).unwrap());
    let (none, no_scale) = (none.view([0]).unwrap(), no_scale.view([0]).unwrap());
    let product = Igemm::new().transpose_b();
    let error = product.run(&device, Quantized::new(left).zero(none), Quantized::new(right), &mut c).unwrap_err();
    assert!(error.to_string().contains("the zero points of A are 0; expected 1 for all"), "{error}");
    let error = product.run(&device, Quantized::new(left), Quantized::new(right).scale(no_scale), &mut c).unwrap_err();
    assert!(error.to_string().contains("the scales of B are 0; expected 1 for all"), "{error}");
    // For a product without rows, an empty list is correct.
    let (rows, mut sums) = (device.zeros::<i8>(0).unwrap(), device.zeros::<i32>(0).unwrap());
    let (rows, mut sums) = (rows.view([1, 0, 4]).unwrap(), sums.view_mut([1, 0, 3]).unwrap());
    product.run(&device, Quantized::new(rows).zero(none), Quantized::new(right), &mut sums).unwrap();
}

/// Returns the quantized values of activations, in blocks of 32, by the formula.
fn quantized(x: &[f32]) -> Vec<f64> {
    x.chunks(32)
        .flat_map(|block| {
            let top = block.iter().fold(0.0f32, |top, x| top.max(x.abs()));
            let inverse = if top > 0.0 { 127.0 / top } else { 0.0 };
            block.iter().map(move |x| f64::from((x * inverse).round_ties_even()) * f64::from(top / 127.0))
        })
        .collect()
}

/// Checks weights of each format, with the numbers of rows for every kernel, and with full and
/// partial blocks.
fn weights(device: &Device) {
    let mut random = Random::new(9);
    for [m, n, k] in [
        [1, 5, 64],
        [1, 3, 4200],
        [2, 40, 96],
        [3, 5, 33],
        [8, 17, 50],
        [9, 130, 40],
        [70, 5, 96],
        [2, 3, 0],
        [2, 0, 64],
        [9, 0, 40],
    ] {
        let (numbers, x): (Vec<f32>, Vec<f32>) = (random.values(n * k), random.values(m * k));
        let (dw, dx) = (device.upload(&numbers).unwrap(), device.upload(&x).unwrap());
        let view = dw.view([n, k]).unwrap();
        let rows = bytes(&mut random, n * k);
        let row_scales: Vec<f32> = (0..n).map(|i| 0.5 + i as f32 * 0.25).collect();
        let on_device = device.upload(&rows).unwrap();
        let of_rows = on_device.view([n, k]).unwrap();
        let scaled = (0..n * k).map(|i| f32::from(rows[i]) * row_scales[i / k]).collect::<Vec<_>>();
        let dequantized = |weights: &Weights| {
            let mut w = device.zeros::<f32>(n * k).unwrap();
            weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
            w.download().unwrap()
        };
        let q8 = Weights::quantize_q8(device, &view).unwrap();
        let q4 = Weights::quantize_q4(device, &view).unwrap();
        let (eight, four) = (dequantized(&q8), dequantized(&q4));
        for (i, w) in numbers.iter().enumerate() {
            let row = &numbers[i / k * k..(i / k + 1) * k];
            let block = &row[i % k / 32 * 32..(i % k / 32 * 32 + 32).min(k)];
            let top = block.iter().fold(0.0f32, |top, x| top.max(x.abs()));
            // The error is half a step of 8 bits, or a whole step of 4 bits, which clip the largest
            // value of the other sign. The rounding of the scale adds to it.
            assert!((eight[i] - w).abs() <= top * (0.5 / 127.0 + 1e-3), "{m} × {n} × {k}: {i}: {} for {w}", eight[i]);
            assert!((four[i] - w).abs() <= top * (1.0 / 8.0 + 1e-3), "{m} × {n} × {k}: {i}: {} for {w}", four[i]);
        }
        let int8 = Weights::from_rows(device, &of_rows, device.upload(&row_scales).unwrap()).unwrap();
        let seen: Vec<f64> = x.chunks(k.max(1)).flat_map(quantized).collect();
        for (weights, numbers) in [(q8, eight), (q4, four), (int8, scaled)] {
            let mut y = device.upload(&vec![f32::NAN; m * n]).unwrap();
            weights.product(device, &dx.view([m, k]).unwrap(), &mut y.view_mut([m, n]).unwrap()).unwrap();
            for (i, y) in y.download().unwrap().into_iter().enumerate() {
                let terms = (0..k).map(|j| seen[i / n * k + j] * f64::from(numbers[i % n * k + j]));
                let size: f64 = terms.clone().map(f64::abs).sum();
                let value: f64 = terms.sum();
                // One rounding per block, five of a warp's sum, and three of scales.
                let off = 1.001 * (k as f64 / 32.0 + 9.0) / f64::from(1 << 24) * size + 1e-37;
                let format = weights.format();
                assert!((f64::from(y) - value).abs() <= off, "{format:?}, {m} × {n} × {k} at {i}: {y}, not {value}");
            }
        }
    }
}

#[test]
fn cpu_quantized_weights_agree_with_the_reference() {
    weights(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_quantized_weights_agree_with_the_reference() {
    weights(&Device::cuda(0).unwrap());
}

/// Rejects activations whose length differs from the weights' rows, for few rows and for many, and
/// an output that does not hold all weights.
#[test]
fn operands_of_other_extents_are_rejected() {
    let device = Device::cpu();
    let (numbers, mut y) = (device.zeros::<f32>(128).unwrap(), device.zeros::<f32>(128).unwrap());
    let w = numbers.view([2, 64]).unwrap();
    let bytes = device.zeros::<i8>(128).unwrap();
    let int8 = Weights::from_rows(&device, &bytes.view([2, 64]).unwrap(), device.zeros(2).unwrap()).unwrap();
    let (q8, q4) = (Weights::quantize_q8(&device, &w).unwrap(), Weights::quantize_q4(&device, &w).unwrap());
    for weights in [&q8, &q4, &int8] {
        for rows in [1, 9] {
            let mut product = |cols: usize| {
                let x = numbers.view_strided([rows, cols], [0, 1]).unwrap();
                weights.product(&device, &x, &mut y.view_strided_mut([rows, 2], [2, 1]).unwrap())
            };
            product(64).unwrap();
            for cols in [32, 63, 65] {
                let said = product(cols).unwrap_err().to_string();
                let wanted = format!("x: extents [{rows}, {cols}], expected [{rows}, 64] (a number for each column");
                assert!(said.contains(&wanted), "{said}");
            }
        }
    }
    for weights in [&q8, &q4] {
        weights.dequantize(&device, &mut y.view_mut([2, 64]).unwrap()).unwrap();
        for to in [[2, 32], [1, 64]] {
            let mut part = y.view_strided_mut(to, [64, 1]).unwrap();
            let said = weights.dequantize(&device, &mut part).unwrap_err().to_string();
            assert!(said.contains(&format!(": extents {to:?}, expected [2, 64]")), "{said}");
        }
    }
}

/// Calls a generic function for every format of GGML.
macro_rules! each_format {
    ($f:ident, $device:expr) => {
        each_format!(@ $f, $device, Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4)
    };
    (@ $f:ident, $device:expr, $($format:ident)*) => {
        $( $f::<formats::$format>($device, Format::$format); )*
    };
}

/// Checks that blocks in a file's format have the same numbers on the device as on the host. Also
/// checks the products of one row, of groups of rows and of tiles.
fn files(device: &Device) {
    fn check<F: Ggml>(device: &Device, format: Format) {
        assert_eq!(format.block(), [F::NUMBERS, F::BYTES]);
        let mut random = Random::new(4);
        for [m, n, blocks] in [[1, 5, 1], [3, 3, 9], [9, 2, 2], [33, 3, 1], [130, 5, 1], [0, 2, 1]] {
            let k = blocks * F::NUMBERS;
            let file = host::quantize::<F>(&random.values::<f32>(n * k));
            let numbers = host::dequantize::<F>(&file);
            let (x, file) = (random.values::<f32>(m * k), device.upload(&file).unwrap());
            let view = file.view([n, blocks * F::BYTES]).unwrap();
            let weights = Weights::from_blocks(device, format, &view).unwrap();
            let mut w = device.zeros::<f32>(n * k).unwrap();
            weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
            assert_eq!(w.download().unwrap(), numbers, "{}", F::NAME);
            let (dx, mut y) = (device.upload(&x).unwrap(), device.upload(&vec![f32::NAN; m * n]).unwrap());
            weights.product(device, &dx.view([m, k]).unwrap(), &mut y.view_mut([m, n]).unwrap()).unwrap();
            multiplied(&format!("{} {m} × {n} × {k}", F::NAME), &y.download().unwrap(), &x, &numbers, k);
        }
    }
    each_format!(check, device);
}

/// Compares with `f64` the products of rows of weights with rows of `k` activations, which are
/// quantized to 8 bits.
fn multiplied(what: &str, y: &[f32], x: &[f32], numbers: &[f32], k: usize) {
    let seen: Vec<f64> = x.chunks(k.max(1)).flat_map(quantized).collect();
    let n = numbers.len().checked_div(k).unwrap_or(0);
    for (i, y) in y.iter().enumerate() {
        let terms = (0..k).map(|j| seen[i / n * k + j] * f64::from(numbers[i % n * k + j]));
        let size: f64 = terms.clone().map(f64::abs).sum();
        let value: f64 = terms.sum();
        // Each unit of 32 numbers rounds up to five times, and the sum of a warp five times more.
        // The rounded numbers are at most four times the sum of magnitudes.
        let off = 4.0 * (5.0 * k as f64 / 32.0 + 12.0) / f64::from(1 << 24) * size + 1e-37;
        assert!((f64::from(*y) - value).abs() <= off, "{what} at {i}: {y}, not {value}");
    }
}

#[test]
fn cpu_weights_of_files_agree_with_the_reference() {
    files(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_weights_of_files_agree_with_the_reference() {
    files(&Device::cuda(0).unwrap());
}

/// Checks every plan of a product, with parts of K that are smaller than the others or empty.
fn plans(device: &Device) {
    let (mut random, [m, n, k]) = (Random::new(9), [33, 20, 1280]);
    let x: Vec<f32> = random.values(m * k);
    let dx = device.upload(&x).unwrap();
    let activations = Activations::quantize(device, &dx.view([m, k]).unwrap()).unwrap();
    assert_eq!(activations.extents(), [m, k]);
    for format in [Format::Q4_0, Format::Q2K, Format::Q6K] {
        let [numbers, bytes] = format.block();
        let file = format.quantize(&random.values(n * k)).unwrap();
        let file = device.upload(&file).unwrap();
        let weights = Weights::from_blocks(device, format, &file.view([n, k / numbers * bytes]).unwrap()).unwrap();
        let mut w = device.zeros::<f32>(n * k).unwrap();
        weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
        let w = w.download().unwrap();
        let tiles = QuantTile::ALL.into_iter().flat_map(|tile| [1, 3, 6].map(|splits| QuantPlan::Tiles(tile, splits)));
        let blocks =
            [QuantPlan::few(format, m), "few 1 128 1024 1".parse().unwrap(), "few 4 512 2048 2".parse().unwrap()];
        for plan in blocks.into_iter().chain(tiles) {
            let mut y = device.upload(&vec![f32::NAN; m * n]).unwrap();
            let mut to = y.view_mut([m, n]).unwrap();
            // SAFETY: this epilogue accesses nothing.
            unsafe { weights.product_with_plan(device, plan, &activations, &mut to, Identity) }.unwrap();
            multiplied(&format!("{} by {plan:?}", format.name()), &y.download().unwrap(), &x, &w, k);
        }
    }
}

#[test]
fn cpu_suitable_plans_give_the_same_product() {
    plans(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_suitable_plans_give_the_same_product() {
    plans(&Device::cuda(0).unwrap());
}

/// Rejects plans that cannot compute a product, and activations of other extents.
#[test]
fn unsuitable_plans_are_rejected() {
    let device = Device::cpu();
    let (numbers, mut y) = (device.zeros::<f32>(640).unwrap(), device.zeros::<f32>(20).unwrap());
    let weights = Weights::quantize_q4(&device, &numbers.view_strided([2, 64], [64, 1]).unwrap()).unwrap();
    let mut said = |rows: usize, cols: usize, plan: QuantPlan| {
        let x = numbers.view_strided([rows, cols], [cols, 1]).unwrap();
        let x = Activations::quantize(&device, &x).unwrap();
        let mut y = y.view_strided_mut([rows, 2], [2, 1]).unwrap();
        // SAFETY: this epilogue accesses nothing.
        unsafe { weights.product_with_plan(&device, plan, &x, &mut y, Identity) }.map_err(|error| error.to_string())
    };
    said(10, 64, QuantPlan::Tiles(QuantTile::T16x128, 1)).unwrap();
    assert!(said(10, 64, QuantPlan::Tiles(QuantTile::T16x128, 0)).unwrap_err().contains("at least one part"));
    assert!(said(3, 64, QuantPlan::Tiles(QuantTile::T64x128, 1)).unwrap_err().contains("more than 8 rows"));
    let few = QuantPlan::few(Format::Q4_0, 10);
    said(10, 64, few).unwrap();
    let too_many = "few 8 256 2048 1".parse().unwrap();
    assert!(said(10, 64, too_many).unwrap_err().contains("from 1 to 32 sums"));
    assert!(said(10, 32, few).unwrap_err().contains("the activations have 32 columns, but the weights have 64"));
}

/// Checks products with a gate that its own kernel quantizes. The products equal those with a
/// separate gate, bit for bit, and are close to plain Rust. Some rows have gaps.
fn gated(device: &Device) {
    let mut random = Random::new(21);
    for [m, k, gap] in [[1, 64, 0], [3, 256, 4], [5, 96, 1], [9, 32, 0], [0, 32, 0]] {
        let (n, pitch) = (6, k + gap);
        let [a, b]: [Vec<f32>; 2] = [(); 2].map(|()| random.values(m * pitch));
        let file = Format::Q8_0.quantize(&random.values(n * k)).unwrap();
        let file = device.upload(&file).unwrap();
        let weights = Weights::from_blocks(device, Format::Q8_0, &file.view([n, k / 32 * 34]).unwrap()).unwrap();
        let mut w = device.zeros::<f32>(n * k).unwrap();
        weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
        let [da, db] = [&a, &b].map(|x| device.upload(x).unwrap());
        let [va, vb] = [&da, &db].map(|x| x.view_strided([m, k], [pitch, 1]).unwrap());
        let mut apart = device.zeros::<f32>(m * k).unwrap();
        map2(device, swiglu {}, va.strided(), vb.strided(), apart.view_mut([m, k]).unwrap().strided()).unwrap();
        let [mut y, mut other] = [(); 2].map(|()| device.upload(&vec![f32::NAN; m * n]).unwrap());
        let x = Activations::quantize_gated(device, swiglu {}, &va, &vb).unwrap();
        assert_eq!(x.extents(), [m, k]);
        weights.product_of(device, &x, &mut y.view_mut([m, n]).unwrap()).unwrap();
        let x = Activations::quantize(device, &apart.view([m, k]).unwrap()).unwrap();
        weights.product_of(device, &x, &mut other.view_mut([m, n]).unwrap()).unwrap();
        let y = y.download().unwrap();
        assert_eq!(y, other.download().unwrap(), "{m} × {k}");
        let gate = |i: usize| {
            let [a, b] = [&a, &b].map(|x| f64::from(x[i / k * pitch + i % k]));
            (a / (1.0 + (-a).exp()) * b) as f32
        };
        let gates: Vec<f32> = (0..m * k).map(gate).collect();
        multiplied(&format!("gates of {m} × {k}"), &y, &gates, &w.download().unwrap(), k);
    }
    let x = device.zeros::<f32>(64).unwrap();
    let error = Activations::quantize_gated(device, swiglu {}, &x.view([2, 32]).unwrap(), &x.view([1, 64]).unwrap());
    assert!(error.unwrap_err().to_string().contains("the extents of a"));
}

#[test]
fn cpu_gated_products_agree_with_the_reference() {
    gated(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_gated_products_agree_with_the_reference() {
    gated(&Device::cuda(0).unwrap());
}

/// Checks norms that their own kernel quantizes: products and the sum z equal those of a separate
/// norm, bit for bit. Some rows are not whole accesses, and the first case adds nothing.
fn normed(device: &Device) {
    let mut random = Random::new(23);
    for (i, [m, k, gap]) in [[1, 64, 0], [3, 1056, 4], [5, 300, 1], [9, 32, 0], [0, 32, 0]].into_iter().enumerate() {
        let (n, pitch) = (6, k + gap);
        let [x, residual]: [Vec<f32>; 2] = [(); 2].map(|()| random.values(m * pitch));
        let file = Format::Q8_0.quantize(&random.values(n * k.next_multiple_of(32))).unwrap();
        let file = device.upload(&file).unwrap();
        let file = file.view([n, k.div_ceil(32) * 34]).unwrap();
        let weights = Weights::from_blocks(device, Format::Q8_0, &file).unwrap();
        let [x, residual] = [&x, &residual].map(|x| device.upload(x).unwrap());
        let weight = device.upload(&random.values::<f32>(k)).unwrap();
        let weight = weight.view([k]).unwrap();
        let (x, residual) =
            (x.view_strided([m, k], [pitch, 1]).unwrap(), residual.view_strided([m, k], [pitch, 1]).unwrap());
        let [mut z, mut apart_z, mut apart] = [(); 3].map(|()| device.zeros::<f32>(m * k).unwrap());
        let norm = || Norm::rms(1e-5).weight(&weight);
        {
            let (mut z, mut apart_z) = (z.view_mut([m, k]).unwrap(), apart_z.view_mut([m, k]).unwrap());
            let [added, apart_added] = [&mut z, &mut apart_z].map(|z| if i > 0 { Some((&residual, z)) } else { None });
            let made = Activations::quantize_norm(device, norm(), &x, added).unwrap();
            norm().run_added(device, &x, apart_added, &mut apart.view_mut([m, k]).unwrap(), None).unwrap();
            let separate = Activations::quantize(device, &apart.view([m, k]).unwrap()).unwrap();
            assert_eq!(made.extents(), [m, k]);
            if k % 32 == 0 {
                let [y, other] = [&made, &separate].map(|x| {
                    let mut y = device.upload(&vec![f32::NAN; m * n]).unwrap();
                    weights.product_of(device, x, &mut y.view_mut([m, n]).unwrap()).unwrap();
                    y.download().unwrap()
                });
                assert_eq!(y, other, "{m} × {k}");
                assert!(y.iter().all(|y| y.is_finite()) && y.iter().filter(|y| **y == 0.0).count() == 0);
            }
        }
        assert_eq!(z.download().unwrap(), apart_z.download().unwrap());
    }
}

#[test]
fn cpu_normed_products_agree_with_the_reference() {
    normed(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_normed_products_agree_with_the_reference() {
    normed(&Device::cuda(0).unwrap());
}

/// The errors of a format, each relative to the root of the sum of squares of the exact values.
struct Accuracy {
    /// The error of weights, against the numbers that they were quantized from.
    weights: f64,
    /// The errors of products against exact products of the same weights. The first is for normal
    /// activations, the second for ones of which one in a hundred is 20 times as large.
    products: [f64; 2],
}

/// Returns numbers of a distribution close to the normal one: sums of twelve uniform ones.
fn normal(random: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| ((0..12).map(|_| random.unit()).sum::<f64>() / 2.0) as f32).collect()
}

/// Returns the error of pairs of a value and the exact one.
fn relative(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (error, size) = pairs.fold((0.0, 0.0), |(error, size), (x, y)| (error + (x - y).powi(2), size + y * y));
    f64::sqrt(error / size)
}

fn accuracy(device: &Device, format: Format) -> Accuracy {
    let (mut random, [m, n, k]) = (Random::new(10), [2, 24, 4096]);
    let numbers = normal(&mut random, n * k);
    let (weights, w) = match format.quantize(&numbers) {
        Some(file) => {
            let (file, [of_block, bytes]) = (device.upload(&file).unwrap(), format.block());
            let file = file.view([n, k / of_block * bytes]).unwrap();
            let weights = Weights::from_blocks(device, format, &file).unwrap();
            let mut w = device.zeros::<f32>(n * k).unwrap();
            weights.dequantize(device, &mut w.view_mut([n, k]).unwrap()).unwrap();
            (weights, w.download().unwrap())
        }
        None => {
            let scales: Vec<f32> =
                numbers.chunks(k).map(|row| row.iter().fold(0.0f32, |top, x| top.max(x.abs())) / 127.0).collect();
            let bytes: Vec<i8> = numbers.iter().enumerate().map(|(i, x)| (x / scales[i / k]).round() as i8).collect();
            let w = bytes.iter().enumerate().map(|(i, x)| f32::from(*x) * scales[i / k]).collect();
            let bytes = device.upload(&bytes).unwrap();
            let scales = device.upload(&scales).unwrap();
            (Weights::from_rows(device, &bytes.view([n, k]).unwrap(), scales).unwrap(), w)
        }
    };
    let products = [1.0f32, 20.0].map(|outlier| {
        let mut x = normal(&mut random, m * k);
        x.iter_mut().step_by(100).for_each(|x| *x *= outlier);
        let (dx, mut y) = (device.upload(&x).unwrap(), device.zeros::<f32>(m * n).unwrap());
        weights.product(device, &dx.view([m, k]).unwrap(), &mut y.view_mut([m, n]).unwrap()).unwrap();
        let exact = |i: usize| (0..k).map(|j| f64::from(x[i / n * k + j]) * f64::from(w[i % n * k + j])).sum::<f64>();
        relative(y.download().unwrap().into_iter().enumerate().map(|(i, y)| (f64::from(y), exact(i))))
    });
    let weights = relative(w.iter().zip(&numbers).map(|(w, x)| (f64::from(*w), f64::from(*x))));
    Accuracy { weights, products }
}

/// Limits the errors of all formats, and compares the page of them. llama.cpp has 1.4 % for Q4_0
/// and normal activations.
#[test]
fn products_are_accurate() {
    let mut page =
        String::from("| format | bits a weight | weights | products | with outliers |\n|---|---|---|---|---|\n");
    for format in Format::ALL {
        let (Accuracy { weights, products: [normal, outliers] }, [numbers, bytes]) =
            (accuracy(&Device::cpu(), format), format.block());
        assert!(normal <= 0.008 && outliers <= 0.02, "{format:?}: {normal}, {outliers}");
        let bits = 8.0 * bytes as f64 / numbers as f64;
        let [weights, normal, outliers] = [weights, normal, outliers].map(|x| format!("{:.2} %", 100.0 * x));
        page += &format!("| {} | {bits} | {weights} | {normal} | {outliers} |\n", format.name());
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels-rs/src/quant/accuracy.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), page, "UPDATE=1 writes the page");
}

/// Checks a layer of experts, by rows of routes and by rows in groups of every size. The layer's
/// graph is replayed with other routes.
fn experts(device: &Device) {
    let (mut random, [count, chosen, n, k]) = (Random::new(11), [4, 2, 36, 64]);
    let numbers: Vec<f32> = random.values(count * n * k);
    let back: Vec<f32> = random.values(count * k * n);
    let up = Weights::quantize_q8(device, &device.upload(&numbers).unwrap().view([count * n, k]).unwrap()).unwrap();
    let down = Weights::quantize_q4(device, &device.upload(&back).unwrap().view([count * k, n]).unwrap()).unwrap();
    let dense = |weights: &Weights| {
        let mut w = device.zeros::<f32>(count * n * k).unwrap();
        weights.dequantize(device, &mut w.view_mut(weights.extents()).unwrap()).unwrap();
        w.download().unwrap()
    };
    let (w_up, w_down) = (dense(&up), dense(&down));
    // Routes for each expert: 1, 8, 16, 34, 60.
    for tokens in [2, 16, 32, 68, 120, 0] {
        let recording = device.record();
        let logits = recording.own(device.zeros::<f32>(tokens * count).unwrap()).unwrap();
        let x: Vec<f32> = random.values(tokens * k);
        let dx = recording.own(device.upload(&x).unwrap()).unwrap();
        let y = recording.own(device.zeros::<f32>(tokens * k).unwrap()).unwrap();
        let routing = Routing::softmax(chosen).normalized();
        let routes = routing.run(&recording, &logits.view([tokens, count]).unwrap(), None).unwrap();
        let rows = routes.rows(&recording).unwrap();
        let hidden = recording.own(device.zeros::<f32>(rows.count() * n).unwrap()).unwrap();
        let wide = recording.own(device.zeros::<f32>(rows.count() * k).unwrap()).unwrap();
        let (of_hidden, of_wide) = ([rows.count(), n], [rows.count(), k]);
        let mut to = hidden.view_mut(of_hidden).unwrap();
        rows.product_of_tokens(&recording, &up, &dx.view([tokens, k]).unwrap(), &mut to).unwrap();
        let mut to = wide.view_mut(of_wide).unwrap();
        rows.product_of_rows(&recording, &down, &hidden.view(of_hidden).unwrap(), &mut to).unwrap();
        let mut to = y.view_mut([tokens, k]).unwrap();
        rows.combine(&recording, &wide.view(of_wide).unwrap(), &mut to).unwrap();
        let mut graph = recording.finish().unwrap();
        let stream = device.stream().unwrap();
        for _ in 0..2 {
            let l: Vec<f32> = random.values(tokens * count);
            graph.buffer_mut(logits).unwrap().copy_from(&l).unwrap();
            graph.replay(&stream).unwrap();
            stream.wait().unwrap();
            let got = graph.buffer(y).unwrap().download().unwrap();
            for token in 0..tokens {
                let mut order: Vec<usize> = (0..count).collect();
                order.sort_by(|a, b| l[token * count + b].total_cmp(&l[token * count + a]));
                let e: Vec<f64> = order[..chosen].iter().map(|i| f64::from(l[token * count + i]).exp()).collect();
                let (mut value, mut size) = (vec![0.0; k], 0.0f64);
                for (expert, weight) in order.iter().zip(&e) {
                    let seen = quantized(&x[token * k..][..k]);
                    let dot = |w: &[f32], x: &[f64]| w.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
                    let h: Vec<f32> = (0..n).map(|j| dot(&w_up[(expert * n + j) * k..][..k], &seen) as f32).collect();
                    let seen = quantized(&h);
                    for (i, value) in value.iter_mut().enumerate() {
                        *value += weight / e.iter().sum::<f64>() * dot(&w_down[(expert * k + i) * n..][..n], &seen);
                    }
                    size = size.max(h.iter().fold(0.0, |top: f64, h| top.max(f64::from(h.abs()))));
                }
                for (i, value) in value.into_iter().enumerate() {
                    // If a hidden number rounds to another byte, it changes by 1/127 of the largest
                    // one.
                    let off = 0.01 * size;
                    let got = f64::from(got[token * k + i]);
                    assert!((got - value).abs() <= off, "{tokens} tokens, {token}, {i}: {got}, not {value}");
                }
            }
        }
    }
}

#[test]
fn cpu_experts_multiply_their_rows() {
    experts(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_experts_multiply_their_rows() {
    experts(&Device::cuda(0).unwrap());
}

/// Returns the contents of a buffer.
fn held<T: Element>(memory: &QueueMemory<T>) -> Vec<T> {
    match memory {
        QueueMemory::Buffer(buffer) => buffer.download().unwrap(),
        QueueMemory::Slot(_) => panic!("a graph's"),
    }
}

/// Checks quantization to bytes with scales and zero points, for a matrix and for its rows,
/// dequantization, and their product.
fn affine(device: &Device) {
    let mut random = Random::new(6);
    for [rows, cols] in [[1, 1], [3, 8], [5, 1500], [70, 3], [2, 0]] {
        let mut x: Vec<f32> = random.values(rows * cols);
        // A row of zeros, and one with positive numbers only.
        x.iter_mut().take(if rows > 2 { cols } else { 0 }).for_each(|x| *x = 0.0);
        x.iter_mut().skip(cols).take(cols).for_each(|x| *x = x.abs() + 1.0);
        let (dx, x_all) = (device.upload(&x).unwrap(), &x);
        let view = dx.view([rows, cols]).unwrap();
        for (symmetric, each) in [(true, true), (true, false), (false, true), (false, false)] {
            let fitted =
                if each { Affine::fit_rows(device, &view, symmetric) } else { Affine::fit(device, &view, symmetric) }
                    .unwrap();
            let mut q = device.zeros::<i8>(rows * cols).unwrap();
            fitted.quantize(device, &view, &mut q.view_mut([rows, cols]).unwrap()).unwrap();
            let mut back = device.zeros::<f32>(rows * cols).unwrap();
            fitted
                .dequantize(device, &q.view([rows, cols]).unwrap(), &mut back.view_mut([rows, cols]).unwrap())
                .unwrap();
            let (scale, zero) = (held(&fitted.scale), held(&fitted.zero));
            assert_eq!([scale.len(), zero.len()], [if each { rows } else { 1 }; 2]);
            let what = format!("{rows} × {cols}, symmetric {symmetric}, each row {each}");
            for (i, (x, back)) in x.iter().zip(back.download().unwrap()).enumerate() {
                let which = if each { i / cols } else { 0 };
                let of = if each { &x_all[which * cols..(which + 1) * cols] } else { &x_all[..] };
                let (low, high) = of.iter().fold((0.0f32, 0.0f32), |(low, high), x| (low.min(*x), high.max(*x)));
                let unit = if symmetric { high.max(-low) / 127.0 } else { (high - low) / 255.0 };
                assert_eq!(scale[which], unit, "{what}");
                // The error is half a step, and up to a whole step where the ends of the range are
                // rounded in opposite directions.
                assert!((back - x).abs() <= 1.001 * unit * if symmetric { 0.5 } else { 1.0 }, "{what}: {back} for {x}");
            }
        }
    }
}

#[test]
fn cpu_affine_products_agree_with_the_reference() {
    affine(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_affine_products_agree_with_the_reference() {
    affine(&Device::cuda(0).unwrap());
}

/// Checks numbers at the extremes of `f32`. Finite numbers remain finite, within half a step where
/// the scale is the width over 255, and infinities become an end of the range.
fn affine_extremes(device: &Device) {
    let (mut random, cols) = (Random::new(7), 24);
    for extreme in Extreme::ALL {
        let x = extreme.fill::<f32>(&mut random, cols);
        let (dx, mut q) = (device.upload(&x).unwrap(), device.zeros::<i8>(cols).unwrap());
        let (view, finite) = (dx.view([1, cols]).unwrap(), x.iter().filter(|x| x.is_finite()).map(|x| f64::from(*x)));
        let (low, high) = finite.fold((0f64, 0f64), |(low, high), x| (low.min(x), high.max(x)));
        for symmetric in [true, false] {
            let fitted = Affine::fit(device, &view, symmetric).unwrap();
            let mut back = device.zeros::<f32>(cols).unwrap();
            fitted.quantize(device, &view, &mut q.view_mut([1, cols]).unwrap()).unwrap();
            let (bytes, to) = (q.view([1, cols]).unwrap(), &mut back.view_mut([1, cols]).unwrap());
            fitted.dequantize(device, &bytes, to).unwrap();
            let scale = f64::from(held(&fitted.scale)[0]);
            let wanted = if symmetric { high.max(-low) / 127.0 } else { (high - low) / 255.0 };
            // Normal scales are rounded, and subnormal scales are rounded up.
            assert!((scale - wanted).abs() <= wanted * 1e-7 + 2f64.powi(-149), "{extreme}: {scale} for {wanted}");
            for (x, back) in x.iter().zip(back.download().unwrap()) {
                // An infinity becomes the smallest or largest byte.
                let ends = if symmetric { [-128.0 * scale, 127.0 * scale] } else { [low, high] };
                let near = f64::from(*x).clamp(ends[0], ends[1]).clamp(f64::from(f32::MIN), f64::from(f32::MAX));
                let off = (f64::from(back) - near).abs();
                let most = 1.001 * scale * if symmetric { 0.5 } else { 1.0 };
                assert!(x.is_nan() || back.is_finite() && off <= most, "{extreme}, {symmetric}: {back:e} for {x:e}");
                assert!(*x != 0.0 || back == 0.0, "{extreme}: 0 is dequantized to {back:e}");
            }
        }
    }
    // The width of the range overflows.
    let (x, mut q) = ([3e38f32, -3e38, 0.0, 1e38], device.zeros::<i8>(4).unwrap());
    let (dx, mut back) = (device.upload(&x).unwrap(), device.zeros::<f32>(4).unwrap());
    let view = dx.view([1, 4]).unwrap();
    let fitted = Affine::fit(device, &view, false).unwrap();
    fitted.quantize(device, &view, &mut q.view_mut([1, 4]).unwrap()).unwrap();
    fitted.dequantize(device, &q.view([1, 4]).unwrap(), &mut back.view_mut([1, 4]).unwrap()).unwrap();
    let back = back.download().unwrap();
    // A step is 6·10³⁸ / 255.
    assert!(back.iter().zip(&x).all(|(back, x)| (back - x).abs() < 2.4e36) && back[2] == 0.0, "{back:?}");
    // The maximum is below 127 / f32::MAX.
    let dx = device.upload(&[1e-40f32, 5e-41, 0.0, -1e-40]).unwrap();
    let (view, mut q) = (dx.view([1, 4]).unwrap(), device.zeros::<i8>(4).unwrap());
    Affine::fit(device, &view, true).unwrap().quantize(device, &view, &mut q.view_mut([1, 4]).unwrap()).unwrap();
    assert_eq!(q.download().unwrap(), [127, 63, 0, -127]);
}

#[test]
fn cpu_affine_extremes_have_documented_results() {
    affine_extremes(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_affine_extremes_have_documented_results() {
    affine_extremes(&Device::cuda(0).unwrap());
}

/// Checks a graph of quantized products. The first quantizes its rows in a separate launch, the
/// second does not, and the last returns bytes. A replay gives the results of the calls.
fn recorded(device: &Device) {
    let mut random = Random::new(8);
    let (rows, inner, depth) = (12, 40, 64);
    let (x, w, v): (Vec<f32>, Vec<f32>, Vec<f32>) =
        (random.values(rows * depth), random.values(inner * depth), random.values(depth * inner));
    let (dw, dv) = (device.upload(&w).unwrap(), device.upload(&v).unwrap());
    let first = Weights::quantize_q4(device, &dw.view([inner, depth]).unwrap()).unwrap();
    let second = Weights::quantize_q8(device, &dv.view([depth, inner]).unwrap()).unwrap();
    // The graph computes X·Wᵀ, the product of its first row with Vᵀ, and X·Xᵀ of bytes.
    let recording = device.record();
    let input = recording.own(device.upload(&x).unwrap()).unwrap();
    let between = recording.own(device.zeros::<f32>(rows * inner).unwrap()).unwrap();
    let output = recording.own(device.zeros::<f32>(depth).unwrap()).unwrap();
    let bytes = recording.own(device.zeros::<i8>(rows * depth).unwrap()).unwrap();
    let square = recording.own(device.zeros::<f32>(rows * rows).unwrap()).unwrap();
    let view = input.view([rows, depth]).unwrap();
    first.product(&recording, &view, &mut between.view_mut([rows, inner]).unwrap()).unwrap();
    second
        .product(
            &recording,
            &between.view([rows, inner]).unwrap().slice(0..1).unwrap(),
            &mut output.view_mut([1, depth]).unwrap(),
        )
        .unwrap();
    let affine = Affine::fit_rows(&recording, &view, false).unwrap();
    affine.quantize(&recording, &view, &mut bytes.view_mut([rows, depth]).unwrap()).unwrap();
    let q = Quantized::new(bytes.view([1, rows, depth]).unwrap())
        .scale(affine.scale.view([rows]).unwrap())
        .zero(affine.zero.view([rows]).unwrap());
    Igemm::new().transpose_b().run(&recording, q, q, &mut square.view_mut([1, rows, rows]).unwrap()).unwrap();
    let mut graph = recording.finish().unwrap();
    let stream = device.stream().unwrap();

    for times in [1.0f32, -2.0] {
        let scaled: Vec<f32> = x.iter().map(|x| times * x).collect();
        graph.buffer_mut(input).unwrap().copy_from(&scaled).unwrap();
        graph.replay(&stream).unwrap();
        stream.wait().unwrap();
        let dx = device.upload(&scaled).unwrap();
        let view = dx.view([rows, depth]).unwrap();
        let mut y = device.zeros::<f32>(rows * inner).unwrap();
        first.product(device, &view, &mut y.view_mut([rows, inner]).unwrap()).unwrap();
        assert_eq!(graph.buffer(between).unwrap().download().unwrap(), y.download().unwrap());
        let mut z = device.zeros::<f32>(depth).unwrap();
        let row = y.view_strided([1, inner], [inner, 1]).unwrap();
        second.product(device, &row, &mut z.view_mut([1, depth]).unwrap()).unwrap();
        assert_eq!(graph.buffer(output).unwrap().download().unwrap(), z.download().unwrap());
        // A number has an error of at most half a step, or one step where the ends of the range are
        // rounded in opposite directions. The error of a product follows from its factors.
        let got = graph.buffer(square).unwrap().download().unwrap();
        for (i, got) in got.into_iter().enumerate() {
            let row = |r: usize| scaled[r * depth..(r + 1) * depth].iter().map(|x| f64::from(*x));
            let unit = |r: usize| {
                let (low, high) = row(r).fold((0.0f64, 0.0f64), |(low, high), x| (low.min(x), high.max(x)));
                1.001 * (high - low) / 255.0
            };
            let (a, b) = (i / rows, i % rows);
            let exact: f64 = row(a).zip(row(b)).map(|(x, y)| x * y).sum();
            let off: f64 = row(a).zip(row(b)).map(|(x, y)| x.abs() * unit(b) + (y.abs() + unit(b)) * unit(a)).sum();
            assert!((f64::from(got) - exact).abs() <= off, "at {a}, {b}: {got}, not {exact}");
        }
    }
}

#[test]
fn cpu_recorded_products_run_again() {
    recorded(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_recorded_products_run_again() {
    recorded(&Device::cuda(0).unwrap());
}
