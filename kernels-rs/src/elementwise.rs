//! Elementwise functions of arrays: [`map`], [`map2`] and [`map3`] of any function marked `#[device(value)]`, and [`gate`] of the halves of rows.
//!
//! ```text
//!   y: planes of rows of pieces              a thread and step
//!   │ piece │ piece │ piece │ … row 0        x  ─ 16 bytes ─▶ ┐
//!   │ piece │ piece │ piece │ … row 1        row for all ─▶   ├ f(·) ─ 16 bytes ─▶ y
//!   …                                        column for all ─▶┘ element by element, from the caches
//! ```
//!
//! Inputs are broadcast by strides of 0, and axes that follow one another in all arrays are taken for one; so arrays without gaps are one row, whose
//! pieces need no division to be found. A piece is 16 bytes of the widest format, where y has them side by side. What limits it is memory, as long as f takes fewer
//! instructions than some forty an element on sm_61: a thread has one piece of each input under way, and a multiprocessor 2048 threads.
//!
//! [`saxpy`] is the smallest kernel there is.

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
