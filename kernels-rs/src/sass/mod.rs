//! Machine code as `nvdisasm` lists it, read back: what a kernel really costs.
//!
//! PTX is not what runs. ptxas allocates registers, orders instructions, folds addresses into accesses and pairs
//! instructions that can issue together, so the question "what does an iteration of this loop cost?" is put to its
//! output, which for Pascal and Maxwell has all of that in plain sight:
//!
//! * an instruction issues in one *slot* of its warp's scheduler; two that nvdisasm puts in braces share one. Slots of a
//!   loop's body bound its time from below, whatever the memory does ([`Loop::slots`]);
//! * an instruction with three registers reads them in one cycle only if they come from different *banks* (register number
//!   modulo 4), or from the operand cache, which holds what the instruction before it read in the same position and marked
//!   `.reuse` ([`banks::conflicts`]; the rule is what maxas found of Maxwell);
//! * which line of Rust it comes from, where the PTX says so.
//!
//! [`Listing::read`] reads the text; nothing here runs a tool.

pub mod banks;
mod loops;

pub use loops::Loop;

use std::collections::HashMap;

/// The machine code of one kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// In the order of their addresses. What stands behind the kernel to fill a line of the cache is not among them.
    pub instructions: Vec<Instruction>,
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
    /// Its operands as nvdisasm writes them.
    pub operands: String,
    /// Whether it issues together with the one before it.
    pub paired: bool,
    /// Where it jumps to, if it jumps to a place in the kernel: an index into [`Listing::instructions`].
    pub target: Option<usize>,
    /// File and line that it comes from, where that is known.
    pub line: Option<(String, u32)>,
}

impl Instruction {
    /// Its name without modifiers: `LDS`.
    pub fn opcode(&self) -> &str {
        self.name.split('.').next().unwrap_or(&self.name)
    }

    /// Whether it does nothing, not even wait.
    fn idle(&self) -> bool {
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
                line = place_of(place);
            } else if let Some((address, rest)) = row.strip_prefix("/*").and_then(|r| r.split_once("*/")) {
                let Ok(address) = u32::from_str_radix(address, 16) else { continue };
                let (inst, jump) = instruction(address, rest, line.clone())?;
                if let Some(label) = jump {
                    jumps.push((listing.instructions.len(), label));
                }
                listing.instructions.push(inst);
            }
        }
        for (from, label) in jumps {
            listing.instructions[from].target = labels.get(label).copied();
        }
        listing.trim();
        (!listing.instructions.is_empty()).then_some(listing)
    }

    /// Takes off what fills the last line of the cache: a jump to itself, and what does nothing.
    fn trim(&mut self) {
        while let Some(last) = self.instructions.last() {
            let itself = last.opcode() == "BRA" && last.target == Some(self.instructions.len() - 1);
            if !last.idle() && !itself {
                break;
            }
            self.instructions.pop();
        }
    }

    /// Issue slots of `range`: instructions, but for those that share one with their predecessor and those that do nothing.
    pub fn slots(&self, range: std::ops::Range<usize>) -> u32 {
        self.instructions[range].iter().filter(|i| !i.paired && !i.idle()).count() as u32
    }
}

/// Reads `"src/lib.rs", line 11`.
fn place_of(text: &str) -> Option<(String, u32)> {
    let (file, line) = text.rsplit_once(", line ")?;
    let number = line.split(' ').next()?.parse().ok()?;
    Some((file.trim_matches('"').to_string(), number))
}

/// Reads what stands behind an address, and the label that it jumps to.
fn instruction(address: u32, text: &str, line: Option<(String, u32)>) -> Option<(Instruction, Option<&str>)> {
    let text = text.trim();
    // A pair is `{ first ;` and `second ; }`.
    let paired = text.ends_with('}');
    let text = text.trim_start_matches('{').trim_end_matches('}').trim().trim_end_matches(';').trim();
    let (guard, rest) = match text.starts_with('@') {
        true => text.split_once(char::is_whitespace)?,
        false => ("", text),
    };
    let rest = rest.trim();
    let (name, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let label = operands.split_once("`(").and_then(|(_, label)| label.split(')').next());
    let inst = Instruction {
        address,
        guard: guard.to_string(),
        name: name.to_string(),
        operands: operands.trim().to_string(),
        paired,
        target: None,
        line,
    };
    Some((inst, label))
}

#[cfg(test)]
mod tests;
