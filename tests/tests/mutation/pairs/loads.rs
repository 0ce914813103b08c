//! Loads by several threads from one location: their values are equal if the stores are ordered
//! before.

use super::*;

#[kernel(block = 64, grid = 1)]
fn first_of_a_warp_stores(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[t / 32];
    if t % 32 == 0 {
        y[t / 32] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn another_of_a_warp_stores(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[t / 32];
    if t % 32 == 7 {
        y[t / 32] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn first_of_a_warp_stores_its_own(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[t];
    if t % 32 == 0 {
        y[t / 32] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn another_of_a_warp_stores_its_own(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[t];
    if t % 32 == 7 {
        y[t / 32] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn first_stores(x: &mut [f32], y: &mut [f32]) {
    let t = thread::x();
    x[t] = 2.0 * x[t];
    block::sync();
    let v = x[5];
    if t == 0 {
        y[0] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn one_of_another_warp_stores(x: &mut [f32], y: &mut [f32]) {
    let t = thread::x();
    x[t] = 2.0 * x[t];
    block::sync();
    let v = x[5];
    if t == 40 {
        y[0] = v;
    }
}

#[kernel(block = 64, grid = 1)]
fn one_of_another_warp_stores_where_it_comes(x: &mut [f32], y: &mut [f32]) {
    let t = thread::x();
    x[t] = 2.0 * x[t];
    block::sync();
    if x[63 - t] > 0.0 {
        let v = x[5];
        if t == 40 {
            y[0] = v;
        }
    }
}

#[kernel(block = 64, grid = 1)]
fn first_stores_where_it_comes(x: &mut [f32], y: &mut [f32]) {
    let t = thread::x();
    x[t] = 2.0 * x[t];
    block::sync();
    if x[63 - t] > 0.0 {
        let v = x[5];
        if t == 0 {
            y[0] = v;
        }
    }
}

#[test]
fn any_thread_may_store_what_all_have_loaded() {
    same!(first_of_a_warp_stores, another_of_a_warp_stores);
    different!(first_of_a_warp_stores_its_own, another_of_a_warp_stores_its_own);
    same!(first_stores, one_of_another_warp_stores);
    different!(first_stores_where_it_comes, one_of_another_warp_stores_where_it_comes);
}

#[kernel(block = 64, grid = 1)]
fn taken_in_turns(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([1]);
    let t = thread::x();
    for i in 0..x.len() {
        if t == 0 {
            s[0] = x[i];
        }
        block::sync();
        let v = s[0];
        if t == 1 {
            y[i] = v;
        }
        block::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn taken_in_turns_by_another(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([1]);
    let t = thread::x();
    for i in 0..x.len() {
        if t == 0 {
            s[0] = x[i];
        }
        block::sync();
        let v = s[0];
        if t == 33 {
            y[i] = v;
        }
        block::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn kept_from_the_turn_before(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([1]);
    let t = thread::x();
    let mut v = 0.0;
    for i in 0..x.len() {
        if t == 0 {
            s[0] = x[i];
        }
        block::sync();
        if x[t] > x[i] {
            v = s[0];
        }
        if t == 1 {
            y[i] = v;
        }
        block::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn kept_from_the_turn_before_by_another(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([1]);
    let t = thread::x();
    let mut v = 0.0;
    for i in 0..x.len() {
        if t == 0 {
            s[0] = x[i];
        }
        block::sync();
        if x[t] > x[i] {
            v = s[0];
        }
        if t == 33 {
            y[i] = v;
        }
        block::sync();
    }
}

#[test]
fn loads_of_different_iterations_differ() {
    same!(taken_in_turns, taken_in_turns_by_another);
    different!(kept_from_the_turn_before, kept_from_the_turn_before_by_another);
}
