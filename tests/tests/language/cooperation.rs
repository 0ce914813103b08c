//! Tests of groups of lanes, and of collectives of a block, against plain Rust and against the same
//! kernel compiled by rustc.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;

use runtime::testing::{Bound, Checker, Expected, Input, Random};

const GROUP: usize = 12;

/// Uses every operation of a group, and stores the results by thread.
#[kernel(block = (X, 64 / X), grid = 2, instances(W = 2 | 4 | 8 | 16 | 32, X = 1 | 8 | 64))]
#[requires(x.len() == 128, out.len() == 128 * 12, floats.len() == 128, wide.len() == 128)]
pub fn groups<const W: usize, const X: usize>(x: &[i32], out: &mut [i32], floats: &mut [f32], wide: &mut [u64]) {
    let g = warp::group::<W>();
    let i = grid::index();
    let v = x[i];
    let odd = v % 2 != 0;
    out[i * 12] = g.lane() as i32;
    out[i * 12 + 1] = g.index() as i32;
    out[i * 12 + 2] = g.sum(v);
    out[i * 12 + 3] = g.max(v);
    out[i * 12 + 4] = g.min(v);
    out[i * 12 + 5] = g.shuffle(v, g.lane() + 1);
    out[i * 12 + 6] = through(g, v);
    out[i * 12 + 7] = g.ballot(odd) as i32;
    out[i * 12 + 8] = g.all(v > -9) as i32;
    out[i * 12 + 9] = g.any(odd && v > 0) as i32;
    out[i * 12 + 10] = warp::count() as i32;
    out[i * 12 + 11] = g.all(odd) as i32;
    floats[i] = g.sum(v as f32 * 0.37);
    wide[i] = g.max(v as u64) ^ g.sum((v as u64) << 20 & 0xffff_ffff_ffff);
}

/// Takes a group as a parameter.
#[device]
fn through<const W: usize>(g: warp::Group<W>, v: i32) -> i32 {
    g.shuffle_xor(v, W - 1)
}

fn group_values(checker: &Checker) {
    let mut random = Random::new(11);
    let x: Vec<i32> = (0..128).map(|i| if i < 32 { 7 } else { random.below(40) as i32 - 10 }).collect();
    macro_rules! width {
        ($w:literal: $($x:literal)*) => {$({
            const W: usize = $w;
            let (mut out, mut floats, mut wide) = (Vec::new(), Vec::new(), Vec::new());
            for i in 0..128 {
                let own = &x[i / W * W..][..W];
                let lane = i % W;
                let values = [
                    lane as i32,
                    (i % 64 / W) as i32,
                    own.iter().sum::<i32>(),
                    *own.iter().max().unwrap(),
                    *own.iter().min().unwrap(),
                    own[(lane + 1) % W],
                    own[lane ^ (W - 1)],
                    own.iter().rev().fold(0u32, |m, v| m << 1 | (v % 2 != 0) as u32) as i32,
                    own.iter().all(|v| *v > -9) as i32,
                    own.iter().any(|v| v % 2 != 0 && *v > 0) as i32,
                    2,
                    own.iter().all(|v| v % 2 != 0) as i32,
                ];
                assert_eq!(values.len(), GROUP);
                out.extend(values.map(f64::from));
                floats.push(f64::from(butterfly(own.iter().map(|v| Some(*v as f32 * 0.37)).collect(), |a, b| a + b)));
                let sum: u64 = own.iter().map(|v| (*v as u64) << 20 & 0xffff_ffff_ffff).sum();
                wide.push(own.iter().map(|v| *v as u64).max().unwrap() ^ sum);
            }
            let inputs = vec![
                Input::slice(&x),
                Input::slice(&vec![0i32; 128 * GROUP]),
                Input::slice(&[0f32; 128]),
                Input::slice(&[0u64; 128]),
            ];
            let expected =
                [Expected::new(1, out, Bound::Exact), Expected::new(2, floats, Bound::Exact), Expected::exact(3, wide)];
            agree::<groups<W, $x>>(checker, "groups", inputs, &expected);
        })*};
    }
    width!(2: 1 8 64);
    width!(4: 1 8 64);
    width!(8: 1 8 64);
    width!(16: 1 8 64);
    width!(32: 1 8 64);
    assemble::<groups<2, 1>>();
}

/// Reduces in the order that the language specifies, the largest distance first. Missing elements
/// are skipped.
fn butterfly<T: Copy>(mut values: Vec<Option<T>>, combine: impl Fn(T, T) -> T) -> T {
    values.resize(values.len().next_power_of_two(), None);
    let mut distance = values.len() / 2;
    while distance > 0 {
        let before = values.clone();
        for (l, v) in values.iter_mut().enumerate() {
            *v = match (before[l], before[l ^ distance]) {
                (Some(a), Some(b)) => Some(combine(a, b)),
                (a, b) => a.or(b),
            };
        }
        distance /= 2;
    }
    values[0].unwrap()
}

/// Reduces each warp by a butterfly, and then over the warps.
fn of_block<T: Copy>(values: &[T], combine: impl Fn(T, T) -> T + Copy) -> T {
    let warps = values.chunks(32).map(|w| Some(butterfly(w.iter().map(|v| Some(*v)).collect(), combine)));
    butterfly(warps.collect(), combine)
}

/// Uses every collective of a block in a loop, so that each shared array is reused.
#[kernel(block = (T, Y), grid = 2, instances(T = 32, Y = 1; T = 32, Y = 3; T = 128, Y = 1; T = 16, Y = 14; T = 1024, Y = 1))]
#[requires(x.len() == 2 * 2 * T * Y, y.len() == x.len(), floats.len() == 3 * x.len(), whole.len() == 5 * x.len())]
pub fn blocks<const T: usize, const Y: usize>(x: &[f32], y: &[i32], floats: &mut [f32], whole: &mut [i64]) {
    let mut first = 0.0f32;
    for round in 0..2 {
        let i = round * 2 * T * Y + grid::index();
        floats[3 * i] = block::sum(x[i]);
        floats[3 * i + 1] = block::max(x[i]);
        first += block::min(x[i]);
        floats[3 * i + 2] = first;
        whole[5 * i] = block::sum(y[i] as i64 * 4294967296);
        whole[5 * i + 1] = block::max(y[i]) as i64 + block::min(y[i] as u32 & 0xffff) as i64;
        whole[5 * i + 2] = block::all(y[i] > -90) as i64 * 2 + block::any(y[i] == 50) as i64;
        let from = (round * 37 + 5) % block::threads();
        whole[5 * i + 3] = block::broadcast(y[i] as i64, from);
        whole[5 * i + 4] = block::broadcast(thread::index(), from) as i64 + block::sum(thread::index()) as i64;
    }
}

fn block_values(checker: &Checker) {
    macro_rules! shape {
        ($($t:literal, $y:literal;)*) => {$({
            let n = $t * $y;
            let mut random = Random::new(n as u64);
            let mut x = random.values::<f32>(4 * n);
            let y: Vec<i32> = (0..4 * n).map(|_| random.below(200) as i32 - 95).collect();
            // NaNs are ignored, unless all operands are NaN, and zeros are ordered by sign.
            x[n..2 * n].fill(f32::NAN);
            x[3 * n..].fill(0.0);
            x[3 * n + n / 2] = -0.0;
            let (mut floats, mut whole) = (Vec::new(), Vec::new());
            let mut first = [0f32; 2];
            for round in 0..2 {
                for block in 0..2 {
                    let at = (round * 2 + block) * n;
                    let (x, y) = (&x[at..at + n], &y[at..at + n]);
                    let larger = |a: f32, b: f32| if a == b && a.is_sign_negative() { b } else { a.max(b) };
                    let smaller = |a: f32, b: f32| if a == b && a.is_sign_positive() { b } else { a.min(b) };
                    first[block] += of_block(x, smaller);
                    let from = (round * 37 + 5) % n;
                    for _ in 0..n {
                        floats.extend([of_block(x, |a, b| a + b), of_block(x, larger), first[block]].map(f64::from));
                        let low = y.iter().map(|v| *v as u32 & 0xffff).min().unwrap();
                        let sum: i64 = y.iter().map(|v| *v as i64 * 4294967296).sum();
                        whole.extend([
                            sum as f64,
                            f64::from(*y.iter().max().unwrap()) + f64::from(low),
                            f64::from(y.iter().all(|v| *v > -90) as u8 * 2 + y.contains(&50) as u8),
                            f64::from(y[from]),
                            (from + n * (n - 1) / 2) as f64,
                        ]);
                    }
                }
            }
            let inputs = vec![
                Input::slice(&x),
                Input::slice(&y),
                Input::slice(&vec![0f32; 3 * x.len()]),
                Input::slice(&vec![0i64; 5 * x.len()]),
            ];
            let expected = [Expected::new(2, floats, Bound::Exact), Expected::new(3, whole, Bound::Exact)];
            agree::<blocks<$t, $y>>(checker, "blocks", inputs, &expected);
        })*};
    }
    shape!(32, 1; 32, 3; 128, 1; 16, 14; 1024, 1;);
    assemble::<blocks<32, 1>>();
}

#[test]
fn groups_agree_with_plain_rust() {
    group_values(&checker(false));
}

#[test]
fn blocks_agree_with_plain_rust() {
    block_values(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_cooperation_agrees_with_the_interpreter() {
    group_values(&checker(true));
    block_values(&checker(true));
}
