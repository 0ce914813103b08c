//! Collective operations that not all threads reach.

#[kernel(block = 256, grid = 1)]
fn under_a_condition(y: &mut [f32]) {
    let i = grid::index();
    let inside = i < y.len();
    if inside {
        block::sync();
    }
}

#[kernel(block = 256, grid = 1)]
fn after_a_return(y: &mut [f32]) {
    let i = grid::index();
    if i >= y.len() {
        return;
    }
    let s = warp::sum(y[i]);
    y[i] = s;
}

#[kernel(block = 128, grid = 1)]
fn in_a_loop_of_its_own_length(y: &mut [f32]) {
    for i in (thread::x()..y.len()).step_by(128) {
        y[i] = 0.0;
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn in_a_loop_that_some_leave(y: &mut [f32]) {
    let mut k = 0;
    loop {
        block::sync();
        k += 1;
        if k + thread::x() > 200 {
            break;
        }
    }
}

#[kernel(block = 128, grid = 1)]
fn in_a_while_loop(y: &mut [f32]) {
    let mut i = thread::x();
    while i < y.len() {
        y[i] = warp::max(y[i]);
        i += 128;
    }
}

#[kernel(block = 128, grid = 1)]
fn after_a_continue(y: &mut [f32]) {
    for k in 0..8 {
        if thread::x() == k {
            continue;
        }
        block::sync();
    }
}

#[kernel(block = 128, grid = 1)]
fn block_wide_in_one_warp(y: &mut [f32]) {
    if warp::index() == 0 {
        y[0] = block::sum(1.0);
    }
}

#[kernel(block = (32, 4), grid = 1)]
fn row_by_row(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let row = block::x() * 4 + thread::y();
    if row >= x.rows() {
        return;
    }
    let s = warp::sum(x[(row, thread::x())]);
    block::sync();
    y[(row, 0)] = s;
}

#[kernel(block = 96, grid = 1)]
fn through_a_variable(n: usize, y: &mut [f32]) {
    let mut steps = n;
    if thread::x() > 40 {
        steps = 3;
    }
    for _ in 0..steps {
        warp::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn of_a_group(y: &mut [f32]) {
    let row = warp::group::<8>();
    if row.lane() < 3 {
        y[row.index()] = row.sum(1.0);
    }
}

#[device]
fn helper_last() -> bool {
    let t = thread::index();
    t == block::threads() - 1
}

#[device]
fn helper_meet() {
    block::sync();
}

#[kernel(block = 64, grid = 1)]
fn through_functions(y: &mut [f32]) {
    if helper_last() {
        helper_meet();
    }
}

#[kernel(block = 64, grid = 1)]
fn two_of_them(y: &mut [f32]) {
    if thread::x() < 7 {
        block::sync();
        y[0] = 1.0;
        block::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn left_by_a_break_from_within(y: &mut [f32]) {
    'rows: for r in 0..4 {
        for c in 0..4 {
            if r + thread::x() == 4 * c {
                break 'rows;
            }
        }
        block::sync();
    }
}

#[kernel(block = 64, grid = 1)]
fn as_often_as_a_loop_ran(y: &mut [f32]) {
    let mut trips = 0;
    for i in (thread::x()..y.len()).step_by(64) {
        trips += 1;
    }
    for _ in 0..trips {
        block::sync();
    }
}
