//! Tests of device functions that a macro repeats with the same tokens: each refers to the names of
//! the module that contains it.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Checker, Expected, Input};

#[device]
fn double(x: f32) -> f32 {
    2.0 * x
}

#[device]
fn square(x: f32) -> f32 {
    x * x
}

#[device]
const THREE: f32 = 3.0;

#[device]
const FOUR: f32 = 4.0;

/// Declares one function per expansion.
macro_rules! apart {
    ($module:ident, $step:ident, $offset:ident) => {
        mod $module {
            use super::{$offset as OFFSET, $step as step};
            use kernel_dsl::prelude::*;

            #[device]
            pub fn twice(x: f32) -> f32 {
                step(step(x)) + plus()
            }

            #[device]
            fn plus() -> f32 {
                OFFSET
            }

            #[device]
            pub const SCALE: f32 = OFFSET * 10.0;

            #[device]
            pub mod of {
                use super::super::Scaled;
                use super::SCALE;

                #[derive(Clone, Copy)]
                pub struct By {
                    pub factor: f32,
                }

                impl Scaled for By {
                    fn scaled(self, x: f32) -> f32 {
                        self.factor * SCALE * x
                    }
                }
            }
        }
    };
}

/// Declares all functions in one expansion.
macro_rules! together {
    ($($module:ident $step:ident)*) => {$(
        mod $module {
            use super::$step as step;
            use kernel_dsl::prelude::*;

            #[device]
            pub fn thrice(x: f32) -> f32 {
                step(step(step(x)))
            }

            #[device]
            #[allow(dead_code)]
            pub fn same(x: f32) -> f32 {
                x
            }
        }
    )*};
}

#[device]
mod traits {
    pub trait Scaled: Copy {
        fn scaled(self, x: f32) -> f32;
    }
}
use traits::Scaled;

apart!(doubling, double, THREE);
apart!(squaring, square, FOUR);
together!(by_two double by_square square);

#[kernel(block = 32, grid = 1)]
fn repeated(x: &[f32], y: &mut [f32], z: &mut [f32]) {
    let i = thread::x();
    y[i] = doubling::twice(x[i]) + 1000.0 * squaring::twice(x[i]);
    z[i] = by_two::thrice(x[i]) + 1000.0 * by_square::thrice(x[i]) + doubling::SCALE + squaring::SCALE;
}

/// Scales by two structs with one name and equal tokens, which have separate impls.
#[kernel(block = 32, grid = 1, instances(S = doubling::of::By, T = squaring::of::By))]
fn scaled_by_both<S: Scaled, T: Scaled>(s: S, t: T, y: &mut [f32]) {
    let i = thread::x();
    y[i] = s.scaled(i as f32) + 1000.0 * t.scaled(i as f32);
}

fn test_repeated(checker: &Checker) {
    let x: Vec<f32> = (0..32).map(|i| (i % 7) as f32 * 0.5).collect();
    let y = |x: f32| 4.0 * x + 3.0 + 1000.0 * (x * x * x * x + 4.0);
    let z = |x: f32| 8.0 * x + 1000.0 * x.powi(8) + 30.0 + 40.0;
    let inputs = vec![Input::slice(&x), Input::slice(&[0f32; 32]), Input::slice(&[0f32; 32])];
    let expected = [
        Expected::new(1, x.iter().map(|x| y(*x).into()).collect(), Bound::Exact),
        Expected::new(2, x.iter().map(|x| z(*x).into()).collect(), Bound::Exact),
    ];
    agree::<repeated>(checker, "repeated", inputs, &expected);
    assemble::<repeated>();
}

#[test]
fn functions_of_repeated_tokens_are_distinguished() {
    test_repeated(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_functions_of_repeated_tokens_are_distinguished() {
    test_repeated(&checker(true));
}

fn test_structs(checker: &Checker) {
    let mut inputs = Input::value_of(doubling::of::By { factor: 2.0 });
    inputs.extend(Input::value_of(squaring::of::By { factor: 0.5 }));
    inputs.push(Input::slice(&[0f32; 32]));
    let of = |i: f32| 60.0 * i + 1000.0 * (20.0 * i);
    let expected = [Expected::new(2, (0..32).map(|i| of(i as f32).into()).collect(), Bound::Exact)];
    agree::<scaled_by_both<doubling::of::By, squaring::of::By>>(checker, "scaled by both", inputs, &expected);
}

#[test]
fn structs_of_repeated_tokens_are_distinguished() {
    test_structs(&checker(false));
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_structs_of_repeated_tokens_are_distinguished() {
    test_structs(&checker(true));
}
