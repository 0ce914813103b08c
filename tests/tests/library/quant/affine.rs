//! Quantization of numbers to bytes with a scale and a zero point.

use kernel_dsl::Element;
use kernels_rs::QueueMemory;
use kernels_rs::quant::Affine;
use runtime::Device;
use runtime::testing::{Extreme, Random};

on_each_device! {
    cpu_affine_products_agree_with_the_reference gpu_affine_products_agree_with_the_reference affine;
    cpu_affine_extremes_have_documented_results gpu_affine_extremes_have_documented_results affine_extremes;
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
