//! Cases of the example `heat`.

use super::trial::{Trial, trials};
use crate::examples::heat::{heat, plate, relaxed};
use runtime::testing::{Expected, Input};

trials!(heat, |_| {
    let of = |(rows, columns, tolerance, most): (usize, usize, f32, usize)| {
        let start = plate(rows, columns);
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
    [(2, 2, 0.5, 3), (3, 3, 0.5, 4), (9, 30, 5.0, 20), (40, 11, 0.0, 3), (5, 7, 0.0, 0)].into_iter().map(of).collect()
});
