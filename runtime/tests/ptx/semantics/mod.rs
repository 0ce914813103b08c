//! The semantics of each instruction in the table: every form from registers to registers, with
//! every combination of modifiers. Operands are boundary and random values, or all values if there
//! are at most 2¹⁶.
//!
//! The references share no code with the interpreter. Floats are computed by `rustc_apfloat`, and
//! the rest follows the manual's pseudocode on wide integers.

mod atomic;
mod compare;
mod convert;
mod float;
mod integer;
mod kernel;
mod memory;
mod video;

use kernel::{Form, forms};
use kernel_dsl::compiler::ptx::form::FormRow;
use kernel_dsl::compiler::ptx::table::ROWS;
use kernel_dsl::compiler::ptx::{Modifier, Opcode, Type};

/// An instruction and the values of its operands.
struct Given<'a> {
    form: &'a Form,
    /// The bits of each source operand, truncated to its type.
    x: [u64; 4],
    /// The previous carry.
    carry: bool,
}

impl Given<'_> {
    fn has(&self, modifier: Modifier) -> bool {
        self.form.modifiers.contains(&modifier)
    }

    /// Returns the types that the modifiers name, in order.
    fn named(&self) -> &[Type] {
        &self.form.named
    }

    /// Returns the operand type of the instruction.
    fn ty(&self) -> Type {
        *self.form.named.last().expect("it has a type")
    }
}

/// The expected value.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Value {
    /// Exactly these bits.
    Bits(u64),
    /// A NaN with any payload.
    Nan(Type),
    /// Two halves, each of which may be a NaN.
    Halves([u16; 2]),
    /// A float within `bound` of `x`.
    Near { ty: Type, x: f64, bound: f64 },
    /// Left open by the manual.
    Open,
}

/// The expected result, second predicate and carry.
struct Outcome {
    d: Value,
    second: Option<bool>,
    carry: Option<bool>,
}

impl From<Value> for Outcome {
    fn from(d: Value) -> Outcome {
        Outcome { d, second: None, carry: None }
    }
}

/// Computes the expected outcome of the form; `None` for an instruction with side effects.
fn expected(given: &Given<'_>) -> Option<Outcome> {
    let opcode = given.form.row.opcode;
    Some(match opcode {
        _ if float::OPCODES.contains(&opcode) => float::of(given).into(),
        _ if integer::BITS.contains(&opcode) => Value::Bits(integer::bits(given)).into(),
        _ if integer::ARITHMETIC.contains(&opcode) && float::is_float(given.ty()) => float::of(given).into(),
        _ if integer::ARITHMETIC.contains(&opcode) => integer::of(given),
        _ if compare::OPCODES.contains(&opcode) => compare::of(given),
        Opcode::Cvt => convert::of(given).into(),
        _ if video::has(opcode) => Value::Bits(video::of(given).into()).into(),
        _ => return None,
    })
}

impl Value {
    /// Returns whether these bits match the expected value.
    fn is(self, bits: u64) -> bool {
        let nan = |ty: Type, bits: u64| match ty {
            Type::F64 => f64::from_bits(bits).is_nan(),
            Type::F32 => f32::from_bits(bits as u32).is_nan(),
            Type::Bf16 => f32::from_bits((bits as u32) << 16).is_nan(),
            _ => bits & 0x7fff > 0x7c00,
        };
        match self {
            Value::Bits(expected) => bits == expected,
            Value::Nan(ty) => nan(ty, bits),
            Value::Halves(expected) => expected
                .into_iter()
                .zip([bits as u16, (bits >> 16) as u16])
                .all(|(e, b)| if nan(Type::F16, e.into()) { nan(Type::F16, b.into()) } else { e == b }),
            Value::Near { ty, x, bound } => {
                let ours = float::to_f64(ty, bits);
                ours == x || (ours - x).abs() <= bound
            }
            Value::Open => true,
        }
    }
}

/// Checks the selected instructions of the table that only compute, and returns their number.
fn check(wanted: impl Fn(&FormRow) -> bool) -> usize {
    let mut count = 0;
    for row in ROWS.iter().filter(|row| row.removed.is_none_or(|(target, _)| target > 61) && wanted(row)) {
        for form in forms(row) {
            let lanes = kernel::operands(&form);
            let results = kernel::run(&form, &lanes);
            for ((x, carry), result) in lanes.iter().zip(results) {
                let given = Given { form: &form, x: *x, carry: *carry };
                let Some(Outcome { d, second, carry: out }) = expected(&given) else {
                    panic!("no reference of {}", row.form)
                };
                let fine = d.is(result.d)
                    && second.is_none_or(|p| p == result.second)
                    && out.is_none_or(|c| c == result.carry);
                assert!(
                    fine,
                    "{} of {x:x?} with carry {carry} gives {:x} {} {}; expected is {d:x?} {second:?} {out:?}",
                    form.text, result.d, result.second, result.carry
                );
            }
            count += 1;
        }
    }
    count
}

#[test]
fn arithmetic_and_carries_match_their_definition() {
    let count = check(|row| integer::ARITHMETIC.contains(&row.opcode));
    assert!(count > 250, "{count}");
}

#[test]
fn bit_operations_match_their_definition() {
    let count = check(|row| integer::BITS.contains(&row.opcode));
    assert!(count > 60, "{count}");
}

#[test]
fn floats_are_rounded_or_approximated_as_defined() {
    let count = check(|row| float::OPCODES.contains(&row.opcode));
    assert!(count > 80, "{count}");
}

#[test]
fn comparisons_match_their_definition() {
    let count = check(|row| compare::OPCODES.contains(&row.opcode));
    assert!(count > 3000, "{count}");
}

#[test]
fn integers_convert_as_defined() {
    let count = check(|row| row.opcode == Opcode::Cvt && of_float(row) == Some(false));
    assert!(count > 400, "{count}");
}

#[test]
fn floats_convert_as_defined() {
    let count = check(|row| row.opcode == Opcode::Cvt && of_float(row) == Some(true));
    assert!(count > 400, "{count}");
}

/// Returns whether the source of a conversion is a float.
fn of_float(row: &FormRow) -> Option<bool> {
    let slot = row.slots().iter().rfind(|slot| slot.alternatives.iter().any(|m| m.ty().is_some()))?;
    slot.alternatives.iter().next()?.ty().map(float::is_float)
}

#[test]
fn video_operations_match_their_definition() {
    let count = check(|row| video::has(row.opcode));
    assert!(count > 1500, "{count}");
}
