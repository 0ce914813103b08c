//! `kernels report`: the machine resources of an instance, by the compiler's own analyses and, if
//! it is found, by ptxas.

mod model;
mod summary;
mod tables;

pub(crate) use model::{AccessReport, ReportJson};
pub(crate) use summary::print as print_summary;
pub(crate) use tables::percent;

use crate::cases::CaseOptions;
use crate::error::{CommandOutcome, Error};
use crate::inspect::{self, Examination};
use crate::machine::Tools;
use crate::name::{self, SelectedInstance};
use crate::output::json;
use crate::progress::with_bar;
use clap::Args;
use indicatif::ProgressBar;
use kernel_dsl::compiler::Target;
use std::collections::BTreeMap;
use std::io::Write;
use tables::print_shared;

/// Reports what limits an instance: registers, shared memory, occupancy, loops, the most expensive
/// accesses, and what to try
///
/// --all also prints all accesses with their proofs of being in bounds, branches, and slow code.
/// Bank conflicts, sectors and lines are computed for a warp whose lanes are all active, from how
/// the indices depend on the thread. Index bounds and uniformity over a warp or a block are
/// computed likewise. The interpreter's measurements, on one of the cases that `check` runs, are
/// printed beside the computed values. Registers and spills come from ptxas, if one is found that
/// supports the target. Loops, issue slots and register banks are those of its machine code, if
/// nvdisasm is found too.
#[derive(Args)]
pub(crate) struct ReportArgs {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The architecture to compile for, such as sm_80; by default the kernel's own, which is sm_61
    /// unless the kernel names another
    #[arg(long, value_name = "SM")]
    target: Option<Target>,
    #[command(flatten)]
    wanted: CaseOptions,
    /// Print everything: each access, branch and loop, and the instructions by kind
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Also report how many issue slots each loop would take rolled, unrolled by 2, 4 and 8, and
    /// whole. Requires ptxas and nvdisasm, and assembles the kernel up to five times for each loop
    #[arg(long)]
    unroll: bool,
    /// Print a JSON array with an object per instance
    #[arg(long)]
    json: bool,
}

impl ReportArgs {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let instances = name::instances(&self.names)?;
        let mut tools = BTreeMap::new();
        let mut examine = |selected: &SelectedInstance| {
            let target = self.target.unwrap_or(selected.artifact.target);
            let tools = tools.entry(target).or_insert_with(|| Tools::find(target));
            if self.unroll {
                Tools::required(tools.as_ref(), target)?;
            }
            let program = name::program(selected.artifact)?;
            let examination =
                Examination { tools: tools.as_ref(), wanted: Some(&self.wanted), followed: None, unrolls: self.unroll };
            inspect::examine(selected, &program, target, examination)
        };
        let mut examine_all = |bar: &ProgressBar| {
            let inspections = instances.iter().map(|selected| {
                bar.set_message(selected.name());
                let inspection = examine(selected);
                bar.inc(1);
                inspection
            });
            inspections.collect::<Result<Vec<_>, Error>>()
        };
        // The search for unrolling factors has a bar for each instance.
        let inspections = match self.unroll {
            true => examine_all(&ProgressBar::hidden()),
            false => with_bar(instances.len(), examine_all),
        }?;
        if !self.all && !self.json {
            for (i, inspection) in inspections.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                print_summary(inspection, out)?;
            }
            return Ok(CommandOutcome::Success);
        }
        let reports: Vec<_> = inspections.into_iter().map(|inspection| inspection.report).collect();
        if self.json {
            json(out, &reports)?;
            return Ok(CommandOutcome::Success);
        }
        for (i, instance) in reports.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            instance.print(out)?;
        }
        print_shared(&reports, out)?;
        Ok(CommandOutcome::Success)
    }
}
