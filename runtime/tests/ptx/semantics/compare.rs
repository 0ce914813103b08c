//! Comparison and selection.

use super::float::{flush, is_float, to_f64};
use super::integer::{number, signed};
use super::{Given, Outcome, Value};
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};
use std::cmp::Ordering;

/// The opcodes of [`of`].
pub const OPCODES: &[Opcode] = {
    use Opcode::*;
    &[Setp, Set, Selp, Slct]
};

/// Returns whether the instruction's comparison of two values holds.
fn holds(given: &Given<'_>, ty: Type, a: u64, b: u64) -> bool {
    use Modifier::*;
    let how = given.form.modifiers[0];
    let order = if is_float(ty) {
        let of = |x: u64| to_f64(ty, if given.has(Ftz) { flush(ty, x) } else { x });
        of(a).partial_cmp(&of(b))
    } else {
        Some(number(a, ty).cmp(&number(b, ty)))
    };
    let is = |wanted: &[Ordering]| order.is_some_and(|o| wanted.contains(&o));
    use Ordering::{Equal, Greater, Less};
    match how {
        Eq => is(&[Equal]),
        Ne => is(&[Less, Greater]),
        Lt | Lo => is(&[Less]),
        Le | Ls => is(&[Less, Equal]),
        Gt | Hi => is(&[Greater]),
        Ge | Hs => is(&[Greater, Equal]),
        Num => order.is_some(),
        Nan => order.is_none(),
        Equ => order.is_none() || is(&[Equal]),
        Neu => !is(&[Equal]),
        Ltu => !is(&[Equal, Greater]),
        Leu => !is(&[Greater]),
        Gtu => !is(&[Less, Equal]),
        Geu => !is(&[Less]),
        other => panic!("{other}"),
    }
}

/// Combines the comparison with the instruction's predicate, if it has one.
fn combined(given: &Given<'_>, holds: bool, c: u64) -> bool {
    let c = c & 1 == 1;
    // The combining modifier follows the comparison's modifier.
    match given.form.modifiers[1] {
        Modifier::And => holds && c,
        Modifier::Or => holds || c,
        Modifier::Xor => holds != c,
        _ => holds,
    }
}

pub fn of(given: &Given<'_>) -> Outcome {
    let [a, b, c, _] = given.x;
    let ty = given.ty();
    match given.form.row.opcode {
        Opcode::Selp => Value::Bits(if c & 1 == 1 { a } else { b }).into(),
        Opcode::Slct => {
            let yes = match ty {
                Type::F32 => to_f64(ty, if given.has(Modifier::Ftz) { flush(ty, c) } else { c }) >= 0.0,
                _ => number(c, ty) >= 0,
            };
            Value::Bits(if yes { a } else { b }).into()
        }
        Opcode::Setp if ty == Type::F16x2 => {
            let part =
                |shift: u32| combined(given, holds(given, Type::F16, a >> shift & 0xffff, b >> shift & 0xffff), c);
            Outcome { d: Value::Bits(part(0).into()), second: Some(part(16)), carry: None }
        }
        Opcode::Setp => {
            let holds = holds(given, ty, a, b);
            let paired = given.form.row.operands()[0].paired;
            let second = paired.then(|| combined(given, !holds, c));
            Outcome { d: Value::Bits(combined(given, holds, c).into()), second, carry: None }
        }
        _ => {
            let types = given.named();
            let to = types[types.len() - 2];
            let yes = |to: Type| match to {
                Type::F32 => u64::from(1f32.to_bits()),
                Type::F16 => 0x3c00,
                to => {
                    assert!(signed(to) || matches!(to, Type::U16 | Type::U32));
                    u64::MAX >> (64 - to.bits())
                }
            };
            if ty != Type::F16x2 {
                let holds = combined(given, holds(given, ty, a, b), c);
                return Value::Bits(if holds { yes(to) } else { 0 }).into();
            }
            let one = if to == Type::F16x2 { 0x3c00 } else { 0xffff };
            let part = |shift: u32| {
                let holds = holds(given, Type::F16, a >> shift & 0xffff, b >> shift & 0xffff);
                (u64::from(combined(given, holds, c)) * one) << shift
            };
            Value::Bits(part(0) | part(16)).into()
        }
    }
}
