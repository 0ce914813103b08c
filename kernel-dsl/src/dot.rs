//! Dot products of four or two small integers in one instruction: `dp4a` and `dp2a`, at full rate
//! on sm_61.
//!
//! An operand is an array of small integers or a word of them: an `i32` holds signed ones, a `u32`
//! unsigned ones, the first in the lowest bits. All combinations of signs exist. The sum is an
//! `i32` if one operand is signed, otherwise a `u32`. Sums wrap; products do not overflow.

use kernel_dsl_compiler::integer;

mod sealed {
    pub trait Sealed {}
}

/// Four integers of 8 bits: `[i8; 4]`, `[u8; 4]`, or four in an `i32` or `u32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not four integers of 8 bits",
    note = "`[i8; 4]`, `[u8; 4]`, `i32` and `u32` are"
)]
pub trait Bytes: Copy + sealed::Sealed {
    /// The signedness of the numbers.
    type Sign: Sign;
    /// Returns the numbers as one word, the first lowest.
    fn word(self) -> u32;
}

/// Two integers of 16 bits: `[i16; 2]`, `[u16; 2]`, or two in an `i32` or `u32`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not two integers of 16 bits",
    note = "`[i16; 2]`, `[u16; 2]`, `i32` and `u32` are"
)]
pub trait Halves: Copy + sealed::Sealed {
    /// The signedness of the numbers.
    type Sign: Sign;
    /// Returns the numbers as one word, the first lowest.
    fn word(self) -> u32;
}

/// The signedness of numbers, and the types of their sums.
pub trait Sign: sealed::Sealed {
    /// Whether the numbers are signed.
    const SIGNED: bool;
    /// The type of a sum of products with numbers of the same signedness.
    type Own: Accumulator;
    /// The type of a sum of products with numbers of signedness `Other`: `i32` if one of the two is
    /// signed, else `u32`.
    type With<Other: Sign>: Accumulator;
}

/// The type of sums of products of `A` and `B`.
pub type DotSum<A, B> = <A as Sign>::With<B>;

/// Signed numbers.
#[derive(Clone, Copy, Debug)]
pub struct Signed;

/// Unsigned numbers.
#[derive(Clone, Copy, Debug)]
pub struct Unsigned;

impl Sign for Signed {
    const SIGNED: bool = true;
    type Own = i32;
    type With<Other: Sign> = i32;
}

impl Sign for Unsigned {
    const SIGNED: bool = false;
    type Own = u32;
    type With<Other: Sign> = Other::Own;
}

/// `i32` and `u32`.
pub trait Accumulator: Copy + sealed::Sealed {
    /// Returns the same bits as a `u32`.
    fn word(self) -> u32;
    /// Returns the number with these bits.
    fn from_word(word: u32) -> Self;
}

impl Accumulator for i32 {
    fn word(self) -> u32 {
        self as u32
    }
    fn from_word(word: u32) -> i32 {
        word as i32
    }
}

impl Accumulator for u32 {
    fn word(self) -> u32 {
        self
    }
    fn from_word(word: u32) -> u32 {
        word
    }
}

macro_rules! packed {
    ($($trait:ident $t:ty, $sign:ident, $x:ident => $word:expr;)*) => {$(
        impl $trait for $t {
            type Sign = $sign;
            fn word(self) -> u32 { let $x = self; $word }
        }
    )*};
}
packed! {
    Bytes [i8; 4], Signed, x => u32::from_le_bytes(x.map(|b| b as u8));
    Bytes [u8; 4], Unsigned, x => u32::from_le_bytes(x);
    Bytes i32, Signed, x => x as u32;
    Bytes u32, Unsigned, x => x;
    Halves [i16; 2], Signed, x => u32::from(x[0] as u16) | u32::from(x[1] as u16) << 16;
    Halves [u16; 2], Unsigned, x => u32::from(x[0]) | u32::from(x[1]) << 16;
    Halves i32, Signed, x => x as u32;
    Halves u32, Unsigned, x => x;
}

macro_rules! seal {
    ($($t:ty)*) => {$( impl sealed::Sealed for $t {} )*};
}
seal!(Signed Unsigned i32 u32 [i8; 4] [u8; 4] [i16; 2] [u16; 2]);

/// Returns c + a₀·b₀ + a₁·b₁ + a₂·b₂ + a₃·b₃ of four integers of 8 bits each: `dp4a`.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(dp4a([1i8, -2, 3, -4], [10u8, 20, 30, 255], 5), 5 + 10 - 40 + 90 - 1020);
/// assert_eq!(dp4a(0x0403_0201u32, 0xff00_0001u32, 7), 7 + 1 + 4 * 255);
/// ```
#[must_use]
pub fn dp4a<A: Bytes, B: Bytes>(a: A, b: B, c: DotSum<A::Sign, B::Sign>) -> DotSum<A::Sign, B::Sign> {
    let signs = [A::Sign::SIGNED, B::Sign::SIGNED];
    Accumulator::from_word(integer::dot4([a.word(), b.word()], signs, c.word()))
}

/// Returns c + a₀·b₀ + a₁·b₁ of two integers of 16 bits and the lower two of four of 8: `dp2a.lo`.
#[must_use]
pub fn dp2a_lo<A: Halves, B: Bytes>(a: A, b: B, c: DotSum<A::Sign, B::Sign>) -> DotSum<A::Sign, B::Sign> {
    let signs = [A::Sign::SIGNED, B::Sign::SIGNED];
    Accumulator::from_word(integer::dot2([a.word(), b.word()], signs, c.word(), false))
}

/// Returns c + a₀·b₂ + a₁·b₃ of two integers of 16 bits and the upper two of four of 8: `dp2a.hi`.
#[must_use]
pub fn dp2a_hi<A: Halves, B: Bytes>(a: A, b: B, c: DotSum<A::Sign, B::Sign>) -> DotSum<A::Sign, B::Sign> {
    let signs = [A::Sign::SIGNED, B::Sign::SIGNED];
    Accumulator::from_word(integer::dot2([a.word(), b.word()], signs, c.word(), true))
}
