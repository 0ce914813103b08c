//! Specs of `repack_q8`, `repack_q4`, `repack_rows`, `quantize_q8`, `quantize_q4`, `dequantize`,
//! `gemv_quantized`, `gemm_quantized`: blocks of 32 numbers with a scale.

use super::stored::{self, at_rest, drawn, numbers, scalars, unread};
use super::{TINY, U, gamma};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::half::f16;
use kernels_rs::gemm::epilogue::Identity;
use kernels_rs::quant::blocks::{
    Q4Block, Q8Block, dequantize, quantize_q4, quantize_q8, repack_q4, repack_q8, repack_rows,
};
use kernels_rs::quant::blockwise::gemm_quantized;
use kernels_rs::quant::gemv::gemv_quantized;
use runtime::testing::{Bound, Case, Expected, Extreme, Input, Random};

runtime::register!(repack_q8, files_q8, repacked);
runtime::register!(repack_q4, files_q4, repacked);
runtime::register!(repack_rows, rows, padded);
runtime::register!(quantize_q8<f32, f16, 4>, numbers_q8, quantized_q8);
runtime::register!(quantize_q4<f32>, numbers_q4, quantized_q4);
runtime::register!(dequantize<f32, 8>, planes, dequantized);
runtime::register!(gemv_quantized<f32, f32, Identity, 8, true, 1, 4, 512, 4096, 2, 4>, few, product);
runtime::register!(gemm_quantized<f32, Identity, 8, true, 4>, many, tiles);

/// Rows, and blocks per row, of a file.
const FILES: [[usize; 2]; 4] = [[1, 1], [3, 7], [17, 5], [2, 0]];

fn files_q8(_: &Instance, random: &mut Random) -> Vec<Case> {
    FILES
        .map(|[rows, blocks]| {
            let all: Vec<Q8Block> =
                (0..rows * blocks).map(|_| Q8Block { d: scale(random), qs: bytes(random) }).collect();
            file(Input::view(&all, [rows, blocks]), [rows, blocks], 32)
        })
        .into()
}

fn files_q4(_: &Instance, random: &mut Random) -> Vec<Case> {
    FILES
        .map(|[rows, blocks]| {
            let block = |random: &mut Random| Q4Block { d: scale(random), qs: bytes(random).map(|q| q as u8) };
            let all: Vec<Q4Block> = (0..rows * blocks).map(|_| block(random)).collect();
            file(Input::view(&all, [rows, blocks]), [rows, blocks], 16)
        })
        .into()
}

/// Returns a case with blocks, and with planes for them with gaps of four bytes per row.
fn file(blocks: Input, [rows, n]: [usize; 2], each: usize) -> Case {
    let pitch = n * each + 4;
    let qs = Input::strided(&vec![1i8; rows * pitch], [rows, n * each], [pitch, 1]);
    Case::new(format!("{rows} rows of {n} blocks"), [blocks, qs, Input::view(&vec![f16::ZERO; rows * n], [rows, n])])
}

/// Returns the planes. A block stores its scale first, and then its numbers consecutively.
fn repacked(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (all, &[rows, n]) = (inputs[0].values(), inputs[0].extents()) else { return Vec::new() };
    let each = all.len() / (rows * n).max(1);
    let blocks = || all.chunks(each.max(1));
    // Bytes of a file of Q4_0 are unsigned, and those of the planes are signed.
    let signed = |q: &f64| f64::from(*q as i64 as u8 as i8);
    let qs = blocks().flat_map(|b| b[1..].iter().map(signed)).collect();
    let d = blocks().map(|b| b[0]).collect();
    vec![Expected::new(1, qs, Bound::Exact), Expected::new(2, d, Bound::Exact)]
}

fn rows(_: &Instance, random: &mut Random) -> Vec<Case> {
    let case = |[rows, cols, wide]: [usize; 3]| {
        let from: Vec<i8> = (0..rows * (cols + 1)).map(|_| random.bits() as i8).collect();
        let from = Input::strided(&from, [rows, cols], [cols + 1, 1]);
        Case::new(format!("{rows} × {cols}, to {wide}"), [from, plane(&vec![9; rows * wide], [rows, wide])])
    };
    [[1, 1, 32], [2, 7, 32], [3, 32, 32], [9, 100, 128], [0, 7, 32]].map(case).into()
}

fn padded(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (x, &[_, cols], &[rows, wide]) = (inputs[0].values(), inputs[0].extents(), inputs[1].extents()) else {
        return Vec::new();
    };
    let at = |i: usize| (i % wide < cols).then(|| x[i / wide * cols + i % wide]);
    vec![Expected::new(1, (0..rows * wide).map(|i| at(i).unwrap_or(0.0)).collect(), Bound::Exact)]
}

fn scale(random: &mut Random) -> f16 {
    f16::from_f32(0.01 + random.below(1000) as f32 * 1e-4)
}

fn bytes<const N: usize>(random: &mut Random) -> [i8; N] {
    std::array::from_fn(|_| random.bits() as i8)
}

/// Returns a plane with consecutive rows, which begin at multiples of 16 bytes even if they are
/// empty.
fn plane(data: &[i8], [rows, cols]: [usize; 2]) -> Input {
    Input::strided(data, [rows, cols], [cols.max(16), 1])
}

/// Returns numbers to quantize, with gaps of `unit`.
fn input(random: &mut Random, stored: Scalar, [rows, cols]: [usize; 2], unit: usize) -> Input {
    let pitch = (cols + unit).next_multiple_of(unit);
    drawn(random, stored, rows * pitch, [rows, cols], [pitch, 1])
}

/// Rows and columns: partial blocks, whole blocks, many blocks.
const SHAPES: [[usize; 2]; 5] = [[1, 1], [3, 32], [5, 100], [2, 0], [2, 1045]];

fn numbers_q8(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let (&[unit], &[x, d]) = (numbers(instance).as_slice(), scalars(instance).as_slice()) else { return Vec::new() };
    let mut cases: Vec<Case> = SHAPES
        .map(|[rows, cols]| {
            let cols = cols.next_multiple_of(unit);
            let wide = cols.next_multiple_of(32);
            let qs = plane(&vec![9i8; rows * wide], [rows, wide]);
            let d = drawn(random, d, rows * wide / 32, [rows, wide / 32], [wide / 32, 1]);
            Case::new(format!("{rows} × {cols}"), [input(random, x, [rows, cols], unit), qs, d])
        })
        .into();
    if x == Scalar::F32 {
        let x =
            [0.0; 32].into_iter().chain((0..32).map(|i| i as f32 - 16.0)).chain([f32::NAN; 32]).collect::<Vec<f32>>();
        let d = drawn(random, d, 3, [1, 3], [3, 1]);
        cases.push(Case::new("zeros, ties, NaNs", [Input::view(&x, [1, 96]), Input::view(&[9i8; 96], [1, 96]), d]));
    }
    let rows = Extreme::ALL.len();
    let (qs, d) = (plane(&vec![9i8; rows * 32], [rows, 32]), drawn(random, d, rows, [rows, 1], [1, 1]));
    cases.push(Case::new("extremes", [stored::extremes(random, &Extreme::ALL, x, 32, 36), qs, d]));
    cases
}

/// Returns the bytes and the scale of up to 32 numbers, computed in `f32` as in the kernel.
fn eight_bits(x: &[f64]) -> ([i8; 32], f32) {
    let top = x.iter().fold(2f32.powi(-120), |top, x| top.max((*x as f32).abs()));
    let inverse = 127.0 / top;
    let mut q = [0; 32];
    for (q, x) in q.iter_mut().zip(x) {
        *q = (*x as f32 * inverse).round_ties_even() as i8;
    }
    (q, top / 127.0)
}

/// Returns the four-bit values of up to 32 numbers. Negative numbers reach −8 · d, the largest
/// magnitude.
fn four_bits(x: &[f64]) -> ([i8; 16], f32) {
    let x: Vec<f64> = x.iter().map(|x| if x.is_nan() { 0.0 } else { *x }).collect();
    let top = x.iter().map(|x| *x as f32).fold(0.0f32, |top, x| if (x.abs(), x) > (top.abs(), top) { x } else { top });
    let d = top / -8.0;
    let inverse = if d == 0.0 || d.is_subnormal() { 0.0 } else { 1.0 / d };
    let q = |i: usize| (x.get(i).map_or(0.0, |x| *x as f32).mul_add(inverse, 8.5) as u8).min(15);
    (std::array::from_fn(|i| (q(i) | q(i + 16) << 4) as i8), d)
}

/// Returns the quantized blocks of each row.
fn each<const N: usize>(x: &Input, wide: usize, make: impl Fn(&[f64]) -> ([i8; N], f32)) -> (Vec<f64>, Vec<f32>) {
    let (values, &[rows, cols]) = (x.values(), x.extents()) else { return Default::default() };
    let (mut qs, mut d) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for block in 0..wide / 32 {
            let of = |at: usize| row * cols + at.min(cols);
            let (q, scale) = make(&values[of(32 * block)..of(32 * block + 32)]);
            qs.extend(q.map(f64::from));
            d.push(scale);
        }
    }
    (qs, d)
}

fn quantized_q8(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (qs, d) = each(&inputs[0], inputs[1].extents()[1], eight_bits);
    let half = scalars(instance).last() == Some(&Scalar::F16);
    let d = d.into_iter().map(|d| if half { f16::from_f32(d).to_f64() } else { f64::from(d) }).collect();
    vec![Expected::new(1, qs, Bound::Exact), Expected::new(2, d, Bound::Exact)]
}

fn numbers_q4(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let case = |name: String, [rows, cols]: [usize; 2], x: Input| {
        let blocks = cols.div_ceil(32);
        let qs = plane(&vec![9i8; rows * blocks * 16], [rows, blocks * 16]);
        Case::new(name, [x, qs, Input::view(&vec![f16::ONE; rows * blocks], [rows, blocks])])
    };
    let of_shape = |shape: [usize; 2]| case(format!("{shape:?}"), shape, input(random, stored, shape, 1));
    let mut cases: Vec<Case> = SHAPES.map(of_shape).into();
    if stored == Scalar::F32 {
        // −8 has a scale of 1; of two largest magnitudes the positive one counts, wherever they
        // are.
        let mut x: Vec<f32> = (0..6 * 32).map(|i| if i < 32 { 0.0 } else { -8.0 }).collect();
        for (block, [one, other]) in [[0, 1], [16, 17], [0, 16], [0, 2]].into_iter().enumerate() {
            (x[64 + 32 * block + one], x[64 + 32 * block + other]) = (16.0, -16.0);
        }
        cases.push(case("zeros, a scale of 1, both signs".into(), [1, 192], Input::view(&x, [1, 192])));
    }
    let x = stored::extremes(random, &Extreme::ALL, stored, 32, 33);
    cases.push(case("extremes".into(), [Extreme::ALL.len(), 32], x));
    cases
}

fn quantized_q4(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let (qs, d) = each(&inputs[0], 2 * inputs[1].extents()[1], four_bits);
    let d = d.into_iter().map(|d| f16::from_f32(d).to_f64()).collect();
    vec![Expected::new(1, qs, Bound::Exact), Expected::new(2, d, Bound::Exact)]
}

/// Returns planes of `rows` rows of `cols` numbers of `bits` bits, and their scales.
fn weights(random: &mut Random, [rows, cols]: [usize; 2], bits: usize) -> [Input; 2] {
    let blocks = cols.div_ceil(32);
    let qs: Vec<i8> = (0..rows * blocks * 4 * bits).map(|_| random.bits() as i8).collect();
    let d: Vec<f16> = (0..rows * blocks).map(|_| scale(random)).collect();
    [plane(&qs, [rows, blocks * 4 * bits]), Input::view(&d, [rows, blocks])]
}

/// Returns the values of numbers of `bits` bits, without their scales.
fn units(qs: &Input, bits: usize) -> Vec<f64> {
    let qs = qs.values();
    if bits == 8 {
        return qs;
    }
    let nibbles = |b: &[f64]| {
        let byte = |q: &f64| *q as i64 as u8;
        let low = b.iter().map(|q| f64::from(byte(q) & 15) - 8.0);
        low.chain(b.iter().map(|q| f64::from(byte(q) >> 4) - 8.0)).collect::<Vec<_>>()
    };
    qs.chunks(16).flat_map(nibbles).collect()
}

fn planes(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[bits] = numbers(instance).as_slice() else { return Vec::new() };
    SHAPES
        .map(|[rows, cols]| {
            let [qs, d] = weights(random, [rows, cols], bits);
            Case::new(format!("{rows} × {cols}"), [qs, d, Input::view(&vec![f32::NAN; rows * cols], [rows, cols])])
        })
        .into()
}

/// Computes the numbers. d has 11 bits and q 8: their product is exact in `f32`.
fn dequantized(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[bits] = numbers(instance).as_slice() else { return Vec::new() };
    let (q, d, &[rows, cols]) = (units(&inputs[0], bits), inputs[1].values(), inputs[2].extents()) else {
        return Vec::new();
    };
    let wide = cols.next_multiple_of(32);
    let at = |i: usize| i / cols * wide + i % cols;
    let x = (0..rows * cols).map(|i| d[at(i) / 32] * q[at(i)]).collect();
    vec![Expected::new(2, x, Bound::Exact)]
}

fn few(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[bits, blocks, rows, wide, threads, piece, _, unit] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let shapes = [
        [1, 1, 1],
        [rows + 1, 2, 520],
        [1, threads / 32 * wide + 1, 96],
        [rows, 5, piece + 40],
        [rows, 3, 0],
        [0, 3, 32],
    ];
    let case = |[m, n, k]: [usize; 3]| {
        let k = k.next_multiple_of(unit);
        let [w, d] = weights(random, [n, k], bits);
        let scales: Vec<f32> = (0..n).map(|_| scale(random).to_f32()).collect();
        let (d, scales) = scaled(d, scales, blocks == 1);
        let y = unread(stored, m * n, [m, n], [n, 1]);
        Case::new(format!("{m} × {n} × {k}"), [input(random, stored, [m, k], unit), w, d, scales, y])
    };
    shapes.map(case).into()
}

fn product(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[bits, blocks, ..] = numbers(instance).as_slice() else { return Vec::new() };
    let (x, dx) = each(&inputs[0], inputs[1].extents()[1] * 8 / bits, eight_bits);
    // A lane has a chunk of 16 bytes of 512; its sums are combined in five steps.
    let added = inputs[1].extents()[1].div_ceil(512) + 5;
    blockwise(
        instance,
        &inputs[1..],
        [&x, &dx.into_iter().map(f64::from).collect::<Vec<_>>()],
        [bits, blocks],
        added,
        4,
    )
}

fn many(instance: &Instance, random: &mut Random) -> Vec<Case> {
    let &[bits, blocks, unit] = numbers(instance).as_slice() else { return Vec::new() };
    let stored = scalars(instance).first().copied().unwrap_or(Scalar::F32);
    let shapes = [
        [1, 1, 32],
        [64, 128, 64],
        [65, 129, 32],
        [3, 5, 0],
        [0, 3, 32],
        [63, 127, 96],
        // Two adjacent blocks with full and partial rows; another group of rows of blocks; many
        // blocks of K.
        [64, 129, 32],
        [63, 129, 32],
        [513, 128, 32],
        [1, 1, 992],
    ];
    let case = |[m, n, k]: [usize; 3]| {
        let n = n.next_multiple_of(unit);
        let [w, d] = weights(random, [n, k], bits);
        let [x, _] = weights(random, [m, k], 8);
        let dx: Vec<f32> = (0..m * k / 32).map(|_| scale(random).to_f32()).collect();
        let scales: Vec<f32> = (0..n).map(|_| scale(random).to_f32()).collect();
        let (d, scales) = scaled(d, scales, blocks == 1);
        let y = unread(stored, m * (n + unit), [m, n], [n + unit, 1]);
        Case::new(format!("{m} × {n} × {k}"), [x, Input::view(&dx, [m, k / 32]), w, d, scales, y])
    };
    shapes.map(case).into()
}

fn tiles(instance: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let &[bits, blocks, _] = numbers(instance).as_slice() else { return Vec::new() };
    let (x, dx) = (inputs[0].values(), inputs[1].values());
    blockwise(instance, &inputs[2..], [&x, &dx], [bits, blocks], dx.len(), 5)
}

/// Returns the scales that an instance reads, and an empty array for the others.
fn scaled(d: Input, scales: Vec<f32>, blocks: bool) -> (Input, Input) {
    if blocks { (d, Input::slice::<f32>(&[])) } else { (Input::view::<f16, 2>(&[], [0, 0]), Input::slice(&scales)) }
}

/// Computes the products and their error bounds. Activations are quantized bit for bit as in the
/// kernel, and the sums of blocks are integers below 2²⁴: exact. The product of two scales is
/// rounded, and the row's scale. So is the fused multiplication with the accumulated sum, `added`
/// times in sequence.
fn blockwise(
    instance: &Instance,
    inputs: &[Input],
    [x, dx]: [&[f64]; 2],
    [bits, blocks]: [usize; 2],
    added: usize,
    argument: usize,
) -> Vec<Expected> {
    let stored = scalars(instance).last().copied().unwrap_or(Scalar::F32);
    let (q, d, scales, blocks) = (units(&inputs[0], bits), inputs[1].values(), inputs[2].values(), blocks == 1);
    let &[m, n] = inputs[3].extents() else { return Vec::new() };
    let wide = inputs[0].extents()[1] * 8 / bits;
    let (mut values, mut bounds) = (Vec::new(), Vec::new());
    for row in 0..m {
        for col in 0..n {
            let terms = (0..wide / 32).map(|b| {
                let dot = (32 * b..32 * b + 32).fold(0.0, |sum, k| sum + x[row * wide + k] * q[col * wide + k]);
                dx[row * wide / 32 + b] * if blocks { d[col * wide / 32 + b] } else { scales[col] } * dot
            });
            // A chunk is half of a block of 8 bits: its halves may cancel.
            let size = (0..wide).map(|k| {
                let scale = if blocks { d[(col * wide + k) / 32] } else { scales[col] };
                (dx[(row * wide + k) / 32] * scale * x[row * wide + k] * q[col * wide + k]).abs()
            });
            let value = terms.fold(0.0, |sum, x| sum + x);
            let off = 1.001 * gamma(added + 2) * size.sum::<f64>() + 4.0 * added as f64 * TINY + value.abs() * U;
            values.push(value);
            bounds.push(off + at_rest(stored, value, off));
        }
    }
    vec![Expected::new(argument, values, Bound::Each(bounds))]
}
