//! Barriers of the grid that not all threads reach, or in launches whose blocks may not all run.
use kernel_dsl::prelude::*;

#[kernel(block = 64, grid = 2)]
pub fn without_the_clause(y: &mut [f32]) {
    y[grid::index()] = 1.0;
    grid::sync();
}

#[device]
fn met() {
    grid::sync();
}

#[kernel(block = 64, grid = 2)]
pub fn by_a_function(y: &mut [f32]) {
    met();
    y[grid::index()] = 1.0;
}

#[kernel(cooperative, block = 64, grid = 2)]
pub fn by_one_block(y: &mut [f32]) {
    if block::x() == 0 {
        y[thread::x()] = 1.0;
        grid::sync();
    }
}

fn main() {
    println!("{} {} {}", without_the_clause::PTX, by_a_function::PTX, by_one_block::PTX);
}
