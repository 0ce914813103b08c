//! Faulty kernels with one fault each, and some correct ones.

use kernel_dsl::prelude::*;

#[kernel(block = 32, grid = y.len().div_ceil(32))]
pub fn off_by_one(y: &mut [f32]) {
    let i = grid::index();
    if i <= y.len() {
        y[i] = 1.0;
    }
}

#[kernel(block = 32, grid = y.len().div_ceil(32))]
#[requires(x.len() == y.len())]
pub fn right(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i >= y.len() {
        return;
    }
    y[i] = 2.0 * x[i];
}

#[kernel(block = 32, grid = 1)]
pub fn before(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i - 1];
}

#[kernel(block = 32, grid = 1)]
pub fn wrapped(x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    y[i] = x[i.wrapping_sub(1)];
}

#[kernel(block = 32, grid = 1)]
pub fn scaled(step: usize, y: &mut [f32]) {
    let i = thread::x();
    if i % 4 == 0 && i < 8 {
        y[i * step] = 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn added(from: usize, y: &mut [f32]) {
    let i = thread::x();
    y[i + from] = 1.0;
}

/// Writes every `step`-th element.
#[kernel(block = 32, grid = 1)]
pub fn stepped(step: usize, y: &mut [f32]) {
    for i in (thread::x()..y.len()).step_by(step) {
        y[i] = 1.0;
    }
}

/// Writes every `step`-th element, with 64-bit and with signed 32-bit counters.
#[kernel(block = 32, grid = 1)]
pub fn stepped_wide(step: usize, y: &mut [f32]) {
    for i in (thread::x() as i64..y.len() as i64).step_by(step) {
        y[(i & 0xffff_ffff) as usize] = 1.0;
    }
    for i in (thread::x() as i32..y.len() as i32).step_by(step) {
        y[i as usize] += 1.0;
    }
}

/// Counts the iterations of loops whose next index would exceed its type.
#[kernel(block = 32, grid = 1)]
pub fn ranges_to_the_end(step: usize, y: &mut [f32]) {
    let mut iterations = [0u32; 4];
    for _ in (0u32..u32::MAX).step_by(step) {
        iterations[0] += 1;
    }
    for _ in (i32::MIN..i32::MAX).step_by(step) {
        iterations[1] += 1;
    }
    for _ in (u64::MAX - 7..u64::MAX).step_by(step) {
        iterations[2] += 1;
    }
    for _ in (i64::MAX - 7..i64::MAX).step_by(step) {
        iterations[3] += 1;
    }
    y[thread::x()] = (1000 * iterations[0] + 100 * iterations[1] + 10 * iterations[2] + iterations[3]) as f32;
}

/// More nested arrays than a record can hold indices for.
#[allow(clippy::type_complexity)]
#[device]
const CUBES: [[[[[[f32; 2]; 2]; 2]; 2]; 2]; 2] = [[[[[[1.0, 2.0]; 2]; 2]; 2]; 2]; 2];

#[kernel(block = 32, grid = 1)]
pub fn in_six_arrays(i: usize, y: &mut [f32]) {
    y[thread::x()] = CUBES[i][i][i][i][i][thread::x() % 2];
}

/// Sums rows with a moving view, in steps of any width, until an element is negative.
#[kernel(block = 32, grid = 1)]
pub fn running(x: View<f32, 2>, width: usize, y: &mut [f32]) {
    let (mut rows, mut sum) = (x, 0.0);
    for _ in (0..x.dim(0)).step_by(width) {
        let element = rows[(0, thread::x())];
        if element < 0.0 {
            break;
        }
        sum += element;
        rows = rows.offset((width, 0));
        block::sync();
    }
    y[thread::x()] = sum;
}

#[kernel(block = 32, grid = 1)]
pub fn beyond_shared(y: &mut [f32]) {
    let mut tile = Shared::<f32, 1>::new([32]);
    tile[thread::x() + 1] = y[thread::x()];
    block::sync();
    if thread::x() > 0 {
        y[thread::x()] = tile[thread::x()];
    }
}

#[kernel(block = 32, grid = 1)]
pub fn beyond_row(y: &mut [f32]) {
    let mut tile = Shared::<f32, 2>::new([4, 8]);
    tile[(thread::x() / 9, thread::x() % 9)] = y[thread::x()];
}

#[kernel(block = 32, grid = 1)]
pub fn column(mut y: ViewMut<f32, 2>) {
    let i = thread::x();
    y[(i / 8, i % 8 + 1)] = 9.0;
}

#[kernel(block = 32, grid = 1)]
pub fn far_row(row: usize, x: View<f32, 2>, y: &mut [f32]) {
    let i = thread::x();
    y[i] = x.at(row)[i];
}

#[kernel(block = 32, grid = 1)]
pub fn far_offset(row: usize, x: View<f32, 2>, y: &mut [f32]) {
    let i = thread::x();
    let moved = x.offset((row, 0));
    y[i] = moved[(0, i)];
}

#[kernel(block = 32, grid = 1)]
pub fn stepping(end: usize, step: usize, y: &mut [f32]) {
    let mut n = 0.0;
    for k in (0..end).step_by(step) {
        if k < y.len() {
            n += y[k];
        }
    }
    block::sync();
    y[thread::x()] = n;
}

#[device]
fn fetch(x: View<f32, 1>, i: usize) -> f32 {
    x[i]
}

#[kernel(block = 32, grid = 1)]
pub fn caller(x: View<f32, 1>, y: &mut [f32]) {
    y[thread::x()] = fetch(x, thread::x());
}

#[device]
pub const SQUARES: [f32; 8] = [0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0];

#[device]
pub const ROWS: [[i32; 3]; 4] = [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]];

/// Reads beyond one table, and in the second table beyond a row.
#[kernel(block = 32, grid = 1)]
pub fn beyond_table(n: usize, y: &mut [f32]) {
    let i = thread::x();
    y[i] = SQUARES[i % n] + ROWS[i % 4][i % n % 4] as f32;
}

#[kernel(block = 40, grid = 1)]
pub fn asserted(limit: u32, y: &mut [f32]) {
    let i = thread::x();
    let x = if i < y.len() { y[i] } else { 0.0 };
    assert!(x < 20.0, "element {i} is above {limit} ({limit:#x}), {}", limit > 0);
    if i < y.len() {
        y[i] = x + 1.0;
    }
}

#[kernel(block = 32, grid = 1)]
pub fn asserted_wide(low: u32, y: &mut [f32]) {
    let wide = low as u64;
    assert_eq!(!wide << 32 | low as u64, wide << 32);
    y[thread::x()] = 0.0;
}

#[kernel(block = 32, grid = 1)]
pub fn panics(n: u32, y: &mut [f32]) {
    let i = thread::x();
    let x = if i as u32 == n { panic!("thread {i} of {} at {:?}", -(n as i32), y[i]) } else { 1.0 };
    y[i] = x;
}

#[kernel(block = 32, grid = 1)]
pub fn twice(y: &mut [f32]) {
    y[thread::x()] *= 2.0;
}

#[kernel(block = 32, grid = 1)]
pub fn twice_asserted(y: &mut [f32]) {
    let i = thread::x();
    assert!(y[i] > 0.0 && y[i] < 1.0 / y[i], "{} {}", y[i], y.len() / i);
    y[i] *= 2.0;
    debug_assert_ne!(y[i], 0.0);
}

#[kernel(block = 32, grid = 1, assertions)]
pub fn kept(y: &mut [f32]) {
    let i = thread::x();
    assert!(y[i] > 0.0, "{}", y.len() / i);
    debug_assert!(y[i] < 9.0);
    y[i] *= 2.0;
}

/// Copies the rows of `x`. All conditions follow from the contract and the loop.
#[kernel(block = 32, grid = y.rows())]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), x.cols() % 4 == 0, x.aligned(4), y.aligned(4))]
pub fn promised(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let row = block::x();
    for i in (thread::x() * 4..y.cols()).step_by(128) {
        let four: [f32; 4] = x.load((row, i));
        y.store((row, i), four);
    }
}

/// Copies the rows of `x` without a promise of alignment.
#[kernel(block = 32, grid = y.rows())]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), x.cols() % 4 == 0)]
pub fn unaligned(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let row = block::x();
    for i in (thread::x() * 4..y.cols()).step_by(128) {
        let four: [f32; 4] = x.load((row, i));
        y.store((row, i), four);
    }
}

/// Copies rows of `x`. The indices pass through an array of arrays.
#[kernel(block = 32, grid = y.rows())]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), x.cols() % 4 == 0, x.aligned(4), y.aligned(4))]
pub fn by_arrays(x: View<f32, 2>, y: ViewMut<f32, 2>) {
    let mut at = [[0usize; 2]; 2];
    for s in unroll(0..2) {
        at[s] = [block::x(), (32 * s + thread::x()) * 4];
    }
    for s in unroll(0..2) {
        let [row, i] = at[s];
        if i < y.cols() {
            let four: [f32; 4] = x.load((row, i));
            y.store((row, i), four);
        }
    }
}

/// Loads vectors at multiples of two elements. The indices pass through an array of arrays.
#[kernel(block = 32, grid = y.rows())]
#[requires(x.rows() == y.rows(), x.cols() == y.cols(), x.cols() % 4 == 0, x.aligned(4), y.aligned(4))]
pub fn by_arrays_of_pairs(x: View<f32, 2>, mut y: ViewMut<f32, 2>) {
    let mut at = [[0usize; 2]; 2];
    for s in unroll(0..2) {
        at[s] = [block::x(), (32 * s + thread::x()) * 2];
    }
    for s in unroll(0..2) {
        let [row, i] = at[s];
        if i + 4 <= y.cols() {
            let four: [f32; 4] = x.load((row, i));
            y[(row, i / 2)] = four[0] + four[3];
        }
    }
}

/// Compares a sum that may wrap with the extent, and then relies on the summands.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() == y.len())]
pub fn wraps_into_bounds(from: usize, x: &[f32], y: &mut [f32]) {
    let i = thread::x();
    if i + from < y.len() {
        y[i + from] = x[from];
    }
}

/// Makes the same sum and the same access in each iteration.
#[kernel(block = 32, grid = 1)]
pub fn repeated(from: usize, y: &mut [f32]) {
    let i = thread::x();
    for k in unroll(0..4) {
        y[i + from] += k as f32;
    }
}

/// Stores to the first element of a block's share, `more` blocks beyond the last block.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
pub fn last_block(more: usize, y: &mut [f32]) {
    let blocks = y.len().div_ceil(32);
    if thread::x() == 0 {
        y[(blocks - 1 + more) * 32] = 1.0;
    }
}

/// Stores to the first element of the last block's share.
#[kernel(block = 32, grid = y.len().div_ceil(32))]
pub fn last_block_alone(y: &mut [f32]) {
    if thread::x() == 0 {
        y[(y.len().div_ceil(32) - 1) * 32] = 1.0;
    }
}

/// Divides an index, by a number that may be 0, and by a minimum that is 0 if the number is.
#[kernel(block = 32, grid = 1)]
pub fn divided_by(n: usize, y: &mut [f32]) {
    let i = thread::x();
    if i < y.len() {
        y[i / n] = 1.0;
        y[i / n.min(8)] = 2.0;
        y[i % n] = 3.0;
    }
}

/// Divides an index, by a number that is not 0, and by its minimum with 8.
#[kernel(block = 32, grid = 1)]
#[requires(n > 0)]
pub fn divided_by_one_or_more(n: usize, y: &mut [f32]) {
    let i = thread::x();
    if i < y.len() {
        y[i / n] = 1.0;
        y[i / n.min(8)] = 2.0;
    }
}

/// Stores the numbers of blocks in groups of two rows. Each group begins `step` rows after the one
/// before.
#[kernel(block = 32, grid = y.dim(0).div_ceil(4) * y.dim(1).div_ceil(8))]
pub fn grouped_by(step: usize, mut y: ViewMut<f32, 2>) {
    let (rows, cols) = (y.dim(0).div_ceil(4), y.dim(1).div_ceil(8));
    let per = 2 * cols;
    let first = block::x() / per * step;
    let height = (rows - first).min(2);
    let (m, n) = (first + block::x() % per % height, block::x() % per / height);
    let (r, c) = (m * 4 + thread::x() / 8, n * 8 + thread::x() % 8);
    if r < y.dim(0) && c < y.dim(1) {
        y[(r, c)] = (m + n) as f32;
    }
}

/// Stores the numbers of blocks in groups of two rows.
#[kernel(block = 32, grid = y.dim(0).div_ceil(4) * y.dim(1).div_ceil(8))]
pub fn grouped(mut y: ViewMut<f32, 2>) {
    let (rows, cols) = (y.dim(0).div_ceil(4), y.dim(1).div_ceil(8));
    let per = 2 * cols;
    let first = block::x() / per * 2;
    let height = (rows - first).min(2);
    let (m, n) = (first + block::x() % per % height, block::x() % per / height);
    let (r, c) = (m * 4 + thread::x() / 8, n * 8 + thread::x() % 8);
    if r < y.dim(0) && c < y.dim(1) {
        y[(r, c)] = (m + n) as f32;
    }
}

/// Reads one number for all, one for each element, or the second of two for each.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() <= 1 || x.len() == y.len() || x.len() == 2 * y.len())]
pub fn picked(x: &[f32], y: &mut [f32]) {
    let (i, n) = (thread::x(), y.len());
    if i < n && !x.is_empty() {
        y[i] = x[if x.len() == 1 {
            0
        } else if x.len() == n {
            i
        } else {
            n + i
        }];
    }
}

/// Reads one number for each element, or the second of two for each.
#[kernel(block = 32, grid = 1)]
#[requires(x.len() <= 1 || x.len() == y.len() || x.len() == 2 * y.len())]
pub fn picked_of_many(x: &[f32], y: &mut [f32]) {
    let (i, n) = (thread::x(), y.len());
    if i < n && !x.is_empty() {
        y[i] = x[if x.len() == n { i } else { n + i }];
    }
}

/// Compares differences and products with their operands.
#[kernel(block = 32, grid = 1)]
pub fn less_than_operands(y: &mut [f32]) {
    let i = thread::x();
    let (more, product) = (i + 8, i * (i % 2));
    let difference = more - i.min(4);
    if difference < more {
        y[i] += 1.0;
    }
    if product < i {
        y[i] += 2.0;
    }
    if (y.len() as u64).wrapping_mul(1 << 59) < 32 {
        y[i] += 4.0;
    }
}

/// Stores to an element that an empty array lacks: one branch of the grid alone divides `len − 1`.
#[kernel(block = 256, grid = if x.len() == 0 { 1 } else { (x.len() - 1) / 256 + 1 })]
pub fn first_of_maybe_none(x: &mut [f32]) {
    x[0] = 1.0;
}

/// Multiplies a number that only one branch of the grid bounds.
#[kernel(block = 32, grid = if n > 70000 { 1000 } else { n * n / 256 })]
pub fn multiplied_beyond(n: usize, y: &mut [f32]) {
    if n * 4096 == 0 && grid::index() == 0 {
        y[0] = 1.0;
    }
}

#[device]
fn blocks_of(across: usize, copies: usize) -> usize {
    if copies > 2 { across * copies } else { across }
}

/// Stores to the first element of a block's share, by the remainder of the block's number.
#[kernel(block = 32, grid = blocks_of(y.len().div_ceil(32), copies))]
pub fn in_chosen_grid(copies: usize, y: &mut [f32]) {
    let across = y.len().div_ceil(32);
    let at = if block::x() < across { block::x() } else { block::x() % across };
    if thread::x() == 0 {
        y[at * 32] = 1.0;
    }
}

/// Stores to the first element of a block's share, by a remainder that may be `across`.
#[kernel(block = 32, grid = blocks_of(y.len().div_ceil(32), copies))]
pub fn beyond_chosen_grid(copies: usize, y: &mut [f32]) {
    let across = y.len().div_ceil(32);
    let at = if block::x() < across { block::x() } else { block::x() % (across + 1) };
    if thread::x() == 0 {
        y[at * 32] = 1.0;
    }
}

#[device]
fn tiles_along_x(across: usize, rows: usize) -> usize {
    if rows > 4 { across * rows } else { across }
}

#[device]
fn rows_along_y(rows: usize) -> usize {
    if rows > 4 { 1 } else { rows }
}

/// Stores to a row, of which a grid with more than four is folded along x.
#[kernel(block = 32, grid = (tiles_along_x(y.cols().div_ceil(32), y.rows()), rows_along_y(y.rows())))]
pub fn in_folded_grid(mut y: ViewMut<f32, 2>) {
    let across = y.cols().div_ceil(32);
    let at = block::x();
    let [tile, row] = if at < across { [at, block::y()] } else { [at % across, at / across % y.rows()] };
    let i = tile * 32 + thread::x();
    if i < y.cols() {
        y[(row, i)] = 1.0;
    }
}

/// Stores to the next row, which the last row of a folded grid lacks.
#[kernel(block = 32, grid = (tiles_along_x(y.cols().div_ceil(32), y.rows()), rows_along_y(y.rows())))]
pub fn beyond_folded_grid(mut y: ViewMut<f32, 2>) {
    let across = y.cols().div_ceil(32);
    let at = block::x();
    let [tile, row] = if at < across { [at, block::y()] } else { [at % across, at / across % y.rows() + 1] };
    let i = tile * 32 + thread::x();
    if i < y.cols() {
        y[(row, i)] = 1.0;
    }
}

/// Stores to elements whose index has an inverted bit.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 64, n <= 60)]
pub fn by_inverted_bit(n: usize, y: &mut [f32]) {
    let first = (n + thread::x()).min(60);
    y[first ^ 8] = 1.0;
    y[(first / 4 * 4 ^ 8) + 3] = 2.0;
}

/// Stores to elements whose index has an inverted bit. The bit of 2 leads beyond the last element.
#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 62)]
pub fn by_high_inverted_bit(n: usize, y: &mut [f32]) {
    let first = (n + thread::x()).min(60);
    y[first ^ 1] = 1.0;
    y[first ^ 2] = 2.0;
}
