//! `kernels tune`: the fastest plan of a call for a device and a shape.

mod call;
pub(crate) mod error;
pub(crate) mod fill;
mod gemm;
mod meter;
mod parzen;
mod rows;
mod search;
mod weights;

use crate::error::{CommandOutcome, Error};
use crate::output::json;
use crate::progress::with_bar;
use crate::statistics::{ComparisonVerdict, percent_arg};
use call::{CallOperands, OperandValues, TunedCall};
use clap::Args;
use error::TuneError;
use kernel_dsl::compiler::ir::SHARED_LIMIT;
use kernels_rs::gemm::ProductShape;
use kernels_rs::quant::WeightedShape;
use kernels_rs::rowwise::RowsShape;
use kernels_rs::tuned::{TunedPlan, TunedPlans};
use kernels_rs_estimate::device::DeviceModel;
use kernels_rs_estimate::{Estimator, LaunchEstimate};
use meter::PlanMeter;
use parzen::ParameterSpace;
use runtime::Device;
use search::{CandidateResult, SearchLimits, SearchResult, search};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, io};

/// Error of the ratio of two estimates. A plan must be estimated to be faster by more than this
/// share to replace the plan in use. The validation on an H100 and an H200 has 28 pairs of plans of
/// one product (`h100.md` and `h200.md` of `kernels-rs/estimate/validation`). For three quarters of
/// the pairs, the ratio of the estimates is off by at most 16 %.
const ESTIMATE_ERROR: f64 = 0.16;

/// Finds the fastest plan of a call for a device and a shape
///
/// On a GPU, candidates are checked against a reference in f64, and measured in a quick round.
/// A second round compares the best one with the plan in use. For a device that this machine
/// lacks, candidates are estimated; an estimate is not a measurement.
#[derive(Args)]
pub(super) struct TuneArgs {
    /// The call to tune
    #[arg(value_name = "NAME")]
    call: TunableCall,
    /// The product: MxNxK, with a layout unless it is A·B, or with the format of the weights:
    /// '512x6144x2048, A·Bᵀ' or '1x4096x4096, Q4_K'; or rows and columns with a kernel:
    /// '8192x4096, rms norm'
    #[arg(long, value_name = "CASE")]
    case: String,
    /// cuda:N, or a device to estimate for, such as gtx1080ti
    #[arg(long, default_value = "cuda:0")]
    device: String,
    /// Number of candidates beside the plan in use. If there are more plans, a Parzen estimator
    /// chooses the next one
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
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent_arg)]
    least_change: f64,
    /// Add a faster plan to a table, which `tuned` of the call takes; the table is created if it
    /// is missing
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A call whose dispatch reads a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TunableCall {
    /// Matrix products of f32
    Gemm,
    /// Products of f32 with quantized weights
    Weights,
    /// Softmax, RMS norm and layer norm of rows of f32
    Rows,
}

/// Estimates of a call by several plans.
pub(crate) struct CallSurvey {
    /// The name of the call in the command.
    pub call: &'static str,
    pub operations: f64,
    /// The plan in use, and the launches of a call.
    pub plan: String,
    pub launches: Vec<LaunchEstimate>,
    /// The plan with the least estimate, and its time over that of the plan in use; `None` if no
    /// other plan has a smaller estimate.
    pub fastest: Option<(String, f64)>,
}

impl TunableCall {
    /// Estimates a case by the plan in use, and by up to `count` others.
    pub(crate) fn survey(self, case: &str, estimator: &Arc<Estimator>, count: usize) -> Result<CallSurvey, Error> {
        match self {
            TunableCall::Gemm => survey::<ProductShape>(case, estimator, count),
            TunableCall::Weights => survey::<WeightedShape>(case, estimator, count),
            TunableCall::Rows => survey::<RowsShape>(case, estimator, count),
        }
    }
}

fn survey<S: TunedCall>(case: &str, estimator: &Arc<Estimator>, count: usize) -> Result<CallSurvey, Error> {
    let shape: S = shape_of(case)?;
    let device = estimator.device();
    let name = &estimator.model().device.driver_name;
    let mut candidates = PlanCandidates::new(&device, name, shape, S::built_in())?;
    candidates.estimate(estimator, shape, count, Duration::MAX)?;
    let fastest = estimated(&candidates).map(|result| &candidates.all[result.best]);
    let faster = fastest.and_then(|best| Some((best, best.estimate_us? / candidates.all[0].estimate_us?)));
    Ok(CallSurvey {
        call: S::NAME,
        operations: shape.operations(),
        plan: candidates.all[0].plan.to_string(),
        launches: candidates.all[0].launches.clone(),
        fastest: faster.filter(|(_, ratio)| *ratio < 1.0).map(|(best, ratio)| (best.plan.to_string(), ratio)),
    })
}

/// Reads the value of `--case`.
fn shape_of<S: TunedCall>(case: &str) -> Result<S, Error> {
    let (extents, variant) = case.split_once(',').unwrap_or((case, S::USUAL_VARIANT));
    let refused = |why: String| TuneError::Case { case: case.to_string(), why };
    let shape = S::parse(extents.trim(), variant.trim()).map_err(refused)?;
    if shape.is_empty() {
        return Err(refused("an extent is 0, so that there is nothing to tune".to_string()).into());
    }
    Ok(shape)
}

/// Output of `--json`.
#[derive(Serialize)]
struct TuneReport {
    call: &'static str,
    /// The functions that take a table.
    #[serde(skip)]
    setter: &'static str,
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
    /// Whether the table keeps a measured plan, which an estimate does not replace.
    is_measured_plan_kept: bool,
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

impl CandidateReport {
    fn is_evaluated(&self) -> bool {
        self.estimate_us.is_some() || self.result != CandidateResult::NotTried
    }
}

/// A plan, with its estimates and the reason of its rejection.
struct PlanCandidate<P> {
    plan: P,
    estimate_us: Option<f64>,
    /// The estimates of the launches.
    launches: Vec<LaunchEstimate>,
    rejected: Option<String>,
}

impl<P> PlanCandidate<P> {
    /// Takes the estimates of the launches, or the reason of a rejection.
    fn estimated(
        &mut self,
        estimates: Result<Vec<LaunchEstimate>, kernels_rs_estimate::estimate::Error>,
        refused: Option<String>,
    ) -> Result<(), Error> {
        self.rejected = refused;
        let launches = match estimates {
            Ok(launches) => launches,
            Err(e @ kernels_rs_estimate::estimate::Error::Fit { .. }) => {
                self.rejected = Some(e.to_string());
                return Ok(());
            }
            Err(e) => return Err(Error::Estimate(e)),
        };
        let spilled = launches.iter().find(|launch| launch.spill_bytes > 0);
        let large = launches.iter().find(|launch| launch.shared_bytes > SHARED_LIMIT);
        if let Some(launch) = spilled {
            let (bytes, name) = (launch.spill_bytes, &launch.instance);
            self.rejected = Some(format!("{name} spills {bytes} bytes of registers of a thread"));
        } else if let Some(launch) = large {
            let (bytes, name) = (launch.shared_bytes, &launch.instance);
            self.rejected = Some(format!("{name} takes {bytes} bytes of shared memory, above {SHARED_LIMIT}"));
        }
        self.estimate_us = Some(launches.iter().map(|launch| launch.time_us).sum());
        self.launches = launches;
        Ok(())
    }
}

/// Candidates of a shape. Number 0 is the incumbent.
struct PlanCandidates<S: TunedCall> {
    order: CandidateOrder,
    all: Vec<PlanCandidate<S::Plan>>,
    /// Whether the budget ended the estimates.
    is_budget_spent: bool,
}

impl<S: TunedCall> PlanCandidates<S> {
    /// Returns the plan in use on the device of this name, and all others in the order of
    /// [`ranked`](TunedCall::ranked).
    fn new(device: &Device, name: &str, shape: S, tuned: &TunedPlans<S>) -> Result<PlanCandidates<S>, Error> {
        let plans = shape.ranked(device.facts().multiprocessors);
        let incumbent = tuned.plan(name, shape).or(plans.first().copied());
        let no_plan = || TuneError::Case { case: shape.to_string(), why: "no plan computes it".to_string() };
        let incumbent = incumbent.ok_or_else(no_plan)?;
        let others = plans.into_iter().filter(|plan| *plan != incumbent);
        let candidate = |plan| PlanCandidate { plan, estimate_us: None, launches: Vec::new(), rejected: None };
        let all = std::iter::once(incumbent).chain(others).map(candidate).collect();
        Ok(PlanCandidates { order: CandidateOrder::Costs, all, is_budget_spent: false })
    }

    /// Returns the parameters of the plans.
    fn space(&self) -> ParameterSpace {
        ParameterSpace::new(self.all.iter().map(|candidate| candidate.plan.to_string()))
    }

    /// Estimates up to `count` candidates beside the incumbent until the budget is spent, and
    /// rejects those that fail a gate of the device. Only estimated candidates stay, in the order
    /// of their estimates.
    fn estimate(&mut self, estimator: &Arc<Estimator>, shape: S, count: usize, budget: Duration) -> Result<(), Error> {
        let start = Instant::now();
        let device = estimator.device();
        let operands = estimator.without_launches(|| shape.operands(&device, OperandValues::Zeros));
        let operands = operands.map_err(Error::Device)?;
        let space = self.space();
        let all = &mut self.all;
        let others: Vec<usize> = (1..all.len()).collect();
        self.is_budget_spent = with_bar(1 + count.min(others.len()), |bar| {
            let mut best = (String::new(), f64::INFINITY);
            let mut attempt = |number: usize| {
                if start.elapsed() >= budget {
                    return Ok(None);
                }
                let candidate: &mut PlanCandidate<S::Plan> = &mut all[number];
                let so_far = match best.1.is_finite() {
                    true => format!(", best so far: {}, {:.2} µs", best.0, best.1),
                    false => String::new(),
                };
                bar.set_message(format!("estimate of {}{so_far}", candidate.plan));
                let refused = operands.run(&device, candidate.plan).err().map(|e| e.to_string());
                candidate.estimated(estimator.take(), refused)?;
                bar.inc(1);
                let time = candidate.estimate_us.filter(|_| candidate.rejected.is_none()).unwrap_or(f64::INFINITY);
                if time < best.1 {
                    best = (candidate.plan.to_string(), time);
                }
                Ok::<_, Error>(Some(time))
            };
            Ok::<_, Error>(attempt(0)?.is_none() || space.explore(&others, count, attempt)?)
        })?;
        self.order = CandidateOrder::Estimates;
        let mut number = 0;
        self.all.retain(|candidate| {
            number += 1;
            number == 1 || candidate.estimate_us.is_some() || candidate.rejected.is_some()
        });
        let time = |candidate: &PlanCandidate<S::Plan>| candidate.estimate_us.unwrap_or(f64::INFINITY);
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
        match self.call {
            TunableCall::Gemm => self.run_call::<ProductShape>(out),
            TunableCall::Weights => self.run_call::<WeightedShape>(out),
            TunableCall::Rows => self.run_call::<RowsShape>(out),
        }
    }

    fn run_call<S: TunedCall>(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let shape: S = shape_of(&self.case)?;
        let mut table = self.write.as_deref().map(read_table::<S>).transpose()?;
        let tuned = table.as_ref().unwrap_or_else(|| S::built_in());
        let (start, budget) = (Instant::now(), Duration::from_secs(u64::from(self.budget)));
        let count = usize::from(self.candidates);
        let (name, candidates, result) = match self.device.strip_prefix("cuda:").map(str::parse) {
            Some(Ok(ordinal)) => {
                let failed = |source| Error::NoDevice {
                    device: self.device.clone(),
                    instead: "gtx1080",
                    source: Box::new(source),
                };
                let device = Device::cuda(ordinal).map_err(failed)?;
                let name = device.name().to_string();
                let mut candidates = PlanCandidates::new(&device, &name, shape, tuned)?;
                // Half of the budget is for measurements.
                if let Some(model) = DeviceModel::of_driver_name(device.name())? {
                    match Estimator::new(model) {
                        Err(kernels_rs_estimate::estimate::Error::NoTools { .. }) => {}
                        estimator => candidates.estimate(&estimator?, shape, count, budget / 2)?,
                    }
                }
                let remaining = budget.saturating_sub(start.elapsed());
                let result = self.measure(&device, shape, &candidates, remaining)?;
                (name, candidates, result)
            }
            _ => {
                let model = DeviceModel::named(&self.device)?;
                let name = model.device.driver_name.clone();
                let estimator = Estimator::new(model)?;
                let mut candidates = PlanCandidates::new(&estimator.device(), &name, shape, tuned)?;
                candidates.estimate(&estimator, shape, count, budget)?;
                let result = estimated(&candidates).ok_or(TuneError::Budget { seconds: self.budget })?;
                (name, candidates, result)
            }
        };
        let mut report = TuneReport::new(&name, shape, &candidates, &result);
        if let (Some(path), Some(table), true) = (&self.write, &mut table, report.winner != report.incumbent) {
            let number = winner(&candidates, &result);
            let tuned = TunedPlan { plan: candidates.all[number].plan, evidence: report.evidence.clone() };
            let is_measured = table.entry(&name, shape).is_some_and(|known| !known.is_estimate());
            report.is_measured_plan_kept = tuned.is_estimate() && is_measured;
            if !report.is_measured_plan_kept {
                table.insert(&name, shape, tuned).map_err(|why| TuneError::Plan { why })?;
                fs::write(path, table.to_string()).map_err(|source| Error::Save { path: path.clone(), source })?;
                report.is_written = true;
            }
        }
        match self.json {
            true => json(out, &report)?,
            false => report.print(self.write.as_deref(), out)?,
        }
        Ok(CommandOutcome::Success)
    }

    /// Measures the candidates on a GPU within the budget.
    fn measure<S: TunedCall>(
        &self,
        device: &Device,
        shape: S,
        candidates: &PlanCandidates<S>,
        budget: Duration,
    ) -> Result<SearchResult, Error> {
        let limits = SearchLimits {
            candidates: usize::from(self.candidates),
            quick: usize::from(self.quick),
            confirming: usize::from(self.confirming),
            budget,
            least_change: self.least_change / 100.0,
        };
        let plans: Vec<S::Plan> = candidates.all.iter().map(|candidate| candidate.plan).collect();
        with_bar(limits.quick + limits.confirming, |bar| {
            let operands = shape.operands(device, OperandValues::Drawn).map_err(Error::Device)?;
            PlanMeter::with(device, shape, &operands, &plans, bar, |meter| {
                search(meter, &candidates.accepted(), &candidates.space(), 0, &limits)
            })
        })
    }
}

/// Reads the table of a file; an empty one if there is no file.
fn read_table<S: TunedCall>(path: &Path) -> Result<TunedPlans<S>, Error> {
    let text = match crate::text_file::read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(TunedPlans::default()),
        text => text.map_err(|source| TuneError::Read { path: path.to_path_buf(), source })?,
    };
    Ok(TunedPlans::parse(&text).map_err(|source| TuneError::Table { path: path.to_path_buf(), source })?)
}

/// Returns the result of a search by estimates alone. The result is `None` if nothing was
/// estimated.
fn estimated<S: TunedCall>(candidates: &PlanCandidates<S>) -> Option<SearchResult> {
    let time = |number: &usize| candidates.all[*number].estimate_us;
    let timed: Vec<usize> = candidates.accepted().into_iter().filter(|number| time(number).is_some()).collect();
    let best = timed.into_iter().min_by(|a, b| time(a).unwrap_or(0.0).total_cmp(&time(b).unwrap_or(0.0)))?;
    let result = |candidate: &PlanCandidate<S::Plan>| match &candidate.rejected {
        Some(why) => CandidateResult::Rejected { why: why.clone() },
        None => CandidateResult::NotTried,
    };
    let is_budget_spent = candidates.is_budget_spent;
    Some(SearchResult {
        candidates: candidates.all.iter().map(result).collect(),
        best,
        confirmation: None,
        is_budget_spent,
    })
}

/// Returns whether estimates alone decide.
fn is_estimated<S: TunedCall>(candidates: &PlanCandidates<S>, result: &SearchResult) -> bool {
    let is_measured = result.candidates.iter().any(|c| matches!(c, CandidateResult::Measured { .. }));
    !is_measured && candidates.order == CandidateOrder::Estimates
}

/// Returns the number of the plan to use. Estimates alone need no confirmation, but a gain above
/// their error.
fn winner<S: TunedCall>(candidates: &PlanCandidates<S>, result: &SearchResult) -> usize {
    if !is_estimated(candidates, result) {
        return result.winner(0);
    }
    // A rejected plan in use has no time to compare with.
    let time = |number: usize| candidates.all[number].estimate_us.filter(|_| candidates.all[number].rejected.is_none());
    match (time(0), time(result.best)) {
        (Some(of_incumbent), Some(of_best)) if of_best > (1.0 - ESTIMATE_ERROR) * of_incumbent => 0,
        _ => result.best,
    }
}

impl TuneReport {
    fn new<S: TunedCall>(device: &str, shape: S, candidates: &PlanCandidates<S>, result: &SearchResult) -> TuneReport {
        let plan = |number: usize| candidates.all[number].plan.to_string();
        let (incumbent, winner) = (plan(0), winner(candidates, result));
        let evidence = match (&result.confirmation, candidates.all[winner].estimate_us, candidates.all[0].estimate_us) {
            (Some(confirmation), ..) => format!("{} than {incumbent}", confirmation.difference),
            (None, Some(us), Some(base)) if winner != 0 => {
                format!("{}: {:.3} × {incumbent}", TunedPlan::<S::Plan>::ESTIMATE, us / base)
            }
            _ => String::new(),
        };
        let of_candidate = |(number, candidate): (usize, &PlanCandidate<S::Plan>)| {
            let result = match &candidate.rejected {
                Some(why) => CandidateResult::Rejected { why: why.clone() },
                None => result.candidates.get(number).cloned().unwrap_or(CandidateResult::NotTried),
            };
            CandidateReport { plan: candidate.plan.to_string(), estimate_us: candidate.estimate_us, result }
        };
        TuneReport {
            call: S::NAME,
            setter: S::SETTER,
            device: device.to_string(),
            case: format!("{shape}, {}", shape.variant()),
            ranking: candidates.order,
            // The search never chose the other candidates of a large space.
            candidates: candidates
                .all
                .iter()
                .enumerate()
                .map(of_candidate)
                .filter(|candidate| candidate.is_evaluated() || candidate.plan == incumbent)
                .collect(),
            best: plan(result.best),
            winner: plan(winner),
            incumbent,
            confirmation: result.confirmation,
            is_budget_spent: result.is_budget_spent,
            is_written: false,
            is_measured_plan_kept: false,
            evidence,
        }
    }

    fn print(&self, table: Option<&Path>, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "{}, {} on {}", self.call, self.case, self.device)?;
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
            (None, true) if self.best != self.incumbent => writeln!(
                out,
                "{} stays: {} is estimated to be faster by less than {:.0} %, the error of two estimates",
                self.incumbent,
                self.best,
                100.0 * ESTIMATE_ERROR
            )?,
            (None, true) => writeln!(out, "no other plan is faster; {} stays", self.incumbent)?,
            (None, false) => writeln!(out, "{}: {}", self.winner, self.evidence)?,
        }
        if let (true, Some(path)) = (self.is_measured_plan_kept, table) {
            writeln!(out, "{} keeps its measured plan, which an estimate does not replace", path.display())?;
        }
        if let (true, Some(path)) = (self.is_written, table) {
            writeln!(out, "added to {}; {} takes the table", path.display(), self.setter)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
