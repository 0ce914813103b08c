//! The comparison of two results, and of a result with a reference.

use super::caught::caught;
use super::input::StridedArray;
use super::report::{Failure, FirstDifference};
use super::{Case, ElementValue, Executor, Input, IntoValues};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Tolerance;
use kernel_dsl::half;
use runtime_simt::number::{show, to_f64};
use std::fmt;
use std::sync::Arc;

/// The expected contents of an argument after a launch.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The index of the argument.
    pub argument: usize,
    /// The contents.
    pub contents: Contents,
}

/// The contents that a reference expects of an output. Values are in row-major order.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Numbers in `f64`, each with the allowed distance.
    Near(Vec<f64>, Bound),
    /// Numbers of any type. Each must equal the output's, as [`ElementValue`]s compare.
    Exact(Vec<ElementValue>),
    /// The numbers of all elements. The output may hold the elements in another order.
    Multiset(Vec<ElementValue>),
    /// The numbers of all distinct elements. The output may hold each of them once or several
    /// times, in any order.
    Set(Vec<ElementValue>),
    /// Contents that a predicate accepts.
    Judged(Judge),
    /// Any contents.
    Unchecked,
}

/// A predicate over all arguments before and after a launch.
#[derive(Clone)]
pub struct Judge(Arc<Predicate>);

/// Returns the reason for which the arguments after a launch are wrong.
type Predicate = dyn Fn(&[Input], &[Input]) -> Result<(), String> + Send + Sync;

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Judge(..)")
    }
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
    /// Creates the expected contents of argument number `argument`. For integers of 64 bits, use
    /// [`exact`](Expected::exact), whose values are not rounded to `f64`.
    pub fn new(argument: usize, values: Vec<f64>, bound: Bound) -> Expected {
        Expected { argument, contents: Contents::Near(values, bound) }
    }

    /// Creates expected contents that must match exactly: elements of any type, structs included,
    /// or [`ElementValue`]s.
    pub fn exact<T: IntoValues>(argument: usize, elements: impl IntoIterator<Item = T>) -> Expected {
        Expected { argument, contents: Contents::Exact(T::values(elements.into_iter().collect())) }
    }

    /// Creates expected contents whose order does not matter: the output holds exactly these
    /// elements, each of them as often as `elements`. Use this for tickets, queues and compacted
    /// lists.
    ///
    /// In a kernel with atomic operations, the order may depend on the schedule. The reference
    /// judges the result of every schedule, as for [`set`](Expected::set) and
    /// [`judged`](Expected::judged).
    pub fn multiset<T: IntoValues>(argument: usize, elements: impl IntoIterator<Item = T>) -> Expected {
        Expected { argument, contents: Contents::Multiset(T::values(elements.into_iter().collect())) }
    }

    /// Creates expected contents of which neither the order nor the repetition matters: the output
    /// holds each of these elements at least once, and no other. Use this for frontiers and hash
    /// tables.
    pub fn set<T: IntoValues>(argument: usize, elements: impl IntoIterator<Item = T>) -> Expected {
        Expected { argument, contents: Contents::Set(T::values(elements.into_iter().collect())) }
    }

    /// Creates contents that are not checked, such as scratch memory. Executors are still compared
    /// with each other under the same schedule. If the kernel has atomic operations, a GPU's
    /// contents are not compared, because its schedule is unknown.
    pub fn unchecked(argument: usize) -> Expected {
        Expected { argument, contents: Contents::Unchecked }
    }

    /// Creates contents that `accepts` judges from all arguments before the launch and all
    /// arguments after the launch. The text of an error describes the mistake. If the predicate
    /// judges several outputs, give the others [`unchecked`](Expected::unchecked) contents.
    ///
    /// ```
    /// use runtime::testing::{Expected, Input};
    ///
    /// /// Checks that argument 1 holds the elements of argument 0 in sorted order.
    /// fn sorted(before: &[Input], after: &[Input]) -> Result<(), String> {
    ///     let mut wanted = before[0].to_vec::<u32>();
    ///     wanted.sort();
    ///     let sorted = after[1].to_vec::<u32>() == wanted;
    ///     if sorted { Ok(()) } else { Err("the elements are not sorted".to_string()) }
    /// }
    ///
    /// let expected = Expected::judged(1, sorted);
    /// # assert_eq!(expected.argument, 1);
    /// ```
    pub fn judged(
        argument: usize,
        accepts: impl Fn(&[Input], &[Input]) -> Result<(), String> + Send + Sync + 'static,
    ) -> Expected {
        Expected { argument, contents: Contents::Judged(Judge(Arc::new(accepts))) }
    }
}

impl Contents {
    /// Returns whether contents that differ between schedules can be right.
    fn is_order_free(&self) -> bool {
        match self {
            Contents::Near(..) | Contents::Exact(_) => false,
            Contents::Multiset(_) | Contents::Set(_) | Contents::Judged(_) | Contents::Unchecked => true,
        }
    }
}

/// Returns the arguments whose contents may depend on the schedule. The case names such arguments.
/// In a kernel with atomic operations, arguments whose expected contents have no order count too.
pub(super) fn order_dependent(case: &Case, has_atomics: bool, expected: &[Expected]) -> Vec<usize> {
    let free = expected.iter().filter(|e| has_atomics && e.contents.is_order_free()).map(|e| e.argument);
    case.order_dependent.iter().copied().chain(free).collect()
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

/// Returns whether an integer of 64 bits with this value may have been rounded to `f64`.
fn is_rounded(ty: Scalar, value: f64) -> bool {
    matches!(ty, Scalar::I64 | Scalar::U64) && value.abs() > 2f64.powi(53)
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
/// the argument's. Without a tolerance the bits must match.
///
/// Floats are equal if `right` is within `tolerance` of `left`. An infinity equals a finite float
/// if a value within the tolerance of the latter rounds to that infinity. Adjacent 16-bit floats
/// are equal too, because two values within the tolerance may round to neighbors.
pub(super) fn differ(
    name: &str,
    left: &StridedArray,
    right: &StridedArray,
    tolerance: Option<Tolerance>,
) -> Option<FirstDifference> {
    let different = |i: &usize| {
        let (ty, a, b) = (left.ty(*i), left.bits(*i), right.bits(*i));
        let near = tolerance.filter(|_| ty.is_float() || ty.is_half());
        class(ty, a) != class(ty, b)
            && !near.is_some_and(|t| {
                let (x, y) = (to_f64(ty, a), to_f64(ty, b));
                let overflow =
                    |infinite: f64, finite: f64| finite.is_finite() && overflows(ty, infinite, finite, t.bound(finite));
                t.holds(y, x) || overflow(x, y) || overflow(y, x) || neighbors(ty, a, b)
            })
    };
    let first = (0..left.len()).find(different)?;
    Some(FirstDifference {
        argument: name.to_string(),
        offset: first,
        index: left.offsets().position(|offset| offset == first).map(|n| left.index(n)),
        left: show(left.ty(first), left.bits(first)),
        right: show(left.ty(first), right.bits(first)),
        count: (0..left.len()).filter(different).count(),
    })
}

/// Compares the outputs of `executor`, listed by argument, with the reference of `case`.
pub(super) fn reference(
    executor: &Executor,
    names: &[String],
    outputs: &[(usize, StridedArray)],
    case: &Case,
    expected: &[Expected],
) -> Option<Failure> {
    let is_written = |argument: usize| outputs.iter().any(|(written, _)| *written == argument);
    if let Some(Expected { argument, .. }) = expected.iter().find(|e| !is_written(e.argument)) {
        let of = names.get(*argument).map_or_else(|| format!("argument {argument}"), |name| format!("`{name}`"));
        let written: Vec<_> = outputs.iter().map(|(i, _)| format!("`{}` (argument {i})", names[*i])).collect();
        let written = if written.is_empty() { "nothing".to_string() } else { written.join(", ") };
        let why = format!("the reference has values for {of}, which the kernel does not write: it writes {written}");
        return Some(Failure::Incomplete { why });
    }
    let repeated = |argument: usize| expected.iter().filter(|e| e.argument == argument).count() > 1;
    outputs.iter().find_map(|(argument, array)| {
        let name = &names[*argument];
        if repeated(*argument) {
            let why = format!("the reference has values for `{name}` more than once");
            return Some(Failure::Incomplete { why });
        }
        let Some(expected) = expected.iter().find(|e| e.argument == *argument) else {
            return Some(Failure::Incomplete {
                why: format!("the reference has no values for `{name}`, which the kernel writes"),
            });
        };
        let rejected = |why: String| Failure::Rejected { executor: executor.clone(), argument: name.clone(), why };
        let all = |given: usize| {
            let count = array.offsets().count();
            let why = || format!("the reference gives {given} values for `{name}`, which has {count}");
            (given != count).then(|| Failure::Incomplete { why: why() })
        };
        let wrong = |n: usize, given: ElementValue, expected: String, bound: Option<f64>| Failure::Wrong {
            executor: executor.clone(),
            argument: name.clone(),
            index: array.index(n).into(),
            given: show(given.ty(), given.bits()).into(),
            expected: expected.into(),
            bound,
        };
        let numbers = array.offsets().map(|offset| array.value(offset)).enumerate();
        match &expected.contents {
            Contents::Near(values, bound) => all(values.len()).or_else(|| {
                numbers.zip(values).find_map(|((n, given), value)| {
                    if *bound == Bound::Exact && is_rounded(given.ty(), *value) {
                        let why = "its reference has integers above 2⁵³, which `f64` rounds: use `Expected::exact`";
                        return Some(Failure::Incomplete {
                            why: format!("`{name}` cannot be compared exactly: {why}"),
                        });
                    }
                    let bound = bound.at(n, *value);
                    let shown = (bound != 0.0).then_some(bound);
                    (!near(given, *value, bound)).then(|| wrong(n, given, format!("{value:?}"), shown))
                })
            }),
            Contents::Exact(values) => all(values.len()).or_else(|| {
                let mut pairs = numbers.zip(values);
                // Numbers of two types may have the same text: 0.1 is not the same `f32` and `f64`.
                let text = |given: ElementValue, value: ElementValue| match show(value.ty(), value.bits()) {
                    text if given.ty() == value.ty() => text,
                    text => format!("{text} of type `{}`", value.ty()),
                };
                let (n, given, value) =
                    pairs.find_map(|((n, given), value)| (given != *value).then_some((n, given, *value)))?;
                let failure = wrong(n, given, text(given, value), None);
                // A `u128` consists of two numbers.
                Some(match (failure, values.get(n & !1..).and_then(u128_of)) {
                    (Failure::Wrong { executor, argument, index, bound, .. }, Some(expected)) if array.is_u128() => {
                        let given = array.long_integers()[n / 2].to_string().into();
                        Failure::Wrong {
                            executor,
                            argument,
                            index,
                            given,
                            expected: expected.to_string().into(),
                            bound,
                        }
                    }
                    (failure, _) => failure,
                })
            }),
            Contents::Multiset(values) => all(values.len()).or_else(|| unordered(array, values, false).map(rejected)),
            Contents::Set(values) => unordered(array, values, true).map(rejected),
            Contents::Judged(Judge(accepts)) => {
                let mut after = case.inputs.clone();
                outputs.iter().for_each(|(i, array)| after[*i] = Input::Array(array.clone()));
                caught("the predicate", || accepts(&case.inputs, &after)).and_then(|judged| judged).err().map(rejected)
            }
            Contents::Unchecked => None,
        }
    })
}

/// Returns the `u128` of which `words` are the low and the high word.
fn u128_of(words: &[ElementValue]) -> Option<u128> {
    let [low, high, ..] = words else { return None };
    let are_words = [low, high].into_iter().all(|word| word.ty() == Scalar::U64);
    are_words.then(|| u128::from(low.bits()) | u128::from(high.bits()) << 64)
}

/// Returns whether a number is within `bound` of the expected `value`.
fn near(given: ElementValue, value: f64, bound: f64) -> bool {
    let expected = ElementValue::new(value);
    // A bound relative to an infinity would accept everything.
    let finite = given.to_f64().is_finite();
    let near = value.is_finite()
        && (bound == f64::INFINITY
            || finite && given.distance(expected) <= bound
            || overflows(given.ty(), given.to_f64(), value, bound));
    near || given == expected
}

/// Compares the elements of an output with the expected ones, in any order. Returns a description
/// of the difference. With `distinct`, the number of occurrences of an element does not matter.
fn unordered(array: &StridedArray, expected: &[ElementValue], distinct: bool) -> Option<String> {
    let given: Vec<ElementValue> = array.offsets().map(|offset| array.value(offset)).collect();
    let sorted = |all: &[ElementValue]| {
        let mut elements: Vec<Vec<ElementValue>> =
            all.chunks(array.numbers_in_element()).map(<[ElementValue]>::to_vec).collect();
        elements.sort();
        if distinct {
            elements.dedup();
        }
        elements
    };
    let (given, expected) = (sorted(&given), sorted(expected));
    let count =
        |all: &[Vec<ElementValue>], one: &Vec<ElementValue>| all.iter().filter(|element| *element == one).count();
    let show = |element: &[ElementValue]| {
        let numbers: Vec<_> = element.iter().map(ElementValue::to_string).collect();
        if numbers.len() == 1 { numbers.concat() } else { format!("[{}]", numbers.join(", ")) }
    };
    // The first place where the sorted lists differ holds the least element of the difference.
    let at = given.iter().zip(&expected).take_while(|(a, b)| a == b).count();
    let least = match (given.get(at), expected.get(at)) {
        (None, None) => return None,
        (Some(a), Some(b)) => a.min(b),
        (Some(a), None) | (None, Some(a)) => a,
    };
    let (found, wanted) = (count(&given, least), count(&expected, least));
    Some(match (distinct, found) {
        (true, 0) => format!("it lacks {}", show(least)),
        (true, _) => format!("it holds {}, which the reference does not", show(least)),
        (false, _) => {
            let (found, wanted) = (times(found), times(wanted));
            format!("the element {} occurs {found}, and in the reference {wanted}; the order is free", show(least))
        }
    })
}

/// Formats a number of occurrences.
fn times(number: usize) -> String {
    match number {
        0 => "never".to_string(),
        1 => "once".to_string(),
        2 => "twice".to_string(),
        n => format!("{n} times"),
    }
}

/// Checks that the gaps between a view's elements are unchanged.
pub(super) fn check_gaps(
    executor: &Executor,
    names: &[String],
    outputs: &[(usize, StridedArray)],
    case: &Case,
) -> Option<Failure> {
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

    fn array(input: Input) -> StridedArray {
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
    fn tolerances_apply_to_finite_floats_and_overflow() {
        let tolerance = |relative, absolute| Some(Tolerance { parameter: 0, relative, absolute });
        let of = |x: f32| array(Input::slice(&[x]));
        let same = |a: f32, b: f32, t| differ("y", &of(a), &of(b), t).is_none();
        assert!(same(100.0, 100.5, tolerance(0.01, 0.0)) && !same(100.0, 101.5, tolerance(0.01, 0.0)));
        assert!(same(0.0, 1e-7, tolerance(0.0, 1e-6)) && !same(0.0, 1e-7, tolerance(1.0, 0.0)));
        assert!(same(0.0, -0.0, tolerance(0.0, 0.0)));
        assert!(same(f32::NAN, -f32::NAN, None) && !same(f32::NAN, 0.0, tolerance(1.0, 1.0)));
        let infinity = f32::INFINITY;
        assert!(same(infinity, infinity, None) && !same(infinity, f32::MAX, None));
        let near = tolerance(1e-6, 0.0);
        assert!(same(infinity, f32::MAX, near) && same(-f32::MAX, -infinity, near));
        assert!(!same(infinity, 3e38, near) && !same(infinity, -f32::MAX, near) && !same(infinity, -infinity, near));
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
            check_gaps(&Executor::Lowered, &["y".into()], &[(0, b)], &case),
            Some(Failure::Outside { offset: 1, .. })
        ));
    }

    #[test]
    fn overflow_matches_the_infinity_of_the_exact_value() {
        use kernel_dsl::half::f16;
        let check = |given: Input, value, bound| {
            let outputs = [(0, array(given))];
            let expected = [Expected::new(0, vec![value], Bound::Each(vec![bound]))];
            reference(&Executor::Lowered, &["y".to_string()], &outputs, &Case::new("", []), &expected).is_none()
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
            let expected = [Expected::new(0, values.to_vec(), bound)];
            reference(&Executor::Lowered, &names, &outputs, &Case::new("", []), &expected)
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
        let missing = reference(&Executor::Lowered, &names, &outputs, &Case::new("", []), &[]);
        assert!(matches!(missing, Some(Failure::Incomplete { .. })));
    }
    /// Returns the text of the failure of an output `y` whose only input is itself.
    fn judged(given: Input, expected: Expected) -> Option<String> {
        let case = Case::new("", [given.clone()]);
        let outputs = [(0, array(given))];
        let failure = reference(&Executor::Lowered, &["y".to_string()], &outputs, &case, &[expected]);
        failure.map(|failure| failure.to_string())
    }

    #[test]
    fn integers_of_64_bits_are_not_rounded() {
        let large = (1u64 << 53) + 1;
        let of = |x: u64| Input::slice(&[x, u64::MAX]);
        assert_eq!(judged(of(large), Expected::exact(0, [large, u64::MAX])), None);
        assert_eq!(
            judged(of(large), Expected::exact(0, [large - 1, u64::MAX])).unwrap(),
            "y[0] is 9007199254740993 on the interpreter on IR as lowered; the reference gives 9007199254740992"
        );
        let rounded = vec![large as f64, u64::MAX as f64];
        assert!(judged(of(large), Expected::new(0, rounded.clone(), Bound::Exact)).is_some());
        // The lost bit would not show: both sides round to 2⁶³.
        let even = Expected::new(0, vec![(1u64 << 63) as f64; 2], Bound::Exact);
        let why = judged(Input::slice(&[1u64 << 63; 2]), even).unwrap();
        assert!(why.contains("use `Expected::exact`"), "{why}");
        assert_eq!(judged(of(large), Expected::new(0, rounded, Bound::Absolute(1.0))), None);
        let low = [i64::MIN, i64::MIN + 1];
        assert_eq!(judged(Input::slice(&low), Expected::exact(0, low)), None);
        assert!(judged(Input::slice(&low), Expected::exact(0, [i64::MIN; 2])).is_some());
    }

    #[test]
    fn elements_of_any_type_are_exact() {
        use kernel_dsl::half::{bf16, f16};
        let halves = [f16::from_f32(0.1), f16::NAN];
        assert_eq!(judged(Input::slice(&halves), Expected::exact(0, halves)), None);
        let halves = [bf16::from_f32(0.1), bf16::INFINITY];
        assert_eq!(judged(Input::slice(&halves), Expected::exact(0, halves)), None);
        let pairs = [[1i8, -1], [2, -128]];
        assert_eq!(judged(Input::slice(&pairs), Expected::exact(0, pairs)), None);
        assert_eq!(judged(Input::slice(&pairs), Expected::exact(0, [1i8, -1, 2, -128])), None);
        let wrong = judged(Input::slice(&pairs), Expected::exact(0, [[1i8, -1], [3, -128]])).unwrap();
        assert!(wrong.starts_with("y[1] is 2 "), "{wrong}");
        let wrong = judged(Input::slice(&[0.1f32]), Expected::exact(0, [0.1f64])).unwrap();
        assert!(wrong.starts_with("y[0] is 0.1 ") && wrong.ends_with(" of type `f64`"), "{wrong}");
    }

    #[test]
    fn sets_and_multisets_have_no_order() {
        let of = || Input::slice(&[3u32, 1, 3, 2]);
        assert_eq!(judged(of(), Expected::multiset(0, [1u32, 2, 3, 3])), None);
        let wrong = judged(of(), Expected::multiset(0, [1u32, 2, 2, 3])).unwrap();
        assert!(wrong.contains("the element 2 occurs once, and in the reference twice; the order is free"), "{wrong}");
        assert!(judged(of(), Expected::multiset(0, [1u32, 2, 3])).unwrap().contains("gives 3 values"));
        assert_eq!(judged(of(), Expected::set(0, [1u32, 2, 3])), None);
        assert!(judged(of(), Expected::set(0, [1u32, 2, 3, 4])).unwrap().ends_with("it lacks 4"));
        assert!(
            judged(of(), Expected::set(0, [1u32, 3])).unwrap().contains("it holds 2, which the reference does not")
        );
        // Elements of several numbers are compared as a whole.
        let pairs = || Input::slice(&[[1u32, 2], [3, 4]]);
        assert_eq!(judged(pairs(), Expected::multiset(0, [[3u32, 4], [1, 2]])), None);
        assert!(judged(pairs(), Expected::multiset(0, [[1u32, 4], [3, 2]])).unwrap().contains("[1, 2]"));
    }

    #[test]
    fn predicates_see_all_arguments_before_and_after() {
        let case = Case::new("", [Input::slice(&[1u32, 2]), Input::slice(&[0u32, 0])]);
        let outputs = [(1, array(Input::slice(&[2u32, 1])))];
        let names = ["x".to_string(), "y".to_string()];
        let run = |expected| reference(&Executor::Lowered, &names, &outputs, &case, &[expected]);
        let reversed = Expected::judged(1, |before, after| {
            let (x, y) = (before[0].to_vec::<u32>(), after[1].to_vec::<u32>());
            let unchanged = after[0] == before[0] && before[1].to_vec::<u32>() == [0, 0];
            if unchanged && x.iter().rev().eq(&y) { Ok(()) } else { Err(format!("{y:?} is not {x:?} reversed")) }
        });
        assert_eq!(run(reversed), None);
        let failure = run(Expected::judged(1, |_, _| Err("no result is right".to_string()))).unwrap();
        assert_eq!(failure.to_string(), "y is wrong on the interpreter on IR as lowered: no result is right");
        assert_eq!(run(Expected::unchecked(1)), None);
    }
}
