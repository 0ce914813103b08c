//! Rust's `as`, and bitcasts.

use super::arithmetic::narrow;
use super::{Emitter, constant, register_type, scalar_type};
use crate::ir::{Type, Value};
use crate::ptx::{self, Modifier, Opcode, Operand, RegisterId};
use crate::scalar::Scalar;

/// Returns whether `to` has every value of `from`, and a register extended for `from` is also
/// correctly extended for `to`.
fn holds_all(from: Scalar, to: Scalar) -> bool {
    match (from.is_signed(), to.is_signed()) {
        (true, false) => false,
        (false, true) => from.bits() < to.bits(),
        _ => from.bits() <= to.bits(),
    }
}

/// Returns whether a cast between these types keeps the register's bits, so that both values can
/// share the register.
pub(super) fn keeps_bits(from: Type, to: Type) -> bool {
    let (Type::Scalar(from_scalar), Type::Scalar(to_scalar)) = (from, to) else { return from == to };
    register_type(from) == register_type(to)
        && (from_scalar == to_scalar
            || from_scalar.is_integer()
                && to_scalar.is_integer()
                && (!narrow(to_scalar) || holds_all(from_scalar, to_scalar))
            || matches!(
                (from_scalar, to_scalar),
                (Scalar::U16, Scalar::Bf16 | Scalar::Custom(_)) | (Scalar::Bf16 | Scalar::Custom(_), Scalar::U16)
            ))
}

impl Emitter<'_> {
    /// Writes the low bits of `from`, extended like a value of the integer type `s` (8 or 16 bits).
    pub(super) fn extend(&mut self, to: RegisterId, from: Operand, s: Scalar) {
        let (whole, part) = match s {
            Scalar::I8 => (Modifier::S32, Modifier::S8),
            Scalar::I16 => (Modifier::S32, Modifier::S16),
            Scalar::U8 => (Modifier::U32, Modifier::U8),
            _ => (Modifier::U32, Modifier::U16),
        };
        self.op(Opcode::Cvt, [whole, part], [to.into(), from]);
    }

    pub(super) fn cast(&mut self, result: Value, a: Value) {
        let (to, from) = (self.ty(result), self.ty(a));
        if self.flow.survey.root(result) != result {
            return;
        }
        let (Type::Scalar(to), Type::Scalar(from)) = (to, from) else { return self.address_of(result, a) };
        match (from, to) {
            (Scalar::Bool, Scalar::Bool)
            | (Scalar::F16, Scalar::F16)
            | (Scalar::Bf16, Scalar::Bf16)
            | (Scalar::Custom(_), Scalar::Custom(_)) => {
                let (a, d) = (self.operand(a), self.define(result));
                self.copy(d, a);
            }
            (Scalar::Bool, _) => {
                let one = if to == Scalar::F32 {
                    u64::from(1f32.to_bits())
                } else if to == Scalar::F64 {
                    1f64.to_bits()
                } else {
                    1
                };
                let (yes, no) = (constant(Type::Scalar(to), one), constant(Type::Scalar(to), 0));
                let (a, d) = (self.operand(a), self.define(result));
                self.op(Opcode::Selp, [scalar_type(to).modifier()], [d.into(), yes, no, a]);
            }
            (Scalar::F16, Scalar::F32) => {
                let (a, d) = (self.in_register(a), self.define(result));
                self.op(Opcode::Cvt, [Modifier::F32, Modifier::F16], [d.into(), a.into()]);
            }
            (Scalar::F32, Scalar::F16) => {
                let (a, d) = (self.in_register(a), self.define(result));
                self.op(Opcode::Cvt, [Modifier::Rn, Modifier::F16, Modifier::F32], [d.into(), a.into()]);
            }
            _ if from.is_half() || to.is_half() => {
                self.malformed("a conversion of 16 bits that lowering should have replaced")
            }
            (_, Scalar::Bool) => self.malformed("a cast to bool"),
            _ if from.is_float() && to.is_float() => self.float_to_float(result, from, to, a),
            _ if from.is_float() => self.float_to_integer(result, from, to, a),
            _ if to.is_float() => {
                let (a, d) = (self.operand(a), self.define(result));
                let modifiers = [Modifier::Rn, scalar_type(to).modifier(), scalar_type(from).modifier()];
                self.op(Opcode::Cvt, modifiers, [d.into(), a]);
            }
            _ => self.integer_to_integer(result, from, to, a),
        }
    }

    fn float_to_float(&mut self, result: Value, from: Scalar, to: Scalar, a: Value) {
        let (a, d) = (self.operand(a), self.define(result));
        match (from, to) {
            (Scalar::F64, Scalar::F32) => {
                self.op(Opcode::Cvt, [Modifier::Rn, Modifier::F32, Modifier::F64], [d.into(), a])
            }
            (Scalar::F32, Scalar::F64) => self.op(Opcode::Cvt, [Modifier::F64, Modifier::F32], [d.into(), a]),
            _ => self.copy(d, a),
        }
    }

    /// Converts a float to an integer. In 32 bits `cvt` saturates like Rust and gives 0 for a NaN.
    /// With 64 bits on either side, a NaN is tested separately. Narrow types are clamped.
    fn float_to_integer(&mut self, result: Value, from: Scalar, to: Scalar, a: Value) {
        let (float, integer) = (scalar_type(from), scalar_type(to));
        let a = self.operand(a);
        let how = [Modifier::Rzi, integer.modifier(), float.modifier()];
        if from == Scalar::F32 && to.bits() == 32 {
            let d = self.define(result);
            return self.op(Opcode::Cvt, how, [d.into(), a]);
        }
        let mut converted = self.register(integer);
        self.op(Opcode::Cvt, how, [converted.into(), a.clone()]);
        if from == Scalar::F64 || to.bits() == 64 {
            let number = self.register(ptx::Type::Pred);
            self.op(Opcode::Setp, [Modifier::Num, float.modifier()], [number.into(), a.clone(), a]);
            let selected = if narrow(to) { self.register(integer) } else { self.define(result) };
            self.op(
                Opcode::Selp,
                [integer.modifier()],
                [selected.into(), converted.into(), Operand::Integer(0), number.into()],
            );
            converted = selected;
        }
        if narrow(to) {
            if to.is_signed() {
                let least = Operand::Integer(-1 << (to.bits() - 1));
                let raised = self.register(integer);
                self.op(Opcode::Max, [integer.modifier()], [raised.into(), converted.into(), least]);
                converted = raised;
            }
            let most = to.mask() >> u32::from(to.is_signed());
            let d = self.define(result);
            self.op(Opcode::Min, [integer.modifier()], [d.into(), converted.into(), Operand::Integer(most as i64)]);
        }
    }

    fn integer_to_integer(&mut self, result: Value, from: Scalar, to: Scalar, a: Value) {
        let a = self.operand(a);
        if narrow(to) && !holds_all(from, to) {
            let d = self.define(result);
            return self.extend(d, a, to);
        }
        let d = self.define(result);
        match (from.bits() == 64, to.bits() == 64) {
            // The sign of the source type determines the extension.
            (false, true) => {
                let (wide, half) =
                    if from.is_signed() { (Modifier::S64, Modifier::S32) } else { (Modifier::U64, Modifier::U32) };
                self.op(Opcode::Cvt, [wide, half], [d.into(), a]);
            }
            (true, false) => self.op(Opcode::Cvt, [Modifier::U32, Modifier::U64], [d.into(), a]),
            _ => self.copy_bits(d, a),
        }
    }

    pub(super) fn bitcast(&mut self, result: Value, a: Value) {
        if self.flow.survey.root(result) != result {
            return;
        }
        if self.ty(result) == Type::Shared {
            return self.address_of(result, a);
        }
        let given = self.ty(a).scalar();
        let s = self.ty(result).scalar();
        let a = self.operand(a);
        let d = self.define(result);
        match s {
            // The types differ in sign, so the value is extended again.
            Some(s) if narrow(s) => self.extend(d, a, s),
            Some(Scalar::Bf16 | Scalar::Custom(_)) => self.extend(d, a, Scalar::U16),
            Some(Scalar::F16) if given != Some(Scalar::F16) => {
                self.op(Opcode::Cvt, [Modifier::U16, Modifier::U32], [d.into(), a])
            }
            Some(Scalar::Bool) if given != Some(Scalar::Bool) => self.malformed("a bit cast to `bool`"),
            _ => self.copy_bits(d, a),
        }
    }

    /// Copies bits to a register of any class.
    fn copy_bits(&mut self, to: RegisterId, from: Operand) {
        let float = |bits: u32, n: i64| {
            if bits == 64 { Operand::F64(n as u64) } else { Operand::F32(n as u32) }
        };
        let ty = self.builder.entry().ty(to);
        let from = match from {
            Operand::Integer(n) if matches!(ty, ptx::Type::F32 | ptx::Type::F64) => float(ty.bits(), n),
            Operand::F32(bits) if ty != ptx::Type::F32 => Operand::Integer(i64::from(bits)),
            Operand::F64(bits) if ty != ptx::Type::F64 => Operand::Integer(bits as i64),
            from => from,
        };
        self.copy(to, from);
    }
}
