//! Tests of operators and indices of device structs, type aliases, inclusive ranges, and swaps.

use super::support::{agree, assemble, checker};
use kernel_dsl::prelude::*;
use runtime::testing::{Expected, Input};

#[device]
mod numbers {
    use kernel_dsl::prelude::*;
    use std::ops::{Add, AddAssign, BitXor, Mul, MulAssign, Neg, Not, Shl, Sub};

    /// A complex number.
    #[derive(Clone, Copy, Debug, PartialEq, DeviceCopy)]
    #[repr(C)]
    pub struct Complex<T: Element> {
        pub re: T,
        pub im: T,
    }

    /// Complex numbers of 32-bit parts.
    pub type Single = Complex<f32>;
    /// Two of any type. The alias names an alias that follows.
    pub type Twice<T> = Both<T, T>;
    pub type Both<A, B> = (A, B);

    impl<T: Number> Add for Complex<T> {
        type Output = Self;
        fn add(self, other: Self) -> Self::Output {
            Complex { re: self.re + other.re, im: self.im + other.im }
        }
    }

    impl<T: Number> Sub for Complex<T> {
        type Output = Complex<T>;
        fn sub(self, other: Complex<T>) -> Complex<T> {
            Complex { re: self.re - other.re, im: self.im - other.im }
        }
    }

    impl<T: Number> Mul<T> for Complex<T> {
        type Output = Self;
        fn mul(self, factor: T) -> Self {
            Complex { re: self.re * factor, im: self.im * factor }
        }
    }

    impl<T: Number> Mul for Complex<T> {
        type Output = Self;
        fn mul(self, other: Self) -> Self {
            let re = self.re * other.re - self.im * other.im;
            Complex { re, im: self.re * other.im + self.im * other.re }
        }
    }

    impl Mul<Single> for f32 {
        type Output = Single;
        fn mul(self, other: Single) -> Single {
            other * self
        }
    }

    impl<T: Float> Neg for Complex<T> {
        type Output = Self;
        fn neg(self) -> Self {
            Complex { re: -self.re, im: -self.im }
        }
    }

    impl<T: Number> AddAssign for Complex<T> {
        fn add_assign(&mut self, other: Self) {
            *self = *self + other;
        }
    }

    impl MulAssign<f32> for Single {
        fn mul_assign(&mut self, factor: f32) {
            self.re *= factor;
            self.im *= factor;
        }
    }

    impl Single {
        /// A method with the name of an operator's function.
        pub fn add(self, re: f32) -> Single {
            Single { re: self.re + re, im: self.im }
        }
    }

    /// A set of numbers below 32.
    #[derive(Clone, Copy)]
    pub struct Set(pub u32);

    impl BitXor for Set {
        type Output = Set;
        fn bitxor(self, other: Set) -> Set {
            Set(self.0 ^ other.0)
        }
    }

    impl Not for Set {
        type Output = Set;
        fn not(self) -> Set {
            Set(!self.0)
        }
    }

    impl Shl<u32> for Set {
        type Output = Set;
        fn shl(self, by: u32) -> Set {
            Set(self.0 << (by & 31))
        }
    }
}
use numbers::{Both, Complex, Set, Single, Twice};

/// Uses each operator; rustc's code is the witness.
#[device]
fn computed(a: Single, b: Complex<f32>, word: u32) -> (Single, u32) {
    let mut c = a * b + -a - b * 0.5;
    c += 2.0 * a;
    c *= 1.5;
    c += Single::add(a, 1.0);
    let pair: Twice<f32> = (c.re, c.im);
    let (word, _): Both<u32, bool> = (word, true);
    let set = !(Set(word) ^ Set(3)) << 2;
    (Complex { re: pair.1, im: pair.0 }, set.0)
}

#[kernel(block = 64, grid = x.len().div_ceil(64))]
#[requires(y.len() == x.len(), z.len() == x.len(), words.len() == x.len())]
fn complex(x: &[Single], y: &[Complex<f32>], z: &mut [Single], words: &mut [u32]) {
    let i = grid::index();
    if i < x.len() {
        let (sum, set) = computed(x[i], y[i], words[i]);
        z[i] = sum;
        words[i] = set;
    }
}

#[test]
fn operators_of_structs_agree_with_rustc() {
    let of = |i: usize, k: usize| Single { re: (i * 7 % 13) as f32 * 0.3 - k as f32, im: (i * k % 11) as f32 * 0.7 };
    let (x, y): (Vec<_>, Vec<_>) = (0..100).map(|i| (of(i, 1), of(i, 3))).unzip();
    let words: Vec<u32> = (0..100u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let one = |i: usize| computed(x[i], y[i], words[i]);
    let (z, sets): (Vec<Single>, Vec<u32>) = (0..100).map(one).unzip();
    let inputs = vec![
        Input::slice(&x),
        Input::slice(&y),
        Input::slice(&[Single { re: 0.0, im: 0.0 }; 100]),
        Input::slice(&words),
    ];
    agree::<complex>(&checker(false), "complex", inputs, &[Expected::exact(2, z), Expected::exact(3, sets)]);
    assemble::<complex>();
}

/// Counts and sums over inclusive ranges; rustc's code is the witness.
#[device]
fn sums(i: u32) -> [u32; 3] {
    let (mut sum, mut order, mut count) = (0u32, 0u32, 0u32);
    for k in 0..=i {
        sum += k;
    }
    for k in (1..=i).rev() {
        order = order.wrapping_mul(31).wrapping_add(k);
    }
    for (n, k) in (2..=i).step_by(3).enumerate() {
        order = order.wrapping_mul(31).wrapping_add(k ^ n as u32);
    }
    for k in unroll(0..=3u32) {
        sum += k * i;
    }
    let last = i as u8;
    for k in 250..=255u8 {
        count += k as u32;
    }
    for k in last..=255u8 {
        count += (k & 1) as u32;
    }
    for k in -3..=last as i8 & 7 {
        count += (k + 3) as u32;
    }
    for _ in 5..=4 {
        count += 1000;
    }
    [sum, order, count]
}

#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 96)]
fn inclusive(out: &mut [u32]) {
    let i = thread::x() as u32;
    let all = sums(i);
    for k in unroll(0..3) {
        out[3 * thread::x() + k] = all[k];
    }
}

#[test]
fn inclusive_ranges_agree_with_rustc() {
    let expected: Vec<u32> = (0..32).flat_map(sums).collect();
    let inputs = vec![Input::slice(&[0u32; 96])];
    agree::<inclusive>(&checker(false), "inclusive", inputs, &[Expected::exact(0, expected)]);
    assemble::<inclusive>();
}

/// Adds a number to a hash.
#[device]
fn hashed(hash: u32, number: u32) -> u32 {
    hash.wrapping_mul(31).wrapping_add(number + 1)
}

/// Hashes the indices of inclusive ranges whose end may be the largest value; rustc's code is the
/// witness.
#[device]
fn last_indices(i: u32) -> [u32; 4] {
    let (back, below) = (i % 4, i / 4 % 2);
    let end = u32::MAX - below;
    let mut a = 0u32;
    for k in end - back..=end {
        a = hashed(a, u32::MAX - k);
    }
    for k in (end - back..=end).rev() {
        a = hashed(a, u32::MAX - k);
    }
    for (n, k) in (end - 3 * back..=end).step_by(2).enumerate() {
        a = hashed(a, u32::MAX - k + n as u32);
    }
    for k in end..=back {
        a = hashed(a, k);
    }
    for k in u32::MAX - back..=u32::MAX {
        if k == u32::MAX - 1 {
            continue;
        }
        a = hashed(a, u32::MAX - k);
    }
    let (back, below) = (back as i32, below as i32);
    let end = i32::MAX - below;
    let mut b = 0u32;
    for k in end - back..=end {
        b = hashed(b, (i32::MAX - k) as u32);
    }
    for k in (end - 3 * back..=end).rev().step_by(2) {
        b = hashed(b, (i32::MAX - k) as u32);
    }
    for k in back..=-1 - below {
        b = hashed(b, (k - back) as u32);
    }
    for k in -2 - below..=back {
        b = hashed(b, (k + 4) as u32);
    }
    let (back, below) = (back as u64, below as u64);
    let end = u64::MAX - below;
    let mut c = 0u32;
    for k in end - back..=end {
        c = hashed(c, (u64::MAX - k) as u32);
    }
    for k in (end - back..=end).rev() {
        c = hashed(c, (u64::MAX - k) as u32);
    }
    for k in (end - 3 * back..=end).rev().step_by(2) {
        c = hashed(c, (u64::MAX - k) as u32);
    }
    for (n, k) in (end - 3 * back..=end).rev().step_by(2).enumerate() {
        c = hashed(c, (u64::MAX - k) as u32 + n as u32);
    }
    for k in 0..=end {
        if k > back {
            break;
        }
        c = hashed(c, k as u32);
    }
    for k in back..=u64::MAX {
        if k > 4 {
            break;
        }
        c = hashed(c, k as u32);
    }
    let (back, below) = (back as i64, below as i64);
    let end = i64::MAX - below;
    let mut d = 0u32;
    for k in end - back..=end {
        d = hashed(d, (i64::MAX - k) as u32);
    }
    for k in (end - 3 * back..=end).rev().step_by(3) {
        d = hashed(d, (i64::MAX - k) as u32);
    }
    for k in i64::MIN..=end {
        if k > i64::MIN + back {
            break;
        }
        d = hashed(d, (k - i64::MIN) as u32);
    }
    for k in -2..=back - 1 {
        d = hashed(d, (k + 4) as u32);
    }
    [a, b, c, d]
}

#[kernel(block = 32, grid = 1)]
#[requires(out.len() == 128)]
fn inclusive_to_the_last(out: &mut [u32]) {
    let i = thread::x() as u32;
    let all = last_indices(i);
    for k in unroll(0..4) {
        out[4 * thread::x() + k] = all[k];
    }
}

#[test]
fn inclusive_ranges_reach_the_largest_value() {
    let expected: Vec<u32> = (0..32).flat_map(last_indices).collect();
    let inputs = vec![Input::slice(&[0u32; 128])];
    agree::<inclusive_to_the_last>(&checker(false), "inclusive", inputs, &[Expected::exact(0, expected)]);
    assemble::<inclusive_to_the_last>();
}

#[kernel(block = 32, grid = 1)]
#[requires(x.len() == 64)]
fn swapped(x: &mut [u32]) {
    let i = thread::x();
    let (mut a, mut b) = (x[2 * i], x[2 * i + 1]);
    let mut both = [a, 7, b];
    if a > b {
        std::mem::swap(&mut a, &mut b);
    }
    std::mem::swap(&mut both[0], &mut a);
    x[2 * i] = a * 2 + both[0];
    x[2 * i + 1] = b;
}

#[test]
fn swaps_exchange_values() {
    let x: Vec<u32> = (0..64u32).map(|i| i * 37 % 64).collect();
    let one = |pair: &[u32]| {
        let (low, high) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
        [pair[0] * 2 + low, high]
    };
    let expected: Vec<u32> = x.chunks(2).flat_map(one).collect();
    agree::<swapped>(&checker(false), "swapped", vec![Input::slice(&x)], &[Expected::exact(0, expected)]);
}

#[device]
mod linear {
    use kernel_dsl::prelude::*;
    use std::ops::{Index, IndexMut};

    #[derive(Clone, Copy)]
    pub struct Matrix<T: Element, const R: usize, const C: usize> {
        pub rows: [[T; C]; R],
    }

    impl<T: Element, const R: usize, const C: usize> Index<(usize, usize)> for Matrix<T, R, C> {
        type Output = T;
        fn index(&self, at: (usize, usize)) -> &T {
            &self.rows[at.0][at.1]
        }
    }

    impl<T: Element, const R: usize, const C: usize> IndexMut<(usize, usize)> for Matrix<T, R, C> {
        fn index_mut(&mut self, at: (usize, usize)) -> &mut T {
            &mut self.rows[at.0][at.1]
        }
    }

    impl<T: Element, const R: usize, const C: usize> Index<usize> for Matrix<T, R, C> {
        type Output = [T; C];
        fn index(&self, row: usize) -> &[T; C] {
            &self.rows[row]
        }
    }

    impl<T: Element, const R: usize, const C: usize> IndexMut<usize> for Matrix<T, R, C> {
        fn index_mut(&mut self, row: usize) -> &mut [T; C] {
            &mut self.rows[row]
        }
    }

    #[derive(Clone, Copy)]
    pub struct Point {
        pub x: f32,
        pub y: f32,
        pub z: f32,
    }

    impl Index<usize> for Point {
        type Output = f32;
        fn index(&self, axis: usize) -> &Self::Output {
            if axis == 0 {
                &self.x
            } else if axis == 1 {
                &self.y
            } else {
                &self.z
            }
        }
    }

    impl IndexMut<usize> for Point {
        fn index_mut(&mut self, axis: usize) -> &mut f32 {
            match axis {
                0 => &mut self.x,
                1 => &mut self.y,
                _ => &mut self.z,
            }
        }
    }

    impl Point {
        /// Sets a coordinate, and adds it to the next one.
        pub fn set(&mut self, axis: usize, value: f32) {
            self[axis] = value;
            self[(axis + 1) % 3] += self[axis];
        }
    }
}
use linear::{Matrix, Point};

#[device]
fn add_hundred(x: &mut f32) {
    *x += 100.0;
}

/// Reads and writes elements by `Index` and `IndexMut`; rustc's code is the witness.
#[device]
fn indexed(x: f32) -> [f32; 6] {
    let mut m = Matrix::<f32, 2, 3> { rows: [[x; 3]; 2] };
    for r in unroll(0..2) {
        for c in unroll(0..3) {
            m[(r, c)] += (r * 3 + c) as f32;
            m[r][c] *= 2.0;
        }
    }
    add_hundred(&mut m[(1, 1)]);
    m[0] = [1.0, m[1][2], m[(0, 1)]];
    let mut p = Point { x, y: 1.0, z: 2.0 };
    p[0] = 4.0;
    p[2] += p[0];
    p.set(1, 8.0);
    (p[0], p[1]) = (p[1] + 1.0, p[0]);
    [m[(0, 0)], m[(0, 1)], m[(0, 2)], m[1][1], p[0] + 3.0 * p[1], p[2]]
}

#[kernel(block = 32, grid = 1)]
#[requires(y.len() == 192)]
fn by_index(y: &mut [f32]) {
    let parts = indexed(thread::x() as f32);
    for k in unroll(0..6) {
        y[6 * thread::x() + k] = parts[k];
    }
}

#[test]
fn indices_of_structs_agree_with_rustc() {
    let expected: Vec<f32> = (0..32).flat_map(|i| indexed(i as f32)).collect();
    let inputs = vec![Input::slice(&[0f32; 192])];
    agree::<by_index>(&checker(false), "by_index", inputs, &[Expected::exact(0, expected)]);
    assemble::<by_index>();
}
