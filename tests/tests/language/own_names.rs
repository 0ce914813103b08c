//! Tests of items and methods of a program with names of Rust's library: `Result`, `iter`, `rev`.
//! Each device function also runs on the host, compiled by rustc.

#![allow(clippy::all, reason = "the code consists of the forms under test")]

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

#[device]
pub mod steps {
    use kernel_dsl::prelude::*;

    /// The reason why a step fails.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub enum Fault {
        Odd(u32),
        Large,
    }

    pub type Result<T> = core::result::Result<T, Fault>;

    pub fn half(x: u32) -> Result<u32> {
        if x % 2 == 1 {
            return Err(Fault::Odd(x));
        }
        if x > 80 { Err(Fault::Large) } else { Ok(x / 2) }
    }

    /// Uses Rust's type beside the alias.
    pub fn narrow(x: u32) -> core::result::Result<u32, u32> {
        let y = half(x).map_err(|fault| match fault {
            Fault::Odd(n) => n,
            Fault::Large => 7,
        })?;
        if y > 30 { Err(y) } else { Ok(y + 1) }
    }
}

/// Items that import the alias.
mod with_alias {
    use super::steps::{Fault, Result, half};
    use kernel_dsl::prelude::*;

    #[device]
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub struct Held {
        pub last: Result<u32>,
        pub count: u32,
    }

    #[device]
    pub fn quarter(x: u32) -> Result<u32> {
        let halved = half(x)?;
        if halved > 30 { Err(Fault::Large) } else { half(halved + 1) }
    }

    #[device]
    pub fn held(x: u32) -> Held {
        Held { last: quarter(x), count: x % 5 }
    }

    #[kernel(block = 32, grid = x.len().div_ceil(32))]
    #[requires(x.len() % 32 == 0, out.len() == x.len())]
    pub fn halved(x: &[u32], out: &mut [u32]) {
        let i = grid::index();
        let found: Result<u32> = quarter(x[i]).and_then(half);
        out[i] = match found {
            Ok(n) => n,
            Err(Fault::Odd(n)) => n + 1000,
            Err(Fault::Large) => 2000,
        };
    }
}
use with_alias::{halved, held, quarter};

#[device]
pub mod verdicts {
    use kernel_dsl::prelude::*;

    /// An enum that shares names with Rust's.
    #[derive(Clone, Copy, PartialEq, PartialOrd, DeviceCopy)]
    pub enum Result {
        Bad(u32),
        Ok(u32),
        Err,
    }

    impl Result {
        pub fn of(x: u32) -> Self {
            match rusts(x) {
                Ok(n) if n > 60 => Result::Err,
                Ok(n) => Result::Ok(n),
                Err(n) => Self::Bad(n),
            }
        }

        pub fn ok(self) -> u32 {
            match self {
                Result::Bad(n) => n + 1,
                Result::Ok(n) => n * 2,
                Self::Err => 9,
            }
        }
    }

    pub fn rusts(x: u32) -> core::result::Result<u32, u32> {
        if x > 20 { Ok(x) } else { Err(x + 3) }
    }
}

/// A function that imports the enum.
mod with_enum {
    use super::verdicts::{Result, rusts};
    use kernel_dsl::prelude::*;

    #[device]
    pub fn judged(x: u32, y: u32) -> u32 {
        let (a, b) = (Result::of(x), Result::of(y));
        let least = if a < b { a } else { b };
        let last = match rusts(x) {
            Ok(n) => Result::Bad(n),
            Err(_) => Result::Err,
        };
        least.ok() * 100 + last.ok() + (a == b) as u32
    }
}
use with_enum::judged;

#[device]
pub mod lists {
    use kernel_dsl::prelude::*;

    /// A list whose methods differ from those of iterators.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct List {
        pub at: [u32; 3],
    }

    impl List {
        pub fn iter(&self) -> [u32; 3] {
            [self.at[2], self.at[0], self.at[1]]
        }

        pub fn rev(self) -> [u32; 2] {
            [self.at[0] + 5, self.at[2]]
        }

        pub fn enumerate(self) -> [(u32, u32); 3] {
            [(7, self.at[0]), (3, self.at[1]), (1, self.at[2])]
        }

        pub fn copied(self) -> List {
            List { at: [self.at[1], 4, self.at[0]] }
        }

        pub fn cloned(&self) -> [u32; 3] {
            [1, self.at[1], 2]
        }

        pub fn zip(self, other: List) -> [(u32, u32); 2] {
            [(self.at[0], other.at[2]), (self.at[1], other.at[0])]
        }

        pub fn step_by(self, step: u32) -> [u32; 3] {
            [step, self.at[0] * step, self.at[1]]
        }

        pub fn into_iter(self) -> [u32; 2] {
            [self.at[1], self.at[2] + 9]
        }
    }

    /// Methods of arrays with names of iterators.
    pub trait Ends: Copy {
        fn rev(self) -> [u32; 3];
        fn iter(&self) -> [u32; 2];
        fn copied(&self) -> [u32; 1];
    }

    impl Ends for [u32; 2] {
        fn rev(self) -> [u32; 3] {
            [self[1], 8, self[0]]
        }
        fn iter(&self) -> [u32; 2] {
            [self[1] + 1, self[0] + 2]
        }
        fn copied(&self) -> [u32; 1] {
            [self[0] + self[1]]
        }
    }

    fn mixed(sum: u32, x: u32) -> u32 {
        sum.rotate_left(5) ^ x
    }

    pub fn listed(list: List, other: List) -> u32 {
        let mut sum = 1u32;
        for x in list.iter() {
            sum = mixed(sum, x);
        }
        for (i, x) in list.iter().iter().enumerate() {
            sum = mixed(sum, *x * i as u32);
        }
        for x in list.rev() {
            sum = mixed(sum, x);
        }
        for x in list.copied().rev().rev() {
            sum = mixed(sum, x);
        }
        for (i, x) in list.enumerate() {
            sum = mixed(sum, x << i);
        }
        for (i, (k, x)) in list.enumerate().into_iter().enumerate() {
            sum = mixed(sum, x * k + i as u32);
        }
        for x in (&list).cloned() {
            sum = mixed(sum, x);
        }
        for (x, y) in list.zip(other) {
            sum = mixed(sum, x * y);
        }
        for x in list.step_by(3) {
            sum = mixed(sum, x);
        }
        for x in list.into_iter() {
            sum = mixed(sum, x);
        }
        let pair = [list.at[0], other.at[1]];
        for x in pair.rev() {
            sum = mixed(sum, x);
        }
        for x in pair.iter() {
            sum = mixed(sum, x);
        }
        for x in pair.copied() {
            sum = mixed(sum, x);
        }
        for x in (0..list.at[0] % 4).rev() {
            sum = mixed(sum, x);
        }
        let changed = list.copied();
        mixed(sum, changed.at[2] + pair.copied()[0])
    }
}
use lists::{List, listed};

#[device]
fn all_of(x: u32, y: u32) -> [u32; 4] {
    let narrow = match steps::narrow(x) {
        Ok(n) => n,
        Err(n) => n + 500,
    };
    let held = held(x);
    let list = List { at: [x, y, x ^ y] };
    [
        narrow + held.last.is_ok() as u32 + held.count * 3,
        quarter(y).unwrap_or(77),
        judged(x, y),
        listed(list, List { at: [y, 3, x] }),
    ]
}

#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() % 32 == 0, out.len() == 4 * x.len())]
pub fn named(x: &[u32], out: &mut [u32]) {
    let i = grid::index();
    let results = all_of(x[i], x[(i * 7 + 3) % x.len()]);
    for (k, result) in results.iter().enumerate() {
        out[i * 4 + k] = *result;
    }
}

fn numbers() -> Vec<u32> {
    (0..128).map(|i| i * 37 % 101 / (i % 4 + 1)).collect()
}

fn test(checker: &Checker) {
    let x = numbers();
    let expected: Vec<u32> = (0..x.len()).flat_map(|i| all_of(x[i], x[(i * 7 + 3) % x.len()])).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0u32; expected.len()])];
    agree::<named>(checker, "names", inputs, &[Expected::exact(1, expected)]);
    assemble::<named>();
    let code = |x: u32| match quarter(x).and_then(steps::half) {
        Ok(n) => n,
        Err(steps::Fault::Odd(n)) => n + 1000,
        Err(steps::Fault::Large) => 2000,
    };
    let expected: Vec<u32> = x.iter().map(|x| code(*x)).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0u32; x.len()])];
    agree::<halved>(checker, "alias", inputs, &[Expected::exact(1, expected)]);
}

#[test]
fn own_names_agree_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_own_names_agree_with_rust() {
    test(&checker(true));
}

#[test]
fn items_of_a_block_name_rusts_result() {
    #[device]
    fn small(x: u32) -> Result<u32, u32> {
        if x < 40 { Ok(x) } else { Err(x - 3) }
    }

    #[kernel(block = 32, grid = x.len().div_ceil(32))]
    #[requires(x.len() % 32 == 0, out.len() == x.len())]
    pub fn in_block(x: &[u32], out: &mut [u32]) {
        let i = grid::index();
        let found: Result<u32, u32> = small(x[i]);
        out[i] = found.map_or(5, |n| n * 2);
    }

    let x = numbers();
    let expected: Vec<u32> = x.iter().map(|x| small(*x).map_or(5, |n| n * 2)).collect();
    let inputs = vec![Input::slice(&x), Input::slice(&vec![0u32; x.len()])];
    agree::<in_block>(&checker(false), "in a block", inputs, &[Expected::exact(1, expected)]);
}
