//! y ← a·x + y: the smallest kernel there is, bound by memory.

mod map;
pub mod maps;

pub use map::{gate, map, map2, map3};

use kernel_dsl::prelude::*;

/// y ← a·x + y, one element a thread, each with one rounding.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(x.len() == y.len())]
pub fn saxpy(a: f32, x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = a.mul_add(x[i], y[i]);
    }
}
