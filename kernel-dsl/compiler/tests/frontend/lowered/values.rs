//! Values: tuples, arrays, variables, operators. Each kernel is one warp with one element per lane.

use kernel_dsl::prelude::*;

#[device]
fn halves(x: f32) -> (f32, f32) {
    (x * 0.5, x - x * 0.5)
}

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn tuples(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let t = (x[i], (i, n));
        let (a, (b, _)) = t;
        let mut m = (a, b);
        m.0 += 1.0;
        m.1 = t.1.1 + 2 * m.1;
        let (p, q) = halves(m.0);
        y[i] = p + q + m.1 as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn tuple_assignment(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let (mut a, mut b) = (x[i], n as f32);
        (a, b) = (b, a);
        let mut k = 0;
        let mut v = [0.0; 3];
        (k, v[k]) = (2, a);
        (v[1], v[k]) = (b, 5.0);
        y[i] = v[0] + 10.0 * v[1] + 100.0 * v[2] + k as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn arrays(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let a = [x[i], 2.0, 3.0];
        let mut b = a;
        b[0] = -1.0;
        let [p, _, r] = b;
        let mut c = [n; 4];
        c[3] += i;
        y[i] = a[0] + p + r + (c[0] + c[3]) as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn arrays_of_arrays(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut m = [[0.0f32; 3]; 2];
        for r in unroll(0..2) {
            for c in unroll(0..3) {
                m[r][c] = x[i] * (3 * r + c + n) as f32;
            }
        }
        let row = m[1];
        m[1][0] = 100.0;
        m[0] = row;
        m[0][1] *= 2.0;
        y[i] = row[0] + m[1][0] + m[0][1] + m[0][2];
    }

    #[kernel(block = 32, grid = 1)]
    fn arrays_of_tuples(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut a = [(0.0f32, 0u32); 3];
        a[1] = (x[i], 7);
        a[2].1 = a[1].1 + n as u32;
        let (v, k) = a[1];
        a[1].0 = 9.0;
        let t = (a[0], a[1]);
        y[i] = v + (k + a[2].1) as f32 + t.1.0;
    }

    #[kernel(block = 32, grid = 1)]
    fn tuples_of_arrays(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut t = ([x[i]; 2], n);
        t.0[1] = 4.0;
        let u = t;
        t.0[0] = 0.0;
        y[i] = u.0[0] + u.0[1] + t.0[0] + u.1 as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn shadowing(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = x[i];
        let v = v * v;
        let w = {
            let v = v + 1.0;
            v * n as f32
        };
        let mut sum = 0.0;
        for i in 0..3 {
            let v = i as f32;
            sum += v;
        }
        y[i] = v + w + sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn set_later(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v;
        let (a, b);
        if i < n {
            v = x[i];
            (a, b) = (1.0, 2.0);
        } else {
            v = 0.0;
            (a, b) = (3.0, 4.0);
        }
        y[i] = v * a + b;
    }

    #[kernel(block = 32, grid = 1)]
    fn order_of_evaluation(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut k = n;
        let a = k + { k += 1; k } * 10;
        let mut v = [0; 4];
        v[{ k = 1; k }] += { k = 2; k };
        v[k] = { k = 3; k };
        y[i] = x[i] + (a + v[0] + 2 * v[1] + 3 * v[2] + 5 * v[3]) as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn integers(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let s = x[i] as i32 - 8;
        let u = s as u32;
        let shifts = (s >> 2) as u32 ^ (u >> 2) ^ (u << (n as u32 & 3)) ^ (u >> 1i64);
        let small = (u as u8 as i8 >> 1) as i32 + (s as i16).abs() as i32;
        let divided = s / 3 + s % 3 - (u / 3) as i32;
        let wide = (u as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33;
        let bits = u.count_ones() + wide.leading_zeros() + (!s & 0xff) as u32;
        let wrapped = u.wrapping_add(u32::MAX).wrapping_sub(7) % 1000;
        let most = s.max(-3).min(5) + -s;
        let folded = (n.div_ceil(4) + n.next_multiple_of(8) + n.saturating_sub(i)) as i32;
        let sum = (shifts & 0xffff) as i32 + small + divided % 1000 + bits as i32 + wrapped as i32 + most + folded;
        y[i] = sum as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn floats(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = x[i] - 7.3;
        let rounded = v.floor() + 2.0 * v.ceil() + 4.0 * v.trunc() + 8.0 * (v * 0.5).round_ties_even();
        let wide = (v as f64 * 1.000000119 + 1e-9).sqrt().max(0.25) as f32;
        let bits = f32::from_bits(v.to_bits() ^ 0x8000_0000) + f32::max(v, 0.5).min(f32::MAX);
        let sum = v.mul_add(v.abs(), rounded) + bits / core::f32::consts::PI;
        let exact = 1.00000005960464477539062500001 - 1.0;
        y[i] = if wide == wide { sum + wide } else { sum } + exact * 1e8 * n as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn casts(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = (x[i] - 8.0) * 40.0;
        let bytes = v as u8 as f32 + v as i8 as f32 + (v * 1e30) as i32 as f32;
        let signs = (v as i32 as i64 >> 1) as f32 + (v as i32 as u16) as f32 + (v > 0.0) as u8 as f32;
        let index = (v as i64 & 0xff) as usize + (n as u64 % 16) as usize;
        y[i] = bytes + signs + index as f32;
    }
}

#[kernel(block = 32, grid = 1)]
fn comparisons(n: usize, x: &[f32], y: &mut [f32]) {
    let a = (x[0], n > 4, x[1]);
    let b = (x[2], true, 0.5);
    let same = a == b;
    let other = [[x[0], x[1]], [x[2], 1.0]] != [[0.0; 2]; 2];
    let before = a <= b;
    let option = if n > 1 { Some(x[0]) } else { None };
    let optional = (option > Some(x[3])) ^ (option == None);
    y[0] = (same ^ other ^ before ^ optional) as u32 as f32;
}
