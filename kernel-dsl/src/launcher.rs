//! The border between a kernel's typed launch functions and whatever runs kernels.
//!
//! An expansion's `launch` takes Rust arguments, turns each into an [`Argument`], and hands them to a [`Launcher`]. The
//! launcher (a device of crate `runtime`) checks them against the kernel's contract and runs the kernel. Nothing here
//! knows of CUDA.

use crate::artifact::Artifact;
use crate::element::ScalarElement;
use ::half::{bf16, f16};
use kernel_dsl_compiler::hir::Constant;
use kernel_dsl_compiler::{ElementType, Scalar};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

/// Runs kernels: a device.
pub trait Launcher {
    /// Why a launch failed.
    type Error;

    /// Checks the arguments against the kernel's contract and runs the instance, every access checked. `block` is the extent of the
    /// block that the kernel leaves to its launches, if it does.
    fn launch(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error>;

    /// Checks the arguments against the kernel's contract and runs the instance's own PTX, accesses unchecked; `block` as for
    /// [`launch`](Launcher::launch).
    ///
    /// # Safety
    /// The kernel must be free of out-of-bounds accesses and races for these arguments.
    unsafe fn launch_unchecked(
        &self,
        kernel: &'static Artifact,
        constants: &[Constant],
        block: Option<usize>,
        arguments: &[Argument<'_>],
    ) -> Result<(), Self::Error>;
}

/// An instance of a kernel with its arguments, which it borrows: what `saxpy::call(…)` gives, and launchers run.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    kernel: &'static Artifact,
    constants: &'static [Constant],
    block: Option<usize>,
    arguments: Vec<Argument<'a>>,
}

impl<'a> Call<'a> {
    /// The instance of `kernel` for `constants`; `block` as for [`Launcher::launch`].
    pub fn new(
        kernel: &'static Artifact,
        constants: &'static [Constant],
        block: Option<usize>,
        arguments: Vec<Argument<'a>>,
    ) -> Call<'a> {
        Call { kernel, constants, block, arguments }
    }

    /// The kernel.
    pub fn kernel(&self) -> &'static Artifact {
        self.kernel
    }

    /// The instance's constants.
    pub fn constants(&self) -> &'static [Constant] {
        self.constants
    }

    /// The extent of the block that the kernel leaves to its launches, if it does.
    pub fn block(&self) -> Option<usize> {
        self.block
    }

    /// The same in blocks of another extent, where the kernel leaves that to its launches.
    pub fn in_blocks_of(self, block: usize) -> Call<'a> {
        Call { block: self.block.map(|_| block), ..self }
    }

    /// The arguments in order.
    pub fn arguments(&self) -> &[Argument<'a>] {
        &self.arguments
    }

    /// Has it run, every access checked.
    pub fn launch<L: Launcher>(self, on: &L) -> Result<(), L::Error> {
        on.launch(self.kernel, self.constants, self.block, &self.arguments)
    }

    /// Has the instance's own PTX run.
    ///
    /// # Safety
    /// The kernel must be free of out-of-bounds accesses and races for these arguments.
    pub unsafe fn launch_unchecked<L: Launcher>(self, on: &L) -> Result<(), L::Error> {
        // SAFETY: by the caller's promise.
        unsafe { on.launch_unchecked(self.kernel, self.constants, self.block, &self.arguments) }
    }
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

impl Argument<'static> {
    /// A number by value.
    pub fn scalar<T: ScalarElement>(value: T) -> Argument<'static> {
        Argument::Scalar { ty: T::SCALAR, bits: value.bits() }
    }
}

/// Device memory that a launch may use.
///
/// It stays on its thread (it is neither `Send` nor `Sync`): a clone of a mutable one is no second writer at the same time.
#[derive(Clone, Debug)]
pub struct Memory<'a> {
    element: ElementType,
    device: u64,
    address: u64,
    shape: Shape,
    mutable: bool,
    owner: Option<Owner<'a>>,
    borrow: PhantomData<(&'a mut [u8], *mut u8)>,
}

/// What an owner keeps of its memory.
#[derive(Clone, Copy)]
struct Owner<'a>(&'a (dyn Any + Sync));

impl fmt::Debug for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

/// Extents and strides of a slice or view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A slice of that many elements.
    Slice(u64),
    /// A view: extents, outermost first, and the stride of each dimension in elements (the last is 1). Rank 1 to 5.
    #[allow(missing_docs)]
    View { extents: Vec<u64>, strides: Vec<u64> },
    /// The same with any strides.
    #[allow(missing_docs)]
    Strided { extents: Vec<u64>, strides: Vec<u64> },
}

impl Shape {
    /// What the entry takes of it behind the address: extents, then strides, all but the last where that is 1.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let (extents, strides): (&[u64], &[u64]) = match self {
            Shape::Slice(len) => (std::slice::from_ref(len), &[]),
            Shape::View { extents, strides } => (extents, strides.split_last().map_or(&[], |(_, outer)| outer)),
            Shape::Strided { extents, strides } => (extents, strides),
        };
        extents.iter().chain(strides).copied()
    }

    /// Elements from the first to the last that the shape reaches, gaps included; 0 if any extent is.
    pub fn span(&self) -> u64 {
        match self {
            Shape::Slice(n) => *n,
            Shape::View { extents, strides } | Shape::Strided { extents, strides } if !extents.contains(&0) => {
                1 + extents.iter().zip(strides).map(|(n, s)| (n - 1).saturating_mul(*s)).fold(0, u64::saturating_add)
            }
            Shape::View { .. } | Shape::Strided { .. } => 0,
        }
    }
}

impl<'a> Memory<'a> {
    /// Memory at `address` of the device that calls itself `device`.
    ///
    /// # Safety
    /// For `'a`, all elements that `shape` spans must lie in one live allocation of that device, initialised, and nobody else may
    /// write them; where `mutable`, nobody else may read them either. On a device whose memory is the host's,
    /// `address` is a host address that was made from a pointer valid for that. Of what lies between the elements that `shape` names, others
    /// may write and read what is theirs if the memory is [owned](Memory::owned_by) by what tells the launcher so.
    pub unsafe fn new(element: ElementType, device: u64, address: u64, shape: Shape, mutable: bool) -> Memory<'a> {
        Memory { element, device, address, shape, mutable, owner: None, borrow: PhantomData }
    }

    /// The same with what its owner keeps of it, for a launcher that knows it to find: who uses it, say.
    ///
    /// # Safety
    /// It is what the owner of this very memory keeps, in place of what was given before. By this the launcher has its work wait for who still
    /// uses the memory, notes there that it does, and knows whether others have other parts of it: what an owner does not see, nobody waits for
    /// before the memory is written or freed.
    pub unsafe fn owned_by(self, owner: &'a (dyn Any + Sync)) -> Memory<'a> {
        Memory { owner: Some(Owner(owner)), ..self }
    }

    /// What its owner keeps of it, if that is a `T`.
    pub fn owner<T: Any>(&self) -> Option<&'a T> {
        self.owner.and_then(|Owner(owner)| (owner as &dyn Any).downcast_ref())
    }

    /// Element type.
    pub fn element(&self) -> ElementType {
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

/// A scalar argument, of a type that [`ScalarElement`] has or `usize` or `bool`; arrays, tuples and device structs of such;
/// views, where the kernel takes them in a struct. What a kernel takes by value.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed to a kernel by value",
    note = "pass a number, `bool`, a `#[device]` enum, or a `#[device]` struct of such"
)]
pub trait ValueArgument {
    /// Adds the argument to a list, its type erased: one entry for each number or view that it is made of, in order. `usize`
    /// above `u32::MAX` is kept whole, for the launch to refuse.
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

/// What can be passed for a parameter `Strided<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `Strided<{T}, {R}>`",
    note = "pass `buffer.strided([…], […])` with {R} extents and strides, or a view, where `buffer` is a device buffer of `{T}`"
)]
pub trait StridedArgument<'a, T, const R: usize> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}

/// What can be passed for a parameter `StridedMut<T, R>`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be passed for a kernel's `StridedMut<{T}, {R}>`",
    note = "pass `buffer.strided_mut([…], […])` with {R} extents and strides, or a view, where `buffer` is a device buffer of `{T}`"
)]
pub trait StridedMutArgument<'a, T, const R: usize> {
    /// The argument with its type erased.
    fn argument(self) -> Argument<'a>;
}
