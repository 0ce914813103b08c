//! Tests of convolution, on the CPU and on a GPU, against its definition in `f64`.

use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::convolution::Convolution;
use runtime::Device;
use runtime::testing::Random;

/// Extents of x, channels of the output, extents of the kernel; stride, padding and dilation.
type Case = ([usize; 5], usize, [usize; 3], [[usize; 3]; 3]);

const NONE: [usize; 3] = [0; 3];
const ONE: [usize; 3] = [1; 3];

const CASES: [Case; 9] = [
    // Patches of images and of pairs of frames, as vision encoders use them.
    ([2, 3, 2, 6, 8], 5, [2, 2, 4], [[2, 2, 4], NONE, ONE]),
    ([1, 3, 4, 28, 28], 7, [2, 14, 14], [[2, 14, 14], NONE, ONE]),
    ([1, 2, 1, 7, 9], 4, [1, 3, 2], [[1, 3, 2], NONE, ONE]),
    // Windows that overlap, and that reach beyond the input.
    ([2, 2, 3, 5, 6], 3, [3, 3, 3], [ONE, ONE, ONE]),
    ([1, 1, 5, 9, 4], 2, [2, 3, 2], [[2, 1, 3], [0, 2, 3], [2, 3, 1]]),
    // Windows of single elements, and an input without windows.
    ([2, 5, 1, 3, 4], 6, ONE, [ONE, NONE, ONE]),
    ([1, 2, 1, 2, 2], 3, [1, 3, 3], [ONE, NONE, ONE]),
    ([2, 0, 1, 3, 3], 2, [1, 2, 2], [ONE, NONE, ONE]),
    ([0, 2, 2, 2, 2], 2, ONE, [ONE, NONE, ONE]),
];

fn run<T: Float + GenericArgument>(device: &Device, near: f64, cases: impl Iterator<Item = Case>) {
    let mut random = Random::new(17);
    for (n, (extents @ [samples, channels, d, h, w], out, kernel, [stride, padding, dilation])) in cases.enumerate() {
        let what = format!("{extents:?} to {out} by {kernel:?}, {stride:?}, {padding:?}, {dilation:?}");
        let depth = channels * kernel.iter().product::<usize>();
        let mut drawn = |n: usize| -> Vec<T> { random.values::<f32>(n).into_iter().map(T::from_f32).collect() };
        // Rows with a gap between them, except in the case of single elements.
        let gap = if n % 2 == 0 { 0 } else { 4 };
        let pitch = w + gap;
        let (x, weight) = (drawn(samples * channels * d * h * pitch), drawn(out * depth));
        let bias: Vec<f32> = drawn(out).into_iter().map(T::to_f32).collect();
        // All windows in one call, or a few per call.
        let call = Convolution::new().stride(stride).padding(padding).dilation(dilation);
        let call = if n % 2 == 0 { call } else { call.at_once(4 * depth * size_of::<T>() * (1 + n / 2)) };
        let count @ [od, oh, ow] = call.windows([d, h, w], kernel);
        let windows: usize = count.iter().product();
        let wide = |x: T| f64::from(x.to_f32());
        let expected = |sample: usize, o: usize, window: usize| {
            let place = [window / (oh * ow), window / ow % oh, window % ow];
            let mut sum = if n % 3 == 0 { 0.0 } else { f64::from(bias[o]) };
            for i in 0..depth {
                let within = [i / (kernel[1] * kernel[2]) % kernel[0], i / kernel[2] % kernel[1], i % kernel[2]];
                let at = [0, 1, 2].map(|a| (place[a] * stride[a] + within[a] * dilation[a]).wrapping_sub(padding[a]));
                if at[0] < d && at[1] < h && at[2] < w {
                    let channel = sample * channels + i / kernel.iter().product::<usize>();
                    sum += wide(x[((channel * d + at[0]) * h + at[1]) * pitch + at[2]]) * wide(weight[o * depth + i]);
                }
            }
            sum
        };
        let (of_x, of_weight) = (device.upload(&x).unwrap(), device.upload(&weight).unwrap());
        let of_bias = device.upload(&bias).unwrap();
        let rows = d * h * pitch;
        let of_x = of_x.view_strided(extents, [channels * rows, rows, h * pitch, pitch, 1]).unwrap();
        let of_weight = of_weight.view([out, channels, kernel[0], kernel[1], kernel[2]]).unwrap();
        let of_bias = of_bias.view([out]).unwrap();
        let of_bias = (n % 3 > 0).then_some(&of_bias);

        let mut y = device.upload(&vec![f32::NAN; samples * out * windows]).unwrap();
        call.run(device, &of_x, &of_weight, of_bias, &mut y.view_mut([samples, out, od, oh, ow]).unwrap()).unwrap();
        for (at, got) in y.download().unwrap().into_iter().enumerate() {
            let reference = expected(at / windows / out, at / windows % out, at % windows);
            assert!((f64::from(got) - reference).abs() < near, "{what}: {at} is {got}, not {reference}");
        }
        let mut tokens = device.upload(&vec![T::from_f32(f32::NAN); samples * out * windows]).unwrap();
        let mut of_tokens = tokens.view_mut([samples, windows, out]).unwrap();
        call.run_tokens(device, &of_x, &of_weight, of_bias, &mut of_tokens).unwrap();
        for (at, got) in tokens.download().unwrap().into_iter().enumerate() {
            let reference = expected(at / out / windows, at % out, at / out % windows);
            // Stored values are rounded to their type.
            let rest = T::from_f32(1.0).to_f32() as f64 * near * reference.abs().max(1.0);
            assert!(
                (wide(got) - reference).abs() < near + rest,
                "{what}: {at} of the tokens is {}, not {reference}",
                wide(got)
            );
        }
    }
}

#[test]
fn cpu_convolution_agrees_with_the_reference() {
    run::<f32>(&Device::cpu(), 1e-4, CASES.into_iter());
    run::<f16>(&Device::cpu(), 1e-2, CASES.into_iter().step_by(3));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_convolution_agrees_with_the_reference() {
    let device = Device::cuda(0).unwrap();
    run::<f32>(&device, 1e-4, CASES.into_iter());
    run::<f16>(&device, 1e-2, CASES.into_iter());
    run::<bf16>(&device, 8e-2, CASES.into_iter());
}

/// Checks the windows of a part of the output, and the rejection of invalid calls.
#[test]
fn windows_are_counted_and_invalid_calls_refused() {
    let device = Device::cpu();
    let call = Convolution::new().stride([1, 2, 3]).padding([0, 1, 2]);
    assert_eq!(call.windows([3, 4, 5], [3, 3, 3]), [1, 2, 3]);
    assert_eq!(call.windows([2, 4, 5], [3, 3, 3])[0], 0);
    let x = device.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    let x = x.view([1, 1, 1, 1, 6]).unwrap();
    let mut columns = device.zeros::<f32>(6).unwrap();
    let pairs = Convolution::new();
    pairs.columns(&device, &x, [1, 1, 2], 2, &mut columns.view_mut([3, 2]).unwrap()).unwrap();
    assert_eq!(columns.download().unwrap(), [3.0, 4.0, 4.0, 5.0, 5.0, 6.0]);
    let mut refused = |call: Convolution, first: usize| {
        call.columns(&device, &x, [1, 1, 2], first, &mut columns.view_mut([3, 2]).unwrap()).unwrap_err().to_string()
    };
    let said = refused(pairs, 3);
    assert!(said.contains("3 rows of 2 from window 3 on exceed the 5 windows of 1 × [1, 1, 2]"), "{said}");
    let said = refused(pairs.stride([1, 0, 1]), 0);
    assert!(said.contains("a stride is 0"), "{said}");
    let said = refused(pairs.padding([0, 0, 1 << 40]), 0);
    assert!(said.contains("reaches beyond"), "{said}");
}
