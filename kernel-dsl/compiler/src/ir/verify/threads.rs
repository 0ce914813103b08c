//! The rules of operations in which several threads take part.

use super::{S, Verifier};
use crate::ir::*;
use crate::scalar::Scalar;

impl Verifier<'_> {
    /// Checks a barrier or a fence.
    pub(super) fn ordering(&mut self, inst: &Inst) {
        self.check(inst, inst.results.is_empty(), "it has no result")
    }

    pub(super) fn shuffle(&mut self, inst: &Inst, value: Value, selector: Value, width: u32) {
        let out = self.first_result_type(inst);
        let results = inst.results.len();
        let wide = out.scalar().is_some_and(|s| s.bits() >= 32);
        let fits = results == 1 && self.ty(value) == out && wide && self.ty(selector) == S(Scalar::U32);
        self.check(inst, fits, "a shuffle exchanges a 32- or 64-bit value by a u32");
        self.check(inst, matches!(width, 2 | 4 | 8 | 16 | 32), "a shuffle's width is 2, 4, 8, 16 or 32");
    }

    pub(super) fn vote(&mut self, inst: &Inst, mode: Vote, value: Value) {
        let results = inst.results.len();
        let ty = if mode == Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
        let fits = results == 1 && self.ty(value) == S(Scalar::Bool) && self.first_result_type(inst) == S(ty);
        self.check(inst, fits, "a vote takes a bool; a ballot gives u32, others bool");
    }

    pub(super) fn match_any(&mut self, inst: &Inst, value: Value) {
        let results = inst.results.len();
        let wide = self.ty(value).scalar().is_some_and(|s| s.bits() >= 32);
        self.check(
            inst,
            results == 1 && wide && self.first_result_type(inst) == S(Scalar::U32),
            "a match takes 32 or 64 bits and gives u32",
        );
    }

    pub(super) fn reduce(&mut self, inst: &Inst, operation: Binary, value: Value) {
        let out = self.first_result_type(inst);
        let results = inst.results.len();
        let narrow = out.scalar().is_some_and(|s| s.is_integer() && s.bits() == 32);
        let fits = results == 1 && narrow && self.ty(value) == out;
        self.check(inst, fits, "a reduction has one type of integers of 32 bits");
        let known = matches!(operation, Binary::Add | Binary::Min | Binary::Max);
        self.check(inst, known, "a reduction is a sum, a minimum or a maximum");
    }
}
