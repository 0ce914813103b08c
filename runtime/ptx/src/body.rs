//! Functions of lanes as [`Body`]: common instructions compute row by row, rare ones lane by lane.

use super::code::Body;
use super::registers::{FULL, LANES, RegisterPlace, RegisterScalar, Registers, lanes};
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
        let x = A::row(registers, a);
        let out = compute(mask, |lane| f(x[lane]));
        registers.put(d, mask, &out);
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
        let (x, y) = (A::row(registers, a), B::row(registers, b));
        let out = compute(mask, |lane| f(x[lane], y[lane]));
        registers.put(d, mask, &out);
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
        let (x, y, z) = (A::row(registers, a), A::row(registers, b), D::row(registers, c));
        let out = compute(mask, |lane| f(x[lane], y[lane], z[lane]));
        registers.put(d, mask, &out);
        0
    })
}

/// Returns the results of the lanes in `mask`, and zero elsewhere.
#[inline(always)]
fn compute<D: RegisterScalar>(mask: u32, f: impl Fn(usize) -> D) -> [D; LANES] {
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

/// Returns the results of all lanes, with vector instructions where the processor has them.
#[inline(always)]
fn all<D: RegisterScalar>(f: impl Fn(usize) -> D) -> [D; LANES] {
    #[cfg(target_arch = "x86_64")]
    if is_wide() {
        // SAFETY: the processor supports AVX2 and FMA, as just checked.
        return unsafe { all_wide(f) };
    }
    let mut out = [D::ZERO; LANES];
    for (lane, value) in out.iter_mut().enumerate() {
        *value = f(lane);
    }
    out
}

/// Returns whether the processor has 256-bit vectors and fused multiply-adds.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn is_wide() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn all_wide<D: RegisterScalar>(f: impl Fn(usize) -> D) -> [D; LANES] {
    let mut out = [D::ZERO; LANES];
    for (lane, value) in out.iter_mut().enumerate() {
        *value = f(lane);
    }
    out
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
        let (x, y) = (L::row(registers, a), L::row(registers, b));
        let holds = all(|lane| u32::from(f(x[lane], y[lane])) << lane).iter().fold(0, |all, bit| all | bit);
        let (yes, no) = (join.of(holds, registers), join.of(!holds, registers));
        put_predicate(registers, p, mask, yes);
        put_predicate(registers, q, mask, no);
        0
    })
}
