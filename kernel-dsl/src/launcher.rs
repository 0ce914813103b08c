//! The border between a kernel's typed launch functions and whatever runs kernels.
//!
//! An expansion's `launch` takes Rust arguments, turns each into an [`Argument`], and hands them to a [`Launcher`]. The
//! launcher (a device of crate `runtime`) checks them against the kernel's contract and runs the kernel. Nothing here
//! knows of CUDA.

use crate::artifact::Artifact;
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::hir::Constant;
use std::marker::PhantomData;

/// Runs kernels: a device.
pub trait Launcher {
    /// Why a launch failed.
    type Error;

    /// Checks the arguments against the kernel's contract and runs the instance, every access checked.
    fn launch(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error>;

    /// Checks the arguments against the kernel's contract and runs the instance's own PTX, accesses unchecked.
    ///
    /// # Safety
    /// The kernel must be free of out-of-bounds accesses and races for these arguments.
    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error>;
}

/// An argument of a launch, its Rust type erased.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    /// A scalar by value: its bits, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// A slice or view of device memory.
    Memory(Memory<'a>),
}

/// Device memory that a launch may use.
///
/// It stays on its thread (it is neither `Send` nor `Sync`): a clone of a mutable one is no second writer at the same time.
#[derive(Clone, Debug)]
pub struct Memory<'a> {
    element: Scalar,
    device: u64,
    address: u64,
    shape: Shape,
    mutable: bool,
    borrow: PhantomData<(&'a mut [u8], *mut u8)>,
}

/// Extents and strides of a slice or view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A slice of that many elements.
    Slice(u64),
    /// A view: extents, outermost first, and the stride of each dimension in elements (the last is 1). Rank 1 to 5.
    #[allow(missing_docs)]
    View { extents: Vec<u64>, strides: Vec<u64> },
}

impl Shape {
    /// Elements from the first to the last that the shape reaches, gaps included; 0 if any extent is.
    pub fn span(&self) -> u64 {
        match self {
            Shape::Slice(n) => *n,
            Shape::View { extents, strides } if !extents.contains(&0) => {
                1 + extents.iter().zip(strides).map(|(n, s)| (n - 1).saturating_mul(*s)).fold(0, u64::saturating_add)
            }
            Shape::View { .. } => 0,
        }
    }
}

impl<'a> Memory<'a> {
    /// Memory at `address` of the device that calls itself `device`.
    ///
    /// # Safety
    /// For `'a`, all elements that `shape` spans must lie in one live allocation of that device, initialised, and nobody else may
    /// write them; where `mutable`, nobody else may read them either. On a device whose memory is the host's,
    /// `address` is a host address that was made from a pointer valid for that.
    pub unsafe fn new(element: Scalar, device: u64, address: u64, shape: Shape, mutable: bool) -> Memory<'a> {
        Memory { element, device, address, shape, mutable, borrow: PhantomData }
    }

    /// Element type.
    pub fn element(&self) -> Scalar {
        self.element
    }

    /// The device that owns the memory.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Address of the first element.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Extents and strides.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether the launch may write it.
    pub fn mutable(&self) -> bool {
        self.mutable
    }

    /// Bytes from the first element to the end of the last.
    pub fn bytes(&self) -> u64 {
        self.shape.span().saturating_mul(u64::from(self.element.bytes()))
    }
}

mod sealed {
    /// Keeps [`Element`](super::Element) to the types below: numbers of which every bit pattern is a value, as wide in host memory
    /// as [`SCALAR`](super::Element::SCALAR) says. Runtimes copy them as bytes.
    pub trait Sealed {}
}

/// A scalar that a kernel can take by value and a buffer can hold: one of the number types listed here, of which every
/// bit pattern is a value.
#[diagnostic::on_unimplemented(
    message = "a buffer on the device cannot hold `{Self}`",
    label = "not an element of device memory",
    note = "it holds the integers of 8 to 64 bits, `f32` and `f64`; for `usize`, whose width differs between host and device, take `u32` or `u64`, for `bool` take `u8`"
)]
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The type in a kernel.
    const SCALAR: Scalar;
    /// The value's bits, zero-extended to 64.
    fn bits(self) -> u64;
    /// The value whose bits are the low ones of `bits`.
    fn from_bits(bits: u64) -> Self;
}

macro_rules! element {
    ($($t:ty, $s:ident, $x:ident => $bits:expr, $from:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const SCALAR: Scalar = Scalar::$s;
            fn bits(self) -> u64 { let $x = self; $bits }
            fn from_bits($x: u64) -> Self { $from }
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
    f32, F32, x => u64::from(x.to_bits()), f32::from_bits(x as u32);
    f64, F64, x => x.to_bits(), f64::from_bits(x);
}

/// A scalar argument, of a type that [`Element`] has or `usize` or `bool`.
pub trait ScalarArgument {
    /// The argument with its type erased; `usize` above `u32::MAX` is kept whole, for the launch to refuse.
    fn argument(self) -> Argument<'static>;
}
impl<T: Element> ScalarArgument for T {
    fn argument(self) -> Argument<'static> {
        Argument::Scalar { ty: T::SCALAR, bits: self.bits() }
    }
}
impl ScalarArgument for usize {
    fn argument(self) -> Argument<'static> {
        Argument::Scalar { ty: Scalar::Usize, bits: self as u64 }
    }
}
impl ScalarArgument for bool {
    fn argument(self) -> Argument<'static> {
        Argument::Scalar { ty: Scalar::Bool, bits: u64::from(self) }
    }
}

/// What can be passed for a parameter `&[T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `&[{T}]`",
    note = "pass `&buffer`, where `buffer` is a device buffer of `{T}`"
)]
pub trait SliceArgument<'a, T> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// What can be passed for a parameter `&mut [T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `&mut [{T}]`",
    note = "pass `&mut buffer`, where `buffer` is a device buffer of `{T}`"
)]
pub trait SliceMutArgument<'a, T> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// What can be passed for a parameter `View<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `View<{T}, {R}>`",
    note = "pass `buffer.view([…])` with {R} extents, where `buffer` is a device buffer of `{T}`"
)]
pub trait ViewArgument<'a, T, const R: usize> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// What can be passed for a parameter `ViewMut<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `ViewMut<{T}, {R}>`",
    note = "pass `buffer.view_mut([…])` with {R} extents, where `buffer` is a device buffer of `{T}`"
)]
pub trait ViewMutArgument<'a, T, const R: usize> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}
