//! `cuda/various.cu`.

use super::{Kernel, module, near, numbers};
use kernel_dsl::compiler::ptx::Module;

fn various() -> Module {
    module(include_str!("../cuda/various.ptx"))
}

#[test]
fn hashes_of_text_agree_with_rust() {
    let text: Vec<u8> = numbers(1).take(400).map(|x| b' ' + (x % 90) as u8).collect();
    let start: Vec<i32> = (0..=40).map(|i| i * i / 4).collect();
    let out = Kernel::of(&various(), "hash_text", 2, 32).read(&text).read(&start).written(&[0u32; 40]).bits(40).run();
    let hash = |w: &[i32]| {
        text[w[0] as usize..w[1] as usize].iter().fold(2166136261u32, |h, c| (h ^ u32::from(*c)).wrapping_mul(16777619))
    };
    assert_eq!(out.get::<u32>(0), start.windows(2).map(hash).collect::<Vec<_>>());
}

#[test]
fn a_table_with_open_addresses_keeps_its_keys() {
    let keys: Vec<u32> = numbers(2).take(100).map(|x| x as u32 % 80).collect();
    let out = Kernel::of(&various(), "insert", 4, 32)
        .read(&keys)
        .written(&[u32::MAX; 128])
        .written(&[0u32; 100])
        .bits(100)
        .bits(127)
        .run();
    let (table, places) = (out.get::<u32>(0), out.get::<u32>(1));
    assert!(keys.iter().zip(&places).all(|(key, place)| table[*place as usize] == *key));
    let mut stored: Vec<u32> = table.into_iter().filter(|k| *k != u32::MAX).collect();
    let mut expected = keys;
    stored.sort_unstable();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(stored, expected);
}

#[test]
fn random_numbers_agree_with_rust() {
    let out = Kernel::of(&various(), "random_numbers", 2, 32).written(&[0u32; 60]).bits(7).bits(60).run();
    let philox = |i: u32| {
        let (mut c0, mut c1, mut k) = (i, 0u32, 7u32);
        for _ in 0..10 {
            let product = 0xD256_D193u64 * u64::from(c0);
            (c0, c1) = ((product >> 32) as u32 ^ k ^ c1, product as u32);
            k = k.wrapping_add(0x9E37_79B9);
        }
        c0
    };
    assert_eq!(out.get::<u32>(0), (0..60).map(philox).collect::<Vec<_>>());
}

#[test]
fn distances_of_words_agree_with_rust() {
    let (la, lb, n) = (20usize, 30usize, 40usize);
    let letters = |seed, n: usize| numbers(seed).take(n).map(|x| (x % 3) as u8).collect::<Vec<u8>>();
    let (a, b) = (letters(3, la * n), letters(4, lb * n));
    let out = Kernel::of(&various(), "edit_distance", 2, 32)
        .read(&a)
        .read(&b)
        .written(&vec![0i32; n])
        .bits(la as u64)
        .bits(lb as u64)
        .bits(n as u64)
        .run();
    let distance = |t: usize| {
        let (a, b) = (&a[t * la..][..la], &b[t * lb..][..lb]);
        let mut table = vec![vec![0usize; lb + 1]; la + 1];
        for i in 0..=la {
            for j in 0..=lb {
                table[i][j] = match (i, j) {
                    (0, n) | (n, 0) => n,
                    _ => (table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]))
                        .min(table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1),
                };
            }
        }
        table[la][lb] as i32
    };
    assert_eq!(out.get::<i32>(0), (0..n).map(distance).collect::<Vec<_>>());
}

#[test]
fn loops_of_any_length_agree_with_rust() {
    let x: Vec<u64> = (1..=64).chain([6171, 837799]).collect();
    let out = Kernel::of(&various(), "collatz", 3, 32).read(&x).written(&[0i32; 66]).bits(66).run();
    let steps = |x: &u64| {
        std::iter::successors(Some(*x), |v| (*v != 1).then(|| if v % 2 == 1 { 3 * v + 1 } else { v / 2 })).count()
            as i32
            - 1
    };
    assert_eq!(out.get::<i32>(0), x.iter().map(steps).collect::<Vec<_>>());
}

#[test]
fn tricks_with_bits_agree_with_rust() {
    let x: Vec<u32> = [0, 1, 0x8000_0000, u32::MAX].into_iter().chain(numbers(5).map(|x| x as u32)).take(50).collect();
    let out = Kernel::of(&various(), "tricks", 2, 32).read(&x).written(&[0u32; 400]).bits(50).run().get::<u32>(0);
    for (i, &v) in x.iter().enumerate() {
        let w = x[(i + 1) % 50];
        let (a, b) = (v.to_le_bytes(), w.to_le_bytes());
        let bytes = |f: fn(u8, u8) -> u8| u32::from_le_bytes(std::array::from_fn(|i| f(a[i], b[i])));
        let high = |x: u32, y: u32| (x as i16).max(y as i16) as u16;
        let expected = [
            v.count_ones() | v.leading_zeros() << 8 | if v == 0 { 0 } else { v.trailing_zeros() + 1 } << 16,
            v.reverse_bits(),
            u32::from_le_bytes([b[1], b[3], a[1], a[3]]),
            ((u64::from(w) << 32 | u64::from(v)) >> (w & 31)) as u32,
            bytes(u8::wrapping_add),
            bytes(u8::abs_diff),
            a.iter().zip(b).map(|(x, y)| u32::from(x.abs_diff(y))).sum(),
            u32::from(high(v >> 16, w >> 16)) << 16 | u32::from(high(v, w)),
        ];
        assert_eq!(out[8 * i..8 * i + 8], expected, "{v:#x} {w:#x}");
    }
}

#[test]
fn quotients_of_64_bits_agree_with_rust() {
    let x: Vec<i64> = numbers(6).take(60).enumerate().map(|(i, x)| x as i64 >> (i % 60)).collect();
    let b: Vec<i64> = x.iter().rev().map(|x| if *x as u32 == 0 { 3 } else { *x }).collect();
    let out =
        Kernel::of(&various(), "wide", 2, 32).read(&x).read(&b).written(&[0i64; 240]).bits(60).run().get::<i64>(0);
    for i in 0..60 {
        let (a, b) = (x[i], b[i]);
        let expected = [
            a.wrapping_div(b),
            a.wrapping_rem(b),
            ((i128::from(a) * i128::from(b)) >> 64) as i64,
            (a as u64 / u64::from(b as u32)) as i64,
        ];
        assert_eq!(out[4 * i..4 * i + 4], expected, "{a} {b}");
    }
}

#[test]
fn a_structure_and_a_switch_agree_with_rust() {
    let low = [-0.5f32, -0.5, -0.5];
    let high = [0.5f32, 0.6, 0.7];
    let mut structure: Vec<u8> = bytemuck::cast_slice(&[low, high]).to_vec();
    structure.extend(0i32.to_le_bytes());
    structure.extend([b'a', 0, 0, 0]);
    let x = super::singles(7, 150);
    let out =
        Kernel::of(&various(), "inside", 2, 32).structure(&structure).read(&x).written(&[0i32; 50]).bits(50).run();
    let expected = (0..50usize).map(|i| {
        let within = (0..3).all(|k| x[3 * i + k] >= low[k] && x[3 * i + k] < high[k]);
        let (i, within) = (i as i32, i32::from(within));
        match i % 7 {
            0 => within,
            1 => 1 - within,
            2 => within * 10 + 97,
            3 => {
                if within == 1 {
                    i
                } else {
                    -i
                }
            }
            4 => i * i,
            5 => i ^ within,
            _ => -1,
        }
    });
    assert_eq!(out.get::<i32>(0), expected.collect::<Vec<_>>());
}

#[test]
fn functions_are_called_by_their_addresses() {
    let x: Vec<i32> = numbers(8).take(64).map(|x| (x % 2000) as i32 - 1000).collect();
    let out = Kernel::of(&various(), "dispatch", 2, 32).read(&x).written(&[0i32; 64]).bits(64).run();
    let expected = x.iter().enumerate().map(|(i, x)| {
        let y = match i % 3 {
            0 => x * x,
            1 => -x,
            _ => x.unsigned_abs().to_string().len() as i32,
        };
        y + 100 * (i as i32 % 4 + 1)
    });
    assert_eq!(out.get::<i32>(0), expected.collect::<Vec<_>>());
}

/// Computes erf by its series, for |x| of at most a few units.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut sum = x;
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

#[test]
fn the_math_library_is_accurate_in_single() {
    // The last values take the slow path of the reduction by 2π.
    let x: Vec<f32> = (0..90).map(|i| (i as f32 - 45.0) * 0.37).chain([1e5, 3.7e6, -2.5e9, 1e20, 7e30, -0.0]).collect();
    let n = x.len();
    let out = Kernel::of(&various(), "singles", 3, 32).read(&x).written(&vec![0f32; 8 * n]).bits(n as u64).run();
    let expected = x.iter().flat_map(|x| {
        let (v, tenth, tenth_single) = (f64::from(*x), f64::from(x.abs() + 0.1), f64::from(x * 0.1));
        [
            v.sin(),
            f64::from(x * 0.01).exp(),
            f64::from(x.abs() + 0.5).ln(),
            tenth.powf(f64::from(0.7f32)),
            tenth_single.tanh(),
            if tenth_single.abs() > 5.0 { tenth_single.signum() } else { erf(tenth_single) },
            v.atan2(2.0),
            v % 3.0,
        ]
    });
    let ours = out.get::<f32>(0).into_iter().map(f64::from);
    // Infinities must match; the manual's bounds are a few units in the last place.
    for (i, (a, b)) in ours.zip(expected).enumerate() {
        let close = (a - b).abs() <= 1e-6 * b.abs().max(1e-1) || a == b as f32 as f64;
        assert!(close, "{} of {}: {a} is not {b}", i % 8, x[i / 8]);
    }
}

#[test]
fn the_math_library_is_accurate_in_double() {
    let x: Vec<f64> = (0..90).map(|i| (f64::from(i) - 45.0) * 0.37).chain([1e5, 3.7e6, -2.5e9, 1e15]).collect();
    let n = x.len();
    let out = Kernel::of(&various(), "doubles", 3, 32).read(&x).written(&vec![0f64; 6 * n]).bits(n as u64).run();
    let expected = x.iter().flat_map(|v| {
        [
            v.sin(),
            (v * 0.01).exp(),
            (v.abs() + 0.5).ln(),
            v.cbrt(),
            1.0 / (v.abs() + 1.0).sqrt(),
            (v.abs() + 0.1).powf(1.7),
        ]
    });
    let finite = |x: f64| if x.is_infinite() { f64::MAX } else { x };
    near(out.get::<f64>(0).into_iter().map(finite), expected.map(finite), 1e-14);
}
