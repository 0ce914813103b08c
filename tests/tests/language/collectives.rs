//! Tests of reductions, scans and broadcasts of a block with closures of the kernel, over several
//! warps. The results are compared with plain Rust, and with the same kernel compiled by rustc.

use super::support::{agree, assemble, checker};
use kernel_dsl::host;
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input, Random};
use std::ops::Range;

/// Declares a function and the same kernel.
macro_rules! witnessed {
    ($(#[kernel($($clause:tt)*)])? $(#[requires($($condition:tt)*)])? pub fn $name:ident $($rest:tt)*) => {
        mod plain {
            use super::*;
            pub fn $name $($rest)*
        }
        #[kernel($($($clause)*)?)]
        $(#[requires($($condition)*)])?
        pub fn $name $($rest)*
    };
}

#[device]
fn join(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
    if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

/// Composes maps v ↦ m · v + c, first a, then b: associative, and not commutative.
#[device]
fn compose(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (b.0.wrapping_mul(a.0), b.0.wrapping_mul(a.1).wrapping_add(b.1))
}

const FLOATS: usize = 7;
const WHOLE: usize = 14;

witnessed! {
    #[kernel(block = (X, Y), grid = 2, instances(X = 32, Y = 1; X = 64, Y = 1; X = 32, Y = 3; X = 16, Y = 14; X = 1024, Y = 1))]
    #[requires(x.len() == 2 * X * Y, y.len() == x.len(), floats.len() == 7 * x.len(), whole.len() == 14 * x.len())]
    pub fn combined<const X: usize, const Y: usize>(x: &[f32], y: &[i32], mut floats: ViewMut<f32, 1>, mut whole: ViewMut<i64, 1>) {
        let i = grid::index();
        let mut shift = 0.0;
        for round in 0..2 {
            let (v, w) = (x[i] + shift, y[i]);
            let (best, place) = block::reduce((v, i as u32), join);
            let mixed = block::reduce((w as i64, v as f64, w > 40, w as i16), |a, b| {
                (a.0 + b.0, if b.1 < a.1 { b.1 } else { a.1 }, a.2 || b.2, a.3 ^ b.3)
            });
            let sums = block::reduce([v, 0.5], |a, b| [a[0] + b[0], a[1] + b[1]]);
            let (before, total) = block::scan(w as i64, 0, |a, b| a + b);
            let (map, all) = block::scan((w as u32 | 1, i as u32), (1, 0), compose);
            let own = (w as u32 | 1, i as u32);
            let composed = [
                block::reduce(own, compose),
                warp::reduce(own, |a, b| (b.0.wrapping_mul(a.0), b.0.wrapping_mul(a.1).wrapping_add(b.1))),
                warp::group::<8>().reduce(own, compose),
            ];
            let (floor, whole_sum) = block::scan(v, 0.0, |a, b| a + b);
            let from = (round * 37 + 5) % block::threads();
            let (there, odd, [a, b]) = block::broadcast((w as u64, w % 2 != 0, [v, -v]), from);
            let at = i * 7;
            floats[at] = best;
            floats[at + 1] = mixed.1 as f32;
            floats[at + 2] = sums[0];
            floats[at + 3] = sums[1];
            floats[at + 4] = floor;
            floats[at + 5] = whole_sum;
            floats[at + 6] = a - b;
            let at = i * 14;
            whole[at] = place as i64;
            whole[at + 1] = mixed.0;
            whole[at + 2] = mixed.2 as i64;
            whole[at + 3] = mixed.3 as i64;
            whole[at + 4] = before;
            whole[at + 5] = total;
            whole[at + 6] = map.0 as i64;
            whole[at + 7] = map.1 as i64;
            whole[at + 8] = all.1 as i64;
            whole[at + 9] = there as i64 * 2 + odd as i64;
            whole[at + 10] = block::count(w > 0) as i64;
            for k in unroll(0..3) {
                whole[at + 11 + k] = composed[k].1 as i64;
            }
            shift = 0.25;
        }
    }
}

/// Reduces in the order that the language specifies: neighbors, then neighboring pairs, and so on.
/// An element without an upper neighbor is unchanged.
fn neighbors<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T + Copy) -> T {
    match values {
        [one] => *one,
        _ => {
            let pairs = values.chunks(2).map(|pair| pair[1..].iter().fold(pair[0], |a, b| combine(a, *b)));
            neighbors(&pairs.collect::<Vec<_>>(), combine)
        }
    }
}

/// Scans in the order that the language specifies: at distances 1, 2, 4, ….
fn scan<T: Copy>(mut values: Vec<T>, combine: impl Fn(T, T) -> T) -> Vec<T> {
    let mut distance = 1;
    while distance < values.len() {
        let before = values.clone();
        for l in distance..values.len() {
            values[l] = combine(before[l - distance], before[l]);
        }
        distance *= 2;
    }
    values
}

/// Scans in each warp, and then over the last results of the warps. Returns the prefix before each
/// thread, and the total.
fn scan_of_block(values: &[f32], combine: impl Fn(f32, f32) -> f32 + Copy) -> (Vec<f32>, f32) {
    let warps: Vec<_> = values.chunks(32).map(|w| scan(w.to_vec(), combine)).collect();
    let sums = scan(warps.iter().map(|w| w[31]).collect(), combine);
    let prefix = |t: usize| match (t / 32, t % 32) {
        (0, 0) => 0.0,
        (0, lane) => warps[0][lane - 1],
        (warp, 0) => sums[warp - 1],
        (warp, lane) => combine(sums[warp - 1], warps[warp][lane - 1]),
    };
    ((0..values.len()).map(prefix).collect(), *sums.last().unwrap())
}

fn combined_values(checker: &Checker) {
    macro_rules! shape {
        ($($x:literal, $y:literal, $witness:literal;)*) => {$({
            let n = $x * $y;
            let mut random = Random::new(n as u64);
            let x: Vec<f32> = (0..2 * n).map(|_| random.below(2000) as f32 / 7.0).collect();
            let y: Vec<i32> = (0..2 * n).map(|_| random.below(100) as i32 - 50).collect();
            let (mut floats, mut whole) = (Vec::new(), Vec::new());
            for block in 0..2 {
                // The shift by 1/4 in the second round does not change the order of values.
                let (x, y) = (&x[block * n..][..n], &y[block * n..][..n]);
                let shifted: Vec<f32> = x.iter().map(|v| v + 0.25).collect();
                let largest = shifted.iter().copied().fold(f32::MIN, f32::max);
                let place = block * n + shifted.iter().position(|v| *v == largest).unwrap();
                let maps_of = |range: Range<usize>| {
                    let each = range.map(|t| (y[t] as u32 | 1, (block * n + t) as u32));
                    each.fold((1, 0), compose)
                };
                let maps = |to: usize| maps_of(0..to);
                let from = 42 % n;
                let (floor, sum) = scan_of_block(&shifted, |a, b| a + b);
                for t in 0..n {
                    let least = shifted.iter().copied().fold(f32::MAX, f32::min);
                    let added = neighbors(&shifted.chunks(32).map(|w| neighbors(w, |a, b| a + b)).collect::<Vec<_>>(), |a, b| a + b);
                    let values = [largest, least, added, 0.5 * n as f32, floor[t], sum, 2.0 * shifted[from]];
                    assert_eq!(values.len(), FLOATS);
                    floats.extend(values.map(f64::from));
                    let values = [
                        place as i64,
                        y.iter().map(|w| i64::from(*w)).sum(),
                        y.iter().any(|w| *w > 40) as i64,
                        i64::from(y.iter().fold(0, |a, w| a ^ *w as i16)),
                        y[..t].iter().map(|w| i64::from(*w)).sum(),
                        y.iter().map(|w| i64::from(*w)).sum(),
                        i64::from(maps(t).0),
                        i64::from(maps(t).1),
                        i64::from(maps(n).1),
                        y[from] as u64 as i64 * 2 + (y[from] % 2 != 0) as i64,
                        y.iter().filter(|w| **w > 0).count() as i64,
                        i64::from(maps(n).1),
                        i64::from(maps_of(t / 32 * 32..t / 32 * 32 + 32).1),
                        i64::from(maps_of(t / 8 * 8..t / 8 * 8 + 8).1),
                    ];
                    assert_eq!(values.len(), WHOLE);
                    whole.extend(values);
                }
            }
            let (mut fs, mut ws) = (vec![0f32; floats.len()], vec![0i64; whole.len()]);
            let sizes = [fs.len(), ws.len()];
            let inputs =
                vec![Input::slice(&x), Input::slice(&y), Input::view(&fs, [sizes[0]]), Input::view(&ws, [sizes[1]])];
            if $witness {
                // SAFETY: the vectors outlive the run, and nothing else accesses them meanwhile.
                // Each thread writes its own elements.
                unsafe {
                    let (fs, ws) = (ViewMut::host(&mut fs, [sizes[0]]), ViewMut::host(&mut ws, [sizes[1]]));
                    host::run([2, 1, 1], [$x, $y, 1], || plain::combined::<$x, $y>(&x, &y, fs, ws));
                }
                assert_eq!(fs.iter().map(|v| f64::from(*v)).collect::<Vec<_>>(), floats, "rustc's, of {n} threads");
                assert_eq!(ws, whole, "rustc's, of {n} threads");
            }
            let expected = [Expected::new(2, floats, Bound::Exact), Expected::exact(3, whole)];
            agree::<combined<$x, $y>>(checker, "combined", inputs, &expected);
        })*};
    }
    shape!(32, 1, true; 64, 1, true; 32, 3, true; 16, 14, true; 1024, 1, false;);
    assemble::<combined<32, 1>>();
}

/// Compares the barriers and the bytes of shared memory with the costs that `kernel_dsl::block`
/// documents.
macro_rules! costs {
    ($($module:ident, $threads:literal, $barriers:literal, $bytes:expr, |$x:ident, $i:ident| $e:expr;)*) => {
        $(mod $module {
            use super::*;
            #[kernel(block = $threads, grid = 1)]
            #[requires(x.len() == $threads, out.len() == x.len())]
            pub fn run(x: &[f32], out: &mut [f32]) {
                let $i = thread::index();
                let $x = x[$i];
                out[$i] = $e;
            }
        })*
        const COSTS: &[(&str, &kernel_dsl::Artifact, usize, usize)] =
            &[$((stringify!($e), <$module::run as kernel_dsl::Kernel>::ARTIFACT, $barriers, $bytes)),*];
    };
}

costs! {
    one_warp, 32, 0, 0, |x, i| block::sum(x) + block::scan(x, 0.0, |a, b| a + b).0 + block::broadcast(x, i % 1);
    sum, 256, 1, 8 * 4, |x, _i| block::sum(x);
    sum_of_wide, 256, 1, 8 * 8, |x, _i| block::sum(x as f64) as f32;
    sums, 256, 3, 8 * 4, |x, _i| block::sum(x) + block::max(x);
    votes, 96, 1, 3 * 4, |x, _i| block::any(x > 1.0) as u32 as f32;
    count, 96, 1, 3 * 4, |x, _i| block::count(x > 1.0) as f32;
    two_types, 64, 2, 16 + 2 * 4, |x, i| block::sum(x) + block::sum(i) as f32;
    pair, 64, 1, 16 + 2 * 4, |x, i| block::reduce((x, i as u32), join).0;
    narrow, 64, 1, 16 + 2 * 4, |x, i| block::reduce((x > 1.0, i as u8), |a, b| (a.0 & b.0, a.1 | b.1)).1 as f32;
    pair_of_one_type, 64, 1, 16 + 2 * 4, |x, _i| block::reduce([x, 1.0], |a, b| [a[0] + b[0], a[1] + b[1]])[1];
    scan, 1024, 1, 32 * 4, |x, _i| block::scan(x, 0.0, |a, b| a + b).0;
    broadcast, 64, 1, 2 * 4, |x, _i| block::broadcast(x, 5);
    in_a_loop, 64, 2, 2 * 4, |x, _i| {
        let sum = |v: f32| block::sum(v);
        let mut s = 0.0;
        for _ in rolled(0..3) {
            s += sum(x);
        }
        s
    };
}

#[test]
fn costs_of_collectives_match_the_documentation() {
    for (what, artifact, barriers, bytes) in COSTS {
        let ptx = artifact.instances[0].ptx;
        let found = ptx.matches("bar.sync").count() + ptx.matches("barrier.sync").count();
        let declared = ptx.lines().find(|l| l.contains(".shared") && l.contains('[')).unwrap_or("[0]");
        let found_bytes: usize = declared.split(['[', ']']).nth(1).unwrap().parse().unwrap();
        assert_eq!((found, found_bytes), (*barriers, *bytes), "{what}\n{ptx}");
    }
}

#[test]
fn collectives_agree_with_plain_rust() {
    combined_values(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_collectives_agree_with_the_interpreter() {
    combined_values(&checker(true));
}
