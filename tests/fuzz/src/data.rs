//! Launch data of a kernel, from its parameters and a seed.

use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::half::{bf16_from_f32, f16_from_f32};
use kernel_dsl_compiler::ir::{Kernel, MemoryElement, Role};
use runtime::testing::Random;

/// Argument of a kernel.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A scalar's bits.
    Scalar(u64),
    /// A slice or view.
    Memory {
        /// Name of the parameter.
        name: String,
        /// Type of the elements.
        element: Scalar,
        /// Contents of the buffer.
        bytes: Vec<u8>,
        /// Whether the kernel may write it.
        mutable: bool,
        /// Extents of each dimension.
        extents: Vec<u32>,
        /// Strides of each dimension.
        strides: Vec<u32>,
    },
}

/// Rows, columns and row pitch of views.
const VIEW: [u32; 3] = [8, 8, 9];

/// Generates the arguments of a kernel with `threads` threads in total. Half of the values are edge
/// cases of their types.
pub fn arguments(kernel: &Kernel, threads: u32, seed: u64) -> Vec<Argument> {
    let count = kernel.parameters.iter().map(|p| p.argument + 1).max().unwrap_or(0);
    let mut all = Vec::new();
    for argument in 0..count {
        let of_it = || kernel.parameters.iter().filter(|p| p.argument == argument);
        for parameter in of_it() {
            // The random sequence depends on the name: the contents stay if another parameter is
            // removed.
            let name = parameter.name.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
            let mut random = Random::new(name);
            match parameter.role {
                Role::Value(ty) => all.push(Argument::Scalar(value(ty, &mut random))),
                Role::Address { element, mutable } => {
                    let element = match element {
                        MemoryElement::Scalar(ty) => ty,
                        // The only elements with several parts.
                        MemoryElement::Aggregate { .. } => Scalar::U128,
                    };
                    let is_view = of_it().any(|p| matches!(p.role, Role::Extent(1)));
                    let [rows, columns, pitch] = VIEW;
                    let (extents, strides, len) = match is_view {
                        true => (vec![rows, columns], vec![pitch, 1], rows * pitch),
                        // Four elements for each thread: every index up to the smallest extent is
                        // valid.
                        false => (vec![4 * threads], vec![1], 4 * threads),
                    };
                    let counts = parameter.name.starts_with("count");
                    let mut bytes = Vec::new();
                    for _ in 0..len {
                        match element {
                            Scalar::U128 => {
                                let mut word = || value(Scalar::U64, &mut random).to_le_bytes();
                                bytes.extend([word(), word()].concat());
                            }
                            _ => {
                                let bits =
                                    if counts { small(element, &mut random) } else { value(element, &mut random) };
                                bytes.extend(&bits.to_le_bytes()[..element.bytes() as usize]);
                            }
                        }
                    }
                    let name = parameter.name.clone();
                    all.push(Argument::Memory { name, element, bytes, mutable, extents, strides });
                }
                Role::Extent(_) | Role::Stride(_) => {}
            }
        }
    }
    all
}

/// Draws a small whole number, so that sums are exact.
fn small(ty: Scalar, random: &mut Random) -> u64 {
    let n = random.below(100);
    match ty {
        Scalar::F32 => u64::from((n as f32).to_bits()),
        Scalar::F64 => (n as f64).to_bits(),
        _ => n as u64,
    }
}

/// Draws a value of the type; half of the values are edge cases.
pub fn value(ty: Scalar, random: &mut Random) -> u64 {
    let edge = random.below(2) == 0;
    let ordinary = random.unit() * [1.0, 10.0, 1000.0, 1e9][random.below(4)];
    let bits = random.bits();
    let edges: &[f64] = &[
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        1.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        255.0,
        65504.0,
        2147483648.0,
        1e-40,
    ];
    let picked = edges[random.below(edges.len())];
    let number = if edge { picked } else { ordinary };
    let small = random.below(4) == 0;
    match ty {
        Scalar::Bool => bits & 1,
        // Some floats have arbitrary bits: subnormals, and NaNs with any payload.
        _ if (ty.is_float() || ty.is_half()) && small => bits & ty.mask(),
        Scalar::F16 => f16_from_f32(number as f32).into(),
        Scalar::Bf16 => bf16_from_f32(number as f32).into(),
        Scalar::F32 => (number as f32).to_bits().into(),
        Scalar::F64 => number.to_bits(),
        _ if edge => {
            let (top, all) = (1 << (ty.bits() - 1), ty.mask());
            let edges =
                [0, 1, 2, 31, 32, 63, all, all - 1, top, top - 1, top + 1, 1 << random.below(ty.bits() as usize)];
            edges[random.below(edges.len())] & all
        }
        _ if small => bits & 0x3f,
        _ => bits & ty.mask(),
    }
}

/// Returns the representative bits of a value: all NaNs are equal.
pub fn class(ty: Scalar, bits: u128) -> u128 {
    let (exponent, mantissa) = match ty {
        Scalar::F16 => (0x7c00, 0x3ff),
        Scalar::Bf16 => (0x7f80, 0x7f),
        Scalar::F32 => (0x7f80_0000, 0x7f_ffff),
        Scalar::F64 => (0x7ff << 52, (1 << 52) - 1),
        _ => return bits,
    };
    if bits & exponent == exponent && bits & mantissa != 0 { u128::MAX } else { bits }
}
