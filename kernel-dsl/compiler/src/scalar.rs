//! The scalar types of registers, buffer elements and kernel arguments.

use crate::float16::Float16Format;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A scalar type, named as in Rust.
///
/// `Usize` has 32 bits on the device. `Usize` differs from `U32` because overflow of `usize` is an
/// error, which the oracle reports and passes may assume absent, while `u32` wraps.
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
    /// A 128-bit integer. The HIR and buffers have this type. Lowering splits it into two words, so
    /// it is absent from the IR.
    U128,
    F16,
    Bf16,
    /// A 16-bit float of another format.
    Custom(Float16Format),
    F32,
    F64,
}

impl Scalar {
    /// The scalar types of the IR, except `Custom` floats.
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

    /// Returns the name in Rust source, without generic arguments.
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
            Scalar::U128 => "u128",
            Scalar::F16 => "f16",
            Scalar::Bf16 => "bf16",
            Scalar::Custom(_) => "Float16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// Returns the scalar with the Rust name `name`.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().chain([Scalar::U128]).find(|s| s.name() == name)
    }

    /// Returns the number of bits on the device; 1 for a `bool`.
    pub const fn bits(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            Scalar::I8 | Scalar::U8 => 8,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) => 16,
            Scalar::I32 | Scalar::U32 | Scalar::Usize | Scalar::F32 => 32,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 64,
            Scalar::U128 => 128,
        }
    }

    /// Returns the size in memory in bytes; 1 for a `bool`.
    pub const fn bytes(self) -> u32 {
        match self {
            Scalar::Bool => 1,
            _ => self.bits() / 8,
        }
    }

    /// Returns a mask of the bits of a value of this type; for a `u128`, of the bits of its low
    /// word.
    pub const fn mask(self) -> u64 {
        u64::MAX >> 64u32.saturating_sub(self.bits())
    }

    /// Returns whether the type is an integer, including `usize`.
    pub const fn is_integer(self) -> bool {
        !matches!(self, Scalar::Bool) && !self.is_float() && !self.is_half()
    }

    /// Returns whether the type is a signed integer.
    pub const fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Returns whether an integer type has the value `n`.
    pub fn holds(self, n: i128) -> bool {
        match (self.is_integer(), self.is_signed()) {
            (true, false) if self.bits() == 128 => n >= 0,
            (true, true) => (-(1i128 << (self.bits() - 1))..1i128 << (self.bits() - 1)).contains(&n),
            (true, false) => (0..=i128::from(self.mask())).contains(&n),
            (false, _) => false,
        }
    }

    /// Returns whether the type is `f32` or `f64`, in which arithmetic is done.
    pub const fn is_float(self) -> bool {
        matches!(self, Scalar::F32 | Scalar::F64)
    }

    /// Returns whether the type is `f16`, `bf16` or `Float16<…>`, whose arithmetic is done in
    /// `f32`.
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
