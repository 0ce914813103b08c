//! Tests of the selection among impls that differ in a length, or that require two equal types.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

#[device]
mod widths {
    use kernel_dsl::prelude::*;

    /// A sum in steps.
    pub trait Sum: Copy {
        type Total: Number;
        const NAME: u32;
        fn total(self) -> Self::Total;
    }

    impl Sum for [f32; 4] {
        type Total = f32;
        const NAME: u32 = 4;
        fn total(self) -> f32 {
            self[0] + self[1] + self[2] + self[3]
        }
    }

    impl Sum for [f32; 2] {
        type Total = f64;
        const NAME: u32 = 2;
        fn total(self) -> f64 {
            self[0] as f64 + self[1] as f64 / 3.0
        }
    }

    impl<const N: usize> Sum for [u32; N] {
        type Total = u32;
        const NAME: u32 = 100;
        fn total(self) -> u32 {
            let mut all = N as u32;
            for i in unroll(0..N) {
                all += self[i];
            }
            all
        }
    }

    #[derive(Clone, Copy)]
    pub struct Pair<A, B> {
        pub a: A,
        pub b: B,
    }

    impl Sum for Pair<f32, f32> {
        type Total = f32;
        const NAME: u32 = 1;
        fn total(self) -> f32 {
            self.a * self.b
        }
    }

    impl<T: Number> Sum for Pair<T, [T; 2]> {
        type Total = T;
        const NAME: u32 = 3;
        fn total(self) -> T {
            self.a + self.b[0] * self.b[1]
        }
    }

    impl Pair<f32, f32> {
        pub fn which(self) -> u32 {
            10
        }
    }

    impl Pair<u32, f32> {
        pub fn which(self) -> u32 {
            20
        }
    }

    pub fn name_of<S: Sum>(_of: S) -> u32 {
        S::NAME
    }
}
use widths::{Pair, Sum, name_of};

#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 32, y.len() == 32, names.len() == 32)]
fn impls(x: &[f32], y: &mut [f64], names: &mut [u32]) {
    let i = thread::x();
    let (four, two) = ([x[i]; 4], [x[i], 2.0]);
    let of_four = four.total();
    let of_two = two.total();
    let counts = [i as u32; 3];
    let same = Pair { a: x[i], b: 2.0 };
    let mixed = Pair { a: i as u32, b: [3, 4] };
    let other = Pair { a: 1u32, b: 0.5f32 };
    y[i] = of_four as f64 + of_two + counts.total() as f64 + same.total() as f64 + mixed.total() as f64;
    names[i] = name_of(four)
        + 10 * name_of(two)
        + 1000 * name_of(counts)
        + name_of(same)
        + name_of(mixed)
        + same.which()
        + other.which();
}

fn test_impls(checker: &Checker) {
    let x: Vec<f32> = (0..32).map(|i| i as f32 * 0.25 - 3.0).collect();
    let (mut totals, mut names) = (Vec::new(), Vec::new());
    for (i, x) in x.iter().copied().enumerate() {
        let (four, two, counts) = ([x; 4], [x, 2.0], [i as u32; 3]);
        let (same, mixed, other) =
            (Pair { a: x, b: 2.0 }, Pair { a: i as u32, b: [3, 4] }, Pair { a: 1u32, b: 0.5f32 });
        let sum = f64::from(four.total()) + two.total() + f64::from(counts.total());
        totals.push(sum + f64::from(same.total()) + f64::from(mixed.total()));
        let name = name_of(four) + 10 * name_of(two) + 1000 * name_of(counts) + name_of(same) + name_of(mixed);
        names.push(f64::from(name + same.which() + other.which()));
    }
    let inputs = vec![Input::slice(&x), Input::slice(&[0f64; 32]), Input::slice(&[0u32; 32])];
    let expected = [Expected::new(1, totals, Bound::Exact), Expected::new(2, names, Bound::Exact)];
    agree::<impls>(checker, "impls", inputs, &expected);
    assemble::<impls>();
}

#[test]
fn matching_impl_is_selected() {
    test_impls(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_matching_impl_is_selected() {
    test_impls(&checker(true));
}
