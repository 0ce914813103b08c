//! Sine and cosine of angles in radians, of any size: as for `f32`, with longer parts.

use crate::device;
use crate::int;

/// Reduces an angle of at least 2²⁰ to its difference from the nearest multiple n·π/2, in two
/// parts, and n modulo 4: Payne and Hanek's reduction with 192 bits of 2/π.
#[device]
fn large_angle(a: f64) -> (f64, f64, u32) {
    // The bits of 2/π after the binary point, after a word of zeros.
    const TWO_OVER_PI: [u64; 20] = [
        0x0000_0000_0000_0000,
        0xA2F9_836E_4E44_1529,
        0xFC27_57D1_F534_DDC0,
        0xDB62_9599_3C43_9041,
        0xFE51_63AB_DEBB_C561,
        0xB724_6E3A_424D_D2E0,
        0x0649_2EEA_09D1_921C,
        0xFE1D_EB1C_B129_A73E,
        0xE882_35F5_2EBB_4484,
        0xE99C_7026_B45F_7E41,
        0x3991_D639_8353_39F4,
        0x9C84_5F8B_BDF9_283B,
        0x1FF8_97FF_DE05_980F,
        0xEF2F_118B_5A0A_6D1F,
        0x6D36_7ECF_27CB_09B7,
        0x4F46_3F66_9E5F_EA2D,
        0x7527_BAC7_EBE5_F17B,
        0x3D07_39F7_8A52_92EA,
        0x6BFB_5FB1_1F8D_5D08,
        0x5603_3046_FC7B_6BAB,
    ];
    let bits = a.to_bits();
    let m = (bits & 0x000F_FFFF_FFFF_FFFF) | 0x0010_0000_0000_0000;
    // For the exponent e of a, the mantissa's last bit has the weight 2^(e − 52). The window starts
    // at the bit of 2/π with the weight 2^(53 − e): their product is 2, the upper bit of n.
    let start = (bits >> 52) as u32 - 1013;
    let (word, bit) = ((start >> 6) as usize, start & 63);
    let high = window(TWO_OVER_PI[word], TWO_OVER_PI[word + 1], bit);
    let middle = window(TWO_OVER_PI[word + 1], TWO_OVER_PI[word + 2], bit);
    let low = window(TWO_OVER_PI[word + 2], TWO_OVER_PI[word + 3], bit);
    let second = m.wrapping_mul(middle);
    let p1 = second.wrapping_add(int::mul_hi(m, low));
    let carry = if p1 < second { 1u64 } else { 0 };
    let p0 = m.wrapping_mul(high).wrapping_add(int::mul_hi(m, middle)).wrapping_add(carry);
    let n = (p0.wrapping_add(1 << 61) >> 62) as u32;
    // The rest is a signed fraction of a quarter turn, in units of 2⁻¹²⁶.
    let rest = p0.wrapping_sub((n as u64) << 62);
    let negative = rest >> 63 != 0;
    let size = if negative { !rest } else { rest };
    let size_low = if negative { !p1 } else { p1 };
    let zeros = size.leading_zeros();
    let top = if zeros < 64 { window(size, size_low, zeros) } else { size_low };
    let angle = int::mul_hi(top, 0xC90F_DAA2_2168_C234); // π/2·2⁶³
    let near = angle as f64;
    let off = angle.wrapping_sub(near as u64) as i64 as f64;
    // 2^(−61 − zeros), and the sign
    let scale = f64::from_bits(((962 - zeros as u64) << 52) | if negative { 0x8000_0000_0000_0000 } else { 0 });
    // The difference is a NaN for an infinity.
    (near * scale + (a - a), off * scale, n)
}

/// Returns 64 bits of the two words `high`:`low`, starting at bit `start` of `high`, counted from
/// the top; `start` < 64.
#[device]
fn window(high: u64, low: u64, start: u32) -> u64 {
    (high << start) | (low >> 1 >> (63 - start))
}

/// Reduces an angle a ≥ 0 to its difference from the nearest multiple n·π/2, in two parts, and n,
/// whose lowest two bits matter; NaN for infinities and NaNs.
#[device]
fn reduced_angle(a: f64) -> (f64, f64, u32) {
    let shifted = a.mul_add(0.6366197723675814, 6755399441055744.0); // 2/π, and 1.5·2⁵²
    let k = shifted - 6755399441055744.0;
    let near = k.mul_add(-1.5707963267948966, a); // 0x1.921fb54442d18p0
    let p = k * 6.123233995736765e-17; // 0x1.1a62633145c06p-54
    let r = near - p;
    let low = k.mul_add(1.082856673921914e-32, k.mul_add(6.123233995736765e-17, -p)); // 0x1.c1cd129024e09p-107
    let rest = (near - r) - p - low;
    if a > 1647099.0 { large_angle(a) } else { (r, rest, shifted.to_bits() as u32) }
}

/// Returns sin(r + rest) for |r| ≤ π/4: r + r³·q(r²), q minimax of degree 5 (relative error
/// 3.7·10⁻¹⁸).
#[device]
fn sine(r: f64, rest: f64, z: f64) -> f64 {
    let q = 1.5895432168720789e-10f64; // 0x1.5d8b53f725e67p-33
    let q = q.mul_add(z, -2.505073437458903e-8); // −0x1.ae5e4b7faa16ep-26
    let q = q.mul_add(z, 2.7557313538453324e-6); // 0x1.71de355527cfep-19
    let q = q.mul_add(z, -0.0001984126982935845); // −0x1.a01a019be91fap-13
    let q = q.mul_add(z, 0.00833333333332184); // 0x1.111111110f73p-7
    let q = q.mul_add(z, -0.1666666666666663); // −0x1.5555555555548p-3
    r + (z * r).mul_add(q, rest)
}

/// Returns cos(r + rest) for |r| ≤ π/4: 1 − r²/2 + r⁴·q(r²), q minimax of degree 5 (relative error
/// 5.7·10⁻²⁰).
#[device]
fn cosine(r: f64, rest: f64, z: f64) -> f64 {
    let q = -1.1358749006229408e-11f64; // −0x1.8fa683fd4b17cp-37
    let q = q.mul_add(z, 2.0875705392738723e-9); // 0x1.1ee9dbce39a17p-29
    let q = q.mul_add(z, -2.755731421702353e-7); // −0x1.27e4f7f19093bp-22
    let q = q.mul_add(z, 2.4801587289002056e-5); // 0x1.a01a019c8f24dp-16
    let q = q.mul_add(z, -0.0013888888888873342); // −0x1.6c16c16c15015p-10
    let q = q.mul_add(z, 0.041666666666666595); // 0x1.555555555554bp-5
    let half = z * 0.5;
    let near = 1.0 - half;
    near + (z * z).mul_add(q, rest.mul_add(-r, (1.0 - near) - half))
}

/// Returns the sine of an angle in radians. A zero keeps its sign; NaN for infinities and NaN. As
/// [`math::sin`](crate::math::sin); Payne and Hanek's reduction from 1647099 on.
#[device]
pub fn sin(x: f64) -> f64 {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let y = if n & 1 == 0 { sine(r, rest, z) } else { cosine(r, rest, z) };
    f64::from_bits(y.to_bits() ^ ((((n as u64) << 62) ^ x.to_bits()) & 0x8000_0000_0000_0000))
}

/// Returns the cosine of an angle in radians; NaN for infinities and NaN. As [`sin`].
#[device]
pub fn cos(x: f64) -> f64 {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let y = if n & 1 == 0 { cosine(r, rest, z) } else { sine(r, rest, z) };
    f64::from_bits(y.to_bits() ^ (((n.wrapping_add(1) as u64) << 62) & 0x8000_0000_0000_0000))
}

/// Returns the sine and the cosine of an angle in radians, which share most of their work: the same
/// bits as [`sin`] and [`cos`].
#[device]
pub fn sin_cos(x: f64) -> (f64, f64) {
    let (r, rest, n) = reduced_angle(x.abs());
    let z = r * r;
    let (s, c) = (sine(r, rest, z), cosine(r, rest, z));
    let (sin, cos) = if n & 1 == 0 { (s, c) } else { (c, s) };
    (
        f64::from_bits(sin.to_bits() ^ ((((n as u64) << 62) ^ x.to_bits()) & 0x8000_0000_0000_0000)),
        f64::from_bits(cos.to_bits() ^ (((n.wrapping_add(1) as u64) << 62) & 0x8000_0000_0000_0000)),
    )
}
