//! The checks that stand before every launch: the kernel's contract over the arguments, and that their memory is this
//! device's.
//!
//! What passes is [`Approved`], and a device runs nothing else.

use crate::Error;
use kernel_dsl::Argument;
use kernel_dsl::compiler::hir::{Monomorphic, Type};
use kernel_dsl::compiler::launch::{self, Fact, Refusal};
use kernel_dsl::launcher::Shape;

/// Arguments that meet the kernel's contract.
pub(crate) struct Approved<'a> {
    shape: launch::Shape,
    arguments: &'a [Argument<'a>],
    writes: Vec<bool>,
}

impl<'a> Approved<'a> {
    /// Checks `arguments` for a launch of the instance on the device that calls itself `device`.
    pub fn new(
        kernel: &str,
        program: &Monomorphic,
        device: u64,
        arguments: &'a [Argument<'a>],
    ) -> Result<Approved<'a>, Error> {
        let facts: Vec<_> = arguments.iter().map(fact).collect();
        let mut refusals: Vec<_> = arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| matches!(argument, Argument::Memory(m) if m.device() != device))
            .map(|(index, _)| {
                Refusal(format!("argument {}: its memory belongs to another device", name(program, index)))
            })
            .collect();
        match launch::shape(program, &facts) {
            Ok(shape) if refusals.is_empty() => Ok(Approved { shape, arguments, writes: writes(program) }),
            shape => {
                refusals.extend(shape.err().into_iter().flatten());
                Err(Error::Refused { instance: program.instance().name(kernel), refusals })
            }
        }
    }

    /// Block and grid.
    pub fn shape(&self) -> launch::Shape {
        self.shape
    }

    /// The arguments.
    pub fn arguments(&self) -> &'a [Argument<'a>] {
        self.arguments
    }

    /// Whether the kernel writes argument `index`. If so, its memory is mutable and shares no byte with another argument's.
    pub fn writes(&self, index: usize) -> bool {
        self.writes.get(index).copied().unwrap_or(false)
    }
}

/// Which arguments the kernel may write.
pub(crate) fn writes(program: &Monomorphic) -> Vec<bool> {
    let types = &program.kernel().types;
    let writes = |ty: &Type| matches!(ty, Type::Slice { mutable: true, .. } | Type::View { mutable: true, .. });
    program.arguments().iter().map(|a| writes(&types[a.ty.0 as usize])).collect()
}

fn name(program: &Monomorphic, index: usize) -> String {
    program.arguments().get(index).map_or_else(|| (index + 1).to_string(), |a| format!("`{}`", a.name))
}

fn fact(argument: &Argument) -> Fact {
    match argument {
        Argument::Scalar { ty, bits } => Fact::Scalar { ty: *ty, bits: *bits },
        Argument::Memory(memory) => {
            let (element, mutable, address) = (memory.element(), memory.mutable(), memory.address());
            match memory.shape() {
                Shape::Slice(len) => Fact::Slice { element, mutable, len: *len, address },
                Shape::View { extents, strides } => {
                    Fact::View { element, mutable, extents: extents.clone(), strides: strides.clone(), address }
                }
            }
        }
    }
}
