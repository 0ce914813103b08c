//! Machine code as `nvdisasm` lists it, read back: what a kernel really costs.
//!
//! PTX is not what runs. ptxas allocates registers, orders instructions, folds addresses into accesses and pairs
//! instructions that can issue together, so the question "what does an iteration of this loop cost?" is put to its
//! output, which for Pascal and Maxwell has all of that in plain sight:
//!
//! * an instruction issues in one *slot* of its warp's scheduler; two that nvdisasm puts in braces share one. Slots of a
//!   loop's body bound its time from below, whatever the memory does ([`Loop::slots`]);
//! * a loop is what a jump back repeats, found in the graph of all jumps (`flow`, [`Listing::loops`]);
//! * an instruction that reads several registers reads them in one cycle only if they come from different *banks*, or from
//!   the operand cache ([`banks`]);
//! * what executes it: [`Class`];
//! * which line of Rust it comes from, where the PTX says so.
//!
//! [`Listing::read`] reads the text; nothing here runs a tool.

pub mod banks;
mod class;
mod flow;
mod loops;

pub use class::Class;
pub use loops::Loop;

use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// The machine code of one kernel, and of what it calls.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// The number in its architecture's name, 61, where the listing says it.
    pub sm: Option<u16>,
    /// In the order of their addresses. What stands behind the kernel to fill a line of the cache is not among them.
    pub instructions: Vec<Instruction>,
    /// The functions of ptxas's own that the kernel calls, such as a division's rare cases, by where they begin.
    pub functions: BTreeMap<usize, String>,
}

/// An instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Bytes from the start of the kernel.
    pub address: u32,
    /// Its guard, such as `@!P0`; empty where there is none.
    pub guard: String,
    /// Its name with all modifiers: `LDS.U.128`.
    pub name: String,
    /// Its operands as nvdisasm writes them, without what it remarks.
    pub operands: String,
    /// Whether it issues together with the one before it.
    pub paired: bool,
    /// The places in the kernel that it names, to jump there now or later: indices into [`Listing::instructions`], or how many
    /// these are. Of a jump whose operands do not tell, those that nvdisasm has found.
    pub targets: Vec<usize>,
    /// File and line that it comes from, where that is known.
    pub line: Option<Line>,
}

/// A line of a source file.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Line {
    /// As the PTX names it.
    pub file: String,
    /// From 1.
    pub number: u32,
}

impl Instruction {
    /// Its name without modifiers: `LDS`.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// Whether it does nothing, not even wait.
    pub fn idle(&self) -> bool {
        self.opcode() == "NOP"
    }
}

impl Listing {
    /// Reads what `nvdisasm -c` (`-g` for lines) prints of a module with one kernel; `None` if it is not that.
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
                // The kernel itself is the first. What it calls comes from no line.
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

    /// Takes off what fills the last line of the cache: a jump to itself, and what does nothing.
    fn trim(&mut self) {
        while let Some(last) = self.instructions.last() {
            let itself = last.opcode() == "BRA" && last.targets == [self.instructions.len() - 1];
            if !last.idle() && !itself {
                break;
            }
            self.instructions.pop();
        }
    }

    /// Instructions of `which` (indices into [`Listing::instructions`]) but for those that do nothing.
    pub fn busy(&self, which: impl IntoIterator<Item = usize>) -> impl Iterator<Item = &Instruction> {
        which.into_iter().map(|i| &self.instructions[i]).filter(|inst| !inst.idle())
    }

    /// Issue slots of `which`: instructions, but for those that share one with their predecessor and those that do nothing.
    pub fn slots(&self, which: impl IntoIterator<Item = usize>) -> u32 {
        self.busy(which).filter(|inst| !inst.paired).count() as u32
    }
}

impl Line {
    /// Reads `"src/lib.rs", line 11`.
    fn read(text: &str) -> Option<Line> {
        let (file, line) = text.rsplit_once(", line ")?;
        let number = line.split(' ').next()?.parse().ok()?;
        Some(Line { file: file.trim_matches('"').to_string(), number })
    }
}

/// Reads `61` in `.headerflags @"EF_CUDA_SM61 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM61)"`.
fn architecture(flags: &str) -> Option<u16> {
    let (_, rest) = flags.split_once("EF_CUDA_SM")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    digits.parse().ok()
}

/// What nvdisasm writes behind a jump whose operands do not tell where it leads, as in
/// `SYNC (*"BRANCH_TARGETS .L_x_0,.L_x_1"*)`.
const FOUND: &str = "BRANCH_TARGETS ";

/// Reads what stands behind an address, and the labels that it names.
fn instruction(address: u32, text: &str, line: Option<Line>) -> Option<(Instruction, Vec<&str>)> {
    let text = text.trim();
    // A pair is `{ first ;` and `second ; }`.
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
        .strip_prefix(FOUND)
        .unwrap_or_default()
        .trim_end_matches("\"*)")
        .split(',')
        .map(str::trim)
        .filter(|label| !label.is_empty());
    let inst = Instruction {
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
