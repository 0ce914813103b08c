//! Multiples of powers of two, and extents with a block for each index.

use super::*;

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 3 < x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours_or_equal(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 3 <= x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours_always(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        y[at] = x[at];
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours_and_more(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 4 < x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours_and_more_or_equal(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 4 <= x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn by_fours_and_seven_or_equal(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 7 <= x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 2 == 0)]
fn by_twos(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 2 < x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 2 == 0)]
fn by_twos_or_equal(x: &[f32], y: &mut [f32]) {
    for at in (4 * thread::x()..x.len()).step_by(256) {
        if at + 2 <= x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn from_anywhere(x: &[f32], y: &mut [f32]) {
    for at in (thread::x()..x.len()).step_by(64) {
        if at + 3 < x.len() {
            y[at] = x[at];
        }
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() == y.len(), x.len() % 4 == 0)]
fn from_anywhere_or_equal(x: &[f32], y: &mut [f32]) {
    for at in (thread::x()..x.len()).step_by(64) {
        if at + 3 <= x.len() {
            y[at] = x[at];
        }
    }
}

#[test]
fn less_than_four_makes_no_difference_between_multiples_of_four() {
    same!(by_fours, by_fours_or_equal);
    same!(by_fours, by_fours_always);
    same!(by_fours_and_more, by_fours_and_seven_or_equal);
    different!(by_fours, by_fours_and_more);
    different!(by_fours_and_more, by_fours_and_more_or_equal);
    different!(by_twos, by_twos_or_equal);
    different!(from_anywhere, from_anywhere_or_equal);
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 8 == 0)]
fn words_of(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = (x.len() / 4) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 8 == 0)]
fn words_of_three_more(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = ((x.len() + 3) / 4) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 8 == 0)]
fn words_of_four_more(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = ((x.len() + 4) / 4) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 2 == 0)]
fn words_of_any(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = (x.len() / 4) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 2 == 0)]
fn words_of_any_three_more(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = ((x.len() + 3) / 4) as u32;
    }
}

#[test]
fn addend_below_the_divisor_does_not_change_a_quotient() {
    same!(words_of, words_of_three_more);
    different!(words_of, words_of_four_more);
    different!(words_of_any, words_of_any_three_more);
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 3 == 0)]
fn thirds(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = (x.len() / 3) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 3 == 0)]
fn thirds_of_one_more(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = ((x.len() + 1) / 3) as u32;
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(x.len() % 3 == 0)]
fn thirds_of_one_more_or_of_nothing(x: &[f32], y: &mut [u32]) {
    if thread::x() < y.len() {
        y[thread::x()] = (x.len().wrapping_add(1) / 3) as u32;
    }
}

/// Checks that a multiple of three may be 2³² − 1, so that adding one wraps.
#[test]
fn multiple_of_three_plus_one_may_wrap() {
    different!(thirds, thirds_of_one_more);
    different!(thirds, thirds_of_one_more_or_of_nothing);
}

#[kernel(block = 1, grid = y.len().div_ceil(1))]
fn a_block_for_each(y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i < y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len().div_ceil(1))]
fn a_block_for_each_below_more(y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i < y.len().wrapping_add(1) {
        y[i] = 1.0;
    }
}

#[kernel(block = 2, grid = y.len().div_ceil(1))]
fn two_threads_for_each(y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i < y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 2, grid = y.len().div_ceil(1))]
fn two_threads_for_each_below_more(y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i < y.len().wrapping_add(1) {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len().div_ceil(1))]
fn another_of_which_there_may_be_as_many_as_fit(x: &[f32], y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i <= x.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 1, grid = y.len().div_ceil(1))]
fn another_of_which_there_may_be_as_many_as_fit_below_more(x: &[f32], y: &mut [f32]) {
    let i = block::x() + thread::x();
    if i < x.len().wrapping_add(1) {
        y[i] = 1.0;
    }
}

#[test]
fn number_of_blocks_plus_one_does_not_wrap() {
    same!(a_block_for_each, a_block_for_each_below_more);
    different!(two_threads_for_each, two_threads_for_each_below_more);
    different!(another_of_which_there_may_be_as_many_as_fit, another_of_which_there_may_be_as_many_as_fit_below_more);
}
