//! Benchmarks of products of tokens with the matrices of their experts.

use super::{Contender, Measurement, Timer, Trial, WorkRate, copy_of, drawn, measure_all};
use crate::bench::typical::{BYTES_PER_NS, COLD_BYTES, DP4A_OPERATIONS_PER_NS, LONG_NS};
use crate::error::Error;
use ::runtime::testing::Random;
use ::runtime::{Device, DeviceBuffer, Graph};
use kernels_rs::quant::plan::{ExpertPlan, GroupSize, QuantTile};
use kernels_rs::quant::{ExpertRows, Format, Routing, Weights};
use std::cell::RefCell;

/// The number of experts, and of those that a token chooses.
const EXPERTS: usize = 128;
const CHOSEN: usize = 8;
/// Rows and columns of the matrix of an expert: its first product in Qwen3-30B-A3B.
const N: usize = 768;
const K: usize = 2048;

const FORMATS: [Format; 4] = [Format::Q4_0, Format::Q4K, Format::Q6K, Format::Q8_0];
const TOKENS: [usize; 7] = [1, 2, 8, 32, 64, 128, 512];

/// The number of choices of experts that follow one another. For one token, no expert is chosen
/// twice, so that no matrix is in the L2 cache.
const ROUTES: usize = EXPERTS / CHOSEN;

/// The plans of which each number of tokens has one.
const PLANS: [(&str, ExpertPlan); 7] = [
    ("one by one", ExpertPlan::Single),
    ("groups of 2", ExpertPlan::Groups(GroupSize::Two)),
    ("groups of 4", ExpertPlan::Groups(GroupSize::Four)),
    ("groups of 8", ExpertPlan::Groups(GroupSize::Eight)),
    ("16-row tiles", ExpertPlan::Tiles(QuantTile::T16x128)),
    ("32-row tiles", ExpertPlan::Tiles(QuantTile::T32x128)),
    ("64-row tiles", ExpertPlan::Tiles(QuantTile::T64x128)),
];

/// Measures the products for each format and number of tokens. Other contenders are:
///
/// - every plan;
/// - `16 steps in a graph`: one replay of a graph of 16 choices of experts and products. Products
///   run one after another; a choice may run beside the product of an earlier one;
/// - `copy`: a copy of as many bytes as the chosen matrices have;
/// - `dense`: a product with as many operations and one matrix. For one token the matrix has the
///   rows of all chosen experts, for more it is that of one expert.
pub(super) fn measure(rounds: usize) -> Result<Vec<Measurement>, Error> {
    let device = Device::cuda(0).map_err(Error::Device)?;
    let timer = Timer::new(&device)?;
    let mut measured = Vec::new();
    for format in FORMATS {
        let [of_block, bytes_of_block] = format.block();
        let row = format.quantize(&Random::new(2).values(K)).unwrap_or_default();
        let made = |rows: usize| -> ::runtime::Result<Weights> {
            let file = device.upload(&row.repeat(rows))?;
            Weights::from_blocks(&device, format, &file.view([rows, K / of_block * bytes_of_block])?)
        };
        let all_bytes = EXPERTS * N * row.len();
        let weights: Vec<Weights> = (0..COLD_BYTES.div_ceil(all_bytes))
            .map(|_| made(EXPERTS * N))
            .collect::<::runtime::Result<_>>()
            .map_err(Error::Device)?;
        let one = (0..COLD_BYTES.div_ceil(CHOSEN * N * row.len())).map(|_| made(CHOSEN * N));
        let dense_of_one = one.collect::<::runtime::Result<Vec<_>>>().map_err(Error::Device)?;
        let dense_of_many = made(N).map_err(Error::Device)?;
        for tokens in TOKENS {
            let dense = if tokens == 1 { &dense_of_one[..] } else { std::slice::from_ref(&dense_of_many) };
            let trial =
                ExpertTrial { timer: &timer, format, weights: &weights, dense, tokens, matrix_bytes: N * row.len() };
            measured.extend(trial.measure(rounds)?);
        }
    }
    Ok(measured)
}

/// A number of tokens with their experts.
struct ExpertTrial<'a> {
    timer: &'a Timer,
    format: Format,
    /// Copies of the matrices of all experts, used alternately.
    weights: &'a [Weights],
    /// The matrices of the dense product, used alternately.
    dense: &'a [Weights],
    tokens: usize,
    /// The bytes of the matrix of an expert.
    matrix_bytes: usize,
}

impl ExpertTrial<'_> {
    fn measure(&self, rounds: usize) -> Result<Vec<Measurement>, Error> {
        let ExpertTrial { timer, weights, dense, tokens, .. } = *self;
        let stream = timer.stream();
        let device = stream.device();
        let logits = logits(tokens);
        let mut experts: Vec<usize> = logits.iter().flat_map(|logits| chosen(logits)).collect();
        let routes = experts.len() / ROUTES;
        // The number of experts of each choice, added up.
        let mut distinct = 0;
        for choice in experts.chunks_mut(routes) {
            choice.sort_unstable();
            distinct += choice.chunk_by(|a, b| a == b).count();
        }
        let x: DeviceBuffer<f32> = drawn(device, &mut Random::new(1), tokens * CHOSEN * K)?;
        let bytes = distinct * self.matrix_bytes / ROUTES + 4 * tokens * (K + CHOSEN * N);
        let operations = 2.0 * (tokens * CHOSEN * N * K) as f64;
        let estimate = (operations / DP4A_OPERATIONS_PER_NS).max(bytes as f64 / BYTES_PER_NS);
        let times = (LONG_NS / 2.0 / estimate).clamp(2.0, 200.0) as u32;

        let most = PLANS.map(|(_, plan)| plan.rows(tokens * CHOSEN, EXPERTS)).into_iter().max().unwrap_or(0);
        let y = RefCell::new(device.zeros::<f32>(most * N).map_err(Error::Device)?);
        let by_plan = |name, plan: ExpertPlan| -> ::runtime::Result<Contender<'_>> {
            let chosen_rows = |logits: &Vec<f32>| -> ::runtime::Result<ExpertRows> {
                let logits = device.upload(logits)?;
                let routing = Routing::softmax(CHOSEN).normalized();
                routing.run(stream, &logits.view([tokens, EXPERTS])?, None)?.rows_with_plan(stream, plan)
            };
            let rows: Vec<ExpertRows> = logits.iter().map(chosen_rows).collect::<Result<_, _>>()?;
            let (mut index, x, y) = (0, &x, &y);
            Ok(timer.timed(name, times, move || {
                index += 1;
                // A copy of the matrices is read again when all others were.
                let weights = &weights[index % weights.len()];
                let rows = &rows[index / self.weights.len() % ROUTES];
                let (x, mut y) = (x.view_strided([tokens, K], [K, 1])?, y.borrow_mut());
                rows.product_of_tokens(stream, weights, &x, &mut y.view_strided_mut([rows.count(), N], [N, 1])?)
            }))
        };
        let mut graph = self.graph(&logits).map_err(Error::Device)?;
        let mut contenders = vec![by_plan("ours", ExpertPlan::of(tokens * CHOSEN, EXPERTS)).map_err(Error::Device)?];
        for (name, plan) in PLANS {
            contenders.push(by_plan(name, plan).map_err(Error::Device)?);
        }
        contenders.push(timer.timed("16 steps in a graph", 1, || graph.replay(stream)));

        contenders.push(copy_of(timer, times, bytes, COLD_BYTES.div_ceil(bytes))?);
        let [of_dense, columns] = if tokens == 1 { [1, CHOSEN * N] } else { [tokens * CHOSEN, N] };
        let mut dense_y = device.zeros::<f32>(of_dense * columns).map_err(Error::Device)?;
        let (mut index, x) = (0, &x);
        contenders.push(timer.timed("dense", times, move || {
            index = (index + 1) % dense.len();
            dense[index].product(
                stream,
                &x.view_strided([of_dense, K], [K, 1])?,
                &mut dense_y.view_mut([of_dense, columns])?,
            )
        }));
        let trial = Trial {
            kernel: self.format.name(),
            shape: format!("{tokens} tokens, {CHOSEN} of {EXPERTS} experts, {K} to {N}"),
            rate: Some(if tokens > 8 { WorkRate::Flop(operations) } else { WorkRate::Bytes(bytes as f64) }),
            contenders,
            after: Box::new(|| ()),
        };
        measure_all(vec![trial], rounds)
    }

    /// Records a choice and a product for each of the logits.
    fn graph(&self, logits: &[Vec<f32>]) -> ::runtime::Result<Graph<'static>> {
        let device = self.timer.stream().device();
        let recording = device.record();
        let x = recording.own(device.zeros::<f32>(self.tokens * K)?)?;
        // All products write the same memory, so that they run one after another.
        let mut y = None;
        for (i, logits) in logits.iter().enumerate() {
            let logits = recording.own(device.upload(logits)?)?;
            let routing = Routing::softmax(CHOSEN).normalized();
            let rows = routing.run(&recording, &logits.view([self.tokens, EXPERTS])?, None)?.rows(&recording)?;
            let y = match y {
                Some(y) => y,
                None => *y.insert(recording.own(device.zeros::<f32>(rows.count() * N)?)?),
            };
            let weights = &self.weights[i % self.weights.len()];
            rows.product_of_tokens(
                &recording,
                weights,
                &x.view([self.tokens, K])?,
                &mut y.view_mut([rows.count(), N])?,
            )?;
        }
        recording.finish()
    }
}

/// Returns the logits of each choice, [tokens, experts].
fn logits(tokens: usize) -> Vec<Vec<f32>> {
    let mut random = Random::new(3);
    let mut of_choice = |choice: usize| {
        let mut logits: Vec<f32> = random.values(tokens * EXPERTS);
        if tokens == 1 {
            for logit in &mut logits[choice * CHOSEN..(choice + 1) * CHOSEN] {
                *logit += 1e3;
            }
        }
        logits
    };
    (0..ROUTES).map(&mut of_choice).collect()
}

/// Returns the experts that the tokens of these logits choose.
fn chosen(logits: &[f32]) -> impl Iterator<Item = usize> {
    logits.chunks(EXPERTS).flat_map(|logits| {
        let mut order: Vec<usize> = (0..EXPERTS).collect();
        order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
        order.truncate(CHOSEN);
        order
    })
}
