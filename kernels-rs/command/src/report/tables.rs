//! The whole report as text: `kernels report --all`.

use super::model::{
    AccessReport, ApproximateDecision, MachineBranch, MachineCodeReport, MachineLoop, MeasuredRequests, ProofFacts,
    ReportJson, Sass, Shares, Slowness,
};
use crate::error::Error;
use crate::source_place::SourcePlace;
use crate::unrolling::{LoopForm, UnrolledLoop, Unrolling};
use kernel_dsl::compiler::analyses::memory::{self, AccessKind, Cost};
use kernel_dsl::compiler::analyses::occupancy::Occupancy;
use kernels_rs_estimate::sass::Line;
use runtime::interpreter::profile::BranchCounts;
use runtime::interpreter::report::shown_path;
use std::io::Write;
use std::ops::Range;

/// Number of instruction kinds printed in a line.
const KINDS_A_LINE: usize = 5;
/// Number of Rust lines printed in a line.
const LINES_A_LINE: usize = 4;

impl ReportJson {
    pub(super) fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "{} for {}", self.instance, self.target)?;
        writeln!(out, "block         {}", self.blocks)?;
        match &self.machine_code {
            Some(MachineCodeReport { ptxas, resources, .. }) => writeln!(out, "registers     {resources} ({ptxas})")?,
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
                forms.map(|form| l.form(form).map_or(String::new(), LoopForm::figures));
            let SourcePlace { file, line, text, .. } = &l.place;
            let file = shown_path(file);
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
            part.map(|line| format!("{}:{} {}", shown_path(&line.file), line.line, percent(line.active()))).collect();
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
pub(super) fn print_shared(reports: &[ReportJson], out: &mut dyn Write) -> Result<(), Error> {
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

/// Formats a share as `92 %`. A share below 1 is never shown as 100 %, nor a share above 0 as 0 %.
pub(crate) fn percent(part: f64) -> String {
    let rounded = (100.0 * part).round();
    match part {
        ..1.0 if rounded >= 100.0 => "99 %".to_string(),
        0.0 => "0 %".to_string(),
        0.0.. if rounded == 0.0 => "under 1 %".to_string(),
        _ => format!("{rounded:.0} %"),
    }
}

/// Joins the computed and the measured value; a missing one is left out.
fn computed_and_measured(computed: Option<String>, measured: Option<String>) -> String {
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
    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "machine code  {}", self.issue)?;
        kinds(out, 14, self.mix.iter().map(|(class, n)| (class.name(), *n)))?;
        if !self.loops.is_empty() {
            writeln!(out, "loops of the machine code, an iteration with all its paths:")?;
        }
        for MachineLoop { line, text, depth, issue, mix, .. } in &self.loops {
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

impl ApproximateDecision {
    fn print(&self, more: &str, out: &mut dyn Write) -> Result<(), Error> {
        writeln!(out, "approximate[{}]: {}{more}", self.decides, self.message)?;
        print_place(&self.place, out)?;
        for note in &self.notes {
            writeln!(out, "  = note: {note}")?;
        }
        self.help.iter().try_for_each(|help| Ok(writeln!(out, "  = help: {help}")?))
    }
}

impl AccessReport {
    /// Returns the row of the table: place, access, size, cost, and the measurements if `measured`.
    fn row(&self, measured: bool) -> [String; 10] {
        let SourcePlace { file, line, column, .. } = &self.place;
        let file = shown_path(file);
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
            computed_and_measured(lines, lines_found),
            computed_and_measured(used, global.and_then(|m| m.efficiency).map(percent)),
            found.map_or(String::new(), |m| percent(m.active)),
            if local {
                String::new()
            } else {
                self.within.as_ref().map_or("not proved".to_string(), ProofFacts::words)
            },
            self.elements(),
        ]
    }

    pub(crate) fn costs(&self) -> String {
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
        let text = computed_and_measured(self.computed.as_ref().map(range), touched.map(|t| range(&(t.first..t.end))));
        format!("{text}{of}{}", if text.is_empty() { "" } else { unit })
    }
}

impl ProofFacts {
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

impl MachineBranch {
    fn row(&self, measured: bool) -> [String; 4] {
        let SourcePlace { file, line, column, .. } = &self.place;
        let file = shown_path(file);
        let kind = if self.looped { "loop" } else { "branch" };
        let times = if self.count > 1 { format!("{} × ", self.count) } else { String::new() };
        let ways = match self.measured {
            Some(BranchCounts { decided, diverged: 0 }) => format!("no divergence in {decided} executions"),
            Some(ways) => {
                let BranchCounts { decided, diverged } = ways;
                format!("diverges in {diverged} of {decided} executions, {}", percent(ways.share()))
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
    pub(crate) fn costs(&self) -> String {
        let MeasuredRequests { counts, mean, .. } = self;
        // Whole numbers where all requests cost the same.
        match counts.cost == u64::from(counts.most) * counts.requests {
            true => counts.most.to_string(),
            false => format!("{mean:.2}, at most {}", counts.most),
        }
    }
}

impl Slowness {
    fn print(&self, more: &str, out: &mut dyn Write) -> Result<(), Error> {
        let times = match (self.count, self.in_loop) {
            (0 | 1, false) => String::new(),
            (0 | 1, true) => " (in a loop)".to_string(),
            (n, false) => format!(" ({n} times)"),
            (n, true) => format!(" ({n} times, in a loop)"),
        };
        writeln!(out, "slow[{}]: {}{times}{more}", self.lint, self.message)?;
        if let Some(place) = &self.place {
            print_place(place, out)?;
        }
        Ok(writeln!(out, "  = help: {}", self.help)?)
    }
}

/// Prints the place and its line.
fn print_place(place: &SourcePlace, out: &mut dyn Write) -> Result<(), Error> {
    let SourcePlace { file, line, column, text } = place;
    let file = shown_path(file);
    let gutter = line.to_string().len();
    writeln!(out, "{:gutter$}--> {file}:{line}:{column}", "")?;
    Ok(writeln!(out, "{line} | {text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::compiler::Target;
    use kernel_dsl::compiler::analyses::slow::Slow;

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
