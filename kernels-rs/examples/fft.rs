//! Fourier transforms of 256 complex numbers: a block for each transform, in shared memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example fft
//! ```
//!
//! The file shows complex numbers as a device struct with an operator and a method, in buffers and
//! in shared memory. The kernel is generic over the direction.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Complex numbers.
#[device]
pub mod complex {
    use kernel_dsl::prelude::*;
    use std::ops::Mul;

    /// A complex number.
    #[derive(Clone, Copy, DeviceCopy)]
    #[repr(C)]
    pub struct Complex {
        /// The real part.
        pub re: f32,
        /// The imaginary part.
        pub im: f32,
    }

    impl Mul for Complex {
        type Output = Complex;
        fn mul(self, b: Complex) -> Complex {
            Complex { re: self.re.mul_add(b.re, -(self.im * b.im)), im: self.re.mul_add(b.im, self.im * b.re) }
        }
    }

    impl Complex {
        /// Returns self + b and self − b.
        pub fn butterfly(self, b: Complex) -> [Complex; 2] {
            [Complex { re: self.re + b.re, im: self.im + b.im }, Complex { re: self.re - b.re, im: self.im - b.im }]
        }
    }
}
use complex::Complex;

/// Transforms each 256 numbers of x in place, with roots[k] = exp(−2πik/256). The inverse does not
/// divide by 256.
#[kernel(block = 128, grid = x.len() / 256, instances(INVERSE = false | true))]
#[requires(x.len() % 256 == 0, roots.len() == 128)]
pub fn fft<const INVERSE: bool>(roots: &[Complex], x: &mut [Complex]) {
    let mut s = Shared::<Complex, 1>::new([256]);
    let (t, first) = (thread::x(), 256 * block::x());
    // Loads the elements in the order of their reversed indices.
    for k in unroll(0..2) {
        let i = t + 128 * k;
        s[((i as u32).reverse_bits() >> 24) as usize] = x[first + i];
    }
    for level in unroll(0..8) {
        block::sync();
        let half = 1 << level;
        let place = t & (half - 1);
        let low = 2 * (t - place) + place;
        let root = roots[place << (7 - level)];
        let root = if INVERSE { Complex { re: root.re, im: -root.im } } else { root };
        let [sum, difference] = s[low].butterfly(s[low + half] * root);
        s[low] = sum;
        s[low + half] = difference;
    }
    // The last level of each thread computes the elements that the thread stores.
    for k in unroll(0..2) {
        x[first + t + 128 * k] = s[t + 128 * k];
    }
}

/// Returns the roots of unity.
pub fn roots() -> Vec<Complex> {
    let root = |k: i32| (-std::f64::consts::TAU * f64::from(k) / 256.0).sin_cos();
    (0..128).map(root).map(|(im, re)| Complex { re: re as f32, im: im as f32 }).collect()
}

/// Returns `n` numbers between −1 and 1.
pub fn signal(n: usize) -> Vec<Complex> {
    let part = |k: usize| ((k * 7919 + 13) % 1009) as f32 / 504.5 - 1.0;
    (0..n).map(|k| Complex { re: part(2 * k), im: part(2 * k + 1) }).collect()
}

/// Returns the transforms in f64, by their definition: alternating real and imaginary parts.
pub fn transformed(x: &[Complex], inverse: bool) -> Vec<f64> {
    let sign = if inverse { 1.0 } else { -1.0 };
    let of = |x: &[Complex], k: usize| {
        x.iter().enumerate().fold([0.0, 0.0], |[re, im], (n, x)| {
            let (s, c) = (sign * std::f64::consts::TAU * (k * n % 256) as f64 / 256.0).sin_cos();
            let (a, b) = (f64::from(x.re), f64::from(x.im));
            [re + a * c - b * s, im + a * s + b * c]
        })
    };
    x.chunks(256).flat_map(|x| (0..256).flat_map(move |k| of(x, k))).collect()
}

/// Transforms there and back.
pub fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::best()?;
    let signal = signal(512);
    let (on_roots, mut x) = (device.upload(&roots())?, device.upload(&signal)?);
    fft::<false>::launch(&device, &on_roots, &mut x)?;
    let spectrum: Vec<f64> = x.download()?.iter().flat_map(|z| [z.re, z.im].map(f64::from)).collect();
    let error = spectrum.iter().zip(transformed(&signal, false)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(error < 1e-4, "{error}");
    fft::<true>::launch(&device, &on_roots, &mut x)?;
    let error = x.download()?.iter().zip(&signal).map(|(a, b)| (a.re / 256.0 - b.re).abs()).fold(0.0, f32::max);
    assert!(error < 1e-6, "{error}");
    println!("two transforms of 256 numbers, there and back: error {error:.1e}");
    Ok(())
}
