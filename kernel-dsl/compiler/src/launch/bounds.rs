//! Bounds of expressions over unknown arguments.

use super::evaluate::LaunchFacts;
use crate::hir::{Block, Expr, ExprKind, Intrinsic, Method};
use crate::ir::Binary;

/// The numbers from `least` to `most` in steps that start at `least`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SteppedRange {
    pub least: u32,
    pub most: u32,
    pub step: u32,
}

impl SteppedRange {
    /// Returns the possible numbers of threads that `e` evaluates to; `None` if there is no upper
    /// bound.
    pub fn of(e: &Expr, facts: &LaunchFacts) -> Option<SteppedRange> {
        let NumberRange { least, most, multiple } = NumberRange::of(e, facts);
        let most = u32::try_from(most?).ok()?;
        // A block has at least one thread, so the range excludes 0.
        let step = u32::try_from(multiple).ok()?.max(1);
        let least = u32::try_from(least).ok()?.next_multiple_of(step).max(step);
        (least <= most).then_some(SteppedRange { least, most, step })
    }
}

/// The possible values of an unsigned number: multiples of `multiple` from `least` to `most`.
#[derive(Clone, Copy)]
struct NumberRange {
    least: u64,
    most: Option<u64>,
    multiple: u64,
}

impl NumberRange {
    const ANY: NumberRange = NumberRange { least: 0, most: None, multiple: 1 };

    fn of(e: &Expr, facts: &LaunchFacts) -> NumberRange {
        if let Ok(n) = facts.count(e) {
            // 0 is a multiple of any number.
            return NumberRange { least: n.into(), most: Some(n.into()), multiple: n.into() };
        }
        let of = |e: &Expr| NumberRange::of(e, facts);
        match &e.kind {
            ExprKind::Binary(op, a, b) => of(a).with(*op, of(b)),
            ExprKind::Cast(a) => of(a),
            ExprKind::Block(block) => NumberRange::of_block(block, facts),
            ExprKind::If { then, otherwise: Some(otherwise), .. } => {
                NumberRange::of_block(then, facts).hull(of(otherwise))
            }
            ExprKind::Intrinsic { intrinsic, arguments } => match (intrinsic, arguments.as_slice()) {
                (Intrinsic::Binary(op), [a, b]) => of(a).with(*op, of(b)),
                (Intrinsic::Method(Method::Clamp), [a, least, most]) => {
                    of(a).with(Binary::Max, of(least)).with(Binary::Min, of(most))
                }
                (Intrinsic::Method(Method::NextPowerOfTwo), [a]) => {
                    let power = |n: u64| n.max(1).next_power_of_two();
                    let NumberRange { least, most, .. } = of(a);
                    NumberRange { least: power(least), most: most.map(power), multiple: power(least) }
                }
                (Intrinsic::NextMultipleOf, [a, b]) => match (of(a), of(b)) {
                    (a, NumberRange { least, most: Some(most), .. }) if least == most && most > 0 => NumberRange {
                        least: a.least.next_multiple_of(most),
                        most: a.most.map(|n| n.next_multiple_of(most)),
                        multiple: most,
                    },
                    _ => NumberRange::ANY,
                },
                (Intrinsic::DivCeil, [a, b]) => match (of(a), of(b)) {
                    (a, NumberRange { least, most: Some(most), .. }) if least == most && most > 0 => NumberRange {
                        least: a.least.div_ceil(most),
                        most: a.most.map(|n| n.div_ceil(most)),
                        multiple: 1,
                    },
                    (a, _) => NumberRange { least: 0, most: a.most, multiple: 1 },
                },
                (Intrinsic::SaturatingSub, [a, _]) => NumberRange { least: 0, most: of(a).most, multiple: 1 },
                _ => NumberRange::ANY,
            },
            _ => NumberRange::ANY,
        }
    }

    fn of_block(block: &Block, facts: &LaunchFacts) -> NumberRange {
        match (&block.value, block.statements.is_empty()) {
            (Some(value), true) => NumberRange::of(value, facts),
            _ => NumberRange::ANY,
        }
    }

    /// Returns the smallest span that contains both.
    fn hull(self, other: NumberRange) -> NumberRange {
        let most = self.most.zip(other.most).map(|(a, b)| a.max(b));
        NumberRange { least: self.least.min(other.least), most, multiple: gcd(self.multiple, other.multiple) }
    }

    fn with(self, op: Binary, other: NumberRange) -> NumberRange {
        let (a, b) = (self, other);
        let both = |f: fn(u64, u64) -> u64| a.most.zip(b.most).map(|(a, b)| f(a, b));
        let common = gcd(a.multiple, b.multiple);
        match op {
            Binary::Add => NumberRange {
                least: a.least.saturating_add(b.least),
                most: both(u64::saturating_add),
                multiple: common,
            },
            Binary::Mul => NumberRange {
                least: a.least.saturating_mul(b.least),
                most: both(u64::saturating_mul),
                multiple: a.multiple.saturating_mul(b.multiple),
            },
            Binary::Sub => NumberRange {
                least: b.most.map_or(0, |b| a.least.saturating_sub(b)),
                most: a.most.map(|n| n.saturating_sub(b.least)),
                multiple: common,
            },
            Binary::Div => NumberRange { least: 0, most: a.most.map(|n| n / b.least.max(1)), multiple: 1 },
            Binary::Rem => NumberRange { least: 0, most: b.most.map(|n| n.saturating_sub(1)).or(a.most), multiple: 1 },
            Binary::Min => NumberRange {
                least: a.least.min(b.least),
                most: match (a.most, b.most) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                },
                multiple: common,
            },
            Binary::Max => NumberRange { least: a.least.max(b.least), most: both(u64::max), multiple: common },
            Binary::And => NumberRange { most: a.most.into_iter().chain(b.most).min(), ..NumberRange::ANY },
            _ => NumberRange::ANY,
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
