//! Cases of the example `conv3d`.

use super::trial::{Trial, number, trials, whole, wide};
use crate::examples::conv3d::conv3d;
use crate::examples::conv3d::divisor::Divisor;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Bound, Expected, Input};

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
