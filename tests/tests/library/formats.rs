//! GGML's formats on the host: decoded numbers, conversion to planes and back, and quantization at
//! edge cases.

use kernel_dsl::half::f16;
use kernel_dsl::prelude::View;
use kernels_rs::quant::formats::device::PlaneUnit;
use kernels_rs::quant::formats::host::{Ggml, Planes, Rule, dequantize, quantize, repack, restore};
use kernels_rs::quant::formats::{Iq4Nl, Iq4Xs, Mxfp4, Q2K, Q3K, Q4_0, Q4_1, Q4K, Q5_0, Q5_1, Q5K, Q6K, Q8_0};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls a generic function for every format.
macro_rules! each_format {
    ($f:ident $(, $argument:expr)*) => {
        each_format!(@ $f ($($argument),*) Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2K Q3K Q4K Q5K Q6K Iq4Nl Iq4Xs Mxfp4)
    };
    (@ $f:ident $arguments:tt $($format:ident)*) => {$( each_format!(= $f $format $arguments); )*};
    (= $f:ident $format:ident ($($argument:expr),*)) => { $f::<$format>($($argument),*) };
}

/// Returns bytes without a pattern, the same on every run (Marsaglia's xorshift of 32 bits).
fn bytes(n: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..n).map(|_| next()).collect()
}

/// Returns numbers in [−1, 1) without a pattern.
fn numbers(n: usize) -> Vec<f32> {
    bytes(2 * n).chunks(2).map(|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0).collect()
}

/// Returns the bits of a float; all NaNs have the same.
fn bits(x: f32) -> u32 {
    if x.is_nan() { f32::NAN.to_bits() } else { x.to_bits() }
}

/// Rows and blocks of a row: one block, less or more than eight units, and eight units with a
/// remainder.
const ROWS: [[usize; 2]; 6] = [[1, 1], [3, 2], [2, 7], [1, 8], [2, 9], [0, 1]];

#[test]
fn planes_are_lossless() {
    fn check<F: Ggml>() {
        for [rows, blocks] in ROWS {
            let file = bytes(rows * blocks * F::BYTES);
            let planes = repack::<F>(&file, rows);
            assert_eq!(restore::<F>(&planes), file, "{}, {rows} rows of {blocks} blocks", F::NAME);
            // A row has the bytes of its blocks, and padding to a whole unit.
            let units = blocks * F::NUMBERS / 32;
            let bytes = 4 * F::words(units) + 2 * F::halves(units);
            assert!((blocks * F::BYTES..=blocks * F::BYTES + 1).contains(&bytes), "{}: {bytes} bytes", F::NAME);
        }
    }
    each_format!(check);
}

/// Checks that the operands which a kernel makes of planes are the numbers of the blocks, bit for
/// bit, for any bytes.
#[test]
fn operands_are_the_numbers() {
    fn check<F: Ggml>() {
        for [rows, blocks] in ROWS {
            let file = bytes(rows * blocks * F::BYTES);
            let expected = dequantize::<F>(&file);
            let Planes { words, halves, units, .. } = repack::<F>(&file, rows);
            let wide = words.len() / rows.max(1);
            // At a multiple of 16 bytes, as on a device.
            let mut aligned = vec![0u128; words.len() / 4];
            bytemuck::cast_slice_mut(&mut aligned).copy_from_slice(&words);
            let narrow = halves.len() / rows.max(1);
            // SAFETY: the vectors live as long as the views, and are not written.
            let (words, halves) = unsafe {
                (View::host(bytemuck::cast_slice(&aligned), [rows, wide]), View::host(&halves, [rows, narrow]))
            };
            for (i, expected) in expected.chunks(32).enumerate() {
                let at = PlaneUnit { row: i / units, unit: i % units, units };
                let unit = F::unpack(F::load(words, halves, at), at.unit);
                for (j, expected) in expected.iter().enumerate() {
                    let byte = f32::from(unit.bytes[j / 4].to_le_bytes()[j % 4] as i8) * F::STEP;
                    let product = unit.scale[j / 16] * byte;
                    let number = if F::MINS { product - unit.min[j / 16] } else { product };
                    assert_eq!(bits(number), bits(*expected), "{}, unit {i}, number {j}", F::NAME);
                }
            }
        }
    }
    each_format!(check);
}

/// Returns blocks for a comparison with another decoder.
fn samples<F: Ggml>() -> Vec<u8> {
    bytes(64 * F::BYTES)
}

/// FNV-1a of numbers' bits.
fn hash(numbers: &[f32]) -> u64 {
    let bytes = numbers.iter().flat_map(|x| bits(*x).to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Hashes of what `gguf.quants.dequantize` of gguf 0.19.0 makes of [`samples`].
const DECODED: [(&str, u64); 13] = [
    ("Q4_0", 0x1182_13a4_2167_b15d),
    ("Q4_1", 0x4f27_a858_5096_8936),
    ("Q5_0", 0x1037_2938_100b_397d),
    ("Q5_1", 0x7a8e_b679_7f00_af9a),
    ("Q8_0", 0xae1e_0a18_b270_2b45),
    ("Q2_K", 0x0503_d4e6_cf68_1834),
    ("Q3_K", 0xb8b9_c0ff_fe49_d8f8),
    ("Q4_K", 0x66db_470c_dc28_4428),
    ("Q5_K", 0x935b_b9df_ecd9_dd71),
    ("Q6_K", 0xd662_0bb0_af74_29b5),
    ("IQ4_NL", 0x9b70_1200_7d26_8834),
    ("IQ4_XS", 0x4b94_6d28_8c93_2245),
    ("MXFP4", 0x19fc_8f47_4833_0cca),
];

#[test]
fn numbers_are_those_of_gguf() {
    fn check<F: Ggml>() {
        let expected = DECODED.iter().find(|(name, _)| *name == F::NAME).unwrap().1;
        assert_eq!(hash(&dequantize::<F>(&samples::<F>())), expected, "{}", F::NAME);
    }
    each_format!(check);
}

/// Compares with the package itself, which pip fetches into the build directory.
#[test]
fn numbers_are_those_of_the_gguf_package() {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let Some(package) = gguf(build) else {
        println!("skipped: pip could not fetch the packages gguf and numpy");
        return;
    };
    fn check<F: Ggml>(build: &Path, package: &Path) {
        let [from, to] = ["blocks", "numbers"].map(|what| build.join(format!("{}.{what}", F::NAME)));
        let blocks = samples::<F>();
        std::fs::write(&from, &blocks).unwrap();
        let python = Command::new("python3").args(["-c", DECODE]).arg(package).arg(F::NAME).args([&from, &to]).output();
        let python = python.unwrap();
        assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
        let decoded: Vec<f32> =
            std::fs::read(&to).unwrap().chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        println!("{}: {:#018x}", F::NAME, hash(&decoded));
        let ours = dequantize::<F>(&blocks);
        assert_eq!(ours.len(), decoded.len(), "{}", F::NAME);
        for (i, (ours, decoded)) in ours.iter().zip(&decoded).enumerate() {
            assert_eq!(bits(*ours), bits(*decoded), "{}, number {i}: {ours:?}, not {decoded:?}", F::NAME);
        }
    }
    each_format!(check, build, &package);
}

/// Decodes blocks: folder of the packages, format, file of blocks, file for numbers. Of the package
/// only the module of formats is loaded, which needs only numpy.
const DECODE: &str = r#"
import importlib, sys, types
folder, name, blocks, numbers = sys.argv[1:]
sys.path.insert(0, folder)
package = types.ModuleType("gguf")
package.__path__ = [folder + "/gguf"]
sys.modules["gguf"] = package
import numpy
quants = importlib.import_module("gguf.quants")
kind = importlib.import_module("gguf.constants").GGMLQuantizationType[name]
with numpy.errstate(all="ignore"):
    quants.dequantize(numpy.fromfile(blocks, numpy.uint8), kind).astype("<f4").tofile(numbers)
"#;

/// Returns the folder with the packages, fetched once.
fn gguf(build: &Path) -> Option<PathBuf> {
    let folder = build.join("gguf-0.19.0");
    if !folder.join("fetched").exists() {
        let pip = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--retries=0", "--timeout=5"])
            .arg("--target")
            .arg(&folder)
            .args(["gguf==0.19.0", "numpy"])
            .output();
        if !pip.is_ok_and(|pip| pip.status.success()) {
            return None;
        }
        std::fs::write(folder.join("fetched"), "").ok()?;
    }
    Some(folder)
}

/// Returns the maximum error of quantization, relative to the largest magnitude in the block. The
/// error is half a step, or a whole step where the range of the other sign is clipped. Rounding of
/// scales adds to the error.
fn max_error<F: Ggml>() -> f32 {
    match F::NAME {
        // Half a step, and the rounding of the scale to `f16`.
        "Q8_0" => 0.5 / 127.0 + 1.0 / 2048.0,
        "Q6_K" => 1.0 / 32.0 + 0.01,
        "Q5_0" => 1.0 / 16.0,
        "Q5_1" | "Q5_K" => 1.0 / 31.0 + 0.03,
        "Q4_0" => 1.0 / 8.0,
        "Q4_1" | "Q4_K" => 1.0 / 15.0 + 0.03,
        // The widest gap of the table, and its clipped end.
        "IQ4_NL" => 14.0 / 127.0,
        "IQ4_XS" => 14.0 / 127.0 + 0.03,
        "Q3_K" => 1.0 / 4.0 + 0.03,
        "Q2_K" => 1.0 / 3.0 + 0.12,
        // The largest code is 12/16 of the range, so a number near 16/16 is off by 4/16.
        "MXFP4" => 1.0 / 4.0,
        _ => unreachable!(),
    }
}

#[test]
fn numbers_come_back() {
    fn check<F: Ggml>() {
        for scale in [1.0, 8.0, 300.0] {
            let x: Vec<f32> = numbers(4 * F::NUMBERS).into_iter().map(|x| x * scale).collect();
            let blocks = quantize::<F>(&x);
            let mut off = 0.0f32;
            for (x, back) in x.chunks(F::NUMBERS).zip(dequantize::<F>(&blocks).chunks(F::NUMBERS)) {
                let top = x.iter().fold(0.0f32, |top, x| top.max(x.abs()));
                off = x.iter().zip(back).fold(off, |off, (x, back)| off.max((x - back).abs() / top));
            }
            println!("{}, up to {scale}: {off}", F::NAME);
            assert!(off <= max_error::<F>() + 1e-3, "{}, up to {scale}: off by {off}", F::NAME);
            // Numbers that a format represents are quantized exactly.
            let again = dequantize::<F>(&blocks);
            assert_eq!(quantize::<F>(&x), blocks);
            assert!(again.iter().all(|x| x.is_finite()));
        }
    }
    each_format!(check);
}

#[test]
fn extremes_have_defined_results() {
    fn check<F: Ggml>() {
        let back = |x: &[f32]| dequantize::<F>(&quantize::<F>(x));
        let zeros = vec![0.0; F::NUMBERS];
        assert!(back(&zeros).iter().all(|x| *x == 0.0), "{}: zeros", F::NAME);
        assert!(back(&vec![-0.0; F::NUMBERS]).iter().all(|x| *x == 0.0), "{}: −0", F::NAME);
        assert_eq!(quantize::<F>(&vec![f32::NAN; F::NUMBERS]), quantize::<F>(&zeros), "{}: NaN", F::NAME);
        // A NaN counts as 0, and an infinity as the largest number of its sign.
        let x = numbers(F::NUMBERS);
        let with = |at: usize, other: f32| {
            let mut x = x.clone();
            x[at] = other;
            x
        };
        assert_eq!(quantize::<F>(&with(5, f32::NAN)), quantize::<F>(&with(5, 0.0)), "{}", F::NAME);
        for sign in [1.0, -1.0] {
            let infinite = quantize::<F>(&with(7, sign * f32::INFINITY));
            assert_eq!(infinite, quantize::<F>(&with(7, sign * f32::MAX)), "{}", F::NAME);
            let back = dequantize::<F>(&infinite);
            assert!(back.iter().all(|x| x.is_finite()) && back[7] * sign > 1000.0, "{}: {}", F::NAME, back[7]);
        }
        let all = |x: f32| vec![x; F::NUMBERS];
        for x in [f32::MAX, f32::MIN, f32::INFINITY, 1e6, 1e-30, f32::MIN_POSITIVE, 1e-45, -1e-45] {
            assert!(back(&all(x)).iter().all(|back| back.is_finite()), "{}: {x:e}", F::NAME);
        }
        // Both ends of `f32` in one block.
        let ends: Vec<f32> = (0..F::NUMBERS).map(|i| if i % 2 == 0 { f32::MAX } else { f32::MIN }).collect();
        assert!(back(&ends).iter().all(|back| back.is_finite()), "{}", F::NAME);
    }
    each_format!(check);
}

/// Quantizes numbers half way between two codes, where the scale is 1.
#[test]
fn ties_are_defined() {
    fn check<F: Ggml>(x: impl Fn(usize) -> f32, expected: impl Fn(usize) -> f32) {
        let numbers: Vec<f32> = (0..F::NUMBERS).map(x).collect();
        let expected: Vec<f32> = (0..F::NUMBERS).map(expected).collect();
        assert_eq!(dequantize::<F>(&quantize::<F>(&numbers)), expected, "{}", F::NAME);
    }
    // Q4_0, Q5_0, Q4_1 and Q5_1 round half up, but not beyond the last code.
    check::<Q4_0>(|i| (i % 16) as f32 - if i % 16 == 0 { 8.0 } else { 8.5 }, |i| (i % 16) as f32 - 8.0);
    check::<Q5_0>(|i| i as f32 - if i == 0 { 16.0 } else { 16.5 }, |i| i as f32 - 16.0);
    check::<Q4_1>(|i| [0.0, 15.0, 2.5, 3.5][i % 4], |i| [0.0, 15.0, 3.0, 4.0][i % 4]);
    check::<Q5_1>(|i| [0.0, 31.0, 2.5, 3.5][i % 4], |i| [0.0, 31.0, 3.0, 4.0][i % 4]);
    // Q8_0 rounds half to even.
    check::<Q8_0>(|i| [127.0, 0.5, 1.5, -2.5][i % 4], |i| [127.0, 0.0, 2.0, -2.0][i % 4]);
    // The number of the largest magnitude gets code −8; of two equal ones, it is the positive one.
    check::<Q4_0>(|i| [8.0, -8.0][i % 2], |i| [8.0, -7.0][i % 2]);
    // MXFP4 and IQ4_NL round half to the lesser code. The magnitudes of MXFP4, doubled, are 0, 1,
    // 2, 3, 4, 6, 8 and 12.
    check::<Mxfp4>(|i| [12.0, 5.0, 2.5, -7.0][i % 4] / 2.0, |i| [12.0, 4.0, 2.0, -6.0][i % 4] / 2.0);
    check::<Iq4Nl>(|i| [-127.0, 7.0, 19.0, 31.5][i % 4], |i| [-127.0, 1.0, 13.0, 25.0][i % 4]);
}

/// Quantizes numbers that a format of groups represents exactly.
#[test]
fn groups_have_scales_of_their_own() {
    fn check<F: Ggml>(group: usize, top: f32) {
        // The scale of group g is `top` − g, in a unit of 1.
        let scale = |i: usize| top - (i / group) as f32;
        let x: Vec<f32> = (0..F::NUMBERS).map(|i| scale(i) * F::value(i as u32 % F::CODES) as f32).collect();
        let Rule::Groups { .. } = F::RULE else { panic!("{} has other groups", F::NAME) };
        assert_eq!(dequantize::<F>(&quantize::<F>(&x)), x, "{}", F::NAME);
    }
    check::<Q3K>(16, 32.0);
    check::<Iq4Xs>(32, 32.0);
}

/// Scales are `f16`, whose largest is 65504.
#[test]
fn scales_end_with_f16() {
    let blocks = quantize::<Q8_0>(&[f32::MAX; 32]);
    assert_eq!(f16::from_bits(u16::from_le_bytes([blocks[0], blocks[1]])), f16::MAX);
    assert_eq!(dequantize::<Q8_0>(&blocks), [127.0 * 65504.0; 32]);
}
