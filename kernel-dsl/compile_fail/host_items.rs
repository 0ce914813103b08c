//! Items of the host in device functions, modules, impls and constants.

use kernel_dsl::prelude::*;

type Real = f32;
struct Pair(f32, f32);
const LIMIT: f32 = 4.0;

mod host {
    pub fn area(x: f32) -> f32 {
        x * x
    }
    pub mod inner {
        pub use super::area as square;
    }
}

#[device]
fn alias(x: Real) -> Real {
    x
}

#[device]
fn generic<T: Float>(x: T, pair: Pair) -> T {
    let _ = pair;
    x
}

#[device]
fn constant(x: f32) -> f32 {
    x.min(LIMIT)
}

#[device]
fn called(x: f32) -> f32 {
    host::area(x) + host::inner::square(x)
}

#[device(value)]
fn value(x: Real) -> f32 {
    x
}

#[device]
fn heap(x: f32) -> f32 {
    let _list: Option<Vec<f32>> = None;
    x
}

#[device]
const TWICE: f32 = 2.0 * LIMIT;

#[device]
#[derive(Clone, Copy, DeviceCopy)]
struct Holder {
    value: Real,
}

#[device]
mod shapes {
    use super::Real;

    #[derive(Clone, Copy, kernel_dsl::DeviceCopy)]
    pub struct Square {
        pub side: f32,
    }

    impl Square {
        pub fn area(self) -> Real {
            self.side * self.side
        }
    }
}

/// A callee with an error: no message about its callers.
#[device]
fn caller(x: f32) -> f32 {
    alias(x) + constant(x)
}

#[kernel(block = 32, grid = 1)]
pub fn k(y: &mut [f32]) {
    y[0] = caller(y[1]) + called(y[2]) + shapes::Square { side: 1.0 }.area();
}

fn main() {}
