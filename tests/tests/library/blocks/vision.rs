//! Tests of a layer of a vision encoder, with images of different sizes in one call.

use super::reference::{Matrix, attention, gelu, layer_norm};
use super::{StoredFloat, close, learnt};
use kernel_dsl::half::f16;
use kernels_rs::blocks::{LayerNorm, Linear, VisionLayer, VisionShape, VisionWeights};
use kernels_rs::rotary::{PairLayout, Rotary};
use runtime::Device;
use runtime::testing::Random;

const SHAPE: VisionShape = VisionShape { width: 48, heads: 2, inner: 56, epsilon: 1e-6 };
const BASE: f64 = 10_000.0;

/// Returns a linear layer, with its weights and bias on the host.
fn linear<T: StoredFloat>(
    device: &Device,
    random: &mut Random,
    [out, depth]: [usize; 2],
) -> (Linear<T>, Matrix, Vec<f64>) {
    let (weight, plain) = learnt::<T>(device, random, out * depth, 0.2);
    let (bias, plain_bias) = learnt::<f32>(device, random, out, 0.5);
    (Linear { weight, bias }, Matrix::new(&plain, depth), plain_bias.iter().map(|x| f64::from(*x)).collect())
}

fn norm(device: &Device, random: &mut Random) -> (LayerNorm, [Vec<f64>; 2]) {
    let [(weight, w), (bias, b)] = [(); 2].map(|()| learnt::<f32>(device, random, SHAPE.width, 1.0));
    (LayerNorm { weight, bias }, [w, b].map(|x| x.iter().map(|x| f64::from(*x)).collect()))
}

/// Checks the layer. `images` has the offsets of the images' patches; some patches may belong to no
/// image.
fn vision<T: StoredFloat>(device: &Device, images: [u32; 3], roundings: f64) {
    let VisionShape { width, heads, inner, epsilon } = SHAPE;
    let (head, epsilon) = (width / heads, f64::from(epsilon));
    let mut random = Random::new(13);
    let (norm_1, plain_norm_1) = norm(device, &mut random);
    let (norm_2, plain_norm_2) = norm(device, &mut random);
    let (projection, w_qkv, b_qkv) = linear::<T>(device, &mut random, [3 * width, width]);
    let (output, w_o, b_o) = linear::<T>(device, &mut random, [width, width]);
    let (up, w_up, b_up) = linear::<T>(device, &mut random, [inner, width]);
    let (down, w_down, b_down) = linear::<T>(device, &mut random, [width, inner]);
    let weights = VisionWeights { norm: norm_1, projection, output, network_norm: norm_2, up, down };
    let layer = VisionLayer::new(SHAPE, weights);

    // Rows and columns of images with 2 × 3 patches and with 4 patches.
    let places: Vec<[u32; 2]> = (0..6).map(|i| [i / 3, i % 3]).chain((0..4).map(|i| [0, i])).collect();
    let n = places.len();
    let positions: Vec<u32> = (0..2).flat_map(|axis| places.iter().map(move |place| place[axis])).collect();
    // Half of the pairs rotate by the row, half by the column, with the same frequencies.
    let frequencies = Rotary::frequencies(BASE, head / 2);
    let both = [frequencies.clone(), frequencies.clone()].concat();
    let rotary =
        Rotary::with_axes(device, PairLayout::Halves, &both, &Rotary::sections(&[head / 4, head / 4])).unwrap();

    let input = random.values::<f32>(n * width);
    let mut x = device.upload(&input).unwrap();
    let (on_positions, on_images) = (device.upload(&positions).unwrap(), device.upload(&images).unwrap());
    let stream = device.stream().unwrap();
    layer
        .run(
            &stream,
            &mut x.view_mut([n, width]).unwrap(),
            &rotary,
            &on_positions.view([2, n]).unwrap(),
            &on_images.view([3]).unwrap(),
            6,
        )
        .unwrap();
    stream.wait().unwrap();

    let rotated = |x: &Matrix| {
        let mut x = x.clone();
        for (row, values) in x.values.chunks_mut(width).enumerate() {
            for values in values.chunks_mut(head) {
                for i in 0..head / 2 {
                    let position = places[row][usize::from(i >= head / 4)];
                    let angle = f64::from(position) * BASE.powf(-4.0 * (i % (head / 4)) as f64 / head as f64);
                    let (a, b) = (values[i], values[i + head / 2]);
                    values[i] = a * angle.cos() - b * angle.sin();
                    values[i + head / 2] = b * angle.cos() + a * angle.sin();
                }
            }
        }
        x
    };
    let x_is = Matrix::new(&input, width);
    let qkv = layer_norm(&x_is, &plain_norm_1[0], &plain_norm_1[1], epsilon).through(&w_qkv).biased(&b_qkv);
    let [q, k] = [0, 1].map(|i| rotated(&qkv.columns(i * width..(i + 1) * width)));
    let v = qkv.columns(2 * width..3 * width);
    let rows = |m: &Matrix, from: u32, to: u32| Matrix {
        values: m.values[from as usize * width..to as usize * width].to_vec(),
        cols: width,
    };
    // Patches of no image see no keys.
    let mut o = Matrix { values: vec![0.0; n * width], cols: width };
    for w in images.windows(2) {
        let [q, k, v] = [&q, &k, &v].map(|m| rows(m, w[0], w[1]));
        let of_image = attention(&q, &k, &v, head, false).values;
        o.values[w[0] as usize * width..w[1] as usize * width].copy_from_slice(&of_image);
    }
    let x_is = x_is.plus(&o.through(&w_o).biased(&b_o));
    let between = layer_norm(&x_is, &plain_norm_2[0], &plain_norm_2[1], epsilon).through(&w_up).biased(&b_up).map(gelu);
    let expected = x_is.plus(&between.through(&w_down).biased(&b_down));
    close::<T>("patches", &x.download().unwrap(), &expected, roundings);
}

const IMAGES: [u32; 3] = [0, 6, 10];

#[test]
fn cpu_vision_agrees_with_its_reference() {
    vision::<f32>(&Device::cpu(), IMAGES, 64.0);
}

#[test]
fn cpu_vision_of_halves_agrees_with_its_reference() {
    vision::<f16>(&Device::cpu(), IMAGES, 16.0);
}

/// Checks one patch before the first image, and some after the last.
#[test]
fn cpu_vision_of_fewer_patches_agrees_with_its_reference() {
    vision::<f32>(&Device::cpu(), [1, 6, 8], 64.0);
    vision::<f16>(&Device::cpu(), [1, 6, 8], 16.0);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_vision_agrees_with_its_reference() {
    vision::<f32>(&Device::cuda(0).unwrap(), IMAGES, 64.0);
    vision::<f16>(&Device::cuda(0).unwrap(), [1, 6, 8], 16.0);
}
