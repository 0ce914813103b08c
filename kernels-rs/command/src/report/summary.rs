//! The first screen of `kernels report`: what limits an instance, in at most 25 lines of 100
//! columns.

use super::model::{AccessReport, MachineCodeReport, MachineLoop};
use crate::error::Error;
use crate::inspect::Inspection;
use crate::inspect::limits::Advice;
use crate::source_place::SourcePlace;
use crate::unrolling::{LoopForm, UnrolledLoop, Unrolling};
use kernel_dsl::compiler::analyses::memory::{AccessKind, Cost};
use kernels_rs_estimate::sass::Line;
use std::io::Write;

/// Lines of the screen.
const LINES: usize = 25;
/// Columns of the screen.
const COLUMNS: usize = 100;
/// Column at which values start.
const INDENT: usize = 14;
// Numbers of lines of each list.
const MAX_ARRAYS: usize = 3;
const MAX_LOOPS: usize = 3;
const MAX_ACCESSES: usize = 4;

/// Prints the first screen of an instance.
pub(crate) fn print(inspection: &Inspection, out: &mut dyn Write) -> Result<(), Error> {
    let report = &inspection.report;
    let mut screen = Screen { out, printed: 0 };
    screen.text(&format!("{} for {}", report.instance, report.target))?;
    screen.row("block", &report.blocks)?;
    match &report.machine_code {
        Some(MachineCodeReport { ptxas, resources, .. }) => {
            screen.row("registers", &format!("{resources} ({ptxas})"))?
        }
        None => screen.row("registers", &format!("unknown: no ptxas that supports {} was found", report.target))?,
    }
    screen.row("shared", &format!("{} bytes", report.shared_bytes))?;
    screen.list("", &report.shared, MAX_ARRAYS)?;
    if !report.local.is_empty() {
        screen.row("local", &format!("{} bytes a thread", report.local_bytes))?;
        screen.list("", &report.local, MAX_ARRAYS)?;
    }
    let occupancy = &report.occupancy.occupancy;
    let limits: Vec<_> = occupancy.limited_by.iter().map(|limit| limit.name()).collect();
    let (warps, of, percent, blocks) = (occupancy.warps, occupancy.of, report.occupancy.percent, occupancy.blocks);
    let unless = if report.machine_code.is_none() { ", unless by registers" } else { "" };
    let limited = limits.join(" and ");
    screen.row(
        "occupancy",
        &format!("{warps} of {of} warps ({percent} %) in {blocks} blocks, limited by {limited}{unless}"),
    )?;
    if let Some(limits) = &inspection.limits {
        screen.paragraph("limit", &limits.sentence)?;
    }
    if let Some(sass) = report.machine_code.as_ref().and_then(|machine| machine.sass.as_ref()) {
        screen.row("machine code", &sass.issue.to_string())?;
        let looped = |l: &MachineLoop| {
            let place = l.line.as_ref().map_or("added by ptxas".to_string(), |line| line_heading(line, &l.text));
            let (instructions, slots) = (l.issue.instructions, l.issue.slots);
            format!("{}{place}: {instructions} instructions in {slots} issue slots", "  ".repeat(l.depth as usize))
        };
        let loops: Vec<_> = sass.loops.iter().map(looped).collect();
        screen.list("loops", &loops, MAX_LOOPS)?;
        let unrolled = |l: &UnrolledLoop| {
            let file = l.place.file.rsplit('/').next().unwrap_or(&l.place.file);
            let [now, rolled] = [Unrolling::Declared, Unrolling::Rolled]
                .map(|form| l.form(form).map_or(String::new(), LoopForm::figures));
            let fewest =
                l.cheapest().map_or(String::new(), |form| format!("; fewest {} {}", form.unrolling, form.figures()));
            format!("{file}:{} slots (registers) now {now}, rolled {rolled}{fewest}", l.place.line)
        };
        let unrolled: Vec<_> = report.unrolling.iter().flatten().map(unrolled).collect();
        screen.list("unrolling", &unrolled, MAX_LOOPS)?;
    } else {
        screen.row("instructions", &format!("{} of PTX", report.instructions.values().sum::<u32>()))?;
    }
    let mut accesses: Vec<_> = report.accesses.iter().collect();
    accesses.sort_by(|a, b| relative_cost(b).total_cmp(&relative_cost(a)).then(b.loops.cmp(&a.loops)));
    let accesses: Vec<_> = accesses.into_iter().map(row).collect();
    screen.list("accesses", &accesses, MAX_ACCESSES)?;
    screen.paragraphs("try", &suggestions(&inspection.advice))?;
    screen.row("more", &format!("--all, or as pictures: kernels inspect '{}'", report.instance))
}

/// Returns the suggestions with their places; the places of equal suggestions stand together.
fn suggestions(advice: &[Advice]) -> Vec<String> {
    let mut distinct: Vec<(Vec<&str>, &str)> = Vec::new();
    for Advice { place, text, .. } in advice {
        match distinct.iter_mut().find(|(_, other)| other == text) {
            Some((places, _)) => places.push(place),
            None => distinct.push((vec![place], text)),
        }
    }
    distinct.into_iter().map(|(places, text)| format!("{}: {text}", places.join(", "))).collect()
}

/// Writer that keeps to the width of the screen.
struct Screen<'a> {
    out: &'a mut dyn Write,
    /// Number of printed lines.
    printed: usize,
}

impl Screen<'_> {
    /// Prints a line, cut to the width of the screen.
    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.printed += 1;
        match text.chars().count() > COLUMNS {
            true => {
                let kept: String = text.chars().take(COLUMNS - 1).collect();
                Ok(writeln!(self.out, "{}…", kept.trim_end())?)
            }
            false => Ok(writeln!(self.out, "{}", text.trim_end())?),
        }
    }

    fn row(&mut self, name: &str, value: &str) -> Result<(), Error> {
        self.text(&format!("{name:INDENT$}{value}"))
    }

    /// Prints at most `most` values below each other, and the number of the others.
    fn list(&mut self, name: &str, values: &[String], most: usize) -> Result<(), Error> {
        let shown = if values.len() > most { most - 1 } else { values.len() };
        for (i, value) in values[..shown].iter().enumerate() {
            self.row(if i == 0 { name } else { "" }, value)?;
        }
        match values.len() - shown {
            0 => Ok(()),
            more => self.row("", &format!("… and {more} more")),
        }
    }

    /// Prints a text in lines of whole words.
    fn paragraph(&mut self, name: &str, text: &str) -> Result<(), Error> {
        wrapped(text).iter().enumerate().try_for_each(|(i, line)| self.row(if i == 0 { name } else { "" }, line))
    }

    /// Prints those of `texts` that fit above the last line of the screen, and counts the others.
    fn paragraphs(&mut self, name: &str, texts: &[String]) -> Result<(), Error> {
        for (i, text) in texts.iter().enumerate() {
            let rest = texts.len() - i;
            // The last line of the screen, and the number of the texts that do not fit.
            let reserved = 1 + usize::from(rest > 1);
            if self.printed + wrapped(text).len() + reserved > LINES {
                return self.row(if i == 0 { name } else { "" }, &format!("… and {rest} more"));
            }
            self.paragraph(if i == 0 { name } else { "" }, text)?;
        }
        Ok(())
    }
}

/// Splits a text into lines of whole words that fit beside a name.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if INDENT + line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                *line += " ";
                *line += word;
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// Formats `gemm.rs:66 for k in …`.
fn line_heading(line: &Line, text: &str) -> String {
    let file = line.file.rsplit('/').next().unwrap_or(&line.file);
    let text: String =
        if text.chars().count() > 36 { text.chars().take(35).chain(['…']).collect() } else { text.to_string() };
    format!("{file}:{} {text}", line.number).trim_end().to_string()
}

/// Returns the cost of an access as a multiple of the least, for the order of the list.
fn relative_cost(access: &AccessReport) -> f64 {
    let measured = access.measured.as_ref().map(|measured| measured.counts.fullest);
    let measured = measured.map(|request| f64::from(request.cost) / f64::from(request.least.max(1)));
    match access.cost {
        Some(Cost::Shared { ways }) => f64::from(ways),
        Some(Cost::Constant { words }) => f64::from(words),
        Some(Cost::Global { sectors, least, .. } | Cost::Local { sectors, least }) => {
            f64::from(sectors) / f64::from(least.max(1))
        }
        None => measured.unwrap_or(0.0),
    }
}

/// Formats `gemm.rs:67:9  load a  4 sectors · 3.5 measured`.
fn row(access: &AccessReport) -> String {
    let SourcePlace { file, line, column, .. } = &access.place;
    let file = file.rsplit('/').next().unwrap_or(file);
    let kind = match access.kind {
        AccessKind::Load => "load",
        AccessKind::Store => "store",
        AccessKind::Atomic => "atomic",
    };
    let name = format!("{kind} {}", access.array.as_deref().unwrap_or("?"));
    let place = format!("{file}:{line}:{column}");
    let measured = access.measured.as_ref().map_or(String::new(), |found| format!(", measured {}", found.costs()));
    let looped = if access.loops > 0 { ", in a loop" } else { "" };
    format!("{place:22} {name:14} {}{measured}{looped}", access.costs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_suggestions_are_printed_once() {
        let advice = |place: &str, text: &str| Advice { text: text.into(), at: None, place: place.into(), share: 0.0 };
        let all = [advice("a.rs:3", "pad"), advice("a.rs:9", "nest loops"), advice("b.rs:1", "pad")];
        assert_eq!(suggestions(&all), ["a.rs:3, b.rs:1: pad", "a.rs:9: nest loops"]);
    }
}
