//! The IR after each pass, as changes of the lines before it. A line whose values only have other
//! numbers is no change.

use super::compare::plain;
use kernel_dsl::compiler::Errors;
use kernel_dsl::compiler::ir::Kernel;
use kernel_dsl::compiler::passes;
use serde::Serialize;
use similar::{Algorithm, DiffOp};
use std::time::{Duration, Instant};

/// Time after which a difference becomes coarser instead of exact.
const DEADLINE: Duration = Duration::from_millis(100);
/// Largest size of the inserted lines of all passes in bytes, which bounds the page.
const MAX_TEXT_BYTES: usize = 1_000_000;

/// A pass and what it changed.
#[derive(Serialize)]
pub(crate) struct PassStep {
    pub name: &'static str,
    /// Changes of the lines before the pass; empty if nothing changed, and `null` if the page has
    /// no room for them.
    pub changes: Option<Vec<LineChange>>,
}

/// Change of lines, in their order.
#[derive(PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum LineChange {
    /// Lines that stay.
    Kept(u32),
    /// Lines of the IR before the pass that are gone.
    Removed([u32; 1]),
    /// A new line.
    Inserted(String),
    /// A line whose values have new numbers.
    Renumbered { to: String },
}

/// Runs the passes on IR as lowered, and returns their changes.
pub(super) fn of(lowered: &Kernel) -> Result<Vec<PassStep>, Errors> {
    let (mut steps, mut bytes) = (Vec::new(), 0);
    let mut before = lines(lowered);
    passes::optimize_with(lowered.clone(), |pass, kernel| {
        let after = lines(kernel);
        let changes = changes(&before, &after);
        let inserted = |change: &LineChange| match change {
            LineChange::Inserted(line) | LineChange::Renumbered { to: line } => line.len(),
            _ => 0,
        };
        bytes += changes.iter().map(inserted).sum::<usize>();
        steps.push(PassStep { name: pass.name, changes: (bytes <= MAX_TEXT_BYTES).then_some(changes) });
        before = after;
    })?;
    Ok(steps)
}

fn lines(kernel: &Kernel) -> Vec<String> {
    kernel.located_lines().into_iter().map(|line| line.text).collect()
}

/// Returns the changes from `before` to `after`; none if both are equal.
fn changes(before: &[String], after: &[String]) -> Vec<LineChange> {
    if before == after {
        return Vec::new();
    }
    let plain = |lines: &[String]| lines.iter().map(|line| plain(line)).collect::<Vec<_>>();
    let (old, new, deadline) = (plain(before), plain(after), Instant::now() + DEADLINE);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline));
    let mut all = Vec::new();
    for op in ops {
        let (removed, inserted) = match op {
            DiffOp::Equal { old_index, new_index, len } => {
                for (before, after) in before[old_index..old_index + len].iter().zip(&after[new_index..]) {
                    match all.last_mut() {
                        _ if before != after => all.push(LineChange::Renumbered { to: after.clone() }),
                        Some(LineChange::Kept(lines)) => *lines += 1,
                        _ => all.push(LineChange::Kept(1)),
                    }
                }
                continue;
            }
            DiffOp::Delete { old_len, .. } => (old_len, 0..0),
            DiffOp::Insert { new_index, new_len, .. } => (0, new_index..new_index + new_len),
            DiffOp::Replace { old_len, new_index, new_len, .. } => (old_len, new_index..new_index + new_len),
        };
        if removed > 0 {
            all.push(LineChange::Removed([removed as u32]));
        }
        all.extend(after[inserted].iter().cloned().map(LineChange::Inserted));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_rebuild_the_lines() {
        let lines = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
        let (before, after) = (lines("a b %1 d e"), lines("a x y %2 e f"));
        let changes = changes(&before, &after);
        let (mut from, mut built) = (before.iter().cloned(), Vec::new());
        for change in &changes {
            match change {
                LineChange::Kept(n) => built.extend(from.by_ref().take(*n as usize)),
                LineChange::Removed([n]) => drop(from.by_ref().take(*n as usize).collect::<Vec<_>>()),
                LineChange::Inserted(line) => built.push(line.clone()),
                LineChange::Renumbered { to } => built.push(from.next().map(|_| to.clone()).unwrap()),
            }
        }
        assert_eq!(built, after);
        assert!(changes.contains(&LineChange::Renumbered { to: "%2".to_string() }), "{changes:?}");
        assert_eq!(from.next(), None);
        assert_eq!(super::changes(&before, &before), []);
    }
}
