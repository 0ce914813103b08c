//! Cases of the example `topk`.

use super::trial::{Trial, number, trials, whole};
use crate::examples::topk::sample;
use runtime::testing::{Bound, Expected, Input};

trials!(sample<64>, |instance| {
    let most = number(instance, 0);
    let k = most.min(40);
    let at = |place: usize| (place as f32 + 0.5) / most as f32;
    // Rows whose length is no multiple of a tile, with different draws and cuts.
    vec![
        drawn(most, 2100, k, &[0.3, 0.95], 0.8, 0.9),
        drawn(most, 1100, most.min(200), &std::array::from_fn::<f32, 4, _>(|r| (r as f32 + 0.37) / 4.0), 2.5, 0.97),
        drawn(most, 1025, k.min(7), &[0.0, 0.4, 0.999], 4.0, 0.5),
        drawn(most, most + 1, 1, &[0.5, 0.99], 1.0, 1.0),
        // All elements except one are kept. `k` exceeds the maximum, and some kept values are below
        // zero.
        drawn(most, most + 1, most + 5, &[0.02, 0.5, 0.97], 4.0, 1.0),
        // Logits are equal, so each sum is an integer. Draws and a cut coincide with such sums.
        drawn_of(most, vec![0.25; 5 * (most + 1)], 4, &[0.0, 0.4, 0.5, 0.9, 1.0], 1.0, 0.5),
        drawn_of(
            most,
            vec![-1.5; 5 * (most + 3)],
            most,
            &[1, most / 3, most / 2, most - 2, most - 1].map(at),
            1.0,
            1.0,
        ),
        // Two logits so large that an exponential of them overflows; and a NaN, which counts as −∞.
        drawn_of(
            most,
            with(2 * 1100, -100.0, &[(5, 300.0), (1024, 300.0), (1105, 300.0), (2124, 300.0)]),
            3,
            &[0.25, 0.75],
            1.0,
            1.5,
        ),
        drawn_of(most, with(1100, 0.0, &[(700, f32::NAN)]), 3, &[0.75], 1.0, 1.0),
        // The maximum number of elements. All except one are equal, so that their indices decide.
        // The exception is at a thread's second element.
        drawn_of(most, with(1100, 0.0, &[(1024, 200.0)]), most, &[0.5], 1.0, 1.0),
        // Two elements far above the many others, which are below zero: their first digit is in the
        // middle.
        drawn_of(
            most,
            with(2 * 1100, -1.0, &[(10, 1e30), (20, 1e30), (1110, 1e30), (1120, 1e30)]),
            most,
            &[0.25, 0.75],
            1.0,
            1.0,
        ),
        // Integers that differ in their last bits.
        drawn_of(most, with(1100, 8_388_608.0, &[(10, 8_388_611.0), (20, 8_388_610.0)]), 2, &[0.5], 1.0, 1.0),
    ]
});

/// Returns `n` elements of `value`, except for these.
fn with(n: usize, value: f32, others: &[(usize, f32)]) -> Vec<f32> {
    let mut x = vec![value; n];
    others.iter().for_each(|(i, other)| x[*i] = *other);
    x
}

fn drawn(most: usize, n: usize, k: usize, uniform: &[f32], temperature: f32, top_p: f32) -> Trial {
    let value = |(i, v): (usize, &f32)| v / 4.0 + (i % 13) as f32 * 0.01;
    let x = whole(uniform.len() * n, 11).iter().enumerate().map(value).collect();
    drawn_of(most, x, k, uniform, temperature, top_p)
}

/// Makes a case from logits `x`, with as many rows as draws, and at most `most` elements of each
/// row.
fn drawn_of(most: usize, x: Vec<f32>, k: usize, uniform: &[f32], temperature: f32, top_p: f32) -> Trial {
    let rows = uniform.len();
    let n = x.len() / rows;
    let tokens = (0..rows).map(|r| {
        let row = &x[r * n..][..n];
        let mut order: Vec<usize> = (0..n).collect();
        let logit = |i: usize| row[i].max(f32::NEG_INFINITY) + 0.0;
        order.sort_by(|a, b| logit(*b).total_cmp(&logit(*a)).then(a.cmp(b)));
        order.truncate(k.min(most));
        let p: Vec<f32> = order.iter().map(|i| ((logit(*i) - logit(order[0])) / temperature).exp()).collect();
        let total: f32 = p.iter().sum();
        let (mut sum, mut kept) = (0.0, 0);
        for x in &p {
            kept += usize::from(sum < top_p * total);
            sum += x;
        }
        let mass: f32 = p[..kept].iter().sum();
        let (mut sum, mut pick) = (0.0, 0);
        for (i, p) in p[..kept].iter().enumerate() {
            if sum <= uniform[r] * mass {
                pick = i;
            }
            sum += p;
        }
        order[pick] as f64
    });
    let inputs = [
        Input::view(&x, [rows, n]),
        Input::slice(uniform),
        Input::slice(&vec![0u32; rows]),
        Input::scalar(k),
        Input::scalar(temperature),
        Input::scalar(top_p),
    ];
    Trial::new(format!("{rows} x {n}, {k} of them"), inputs, [Expected::new(2, tokens.collect(), Bound::Exact)])
}
