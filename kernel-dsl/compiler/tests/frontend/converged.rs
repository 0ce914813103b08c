//! Valid programs with converged threads that are not obviously so. Each is accepted.

#[kernel(block = 256, grid = 1)]
fn rows_of_warps(x: View<f32, 2>, y: &mut [f32]) {
    let row = grid::index() / 32;
    if row < x.rows() {
        y[row] = warp::sum(x[(row, warp::lane())]);
    }
}

#[kernel(block = 256, grid = 1)]
fn rows_by_shift_and_mask(x: View<f32, 2>, y: &mut [f32]) {
    let (t, u) = (thread::x(), thread::x() as u32);
    if t >> 5 < x.rows() && t & !31 < 200 && u / 64 != 3 {
        y[t] = warp::sum(x[(t / 32, t % 32)]);
    }
    if t & 31 == t % 32 {
        warp::sync();
    }
}

#[kernel(block = (32, 4), grid = 1)]
fn a_row_a_warp(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let row = block::x() * 4 + thread::y();
    if row >= x.rows() {
        return;
    }
    for i in (thread::x()..x.cols()).step_by(32) {
        y[(row, i)] = x[(row, i)];
    }
    let s = warp::sum(x[(row, thread::x())]);
    y[(row, 0)] = s;
}

#[kernel(block = 256, grid = 1)]
fn known_trips(x: &[f32], y: &mut [f32]) {
    let s = Shared::<f32, 1>::new([1024]);
    for i in (thread::x()..1024).step_by(256) {
        s.fill(x[i]);
        block::sync();
    }
    for k in 4 * grid::index()..4 * grid::index() + 4 {
        warp::sync();
    }
    let first = thread::x() * 4;
    for k in first..first + y.len() {
        warp::sync();
    }
    if thread::x() < 300 {
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn in_step(n: usize, x: &[f32], y: &mut [f32]) {
    let mut i = warp::index() * 32;
    while i < n {
        y[i] = warp::sum(x[i + warp::lane()]);
        i += 128;
    }
    let mut t = thread::x();
    loop {
        if t / 32 >= n {
            break;
        }
        warp::sync();
        t += 128;
    }
}

#[kernel(block = 128, grid = 1)]
fn skipping_work_only(n: usize, y: &mut [f32]) {
    let mut k = 0;
    while k < n {
        block::sync();
        k += 1;
        if thread::x() > k {
            continue;
        }
        y[k] = 1.0;
    }
    for k in 0..n {
        for i in 0..4 {
            if i == thread::x() {
                break;
            }
        }
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn either_way(n: usize, y: &mut [f32]) {
    if n > 3 {
        if thread::x() < 5 {
            return;
        }
        y[0] = 1.0;
    } else {
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn through_memory(flags: &mut [u32], y: &mut [f32]) {
    let mut s = Shared::<u32, 1>::new([1]);
    if thread::x() == 0 {
        s[0] = flags[0];
    }
    block::sync();
    if s[0] > 3 {
        block::sync();
    }
    if flags[thread::x()] == 0 {
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn after_exchange(n: usize, lengths: &[u32], y: &mut [f32]) {
    let i = thread::x();
    if warp::any(i == n) {
        warp::sync();
    }
    if warp::shuffle(i, 3) < n {
        warp::sync();
    }
    if warp::max(i) < n {
        warp::sync();
    }
    for _ in 0..lengths[block::x()] {
        block::sync();
    }
    if block::any(i == n) {
        block::sync();
    }
    if block::max(i) > n {
        block::sync();
    }
}

#[kernel(block = 32, grid = 1)]
fn of_one_warp(n: usize, y: &mut [f32]) {
    if warp::ballot(thread::x() < n) == 7 {
        block::sync();
    }
}

#[kernel(block = (8, 8), grid = 1)]
fn of_elements(n: usize, y: &mut [f32]) {
    let bounds = [n, thread::x()];
    if bounds[0] > 3 {
        block::sync();
    }
    let mut last = thread::x();
    y[last] = 1.0;
    last = n;
    if last == 3 {
        block::sync();
    }
    let big = [thread::x(); 40];
    for i in unroll(0..40) {
        if big[i] == n {
            warp::sync();
        }
    }
    if thread::y() / 4 < n {
        warp::sync();
    }
}

#[device]
fn clipped(i: usize, n: usize) -> usize {
    if i >= n {
        return n;
    }
    i
}

#[kernel(block = 64, grid = 1, instances(WIDE = true | false))]
fn by_the_instance<const WIDE: bool>(n: usize, y: &mut [f32]) {
    let last = clipped(block::x(), n);
    if last > 2 {
        block::sync();
    }
    if WIDE {
        y[0] = block::sum(1.0);
    } else if thread::x() < 3 {
        y[0] = 1.0;
    }
}
