//! Cases of the example `heat`.

use super::trial::{Trial, trials};
use crate::examples::heat::{heat, plate, relaxed};
use runtime::testing::{Expected, Input};

trials!(heat, |_| {
    let of = |start: Vec<f32>, (rows, columns, tolerance, most): (usize, usize, f32, usize)| {
        let expected = relaxed(rows, columns, tolerance, &start, most);
        let inputs = [
            Input::scalar(rows),
            Input::scalar(columns),
            Input::scalar(tolerance),
            Input::slice(&start),
            Input::slice(&start),
            Input::slice(&vec![0f32; most]),
            Input::slice(&[0u32]),
        ];
        let steps = expected.changes.len() as u32;
        let mut changes = expected.changes;
        changes.resize(most, 0.0);
        let outputs = [
            Expected::exact(3, expected.even),
            Expected::exact(4, expected.odd),
            Expected::exact(5, changes),
            Expected::exact(6, [steps]),
        ];
        Trial::new(format!("{rows} x {columns}, at most {most} steps"), inputs, outputs)
    };
    let shapes = [(2, 2, 0.5, 3), (3, 3, 0.5, 4), (9, 30, 5.0, 20), (40, 11, 0.0, 3), (5, 7, 0.0, 0)];
    let plates = shapes.map(|shape| of(plate(shape.0, shape.1), shape));
    // More points than threads, all different from their neighbors.
    let uneven = of((0..20 * 40).map(|i| (i * 37 % 101) as f32).collect(), (20, 40, 0.0, 2));
    // One hot point in a cold plate has the largest change, equal to the tolerance. The place of
    // the point varies, so that different threads of the reduction find it.
    let spots = [0usize, 1, 2, 4, 8, 16, 31, 32, 77, 127].map(|inner| {
        let mut start = vec![0f32; 4 * 66];
        start[(inner / 64 + 1) * 66 + inner % 64 + 1] = 64.0;
        of(start, (4, 66, 64.0, 3))
    });
    plates.into_iter().chain([uneven]).chain(spots).collect()
});
