//! The approximate instructions of the hardware: their error bounds, and a stand-in for executors
//! without the hardware.
//!
//! The PTX manual states error bounds, and the bits differ between GPUs. Both interpreters and the
//! bodies of the prelude compute [`Approximation::stand_in`], so that all three agree exactly. A
//! GPU's result is close to that value; the kernel declares the largest difference
//! (`#[kernel(tolerance(…))]`). No pass folds an approximation of a constant, because the GPU's
//! result is unknown.

use crate::ptx::{Modifier, Opcode};
use crate::target::Target;
use serde::{Deserialize, Serialize};

/// An approximate `f32` instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Approximation {
    Reciprocal,
    SquareRoot,
    ReciprocalSquareRoot,
    Sine,
    Cosine,
    Exponential,
    Logarithm,
    Tangent,
}

impl Approximation {
    /// All approximations.
    pub const ALL: [Approximation; 8] = [
        Approximation::Reciprocal,
        Approximation::SquareRoot,
        Approximation::ReciprocalSquareRoot,
        Approximation::Sine,
        Approximation::Cosine,
        Approximation::Exponential,
        Approximation::Logarithm,
        Approximation::Tangent,
    ];

    /// Returns the opcode.
    pub const fn opcode(self) -> Opcode {
        match self {
            Approximation::Reciprocal => Opcode::Rcp,
            Approximation::SquareRoot => Opcode::Sqrt,
            Approximation::ReciprocalSquareRoot => Opcode::Rsqrt,
            Approximation::Sine => Opcode::Sin,
            Approximation::Cosine => Opcode::Cos,
            Approximation::Exponential => Opcode::Ex2,
            Approximation::Logarithm => Opcode::Lg2,
            Approximation::Tangent => Opcode::Tanh,
        }
    }

    /// Returns the approximation that an opcode with `.approx` computes.
    pub fn of(opcode: Opcode) -> Option<Approximation> {
        Approximation::ALL.into_iter().find(|a| a.opcode() == opcode)
    }

    /// Returns the modifiers that the compiler emits.
    pub fn modifiers(self) -> &'static [Modifier] {
        if self.flushes() {
            &[Modifier::Approx, Modifier::Ftz, Modifier::F32]
        } else {
            &[Modifier::Approx, Modifier::F32]
        }
    }

    /// Returns the first target with this feature.
    pub const fn first_target(self) -> Target {
        match self {
            Approximation::Tangent => Target::SM_75,
            _ => Target::SM_61,
        }
    }

    /// Returns the error bound, from the section of the PTX manual about the instruction.
    pub const fn bound(self) -> &'static str {
        match self {
            Approximation::Reciprocal => "1 ulp",
            Approximation::SquareRoot => "relative 2^-23",
            Approximation::ReciprocalSquareRoot => "relative 2^-22.9",
            Approximation::Sine | Approximation::Cosine => "absolute 2^-20.5 in [-2pi, 2pi]",
            Approximation::Exponential => "2 ulp",
            Approximation::Logarithm => "absolute 2^-22 in (0.5, 2), relative 2^-22 elsewhere",
            Approximation::Tangent => "relative 2^-11",
        }
    }

    /// Returns whether the emitted form flushes subnormal operands and results to zero. With `.ftz`
    /// the instruction is one machine instruction, and about four without. `tanh` keeps subnormals
    /// at no cost.
    pub const fn flushes(self) -> bool {
        !matches!(self, Approximation::Tangent)
    }

    /// Computes the stand-in for the instruction as the compiler emits it.
    pub fn stand_in(self, x: f32) -> f32 {
        if self.flushes() { flush(self.nearest(flush(x))) } else { self.nearest(x) }
    }

    /// Computes the exact result rounded to `f32`, which is within the bound of the manual. All
    /// NaNs are equal.
    ///
    /// The function is never inlined, so that rustc cannot fold constant arguments and the host's
    /// functions compute them too.
    #[inline(never)]
    pub fn nearest(self, x: f32) -> f32 {
        let y = self.exact(f64::from(x)) as f32;
        if y.is_nan() { f32::NAN } else { y }
    }

    /// Computes the exact function to about one ulp of `f64`.
    #[inline(never)]
    pub fn exact(self, x: f64) -> f64 {
        match self {
            Approximation::Reciprocal => 1.0 / x,
            Approximation::SquareRoot => x.sqrt(),
            Approximation::ReciprocalSquareRoot => 1.0 / x.sqrt(),
            Approximation::Sine => x.sin(),
            Approximation::Cosine => x.cos(),
            Approximation::Exponential => x.exp2(),
            Approximation::Logarithm => x.log2(),
            Approximation::Tangent => x.tanh(),
        }
    }
}

/// Returns `x`, or a zero of the same sign if `x` is subnormal.
fn flush(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subnormals_are_zeros_of_their_sign() {
        let least = f32::from_bits(1);
        assert_eq!(Approximation::Reciprocal.stand_in(-least), f32::NEG_INFINITY);
        assert_eq!(Approximation::Logarithm.stand_in(least), f32::NEG_INFINITY);
        assert_eq!(Approximation::Exponential.stand_in(-126.5).to_bits(), 0);
        assert_eq!(Approximation::Reciprocal.stand_in(-1.5e38).to_bits(), 1 << 31);
        assert_eq!(Approximation::Tangent.stand_in(least), least);
    }

    #[test]
    fn edge_cases_match_the_manual() {
        use Approximation::*;
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        for (function, x, y) in [
            (Reciprocal, 0.0, infinity),
            (Reciprocal, -0.0, -infinity),
            (Reciprocal, infinity, 0.0),
            (SquareRoot, -1.0, nan),
            (SquareRoot, -0.0, -0.0),
            (ReciprocalSquareRoot, -0.0, -infinity),
            (ReciprocalSquareRoot, infinity, 0.0),
            (Sine, infinity, nan),
            (Cosine, 0.0, 1.0),
            (Exponential, -infinity, 0.0),
            (Exponential, 0.0, 1.0),
            (Logarithm, 0.0, -infinity),
            (Logarithm, -1.0, nan),
            (Tangent, -infinity, -1.0),
        ] {
            let given = function.stand_in(x);
            let same = given.to_bits() == y.to_bits() || given.is_nan() && y.is_nan();
            assert!(same, "{function:?} of {x}: {given}, not {y}");
        }
        assert!(Approximation::ALL.iter().all(|a| a.stand_in(nan).is_nan()));
    }

    #[test]
    fn each_approximation_is_an_instruction() {
        assert!(Approximation::ALL.iter().all(|a| Approximation::of(a.opcode()) == Some(*a)));
        assert_eq!(Approximation::of(Opcode::Add), None);
    }
}
