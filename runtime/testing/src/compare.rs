//! The comparison of two results, and of a result with a reference.

use super::input::Array;
use super::report::{Failure, Mismatch};
use super::{Case, Executor, Input};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Tolerance;
use kernel_dsl::half;
use runtime_simt::number::{show, to_f64};

/// The expected contents of an argument after a launch.
#[derive(Clone, PartialEq, Debug)]
pub struct Expected {
    /// The index of the argument.
    pub argument: usize,
    /// The values in row-major order.
    pub values: Vec<f64>,
    /// The allowed distance from the reference.
    pub bound: Bound,
}

/// The allowed distance of a value from the reference. A NaN must match a NaN, an infinity the same
/// infinity.
///
/// A result may overflow if the exact value, or one within the bound, rounds to that infinity in
/// the output's type. For example, if the reference in `f64` is 10³⁹, an `f32` of +∞ is right.
#[derive(Clone, PartialEq, Debug)]
pub enum Bound {
    /// No distance: the values must be equal.
    Exact,
    /// An absolute bound.
    Absolute(f64),
    /// A bound relative to the reference's value.
    Relative(f64),
    /// An absolute bound for each element. An infinite bound of a finite value accepts every
    /// result, NaN included: for results that the kernel's documentation leaves open.
    Each(Vec<f64>),
}

impl Expected {
    /// Creates the expected contents of argument number `argument`.
    pub fn new(argument: usize, values: Vec<f64>, bound: Bound) -> Expected {
        Expected { argument, values, bound }
    }

    /// Creates expected contents that must match exactly.
    pub fn exact(argument: usize, values: impl IntoIterator<Item = impl Into<f64>>) -> Expected {
        Expected::new(argument, values.into_iter().map(Into::into).collect(), Bound::Exact)
    }
}

impl Bound {
    /// Returns the absolute bound of element `n`, whose expected value is `expected`.
    fn at(&self, n: usize, expected: f64) -> f64 {
        match self {
            Bound::Exact => 0.0,
            Bound::Absolute(bound) => *bound,
            Bound::Relative(part) => part * expected.abs(),
            Bound::Each(bounds) => bounds.get(n).copied().unwrap_or(0.0),
        }
    }
}

/// Returns whether `given` is ±∞ and the result of an overflow. `expected` moved away from zero by
/// `bound` must round to that infinity in type `ty`.
fn overflows(ty: Scalar, given: f64, expected: f64, bound: f64) -> bool {
    let far = expected.abs() + bound;
    let rounded = match ty {
        Scalar::F32 => f64::from(far as f32),
        Scalar::F16 => half::f16::from_f64(far).to_f64(),
        Scalar::Bf16 => half::bf16::from_f64(far).to_f64(),
        _ => far,
    };
    given.is_infinite() && rounded.is_infinite() && given.signum() == expected.signum()
}

/// Returns the bits for a comparison; all NaNs compare equal.
fn class(ty: Scalar, bits: u64) -> u64 {
    if (ty.is_float() || ty.is_half()) && to_f64(ty, bits).is_nan() { u64::MAX } else { bits }
}

/// Returns whether two 16-bit floats are equal or adjacent.
fn neighbors(ty: Scalar, a: u64, b: u64) -> bool {
    // Sign and magnitude, in the order of the numbers.
    let place = |bits: u64| if bits & 0x8000 == 0 { bits as i64 } else { -((bits & 0x7fff) as i64) };
    ty.is_half() && to_f64(ty, a).is_finite() && to_f64(ty, b).is_finite() && (place(a) - place(b)).abs() <= 1
}

/// Returns the first element in which two arrays differ and the number of differences; `name` is
/// the argument's. Floats are equal if `right` is within `tolerance` of `left`. Adjacent 16-bit
/// floats are equal too, because two values within the tolerance may round to neighbors. Without a
/// tolerance the bits must match.
pub(super) fn differ(name: &str, left: &Array, right: &Array, tolerance: Option<Tolerance>) -> Option<Mismatch> {
    let different = |i: &usize| {
        let (ty, a, b) = (left.ty(*i), left.bits(*i), right.bits(*i));
        let near = tolerance.filter(|_| ty.is_float() || ty.is_half());
        class(ty, a) != class(ty, b)
            && !near.is_some_and(|t| t.holds(to_f64(ty, b), to_f64(ty, a)) || neighbors(ty, a, b))
    };
    let first = (0..left.len()).find(different)?;
    Some(Mismatch {
        argument: name.to_string(),
        offset: first,
        index: left.offsets().position(|offset| offset == first).map(|n| left.index(n)),
        left: show(left.ty(first), left.bits(first)),
        right: show(left.ty(first), right.bits(first)),
        count: (0..left.len()).filter(different).count(),
    })
}

/// Compares the outputs of `executor`, listed by argument, with the reference.
pub(super) fn reference(
    executor: &Executor,
    names: &[String],
    outputs: &[(usize, Array)],
    expected: &[Expected],
) -> Option<Failure> {
    for (argument, array) in outputs {
        let name = &names[*argument];
        let Some(expected) = expected.iter().find(|e| e.argument == *argument) else {
            return Some(Failure::Incomplete {
                why: format!("the reference has no values for `{name}`, which the kernel writes"),
            });
        };
        let count = array.offsets().count();
        if expected.values.len() != count {
            return Some(Failure::Incomplete {
                why: format!("the reference gives {} values for `{name}`, which has {count}", expected.values.len()),
            });
        }
        for (n, (offset, value)) in array.offsets().zip(&expected.values).enumerate() {
            let ty = array.ty(offset);
            let (given, bound) = (to_f64(ty, array.bits(offset)), expected.bound.at(n, *value));
            // A bound relative to an infinity would accept everything.
            let near = value.is_finite()
                && (bound == f64::INFINITY
                    || given.is_finite() && (given - value).abs() <= bound
                    || overflows(ty, given, *value, bound));
            if !(near || given == *value || (given.is_nan() && value.is_nan())) {
                return Some(Failure::Wrong {
                    executor: executor.clone(),
                    argument: name.clone(),
                    index: array.index(n),
                    given: show(ty, array.bits(offset)),
                    expected: *value,
                    bound,
                });
            }
        }
    }
    None
}

/// Checks that the gaps between a view's elements are unchanged.
pub(super) fn gaps(executor: &Executor, names: &[String], outputs: &[(usize, Array)], case: &Case) -> Option<Failure> {
    for (argument, after) in outputs {
        let Input::Array(before) = &case.inputs[*argument] else { continue };
        let mut gap = vec![true; after.len()];
        after.offsets().for_each(|offset| gap[offset] = false);
        if let Some(offset) = (0..after.len()).find(|i| gap[*i] && before.bits(*i) != after.bits(*i)) {
            return Some(Failure::Outside {
                executor: executor.clone(),
                argument: names[*argument].clone(),
                offset,
                before: show(before.ty(offset), before.bits(offset)),
                after: show(before.ty(offset), after.bits(offset)),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(input: Input) -> Array {
        match input {
            Input::Array(array) => array,
            Input::Scalar { .. } => panic!("an array is needed"),
        }
    }

    #[test]
    fn halves_may_round_to_a_neighbor() {
        use kernel_dsl::half::f16;
        let of = |bits: &[u16]| array(Input::slice(&bits.iter().map(|b| f16::from_bits(*b)).collect::<Vec<_>>()));
        let tolerance = Some(Tolerance { parameter: 0, relative: 1e-9, absolute: 0.0 });
        let a = of(&[0x3c00, 0x8000, 0x0001, 0x7bff, 0x3c00]);
        assert_eq!(differ("y", &a, &of(&[0x3c01, 0x0001, 0x8000, 0x7bff, 0x3bff]), tolerance), None);
        assert_eq!(differ("y", &a, &of(&[0x3c02, 0x8000, 0x0001, 0x7c00, 0x3c00]), tolerance).unwrap().count, 2);
        assert_eq!(differ("y", &a, &of(&[0x3c01, 0x8000, 0x0001, 0x7bff, 0x3c00]), None).unwrap().count, 1);
    }

    #[test]
    fn bits_are_compared_and_all_nans_are_equal() {
        let nan = |payload: u32| f32::from_bits(0x7fc0_0000 | payload);
        let a = array(Input::slice(&[1.0, nan(1), 0.0, 5.0]));
        let b = array(Input::slice(&[1.0, nan(2), -0.0, 6.0]));
        assert_eq!(differ("y", &a, &a, None), None);
        let mismatch = differ("y", &a, &b, None).unwrap();
        assert_eq!((mismatch.offset, mismatch.index, mismatch.count), (2, Some(vec![2]), 2));
        assert_eq!((&mismatch.left[..], &mismatch.right[..]), ("0.0 (0x00000000)", "-0.0 (0x80000000)"));
    }

    #[test]
    fn tolerances_apply_to_finite_floats_only() {
        let tolerance = |relative, absolute| Some(Tolerance { parameter: 0, relative, absolute });
        let of = |x: f32| array(Input::slice(&[x]));
        let same = |a: f32, b: f32, t| differ("y", &of(a), &of(b), t).is_none();
        assert!(same(100.0, 100.5, tolerance(0.01, 0.0)) && !same(100.0, 101.5, tolerance(0.01, 0.0)));
        assert!(same(0.0, 1e-7, tolerance(0.0, 1e-6)) && !same(0.0, 1e-7, tolerance(1.0, 0.0)));
        assert!(same(0.0, -0.0, tolerance(0.0, 0.0)));
        assert!(same(f32::NAN, -f32::NAN, None) && !same(f32::NAN, 0.0, tolerance(1.0, 1.0)));
        let infinity = f32::INFINITY;
        assert!(same(infinity, infinity, None) && !same(infinity, f32::MAX, tolerance(1.0, 1.0)));
        let [one, two] = [1, 2].map(|n| array(Input::slice(&[n])));
        assert!(differ("y", &one, &two, tolerance(9.0, 9.0)).is_some());
    }

    #[test]
    fn a_difference_between_rows_has_no_index() {
        let a = array(Input::strided(&[1i32, 2, 3, 4], [2, 1], [2, 1]));
        let b = array(Input::strided(&[1i32, 9, 3, 4], [2, 1], [2, 1]));
        assert_eq!(differ("y", &a, &b, None).unwrap().index, None);
        let case = Case::new("", [Input::Array(a)]);
        assert!(matches!(
            gaps(&Executor::Lowered, &["y".into()], &[(0, b)], &case),
            Some(Failure::Outside { offset: 1, .. })
        ));
    }

    #[test]
    fn overflow_matches_the_infinity_of_the_exact_value() {
        use kernel_dsl::half::f16;
        let check = |given: Input, value, bound| {
            let outputs = [(0, array(given))];
            let expected = [Expected::new(0, vec![value], Bound::Each(vec![bound]))];
            reference(&Executor::Lowered, &["y".to_string()], &outputs, &expected).is_none()
        };
        let single = |given: f32, value, bound| check(Input::slice(&[given]), value, bound);
        let infinity = f32::INFINITY;
        assert!(single(infinity, 1e39, 0.0) && single(-infinity, -1e39, 0.0) && single(infinity, 3.4e38, 1e36));
        assert!(!single(infinity, -1e39, 0.0) && !single(infinity, 3.4e38, 0.0) && !single(f32::MAX, 1e39, 0.0));
        assert!(
            !single(f32::NAN, 1e39, 0.0)
                && !single(infinity, f64::NAN, 1.0)
                && !single(1.0, f64::INFINITY, f64::INFINITY)
        );
        let half = |value| check(Input::slice(&[f16::INFINITY]), value, 0.0);
        // 65,520 lies halfway between the largest finite value and the next power of two, and
        // rounds up.
        assert!(half(65520.0) && !half(65519.0) && half(1e9));
        assert!(single(f32::NAN, 1.0, f64::INFINITY) && single(infinity, 1.0, f64::INFINITY));
    }

    #[test]
    fn bounds_are_enforced() {
        let names = ["y".to_string()];
        let outputs = [(0, array(Input::slice(&[1.0f32, f32::NAN, f32::INFINITY])))];
        let check = |values: [f64; 3], bound| {
            reference(&Executor::Lowered, &names, &outputs, &[Expected::new(0, values.to_vec(), bound)])
        };
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        assert_eq!(check([1.0, nan, infinity], Bound::Exact), None);
        assert_eq!(check([1.1, nan, infinity], Bound::Absolute(0.2)), None);
        assert_eq!(check([1.1, nan, infinity], Bound::Relative(0.1)), None);
        assert!(matches!(check([1.1, nan, infinity], Bound::Exact), Some(Failure::Wrong { .. })));
        assert!(matches!(check([1.0, 0.0, infinity], Bound::Absolute(9.0)), Some(Failure::Wrong { .. })));
        assert!(matches!(check([1.0, nan, 3e38], Bound::Absolute(9.0)), Some(Failure::Wrong { .. })));
        assert!(matches!(check([1.0, nan, -infinity], Bound::Relative(0.1)), Some(Failure::Wrong { .. })));
        assert!(matches!(check([infinity, nan, infinity], Bound::Relative(0.1)), Some(Failure::Wrong { .. })));
        assert!(matches!(check([nan, nan, infinity], Bound::Exact), Some(Failure::Wrong { .. })));
        let missing = reference(&Executor::Lowered, &names, &outputs, &[]);
        assert!(matches!(missing, Some(Failure::Incomplete { .. })));
    }
}
