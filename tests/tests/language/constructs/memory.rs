//! Global memory: slices, views, atomics, fences.

use kernel_dsl::prelude::*;

pub const ALL: &[&[super::Construct]] = &[slices::ALL, views::ALL, atomics::ALL, fences::ALL];

programs! { slices, "Slices", slices(x: &[f32], y: &mut [f32]):
    "`x[i]`" fn element {
        let t = thread::x();
        let i = t ^ 1;
        let v = x[i];
        y[t] = v;
    }
    "`y[i] = v`" fn written {
        let (i, v) = (thread::x(), 2.5);
        y[i] = v;
    }
    "`x.len()`" fn len {
        let n = x.len();
        y[thread::x()] = n as f32;
    }
    "`x.is_empty()`" fn is_empty {
        let nothing = x.is_empty();
        y[thread::x()] = if nothing { 1.0 } else { 2.0 };
    }
    "`x.get(i).copied()`" fn get {
        let t = thread::x();
        let v = x.get(2 * t).copied();
        y[t] = v.unwrap_or(0.5);
    }
    "`x.load::<4>(i)`" fn load {
        let t = thread::x();
        let v = x.load::<4>(t / 4 * 4);
        y[t] = v[0] + v[1] + v[2] + v[3];
    }
    "`x.load_or::<4>(i, other)`" fn load_or {
        let t = thread::x();
        let v = x.load_or::<4>(4 * t, 0.25);
        y[t] = v[0] + v[3];
    }
}

programs! { views, "Views", views(x: View<f32, 2>, mut y: ViewMut<f32, 2>):
    "`v[(row, col)]`" fn element {
        let (row, col) = (thread::x() / 16, thread::x() % 16);
        let v = x;
        let value = v[(row, col)];
        y[(row, 15 - col)] = value;
    }
    "`v.rows()`" fn rows {
        let n = x.rows();
        y[(thread::x() / 16, thread::x() % 16)] = n as f32;
    }
    "`v.cols()`" fn cols {
        let n = x.cols();
        y[(thread::x() / 16, thread::x() % 16)] = n as f32;
    }
    "`v.dim(d)`" fn dim {
        let n = x.dim(0);
        y[(thread::x() / 16, thread::x() % 16)] = n as f32;
    }
    "`v.at(i)`" fn row {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let row = x.at(3 - r);
        y[(r, c)] = row[c];
    }
    "`v.len()`" fn len {
        let row = x.at(1);
        let n = row.len();
        y[(thread::x() / 16, thread::x() % 16)] = n as f32;
    }
    "`v.offset((row, col))`" fn offset {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let part = x.offset((r, 0));
        y[(r, c)] = part[(0, c)];
    }
    "`v.get((row, col))`" fn get {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let v = x.get((r + 1, c));
        y[(r, c)] = v.unwrap_or(-1.0);
    }
    "`v.is_empty()`" fn is_empty {
        let nothing = x.is_empty();
        y[(thread::x() / 16, thread::x() % 16)] = if nothing { 1.0 } else { 2.0 };
    }
    "`v.load::<4>((row, col))`" fn load {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let v = x.load::<4>((r, c / 4 * 4));
        y[(r, c)] = v[0] + v[1] + v[2] + v[3];
    }
    "`v.load_or::<4>((row, col), other)`" fn load_or {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let v = x.load_or::<4>((r, c), 0.25);
        y[(r, c)] = v[0] + v[3];
    }
    "`v.store((row, col), values)`" fn store {
        let (r, c) = (thread::x() / 4, 4 * (thread::x() % 4));
        if r < 4 {
            let v = [x[(r, c)], 2.0, 3.0, 4.0];
            y.store((r, c), v);
        }
    }
    "`v.store_in((row, col), values)`" fn store_in {
        let (r, c) = (thread::x() / 4, 4 * (thread::x() % 4));
        let v = [1.0, 2.0, 3.0, 4.0];
        y.store_in((r, c), v);
    }
    "`v.stride(d)`" fn stride {
        let n = x.stride(0);
        y[(thread::x() / 16, thread::x() % 16)] = n as f32;
    }
    "`v.strided()`" fn strided {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let s = x.strided();
        let v = s[(r, 15 - c)];
        y[(r, c)] = v;
    }
    "`v.transposed()`" fn transposed {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let s = x.strided().transposed();
        let v = s[(15 - c, r)];
        y[(r, c)] = v;
    }
    "`v.streaming()`" fn streaming {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let once = x.streaming(); let v = once[(r, c)];
        y[(r, c)] = v;
    }
    "`v.bypass_l1()`" fn bypass_l1 {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let fresh = x.bypass_l1(); let v = fresh[(r, c)];
        y[(r, c)] = v;
    }
}

programs! { atomics, "Atomic operations", views(x: View<u32, 2>, mut y: ViewMut<u32, 2>):
    "`v.fetch_add(at, value)`" fn fetch_add {
        y.fetch_add((1, thread::x() % 4), 3);
    }
    "`v.fetch_sub(at, value)`" fn fetch_sub {
        y.fetch_sub((1, thread::x() % 4), 3);
    }
    "`v.fetch_min(at, value)`" fn fetch_min {
        let own = x[(thread::x() / 16, thread::x() % 16)];
        y.fetch_min((1, thread::x() % 4), own);
    }
    "`v.fetch_max(at, value)`" fn fetch_max {
        let own = x[(thread::x() / 16, thread::x() % 16)];
        y.fetch_max((1, thread::x() % 4), own);
    }
    "`v.fetch_and(at, value)`" fn fetch_and {
        let own = x[(thread::x() / 16, thread::x() % 16)];
        y.fetch_and((1, thread::x() % 4), own);
    }
    "`v.fetch_or(at, value)`" fn fetch_or {
        let own = x[(thread::x() / 16, thread::x() % 16)];
        y.fetch_or((1, thread::x() % 4), own);
    }
    "`v.fetch_xor(at, value)`" fn fetch_xor {
        let own = x[(thread::x() / 16, thread::x() % 16)];
        y.fetch_xor((1, thread::x() % 4), own);
    }
    "`v.load_relaxed(at)`, `v.read_volatile(at)`" fn load_relaxed {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let old = y.load_relaxed((r, c));
        y[(r, c)] = old + y.read_volatile((r, c)) + x[(r, c)];
    }
    "`v.load_acquire(at)`" fn load_acquire {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let old = y.load_acquire((r, c));
        y[(r, c)] = old + x[(r, c)];
    }
    "`v.store_relaxed(at, value)`, `v.write_volatile(at, value)`" fn store_relaxed {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        y.store_relaxed((r, c), x[(r, c)]);
        y.write_volatile((r, c), x[(r, c)]);
    }
    "`v.store_release(at, value)`" fn store_release {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        y.store_release((r, c), x[(r, c)]);
    }
    "`v.exchange(at, value)`" fn exchange {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let old = y.exchange((r, c), 5);
        y[(r, c)] = old + 1;
    }
    "`v.compare_exchange(at, expected, value)`" fn compare_exchange {
        let (r, c) = (thread::x() / 16, thread::x() % 16);
        let old = y.compare_exchange((r, c), 7, 1000);
        y[(r, c)] += old;
    }
}

programs! { fences, "Fences", slices(x: &[f32], y: &mut [f32]):
    "`fence::block()`" fn of_block {
        y[thread::x()] = x[thread::x()];
        fence::block();
    }
    "`fence::grid()`" fn of_grid {
        y[thread::x()] = x[thread::x()];
        fence::grid();
    }
    "`fence::system()`" fn of_system {
        y[thread::x()] = x[thread::x()];
        fence::system();
    }
}
