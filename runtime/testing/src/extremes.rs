//! Inputs at the extremes of a type's range: where sums, squares and products overflow, underflow
//! or become NaN.
//!
//! An [`Extreme`] is a named way to fill an array. Specs use an extreme in one of three forms:
//!
//! * [`Extreme::rows`]: a matrix with one row for each extreme. One case tests a rowwise kernel on
//!   all extremes.
//! * [`Extreme::cases`]: one named [`Case`] for each extreme, for kernels whose rows depend on each
//!   other.
//! * [`Gen::extreme`](super::Gen::extreme): values for a property, which shrink like all values of
//!   a property.
//!
//! Positions that a kernel does not read hold NaN. [`Input::with_nan_gaps`] fills the gaps between
//! rows. [`Input::with_nan_where`] fills elements that a mask, a label or a weight of zero
//! excludes.
//!
//! References compute in `f64` and need no case distinction for overflow. A result of ±∞ is right
//! if the expected value, moved away from zero by its bound, rounds to ±∞ in the output's type
//! ([`Bound`](super::Bound)).

use super::{Case, Draw, Input, Random};
use kernel_dsl::compiler::ElementType;
use std::fmt;

/// A way to fill an array with values at the extremes of an element type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extreme {
    /// Values from half the largest to the largest, of both signs.
    Huge,
    /// Values from half the largest to the largest, all positive: sums overflow, and means do not.
    HugePositive,
    /// The largest value everywhere.
    Largest,
    /// The lowest value everywhere.
    Lowest,
    /// One huge value among ordinary ones.
    OneHuge,
    /// One ordinary value among tiny ones.
    OneAmongTiny,
    /// Values of both signs near the square root of the largest, so that some squares overflow.
    SquareOverflows,
    /// Values of both signs whose squares are subnormal or zero: near the square root of the
    /// smallest normal value.
    SquareUnderflows,
    /// Normal values of both signs below eight times the smallest.
    Tiny,
    /// Subnormal values of both signs.
    Subnormal,
    /// Values of both signs whose exponents are spread evenly over the type's range, subnormals
    /// included.
    Exponents,
    /// One ordinary value everywhere.
    Equal,
    /// Zeros of both signs.
    Zeros,
    /// −0 everywhere.
    NegativeZero,
    /// One +∞ among ordinary values.
    PositiveInfinity,
    /// One −∞ among ordinary values.
    NegativeInfinity,
    /// Infinities of both signs among ordinary values.
    Infinities,
    /// −∞ everywhere.
    AllNegativeInfinity,
    /// One NaN among ordinary values.
    Nan,
    /// NaN everywhere.
    AllNan,
}

impl Extreme {
    /// All extremes of floating-point types. The first [`FINITE`](Self::FINITE) extremes are finite
    /// and apply to integers too.
    pub const ALL: [Extreme; 20] = [
        Extreme::Huge,
        Extreme::HugePositive,
        Extreme::Largest,
        Extreme::Lowest,
        Extreme::OneHuge,
        Extreme::OneAmongTiny,
        Extreme::SquareOverflows,
        Extreme::SquareUnderflows,
        Extreme::Tiny,
        Extreme::Subnormal,
        Extreme::Exponents,
        Extreme::Equal,
        Extreme::Zeros,
        Extreme::NegativeZero,
        Extreme::PositiveInfinity,
        Extreme::NegativeInfinity,
        Extreme::Infinities,
        Extreme::AllNegativeInfinity,
        Extreme::Nan,
        Extreme::AllNan,
    ];

    /// The number of extremes without infinities and NaNs, which [`ALL`](Self::ALL) begins with.
    pub const FINITE: usize = 14;

    /// Returns the extremes that apply to `T`: all for a floating-point type, the finite ones for
    /// an integer.
    pub fn all<T: Draw>() -> &'static [Extreme] {
        match T::TYPE {
            ElementType::Scalar(scalar) if scalar.is_float() || scalar.is_half() => &Self::ALL,
            _ => Self::finite(),
        }
    }

    /// Returns the extremes without infinities and NaNs.
    pub fn finite() -> &'static [Extreme] {
        &Self::ALL[..Self::FINITE]
    }

    /// Returns the name that a case with these values has.
    pub fn name(self) -> &'static str {
        match self {
            Extreme::Huge => "huge, mixed signs",
            Extreme::HugePositive => "huge, positive",
            Extreme::Largest => "all the largest",
            Extreme::Lowest => "all the lowest",
            Extreme::OneHuge => "one huge among ordinary",
            Extreme::OneAmongTiny => "one ordinary among tiny",
            Extreme::SquareOverflows => "squares overflow",
            Extreme::SquareUnderflows => "squares underflow",
            Extreme::Tiny => "tiny, mixed signs",
            Extreme::Subnormal => "subnormal, mixed signs",
            Extreme::Exponents => "all exponents, mixed signs",
            Extreme::Equal => "equal",
            Extreme::Zeros => "zeros of both signs",
            Extreme::NegativeZero => "all −0",
            Extreme::PositiveInfinity => "one +∞ among ordinary",
            Extreme::NegativeInfinity => "one −∞ among ordinary",
            Extreme::Infinities => "infinities of both signs",
            Extreme::AllNegativeInfinity => "all −∞",
            Extreme::Nan => "one NaN among ordinary",
            Extreme::AllNan => "all NaN",
        }
    }

    /// Returns `n` values. A value that occurs once is at a random position.
    pub fn fill<T: Draw>(self, random: &mut Random, n: usize) -> Vec<T> {
        let at = random.below(n);
        (0..n).map(|i| self.value(random, i == at)).collect()
    }

    /// Returns one value of the array. `once` selects the value that occurs once.
    pub(super) fn value<T: Draw>(self, random: &mut Random, once: bool) -> T {
        let (largest, normal, least) = (T::LARGEST_FINITE, T::SMALLEST_NORMAL, T::SMALLEST);
        let unit = random.unit();
        let (sign, size) = (if random.below(2) == 0 { 1.0 } else { -1.0 }, unit.abs());
        // Away from zero, and exact in every type.
        let ordinary = sign * (1.0 + (8.0 * size).floor()) / 8.0;
        let huge = largest * (0.5 + size / 2.0);
        let value = match self {
            Extreme::Huge => sign * huge,
            Extreme::HugePositive => huge,
            Extreme::Largest => largest,
            Extreme::Lowest => -largest,
            Extreme::OneHuge if once => sign * huge,
            Extreme::OneAmongTiny if once => ordinary,
            Extreme::SquareOverflows => sign * largest.sqrt() * (0.5 + 2.0 * size),
            Extreme::SquareUnderflows => sign * normal.sqrt() * (0.01 + size),
            Extreme::Tiny | Extreme::OneAmongTiny => sign * normal * (1.0 + 7.0 * size),
            Extreme::Subnormal => sign * (size * normal).clamp(least, normal - least),
            Extreme::Exponents => {
                let exponent = least.log2() + size * (largest.log2() - least.log2());
                sign * exponent.exp2().min(largest)
            }
            Extreme::Equal => 0.75,
            Extreme::Zeros => sign * 0.0,
            Extreme::NegativeZero => -0.0,
            Extreme::PositiveInfinity if once => f64::INFINITY,
            Extreme::NegativeInfinity if once => f64::NEG_INFINITY,
            Extreme::Infinities if once => f64::INFINITY,
            Extreme::Infinities if size < 0.25 => sign * f64::INFINITY,
            Extreme::AllNegativeInfinity => f64::NEG_INFINITY,
            Extreme::Nan if once => f64::NAN,
            Extreme::AllNan => f64::NAN,
            Extreme::OneHuge
            | Extreme::PositiveInfinity
            | Extreme::NegativeInfinity
            | Extreme::Infinities
            | Extreme::Nan => ordinary,
        };
        T::nearest(value)
    }

    /// Returns a matrix with one row of `columns` values for each extreme of `all`. Rows start
    /// `pitch` elements apart. The gaps between rows hold NaN.
    pub fn rows<T: Draw>(all: &[Extreme], random: &mut Random, columns: usize, pitch: usize) -> Input {
        Extreme::array::<T, 2>(all, random, 0, [all.len(), columns], [pitch.max(columns).max(1), 1])
    }

    /// Returns an array whose index along `axis` selects the extreme of `all`. The extremes repeat
    /// if the axis is longer than `all`. Positions that no index reaches hold NaN.
    ///
    /// Use axis 0 for the left factor of a product and axis 1 for the right factor. Each sum then
    /// runs over the values of one extreme.
    ///
    /// # Panics
    /// If `all` is empty or `axis` is not below `R`.
    pub fn array<T: Draw, const R: usize>(
        all: &[Extreme],
        random: &mut Random,
        axis: usize,
        extents: [usize; R],
        strides: [usize; R],
    ) -> Input {
        let elements: usize = extents.iter().product();
        let each = elements / extents[axis].max(1);
        let lines = (0..extents[axis]).map(|i| all[i % all.len()].fill::<T>(random, each));
        let mut lines: Vec<_> = lines.map(Vec::into_iter).collect();
        let inner: usize = extents[axis + 1..].iter().product();
        // A row-major index, its place along the axis, and its offset in memory.
        let line = |n: usize| n / inner % extents[axis];
        let offset = |mut n: usize| {
            (0..R).rev().fold(0, |at, d| {
                let (index, rest) = (n % extents[d], n / extents[d]);
                n = rest;
                at + index * strides[d]
            })
        };
        let len = (0..elements).map(|n| offset(n) + 1).max().unwrap_or(0);
        let mut data = vec![T::zero(); len];
        for n in 0..elements {
            data[offset(n)] = lines[line(n)].next().unwrap_or(T::zero());
        }
        Input::strided(&data, extents, strides).with_nan_gaps()
    }

    /// Returns one case for each extreme of `all`, named after the extreme. `inputs` makes the
    /// arguments.
    pub fn cases(
        all: &[Extreme],
        random: &mut Random,
        mut inputs: impl FnMut(Extreme, &mut Random) -> Vec<Input>,
    ) -> Vec<Case> {
        all.iter().map(|extreme| Case::new(extreme.name(), inputs(*extreme, random))).collect()
    }
}

/// The name of the extreme.
impl fmt::Display for Extreme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::half::{bf16, f16};

    fn values<T: Draw>(extreme: Extreme) -> Vec<f64> {
        Input::slice(&extreme.fill::<T>(&mut Random::new(7), 200)).values()
    }

    /// Checks that the values match their names, for a type with these largest, smallest normal and
    /// smallest values.
    fn of_type<T: Draw>(largest: f64, normal: f64, least: f64) {
        let all =
            |extreme, holds: &dyn Fn(f64) -> bool| assert!(values::<T>(extreme).into_iter().all(holds), "{extreme}");
        let signs = |extreme| {
            let values = values::<T>(extreme);
            assert!(values.iter().any(|x| *x > 0.0) && values.iter().any(|x| *x < 0.0), "{extreme}");
        };
        all(Extreme::Huge, &|x| (largest / 2.0..=largest).contains(&x.abs()));
        all(Extreme::HugePositive, &|x| (largest / 2.0..=largest).contains(&x));
        all(Extreme::Largest, &|x| x == largest);
        all(Extreme::Lowest, &|x| x == -largest);
        all(Extreme::Tiny, &|x| (normal..=8.0 * normal).contains(&x.abs()));
        all(Extreme::Subnormal, &|x| (least..normal).contains(&x.abs()));
        all(Extreme::Exponents, &|x| (least..=largest).contains(&x.abs()));
        all(Extreme::Zeros, &|x| x == 0.0);
        all(Extreme::NegativeZero, &|x| x == 0.0 && x.is_sign_negative());
        all(Extreme::AllNan, &f64::is_nan);
        all(Extreme::AllNegativeInfinity, &|x| x == f64::NEG_INFINITY);
        let varied = [Extreme::Huge, Extreme::Tiny, Extreme::Subnormal, Extreme::Exponents, Extreme::SquareOverflows];
        varied.into_iter().for_each(signs);
        let squares = values::<T>(Extreme::SquareOverflows);
        assert!(squares.iter().any(|x| x * x > largest) && squares.iter().any(|x| x * x < largest));
        assert!(values::<T>(Extreme::SquareUnderflows).iter().all(|x| *x != 0.0 && x * x < 1.1 * normal));
        let once = |extreme, is: &dyn Fn(&f64) -> bool| {
            assert_eq!(values::<T>(extreme).iter().filter(|x| is(x)).count(), 1, "{extreme}")
        };
        once(Extreme::OneHuge, &|x| x.abs() >= largest / 2.0);
        once(Extreme::OneAmongTiny, &|x| x.abs() > 0.1);
        once(Extreme::PositiveInfinity, &|x| *x == f64::INFINITY);
        once(Extreme::NegativeInfinity, &|x| *x == f64::NEG_INFINITY);
        once(Extreme::Nan, &|x| x.is_nan());
        Extreme::finite().iter().for_each(|extreme| all(*extreme, &f64::is_finite));
        // The exponents come near both ends of the range.
        let exponents = values::<T>(Extreme::Exponents).into_iter().map(|x| x.abs().log2());
        let (low, high) = exponents.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), x| (l.min(x), h.max(x)));
        let range = largest.log2() - least.log2();
        assert!(high - low > 0.9 * range, "{low} {high}");
    }

    #[test]
    fn extremes_match_their_names() {
        of_type::<f32>(f64::from(f32::MAX), 2f64.powi(-126), 2f64.powi(-149));
        of_type::<f16>(65504.0, 2f64.powi(-14), 2f64.powi(-24));
        of_type::<bf16>(f64::from(bf16::MAX.to_f32()), 2f64.powi(-126), 2f64.powi(-133));
        assert!(Extreme::Huge.fill::<f64>(&mut Random::new(1), 99).iter().all(|x| x.is_finite() && x.abs() > 8e307));
        assert!(Extreme::Subnormal.fill::<f64>(&mut Random::new(1), 99).iter().all(|x| x.is_subnormal()));
        assert_eq!(Extreme::Largest.fill::<i8>(&mut Random::new(1), 3), [i8::MAX; 3]);
        assert_eq!(Extreme::Lowest.fill::<i64>(&mut Random::new(1), 2), [i64::MIN; 2]);
        assert_eq!(Extreme::Largest.fill::<u64>(&mut Random::new(1), 2), [u64::MAX; 2]);
        assert_eq!(Extreme::all::<u32>(), Extreme::finite());
        assert!(Extreme::Huge.fill::<f32>(&mut Random::new(1), 0).is_empty());
    }

    #[test]
    fn gaps_and_unread_elements_are_nan() {
        let rows = Extreme::rows::<f16>(&Extreme::ALL, &mut Random::new(1), 3, 5);
        assert_eq!(rows.extents(), [Extreme::ALL.len(), 3]);
        let Input::Array(array) = &rows else { panic!("a matrix") };
        let nan = |i: usize| f16::from_bits(array.bits(i) as u16).is_nan();
        assert!(nan(3) && nan(4) && nan(8) && !nan(0) && !nan(5));
        let columns = [Extreme::Largest, Extreme::AllNan, Extreme::Equal];
        let columns = Extreme::array::<f32, 3>(&columns, &mut Random::new(1), 2, [2, 2, 3], [8, 4, 1]).values();
        assert!(columns.chunks(3).all(|c| c[0] == f64::from(f32::MAX) && c[1].is_nan() && c[2] == 0.75), "{columns:?}");
        let some = Input::strided(&[1.0f32; 8], [2, 3], [4, 1]).with_nan_where(|n| n % 2 == 1);
        assert_eq!(
            some.values().iter().map(|x| x.is_nan()).collect::<Vec<_>>(),
            [false, true, false, true, false, true]
        );
        let names: Vec<_> = Extreme::cases(Extreme::finite(), &mut Random::new(1), |_, _| Vec::new())
            .into_iter()
            .map(|c| c.name)
            .collect();
        assert_eq!(names.len(), Extreme::FINITE);
        assert_eq!(names[0], "huge, mixed signs");
    }
}
