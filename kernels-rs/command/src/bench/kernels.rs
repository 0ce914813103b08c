//! Costs of kernels in the cases of their specs: counts of the interpreter, times on a GPU, and
//! estimates without one.

use super::device::Timer;
use super::measure::{Contender, in_turns};
use crate::cases::CaseOptions;
use crate::check::{DeviceArg, device_arg};
use crate::error::{CommandOutcome, Error};
use crate::inspect::limits::CaseWork;
use crate::name::{self, SelectedInstance};
use crate::output::{counted, json};
use crate::progress::with_bar;
use crate::statistics::{ComparisonVerdict, Difference, Summary, percent_arg};
use ::runtime::interpreter::Verdict;
use ::runtime::testing::{self, Case, Profiler, RepeatedLaunch};
use ::runtime::{Device, DeviceBuffer, Stream};
use clap::Args;
use kernel_dsl::compiler::hir::Constant;
use kernels_rs_estimate::Estimator;
use kernels_rs_estimate::device::DeviceModel;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, thread};

/// Options of measurements of kernels.
#[derive(Args)]
pub(super) struct KernelArgs {
    #[command(flatten)]
    wanted: CaseOptions,
    /// Measure every case instead of the largest
    #[arg(long, conflicts_with = "case")]
    all_cases: bool,
    /// The device: cpu (counts and an estimate), cuda:N, or best (the first usable GPU, if there is
    /// one)
    #[arg(long, default_value = "best", value_parser = device_arg)]
    device: DeviceArg,
    /// The device to estimate times for, without a GPU
    #[arg(long, value_name = "DEVICE", default_value = "gtx1080")]
    model: String,
    /// Save the measurements to a JSON file
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Compare with saved measurements; the exit code is 1 if a case is significantly slower
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Least change of a median, in percent, that counts as faster or slower
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0, value_parser = percent_arg)]
    least_change: f64,
}

/// Measurements of several cases, as `--json` and `--save` write them.
#[derive(Serialize, Deserialize)]
struct Measurements {
    device: String,
    /// Clocks under load after the measurements; `null` without a GPU or without nvidia-smi.
    clocks: Option<Clocks>,
    cases: Vec<CaseCosts>,
    /// Comparisons with the file of `--against`.
    #[serde(skip_deserializing, default, skip_serializing_if = "Vec::is_empty")]
    differences: Vec<CaseDifference>,
}

/// Clocks of a GPU in MHz.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
struct Clocks {
    #[serde(rename = "multiprocessors_mhz", alias = "multiprocessors")]
    multiprocessors: u32,
    #[serde(rename = "memory_mhz", alias = "memory")]
    memory: u32,
}

/// Costs of an instance in a case.
#[derive(Serialize, Deserialize)]
struct CaseCosts {
    instance: String,
    case: String,
    seed: u64,
    /// Counts of the interpreter; `null` if the grid has no block.
    work: Option<CaseWork>,
    /// Times on the GPU; empty without one.
    times: Vec<LaunchTimes>,
    /// Estimate for the model; `null` with a GPU, and without ptxas and nvdisasm.
    estimate: Option<CaseEstimate>,
}

/// Contents of the L2 cache when a measured launch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CacheContents {
    /// The data of the same launch before.
    Warm,
    /// Other data.
    Cold,
}

/// Times in milliseconds, by contents of the cache.
type Samples = Vec<(CacheContents, Vec<f64>)>;

/// Times of a launch.
#[derive(Serialize, Deserialize)]
struct LaunchTimes {
    cache: CacheContents,
    #[serde(flatten)]
    summary: Summary,
    /// Operations on floats per second, in units of 10⁹.
    gflops: f64,
    /// Counted bytes per second, in units of 10⁹.
    gb_per_s: f64,
    /// Share of the rate that the roofline of the device allows; `null` for a device without data,
    /// and with a warm cache, whose bandwidth the roofline does not have.
    roofline: Option<f64>,
    samples_ms: Vec<f64>,
}

/// Estimate of a launch.
#[derive(Serialize, Deserialize)]
struct CaseEstimate {
    device: String,
    time_us: f64,
    /// Issue slots of the machine code, in all warps.
    slots: f64,
    limiter: String,
}

/// Comparison of a case with an earlier measurement.
#[derive(Serialize)]
struct CaseDifference {
    instance: String,
    case: String,
    #[serde(flatten)]
    compared: ComparedFigures,
}

#[derive(Serialize)]
#[serde(tag = "of", rename_all = "lowercase")]
enum ComparedFigures {
    /// Measured times.
    Times {
        cache: CacheContents,
        #[serde(flatten)]
        difference: Difference,
    },
    /// Estimated times, which have no spread.
    Estimates { ratio: f64, verdict: ComparisonVerdict },
    /// Ratios of the interpreter's counts, where neither side has a time.
    Counts { instructions: f64, sectors: f64, bank_passes: f64, verdict: ComparisonVerdict },
}

impl ComparedFigures {
    fn verdict(&self) -> ComparisonVerdict {
        match self {
            ComparedFigures::Times { difference, .. } => difference.verdict,
            ComparedFigures::Estimates { verdict, .. } | ComparedFigures::Counts { verdict, .. } => *verdict,
        }
    }

    /// Compares the counts of two runs: slower if one of them grows by more than the fraction
    /// `least`, faster if one shrinks and none grows.
    fn counts(new: &CaseWork, old: &CaseWork, least: f64) -> ComparedFigures {
        let ratio = |count: fn(&CaseWork) -> u64| match (count(new), count(old)) {
            (new, old) if new == old => 1.0,
            (new, old) => new as f64 / old.max(1) as f64,
        };
        let [instructions, sectors, bank_passes] =
            [ratio(|work| work.instructions), ratio(|work| work.sectors), ratio(|work| work.bank_passes)];
        let verdicts = [instructions, sectors, bank_passes].map(|ratio| ComparisonVerdict::of_ratio(ratio, least));
        let decisive = [ComparisonVerdict::Slower, ComparisonVerdict::Faster, ComparisonVerdict::BelowLeastChange];
        let verdict = decisive.into_iter().find(|verdict| verdicts.contains(verdict));
        let verdict = verdict.unwrap_or(ComparisonVerdict::NoSignificantDifference);
        ComparedFigures::Counts { instructions, sectors, bank_passes, verdict }
    }
}

/// Least time of the launches of a warm measurement, so that the resolution of events does not
/// matter.
const ROUND: Duration = Duration::from_micros(200);
/// Largest number of launches of a warm measurement.
const LAUNCHES: u32 = 200;
/// Number of passes over all cases.
const PASSES: usize = 5;
/// Time under load after which clocks have settled.
const WARM_UP_TIME: Duration = Duration::from_millis(500);
/// Bytes that replace the contents of the L2 cache: several times the largest cache of a GPU.
const FLUSHED_BYTES: usize = 256 << 20;

impl KernelArgs {
    pub(super) fn run(
        &self,
        names: &[String],
        rounds: usize,
        as_json: bool,
        out: &mut dyn Write,
    ) -> Result<CommandOutcome, Error> {
        // A missing file is found before minutes of measurements.
        let old = self.against.as_deref().map(read).transpose()?;
        let (device, _) = self.device.device()?;
        let meter = Meter::new(&device, &self.model, rounds)?;
        let mut tasks = Vec::new();
        for selected in name::instances(names)? {
            let mut cases = self.wanted.of_bench(selected.artifact, &selected.instance)?;
            cases.truncate(if self.all_cases { usize::MAX } else { 1 });
            tasks.extend(cases.into_iter().map(|case| (selected.clone(), case)));
        }
        let cases = with_bar(tasks.len(), |bar| {
            let count = |(selected, case): &(SelectedInstance, Case)| {
                bar.set_message(selected.name());
                let costs = meter.costs(selected, case, self.wanted.seed());
                bar.inc(1);
                costs
            };
            let mut cases = tasks.iter().map(count).collect::<Result<Vec<_>, Error>>()?;
            meter.add_times(&tasks, &mut cases)?;
            Ok::<_, Error>(cases)
        })?;
        let clocks = meter.clocks();
        let mut measured = Measurements { device: device.to_string(), clocks, cases, differences: Vec::new() };
        if let (Some(old), Some(path)) = (&old, &self.against) {
            measured.compare(old, path, self.least_change / 100.0)?;
        }
        if let Some(path) = &self.save {
            let text = serde_json::to_string_pretty(&measured).map_err(std::io::Error::from);
            let saved = text.and_then(|text| fs::write(path, text + "\n"));
            saved.map_err(|source| Error::Save { path: path.clone(), source })?;
        }
        match as_json {
            true => json(out, &measured)?,
            false => write!(out, "{measured}")?,
        }
        let slower = measured.differences.iter().any(|d| d.compared.verdict() == ComparisonVerdict::Slower);
        Ok(if slower { CommandOutcome::Failure } else { CommandOutcome::Success })
    }
}

/// Reads saved measurements.
fn read(path: &Path) -> Result<Measurements, Error> {
    let failed = |why: String| Error::Measured { path: path.to_path_buf(), why };
    let text = crate::text_file::read(path).map_err(|e| failed(e.to_string()))?;
    let malformed = |e: serde_json::Error| {
        let (line, column) = (e.line(), e.column());
        failed(format!(
            "it has no measurements (line {line}, column {column}); `kernels bench NAME --save FILE` writes such a file"
        ))
    };
    serde_json::from_str(&text).map_err(malformed)
}

/// Device or model by which times are measured or estimated.
struct Meter {
    rounds: usize,
    /// Name of the GPU, a timer on it, and memory whose initialization replaces the contents of
    /// its L2 cache.
    gpu: Option<(String, Timer, RefCell<DeviceBuffer<u8>>)>,
    /// Data of the GPU, if there are any.
    data: Option<DeviceModel>,
    /// Estimator of times without a GPU.
    estimator: Option<Arc<Estimator>>,
}

impl Meter {
    fn new(device: &Device, model: &str, rounds: usize) -> Result<Meter, Error> {
        if device.is_cpu() {
            // Without ptxas and nvdisasm there are counts and no estimate.
            let estimator = match Estimator::new(DeviceModel::named(model)?) {
                Err(kernels_rs_estimate::estimate::Error::NoTools { .. }) => None,
                estimator => Some(estimator?),
            };
            return Ok(Meter { rounds, gpu: None, data: None, estimator });
        }
        // `cuda:0 (NVIDIA H200, sm_90)`
        let shown = device.to_string();
        let name = shown.split_once('(').and_then(|(_, rest)| rest.rsplit_once(", ")).map_or("", |(name, _)| name);
        let flushed = device.zeros(FLUSHED_BYTES).map_err(Error::Device)?;
        let gpu = Some((name.to_string(), Timer::new(device)?, RefCell::new(flushed)));
        Ok(Meter { rounds, gpu, data: DeviceModel::of_driver_name(name)?, estimator: None })
    }

    fn costs(
        &self,
        SelectedInstance { artifact, instance }: &SelectedInstance,
        case: &Case,
        seed: u64,
    ) -> Result<CaseCosts, Error> {
        let name = artifact.instance_name(&instance.0);
        let failed =
            |source| Error::Profile { instance: name.clone(), case: case.name.clone(), source: Box::new(source) };
        let profiler = Profiler::new(artifact, instance, artifact.target).map_err(failed)?;
        let profiled = profiler.run(case).map_err(failed)?;
        // A GPU runs the PTX without checks, which only a correct kernel may do.
        if let Some((outcome, _)) = &profiled
            && outcome.report.verdict() == Verdict::Fail
        {
            let report = Box::new(outcome.report.clone());
            return Err(Error::Faulty { instance: name, case: case.name.clone(), report });
        }
        let work = profiled.map(|(_, profile)| CaseWork::of(&profile));
        let mut costs = CaseCosts {
            instance: name.clone(),
            case: case.name.clone(),
            seed,
            work,
            times: Vec::new(),
            estimate: None,
        };
        if let (Some(_), Some(estimator)) = (work, &self.estimator) {
            testing::launch(artifact, instance, case, &estimator.device()).map_err(failed)?;
            costs.estimate = estimator.take()?.pop().map(|launch| CaseEstimate {
                device: estimator.model().device.name.clone(),
                time_us: launch.time_us,
                slots: launch.slots,
                limiter: launch.limiter.name(),
            });
        }
        Ok(costs)
    }

    /// Measures the cases on the GPU, if there is one. Several passes over all cases spread the
    /// measurements of each over time and over places in memory. So their interval covers both.
    fn add_times(&self, tasks: &[(SelectedInstance, Case)], cases: &mut [CaseCosts]) -> Result<(), Error> {
        let Some((_, timer, flushed)) = &self.gpu else { return Ok(()) };
        // Clocks rise under load.
        timer.busy_during(|| {
            thread::sleep(WARM_UP_TIME);
            Some(())
        });
        let mut samples: Vec<Samples> = cases.iter().map(|_| Vec::new()).collect();
        let of_instance = |(SelectedInstance { artifact, instance }, _): &(SelectedInstance, Case)| {
            let mut declared = artifact.instances.iter().map(|declared| declared.constants);
            let declared = declared.find(|constants| **constants == instance.0[..]);
            // A call borrows its constants for `'static`. The leak is small, because undeclared
            // instances come from the command line.
            declared.unwrap_or_else(|| Box::leak(instance.0.clone().into_boxed_slice()))
        };
        let constants: Vec<&'static [Constant]> = tasks.iter().map(of_instance).collect();
        for _ in 0..PASSES {
            let all = tasks.iter().zip(&constants).zip(&*cases).zip(&mut samples);
            for ((((SelectedInstance { artifact, .. }, case), constants), costs), samples) in all {
                if costs.work.is_none() {
                    continue;
                }
                let mut measured = Ok(Vec::new());
                let measure = |launch: &mut RepeatedLaunch<'_>| {
                    measured = self.samples(timer, flushed, launch);
                    Ok(())
                };
                let failed = |source| Error::Profile {
                    instance: costs.instance.clone(),
                    case: case.name.clone(),
                    source: Box::new(source),
                };
                testing::prepared(timer.stream(), artifact, constants, case, measure).map_err(failed)?;
                for (cache, times) in measured? {
                    match samples.iter_mut().find(|(known, _)| *known == cache) {
                        Some((_, all)) => all.extend(times),
                        None => samples.push((cache, times)),
                    }
                }
            }
        }
        for (costs, samples) in cases.iter_mut().zip(samples) {
            if let Some(work) = costs.work {
                costs.times = samples.into_iter().map(|(cache, times)| self.times(&work, cache, times)).collect();
            }
        }
        Ok(())
    }

    /// Measures a launch with a warm and with a cold L2 cache, each time on restored memory.
    fn samples(
        &self,
        timer: &Timer,
        flushed: &RefCell<DeviceBuffer<u8>>,
        launch: &mut RepeatedLaunch<'_>,
    ) -> Result<Samples, Error> {
        let rounds = self.rounds.div_ceil(PASSES);
        let in_a_row = launch.max_launches_in_a_row().unwrap_or(LAUNCHES).min(LAUNCHES);
        let launch = RefCell::new(launch);
        let restored = |name, launches| {
            let mut timed = timer.timed(name, launches, || launch.borrow_mut().launch());
            let launch = &launch;
            Contender::new(name, move || {
                launch.borrow_mut().restore().map_err(Error::Device)?;
                (timed.run)()
            })
        };
        let mut once = restored("once", 1);
        // The first launch loads the kernel.
        (once.run)()?;
        let time = (once.run)()?;
        let launches = (ROUND.as_nanos() / time.as_nanos().max(1)).clamp(1, u128::from(in_a_row)) as u32;
        let warm = in_turns(&mut [restored("warm", launches)], rounds, || ())?;
        let flushed = &mut *flushed.borrow_mut();
        let flush = |stream: &Stream| {
            launch.borrow_mut().restore()?;
            stream.fill_zero(flushed)
        };
        let cold = in_turns(&mut [timer.timed_after("cold", flush, || launch.borrow_mut().launch())], rounds, || ())?;
        let all = |times: Vec<Vec<f64>>| times.concat();
        Ok(vec![(CacheContents::Warm, all(warm)), (CacheContents::Cold, all(cold))])
    }

    fn times(&self, work: &CaseWork, cache: CacheContents, samples_ms: Vec<f64>) -> LaunchTimes {
        let summary = Summary::of(&samples_ms);
        let seconds = summary.median_ms / 1e3;
        // The least time that the device's peak rates allow, over the measured time.
        let data = self.data.as_ref().filter(|_| cache == CacheContents::Cold);
        let roofline = data.map(|data| {
            let arithmetic = work.operations as f64 / data.peak_flops();
            let memory = work.bytes() as f64 / (data.device.dram_gb_per_s.value * 1e9);
            arithmetic.max(memory) / seconds
        });
        let (gflops, gb_per_s) = (work.operations as f64 / seconds / 1e9, work.bytes() as f64 / seconds / 1e9);
        LaunchTimes { cache, summary, gflops, gb_per_s, roofline, samples_ms }
    }

    /// Reads the clocks while the GPU is busy.
    fn clocks(&self) -> Option<Clocks> {
        let (name, timer, _) = self.gpu.as_ref()?;
        timer.busy_during(|| {
            let query = ["--query-gpu=name,clocks.sm,clocks.mem", "--format=csv,noheader,nounits"];
            let output = Command::new("nvidia-smi").args(query).output().ok()?;
            Clocks::of(&String::from_utf8_lossy(&output.stdout), name)
        })
    }
}

impl Clocks {
    /// Returns the clocks in the output of nvidia-smi. Of several GPUs of that name, the busy one
    /// has the highest clock.
    fn of(text: &str, name: &str) -> Option<Clocks> {
        let clocks = |line: &str| {
            let mut fields = line.split(", ");
            let clocks = (fields.next()? == name).then(|| {
                Some(Clocks { multiprocessors: fields.next()?.parse().ok()?, memory: fields.next()?.parse().ok()? })
            });
            clocks?
        };
        text.lines().filter_map(clocks).max_by_key(|clocks| clocks.multiprocessors)
    }
}

impl Measurements {
    /// Adds the comparisons with `old`, which was read from `path`.
    fn compare(&mut self, old: &Measurements, path: &Path, least: f64) -> Result<(), Error> {
        let failed = |why: String| Error::Measured { path: path.to_path_buf(), why };
        if old.device != self.device {
            return Err(failed(format!(
                "they are of {}, and these of {}; measure both on one device",
                old.device, self.device
            )));
        }
        for new in &self.cases {
            let same = |old: &&CaseCosts| (&old.instance, &old.case, old.seed) == (&new.instance, &new.case, new.seed);
            let Some(old) = old.cases.iter().find(same) else { continue };
            let mut add = |compared| {
                let (instance, case) = (new.instance.clone(), new.case.clone());
                self.differences.push(CaseDifference { instance, case, compared });
            };
            for times in &new.times {
                if let Some(old) = old.times.iter().find(|old| old.cache == times.cache) {
                    let difference = Difference::of(&times.samples_ms, &old.samples_ms, least);
                    add(ComparedFigures::Times { cache: times.cache, difference });
                }
            }
            match (&new.estimate, &old.estimate, &new.work, &old.work) {
                (Some(new), Some(old), ..) if new.device == old.device => {
                    let ratio = new.time_us / old.time_us;
                    add(ComparedFigures::Estimates { ratio, verdict: ComparisonVerdict::of_ratio(ratio, least) });
                }
                (_, _, Some(work), Some(earlier)) if new.times.is_empty() && old.times.is_empty() => {
                    add(ComparedFigures::counts(work, earlier, least));
                }
                _ => {}
            }
        }
        if !self.differences.is_empty() {
            return Ok(());
        }
        let others = old.cases.first().map_or_else(
            || "it has no case".to_string(),
            |CaseCosts { instance, case, seed, .. }| {
                format!("its first case is `{case}` of {instance} with seed {seed}")
            },
        );
        Err(failed(format!("no case that was measured now is in it; {others}")))
    }
}

impl fmt::Display for Measurements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurements { device, clocks, cases, differences } = self;
        write!(f, "on {device}")?;
        if let Some(Clocks { multiprocessors, memory }) = clocks {
            write!(f, ", {multiprocessors} MHz under load, memory {memory} MHz")?;
        }
        writeln!(f)?;
        for costs in cases {
            write!(f, "{costs}")?;
            let of_case = |d: &&CaseDifference| (&d.instance, &d.case) == (&costs.instance, &costs.case);
            for CaseDifference { compared, .. } in differences.iter().filter(of_case) {
                match compared {
                    ComparedFigures::Times { cache, difference } => writeln!(f, "  {:<10}{difference}", cache.name())?,
                    ComparedFigures::Estimates { ratio, verdict } => {
                        writeln!(f, "  {:<10}{verdict}: {ratio:.3} × of the earlier estimate", "estimate")?;
                    }
                    ComparedFigures::Counts { instructions, sectors, bank_passes, verdict } => writeln!(
                        f,
                        "  {:<10}{verdict}: {instructions:.3} × of the earlier warp instructions, {sectors:.3} × of the \
                         sectors, {bank_passes:.3} × of the passes",
                        "counts"
                    )?,
                }
            }
        }
        Ok(())
    }
}

impl CacheContents {
    fn name(self) -> &'static str {
        match self {
            CacheContents::Warm => "warm L2",
            CacheContents::Cold => "cold L2",
        }
    }
}

impl fmt::Display for CaseCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, {}", self.instance, self.case)?;
        let Some(work) = &self.work else { return writeln!(f, "  its grid has no block") };
        let CaseWork { operations, read, written, instructions, sectors, bank_passes } = *work;
        writeln!(
            f,
            "  {:<10}{}, {} on floats, {read} bytes read, {written} written",
            "counted",
            counted(instructions, "warp instruction"),
            counted(operations, "operation"),
        )?;
        let passes = if bank_passes > 0 { format!(", {bank_passes} passes of shared memory") } else { String::new() };
        writeln!(f, "  {:<10}{} of global memory requested{passes}", "", counted(sectors, "sector"))?;
        for LaunchTimes { cache, summary, gflops, gb_per_s, roofline, .. } in &self.times {
            let part = roofline.map_or_else(String::new, |part| format!(", {:.1} % of the roofline", 100.0 * part));
            writeln!(f, "  {:<10}{summary}, {gflops:.1} GFLOP/s, {gb_per_s:.1} GB/s{part}", cache.name())?;
        }
        if let Some(CaseEstimate { device, time_us, slots, limiter }) = &self.estimate {
            writeln!(
                f,
                "  {:<10}{time_us:.2} µs on {device}, limited by {limiter}; {slots:.0} issue slots; not a measurement",
                "estimate"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::runtime::testing::Input;
    use kernel_dsl::Kernel;
    use kernel_dsl::compiler::hir::Instance;

    #[test]
    fn clocks_are_those_of_the_busy_gpu() {
        let text = "NVIDIA H200, 345, 3201\nNVIDIA H200, 1980, 3201\nTesla P4, 2000, 3003\n";
        assert_eq!(Clocks::of(text, "NVIDIA H200"), Some(Clocks { multiprocessors: 1980, memory: 3201 }));
        assert_eq!(Clocks::of("NVIDIA H200, [N/A], [N/A]\n", "NVIDIA H200"), None);
        assert_eq!(Clocks::of("", "NVIDIA H200"), None);
    }

    fn measurements(times: &[f64], estimate_us: Option<f64>) -> Measurements {
        let times = LaunchTimes {
            cache: CacheContents::Warm,
            summary: Summary::of(times),
            gflops: 0.0,
            gb_per_s: 0.0,
            roofline: None,
            samples_ms: times.to_vec(),
        };
        let estimate = estimate_us.map(|time_us| CaseEstimate {
            device: "P4".to_string(),
            time_us,
            slots: 1.0,
            limiter: String::new(),
        });
        let times = if times.samples_ms.is_empty() { Vec::new() } else { vec![times] };
        let (instance, case) = ("saxpy".to_string(), "n = 5".to_string());
        let costs = CaseCosts { instance, case, seed: 1, work: None, times, estimate };
        Measurements { device: "cpu".to_string(), clocks: None, cases: vec![costs], differences: Vec::new() }
    }

    #[test]
    fn comparisons_find_what_became_slower() {
        let times = |ms: f64| (0..30).map(|i| ms * (1.0 + f64::from(i % 5) * 1e-3)).collect::<Vec<_>>();
        let verdicts = |mut new: Measurements, old: &Measurements| {
            new.compare(old, Path::new("old.json"), 0.01).map_err(|e| e.to_string())?;
            Ok::<_, String>(new.differences.iter().map(|d| d.compared.verdict()).collect::<Vec<_>>())
        };
        let old = measurements(&times(1.0), Some(10.0));
        assert_eq!(
            verdicts(measurements(&times(1.1), Some(10.0)), &old).unwrap(),
            [ComparisonVerdict::Slower, ComparisonVerdict::NoSignificantDifference]
        );
        assert_eq!(verdicts(measurements(&[], Some(9.0)), &old).unwrap(), [ComparisonVerdict::Faster]);
        let other = Measurements { device: "cuda:0".to_string(), ..measurements(&[], Some(9.0)) };
        assert!(verdicts(other, &old).unwrap_err().contains("measure both on one device"));
        let error = verdicts(measurements(&[], None), &old).unwrap_err();
        assert!(
            error.contains("no case that was measured now is in it; its first case is `n = 5` of saxpy"),
            "{error}"
        );
    }

    #[test]
    fn counts_are_compared_where_there_is_no_time() {
        let verdict = |[instructions, sectors]: [u64; 2]| {
            let work = |instructions, sectors| CaseWork {
                operations: 0,
                read: 0,
                written: 0,
                instructions,
                sectors,
                bank_passes: 0,
            };
            let [mut new, mut old] = [measurements(&[], None), measurements(&[], None)];
            new.cases[0].work = Some(work(instructions, sectors));
            old.cases[0].work = Some(work(1000, 400));
            new.compare(&old, Path::new("old.json"), 0.01).unwrap();
            new.differences[0].compared.verdict()
        };
        assert_eq!(verdict([1000, 400]), ComparisonVerdict::NoSignificantDifference);
        assert_eq!(verdict([1009, 397]), ComparisonVerdict::BelowLeastChange);
        assert_eq!(verdict([900, 400]), ComparisonVerdict::Faster);
        // A count that grows outweighs one that shrinks.
        assert_eq!(verdict([900, 405]), ComparisonVerdict::Slower);
    }

    mod faulty {
        use crate::bench::busy::unlisted;
        use kernel_dsl::prelude::*;

        /// Stores to 32 elements, also if there are fewer.
        #[kernel(crate = unlisted, block = 32, grid = 1)]
        pub fn unguarded(y: &mut [f32]) {
            y[thread::x()] = 1.0;
        }
    }

    #[test]
    fn faulty_kernel_has_no_costs() {
        let meter = Meter::new(&Device::cpu(), "gtx1080", 1).unwrap();
        let selected = SelectedInstance { artifact: faulty::unguarded::ARTIFACT, instance: Instance::default() };
        let costs = |n: usize| meter.costs(&selected, &Case::new(n.to_string(), [Input::slice(&vec![0f32; n])]), 1);
        assert!(costs(32).is_ok_and(|costs| costs.work.is_some()));
        let Err(error @ Error::Faulty { .. }) = costs(31) else { panic!("31 elements") };
        let text = error.to_string();
        assert!(text.starts_with("unguarded is faulty in the case 31, so that its costs have no meaning:\n"), "{text}");
        assert!(
            text.contains("error[out-of-bounds]: index 31 is out of bounds of `y`, which has 31 elements"),
            "{text}"
        );
    }
}
