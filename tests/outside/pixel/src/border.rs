//! Pixels beyond the edge of an image.

use kernel_dsl::prelude::*;

/// The source of pixels beyond the edge.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// The nearest pixel.
    Clamp,
    /// The opposite side.
    Wrap,
    /// The mirrored position.
    Mirror,
}

/// Returns the position in `0..len` whose pixel replaces the one at `at`; `len` is not 0.
#[device]
pub fn resolve(border: Border, at: i32, len: usize) -> usize {
    let n = len as i32;
    let inside = match border {
        Border::Clamp => at.clamp(0, n - 1),
        Border::Wrap => at.rem_euclid(n),
        Border::Mirror => {
            let folded = at.rem_euclid(2 * n);
            if folded < n { folded } else { 2 * n - 1 - folded }
        }
    };
    inside as usize
}
