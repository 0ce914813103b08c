//! `kernels estimate`: the time of kernels on a device that this machine lacks.

#[cfg(feature = "library")]
mod published;
#[cfg(feature = "library")]
mod suite;

use super::cases::CaseOptions;
use super::name;
use super::progress::with_bar;
use crate::error::{CommandOutcome, Error};
use crate::output::{counted, json};
use clap::Args;
use kernels_rs_estimate::device::DeviceModel;
use kernels_rs_estimate::{Estimator, LaunchEstimate};
use runtime::interpreter::report::shown_path;
use runtime::testing;
use serde::Serialize;
use std::io::Write;
use std::sync::Arc;

/// Estimates the time of kernels on a device that this machine lacks
///
/// An estimate is not a measurement. The time follows from the machine code that ptxas makes, from
/// counts of the interpreter on sampled blocks, and from a simulation of one multiprocessor. The
/// data of a device are files with a source for every number.
#[derive(Args)]
pub(super) struct EstimateArgs {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'
    #[cfg_attr(feature = "library", arg(required_unless_present_any = ["bench", "published"]))]
    #[cfg_attr(not(feature = "library"), arg(required = true))]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[cfg(feature = "library")]
    #[command(flatten)]
    suite: suite::SuiteArgs,
    /// Compare with the published figures in a file, survey the calls that the file names, and
    /// print tables
    #[cfg(feature = "library")]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "bench", "device", "json"])]
    published: Option<std::path::PathBuf>,
    /// The device: gtx1050ti, gtx1060, gtx1070, gtx1080, gtx1080ti, titanx-pascal, p4, p40, p100,
    /// h100 or h200
    #[cfg_attr(feature = "library", arg(long, required_unless_present = "published"))]
    #[cfg_attr(not(feature = "library"), arg(long, required = true))]
    device: Option<String>,
    #[command(flatten)]
    wanted: CaseOptions,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Share of unmatched accesses above which the output states that an estimate is unreliable.
const REPORTED_UNMATCHED: f64 = 0.05;

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

impl EstimateArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        #[cfg(feature = "library")]
        if let Some(path) = &self.published {
            return published::print(path, out);
        }
        let model = DeviceModel::named(self.device.as_deref().unwrap_or_default())?;
        let estimator = Estimator::new(model)?;
        #[cfg(feature = "library")]
        if let Some(outcome) = self.suite.run(&estimator, self.json, out)? {
            return Ok(outcome);
        }
        self.kernels(&estimator, out)
    }

    fn kernels(&self, estimator: &Arc<Estimator>, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let selected = name::instances(&self.names)?;
        let device = estimator.device();
        let (summaries, empty) = with_bar(selected.len(), |bar| {
            let (mut summaries, mut empty) = (Vec::new(), Vec::new());
            for selected in &selected {
                bar.set_message(selected.name());
                let cases = self.wanted.of_estimate(selected.artifact, &selected.instance)?;
                let Some(case) = cases.into_iter().next() else { continue };
                testing::launch(selected.artifact, &selected.instance, &case, &device).map_err(Error::Device)?;
                let launches = estimator.take()?;
                if launches.is_empty() {
                    empty.push(format!("{} launches no block in the case `{}`", selected.name(), case.name));
                }
                for launch in launches {
                    let (device, case) = (estimator.model().device.name.clone(), case.name.clone());
                    summaries.push(ProfileSummary { kind: "estimate", device, case, launch });
                }
                bar.inc(1);
            }
            Ok::<_, Error>((summaries, empty))
        })?;
        if self.json {
            #[derive(Serialize)]
            struct Output {
                profile_summary: Vec<ProfileSummary>,
            }
            json(out, &Output { profile_summary: summaries })?;
            return Ok(CommandOutcome::Success);
        }
        for (i, summary) in summaries.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            summary.print(out)?;
        }
        for line in &empty {
            writeln!(out, "{line}: there is no estimate")?;
        }
        Ok(CommandOutcome::Success)
    }
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
        if launch.unmatched_accesses > REPORTED_UNMATCHED {
            let share = percent(launch.unmatched_accesses);
            writeln!(
                out,
                "  unreliable  the simulated warps lack or repeat {share} of the accesses that the interpreter counted"
            )?;
        }
        let mut stalls: Vec<_> = launch.stalls.iter().filter(|(_, share)| **share >= 0.005).collect();
        stalls.sort_by(|a, b| b.1.total_cmp(a.1));
        let stalls: Vec<_> =
            stalls.iter().take(4).map(|(reason, share)| format!("{} {}", reason.name(), percent(**share))).collect();
        writeln!(out, "  waiting     {}", stalls.join(", "))?;
        for line in launch.lines.iter().filter(|line| line.share >= 0.02).take(5) {
            let place =
                line.line.as_ref().map_or("no line".to_string(), |l| format!("{}:{}", shown_path(&l.file), l.number));
            writeln!(out, "    {:>4}  {place}  {}", percent(line.share), line.reason.name())?;
        }
        Ok(())
    }
}
