//! Checks of arithmetic, casts and loop steps.

use crate::check::Check;
use crate::code::Pc;
use crate::code::cast;
use crate::code::frame::{FrameRegister, LaneWord, lanes_of};
use crate::machine::describe::symbol;
use crate::machine::{Machine, Warp};
use crate::report::Description;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::Binary;
use runtime_simt::number::value;
use std::fmt::Display;

impl Machine<'_, '_> {
    /// Reports integer arithmetic whose result is undefined or probably unintended.
    #[allow(clippy::too_many_arguments)]
    pub fn check_arithmetic(&mut self, site: Pc, warp: &Warp, mask: u32, op: Binary, ty: Scalar, a: u32, b: u32) {
        let bad = self.simd.overflows(&warp.rows, op, ty, a, b) & mask;
        if bad != 0 {
            self.overflowing(site, warp, bad, op, ty, a, b);
        }
        if matches!(op, Binary::Div | Binary::Rem) {
            let bad = self.simd.is_zero(&warp.rows, ty, b) & mask;
            if bad != 0 {
                self.report(Check::DivisionByZero, site, warp.index, bad, |_, lane| {
                    let a = value(ty, FrameRegister { row: a, wide: ty.bits() == 64 }.get(&warp.rows, lane));
                    Description::new(format!("division by zero: `{a} {} 0` in `{ty}`", symbol(op).unwrap_or_default()))
                });
            }
        }
    }

    /// Reports the overflow of `a` op `b` in the lanes of `bad`.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    pub fn overflowing(&mut self, site: Pc, warp: &Warp, bad: u32, op: Binary, ty: Scalar, a: u32, b: u32) {
        let check = match op {
            Binary::Div | Binary::Rem => Check::DivisionOverflow,
            Binary::Shl | Binary::Shr => Check::ShiftOverflow,
            _ if ty == Scalar::Usize => Check::UsizeOverflow,
            _ => Check::IntegerOverflow,
        };
        let at = |row, lane| value(ty, FrameRegister { row, wide: ty.bits() == 64 }.get(&warp.rows, lane));
        self.report(check, site, warp.index, bad, |_, lane| {
            if op.is_shift() {
                let distance = u32::lanes(&warp.rows, b as usize)[lane];
                return Description::new(beyond_the_width(op, ty, at(a, lane), distance));
            }
            Description::new(overflow(op, ty, at(a, lane), at(b, lane)))
        });
    }

    #[cold]
    fn overflow(&mut self, site: Pc, warp: &Warp, bad: u32, message: &str) {
        self.report(Check::IntegerOverflow, site, warp.index, bad, |_, _| Description::new(message));
    }

    /// Reports lanes in which a cast loses information.
    #[cold]
    pub fn note_lossy_cast(&mut self, site: Pc, warp: &Warp, mask: u32, from: Scalar, into: Scalar, a: u32) {
        let register = FrameRegister { row: a, wide: from.bits() == 64 };
        let lost = |lane: &usize| cast::is_lossy(from, into, register.get(&warp.rows, *lane));
        let bad = lanes_of(mask).filter(lost).fold(0, |m, lane| m | 1 << lane);
        if bad != 0 {
            self.report(Check::LossyCast, site, warp.index, bad, |_, lane| {
                let operand = value(from, register.get(&warp.rows, lane));
                let why = match from.is_float() {
                    true if operand == "NaN" => "is not an integer",
                    true => "is outside the type's range",
                    false => "loses bits",
                };
                Description::new(format!("`{operand} as {into}`, of `{from}`, {why}"))
            });
        }
    }

    /// Reports the lanes whose step is not positive.
    pub fn report_nonpositive_step(&mut self, site: Pc, warp: &Warp, mask: u32, ty: Scalar, step: u32) -> u32 {
        let register = FrameRegister { row: step, wide: ty.bits() == 64 };
        let sign = 1u64 << (ty.bits() - 1);
        let bad = lanes_of(mask)
            .filter(|lane| {
                let bits = register.get(&warp.rows, *lane);
                bits == 0 || ty.is_signed() && bits & sign != 0
            })
            .fold(0, |m, lane| m | 1 << lane);
        if bad != 0 {
            self.report(Check::LoopStep, site, warp.index, bad, |_, lane| {
                let step = value(ty, register.get(&warp.rows, lane));
                Description::new(describe_nonpositive_step(&step))
            });
        }
        bad
    }

    /// Reports the negation of the least value of a signed type.
    pub fn check_negation(&mut self, site: Pc, warp: &Warp, mask: u32, ty: Scalar, a: u32) {
        let bad = self.simd.is_minimum(&warp.rows, ty, a) & mask;
        if bad != 0 && ty.is_signed() {
            self.overflow(site, warp, bad, &format!("the negation of `{ty}::MIN` overflows"));
        }
    }
}

/// Describes a shift by the width of the type or more.
fn beyond_the_width(op: Binary, ty: Scalar, a: impl Display, distance: u32) -> String {
    let (sign, width) = (symbol(op).unwrap_or_default(), ty.bits());
    let counts = distance % width;
    format!(
        "`{a} {sign} {distance}` shifts a `{ty}` of {width} bits by at least its width: the distance counts as {counts}"
    )
}

/// Describes a loop with a step that is not positive.
pub fn describe_nonpositive_step(step: &str) -> String {
    format!("the loop steps by {step}: a step must be above zero")
}

/// Describes an overflow of `a` op `b`.
pub fn overflow(op: Binary, ty: Scalar, a: impl Display, b: impl Display) -> String {
    let sign = symbol(op).unwrap_or_default();
    format!("`{a} {sign} {b}` overflows `{ty}`")
}
