//! `kernels estimate`: the time of kernels on a device that is not here.

use super::bench::{EstimableSuite, Timed};
use super::cases::Wanted;
use super::progress::with_bar;
use super::statistics::median;
use super::{Error, Outcome, counted, json, name};
use clap::Args;
use kernels_rs_estimate::device::Model;
use kernels_rs_estimate::simulate::ModelPart;
use kernels_rs_estimate::{Estimator, LaunchEstimate};
use runtime::testing;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Estimates the time of kernels on a device that is not here
///
/// An estimate is not a measurement. It follows from the machine code that ptxas makes, from counts
/// of the interpreter on sampled blocks, and from a simulation of one multiprocessor. The data of a
/// device are files with a source for every number.
#[derive(Args)]
pub(super) struct Estimate {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'
    #[arg(value_name = "NAME", required_unless_present = "bench")]
    names: Vec<String>,
    /// Estimate the measurements of `kernels bench --suite GROUP` instead
    #[arg(long, value_name = "GROUP", conflicts_with = "names")]
    bench: Option<EstimableSuite>,
    /// The device: gtx1050ti, gtx1060, gtx1070, gtx1080, gtx1080ti, titanx-pascal, p4, p40, p100,
    /// h100 or h200
    #[arg(long)]
    device: String,
    /// Compare with the output of `kernels bench --suite GROUP --json` on the device, and print a
    /// table
    #[arg(long, value_name = "FILE", requires = "bench")]
    measured: Option<PathBuf>,
    /// With --measured, also leave out each part of the model in turn
    #[arg(long, requires = "measured")]
    ablation: bool,
    #[command(flatten)]
    wanted: Wanted,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Output of `--json` for kernels.
#[derive(Serialize)]
struct ProfileSummary {
    /// Always "estimate": nothing was measured.
    kind: &'static str,
    device: String,
    case: String,
    #[serde(flatten)]
    launch: LaunchEstimate,
}

impl Estimate {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let model = Model::named(&self.device)?;
        let estimator = Estimator::new(model)?;
        match self.bench {
            Some(suite) => self.suite(suite, &estimator, out),
            None => self.kernels(&estimator, out),
        }
    }

    fn kernels(&self, estimator: &Arc<Estimator>, out: &mut dyn Write) -> Result<Outcome, Error> {
        let selected = name::instances(&self.names)?;
        let device = estimator.device();
        let summaries = with_bar(selected.len(), |bar| {
            let mut summaries = Vec::new();
            for selected in &selected {
                bar.set_message(selected.name());
                let cases = self.wanted.of(selected.artifact, &selected.instance)?;
                let Some(case) = cases.into_iter().next() else { continue };
                testing::launch(selected.artifact, &selected.instance, &case, &device).map_err(Error::Device)?;
                for launch in estimator.take()? {
                    let (device, case) = (estimator.model().device.name.clone(), case.name.clone());
                    summaries.push(ProfileSummary { kind: "estimate", device, case, launch });
                }
                bar.inc(1);
            }
            Ok::<_, Error>(summaries)
        })?;
        if self.json {
            #[derive(Serialize)]
            struct Output {
                profile_summary: Vec<ProfileSummary>,
            }
            json(out, &Output { profile_summary: summaries })?;
            return Ok(Outcome::Good);
        }
        for (i, summary) in summaries.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            summary.print(out)?;
        }
        Ok(Outcome::Good)
    }

    fn suite(&self, suite: EstimableSuite, estimator: &Arc<Estimator>, out: &mut dyn Write) -> Result<Outcome, Error> {
        let estimates = suite.estimates(estimator)?;
        let Some(path) = &self.measured else {
            if self.json {
                json(out, &estimates)?;
                return Ok(Outcome::Good);
            }
            for Timed { kernel, shape, median_ms } in estimates {
                writeln!(out, "{kernel}, {shape}: estimate {}", shown(median_ms * 1e3))?;
            }
            return Ok(Outcome::Good);
        };
        let failed = |why: String| Error::Measured { path: path.clone(), why };
        let text = fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let measured: Vec<Timed> = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        let compared = Comparison::new(&estimates, &measured);
        if compared.rows.is_empty() {
            return Err(failed("no measurement has the kernel and shape of an estimate".to_string()));
        }
        compared.print(out)?;
        if self.ablation {
            writeln!(out, "\n| without | median error |\n|---|---|")?;
            writeln!(out, "| nothing | {:.1} % |", 100.0 * median(&compared.errors(|_| true)))?;
            for part in ModelPart::ALL {
                estimator.leave_out(Some(part));
                let compared = Comparison::new(&suite.estimates(estimator)?, &measured);
                let error = 100.0 * median(&compared.errors(|_| true));
                writeln!(out, "| {} | {error:.1} % |", part.name())?;
                out.flush()?;
            }
            estimator.leave_out(None);
        }
        Ok(Outcome::Good)
    }
}

/// Estimates beside measurements.
struct Comparison {
    rows: Vec<Row>,
}

struct Row {
    family: String,
    shape: String,
    estimated_us: f64,
    measured_us: f64,
    /// Whether the row was never used to fit the model: each third of a family.
    held_out: bool,
}

impl Comparison {
    fn new(estimates: &[Timed], measured: &[Timed]) -> Comparison {
        let mut rows: Vec<Row> = Vec::new();
        for estimate in estimates {
            let same = |m: &&Timed| (&m.kernel, &m.shape) == (&estimate.kernel, &estimate.shape);
            let Some(measured) = measured.iter().find(same) else { continue };
            let before = rows.iter().filter(|row| row.family == estimate.kernel).count();
            rows.push(Row {
                family: estimate.kernel.clone(),
                shape: estimate.shape.clone(),
                estimated_us: estimate.median_ms * 1e3,
                measured_us: measured.median_ms * 1e3,
                held_out: before % 3 == 2,
            });
        }
        Comparison { rows }
    }

    fn errors(&self, which: impl Fn(&Row) -> bool) -> Vec<f64> {
        self.rows.iter().filter(|row| which(row)).map(|row| (row.estimated_us / row.measured_us - 1.0).abs()).collect()
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "| family | rows | median error | of held-out rows | largest error | Kendall's τ |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        let families: BTreeMap<&str, ()> = self.rows.iter().map(|row| (row.family.as_str(), ())).collect();
        let percent = |value: f64| if value.is_nan() { "–".to_string() } else { format!("{:.1} %", 100.0 * value) };
        for family in families.keys().copied().map(Some).chain([None]) {
            let of = |row: &&Row| family.is_none_or(|family| row.family == family);
            let rows: Vec<&Row> = self.rows.iter().filter(of).collect();
            let errors = self.errors(|row| of(&row));
            let held_out = self.errors(|row| of(&row) && row.held_out);
            let most = errors.iter().copied().fold(0.0, f64::max);
            let pairs: Vec<_> = rows.iter().map(|row| (row.estimated_us, row.measured_us)).collect();
            let tau = if family.is_some() { format!("{:.2}", kendall(&pairs)) } else { String::new() };
            let (all, held_out, most) = (percent(median(&errors)), percent(median(&held_out)), percent(most));
            writeln!(out, "| {} | {} | {all} | {held_out} | {most} | {tau} |", family.unwrap_or("all"), rows.len())?;
        }
        writeln!(out, "\n| family | shape | measured µs | estimate µs | error | |\n|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let Row { family, shape, estimated_us, measured_us, held_out } = row;
            let error = 100.0 * (estimated_us / measured_us - 1.0);
            let held_out = if *held_out { "held out" } else { "" };
            writeln!(
                out,
                "| {family} | {shape} | {measured_us:.2} | {estimated_us:.2} | {error:+.1} % | {held_out} |"
            )?;
        }
        Ok(())
    }
}

/// Returns Kendall's τ-a: the pairs in the same order less those in the opposite order, over all
/// pairs.
fn kendall(pairs: &[(f64, f64)]) -> f64 {
    let mut sum = 0.0;
    for (i, a) in pairs.iter().enumerate() {
        for b in &pairs[..i] {
            let order = (a.0 - b.0) * (a.1 - b.1);
            sum += if order > 0.0 {
                1.0
            } else if order < 0.0 {
                -1.0
            } else {
                0.0
            };
        }
    }
    2.0 * sum / (pairs.len() * pairs.len().saturating_sub(1)).max(1) as f64
}

/// Formats a time in microseconds.
fn shown(us: f64) -> String {
    if us < 1e3 { format!("{us:.2} µs") } else { format!("{:.3} ms", us / 1e3) }
}

impl ProfileSummary {
    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        let launch = &self.launch;
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        writeln!(out, "{} on {}, an estimate", launch.instance, self.device)?;
        writeln!(out, "  case        {}", self.case)?;
        let blocks = counted(launch.blocks, "block");
        writeln!(out, "  launch      {blocks} of {}", counted(launch.threads, "thread"))?;
        writeln!(out, "  time        {}, limited by {}", shown(launch.time_us), launch.limiter.name())?;
        let resident = counted(launch.resident_blocks, "block");
        let occupancy = percent(launch.occupancy);
        writeln!(
            out,
            "  occupancy   {occupancy}: {resident} of a multiprocessor, {}, {:.2} waves",
            counted(launch.registers, "register"),
            launch.waves
        )?;
        let (issue, float, dram) = (launch.issue_share, launch.float_share, launch.dram_share);
        writeln!(out, "  of peak     f32 multiply-adds {}, memory {}", percent(float), percent(dram))?;
        writeln!(out, "  issue       in {} of the cycles of a busy multiprocessor", percent(issue))?;
        let mut stalls: Vec<_> = launch.stalls.iter().filter(|(_, share)| **share >= 0.005).collect();
        stalls.sort_by(|a, b| b.1.total_cmp(a.1));
        let stalls: Vec<_> =
            stalls.iter().take(4).map(|(reason, share)| format!("{} {}", reason.name(), percent(**share))).collect();
        writeln!(out, "  waiting     {}", stalls.join(", "))?;
        for line in launch.lines.iter().filter(|line| line.share >= 0.02).take(5) {
            let place = line.line.as_ref().map_or("no line".to_string(), |l| format!("{}:{}", l.file, l.number));
            writeln!(out, "    {:>4}  {place}  {}", percent(line.share), line.reason.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// τ of five pairs by hand: of ten pairs of pairs, one is in the opposite order.
    #[test]
    fn kendalls_tau_counts_pairs_in_order() {
        let pairs = [(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0), (5.0, 5.0)];
        assert_eq!(kendall(&pairs), 0.8);
        assert_eq!(kendall(&pairs[..1]), 0.0);
    }
}
