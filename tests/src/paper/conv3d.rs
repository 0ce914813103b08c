//! (8) 3-D convolution as an implicit matrix product (im2col on the way to shared memory); patch
//! embedding is STRIDE = KERNEL, PAD = 0. Tiles have 64 positions × 64 channels × 16, with 256
//! threads and 4 × 4 elements per thread.
use super::trial::{Trial, number, trials, whole, wide};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

/// Division n / d for n < 2³¹ by one multiply-high and a shift; made on the host by the same Rust
/// code, and passed by value.
#[device]
pub mod divisor {
    use kernel_dsl::prelude::*;
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Divisor {
        pub d: u32,
        pub magic: u32,
        pub shift: u32,
    }
    impl Divisor {
        pub const fn new(d: u32) -> Divisor {
            let shift = 32 - (d - 1).leading_zeros();
            Divisor { d, magic: ((((1u64 << shift) - d as u64) << 32) / d as u64 + 1) as u32, shift }
        }
        /// Returns (quotient, remainder).
        pub fn div_rem(self, n: u32) -> (u32, u32) {
            let q = (((self.magic as u64 * n as u64) >> 32) as u32 + n) >> self.shift; // mul.hi, add, shr
            (q, n - q * self.d)
        }
    }
}
use divisor::Divisor;

/// Computes the convolution. x: [N, C, T, H, W]; w: [OUT, C·KT·KH·KW]; y: [N·OT·OH·OW, OUT].
#[kernel(
    block = 256, grid = (y.cols().div_ceil(64), y.rows().div_ceil(64)),
    instances(KT = 2, KH = 14, KW = 14, ST = 2, SP = 14, PAD = 0; KT = 3, KH = 3, KW = 3, ST = 1, SP = 1, PAD = 1),
    writes(y = once),
)]
#[requires(w.cols() == x.dim(1) * KT * KH * KW, y.cols() == w.rows(), ow.d * oh.d * ot.d * x.dim(0) as u32 == y.rows() as u32)]
pub fn conv3d<const KT: usize, const KH: usize, const KW: usize, const ST: usize, const SP: usize, const PAD: usize>(
    x: View<f32, 5>,
    w: View<f32, 2>,
    bias: &[f32],
    y: ViewMut<f32, 2>,
    ot: Divisor,
    oh: Divisor,
    ow: Divisor,
) {
    let mut sx = Shared::<f32, 2>::with_pitch([16, 64], 68);
    let mut sw = Shared::<f32, 2>::with_pitch([16, 64], 68);
    let (m0, n0) = (block::y() * 64, block::x() * 64);
    let (tm, tn) = (thread::x() / 16 * 4, thread::x() % 16 * 4);

    // A thread gathers one position of 64, with 4 threads each, for 4 values of k per step. Its
    // position is decoded once.
    let row = m0 + thread::x() % 64;
    let (q, px) = ow.div_rem(row as u32);
    let (q, py) = oh.div_rem(q);
    let (n, pt) = ot.div_rem(q);
    let origin = |p: u32, s: usize| (p as usize * s).wrapping_sub(PAD);
    let (t0, y0, x0) = (origin(pt, ST), origin(py, SP), origin(px, SP));

    let k_all = w.cols();
    let mut acc = [[0.0f32; 4]; 4];
    for k0 in rolled((0..k_all).step_by(16)) {
        for i in unroll(0..4) {
            let kk = thread::x() / 64 * 4 + i;
            let k = k0 + kk;
            let (c, kt, kh, kw) = (k / (KT * KH * KW), k / (KH * KW) % KT, k / KW % KH, k % KW); // constants: multiply and shift
            let at = (n as usize, c, t0.wrapping_add(kt), y0.wrapping_add(kh), x0.wrapping_add(kw));
            // Where k is beyond the last weight, c is not a channel of x.
            sx[(kk, thread::x() % 64)] = x.get(at).unwrap_or(0.0);
            sw[(kk, thread::x() % 64)] = w.get((n0 + thread::x() % 64, k)).unwrap_or(0.0);
        }
        block::sync();
        for k in unroll(0..16) {
            let (a, b): ([f32; 4], [f32; 4]) = (sx.load((k, tm)), sw.load((k, tn)));
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    acc[i][j] = a[i].mul_add(b[j], acc[i][j]);
                }
            }
        }
        block::sync();
    }
    let b: [f32; 4] = bias.load_or(n0 + tn, 0.0);
    for i in unroll(0..4) {
        for j in unroll(0..4) {
            acc[i][j] += b[j];
        }
        y.store_in((m0 + tm + i, n0 + tn), acc[i]);
    }
}

trials!(conv3d<3, 3, 3, 1, 1, 1>, |instance| match number(instance, 1) {
    14 => vec![convolution(instance, [1, 3, 4, 28, 14], 70)],
    _ => vec![
        convolution(instance, [2, 2, 3, 5, 4], 8),
        convolution(instance, [1, 1, 5, 9, 3], 71),
        convolution(instance, [1, 1, 2, 3, 3], 9),
        convolution(instance, [1, 1, 2, 3, 3], 6),
        biased(instance, [1, 1, 2, 3, 3], 9, 5),
    ],
});

fn convolution(instance: &Instance, shape: [usize; 5], out: usize) -> Trial {
    biased(instance, shape, out, out)
}

/// Makes a case with a bias of `given` channels; the other channels have a bias of zero.
fn biased(instance: &Instance, [n, c, t, h, w]: [usize; 5], out: usize, given: usize) -> Trial {
    let [kt, kh, kw, st, sp, pad] = [0, 1, 2, 3, 4, 5].map(|i| number(instance, i));
    let reach = |x: usize, k: usize, s: usize| (x + 2 * pad - k) / s + 1;
    let (ot, oh, ow) = (reach(t, kt, st), reach(h, kh, sp), reach(w, kw, sp));
    let (taps, m) = (c * kt * kh * kw, n * ot * oh * ow);
    let (x, weights, bias) = (whole(n * c * t * h * w, 1), whole(out * taps, 2), whole(given, 3));
    let mut y = vec![0.0f32; m * out];
    for (r, q) in (0..m).flat_map(|r| (0..out).map(move |q| (r, q))) {
        let (px, py, pt, image) = (r % ow, r / ow % oh, r / ow / oh % ot, r / ow / oh / ot);
        let mut sum = *bias.get(q).unwrap_or(&0.0);
        for k in 0..taps {
            let (channel, a, b, d) = (k / (kt * kh * kw), k / (kh * kw) % kt, k / kw % kh, k % kw);
            let (tt, yy, xx) = (pt * st + a, py * sp + b, px * sp + d);
            let inside = tt >= pad && yy >= pad && xx >= pad && tt - pad < t && yy - pad < h && xx - pad < w;
            if inside {
                let at = (((image * c + channel) * t + tt - pad) * h + yy - pad) * w + xx - pad;
                sum += x[at] * weights[q * taps + k];
            }
        }
        y[r * out + q] = sum;
    }
    let mut inputs = vec![
        Input::view(&x, [n, c, t, h, w]),
        Input::view(&weights, [out, taps]),
        Input::slice(&bias),
        Input::view(&vec![0f32; m * out], [m, out]),
    ];
    for d in [ot, oh, ow] {
        inputs.extend(Input::value_of(Divisor::new(d as u32)));
    }
    Trial::new(format!("{n} x {c} x {t} x {h} x {w}"), inputs, [Expected::new(3, wide(&y), Bound::Exact)])
}
