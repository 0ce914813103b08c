//! Spec of `im2col`.

use super::stored::{drawn, extreme, numbers, stored};
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::convolution::columns::{Lattice, im2col};
use runtime::testing::{Case, Expected, Extreme, Input, Random};

runtime::register!(im2col<f32, false, 1>, cases, reference);

/// Samples, channels, depth, height and width.
type Volume = [usize; 5];

/// Kernel, stride, padding and dilation.
type Form = [[usize; 3]; 4];

fn cases(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[inside, v] = numbers(instance).as_slice() else { return Vec::new() };
    let patches: [(Volume, Form); 4] = [
        ([1, 3, 2, 5, 4 * v], [[2, 3, 2 * v], [2, 3, 2 * v], [0; 3], [1; 3]]),
        ([2, 1, 3, 9, 6 * v], [[1, 2, v], [1, 3, 2 * v], [0; 3], [2, 3, 1]]),
        ([1, 1, 1, 1, v], [[1, 1, v], [1, 1, v], [0; 3], [1; 3]]),
        ([2, 300, 1, 1, v], [[1, 1, v], [1, 1, v], [0; 3], [1; 3]]),
    ];
    let padded: [(Volume, Form); 4] = [
        ([1, 2, 3, 4, 5], [[3, 2, 4], [1, 2, 1], [2, 1, 3], [1; 3]]),
        ([2, 2, 2, 5, 7], [[3; 3], [1, 2, 1], [1; 3], [1; 3]]),
        ([1, 1, 4, 3, 9], [[2, 1, 3], [3, 1, 2], [1, 0, 4], [2, 1, 3]]),
        ([1, 2, 1, 2, 0], [[1, 2, 3], [1; 3], [0, 1, 2], [1; 3]]),
    ];
    let all = patches.into_iter().chain(padded.into_iter().filter(|_| inside == 0));
    // Each case begins nine extremes later, so that every extreme occurs.
    let of_extremes = |(i, (volume, form)): (usize, (Volume, Form))| {
        let mut extremes = Extreme::ALL;
        extremes.rotate_left(9 * i % Extreme::ALL.len());
        case(instance, random, &extremes, volume, form, v)
    };
    all.enumerate().map(of_extremes).collect()
}

fn case(instance: &Instance, random: &mut Random, extremes: &[Extreme], volume: Volume, form: Form, v: usize) -> Case {
    let [samples, channels, extents @ ..] = volume;
    let [kernel, stride, padding, dilation] = form;
    let windows = [0, 1, 2].map(|d| (extents[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1) / stride[d] + 1);
    let width = extents[2] + random.below(2) * v;
    let rows = extents[1] * width.max(v);
    let strides = [channels * extents[0] * rows, extents[0] * rows, rows, width.max(v), 1];
    let all = samples * windows.iter().product::<usize>();
    // With padding all windows from `first` on are taken, because edges are everywhere; otherwise
    // all or a few.
    let first = random.below(all.min(12));
    let count = if padding != [0; 3] || random.below(2) == 0 { all - first } else { (all - first).min(9) };
    let columns = channels * kernel.iter().product::<usize>();
    // Values are copied: rows of extremes, and NaNs in the gaps.
    let mut inputs = vec![extreme(random, extremes, stored(instance), 3, volume, strides)];
    let numbers = |of: [usize; 3]| of.map(|n| n as u32);
    inputs.extend(Input::value_of(Lattice {
        kernel: numbers(kernel),
        stride: numbers(stride),
        padding: numbers(padding),
        dilation: numbers(dilation),
        windows: numbers(windows),
    }));
    inputs.push(Input::scalar(first));
    let pitch = columns + v;
    inputs.push(drawn(random, stored(instance), count * pitch, [count, columns], [pitch, 1]));
    Case::new(
        format!(
            "{volume:?}, {kernel:?} by {stride:?}, padded by {padding:?}, {dilation:?} apart, {count} from {first}"
        ),
        inputs,
    )
}

/// Returns the copied values; nothing is computed.
fn reference(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[_, channels, depth, height, width]) = (inputs[0].values(), inputs[0].extents()) else {
        return Vec::new();
    };
    let extents = [depth, height, width];
    let number = |i: usize| inputs[1 + i].value() as usize;
    let three = |i: usize| [number(3 * i), number(3 * i + 1), number(3 * i + 2)];
    let [kernel, stride, padding, dilation, windows] = [0, 1, 2, 3, 4].map(three);
    let first = number(15);
    let &[rows, cols] = inputs[17].extents() else { return Vec::new() };
    let [a, b, c] = windows;
    let element = |i: usize| {
        let (window, col) = (first + i / cols, i % cols);
        let place = [window / (b * c) % a, window / c % b, window % c];
        let within = [col / (kernel[1] * kernel[2]) % kernel[0], col / kernel[2] % kernel[1], col % kernel[2]];
        let mut at = (window / (a * b * c)) * channels + col / kernel.iter().product::<usize>();
        for d in 0..3 {
            let along = (place[d] * stride[d] + within[d] * dilation[d]).wrapping_sub(padding[d]);
            if along >= extents[d] {
                return 0.0;
            }
            at = at * extents[d] + along;
        }
        x[at]
    };
    vec![Expected::exact(17, (0..rows * cols).map(element))]
}
