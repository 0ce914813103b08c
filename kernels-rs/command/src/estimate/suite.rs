//! Estimates of the measurements of `kernels bench --suite`, and their errors.

use super::shown;
use crate::bench::{EstimableSuite, MeasuredTime};
use crate::error::{CommandOutcome, Error};
use crate::output::json;
use crate::statistics::median;
use clap::Args;
use kernels_rs_estimate::Estimator;
use kernels_rs_estimate::simulate::ModelPart;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of estimates of a group of measurements.
#[derive(Args)]
pub(super) struct SuiteArgs {
    /// Estimate the measurements of `kernels bench --suite GROUP` instead
    #[arg(long, value_name = "GROUP", conflicts_with = "names")]
    bench: Option<EstimableSuite>,
    /// Compare with the output of `kernels bench --suite GROUP --json` on the device, and print a
    /// table
    #[arg(long, value_name = "FILE", requires = "bench")]
    measured: Option<PathBuf>,
    /// With --measured, also leave out each part of the model in turn
    #[arg(long, requires = "measured")]
    ablation: bool,
}

impl SuiteArgs {
    /// Estimates the group, if one is named.
    pub(super) fn run(
        &self,
        estimator: &Arc<Estimator>,
        as_json: bool,
        out: &mut dyn Write,
    ) -> Result<Option<CommandOutcome>, Error> {
        let Some(suite) = self.bench else { return Ok(None) };
        if self.ablation {
            estimator.keep_counts();
        }
        let estimates = suite.estimates(estimator)?;
        let Some(path) = &self.measured else {
            if as_json {
                json(out, &estimates)?;
                return Ok(Some(CommandOutcome::Success));
            }
            for MeasuredTime { kernel, shape, median_ms } in estimates {
                writeln!(out, "{kernel}, {shape}: estimate {}", shown(median_ms * 1e3))?;
            }
            return Ok(Some(CommandOutcome::Success));
        };
        let failed = |why: String| Error::Measured { path: path.clone(), why };
        let text = crate::text_file::read(path).map_err(|e| failed(e.to_string()))?;
        let measured: Vec<MeasuredTime> = serde_json::from_str(&text).map_err(|e| failed(e.to_string()))?;
        let compared = EstimateComparison::new(&estimates, &measured);
        if compared.rows.is_empty() {
            return Err(failed("no measurement has the kernel and shape of an estimate".to_string()));
        }
        compared.print(out)?;
        if self.ablation {
            writeln!(out, "\n| without | median error |\n|---|---|")?;
            writeln!(out, "| nothing | {:.1} % |", 100.0 * median(&compared.errors(|_| true)))?;
            for part in ModelPart::ALL {
                estimator.leave_out(Some(part));
                let compared = EstimateComparison::new(&suite.estimates(estimator)?, &measured);
                let error = 100.0 * median(&compared.errors(|_| true));
                writeln!(out, "| {} | {error:.1} % |", part.name())?;
                out.flush()?;
            }
            estimator.leave_out(None);
        }
        Ok(Some(CommandOutcome::Success))
    }
}

/// Estimates beside measurements.
struct EstimateComparison {
    rows: Vec<SuiteRow>,
}

struct SuiteRow {
    family: String,
    shape: String,
    estimated_us: f64,
    measured_us: f64,
    /// Whether the row was never used to fit the model: every third row of a family.
    held_out: bool,
}

impl EstimateComparison {
    fn new(estimates: &[MeasuredTime], measured: &[MeasuredTime]) -> EstimateComparison {
        let mut rows: Vec<SuiteRow> = Vec::new();
        for estimate in estimates {
            let same = |m: &&MeasuredTime| (&m.kernel, &m.shape) == (&estimate.kernel, &estimate.shape);
            let Some(measured) = measured.iter().find(same) else { continue };
            let before = rows.iter().filter(|row| row.family == estimate.kernel).count();
            rows.push(SuiteRow {
                family: estimate.kernel.clone(),
                shape: estimate.shape.clone(),
                estimated_us: estimate.median_ms * 1e3,
                measured_us: measured.median_ms * 1e3,
                held_out: before % 3 == 2,
            });
        }
        EstimateComparison { rows }
    }

    fn errors(&self, which: impl Fn(&SuiteRow) -> bool) -> Vec<f64> {
        self.rows.iter().filter(|row| which(row)).map(|row| (row.estimated_us / row.measured_us - 1.0).abs()).collect()
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "| family | rows | median error | of held-out rows | largest error | Kendall's τ |")?;
        writeln!(out, "|---|---|---|---|---|---|")?;
        let families: BTreeMap<&str, ()> = self.rows.iter().map(|row| (row.family.as_str(), ())).collect();
        let percent = |value: f64| if value.is_nan() { "–".to_string() } else { format!("{:.1} %", 100.0 * value) };
        for family in families.keys().copied().map(Some).chain([None]) {
            let of = |row: &&SuiteRow| family.is_none_or(|family| row.family == family);
            let rows: Vec<&SuiteRow> = self.rows.iter().filter(of).collect();
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
            let SuiteRow { family, shape, estimated_us, measured_us, held_out } = row;
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
