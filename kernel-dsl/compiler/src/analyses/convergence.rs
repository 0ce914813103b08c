//! Rejects collective operations of a warp or block that not all threads reach.
//!
//! Only proven mistakes are errors: the index of a thread must decide whether the thread arrives.
//! Each source location gives one error, even if lowering made many operations from it. The trace
//! lists each line once, from the operation back to the point where threads begin to diverge.

use super::uniformity::{DivergenceStep, UniformScope, Uniformity, UniformityEvent, UniformityVerdict};
use crate::error::Error;
use crate::ir::{Inst, Kernel, Location, Op, Region, SourceLocation};
use std::collections::BTreeMap;

/// Operation that not all required threads reach.
struct DivergentOperations<'k> {
    inst: &'k Inst,
    scope: UniformScope,
}

/// Returns an error for each operation of `kernel` that only some of the required threads reach.
pub(super) fn divergent_operations(kernel: &Kernel) -> Vec<Error> {
    if !has_collective(&kernel.body) {
        return Vec::new();
    }
    let uniformity = Uniformity::new(kernel);
    let mut found = BTreeMap::new();
    collect(&kernel.body, &uniformity, &mut found);
    let mut errors: Vec<(Location, Error)> = found
        .into_values()
        .map(|divergent| (divergent.inst.location, error(kernel, &uniformity, &divergent)))
        .collect();
    errors.sort_by_key(|(location, _)| *location);
    errors.into_iter().map(|(_, error)| error).collect()
}

/// Returns whether the region contains a collective operation of a warp or block.
fn has_collective(region: &Region) -> bool {
    region.insts.iter().any(|inst| needs(&inst.op).is_some() || inst.op.regions().into_iter().any(has_collective))
}

/// Returns the scope whose threads must be converged.
fn needs(op: &Op) -> Option<UniformScope> {
    match op {
        Op::GridSync => Some(UniformScope::Grid),
        Op::BlockSync => Some(UniformScope::Block),
        Op::WarpSync | Op::Shuffle { .. } | Op::Vote { .. } | Op::Match(_) | Op::Reduce(..) => Some(UniformScope::Warp),
        _ => None,
    }
}

/// Collects the first operation at each location among those that need the widest scope.
fn collect<'k>(
    region: &'k Region,
    uniformity: &Uniformity<'k>,
    found: &mut BTreeMap<Location, DivergentOperations<'k>>,
) {
    for inst in &region.insts {
        if let Some(scope) = needs(&inst.op)
            && uniformity.control_at(inst, scope) == Some(UniformityVerdict::Varies)
            && found.get(&inst.location).is_none_or(|other| scope < other.scope)
        {
            found.insert(inst.location, DivergentOperations { inst, scope });
        }
        inst.op.regions().into_iter().for_each(|region| collect(region, uniformity, found));
    }
}

fn error(kernel: &Kernel, uniformity: &Uniformity, divergent: &DivergentOperations) -> Error {
    let at = &kernel.locations[divergent.inst.location.0 as usize];
    let name = operation(kernel, at).unwrap_or_else(|| match divergent.inst.op {
        Op::GridSync => "grid::sync".to_string(),
        Op::BlockSync => "block::sync".to_string(),
        Op::WarpSync => "warp::sync".to_string(),
        Op::Shuffle { .. } => "a shuffle".to_string(),
        Op::Match(_) => "a match of lanes".to_string(),
        Op::Reduce(..) => "a reduction".to_string(),
        _ => "a vote".to_string(),
    });
    let (threads, scope) = match divergent.scope {
        UniformScope::Grid => ("threads of the grid", UniformScope::Grid),
        UniformScope::Block => ("threads of the block", UniformScope::Block),
        UniformScope::Warp | UniformScope::Lane => ("lanes of the warp", UniformScope::Warp),
    };
    let steps = uniformity.why(divergent.inst, scope);
    let mut error = Error::at(
        &kernel.sources[at.source as usize],
        at.span,
        format!("`{name}` must be reached by all {threads}, but some may not reach it"),
    );
    error.notes = trace(kernel, &steps);
    error.help(match steps.first().map(|s| s.what) {
        Some(UniformityEvent::Trips) => format!(
            "let all {threads} run the same number of iterations, and put the work of some under an `if` without the \
             `{name}`"
        ),
        Some(UniformityEvent::Left) => {
            format!("let all {threads} continue, and put the work of some under an `if` without the `{name}`")
        }
        _ => format!(
            "move the `{name}` to a place that all {threads} reach, and keep the work of some under its condition"
        ),
    })
}

/// Returns the function called at a location, as the kernel writes it.
fn operation(kernel: &Kernel, at: &SourceLocation) -> Option<String> {
    let line = kernel.sources[at.source as usize].line_text(u32::from(at.span.line))?;
    let from: String = line.chars().skip(usize::from(at.span.column).checked_sub(1)?).collect();
    let (name, _) = from.split_once('(')?;
    let plain = |c: char| c.is_alphanumeric() || "_:.<> ".contains(c);
    (!name.is_empty() && name.chars().all(plain)).then(|| name.trim().to_string())
}

/// Returns each line of the trace, once.
fn trace(kernel: &Kernel, steps: &[DivergenceStep]) -> Vec<String> {
    let line = |step: &DivergenceStep| {
        let at = &kernel.locations[step.location.0 as usize];
        (at.source, at.span.line)
    };
    let mut shown_lines: Vec<(u32, u16)> = Vec::new();
    let mut notes = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let at = line(step);
        if shown_lines.contains(&at) {
            continue;
        }
        shown_lines.push(at);
        let source = &kernel.sources[at.0 as usize];
        let (code, number) = (source.line_code(u32::from(at.1)), source.line + u32::from(at.1));
        let of = if at.0 == 0 { String::new() } else { format!("`{}`, ", source.name) };
        let code = if code.is_empty() { String::new() } else { format!(", `{code}`") };
        // All remaining steps are on this line, so threads begin to diverge here.
        let root = steps[i..].iter().all(|s| line(s) == at);
        let what = match step.what {
            UniformityEvent::Computed if root && steps[steps.len() - 1].what == UniformityEvent::Index => {
                "differs between threads"
            }
            UniformityEvent::Index => "differs between threads",
            UniformityEvent::Memory => "is loaded from memory",
            UniformityEvent::Computed => "depends on the thread",
            UniformityEvent::Branch => "threads diverge",
            UniformityEvent::Trips => "threads run different numbers of iterations",
            UniformityEvent::Left => "some threads leave, and others continue",
        };
        notes.push(format!("{of}line {number}{code}: {what}"));
    }
    notes
}
