//! `for` loops over more than plain ranges, whole register arrays, and labeled blocks.

use kernel_dsl::prelude::*;

#[device]
fn fetch<const N: usize>(x: &[f32], tile: [usize; 2]) -> [f32; N] {
    let mut out = [0.0; N];
    for (s, [r, v]) in unroll(block::share([tile[0], tile[1] / 4]).enumerate()) {
        out[s] = x[(r * 4 + v) % 32];
    }
    out
}

#[device]
fn halved(x: f32) -> f32 {
    x * 0.5
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn shares(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let own: [f32; 2] = fetch(x, [8, 32]);
        let mut sum = own[0] + 100.0 * own[1];
        for [r, c] in block::share([5, 9]) {
            sum += (r * 9 + c) as f32;
        }
        for (s, [p, r, c]) in unroll(block::share([3, 4, 5]).enumerate()) {
            if p == 1 {
                continue;
            }
            sum += (s * 1000 + p * 100 + r * 10 + c) as f32;
        }
        for (s, [k]) in block::share([n]).enumerate() {
            sum += (s + k) as f32;
        }
        y[i] = sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn strides(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        for k in grid::stride(n * 7) {
            sum += k as f32;
        }
        for (s, k) in block::stride(50).enumerate() {
            sum += x[k % 32] * (s + 1) as f32;
        }
        for k in unroll_by::<2>(grid::stride(n + 40)) {
            if k > 60 {
                break;
            }
            sum += x[k % 32];
        }
        y[i] = sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn numbered(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        for (s, k) in (n..2 * n + 3).enumerate() {
            sum += (s * 100 + k) as f32;
        }
        for (s, k) in (n..40).step_by(7).rev().enumerate() {
            sum += x[s] * k as f32;
        }
        for (s, k) in unroll((3..9u32).rev().enumerate()) {
            sum += (s as u32 * k) as f32;
        }
        for (s, k) in (-3..n as i32).enumerate() {
            sum += s as f32 * k as f32;
        }
        for pair in rolled((0..4).enumerate()) {
            sum += (pair.0 * pair.1) as f32;
        }
        let mut both = [0.0; 2];
        for (s, _) in unroll_by::<2>(i..i + n).enumerate() {
            both[s % 2] += x[s % 32];
        }
        y[i] = sum + both[0] - both[1];
    }

    #[kernel(block = 32, grid = 1)]
    fn whole_arrays(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let by = n as f32;
        let v: [f32; 4] = std::array::from_fn(|j| x[(i + j) % 32]);
        let w = v.map(|e| e * by + 1.0);
        let big = w.map(|e| (e as u32, e > 20.0));
        let grid: [[usize; 3]; 2] = core::array::from_fn(|r| std::array::from_fn(|c| r * 10 + c));
        let mut sum = 0.0;
        for j in unroll(0..v.len()) {
            let (whole, large) = big[j];
            sum += w[j] + whole as f32 + large as u32 as f32;
        }
        for r in unroll(0..grid.len()) {
            for c in unroll(0..grid[r].len()) {
                sum += grid[r][c] as f32;
            }
        }
        for e in w {
            sum += e;
        }
        for (k, [a, b, _]) in unroll(grid.into_iter().enumerate()) {
            sum -= (k + a * b) as f32;
        }
        let [a, b]: [f32; 2] = [v[0], v[1]].map(halved);
        let ([c, .., d], (e, ..)) = (w.map(halved), (a, b, 3));
        let bytes = size_of::<[f32; 3]>() + std::mem::size_of::<u8>() + size_of::<bool>();
        y[i] = sum + a * b + c - d + e + bytes as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn labeled_blocks(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let found = 'search: {
            for k in 0..n {
                if x[k] > x[i] {
                    break 'search Some(k);
                }
            }
            if n > 20 {
                break 'search None;
            }
            Some(n)
        };
        let mut count = 0.0;
        'outer: loop {
            'skip: {
                count += 1.0;
                if count < 3.0 {
                    break 'skip;
                }
                if count > 5.0 {
                    break 'outer;
                }
                count += 0.5;
            }
            if count > 100.0 {
                break;
            }
        }
        let pair = 'two: {
            let v = if n > 4 { break 'two [1.0, x[i]] } else { x[0] };
            [v, 2.0]
        };
        y[i] = found.map_or(-1.0, |k| k as f32) + 100.0 * count + pair[0] * pair[1];
    }

    #[kernel(block = 32, grid = 1)]
    fn patterns(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let f = |[a, b]: [f32; 2], (c, _): (f32, usize)| a * b + c;
        let g = |a, b| a + b * 2.0;
        let opt = if i < n { Some((x[i], i)) } else { None };
        let mut sum = f([x[i], 2.0], (1.0, 3)) + g(1.0, x[i]);
        if let Some((v, k)) = opt && k % 2 == 0 {
            sum += v + k as f32;
        }
        let (low, high);
        (low, high) = if x[i] < 4.0 { (x[i], 4.0) } else { (4.0, x[i]) };
        let (mut p, mut q) = (0.0, [0.0; 2]);
        (p, q[1]) = (low, high);
        (q[0], _) = (p + 1.0, n);
        [p, sum] = [sum, p];
        (p, [q[0], ..]) = (p + 1.0, [q[1], q[0], p]);
        let Some((v, _)) = opt.map(|(v, k)| (v + 1.0, k)) else {
            y[i] = sum + p;
            return;
        };
        let word = match (opt, i % 4) {
            (Some((v, _)), 0) if v > 2.0 => 1u32,
            (Some((_, 3)), _) | (None, _) => 2,
            (Some(_), 1..) => 3,
            _ => 4,
        };
        y[i] = sum + p * q[0] + q[1] + v + (word << 3 >> 1) as f32;
    }
}
