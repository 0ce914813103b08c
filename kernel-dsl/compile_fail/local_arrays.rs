//! Mistakes with arrays in local memory.
use kernel_dsl::prelude::*;

// The type of the array is missing.
#[kernel(block = 32, grid = 1)]
pub fn without_type(y: &mut [u32]) {
    let mut stack = thread::local();
    stack[0] = 1u32;
    y[thread::x()] = stack[0];
}

// The type is that of an element.
#[kernel(block = 32, grid = 1)]
pub fn one_number(y: &mut [u32]) {
    let mut stack = thread::local::<u32>();
    y[thread::x()] = stack;
}

// An array starts with a value, as an array in registers does.
#[kernel(block = 32, grid = 1)]
pub fn initialized(y: &mut [u32]) {
    let mut stack = thread::local::<[u32; 8]>(0);
    y[thread::x()] = stack[0];
}

// The array is in registers, and its index is known to the thread alone.
#[kernel(block = 32, grid = 1)]
pub fn in_registers(x: &[u32], y: &mut [u32]) {
    let mut stack = [0u32; 8];
    stack[x[0] as usize % 8] = 1;
    y[thread::x()] = stack[7];
}

// The array is a part of a value.
#[kernel(block = 32, grid = 1)]
pub fn part_of_a_tuple(x: &[u32], y: &mut [u32]) {
    let mut both = (thread::local::<[u32; 8]>(), 0usize);
    both.0[x[0] as usize % 8] = 1;
    y[thread::x()] = both.0[both.1];
}

// The length is known at run time.
#[kernel(block = 32, grid = 1)]
pub fn long_as_needed(n: usize, y: &mut [u32]) {
    let mut stack = thread::local::<[u32; n]>();
    stack[0] = 1;
    y[thread::x()] = stack[0];
}

fn main() {}
