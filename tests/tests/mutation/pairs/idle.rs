//! Operations without an effect, and comparisons that differ only where both operands are equal.

use super::*;

#[kernel(block = 64, grid = 1)]
fn met_twice(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[63 - t];
    block::sync();
    p[t] = v + 1.0;
    block::sync();
    y[t] = p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_once(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[63 - t];
    p[t] = v + 1.0;
    block::sync();
    y[t] = p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_in_one_array(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[63 - t];
    block::sync();
    s[t] = v + 1.0;
    block::sync();
    y[t] = s[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_once_in_one_array(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    block::sync();
    let v = s[63 - t];
    s[t] = v + 1.0;
    block::sync();
    y[t] = s[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_in_global_memory(y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    y[t] = t as f32;
    block::sync();
    z[t] = y[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn not_met_in_global_memory(y: &mut [f32], z: &mut [f32]) {
    let t = thread::x();
    y[t] = t as f32;
    z[t] = y[63 - t];
}

/// Stores in the next iteration to elements that other threads still load.
#[kernel(block = 64, grid = 1)]
fn met_in_turns(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
        block::sync();
    }
    y[t] = sum;
}

#[kernel(block = 64, grid = 1)]
fn met_once_in_turns(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
    }
    y[t] = sum;
}

/// Stores, after leaving the loop, to elements that other threads still load.
#[kernel(block = 64, grid = 1)]
fn met_before_leaving(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled(0..x.len()) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
        block::sync();
        if i > 7 {
            break;
        }
        p[t] = sum;
        block::sync();
        sum += p[63 - t];
    }
    s[t] = sum;
    block::sync();
    y[t] = s[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn not_met_before_leaving(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled(0..x.len()) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
        if i > 7 {
            break;
        }
        p[t] = sum;
        block::sync();
        sum += p[63 - t];
    }
    s[t] = sum;
    block::sync();
    y[t] = s[63 - t];
}

/// Has a barrier at the end of the loop.
#[kernel(block = 64, grid = 1)]
fn met_behind_turns(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
        block::sync();
    }
    p[t] = sum;
    block::sync();
    s[t] = x[t];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_once_behind_turns(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
        block::sync();
    }
    p[t] = sum;
    s[t] = x[t];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

/// Has loads at the end of the loop from elements stored after it.
#[kernel(block = 64, grid = 1)]
fn met_behind_loads(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        block::sync();
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
    }
    p[t] = sum;
    block::sync();
    s[t] = x[t];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_once_behind_loads(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    let mut sum = 0.0;
    for i in rolled((0..x.len()).step_by(64)) {
        block::sync();
        s[t] = x[i];
        block::sync();
        sum += s[63 - t];
    }
    p[t] = sum;
    s[t] = x[t];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn warp_met_twice(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    s[t] = x[t];
    warp::sync();
    p[t] = x[t + 64];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn warp_met_once(x: &[f32], y: &mut [f32]) {
    let (mut s, mut p) = (Shared::<f32, 1>::new([64]), Shared::<f32, 1>::new([64]));
    let t = thread::x();
    s[t] = x[t];
    p[t] = x[t + 64];
    block::sync();
    y[t] = s[63 - t] + p[63 - t];
}

/// Uses a warp barrier, which does not order other warps.
#[kernel(block = 64, grid = 1)]
fn met_by_block(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    warp::sync();
    block::sync();
    y[t] = s[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_by_warp(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    warp::sync();
    y[t] = s[63 - t];
}

#[kernel(block = 64, grid = 1)]
fn met_by_nobody(x: &[f32], y: &mut [f32]) {
    let mut s = Shared::<f32, 1>::new([64]);
    let t = thread::x();
    s[t] = x[t];
    y[t] = s[63 - t];
}

#[test]
fn barrier_without_conflicts_may_be_removed() {
    same!(met_twice, met_once);
    different!(met_in_one_array, met_once_in_one_array);
    same!(met_behind_turns, met_once_behind_turns);
    different!(met_behind_loads, met_once_behind_loads);
    same!(warp_met_twice, warp_met_once);
    different!(met_by_block, met_by_warp);
    different!(met_by_warp, met_by_nobody);
    different!(met_in_global_memory, not_met_in_global_memory);
    different!(met_in_turns, met_once_in_turns);
    different!(met_before_leaving, not_met_before_leaving);
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds(x: &[u32], y: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    if n > 0 {
        y.fetch_add(t, n);
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_always(x: &[u32], y: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    y.fetch_add(t, n);
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_more_than_one(x: &[u32], y: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    if n > 1 {
        y.fetch_add(t, n);
    }
}

/// Adds to an element that may not exist.
#[kernel(block = 64, grid = 1)]
fn adds_somewhere(x: &[u32], y: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    if n > 0 {
        y.fetch_add(t, n);
    }
}

#[kernel(block = 64, grid = 1)]
fn adds_somewhere_always(x: &[u32], y: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    y.fetch_add(t, n);
}

/// Adds to an element that another thread may load at the same time.
#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_beside_a_load(x: &[u32], y: &mut [u32], z: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    if n > 0 {
        y.fetch_add(t, n);
    }
    z[t] = y[63 - t];
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_always_beside_a_load(x: &[u32], y: &mut [u32], z: &mut [u32]) {
    let (t, n) = (thread::x(), x[thread::x()]);
    y.fetch_add(t, n);
    z[t] = y[63 - t];
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_one(x: &[u32], y: &mut [u32]) {
    if x[thread::x()] > 0 {
        y.fetch_add(thread::x(), 1);
    }
}

#[kernel(block = 64, grid = 1)]
#[requires(y.len() == 64)]
fn adds_one_always(y: &mut [u32]) {
    y.fetch_add(thread::x(), 1);
}

#[kernel(block = 64, grid = 1)]
fn adds_in_a_loop(x: &[u32], y: &mut [u32]) {
    for i in (thread::x()..y.len()).step_by(64) {
        let n = x[i];
        if n > 0 {
            y.fetch_add(i, n);
        }
    }
}

#[kernel(block = 64, grid = 1)]
fn adds_in_a_loop_always(x: &[u32], y: &mut [u32]) {
    for i in (thread::x()..y.len()).step_by(64) {
        let n = x[i];
        y.fetch_add(i, n);
    }
}

#[test]
fn zero_may_be_added_to_an_existing_element() {
    same!(adds, adds_always);
    same!(adds_in_a_loop, adds_in_a_loop_always);
    different!(adds, adds_more_than_one);
    different!(adds_somewhere, adds_somewhere_always);
    different!(adds_beside_a_load, adds_always_beside_a_load);
    different!(adds_one, adds_one_always);
}

#[kernel(block = 64, grid = 1)]
fn asks_twice(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let (mut a, mut b) = (x[t], x[t + 64]);
    if w.len() != 0 && t < y.len() {
        let of = w.len() / 3;
        if t < y.len() && w.len() != 0 {
            a *= w[of];
        }
        if t + 64 < y.len() {
            if w.len() != 0 {
                b *= w[of + 1];
            }
        }
    }
    y[t] = a;
    y[t + 64] = b;
}

#[kernel(block = 64, grid = 1)]
fn asks_once(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let (mut a, mut b) = (x[t], x[t + 64]);
    let of = w.len() / 3;
    if t < y.len() && w.len() != 0 {
        a *= w[of];
    }
    if t + 64 < y.len() {
        if w.len() != 0 {
            b *= w[of + 1];
        }
    }
    y[t] = a;
    y[t + 64] = b;
}

/// Tests two indices; the second may be below the end where the first is not.
#[kernel(block = 64, grid = 1)]
fn asks_for_more(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let (mut a, mut b) = (x[t], x[t + 64]);
    if t + 64 < y.len() {
        if t + 64 < y.len() {
            a *= w[1];
        }
        if t < y.len() {
            b *= w[2];
        }
    }
    y[t] = a;
    y[t + 64] = b;
}

#[kernel(block = 64, grid = 1)]
fn asks_for_less(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let (mut a, mut b) = (x[t], x[t + 64]);
    if t + 64 < y.len() {
        a *= w[1];
    }
    if t < y.len() {
        b *= w[2];
    }
    y[t] = a;
    y[t + 64] = b;
}

/// Has an effect without a test.
#[kernel(block = 64, grid = 1)]
fn asks_for_one(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut a = x[t];
    if t < y.len() {
        if t < y.len() {
            a *= w[1];
        }
        a += 1.0;
    }
    y[t] = a;
}

#[kernel(block = 64, grid = 1)]
fn asks_for_one_of_both(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut a = x[t];
    if t < y.len() {
        a *= w[1];
    }
    a += 1.0;
    y[t] = a;
}

/// Loads an element that may not exist.
#[kernel(block = 64, grid = 1)]
fn asks_for_a_load(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut a = x[t];
    if t < w.len() {
        let v = w[t];
        if t < w.len() {
            a *= v;
        }
    }
    y[t] = a;
}

#[kernel(block = 64, grid = 1)]
fn asks_behind_a_load(x: &[f32], w: &[f32], y: &mut [f32]) {
    let t = thread::x();
    let mut a = x[t];
    let v = w[t];
    if t < w.len() {
        a *= v;
    }
    y[t] = a;
}

#[test]
fn repeated_condition_may_be_removed() {
    same!(asks_twice, asks_once);
    different!(asks_for_more, asks_for_less);
    different!(asks_for_one, asks_for_one_of_both);
    different!(asks_for_a_load, asks_behind_a_load);
}

#[kernel(block = 64, grid = 1)]
fn below(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v < -104.0 { -104.0 } else { v };
}

#[kernel(block = 64, grid = 1)]
fn below_or_equal(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v <= -104.0 { -104.0 } else { v };
}

/// Replaces −0 by 0.
#[kernel(block = 64, grid = 1)]
fn below_zero(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v < 0.0 { 0.0 } else { v };
}

#[kernel(block = 64, grid = 1)]
fn below_or_equal_zero(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v <= 0.0 { 0.0 } else { v };
}

#[kernel(block = 64, grid = 1)]
fn below_another(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v < -104.0 { -105.0 } else { v };
}

#[kernel(block = 64, grid = 1)]
fn below_or_equal_another(x: &[f32], y: &mut [f32]) {
    let v = x[thread::x()];
    y[thread::x()] = if v <= -104.0 { -105.0 } else { v };
}

#[kernel(block = 64, grid = 1)]
fn left_behind(n: usize, y: &mut [u32]) {
    let t = thread::x();
    let left = if t < n { n - t } else { 0 };
    y[t] = left as u32;
}

#[kernel(block = 64, grid = 1)]
fn left_behind_or_nothing(n: usize, y: &mut [u32]) {
    let t = thread::x();
    let left = if t <= n { n - t } else { 0 };
    y[t] = left as u32;
}

#[kernel(block = 64, grid = 1)]
fn left_behind_or_one(n: usize, y: &mut [u32]) {
    let t = thread::x();
    let left = if t < n { n - t } else { 1 };
    y[t] = left as u32;
}

#[kernel(block = 64, grid = 1)]
fn left_behind_or_equal_or_one(n: usize, y: &mut [u32]) {
    let t = thread::x();
    let left = if t <= n { n - t } else { 1 };
    y[t] = left as u32;
}

/// Stores the bits of 0 and −0, which are equal but have other bits.
#[kernel(block = 64, grid = 1)]
fn bits_below(x: &[f32], y: &mut [u32]) {
    let t = thread::x();
    let (a, b) = (x[t], x[t + 64]);
    y[t] = if a < b { a.to_bits() } else { b.to_bits() };
}

#[kernel(block = 64, grid = 1)]
fn bits_below_or_equal(x: &[f32], y: &mut [u32]) {
    let t = thread::x();
    let (a, b) = (x[t], x[t + 64]);
    y[t] = if a <= b { a.to_bits() } else { b.to_bits() };
}

#[test]
fn either_of_two_equal_values_may_be_selected() {
    same!(below, below_or_equal);
    same!(left_behind, left_behind_or_nothing);
    different!(left_behind_or_one, left_behind_or_equal_or_one);
    different!(bits_below, bits_below_or_equal);
    different!(below_zero, below_or_equal_zero);
    different!(below_another, below_or_equal_another);
}

#[kernel(block = 1, grid = 7)]
fn of_matrix(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (matrix, place) = if i >= n { (i / n, i - i / n * n) } else { (0, i) };
    y[i] = x[matrix * 100 + place];
}

#[kernel(block = 1, grid = 7)]
fn of_matrix_divided(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (matrix, place) = (i / n, i - i / n * n);
    y[i] = x[matrix * 100 + place];
}

#[kernel(block = 1, grid = 7)]
fn of_later_matrix(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (matrix, place) = if i >= n + 1 { (i / n, i - i / n * n) } else { (0, i) };
    y[i] = x[matrix * 100 + place];
}

#[kernel(block = 1, grid = 7)]
fn of_second_matrix(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (matrix, place) = if i >= n { (i / n, i - i / n * n) } else { (1, i) };
    y[i] = x[matrix * 100 + place];
}

/// Divides a quotient that is 0 once more.
#[kernel(block = 1, grid = 7)]
fn of_plane(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (plane, matrix) = if i >= n { (i / n / 3, i / n % 3) } else { (0, 0) };
    y[i] = x[plane * 100 + matrix];
}

#[kernel(block = 1, grid = 7)]
fn of_plane_divided(n: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (plane, matrix) = (i / n / 3, i / n % 3);
    y[i] = x[plane * 100 + matrix];
}

/// Divides by `m`, which may be 0, only where `i` is at least `n`.
#[kernel(block = 1, grid = 7)]
fn of_any_plane(n: usize, m: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (plane, matrix) = if i >= n { (i / n / m, i / n % m) } else { (0, 0) };
    y[i] = x[plane * 100 + matrix];
}

#[kernel(block = 1, grid = 7)]
fn of_any_plane_divided(n: usize, m: usize, x: &[f32], y: &mut [f32]) {
    let i = block::x() + block::y();
    let (plane, matrix) = (i / n / m, i / n % m);
    y[i] = x[plane * 100 + matrix];
}

/// Divides 0 by a number that may be 0.
#[kernel(block = 1, grid = 7)]
fn quotient_of_zero(n: usize, y: &mut [u32]) {
    y[block::x()] = (thread::x() / n) as u32;
}

#[kernel(block = 1, grid = 7)]
fn remainder_of_zero(n: usize, y: &mut [u32]) {
    y[block::x()] = (thread::x() % n) as u32;
}

#[kernel(block = 1, grid = 7)]
fn zero_itself(_n: usize, y: &mut [u32]) {
    y[block::x()] = thread::x() as u32;
}

#[test]
fn quotient_below_the_divisor_is_zero() {
    same!(of_matrix, of_matrix_divided);
    same!(of_plane, of_plane_divided);
    different!(of_later_matrix, of_matrix_divided);
    different!(of_second_matrix, of_matrix_divided);
    different!(of_any_plane, of_any_plane_divided);
}

#[test]
fn zero_divided_by_a_number_that_may_be_zero_is_not_zero() {
    same!(quotient_of_zero, remainder_of_zero);
    different!(quotient_of_zero, zero_itself);
}

#[kernel(block = 64, grid = x.rows())]
#[requires(x.cols() % 4 == 0)]
fn quads(x: View<f32, 2>, y: &mut [f32]) {
    let (i, n) = (thread::x(), x.cols() / 4);
    if i < n {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = x.rows())]
#[requires(x.cols() % 4 == 0)]
fn quads_and_more(x: View<f32, 2>, y: &mut [f32]) {
    let (i, n) = (thread::x(), (x.cols() + 3) / 4);
    if i < n {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = x.rows())]
#[requires(x.cols() % 4 == 0)]
fn quads_and_one(x: View<f32, 2>, y: &mut [f32]) {
    let (i, n) = (thread::x(), (x.cols() + 4) / 4);
    if i < n {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = x.rows())]
#[requires(x.cols() % 2 == 0)]
fn of_pairs(x: View<f32, 2>, y: &mut [f32]) {
    let (i, n) = (thread::x(), x.cols() / 4);
    if i < n {
        y[i] = 1.0;
    }
}

#[kernel(block = 64, grid = x.rows())]
#[requires(x.cols() % 2 == 0)]
fn of_pairs_and_more(x: View<f32, 2>, y: &mut [f32]) {
    let (i, n) = (thread::x(), (x.cols() + 3) / 4);
    if i < n {
        y[i] = 1.0;
    }
}

#[test]
fn multiple_has_no_remainder_to_add_to() {
    same!(quads, quads_and_more);
    different!(quads, quads_and_one);
    different!(of_pairs, of_pairs_and_more);
}

#[kernel(block = 64, grid = 1)]
fn masked_twice(x: &[f16], y: &mut [f32]) {
    let i = thread::x();
    let v = if i < x.len() { x[i] } else { f16::from_f32(0.0) };
    y[i] = if i < x.len() { v.to_f32() } else { 0.0 };
}

#[kernel(block = 64, grid = 1)]
fn masked_once(x: &[f16], y: &mut [f32]) {
    let i = thread::x();
    let v = if i < x.len() { x[i] } else { f16::from_f32(0.0) };
    y[i] = v.to_f32();
}

/// Gets 1 where the element is not loaded.
#[kernel(block = 64, grid = 1)]
fn masked_of_one_twice(x: &[f16], y: &mut [f32]) {
    let i = thread::x();
    let v = if i < x.len() { x[i] } else { f16::from_f32(1.0) };
    y[i] = if i < x.len() { v.to_f32() } else { 0.0 };
}

#[kernel(block = 64, grid = 1)]
fn masked_of_one_once(x: &[f16], y: &mut [f32]) {
    let i = thread::x();
    let v = if i < x.len() { x[i] } else { f16::from_f32(1.0) };
    y[i] = v.to_f32();
}

/// Loads elements, some of which are not used.
#[kernel(block = 64, grid = 1)]
fn masked_by_less(x: &[f16], y: &mut [f32]) {
    let i = thread::x();
    let v = if i < x.len() { x[i] } else { f16::from_f32(0.0) };
    y[i] = if i + 1 < x.len() { v.to_f32() } else { 0.0 };
}

#[test]
fn value_that_is_zero_elsewhere_needs_no_select() {
    same!(masked_twice, masked_once);
    different!(masked_of_one_twice, masked_of_one_once);
    different!(masked_by_less, masked_once);
}
