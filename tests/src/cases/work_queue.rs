//! Cases of the example `work_queue`.

use super::trial::{Trial, trials};
use crate::examples::work_queue::{image, mandelbrot};
use runtime::testing::{Expected, Input};

trials!(mandelbrot, |_| {
    let of = |[rows, cols]: [usize; 2]| {
        let inputs = [Input::view(&vec![0u32; rows * cols], [rows, cols]), Input::slice(&[0u32])];
        // Each warp adds 1 once more than it finds tiles, and a device decides the number of warps.
        let expected = [Expected::exact(0, image(rows, cols)), Expected::unchecked(1)];
        Trial::new(format!("{rows} x {cols}"), inputs, expected).with_free(1)
    };
    [[1, 1], [9, 21]].into_iter().map(of).collect()
});
