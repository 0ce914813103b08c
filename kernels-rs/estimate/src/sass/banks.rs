//! Register bank conflicts on Maxwell and Pascal.
//!
//! The register file has four banks; a register lies in the bank of its number modulo 4. A bank
//! delivers one register per cycle, so an instruction that reads two different registers of a bank
//! takes one more cycle. Operands from elsewhere are free: constants, `RZ`, a register that the
//! instruction reads twice, and registers in the operand cache. The operand cache holds two
//! registers for each of the three source operands. An instruction that marks an operand `.reuse`
//! puts its register there. The register stays until an instruction reads it as the same operand
//! without the mark, or until two others replace it. Instructions that cannot mark operands (memory
//! accesses, conversions, the special function unit) leave the cache unchanged.
//!
//! The source is Scott Gray's description of Maxwell in maxas
//! (<https://github.com/NervanaSystems/maxas>, `registerHealth` in `MaxAsGrammar.pm`, and the
//! wiki's "Control Codes"). Pascal is the same in this respect. Volta has two banks of 64 bits and
//! other rules, and is not covered here. Neither is `f64`, whose low rate on these machines hides
//! bank conflicts.

use super::{Class, Listing, SassInstruction};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Banks of the register file.
const BANKS: u32 = 4;
/// Source operands of an instruction.
const SOURCES: usize = 3;
/// Registers that the operand cache holds for each source operand.
const CACHED: usize = 2;

/// Cycles that an instruction loses to a bank conflict, and the registers.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct BankConflict {
    /// Lost cycles; 0 without a conflict.
    pub cycles: u32,
    /// Conflicting registers by bank.
    pub registers: BTreeMap<u32, Vec<u32>>,
}

impl Listing {
    /// Returns the conflict of each instruction; `None` if the listing's machine is unknown, or
    /// neither Maxwell nor Pascal.
    pub fn bank_conflicts(&self) -> Option<Vec<BankConflict>> {
        if !matches!(self.sm, Some(50..70)) {
            return None;
        }
        // Control may reach a labeled instruction with another cache than that of its predecessor.
        let mut entered = vec![false; self.instructions.len() + 1];
        self.instructions.iter().flat_map(|inst| &inst.targets).for_each(|to| entered[*to] = true);
        let mut cache = OperandCache::default();
        let conflict = |(inst, entered): (&SassInstruction, &bool)| {
            if *entered {
                cache = OperandCache::default();
            }
            let conflict = cache.read(inst);
            if jumps(inst) {
                cache = OperandCache::default();
            }
            conflict
        };
        Some(self.instructions.iter().zip(&entered).map(conflict).collect())
    }
}

/// The operand cache: for each source operand, registers, the latest last.
#[derive(Default)]
struct OperandCache([VecDeque<u32>; SOURCES]);

impl OperandCache {
    /// Returns the conflict of an instruction that executes with this cache, and updates the cache.
    fn read(&mut self, inst: &SassInstruction) -> BankConflict {
        let mut banks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (cached, source) in self.0.iter_mut().zip(sources(inst)) {
            let Some(RegisterOperand { register, reuse }) = source else { continue };
            let known = cached.iter().position(|r| *r == register);
            if let Some(known) = known {
                cached.remove(known);
            } else {
                let bank = banks.entry(register % BANKS).or_default();
                if !bank.contains(&register) {
                    bank.push(register);
                }
            }
            if reuse {
                if cached.len() == CACHED {
                    cached.pop_front();
                }
                cached.push_back(register);
            }
        }
        banks.retain(|_, registers| registers.len() > 1);
        BankConflict { cycles: banks.values().map(|registers| registers.len() as u32 - 1).sum(), registers: banks }
    }
}

/// Returns whether control may continue elsewhere than at the next instruction.
fn jumps(inst: &SassInstruction) -> bool {
    // `SSY` and similar instructions only push a target for later.
    Class::of(inst) == Class::Control && !matches!(inst.opcode(), "SSY" | "PBK" | "PCNT" | "PRET")
}

/// Register operand of an instruction.
#[derive(Clone, Copy)]
struct RegisterOperand {
    register: u32,
    reuse: bool,
}

/// Returns the register operands of an instruction that uses the operand cache.
fn sources(inst: &SassInstruction) -> [Option<RegisterOperand>; SOURCES] {
    let class = Class::of(inst);
    if !matches!(class, Class::Fma | Class::Float | Class::Half | Class::Integer | Class::Multiply | Class::Compare) {
        return [None; SOURCES];
    }
    let is_predicate = |operand: &str| {
        let name = operand.trim().trim_start_matches('!');
        name.strip_prefix('P').is_some_and(|n| n == "T" || n.parse::<u8>().is_ok())
    };
    let mut operands = inst.operands.split(',').skip_while(|operand| is_predicate(operand));
    // Instructions that only set predicates have no destination register.
    if !inst.opcode().ends_with("SETP") && inst.opcode() != "FCHK" {
        operands.next();
    }
    std::array::from_fn(|_| operands.next().and_then(register))
}

/// Parses `-R12.reuse`, `|R4|`, `R4.H1`; returns `None` for `RZ` and for operands that are not
/// registers.
fn register(operand: &str) -> Option<RegisterOperand> {
    let text = operand.trim().trim_start_matches(['-', '~', '|']);
    let number = text.strip_prefix('R')?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(RegisterOperand { register: digits.parse().ok()?, reuse: number.contains(".reuse") })
}
