//! The functions of `fast::`, made of hardware approximations and exact operations around them.

use super::lowerer::Lowerer;
use super::lowerer::maybe_const::MaybeConst;
use crate::Scalar;
use crate::approximation::Approximation;
use crate::hir::Fast;
use crate::ir::{Binary, Op};

const F32: Scalar = Scalar::F32;

impl Lowerer<'_> {
    /// Lowers `function` applied to `x` and, for a quotient, to the divisor.
    pub(super) fn fast(&mut self, function: Fast, x: MaybeConst, divisor: Option<MaybeConst>) -> Option<MaybeConst> {
        Some(match function {
            Fast::One(what) => self.approximate(what, x),
            Fast::Exp => self.exponential(x, std::f32::consts::LOG2_E),
            Fast::Ln => {
                let (log, ln_2) = (self.approximate(Approximation::Logarithm, x), self.single(std::f32::consts::LN_2));
                self.binary(Binary::Mul, F32, log, ln_2)
            }
            Fast::Div => {
                let inverse = self.approximate(Approximation::Reciprocal, divisor?);
                self.binary(Binary::Mul, F32, x, inverse)
            }
            Fast::Tanh if self.builder.kernel.target >= Approximation::Tangent.first_target() => {
                self.approximate(Approximation::Tangent, x)
            }
            Fast::Tanh => {
                let power = self.exponential(x, 2.0 * std::f32::consts::LOG2_E);
                let (one, minus_two) = (self.single(1.0), self.single(-2.0));
                let sum = self.binary(Binary::Add, F32, power, one);
                let inverse = self.approximate(Approximation::Reciprocal, sum);
                let value = self.builder.scalar(Op::MulAdd(inverse.value, minus_two.value, one.value), F32);
                MaybeConst::unknown(value)
            }
        })
    }

    /// Lowers 2^(x · `scale`).
    fn exponential(&mut self, x: MaybeConst, scale: f32) -> MaybeConst {
        let scale = self.single(scale);
        let scaled = self.binary(Binary::Mul, F32, x, scale);
        self.approximate(Approximation::Exponential, scaled)
    }

    fn approximate(&mut self, what: Approximation, x: MaybeConst) -> MaybeConst {
        MaybeConst::unknown(self.builder.scalar(Op::Approximate(what, x.value), F32))
    }

    fn single(&mut self, x: f32) -> MaybeConst {
        self.number(F32, x.to_bits().into())
    }
}
