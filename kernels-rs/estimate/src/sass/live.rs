//! The registers that hold a value at each instruction, on Maxwell and Pascal.
//!
//! A register is live where some path leads to a read of its value. The reads and writes of an
//! instruction follow from its name and operands: the first register operand is the destination,
//! unless the instruction stores, jumps or sets predicates only. An operand has two or four
//! registers where the name says so (`.64`, `.128`, `f64`), and an address in global memory has two
//! (`.E`). A guarded instruction keeps the old value for the other lanes.

use super::flow::ControlFlowGraph;
use super::{Listing, SassInstruction};

/// A set of registers, by number.
type RegisterSet = [u64; 4];

impl Listing {
    /// Returns the number of live registers at each instruction: the larger of the numbers before
    /// and after it. Returns `None` if the listing's machine is unknown, or neither Maxwell nor
    /// Pascal.
    pub fn live_registers(&self) -> Option<Vec<u32>> {
        if !matches!(self.sm, Some(50..70)) {
            return None;
        }
        let flow = ControlFlowGraph::of(self);
        let effects: Vec<_> = self.instructions.iter().map(RegisterEffect::of).collect();
        let mut before = vec![RegisterSet::default(); effects.len()];
        let after = |before: &[RegisterSet], at: usize| {
            flow.next[at].iter().fold(RegisterSet::default(), |all, next| union(all, before[*next]))
        };
        loop {
            let mut changed = false;
            for at in (0..effects.len()).rev() {
                let RegisterEffect { reads, writes, partial } = effects[at];
                let mut live = after(&before, at);
                if !partial {
                    live = std::array::from_fn(|i| live[i] & !writes[i]);
                }
                live = union(live, reads);
                changed |= live != before[at];
                before[at] = live;
            }
            if !changed {
                break;
            }
        }
        let count = |set: RegisterSet| set.iter().map(|word| word.count_ones()).sum::<u32>();
        let live = |at: usize| count(before[at]).max(count(union(after(&before, at), effects[at].writes)));
        Some((0..effects.len()).map(live).collect())
    }
}

fn union(a: RegisterSet, b: RegisterSet) -> RegisterSet {
    std::array::from_fn(|i| a[i] | b[i])
}

/// Registers that an instruction reads and writes.
#[derive(Clone, Copy, Default)]
struct RegisterEffect {
    reads: RegisterSet,
    writes: RegisterSet,
    /// Whether the old values remain in some lanes.
    partial: bool,
}

impl RegisterEffect {
    fn of(inst: &SassInstruction) -> RegisterEffect {
        let mut effect = RegisterEffect { partial: !inst.guard.is_empty(), ..RegisterEffect::default() };
        let opcode = inst.opcode();
        let words: Vec<&str> = inst.name.split('.').skip(1).collect();
        let has = |word: &str| words.contains(&word);
        let vector = if has("128") {
            4
        } else if has("64") {
            2
        } else {
            1
        };
        let double = matches!(opcode, "DADD" | "DMUL" | "DFMA" | "DMNMX" | "DSETP" | "DSET");
        // Conversions name the type of the result, then that of the operand.
        let types: Vec<&&str> = words.iter().filter(|w| is_type(w)).collect();
        let converts = matches!(opcode, "F2F" | "F2I" | "I2F" | "I2I");
        let wide = |ty: Option<&&&str>| if ty.is_some_and(|ty| ty.ends_with("64")) { 2 } else { 1 };
        let memory = matches!(
            opcode,
            "LDG" | "LDS" | "LDL" | "LDC" | "LD" | "STG" | "STS" | "STL" | "ST" | "ATOM" | "ATOMS" | "RED"
        );
        let (to, from) = match () {
            () if double => (2, 2),
            () if converts => (wide(types.first()), wide(types.get(1))),
            () if memory => (vector, vector),
            () if opcode == "CS2R" => (2, 1),
            () => (1, 1),
        };
        let has_result = !opcode.ends_with("SETP")
            && !matches!(
                opcode,
                "STG" | "STS" | "STL" | "ST" | "RED" | "FCHK" | "BRA" | "BRX" | "JMP" | "JMX" | "CAL" | "R2P" | "BAR"
            );
        let mut result = has_result;
        for operand in inst.operands.split(',').map(str::trim) {
            if let Some((_, address)) = operand.split_once('[') {
                // In `c[0x0][R2+0x8]` the register is in the second brackets.
                let address = address.rsplit_once('[').map_or(address, |(_, last)| last);
                if let Some(register) = number(address) {
                    mark(&mut effect.reads, register, if has("E") { 2 } else { 1 });
                }
                result = false;
            } else if let Some(register) = number(operand.trim_start_matches(['-', '~', '|'])) {
                match std::mem::take(&mut result) {
                    true => mark(&mut effect.writes, register, to),
                    false => mark(&mut effect.reads, register, from),
                }
            } else if !is_predicate(operand) {
                // `RZ` as the destination, or a constant.
                result = false;
            }
        }
        effect
    }
}

/// Adds `count` registers, starting with `first`.
fn mark(set: &mut RegisterSet, first: u32, count: u32) {
    for register in first..(first + count).min(255) {
        set[register as usize / 64] |= 1 << (register % 64);
    }
}

/// Returns 12 for `R12.reuse`; `None` for `RZ` and other operands.
fn number(operand: &str) -> Option<u32> {
    let digits = operand.strip_prefix('R')?;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok().filter(|register| *register < 255)
}

fn is_predicate(operand: &str) -> bool {
    let name = operand.trim_start_matches('!');
    name.strip_prefix('P').is_some_and(|n| n == "T" || n.parse::<u8>().is_ok())
}

/// Returns whether a word of a name is a type, such as `F64` or `S32`.
fn is_type(word: &str) -> bool {
    word.strip_prefix(['F', 'S', 'U']).is_some_and(|bits| matches!(bits, "8" | "16" | "32" | "64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(code: &str) -> Vec<u32> {
        let rows = code.lines().enumerate().map(|(i, row)| match row.strip_suffix(':') {
            Some(_) => format!("{row}\n"),
            None => format!("        /*{:04x}*/                   {row} ;\n", 8 * i + 8),
        });
        let text: String = rows.collect();
        let listing = Listing::read(&format!("\t.headerflags\t@\"EF_CUDA_SM61\"\n{text}")).unwrap();
        listing.live_registers().unwrap()
    }

    #[test]
    fn a_value_is_live_up_to_its_last_read() {
        assert_eq!(
            live("MOV R0, c[0x0][0x140]\nMOV R1, c[0x0][0x144]\nIADD R0, R0, R1\nSTS [RZ], R0\nEXIT"),
            [1, 2, 2, 1, 0]
        );
        // The destination reuses an operand's register.
        assert_eq!(live("MOV R0, RZ\nIADD R0, R0, 0x1\nSTS [0x10], R0\nEXIT"), [1, 1, 1, 0]);
    }

    #[test]
    fn wide_operands_have_several_registers() {
        let code = "MOV R2, c[0x0][0x140]\nMOV R3, c[0x0][0x144]\nLDG.E.128 R4, [R2]\nSTS.U.128 [RZ], R4\nEXIT";
        assert_eq!(live(code), [1, 2, 4, 4, 0]);
        assert_eq!(
            live("F2F.F64.F32 R2, R0\nDADD R2, R2, R4\nF2F.F32.F64 R0, R2\nSTS [RZ], R0\nEXIT"),
            [4, 4, 2, 1, 0]
        );
    }

    #[test]
    fn a_loop_keeps_its_values() {
        let code = "MOV R0, RZ\nMOV R1, RZ\n.L_1:\nIADD R0, R0, R1\nISETP.LT.AND P0, PT, R0, 0x9, PT\n@P0 BRA `(.L_1)\nSTS [RZ], R0\nEXIT";
        assert_eq!(live(code), [1, 2, 2, 2, 2, 1, 0]);
    }

    /// A guarded write keeps the old value in other lanes.
    #[test]
    fn a_guarded_write_ends_no_lifetime() {
        assert_eq!(live("MOV R0, RZ\nMOV R1, RZ\n@P0 MOV R0, R1\nSTS [RZ], R0\nEXIT"), [1, 2, 2, 1, 0]);
    }
}
