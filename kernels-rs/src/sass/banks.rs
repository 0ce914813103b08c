//! Conflicts of register banks on Maxwell and Pascal.

use super::Instruction;

/// Banks of the register file.
const BANKS: usize = 4;

/// Cycles that `instructions`, one after the other, lose because an instruction reads several registers of one bank.
///
/// Registers are in bank number modulo 4, and each bank gives one of them in a cycle. An operand that the instruction
/// before read in the same position, and marked `.reuse`, comes from the operand cache and counts for nothing; a register
/// that an instruction reads twice counts once. (Scott Gray's account of Maxwell, in maxas; Pascal's is the same
/// machine.) Only arithmetic that reads three operands can lose: two reads fit even in one bank of a pair of cycles.
pub fn conflicts(instructions: &[Instruction]) -> u32 {
    let mut cached: [Option<u32>; 3] = [None; 3];
    let mut lost = 0;
    for inst in instructions {
        let sources = sources(inst);
        let mut in_bank: [Vec<u32>; BANKS] = Default::default();
        for (position, source) in sources.iter().enumerate() {
            let Some(Source { register, .. }) = *source else { continue };
            let bank = &mut in_bank[register as usize % BANKS];
            if cached[position] != Some(register) && !bank.contains(&register) {
                bank.push(register);
            }
        }
        if sources.iter().flatten().count() == 3 {
            lost += in_bank.iter().map(|bank| bank.len().saturating_sub(1) as u32).sum::<u32>();
        }
        cached = sources.map(|s| s.filter(|s| s.reuse).map(|s| s.register));
    }
    lost
}

/// A register that an instruction reads.
#[derive(Clone, Copy)]
struct Source {
    register: u32,
    reuse: bool,
}

/// The registers that arithmetic reads, by position. Accesses, jumps and conversions do not compete for banks in this way.
fn sources(inst: &Instruction) -> [Option<Source>; 3] {
    let arithmetic = ["FFMA", "FADD", "FMUL", "XMAD", "IADD3", "LOP3", "ISCADD", "IADD", "LEA", "SEL", "PRMT", "BFI"];
    if !arithmetic.contains(&inst.opcode()) {
        return [None; 3];
    }
    let mut operands = inst.operands.split(',').skip(1);
    std::array::from_fn(|_| operands.next().and_then(register))
}

/// Reads `-R12.reuse`, `R4.H1`; `RZ` and what is no register are `None`.
fn register(operand: &str) -> Option<Source> {
    let text = operand.trim().trim_start_matches(['-', '~', '|']);
    let number = text.strip_prefix('R')?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(Source { register: digits.parse().ok()?, reuse: number.contains(".reuse") })
}
