//! The scalar types of the language: what a register, a buffer element or a kernel argument is made of.

use crate::float16::Format;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A scalar type, named as in Rust.
///
/// `Usize` is 32 bits wide on the device. It is kept apart from `U32` because its overflow is an error of the kernel,
/// which the oracle reports and the optimiser may assume absent, while `u32` wraps.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    Usize,
    F16,
    Bf16,
    /// A float of 16 bits of a layout of its own.
    Custom(Format),
    F32,
    F64,
}

impl Scalar {
    /// Every scalar type but the floats of a layout of their own.
    pub const ALL: [Scalar; 14] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::Usize,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// The name in Rust source, without generic arguments.
    pub const fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::Usize => "usize",
            Scalar::F16 => "f16",
            Scalar::Bf16 => "bf16",
            Scalar::Custom(_) => "Float16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The scalar that Rust source calls `name`.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Bits of the value on the device; a `bool` counts one.
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::I8 | Scalar::U8 => 8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) => 16,
            Scalar::I32 | Scalar::U32 | Scalar::Usize | Scalar::F32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 64,
        }
    }

    /// Bytes of an element in memory; a `bool` takes one.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            _ => self.bits() / 8,
        }
    }

    /// A mask of the bits that a value of this type has.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// An integer, `usize` among them.
    pub const fn is_integer(self) -> bool {
        !matches!(self, Scalar::Bool) && !self.is_float() && !self.is_half()
    }

    /// A signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// `f32` or `f64`: a float that arithmetic is done in.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// `f16`, `bf16` or `Float16<…>`: a float of 16 bits, whose arithmetic is done in `f32`.
    pub const fn is_half(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Custom(format) => format.fmt(f),
            _ => f.write_str(self.name()),
        }
    }
}
