//! A report as text in rustc's error format: title, the line with a caret, notes, help. Errors come
//! first.

use super::path::shown_path;
use super::{Allowed, CodeLocation, ConflictSide, Finding, PtxInstruction, PtxLine, Report};
use crate::Schedule;
use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use kernel_dsl_compiler::oracle::Severity;
use kernel_dsl_compiler::source::KernelSource;
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderer = Renderer::plain();
        for (i, finding) in self.by_severity().into_iter().enumerate() {
            if i > 0 {
                f.write_str("\n\n")?;
            }
            f.write_str(&renderer.render(&groups(finding, &self.sources)))?;
        }
        for (i, allowed) in self.allowed.iter().enumerate() {
            f.write_str(if i > 0 {
                "\n"
            } else if self.findings.is_empty() {
                ""
            } else {
                "\n\n"
            })?;
            write!(f, "{allowed}")?;
        }
        if self.schedule != Schedule::InOrder {
            let Report { schedule, .. } = self;
            write!(f, "\n\nnote: blocks and warps ran {schedule}; `--order {}` repeats this run", schedule.word())?;
        }
        if self.truncated {
            write!(f, "\n\nnote: the run of `{}` was stopped here: the limit of findings is reached", self.kernel)?;
        }
        Ok(())
    }
}

impl std::error::Error for Report {}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Allowed { check, place, reason, count } = self;
        let times = if *count == 1 { "once".to_string() } else { format!("{count} times") };
        write!(f, "allowed: {check} at {place}, {times}: {reason}")
    }
}

/// Returns the finding, followed by a note for each call that inlined the location.
fn groups<'a>(finding: &'a Finding, sources: &'a [KernelSource]) -> Vec<Group<'a>> {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(&finding.message).id(finding.check.name());
    let other = finding.other.as_ref();
    // Two accesses in one function share a snippet. Otherwise each access has a snippet.
    let shared = other.and_then(|o| o.place.as_ref().map(|p| (p, o))).filter(|(p, _)| p.source == finding.place.source);
    let mut marks = vec![(&finding.place, AnnotationKind::Primary, finding.thread.to_string())];
    if let Some((place, other)) = shared.filter(|(place, _)| **place != finding.place) {
        marks.push((place, AnnotationKind::Context, other.to_string()));
    }
    let mut elements = match &finding.instruction {
        Some(instruction) => ptx_snippet(instruction, &finding.place, marks, sources),
        None => snippet(&finding.place, marks, sources),
    };
    match other {
        Some(ConflictSide { place: Some(place), .. }) if shared.is_none() => {
            let other = finding.other.as_ref().map(ConflictSide::to_string).unwrap_or_default();
            elements.extend(snippet(place, vec![(place, AnnotationKind::Context, other)], sources));
        }
        Some(other) if other.place.as_ref().is_none_or(|p| *p == finding.place) => {
            elements.push(Level::NOTE.message(format!("the other side: {other}")).into());
        }
        _ => {}
    }
    if let Some(values) = &finding.values {
        elements.push(Level::NOTE.message(values.to_string()).into());
    }
    if !finding.others.is_empty() {
        elements.push(Level::NOTE.message(format!("and with {}", others(&finding.others))).into());
    }
    if !finding.ptx.is_empty() {
        elements.push(Level::NOTE.message(ptx(&finding.ptx)).into());
    }
    if finding.count > 1 {
        elements.push(Level::NOTE.message(format!("this happened {} times here", finding.count)).into());
    }
    if let Some(PtxInstruction { origin: Some(origin), .. }) = &finding.instruction {
        elements.push(Level::NOTE.message(format!("compiled from: {origin}")).into());
    }
    // The help texts advise on Rust, so a finding in PTX has none.
    if let (Some(help), None) = (finding.check.help(), &finding.instruction) {
        elements.push(Level::HELP.message(help).into());
    }
    let calls = finding.place.callers.iter().map(|caller| {
        let title = Level::NOTE.secondary_title(format!("inlined into `{}` here", caller.function));
        title.elements(snippet(caller, vec![(caller, AnnotationKind::Primary, String::new())], sources))
    });
    std::iter::once(title.elements(elements)).chain(calls).collect()
}

/// The maximum number of PTX lines shown: unrolled loops have many.
const PTX_LINES: usize = 3;

/// Describes the location in the PTX.
fn ptx(lines: &[PtxLine]) -> String {
    let shown = lines.iter().take(PTX_LINES).map(|PtxLine { line, text }| format!("line {line}: {text}"));
    let more = lines.len().saturating_sub(PTX_LINES);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("in the PTX, {}{rest}", shown.collect::<Vec<_>>().join("; "))
}

/// Lists further locations with their accesses.
fn others(others: &[ConflictSide]) -> String {
    let other = |other: &ConflictSide| match &other.place {
        Some(place) => format!("{place}: {other}"),
        None => other.to_string(),
    };
    others.iter().map(other).collect::<Vec<_>>().join("; and with ")
}

/// Returns the line of a PTX instruction, or the instruction as printed if the text of its file is
/// missing.
fn ptx_snippet<'a>(
    instruction: &'a PtxInstruction,
    place: &'a CodeLocation,
    marks: Vec<(&'a CodeLocation, AnnotationKind, String)>,
    sources: &'a [KernelSource],
) -> Vec<Element<'a>> {
    if sources.get(place.source).is_some() {
        return snippet(place, marks, sources);
    }
    let path = format!("PTX of `{}`", place.function);
    let labels = marks.into_iter().map(|(.., label)| label);
    if place.line == 0 {
        let notes = std::iter::once(format!("`{}`", instruction.text)).chain(labels);
        let position = Element::from(Origin::path(path));
        return std::iter::once(position).chain(notes.map(|note| Level::NOTE.message(note).into())).collect();
    }
    let annotations = labels.map(|label| AnnotationKind::Primary.span(0..instruction.text.len()).label(label));
    let text = Snippet::source(instruction.text.as_str()).line_start(place.line as usize).path(path);
    vec![text.annotations(annotations).into()]
}

/// Returns the lines of one function with annotations, or only the position if its text is not
/// known.
fn snippet<'a>(
    place: &'a CodeLocation,
    marks: Vec<(&'a CodeLocation, AnnotationKind, String)>,
    sources: &'a [KernelSource],
) -> Vec<Element<'a>> {
    let position = || {
        let function = || place.function.as_str().into();
        let origin = Origin::path(if place.file.is_empty() { function() } else { shown_path(&place.file) });
        origin.line(place.line as usize).char_column(place.column as usize)
    };
    let Some(source) = sources.get(place.source).filter(|s| !s.text.is_empty()) else {
        let mut elements: Vec<Element<'a>> = vec![position().into()];
        elements.extend(marks.into_iter().filter(|m| !m.2.is_empty()).map(|m| Level::NOTE.message(m.2).into()));
        return elements;
    };
    let annotations = marks.into_iter().filter_map(|(place, kind, label)| {
        let start = byte(source, place.line, place.column)?;
        let end = byte(source, place.end_line, place.end_column)?.max(start);
        let annotation: Annotation<'a> = kind.span(start..end);
        Some(if label.is_empty() { annotation } else { annotation.label(label) })
    });
    let path = if source.file.is_empty() { None } else { Some(shown_path(&source.file)) };
    let text = Snippet::source(source.text.join("\n")).line_start(source.line as usize).path(path);
    vec![text.annotations(annotations).into()]
}

/// Returns the byte offset in the joined text of `source` of a line and column in its file.
fn byte(source: &KernelSource, line: u32, column: u32) -> Option<usize> {
    let offset = line.checked_sub(source.line)? as usize;
    let before: usize = source.text.get(..offset)?.iter().map(|l| l.len() + 1).sum();
    let text = source.text.get(offset)?;
    let within = text.char_indices().nth(column.saturating_sub(1) as usize).map_or(text.len(), |(at, _)| at);
    Some(before + within)
}

impl fmt::Display for ConflictSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.thread, self.action)
    }
}
