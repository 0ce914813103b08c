//! Tests of Rust that the front end reads as simpler Rust.
//!
//! The forms are constants in patterns, bytes, tests of ranges, generic closures, `impl Trait`,
//! named lifetimes, conversions, and operators of references. Each device function also runs on the
//! host, compiled by rustc.

#![allow(clippy::all, reason = "the code consists of the forms under test")]

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

#[device]
pub mod codes {
    pub const ADD: u8 = 1;
    pub const SUB: u8 = 2;
    pub const LAST: u8 = 9;

    #[derive(Clone, Copy, PartialEq, Debug)]
    pub enum Operation {
        Add,
        Sub,
        Mul,
    }
    pub const FIRST: Operation = Operation::Sub;

    impl Operation {
        pub const CODE: u8 = 3;
        pub const LARGE: u32 = 17;

        pub fn of(code: u8) -> Option<Operation> {
            match code {
                ADD => Some(Operation::Add),
                SUB => Some(Operation::Sub),
                SUB..=LAST => Some(Operation::Mul),
                _ => None,
            }
        }

        pub fn is_code(code: u8) -> bool {
            matches!(code, Self::CODE | LAST)
        }
    }

    /// Matches constants of this module: numbers in tuples, and an enum in an option.
    pub fn run(code: u8, a: u32, b: u32) -> u32 {
        let first = match Operation::of(code) {
            Some(FIRST) => 7,
            Some(other) => other as u32,
            None => 100,
        };
        let rest = match (code, a) {
            (ADD | SUB, 3..) => a + b,
            (LAST, _) => a * b,
            _ if Operation::is_code(code) => 1,
            _ => 0,
        };
        first + 1000 * rest
    }
}

#[device]
pub const LIMIT: u32 = 5;
#[device]
pub const LOW: f32 = 2.0;
#[device]
pub const GENES: [u8; 4] = *b"ACGT";

/// Matches constants of other items, and one of the body.
#[device]
fn matched(i: u32) -> u32 {
    const STEP: u32 = 3;
    let step = match i {
        STEP => 7,
        LIMIT => 9,
        codes::Operation::LARGE => 11,
        u32::MAX => 3,
        _ => 8,
    };
    let limit = if let LIMIT = i { 100 } else { 0 };
    let low = match i as f32 {
        LOW => 1000,
        _ => 0,
    };
    step + limit + low
}

/// Reads bytes of text.
#[device]
fn spelled(i: u32) -> u32 {
    let mut hash = 0u32;
    for byte in b"GATTACA" {
        hash = hash * 5 + (*byte as u32 & 7) + i;
    }
    for byte in *b"GA\n" {
        hash = hash * 5 + byte as u32;
    }
    let gene = GENES[(i & 3) as usize];
    let found = match i as u8 + b'A' {
        b'A' => hash + 1,
        b'C'..=b'G' => hash + 2,
        _ => hash,
    };
    found + gene as u32 + 'z' as u32 + (b'b' - 'a' as u8) as u32
}

/// Tests whether ranges contain numbers.
#[device]
fn contained(i: u32) -> u32 {
    let (x, reference) = (i as f32, &i);
    let tests = [
        (3..=9u32).contains(&i),
        (1..5).contains(&(i + 1)),
        !(2.0..3.5).contains(&x),
        (20..).contains(reference) && (..30).contains(&i),
        (..=2).contains(&i),
        (i..2 * i).contains(&7),
        (-4..=4i64).contains(&(i as i64 - 9)),
    ];
    let mut bits = 0;
    for (n, test) in tests.iter().enumerate() {
        bits |= (*test as u32) << n;
    }
    bits
}

/// Iterates over an array in other orders.
#[device]
fn ordered(i: u32) -> u64 {
    let a = [1u64, 2, 3, i as u64];
    let mut hash = 0u64;
    let mut add = |n: u64| hash = hash.wrapping_mul(31).wrapping_add(n);
    for x in a.iter().rev() {
        add(*x);
    }
    for (k, x) in a.into_iter().enumerate().rev() {
        add(x + 100 * k as u64);
    }
    for (k, x) in a.iter().rev().enumerate() {
        add(x + 100 * k as u64);
    }
    for (k, x) in a.iter().step_by(2).enumerate() {
        add(x + 100 * k as u64);
    }
    for (k, x) in a.iter().enumerate().step_by(3) {
        add(x + 100 * k as u64);
    }
    for x in a.iter().step_by(3).rev().copied() {
        add(x);
    }
    for x in a.into_iter().rev().step_by(2) {
        add(x);
    }
    let mut b = a;
    for x in b.iter_mut().rev() {
        *x = x.wrapping_mul(3) + 1;
    }
    add(b[0]);
    add(b[3]);
    hash
}

#[device]
pub mod shapes {
    use kernel_dsl::prelude::*;
    use std::ops::{Add, AddAssign, Mul, Neg, Sub};

    pub trait Outline {
        fn area(&self) -> f32;
    }

    #[derive(Clone, Copy)]
    pub struct Square(pub f32);
    #[derive(Clone, Copy)]
    pub struct Circle(pub f32);

    impl Outline for Square {
        fn area(&self) -> f32 {
            self.0 * self.0
        }
    }

    impl Outline for Circle {
        fn area(&self) -> f32 {
            3.0 * self.0 * self.0
        }
    }

    pub fn total(a: &impl Outline, b: impl Outline + Copy) -> f32 {
        a.area() + 2.0 * b.area()
    }

    pub fn larger<'a, 'b: 'a>(a: &'a [f32; 3], b: &'b [f32; 3]) -> f32 {
        if a[0] > b[0] { a[1] } else { b[1] }
    }

    pub fn twice<F>(f: F, n: u32) -> u32
    where
        F: Fn(u32) -> u32,
    {
        f(f(n))
    }

    pub fn repeat<F: FnMut(u32) + Send>(mut f: F, n: u32) {
        for i in 0..n {
            f(i);
        }
    }

    pub fn doubled<T: Number, F: Fn(T) -> T + Copy>(x: T, f: F) -> T {
        f(x) + f(x)
    }

    pub fn norm<T>(x: T, y: T) -> T
    where
        T: Copy + Add<Output = T> + Mul<T, Output = T>,
    {
        x * x + y * y + x
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Pair {
        pub x: f32,
        pub y: f32,
    }

    impl Pair {
        pub fn map<F: Fn(f32) -> f32>(self, f: F) -> Pair {
            Pair { x: f(self.x), y: f(self.y) }
        }
    }

    impl<'a> Sub<&'a Pair> for &'a Pair {
        type Output = Pair;
        fn sub(self, other: &'a Pair) -> Pair {
            Pair { x: self.x - other.x, y: self.y - other.y }
        }
    }

    impl Sub for Pair {
        type Output = Pair;
        fn sub(self, other: Pair) -> Pair {
            &self - &other
        }
    }

    impl Mul<f32> for &Pair {
        type Output = Pair;
        fn mul(self, factor: f32) -> Pair {
            Pair { x: self.x * factor, y: self.y * factor }
        }
    }

    impl Neg for &Pair {
        type Output = Pair;
        fn neg(self) -> Pair {
            Pair { x: -self.x, y: -self.y }
        }
    }

    impl Add<&Pair> for Pair {
        type Output = Pair;
        fn add(self, other: &Pair) -> Pair {
            Pair { x: self.x + other.x, y: self.y + other.y }
        }
    }

    impl AddAssign<&Pair> for Pair {
        fn add_assign(&mut self, other: &Pair) {
            *self = *self + other;
        }
    }
}
use shapes::{Circle, Pair, Square};

#[device]
fn tripled(x: u32) -> u32 {
    3 * x
}

/// Calls functions that are generic over closures and over types of a trait.
#[device]
fn generic(i: u32) -> f32 {
    let mut sum = 0u32;
    shapes::repeat(|k| sum += k * i, 5);
    let add = |x: u32| x + i;
    let lengths = shapes::larger(&[i as f32, 1.0, 0.0], &[4.0, 2.0, 0.0]);
    let areas = shapes::total(&Square(2.0), Circle(i as f32)) + shapes::total(&Circle(1.0), Square(3.0));
    let whole = sum + shapes::twice(add, 3) + shapes::twice(tripled, 2) + shapes::norm(i, 3);
    areas + lengths + whole as f32 + shapes::doubled(1.5f32, |x| x * 2.0) + shapes::norm(0.5f32, i as f32)
}

/// Uses operators of references.
#[device]
fn paired(i: u32) -> Pair {
    let (v, w) = (Pair { x: i as f32, y: 2.0 }, Pair { x: 1.0, y: i as f32 });
    let mut d = &v - &w;
    d += &v;
    let e = -&d;
    let e = &e * 2.0 + &(v - w);
    e.map(|x| x * 0.5)
}

/// Converts numbers, and exchanges elements.
#[device]
fn converted(i: u32) -> [u64; 4] {
    let sums = (u64::from(i) + u64::from(i > 3) + f64::from(i) as u64) ^ i64::from(-(i as i32)) as u64;
    let (wide, float, signed): (u64, f32, i32) = (i.into(), (i as u16).into(), (i as u8).into());
    let little = i.wrapping_mul(0x0123_4567).to_le_bytes();
    let big = (u64::from(i) * 0x1_2345_6789).to_be_bytes();
    let short = (-(i as i16)).to_le_bytes();
    let single = (i as f32 * 1.5).to_be_bytes();
    let long = [big[0], big[1], 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, little[0], little[1]];
    let joined = u64::from(u32::from_be_bytes(little))
        ^ u64::from_le_bytes(big)
        ^ i16::from_be_bytes(short) as u64
        ^ f32::from_be_bytes(single) as u64
        ^ (u128::from_be_bytes(long) >> 5) as u64
        ^ u64::from(u8::from_le_bytes([i as u8]));
    let mut a = [i, 2, 3, 4];
    a.swap(0, 3);
    for k in unroll(0..3) {
        if a[k] > a[k + 1] {
            a.swap(k, k + 1);
        }
    }
    let mut b = (a, 3u32);
    b.0.swap(1, 2);
    let [w, x, y, z] = b.0;
    [sums ^ wide ^ float as u64 ^ signed as u64, joined, (w * 1000 + x * 100 + y * 10 + z).into(), long[15].into()]
}

#[device]
fn all_of(i: u32) -> [u64; 12] {
    let pair = paired(i);
    let [a, b, c, d] = converted(i);
    let (x, y) = (pair.x.to_bits(), pair.y.to_bits());
    let run = codes::run(i as u8, i, 3);
    [
        matched(i).into(),
        run.into(),
        spelled(i).into(),
        contained(i).into(),
        ordered(i),
        generic(i).to_bits().into(),
        x.into(),
        y.into(),
        a,
        b,
        c,
        d,
    ]
}

#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 384)]
pub fn shorthand(out: &mut [u64]) {
    let i = thread::x();
    let results = all_of(i as u32);
    for (k, result) in results.iter().enumerate() {
        out[12 * i + k] = *result;
    }
}

/// Exchanges elements in local memory, at indices of run time.
#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 32)]
pub fn exchanged(out: &mut [u32]) {
    let i = thread::x();
    let mut a = thread::local::<[u32; 8]>();
    for k in 0..8 {
        a[k] = 3 * k as u32;
    }
    a.swap(i % 8, i / 8);
    out[i] = a[0] + 100 * a[i / 8] + 10_000 * a[i % 8];
}

fn test(checker: &Checker) {
    let expected: Vec<u64> = (0..32).flat_map(all_of).collect();
    agree::<shorthand>(checker, "shorthand", vec![Input::slice(&[0u64; 384])], &[Expected::exact(0, expected)]);
    assemble::<shorthand>();
    let one = |i: usize| {
        let mut a: [u32; 8] = std::array::from_fn(|k| 3 * k as u32);
        a.swap(i % 8, i / 8);
        a[0] + 100 * a[i / 8] + 10_000 * a[i % 8]
    };
    let expected: Vec<u32> = (0..32).map(one).collect();
    agree::<exchanged>(checker, "exchanged", vec![Input::slice(&[0u32; 32])], &[Expected::exact(0, expected)]);
}

#[test]
fn shorthand_agrees_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_shorthand_agrees_with_rust() {
    test(&checker(true));
}
