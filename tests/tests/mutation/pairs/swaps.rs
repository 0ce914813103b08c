//! Branches that store the present value.

use super::*;

#[kernel(block = 32, grid = 1)]
fn in_order(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if (a < b) == (i & 2 == 0) {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn in_order_or_equal(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if (a <= b) == (i & 2 == 0) {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn doubled(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a < b {
        x[i] = b;
        x[i + 1] = a + a;
    }
}

#[kernel(block = 32, grid = 1)]
fn doubled_or_equal(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a <= b {
        x[i] = b;
        x[i + 1] = a + a;
    }
}

/// Exchanges floats: zeros of both signs are equal, but not identical.
#[kernel(block = 32, grid = 1)]
fn floats_in_order(x: &mut [f32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a < b {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn floats_in_order_or_equal(x: &mut [f32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a <= b {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn counted(x: &mut [u32], y: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a < b {
        x[i] = b;
        x[i + 1] = a;
    }
    y[i] = (a < b) as u32;
}

#[kernel(block = 32, grid = 1)]
fn counted_or_equal(x: &mut [u32], y: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    let less = a <= b;
    if less {
        x[i] = b;
        x[i + 1] = a;
    }
    y[i] = less as u32;
}

#[kernel(block = 32, grid = 1)]
fn elsewhere(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a < b {
        x[i] = b;
        x[i + 64] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn elsewhere_or_equal(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    if a <= b {
        x[i] = b;
        x[i + 64] = a;
    }
}

/// Exchanges after a point where other threads may have stored, whose stores would be lost.
#[kernel(block = 32, grid = 1)]
fn after_others(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    block::sync();
    x[63 - i] = 7;
    block::sync();
    if a < b {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[kernel(block = 32, grid = 1)]
fn after_others_or_equal(x: &mut [u32]) {
    let i = 2 * thread::x();
    let (a, b) = (x[i], x[i + 1]);
    block::sync();
    x[63 - i] = 7;
    block::sync();
    if a <= b {
        x[i] = b;
        x[i + 1] = a;
    }
}

#[test]
fn equal_integers_may_be_exchanged_or_not() {
    same!(in_order, in_order_or_equal);
    different!(doubled, doubled_or_equal);
    different!(floats_in_order, floats_in_order_or_equal);
    different!(counted, counted_or_equal);
    different!(elsewhere, elsewhere_or_equal);
    different!(after_others, after_others_or_equal);
}
