//! The page of an instance as data: what `inspect` shows and `report` summarizes.
//!
//! All forms of the code refer to the same lines of Rust by their index in [`Inspection::lines`].
//! The page is made from the JSON of an [`Inspection`] alone.

use super::compare::ComparisonHead;
use super::execution::Execution;
use super::limits::{Advice, CaseLimits};
use super::pass_steps::PassStep;
use super::pictures::{AccessPicture, Occupancies, Tiles};
use super::stalls::{EstimatedTime, LineStall};
use crate::emit_lines::LinkedLine;
use crate::forms::CompiledForms;
use crate::machine::CodeCost;
use crate::report::ReportJson;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::emit::file_name;
use kernel_dsl::compiler::ir::{Kernel, Location};
use kernel_dsl::compiler::source::KernelSource;
use kernels_rs_estimate::sass::Line;
use runtime::interpreter::profile::MemoryProfile;
use serde::Serialize;
use std::collections::HashMap;

/// Contents of the page of an instance.
#[derive(Serialize)]
pub(crate) struct Inspection {
    pub report: ReportJson,
    /// Names and values of the most important properties.
    pub facts: Vec<(String, String)>,
    /// Lines of Rust: those of the kernel, then those of its device functions.
    pub lines: Vec<RustLine>,
    pub lowered: Vec<CodeLine>,
    pub optimized: Vec<CodeLine>,
    pub ptx: Vec<CodeLine>,
    /// Machine code; empty without ptxas and nvdisasm.
    pub sass: Vec<CodeLine>,
    pub accesses: Vec<AccessPicture>,
    pub occupancy: Occupancies,
    pub tiles: Vec<Tiles>,
    /// Costs of the case; `null` without a case.
    pub limits: Option<CaseLimits>,
    pub advice: Vec<Advice>,
    /// Findings of the oracle in the case, and the trace of a thread; `null` without a case.
    pub execution: Option<Execution>,
    /// Estimate of the case's time; `null` without a case and without ptxas and nvdisasm.
    pub estimate: Option<EstimatedTime>,
    /// The IR after each pass that changed it.
    pub passes: Vec<PassStep>,
    /// Lines of Rust by file and number.
    #[serde(skip)]
    pub index: LineIndex,
    pub comparison: Option<ComparisonHead>,
    /// Messages of the compiler about the source as it is now; the rest of the page is older.
    pub error: Option<String>,
}

/// A line of Rust and its costs.
#[derive(Serialize)]
pub(crate) struct RustLine {
    pub file: String,
    pub number: u32,
    pub text: String,
    /// Name of the function, on its first line.
    pub function: Option<String>,
    /// Issue slots of the machine code.
    pub slots: u32,
    /// Maximum number of live registers in the line's machine code.
    pub live: u32,
    /// Fraction of the instructions that warps executed in the case.
    pub share: Option<f64>,
    /// Mean fraction of active lanes.
    pub active: Option<f64>,
    /// Estimate of the time that warps wait at the line.
    pub stall: Option<LineStall>,
}

/// A line of IR, PTX or machine code.
#[derive(Clone, Serialize, serde::Deserialize, Default)]
pub(crate) struct CodeLine {
    pub text: String,
    /// Index of the line of Rust.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at: Option<usize>,
    /// Number of live registers, for machine code.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub live: Option<u32>,
    /// Remark, such as a register bank conflict.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub note: Option<String>,
    /// Side of a comparison that alone has the line.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub only: Option<super::compare::ComparedSide>,
}

/// Index of lines of Rust by file and number.
pub(crate) struct LineIndex(HashMap<(String, u32), usize>);

impl LineIndex {
    pub(super) fn get(&self, file: &str, number: u32) -> Option<usize> {
        self.0.get(&(file.to_string(), number)).copied()
    }

    pub(super) fn of_location(&self, kernel: &Kernel, location: Location) -> Option<usize> {
        let at = kernel.locations.get(location.0 as usize)?;
        let source = kernel.sources.get(at.source as usize)?;
        self.get(&source.file, source.line + u32::from(at.span.line))
    }
}

impl Inspection {
    /// Collects the contents of an instance's page. `profile` is the measurement of the case that
    /// `report` contains.
    pub(crate) fn new(forms: &CompiledForms<'_>, report: ReportJson, profile: Option<&MemoryProfile>) -> Inspection {
        let (mut lines, index) = rust_lines(&forms.optimized.sources);
        let sass = machine_code(forms, &index, &mut lines);
        if let Some(profile) = profile {
            let total: u64 = profile.lines.iter().map(|line| line.instructions).sum();
            for line in &profile.lines {
                if let Some(at) = index.get(&line.file, line.line) {
                    lines[at].share = Some(line.instructions as f64 / total.max(1) as f64);
                    lines[at].active = Some(line.active());
                }
            }
        }
        // The bounds are those of a card of sm_61.
        let limits = profile.filter(|_| forms.target == Target::SM_61).map(CaseLimits::of);
        let advice = super::limits::advice(&report, &lines, &index);
        Inspection {
            facts: facts(&report, limits.as_ref()),
            lowered: intermediate(forms.compilation.lowered(), &index),
            optimized: intermediate(forms.optimized, &index),
            ptx: linked(&crate::emit_lines::of_module(&forms.module), &index),
            sass,
            accesses: super::pictures::accesses(&report, profile, &index),
            occupancy: Occupancies::of(forms.target, &report),
            tiles: profile.map_or(Vec::new(), |profile| super::pictures::tiles(&forms.with_places, profile)),
            limits,
            advice,
            lines,
            report,
            execution: None,
            estimate: None,
            passes: Vec::new(),
            index,
            comparison: None,
            error: None,
        }
    }
}

/// Returns the lines of all functions, each once, and their index.
fn rust_lines(sources: &[KernelSource]) -> (Vec<RustLine>, LineIndex) {
    let (mut lines, mut index) = (Vec::new(), HashMap::new());
    for source in sources {
        for (offset, text) in source.text.iter().enumerate() {
            let number = source.line + offset as u32;
            if index.contains_key(&(source.file.clone(), number)) {
                continue;
            }
            // The file's name in PTX may differ.
            for file in [source.file.clone(), file_name(source)] {
                index.insert((file, number), lines.len());
            }
            lines.push(RustLine {
                file: source.file.clone(),
                number,
                text: text.clone(),
                function: (offset == 0).then(|| source.name.clone()),
                slots: 0,
                live: 0,
                share: None,
                active: None,
                stall: None,
            });
        }
    }
    (lines, LineIndex(index))
}

fn intermediate(kernel: &Kernel, index: &LineIndex) -> Vec<CodeLine> {
    let line = |line: kernel_dsl::compiler::ir::print::LocatedLine| CodeLine {
        at: line.location.and_then(|location| index.of_location(kernel, location)),
        text: line.text,
        ..CodeLine::default()
    };
    kernel.located_lines().into_iter().map(line).collect()
}

fn linked(lines: &[LinkedLine], index: &LineIndex) -> Vec<CodeLine> {
    let line = |line: &LinkedLine| CodeLine {
        at: line.place.as_ref().and_then(|(file, number)| index.get(file, *number)),
        text: line.text.clone(),
        ..CodeLine::default()
    };
    lines.iter().map(line).collect()
}

/// Returns the machine code, and adds its costs to the lines of Rust.
fn machine_code(forms: &CompiledForms<'_>, index: &LineIndex, lines: &mut [RustLine]) -> Vec<CodeLine> {
    let Some(code) = forms.machine.as_ref().and_then(|(_, machine)| machine.code.as_ref()) else { return Vec::new() };
    let at = |line: &Line| index.get(&line.file, line.number);
    let live = code.listing.live_registers();
    for (i, inst) in code.listing.instructions.iter().enumerate() {
        if let Some(line) = inst.line.as_ref().and_then(at).map(|at| &mut lines[at]) {
            line.slots += u32::from(!inst.idle() && !inst.paired);
            line.live = line.live.max(live.as_ref().map_or(0, |live| live[i]));
        }
    }
    machine_code_lines(code, &at)
}

/// Returns the lines of machine code. `at` returns the index of a line of Rust.
pub(super) fn machine_code_lines(code: &CodeCost, at: &dyn Fn(&Line) -> Option<usize>) -> Vec<CodeLine> {
    let listing = &code.listing;
    let live = listing.live_registers();
    let conflicts = listing.bank_conflicts().unwrap_or_default();
    let heading = |text: String| CodeLine { text, ..CodeLine::default() };
    let mut sass = Vec::new();
    for (i, inst) in listing.instructions.iter().enumerate() {
        sass.extend(listing.functions.get(&i).map(|name| heading(format!("{name}:"))));
        for (number, l) in code.loops.iter().enumerate().filter(|(_, l)| l.head == i) {
            let indent = "  ".repeat(l.depth as usize);
            let (number, instructions, slots) = (number + 1, l.instructions, l.slots);
            sass.push(heading(format!("{indent}// loop {number}: {instructions} instructions in {slots} slots")));
        }
        let depth = code.loops.iter().filter(|l| l.body.binary_search(&i).is_ok()).count();
        let pair = if inst.paired { "+" } else { "" };
        let address = format!("{:04x}", inst.address);
        let words = [address.as_str(), pair, &inst.guard, &inst.name, &inst.operands];
        let text: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let lost = conflicts.get(i).filter(|conflict| conflict.cycles > 0);
        let note = lost.map(|conflict| {
            let banks = conflict.registers.iter().map(|(bank, registers)| {
                let names: Vec<_> = registers.iter().map(|r| format!("R{r}")).collect();
                format!("{} in register bank {bank}", names.join(" "))
            });
            banks.collect::<Vec<_>>().join(", ")
        });
        sass.push(CodeLine {
            text: format!("{}{}", "  ".repeat(depth), text.join(" ")),
            at: inst.line.as_ref().and_then(at),
            live: live.as_ref().map(|live| live[i]),
            note,
            only: None,
        });
    }
    sass
}

/// Returns the properties at the head of the page.
fn facts(report: &ReportJson, limits: Option<&CaseLimits>) -> Vec<(String, String)> {
    let mut facts = vec![("block".to_string(), report.blocks.clone())];
    let mut fact = |name: &str, value: String| facts.push((name.to_string(), value));
    match &report.machine_code {
        Some(code) => {
            let spills = code.resources.spill_loads + code.resources.spill_stores;
            fact("registers", format!("{}{}", code.resources.registers, if spills > 0 { ", with spills" } else { "" }));
            if let Some(sass) = &code.sass {
                fact("issue slots", format!("{} for {} instructions", sass.issue.slots, sass.issue.instructions));
            }
        }
        None => fact("registers", "unknown without ptxas".to_string()),
    }
    fact("shared memory", format!("{} bytes", report.shared_bytes));
    let occupancy = &report.occupancy;
    let limited: Vec<_> = occupancy.occupancy.limited_by.iter().map(|limit| limit.name()).collect();
    fact("occupancy", format!("{} %, limited by {}", occupancy.percent, limited.join(" and ")));
    fact("PTX", format!("{} instructions", report.instructions.values().sum::<u32>()));
    if let Some(limits) = limits {
        fact("intensity", format!("{:.2} operations per byte", limits.intensity));
    }
    facts
}
