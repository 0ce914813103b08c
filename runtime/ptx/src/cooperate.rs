//! Shuffles, votes, matches and reductions. Each lane's result covers the lane's own members.
//!
//! # Unspecified operands
//!
//! For operands that the PTX manual rules out or does not describe, results are those of the
//! machine code that ptxas makes for sm_61. `match` and `redux` need later hardware, and treat
//! members as votes do.
//!
//! | instruction | operand | result | finding |
//! |---|---|---|---|
//! | `shfl` | bits of the lane operand above bit 4; bits of the clamp operand beside 0 to 4 and 8 to 12 | ignored | none |
//! | `shfl` | a source lane that does not execute the instruction, or is not a member | what the source lane's register holds | `undefined-value` |
//! | `vote.sync` | a lane that is not among its own members | the vote of its members that execute the instruction | `divergent-warp` |
//! | `vote.sync` | members that do not execute the instruction | ignored | `divergent-warp` |
//! | `vote.sync` | no members that execute the instruction | `.ballot` 0, `.any` false, `.all` and `.uni` true | `divergent-warp` |
//! | `fns` | a base above 31 | 0xFFFFFFFF | `undefined-value` |
//! | `fns` | offset −2³¹ | 0 | `undefined-value` |

use super::code::{Gather, Inst, Poll, Shuffle, ShuffleSource, Vote};
use super::machine::Machine;
use super::registers::{LANES, RegisterPlace, Registers, StateId, UndefinedCause, lanes};
use super::warp::{Warp, record_defined};

/// Returns the lane that a lane reads from, and whether that lane is in range, as the manual
/// defines them. Out of range, a lane reads from itself.
pub fn source(mode: ShuffleSource, lane: u32, selector: u32, clamp: u32) -> (u32, bool) {
    let (selector, last, segment) = (selector & 31, clamp & 31, clamp >> 8 & 31);
    let most = lane & segment | last & !segment;
    let least = lane & segment;
    let (from, inside) = match mode {
        ShuffleSource::Up => {
            let from = lane as i32 - selector as i32;
            (from, from >= most as i32)
        }
        ShuffleSource::Down => (lane as i32 + selector as i32, lane + selector <= most),
        ShuffleSource::Butterfly => ((lane ^ selector) as i32, lane ^ selector <= most),
        ShuffleSource::Index => {
            let from = least | selector & !segment;
            (from as i32, from <= most)
        }
    };
    if inside { (from as u32, true) } else { (lane, false) }
}

impl Machine<'_, '_> {
    /// Exchanges values.
    pub fn shuffle<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, shuffle: &Shuffle, mask: u32) {
        if CHECKED {
            self.require_defined(warp, inst, shuffle.selector.1, mask, "reads from a lane");
            self.require_defined(warp, inst, shuffle.clamp.1, mask, "reads from a segment");
        }
        let registers = &mut warp.registers;
        let before: [u64; LANES] = std::array::from_fn(|lane| registers.get(shuffle.value.0, lane));
        let defined = registers.defined[shuffle.value.1 as usize];
        let (mut good, mut inherited) = (0u32, 0u32);
        for lane in lanes(mask) {
            let selector = registers.get(shuffle.selector.0, lane) as u32;
            let clamp = registers.get(shuffle.clamp.0, lane) as u32;
            let (from, inside) = source(shuffle.mode, lane as u32, selector, clamp);
            if let Some((place, _)) = shuffle.result {
                registers.set(place, lane, before[from as usize]);
            }
            if let Some((predicate, _)) = shuffle.inside {
                registers.set(RegisterPlace::Predicate(predicate), lane, inside.into());
            }
            if mask & members(registers, shuffle.members, lane) & 1 << from == 0 {
                // If the source lane does not take part, the lane receives whatever the source
                // register contains, which is undefined.
            } else if defined >> from & 1 == 1 {
                good |= 1 << lane;
            } else {
                inherited |= 1 << lane;
            }
        }
        if CHECKED {
            let absent = mask & !good & !inherited;
            record_defined(registers, inst, mask, good, (absent, "it reads from a lane that takes no part"));
            if let (true, Some((_, id))) = (absent == 0 && inherited != 0, shuffle.result) {
                registers.causes[id as usize] = registers.causes[shuffle.value.1 as usize];
            }
            if let Some((_, id)) = shuffle.result {
                let from = shuffle.value.1 as usize;
                let any = if registers.approximate[from] == 0 { 0 } else { mask };
                registers.approximate[id as usize] = registers.approximate[id as usize] & !mask | any;
                registers.approximations[id as usize] = registers.approximations[from];
            }
            if let Some((_, id)) = shuffle.inside {
                // The predicate depends only on lane numbers, so it is defined even if the source
                // is not.
                let state = &mut registers.defined[id as usize];
                *state |= mask;
                registers.causes[id as usize] = UndefinedCause::Unwritten;
            }
        }
    }

    /// Votes, each lane among its own members.
    pub fn vote<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, vote: &Vote, mask: u32) {
        if CHECKED {
            self.require_defined(warp, inst, vote.condition.id, mask, "votes by a predicate");
        }
        let registers = &mut warp.registers;
        let ayes = vote.condition.lanes_of(registers, mask);
        for lane in lanes(mask) {
            // All lanes that execute the instruction vote, and a lane's result is limited to its
            // own members. Machine code of sm_61 does the same.
            let members = members(registers, vote.members, lane);
            let (ayes, voters) = (ayes & members, mask & members);
            let result = match vote.mode {
                Poll::All => u32::from(ayes == voters),
                Poll::Any => u32::from(ayes != 0),
                Poll::Uniform => u32::from(ayes == voters || ayes == 0),
                Poll::Ballot => ayes,
            };
            registers.set(vote.result, lane, result.into());
        }
        if CHECKED {
            record_defined(registers, inst, mask, mask, (0, ""));
        }
    }

    /// Gives each lane a function of its members' values.
    pub fn gather<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, gather: &Gather, mask: u32) {
        let registers = &mut warp.registers;
        let before: [u64; LANES] = std::array::from_fn(|lane| registers.get(gather.value.0, lane));
        let (defined, mut good) = (registers.defined[gather.value.1 as usize], 0);
        let mut left = mask;
        while let Some(first) = lanes(left).next() {
            let named = members(registers, Some(gather.members), first);
            let alike = lanes(left).filter(|lane| members(registers, Some(gather.members), *lane) == named);
            let alike = alike.fold(0, |all, lane| all | 1 << lane);
            left &= !alike;
            let all: Vec<(usize, u64)> = lanes(mask & named).map(|lane| (lane, before[lane])).collect();
            for lane in lanes(alike) {
                let (result, holds) = gather.function.of((lane, before[lane]), &all);
                if let Some(place) = gather.result {
                    registers.set(place, lane, result.into());
                }
                if let Some(predicate) = gather.predicate {
                    registers.set(RegisterPlace::Predicate(predicate), lane, holds.into());
                }
            }
            // The result is defined only if the values of all members are.
            if mask & named & !defined == 0 {
                good |= alike;
            }
        }
        if CHECKED {
            record_defined(registers, inst, mask, good, (0, ""));
        }
    }
}

/// Returns the members that a lane names; all lanes in the form without `.sync`.
fn members(registers: &Registers, named: Option<(RegisterPlace, StateId)>, lane: usize) -> u32 {
    named.map_or(u32::MAX, |(place, _)| registers.get(place, lane) as u32)
}
