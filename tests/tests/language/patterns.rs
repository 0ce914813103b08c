//! Tests of patterns: alternatives that bind names, parameters, and loops over references. Each
//! device function also runs on the host, compiled by rustc.

#![allow(clippy::all, reason = "the code consists of the patterns and comparisons under test")]

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Checker, Expected, Input};

#[device]
pub mod choices {
    use kernel_dsl::prelude::*;

    /// A shape with sizes in different fields.
    #[derive(Clone, Copy, PartialEq, DeviceCopy)]
    pub enum Drawing {
        Circle(u32),
        Square { side: u32, shift: [u32; 2] },
        Line(u32, Option<u32>),
        Dot,
    }

    /// A point with a weight.
    #[derive(Clone, Copy, PartialEq, PartialOrd, DeviceCopy)]
    pub struct Weighted {
        pub at: (u32, u32),
        pub weight: u32,
    }

    impl Drawing {
        pub fn of(code: u32) -> Self {
            match code % 5 {
                0 => Drawing::Circle(code * 3),
                1 => Drawing::Square { side: code, shift: [code / 2, 9] },
                2 => Drawing::Line(code + 1, None),
                3 => Drawing::Line(code + 2, Some(code % 7)),
                _ => Drawing::Dot,
            }
        }

        pub fn size(self) -> u32 {
            match self {
                Drawing::Circle(n) | Drawing::Square { side: n, .. } | Drawing::Line(_, Some(n)) => n,
                Drawing::Line(n, None) => n + 1000,
                Drawing::Dot => 7,
            }
        }

        /// Binds names to references, and to whole parts.
        pub fn least(&self, other: &Drawing) -> u32 {
            match (self, other) {
                (Drawing::Circle(n), _) | (_, Drawing::Circle(n) | Drawing::Square { shift: [n, _], .. }) => *n,
                (Drawing::Line(n @ (2..=20 | 70..), rest), Drawing::Dot) | (Drawing::Dot, Drawing::Line(n, rest)) => {
                    *n * 2 + rest.unwrap_or(5)
                }
                (Drawing::Dot, _) | (_, Drawing::Dot) => 4,
                _ => 6,
            }
        }

        /// Changes a name that several alternatives bind.
        pub fn grown(self) -> u32 {
            match self {
                Drawing::Circle(mut n) | Drawing::Line(mut n, _) => {
                    n += 5;
                    n *= 3;
                    n
                }
                Drawing::Square { shift: pair, .. } => pair[0] + pair[1],
                Drawing::Dot => 1,
            }
        }
    }

    /// Tries the guard with each alternative.
    pub fn guarded(pair: (u32, u32), limit: u32) -> u32 {
        match pair {
            (n, _) | (_, n) if n > limit => n,
            (0..=9, m @ (3 | 20..=30)) | (m, 0 | 1 | 5) if m % 2 == 0 => m + 500,
            other @ (_, 8) => other.0 + 2,
            _ => 1,
        }
    }

    /// Counts how often each guard is tested: once for each alternative that matches.
    pub fn tries(pair: (u32, u32), option: Option<u32>) -> u32 {
        let (mut n, mut m) = (0, 0);
        let which = match pair {
            (0..=40, _) | (_, 20..)
                if {
                    n += 1;
                    n > 1
                } =>
            {
                1
            }
            (1 | 2, _) | (5, 0..10)
                if {
                    n += 10;
                    false
                } =>
            {
                2
            }
            (7 | _, 3 | _)
                if {
                    n += 100;
                    false
                } =>
            {
                3
            }
            _ => 4,
        };
        if matches!(option, Some(3..=9) | Some(5 | 8..) | None if { m += 1; m == 2 }) {
            m += 100;
        }
        which * 1000 + n + m * 10000
    }

    /// Binds arrays, tuples and several names, in another order.
    pub fn swapped(a: u32, b: u32) -> u32 {
        let tagged = ([a, b], a % 3 == 0);
        let (([first, second], true) | ([second, first], false)) = tagged;
        let (whole @ ([_, 4], _) | whole @ _) = tagged;
        let by_closure = |((x, 1) | (1, x) | (_, x)): (u32, u32)| x * 2;
        let mut sum = first * 10 + second + whole.0[1] + by_closure((a % 3, b % 3));
        if let (Some(n), _) | (None, Some(n)) = (a.checked_sub(40), b.checked_sub(20)) {
            sum += n;
        }
        let ((Some(n), 0) | (None, n)) = (a.checked_sub(30), b % 2) else { return sum + 3 };
        let mut left = Some(n % 4);
        while let Some(n @ (1 | 3)) | Some(n @ 2) = left {
            sum += n;
            left = n.checked_sub(1);
        }
        sum += match ((a % 3, b % 3), b % 4) {
            ((x, 1) | (1, x), y) | ((y, 0), x) => x * 10 + y,
            _ => 5,
        };
        sum + matches!((a, b), (x, 3) | (3, x) if x > 4) as u32
    }

    /// Destructures its parameters.
    pub fn unpacked(
        (x, mut y): (u32, u32),
        Weighted { at: (u, _), weight }: Weighted,
        [first, .., last]: [u32; 4],
        &(v, w): &(u32, u32),
        all @ (one, _): (u32, bool),
    ) -> u32 {
        y += x;
        y + u * 3 + weight + first * last + v + w * 5 + one + all.0 + all.1 as u32
    }

    impl Weighted {
        pub fn plus(self, Weighted { weight, .. }: Weighted, (a, b): (u32, u32)) -> u32 {
            self.weight + weight * 3 + a + b * 7
        }
    }

    /// Computes sums in loops over references to elements.
    pub fn sums(values: [u32; 4]) -> u32 {
        let mut sum = 0;
        for x in &values {
            sum = sum * 3 + x;
        }
        for (i, x) in values.iter().enumerate() {
            sum += *x * i as u32;
        }
        for &x in values.iter() {
            sum ^= x;
        }
        for (i, x) in values.iter().copied().enumerate() {
            sum += x + i as u32;
        }
        let mut changed = values;
        for x in &mut changed {
            *x += 1;
        }
        for (i, x) in changed.iter_mut().enumerate() {
            *x = x.wrapping_mul(i as u32 + 3);
            if i == 2 {
                continue;
            }
            *x += 1;
        }
        let pairs = [(changed[0], [1, changed[1]]), (changed[2], [changed[3], 2])];
        for (a, [b, c]) in &pairs {
            if *a == *b {
                break;
            }
            sum += a * b + c;
        }
        for row in &[[changed[0], 2], [sum, 4]] {
            for x in row {
                sum = sum.rotate_left(3) ^ x;
            }
        }
        sum
    }

    /// Compares references, and options of references.
    pub fn compared(x: &[u32], i: usize, value: u32) -> u32 {
        let other = value + 1;
        let weighted = [Weighted { at: (value, 1), weight: 3 }, Weighted { at: (x[0], 1), weight: 3 }];
        let least = Some(&weighted[0]);
        let mut bits = 0;
        for (k, holds) in [
            x.get(i) == Some(&value),
            x.get(i) != Some(&value),
            x.get(i) == x.get(i + 1),
            x.get(i) < Some(&value),
            x.get(i) >= x.get(i + 1),
            x.get(i) == None,
            Some(&value) > x.get(i),
            (&value, x.get(i)) == (&x[0], Some(&other)),
            &value == &x[0],
            least == Some(&weighted[1]),
            least < Some(&weighted[1]),
        ]
        .into_iter()
        .enumerate()
        {
            bits |= (holds as u32) << k;
        }
        bits
    }
}
use choices::{Drawing, Weighted, compared, guarded, sums, swapped, tries, unpacked};

/// The results of each thread.
const RESULTS: usize = 10;

#[device]
fn all_of(x: u32, y: u32, row: [u32; 4], values: &[u32], i: usize) -> [u32; 10] {
    let (shape, other) = (Drawing::of(x), Drawing::of(y));
    let weighted = Weighted { at: (x, 3), weight: y };
    [
        shape.size(),
        shape.least(&other),
        shape.grown(),
        guarded((x, y), 60),
        swapped(x, y),
        unpacked((x, y), weighted, [y, 1, 2, x], &(x, y), (x, y > 3)),
        weighted.plus(weighted, (x, y)),
        sums([x, y, x ^ y, 5]) ^ sums(row),
        compared(values, i, x),
        tries((x, y), x.checked_sub(2)),
    ]
}

#[kernel(block = 32, grid = x.len().div_ceil(32))]
#[requires(x.len() % 32 == 0, rows.len() == x.len(), out.len() == 10 * x.len())]
pub fn matched(x: &[u32], rows: &[[u32; 4]], out: &mut [u32]) {
    let i = grid::index();
    let y = x[(i * 7 + 3) % x.len()];
    let mut results = all_of(x[i], y, rows[i], x, i);
    for x in &rows[i] {
        results[7] = results[7].wrapping_add(*x);
    }
    for (k, result) in results.iter().enumerate() {
        out[i * 10 + k] = *result;
    }
}

fn test(checker: &Checker) {
    let x: Vec<u32> = (0..96).map(|i| i * 37 % 101 / (i % 4 + 1)).collect();
    let rows: Vec<[u32; 4]> = x.iter().map(|x| [*x, x * x, 9, x / 2]).collect();
    let mut expected = Vec::new();
    for i in 0..x.len() {
        let y = x[(i * 7 + 3) % x.len()];
        let mut results = all_of(x[i], y, rows[i], &x, i);
        results[7] = rows[i].iter().fold(results[7], |sum, x| sum.wrapping_add(*x));
        expected.extend(results);
    }
    let inputs = vec![Input::slice(&x), Input::slice(&rows), Input::slice(&vec![0u32; RESULTS * x.len()])];
    agree::<matched>(checker, "shapes", inputs, &[Expected::exact(2, expected)]);
    assemble::<matched>();
}

#[test]
fn patterns_agree_with_rust() {
    test(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_patterns_agree_with_rust() {
    test(&checker(true));
}
