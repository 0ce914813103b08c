//! Pseudorandom numbers, reproducible from a seed.

use kernel_dsl::Element;
use kernel_dsl::half::{bf16, f16};
use std::cmp::Ordering;

/// A pseudorandom generator: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    /// Returns a number from −1 to 1, excluding 1, in steps of 2⁻⁵².
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * 2f64.powi(-52) - 1.0
    }

    /// Returns a random element of `all`; `None` if `all` is empty.
    pub fn choose<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }

    /// Returns `n` ordinary values: floats from −1 to 1, integers of their whole range.
    pub fn values<T: Draw>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::draw(self)).collect()
    }

    /// Returns `n` values, one in four of them special: zeros of both signs, subnormals,
    /// infinities, NaNs, or the ends of the range.
    pub fn special_values<T: Draw>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| self.special()).collect()
    }

    /// Returns `n` ordinary values, of which at most `distinct` are different: for sorts, searches
    /// and maxima, whose results depend on how ties are broken.
    pub fn ties<T: Draw>(&mut self, n: usize, distinct: usize) -> Vec<T> {
        let seed = self.bits();
        (0..n).map(|_| self.tie(seed, distinct)).collect()
    }

    /// Returns one of the `distinct` values that `seed` selects.
    pub(super) fn tie<T: Draw>(&mut self, seed: u64, distinct: usize) -> T {
        T::draw(&mut Random::new(seed ^ Random::new(self.below(distinct) as u64).bits()))
    }

    /// Returns `n` ordinary values in ascending order.
    pub fn sorted<T: Draw + PartialOrd>(&mut self, n: usize) -> Vec<T> {
        ascending(self.values(n))
    }

    /// Returns the numbers from 0 to `n` − 1 in random order.
    pub fn permutation(&mut self, n: usize) -> Vec<u32> {
        permutation(&self.values(n))
    }

    /// Returns the offsets of `rows` ragged rows of at most `longest` elements. Row i has the
    /// elements from `offsets[i]` to `offsets[i + 1]`, and the last offset is the count of all
    /// elements. One row in four is empty, and one in four has `longest` elements.
    pub fn offsets(&mut self, rows: usize, longest: usize) -> Vec<u32> {
        let lengths: Vec<_> = (0..rows).map(|_| self.row_length(longest)).collect();
        offsets(&lengths, longest)
    }

    /// Returns the length of a ragged row.
    pub(super) fn row_length(&mut self, longest: usize) -> u32 {
        match self.below(4) {
            0 => 0,
            1 => longest as u32,
            _ => self.below(longest.saturating_add(1)) as u32,
        }
    }

    /// Returns the pattern of a sparse matrix in compressed rows: the [`offsets`](Random::offsets)
    /// of the rows, and the columns of their elements, ascending within a row.
    pub fn sparse(&mut self, [rows, cols]: [usize; 2]) -> (Vec<u32>, Vec<u32>) {
        let offsets = self.offsets(rows, cols);
        let columns = offsets.windows(2).flat_map(|row| self.sample((row[1] - row[0]) as usize, cols)).collect();
        (offsets, columns)
    }

    /// Returns `k` of the numbers below `n`, in ascending order; `k` is at most `n`.
    pub(super) fn sample(&mut self, k: usize, n: usize) -> Vec<u32> {
        // Selection sampling (Knuth, The Art of Computer Programming, vol. 2, 3.4.2, algorithm S).
        let mut left = k.min(n);
        let mut all = Vec::with_capacity(left);
        for i in 0..n {
            if self.below(n - i) < left {
                all.push(i as u32);
                left -= 1;
            }
        }
        all
    }

    /// Returns a value; one in four is special.
    pub(super) fn special<T: Draw>(&mut self) -> T {
        let special = (self.below(4) == 0).then(|| self.choose(T::SPECIAL_VALUES).copied()).flatten();
        special.unwrap_or_else(|| T::draw(self))
    }
}

/// Sorts values in ascending order; the positions of NaNs are unspecified.
pub(super) fn ascending<T: PartialOrd>(mut values: Vec<T>) -> Vec<T> {
    values.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    values
}

/// Returns the indices of the keys in ascending order of the keys. Equal keys keep their order.
pub(super) fn permutation(keys: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|i| keys[*i as usize]);
    order
}

/// Returns for each row the sum of the lengths before it, and last the sum of all lengths. Each
/// length is limited to `longest`.
pub(super) fn offsets(lengths: &[u32], longest: usize) -> Vec<u32> {
    let mut end = 0;
    let ends = lengths.iter().map(|length| {
        end += (*length).min(longest as u32);
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// The simplification of a value, ordered from the simplest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Simple {
    /// 0.
    Zero,
    /// 1.
    One,
    /// A power of two near the value, with its sign. Zeros, subnormals, infinities and NaNs are
    /// unchanged.
    Power,
}

impl Simple {
    /// All simplifications, ordered from the simplest.
    pub const ALL: [Simple; 3] = [Simple::Zero, Simple::One, Simple::Power];
}

/// An element type whose values can be drawn at random.
pub trait Draw: Element + std::fmt::Debug {
    /// Values at which kernels tend to fail.
    const SPECIAL_VALUES: &'static [Self];
    /// The largest finite value, in the precision of `f64`.
    const LARGEST_FINITE: f64;
    /// The smallest positive normal value; 1 for integers.
    const SMALLEST_NORMAL: f64;
    /// The smallest positive value.
    const SMALLEST: f64;
    /// Returns the nearest value; integers saturate.
    fn nearest(value: f64) -> Self;
    /// Draws an ordinary value.
    fn draw(random: &mut Random) -> Self;
    /// Returns a simpler value.
    fn simplified(self, to: Simple) -> Self;
}

macro_rules! draw {
    (integers: $($i:ty = $draw:expr),*; floats: $($f:ty)*) => {
        $(impl Draw for $i {
            const SPECIAL_VALUES: &'static [$i] = &[0, 1, <$i>::MAX, <$i>::MIN, <$i>::MAX - 1, <$i>::MAX / 2 + 1];
            const LARGEST_FINITE: f64 = <$i>::MAX as f64;
            const SMALLEST_NORMAL: f64 = 1.0;
            const SMALLEST: f64 = 1.0;
            fn nearest(value: f64) -> $i {
                value.round_ties_even() as $i
            }
            fn draw(random: &mut Random) -> $i {
                let draw: fn(&mut Random) -> $i = $draw;
                draw(random)
            }
            fn simplified(self, to: Simple) -> $i {
                match to {
                    Simple::Zero => 0,
                    Simple::One => 1,
                    Simple::Power if self == 0 => 0,
                    #[allow(unused_comparisons)]
                    Simple::Power if self < 0 => <$i>::MIN >> self.leading_ones() - 1,
                    Simple::Power => 1 << self.ilog2(),
                }
            }
        })*
        $(impl Draw for $f {
            const SPECIAL_VALUES: &'static [$f] = &[
                0.0,
                -0.0,
                1.0,
                // The neighbors of 1.
                1.0 - <$f>::EPSILON / 2.0,
                1.0 + <$f>::EPSILON,
                -2.0,
                0.5,
                <$f>::MIN,
                <$f>::MAX,
                <$f>::MIN_POSITIVE,
                // The smallest and the largest subnormal.
                <$f>::from_bits(1),
                -<$f>::from_bits(<$f>::MIN_POSITIVE.to_bits() - 1),
                <$f>::INFINITY,
                <$f>::NEG_INFINITY,
                <$f>::NAN,
            ];
            const LARGEST_FINITE: f64 = <$f>::MAX as f64;
            const SMALLEST_NORMAL: f64 = <$f>::MIN_POSITIVE as f64;
            const SMALLEST: f64 = <$f>::from_bits(1) as f64;
            fn nearest(value: f64) -> $f {
                value as $f
            }
            fn draw(random: &mut Random) -> $f {
                random.unit() as $f
            }
            fn simplified(self, to: Simple) -> $f {
                match to {
                    Simple::Zero => 0.0,
                    Simple::One => 1.0,
                    Simple::Power if self.is_normal() => {
                        // Clears all bits except the sign and the exponent.
                        <$f>::from_bits(self.to_bits() & (<$f>::NEG_INFINITY.to_bits() | <$f>::INFINITY.to_bits()))
                    }
                    Simple::Power => self,
                }
            }
        })*
    };
}
macro_rules! draw_half {
    ($($h:ty)*) => {$(
        impl Draw for $h {
            const SPECIAL_VALUES: &'static [$h] = &[
                <$h>::ZERO,
                <$h>::NEG_ZERO,
                <$h>::ONE,
                <$h>::from_bits(<$h>::ONE.to_bits() - 1),
                <$h>::from_bits(<$h>::ONE.to_bits() + 1),
                <$h>::MIN,
                <$h>::MAX,
                <$h>::MIN_POSITIVE,
                // The smallest and the largest subnormal.
                <$h>::from_bits(1),
                <$h>::from_bits(0x8000 | (<$h>::MIN_POSITIVE.to_bits() - 1)),
                <$h>::INFINITY,
                <$h>::NEG_INFINITY,
                <$h>::NAN,
                // A signaling NaN.
                <$h>::from_bits(<$h>::INFINITY.to_bits() + 1),
            ];
            const LARGEST_FINITE: f64 = <$h>::MAX.to_f64_const();
            const SMALLEST_NORMAL: f64 = <$h>::MIN_POSITIVE.to_f64_const();
            const SMALLEST: f64 = <$h>::from_bits(1).to_f64_const();
            fn nearest(value: f64) -> $h {
                <$h>::from_f64(value)
            }
            fn draw(random: &mut Random) -> $h {
                <$h>::from_f64(random.unit())
            }
            fn simplified(self, to: Simple) -> $h {
                match to {
                    Simple::Zero => <$h>::ZERO,
                    Simple::One => <$h>::ONE,
                    Simple::Power if self.is_normal() => {
                        <$h>::from_bits(self.to_bits() & <$h>::NEG_INFINITY.to_bits())
                    }
                    Simple::Power => self,
                }
            }
        }
    )*};
}
draw_half!(f16 bf16);
draw!(
    integers:
        i8 = |random| random.bits() as i8,
        i16 = |random| random.bits() as i16,
        i32 = |random| random.bits() as i32,
        i64 = |random| random.bits() as i64,
        u8 = |random| random.bits() as u8,
        u16 = |random| random.bits() as u16,
        u32 = |random| random.bits() as u32,
        u64 = Random::bits,
        u128 = |random| u128::from(random.bits()) << 64 | u128::from(random.bits());
    floats: f32 f64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_splitmix64() {
        // The first outputs for seed 1234567, as published with the reference implementation.
        let mut random = Random::new(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([random.bits(), random.bits(), random.bits()], expected);
    }

    #[test]
    fn values_are_in_range_and_reproducible() {
        let values = Random::new(1).values::<f32>(1000);
        assert_eq!(values, Random::new(1).values::<f32>(1000));
        assert!(values.iter().all(|x| (-1.0..=1.0).contains(x)));
        assert!((0..1000).all(|n| Random::new(n).below(7) < 7));
        assert_eq!(Random::new(1).below(0), 0);
        assert_eq!([-96i32, 96, 0, -1].map(|x| x.simplified(Simple::Power)), [-128, 64, 0, -1]);
        assert_eq!(
            [-1.5f32, 96.0, 0.0, f32::INFINITY].map(|x| x.simplified(Simple::Power)),
            [-1.0, 64.0, 0.0, f32::INFINITY]
        );
        assert_eq!(255u8.simplified(Simple::Power), 128);
        assert_eq!((u128::MAX / 3).simplified(Simple::Power), 1 << 126);
        let long = Random::new(3).special_values::<u128>(1000);
        assert!(long.contains(&u128::MAX) && long.iter().any(|x| x >> 64 != 0 && *x as u64 != 0 && *x < u128::MAX / 2));
        let special = Random::new(2).special_values::<f64>(1000);
        assert!(special.iter().any(|x| x.is_nan()) && special.iter().any(|x| x.is_subnormal()));
    }
    #[test]
    fn patterns_have_their_form() {
        let mut random = Random::new(5);
        let mut ties = random.ties::<f32>(1000, 3);
        ties.sort_by(f32::total_cmp);
        ties.dedup();
        assert_eq!(ties.len(), 3);
        let sorted = random.sorted::<i64>(100);
        assert!(sorted.is_sorted() && sorted.len() == 100);
        let mut permutation = random.permutation(100);
        assert!(!permutation.is_sorted());
        permutation.sort();
        assert!(permutation.into_iter().eq(0..100));
        let offsets = random.offsets(100, 7);
        let lengths: Vec<u32> = offsets.windows(2).map(|row| row[1] - row[0]).collect();
        assert!(offsets[0] == 0 && lengths.len() == 100);
        assert!(lengths.contains(&0) && lengths.contains(&7) && lengths.iter().all(|n| *n <= 7));
        assert_eq!(random.offsets(0, 7), [0]);
        let (offsets, columns) = random.sparse([50, 9]);
        assert_eq!(*offsets.last().unwrap() as usize, columns.len());
        for row in offsets.windows(2) {
            let row = &columns[row[0] as usize..row[1] as usize];
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]) && row.iter().all(|column| *column < 9));
        }
    }
}
