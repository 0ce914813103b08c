//! `match`, `if let`, and `Option`. Each kernel is one warp with one element per lane.

use kernel_dsl::prelude::*;

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn numbers(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = match i {
            0 => 1.0,
            1 | 2 | 30 => 2.0,
            3..=5 => 3.0,
            6..9 => 4.0,
            k if k == n => 5.0,
            k @ (11..=20 | 25) => k as f32,
            _ => x[i],
        };
        let w = match (i as i32) - 16 {
            i32::MIN..=-10 => -1.0,
            -9 => 7.0,
            0.. => 1.0,
            _ => 0.0,
        };
        y[i] = v + 100.0 * w;
    }

    #[kernel(block = 32, grid = 1)]
    fn tuples_of_truths(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = match (i % 2 == 0, x[i] > 4.0, i % 3) {
            (true, true, _) => 1.0,
            (true, false, r @ 1..) => r as f32 + 10.0,
            (false, _, 0 | 2) => 2.0,
            (_, big, r) => big as u32 as f32 + r as f32 + 20.0,
        };
        let w = match [i < n, i > 4] {
            [true, false] => 1.0,
            [_, true] if x[i] > 3.0 => 2.0,
            [a, _] => a as u32 as f32,
        };
        y[i] = v + 100.0 * w;
    }

    #[kernel(block = 32, grid = 1)]
    fn arms_of_all_kinds(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut count = 0;
        let (a, v) = match i % 4 {
            0 => ([x[i], 1.0], 1),
            1 => {
                count += 1;
                ([2.0, x[i]], 2)
            }
            2 if n > 3 => {
                y[i] = 9.0;
                return;
            }
            mut k => {
                k += 1;
                count += k;
                ([0.5; 2], k)
            }
        };
        match v {
            1 => count += 10,
            2 => (),
            _ => count += 100,
        }
        y[i] = a[0] + 10.0 * a[1] + count as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn options(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let a = if i < n { Some(x[i]) } else { None };
        let b: Option<usize> = match i {
            0..8 => None,
            8 => Some(n),
            _ => Some(i),
        };
        let mut sum = a.unwrap_or(-1.0) + b.map_or(0.5, |k| k as f32);
        if let Some(v) = a {
            sum += v;
        } else if let Some(k) = b {
            sum -= k as f32;
        }
        let c = a.map(|v| (v, i)).and_then(|(v, k)| if k % 2 == 0 { Some(v + 1.0) } else { None });
        match (c, b) {
            (Some(v), Some(9..=12)) => sum += v,
            (Some(v), None) if v > 3.0 => sum -= v,
            (None, Some(k)) => sum += 100.0 * k as f32,
            _ => sum += 0.25,
        }
        let flags = (a.is_some() as u32, b.is_none() as u32, c.is_some_and(|v| v > 5.0) as u32);
        y[i] = sum + (flags.0 + 2 * flags.1 + 4 * flags.2) as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn elements(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let k = i * n;
        let a = x.get(k).copied();
        let Some(b) = x.get(i + 4).copied() else {
            y[i] = a.unwrap_or(-1.0);
            return;
        };
        let c = if let Some(&v) = x.get(k + 1) { v } else { 2.0 };
        let d = match x.get(k + 2) {
            Some(v) => *v,
            None => 0.5,
        };
        y[i] = a.map_or(10.0, |v| v * 2.0) + b + c + d + x.get(k).map_or(0.0, |v| *v);
    }

    #[kernel(block = 32, grid = 1)]
    fn options_that_change(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut best = None;
        let mut last: Option<[f32; 2]> = None;
        let mut k = i;
        while let Some(v) = x.get(k).copied() {
            best = match best {
                Some((w, at)) if w >= v => Some((w, at)),
                _ => Some((v, k)),
            };
            if v > 10.0 {
                last = Some([v, 1.0]);
            }
            k += n + 1;
        }
        let (v, at) = best.unwrap_or((0.0, 99));
        let pair = last.unwrap_or([-1.0, -2.0]);
        y[i] = v + at as f32 + pair[0] * 1000.0 + pair[1];
    }
}
