//! Integer division of all lanes: processors divide vectors of floats, but not of integers.

/// Division that rounds toward zero. Division by zero sets all bits of both results, as in the
/// machine code for every target; `MIN / −1` wraps.
pub(crate) trait Divide: Copy {
    fn quotient(self, by: Self) -> Self;
    fn remainder(self, by: Self) -> Self;
}

/// An `f64` this large has no fractional digits; its low bits are those of its integer value.
const MIN_INTEGRAL: f64 = (1u64 << 52) as f64;

/// Returns `x / y`, computed with `f64`s, in which both are exact. The quotient rounded to the
/// nearest integer is correct or one too large. The product with `y` shows which: it is less than
/// 2³³ and exact.
#[inline(always)]
fn quotient(x: u32, y: u32) -> u32 {
    let (a, b) = (f64::from(x), f64::from(y));
    let nearest = (a / b + MIN_INTEGRAL) - MIN_INTEGRAL;
    let quotient = if nearest * b > a { nearest - 1.0 } else { nearest };
    if y == 0 { u32::MAX } else { (quotient + MIN_INTEGRAL).to_bits() as u32 }
}

impl Divide for u32 {
    #[inline(always)]
    fn quotient(self, by: u32) -> u32 {
        quotient(self, by)
    }
    #[inline(always)]
    fn remainder(self, by: u32) -> u32 {
        if by == 0 { u32::MAX } else { self.wrapping_sub(quotient(self, by).wrapping_mul(by)) }
    }
}

impl Divide for i32 {
    #[inline(always)]
    fn quotient(self, by: i32) -> i32 {
        let quotient = quotient(self.unsigned_abs(), by.unsigned_abs());
        (if (self ^ by) < 0 && by != 0 { quotient.wrapping_neg() } else { quotient }) as i32
    }
    #[inline(always)]
    fn remainder(self, by: i32) -> i32 {
        if by == 0 { -1 } else { self.wrapping_sub(self.quotient(by).wrapping_mul(by)) }
    }
}

macro_rules! divide {
    ($($narrow:ty as $t:ty),*; $($wide:ty),*) => {
        $(impl Divide for $narrow {
            #[inline(always)]
            fn quotient(self, by: $narrow) -> $narrow {
                <$t>::from(self).quotient(by.into()) as $narrow
            }
            #[inline(always)]
            fn remainder(self, by: $narrow) -> $narrow {
                <$t>::from(self).remainder(by.into()) as $narrow
            }
        })*
        $(impl Divide for $wide {
            #[inline(always)]
            fn quotient(self, by: $wide) -> $wide {
                if by == 0 { !0 } else { self.wrapping_div(by) }
            }
            #[inline(always)]
            fn remainder(self, by: $wide) -> $wide {
                if by == 0 { !0 } else { self.wrapping_rem(by) }
            }
        })*
    };
}
divide!(u8 as u32, u16 as u32, i8 as i32, i16 as i32; u64, i64);

#[cfg(test)]
mod tests {
    use super::Divide;

    macro_rules! same {
        ($t:ty, $values:expr) => {
            for &x in $values {
                for &y in $values {
                    let (x, y) = (x as $t, y as $t);
                    assert_eq!(x.quotient(y), if y == 0 { !0 } else { x.wrapping_div(y) }, "{x} / {y}");
                    assert_eq!(x.remainder(y), if y == 0 { !0 } else { x.wrapping_rem(y) }, "{x} % {y}");
                }
            }
        };
    }

    #[test]
    fn integer_division_matches_rust() {
        // Powers of two and their neighbors, small numbers, multiples of an odd one, and the output
        // of a generator by Knuth.
        let edges = (0..64).flat_map(|bit| [-2, -1, 0, 1, 2].map(|by| (1u64 << bit).wrapping_add_signed(by)));
        let multiples = (0..70u64).flat_map(|n| [n, n * 61_681, n * 61_681 + 1, (n * 61_681).wrapping_sub(1)]);
        let mut state = 1u64;
        let random = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 32
        });
        let values: Vec<u64> =
            edges.chain(multiples).chain(random.take(300)).flat_map(|v| [v, v.wrapping_neg()]).collect();
        same!(u8, &values);
        same!(i8, &values);
        same!(u16, &values);
        same!(i16, &values);
        same!(u32, &values);
        same!(i32, &values);
        same!(u64, &values);
        same!(i64, &values);
    }
}
