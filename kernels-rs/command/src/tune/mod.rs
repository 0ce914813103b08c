//! `kernels tune`: the fastest plan of a call for a device and a shape.

pub(crate) mod error;
mod meter;
mod search;

use crate::error::{CommandOutcome, Error};
use crate::output::json;
use crate::progress::with_bar;
use crate::statistics::ComparisonVerdict;
use clap::Args;
use error::TuneError;
use kernels_rs::gemm::plan::{GemmPlan, ranked};
use kernels_rs::gemm::{Gemm, GemmCosts, ProductShape, TunedPlan, TunedPlans};
use kernels_rs_estimate::Estimator;
use kernels_rs_estimate::device::DeviceModel;
use meter::{ProductMeter, ProductOperands};
use runtime::Device;
use search::{CandidateResult, SearchLimits, SearchResult, search};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Bytes of shared memory that a block may declare.
const MAX_SHARED_BYTES: u32 = 48 << 10;

/// Finds the fastest plan of a product for a device and a shape
///
/// On a GPU, candidates are checked against a reference in f64, and measured in a quick round.
/// A second round compares the best one with the plan in use. For a device that this machine
/// lacks, candidates are estimated; an estimate is not a measurement.
#[derive(Args)]
pub(super) struct TuneArgs {
    /// The call to tune
    #[arg(value_name = "NAME")]
    call: TunableCall,
    /// The product: MxNxK or BATCHxMxNxK, and a layout unless it is A·B: '512x6144x2048, A·Bᵀ'
    #[arg(long, value_name = "CASE", value_parser = case_arg)]
    case: ProductShape,
    /// cuda:N, or a device to estimate for, such as gtx1080ti
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// Number of candidates beside the plan in use
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u16).range(1..))]
    candidates: u16,
    /// Time in seconds after which nothing more is measured or estimated
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u32).range(1..))]
    budget: u32,
    /// Measurements of a candidate in the quick round
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..))]
    quick: u16,
    /// Measurements of the best candidate and of the plan in use in the confirming round
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(2..))]
    confirming: u16,
    /// Least change of a median, in percent, that counts as faster or slower
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    least_change: f64,
    /// Add a faster plan to a table, which `Gemm::tuned` reads; the table is created if it is
    /// missing
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A call whose dispatch reads a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum TunableCall {
    /// Matrix products of f32
    Gemm,
}

/// Reads the value of `--case`.
fn case_arg(text: &str) -> Result<ProductShape, String> {
    let (extents, layout) = text.split_once(',').unwrap_or((text, "A·B"));
    ProductShape::parse(extents.trim(), layout.trim())
}

/// Output of `--json`.
#[derive(Serialize)]
struct TuneReport {
    device: String,
    case: String,
    /// Order of the candidates before any measurement.
    ranking: CandidateOrder,
    incumbent: String,
    candidates: Vec<CandidateReport>,
    best: String,
    /// The plan to use: the best one if it is confirmed, and otherwise the incumbent.
    winner: String,
    /// Null for estimates, and if the incumbent was the fastest or the budget was spent.
    confirmation: Option<search::Confirmation>,
    is_budget_spent: bool,
    /// Whether the table got a new line.
    is_written: bool,
    /// Evidence for the winner in a line of a table.
    evidence: String,
}

/// Order of the candidates before any measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
enum CandidateOrder {
    /// By `kernels estimate`.
    Estimates,
    /// By the table of costs that dispatch reads, because ptxas or nvdisasm is missing, or because
    /// there are no data of the device.
    Costs,
}

#[derive(Serialize)]
struct CandidateReport {
    plan: String,
    estimate_us: Option<f64>,
    #[serde(flatten)]
    result: CandidateResult,
}

/// A plan, with its estimate and the reason of its rejection.
struct PlanCandidate {
    plan: GemmPlan,
    estimate_us: Option<f64>,
    rejected: Option<String>,
}

/// Candidates of a product. Number 0 is the incumbent.
struct ProductCandidates {
    order: CandidateOrder,
    all: Vec<PlanCandidate>,
}

impl ProductCandidates {
    /// Returns the plan in use on `device`, and the `count` plans with the least costs.
    fn new(device: &Device, call: Gemm, shape: ProductShape, count: usize) -> ProductCandidates {
        let ProductShape { batch, m, n, k, transpose_a, transpose_b } = shape;
        let incumbent = call.chosen(device, batch, [m, n, k]);
        let multiprocessors = device.facts().multiprocessors;
        let plans = ranked(&GemmCosts::H200, batch, [m, n, k], transpose_b, !transpose_a, multiprocessors);
        let others = plans.into_iter().map(|(_, plan)| plan).filter(|plan| *plan != incumbent).take(count);
        let candidate = |plan| PlanCandidate { plan, estimate_us: None, rejected: None };
        let all = std::iter::once(incumbent).chain(others).map(candidate).collect();
        ProductCandidates { order: CandidateOrder::Costs, all }
    }

    /// Estimates the candidates until the budget is spent, rejects those that fail a gate of the
    /// device, and orders the others.
    fn estimate(
        &mut self,
        estimator: &Arc<Estimator>,
        call: Gemm,
        shape: ProductShape,
        budget: Duration,
    ) -> Result<(), Error> {
        let start = Instant::now();
        let device = estimator.device();
        let operands = ProductOperands::zeros(&device, shape)?;
        let count = self.all.len();
        with_bar(count, |bar| {
            for candidate in &mut self.all {
                if start.elapsed() >= budget {
                    break;
                }
                bar.set_message(format!("estimate of {}", candidate.plan));
                let refused = operands.run(&device, call.plan(candidate.plan)).err().map(|e| e.to_string());
                let estimated = estimator.take();
                candidate.rejected = refused;
                match estimated {
                    Ok(launches) => {
                        let spilled = launches.iter().find(|launch| launch.spill_bytes > 0);
                        let large = launches.iter().find(|launch| launch.shared_bytes > MAX_SHARED_BYTES);
                        if let Some(launch) = spilled {
                            let (bytes, name) = (launch.spill_bytes, &launch.instance);
                            candidate.rejected = Some(format!("{name} spills {bytes} bytes of registers of a thread"));
                        } else if let Some(launch) = large {
                            let (bytes, name) = (launch.shared_bytes, &launch.instance);
                            candidate.rejected =
                                Some(format!("{name} takes {bytes} bytes of shared memory, above {MAX_SHARED_BYTES}"));
                        }
                        candidate.estimate_us = Some(launches.iter().map(|launch| launch.time_us).sum());
                    }
                    Err(e @ kernels_rs_estimate::estimate::Error::Fit { .. }) => {
                        candidate.rejected = Some(e.to_string());
                    }
                    Err(e) => return Err(Error::Estimate(e)),
                }
                bar.inc(1);
            }
            Ok(())
        })?;
        self.order = CandidateOrder::Estimates;
        // A stable sort keeps the order of the costs for what was not estimated.
        let time = |candidate: &PlanCandidate| candidate.estimate_us.unwrap_or(f64::INFINITY);
        self.all[1..].sort_by(|a, b| time(a).total_cmp(&time(b)));
        Ok(())
    }

    /// Returns the numbers of the candidates that passed the gates so far.
    fn accepted(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|number| self.all[*number].rejected.is_none()).collect()
    }
}

impl TuneArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let TunableCall::Gemm = self.call;
        let mut table = self.write.as_deref().map(read_table).transpose()?;
        // A call borrows its table for `'static`. The leak is small, because a process reads one
        // table.
        let tuned: &'static TunedPlans = match &table {
            Some(table) => Box::leak(Box::new(table.clone())),
            None => TunedPlans::built_in(),
        };
        let ProductShape { transpose_a, transpose_b, .. } = self.case;
        let call = if transpose_a { Gemm::new().transpose_a() } else { Gemm::new() };
        let call = if transpose_b { call.transpose_b() } else { call }.tuned(tuned);
        let (start, budget) = (Instant::now(), Duration::from_secs(u64::from(self.budget)));
        let count = usize::from(self.candidates);
        let (name, candidates, result) = match self.device.strip_prefix("cuda:").map(str::parse) {
            Some(Ok(ordinal)) => {
                let failed = |source| Error::NoDevice { device: self.device.clone(), source: Box::new(source) };
                let device = Device::cuda(ordinal).map_err(failed)?;
                let mut candidates = ProductCandidates::new(&device, call, self.case, count);
                // Half of the budget is for measurements.
                if let Some(model) = DeviceModel::of_driver_name(device.name())? {
                    match Estimator::new(model) {
                        Err(kernels_rs_estimate::estimate::Error::NoTools { .. }) => {}
                        estimator => candidates.estimate(&estimator?, call, self.case, budget / 2)?,
                    }
                }
                let remaining = budget.saturating_sub(start.elapsed());
                let result = self.measure(&device, call, &candidates, remaining)?;
                (device.name().to_string(), candidates, result)
            }
            _ => {
                let model = DeviceModel::named(&self.device)?;
                let name = model.device.driver_name.clone();
                let estimator = Estimator::new(model)?;
                let device = estimator.device();
                let plans = call_on_model(call, tuned, &name, self.case);
                let mut candidates = ProductCandidates::new(&device, plans, self.case, count);
                candidates.estimate(&estimator, call, self.case, budget)?;
                let result = estimated(&candidates).ok_or(TuneError::Budget { seconds: self.budget })?;
                (name, candidates, result)
            }
        };
        let mut report = TuneReport::new(&name, self.case, &candidates, &result);
        if let (Some(path), Some(table), true) = (&self.write, &mut table, report.winner != report.incumbent) {
            let number = winner(&candidates, &result);
            let tuned = TunedPlan { plan: candidates.all[number].plan, evidence: report.evidence.clone() };
            table.insert(&name, self.case, tuned).map_err(|why| TuneError::Plan { why })?;
            fs::write(path, table.to_string()).map_err(|source| Error::Save { path: path.clone(), source })?;
            report.is_written = true;
        }
        match self.json {
            true => json(out, &report)?,
            false => report.print(self.write.as_deref(), out)?,
        }
        Ok(CommandOutcome::Success)
    }

    /// Measures the candidates on a GPU within the budget.
    fn measure(
        &self,
        device: &Device,
        call: Gemm,
        candidates: &ProductCandidates,
        budget: Duration,
    ) -> Result<SearchResult, Error> {
        let limits = SearchLimits {
            quick: usize::from(self.quick),
            confirming: usize::from(self.confirming),
            budget,
            least_change: self.least_change / 100.0,
        };
        let plans: Vec<GemmPlan> = candidates.all.iter().map(|candidate| candidate.plan).collect();
        with_bar(limits.quick + limits.confirming, |bar| {
            let operands = ProductOperands::drawn(device, self.case)?;
            ProductMeter::with(device, &operands, call, &plans, bar, |meter| {
                search(meter, &candidates.accepted(), 0, &limits)
            })
        })
    }
}

/// Reads the table of a file; an empty one if there is no file.
fn read_table(path: &Path) -> Result<TunedPlans, Error> {
    let text = match crate::text_file::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(TunedPlans::default()),
        text => text.map_err(|source| TuneError::Read { path: path.to_path_buf(), source })?,
    };
    Ok(TunedPlans::parse(&text).map_err(|source| TuneError::Table { path: path.to_path_buf(), source })?)
}

/// Returns the call with the plan of a table for a device that this machine lacks.
fn call_on_model(call: Gemm, tuned: &TunedPlans, name: &str, shape: ProductShape) -> Gemm {
    tuned.plan(name, shape).map_or(call, |plan| call.plan(plan))
}

/// Returns the result of a search by estimates alone. The result is `None` if nothing was
/// estimated.
fn estimated(candidates: &ProductCandidates) -> Option<SearchResult> {
    let time = |number: &usize| candidates.all[*number].estimate_us;
    let timed: Vec<usize> = candidates.accepted().into_iter().filter(|number| time(number).is_some()).collect();
    let best = timed.into_iter().min_by(|a, b| time(a).unwrap_or(0.0).total_cmp(&time(b).unwrap_or(0.0)))?;
    let result = |candidate: &PlanCandidate| match &candidate.rejected {
        Some(why) => CandidateResult::Rejected { why: why.clone() },
        None => CandidateResult::NotTried,
    };
    let is_budget_spent = candidates.all.iter().any(|c| c.estimate_us.is_none() && c.rejected.is_none());
    Some(SearchResult {
        candidates: candidates.all.iter().map(result).collect(),
        best,
        confirmation: None,
        is_budget_spent,
    })
}

/// Returns the number of the plan to use. Estimates alone need no confirmation.
fn winner(candidates: &ProductCandidates, result: &SearchResult) -> usize {
    let is_measured = result.candidates.iter().any(|c| matches!(c, CandidateResult::Measured { .. }));
    let is_estimated = !is_measured && candidates.order == CandidateOrder::Estimates;
    if is_estimated { result.best } else { result.winner(0) }
}

impl TuneReport {
    fn new(device: &str, shape: ProductShape, candidates: &ProductCandidates, result: &SearchResult) -> TuneReport {
        let plan = |number: usize| candidates.all[number].plan.to_string();
        let (incumbent, winner) = (plan(0), winner(candidates, result));
        let evidence = match (&result.confirmation, candidates.all[winner].estimate_us, candidates.all[0].estimate_us) {
            (Some(confirmation), ..) => format!("{} than {incumbent}", confirmation.difference),
            (None, Some(us), Some(base)) if winner != 0 => {
                format!("an estimate, not a measurement: {:.3} × {incumbent}", us / base)
            }
            _ => String::new(),
        };
        let of_candidate = |(number, candidate): (usize, &PlanCandidate)| {
            let result = match &candidate.rejected {
                Some(why) => CandidateResult::Rejected { why: why.clone() },
                None => result.candidates.get(number).cloned().unwrap_or(CandidateResult::NotTried),
            };
            CandidateReport { plan: candidate.plan.to_string(), estimate_us: candidate.estimate_us, result }
        };
        TuneReport {
            device: device.to_string(),
            case: format!("{shape}, {}", shape.layout()),
            ranking: candidates.order,
            candidates: candidates.all.iter().enumerate().map(of_candidate).collect(),
            best: plan(result.best),
            winner: plan(winner),
            incumbent,
            confirmation: result.confirmation,
            is_budget_spent: result.is_budget_spent,
            is_written: false,
            evidence,
        }
    }

    fn print(&self, table: Option<&Path>, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "gemm, {} on {}", self.case, self.device)?;
        let order = match self.ranking {
            CandidateOrder::Estimates => "candidates in the order of their estimates",
            CandidateOrder::Costs => {
                "candidates in the order of the costs that dispatch reads: estimates need ptxas and nvdisasm, which \
                 `tests/get-nvdisasm` fetches, and data of the device"
            }
        };
        writeln!(out, "  {order}")?;
        for CandidateReport { plan, estimate_us, result } in &self.candidates {
            let estimate = estimate_us.map_or_else(String::new, |us| format!("estimate {us:.2} µs, "));
            let result = match result {
                CandidateResult::Rejected { why } => format!("rejected: {why}"),
                CandidateResult::NotTried => "not measured".to_string(),
                CandidateResult::Pruned { measurements, median_ms } => {
                    format!("pruned after {measurements} measurements: {:.3} µs", median_ms * 1e3)
                }
                CandidateResult::Measured { summary } => summary.to_string(),
            };
            let role = if *plan == self.incumbent { ", in use" } else { "" };
            writeln!(out, "  {plan:<18} {estimate}{result}{role}")?;
        }
        if let Some(confirmation) = &self.confirmation {
            writeln!(out, "  confirming round")?;
            writeln!(out, "    {:<16} {}", self.best, confirmation.best)?;
            writeln!(out, "    {:<16} {}, in use", self.incumbent, confirmation.incumbent)?;
        }
        if self.is_budget_spent {
            writeln!(out, "  the budget was spent before the end; raise --budget")?;
        }
        match (&self.confirmation, self.winner == self.incumbent) {
            (Some(confirmation), is_kept) => {
                let kept = if is_kept { format!("; {} stays", self.incumbent) } else { String::new() };
                writeln!(out, "{}: {}{kept}", self.best, confirmation.difference)?;
                if confirmation.difference.verdict == ComparisonVerdict::BelowLeastChange {
                    writeln!(out, "a smaller --least-change would accept this plan")?;
                }
            }
            (None, true) if self.is_budget_spent => writeln!(out, "nothing is confirmed; {} stays", self.incumbent)?,
            (None, true) => writeln!(out, "no other plan is faster; {} stays", self.incumbent)?,
            (None, false) => writeln!(out, "{}: {}", self.winner, self.evidence)?,
        }
        if let (true, Some(path)) = (self.is_written, table) {
            writeln!(out, "added to {}; `Gemm::tuned` reads the table", path.display())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
