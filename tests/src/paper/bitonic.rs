//! (7) Bitonic sort of one array per block, in shared memory whose size the launch decides.
use super::trial::{Trial, trials, whole};
use kernel_dsl::prelude::*;
use runtime::testing::{Bound, Expected, Input};

/// Sorts by `before(a, b)`, ascending. s.dim(0) is a power of two, and all threads of the block
/// participate. Ends with a barrier.
#[device]
pub fn bitonic<T: DeviceCopy>(mut s: Shared<T, 1>, before: impl Fn(T, T) -> bool) {
    let n = s.dim(0);
    let mut k = 2;
    while k <= n {
        let mut j = k / 2;
        while j > 0 {
            for p in (thread::index()..n / 2).step_by(block::threads()) {
                // The loop is over pairs, so that no thread idles.
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

/// Sorts each row of (key, payload) by key, and equal keys by payload. A NaN counts as ∞, as in all
/// ascending orders.
#[kernel(block = 32..=1024, grid = rows.rows(), writes(rows = once))]
pub fn sort_rows(mut rows: ViewMut<Entry, 2>) {
    let n = rows.cols();
    // the launch evaluates the size with the same expression, and checks it against 48 KB
    let mut s = Shared::<Entry, 1>::dynamic([n.next_power_of_two()]);
    for i in (thread::index()..s.dim(0)).step_by(block::threads()) {
        s[i] = if i < n { rows[(block::x(), i)] } else { Entry { key: f32::NAN, payload: u32::MAX } };
    }
    block::sync();
    bitonic(s, |a, b| {
        let (x, y) = (a.key.min(f32::INFINITY), b.key.min(f32::INFINITY));
        // With equal payloads, ∞ comes before NaN, so that the padding of a row is last.
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
