#![doc = include_str!(concat!(env!("OUT_DIR"), "/10_pascal.md"))]

use kernel_dsl::prelude::*;

/// Uses what is slow on sm_61: f64, and a division by a run-time integer.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
pub fn slow_on_pascal(columns: u32, y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        let row = i as u32 / columns;
        y[i] = (y[i] as f64 * 0.1) as f32 + row as f32;
    }
}
