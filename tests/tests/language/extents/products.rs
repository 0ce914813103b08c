//! Products: of floats, of bytes, with quantized weights, after norms, and convolutions.

use super::{Call, On, Written};
use kernels_rs::convolution::Convolution;
use kernels_rs::gemm::Gemm;
use kernels_rs::quant::{Igemm, Quantized, Routing, Weights};
use kernels_rs::rowwise::Norm;
use runtime::Error;

const OF_PRODUCTS: &[(&str, usize)] = &[("batch", 1), ("m", 1), ("n", 1), ("k", 1)];

pub const CALLS: &[Call] = &[
    Call { name: "Gemm::run", dimensions: OF_PRODUCTS, on_cpu: &[], run: gemm::<false> },
    Call { name: "Gemm::run, transposed", dimensions: OF_PRODUCTS, on_cpu: &[], run: gemm::<true> },
    // Tiles, which calls of more than eight rows use.
    Call {
        name: "Gemm::run of 9 rows",
        dimensions: &[("batch", 1), ("m", 9), ("n", 1), ("k", 1)],
        on_cpu: &[],
        run: gemm::<false>,
    },
    Call { name: "Igemm::run", dimensions: OF_PRODUCTS, on_cpu: &[], run: igemm },
    Call {
        name: "Weights::product",
        dimensions: &[("rows", 1), ("n", 1), ("k", 1)],
        on_cpu: &["k"],
        run: quantized_weights,
    },
    Call {
        name: "Routing::run and ExpertRows",
        dimensions: &[("tokens", 1), ("n", 1), ("k", 1)],
        on_cpu: &["k"],
        run: experts,
    },
    Call { name: "Norm::project", dimensions: &[("rows", 1), ("n", 1), ("k", 1)], on_cpu: &["k"], run: project },
    Call {
        name: "Convolution::run",
        dimensions: &[("samples", 1), ("channels", 1), ("out", 1), ("height", 2), ("width", 2)],
        on_cpu: &[],
        run: convolution::<2>,
    },
    Call {
        name: "Convolution::run of 1 × 1",
        dimensions: &[("samples", 1), ("channels", 1), ("out", 1), ("height", 1), ("width", 1)],
        on_cpu: &[],
        run: convolution::<1>,
    },
];

/// Returns Σ over k of a(k)·b(k) for each element of [batch, m, n].
fn products([batch, m, n, k]: [usize; 4], a: impl Fn([usize; 3]) -> f64, b: impl Fn([usize; 3]) -> f64) -> Vec<f64> {
    let element = |i: usize| {
        let (p, r, c) = (i / n / m, i / n % m, i % n);
        (0..k).map(|d| a([p, r, d]) * b([p, d, c])).sum()
    };
    (0..batch * m * n).map(element).collect()
}

fn gemm<const TRANSPOSED: bool>(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, m, n, k] = extents else { panic!() };
    let ((a, of_a), (b, of_b)) = (on.numbers(batch * m * k, 1), on.numbers(batch * k * n, 4));
    let mut c = on.output(batch * m * n);
    let (gemm, [a_rows, a_cols], [b_rows, b_cols]) = match TRANSPOSED {
        true => (Gemm::new().transpose_a().transpose_b(), [k, m], [n, k]),
        false => (Gemm::new(), [m, k], [k, n]),
    };
    let (a, b) = (a.view([batch, a_rows, a_cols]), b.view([batch, b_rows, b_cols]));
    gemm.run(&on.device, &a, &b, &mut c.view_mut([batch, m, n]))?;
    let at_a = |[p, r, d]: [usize; 3]| of_a[p * m * k + if TRANSPOSED { d * m + r } else { r * k + d }];
    let at_b = |[p, d, c]: [usize; 3]| of_b[p * k * n + if TRANSPOSED { c * k + d } else { d * n + c }];
    Ok(vec![Written::new("c", c.download(), products([batch, m, n, k], at_a, at_b))])
}

/// Checks products with zero points of rows and columns, which also need the sums of rows and
/// columns.
fn igemm(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[batch, m, n, k] = extents else { panic!() };
    let byte = |i: usize| (i * 5 % 9) as i8 - 4;
    let (of_a, of_b): (Vec<i8>, Vec<i8>) =
        ((0..batch * m * k).map(byte).collect(), (0..batch * k * n).map(|i| byte(i + 2)).collect());
    let (a, b, zero_a, zero_b) = (on.array(&of_a), on.array(&of_b), on.array(&[2]), on.array(&[-1]));
    let mut c = on.array(&vec![77i32; batch * m * n]);
    let a = Quantized::new(a.view([batch, m, k])).zero(zero_a.view([1]));
    let b = Quantized::new(b.view([batch, k, n])).zero(zero_b.view([1]));
    Igemm::new().run(&on.device, a, b, &mut c.view_mut([batch, m, n]))?;
    let at_a = |[p, r, d]: [usize; 3]| f64::from(of_a[(p * m + r) * k + d]) - 2.0;
    let at_b = |[p, d, c]: [usize; 3]| f64::from(of_b[(p * k + d) * n + c]) + 1.0;
    Ok(vec![Written::new("c", c.download(), products([batch, m, n, k], at_a, at_b))])
}

/// Checks weights and activations that quantization represents exactly: ±127 and 0.
fn quantized_weights(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, n, k] = extents else { panic!() };
    let whole = |i: usize| [127.0f32, 0.0, -127.0][i % 3];
    let (of_x, of_w): (Vec<f32>, Vec<f32>) =
        ((0..rows * k).map(whole).collect(), (0..n * k).map(|i| whole(i + i / 7)).collect());
    let (x, w, mut y) = (on.array(&of_x), on.array(&of_w), on.output(rows * n));
    let weights = Weights::quantize_q8(&on.device, &w.view([n, k]))?;
    weights.product(&on.device, &x.view([rows, k]), &mut y.view_mut([rows, n]))?;
    let mut back = on.output(n * k);
    weights.dequantize(&on.device, &mut back.view_mut([n, k]))?;
    let at_x = |[_, r, d]: [usize; 3]| f64::from(of_x[r * k + d]);
    let at_w = |[_, d, c]: [usize; 3]| f64::from(of_w[c * k + d]);
    Ok(vec![
        Written::new("y", y.download(), products([1, rows, n, k], at_x, at_w)),
        Written::new("back", back.download(), of_w.iter().map(|w| f64::from(*w)).collect()),
    ])
}

/// Checks products with one of two experts: token t goes to expert t mod 2, with a weight of 1.
fn experts(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[tokens, n, k] = extents else { panic!() };
    let whole = |i: usize| [127.0f32, 0.0, -127.0][i % 3];
    let (of_x, of_w): (Vec<f32>, Vec<f32>) =
        ((0..tokens * k).map(whole).collect(), (0..2 * n * k).map(|i| whole(i + i / 7)).collect());
    let logits: Vec<f32> = (0..2 * tokens).map(|i| if i / 2 % 2 == i % 2 { 100.0 } else { -100.0 }).collect();
    let (x, w, logits) = (on.array(&of_x), on.array(&of_w), on.array(&logits));
    let weights = Weights::quantize_q8(&on.device, &w.view([2 * n, k]))?;
    let rows = Routing::softmax(1).run(&on.device, &logits.view([tokens, 2]), None)?.rows(&on.device)?;
    let hidden = on.array(&(0..rows.count() * k).map(|i| whole(i % k)).collect::<Vec<_>>());
    let shape = [rows.count(), n];
    let ([mut wide, mut again], [mut y, mut z]) =
        ([(); 2].map(|()| on.output(rows.count() * n)), [(); 2].map(|()| on.output(tokens * n)));
    rows.product_of_tokens(&on.device, &weights, &x.view([tokens, k]), &mut wide.view_mut(shape))?;
    rows.combine(&on.device, &wide.view(shape), &mut y.view_mut([tokens, n]))?;
    rows.product_of_rows(&on.device, &weights, &hidden.view([rows.count(), k]), &mut again.view_mut(shape))?;
    rows.combine(&on.device, &again.view(shape), &mut z.view_mut([tokens, n]))?;
    let sum = |i: usize, x: &dyn Fn(usize) -> f32| -> f64 {
        let (token, column) = (i / n, i % n);
        (0..k).map(|d| f64::from(x(d)) * f64::from(of_w[(token % 2 * n + column) * k + d])).sum()
    };
    Ok(vec![
        Written::new("y", y.download(), (0..tokens * n).map(|i| sum(i, &|d| of_x[i / n * k + d])).collect()),
        Written::new("z", z.download(), (0..tokens * n).map(|i| sum(i, &whole)).collect()),
    ])
}

/// Checks the RMS norm of rows of ±1, which leaves them unchanged.
fn project(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[rows, n, k] = extents else { panic!() };
    let sign = |i: usize| if i * 7 % 11 < 5 { 1.0f32 } else { -1.0 };
    let of_x: Vec<f32> = (0..rows * k).map(sign).collect();
    let (x, (w, of_w), mut y) = (on.array(&of_x), on.numbers(n * k, 5), on.output(rows * n));
    Norm::rms(0.0).project(&on.device, &x.view([rows, k]), &w.view([n, k]), None, &mut y.view_mut([rows, n]))?;
    let at_x = |[_, r, d]: [usize; 3]| f64::from(of_x[r * k + d]);
    let at_w = |[_, d, c]: [usize; 3]| of_w[c * k + d];
    Ok(vec![Written::new("y", y.download(), products([1, rows, n, k], at_x, at_w))])
}

/// Checks windows of `SIDE` × `SIDE`, and both layouts of y.
fn convolution<const SIDE: usize>(on: &On, extents: &[usize]) -> Result<Vec<Written>, Error> {
    let &[samples, channels, out, height, width] = extents else { panic!() };
    let (x, of_x) = on.numbers(samples * channels * height * width, 2);
    let (w, of_w) = on.numbers(out * channels * SIDE * SIDE, 3);
    let [down, across] = [height, width].map(|n| (n + 1).saturating_sub(SIDE));
    let count = samples * out * down * across;
    let (mut y, mut tokens) = (on.output(count), on.output(count));
    let (x, w) = (x.view([samples, channels, 1, height, width]), w.view([out, channels, 1, SIDE, SIDE]));
    let convolution = Convolution::new();
    convolution.run(&on.device, &x, &w, None, &mut y.view_mut([samples, out, 1, down, across]))?;
    convolution.run_tokens(&on.device, &x, &w, None, &mut tokens.view_mut([samples, down * across, out]))?;
    let depth = channels * SIDE * SIDE;
    let element = |sample: usize, o: usize, window: usize| -> f64 {
        let (a, b) = (window / across, window % across);
        let term = |d: usize| {
            let (channel, i, j) = (d / SIDE / SIDE, d / SIDE % SIDE, d % SIDE);
            of_x[((sample * channels + channel) * height + a + i) * width + b + j] * of_w[o * depth + d]
        };
        (0..depth).map(term).sum()
    };
    let windows = down * across;
    let of_y = |i: usize| element(i / windows / out, i / windows % out, i % windows);
    let of_tokens = |i: usize| element(i / windows / out, i % out, i / out % windows);
    Ok(vec![
        Written::new("y", y.download(), (0..count).map(of_y).collect()),
        Written::new("tokens", tokens.download(), (0..count).map(of_tokens).collect()),
    ])
}
