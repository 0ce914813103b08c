//! The comparison of an instance with another instance, a saved page, or a PTX file.
//!
//! Two lines are equal if they differ only in white space, in numbers of registers and values, and
//! in names of labels and parameters. Comments and empty lines are not compared.

use super::model::{CodeLine, Inspection};
use serde::{Deserialize, Serialize};
use similar::{Algorithm, DiffOp};
use std::time::{Duration, Instant};

/// Time after which a comparison becomes coarser instead of exact.
const DEADLINE: Duration = Duration::from_secs(2);

/// The side of a comparison whose line the other side lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ComparedSide {
    /// The inspected instance.
    This,
    /// The instance or file of `--against`.
    Other,
}

/// The head of a comparison with the other side: the instance or file of `--against`. That side's
/// lines are in the lists of the inspected instance.
#[derive(Serialize)]
pub(crate) struct ComparisonHead {
    /// Name of the instance or file of `--against`.
    pub name: String,
    /// Names of properties, with the values of this side and the other; empty if unknown.
    pub facts: Vec<(String, String, String)>,
}

/// The other side of a comparison. A page holds this code in its JSON.
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
        self.comparison = Some(ComparisonHead { name: other.name, facts: self.facts.iter().map(row).collect() });
    }
}

/// Returns the lines of both sides in order; lines of one side are marked. Of the other side only
/// the compared lines are kept.
fn merged(these: Vec<CodeLine>, others: Vec<CodeLine>) -> Vec<CodeLine> {
    let ((old_lines, old), (new_lines, new)) = (compared(&others), compared(&these));
    let deadline = Instant::now() + DEADLINE;
    let ops = similar::capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(deadline));
    let of_others = |all: &mut Vec<CodeLine>, start: usize, len: usize| {
        // The other side's lines of Rust are not on the page.
        let line = |i: &usize| CodeLine { at: None, only: Some(ComparedSide::Other), ..others[*i].clone() };
        all.extend(old_lines[start..start + len].iter().map(line));
    };
    let mut rest = 0;
    let mut of_these = |all: &mut Vec<CodeLine>, (start, len): (usize, usize), only: Option<ComparedSide>| {
        for &i in &new_lines[start..start + len] {
            // Comments before the line.
            all.extend_from_slice(&these[rest..i]);
            all.push(CodeLine { only, ..these[i].clone() });
            rest = i + 1;
        }
    };
    let (mut all, this) = (Vec::new(), Some(ComparedSide::This));
    for op in ops {
        match op {
            DiffOp::Equal { new_index, len, .. } => of_these(&mut all, (new_index, len), None),
            DiffOp::Delete { old_index, old_len, .. } => of_others(&mut all, old_index, old_len),
            DiffOp::Insert { new_index, new_len, .. } => of_these(&mut all, (new_index, new_len), this),
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                of_others(&mut all, old_index, old_len);
                of_these(&mut all, (new_index, new_len), this);
            }
        }
    }
    all.extend_from_slice(&these[rest..]);
    all
}

/// Returns the indices of the lines to compare, and the text by which each is compared.
fn compared(lines: &[CodeLine]) -> (Vec<usize>, Vec<String>) {
    let parameter = |line: &CodeLine| {
        let declared = line.text.trim().strip_prefix(".param")?;
        Some(declared.split_whitespace().next_back()?.trim_end_matches(',').to_string())
    };
    let parameters: Vec<String> = lines.iter().filter_map(parameter).collect();
    let is_code = |text: &str| !text.is_empty() && !text.starts_with("//");
    let code = lines.iter().enumerate().filter(|(_, line)| is_code(line.text.trim()));
    code.map(|(i, line)| (i, numbered(&line.text, &parameters))).unzip()
}

/// Returns a line without the numbers of registers, values and addresses of machine code, and
/// without the names of labels.
pub(super) fn plain(text: &str) -> String {
    numbered(text, &[])
}

/// Returns a line as [`plain`] does, with the number of each parameter as its name.
fn numbered(text: &str, parameters: &[String]) -> String {
    let words = text.split_inclusive(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '$' | '_')));
    let word = |(i, word): (usize, &str)| {
        let name = word.trim_end_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '%' | '$' | '_')));
        let rest = word[name.len()..].replace(char::is_whitespace, " ");
        let letters = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let numbered = letters.starts_with('%') || matches!(letters, "R" | "P" | "UR" | "UP" | "B");
        let address = i == 0 && name.len() == 4 && name.chars().all(|c| c.is_ascii_hexdigit());
        if address {
            return rest;
        }
        if name.starts_with('$') {
            return format!("${rest}");
        }
        if let Some(number) = parameters.iter().position(|parameter| parameter == name) {
            return format!("parameter {number}{rest}");
        }
        format!("{}{rest}", if numbered { letters } else { name })
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
        assert_eq!(plain("@%p1 bra $endif_3;"), plain("@%p0 bra \t$L__BB0_2;"));
        assert_ne!(plain("%3: f32 = add %1, %2"), plain("%3: f32 = sub %1, %2"));
    }

    #[test]
    fn comments_and_names_of_parameters_are_no_difference() {
        let ours = [".param .u64 x,", ".param .u64 y", "// +1 let", "ld.param.u64 %rd0, [y];", "ret;"];
        let theirs =
            ["// NVRTC", "", ".param .u64 k_param_0,", ".param .u64 k_param_1", "ld.param.u64 \t%rd2, [k_param_1];"];
        let all = merged(lines(&ours), lines(&theirs));
        let shown: Vec<_> = all.iter().map(|line| (line.text.as_str(), line.only.is_some())).collect();
        assert_eq!(shown, [0, 1, 2, 3, 4].map(|i| (ours[i], i == 4)));
        let other = merged(lines(&ours), lines(&[theirs[2], theirs[3], "ld.param.u64 %rd2, [k_param_0];", "ret;"]));
        assert_eq!(other.iter().filter(|line| line.only.is_some()).count(), 2);
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
