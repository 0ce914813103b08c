//! Functions of lanes as [`Body`]: common instructions compute row by row, rare ones lane by lane.

use super::code::Body;
use super::registers::{RegisterPlace, RegisterScalar, Registers, lanes};
use super::rows::{holding, write};
use smallvec::SmallVec;

/// A function from one lane's operands, each zero-extended, to its result, and whether the result
/// is defined.
pub type LaneFunction = Box<dyn Fn([u64; 4]) -> (u64, bool) + Send + Sync>;

/// Returns a body that computes lane by lane, on registers of any width.
pub fn lanewise(to: RegisterPlace, from: SmallVec<[RegisterPlace; 4]>, function: LaneFunction) -> Body {
    Box::new(move |registers, mask| {
        let mut undefined = 0;
        for lane in lanes(mask) {
            let mut operands = [0; 4];
            for (operand, place) in operands.iter_mut().zip(&from) {
                *operand = registers.get(*place, lane);
            }
            let (value, defined) = function(operands);
            undefined |= u32::from(!defined) << lane;
            registers.set(to, lane, value);
        }
        undefined
    })
}

/// Returns a body with one operand.
pub fn unary<A: RegisterScalar, D: RegisterScalar>(d: u32, a: u32, f: impl Fn(A) -> D + Send + Sync + 'static) -> Body {
    Box::new(move |registers, mask| {
        write(registers, mask, d, [a; 3], |_, x: A, _: A, _: A| f(x));
        0
    })
}

/// Returns a body with two operands.
pub fn binary<A: RegisterScalar, B: RegisterScalar, D: RegisterScalar>(
    d: u32,
    [a, b]: [u32; 2],
    f: impl Fn(A, B) -> D + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        write(registers, mask, d, [a, b, a], |_, x: A, y: B, _: A| f(x, y));
        0
    })
}

/// Returns a body with three operands; the last has the width of the result.
pub fn ternary<A: RegisterScalar, D: RegisterScalar>(
    d: u32,
    [a, b, c]: [u32; 3],
    f: impl Fn(A, A, D) -> D + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        write(registers, mask, d, [a, b, c], |_, x: A, y: A, z: D| f(x, y, z));
        0
    })
}

/// The combination of a comparison's result with a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// No combination.
    None,
    /// A logical function of the result and of a predicate, which may be negated.
    #[allow(missing_docs)]
    With { operation: Logic, predicate: u32, negated: bool },
}

/// A function of two truth values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Logic {
    And,
    Or,
    Xor,
}

impl Logic {
    /// Combines two lane masks.
    pub fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
        }
    }
}

impl Join {
    /// Combines the lanes where a comparison holds with the predicate.
    #[inline(always)]
    pub fn of(self, holds: u32, registers: &Registers) -> u32 {
        match self {
            Join::None => holds,
            Join::With { operation, predicate, negated } => {
                let other = registers.predicates[predicate as usize];
                operation.of(holds, if negated { !other } else { other })
            }
        }
    }
}

/// Writes the lanes of `mask` of a predicate.
#[inline(always)]
pub fn put_predicate(registers: &mut Registers, predicate: Option<u32>, mask: u32, holds: u32) {
    if let Some(index) = predicate {
        let state = &mut registers.predicates[index as usize];
        *state = *state & !mask | holds & mask;
    }
}

/// Returns the body of a comparison: `p` receives the result and `q` its negation, each combined
/// with a predicate.
pub fn comparison<L: RegisterScalar>(
    [p, q]: [Option<u32>; 2],
    [a, b]: [u32; 2],
    join: Join,
    f: impl Fn(L, L) -> bool + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        let holds = holding(registers, [a, b], &f);
        let (yes, no) = (join.of(holds, registers), join.of(!holds, registers));
        put_predicate(registers, p, mask, yes);
        put_predicate(registers, q, mask, no);
        0
    })
}
