//! Error bounds of approximate instructions.

use super::forms::SampleForm;
use kernel_dsl::compiler::ptx::{Opcode, Type};
use kernel_dsl::half::f16;
use std::f64::consts::PI;

/// Returns whether a card's result and the interpreter's, which is the nearest to the true one,
/// agree within the documented bound.
pub fn within(form: &SampleForm, card: u64, ours: u64, operand: u64) -> bool {
    match form.results[0] {
        Type::F64 => {
            let unit = if form.name.contains(".ftz") { 1 << 32 } else { 1 };
            ordered(card as i64, 63).abs_diff(ordered(ours as i64, 63)) <= 2 * unit
        }
        Type::F16 => is_half_within(form.row.opcode, card, ours),
        Type::F16x2 => [0, 16].iter().all(|shift| is_half_within(form.row.opcode, card >> shift, ours >> shift)),
        _ => {
            let (a, b, x) = (single(card), single(ours), single(operand).abs());
            let place = |bits: u64| {
                let at = ordered(bits as u32 as i32 as i64, 31);
                // With `.ftz`, the least normal number is next to zero.
                if form.name.contains(".ftz") && at != 0 { at - at.signum() * 0x7f_ffff } else { at }
            };
            let apart = place(card).abs_diff(place(ours));
            match form.row.opcode {
                Opcode::Rcp => apart <= 1,
                Opcode::Sqrt | Opcode::Rsqrt | Opcode::Ex2 | Opcode::Div => apart <= 2,
                Opcode::Sin | Opcode::Cos if x <= 2.0 * PI => (a - b).abs() <= f64::exp2(-20.5),
                Opcode::Sin | Opcode::Cos if x <= 100.0 * PI => (a - b).abs() <= f64::exp2(-14.7),
                Opcode::Sin | Opcode::Cos => a.abs() <= 1.0,
                Opcode::Lg2 if x > 0.5 && x < 2.0 => (a - b).abs() <= f64::exp2(-22.0),
                Opcode::Lg2 => (a - b).abs() <= b.abs() * f64::exp2(-22.0),
                Opcode::Tanh => (a - b).abs() <= b.abs() * f64::exp2(-11.0),
                _ => false,
            }
        }
    }
}

/// Returns whether results of an instruction of `f16` agree within the documented bound and the
/// rounding of the interpreter's.
fn is_half_within(opcode: Opcode, card: u64, ours: u64) -> bool {
    let [a, b] = [card, ours].map(|bits| f16::from_bits(bits as u16).to_f64());
    let rounding = (b.abs() * f64::exp2(-11.0)).max(f64::exp2(-25.0));
    let bound = match opcode {
        Opcode::Ex2 => b.abs() * f64::exp2(-9.9),
        Opcode::Tanh => f64::exp2(-10.987),
        _ => return false,
    };
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= bound + rounding
}

fn single(bits: u64) -> f64 {
    f32::from_bits(bits as u32).into()
}

/// Returns a number that orders floats: sign and magnitude as two's complement.
fn ordered(bits: i64, sign: u32) -> i64 {
    let magnitude = bits & (i64::MAX >> (63 - sign));
    if bits < 0 { -magnitude } else { magnitude }
}
