//! `kernels bench`: costs of kernels in the cases of their specs, and suites of the library,
//! compared with the vendor's libraries.

mod attention;
mod checked;
mod configurations;
mod cublas;
mod device;
mod driver;
mod gemm;
mod kernels;
mod measure;
mod memory;
mod plan;
mod quant;
mod rowwise;
mod runtime;

use super::progress::with_bar;
use super::{Outcome, json};
use crate::statistics::Summary;
use ::runtime::Device;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use device::Timer;
use kernels_rs_estimate::Estimator;
use measure::{Contender, in_turns};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, LazyLock};

pub(super) use super::Error;

/// Measures kernels in the cases of their specs: times, rates and counts
///
/// On a GPU, a time is the median with its 95 % confidence interval, once with the data in the L2
/// cache and once without. The interpreter counts operations and bytes, so that rates need no
/// formula. Without a GPU, the counts remain, and an estimate of the time on --model if ptxas and
/// nvdisasm are found. --suite measures a group of the library instead, compared with the vendor's
/// libraries.
#[derive(Args)]
pub(super) struct Bench {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'. With
    /// --suite checked also none, for all; with --suite quant, formats of weights
    #[arg(value_name = "NAME", required_unless_present = "suite")]
    names: Vec<String>,
    /// Group of measurements to run instead
    #[arg(long)]
    suite: Option<Suite>,
    /// Number of measurements of each item
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    #[command(flatten)]
    kernels: kernels::KernelArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Group of measurements of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Suite {
    /// A group that can be estimated too.
    Estimable(EstimableSuite),
    /// A group that needs a GPU.
    OnGpu(GpuSuite),
}

/// Group of measurements that need a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum GpuSuite {
    /// Launches, loads and allocations, compared with direct driver calls
    Runtime,
    /// Integer products, compared with cuBLAS in f32, and products with quantized weights, compared
    /// with a copy of the same number of bytes
    Quant,
    /// The PTX of every kernel, compared with its checked form, by the device's clock
    Checked,
    /// Costs of the matrix product kernels on this device; prints a new selection table
    Plan,
}

/// Group of measurements that can be estimated too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum EstimableSuite {
    /// Matrix products, compared with cuBLAS and a copy of the same number of bytes
    Gemm,
    /// Memory-bound kernels, compared with a copy of the same number of bytes
    Memory,
    /// Attention with many queries, dense and with block masks, and its gradients
    Attention,
    /// Attention of a decoding step, compared with a copy of the same number of bytes
    Decode,
    /// Softmax of rows, compared with a copy of the same number of bytes
    Softmax,
    /// Layer norm, RMS norm and group norm, compared with a copy of the same number of bytes
    Norm,
    /// Cross-entropy and its gradient, compared with a copy of the same number of bytes
    Loss,
    /// Token sampling, compared with a copy of as much data as the logits
    Sampling,
    /// Fixed plans and shapes from small to large, which validate `kernels estimate`
    Configurations,
}

impl ValueEnum for Suite {
    fn value_variants<'a>() -> &'a [Suite] {
        static ALL: LazyLock<Vec<Suite>> = LazyLock::new(|| {
            let estimable = EstimableSuite::value_variants().iter().copied().map(Suite::Estimable);
            estimable.chain(GpuSuite::value_variants().iter().copied().map(Suite::OnGpu)).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Suite::Estimable(suite) => suite.to_possible_value(),
            Suite::OnGpu(suite) => suite.to_possible_value(),
        }
    }
}

impl EstimableSuite {
    /// Returns the estimated time of each measurement.
    pub(super) fn estimates(self, estimator: &Arc<Estimator>) -> Result<Vec<Timed>, Error> {
        let times = self.times(&Timer::estimated(estimator.clone())?, 1)?;
        let timed =
            |m: Measurement| Timed { kernel: m.kernel.to_string(), shape: m.shape, median_ms: m.time.median_ms };
        Ok(times.into_iter().map(timed).collect())
    }

    fn times(self, timer: &Timer, rounds: usize) -> Result<Vec<Measurement>, Error> {
        match self {
            EstimableSuite::Gemm => gemm::measure(timer, rounds),
            EstimableSuite::Memory => memory::measure(timer, rounds),
            EstimableSuite::Attention => attention::measure(timer, rounds),
            EstimableSuite::Decode => attention::measure_decode(timer, rounds),
            EstimableSuite::Softmax => rowwise::softmax(timer, rounds),
            EstimableSuite::Norm => rowwise::norm(timer, rounds),
            EstimableSuite::Loss => rowwise::loss(timer, rounds),
            EstimableSuite::Sampling => rowwise::sampling(timer, rounds),
            EstimableSuite::Configurations => configurations::measure(timer, rounds),
        }
    }
}

/// Time of a measurement, as `bench --json` prints it, or its estimate.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Timed {
    pub kernel: String,
    pub shape: String,
    pub median_ms: f64,
}

/// Trial of several contenders: this project's first, then its peers.
struct Trial<'a> {
    kernel: &'static str,
    shape: String,
    /// Rate of the work, where a rate is more informative than the time.
    rate: Option<Rate>,
    contenders: Vec<Contender<'a>>,
    /// Work to do between two rounds.
    after: Box<dyn FnMut() + 'a>,
}

/// Unit of work, chosen by what limits the kernel.
#[derive(Clone, Copy)]
enum Rate {
    /// Floating-point operations.
    Flop(f64),
    /// Bytes read and written.
    Bytes(f64),
}

/// Result of one measurement.
#[derive(Serialize)]
struct Measurement {
    kernel: &'static str,
    shape: String,
    #[serde(flatten)]
    time: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    tflops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tbps: Option<f64>,
    /// Time of each peer divided by this project's time. A ratio above 1 means that this project is
    /// faster.
    ratio: BTreeMap<&'static str, f64>,
    /// Time of each peer.
    peers: BTreeMap<&'static str, Summary>,
}

impl Bench {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let rounds = usize::from(self.rounds);
        let measured = match self.suite {
            None => return self.kernels.run(&self.names, rounds, self.json, out),
            Some(Suite::Estimable(suite)) => {
                suite.times(&Timer::new(&Device::cuda(0).map_err(Error::Device)?)?, rounds)?
            }
            Some(Suite::OnGpu(GpuSuite::Runtime)) => runtime::measure(rounds)?,
            Some(Suite::OnGpu(GpuSuite::Quant)) => quant::measure(&self.names, rounds)?,
            Some(Suite::OnGpu(GpuSuite::Checked)) => return self.checked(out),
            Some(Suite::OnGpu(GpuSuite::Plan)) => return self.plan(out),
        };
        if self.json {
            json(out, &measured)?;
            return Ok(Outcome::Good);
        }
        print(out, &measured, "ours")?;
        Ok(Outcome::Good)
    }

    fn plan(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let planned = plan::measure(usize::from(self.rounds))?;
        if self.json {
            json(out, &planned)?;
            return Ok(Outcome::Good);
        }
        writeln!(out, "{}", planned.device)?;
        writeln!(out, "  measured  {:.4?}", planned.costs)?;
        writeln!(out, "  in use    {:.4?}", kernels_rs::gemm::Costs::H200)?;
        writeln!(out, "pass the measured costs to `Gemm::costs`")?;
        Ok(Outcome::Good)
    }

    fn checked(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let checked = checked::measure(&self.names, usize::from(self.rounds))?;
        if self.json {
            json(out, &checked)?;
            return Ok(Outcome::Good);
        }
        print(out, &checked.instances, "bare")?;
        writeln!(
            out,
            "{}: time of checked launches over unchecked ones, median of {} instances",
            checked.device,
            checked.instances.len()
        )?;
        let long = checked
            .median_ratio_long
            .map_or_else(String::new, |ratio| format!(", {ratio:.3} for instances that take longer than a launch"));
        writeln!(out, "  {:.3}{long}", checked.median_ratio)?;
        Ok(Outcome::Good)
    }
}

fn print(out: &mut dyn Write, measured: &[Measurement], first: &str) -> Result<(), Error> {
    for m in measured {
        writeln!(out, "{}, {}", m.kernel, m.shape)?;
        let rate = match (m.tflops, m.tbps) {
            (Some(rate), _) => format!(", {rate:.2} TFLOP/s"),
            (_, Some(rate)) => format!(", {rate:.2} TB/s"),
            _ => String::new(),
        };
        writeln!(out, "  {first:<24} {}{rate}", m.time)?;
        for (peer, time) in &m.peers {
            writeln!(out, "  {peer:<24} {}, {:.2} × {first}", time, m.ratio[peer])?;
        }
    }
    Ok(())
}

/// Measures the trials and shows a progress bar.
fn all(trials: Vec<Trial<'_>>, rounds: usize) -> Result<Vec<Measurement>, Error> {
    with_bar(trials.len(), |bar| {
        let measured = trials.into_iter().map(|mut trial| {
            bar.set_message(trial.kernel);
            // Peers are measured only.
            let estimate = trial.contenders.first_mut().filter(|contender| contender.estimated);
            let times = match estimate {
                Some(ours) => vec![vec![(ours.run)()?.as_secs_f64() * 1e3]],
                None => in_turns(&mut trial.contenders, rounds, &mut trial.after)?,
            };
            let times = times.iter().map(|times| Summary::of(times));
            bar.inc(1);
            let mut named = trial.contenders.iter().map(|c| c.name).zip(times);
            let (_, time) = named.next().unwrap_or(("", Summary::of(&[])));
            let peers: BTreeMap<_, _> = named.collect();
            let ratio = peers.iter().map(|(name, peer)| (*name, peer.median_ms / time.median_ms)).collect();
            let per_second = |work: f64| work / time.median_ms / 1e9;
            let (tflops, tbps) = match trial.rate {
                Some(Rate::Flop(flop)) => (Some(per_second(flop)), None),
                Some(Rate::Bytes(bytes)) => (None, Some(per_second(bytes))),
                None => (None, None),
            };
            Ok(Measurement { kernel: trial.kernel, shape: trial.shape, time, tflops, tbps, ratio, peers })
        });
        measured.collect()
    })
}
