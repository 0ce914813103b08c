//! Cases of the example `bitonic`.

use super::trial::{Trial, trials, whole};
use crate::examples::bitonic::{Entry, sort_rows};
use runtime::testing::{Bound, Expected, Input};

trials!(sort_rows, |_| {
    let rows = |columns: usize| {
        let mut keys = whole(2 * columns, 4);
        // The padding of a row comes after equal keys, even with the largest payload.
        keys.iter_mut().step_by(9).for_each(|key| *key = f32::INFINITY);
        keys.iter_mut().skip(3).step_by(7).for_each(|key| *key = f32::NAN);
        keys.iter_mut().skip(5).step_by(13).for_each(|key| *key = -0.0);
        let payload = |i: usize| if i % 18 == 9 { u32::MAX } else { i as u32 };
        let mut rows: Vec<Entry> =
            keys.iter().enumerate().map(|(i, key)| Entry { key: *key, payload: payload(i) }).collect();
        let input = Input::view(&rows, [2, columns]);
        for row in rows.chunks_mut(columns.max(1)) {
            let key = |entry: &Entry| if entry.key.is_nan() { f32::INFINITY } else { entry.key + 0.0 };
            row.sort_by(|a, b| {
                let of_payload = (a.payload, a.key.is_nan()).cmp(&(b.payload, b.key.is_nan()));
                key(a).total_cmp(&key(b)).then(of_payload)
            });
        }
        let sorted = rows.iter().flat_map(|e| [f64::from(e.key), f64::from(e.payload)]).collect();
        Trial::new(format!("2 x {columns}"), [input], [Expected::new(0, sorted, Bound::Exact)])
    };
    [100, 64, 1, 0].into_iter().map(rows).collect()
});
