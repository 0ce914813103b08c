//! `cuda/numeric.cu`.

use super::{Kernel, module, near, numbers, singles};
use kernel_dsl::compiler::ptx::Module;

fn numeric() -> Module {
    module(include_str!("../cuda/numeric.ptx"))
}

fn wide(x: Vec<f32>) -> impl Iterator<Item = f64> {
    x.into_iter().map(f64::from)
}

#[test]
fn saxpy_has_the_bits_of_rust() {
    let (x, y) = (singles(1, 500), singles(2, 500));
    let out = Kernel::of(&numeric(), "saxpy", 2, 96).bits(500).float(1.7).read(&x).written(&y).run();
    assert_eq!(out.get::<f32>(0), x.iter().zip(&y).map(|(x, y)| 1.7f32.mul_add(*x, *y)).collect::<Vec<_>>());
}

#[test]
fn a_tiled_product_agrees_with_rust() {
    let n = 37;
    let (a, b) = (singles(3, n * n), singles(4, n * n));
    let out = Kernel::of(&numeric(), "matmul", 1, 1)
        .shape([3, 3, 1], [16, 16, 1])
        .read(&a)
        .read(&b)
        .written(&vec![0f32; n * n])
        .bits(n as u64)
        .run();
    // NVRTC contracts product and sum, and padding adds zeros.
    let cell = |i: usize| (0..n).fold(0f32, |s, k| a[i / n * n + k].mul_add(b[k * n + i % n], s));
    near(wide(out.get(0)), (0..n * n).map(|i| f64::from(cell(i))), 1e-6);
}

#[test]
fn a_five_point_stencil_agrees_with_rust() {
    let (w, h) = (20, 13);
    let x: Vec<f64> = singles(5, w * h).into_iter().map(f64::from).collect();
    let out = Kernel::of(&numeric(), "stencil", 1, 1)
        .shape([3, 2, 1], [8, 8, 1])
        .read(&x)
        .written(&vec![9f64; w * h])
        .bits(w as u64)
        .bits(h as u64)
        .run();
    let cell = |i: usize| match (i % w, i / w) {
        (0, _) | (_, 0) => 9.0,
        (c, r) if c == w - 1 || r == h - 1 => 9.0,
        _ => 0.5 * x[i] + 0.125 * (x[i - 1] + x[i + 1] + x[i - w] + x[i + w]),
    };
    near(out.get::<f64>(0), (0..w * h).map(cell), 1e-15);
}

#[test]
fn a_sparse_product_agrees_with_rust() {
    let counts: Vec<usize> = numbers(6).take(50).map(|x| (x % 9) as usize).collect();
    let start: Vec<i32> = std::iter::once(0)
        .chain(counts.iter().scan(0, |s, n| {
            *s += *n as i32;
            Some(*s)
        }))
        .collect();
    let total = start[50] as usize;
    let column: Vec<i32> = numbers(7).take(total).map(|x| (x % 40) as i32).collect();
    let (value, x) = (singles(8, total), singles(9, 40));
    let out = Kernel::of(&numeric(), "spmv", 2, 32)
        .bits(50)
        .read(&start)
        .read(&column)
        .read(&value)
        .read(&x)
        .written(&[0f32; 50])
        .run();
    let row = |r: usize| {
        (start[r] as usize..start[r + 1] as usize)
            .map(|k| f64::from(value[k]) * f64::from(x[column[k] as usize]))
            .sum::<f64>()
    };
    near(wide(out.get(0)), (0..50).map(row), 1e-6);
}

#[test]
fn a_fourier_transform_is_near_its_definition() {
    let x = singles(10, 2 * 64 * 3);
    let out = Kernel::of(&numeric(), "fft64", 3, 64).read(&x).written(&vec![0f32; x.len()]).run();
    let expected = (0..3).flat_map(|b| (0..64).flat_map(move |k| [(b, k, false), (b, k, true)]));
    let expected = expected.map(|(b, k, imaginary)| {
        (0..64)
            .map(|j| {
                let angle = -std::f64::consts::TAU * (j * k) as f64 / 64.0;
                let (re, im) = (f64::from(x[2 * (64 * b + j)]), f64::from(x[2 * (64 * b + j) + 1]));
                if imaginary { re * angle.sin() + im * angle.cos() } else { re * angle.cos() - im * angle.sin() }
            })
            .sum::<f64>()
    });
    near(wide(out.get(0)), expected, 1e-5);
}

#[test]
fn attention_agrees_with_rust() {
    let (n, d) = (24, 16);
    let (q, k, v) = (singles(11, n * d), singles(12, n * d), singles(13, n * d));
    let out = Kernel::of(&numeric(), "attention", n as u32, 32)
        .shared(4 * n as u32)
        .read(&q)
        .read(&k)
        .read(&v)
        .written(&vec![0f32; n * d])
        .bits(n as u64)
        .bits(d as u64)
        .run();
    let f = f64::from;
    let expected = (0..n * d).map(|i| {
        let (r, c) = (i / d, i % d);
        let score: Vec<f64> = (0..n)
            .map(|j| (0..d).map(|e| f(q[r * d + e]) * f(k[j * d + e])).sum::<f64>() / (d as f64).sqrt())
            .collect();
        let weight: Vec<f64> = score.iter().map(|s| s.exp()).collect();
        (0..n).map(|j| weight[j] * f(v[j * d + c])).sum::<f64>() / weight.iter().sum::<f64>()
    });
    near(wide(out.get(0)), expected, 2e-6);
}

#[test]
fn quantized_products_agree_with_rust() {
    let (rows, words) = (40, 12);
    let a: Vec<i32> = numbers(14).take(rows * words).map(|x| x as i32).collect();
    let b: Vec<i32> = numbers(15).take(words).map(|x| x as i32).collect();
    let scale = singles(16, rows);
    let out = Kernel::of(&numeric(), "quantized", 1, 40)
        .read(&a)
        .read(&b)
        .read(&scale)
        .written(&vec![0f32; rows])
        .bits(words as u64)
        .run();
    let row = |r: usize| {
        let bytes = |w: i32| w.to_le_bytes().map(|b| i32::from(b as i8));
        let dot: i32 =
            (0..words).map(|k| bytes(a[r * words + k]).iter().zip(bytes(b[k])).map(|(x, y)| x * y).sum::<i32>()).sum();
        scale[r] * dot as f32
    };
    assert_eq!(out.get::<f32>(0), (0..rows).map(row).collect::<Vec<_>>());
}

#[test]
fn forces_agree_with_rust() {
    let n = 33;
    let p = singles(17, 4 * n);
    let out = Kernel::of(&numeric(), "bodies", 2, 32).read(&p).written(&vec![0f32; 4 * n]).bits(n as u64).run();
    let f = |i: usize| f64::from(p[i]);
    let expected = (0..4 * n).map(|i| {
        let (me, axis) = (i / 4, i % 4);
        (0..n)
            .map(|j| {
                let d: Vec<f64> = (0..3).map(|k| f(4 * j + k) - f(4 * me + k)).collect();
                let r = (d.iter().map(|x| x * x).sum::<f64>() + 0.01).sqrt();
                if axis == 3 { 0.0 } else { f(4 * j + 3) * d[axis] / r.powi(3) }
            })
            .sum::<f64>()
    });
    near(wide(out.get(0)), expected, 1e-4);
}

#[test]
fn escapes_of_the_mandelbrot_set_agree_with_rust() {
    let (w, h, most) = (40usize, 30usize, 60i32);
    let out = Kernel::of(&numeric(), "mandelbrot", 1, 1)
        .shape([5, 4, 1], [8, 8, 1])
        .written(&vec![0i32; w * h])
        .bits(w as u64)
        .bits(h as u64)
        .bits(most as u64)
        .run();
    // The reference contracts where NVRTC does: c = −2 + 3·i/w.
    let expected = (0..w * h).map(|p| {
        let at = |i: usize, n: usize, first: f64| 3.0 * i as f64 / n as f64 + first;
        let (cr, ci) = (at(p % w, w, -2.0), at(p / w, h, -1.5));
        let (mut zr, mut zi, mut n) = (0f64, 0f64, 0);
        while n < most && zr * zr + zi * zi <= 4.0 {
            (zr, zi) = (zr * zr - zi * zi + cr, 2.0 * zr * zi + ci);
            n += 1;
        }
        n
    });
    assert_eq!(out.get::<i32>(0), expected.collect::<Vec<_>>());
}

#[test]
fn compensated_sums_agree_with_rust() {
    let x = singles(18, 2000);
    let out = Kernel::of(&numeric(), "kahan", 1, 7).read(&x).written(&[0f32; 7]).bits(2000).run();
    let sum = |t: usize| {
        let (mut sum, mut rest) = (0f32, 0f32);
        for v in x[t..].iter().step_by(7) {
            let next = v - rest;
            let total = sum + next;
            rest = (total - sum) - next;
            sum = total;
        }
        sum
    };
    assert_eq!(out.get::<f32>(0), (0..7).map(sum).collect::<Vec<_>>());
}

#[test]
fn directed_roundings_agree_with_rust() {
    let (a, b) = (singles(19, 64), singles(20, 64));
    let out = Kernel::of(&numeric(), "directed", 1, 64).read(&a).read(&b).written(&vec![0f32; 512]).bits(64).run();
    let out = out.get::<f32>(0);
    let f = f64::from;
    // The adjacent singles of a value that is exact in double, or has an error below a single's
    // last bit.
    let (below, above) = (
        |x: f64| {
            let y = x as f32;
            if f(y) > x { y.next_down() } else { y }
        },
        |x: f64| {
            let y = x as f32;
            if f(y) < x { y.next_up() } else { y }
        },
    );
    let inward = |x: f64| if x < 0.0 { above(x) } else { below(x) };
    for i in 0..64 {
        let (x, y) = (f(a[i]), f(b[i]));
        let expected = [
            below(x + y),
            above(x + y),
            inward(x * y),
            above(x * y),
            below(x / y),
            above(x / y),
            below(x.abs().sqrt()),
            inward(x * y + x),
        ];
        assert_eq!(out[8 * i..8 * i + 8], expected, "{x} {y}");
    }
}
