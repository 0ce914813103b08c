//! The interface between a kernel's typed launch functions and the devices that run kernels.
//!
//! An expansion's `launch` takes Rust arguments, turns each into an [`Argument`], and passes them
//! to a [`Launcher`]. The launcher (a device of crate `runtime`) checks the arguments against the
//! kernel's contract and runs the kernel. This module does not depend on CUDA.

use crate::artifact::Artifact;
use crate::element::ScalarElement;
use ::half::{bf16, f16};
use kernel_dsl_compiler::hir::Constant;
use kernel_dsl_compiler::{ElementType, Scalar};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

/// The form of a kernel that a launch runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaunchForm {
    /// Every access checked.
    Checked,
    /// The kernel's own PTX.
    Unchecked,
}

/// A device that runs kernels.
pub trait Launcher {
    /// The reason for a failed launch.
    type Error;

    /// Checks the arguments against the kernel's contract and runs the instance in this form.
    /// `block` is the block's extent in threads, if the launch chooses it, and otherwise `None`.
    ///
    /// # Errors
    /// The launcher's error, if the arguments violate the contract or the launch fails. In the
    /// checked form, a failed check is an error too.
    ///
    /// # Safety
    /// In the unchecked form, the kernel must be free of out-of-bounds accesses and races for these
    /// arguments.
    unsafe fn submit(
        &self,
        form: LaunchForm,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error>;

    /// Checks the arguments against the kernel's contract and runs the instance with every access
    /// checked. `block` has the meaning of [`submit`](Launcher::submit).
    ///
    /// # Errors
    /// Returns the errors of [`submit`](Launcher::submit).
    fn launch(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error> {
        // SAFETY: the checked form requires nothing.
        unsafe { self.submit(LaunchForm::Checked, kernel, constants, block, arguments) }
    }

    /// Checks the arguments against the kernel's contract and runs the instance's PTX without
    /// access checks. `block` has the meaning of [`submit`](Launcher::submit).
    ///
    /// # Errors
    /// Returns the errors of [`submit`](Launcher::submit).
    ///
    /// # Safety
    /// The kernel must be free of out-of-bounds accesses and races for these arguments.
    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error> {
        // SAFETY: the caller guarantees what the unchecked form requires.
        unsafe { self.submit(LaunchForm::Unchecked, kernel, constants, block, arguments) }
    }
}

/// An instance of a kernel with borrowed arguments. `saxpy::call(…)` returns it, and launchers run
/// it.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    kernel: &'static Artifact,
    constants: &'static [Constant],
    block: Option<usize>,
    arguments: Vec<Argument<'a>>,
}

impl<'a> Call<'a> {
    /// Makes a call of the instance of `kernel` with the generic arguments `constants`. `block` has
    /// the meaning of [`Launcher::submit`].
    pub fn new(
        kernel: &'static Artifact,
        constants: &'static [Constant],
        block: Option<usize>,
        arguments: Vec<Argument<'a>>,
    ) -> Call<'a> {
        Call { kernel, constants, block, arguments }
    }

    /// Returns the kernel.
    pub fn kernel(&self) -> &'static Artifact {
        self.kernel
    }

    /// Returns the instance's generic arguments.
    pub fn constants(&self) -> &'static [Constant] {
        self.constants
    }

    /// Returns the block's extent in threads, if the launch chooses it.
    pub fn block(&self) -> Option<usize> {
        self.block
    }

    /// Sets the block's extent in threads, for a kernel that leaves the extent to the launch.
    pub fn in_blocks_of(self, block: usize) -> Call<'a> {
        Call { block: self.block.map(|_| block), ..self }
    }

    /// Returns the arguments in order.
    pub fn arguments(&self) -> &[Argument<'a>] {
        &self.arguments
    }

    /// Runs the call with every access checked.
    ///
    /// # Errors
    /// Returns the errors of [`Launcher::submit`].
    pub fn launch<L: Launcher>(self, on: &L) -> Result<(), L::Error> {
        on.launch(self.kernel, self.constants, self.block, &self.arguments)
    }

    /// Runs the instance's PTX without access checks.
    ///
    /// # Errors
    /// Returns the errors of [`Launcher::submit`].
    ///
    /// # Safety
    /// The kernel must be free of out-of-bounds accesses and races for these arguments.
    pub unsafe fn launch_unchecked<L: Launcher>(self, on: &L) -> Result<(), L::Error> {
        // SAFETY: the caller guarantees what `launch_unchecked` requires.
        unsafe { on.launch_unchecked(self.kernel, self.constants, self.block, &self.arguments) }
    }
}

/// An argument of a launch with its Rust type erased.
#[derive(Clone, Debug)]
pub enum Argument<'a> {
    /// A scalar by value: its bits, zero-extended.
    #[allow(missing_docs)]
    Scalar { ty: Scalar, bits: u64 },
    /// A slice or view of device memory.
    Memory(ArgumentMemory<'a>),
}

impl Argument<'static> {
    /// Returns the argument for a number passed by value.
    pub fn scalar<T: ScalarElement>(value: T) -> Argument<'static> {
        Argument::Scalar { ty: T::SCALAR, bits: value.bits() }
    }
}

/// Device memory that a launch may use.
///
/// `ArgumentMemory` is neither `Send` nor `Sync`: a clone of a mutable one stays on its thread and
/// cannot become a concurrent second writer.
#[derive(Clone, Debug)]
pub struct ArgumentMemory<'a> {
    element: ElementType,
    device: u64,
    address: u64,
    shape: ArgumentShape,
    mutable: bool,
    owner: Option<OwnerMetadata<'a>>,
    borrow: PhantomData<(&'a mut [u8], *mut u8)>,
}

/// Metadata that an owner attaches to its memory.
#[derive(Clone, Copy)]
struct OwnerMetadata<'a>(&'a (dyn Any + Sync));

impl fmt::Debug for OwnerMetadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnerMetadata")
    }
}

/// A number for each dimension of a view. A launch allocates no memory for the numbers.
pub type DimensionNumbers = SmallVec<[u64; 5]>;

/// Extents and strides of a slice or view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArgumentShape {
    /// A slice of the given number of elements.
    Slice(u64),
    /// A view: extents, outermost first, and the stride of each dimension in elements (the last is
    /// 1). Rank 1 to 5.
    #[allow(missing_docs)]
    View { extents: DimensionNumbers, strides: DimensionNumbers },
    /// A view with a stride in every dimension.
    #[allow(missing_docs)]
    Strided { extents: DimensionNumbers, strides: DimensionNumbers },
}

impl ArgumentShape {
    /// Returns the entry's parameters after the address: extents, and strides. The last stride is
    /// left out if it is always 1.
    pub fn parameters(&self) -> (&[u64], &[u64]) {
        match self {
            ArgumentShape::Slice(len) => (std::slice::from_ref(len), &[]),
            ArgumentShape::View { extents, strides } => (extents, strides.split_last().map_or(&[], |(_, outer)| outer)),
            ArgumentShape::Strided { extents, strides } => (extents, strides),
        }
    }

    /// Iterates over the entry's parameters after the address: extents, then strides. The last
    /// stride is left out if it is always 1.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let (extents, strides) = self.parameters();
        extents.iter().chain(strides).copied()
    }

    /// Returns the number of elements from the first to the last that the shape reaches, gaps
    /// included; 0 if any extent is 0.
    pub fn span(&self) -> u64 {
        match self {
            ArgumentShape::Slice(n) => *n,
            ArgumentShape::View { extents, strides } | ArgumentShape::Strided { extents, strides }
                if !extents.contains(&0) =>
            {
                1 + extents.iter().zip(strides).map(|(n, s)| (n - 1).saturating_mul(*s)).fold(0, u64::saturating_add)
            }
            ArgumentShape::View { .. } | ArgumentShape::Strided { .. } => 0,
        }
    }
}

impl<'a> ArgumentMemory<'a> {
    /// Returns memory at `address` of the device with the number `device`.
    ///
    /// # Safety
    /// For `'a`, all elements that `shape` spans lie in one live, initialized allocation of that
    /// device, and no other code writes them. If `mutable`, no other code reads them either. On a
    /// device that uses host memory, `address` comes from a host pointer valid for these accesses.
    /// Other code may access the gaps between the elements of `shape` if the memory is
    /// [owned](ArgumentMemory::owned_by) by an owner that reports such parts to the launcher.
    pub unsafe fn new(
        element: ElementType,
        device: u64,
        address: u64,
        shape: ArgumentShape,
        mutable: bool,
    ) -> ArgumentMemory<'a> {
        ArgumentMemory { element, device, address, shape, mutable, owner: None, borrow: PhantomData }
    }

    /// Attaches owner metadata that a launcher can downcast, such as its hazard tracker.
    ///
    /// # Safety
    /// `owner` must be the metadata of this memory's own owner, and replaces earlier metadata. The
    /// launcher reads from it which work still uses the memory, records the launch there, and
    /// learns which parts are in use elsewhere. The launcher does not wait for a use that the owner
    /// does not record, before the memory is written or freed.
    pub unsafe fn owned_by(self, owner: &'a (dyn Any + Sync)) -> ArgumentMemory<'a> {
        ArgumentMemory { owner: Some(OwnerMetadata(owner)), ..self }
    }

    /// Returns the owner's metadata if its type is `T`.
    pub fn owner<T: Any>(&self) -> Option<&'a T> {
        self.owner.and_then(|OwnerMetadata(owner)| (owner as &dyn Any).downcast_ref())
    }

    /// Returns the element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// Returns the device that owns the memory.
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Returns the address of the first element, in the address space of the device.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the extents and strides.
    pub fn shape(&self) -> &ArgumentShape {
        &self.shape
    }

    /// Returns whether the launch may write the memory.
    pub fn mutable(&self) -> bool {
        self.mutable
    }

    /// Returns the number of bytes from the first element to the end of the last.
    pub fn bytes(&self) -> u64 {
        self.shape.span().saturating_mul(u64::from(self.element.bytes()))
    }
}

/// A by-value argument: a scalar of a [`ScalarElement`] type, `usize` or `bool`, or an array, tuple
/// or device struct of them. Structs may contain views if the kernel's parameter does.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    note = "pass a number, `bool`, a `#[device]` enum, or a `#[device]` struct of these",
    note = "memory that the kernel reads is `&[T]`, and memory that it writes is `&mut [T]`, even for one element"
)]
pub trait ValueArgument {
    /// Adds the argument to a list with its type erased: one entry for each number or view in it,
    /// in order. A `usize` above `u32::MAX` keeps its 64 bits, so that the launch can reject it.
    fn arguments(self, list: &mut Vec<Argument<'_>>);
}

macro_rules! scalar_arguments {
    ($($t:ty)*) => {$(
        impl ValueArgument for $t {
            fn arguments(self, list: &mut Vec<Argument<'_>>) {
                let ty = <$t as ScalarElement>::SCALAR;
                list.push(Argument::Scalar { ty, bits: ScalarElement::bits(self) });
            }
        }
    )*};
}
scalar_arguments!(i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64);

impl ValueArgument for usize {
    fn arguments(self, list: &mut Vec<Argument<'_>>) {
        list.push(Argument::Scalar { ty: Scalar::Usize, bits: self as u64 });
    }
}
impl ValueArgument for bool {
    fn arguments(self, list: &mut Vec<Argument<'_>>) {
        list.push(Argument::Scalar { ty: Scalar::Bool, bits: u64::from(self) });
    }
}
/// Passes the low and the high word, as two scalars of 64 bits.
impl ValueArgument for u128 {
    fn arguments(self, list: &mut Vec<Argument<'_>>) {
        (self as u64).arguments(list);
        ((self >> 64) as u64).arguments(list);
    }
}
impl<T: ValueArgument, const N: usize> ValueArgument for [T; N] {
    fn arguments(self, list: &mut Vec<Argument<'_>>) {
        self.into_iter().for_each(|x| x.arguments(list));
    }
}

macro_rules! tuple_arguments {
    ($($t:ident $x:ident),*) => {
        impl<$($t: ValueArgument),*> ValueArgument for ($($t,)*) {
            fn arguments(self, list: &mut Vec<Argument<'_>>) {
                let ($($x,)*) = self;
                $($x.arguments(list);)*
            }
        }
    };
}
tuple_arguments!(A a, B b);
tuple_arguments!(A a, B b, C c);
tuple_arguments!(A a, B b, C c, D d);

/// An argument for a parameter `&[T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `&[{T}]`",
    note = "pass `&buffer`, where `buffer` is a device buffer of `{T}`"
)]
pub trait SliceArgument<'a, T> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// An argument for a parameter `&mut [T]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `&mut [{T}]`",
    note = "pass `&mut buffer`, where `buffer` is a device buffer of `{T}`"
)]
pub trait SliceMutArgument<'a, T> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// An argument for a parameter `View<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `View<{T}, {R}>`",
    note = "pass `buffer.view([…])` with {R} extents, where `buffer` is a device buffer of `{T}`"
)]
pub trait ViewArgument<'a, T, const R: usize> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// An argument for a parameter `ViewMut<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `ViewMut<{T}, {R}>`",
    note = "pass `buffer.view_mut([…])` with {R} extents, where `buffer` is a device buffer of `{T}`"
)]
pub trait ViewMutArgument<'a, T, const R: usize> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// An argument for a parameter `Strided<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `Strided<{T}, {R}>`",
    note = "pass `buffer.strided([…], […])` with {R} extents and strides, or a view, where `buffer` is a device buffer of `{T}`"
)]
pub trait StridedArgument<'a, T, const R: usize> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// An argument for a parameter `StridedMut<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `StridedMut<{T}, {R}>`",
    note = "pass `buffer.strided_mut([…], […])` with {R} extents and strides, or a view, where `buffer` is a device buffer of `{T}`"
)]
pub trait StridedMutArgument<'a, T, const R: usize> {
    /// Returns the argument with its type erased.
    fn argument(self) -> Argument<'a>;
}
