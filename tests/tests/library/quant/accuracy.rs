//! The page of the errors of each format.

use super::{blocks, dequantized};
use kernels_rs::quant::{Format, Weights};
use runtime::Device;
use runtime::testing::Random;

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
    let (weights, w) = match format {
        Format::Int8 => {
            let scales: Vec<f32> =
                numbers.chunks(k).map(|row| row.iter().fold(0.0f32, |top, x| top.max(x.abs())) / 127.0).collect();
            let bytes: Vec<i8> = numbers.iter().enumerate().map(|(i, x)| (x / scales[i / k]).round() as i8).collect();
            let w = bytes.iter().enumerate().map(|(i, x)| f32::from(*x) * scales[i / k]).collect();
            let bytes = device.upload(&bytes).unwrap();
            let scales = device.upload(&scales).unwrap();
            (Weights::from_rows(device, &bytes.view([n, k]).unwrap(), scales).unwrap(), w)
        }
        _ => {
            let weights = blocks(device, format, &numbers, k);
            let w = dequantized(device, &weights);
            (weights, w)
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
