//! The comparison of an instance with another instance, a saved page, or a PTX file.
//!
//! Two lines are equal if they differ only in the numbers of registers, values and labels.

use super::model::{CodeLine, Inspection};
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp};
use std::time::{Duration, Instant};

/// Time after which a comparison becomes coarser instead of exact.
const DEADLINE: Duration = Duration::from_secs(2);

/// The side of a comparison that alone has a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ComparedSide {
    /// The inspected instance.
    This,
    /// The instance or file of `--against`.
    Other,
}

/// The comparison's head. The lines of the other side are in the lists of the inspected instance.
#[derive(Serialize)]
pub(crate) struct Comparison {
    /// Name of the other side.
    pub name: String,
    /// Names of properties, with the values of this side and the other; empty if unknown.
    pub facts: Vec<(String, String, String)>,
}

/// The other side of a comparison. A page holds it in its JSON.
#[derive(Deserialize)]
pub(crate) struct ComparedCode {
    #[serde(default)]
    pub name: String,
    pub facts: Vec<(String, String)>,
    pub lowered: Vec<CodeLine>,
    pub optimized: Vec<CodeLine>,
    pub ptx: Vec<CodeLine>,
    pub sass: Vec<CodeLine>,
}

impl From<Inspection> for ComparedCode {
    fn from(inspection: Inspection) -> ComparedCode {
        let Inspection { report, facts, lowered, optimized, ptx, sass, .. } = inspection;
        ComparedCode { name: report.instance, facts, lowered, optimized, ptx, sass }
    }
}

impl Inspection {
    /// Marks the differences from `other` in all forms that both have.
    pub(crate) fn compare(&mut self, other: ComparedCode) {
        let merge = |these: &mut Vec<CodeLine>, others: Vec<CodeLine>| {
            if !these.is_empty() && !others.is_empty() {
                *these = merged(std::mem::take(these), others);
            }
        };
        merge(&mut self.lowered, other.lowered);
        merge(&mut self.optimized, other.optimized);
        merge(&mut self.ptx, other.ptx);
        merge(&mut self.sass, other.sass);
        let value = |facts: &[(String, String)], name: &str| {
            facts.iter().find(|(known, _)| known == name).map_or(String::new(), |(_, value)| value.clone())
        };
        let row = |(name, this): &(String, String)| (name.clone(), this.clone(), value(&other.facts, name));
        self.comparison = Some(Comparison { name: other.name, facts: self.facts.iter().map(row).collect() });
    }
}

/// Returns the lines of both sides in order; lines of one side are marked.
fn merged(these: Vec<CodeLine>, others: Vec<CodeLine>) -> Vec<CodeLine> {
    let keys = |lines: &[CodeLine]| lines.iter().map(|line| plain(&line.text)).collect::<Vec<_>>();
    let (old, new) = (keys(&others), keys(&these));
    let deadline = Instant::now() + DEADLINE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline));
    let mut all = Vec::new();
    let of_others = |all: &mut Vec<CodeLine>, range: std::ops::Range<usize>| {
        // The other side's lines of Rust are not on the page.
        let line = |line: &CodeLine| CodeLine { at: None, only: Some(ComparedSide::Other), ..line.clone() };
        all.extend(others[range].iter().map(line));
    };
    let of_these = |all: &mut Vec<CodeLine>, range: std::ops::Range<usize>| {
        all.extend(these[range].iter().map(|line| CodeLine { only: Some(ComparedSide::This), ..line.clone() }));
    };
    for op in ops {
        match op {
            DiffOp::Equal { new_index, len, .. } => all.extend_from_slice(&these[new_index..new_index + len]),
            DiffOp::Delete { old_index, old_len, .. } => of_others(&mut all, old_index..old_index + old_len),
            DiffOp::Insert { new_index, new_len, .. } => of_these(&mut all, new_index..new_index + new_len),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                of_others(&mut all, old_index..old_index + old_len);
                of_these(&mut all, new_index..new_index + new_len);
            }
        }
    }
    all
}

/// Returns a line without the numbers of registers, values, labels and addresses of machine code.
pub(super) fn plain(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '$' | '_')));
    let word = |(i, word): (usize, &str)| {
        let name = word.trim_end_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '$' | '_')));
        let rest = &word[name.len()..];
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = letters.starts_with(['%', '$']) || matches!(letters, "R" | "P" | "UR" | "UP" | "B");
        let address = i == 0 && name.len() == 4 && name.chars().all(|c| c.is_ascii_hexdigit());
        match (numbered, address) {
            (_, true) => rest.to_string(),
            (true, _) => format!("{letters}{rest}"),
            _ => word.to_string(),
        }
    };
    words.filter(|word| !word.trim().is_empty()).enumerate().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(texts: &[&str]) -> Vec<CodeLine> {
        texts.iter().map(|text| CodeLine { text: text.to_string(), ..CodeLine::default() }).collect()
    }

    #[test]
    fn numbers_of_registers_are_no_difference() {
        assert_eq!(plain("    add.u32 %r12, %r3, 4;"), plain("    add.u32 %r1, %r7, 4;"));
        assert_ne!(plain("    add.u32 %r12, %r3, 4;"), plain("    add.u32 %r12, %r3, 5;"));
        assert_eq!(plain("0010 @!P0 IADD R0, R1, R2"), plain("  0238 @!P1 IADD R5, R6, R7"));
        assert_eq!(plain("@%p1 bra $endif_3;"), plain("@%p0 bra $endif_1;"));
        assert_ne!(plain("%3: f32 = add %1, %2"), plain("%3: f32 = sub %1, %2"));
    }

    #[test]
    fn lines_of_one_side_are_marked() {
        let all = merged(lines(&["a", "b", "d"]), lines(&["a", "c", "d"]));
        let shown: Vec<_> = all.iter().map(|line| (line.text.as_str(), line.only)).collect();
        assert_eq!(
            shown,
            [("a", None), ("c", Some(ComparedSide::Other)), ("b", Some(ComparedSide::This)), ("d", None)]
        );
    }
}
