//! Numbers with twice the digits of an `f64`, as an unevaluated sum of two: the second is the
//! rounding error of the first.
//!
//! The rounding errors of sums and products of `f64`s can be computed exactly with a few more
//! operations (Knuth; Dekker, with a fused multiply-add). The relative error of these operations is
//! about 2⁻¹⁰⁰, unless a value leaves the range.

/// A number with twice the digits of an `f64`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DoubleDouble {
    /// The nearest `f64`.
    pub first: f64,
    /// The rounding error of `first`.
    pub rest: f64,
}

/// Returns a + b and its rounding error.
fn sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl DoubleDouble {
    /// Returns the sum of both, where the second is far smaller.
    fn of(a: f64, b: f64) -> DoubleDouble {
        let first = a + b;
        DoubleDouble { first, rest: b - (first - a) }
    }

    pub fn add(self, other: DoubleDouble) -> DoubleDouble {
        let (a, lost) = sum(self.first, other.first);
        let (b, more) = sum(self.rest, other.rest);
        let both = DoubleDouble::of(a, lost + b);
        DoubleDouble::of(both.first, both.rest + more)
    }

    pub fn neg(self) -> DoubleDouble {
        DoubleDouble { first: -self.first, rest: -self.rest }
    }

    pub fn sub(self, other: DoubleDouble) -> DoubleDouble {
        self.add(other.neg())
    }

    pub fn abs(self) -> DoubleDouble {
        if self.first < 0.0 { self.neg() } else { self }
    }

    pub fn mul(self, other: DoubleDouble) -> DoubleDouble {
        let product = self.first * other.first;
        let lost = self.first.mul_add(other.first, -product);
        DoubleDouble::of(product, lost + (self.first * other.rest + self.rest * other.first))
    }

    pub fn div(self, by: DoubleDouble) -> DoubleDouble {
        let quotient = self.first / by.first;
        let left = self.sub(by.mul(quotient.into()));
        let more = left.first / by.first;
        let left = left.sub(by.mul(more.into()));
        DoubleDouble::of(quotient, more).add((left.first / by.first).into())
    }

    pub fn sqrt(self) -> DoubleDouble {
        let root = self.first.sqrt();
        if root == 0.0 {
            return root.into();
        }
        let left = self.sub(DoubleDouble::from(root).mul(root.into()));
        DoubleDouble::of(root, left.first / (2.0 * root))
    }

    /// Returns the relative error of `value`.
    pub fn error_of(self, value: f64) -> f64 {
        if value == self.first && self.rest == 0.0 {
            return 0.0;
        }
        (((value - self.first) - self.rest) / self.first).abs()
    }
}

impl From<f64> for DoubleDouble {
    fn from(first: f64) -> DoubleDouble {
        DoubleDouble { first, rest: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns sums of a few powers of two. Scaled, the sums are exact in integers of 128 bits.
    fn numbers() -> impl Iterator<Item = i64> {
        (0..200i64).map(|i| i.wrapping_mul(0x09E3_779B_97F4_A7C1) >> 9 | 1)
    }

    #[test]
    fn sums_and_products_match_integers() {
        let wide = |x: DoubleDouble| x.first as i128 + x.rest as i128;
        for (a, b) in numbers().zip(numbers().skip(7)) {
            let [x, y] = [a, b].map(|n| DoubleDouble::from((n >> 20 << 20) as f64).add(((n & 0xf_ffff) as f64).into()));
            assert_eq!((wide(x), wide(y)), (a.into(), b.into()));
            assert_eq!(wide(x.add(y)), i128::from(a) + i128::from(b));
            assert_eq!(wide(x.sub(y)), i128::from(a) - i128::from(b));
            let (product, exact) = (wide(x.mul(y)), i128::from(a) * i128::from(b));
            assert!(
                (product - exact).unsigned_abs() <= exact.unsigned_abs() >> 100,
                "{a} × {b}: {product} for {exact}"
            );
        }
    }

    #[test]
    fn quotients_and_roots_undo_products() {
        for n in numbers() {
            let (x, y) = (DoubleDouble::from(n as f64).add(0.1.into()), DoubleDouble::from(3.0).add(1e-17.into()));
            let close = |a: DoubleDouble, b: DoubleDouble| a.sub(b).first.abs() <= 2f64.powi(-98) * b.first.abs();
            assert!(close(x.div(y).mul(y), x), "{n}");
            let root = x.abs().sqrt();
            assert!(close(root.mul(root), x.abs()), "{n}");
        }
    }
}
