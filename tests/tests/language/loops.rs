//! Tests of loops: reversed ranges, ranges of integers other than `usize`, and unrolling by a
//! number of copies.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

/// Mixes an index into a hash of the previous ones, so that the order matters.
#[device]
fn mix(seen: u32, index: u32) -> u32 {
    (seen.rotate_left(5) ^ index).wrapping_mul(0x9e37_79b9)
}

/// Declares kernels whose rows of `out` are the indices of loops, for each (from, to) of a table.
macro_rules! loops {
    ($module:ident, $t:ty, $count:literal, |$from:ident, $to:ident, $seen:ident| $($e:tt)*) => {
        mod $module {
            use super::*;

            // The index of the output continues after the last loop.
            #[allow(unused_assignments, unused_braces)]
            #[kernel(block = 32, grid = starts.len().div_ceil(32), instances(N = $count))]
            #[requires(starts.len() == ends.len(), out.len() == starts.len() * N)]
            pub fn run<const N: usize>(starts: &[i32], ends: &[i32], out: &mut [u32]) {
                let row = grid::index();
                if row < starts.len() {
                    let ($from, $to) = (starts[row] as $t, ends[row] as $t);
                    let mut number = row * N;
                    $(
                        let mut $seen = 1u32;
                        $e
                        out[number] = $seen;
                        number += 1;
                    )*
                }
            }

            #[allow(unused_braces)]
            pub fn test(checker: &Checker, pairs: &[(i32, i32)]) {
                let (starts, ends): (Vec<_>, Vec<_>) = pairs.iter().copied().unzip();
                let mut expected = Vec::new();
                for (start, end) in pairs {
                    let ($from, $to) = (*start as $t, *end as $t);
                    $(
                        let mut $seen = 1u32;
                        $e
                        expected.push(f64::from($seen));
                    )*
                }
                let out = vec![0u32; expected.len()];
                let inputs = vec![Input::slice(&starts), Input::slice(&ends), Input::slice(&out)];
                let expected = Expected::new(2, expected, Bound::Exact);
                agree::<run<$count>>(checker, stringify!($module), inputs, &[expected]);
                assemble::<run<$count>>();
            }
        }
    };
}

loops!(of_usize, usize, 14, |from, to, seen|
    { for i in (from..to).rev() { seen = mix(seen, i as u32); } }
    { for i in (from..to).step_by(3).rev() { seen = mix(seen, i as u32); } }
    { for i in (from..to).rev().step_by(3) { seen = mix(seen, i as u32); } }
    { for i in unroll((0..5).rev()) { seen = mix(seen, (from + i) as u32); } }
    { for i in unroll((2..13).step_by(4).rev()) { seen = mix(seen, (from + i) as u32); } }
    { for i in unroll_by::<4>(from..to) { seen = mix(seen, i as u32); } }
    { for i in unroll_by::<3>((from..to).step_by(2)) { seen = mix(seen, i as u32); } }
    { for i in unroll_by::<2>((from..to).rev()) { seen = mix(seen, i as u32); } }
    { for i in unroll_by::<1>((from..to).step_by(5).rev()) { seen = mix(seen, i as u32); } }
    {
        for i in unroll_by::<4>(from..to) {
            if i % 5 == 2 {
                continue;
            }
            if i > 11 {
                break;
            }
            seen = mix(seen, i as u32);
        }
    }
    {
        'out: for i in unroll_by::<2>(from..to) {
            for j in 0..i {
                if j == 3 {
                    continue 'out;
                }
                if j + i > 30 {
                    break 'out;
                }
                seen = mix(seen, j as u32);
            }
            seen = mix(seen, 77);
        }
    }
    { for i in unroll_by::<4>(2..18) { seen = mix(seen, i as u32); } }
    { for i in unroll_by::<4>((1..24).step_by(3)) { seen = mix(seen, i as u32); } }
    { for i in rolled((from..to).rev()) { seen = mix(seen, i as u32); } }
);

loops!(of_i32, i32, 5, |from, to, seen|
    { for i in from..to { seen = mix(seen, i as u32); } }
    { for i in (from..to).rev() { seen = mix(seen, i as u32); } }
    { for i in (from..to).step_by(7) { seen = mix(seen, i as u32); } }
    { for i in (from..to).step_by(7).rev() { seen = mix(seen, i as u32); } }
    { for i in (from..to).rev().step_by(3) { seen = mix(seen, i as u32); } }
);

loops!(of_i64, i64, 4, |from, to, seen|
    { for i in from..to { seen = mix(seen, i as u32); } }
    { for i in (from - 5..to).rev() { seen = mix(seen, i as u32); } }
    { for i in (from..to).step_by(7) { seen = mix(seen, i as u32); } }
    { for i in (from * 8589934592..to * 8589934592).rev().step_by(2147483648) { seen = mix(seen, (i >> 31) as u32); } }
);

loops!(of_u32, u32, 3, |from, to, seen|
    { for i in (from..to).rev() { seen = mix(seen, i); } }
    { for i in (from..to).step_by(4) { seen = mix(seen, i); } }
    { for i in (from..to).rev().step_by(4) { seen = mix(seen, i); } }
);

loops!(of_i8, i8, 3, |from, to, seen|
    { for i in from..to { seen = mix(seen, i as u32); } }
    { for i in (from..to).rev() { seen = mix(seen, i as u32); } }
    { for i in (-128..to).rev() { seen = mix(seen, i as u32); } }
);

loops!(of_u8, u8, 2, |from, to, seen|
    { for i in from..to { seen = mix(seen, i as u32); } }
    { for i in (from..255).rev() { seen = mix(seen, i as u32); } }
);

/// Sums by even and odd phases in registers, because the phase is constant in each copy.
#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 4)]
pub fn phases(x: &[u32], out: &mut [u32]) {
    let mut sums = [0u32; 4];
    for k in unroll_by::<4>(0..x.len()) {
        sums[k % 4] = mix(sums[k % 4], x[k]);
    }
    for k in unroll_by::<2>((0..x.len()).step_by(2)) {
        sums[k & 3] = mix(sums[k & 3], x[k]);
    }
    if thread::x() == 0 {
        for k in unroll(0..4) {
            out[k] = sums[k];
        }
    }
}

fn all(checker: &Checker) {
    let positive: Vec<_> =
        (0..10).flat_map(|n| [(0, n), (1, n + 1), (8, 8 + n), (3, 2 * n)]).chain([(0, 64)]).collect();
    let mut signed = positive.clone();
    signed.extend([(-5, 5), (-20, -3), (-1, -1), (4, -4), (-128, -100), (-128, 127), (100, 127)]);
    of_usize::test(checker, &positive);
    of_u32::test(checker, &positive);
    of_u8::test(checker, &positive);
    of_i8::test(checker, &signed);
    of_i64::test(checker, &signed);
    // The distance of the last two ranges exceeds the type.
    signed.extend([(i32::MAX - 9, i32::MAX - 7), (i32::MIN, i32::MIN + 9)]);
    of_i32::test(checker, &signed);

    for n in 0..14 {
        let x: Vec<u32> = (0..n).map(|i| i * i + 7).collect();
        let mut sums = [0u32; 4];
        (0..x.len()).chain((0..x.len()).step_by(2)).for_each(|k| sums[k % 4] = mix(sums[k % 4], x[k]));
        let expected = Expected::new(1, sums.map(f64::from).to_vec(), Bound::Exact);
        agree::<phases>(checker, &format!("n = {n}"), vec![Input::slice(&x), Input::slice(&[0u32; 4])], &[expected]);
    }
    assemble::<phases>();
}

#[test]
fn loops_visit_the_indices_of_rust() {
    all(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_loops_agree_with_the_interpreter() {
    all(&checker(true));
}

/// Finds the first index whose square is at least `n`, in a range with more indices than `usize`
/// counts.
#[kernel(block = 32, grid = roots.len().div_ceil(32))]
#[requires(n.len() == roots.len())]
fn roots(n: &[u32], roots: &mut [u32]) {
    let at = grid::index();
    if at < roots.len() {
        let n = n[at] as u64;
        for (k, i) in (0u64..1 << 32).enumerate() {
            if i * i >= n {
                roots[at] = k as u32;
                break;
            }
        }
    }
}

#[test]
fn range_of_64_bits_is_counted_up_to_usize() {
    let n: Vec<u32> = (0..200).collect();
    let expected = n.iter().map(|n| (0u32..).find(|i| i * i >= *n).unwrap());
    let expected = [Expected::exact(1, expected)];
    agree::<roots>(&checker(false), "roots", vec![Input::slice(&n), Input::slice(&[9u32; 200])], &expected);
}
