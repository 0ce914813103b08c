//! Groups of measurements of the library, compared with the vendor's libraries.

mod attention;
mod checked;
mod configurations;
mod cublas;
mod driver;
mod experts;
mod gemm;
mod memory;
mod plan;
mod quant;
mod rowwise;
mod runtime;

use super::device::Timer;
use super::measure::{Contender, in_turns};
use crate::error::CommandOutcome;
use crate::error::Error;
use crate::name;
use crate::output::json;
use crate::progress::with_bar;
use crate::statistics::Summary;
use ::runtime::testing::{Draw, Random};
use ::runtime::{Device, DeviceBuffer};
use clap::ValueEnum;
use clap::builder::PossibleValue;
use kernels_rs_estimate::Estimator;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, LazyLock};

/// Group of measurements of the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Suite {
    /// A group that can be estimated too.
    Estimable(EstimableSuite),
    /// A group that needs a GPU.
    OnGpu(GpuSuite),
}

/// Group of measurements that need a GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum GpuSuite {
    /// Launches, loads and allocations, compared with direct driver calls
    Runtime,
    /// Integer products, compared with cuBLAS in f32, and products with quantized weights, compared
    /// with a copy of the same number of bytes
    Quant,
    /// Products of tokens with the quantized matrices of their experts, compared with a copy of the
    /// same number of bytes and with a dense product
    Experts,
    /// The PTX of every kernel, compared with its checked form, by the device's clock
    Checked,
    /// Costs of the matrix product kernels on this device; prints a new selection table
    Plan,
}

/// Group of measurements that can be estimated too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EstimableSuite {
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
    pub(crate) fn estimates(self, estimator: &Arc<Estimator>) -> Result<Vec<MeasuredTime>, Error> {
        let times = self.times(&Timer::estimated(estimator.clone())?, 1)?;
        let timed =
            |m: Measurement| MeasuredTime { kernel: m.kernel.to_string(), shape: m.shape, median_ms: m.time.median_ms };
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
pub(crate) struct MeasuredTime {
    pub kernel: String,
    pub shape: String,
    pub median_ms: f64,
}

/// Trial of several contenders: this project's first, then its peers.
struct Trial<'a> {
    kernel: &'static str,
    shape: String,
    /// Rate of the work, where a rate is more informative than the time.
    rate: Option<WorkRate>,
    contenders: Vec<Contender<'a>>,
    /// Work to do between two rounds.
    after: Box<dyn FnMut() + 'a>,
}

/// Unit of work, chosen by what limits the kernel.
#[derive(Clone, Copy)]
enum WorkRate {
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

impl Suite {
    /// Measures the group.
    pub(super) fn run(
        self,
        names: &[String],
        rounds: usize,
        as_json: bool,
        out: &mut dyn Write,
    ) -> Result<CommandOutcome, Error> {
        let measured = match self {
            Suite::Estimable(suite) => suite.times(&Timer::new(&Device::cuda(0).map_err(Error::Device)?)?, rounds)?,
            Suite::OnGpu(GpuSuite::Runtime) => runtime::measure(rounds)?,
            Suite::OnGpu(GpuSuite::Quant) => quant::measure(names, rounds)?,
            Suite::OnGpu(GpuSuite::Experts) => experts::measure(rounds)?,
            Suite::OnGpu(GpuSuite::Checked) => return checked(names, rounds, as_json, out),
            Suite::OnGpu(GpuSuite::Plan) => return plan(rounds, as_json, out),
        };
        if as_json {
            json(out, &measured)?;
            return Ok(CommandOutcome::Success);
        }
        print(out, &measured, "ours")?;
        Ok(CommandOutcome::Success)
    }
}

fn plan(rounds: usize, as_json: bool, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
    let planned = plan::measure(rounds)?;
    if as_json {
        json(out, &planned)?;
        return Ok(CommandOutcome::Success);
    }
    writeln!(out, "{}", planned.device)?;
    writeln!(out, "  measured  {:.4?}", planned.costs)?;
    writeln!(out, "  in use    {:.4?}", kernels_rs::gemm::GemmCosts::H200)?;
    writeln!(out, "pass the measured costs to `Gemm::costs`")?;
    Ok(CommandOutcome::Success)
}

fn checked(names: &[String], rounds: usize, as_json: bool, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
    let checked = checked::measure(names, rounds)?;
    if as_json {
        json(out, &checked)?;
        return Ok(CommandOutcome::Success);
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
    Ok(CommandOutcome::Success)
}

/// Returns an error that names the suite, if an unknown kernel has the name of one.
pub(super) fn of_unknown_kernel(error: Error) -> Error {
    match error {
        Error::Name(name::Error::Unknown { name, .. }) if Suite::from_str(&name, false).is_ok() => {
            Error::Suite { name }
        }
        error => error,
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
fn measure_all(trials: Vec<Trial<'_>>, rounds: usize) -> Result<Vec<Measurement>, Error> {
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
                Some(WorkRate::Flop(flop)) => (Some(per_second(flop)), None),
                Some(WorkRate::Bytes(bytes)) => (None, Some(per_second(bytes))),
                None => (None, None),
            };
            Ok(Measurement { kernel: trial.kernel, shape: trial.shape, time, tflops, tbps, ratio, peers })
        });
        measured.collect()
    })
}

/// Returns a contender that moves `bytes` bytes: half of them are read, the others written. The
/// pairs of buffers are used alternately, so that many of them are not in the L2 cache.
fn copy_of(timer: &Timer, times: u32, bytes: usize, pairs: usize) -> Result<Contender<'_>, Error> {
    let stream = timer.stream();
    let zeros = || stream.device().zeros::<u32>(bytes / 8).map_err(Error::Device);
    let mut buffers = (0..pairs).map(|_| Ok((zeros()?, zeros()?))).collect::<Result<Vec<_>, Error>>()?;
    let mut pair = 0;
    Ok(timer.timed("copy", times, move || {
        pair = (pair + 1) % pairs;
        let (source, target) = &mut buffers[pair];
        stream.copy(source, target)
    }))
}

/// Allocates `n` ordinary values on the device: clocks and power depend on the values.
fn drawn<T: Draw>(device: &Device, random: &mut Random, n: usize) -> Result<DeviceBuffer<T>, Error> {
    let some: Vec<T> = random.values(n.min(1 << 20));
    let mut all = some.repeat(n.div_ceil(some.len().max(1)));
    all.truncate(n);
    device.upload(&all).map_err(Error::Device)
}
