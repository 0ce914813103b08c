//! An instance of a kernel, with the shapes of past launches so that they need not be computed
//! again.
//!
//! A [`LaunchSignature`] contains all that the contract of a kernel, the block and the grid depend
//! on: types, scalars, extents, strides, and the alignment of addresses. The contract also depends
//! on the overlap of arguments and on the end of the address space. Every launch checks these two.

use crate::cuda::LoadedEntry;
use kernel_dsl::Argument;
use kernel_dsl::compiler::ElementType;
use kernel_dsl::compiler::hir::{Expr, ExprKind, Intrinsic, Monomorphic, Type, visit};
use kernel_dsl::compiler::launch::LaunchShape;
use kernel_dsl::launcher::ArgumentShape;
use runtime_simt::Lock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The maximum number of launches that an instance remembers. At this number it forgets all of
/// them, so that a program whose scalars differ in every launch needs bounded memory.
const MAX_KNOWN: usize = 64;
/// The largest power of two that a launch expression compares an alignment with, in elements, and
/// the largest size of an element in bytes.
const MAX_ALIGNED: u64 = 64;

/// A program with its accepted launches.
pub(crate) struct LaunchedInstance {
    program: Monomorphic,
    writes: Arc<[bool]>,
    /// The shapes of launches that met the contract. `None` if a [`LaunchSignature`] does not have
    /// all that the contract depends on.
    known: Option<Lock<FxHashMap<LaunchSignature, LaunchShape>>>,
    /// The instance's own PTX on the GPU of the device, once it is loaded.
    pub loaded: OnceLock<Arc<LoadedEntry>>,
}

/// The numbers of a launch that its contract depends on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct LaunchSignature {
    /// The type of each argument.
    types: SmallVec<[ElementType; 16]>,
    /// The block's extent, and for each argument its form and numbers.
    numbers: SmallVec<[u64; 64]>,
}

impl LaunchedInstance {
    pub fn new(program: Monomorphic) -> LaunchedInstance {
        let known = compares_known_alignments(&program).then(Lock::default);
        LaunchedInstance { writes: writes(&program).into(), known, program, loaded: OnceLock::new() }
    }

    /// Returns for each argument whether the kernel may write it.
    pub fn writes(&self) -> &Arc<[bool]> {
        &self.writes
    }

    /// Returns the signature of a launch, if its shape can be remembered.
    pub fn signature(&self, block: Option<usize>, arguments: &[Argument<'_>]) -> Option<LaunchSignature> {
        self.known.as_ref().and_then(|_| LaunchSignature::new(block, arguments))
    }

    /// Returns the shape of a past launch with this signature.
    pub fn past_shape(&self, signature: &LaunchSignature) -> Option<LaunchShape> {
        let known = self.known.as_ref()?.lock();
        known.get(signature).copied()
    }

    /// Remembers the shape of a launch that met the contract.
    pub fn remember(&self, signature: LaunchSignature, shape: LaunchShape) {
        let Some(known) = &self.known else { return };
        let mut known = known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(signature, shape);
    }
}

impl Deref for LaunchedInstance {
    type Target = Monomorphic;

    fn deref(&self) -> &Monomorphic {
        &self.program
    }
}

impl LaunchSignature {
    /// Returns the signature of a launch. `None` if the size of an element is no power of two:
    /// alignments in such elements do not follow from the address's factors of two.
    fn new(block: Option<usize>, arguments: &[Argument<'_>]) -> Option<LaunchSignature> {
        let mut types = SmallVec::new();
        let mut numbers = SmallVec::new();
        numbers.extend_from_slice(&[u64::from(block.is_some()), block.unwrap_or(0) as u64]);
        for argument in arguments {
            match argument {
                Argument::Scalar { ty, bits } => {
                    types.push(ElementType::from(*ty));
                    numbers.extend_from_slice(&[0, *bits]);
                }
                Argument::Memory(memory) => {
                    let element = memory.element();
                    let bytes = u64::from(element.bytes());
                    if !bytes.is_power_of_two() || bytes > MAX_ALIGNED {
                        return None;
                    }
                    types.push(element);
                    let (form, extents, strides): (u64, &[u64], &[u64]) = match memory.shape() {
                        ArgumentShape::Slice(len) => (1, std::slice::from_ref(len), &[]),
                        ArgumentShape::View { extents, strides } => (2, extents, strides),
                        ArgumentShape::Strided { extents, strides } => (3, extents, strides),
                    };
                    let aligned = memory.address().trailing_zeros().min((MAX_ALIGNED * MAX_ALIGNED).trailing_zeros());
                    let lengths = [extents.len() as u64, strides.len() as u64];
                    numbers.extend_from_slice(&[form, u64::from(memory.mutable()), u64::from(aligned)]);
                    numbers.extend_from_slice(&lengths);
                    numbers.extend_from_slice(extents);
                    numbers.extend_from_slice(strides);
                }
            }
        }
        Some(LaunchSignature { types, numbers })
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
