//! Of two conditions of a branch, one of which is asked for again.

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

/// Whether there is a factor is asked once alone.
#[kernel(block = 64, grid = 1)]
fn of_all(x: &[f32], y: &mut [f32], factor: &[f32]) {
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
fn a_condition_beside_another_need_not_be_asked_where_it_is_asked_again() {
    same!(of_some, of_some_or_equal);
    different!(of_some, of_all);
    different!(of_some_with_more, of_some_with_more_or_equal);
}
