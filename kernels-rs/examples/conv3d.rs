//! A convolution of volumes as an implicit matrix product: windows are gathered on the way to
//! shared memory.
//!
//! ```text
//! cargo run --release -p kernels-rs --example conv3d
//! ```
//!
//! The extents of the kernel, the strides and the padding are constants of an instance; the patch
//! embedding of a vision model has a stride equal to the kernel, and no padding. Tiles have 64
//! positions × 64 channels × 16, with 256 threads and 4 × 4 elements each. The file shows a struct
//! made by the same Rust on the host and on the device, and loads that give zero out of bounds.

use kernel_dsl::prelude::*;
use runtime::Device;
use std::error::Error;

/// Division n / d for n < 2³¹ by one multiply-high and a shift; made on the host by the same Rust
/// code, and passed by value.
#[device]
pub mod divisor {
    use kernel_dsl::prelude::*;
    /// A number to divide by.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct Divisor {
        /// The divisor.
        pub d: u32,
        /// The factor that replaces the divisor.
        pub magic: u32,
        /// The shift after the product.
        pub shift: u32,
    }
    impl Divisor {
        /// Computes factor and shift for `d`, at least 1.
        pub const fn new(d: u32) -> Divisor {
            let shift = 32 - (d - 1).leading_zeros();
            Divisor { d, magic: ((((1u64 << shift) - d as u64) << 32) / d as u64 + 1) as u32, shift }
        }
        /// Returns (quotient, remainder).
        pub fn div_rem(self, n: u32) -> (u32, u32) {
            let q = (((self.magic as u64 * n as u64) >> 32) as u32 + n) >> self.shift; // mul.hi, add, shr
            (q, n - q * self.d)
        }
    }
}
use divisor::Divisor;

/// Computes the convolution. x: [N, C, T, H, W]; w: [OUT, C·KT·KH·KW]; y: [N·OT·OH·OW, OUT].
#[kernel(
    block = 256, grid = (y.cols().div_ceil(64), y.rows().div_ceil(64)),
    instances(KT = 2, KH = 14, KW = 14, ST = 2, SP = 14, PAD = 0; KT = 3, KH = 3, KW = 3, ST = 1, SP = 1, PAD = 1),
    writes(y = once),
)]
#[requires(w.cols() == x.dim(1) * KT * KH * KW, y.cols() == w.rows(), ow.d * oh.d * ot.d * x.dim(0) as u32 == y.rows() as u32)]
pub fn conv3d<const KT: usize, const KH: usize, const KW: usize, const ST: usize, const SP: usize, const PAD: usize>(
    x: View<f32, 5>,
    w: View<f32, 2>,
    bias: &[f32],
    y: ViewMut<f32, 2>,
    ot: Divisor,
    oh: Divisor,
    ow: Divisor,
) {
    let mut sx = Shared::<f32, 2>::with_pitch([16, 64], 68);
    let mut sw = Shared::<f32, 2>::with_pitch([16, 64], 68);
    let (m0, n0) = (block::y() * 64, block::x() * 64);
    let (tm, tn) = (thread::x() / 16 * 4, thread::x() % 16 * 4);

    // Four threads gather each of 64 positions: a thread loads 4 values of k per step. A position
    // is decoded once.
    let row = m0 + thread::x() % 64;
    let (q, px) = ow.div_rem(row as u32);
    let (q, py) = oh.div_rem(q);
    let (n, pt) = ot.div_rem(q);
    let origin = |p: u32, s: usize| (p as usize * s).wrapping_sub(PAD);
    let (t0, y0, x0) = (origin(pt, ST), origin(py, SP), origin(px, SP));

    let k_all = w.cols();
    let mut acc = [[0.0f32; 4]; 4];
    for k0 in rolled((0..k_all).step_by(16)) {
        for i in unroll(0..4) {
            let kk = thread::x() / 64 * 4 + i;
            let k = k0 + kk;
            let (c, kt, kh, kw) = (k / (KT * KH * KW), k / (KH * KW) % KT, k / KW % KH, k % KW); // constants: multiply and shift
            let at = (n as usize, c, t0.wrapping_add(kt), y0.wrapping_add(kh), x0.wrapping_add(kw));
            // Where k is beyond the last weight, c is not a channel of x.
            sx[(kk, thread::x() % 64)] = x.get(at).unwrap_or(0.0);
            sw[(kk, thread::x() % 64)] = w.get((n0 + thread::x() % 64, k)).unwrap_or(0.0);
        }
        block::sync();
        for k in unroll(0..16) {
            let (a, b): ([f32; 4], [f32; 4]) = (sx.load((k, tm)), sw.load((k, tn)));
            for i in unroll(0..4) {
                for j in unroll(0..4) {
                    acc[i][j] = a[i].mul_add(b[j], acc[i][j]);
                }
            }
        }
        block::sync();
    }
    let b: [f32; 4] = bias.load_or(n0 + tn, 0.0);
    for i in unroll(0..4) {
        for j in unroll(0..4) {
            acc[i][j] += b[j];
        }
        y.store_in((m0 + tm + i, n0 + tn), acc[i]);
    }
}

/// Smooths a volume with a kernel of ones, and compares it with plain Rust.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [t, h, w] = [3, 6, 5];
    let x: Vec<f32> = (0..t * h * w).map(|i| (i * 7 % 11) as f32).collect();
    let device = Device::best()?;
    let (on_x, weights, bias) = (device.upload(&x)?, device.upload(&[1.0f32; 27])?, device.upload(&[0.5f32])?);
    let mut y = device.zeros::<f32>(t * h * w)?;
    let [ot, oh, ow] = [t, h, w].map(|n| Divisor::new(n as u32));
    conv3d::<3, 3, 3, 1, 1, 1>::launch(
        &device,
        on_x.view([1, 1, t, h, w])?,
        weights.view([1, 27])?,
        &bias,
        y.view_mut([t * h * w, 1])?,
        ot,
        oh,
        ow,
    )?;

    let y = y.download()?;
    let near = |i: usize, n: usize| i.saturating_sub(1)..(i + 2).min(n);
    for (i, y) in y.iter().enumerate() {
        let (pt, ph, pw) = (i / (h * w), i / w % h, i % w);
        let mut sum = 0.5;
        for (a, b) in near(pt, t).flat_map(|a| near(ph, h).map(move |b| (a, b))) {
            sum += near(pw, w).map(|c| x[(a * h + b) * w + c]).sum::<f32>();
        }
        assert_eq!(*y, sum, "position {i}");
    }
    println!("{t} x {h} x {w}: all {} sums of 3 x 3 x 3 windows equal plain Rust", y.len());
    y[..h * w].chunks(w).for_each(|row| println!("{row:6.1?}"));
    Ok(())
}
