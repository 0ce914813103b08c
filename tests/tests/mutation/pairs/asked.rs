//! Conjunctions in a branch, one operand of which is tested again.

use super::*;

#[kernel(block = 64, grid = 1)]
fn of_some(x: &[f32], y: &mut [f32], factor: &[f32]) {
    for i in (2 * thread::x()..y.len()).step_by(128) {
        let mut v = [1.0f32; 2];
        if factor.len() > 0 && i < x.len() {
            for e in unroll(0..2) {
                if i + e < x.len() {
                    v[e] = x[i + e] * factor[i % factor.len()];
                }
            }
        }
        y[i] = v[0] + v[1];
    }
}

#[kernel(block = 64, grid = 1)]
fn of_some_or_equal(x: &[f32], y: &mut [f32], factor: &[f32]) {
    for i in (2 * thread::x()..y.len()).step_by(128) {
        let mut v = [1.0f32; 2];
        if factor.len() > 0 && i <= x.len() {
            for e in unroll(0..2) {
                if i + e < x.len() {
                    v[e] = x[i + e] * factor[i % factor.len()];
                }
            }
        }
        y[i] = v[0] + v[1];
    }
}

/// Applies a factor with a single test for its presence.
#[kernel(block = 64, grid = 1)]
fn with_one_test(x: &[f32], y: &mut [f32], factor: &[f32]) {
    for i in (2 * thread::x()..y.len()).step_by(128) {
        let mut v = [1.0f32; 2];
        if i < x.len() {
            for e in unroll(0..2) {
                if i + e < x.len() {
                    v[e] = x[i + e] * factor[i % factor.len()];
                }
            }
        }
        y[i] = v[0] + v[1];
    }
}

#[kernel(block = 64, grid = 1)]
fn of_some_with_more(x: &[f32], y: &mut [f32], factor: &[f32]) {
    for i in (2 * thread::x()..y.len()).step_by(128) {
        let mut v = [1.0f32; 2];
        if factor.len() > 0 && i < x.len() {
            let own = factor[i % factor.len()];
            v[0] = x[i] * own;
            if i + 1 < x.len() {
                v[1] = x[i + 1] * own;
            }
        }
        y[i] = v[0] + v[1];
    }
}

#[kernel(block = 64, grid = 1)]
fn of_some_with_more_or_equal(x: &[f32], y: &mut [f32], factor: &[f32]) {
    for i in (2 * thread::x()..y.len()).step_by(128) {
        let mut v = [1.0f32; 2];
        if factor.len() > 0 && i <= x.len() {
            let own = factor[i % factor.len()];
            v[0] = x[i] * own;
            if i + 1 < x.len() {
                v[1] = x[i + 1] * own;
            }
        }
        y[i] = v[0] + v[1];
    }
}

#[test]
fn repeated_operand_of_a_conjunction_may_be_removed() {
    same!(of_some, of_some_or_equal);
    different!(of_some, with_one_test);
    different!(of_some_with_more, of_some_with_more_or_equal);
}
