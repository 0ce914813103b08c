//! `kernels report`: the machine resources of an instance, by the compiler's own analyses and, if
//! it is found, by ptxas.

use super::cases::{self, Wanted};
use super::forms::CompiledForms;
use super::inspect::Examination;
use super::lines::Lines;
use super::machine::{CodeCost, Issue, Tools};
use super::name;
use super::ptxas::Resources;
use super::unrolling::{self, UnrolledLoop, Unrolling};
use super::{Error, Outcome, inspect, json, summary};
use crate::sass::{self, Class, Line};
use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::analyses::approximate::Decision;
use kernel_dsl::compiler::analyses::bounds::{self, KernelAccesses, Proof};
use kernel_dsl::compiler::analyses::memory::{self, AccessKind, Cost, Site};
use kernel_dsl::compiler::analyses::mix;
use kernel_dsl::compiler::analyses::occupancy::{Needs, Occupancy};
use kernel_dsl::compiler::analyses::slow::{self, Lint, Slow};
use kernel_dsl::compiler::analyses::uniformity::{self, UniformScope};
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ir::{DynamicArray, Kernel, Local, Location, Op, Region, Role};
use kernel_dsl::compiler::ptx::cost::InstructionClass;
use kernel_dsl::compiler::source::{KernelSource, Span};
use runtime::interpreter::profile::{self, BranchCounts, Counts, Profile, ProfiledAccess, Touched};
use runtime::testing::{Case, Profiler};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;

/// Reports what limits an instance: registers, shared memory, occupancy, loops, the most expensive
/// accesses, and what to try
///
/// --all also prints all accesses with their proofs of being in bounds, branches, and slow code.
/// Bank conflicts, sectors and lines are computed for a warp whose lanes are all active, from how
/// the indices depend on the thread. Index bounds and uniformity over a warp or a block are
/// computed likewise. Beside the computed values stand measurements of the interpreter on one of
/// the cases that `check` runs. Registers and spills come from ptxas, if one is found that supports
/// the target. Loops, issue slots and register banks are those of its machine code, if an nvdisasm
/// is found too.
#[derive(Args)]
pub(super) struct InstanceSummary {
    /// Kernels, instances or patterns: matmul, 'gemm*', gemm@f32_128x128_v4, 'matmul<T = 8>'
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// The architecture to compile for, such as sm_80; by default the kernel's own, which is sm_61
    /// unless the kernel names another
    #[arg(long, value_name = "SM")]
    target: Option<Target>,
    #[command(flatten)]
    wanted: Wanted,
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

/// Number of instruction kinds printed in a line.
const KINDS_A_LINE: usize = 5;
/// Number of Rust lines printed in a line.
const LINES_A_LINE: usize = 4;

/// Report of an instance.
#[derive(Serialize)]
pub(super) struct ReportJson {
    pub(super) instance: String,
    pub(super) target: String,
    /// Threads of a block in x, y, z; the largest block, if the launch chooses the size.
    pub(super) block: [u32; 3],
    pub(super) threads: u32,
    /// Possible block sizes, in words.
    pub(super) blocks: String,
    pub(super) shared_bytes: u32,
    /// Types and sizes of the arrays in shared memory.
    pub(super) shared: Vec<String>,
    /// Bytes of the arrays in local memory, of a thread.
    pub(super) local_bytes: u32,
    /// Names, types and sizes of the arrays in local memory.
    pub(super) local: Vec<String>,
    /// Resources of the machine code; `null` if there is no ptxas that supports the target.
    pub(super) machine_code: Option<MachineCode>,
    /// Occupancy with the largest block. Unknown registers are treated as no limit.
    pub(super) occupancy: Shares,
    /// Occupancy with each examined block size, the largest first.
    pub(super) by_block: Vec<Shares>,
    /// Instructions of the PTX by kind; an instruction in a loop counts once.
    pub(super) instructions: BTreeMap<InstructionClass, u32>,
    /// The case in which accesses were measured; `null` if the kernel has no registered test cases.
    pub(super) case: Option<String>,
    pub(super) accesses: Vec<AccessReport>,
    /// Results of the bounds analysis of the indices.
    #[serde(skip)]
    pub(super) reach: KernelAccesses,
    pub(super) branches: Vec<Branch>,
    /// Lines of Rust, with the number of lanes active in their instructions in the case.
    pub(super) lines: Vec<profile::Line>,
    pub(super) lints: Vec<Slowness>,
    /// Effect of unrolling each loop; `null` unless requested.
    pub(super) unrolling: Option<Vec<UnrolledLoop>>,
    /// Results that depend on the hardware's approximations.
    pub(super) decisions: Vec<ApproximateDecision>,
}

#[derive(Serialize)]
pub(super) struct MachineCode {
    pub(super) ptxas: String,
    #[serde(flatten)]
    pub(super) resources: Resources,
    /// Machine code; `null` if there is no nvdisasm.
    pub(super) sass: Option<Sass>,
}

/// Instructions made by ptxas, and their cost.
#[derive(Serialize)]
pub(super) struct Sass {
    #[serde(flatten)]
    pub(super) issue: Issue,
    pub(super) mix: BTreeMap<Class, u32>,
    /// Loops by their start, outer loops before inner ones.
    pub(super) loops: Vec<Loop>,
}

/// Loop of the machine code: the cost of an iteration that executes every path, inner loops once.
#[derive(Serialize)]
pub(super) struct Loop {
    /// Place in the source; `null` if unknown.
    pub(super) line: Option<Line>,
    pub(super) text: String,
    /// Loops around it.
    pub(super) depth: u32,
    /// Index of the innermost enclosing loop.
    pub(super) inside: Option<usize>,
    #[serde(flatten)]
    pub(super) issue: Issue,
    pub(super) mix: BTreeMap<Class, u32>,
}

#[derive(Clone, Serialize)]
pub(super) struct Shares {
    pub(super) block: [u32; 3],
    #[serde(flatten)]
    pub(super) occupancy: Occupancy,
    pub(super) percent: u32,
}

/// Place in the source.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct SourcePlace {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u16,
    pub(super) text: String,
}

/// Access to memory.
#[derive(Serialize)]
pub(super) struct AccessReport {
    #[serde(skip)]
    pub(super) location: Location,
    #[serde(flatten)]
    pub(super) place: SourcePlace,
    pub(super) kind: AccessKind,
    /// Name of the array or parameter; `null` if it depends on the path of control.
    pub(super) array: Option<String>,
    pub(super) bytes: u32,
    /// Bytes of an element of the array; `null` if unknown.
    pub(super) element_bytes: Option<u32>,
    /// Number of instructions that the place was compiled to.
    pub(super) count: u32,
    /// Number of enclosing loops.
    pub(super) loops: u32,
    /// The widest scope whose threads are proven to access one place.
    pub(super) address: UniformScope,
    /// Cost of a warp's access; `null` if the addresses are not understood.
    pub(super) cost: Option<Cost>,
    /// Proof that the whole access lies within the array; `null` without a proof.
    pub(super) within: Option<ProofFacts>,
    /// Range of bytes that the access touches in the case, computed from the extents alone; `null`
    /// if the extents do not determine it.
    pub(super) computed: Option<Range<u64>>,
    /// Measurements of the case; `null` if the access was not executed or nothing was measured.
    pub(super) measured: Option<MeasuredRequests>,
}

/// Facts that the proof of an access uses, beyond the shapes of block and array.
#[derive(Serialize)]
pub(super) struct ProofFacts {
    /// Lines of branches, loops and guards.
    lines: Vec<u32>,
    /// Whether the proof uses `#[requires]`.
    requires: bool,
    /// Whether the proof uses that a block's index is below the number of blocks.
    grid: bool,
}

/// Measured memory requests of an access.
#[derive(Serialize)]
pub(super) struct MeasuredRequests {
    #[serde(flatten)]
    pub(super) counts: Counts,
    /// Mean cost of a request.
    pub(super) mean: f64,
    /// Fraction of a warp's lanes that were active.
    pub(super) active: f64,
    /// For global memory, the fraction of the transferred bytes that was requested.
    pub(super) efficiency: Option<f64>,
    pub(super) touched: Option<Touched>,
}

/// Branch or loop.
#[derive(Serialize)]
pub(super) struct Branch {
    #[serde(skip)]
    pub(super) location: Location,
    #[serde(flatten)]
    pub(super) place: SourcePlace,
    pub(super) looped: bool,
    /// Number of constructs that the place was compiled to.
    pub(super) count: u32,
    /// Widest scope whose threads are proven to take the same path.
    pub(super) scope: UniformScope,
    /// Divergence of warps in the case; `null` if the branch was not executed or nothing was
    /// measured.
    pub(super) measured: Option<BranchCounts>,
}

/// Code that is legal on the target and slow there.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct Slowness {
    pub(super) lint: &'static str,
    /// Place of the slow code; `null` for the whole kernel.
    pub(super) place: Option<SourcePlace>,
    pub(super) count: u32,
    pub(super) in_loop: bool,
    pub(super) message: String,
    pub(super) help: &'static str,
}

/// Result that depends on an approximation.
#[derive(Clone, PartialEq, Serialize)]
pub(super) struct ApproximateDecision {
    decides: &'static str,
    place: SourcePlace,
    message: String,
    notes: Vec<String>,
    help: Option<String>,
}

impl InstanceSummary {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let instances = name::instances(&self.names)?;
        let mut tools = BTreeMap::new();
        let inspections = instances.iter().map(|selected| {
            let target = self.target.unwrap_or(selected.artifact.target);
            let tools = tools.entry(target).or_insert_with(|| Tools::find(target));
            if self.unroll {
                Tools::required(tools.as_ref(), target)?;
            }
            let program = name::program(selected.artifact)?;
            let examination =
                Examination { tools: tools.as_ref(), wanted: Some(&self.wanted), followed: None, unrolls: self.unroll };
            inspect::examine(selected, &program, target, examination)
        });
        let inspections = inspections.collect::<Result<Vec<_>, _>>()?;
        if !self.all && !self.json {
            for (i, inspection) in inspections.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                summary::print(inspection, out)?;
            }
            return Ok(Outcome::Good);
        }
        let reports: Vec<_> = inspections.into_iter().map(|inspection| inspection.report).collect();
        if self.json {
            json(out, &reports)?;
            return Ok(Outcome::Good);
        }
        for (i, instance) in reports.iter().enumerate() {
            if i > 0 {
                writeln!(out)?;
            }
            instance.print(out)?;
        }
        print_shared(&reports, out)?;
        Ok(Outcome::Good)
    }
}

/// Profiles the wanted case of an instance. Returns the case's name and the profile; `None` if no
/// case is registered and none was requested, or if the case's grid has no block.
pub(super) fn measured(
    wanted: &Wanted,
    artifact: &Artifact,
    instance: &Instance,
    name: &str,
    profiler: impl FnOnce() -> runtime::Result<Profiler>,
) -> Result<Option<(Case, Profile)>, Error> {
    let cases = match wanted.of(artifact, instance) {
        // Without a requested case, the report omits the measurements.
        Err(cases::Error::NoSpec { .. }) if !wanted.is_said() => return Ok(None),
        cases => cases?,
    };
    let Some(case) = cases.into_iter().next() else { return Ok(None) };
    let profiled = profiler().and_then(|profiler| profiler.run(&case));
    let profiled = profiled.map_err(|source| Error::Profile {
        instance: name.to_string(),
        case: case.name.clone(),
        source: source.into(),
    })?;
    Ok(profiled.map(|(_, profile)| (case, profile)))
}

/// Describes the arrays in shared memory.
fn arrays(kernel: &Kernel) -> Vec<String> {
    let fixed = kernel.shared.iter().map(|array| array.to_string());
    let dynamic = kernel.dynamic.iter();
    let dynamic = dynamic
        .map(|DynamicArray { name, element, .. }| format!("{name}: {element}, sized at launch, not included here"));
    fixed.chain(dynamic).collect()
}

/// Returns the arrays in local memory that the kernel accesses.
fn local_arrays(kernel: &Kernel) -> Vec<&Local> {
    fn walk(region: &Region, used: &mut BTreeSet<u32>) {
        for inst in &region.insts {
            if let Op::ReadLocal { local, .. } | Op::WriteLocal { local, .. } = &inst.op {
                used.insert(local.0);
            }
            inst.op.regions().into_iter().for_each(|region| walk(region, used));
        }
    }
    let mut used = BTreeSet::new();
    walk(&kernel.body, &mut used);
    used.into_iter().map(|i| &kernel.locals[i as usize]).filter(|array| array.memory).collect()
}

impl ReportJson {
    /// Computes the report of a compiled instance.
    pub(super) fn of(forms: &CompiledForms<'_>) -> ReportJson {
        let CompiledForms { name, target, compilation, optimized, module, with_places, machine } = forms;
        let (target, optimized) = (*target, *optimized);
        let (lowered, approximations) = (compilation.lowered(), compilation.approximations());
        let decisions =
            approximations.decisions.iter().map(|decision| ApproximateDecision::new(lowered, *decision)).collect();
        let sites = memory::accesses(with_places);
        let reach = KernelAccesses::of(compilation.program(), with_places);
        let branches = uniformity::branches(with_places);
        let branches = branches.into_iter().map(|branch| Branch::new(with_places, branch)).collect();
        let local = local_arrays(optimized);
        let machine_code = machine.as_ref().map(|(ptxas, machine)| MachineCode {
            ptxas: ptxas.clone(),
            resources: machine.resources,
            sass: machine.code.as_ref().map(|code| Sass::new(code, &Lines::of(&optimized.sources))),
        });
        let (threads, shared_bytes) = (optimized.block.most_threads(), optimized.shared_bytes());
        let registers = machine_code.as_ref().map(|m| m.resources.registers);
        let shares = |block: [u32; 3]| {
            let needs = Needs { threads: block.iter().product(), registers, shared: shared_bytes };
            let occupancy = Occupancy::of(target, needs);
            Shares { block, percent: occupancy.percent(), occupancy }
        };
        let by_block: Vec<_> = optimized.block.samples().into_iter().rev().map(shares).collect();
        let mut lints = slow::lints(optimized, &sites);
        if let Some(MachineCode { resources: r, .. }) = &machine_code
            && r.spill_loads + r.spill_stores > 0
        {
            let slow = Slow::Spills { stores: r.spill_stores, loads: r.spill_loads };
            lints.insert(0, Lint { slow, location: None, count: 1, looped: false });
        }
        ReportJson {
            instance: name.clone(),
            target: target.to_string(),
            block: optimized.block.most(),
            threads,
            blocks: optimized.block.to_string(),
            shared_bytes,
            shared: arrays(optimized),
            local_bytes: local.iter().map(|array| array.bytes()).sum(),
            local: local.into_iter().map(Local::to_string).collect(),
            machine_code,
            occupancy: shares(optimized.block.most()),
            by_block,
            instructions: mix::mix(module).into_iter().collect(),
            case: None,
            accesses: sites.into_iter().map(|site| AccessReport::new(with_places, site, &reach)).collect(),
            reach,
            branches,
            lines: Vec::new(),
            lints: merged(lints.into_iter().map(|lint| Slowness::new(optimized, lint))),
            unrolling: None,
            decisions,
        }
    }

    /// Adds the measurements of a case.
    pub(super) fn measure(&mut self, case: String, profile: &Profile) {
        self.case = Some(case);
        self.accesses.iter_mut().for_each(|access| access.measure(profile, &self.reach));
        self.branches.iter_mut().for_each(|branch| branch.measure(profile));
        self.lines = profile.lines.clone();
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "{} for {}", self.instance, self.target)?;
        writeln!(out, "block         {}", self.blocks)?;
        match &self.machine_code {
            Some(MachineCode { ptxas, resources, .. }) => writeln!(out, "registers     {resources} ({ptxas})")?,
            None => writeln!(out, "registers     unknown: no ptxas that supports {} was found", self.target)?,
        }
        writeln!(out, "shared        {} bytes", self.shared_bytes)?;
        for array in &self.shared {
            writeln!(out, "              {array}")?;
        }
        if !self.local.is_empty() {
            writeln!(out, "local         {} bytes a thread", self.local_bytes)?;
        }
        for array in &self.local {
            writeln!(out, "              {array}")?;
        }
        let unless = if self.machine_code.is_none() { ", unless by registers" } else { "" };
        for (i, Shares { block, occupancy, percent }) in self.by_block.iter().enumerate() {
            let Occupancy { blocks, warps, of, limited_by } = occupancy;
            let limits: Vec<_> = limited_by.iter().map(|limit| limit.name()).collect();
            let heading = if i == 0 { "occupancy" } else { "" };
            let size = match self.by_block.len() {
                1 => String::new(),
                _ => format!(" of {} threads", block.iter().product::<u32>()),
            };
            writeln!(
                out,
                "{heading:14}{warps} of {of} warps ({percent} %) in {blocks} blocks{size}, limited by {}{unless}",
                limits.join(" and ")
            )?;
        }
        let total: u32 = self.instructions.values().sum();
        writeln!(out, "instructions  {total} of PTX")?;
        kinds(out, 14, self.instructions.iter().map(|(class, n)| (class.name(), *n)))?;
        if let Some(sass) = self.machine_code.as_ref().and_then(|machine| machine.sass.as_ref()) {
            sass.print(out)?;
        }
        self.unrolled(out)?;
        self.memory(out)?;
        self.control(out)?;
        if self.lints.is_empty() {
            writeln!(out, "no operations known to be slow on {}", self.target)?;
        }
        Ok(())
    }

    /// Prints the table of the forms of each loop.
    fn unrolled(&self, out: &mut dyn Write) -> Result<(), Error> {
        let Some(loops) = self.unrolling.as_ref().filter(|loops| !loops.is_empty()) else { return Ok(()) };
        writeln!(out, "unrolling, issue slots of an iteration (registers of the kernel):")?;
        let mut rows = vec![["", "now", "rolled", "by 2", "by 4", "by 8", "whole"].map(String::from)];
        let cells = |l: &UnrolledLoop| {
            let by = Unrolling::By;
            let forms = [Unrolling::Declared, Unrolling::Rolled, by(2), by(4), by(8), Unrolling::Whole];
            let [now, rolled, by_2, by_4, by_8, whole] =
                forms.map(|form| l.form(form).map_or(String::new(), unrolling::LoopForm::figures));
            let SourcePlace { file, line, text, .. } = &l.place;
            [format!("{file}:{line} {text}"), now, rolled, by_2, by_4, by_8, whole]
        };
        rows.extend(loops.iter().map(cells));
        table(out, &rows)
    }

    /// Prints the table of the accesses.
    fn memory(&self, out: &mut dyn Write) -> Result<(), Error> {
        if self.accesses.is_empty() {
            return Ok(());
        }
        let head = "memory, a warp's access at a time";
        match &self.case {
            Some(case) => writeln!(out, "{head}, as computed · as measured on {case}:")?,
            None => writeln!(out, "{head}:")?,
        }
        let heads =
            ["", "", "a lane", "address by", "costs", "lines", "bytes used", "lanes", "in bounds by", "elements"];
        let mut rows = vec![heads.map(String::from)];
        rows.extend(self.accesses.iter().map(|access| access.row(self.case.is_some())));
        table(out, &rows)
    }

    /// Prints the table of the branches, and the lines in which some lanes are inactive.
    fn control(&self, out: &mut dyn Write) -> Result<(), Error> {
        if !self.branches.is_empty() {
            writeln!(out, "branches and loops, with the scope proven to take the same path:")?;
            let rows: Vec<_> = self.branches.iter().map(|branch| branch.row(self.case.is_some())).collect();
            table(out, &rows)?;
        }
        let part = self.lines.iter().filter(|line| line.lanes < 32 * line.instructions && !line.file.is_empty());
        let parts: Vec<_> =
            part.map(|line| format!("{}:{} {}", line.file, line.line, percent(line.active()))).collect();
        if !parts.is_empty() {
            writeln!(out, "active lanes of a line's instructions, where some lanes are inactive:")?;
        }
        parts.chunks(LINES_A_LINE).try_for_each(|line| Ok(writeln!(out, "  {}", line.join("  "))?))
    }
}

/// Prints rows in aligned columns.
fn table<const N: usize>(out: &mut dyn Write, rows: &[[String; N]]) -> Result<(), Error> {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    for row in rows {
        let cells = row.iter().zip(widths).filter(|(_, width)| *width > 0);
        let padded: String = cells.map(|(cell, width)| format!("{cell:width$}  ")).collect();
        writeln!(out, "  {}", padded.trim_end())?;
    }
    Ok(())
}

/// Prints the slow code and the results that depend on approximations; entries that several
/// instances share appear once.
fn print_shared(reports: &[ReportJson], out: &mut dyn Write) -> Result<(), Error> {
    let mut slow: Vec<(Slowness, usize)> = Vec::new();
    let mut doubts: Vec<(ApproximateDecision, usize)> = Vec::new();
    for instance in reports {
        for lint in &instance.lints {
            match slow.iter_mut().find(|(other, _)| other.is_like(lint)) {
                Some((_, instances)) => *instances += 1,
                None => slow.push((lint.clone(), 1)),
            }
        }
        for doubt in &instance.decisions {
            match doubts.iter_mut().find(|(other, _)| other == doubt) {
                Some((_, instances)) => *instances += 1,
                None => doubts.push((doubt.clone(), 1)),
            }
        }
    }
    if reports.len() > 1 && !(slow.is_empty() && doubts.is_empty()) {
        writeln!(out)?;
    }
    let of = |instances: usize| match reports.len() {
        1 => String::new(),
        all => format!(" (in {instances} of {all} instances)"),
    };
    slow.iter().try_for_each(|(lint, instances)| lint.print(&of(*instances), out))?;
    doubts.iter().try_for_each(|(doubt, instances)| doubt.print(&of(*instances), out))
}

/// Merges equal lints of one place into one, with the number of occurrences.
fn merged(lints: impl Iterator<Item = Slowness>) -> Vec<Slowness> {
    let mut all: Vec<Slowness> = Vec::new();
    for lint in lints {
        match all.iter_mut().find(|other| other.is_like(&lint)) {
            Some(other) => {
                other.count += lint.count;
                other.in_loop |= lint.in_loop;
            }
            None => all.push(lint),
        }
    }
    all
}

/// Formats a share as `92 %`. A share below 1 is never shown as 100 %, nor a share above 0 as 0 %.
pub(super) fn percent(part: f64) -> String {
    let rounded = (100.0 * part).round();
    match part {
        ..1.0 if rounded >= 100.0 => "99 %".to_string(),
        0.0 => "0 %".to_string(),
        0.0.. if rounded == 0.0 => "under 1 %".to_string(),
        _ => format!("{rounded:.0} %"),
    }
}

/// Joins the computed and the measured value; a missing one is left out.
fn both(computed: Option<String>, measured: Option<String>) -> String {
    match (computed, measured) {
        (Some(computed), Some(measured)) if computed == measured => computed,
        (Some(computed), Some(measured)) => format!("{computed} · {measured}"),
        (Some(one), None) => one,
        (None, Some(measured)) => format!("? · {measured}"),
        (None, None) => String::new(),
    }
}

/// Prints instructions by kind, several a line, indented by `indent` spaces.
fn kinds(out: &mut dyn Write, indent: usize, mix: impl Iterator<Item = (&'static str, u32)>) -> Result<(), Error> {
    let kinds: Vec<_> = mix.map(|(class, n)| format!("{n} {class}")).collect();
    kinds.chunks(KINDS_A_LINE).try_for_each(|line| Ok(writeln!(out, "{:indent$}{}", "", line.join(", "))?))
}

impl Sass {
    fn new(code: &CodeCost, lines: &Lines) -> Sass {
        let looped = |(i, l): (usize, &sass::Loop)| {
            // The backward jump belongs to the loop; its first instruction may have the line of any
            // statement in it.
            let line = code.listing.instructions[l.jump].line.clone();
            let text = line.as_ref().map_or("", |line| lines.code(line)).to_string();
            let (depth, inside) = (l.depth, code.around(i));
            Loop { line, text, depth, inside, issue: Issue::from(l), mix: l.classes.clone() }
        };
        Sass {
            issue: Issue::from(code),
            mix: code.listing.classes(0..code.listing.instructions.len()),
            loops: code.loops.iter().enumerate().map(looped).collect(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "machine code  {}", self.issue)?;
        kinds(out, 14, self.mix.iter().map(|(class, n)| (class.name(), *n)))?;
        if !self.loops.is_empty() {
            writeln!(out, "loops of the machine code, an iteration with all its paths:")?;
        }
        for Loop { line, text, depth, issue, mix, .. } in &self.loops {
            let indent = 2 + 2 * *depth as usize;
            match line {
                Some(Line { file, number }) => writeln!(out, "{:indent$}{file}:{number} {text}", "")?,
                None => writeln!(out, "{:indent$}no line of Rust: added by ptxas", "")?,
            }
            writeln!(out, "{:indent$}    {issue}", "")?;
            kinds(out, indent + 4, mix.iter().map(|(class, n)| (class.name(), *n)))?;
        }
        Ok(())
    }
}

impl SourcePlace {
    pub(super) fn new(kernel: &Kernel, location: Location) -> SourcePlace {
        let at = kernel.locations[location.0 as usize];
        SourcePlace::of_source(&kernel.sources[at.source as usize], at.span)
    }

    /// Returns the start of a span.
    pub(super) fn of_source(source: &KernelSource, span: Span) -> SourcePlace {
        let offset = u32::from(span.line);
        SourcePlace {
            file: source.file.clone(),
            line: source.line + offset,
            column: span.column,
            text: source.line_code(offset).to_string(),
        }
    }

    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        let SourcePlace { file, line, column, text } = self;
        let gutter = line.to_string().len();
        writeln!(out, "{:gutter$}--> {file}:{line}:{column}", "")?;
        Ok(writeln!(out, "{line} | {text}")?)
    }
}

impl ApproximateDecision {
    fn new(kernel: &Kernel, decision: Decision) -> ApproximateDecision {
        let error = decision.error(kernel);
        let place = SourcePlace::new(kernel, decision.location);
        ApproximateDecision {
            decides: decision.decided.name(),
            place,
            message: error.message,
            notes: error.notes,
            help: error.help,
        }
    }

    fn print(&self, more: &str, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "approximate[{}]: {}{more}", self.decides, self.message)?;
        self.place.print(out)?;
        for note in &self.notes {
            writeln!(out, "  = note: {note}")?;
        }
        self.help.iter().try_for_each(|help| Ok(writeln!(out, "  = help: {help}")?))
    }
}

impl AccessReport {
    fn new(kernel: &Kernel, site: Site, reach: &KernelAccesses) -> AccessReport {
        let Site { location, kind, array, bytes, count, loops, cost, address } = site;
        let place = SourcePlace::new(kernel, location);
        let named = |name: &str| array.as_deref() == Some(name);
        let element_bytes = kernel.shared.iter().find(|s| named(&s.name)).map(|s| s.element.bytes());
        let dynamic = || kernel.dynamic.iter().find(|s| named(&s.name)).map(|s| s.element.bytes());
        let parameter = || {
            kernel.parameters.iter().find(|p| named(&p.name)).and_then(|p| match p.role {
                Role::Address { element, .. } => Some(element.bytes()),
                _ => None,
            })
        };
        // An element at a time.
        let local = || matches!(cost, Some(Cost::Local { .. })).then_some(bytes);
        let element_bytes = element_bytes.or_else(dynamic).or_else(parameter).or_else(local);
        let mut access = AccessReport {
            location,
            place,
            kind,
            array,
            bytes,
            element_bytes,
            count,
            loops,
            address,
            cost,
            within: None,
            computed: None,
            measured: None,
        };
        let proof = access.of(reach).and_then(|site| site.proof.as_ref());
        access.within = proof.map(|proof| ProofFacts::new(kernel, proof));
        access
    }

    /// Returns the results of the bounds analysis for the access.
    fn of<'r>(&self, reach: &'r KernelAccesses) -> Option<&'r bounds::Site> {
        reach.sites.iter().find(|site| {
            (site.location, site.kind, site.bytes) == (self.location, self.kind, self.bytes) && site.array == self.array
        })
    }

    /// Records the measurements of the access.
    fn measure(&mut self, profile: &Profile, reach: &KernelAccesses) {
        let kind = match self.kind {
            AccessKind::Load => profile::RequestKind::Load,
            AccessKind::Store => profile::RequestKind::Store,
            AccessKind::Atomic => profile::RequestKind::Atomic,
        };
        // If the path of control decides which array is accessed, the analysis does not name one.
        let of_it = |a: &&ProfiledAccess| {
            (a.location, a.kind, a.bytes) == (self.location, kind, self.bytes)
                && (self.array.is_none() || a.array == self.array)
        };
        let counts = profile.accesses.iter().filter(of_it).map(|a| a.counts).reduce(Counts::and);
        let touched = profile.accesses.iter().filter(of_it).map(|a| a.touched);
        let touched = touched.reduce(|a, b| Some(a?.and(b?))).flatten();
        self.measured = counts.map(|counts| MeasuredRequests {
            mean: counts.mean(),
            active: counts.active(),
            efficiency: counts.efficiency(),
            counts,
            touched: touched.filter(|_| self.array.is_some()),
        });
        self.computed = self.of(reach).and_then(|site| reach.bytes(site, &profile.launched));
    }

    /// Returns the row of the table: place, access, size, cost, and the measurements if `measured`.
    fn row(&self, measured: bool) -> [String; 10] {
        let SourcePlace { file, line, column, .. } = &self.place;
        let kind = match self.kind {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        };
        let times = if self.count > 1 { format!("{} × ", self.count) } else { String::new() };
        let looped = if self.loops > 0 { ", looped" } else { "" };
        let found = self.measured.as_ref();
        let local = matches!(self.cost, Some(Cost::Local { .. }));
        let (lines, used) = match self.cost {
            Some(Cost::Global { sectors, lines, used, .. }) => {
                let moved = f64::from(sectors) * memory::SECTOR as f64;
                (Some(lines.to_string()), Some(percent(f64::from(used) / moved.max(1.0))))
            }
            _ => (None, None),
        };
        let global = found.filter(|m| m.efficiency.is_some());
        let lines_found = global.map(|m| number(m.counts.lines as f64 / m.counts.requests.max(1) as f64));
        [
            format!("{file}:{line}:{column}"),
            format!("{kind} {}", self.array.as_deref().unwrap_or("?")),
            format!("{times}{} B{looped}", self.bytes),
            self.address.name().to_string(),
            match found {
                Some(found) => format!("{} · {}", self.costs(), found.costs()),
                // The interpreter does not measure local memory.
                None if measured && !local => format!("{} · not executed", self.costs()),
                None => self.costs(),
            },
            both(lines, lines_found),
            both(used, global.and_then(|m| m.efficiency).map(percent)),
            found.map_or(String::new(), |m| percent(m.active)),
            if local {
                String::new()
            } else {
                self.within.as_ref().map_or("not proved".to_string(), ProofFacts::words)
            },
            self.elements(),
        ]
    }

    pub(super) fn costs(&self) -> String {
        match self.cost {
            Some(Cost::Shared { ways: 0 | 1 }) => "no bank conflict".to_string(),
            Some(Cost::Shared { ways }) => format!("{ways}-way bank conflict"),
            Some(Cost::Constant { words: 0 | 1 }) => "one place".to_string(),
            Some(Cost::Constant { words }) => format!("up to {words} places"),
            Some(Cost::Global { sectors, least, .. }) if sectors == least => format!("{sectors} sectors"),
            Some(Cost::Global { sectors, least, .. }) => format!("{sectors} sectors for {least}"),
            Some(Cost::Local { sectors, least }) if sectors == least => format!("{sectors} sectors of local memory"),
            Some(Cost::Local { sectors, least }) => format!("up to {sectors} sectors of local memory for {least}"),
            None => "not known".to_string(),
        }
    }

    /// Returns the computed and the measured ranges of touched elements.
    fn elements(&self) -> String {
        let size = u64::from(self.element_bytes.unwrap_or(1)).max(1);
        let unit = if self.element_bytes.is_none() { " B" } else { "" };
        let range = |range: &Range<u64>| match range.is_empty() {
            true => "none".to_string(),
            false => format!("{}..{}", range.start / size, range.end.div_ceil(size)),
        };
        let touched = self.measured.as_ref().and_then(|m| m.touched);
        let of = touched.and_then(|t| t.of).map_or(String::new(), |of| format!(" of {}", of / size));
        let text = both(self.computed.as_ref().map(range), touched.map(|t| range(&(t.first..t.end))));
        format!("{text}{of}{}", if text.is_empty() { "" } else { unit })
    }
}

impl ProofFacts {
    fn new(kernel: &Kernel, proof: &Proof) -> ProofFacts {
        let mut lines: Vec<u32> = proof.conditions.iter().map(|at| SourcePlace::new(kernel, *at).line).collect();
        lines.sort_unstable();
        lines.dedup();
        ProofFacts { lines, requires: proof.requires, grid: proof.grid }
    }

    fn words(&self) -> String {
        let lines: Vec<_> = self.lines.iter().map(u32::to_string).collect();
        let lines = match lines.len() {
            0 => None,
            1 => Some(format!("line {}", lines.concat())),
            _ => Some(format!("lines {}", lines.join(" "))),
        };
        let requires = self.requires.then(|| "requires".to_string());
        let grid = self.grid.then(|| "grid".to_string());
        let all: Vec<_> = [lines, requires, grid].into_iter().flatten().collect();
        if all.is_empty() { "shape".to_string() } else { all.join(", ") }
    }
}

impl Branch {
    fn new(kernel: &Kernel, branch: uniformity::Branch) -> Branch {
        let uniformity::Branch { location, looped, count, scope } = branch;
        Branch { location, place: SourcePlace::new(kernel, location), looped, count, scope, measured: None }
    }

    /// Takes what was measured of it.
    fn measure(&mut self, profile: &Profile) {
        let of_it = profile.branches.iter().filter(|b| (b.location, b.looped) == (self.location, self.looped));
        self.measured = of_it.map(|b| b.ways).reduce(BranchCounts::and);
    }

    fn row(&self, measured: bool) -> [String; 4] {
        let SourcePlace { file, line, column, .. } = &self.place;
        let kind = if self.looped { "loop" } else { "branch" };
        let times = if self.count > 1 { format!("{} × ", self.count) } else { String::new() };
        let ways = match self.measured {
            Some(BranchCounts { decided, parted: 0 }) => format!("no divergence in {decided} executions"),
            Some(ways) => {
                let BranchCounts { decided, parted } = ways;
                format!("diverges in {parted} of {decided} executions, {}", percent(ways.share()))
            }
            None if measured => "not executed".to_string(),
            None => String::new(),
        };
        [format!("{file}:{line}:{column}"), format!("{times}{kind}"), self.scope.name().to_string(), ways]
    }
}

/// Formats a number with two decimal places, if it has a fraction.
fn number(x: f64) -> String {
    if x.fract() == 0.0 { format!("{x:.0}") } else { format!("{x:.2}") }
}

impl MeasuredRequests {
    /// Returns the cost of the measured requests.
    pub(super) fn costs(&self) -> String {
        let MeasuredRequests { counts, mean, .. } = self;
        // Whole numbers where all requests cost the same.
        match counts.cost == u64::from(counts.most) * counts.requests {
            true => counts.most.to_string(),
            false => format!("{mean:.2}, at most {}", counts.most),
        }
    }
}

impl Slowness {
    fn new(kernel: &Kernel, lint: Lint) -> Slowness {
        Slowness {
            lint: lint.slow.name(),
            place: lint.location.map(|location| SourcePlace::new(kernel, location)),
            count: lint.count,
            in_loop: lint.looped,
            message: lint.slow.message(kernel.target),
            help: lint.slow.help(),
        }
    }

    /// Returns whether both lints have the same message and place.
    fn is_like(&self, other: &Slowness) -> bool {
        (self.lint, &self.place, &self.message) == (other.lint, &other.place, &other.message)
    }

    fn print(&self, more: &str, out: &mut dyn Write) -> Result<(), Error> {
        let times = match (self.count, self.in_loop) {
            (0 | 1, false) => String::new(),
            (0 | 1, true) => " (in a loop)".to_string(),
            (n, false) => format!(" ({n} times)"),
            (n, true) => format!(" ({n} times, in a loop)"),
        };
        writeln!(out, "slow[{}]: {}{times}{more}", self.lint, self.message)?;
        if let Some(place) = &self.place {
            place.print(out)?;
        }
        Ok(writeln!(out, "  = help: {}", self.help)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lint_shows_its_line() {
        let text = "let k = i / n;".to_string();
        let place = SourcePlace { file: "src/a.rs".to_string(), line: 120, column: 9, text };
        let slow = Slow::IntegerDivision(kernel_dsl::compiler::Scalar::U32);
        let (message, help) = (slow.message(Target::SM_80), slow.help());
        let lint = Slowness { lint: slow.name(), place: Some(place), count: 4, in_loop: true, message, help };
        let mut out = Vec::new();
        lint.print("", &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "slow[integer-division]: sm_80 has no instruction for integer division: dividing `u32` takes \
             about 20 instructions (4 times, in a loop)\n   --> src/a.rs:120:9\n120 | let k = i / n;\n  \
             = help: divide by a generic constant, preferably a power of two; or use nested loops instead of \
             splitting an index\n"
        );
    }
}
