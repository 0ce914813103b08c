//! Conflicts of register banks on Maxwell and Pascal.
//!
//! The register file has four banks, and a register lies in that of its number modulo 4. A bank gives one register in a cycle,
//! so an instruction that reads two different ones of a bank waits for a cycle more. What does not come from the banks costs
//! nothing: constants, `RZ`, a register that the instruction reads twice, and what the operand cache holds. For each of an
//! instruction's three source operands that has two registers, put there by an instruction that marks the operand
//! `.reuse`, and kept until one reads the same register as the same operand and does not mark it, or two others take their
//! places. Instructions that cannot mark operands (accesses to memory, conversions, the special function unit) leave
//! the cache as it is.
//!
//! All of this is from Scott Gray's account of Maxwell, in maxas (<https://github.com/NervanaSystems/maxas>, `registerHealth` in
//! `MaxAsGrammar.pm`, and the wiki's "Control Codes"); Pascal's is the same machine. Volta has two banks of 64 bits
//! and other rules, and is not told of here; nor is `f64`, whose rate on these machines hides it.

use super::{Class, Instruction, Listing};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Banks of the register file.
const BANKS: u32 = 4;
/// Source operands of an instruction.
const SOURCES: usize = 3;
/// Registers that the operand cache holds for each of them.
const CACHED: usize = 2;

/// What an instruction loses to registers of one bank.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Conflict {
    /// Cycles; 0 is no conflict.
    pub cycles: u32,
    /// The registers that are in each other's way, by their bank.
    pub registers: BTreeMap<u32, Vec<u32>>,
}

impl Listing {
    /// What each instruction loses; `None` if the listing is of another machine than Maxwell or Pascal, or does not say.
    pub fn bank_conflicts(&self) -> Option<Vec<Conflict>> {
        if !matches!(self.sm, Some(50..70)) {
            return None;
        }
        // One that a label stands before may be reached with another cache than that of the instruction before it.
        let mut entered = vec![false; self.instructions.len() + 1];
        self.instructions.iter().flat_map(|inst| &inst.targets).for_each(|to| entered[*to] = true);
        let mut cache = Cache::default();
        let conflict = |(inst, entered): (&Instruction, &bool)| {
            if *entered {
                cache = Cache::default();
            }
            let conflict = cache.read(inst);
            if jumps(inst) {
                cache = Cache::default();
            }
            conflict
        };
        Some(self.instructions.iter().zip(&entered).map(conflict).collect())
    }
}

/// The operand cache: for each source operand, registers, the latest last.
#[derive(Default)]
struct Cache([VecDeque<u32>; SOURCES]);

impl Cache {
    /// What an instruction loses that finds this, which then is what it leaves.
    fn read(&mut self, inst: &Instruction) -> Conflict {
        let mut banks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (cached, source) in self.0.iter_mut().zip(sources(inst)) {
            let Some(Source { register, reuse }) = source else { continue };
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
        Conflict { cycles: banks.values().map(|registers| registers.len() as u32 - 1).sum(), registers: banks }
    }
}

/// Whether lanes may go on elsewhere than behind it.
fn jumps(inst: &Instruction) -> bool {
    // These only note a place for later.
    Class::of(inst) == Class::Control && !matches!(inst.opcode(), "SSY" | "PBK" | "PCNT" | "PRET")
}

/// A register that an instruction reads.
#[derive(Clone, Copy)]
struct Source {
    register: u32,
    reuse: bool,
}

/// The registers that an instruction reads whose operands the cache is for.
fn sources(inst: &Instruction) -> [Option<Source>; SOURCES] {
    let class = Class::of(inst);
    if !matches!(class, Class::Fma | Class::Float | Class::Half | Class::Integer | Class::Multiply | Class::Compare) {
        return [None; SOURCES];
    }
    let is_predicate = |operand: &str| {
        let name = operand.trim().trim_start_matches('!');
        name.strip_prefix('P').is_some_and(|n| n == "T" || n.parse::<u8>().is_ok())
    };
    let mut operands = inst.operands.split(',').skip_while(|operand| is_predicate(operand));
    // What only sets predicates has no register that it writes.
    if !inst.opcode().ends_with("SETP") && inst.opcode() != "FCHK" {
        operands.next();
    }
    std::array::from_fn(|_| operands.next().and_then(register))
}

/// Reads `-R12.reuse`, `|R4|`, `R4.H1`; `RZ` and what is no register are `None`.
fn register(operand: &str) -> Option<Source> {
    let text = operand.trim().trim_start_matches(['-', '~', '|']);
    let number = text.strip_prefix('R')?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Some(Source { register: digits.parse().ok()?, reuse: number.contains(".reuse") })
}
