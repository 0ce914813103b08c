//! Rows of a table, each by its number: the embedding of tokens.

use super::rows::divided;
use crate::Queue;
use crate::axes::{together, together_mut, widest};
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use runtime::{BufferView, BufferViewMut, Error};

/// `y[i]` ← `table[index[i]]`, zeros where there is no such row; `V` elements at once.
#[kernel(
    block = 256,
    grid = (y.rows() * (y.cols() / V)).div_ceil(256),
    instances(T = f32, V = 4 | 1; T = f16, V = 8),
    writes(y = once),
)]
#[requires(
    index.len() == y.rows(), table.cols() == y.cols(), y.cols() % V == 0, table.aligned(V), y.aligned(V),
)]
pub fn gather_rows<T: Number, const V: usize>(table: View<T, 2>, index: View<u32, 1>, y: ViewMut<T, 2>) {
    let pieces = y.cols() / V;
    let at = grid::index();
    if at < y.rows() * pieces {
        let (row, piece) = divided(at, pieces);
        let from = index[row] as usize;
        let mut v = [T::default(); V];
        if from < table.rows() {
            v = table.load((from, piece * V));
        }
        y.store((row, piece * V), v);
    }
}

/// `y[i, j]` ← `table[index[i], j]`: the embedding of tokens. A number beyond the table's rows gives zeros. The table is `[rows, n]`, y `[tokens, n]`, with a last
/// stride of 1 and the other free; 16 bytes move at once where rows begin at multiples of them.
///
/// # Errors
/// Where the extents do not belong together, y overlaps the table or the numbers, or a buffer is another device's.
pub fn gather<T: Number + GenericArgument>(
    on: &impl Queue,
    table: &BufferView<'_, T, 2>,
    index: &BufferView<'_, u32, 1>,
    y: &mut BufferViewMut<'_, T, 2>,
) -> Result<(), Error> {
    let ([rows, n], [tokens, _]) = (table.extents(), y.extents());
    let wide = widest(size_of::<T>());
    let whole = table.strided().reshaped([1, 1, rows, n]).is_ok_and(|x| together(&x, wide))
        && y.reborrow().strided().reshaped([1, 1, tokens, n]).is_ok_and(|mut y| together_mut(&mut y, wide));
    macro_rules! by {
        ($v:literal) => {
            // SAFETY: the launch compares all extents with one another, and the kernel compares each number with the table's rows: the oracle ran
            // it at and around every edge (`kernels check`).
            unsafe { gather_rows::<T, $v>::launch_unchecked(on, table, index, y) }
        };
    }
    match wide {
        16 if whole => by!(16),
        8 if whole => by!(8),
        4 if whole => by!(4),
        2 if whole => by!(2),
        _ => by!(1),
    }
}
