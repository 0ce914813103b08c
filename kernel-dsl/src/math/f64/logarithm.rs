//! The natural logarithm and the logarithm to base 2.

use crate::device;

/// Splits a positive finite x = m·2ⁿ into m, from √½ to √2, and n.
#[device]
pub(super) fn parts(x: f64) -> (f64, f64) {
    let subnormal = x < 2.2250738585072014e-308;
    let a = if subnormal { x * 18014398509481984.0 } else { x };
    let scale = if subnormal { -54 } else { 0 };
    let bits = a.to_bits();
    // The upper word decides: √½ is 0x3FE6_A09E_667F_….
    let exponent = ((bits >> 32) as u32).wrapping_sub(0x3FE6_A09E) & 0xFFF0_0000;
    let m = f64::from_bits(bits.wrapping_sub((exponent as u64) << 32));
    (m, (((exponent as i32) >> 20) + scale) as f64)
}

/// Returns (m − 1) / (m + 1) in two parts, the second below the last place of the first, for m from
/// √½ to √2.
///
/// The reciprocal of m + 1 starts in `f32`: a minimax polynomial of degree 2 (1.3·10⁻³). A step of
/// the third order in `f32` and one of the second in `f64` reach 2⁻⁴⁶; the remainder of the
/// quotient adds the missing bits.
#[device]
pub(super) fn quotient(m: f64) -> (f64, f64) {
    let z = m - 1.0;
    let d = m + 1.0;
    let dl = m - (d - 1.0);
    let f = d as f32;
    let i = 0.11686288f32.mul_add(f, -0.72244453).mul_add(f, 1.4777569);
    let e = f.mul_add(-i, 1.0);
    let i = i.mul_add(e.mul_add(e, e), i) as f64;
    let i = i.mul_add(d.mul_add(-i, 1.0), i);
    let s = z * i;
    let sl = s.mul_add(-dl, s.mul_add(-d, z)) * i;
    let t = s + sl;
    (t, (s - t) + sl)
}

/// Returns y, but −∞ where x = 0, ∞ where x = ∞, and NaN where x < 0 or x is a NaN.
#[device]
fn with_special_cases(x: f64, y: f64) -> f64 {
    let y = if x.to_bits() < 0x7FF0_0000_0000_0000 { y } else { x.mul_add(f64::INFINITY, f64::INFINITY) };
    if x == 0.0 { f64::NEG_INFINITY } else { y }
}

/// Returns the natural logarithm.
///
/// ln(±0) = −∞, ln(∞) = ∞; NaN for NaN and negative numbers.
///
/// x = m·2ⁿ, and ln m = 2·artanh s ≈ 2s + s³·q(s²), s = (m − 1) / (m + 1), q minimax of degree 6
/// (relative error 1.2·10⁻¹⁸); n·ln 2 and 2s are summed in two parts.
#[device]
pub fn ln(x: f64) -> f64 {
    let (m, n) = parts(x);
    let (s, sl) = quotient(m);
    let w = s * s;
    let q = 0.1479545471035645f64; // 0x1.2f02cb28d59bdp-3
    let q = q.mul_add(w, 0.15314102756577097); // 0x1.39a200c8910a8p-3
    let q = q.mul_add(w, 0.1818356216405303); // 0x1.74663c018d1f6p-3
    let q = q.mul_add(w, 0.22222198617544064); // 0x1.c71c52189affp-3
    let q = q.mul_add(w, 0.2857142874192194); // 0x1.24924941dca9dp-2
    let q = q.mul_add(w, 0.39999999999416974); // 0x1.999999997ff55p-2
    let q = q.mul_add(w, 0.6666666666666734); // 0x1.5555555555592p-1
    let t = s + s;
    let tl = (w * s).mul_add(q, sl + sl);
    let whole = n * 0.6931471805592082; // 0x1.62e42fefa2p-1, of 40 bits
    let h = whole + t;
    let l = (whole - h) + t + n.mul_add(7.371002565167799e-13, tl); // 0x1.9ef35793c7673p-41
    with_special_cases(x, h + l)
}

/// Returns log₂ of m·2ⁿ as a sum of two numbers, to a relative error of about 2⁻⁶⁴.
///
/// n + 2/ln 2·s + c·s³ + s⁵·q(s²), with q minimax of degree 6 (2⁻⁶⁶ of the sum); all terms except
/// s⁵·q are carried in two parts.
#[device]
pub(super) fn log2_parts(m: f64, n: f64) -> (f64, f64) {
    let (s, sl) = quotient(m);
    let w = s * s;
    let wl = (s + s).mul_add(sl, s.mul_add(s, -w));
    let q = 0.1903792091126489f64; // 0x1.85e588e7d13fbp-3
    let q = q.mul_add(w, 0.1912558629189604); // 0x1.87b127633dd66p-3
    let q = q.mul_add(w, 0.22198396614889962); // 0x1.c69f8796c4649p-3
    let q = q.mul_add(w, 0.2623077018455701); // 0x1.0c9a63e3a99e3p-2
    let q = q.mul_add(w, 0.32059890226492205); // 0x1.484b142172034p-2
    let q = q.mul_add(w, 0.4121985830919908); // 0x1.a61762a759be1p-2
    let v = q.mul_add(w, 0.5770780163556178) * w; // 0x1.2776c50ef9d23p-1
    let c = 0.9617966939259756 + v; // 0x1.ec709dc3a03fdp-1
    let cl = (0.9617966939259756 - c) + v + 5.0577616648125907e-17; // 0x1.d27f05548af0cp-55
    let cube = w * s;
    let cube_low = wl.mul_add(s, w.mul_add(sl, w.mul_add(s, -cube)));
    let u = cube * c;
    let ul = cube_low.mul_add(c, cube.mul_add(cl, cube.mul_add(c, -u)));
    let t = s * 2.8853900817779268; // 0x1.71547652b82fep1
    let tl = s.mul_add(4.0710547481862066e-17, s.mul_add(2.8853900817779268, -t)); // 0x1.777d0ffda0d24p-55
    let tl = sl.mul_add(2.8853900817779268, tl);
    let top = n + t;
    let low = (n - top) + t;
    let sum = top + u;
    let low = low + ((top - sum) + u) + (tl + ul);
    let h = sum + low;
    (h, (sum - h) + low)
}

/// Returns the logarithm to base 2, exact for powers of 2. Zeros, infinities and negative numbers
/// as in [`ln`].
#[device]
pub fn log2(x: f64) -> f64 {
    let (m, n) = parts(x);
    let (h, l) = log2_parts(m, n);
    with_special_cases(x, h + l)
}
