#![doc = include_str!(concat!(env!("OUT_DIR"), "/06_precision.md"))]

use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::prelude::*;
use runtime::Device;
use runtime::testing::{Bound, Case, Expected, Input, Random};

/// Adds x once with a sum of 16 bits, and once with a sum of 32 bits.
#[kernel(block = 1, grid = 1)]
#[requires(sums.len() == 2)]
pub fn two_widths(x: &[f16], sums: &mut [f32]) {
    let mut narrow = f16::from_f32(0.0);
    let mut wide = 0.0f32;
    for i in 0..x.len() {
        narrow = f16::from_f32(narrow.to_f32() + x[i].to_f32());
        wide += x[i].to_f32();
    }
    sums[0] = narrow.to_f32();
    sums[1] = wide;
}

/// Adds 4096 times the number that f16 has for 0.1.
pub fn widths() -> runtime::Result<()> {
    let device = Device::cpu();
    let x = device.upload(&[f16::from_f32(0.1); 4096])?;
    let mut sums = device.zeros::<f32>(2)?;
    two_widths::launch(&device, &x, &mut sums)?;
    let exact = 4096.0 * f16::from_f32(0.1).to_f64();
    println!("exact {exact}, in f16 {}, in f32 {}", sums.download()?[0], sums.download()?[1]);
    Ok(())
}

/// Computes a·b minus the rounded product: `y[0]` rounds a·b again, and `y[1]` does not.
#[kernel(block = 1, grid = 1)]
#[requires(y.len() == 2)]
pub fn one_rounding(a: f32, b: f32, y: &mut [f32]) {
    let product = a * b;
    y[0] = a * b - product;
    y[1] = a.mul_add(b, -product);
}

/// Runs `one_rounding` on numbers whose product needs more digits than f32 has.
pub fn rounding() -> runtime::Result<()> {
    let device = Device::cpu();
    let mut y = device.zeros::<f32>(2)?;
    one_rounding::launch(&device, 1.1, 1.3, &mut y)?;
    println!("{:?}", y.download()?);
    Ok(())
}

/// A float of 8 bits: a sign, 4 bits of exponent and 3 of mantissa.
#[device]
pub mod small {
    /// 2¹²⁰: the exponents of f32 and of the small float have the biases 127 and 7.
    const RATIO: f32 = 1.329228e36;

    /// Returns the value of a code. The bits of the code are moved to their places in an f32, whose
    /// exponent is then too small by 120.
    pub fn decode(code: u8) -> f32 {
        let code = code as u32;
        f32::from_bits((code & 0x80) << 24 | (code & 0x7f) << 20) * RATIO
    }
}

/// Decodes and scales numbers of 8 bits. Arithmetic is in f32; only the storage is small.
#[kernel(block = 256, grid = y.len().div_ceil(256))]
#[requires(codes.len() == y.len())]
pub fn dequantize(scale: f32, codes: &[u8], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = scale * small::decode(codes[i]);
    }
}

runtime::register!(dequantize, codes, decoded);

fn codes(_: &Instance, _: &mut Random) -> Vec<Case> {
    let all: Vec<u8> = (0..=255).collect();
    vec![Case::new("all codes", [Input::scalar(0.5f32), Input::slice(&all), Input::uninitialized::<f32, 1>([256])])]
}

/// Computes the values from their definition: (8 + mantissa) · 2^(exponent − 10), and
/// mantissa · 2⁻⁹ for exponent 0. All are exact in f32.
fn decoded(_: &Instance, inputs: &[Input]) -> Vec<Expected> {
    let scale = inputs[0].value();
    let value = |code: u8| {
        let (exponent, mantissa) = (i32::from(code >> 3 & 15), f64::from(code & 7));
        let size = if exponent == 0 { mantissa * 2f64.powi(-9) } else { (8.0 + mantissa) * 2f64.powi(exponent - 10) };
        scale * if code < 128 { size } else { -size }
    };
    vec![Expected::new(2, inputs[1].to_vec::<u8>().into_iter().map(value).collect(), Bound::Absolute(0.0))]
}

/// Prints the values of some codes.
pub fn custom() -> runtime::Result<()> {
    let device = Device::cpu();
    let codes = [0x00u8, 0x01, 0x38, 0x39, 0x7e, 0xb8];
    let on_device = device.upload(&codes)?;
    let mut y = device.zeros::<f32>(codes.len())?;
    dequantize::launch(&device, 1.0, &on_device, &mut y)?;
    for (code, value) in codes.iter().zip(y.download()?) {
        println!("{code:08b} is {value}");
    }
    Ok(())
}

/// Computes 2^x by the hardware's approximation.
#[kernel(block = 256, grid = y.len().div_ceil(256), tolerance(y(relative = 1e-6)))]
#[requires(x.len() == y.len())]
pub fn powers(x: &[f32], y: &mut [f32]) {
    let i = grid::index();
    if i < y.len() {
        y[i] = fast::exp2(x[i]);
    }
}
