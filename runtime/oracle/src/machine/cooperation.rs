//! Operations across the lanes of a warp.

use crate::check::Check;
use crate::code::Pc;
use crate::code::frame::{FULL, FrameRegister, LANES, LaneWord, lanes_of};
use crate::machine::{ACCESSES, Machine, Warp};
use crate::report::Description;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::{Binary, Shuffle, Vote};

/// Writes to each lane the mask of the lanes with equal bits.
pub fn matching(warp: &mut Warp, mask: u32, to: u32, from: FrameRegister) {
    let values: [u64; LANES] = std::array::from_fn(|lane| from.get(&warp.rows, lane));
    let same = |lane: usize| lanes_of(mask).filter(|other| values[*other] == values[lane]).fold(0, |m, l| m | 1 << l);
    *u32::lanes_mut(&mut warp.rows, to as usize) = std::array::from_fn(same);
}

/// Writes to each lane the sum, minimum or maximum of the values in `mask`. Returns whether the
/// result fits the type.
pub fn reduce(warp: &mut Warp, mask: u32, op: Binary, ty: Scalar, to: u32, from: u32) -> bool {
    let lanes = *u32::lanes(&warp.rows, from as usize);
    let number = |lane: usize| if ty.is_signed() { i64::from(lanes[lane] as i32) } else { i64::from(lanes[lane]) };
    let numbers = lanes_of(mask).map(number);
    let result = match op {
        Binary::Min => numbers.min(),
        Binary::Max => numbers.max(),
        _ => Some(numbers.sum()),
    };
    let result = result.unwrap_or(0);
    u32::lanes_mut(&mut warp.rows, to as usize).fill(result as u32);
    let back = if ty.is_signed() { i64::from(result as i32) } else { i64::from(result as u32) };
    back == result
}

impl Machine<'_, '_> {
    /// Reports missing lanes at an operation that all lanes must reach, unless they have ended.
    pub fn check_convergence(&mut self, check: Check, what: &str, site: Pc, warp: &Warp, mask: u32) {
        let missing = warp.live & !mask;
        if missing != 0 {
            self.report(check, site, warp.index, mask, |machine, _| {
                let absent = missing.trailing_zeros() as usize;
                let thread = machine.thread(warp.index, absent);
                let (here, live) = (mask.count_ones(), warp.live.count_ones());
                Description::new(format!("{what} is reached by {here} of the {live} lanes of a warp")).against(
                    None,
                    thread,
                    "is elsewhere",
                )
            });
        }
    }

    /// Reports lanes that have ended before a barrier of the grid. On a GPU, one thread of each
    /// block signals the other blocks, and the grid waits forever if that thread has ended.
    pub fn check_ended_lanes(&mut self, site: Pc, warp: &Warp, mask: u32) {
        let begun = self.setting.grid.warp_mask(warp.index);
        let ended = begun & !warp.live;
        if ended != 0 {
            self.report(Check::DivergentBarrier, site, warp.index, mask, |machine, _| {
                let thread = machine.thread(warp.index, ended.trailing_zeros() as usize);
                let (here, begun) = (mask.count_ones(), begun.count_ones());
                let message = format!("`grid::sync()` is reached by {here} of the {begun} lanes of a warp");
                Description::new(message).against(None, thread, "has ended")
            });
        }
    }

    /// Exchanges values between the lanes of a warp.
    #[allow(clippy::too_many_arguments)]
    pub fn shuffle<const TIER: u8>(
        &mut self,
        site: Pc,
        warp: &mut Warp,
        mask: u32,
        mode: Shuffle,
        width: u32,
        [to, from]: [FrameRegister; 2],
        selector: u32,
    ) {
        let selectors = *u32::lanes(&warp.rows, selector as usize);
        let sources = sources(mode, width, &selectors);
        let inactive = sources.iter().enumerate().fold(0, |m, (l, s)| m | u32::from(mask >> s & 1 == 0) << l);
        let beyond = match mode {
            Shuffle::Xor | Shuffle::Broadcast => {
                selectors.iter().enumerate().fold(0, |m, (l, s)| m | u32::from(*s >= width) << l)
            }
            _ => 0,
        };
        if from.wide {
            let values = *u64::lanes(&warp.rows, from.row as usize);
            *u64::lanes_mut(&mut warp.rows, to.row as usize) = sources.map(|s| values[s]);
        } else {
            let values = *u32::lanes(&warp.rows, from.row as usize);
            *u32::lanes_mut(&mut warp.rows, to.row as usize) = sources.map(|s| values[s]);
        }
        if TIER < ACCESSES {
            return;
        }
        let (inactive, beyond) = (inactive & mask, beyond & mask);
        if inactive != 0 {
            self.undefined = true;
            self.report(Check::ShuffleInactive, site, warp.index, inactive, |machine, lane| {
                let source = sources[lane];
                Description::new(format!("a shuffle reads lane {source}, which does not take part")).against(
                    None,
                    machine.thread(warp.index, source),
                    "is at another instruction, or does not exist",
                )
            });
            for lane in lanes_of(inactive) {
                to.set(&mut warp.rows, lane, 0);
            }
        }
        if beyond != 0 {
            self.report(Check::ShuffleSelector, site, warp.index, beyond, |_, lane| {
                let selector = selectors[lane];
                Description::new(match mode {
                    Shuffle::Broadcast => format!("a broadcast from lane {selector} of {width} lanes"),
                    _ => format!("the mask {selector} of an XOR shuffle is not below its width {width}"),
                })
            });
        }
    }

    /// Writes the result of a vote of the lanes of `mask` to all lanes, and reports missing lanes.
    #[inline(always)]
    pub fn vote<const TIER: u8>(&mut self, site: Pc, warp: &mut Warp, mask: u32, mode: Vote, to: u32, value: u32) {
        if TIER >= ACCESSES {
            self.check_convergence(Check::DivergentWarp, "a vote", site, warp, mask);
            self.undefined |= warp.live & !mask != 0;
        }
        let votes = self.simd.truth(&warp.rows, value) & mask;
        let result = match mode {
            Vote::Ballot => votes,
            Vote::All => u32::from(votes == mask),
            Vote::Any => u32::from(votes != 0),
        };
        FrameRegister { row: to, wide: false }.fill(&mut warp.rows, result.into());
    }

    /// Reports an operation that needs all 32 lanes, including ended ones, if one is missing.
    pub fn check_all_lanes(&mut self, what: &str, site: Pc, warp: &Warp, mask: u32) {
        if mask == FULL {
            return;
        }
        self.undefined = true;
        self.report(Check::DivergentWarp, site, warp.index, mask, |machine, _| {
            let absent = machine.thread(warp.index, (!mask).trailing_zeros() as usize);
            let message = format!("{what} is reached by {} of the 32 lanes of a warp", mask.count_ones());
            Description::new(message).against(None, absent, "is at another instruction, or has ended")
        });
    }

    /// Reports that the sum of a warp's values does not fit their type.
    #[cold]
    pub fn sum_overflows(&mut self, site: Pc, warp: &Warp, mask: u32, ty: Scalar) {
        let check = if ty == Scalar::Usize { Check::UsizeOverflow } else { Check::IntegerOverflow };
        self.report(check, site, warp.index, mask, |_, _| {
            Description::new(format!("the sum of the warp's values overflows `{ty}`"))
        });
    }
}

/// Returns the lane that each lane of a shuffle reads.
pub fn sources(mode: Shuffle, width: u32, selectors: &[u32; LANES]) -> [usize; LANES] {
    std::array::from_fn(|lane| {
        let (lane, selector) = (lane as u32, selectors[lane]);
        let (segment, within) = (lane & !(width - 1), lane & (width - 1));
        let source = match mode {
            Shuffle::Index | Shuffle::Broadcast => segment + selector % width,
            Shuffle::Xor if selector < width => lane ^ selector,
            Shuffle::Up if selector <= within => lane - selector,
            Shuffle::Down if selector < width - within => lane + selector,
            Shuffle::Xor | Shuffle::Up | Shuffle::Down => lane,
        };
        source as usize
    })
}
