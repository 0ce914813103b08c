//! The error function.

use crate::device;

/// Returns the error function 2/√π · ∫₀ˣ e^−t² dt, to 1.444 ulp.
///
/// ±1 beyond ±3.92; a zero keeps its sign; NaN for NaN.
///
/// Up to 1 the result is x + x·q(x²), q minimax of degree 6 (relative error 1.4·10⁻⁹). Above 1 it
/// is 1 − 2^−p(|x|), where p is the minimax polynomial of degree 6 for −log₂ erfc, to 1.1·10⁻⁹ of
/// the result. A polynomial of degree 5 suffices for 2^−p. Both forms are computed, so there is no
/// branch.
#[device]
pub fn erf(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let q = 7.806903e-5f32; // 0x1.4771fcp-14
    let q = q.mul_add(z, -7.997853e-4); // −0x1.a3515ep-11
    let q = q.mul_add(z, 0.005187162); // 0x1.53f224p-8
    let q = q.mul_add(z, -0.026853347); // −0x1.b7f71ap-6
    let q = q.mul_add(z, 0.11283579); // 0x1.ce2ce6p-4
    let q = q.mul_add(z, -0.37612626); // −0x1.81273ep-2
    let q = q.mul_add(z, 0.12837917); // 0x1.06eba8p-3
    let near = a.mul_add(q, a);
    let b = a.min(3.95);
    let p = -2.6887722e-4f32; // −0x1.19f02ep-12
    let p = p.mul_add(b, 0.0042524836); // 0x1.16b0d6p-8
    let p = p.mul_add(b, -0.03150539); // −0x1.021798p-5
    let p = p.mul_add(b, 0.14875117); // 0x1.30a474p-3
    let p = p.mul_add(b, 0.92064875); // 0x1.d75f46p-1
    let p = p.mul_add(b, 1.6260458); // 0x1.a0448ap0
    let p = p.mul_add(b, 4.9274357e-4); // 0x1.0256ecp-11
    let shifted = 12582912.0 - p;
    let r = (12582912.0 - shifted) - p;
    let e = 0.0013669268f32; // 0x1.6654e8p-10
    let e = e.mul_add(r, 0.00968481); // 0x1.3d5a14p-7
    let e = e.mul_add(r, 0.05549681); // 0x1.c6a13ep-5
    let e = e.mul_add(r, 0.24021919); // 0x1.ebf80ap-3
    let e = e.mul_add(r, 0.6931474); // 0x1.62e438p-1
    let e = e.mul_add(r, 1.0000001); // 0x1.000002p0
    let far = 1.0 - f32::from_bits(e.to_bits().wrapping_add(shifted.to_bits() << 23));
    (if a >= 1.0 { far } else { near }).copysign(x)
}
