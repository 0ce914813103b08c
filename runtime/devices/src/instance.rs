//! An instance of a kernel, with the shapes of past launches so that they need not be computed
//! again.
//!
//! A remembered launch has all that the contract of a kernel, the block and the grid depend on:
//! types, scalars, extents, strides, and the alignment of addresses. The contract also depends on
//! the overlap of arguments and on the end of the address space. Every launch checks these two, the
//! device of the memory, and the types.

use crate::cuda::LoadedEntry;
use kernel_dsl::Argument;
use kernel_dsl::compiler::hir::{Expr, ExprKind, Intrinsic, Monomorphic, Type, visit};
use kernel_dsl::compiler::launch::LaunchShape;
use kernel_dsl::compiler::{ElementType, Scalar};
use kernel_dsl::launcher::ArgumentShape;
use runtime_simt::Lock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The maximum number of launches that an instance remembers. At this number it forgets all of
/// them, so that a program whose scalars differ in every launch needs bounded memory.
const MAX_KNOWN: usize = 64;
/// The maximum number of numbers of a launch that is remembered: those of 14 views of rank 4.
pub(crate) const MAX_NUMBERS: usize = 128;
/// The largest power of two that a launch expression compares an alignment with, in elements, and
/// the largest size of an element in bytes.
const MAX_ALIGNED: u64 = 64;

/// A program with its accepted launches.
pub(crate) struct LaunchedInstance {
    program: Monomorphic,
    writes: Box<[bool]>,
    /// The launches that met the contract, by their numbers. `None` if numbers and types are not
    /// all that the contract depends on.
    known: Option<Lock<FxHashMap<Box<[u64]>, AcceptedLaunch>>>,
    /// The instance's own PTX on the GPU of the device, once it is loaded.
    pub loaded: OnceLock<Arc<LoadedEntry>>,
}

/// A launch that met the contract.
struct AcceptedLaunch {
    arguments: Box<[AcceptedArgument]>,
    shape: LaunchShape,
}

/// An argument of an accepted launch, apart from its numbers.
enum AcceptedArgument {
    Scalar(Scalar),
    Memory {
        element: ElementType,
        /// The number of bytes from the first element to the end of the last.
        bytes: u64,
        /// Whether the kernel may write the memory.
        writes: bool,
    },
}

impl LaunchedInstance {
    pub fn new(program: Monomorphic) -> LaunchedInstance {
        let known = compares_known_alignments(&program).then(Lock::default);
        LaunchedInstance { writes: writes(&program).into(), known, program, loaded: OnceLock::new() }
    }

    /// Returns for each argument whether the kernel may write it.
    pub fn writes(&self) -> &[bool] {
        &self.writes
    }

    /// Returns the numbers of a launch that its contract depends on: the block's extent, each
    /// scalar, and for each argument in memory its form and numbers. The numbers do not tell
    /// scalars from memory: [`past_shape`](LaunchedInstance::past_shape) compares the types. `None`
    /// if the launch cannot be remembered.
    pub fn numbers<'n>(
        &self,
        block: Option<usize>,
        arguments: &[Argument<'_>],
        numbers: &'n mut [u64; MAX_NUMBERS],
    ) -> Option<&'n [u64]> {
        self.known.as_ref()?;
        let mut len = 0;
        let mut push = |number: u64| {
            *numbers.get_mut(len)? = number;
            len += 1;
            Some(())
        };
        push(u64::from(block.is_some()))?;
        push(block.unwrap_or(0) as u64)?;
        for argument in arguments {
            match argument {
                Argument::Scalar { bits, .. } => push(*bits)?,
                Argument::Memory(memory) => {
                    let (form, extents, strides): (u64, &[u64], &[u64]) = match memory.shape() {
                        ArgumentShape::Slice(len) => (0, std::slice::from_ref(len), &[]),
                        ArgumentShape::View { extents, strides } => (1, extents, strides),
                        ArgumentShape::Strided { extents, strides } => (2, extents, strides),
                    };
                    let aligned = memory.address().trailing_zeros().min((MAX_ALIGNED * MAX_ALIGNED).trailing_zeros());
                    // Each part fits its bits: there are at most `MAX_NUMBERS` dimensions.
                    let lengths = (extents.len() as u64) << 16 | (strides.len() as u64) << 32;
                    push(form | u64::from(memory.mutable()) << 2 | u64::from(aligned) << 3 | lengths)?;
                    for number in extents {
                        push(*number)?;
                    }
                    for number in strides {
                        push(*number)?;
                    }
                }
            }
        }
        Some(&numbers[..len])
    }

    /// Returns the shape of a past launch with these numbers and the types of `arguments`, if the
    /// memory of the arguments meets the contract too.
    pub fn past_shape(&self, numbers: &[u64], device: u64, arguments: &[Argument<'_>]) -> Option<LaunchShape> {
        let known = self.known.as_ref()?.lock();
        let accepted = known.get(numbers)?;
        accepted.covers(device, arguments).then_some(accepted.shape)
    }

    /// Remembers the shape of a launch that met the contract, unless the size of an element is no
    /// power of two: alignments in such elements do not follow from the address's factors of two.
    pub fn remember(&self, numbers: &[u64], arguments: &[Argument<'_>], shape: LaunchShape) {
        let Some(known) = &self.known else { return };
        let accepted = arguments.iter().enumerate().map(|(index, argument)| {
            let memory = match argument {
                Argument::Scalar { ty, .. } => return Some(AcceptedArgument::Scalar(*ty)),
                Argument::Memory(memory) => memory,
            };
            let (element, bytes) = (memory.element(), memory.bytes());
            let size = u64::from(element.bytes());
            let writes = self.writes.get(index).copied().unwrap_or(false);
            let accepted = AcceptedArgument::Memory { element, bytes, writes };
            (size.is_power_of_two() && size <= MAX_ALIGNED).then_some(accepted)
        });
        let Some(arguments) = accepted.collect() else { return };
        let mut known = known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(numbers.into(), AcceptedLaunch { arguments, shape });
    }
}

impl AcceptedLaunch {
    /// Returns whether arguments with the same numbers meet the contract too. Types must be the
    /// same, and memory must belong to the device and end within the address space. Written
    /// arguments may not overlap others.
    fn covers(&self, device: u64, arguments: &[Argument<'_>]) -> bool {
        let mut ranges: SmallVec<[(u64, u64, bool); 8]> = SmallVec::new();
        let mut covers = |(accepted, argument): (&AcceptedArgument, &Argument<'_>)| match (accepted, argument) {
            (AcceptedArgument::Scalar(known), Argument::Scalar { ty, .. }) => known == ty,
            (AcceptedArgument::Memory { element, bytes, writes }, Argument::Memory(memory)) => {
                let is_same = match (element, memory.element()) {
                    // Most elements are scalars, which are compared here.
                    (ElementType::Scalar(known), ElementType::Scalar(element)) => *known == element,
                    (known, element) => *known == element,
                };
                if !is_same || *bytes == 0 {
                    return is_same;
                }
                let start = memory.address();
                let Some(end) = start.checked_add(*bytes).filter(|_| memory.device() == device) else { return false };
                let overlaps = |&(other, other_end, other_writes): &(u64, u64, bool)| {
                    (*writes || other_writes) && start < other_end && other < end
                };
                let is_apart = !ranges.iter().any(overlaps);
                ranges.push((start, end, *writes));
                is_apart
            }
            _ => false,
        };
        self.arguments.len() == arguments.len() && self.arguments.iter().zip(arguments).all(&mut covers)
    }
}

impl Deref for LaunchedInstance {
    type Target = Monomorphic;

    fn deref(&self) -> &Monomorphic {
        &self.program
    }
}

/// Returns for each argument whether the kernel may write it.
pub fn writes(program: &Monomorphic) -> Vec<bool> {
    let types = &program.kernel().types;
    let writes = |ty: &Type| matches!(ty, Type::Slice { mutable: true, .. } | Type::View { mutable: true, .. });
    program.arguments().iter().map(|a| writes(&types[a.ty.0 as usize])).collect()
}

/// Returns whether launch expressions compare alignments only with powers of two of at most
/// [`MAX_ALIGNED`] elements.
fn compares_known_alignments(program: &Monomorphic) -> bool {
    let (constants, mut all) = (&program.instance().0, true);
    let power = |n: &Expr| {
        let n = match &n.kind {
            ExprKind::Literal(n) => Some(*n),
            ExprKind::Generic(index) => constants.get(*index as usize).and_then(|c| c.usize()).map(|n| n as u64),
            _ => None,
        };
        n.is_some_and(|n| n.is_power_of_two() && n <= MAX_ALIGNED)
    };
    let mut see = |e: &mut Expr| {
        if let ExprKind::Intrinsic { intrinsic: Intrinsic::Aligned, arguments } = &e.kind {
            all &= arguments.get(1).is_some_and(power);
        }
    };
    // The traversal needs a mutable expression, hence the copy: one for each instance.
    let mut launch = program.program().launch.clone();
    let block = launch.block.iter_mut().flat_map(|extent| extent.expressions_mut());
    let conditions = launch.requires.iter_mut().map(|r| &mut r.condition);
    block.chain(&mut launch.grid).chain(conditions).for_each(|e| visit::expr(e, &mut see));
    // Launch expressions may call any of the device functions.
    let functions = program.program().functions.iter().skip(1);
    functions.for_each(|function| visit::block(&mut function.body.clone(), &mut see));
    all
}
