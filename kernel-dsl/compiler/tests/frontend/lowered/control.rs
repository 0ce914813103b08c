//! Control flow. Each kernel is one warp with one element per lane.

use kernel_dsl::prelude::*;

witnessed! {
    #[kernel(block = 32, grid = 1)]
    fn branches_with_values(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let v = if i < n { x[i] } else if i == n { 1.0 } else { 2.0 };
        let (a, b) = if i % 2 == 0 { (v, 1) } else { (-v, 2) };
        let array = if b == 1 { [a, 2.0] } else { [3.0, a] };
        let one = if n > 3 {
            if i > 20 {
                y[i] = array[1];
                return;
            }
            1.0
        } else {
            2.0
        };
        y[i] = array[0] + array[1] + one + b as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn lazy_operators(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut asked = 0;
        if i < n && x[i] > 4.0 && { asked += 1; x[i] < 12.0 } || { asked += 2; i == 3 } {
            asked += 4;
        }
        let both = i > 2 || !(i == 1);
        y[i] = asked as f32 + both as u32 as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn while_loops(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let (mut k, mut sum) = (0, 0.0);
        while k < n && sum < 50.0 {
            k += 1;
            if k % 3 == 0 {
                continue;
            }
            sum += x[(i + k) % 32];
            if sum > 40.0 {
                break;
            }
        }
        y[i] = sum + k as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn loops_with_values(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut k = i;
        let (found, steps) = loop {
            k += 1;
            if k > 40 + n {
                break (0.0, k);
            }
            if x[k % 32] > 10.0 {
                break (x[k % 32], k - i);
            }
        };
        let array = loop {
            break [found, 1.0];
        };
        y[i] = array[0] + array[1] + steps as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn labels(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        'rows: for r in 0..n {
            let mut c = 0;
            while c < 8 {
                c += 1;
                if x[(r + c) % 32] > 14.0 {
                    continue 'rows;
                }
                if sum > 100.0 {
                    break 'rows;
                }
                sum += x[(i + c) % 32];
            }
            sum += 1.0;
        }
        let last = 'all: loop {
            for k in 0..32 {
                if x[(k + i) % 32] < 3.0 {
                    break 'all k;
                }
            }
            break 99;
        };
        y[i] = sum + last as f32;
    }

    #[kernel(block = 32, grid = 1)]
    fn counted_loops(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        for k in (i..32).step_by(7) {
            sum += x[k];
        }
        for k in rolled(-2i32..2) {
            sum += (k * k) as f32;
        }
        for k in unroll((0..8usize).step_by(3)) {
            sum += x[(k + n) % 32];
        }
        for _ in n..i {
            sum -= 1.0;
        }
        for k in 5..5u32 {
            sum += 1000.0 * k as f32;
        }
        for k in 0u8..3 {
            sum += k as f32;
        }
        y[i] = sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn nested_unrolled_breaks(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        let mut sum = 0.0;
        for a in unroll(0..3) {
            for b in unroll(0..3) {
                if b > a {
                    break;
                }
                if (a + b + n) % 2 == 0 {
                    continue;
                }
                sum += x[(i + 3 * a + b) % 32];
            }
            if sum > 25.0 {
                break;
            }
        }
        y[i] = sum;
    }

    #[kernel(block = 32, grid = 1)]
    fn returns(n: usize, x: &[f32], y: &mut [f32]) {
        let i = thread::x();
        if i >= n {
            return;
        }
        for k in 0..n {
            if x[k] > 9.0 && k > i {
                y[i] = k as f32;
                return;
            }
        }
        y[i] = -1.0;
    }
}
