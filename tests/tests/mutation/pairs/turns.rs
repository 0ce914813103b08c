//! Loop iterations without an effect.

use super::*;

#[kernel(block = 64, grid = 1)]
fn largest_of_kept(x: &[u32], floor: u32, y: &mut [u32]) {
    let mut best = 0u32;
    for i in (2 * thread::x()..x.len()).step_by(128) {
        let mut kept = [false; 2];
        for e in unroll(0..2) {
            if i + e < x.len() {
                kept[e] = x[i + e] >= floor;
            }
        }
        if kept[0] || kept[1] {
            best = best.max(i as u32 + 1);
        }
    }
    y[thread::x()] = best;
}

#[kernel(block = 64, grid = 1)]
fn largest_of_kept_and_on(x: &[u32], floor: u32, y: &mut [u32]) {
    let mut best = 0u32;
    for i in (2 * thread::x()..x.len() + 1).step_by(128) {
        let mut kept = [false; 2];
        for e in unroll(0..2) {
            if i + e < x.len() {
                kept[e] = x[i + e] >= floor;
            }
        }
        if kept[0] || kept[1] {
            best = best.max(i as u32 + 1);
        }
    }
    y[thread::x()] = best;
}

#[kernel(block = 64, grid = 1)]
fn largest_of_others(x: &[u32], floor: u32, y: &mut [u32]) {
    let mut best = 0u32;
    for i in (2 * thread::x()..x.len()).step_by(128) {
        let mut kept = [true; 2];
        for e in unroll(0..2) {
            if i + e < x.len() {
                kept[e] = x[i + e] >= floor;
            }
        }
        if kept[0] || kept[1] {
            best = best.max(i as u32 + 1);
        }
    }
    y[thread::x()] = best;
}

#[kernel(block = 64, grid = 1)]
fn largest_of_others_and_on(x: &[u32], floor: u32, y: &mut [u32]) {
    let mut best = 0u32;
    for i in (2 * thread::x()..x.len() + 1).step_by(128) {
        let mut kept = [true; 2];
        for e in unroll(0..2) {
            if i + e < x.len() {
                kept[e] = x[i + e] >= floor;
            }
        }
        if kept[0] || kept[1] {
            best = best.max(i as u32 + 1);
        }
    }
    y[thread::x()] = best;
}

#[kernel(block = 64, grid = 1)]
fn added_up(x: &[f32], z: &[f32], both: u32, y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len()).step_by(64) {
        let mut v = if i < x.len() { x[i] } else { 0.0 };
        if both == 1 {
            v += if i < x.len() { z[i] } else { 0.0 };
        }
        sum += v;
    }
    y[thread::x()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn added_up_and_on(x: &[f32], z: &[f32], both: u32, y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len() + 1).step_by(64) {
        let mut v = if i < x.len() { x[i] } else { 0.0 };
        if both == 1 {
            v += if i < x.len() { z[i] } else { 0.0 };
        }
        sum += v;
    }
    y[thread::x()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn added_up_with_one(x: &[f32], z: &[f32], both: u32, y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len()).step_by(64) {
        let mut v = if i < x.len() { x[i] } else { 0.0 };
        if both == 1 {
            v += if i < x.len() { z[i] } else { 1.0 };
        }
        sum += v;
    }
    y[thread::x()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn added_up_with_one_and_on(x: &[f32], z: &[f32], both: u32, y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len() + 1).step_by(64) {
        let mut v = if i < x.len() { x[i] } else { 0.0 };
        if both == 1 {
            v += if i < x.len() { z[i] } else { 1.0 };
        }
        sum += v;
    }
    y[thread::x()] = sum;
}

/// Sums products: a product rounded to −0 leaves a sum that adding zero makes +0.
#[kernel(block = 64, grid = 1)]
fn products(x: &[f32], z: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len()).step_by(64) {
        let v = if i < x.len() { x[i] } else { 0.0 };
        let w = if i < x.len() { z[i] } else { 0.0 };
        sum = v.mul_add(w, sum);
    }
    y[thread::x()] = sum;
}

#[kernel(block = 64, grid = 1)]
fn products_and_on(x: &[f32], z: &[f32], y: &mut [f32]) {
    let mut sum = 0.0;
    for i in (thread::x()..x.len() + 1).step_by(64) {
        let v = if i < x.len() { x[i] } else { 0.0 };
        let w = if i < x.len() { z[i] } else { 0.0 };
        sum = v.mul_add(w, sum);
    }
    y[thread::x()] = sum;
}

#[test]
fn iteration_of_selects_without_an_effect_may_be_removed() {
    same!(largest_of_kept, largest_of_kept_and_on);
    different!(largest_of_others, largest_of_others_and_on);
    same!(added_up, added_up_and_on);
    different!(added_up_with_one, added_up_with_one_and_on);
    different!(products, products_and_on);
}
