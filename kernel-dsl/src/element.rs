//! Types of values in device memory: [`Element`]s in buffers, [`DeviceCopy`] values in shared
//! memory and between lanes, and the bounds of kernels that are generic over numbers.

use crate::float16::{Float16, Policy};
use ::half::{bf16, f16};
use kernel_dsl_compiler::hir::Constant;
use kernel_dsl_compiler::{ElementType, Scalar};
use std::ops::{
    Add, AddAssign, BitAnd, BitAndAssign, BitOr, BitOrAssign, BitXor, BitXorAssign, Div, DivAssign, Mul, MulAssign,
    Neg, Not, Shl, ShlAssign, Shr, ShrAssign, Sub, SubAssign,
};

/// A value that threads can put into shared memory and exchange with other lanes and threads:
/// numbers, `bool`, tuples and arrays of these, and structs with
/// `#[derive(Clone, Copy, DeviceCopy)]`. Options can be exchanged, but not put into shared memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be stored in shared memory or exchanged between threads",
    note = "supported are numbers, `bool`, tuples, arrays, and `#[device]` structs that derive `Clone, Copy, DeviceCopy`"
)]
pub trait DeviceCopy: Copy + Send + Sync + 'static {
    /// Returns the content of unwritten shared memory: a recognizable pattern.
    fn undefined() -> Self;
    /// Returns zero, in each part.
    fn zero() -> Self;
}

/// An element of a buffer: a number of fixed width, an array of them, or a device struct with
/// `repr(C)` and without padding.
///
/// # Safety
/// Every bit pattern is a value, there is no padding, and the value has the layout that `TYPE`
/// describes.
#[diagnostic::on_unimplemented(
    message = "a buffer on the device cannot hold `{Self}`",
    label = "not an element of device memory",
    note = "supported are integers of 8 to 64 bits, `u128`, `f16`, `bf16`, `f32`, `f64`, arrays of these, and structs with `#[device] #[repr(C)]`; use `u32` or `u64` for `usize`, whose width differs between host and device, and `u8` for `bool`"
)]
pub unsafe trait Element: DeviceCopy {
    /// The type in a kernel.
    const TYPE: ElementType;
}

mod sealed {
    /// Restricts [`ScalarElement`](super::ScalarElement) to the types below: numbers of which every
    /// bit pattern is a value.
    pub trait Sealed {}
}

/// A number of fixed width.
pub trait ScalarElement: Element + sealed::Sealed {
    /// The type in a kernel.
    const SCALAR: Scalar;
    /// Returns the value's bits, zero-extended to 64.
    fn bits(self) -> u64;
    /// Returns the value whose bits are the low bits of `bits`.
    fn from_bits(bits: u64) -> Self;
}

/// Numbers of fixed width, with the operators that a kernel generic over its element type may use.
pub trait Number:
    ScalarElement
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
}

/// `f16`, `bf16`, `f32` and `f64`. Arithmetic of the 16-bit types is that of `f32`, rounded: see
/// [`half`](crate::half).
pub trait Float: Number + Div<Output = Self> + DivAssign + Neg<Output = Self> {
    /// Converts to `f32`: exact, except that an `f64` is rounded to nearest even.
    fn to_f32(self) -> f32;
    /// Converts from `f32` to the nearest value; ties to even.
    fn from_f32(x: f32) -> Self;
}

/// The integers of fixed width.
pub trait Integer:
    Number
    + Ord
    + Div<Output = Self>
    + DivAssign
    + Not<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + BitAndAssign
    + BitOrAssign
    + BitXorAssign
    + ShlAssign<u32>
    + ShrAssign<u32>
{
}

/// A type for a type parameter of a kernel: a number of fixed width, a device struct or enum, or a
/// function with `#[device(value)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a type argument of a kernel",
    note = "supported are element types such as `f32`, `#[device]` structs and enums without generic parameters, and `#[device(value)]` functions"
)]
pub trait GenericArgument {
    /// The compiler's name for the type.
    const CONSTANT: Constant;
}

/// A device function as a type, for a type parameter `F: DeviceFn<(A, B), Output = R>`.
/// `#[device(value)]` makes it from a function's name.
pub trait DeviceFn<Arguments>: GenericArgument {
    /// The function's result.
    type Output;
    /// Calls the function, with its arguments as a tuple.
    fn call(arguments: Arguments) -> Self::Output;
}

macro_rules! element {
    ($($t:ty, $s:ident, $x:ident => $bits:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl DeviceCopy for $t {
            fn undefined() -> Self { <$t as ScalarElement>::from_bits(u64::MAX) }
            fn zero() -> Self { <$t as ScalarElement>::from_bits(0) }
        }
        // SAFETY: a number of fixed width, every bit pattern of which is a value.
        unsafe impl Element for $t {
            const TYPE: ElementType = ElementType::Scalar(Scalar::$s);
        }
        impl ScalarElement for $t {
            const SCALAR: Scalar = Scalar::$s;
            fn bits(self) -> u64 { let $x = self; $bits }
            fn from_bits($x: u64) -> Self { $from }
        }
        impl Number for $t {}
        impl GenericArgument for $t {
            const CONSTANT: Constant = Constant::Scalar(Scalar::$s);
        }
    )*};
}
element! {
    i8, I8, x => u64::from(x as u8), x as i8;
    i16, I16, x => u64::from(x as u16), x as i16;
    i32, I32, x => u64::from(x as u32), x as i32;
    i64, I64, x => x as u64, x as i64;
    u8, U8, x => u64::from(x), x as u8;
    u16, U16, x => u64::from(x), x as u16;
    u32, U32, x => u64::from(x), x as u32;
    u64, U64, x => x, x;
    f16, F16, x => u64::from(x.to_bits()), f16::from_bits(x as u16);
    bf16, Bf16, x => u64::from(x.to_bits()), bf16::from_bits(x as u16);
    f32, F32, x => u64::from(x.to_bits()), f32::from_bits(x as u32);
    f64, F64, x => x.to_bits(), f64::from_bits(x);
}

impl<const EXP: u32, const BIAS: i32, P: Policy> sealed::Sealed for Float16<EXP, BIAS, P> {}
impl<const EXP: u32, const BIAS: i32, P: Policy> DeviceCopy for Float16<EXP, BIAS, P> {
    fn undefined() -> Self {
        Float16::from_bits(u16::MAX)
    }
    fn zero() -> Self {
        Float16::from_bits(0)
    }
}
// SAFETY: `repr(transparent)` over a `u16`, every bit pattern of which is a value.
unsafe impl<const EXP: u32, const BIAS: i32, P: Policy> Element for Float16<EXP, BIAS, P> {
    const TYPE: ElementType = ElementType::Scalar(Scalar::Custom(Self::FORMAT));
}
impl<const EXP: u32, const BIAS: i32, P: Policy> ScalarElement for Float16<EXP, BIAS, P> {
    const SCALAR: Scalar = Scalar::Custom(Self::FORMAT);
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
    fn from_bits(bits: u64) -> Self {
        Float16::from_bits(bits as u16)
    }
}
impl<const EXP: u32, const BIAS: i32, P: Policy> Number for Float16<EXP, BIAS, P> {}
impl<const EXP: u32, const BIAS: i32, P: Policy> GenericArgument for Float16<EXP, BIAS, P> {
    const CONSTANT: Constant = Constant::Scalar(Scalar::Custom(Self::FORMAT));
}
impl<const EXP: u32, const BIAS: i32, P: Policy> Float for Float16<EXP, BIAS, P> {
    fn to_f32(self) -> f32 {
        Float16::to_f32(self)
    }
    fn from_f32(x: f32) -> Self {
        Float16::from_f32(x)
    }
}

macro_rules! integer {
    ($($t:ty)*) => {$( impl Integer for $t {} )*};
}
integer!(i8 i16 i32 i64 u8 u16 u32 u64);

impl DeviceCopy for u128 {
    fn undefined() -> Self {
        u128::MAX
    }
    fn zero() -> Self {
        0
    }
}
// SAFETY: two words of 64 bits, every bit pattern of which is a value. Host and device are
// little-endian and align it to 16 bytes.
unsafe impl Element for u128 {
    const TYPE: ElementType = {
        assert!(
            align_of::<u128>() == 16 && cfg!(target_endian = "little"),
            "the layout of `u128` is that of the device"
        );
        ElementType::Scalar(Scalar::U128)
    };
}
impl GenericArgument for u128 {
    const CONSTANT: Constant = Constant::Scalar(Scalar::U128);
}

macro_rules! float {
    ($($t:ty, $x:ident => $to:expr, $from:expr;)*) => {$(
        impl Float for $t {
            fn to_f32(self) -> f32 { let $x = self; $to }
            fn from_f32($x: f32) -> Self { $from }
        }
    )*};
}
float! {
    f16, x => f16::to_f32(x), f16::from_f32(x);
    bf16, x => bf16::to_f32(x), bf16::from_f32(x);
    f32, x => x, x;
    f64, x => x as f32, f64::from(x);
}

impl DeviceCopy for bool {
    fn undefined() -> Self {
        true
    }
    fn zero() -> Self {
        false
    }
}

impl DeviceCopy for usize {
    fn undefined() -> Self {
        u32::MAX as usize
    }
    fn zero() -> Self {
        0
    }
}

impl<T: DeviceCopy> DeviceCopy for Option<T> {
    fn undefined() -> Self {
        Some(T::undefined())
    }
    fn zero() -> Self {
        None
    }
}

impl<T: DeviceCopy, E: DeviceCopy> DeviceCopy for Result<T, E> {
    fn undefined() -> Self {
        Ok(T::undefined())
    }
    fn zero() -> Self {
        Ok(T::zero())
    }
}

impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {
    fn undefined() -> Self {
        [T::undefined(); N]
    }
    fn zero() -> Self {
        [T::zero(); N]
    }
}

// SAFETY: elements lie one after another, without padding.
unsafe impl<T: Element, const N: usize> Element for [T; N] {
    const TYPE: ElementType = {
        assert!(N > 0, "an array in a buffer has an element");
        assert!(N <= u32::MAX as usize, "an array in a buffer has at most u32::MAX elements");
        ElementType::Array(&T::TYPE, N as u32)
    };
}

macro_rules! tuple {
    ($($t:ident),*) => {
        impl<$($t: DeviceCopy),*> DeviceCopy for ($($t,)*) {
            fn undefined() -> Self { ($($t::undefined(),)*) }
            fn zero() -> Self { ($($t::zero(),)*) }
        }
    };
}
tuple!(A, B);
tuple!(A, B, C);
tuple!(A, B, C, D);
tuple!(A, B, C, D, E);
tuple!(A, B, C, D, E, F);

/// Returns the bytes of a value.
pub(crate) fn bytes<T: Element>(value: &T) -> &[u8] {
    // SAFETY: an element has no padding, so all its bytes are initialized; they live for the
    // duration of the borrow.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}
