//! The rules of operations that compute values and addresses.

use super::{S, Verifier};
use crate::ir::*;
use crate::scalar::Scalar;

impl Verifier<'_> {
    pub(super) fn constant(&mut self, inst: &Inst, bits: u64) {
        let out = self.first_result_type(inst);
        let scalar = out.scalar();
        let mask = scalar.map_or(u64::from(u32::MAX), Scalar::mask);
        // Null is the initial value of an address variable.
        self.check(inst, out != Type::Global || bits == 0, "an address in global memory is not constant");
        self.check(inst, bits & !mask == 0, "the constant has more bits than its type");
    }

    pub(super) fn parameter(&mut self, inst: &Inst, index: u32) {
        let ty = self.kernel.parameters.get(index as usize).map(Parameter::ty);
        self.check(inst, ty == inst.results.first().map(|v| self.ty(*v)), "the parameter has another type");
    }

    pub(super) fn table(&mut self, inst: &Inst, table: TableId) {
        self.check(
            inst,
            self.kernel.table(table).is_some() && self.first_result_type(inst).is_wide_address(),
            "the table does not exist, or the result is not an address",
        );
    }

    pub(super) fn special(&mut self, inst: &Inst, special: Special) {
        self.check(
            inst,
            special.axis() < 3 && self.first_result_type(inst) == S(Scalar::Usize),
            "a special register has axis 0 to 2 and is usize",
        );
    }

    pub(super) fn unary(&mut self, inst: &Inst, op: Unary, a: Value) {
        let scalar = self.first_result_type(inst).scalar();
        let from = self.ty(a).scalar();
        let fits = from.is_some_and(|operand| op.takes(operand));
        let to = from.map(|operand| op.result(operand));
        self.check(inst, fits && scalar == to, "the operand's or result's type does not fit the operator");
    }

    pub(super) fn binary(&mut self, inst: &Inst, op: Binary, a: Value, b: Value) {
        let scalar = self.first_result_type(inst).scalar();
        let (ta, tb) = (self.ty(a).scalar(), self.ty(b).scalar());
        let fits = ta.is_some_and(|operand| op.takes(operand));
        let second = if op.is_shift() { Some(Scalar::U32) } else { ta };
        self.check(inst, fits && tb == second && scalar == ta, "operand and result types do not fit the operator");
    }

    pub(super) fn mul_add(&mut self, inst: &Inst, operands: [Value; 3]) {
        let out = self.first_result_type(inst);
        let same = operands.iter().all(|v| self.ty(*v) == out);
        self.check(inst, same && out.scalar().is_some_and(Scalar::is_float), "mul_add has one float type");
    }

    pub(super) fn approximate(&mut self, inst: &Inst, a: Value) {
        let out = self.first_result_type(inst);
        let fits = out.scalar() == Some(Scalar::F32) && self.ty(a) == out;
        self.check(inst, fits, "approximations have operand and result of type f32");
    }

    pub(super) fn bits(&mut self, inst: &Inst, what: Bits, operands: &[Value]) {
        let types: Option<Vec<Scalar>> = operands.iter().map(|v| self.ty(*v).scalar()).collect();
        let to = types.and_then(|types| what.result(&types));
        self.check(
            inst,
            to.is_some() && to == self.first_result_type(inst).scalar(),
            "operand and result types do not fit the instruction",
        );
    }

    pub(super) fn compare(&mut self, inst: &Inst, comparison: Comparison, a: Value, b: Value) {
        let ordered = self.ty(a) != S(Scalar::Bool) || matches!(comparison, Comparison::Eq | Comparison::Ne);
        let fits = self.ty(a) == self.ty(b) && self.ty(a).scalar().is_some_and(|s| !s.is_half()) && ordered;
        self.check(
            inst,
            fits && self.first_result_type(inst) == S(Scalar::Bool),
            "a comparison has one scalar type and gives bool",
        );
    }

    pub(super) fn select(&mut self, inst: &Inst, condition: Value, yes: Value, no: Value) {
        let out = self.first_result_type(inst);
        let fits = self.ty(condition) == S(Scalar::Bool) && self.ty(yes) == out && self.ty(no) == out;
        self.check(inst, fits, "select takes a bool and two values of the result's type");
    }

    pub(super) fn cast(&mut self, inst: &Inst, a: Value) {
        let scalar = self.first_result_type(inst).scalar();
        let fits = match (self.ty(a).scalar(), scalar) {
            (Some(Scalar::F16), Some(Scalar::F32)) | (Some(Scalar::F32), Some(Scalar::F16)) => true,
            (Some(from), Some(to)) if from.is_half() || to.is_half() => from == to,
            (Some(from), Some(to)) => from == to || (to != Scalar::Bool && !(from == Scalar::Bool && to.is_float())),
            _ => false,
        };
        self.check(inst, fits, "Rust has no `as` cast between these types");
    }

    pub(super) fn bitcast(&mut self, inst: &Inst, a: Value) {
        let scalar = self.first_result_type(inst).scalar();
        let fits = self.ty(a).scalar().map(Scalar::bits) == scalar.map(Scalar::bits) && scalar.is_some();
        self.check(inst, fits, "a bitcast is between types of one width");
    }

    pub(super) fn offset(&mut self, inst: &Inst, base: Value, terms: &[(Value, Option<Value>)]) {
        let out = self.first_result_type(inst);
        let mut values = terms.iter().flat_map(|(i, s)| [Some(*i), *s]).flatten();
        let fits = values.all(|v| self.ty(v) == S(Scalar::Usize));
        self.check(
            inst,
            fits && out == self.ty(base) && out.scalar().is_none(),
            "offset moves an address by usize terms",
        );
    }
}
