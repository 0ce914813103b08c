//! What lies beyond the edge of an image.

use kernel_dsl::prelude::*;

/// Where a place beyond the edge is looked up.
#[device]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// At the nearest pixel.
    Clamp,
    /// At the other side.
    Wrap,
    /// Behind the edge, as in a mirror.
    Mirror,
}

/// The place within `0..len` that stands for place `at`; `len` is not 0.
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
