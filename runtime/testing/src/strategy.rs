//! Proptest strategies for kernel arguments, and a function that runs a kernel in a proptest.
//!
//! The strategies prefer the same values as [`Gen`](super::Gen): sizes around tiles, and special
//! values. Proptest shrinks the first draws first, so draw sizes before values:
//!
//! ```
//! use kernel_dsl::prelude::*;
//! use proptest::prelude::*;
//! use runtime::testing::strategy::{agree, size, special_values};
//! use runtime::testing::{Case, Expected, Input};
//!
//! #[kernel(block = 64, grid = x.len().div_ceil(64))]
//! fn negate(x: &mut [f32]) {
//!     let i = grid::index();
//!     if i < x.len() {
//!         x[i] = -x[i];
//!     }
//! }
//!
//! proptest! {
//!     #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]
//!     # fn doctest(
//!     # /*
//!     #[test]
//!     fn negate_changes_each_sign(
//!     # */
//!         x in size(64).prop_flat_map(special_values::<f32>)
//!     ) {
//!         let case = Case::from([Input::slice(&x)]);
//!         agree::<negate>(&case, |_| vec![Expected::exact(0, x.iter().map(|x| -x))])?;
//!     }
//! }
//! # doctest();
//! ```

use super::{Case, Checker, Draw, Expected, Input, PreparedInstance, Random, edges, random};
use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

/// Draws a size at which kernels with tiles of `tile` tend to fail ([`edges`]); occasionally any
/// size below four tiles.
pub fn size(tile: usize) -> impl Strategy<Value = usize> {
    prop_oneof![1 => 0..tile.saturating_mul(4).max(1), 3 => select(edges(tile))]
}

/// Draws a row pitch in elements: `columns`, or slightly more.
pub fn pitch(columns: usize) -> impl Strategy<Value = usize> {
    select(vec![0usize, 1, 3, 4, 32]).prop_map(move |gap| columns + gap)
}

/// Draws a block size in threads: whole warps up to 1024 threads. Shrinks towards few warps.
pub fn block() -> impl Strategy<Value = usize> {
    (1..=32usize).prop_map(|warps| 32 * warps)
}

/// Draws an ordinary value: floats from −1 to 1, integers of their whole range. Shrinks towards 0
/// and 1.
pub fn value<T: Draw>() -> impl Strategy<Value = T> {
    let drawn = any::<u64>().prop_map(|seed| T::draw(&mut Random::new(seed)));
    prop_oneof![1 => select(simple::<T>()), 31 => drawn]
}

/// Draws a value, one in four of them [special](Draw::SPECIAL_VALUES).
pub fn special_value<T: Draw>() -> impl Strategy<Value = T> {
    prop_oneof![1 => select(T::SPECIAL_VALUES.to_vec()), 3 => value::<T>()]
}

/// Draws `n` ordinary values.
pub fn values<T: Draw>(n: usize) -> impl Strategy<Value = Vec<T>> {
    vec(value::<T>(), n)
}

/// Draws `n` values, one in four of them [special](Draw::SPECIAL_VALUES).
pub fn special_values<T: Draw>(n: usize) -> impl Strategy<Value = Vec<T>> {
    vec(special_value::<T>(), n)
}

/// Draws `n` ordinary values, of which at most `distinct` are different.
pub fn ties<T: Draw>(n: usize, distinct: usize) -> impl Strategy<Value = Vec<T>> {
    any::<u64>().prop_flat_map(move |seed| {
        let one = any::<u64>().prop_map(move |draw| Random::new(draw).tie(seed, distinct));
        vec(one, n)
    })
}

/// Draws `n` ordinary values in ascending order.
pub fn sorted<T: Draw + PartialOrd>(n: usize) -> impl Strategy<Value = Vec<T>> {
    values::<T>(n).prop_map(random::ascending)
}

/// Draws the numbers from 0 to `n` − 1 in random order. Shrinks towards ascending order.
pub fn permutation(n: usize) -> impl Strategy<Value = Vec<u32>> {
    vec(any::<u64>(), n).prop_map(|keys| random::permutation(&keys))
}

/// Draws the offsets of ragged rows, as [`Random::offsets`] does.
pub fn offsets(rows: usize, longest: usize) -> impl Strategy<Value = Vec<u32>> {
    let length = prop_oneof![1 => Just(0), 2 => 0..=longest as u32, 1 => Just(longest as u32)];
    vec(length, rows).prop_map(move |lengths| random::offsets(&lengths, longest))
}

/// Draws the offsets of the rows of a sparse matrix and the columns of their elements, as
/// [`Random::sparse`] does.
pub fn sparse([rows, cols]: [usize; 2]) -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
    (offsets(rows, cols), any::<u64>()).prop_map(move |(offsets, seed)| {
        let mut random = Random::new(seed);
        let columns = offsets.windows(2).flat_map(|row| random.sample((row[1] - row[0]) as usize, cols)).collect();
        (offsets, columns)
    })
}

/// Draws a matrix of ordinary values, with gaps between its rows in some cases. The extents are
/// drawn by [`size`] for tiles of `tile`.
pub fn matrix<T: Draw>(tile: [usize; 2]) -> impl Strategy<Value = Input> {
    let shape = (size(tile[0]), size(tile[1])).prop_flat_map(|(rows, columns)| (Just([rows, columns]), pitch(columns)));
    shape.prop_flat_map(|(extents, pitch)| {
        values::<T>(extents[0] * pitch).prop_map(move |data| Input::strided(&data, extents, [pitch.max(1), 1]))
    })
}

fn simple<T: Draw>() -> Vec<T> {
    vec![T::zero(), T::zero().simplified(super::Simple::One)]
}

/// Runs the kernel on every executor except a GPU. Compares the results with each other and with
/// `reference`.
///
/// # Errors
/// If the kernel does not compile, or the case fails. The text then has the failure and the
/// oracle's warnings.
pub fn agree<K: Kernel>(case: &Case, reference: impl FnOnce(&[Input]) -> Vec<Expected>) -> Result<(), TestCaseError> {
    let failed = |why: String| TestCaseError::fail(why);
    let prepared =
        PreparedInstance::compile(K::ARTIFACT, &Instance(K::CONSTANTS.to_vec())).map_err(|e| failed(e.to_string()))?;
    let agreed = Checker::new(None).first_failure(&prepared, case, Some(reference));
    agreed.map_err(|wrong| failed(wrong.failure.with(&wrong.warnings)))
}
