//! Tests of a decoder layer: a prompt, and then one token at a time.

use super::reference::{Matrix, attention, each_head, rms_norm, rotate, silu};
use super::{StoredFloat, close, learnt};
use kernel_dsl::half::f16;
use kernels_rs::attention::Scratch;
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::{DecoderLayer, DecoderShape, DecoderWeights};
use kernels_rs::rotary::Rotary;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

const SHAPE: DecoderShape = DecoderShape { width: 48, heads: 2, groups: 1, head: 64, inner: 40, epsilon: 1e-6 };
const BASE: f64 = 10_000.0;
/// Rows of the cache per sequence.
const MAX_KEYS: usize = 8;

/// The weights on the host.
struct Plain {
    norm: Vec<f32>,
    projection: Vec<f32>,
    head_norms: [Vec<f32>; 2],
    output: Vec<f32>,
    network_norm: Vec<f32>,
    gate_and_up: Vec<f32>,
    down: Vec<f32>,
}

fn weights<T: StoredFloat>(device: &Device, random: &mut Random) -> (DecoderWeights<T>, Plain) {
    let DecoderShape { width, heads, head, inner, .. } = SHAPE;
    let mut draw = |n: usize, size: f32| learnt::<T>(device, random, n, size);
    let (norm, network_norm) = (draw(width, 1.0), draw(width, 1.0));
    let (q_norm, k_norm) = (draw(head, 1.5), draw(head, 1.5));
    let projection = draw(SHAPE.projection_rows() * width, 0.2);
    let output = draw(width * heads * head, 0.2);
    let gate_and_up = draw(2 * inner * width, 0.2);
    let down = draw(width * inner, 0.2);
    let plain = Plain {
        norm: norm.1,
        projection: projection.1,
        head_norms: [q_norm.1, k_norm.1],
        output: output.1,
        network_norm: network_norm.1,
        gate_and_up: gate_and_up.1,
        down: down.1,
    };
    let weights = DecoderWeights {
        norm: norm.0,
        projection: projection.0,
        head_norms: [q_norm.0, k_norm.0],
        output: output.0,
        network_norm: network_norm.0,
        gate_and_up: gate_and_up.0,
        down: down.0,
    };
    (weights, plain)
}

/// Computes the output of the layer for a whole sequence.
fn expected(plain: &Plain, x: &Matrix) -> Matrix {
    let DecoderShape { width, heads, groups, head, inner, epsilon } = SHAPE;
    let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
    let epsilon = f64::from(epsilon);
    let qkv = rms_norm(x, &wide(&plain.norm), epsilon).through(&Matrix::new(&plain.projection, width));
    let [q_end, k_end] = [heads * head, (heads + groups) * head];
    let positioned = |x: Matrix, norm: &[f32]| {
        let normed = each_head(&x, head, |heads| rms_norm(heads, &wide(norm), epsilon));
        rotate(&normed, head, BASE, |row| row)
    };
    let q = positioned(qkv.columns(0..q_end), &plain.head_norms[0]);
    let k = positioned(qkv.columns(q_end..k_end), &plain.head_norms[1]);
    let v = qkv.columns(k_end..qkv.cols);
    let o = attention(&q, &k, &v, head, true);
    let x = x.plus(&o.through(&Matrix::new(&plain.output, heads * head)));
    let both = rms_norm(&x, &wide(&plain.network_norm), epsilon).through(&Matrix::new(&plain.gate_and_up, width));
    let (gate, up) = (both.columns(0..inner).map(silu), both.columns(inner..2 * inner));
    let gated = Matrix { values: gate.values.iter().zip(&up.values).map(|(a, b)| a * b).collect(), cols: inner };
    x.plus(&gated.through(&Matrix::new(&plain.down, inner)))
}

/// Numbers of tokens on the device.
struct Numbers {
    positions: DeviceBuffer<u32>,
    slots: DeviceBuffer<u32>,
    axes: DeviceBuffer<u32>,
    frequencies: DeviceBuffer<f32>,
}

fn numbers(device: &Device, positions: &[u32], slots: &[u32]) -> Numbers {
    let frequencies = Rotary::frequencies(BASE, SHAPE.head);
    Numbers {
        positions: device.upload(positions).unwrap(),
        slots: device.upload(slots).unwrap(),
        axes: device.upload(&vec![0u32; frequencies.len()]).unwrap(),
        frequencies: device.upload(&frequencies).unwrap(),
    }
}

impl Numbers {
    fn tokens(&self) -> Tokens<'_> {
        let (n, pairs) = (self.slots.len(), self.axes.len());
        Tokens {
            positions: self.positions.view([1, n]).unwrap(),
            axes: self.axes.view([pairs]).unwrap(),
            frequencies: self.frequencies.view([pairs]).unwrap(),
            slots: self.slots.view([n]).unwrap(),
        }
    }
}

/// Decodes two sequences with prompts of different lengths, the second in two pieces. Both then
/// continue together, one token at a time, in a graph.
fn decoder<T: StoredFloat>(device: &Device, roundings: f64) {
    let DecoderShape { width, heads, groups, head, .. } = SHAPE;
    let mut random = Random::new(11);
    let (weights, plain) = weights::<T>(device, &mut random);
    let layer = DecoderLayer::new(SHAPE, weights);
    let (prompts, steps) = ([2, 5], 2);
    let inputs = prompts.map(|n| random.values::<f32>((n + steps) * width));
    let wanted = inputs.each_ref().map(|x| expected(&plain, &Matrix::new(x, width)));

    let stream = device.stream().unwrap();
    let size = [2, groups, MAX_KEYS, head];
    let [mut keys, mut values] = [(); 2].map(|()| device.zeros::<T>(size.iter().product()).unwrap());
    for (sequence, piece) in [(0, 0..2), (1, 0..2), (1, 2..5)] {
        let mut x = device.upload(&inputs[sequence][piece.start * width..piece.end * width]).unwrap();
        let positions: Vec<u32> = piece.clone().map(|i| i as u32).collect();
        let slots: Vec<u32> = piece.clone().map(|i| (sequence * MAX_KEYS + i) as u32).collect();
        let numbers = numbers(device, &positions, &slots);
        let mut cache = Cache { keys: keys.view_mut(size).unwrap(), values: values.view_mut(size).unwrap() };
        let mut view = x.view_mut([piece.len(), width]).unwrap();
        layer.prefill(&stream, &mut view, &numbers.tokens(), &mut cache, sequence, piece.start).unwrap();
        stream.wait().unwrap();
        let part =
            Matrix { values: wanted[sequence].values[piece.start * width..piece.end * width].to_vec(), cols: width };
        close::<T>(&format!("tokens {piece:?} of sequence {sequence}"), &x.download().unwrap(), &part, roundings);
    }

    let recording = device.record();
    let lent = |n: usize| recording.own(device.zeros::<u32>(n).unwrap()).unwrap();
    let (positions, slots, lengths) = (lent(2), lent(2), lent(2));
    let pairs = head / 2;
    let frequencies = device.upload(&Rotary::frequencies(BASE, head)).unwrap();
    let axes = lent(pairs);
    let frequencies = recording.own(frequencies).unwrap();
    let x = recording.own(device.zeros::<f32>(2 * width).unwrap()).unwrap();
    let (keys, values) = (recording.lend(&mut keys).unwrap(), recording.lend(&mut values).unwrap());
    let mut scratch = Scratch::new(&recording, [2, heads, head], groups, MAX_KEYS).unwrap();
    let tokens = Tokens {
        positions: positions.view([1, 2]).unwrap(),
        axes: axes.view([pairs]).unwrap(),
        frequencies: frequencies.view([pairs]).unwrap(),
        slots: slots.view([2]).unwrap(),
    };
    let mut cache = Cache { keys: keys.view_mut(size).unwrap(), values: values.view_mut(size).unwrap() };
    let lengths_view = lengths.view([2]).unwrap();
    let mut x_view = x.view_mut([2, width]).unwrap();
    layer.decode(&recording, &mut x_view, &tokens, &lengths_view, &mut cache, &mut scratch).unwrap();
    let mut graph = recording.finish().unwrap();
    for step in 0..steps {
        let at = prompts.map(|n| n + step);
        let rows: Vec<f32> = (0..2).flat_map(|s| inputs[s][at[s] * width..][..width].to_vec()).collect();
        graph.buffer_mut(x).unwrap().copy_from(&rows).unwrap();
        graph.buffer_mut(positions).unwrap().copy_from(&at.map(|n| n as u32)).unwrap();
        graph.buffer_mut(slots).unwrap().copy_from(&[at[0] as u32, (MAX_KEYS + at[1]) as u32]).unwrap();
        graph.buffer_mut(lengths).unwrap().copy_from(&at.map(|n| n as u32 + 1)).unwrap();
        graph.replay(&stream).unwrap();
        stream.wait().unwrap();
        let got = graph.buffer(x).unwrap().download().unwrap();
        let next = (0..2).flat_map(|s| wanted[s].values[at[s] * width..][..width].to_vec()).collect();
        close::<T>(&format!("step {step}"), &got, &Matrix { values: next, cols: width }, roundings);
    }
}

/// Checks the layer in `f32`, with errors of repeated sums of some hundred products.
#[test]
fn cpu_decoder_agrees_with_its_reference() {
    decoder::<f32>(&Device::cpu(), 64.0);
}

#[test]
fn cpu_decoder_of_halves_agrees_with_its_reference() {
    decoder::<f16>(&Device::cpu(), 16.0);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_decoder_agrees_with_its_reference() {
    decoder::<f32>(&Device::cuda(0).unwrap(), 64.0);
    decoder::<f16>(&Device::cuda(0).unwrap(), 16.0);
}
