//! The path of most threads through machine code.

use kernels_rs_command::sass::{Listing, SassInstruction};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Range;

/// Returns the issue slots of the shortest path, and of all instructions.
///
/// The path leads from the entry to the exit and contains a store. The path passes a block with the
/// most multiply-adds, where the polynomial of the function is.
pub fn slots(listing: &Listing) -> (u32, u32) {
    let all = listing.slots(0..listing.instructions.len());
    (shortest(listing).expect("a path from the entry to the exit"), all)
}

/// A position on a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PathPosition {
    at: usize,
    /// Addresses where lanes reconverge (`SSY`, `PBK`), and return addresses of calls.
    stack: Vec<usize>,
    through: bool,
    stored: bool,
}

fn shortest(listing: &Listing) -> Option<u32> {
    let main_blocks = main_blocks(&listing.instructions);
    let mut paths =
        BinaryHeap::from([Reverse((0, PathPosition { at: 0, stack: Vec::new(), through: false, stored: false }))]);
    let mut seen = HashSet::new();
    while let Some(Reverse((slots, mut state))) = paths.pop() {
        let Some(instruction) = listing.instructions.get(state.at) else { continue };
        if !seen.insert(state.clone()) {
            continue;
        }
        let slots = slots + listing.slots(state.at..state.at + 1);
        state.through |= main_blocks.iter().any(|h| h.contains(&state.at));
        state.stored |= instruction.opcode() == "STG";
        let guarded = !instruction.guard.is_empty();
        let next = PathPosition { at: state.at + 1, ..state.clone() };
        let mut go = |state: PathPosition| paths.push(Reverse((slots, state)));
        match (instruction.opcode(), instruction.targets.first().copied()) {
            ("EXIT", _) if !guarded && state.through && state.stored => return Some(slots),
            ("EXIT", _) if !guarded => continue,
            ("BRA", Some(target)) => go(PathPosition { at: target, ..state }),
            ("SSY" | "PBK", Some(target)) => {
                state.stack.push(target);
                go(PathPosition { at: state.at + 1, ..state });
                continue;
            }
            ("CAL", Some(target)) => {
                state.stack.push(state.at + 1);
                go(PathPosition { at: target, ..state });
                continue;
            }
            ("SYNC" | "BRK" | "RET", _) => {
                if let Some(to) = state.stack.pop() {
                    go(PathPosition { at: to, ..state });
                }
            }
            _ => {
                go(next);
                continue;
            }
        }
        if guarded {
            go(next);
        }
    }
    None
}

/// Returns the blocks with the most multiply-adds.
fn main_blocks(instructions: &[SassInstruction]) -> Vec<Range<usize>> {
    let jumps = |i: &SassInstruction| matches!(i.opcode(), "BRA" | "SYNC" | "BRK" | "RET" | "CAL");
    let targets: HashSet<usize> = instructions.iter().flat_map(|i| i.targets.iter().copied()).collect();
    let starts = (0..instructions.len()).filter(|i| *i == 0 || targets.contains(i) || jumps(&instructions[i - 1]));
    let starts: Vec<usize> = starts.chain([instructions.len()]).collect();
    let blocks = || starts.windows(2).map(|w| w[0]..w[1]);
    let count = |block: Range<usize>| instructions[block].iter().filter(|i| i.opcode() == "FFMA").count();
    let most = blocks().map(count).max();
    blocks().filter(|block| Some(count(block.clone())) == most).collect()
}
