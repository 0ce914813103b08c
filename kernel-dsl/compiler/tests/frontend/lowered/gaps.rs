//! Combinations of constructs from larger kernels.

use kernel_dsl::prelude::*;

#[device]
fn merge(a: (f32, f32, [f32; 4]), b: (f32, f32, [f32; 4])) -> (f32, f32, [f32; 4]) {
    let big = a.0.max(b.0);
    let (x, y) = (if a.0 == big { 1.0 } else { 0.5 }, if b.0 == big { 1.0 } else { 0.5 });
    let mut o = [0.0; 4];
    for e in unroll(0..4) {
        o[e] = a.2[e].mul_add(x, b.2[e] * y);
    }
    (big, a.1 * x + b.1 * y, o)
}

#[device]
fn doubled(x: f32) -> Option<f32> {
    if x > 2.0 { Some(x * 2.0) } else { None }
}

#[device]
fn keep(store: impl Fn(usize, f32), at: usize, x: f32) {
    store(at, x);
}

#[device]
fn split(x: f32) -> ([f32; 2], usize) {
    ([x, x * 0.5], x as usize)
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn partial_sums(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut p = [(f32::NEG_INFINITY, 0.0f32, [0.0f32; 4]); 2];
        for g in unroll(0..2) {
            for t in (i..n + 32).step_by(8) {
                let v = x[(t + g) % 32];
                p[g] = merge(p[g], (v, 1.0, [v, 1.0, v * 2.0, t as f32]));
            }
        }
        for g in unroll(0..2) {
            let mut step = 1;
            while step < 32 {
                p[g] = merge(p[g], warp::shuffle_xor(p[g], step));
                step *= 2;
            }
        }
        let r = warp::reduce(p[0], merge);
        let (m, l, o) = merge(p[1], r);
        y[i] = m + l * 0.125 + o[0] + o[1] + o[2] * 0.5 + o[3];
    }

    #[kernel(block = 32, grid = 1)]
    fn fetched_ahead(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let fetch = |b: usize| ([x[(i + b) % 32], 1.0], [b as u32; 3]);
        let mut seen = [0.0; 2];
        let (mut a, mut w) = fetch(0);
        for b in rolled(0..n) {
            let next = if b + 1 < n { Some(fetch(b + 1)) } else { None };
            seen[0] += a[0] * a[1];
            seen[1] += w[2] as f32;
            if let Some((c, d)) = next {
                (a, w) = (c, d);
            } else if let (Some(v), true) = (x.get(b).copied(), b > 2) {
                seen[1] -= v;
            } else {
                seen[0] = -seen[0];
            }
        }
        let e = if i < 8 {
            x.get(i + n).copied().unwrap_or(0.5)
        } else if i >= 24 {
            x.get(i + n).map_or(0.25, |d| *d * 2.0)
        } else {
            0.0
        };
        y[i] = seen[0] + seen[1] + e;
    }

    #[kernel(block = 32, grid = 1)]
    fn options_of_options(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let deep = if i < n { Some(doubled(x[i])) } else { None };
        let a = match deep {
            Some(Some(v)) if v > 10.0 => v,
            Some(Some(v)) => v + 100.0,
            Some(None) => 50.0,
            None => 25.0,
        };
        let b = x.get(i).copied().and_then(doubled).map(|v| (v, i)).map_or(0.0, |(v, k)| v + k as f32);
        let c = matches!(deep, Some(Some(v)) if v < 12.0) || matches!(i, 3 | 5..=7);
        let mut left = doubled(x[i]);
        let mut steps = 0;
        while let Some(v) = left && steps < 5 {
            left = doubled(v - 5.0);
            steps += 1;
        }
        let Some(Some(d)) = deep else {
            y[i] = a + b + c as u32 as f32 + steps as f32;
            return;
        };
        y[i] = a - b + d + steps as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn values_in_places(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut pairs = [(0u32, 0.0f32); 3];
        (pairs[1].0, pairs[1].1) = (i as u32, x[i]);
        pairs[2] = (n as u32, { let t = x[i] * 2.0; t - 1.0 });
        let [p, q, r] = pairs;
        let ([a, b], k) = split(x[i]);
        let mut rows = [[0.0; 3]; 2];
        [rows[0][1], rows[1][2]] = [a, b];
        rows[1] = rows[0].map(|v| v + 1.0);
        let flat: [f32; 6] = std::array::from_fn(|j| rows[j / 3][j % 3]);
        let mut sum = 0.0;
        for v in unroll(0..flat.len()) {
            sum += flat[v] * (v + 1) as f32;
        }
        let total = {
            let mut t = 0;
            for (s, [u, v]) in unroll(block::share([8, 12]).enumerate()) {
                t += s * (u + v);
            }
            t
        };
        let mut out = [0.0; 2];
        let mut count = 0;
        {
            let mut add = |at: usize, v: f32| {
                out[at] += v;
                count += 1;
            };
            add(0, sum);
            add(1, total as f32);
        }
        y[i] = p.1 + q.1 + q.0 as f32 + r.1 + k as f32 + out[0] + out[1] + count as f32;
    }

    #[kernel(block = 64, grid = 1)]
    fn early_returns_of_warps(n: usize, x: &[f32], y: &mut [f32]) {
        if warp::index() == 1 {
            return;
        }
        let i = warp::lane();
        let mut v = warp::scan(x[i], |a, b| a + b);
        warp::sync();
        for round in 0..n {
            if round == 3 {
                return;
            }
            v = warp::reduce(v, f32::max) + warp::shuffle_down(v, round).unwrap_or(1.0);
        }
        y[i] = v;
    }
}
