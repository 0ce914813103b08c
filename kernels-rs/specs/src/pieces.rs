//! Arrays for kernels that iterate over planes of rows of pieces.

use super::stored::drawn;
use kernel_dsl::compiler::Scalar;
use runtime::testing::{Input, Random};

/// Returns planes of rows of `n` elements: extents around the size of a block, in pieces of `v`.
pub(super) fn shapes(v: usize, random: &mut Random) -> Vec<[usize; 4]> {
    let n = 1 + random.below(40);
    vec![
        [1, 1, 1, v],
        [1, 1, 1, 255 * v],
        [1, 1, 1, 257 * v],
        [1, 1, 3, n * v],
        [2, 3, 2, 5 * v],
        [3, 1, 7, v],
        [2, 2, 3, v],
        [1, 2, 0, 4 * v],
        [1, 1, 40, 13 * v],
        // More planes than there are blocks.
        [2, 2050, 1, v],
    ]
}

/// Returns an output in pieces of `v`, with a gap of `gap` pieces after each row.
pub(super) fn written(random: &mut Random, stored: Scalar, shape: [usize; 4], v: usize, gap: usize) -> Input {
    let [a, b, c, n] = shape;
    let pitch = n + gap * v;
    let strides = [(b * c * pitch).max(v), (c * pitch).max(v), pitch.max(v), v, 1];
    drawn(random, stored, a * b * c * pitch, [a, b, c, n / v, v], strides)
}

/// Returns an input: in pieces, or else contiguous, with every second element, with one for each
/// row, or with one row for all.
pub(super) fn read(random: &mut Random, stored: Scalar, shape: [usize; 4], [v, vx]: [usize; 2]) -> Input {
    let [a, b, c, n] = shape;
    let gap = random.below(2);
    if v == vx && random.below(2) == 0 {
        return written(random, stored, shape, v, gap);
    }
    let strides = match random.below(if v == vx && v > 1 { 1 } else { 4 }) {
        0 => [0, 0, 0, vx, 1],
        1 => [b * c * n, c * n, n, 1, 1],
        2 => [2 * b * c * n, 2 * c * n, 2 * n, 2, 1],
        _ => [b * c, c, 1, 0, 1],
    };
    drawn(random, stored, 2 * a * b * c * n + vx, [a, b, c, n / vx, vx], strides)
}
