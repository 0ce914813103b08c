//! Tests of constants and functions of numbers, named by an alias of the type or by `Self`. Items
//! that a device trait has for a number are named by the number. Each device function also runs on
//! the host, compiled by rustc.

#![allow(clippy::all, reason = "the code consists of the forms under test")]

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

#[device]
pub type Word = u32;
#[device]
pub type Short = i16;
#[device]
pub type Half = f16;
#[device]
pub type Real = f32;
#[device]
pub const TOP: Word = Word::MAX - 5;

#[device]
pub mod wide {

    pub type Double = f64;
    pub type Long = u128;

    /// Names constants and functions of the type by `Self`.
    pub trait Ends {
        const NUMBER: u32;
        fn least() -> Self;
        fn beyond(self) -> Self;
    }

    impl Ends for u32 {
        const NUMBER: u32 = 7;
        fn least() -> Self {
            Self::MIN + 1
        }
        fn beyond(self) -> Self {
            Self::MAX - self
        }
    }

    impl Ends for f32 {
        const NUMBER: u32 = u32::NUMBER * 3;
        fn least() -> Self {
            Self::MIN_POSITIVE
        }
        fn beyond(self) -> Self {
            Self::from_bits(self.to_bits() + 1).max(Self::EPSILON)
        }
    }

    pub fn double(x: Double) -> Double {
        Double::max(x, Double::MIN).clamp(Double::NEG_INFINITY, Double::MAX) + Double::from(2.5f32)
    }

    pub fn long(x: u32) -> Long {
        Long::MAX - Long::from(x)
    }

    pub fn ends(x: u32) -> u64 {
        let integers = x.beyond() - u32::least() - u32::NUMBER - f32::NUMBER;
        integers as u64 + f32::least().to_bits() as u64 + (x as f32).beyond().to_bits() as u64
    }
}

#[device]
fn all_of(i: u32) -> [u64; 8] {
    let short = i as Short;
    let matched = match i {
        Word::MIN => 1,
        Word::MAX => 2,
        TOP => 3,
        _ => 4,
    };
    [
        Word::MAX as u64 ^ u64::from(Word::BITS) ^ matched,
        Short::MIN.wrapping_sub(short) as u64,
        Half::from_f32(i as f32).to_bits() as u64 + Half::ONE.to_bits() as u64,
        Real::from_bits(i).to_bits() as u64 + Real::max(i as f32, 3.0) as u64 + Real::from(short).to_bits() as u64,
        wide::double(i as f64).to_bits(),
        (wide::long(i) >> 3) as u64,
        Word::from_be_bytes([1, 2, 3, i as u8]) as u64 + Word::default() as u64 + Word::count_ones(TOP - i) as u64,
        wide::ends(i),
    ]
}

#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 256, out.len() < Word::MAX as usize)]
pub fn aliases(out: &mut [u64]) {
    let i = thread::x();
    for (k, result) in all_of(i as u32).iter().enumerate() {
        out[8 * i + k] = *result;
    }
}

fn test(checker: &Checker) {
    let expected: Vec<u64> = (0..32).flat_map(all_of).collect();
    agree::<aliases>(checker, "aliases", vec![Input::slice(&[0u64; 256])], &[Expected::exact(0, expected)]);
    assemble::<aliases>();
}

#[test]
fn aliases_agree_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_aliases_agree_with_rust() {
    test(&checker(true));
}
