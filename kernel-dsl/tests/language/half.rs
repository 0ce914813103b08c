//! Tests of the encodings of 16-bit floats: their values, and rounding to the nearest.

use kernel_dsl::compiler::half::{NAN, bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use kernel_dsl::half::{bf16, f16};

/// Format: number of fraction bits, exponent bias, the tested conversions, and those of crate
/// `half`.
struct Format {
    fraction: u32,
    bias: i32,
    decode: fn(u16) -> f32,
    encode: fn(f32) -> u16,
    theirs: fn(f32) -> u16,
}

const FORMATS: [Format; 2] = [
    Format {
        fraction: 10,
        bias: 15,
        decode: f16_to_f32,
        encode: f16_from_f32,
        theirs: |x| f16::from_f32_const(x).to_bits(),
    },
    Format {
        fraction: 7,
        bias: 127,
        decode: bf16_to_f32,
        encode: bf16_from_f32,
        theirs: |x| bf16::from_f32_const(x).to_bits(),
    },
];

impl Format {
    fn infinity(&self) -> u16 {
        0x7FFF >> self.fraction << self.fraction
    }

    /// Returns the value of a positive encoding, by the definition of the format. Infinity has the
    /// value of the next power of two after the largest number.
    fn value(&self, code: u16) -> f64 {
        let exponent = i32::from(code >> self.fraction);
        let fraction = f64::from(code & !(u16::MAX << self.fraction)) / f64::from(1u32 << self.fraction);
        match exponent {
            0 => fraction * 2f64.powi(1 - self.bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        }
    }

    /// Returns the encoding nearest to `x`, computed with integers: the fraction is shifted to the
    /// format's width, and the discarded bits decide.
    fn nearest(&self, x: f32) -> u16 {
        let (bits, sign) = (x.to_bits() & 0x7FFF_FFFF, (x.to_bits() >> 16) as u16 & 0x8000);
        if bits > 0x7F80_0000 {
            return 0x7FFF;
        }
        let (exponent, fraction) = ((bits >> 23) as i32, u64::from(bits & 0x7F_FFFF));
        let significand = if exponent == 0 { fraction } else { fraction | 1 << 23 };
        // x = significand · 2^(scale − 23).
        let scale = exponent.max(1) - 127;
        let unit = scale.max(1 - self.bias);
        let drop = (23 - self.fraction as i32 + unit - scale).min(40) as u32;
        let (kept, lost, half) = (significand >> drop, significand & ((1 << drop) - 1), 1u64 << drop >> 1);
        let up = lost > half || lost == half && half > 0 && kept & 1 == 1;
        let code = (((unit + self.bias - 1) as u64) << self.fraction) + kept + u64::from(up);
        sign | code.min(u64::from(self.infinity())) as u16
    }

    fn check(&self, x: f32) {
        let code = (self.encode)(x);
        assert_eq!(code, self.nearest(x), "{x:e} ({:#010x})", x.to_bits());
        if !x.is_nan() {
            assert_eq!(code, (self.theirs)(x), "{x:e} ({:#010x})", x.to_bits());
        }
    }
}

#[test]
fn each_code_has_its_value() {
    for format in &FORMATS {
        for code in 0..=u16::MAX {
            let magnitude = code & 0x7FFF;
            let value = (format.decode)(code);
            if magnitude > format.infinity() {
                assert!(value.is_nan(), "{code:#06x}");
                continue;
            }
            let expected = if magnitude == format.infinity() { f64::INFINITY } else { format.value(magnitude) };
            assert_eq!(f64::from(value.abs()), expected, "{code:#06x}");
            assert_eq!(value.is_sign_negative(), code & 0x8000 != 0, "{code:#06x}");
            assert_eq!((format.encode)(value), code);
        }
    }
}

#[test]
fn rounding_is_to_nearest_ties_to_even() {
    for format in &FORMATS {
        for code in 0..format.infinity() {
            // The midpoint of two neighbors, including infinity, is an f32.
            let middle = ((format.value(code) + format.value(code + 1)) / 2.0) as f32;
            let even = code + (code & 1);
            for (x, expected) in [(middle.next_down(), code), (middle, even), (middle.next_up(), code + 1)] {
                assert_eq!((format.encode)(x), expected, "{x:e}");
                assert_eq!((format.encode)(-x), expected | 0x8000, "{x:e}");
                format.check(x);
                format.check(-x);
            }
        }
    }
}

#[test]
fn all_nans_become_one() {
    for bits in [0x7F80_0001u32, 0x7FBF_FFFF, 0x7FC0_0000, 0x7FFF_FFFF] {
        for format in &FORMATS {
            assert_eq!((format.encode)(f32::from_bits(bits)), NAN);
            assert_eq!((format.encode)(f32::from_bits(bits | 0x8000_0000)), NAN);
        }
    }
}

/// Checks a sample of all f32 values; with `KERNELS_SWEEP` in the environment, all 2³² of them
/// (minutes in a release build).
#[test]
fn values_of_f32_become_the_nearest_code() {
    let step = if std::env::var_os("KERNELS_SWEEP").is_some() { 1 } else { 4093 };
    for format in &FORMATS {
        (0..=u32::MAX).step_by(step).for_each(|bits| format.check(f32::from_bits(bits)));
    }
}
