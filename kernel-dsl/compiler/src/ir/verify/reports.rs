//! The rules of operations that report to a reader or the host, and of inline PTX.

use super::{S, Verifier};
use crate::ir::*;
use crate::ptx::InlineBlock;
use crate::scalar::Scalar;

impl Verifier<'_> {
    pub(super) fn dbg_value(&mut self, inst: &Inst, value: Value) {
        let fits = matches!(self.ty(value), S(_)) && inst.results.is_empty();
        self.check(inst, fits, "a variable is a scalar, and has no result");
    }

    pub(super) fn panic(&mut self, inst: &Inst, values: &[Value]) {
        let fits = values.iter().all(|v| matches!(self.ty(*v), S(_))) && inst.results.is_empty();
        self.check(inst, fits, "a panic shows scalars, and has no result");
    }

    pub(super) fn log(&mut self, inst: &Inst, values: &[Value]) {
        use Scalar::{Bool, F64, I32, I64, U32, U64};
        let printed = |v: &Value| matches!(self.ty(*v), S(Bool | I32 | U32 | I64 | U64 | F64));
        let fits = values.iter().all(printed) && inst.results.is_empty();
        self.check(inst, fits, "a log prints values that `printf` takes, and has no result");
    }

    pub(super) fn record_violation(&mut self, inst: &Inst, record: Value, state: Value, values: &[Value]) {
        let numbers = self.ty(state) == S(Scalar::U32) && values.iter().all(|v| self.ty(*v) == S(Scalar::Usize));
        let fits = numbers && values.len() <= record::MAX_VALUES && inst.results.is_empty();
        self.check(inst, fits && self.ty(record) == Type::Global, "a report has an address and some usize values");
    }

    pub(super) fn inline(&mut self, inst: &Inst, code: &InlineBlock, inputs: &[Value]) {
        let source = code.source();
        let fits = source.inputs().map(|o| S(o.ty)).eq(inputs.iter().map(|v| self.ty(*v)))
            && source.outputs().map(|o| S(o.ty)).eq(inst.results.iter().map(|v| self.ty(*v)));
        self.check(inst, fits, "inline PTX takes and gives values of the types of its operands");
    }
}
