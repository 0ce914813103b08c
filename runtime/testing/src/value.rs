//! A number of any type, carried exactly.

use super::Input;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::{Element, ScalarElement};
use runtime_simt::number::{short, to_f64};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A number of any element type, with its bits.
///
/// Values compare as numbers, whatever their types: `1u8` equals `1.0f32`, −0 equals 0, and a NaN
/// equals every NaN. No comparison rounds: 2⁵³ + 1 as `u64` differs from 2⁵³ as `f64`. NaNs are
/// ordered after all numbers.
///
/// ```
/// use runtime::testing::ElementValue;
///
/// assert_eq!(ElementValue::new(1u8), ElementValue::new(1.0f32));
/// assert_ne!(ElementValue::new((1u64 << 53) + 1), ElementValue::new(2f64.powi(53)));
/// assert!(ElementValue::new(u64::MAX) < ElementValue::new(2f64.powi(64)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ElementValue {
    ty: Scalar,
    bits: u64,
}

/// A number, to be compared without rounding.
enum ExactNumber {
    /// An integer below 2¹²⁷ in magnitude.
    Integer(i128),
    /// Any other float.
    Other,
}

impl ElementValue {
    /// Returns the value of a number.
    pub fn new(number: impl ScalarElement) -> ElementValue {
        ElementValue::from_bits(of(&number), number.bits())
    }

    pub(super) fn from_bits(ty: Scalar, bits: u64) -> ElementValue {
        ElementValue { ty, bits }
    }

    /// Returns the type.
    pub fn ty(self) -> Scalar {
        self.ty
    }

    /// Returns the bits, zero-extended to 64.
    pub fn bits(self) -> u64 {
        self.bits
    }

    /// Returns the number in `f64`; integers beyond 2⁵³ are rounded.
    pub fn to_f64(self) -> f64 {
        to_f64(self.ty, self.bits)
    }

    /// Returns the distance between two finite numbers. The difference is exact before it is
    /// rounded to `f64`, except between a large integer and a fraction.
    pub(super) fn distance(self, other: ElementValue) -> f64 {
        match (self.number(), other.number()) {
            (ExactNumber::Integer(a), ExactNumber::Integer(b)) => a.abs_diff(b) as f64,
            _ => (self.to_f64() - other.to_f64()).abs(),
        }
    }

    fn is_float(self) -> bool {
        self.ty.is_float() || self.ty.is_half()
    }

    fn number(self) -> ExactNumber {
        /// 2¹²⁷, the end of the range of `i128`.
        const END: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
        let unused = 64 - self.ty.bits();
        match self.to_f64() {
            x if self.is_float() && x.trunc() == x && x.abs() < END => ExactNumber::Integer(x as i128),
            _ if self.is_float() => ExactNumber::Other,
            _ if self.ty.is_signed() => ExactNumber::Integer(((self.bits << unused) as i64 >> unused).into()),
            _ => ExactNumber::Integer((self.bits & self.ty.mask()).into()),
        }
    }
}

/// Returns the type of a number.
fn of<T: ScalarElement>(_: &T) -> Scalar {
    T::SCALAR
}

impl Ord for ElementValue {
    fn cmp(&self, other: &ElementValue) -> Ordering {
        match (self.number(), other.number()) {
            (ExactNumber::Integer(a), ExactNumber::Integer(b)) => a.cmp(&b),
            // One number is a fraction, infinite, NaN, or beyond every integer type. Rounding an
            // integer to `f64` does not change its order relative to such a number.
            _ => {
                let (a, b) = (self.to_f64(), other.to_f64());
                a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
        }
    }
}

impl PartialOrd for ElementValue {
    fn partial_cmp(&self, other: &ElementValue) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ElementValue {
    fn eq(&self, other: &ElementValue) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for ElementValue {}

impl Hash for ElementValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Equal values have the same nearest `f64`, apart from the sign of zero and the bits of
        // NaN.
        let number = self.to_f64() + 0.0;
        (if number.is_nan() { f64::NAN } else { number }).to_bits().hash(state);
    }
}

/// Prints the number as Rust does, and the bits of a NaN.
impl fmt::Display for ElementValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short(self.ty, self.bits))
    }
}

/// A value that a reference gives for one element of an output: an element of any type, structs
/// included, or a [`ElementValue`]. A struct or array consists of several values.
pub trait IntoValues: Sized {
    /// Returns the values of `all`, in order.
    fn values(all: Vec<Self>) -> Vec<ElementValue>;
}

impl IntoValues for ElementValue {
    fn values(all: Vec<ElementValue>) -> Vec<ElementValue> {
        all
    }
}

impl<T: Element> IntoValues for T {
    fn values(all: Vec<T>) -> Vec<ElementValue> {
        Input::slice(&all).numbers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::half::{bf16, f16};

    #[test]
    fn no_comparison_rounds() {
        let of = |x: u64| ElementValue::new(x);
        let large = 1u64 << 53;
        assert!(of(large) != of(large + 1) && of(large) == ElementValue::new(large as f64));
        assert!(of(large + 1) != ElementValue::new(large as f64) && of(large + 1) > ElementValue::new(large as f64));
        assert!(
            ElementValue::new(i64::MIN) == ElementValue::new(-(2f64.powi(63)))
                && ElementValue::new(i64::MAX) != ElementValue::new(2f64.powi(63))
        );
        assert!(of(u64::MAX) < ElementValue::new(2f64.powi(64)) && of(u64::MAX) < ElementValue::new(f64::INFINITY));
        assert!(
            ElementValue::new(1e300f64) > of(u64::MAX) && ElementValue::new(-1e300f64) < ElementValue::new(i64::MIN)
        );
        assert_eq!(of(large + 1).distance(of(large)), 1.0);
    }

    #[test]
    fn numbers_of_all_types_are_equal() {
        let ones = [
            ElementValue::new(1i8),
            ElementValue::new(1u16),
            ElementValue::new(1i64),
            ElementValue::new(f16::ONE),
            ElementValue::new(bf16::ONE),
            ElementValue::new(1.0f32),
            ElementValue::new(1.0f64),
        ];
        assert!(ones.iter().all(|one| ones.iter().all(|other| one == other)));
        assert!(
            ElementValue::new(-1i8) == ElementValue::new(-1.0f32)
                && ElementValue::new(-1i8) != ElementValue::new(255u8)
        );
        assert!(
            ElementValue::new(0.0f32) == ElementValue::new(-0.0f64)
                && ElementValue::new(0.5f32) > ElementValue::new(0u8)
        );
    }

    #[test]
    fn nans_are_equal_and_last() {
        let nan = ElementValue::new(f32::NAN);
        assert!(
            nan == ElementValue::new(-f64::NAN)
                && nan > ElementValue::new(f64::INFINITY)
                && nan > ElementValue::new(u64::MAX)
        );
        assert!(ElementValue::new(1u8) < nan && ElementValue::new(f32::INFINITY) == ElementValue::new(f16::INFINITY));
    }
}
