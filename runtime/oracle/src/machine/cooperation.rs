//! Operations across the lanes of a warp, other than shuffles and votes.

use crate::check::Check;
use crate::code::Pc;
use crate::code::frame::{FULL, LANES, LaneWord, Register, lanes_of};
use crate::machine::{Machine, Warp};
use crate::report::Description;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::Binary;

/// Writes to each lane the mask of the lanes with equal bits.
pub fn matching(warp: &mut Warp, mask: u32, to: u32, from: Register) {
    let values: [u64; LANES] = std::array::from_fn(|lane| from.get(&warp.rows, lane));
    let same = |lane: usize| lanes_of(mask).filter(|other| values[*other] == values[lane]).fold(0, |m, l| m | 1 << l);
    *u32::lanes_mut(&mut warp.rows, to as usize) = std::array::from_fn(same);
}

/// Writes to each lane the sum, minimum or maximum of the values in `mask`, and returns whether it
/// fits.
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
    /// Reports an operation that needs all 32 lanes, including ended ones, if one is missing.
    pub fn all_lanes(&mut self, what: &str, site: Pc, warp: &Warp, mask: u32) {
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
