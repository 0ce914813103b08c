//! A layer of experts with quantized weights.

use super::{dequantized, quantized};
use kernels_rs::quant::plan::GroupSize::{Eight, Four, Two};
use kernels_rs::quant::plan::{ExpertPlan, QuantTile};
use kernels_rs::quant::{Routing, Weights};
use runtime::Device;
use runtime::testing::Random;

on_each_device! {
    cpu_experts_multiply_their_rows gpu_experts_multiply_their_rows experts;
}

/// The plans of numbers of tokens with two of four experts each.
const CHOSEN_PLANS: [(usize, ExpertPlan); 7] = [
    (0, ExpertPlan::Single),
    (2, ExpertPlan::Single),
    (8, ExpertPlan::Groups(Four)),
    (16, ExpertPlan::Groups(Eight)),
    (32, ExpertPlan::Tiles(QuantTile::T16x128)),
    (68, ExpertPlan::Tiles(QuantTile::T32x128)),
    (120, ExpertPlan::Tiles(QuantTile::T64x128)),
];

/// Plans that no number of tokens chooses: for few rows, and without tokens.
const OTHER_PLANS: [(usize, ExpertPlan); 5] = [
    (9, ExpertPlan::Groups(Two)),
    (1, ExpertPlan::Groups(Eight)),
    (3, ExpertPlan::Tiles(QuantTile::T64x128)),
    (0, ExpertPlan::Tiles(QuantTile::T32x128)),
    (0, ExpertPlan::Groups(Four)),
];

/// Checks a layer of experts by every plan. The layer's graph is replayed with other routes.
fn experts(device: &Device) {
    let (mut random, [count, chosen, n, k]) = (Random::new(11), [4, 2, 36, 64]);
    let numbers: Vec<f32> = random.values(count * n * k);
    let back: Vec<f32> = random.values(count * k * n);
    let up = Weights::quantize_q8(device, &device.upload(&numbers).unwrap().view([count * n, k]).unwrap()).unwrap();
    let down = Weights::quantize_q4(device, &device.upload(&back).unwrap().view([count * k, n]).unwrap()).unwrap();
    let (w_up, w_down) = (dequantized(device, &up), dequantized(device, &down));
    for (tokens, plan) in CHOSEN_PLANS {
        assert_eq!(ExpertPlan::of(tokens * chosen, count), plan, "{tokens} tokens");
    }
    for (tokens, plan) in CHOSEN_PLANS.into_iter().chain(OTHER_PLANS) {
        let recording = device.record();
        let logits = recording.own(device.zeros::<f32>(tokens * count).unwrap()).unwrap();
        let x: Vec<f32> = random.values(tokens * k);
        let dx = recording.own(device.upload(&x).unwrap()).unwrap();
        let y = recording.own(device.zeros::<f32>(tokens * k).unwrap()).unwrap();
        let routing = Routing::softmax(chosen).normalized();
        let routes = routing.run(&recording, &logits.view([tokens, count]).unwrap(), None).unwrap();
        let rows = routes.rows_with_plan(&recording, plan).unwrap();
        let hidden = recording.own(device.zeros::<f32>(rows.count() * n).unwrap()).unwrap();
        let wide = recording.own(device.zeros::<f32>(rows.count() * k).unwrap()).unwrap();
        let (of_hidden, of_wide) = ([rows.count(), n], [rows.count(), k]);
        let mut to = hidden.view_mut(of_hidden).unwrap();
        rows.product_of_tokens(&recording, &up, &dx.view([tokens, k]).unwrap(), &mut to).unwrap();
        let mut to = wide.view_mut(of_wide).unwrap();
        rows.product_of_rows(&recording, &down, &hidden.view(of_hidden).unwrap(), &mut to).unwrap();
        let mut to = y.view_mut([tokens, k]).unwrap();
        rows.combine(&recording, &wide.view(of_wide).unwrap(), &mut to).unwrap();
        let mut graph = recording.finish().unwrap();
        let stream = device.stream().unwrap();
        for _ in 0..2 {
            let l: Vec<f32> = random.values(tokens * count);
            graph.buffer_mut(logits).unwrap().copy_from(&l).unwrap();
            graph.replay(&stream).unwrap();
            stream.wait().unwrap();
            let got = graph.buffer(y).unwrap().download().unwrap();
            for token in 0..tokens {
                let mut order: Vec<usize> = (0..count).collect();
                order.sort_by(|a, b| l[token * count + b].total_cmp(&l[token * count + a]));
                let e: Vec<f64> = order[..chosen].iter().map(|i| f64::from(l[token * count + i]).exp()).collect();
                let (mut value, mut size) = (vec![0.0; k], 0.0f64);
                for (expert, weight) in order.iter().zip(&e) {
                    let seen = quantized(&x[token * k..][..k]);
                    let dot = |w: &[f32], x: &[f64]| w.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
                    let h: Vec<f32> = (0..n).map(|j| dot(&w_up[(expert * n + j) * k..][..k], &seen) as f32).collect();
                    let seen = quantized(&h);
                    for (i, value) in value.iter_mut().enumerate() {
                        *value += weight / e.iter().sum::<f64>() * dot(&w_down[(expert * k + i) * n..][..n], &seen);
                    }
                    size = size.max(h.iter().fold(0.0, |top: f64, h| top.max(f64::from(h.abs()))));
                }
                for (i, value) in value.into_iter().enumerate() {
                    // If a hidden number rounds to another byte, it changes by 1/127 of the largest
                    // one.
                    let off = 0.01 * size;
                    let got = f64::from(got[token * k + i]);
                    assert!((got - value).abs() <= off, "{plan:?}, {tokens} tokens, {token}, {i}: {got}, not {value}");
                }
            }
        }
    }
}
