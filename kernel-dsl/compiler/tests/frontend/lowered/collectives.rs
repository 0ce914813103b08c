//! Collective operations of the lanes of a warp and the threads of a block, 32 of each.

use kernel_dsl::prelude::*;

#[device]
fn join(a: (f32, u32), b: (f32, u32)) -> (f32, u32) {
    if b.0 > a.0 || (b.0 == a.0 && b.1 < a.1) { b } else { a }
}

#[device]
fn later(a: f32, b: f32) -> f32 {
    if b == 0.0 { a } else { b }
}

#[device]
fn total(n: usize, x: f32, f: impl Fn(f32, f32) -> f32) -> f32 {
    if n > 3 { warp::reduce(x, f) } else { x }
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn neighbors(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = warp::shuffle_up(x[i], 1).unwrap_or(-1.0);
        if let Some((v, odd)) = warp::shuffle_down((i as u8, i % 2 == 1), 3) {
            sum += v as f32 + odd as u32 as f32 * 0.5;
        }
        let [a, b] = warp::shuffle_xor([x[i], i as f32], 5);
        let g = warp::group::<8>();
        let c = g.shuffle_up(i as i64, n % 10).map_or(-1, |v| v * 2);
        let d = g.shuffle_down(x[i] as f64, 9).is_some();
        let e = g.broadcast((i as u16, x[i] > 4.0), 2);
        let s = warp::broadcast(Some(i), n % 32);
        let t = warp::shuffle(if x[i] > 8.0 { Some(x[i]) } else { None }, i * 7);
        sum += a * b + c as f32 + d as u32 as f32 + e.0 as f32 + e.1 as u32 as f32;
        sum += s.unwrap_or(0) as f32 + t.unwrap_or(0.25);
        y[i] = sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn reductions(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let by = n as f32 + 1.0;
        let (best, place) = warp::reduce((x[i], i as u32), join);
        let low = warp::reduce(x[i], |a, b| a.min(b));
        let scaled = warp::reduce(x[i], |a, b| a + b) * by;
        let bits = warp::group::<4>().reduce((i as u8, x[i] > 3.0), |(a, p), (b, q)| (a | b, p && q));
        let sums = block::reduce([x[i], 1.0], |a, b| [a[0] + b[0], a[1] + b[1]]);
        let most = total(n, x[i], f32_max);
        y[i] = best + place as f32 + low + scaled + bits.0 as f32 + bits.1 as u32 as f32 + sums[0] * sums[1] + most;
    }

    #[kernel(block = 32, grid = 1)]
    fn scans(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let through = warp::scan(x[i], |a, b| a + b);
        let head = i % (n + 2) == 0;
        let (run, _) = warp::scan((x[i], head), |a, b| (if b.1 { b.0 } else { a.0 + b.0 }, a.1 | b.1));
        let last = warp::scan(if x[i] > 6.0 { x[i] } else { 0.0 }, later);
        let before = warp::exclusive_scan(i as u32, 100, |a, b| a + b);
        let eight = warp::group::<8>().exclusive_scan((i as i8, x[i]), (-1, 0.5), |a, b| (a.0.max(b.0), a.1 + b.1));
        let (rank, kept) = block::scan((x[i] > 4.0) as u32, 0, |a, b| a + b);
        let count = block::count(x[i] > 4.0);
        y[i] = through + 2.0 * run + last + before as f32 + eight.0 as f32 + eight.1 + (rank * kept + count as u32) as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn steps(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut v = (x[i], i);
        let mut step = 1;
        while step < 32 {
            let other = warp::shuffle_xor(v, step);
            v = if other.0 > v.0 { other } else { v };
            step *= 2;
        }
        let mut left = x[i];
        while warp::any(left > 1.0) {
            left *= 0.5;
        }
        if n > 7 {
            return;
        }
        y[i] = v.0 + left + warp::sum(x[i]);
    }
}

#[device]
fn f32_max(a: f32, b: f32) -> f32 {
    a.max(b)
}
