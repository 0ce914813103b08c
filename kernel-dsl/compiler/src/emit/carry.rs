//! Sums and differences of two words, in the form in which lowering writes those of a `u128`.
//! Emission uses `add.cc` and `addc` instead of lowering's comparison that computes the carry.

use super::Emitter;
use crate::ir::{Binary, Comparison, Inst, Op, Type, Value};
use crate::ptx::{Modifier, Opcode};
use crate::scalar::Scalar;

/// A sum or difference of two words, each with its operands and its result.
struct DoubleSum {
    add: bool,
    low: [Value; 3],
    high: [Value; 3],
}

impl<'k> Emitter<'k> {
    /// Emits the sum or difference of two words, if `insts` begins with one. Returns the number of
    /// its instructions.
    pub(super) fn double_sum(&mut self, insts: &'k [Inst]) -> Option<usize> {
        let computed = || insts.iter().enumerate().filter(|(_, inst)| !matches!(inst.op, Op::Constant(_)));
        // The first instruction rules out most code quickly.
        let Op::Binary(Binary::Add | Binary::WrappingAdd | Binary::Sub | Binary::WrappingSub, ..) = insts.first()?.op
        else {
            return None;
        };
        let next: Vec<&Inst> = computed().take(5).map(|(_, inst)| inst).collect();
        let (sum, taken) = self.matched(&next)?;
        let (last, inst) = computed().nth(taken - 1)?;
        insts[..last].iter().filter(|i| matches!(i.op, Op::Constant(_))).for_each(|i| self.instruction(i));
        let ([a_low, b_low, low], [a_high, b_high, high]) = (sum.low, sum.high);
        let [a_low, a_high] = [a_low, a_high].map(|v| self.in_register(v));
        let [b_low, b_high] = [b_low, b_high].map(|v| self.operand(v));
        let opcodes = if sum.add { [Opcode::Add, Opcode::Addc] } else { [Opcode::Sub, Opcode::Subc] };
        self.location = Some(insts[0].location);
        self.assign(&insts[0], &insts[1..]);
        let low = self.define(low);
        self.op(opcodes[0], [Modifier::Cc, Modifier::U64], [low.into(), a_low.into(), b_low]);
        self.location = Some(inst.location);
        self.assign(inst, &insts[last + 1..]);
        let high = self.define(high);
        self.op(opcodes[1], [Modifier::U64], [high.into(), a_high.into(), b_high]);
        Some(last + 1)
    }

    /// Returns the sum that these instructions compute, and their number. The intermediate values
    /// must have no other uses.
    fn matched(&self, insts: &[&Inst]) -> Option<(DoubleSum, usize)> {
        use Binary::{Add, Sub, WrappingAdd, WrappingSub};
        let word = |v: Value| self.ty(v) == Type::Scalar(Scalar::U64);
        let once = |v: Value| self.flow.survey.uses(v) == 1;
        let result = |inst: &Inst| inst.results.first().copied();
        let [first, compared, cast, rest @ ..] = insts else { return None };
        let Op::Binary(op, a, b) = first.op else { return None };
        let add = matches!(op, Add | WrappingAdd);
        let like = |op: Binary| if add { matches!(op, Add | WrappingAdd) } else { matches!(op, Sub | WrappingSub) };
        let (low, carry) = (result(first)?, result(cast)?);
        let Op::Compare(Comparison::Lt, x, y) = compared.op else { return None };
        let is_carry = if add { x == low && (y == a || y == b) } else { (x, y) == (a, b) };
        let is_cast = matches!(cast.op, Op::Cast(flag) if Some(flag) == result(compared) && once(flag));
        if !(word(a) && word(carry) && is_carry && is_cast && once(carry)) {
            return None;
        }
        // Returns both operands of an instruction if `with` is one of them.
        let pair = |inst: &Inst, with: Value| match inst.op {
            Op::Binary(op, a, b) if like(op) && b == with && word(a) => Some(a),
            Op::Binary(op, a, b) if like(op) && add && a == with && word(b) => Some(b),
            _ => None,
        };
        let next = rest.first()?;
        if let Op::Binary(op, a_high, b_high) = next.op
            && like(op)
            && let (Some(sum), Some(last)) = (result(next), rest.get(1))
            && once(sum)
            && pair(last, carry) == Some(sum)
        {
            let high = [a_high, b_high, result(last)?];
            return Some((DoubleSum { add, low: [a, b, low], high }, 5));
        }
        None
    }
}
