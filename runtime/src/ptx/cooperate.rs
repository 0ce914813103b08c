//! Shuffles and votes.

use super::code::{Exchange, Inst, Poll, Shuffle, Vote};
use super::machine::Machine;
use super::registers::{Cause, LANES, lanes};
use super::warp::{Warp, settle};

/// Which lane a lane reads from, and whether that is in range: the manual's definition. Where it is not, it is the
/// lane's own.
pub fn source(mode: Exchange, lane: u32, selector: u32, clamp: u32) -> (u32, bool) {
    let (selector, last, segment) = (selector & 31, clamp & 31, clamp >> 8 & 31);
    let most = lane & segment | last & !segment;
    let least = lane & segment;
    let (from, inside) = match mode {
        Exchange::Up => {
            let from = lane as i32 - selector as i32;
            (from, from >= most as i32)
        }
        Exchange::Down => (lane as i32 + selector as i32, lane + selector <= most),
        Exchange::Butterfly => ((lane ^ selector) as i32, lane ^ selector <= most),
        Exchange::Index => {
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
            self.needs(warp, inst, shuffle.selector.1, mask, "reads from a lane");
            self.needs(warp, inst, shuffle.clamp.1, mask, "reads from a segment");
        }
        let registers = &mut warp.registers;
        let before: [u64; LANES] = std::array::from_fn(|lane| registers.get(shuffle.value.0, lane));
        let defined = registers.defined[shuffle.value.1 as usize];
        let members = match shuffle.members {
            Some((place, _)) => lanes(mask).next().map_or(0, |first| registers.get(place, first) as u32),
            None => u32::MAX,
        };
        let (mut good, mut inherited) = (0u32, 0u32);
        for lane in lanes(mask) {
            let selector = registers.get(shuffle.selector.0, lane) as u32;
            let clamp = registers.get(shuffle.clamp.0, lane) as u32;
            let (from, inside) = source(shuffle.mode, lane as u32, selector, clamp);
            if let Some((place, _)) = shuffle.result {
                registers.set(place, lane, before[from as usize]);
            }
            if let Some((predicate, _)) = shuffle.inside {
                registers.set(super::registers::Place::Predicate(predicate), lane, inside.into());
            }
            if mask & members & 1 << from == 0 {
                // Takes no part: whatever it holds.
            } else if defined >> from & 1 == 1 {
                good |= 1 << lane;
            } else {
                inherited |= 1 << lane;
            }
        }
        if CHECKED {
            let absent = mask & !good & !inherited;
            settle(registers, inst, mask, good, (absent, "it reads from a lane that takes no part"));
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
                // Whether the source was in range does not depend on the source.
                let state = &mut registers.defined[id as usize];
                *state |= mask;
                registers.causes[id as usize] = Cause::Unwritten;
            }
        }
    }

    /// Counts votes.
    pub fn vote<const CHECKED: bool>(&mut self, warp: &mut Warp, inst: &Inst, vote: &Vote, mask: u32) {
        if CHECKED {
            self.needs(warp, inst, vote.condition.id, mask, "votes by a predicate");
        }
        let registers = &mut warp.registers;
        let ayes = vote.condition.among(registers, mask);
        let result = match vote.mode {
            Poll::All => u32::from(ayes == mask),
            Poll::Any => u32::from(ayes != 0),
            Poll::Uniform => u32::from(ayes == mask || ayes == 0),
            Poll::Ballot => ayes,
        };
        for lane in lanes(mask) {
            registers.set(vote.result, lane, result.into());
        }
        if CHECKED {
            settle(registers, inst, mask, mask, (0, ""));
        }
    }
}
