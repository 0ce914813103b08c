//! A parser for the machine code that `nvdisasm` lists: the actual cost of a kernel.
//!
//! PTX is not what runs. ptxas allocates registers, schedules instructions, folds addresses into
//! accesses, and pairs instructions for dual issue. So the cost of a loop iteration is read from
//! its output, which for Maxwell and Pascal contains all of this:
//!
//! - An instruction issues in one *slot* of its warp's scheduler; two instructions in braces share
//!   a slot. The slots of a loop's body are a lower bound of its time, whatever the memory does
//!   ([`NaturalLoop::slots`]).
//! - A loop is a natural loop of the control flow graph (`flow`, [`Listing::loops`]).
//! - An instruction reads several registers in one cycle only if they are in different *banks* or
//!   in the operand cache ([`banks`]).
//! - [`Class`] is the unit that executes an instruction.
//! - Each instruction has its line of Rust, if the PTX contains lines.
//!
//! [`Listing::read`] parses the text; this module runs no tool.

pub mod banks;
mod class;
mod flow;
mod live;
mod loops;

pub use class::Class;
pub use loops::NaturalLoop;

use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Machine code of one kernel and of the functions that it calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Number in the architecture's name, such as 61, if the listing names it.
    pub sm: Option<u16>,
    /// Instructions in the order of their addresses, without the padding after the kernel.
    pub instructions: Vec<SassInstruction>,
    /// Functions that ptxas adds and the kernel calls, such as the rare cases of a division, by
    /// their first instruction.
    pub functions: BTreeMap<usize, String>,
}

/// An instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SassInstruction {
    /// Bytes from the start of the kernel.
    pub address: u32,
    /// Guard, such as `@!P0`; empty without one.
    pub guard: String,
    /// Name with all modifiers: `LDS.U.128`.
    pub name: String,
    /// Operands in the notation of nvdisasm, without its remarks.
    pub operands: String,
    /// Whether the instruction issues together with its predecessor.
    pub paired: bool,
    /// Jump targets that the operands name, or else those that nvdisasm found: indices into
    /// [`Listing::instructions`]. A target at the end of the kernel equals their number.
    pub targets: Vec<usize>,
    /// Source line, if known.
    pub line: Option<Line>,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Line {
    /// Name in the PTX.
    pub file: String,
    /// Line number, counted from 1.
    pub number: u32,
}

impl SassInstruction {
    /// Returns the name without modifiers: `LDS`.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// Returns whether the instruction does nothing, not even wait.
    pub fn idle(&self) -> bool {
        self.opcode() == "NOP"
    }
}

impl Listing {
    /// Parses the output of `nvdisasm -c` (`-g` for lines) for a module with one kernel; returns
    /// `None` for other text.
    pub fn read(text: &str) -> Option<Listing> {
        let mut listing = Listing::default();
        let mut labels: HashMap<&str, usize> = HashMap::new();
        let mut jumps: Vec<(usize, &str)> = Vec::new();
        let mut line = None;
        for row in text.lines() {
            let row = row.trim();
            if let Some(label) = row.strip_suffix(':') {
                labels.insert(label, listing.instructions.len());
            } else if let Some(place) = row.strip_prefix("//## File ") {
                line = Line::read(place);
            } else if let Some(name) = row.strip_prefix(".type").and_then(|r| r.trim().strip_suffix(",@function")) {
                // The kernel is the first function. Called functions have no source lines.
                if !listing.instructions.is_empty() {
                    listing.functions.insert(listing.instructions.len(), name.to_string());
                }
                line = None;
            } else if row.starts_with(".headerflags") {
                listing.sm = listing.sm.or_else(|| architecture(row));
            } else if let Some((address, rest)) = row.strip_prefix("/*").and_then(|r| r.split_once("*/")) {
                let Ok(address) = u32::from_str_radix(address, 16) else { continue };
                let (inst, named) = instruction(address, rest, line.clone())?;
                jumps.extend(named.into_iter().map(|label| (listing.instructions.len(), label)));
                listing.instructions.push(inst);
            }
        }
        for (from, label) in jumps {
            listing.instructions[from].targets.extend(labels.get(label));
        }
        listing.trim();
        (!listing.instructions.is_empty()).then_some(listing)
    }

    /// Removes the padding after the kernel: a jump to itself, and `NOP`s.
    fn trim(&mut self) {
        while let Some(last) = self.instructions.last() {
            let itself = last.opcode() == "BRA" && last.targets == [self.instructions.len() - 1];
            if !last.idle() && !itself {
                break;
            }
            self.instructions.pop();
        }
    }

    /// Iterates over the instructions of `which` (indices into [`Listing::instructions`]) other
    /// than `NOP`.
    pub fn issued(&self, which: impl IntoIterator<Item = usize>) -> impl Iterator<Item = &SassInstruction> {
        which.into_iter().map(|i| &self.instructions[i]).filter(|inst| !inst.idle())
    }

    /// Counts the issue slots of `which`: instructions other than `NOP` that do not share the slot
    /// of their predecessor.
    pub fn slots(&self, which: impl IntoIterator<Item = usize>) -> u32 {
        self.issued(which).filter(|inst| !inst.paired).count() as u32
    }
}

impl Line {
    /// Parses `"src/lib.rs", line 11`.
    fn read(text: &str) -> Option<Line> {
        let (file, line) = text.rsplit_once(", line ")?;
        let number = line.split(' ').next()?.parse().ok()?;
        Some(Line { file: file.trim_matches('"').to_string(), number })
    }
}

/// Parses `61` in `.headerflags @"EF_CUDA_SM61 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM61)"`.
fn architecture(flags: &str) -> Option<u16> {
    let (_, rest) = flags.split_once("EF_CUDA_SM")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// Remark of nvdisasm after a jump whose operands do not name the target, as in
/// `SYNC (*"BRANCH_TARGETS .L_x_0,.L_x_1"*)`.
const TARGETS_REMARK: &str = "BRANCH_TARGETS ";

/// Parses the text after an address, and returns the labels that it names.
fn instruction(address: u32, text: &str, line: Option<Line>) -> Option<(SassInstruction, Vec<&str>)> {
    let text = text.trim();
    // A dual-issued pair is `{ first ;` and `second ; }`.
    let paired = text.ends_with('}');
    let text = text.trim_start_matches('{').trim_end_matches('}').trim().trim_end_matches(';').trim();
    let (text, remark) = text.split_once("(*\"").unwrap_or((text, ""));
    let (guard, rest) = match text.starts_with('@') {
        true => text.split_once(char::is_whitespace)?,
        false => ("", text),
    };
    let rest = rest.trim();
    let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let named = operands.split_once("`(").and_then(|(_, label)| label.split(')').next());
    let found = remark
        .strip_prefix(TARGETS_REMARK)
        .unwrap_or_default()
        .trim_end_matches("\"*)")
        .split(',')
        .map(str::trim)
        .filter(|label| !label.is_empty());
    let inst = SassInstruction {
        address,
        guard: guard.to_string(),
        name: name.to_string(),
        operands: operands.trim().to_string(),
        paired,
        targets: Vec::new(),
        line,
    };
    Some((inst, named.into_iter().chain(found).collect()))
}

#[cfg(test)]
mod tests;
