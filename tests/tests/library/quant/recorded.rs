//! Quantized products in a graph.

use kernels_rs::quant::{Affine, Igemm, Quantized, Weights};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_recorded_products_run_again gpu_recorded_products_run_again recorded;
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
