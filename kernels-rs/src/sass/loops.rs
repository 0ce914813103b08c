//! The loops of a listing: what jumps back.

use super::{Instruction, Listing, banks};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// A loop: from where a jump back leads to that jump.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Loop {
    /// Its instructions, as indices into [`Listing::instructions`].
    pub body: Range<usize>,
    /// How many loops are around it.
    pub depth: u32,
    /// Issue slots of an iteration that takes every path, inner loops once.
    pub slots: u32,
    /// Cycles that operands of one bank cost beyond them, by [`banks::conflicts`].
    pub bank_conflicts: u32,
    /// Instructions by name without modifiers.
    pub mix: BTreeMap<String, u32>,
}

impl Listing {
    /// The loops, by where they begin, outer ones first.
    pub fn loops(&self) -> Vec<Loop> {
        let mut bodies: Vec<Range<usize>> = Vec::new();
        for (at, inst) in self.instructions.iter().enumerate() {
            let Some(start) = inst.target.filter(|t| inst.opcode() == "BRA" && *t < at) else { continue };
            // Two jumps to one place are one loop.
            match bodies.iter_mut().find(|b| b.start == start) {
                Some(body) => body.end = at + 1,
                None => bodies.push(start..at + 1),
            }
        }
        bodies.sort_by_key(|b| (b.start, std::cmp::Reverse(b.end)));
        let around = |body: &Range<usize>| bodies.iter().filter(|b| b.start <= body.start && body.end <= b.end).count();
        let looped = |body: &Range<usize>| Loop {
            body: body.clone(),
            depth: around(body) as u32 - 1,
            slots: self.slots(body.clone()),
            bank_conflicts: banks::conflicts(&self.instructions[body.clone()]),
            mix: mix(&self.instructions[body.clone()]),
        };
        bodies.iter().map(looped).collect()
    }

    /// Instructions by name without modifiers.
    pub fn mix(&self) -> BTreeMap<String, u32> {
        mix(&self.instructions)
    }
}

fn mix(instructions: &[Instruction]) -> BTreeMap<String, u32> {
    let mut mix = BTreeMap::new();
    for inst in instructions.iter().filter(|i| !i.idle()) {
        *mix.entry(inst.opcode().to_string()).or_insert(0) += 1;
    }
    mix
}
