//! Integer operations beyond Rust's operators and methods: single instructions, and the operations
//! of integers of several words.
//!
//! | function | on | PTX | on sm_61 |
//! |---|---|---|---|
//! | [`mul_hi`] | `i32`, `u32`, `i64`, `u64` | `mul.hi` | 6 of 32 bits, some 20 of 64: there is no multiplier of 32 bits |
//! | [`widening_mul`] | `u32`, `u64` | `mul.lo`, `mul.hi` | as `*` and [`mul_hi`] |
//! | [`carrying_add`] | `u32`, `u64` | `selp`, 2 `add`, 2 `setp.lt`, `or` | 6 of 32 bits, 10 of 64 |
//! | [`borrowing_sub`] | `u32`, `u64` | `selp`, 2 `sub`, 2 `setp.lt`, `or` | likewise |
//! | [`mul24`] | `i32`, `u32` | `mul24.lo` | 5, no less than a product of 32 bits |
//! | [`byte_perm`] | `u32` | `prmt` | 1 |
//! | [`word`] | `[i8; 4]`, `[u8; 4]` | `prmt`; nothing where the bytes were loaded together | up to 3 |
//! | [`funnel_shl`], [`funnel_shr`] | `u32` | `shf.l.wrap`, `shf.r.wrap` | 1 (half of the rate) |
//! | [`extract`] | `i32`, `u32`, `i64`, `u64` | `bfe` | 1 (half) where position and length are constant, else 2; some 10 of 64 bits |
//! | [`insert`] | `i32`, `u32`, `i64`, `u64` | `bfi` | likewise |
//!
//! [`dp4a`](crate::dp4a) and the other dot products are in the prelude itself.

use crate::dot::{Accumulator, Bytes, Sign};
use kernel_dsl_compiler::integer;

mod sealed {
    /// Keeps [`Register`](super::Register) and [`Word`](super::Word) to the types below.
    pub trait Sealed {}
}

/// Integers that fill registers: `i32`, `u32`, `i64`, `u64`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not `i32`, `u32`, `i64` or `u64`")]
pub trait Register: crate::ScalarElement + sealed::Sealed {}

/// Unsigned integers that fill registers: `u32`, `u64`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not `u32` or `u64`")]
pub trait UnsignedRegister: Register {}

/// Integers of one register: `i32`, `u32`.
#[diagnostic::on_unimplemented(message = "`{Self}` is not `i32` or `u32`")]
pub trait Word: Register {}

macro_rules! registers {
    ($($t:ident)*) => {$(
        impl sealed::Sealed for $t {}
        impl Register for $t {}
    )*};
}
registers!(i32 u32 i64 u64);
impl UnsignedRegister for u32 {}
impl UnsignedRegister for u64 {}
impl Word for i32 {}
impl Word for u32 {}

/// Returns the upper half of the product.
#[must_use]
pub fn mul_hi<T: Register>(a: T, b: T) -> T {
    T::from_bits(integer::multiply_high(a.bits(), b.bits(), T::SCALAR.bits(), signed::<T>()))
}

/// Returns the lower and the upper half of the product, in this order.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::widening_mul(0x8000_0000u32, 6), (0, 3));
/// ```
#[must_use]
pub fn widening_mul<T: UnsignedRegister>(a: T, b: T) -> (T, T) {
    (T::from_bits(a.bits().wrapping_mul(b.bits())), mul_hi(a, b))
}

/// Returns `a` + `b` + `carry` modulo 2ⁿ, and the carry. Sums of several words begin at the lowest
/// word, without a carry.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::carrying_add(u32::MAX, 0, true), (0, true));
/// ```
#[must_use]
pub fn carrying_add<T: UnsignedRegister>(a: T, b: T, carry: bool) -> (T, bool) {
    let sum = u128::from(a.bits()) + u128::from(b.bits()) + u128::from(carry);
    (T::from_bits(sum as u64), sum >> T::SCALAR.bits() != 0)
}

/// Returns `a` − `b` − `borrow` modulo 2ⁿ, and the borrow. Differences of several words begin at
/// the lowest word, without a borrow.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::borrowing_sub(0u32, 0, true), (u32::MAX, true));
/// ```
#[must_use]
pub fn borrowing_sub<T: UnsignedRegister>(a: T, b: T, borrow: bool) -> (T, bool) {
    let difference = a.bits().wrapping_sub(b.bits()).wrapping_sub(borrow.into());
    (T::from_bits(difference), u128::from(a.bits()) < u128::from(b.bits()) + u128::from(borrow))
}

/// Multiplies the low 24 bits of each operand, sign-extended for `i32`, and returns the low 32
/// bits. On sm_61 it is as slow as `*`; it documents that the upper bits do not matter.
#[must_use]
pub fn mul24<T: Word>(a: T, b: T) -> T {
    T::from_bits(integer::multiply_24(a.bits() as u32, b.bits() as u32, signed::<T>()).into())
}

/// Selects four of the eight bytes of `a` (0 to 3) and `b` (4 to 7) by the nibbles of `selector`,
/// lowest first. A nibble's highest bit replicates the byte's sign into all eight bits instead.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::byte_perm(0x3322_1180, 0x7766_5544, 0x8741), 0xff77_4411);
/// ```
#[must_use]
pub fn byte_perm(a: u32, b: u32, selector: u32) -> u32 {
    integer::permute(a, b, selector)
}

/// Packs four bytes into one word, the first lowest: an `i32` of signed bytes or a `u32` of
/// unsigned ones, as [`dp4a`](crate::dp4a) takes them.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::word([1u8, 2, 3, 0xff]), 0xff03_0201);
/// assert_eq!(int::word([-1i8, 0, 0, 0]), 0xff);
/// ```
#[must_use]
pub fn word<B: Bytes>(bytes: B) -> <B::Sign as Sign>::Own {
    Accumulator::from_word(bytes.word())
}

/// Returns the upper word of `high`:`low` shifted left by `distance` mod 32; 0 gives `high`.
#[must_use]
pub fn funnel_shl(high: u32, low: u32, distance: u32) -> u32 {
    integer::funnel_left(high, low, distance)
}

/// Returns the lower word of `high`:`low` shifted right by `distance` mod 32; 0 gives `low`.
#[must_use]
pub fn funnel_shr(high: u32, low: u32, distance: u32) -> u32 {
    integer::funnel_right(high, low, distance)
}

/// Extracts `length` bits from `position` on, zero-extended, or sign-extended for signed integers.
/// Bits beyond the integer are copies of the sign bit, or 0 if unsigned. A length of 0 gives 0.
///
/// PTX defines positions and lengths up to 255. For integers of up to 32 bits, sm_61 takes larger
/// values modulo 256; for integers of 64 bits it uses them unchanged. All executors compute these
/// values; the PTX interpreter also reports them as undefined.
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::extract(0x0000_1f40u32, 8, 4), 0xf);
/// assert_eq!(int::extract(0x0000_1f40i32, 8, 4), -1);
/// ```
#[must_use]
pub fn extract<T: Register>(x: T, position: u32, length: u32) -> T {
    T::from_bits(integer::extract(x.bits(), T::SCALAR.bits(), signed::<T>(), position, length))
}

/// Replaces `length` bits of `into` from `position` on by the low bits of `bits`, dropping bits
/// beyond the integer. Positions and lengths above 255 are as for [`extract`].
///
/// ```
/// # use kernel_dsl::prelude::*;
/// assert_eq!(int::insert(0xau32, 0xffff_ffff, 4, 8), 0xffff_f0af);
/// ```
#[must_use]
pub fn insert<T: Register>(bits: T, into: T, position: u32, length: u32) -> T {
    T::from_bits(integer::insert(bits.bits(), into.bits(), T::SCALAR.bits(), position, length))
}

const fn signed<T: Register>() -> bool {
    T::SCALAR.is_signed()
}
