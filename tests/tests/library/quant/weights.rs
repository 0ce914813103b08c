//! Products with block-quantized weights: those of the library's own calls, and those of files.

use super::{bytes, dequantized, multiplied, quantized};
use kernels_rs::quant::formats::host::{self, Ggml};
use kernels_rs::quant::{Format, Weights, formats};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_quantized_weights_agree_with_the_reference gpu_quantized_weights_agree_with_the_reference weights;
    cpu_weights_of_files_agree_with_the_reference gpu_weights_of_files_agree_with_the_reference files;
}

/// Checks weights of each format, with the numbers of rows for every kernel, and with full and
/// partial blocks.
fn weights(device: &Device) {
    let mut random = Random::new(9);
    for [m, n, k] in [
        [1, 5, 64],
        // Three columns a warp on the two multiprocessors of the CPU device.
        [1, 80, 1056],
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
        let q8 = Weights::quantize_q8(device, &view).unwrap();
        let q4 = Weights::quantize_q4(device, &view).unwrap();
        let (eight, four) = (dequantized(device, &q8), dequantized(device, &q4));
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
            assert_eq!(dequantized(device, &weights), numbers, "{}", F::NAME);
            let (dx, mut y) = (device.upload(&x).unwrap(), device.upload(&vec![f32::NAN; m * n]).unwrap());
            weights.product(device, &dx.view([m, k]).unwrap(), &mut y.view_mut([m, n]).unwrap()).unwrap();
            multiplied(&format!("{} {m} × {n} × {k}", F::NAME), &y.download().unwrap(), &x, &numbers, k);
        }
    }
    each_format!(check, device);
}
