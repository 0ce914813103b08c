//! Tests of the compared kernels: each on every executor, against plain Rust in `f64`.

use super::{plain, products, rows};
use crate::support::{agree, checker};
use runtime::testing::{Bound, Checker, Expected, Input};

/// Returns small integers, whose sums are exact in any order.
fn whole(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7 + seed * 13 + i * i % 11) % 17) as f32 - 8.0).collect()
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|x| f64::from(*x)).collect()
}

fn exact(argument: usize, values: Vec<f64>) -> [Expected; 1] {
    [Expected::new(argument, values, Bound::Exact)]
}

fn near(argument: usize, values: Vec<f64>, relative: f64, absolute: f64) -> [Expected; 1] {
    let bounds = values.iter().map(|v| v.abs() * relative + absolute).collect();
    [Expected::new(argument, values, Bound::Each(bounds))]
}

fn product(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f64> {
    let (a, b) = (wide(a), wide(b));
    (0..m * n).map(|i| (0..k).map(|j| a[i / n * k + j] * b[j * n + i % n]).sum()).collect()
}

fn all(checker: &Checker) {
    let (x, y) = (whole(600, 1), whole(600, 2));
    let line = x.iter().zip(&y).map(|(x, y)| f64::from(3.0 * x + y)).collect();
    let inputs = vec![Input::scalar(3.0f32), Input::slice(&x), Input::slice(&y)];
    agree::<plain::saxpy>(checker, "600", inputs, &exact(2, line));

    let x = whole(1300, 3);
    let sums = (0..512).map(|t| wide(&x).iter().skip(t).step_by(512).sum()).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&[0f32; 512])];
    agree::<plain::strided_sum>(checker, "1300", inputs, &exact(1, sums));

    let sums = x.chunks(256).map(|part| wide(part).iter().sum()).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&[0f32; 6])];
    agree::<plain::block_sum>(checker, "1300", inputs, &exact(1, sums));

    let x: Vec<u32> = (0..300).map(|i| i * i % 97).collect();
    let scan = |part: &[u32]| -> Vec<f64> {
        let sums = part.iter().scan(0, |sum, x| {
            *sum += x;
            Some(f64::from(*sum))
        });
        sums.collect()
    };
    let sums = x.chunks(32).flat_map(scan).collect();
    agree::<plain::warp_scan>(checker, "300", vec![Input::slice(&x), Input::slice(&[0u32; 300])], &exact(1, sums));

    let x = whole(45 * 70, 4);
    let transposed = (0..70 * 45).map(|i| f64::from(x[i % 45 * 70 + i / 45])).collect();
    let inputs = vec![Input::view(&x, [45, 70]), Input::view(&[0f32; 3150], [70, 45])];
    agree::<plain::transpose>(checker, "45 x 70", inputs, &exact(1, transposed));

    let mean = |i: usize| {
        let (r, c) = (i / 70, i % 70);
        if r == 0 || r == 44 || c == 0 || c == 69 {
            return 0.0;
        }
        let around = [i, i - 70, i + 70, i - 1, i + 1];
        f64::from(around.iter().map(|k| x[*k]).sum::<f32>() * 0.2)
    };
    let inputs = vec![Input::view(&x, [45, 70]), Input::view(&[0f32; 3150], [45, 70])];
    agree::<plain::stencil>(checker, "45 x 70", inputs, &exact(1, (0..3150).map(mean).collect()));

    let x: Vec<u8> = (0..2000u32).map(|i| (i * i % 251) as u8).collect();
    let mut bins = vec![0.0; 256];
    x.iter().for_each(|v| bins[usize::from(*v)] += 1.0);
    let inputs = vec![Input::slice(&x), Input::slice(&[0u32; 256]), Input::scalar(2u32)];
    agree::<plain::histogram>(checker, "2000", inputs, &exact(1, bins));

    for [m, n, k] in [[20, 33, 17], [16, 16, 16]] {
        let (a, b, c) = (whole(m * k, 5), whole(k * n, 6), vec![0f32; m * n]);
        let inputs = vec![Input::view(&a, [m, k]), Input::view(&b, [k, n]), Input::view(&c, [m, n])];
        agree::<products::tiled>(checker, "ragged", inputs, &exact(2, product(&a, &b, [m, n, k])));
    }
    let [m, n, k] = [128, 128, 24];
    let (a, b, c) = (whole(m * k, 7), whole(k * n, 8), vec![0f32; m * n]);
    let inputs = vec![Input::view(&a, [m, k]), Input::view(&b, [k, n]), Input::view(&c, [m, n])];
    agree::<products::blocked>(checker, "128 x 128 x 24", inputs, &exact(2, product(&a, &b, [m, n, k])));

    let x: Vec<f32> = whole(9 * 100, 9).iter().map(|x| x / 4.0).collect();
    let inputs = vec![Input::view(&x, [9, 100]), Input::view(&[0f32; 900], [9, 100])];
    let shares = x.chunks(100).flat_map(|row| {
        let exponentials: Vec<f64> = wide(row).iter().map(|x| x.exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        exponentials.into_iter().map(move |e| e / sum)
    });
    agree::<rows::softmax>(checker, "9 x 100", inputs, &near(1, shares.collect(), 1e-5, 1e-7));

    let (weight, bias) = (whole(100, 10), whole(100, 11));
    let (wide_weight, wide_bias) = (wide(&weight), wide(&bias));
    let normal = x.chunks(100).flat_map(|row| {
        let row = wide(row);
        let mean = row.iter().sum::<f64>() / 100.0;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 100.0;
        let scale = 1.0 / (variance + f64::from(1e-5f32)).sqrt();
        let (weight, bias) = (wide_weight.clone(), wide_bias.clone());
        row.into_iter().enumerate().map(move |(i, x)| ((x - mean) * scale).mul_add(weight[i], bias[i]))
    });
    let expected = near(3, normal.collect(), 1e-5, 1e-4);
    let inputs = vec![
        Input::view(&x, [9, 100]),
        Input::slice(&weight),
        Input::slice(&bias),
        Input::view(&[0f32; 900], [9, 100]),
        Input::scalar(1e-5f32),
    ];
    agree::<rows::layernorm>(checker, "9 x 100", inputs, &expected);

    let bytes = |seed: u32| -> Vec<[i8; 4]> {
        (0..700).map(|i| std::array::from_fn(|k| (i * 31 + seed + 57 * k as u32) as i8)).collect()
    };
    let (a, b) = (bytes(1), bytes(100));
    let products = |i: usize| -> i32 { (0..4).map(|k| i32::from(a[i][k]) * i32::from(b[i][k])).sum() };
    let sums = (0..256).map(|t| (t..700).step_by(256).map(|i| f64::from(products(i))).sum()).collect();
    let inputs = vec![Input::slice(&a), Input::slice(&b), Input::slice(&[0i32; 256])];
    agree::<rows::dot>(checker, "700", inputs, &exact(2, sums));

    let (x, frequencies): (Vec<f32>, Vec<f32>) =
        (whole(3 * 96, 12), (0..48).map(|i| (-(i as f32) / 12.0).exp2()).collect());
    let rotated = (0..3 * 96).map(|i| {
        let (row, col) = (i / 96, i % 96);
        let (s, c) = (f64::from(row as f32 + 2.0) * f64::from(frequencies[col % 48])).sin_cos();
        let (a, b) = (f64::from(x[row * 96 + col % 48]), f64::from(x[row * 96 + col % 48 + 48]));
        if col < 48 { a * c - b * s } else { b * c + a * s }
    });
    let expected = near(0, rotated.collect(), 1e-4, 1e-4);
    let inputs = vec![Input::view(&x, [3, 96]), Input::slice(&frequencies), Input::scalar(2u32)];
    agree::<rows::rotary>(checker, "3 x 96", inputs, &expected);
}

#[test]
fn compared_kernels_are_correct() {
    all(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_compared_kernels_are_correct() {
    all(&checker(true));
}
