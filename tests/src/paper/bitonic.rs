//! (7) Bitonic sort of one array a block in shared memory whose size is known at launch.
//!
use super::trial::{Trial, trials, whole};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

/// Ascending by `before(a, b)`. s.dim(0) is a power of two; all threads of the block. Ends with a barrier.
#[device]
pub fn bitonic<T: DeviceCopy>(mut s: Shared<T, 1>, before: impl Fn(T, T) -> bool) {
    let n = s.dim(0);
    let mut k = 2;
    while k <= n {
        let mut j = k / 2;
        while j > 0 {
            for p in (thread::index()..n / 2).step_by(block::threads()) {
                // pairs, so that no thread idles
                let i = (p & !(j - 1)) * 2 + (p & (j - 1));
                let up = i & k == 0;
                let (a, b) = (s[i], s[i + j]);
                if before(b, a) == up && before(a, b) != up {
                    s[i] = b;
                    s[i + j] = a;
                }
            }
            block::sync();
            j /= 2;
        }
        k *= 2;
    }
}

/// An element of a buffer is a `repr(C)` struct; a tuple has no layout that a host could fill.
#[device]
#[derive(Clone, Copy, PartialEq, Debug, DeviceCopy)]
#[repr(C)]
pub struct Entry {
    pub key: f32,
    pub payload: u32,
}

/// Each row of (key, payload) sorted by key, ties by payload. A NaN counts as ∞, as it does wherever numbers ascend.
#[kernel(block = 32..=1024, grid = rows.rows(), writes(rows = once))]
pub fn sort_rows(mut rows: ViewMut<Entry, 2>) {
    let n = rows.cols();
    let mut s = Shared::<Entry, 1>::dynamic([n.next_power_of_two()]); // bytes: evaluated by the launch with the same expression, checked against 48 KB
    for i in (thread::index()..s.dim(0)).step_by(block::threads()) {
        s[i] = if i < n { rows[(block::x(), i)] } else { Entry { key: f32::NAN, payload: u32::MAX } };
    }
    block::sync();
    bitonic(s, |a, b| {
        let (x, y) = (a.key.min(f32::INFINITY), b.key.min(f32::INFINITY));
        // Of the same payload ∞ before NaN, so that what a row is padded with is last.
        let first = a.payload < b.payload || (a.payload == b.payload && !a.key.is_nan() && b.key.is_nan());
        x < y || (x == y && first)
    });
    for i in (thread::index()..n).step_by(block::threads()) {
        rows[(block::x(), i)] = s[i];
    }
}

trials!(sort_rows, |_| {
    let rows = |columns: usize| {
        let mut keys = whole(2 * columns, 4);
        // What a row is padded with comes behind what has the same key, be its payload the largest.
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
