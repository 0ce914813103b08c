//! How a function of lanes becomes a [`Body`]: what common instructions compute, row by row; what is rarer, lane by lane.

use super::code::Body;
use super::registers::{FULL, LANES, Lane, Place, Registers, lanes};
use smallvec::SmallVec;

/// What one lane computes from its operands, each zero-extended: the result, and whether the result
/// is defined.
pub type Function = Box<dyn Fn([u64; 4]) -> (u64, bool) + Send + Sync>;

/// Lane by lane, registers of any width.
pub fn lanewise(to: Place, from: SmallVec<[Place; 4]>, function: Function) -> Body {
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

/// One operand.
pub fn unary<A: Lane, D: Lane>(d: u32, a: u32, f: impl Fn(A) -> D + Send + Sync + 'static) -> Body {
    Box::new(move |registers, mask| {
        let x = A::row(registers, a);
        let out = compute(mask, |lane| f(x[lane]));
        registers.put(d, mask, &out);
        0
    })
}

/// Two operands.
pub fn binary<A: Lane, B: Lane, D: Lane>(
    d: u32,
    [a, b]: [u32; 2],
    f: impl Fn(A, B) -> D + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        let (x, y) = (A::row(registers, a), B::row(registers, b));
        let out = compute(mask, |lane| f(x[lane], y[lane]));
        registers.put(d, mask, &out);
        0
    })
}

/// Three operands, the last as wide as the result.
pub fn ternary<A: Lane, D: Lane>(
    d: u32,
    [a, b, c]: [u32; 3],
    f: impl Fn(A, A, D) -> D + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        let (x, y, z) = (A::row(registers, a), A::row(registers, b), D::row(registers, c));
        let out = compute(mask, |lane| f(x[lane], y[lane], z[lane]));
        registers.put(d, mask, &out);
        0
    })
}

/// What the lanes of `mask` give.
#[inline(always)]
fn compute<D: Lane>(mask: u32, f: impl Fn(usize) -> D) -> [D; LANES] {
    if mask == FULL {
        return all(f);
    }
    let mut out = [D::ZERO; LANES];
    for (lane, value) in out.iter_mut().enumerate() {
        if mask >> lane & 1 == 1 {
            *value = f(lane);
        }
    }
    out
}

/// What every lane gives, compiled for the processor at hand.
#[inline(always)]
fn all<D: Lane>(f: impl Fn(usize) -> D) -> [D; LANES] {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: the processor has what the function is compiled for.
        return unsafe { all_wide(f) };
    }
    let mut out = [D::ZERO; LANES];
    for (lane, value) in out.iter_mut().enumerate() {
        *value = f(lane);
    }
    out
}

/// Whether the processor has 256-bit vectors and fused multiply-adds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn all_wide<D: Lane>(f: impl Fn(usize) -> D) -> [D; LANES] {
    let mut out = [D::ZERO; LANES];
    for (lane, value) in out.iter_mut().enumerate() {
        *value = f(lane);
    }
    out
}

/// How a comparison's result is joined with a predicate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Join {
    /// Not at all.
    None,
    /// By a function of both masks: the predicate's index, whether it is negated.
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
    /// Of lanes.
    pub fn of(self, a: u32, b: u32) -> u32 {
        match self {
            Logic::And => a & b,
            Logic::Or => a | b,
            Logic::Xor => a ^ b,
        }
    }
}

impl Join {
    /// The lanes of a comparison joined with the predicate.
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

/// A comparison: `p` is its result, `q` that of its opposite, each joined with a predicate.
pub fn comparison<L: Lane>(
    [p, q]: [Option<u32>; 2],
    [a, b]: [u32; 2],
    join: Join,
    f: impl Fn(L, L) -> bool + Send + Sync + 'static,
) -> Body {
    Box::new(move |registers, mask| {
        let (x, y) = (L::row(registers, a), L::row(registers, b));
        let holds = all(|lane| u32::from(f(x[lane], y[lane])) << lane).iter().fold(0, |all, bit| all | bit);
        let (yes, no) = (join.of(holds, registers), join.of(!holds, registers));
        put_predicate(registers, p, mask, yes);
        put_predicate(registers, q, mask, no);
        0
    })
}
