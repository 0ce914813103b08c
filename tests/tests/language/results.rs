//! Tests of `Result` and `?`. Each device function also runs on the host, compiled by rustc.

#![allow(clippy::all, reason = "the code consists of the forms under test")]

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

#[device]
pub mod steps {
    use kernel_dsl::prelude::*;

    /// The reason why a step fails.
    #[derive(Clone, Copy, PartialEq, PartialOrd, DeviceCopy)]
    pub enum Fault {
        Odd(u32),
        Large,
    }

    /// A struct that holds results.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub struct Held {
        pub last: Result<u32, Fault>,
        pub count: u32,
    }

    pub type Half<T> = Result<T, Fault>;

    pub fn half(x: u32) -> Result<u32, Fault> {
        if x % 2 == 1 {
            return Err(Fault::Odd(x));
        }
        if x > 80 { Err(Fault::Large) } else { Ok(x / 2) }
    }

    pub fn quarter(x: u32) -> Half<u32> {
        let once = half(x)?;
        Ok(half(once + 1)? + 100)
    }

    pub fn code(x: u32) -> Result<u32, u32> {
        let quarter = quarter(x).map_err(|fault| match fault {
            Fault::Odd(n) => n * 3,
            Fault::Large => 5,
        })?;
        let rest = quarter.checked_sub(110).ok_or(quarter)?;
        Ok(rest + 1)
    }

    /// Applies `?` to options.
    pub fn third(x: Option<u32>, y: u32) -> Option<u32> {
        let x = x?;
        let least = |y: u32| -> Option<u32> { Some(y.checked_sub(20)? + half(y).ok()?) };
        let sum = match least(y) {
            Some(n) => n + x,
            None => x.checked_sub(3)?,
        };
        for k in 0..4 {
            if half(sum + k).is_ok() {
                Some(k).and_then(|n| if n < 3 { Some(n) } else { None })?;
            }
        }
        Some(sum)
    }

    pub fn checked(x: u32) -> Result<(), u32> {
        if x > 50 {
            Err(x)?;
        }
        Ok(())
    }

    /// Uses each method.
    pub fn methods(x: u32, y: u32) -> u32 {
        let (a, b) = (half(x), half(y));
        let mut sum = a.unwrap_or(9) + a.map_or(4, |n| n * 3) + a.map(|n| n + 2).unwrap_or(6);
        sum += a.is_ok() as u32 + 2 * a.is_err() as u32 + 4 * a.is_ok_and(|n| n > 9) as u32;
        sum += a.ok().unwrap_or(3) + a.and_then(half).ok().map_or(11, |n| n * 7);
        sum += match b.err() {
            Some(Fault::Odd(n)) => n,
            Some(Fault::Large) => 13,
            None => 17,
        };
        sum += 8 * (a == b) as u32 + 16 * (a < b) as u32 + 32 * (a == Err(Fault::Large)) as u32;
        sum += match checked(x) {
            Ok(()) => 1,
            Err(n) => n,
        };
        if let (Ok(n), Err(_)) | (Err(_), Ok(n)) = (a, b) {
            sum += n;
        }
        let (Ok(n) | Err(n)) = code(x);
        let Ok(m) = b else { return sum + n };
        sum + n * m
    }

    pub fn held(x: u32, y: u32) -> Held {
        let mut held = Held { last: half(x), count: 0 };
        while let Ok(n) = held.last {
            if n == 0 {
                break;
            }
            held = Held { last: half(n), count: held.count + y };
        }
        held
    }
}
use steps::{Fault, code, half, held, methods, third};

#[device]
fn all_of(x: u32, y: u32, shuffled: Result<u32, Fault>) -> [u32; 6] {
    let number = |result: Result<u32, Fault>| -> u32 {
        match result {
            Ok(n) => n,
            Err(Fault::Odd(n)) => n + 1000,
            Err(Fault::Large) => 2000,
        }
    };
    let held = held(x, y);
    [
        match code(x) {
            Ok(n) => n,
            Err(n) => n + 500,
        },
        third(x.checked_sub(5), y).map_or(7, |n| n + 1),
        methods(x, y),
        number(held.last) + held.count,
        number(shuffled),
        (held.last != half(y)) as u32,
    ]
}

#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() % 32 == 0, out.len() == 6 * x.len())]
pub fn stepped(x: &[u32], out: &mut [u32]) {
    let i = grid::index();
    let shuffled = warp::shuffle_xor(half(x[i]), 1);
    let results = all_of(x[i], x[(i * 7 + 3) % x.len()], shuffled);
    for (k, result) in results.iter().enumerate() {
        out[i * 6 + k] = *result;
    }
}

fn test(checker: &Checker) {
    let x: Vec<u32> = (0..128).map(|i| i * 37 % 101 / (i % 4 + 1)).collect();
    let results = (0..x.len()).flat_map(|i| all_of(x[i], x[(i * 7 + 3) % x.len()], half(x[i ^ 1])));
    let expected: Vec<u32> = results.collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0u32; expected.len()])];
    agree::<stepped>(checker, "steps", inputs, &[Expected::exact(1, expected)]);
    assemble::<stepped>();
}

#[test]
fn results_agree_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_results_agree_with_rust() {
    test(&checker(true));
}
