//! Rows of a table by index: the embedding of tokens.

use super::rows::div_rem;
use crate::Queue;
use crate::axes::{pieces_are_contiguous, pieces_are_contiguous_mut, widest};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use runtime::{BufferView, BufferViewMut, Error};

/// Copies `y[i]` ← `table[index[i]]`, with zeros if there is no such row, `V` elements at once.
///
/// A thread first waits for the indices of `N` pieces. Therefore the loads of all pieces are in
/// flight at once.
#[kernel(
    block = 256,
    grid = (y.rows() * (y.cols() / V)).div_ceil(256 * N),
    instances(T = f32, V = 4 | 1, N = 2; T = f16, V = 8, N = 4),
    writes(y = once),
)]
#[requires(
    index.len() == y.rows(), table.cols() == y.cols(), y.cols() % V == 0, table.aligned(V), y.aligned(V),
)]
pub fn gather_rows<T: Number, const V: usize, const N: usize>(
    table: View<T, 2>,
    index: View<u32, 1>,
    y: ViewMut<T, 2>,
) {
    let pieces = y.cols() / V;
    // Placeholders for pieces beyond the end: past the table, past the tokens.
    let mut from = [[table.rows(), y.rows(), 0]; N];
    for i in unroll(0..N) {
        let at = (block::x() * N + i) * 256 + thread::x();
        if at < y.rows() * pieces {
            let (row, piece) = div_rem(at, pieces);
            from[i] = [index[row] as usize, row, piece * V];
        }
    }
    let mut v = [[T::default(); V]; N];
    for i in unroll(0..N) {
        if from[i][0] < table.rows() {
            v[i] = table.load((from[i][0], from[i][2]));
        }
    }
    for i in unroll(0..N) {
        if from[i][1] < y.rows() {
            y.store((from[i][1], from[i][2]), v[i]);
        }
    }
}

/// Copies `y[i, j]` ← `table[index[i], j]`: the embedding of tokens. An index beyond the table's
/// rows gives zeros. The table is `[rows, n]` and y `[tokens, n]`, with a last stride of 1 and an
/// arbitrary row stride. 16 bytes move at once if rows begin at multiples of 16 bytes.
///
/// # Errors
/// Returns an error if extents do not match, y overlaps the table or the indices, or a buffer
/// belongs to another device.
pub fn gather<T: Number + GenericArgument>(
    on: &impl Queue,
    table: &BufferView<'_, T, 2>,
    index: &BufferView<'_, u32, 1>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let ([rows, n], [tokens]) = (table.extents(), index.extents());
    y.expected("y", [tokens, n], "a row of the table for each element of index")?;
    // Normalizes the stride of an axis of one row, which has no meaning.
    let table = &table.strided().reshaped([rows, n])?.side_by_side()?;
    let y = &mut y.reborrow().strided().reshaped([tokens, n])?.side_by_side()?;
    let wide = widest(size_of::<T>());
    let whole = pieces_are_contiguous(&table.strided().reshaped([1, 1, rows, n])?, wide)
        && pieces_are_contiguous_mut(&mut y.reborrow().strided().reshaped([1, 1, tokens, n])?, wide);
    dispatch!(let [V: usize, N: usize] = match wide {
        16 if whole => [16, 4],
        8 if whole => [8, 4],
        4 if whole => [4, 2],
        2 if whole => [2, 4],
        _ => [1, 4],
    };
    // SAFETY: the launch compares all extents with one another, and the kernel compares each index
    // with the rows of the table. The oracle ran the kernel at and around every edge (`kernels
    // check`).
    unsafe { gather_rows::<T, V, N>::launch_unchecked(&LibraryCall(on), table, index, y) })
}
