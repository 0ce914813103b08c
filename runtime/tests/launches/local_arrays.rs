//! Tests of arrays in local memory, on every executor against plain Rust, and of the reports of
//! their misuse.

use kernel_dsl::Kernel;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::testing::{Case, Checker, Expected, Input, PreparedInstance};
use runtime::{Device, DeviceBuffer, Error};

/// Reverses the decimal digits of x.
#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() == y.len())]
fn reversed_digits(x: &[u32], y: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        let mut stack = thread::local::<[u8; 10]>();
        let (mut depth, mut rest) = (0, x[i]);
        while rest > 0 {
            stack[depth] = (rest % 10) as u8;
            rest /= 10;
            depth += 1;
        }
        let mut value = 0u64;
        for k in 0..depth {
            value = value * 10 + stack[k] as u64;
        }
        y[i] = value as u32;
    }
}

/// Sorts N values of each thread by insertion, with their positions, and stores them.
#[device]
fn sorted<T: Number, const N: usize>(x: &[T], y: &mut [T], positions: &mut [u32]) {
    let mut all = thread::local::<[(T, u32); N]>();
    let first = grid::index() * N;
    for k in 0..N {
        let value = x[first + k];
        let mut at = k;
        while at > 0 && all[at - 1].0 > value {
            all[at] = all[at - 1];
            at -= 1;
        }
        all[at] = (value, k as u32);
    }
    for k in 0..N {
        y[first + k] = all[k].0;
        positions[first + k] = all[k].1;
    }
}

#[kernel(block = 32, grid = x.len() / (32 * N), instances(T = f32 | f64 | i16 | u64 | f16, N = 7))]
#[requires(x.len() == y.len(), x.len() == positions.len())]
fn sorts<T: Number, const N: usize>(x: &[T], y: &mut [T], positions: &mut [u32]) {
    sorted::<T, N>(x, y, positions);
}

/// Marks the residues that the multiples of x reach, in a table of two dimensions.
#[kernel(block = 64, grid = 1)]
#[requires(x.len() == 64, y.len() == 64)]
fn residues(x: &[u32], y: &mut [u32]) {
    let mut reached = thread::local::<[[bool; 8]; 5]>();
    for r in 0..5 {
        for c in 0..8 {
            reached[r][c] = false;
        }
    }
    let step = (x[thread::x()] % 40) as usize;
    let mut at = 0;
    while !reached[at / 8][at % 8] {
        reached[at / 8][at % 8] = true;
        at = (at + step) % 40;
    }
    let mut count = 0u32;
    for k in 0..40 {
        count += reached[k / 8][k % 8] as u32;
    }
    y[thread::x()] = count;
}

/// Uses its array with constant indices only, after unrolling.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32)]
fn in_registers(x: &[u32], y: &mut [u32]) {
    let mut all = thread::local::<[u32; 4]>();
    for k in unroll(0..4) {
        all[k] = x[thread::x()] * k as u32;
    }
    y[thread::x()] = all[1] + all[3];
}

/// Writes, and then reads, an element that x names.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 2, y.len() == 32)]
fn indexed(x: &[u32], y: &mut [u32]) {
    let mut all = thread::local::<[u32; 4]>();
    all[x[0] as usize] = 7;
    y[thread::x()] = all[x[1] as usize];
}

fn agree<K: Kernel>(checker: &Checker, case: Case, expected: Vec<Expected>) {
    let prepared = PreparedInstance::compile(K::ARTIFACT, &Instance(K::CONSTANTS.to_vec())).unwrap();
    let result = checker.case(&prepared, &case, |_| expected.clone());
    assert!(result.is_ok(), "{}: {}", case.name, result.unwrap_err());
}

fn arrays(checker: &Checker) {
    let x: Vec<u32> = (0..100u32).map(|i| i.wrapping_mul(2_654_435_761) >> (i % 30)).collect();
    let reversed = |x: &u32| x.to_string().chars().rev().collect::<String>().parse::<u64>().unwrap() as u32;
    let y: Vec<u32> = x.iter().map(reversed).collect();
    let case = Case::new("digits", [Input::slice(&x), Input::slice(&[0u32; 100])]);
    agree::<reversed_digits>(checker, case, vec![Expected::exact(1, y)]);

    macro_rules! sorts {
        ($($t:ty: $from:expr;)*) => {$({
            let from: fn(u32) -> $t = $from;
            let x: Vec<$t> = (0..64 * 7u32).map(|i| from(i.wrapping_mul(2_654_435_761) >> 19)).collect();
            let (mut y, mut positions) = (Vec::new(), Vec::new());
            for part in x.chunks(7) {
                let mut all: Vec<($t, u32)> = part.iter().copied().zip(0..).collect();
                all.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap());
                y.extend(all.iter().map(|(x, _)| *x));
                positions.extend(all.iter().map(|(_, k)| *k));
            }
            let inputs = [Input::slice(&x), Input::slice(&vec![from(0); x.len()]), Input::slice(&vec![0u32; x.len()])];
            let case = Case::new(stringify!($t), inputs);
            agree::<sorts<$t, 7>>(checker, case, vec![Expected::exact(1, y), Expected::exact(2, positions)]);
        })*};
    }
    sorts! {
        f32: |i| i as f32 * 0.5 - 900.0;
        f64: |i| f64::from(i) * 0.1;
        i16: |i| i as i16 % 50 - 25;
        u64: |i| u64::from(i) << 33;
        f16: |i| f16::from_f32((i % 100) as f32);
    }

    let x: Vec<u32> = (0..64).collect();
    let gcd = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let y: Vec<u32> = x.iter().map(|x| 40 / gcd(40, x % 40)).collect();
    let case = Case::new("residues", [Input::slice(&x), Input::slice(&[0u32; 64])]);
    agree::<residues>(checker, case, vec![Expected::exact(1, y)]);

    let (x, y): (Vec<u32>, Vec<u32>) = (0..32u32).map(|i| (i, 4 * i)).unzip();
    let case = Case::new("registers", [Input::slice(&x), Input::slice(&[0u32; 32])]);
    agree::<in_registers>(checker, case, vec![Expected::exact(1, y)]);
}

#[test]
fn all_executors_agree() {
    arrays(&Checker::new(None));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_agrees_on_local_arrays() {
    arrays(&Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU is present"))));
}

#[test]
fn arrays_are_in_local_memory_only_where_needed() {
    assert!(indexed::PTX.contains(".local .align 4 .b8 $local_0[16];"), "{}", indexed::PTX);
    assert!(!in_registers::PTX.contains("local"), "{}", in_registers::PTX);
}

#[test]
fn misuse_is_reported() {
    let device = Device::cpu();
    let run = |x: [u32; 2]| -> Result<Vec<u32>, Error> {
        let x: DeviceBuffer<u32> = device.upload(&x)?;
        let mut y = device.zeros::<u32>(32)?;
        indexed::launch(&device, &x, &mut y)?;
        y.download()
    };
    assert_eq!(run([2, 2]).unwrap(), [7; 32]);
    for (x, parts) in [
        ([4, 2], ["error[out-of-bounds]", "index 4 is out of bounds of `all`, which has 4 elements"]),
        ([2, 9], ["error[out-of-bounds]", "index 9 is out of bounds of `all`, which has 4 elements"]),
        ([2, 1], ["error[uninitialized-local]", "element 1 of `all` is read before the thread has written it"]),
    ] {
        let text = run(x).expect_err("the kernel is faulty").to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}
