//! The zoo's kernels that store to read-only memory, with their corrected versions.
use kernel_dsl::prelude::*;

/// doubles an input in place
#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn doubled_in_place(x: &[f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = 2.0 * x[i]; //~ read-only-write
    }
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
pub fn doubled_in_place_mended(x: &mut [f32]) {
    let i = grid::index();
    if i < x.len() {
        x[i] = 2.0 * x[i];
    }
}

/// an output is a read-only view
#[kernel(block = 64, grid = y.rows())]
#[requires(x.len() == y.rows())]
pub fn row_of_a_view(x: &[f32], y: View<f32, 2>) {
    if thread::x() < y.cols() {
        y[(block::x(), thread::x())] = x[block::x()]; //~ read-only-write
    }
}

#[kernel(block = 64, grid = y.rows())]
#[requires(x.len() == y.rows())]
pub fn row_of_a_view_mended(x: &[f32], mut y: ViewMut<f32, 2>) {
    if thread::x() < y.cols() {
        y[(block::x(), thread::x())] = x[block::x()];
    }
}

fn main() {
    println!("{}{}", doubled_in_place_mended::PTX, row_of_a_view_mended::PTX);
}
