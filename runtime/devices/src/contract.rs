//! Validation of a launch: the kernel's contract over the arguments, and the device that owns their
//! memory.
//!
//! The result is [`ValidatedArgs`], the only input with which a device runs a kernel.

use crate::Error;
use crate::hazard::{AccessSet, BufferAccess, HazardTracker, SubrangeTracker};
use crate::instance::{LaunchedInstance, MAX_NUMBERS, writes};
use kernel_dsl::Argument;
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::ir::SharedMemoryNeed;
use kernel_dsl::compiler::launch::{self, DeviceFacts, Fact, Refusal};
use kernel_dsl::launcher::ArgumentShape;
use std::borrow::Cow;

/// Arguments that meet the kernel's contract, with memory that is borrowed for `'m`.
pub struct ValidatedArgs<'a, 'm> {
    shape: launch::LaunchShape,
    arguments: &'a [Argument<'m>],
    writes: Cow<'a, [bool]>,
    cooperative: bool,
}

impl<'a, 'm> ValidatedArgs<'a, 'm> {
    /// Validates `arguments` for a launch of the instance on `device`. `block` is the block size,
    /// if the launch chooses it.
    pub fn new(
        program: &Monomorphic,
        (device, facts): (u64, DeviceFacts),
        block: Option<usize>,
        arguments: &'a [Argument<'m>],
    ) -> Result<ValidatedArgs<'a, 'm>, Error> {
        let given: Vec<_> = arguments.iter().map(fact).collect();
        let mut refusals: Vec<_> = arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| matches!(argument, Argument::Memory(m) if m.device() != device && m.bytes() != 0))
            .map(|(index, _)| {
                Refusal(format!(
                    "argument {}: its memory belongs to another device: copy it to the device of the launch, \
                     for example by `Stream::copy`",
                    name(program, index)
                ))
            })
            .collect();
        match launch::shape(program, facts, block.map(|n| n as u64), &given) {
            Ok(shape) if refusals.is_empty() => {
                let cooperative = program.program().launch.cooperative;
                Ok(ValidatedArgs { shape, arguments, writes: writes(program).into(), cooperative })
            }
            shape => {
                refusals.extend(shape.err().into_iter().flatten());
                Err(Error::Refused { instance: program.instance_name(), refusals })
            }
        }
    }

    /// Validates `arguments` as [`new`](ValidatedArgs::new) does. If a launch with the same
    /// [numbers](LaunchedInstance::numbers) and types was accepted before, only the addresses are
    /// checked. If that check fails, the launch is validated in full.
    pub(crate) fn of_instance(
        instance: &'a LaunchedInstance,
        (device, facts): (u64, DeviceFacts),
        block: Option<usize>,
        arguments: &'a [Argument<'m>],
    ) -> Result<ValidatedArgs<'a, 'm>, Error> {
        let mut numbers = [0; MAX_NUMBERS];
        let numbers = instance.numbers(block, arguments, &mut numbers);
        if let Some(shape) = numbers.and_then(|numbers| instance.past_shape(numbers, device, arguments)) {
            let cooperative = instance.program().launch.cooperative;
            return Ok(ValidatedArgs { shape, arguments, writes: instance.writes().into(), cooperative });
        }
        let validated = ValidatedArgs::new(instance, (device, facts), block, arguments)?;
        if let Some(numbers) = numbers {
            instance.remember(numbers, arguments, validated.shape);
        }
        Ok(validated)
    }

    /// Returns the extents of block and grid.
    pub fn shape(&self) -> launch::LaunchShape {
        self.shape
    }

    /// Returns whether all blocks of the launch are resident at once.
    pub fn is_cooperative(&self) -> bool {
        self.cooperative
    }

    /// Rejects a cooperative launch of more blocks than the `most` that a device holds at once.
    /// `device` describes the device and how `most` follows from it.
    pub(crate) fn require_residency(&self, instance: &str, most: u64, device: &str) -> Result<(), Error> {
        let blocks = self.shape.grid.iter().map(|n| u64::from(*n)).product::<u64>();
        if blocks <= most {
            return Ok(());
        }
        let why = format!(
            "grid: a cooperative launch of {blocks} blocks, and {device} holds {most} at once: launch fewer blocks, \
             for example `grid = device::multiprocessors()`, in which each thread does more"
        );
        Err(Error::Refused { instance: instance.to_string(), refusals: vec![Refusal(why)] })
    }

    /// Returns the arguments.
    pub fn arguments(&self) -> &'a [Argument<'m>] {
        self.arguments
    }

    /// Returns the values of the entry's parameters, in order.
    pub fn parameters(&self) -> Vec<u64> {
        values(self.arguments)
    }

    /// Returns the largest extent, stride and `usize` argument.
    pub(crate) fn max_number(&self) -> u64 {
        let largest = |argument: &Argument<'_>| match argument {
            Argument::Scalar { ty: Scalar::Usize, bits } => *bits,
            Argument::Scalar { .. } => 0,
            Argument::Memory(memory) => memory.shape().numbers().max().unwrap_or(0),
        };
        self.arguments.iter().map(largest).max().unwrap_or(0)
    }

    /// Returns the memory accesses of the launch, for memory with a tracker.
    pub(crate) fn accesses(&self) -> AccessSet<'m> {
        let mut all = AccessSet::default();
        for (index, argument) in self.arguments.iter().enumerate() {
            let Argument::Memory(memory) = argument else { continue };
            let writes = self.writes(index);
            if let Some(uses) = memory.owner::<HazardTracker>() {
                all.add(if writes { BufferAccess::Write(uses) } else { BufferAccess::Read(uses) });
            } else if let Some(parts) = memory.owner::<SubrangeTracker>() {
                all.add(if writes { BufferAccess::WritePart(parts) } else { BufferAccess::Read(parts) });
            }
        }
        all
    }

    /// Returns the bytes of dynamic shared memory of a block: those beyond the entry's own
    /// declaration.
    pub fn shared_bytes(&self, instance: &str, shared: &SharedMemoryNeed) -> Result<u32, Error> {
        if shared.dynamic.is_empty() {
            return Ok(0);
        }
        match shared.layout(&self.parameters(), self.shape.block) {
            Ok((_, bytes)) => Ok(bytes),
            Err(why) => Err(Error::Refused { instance: instance.to_string(), refusals: vec![Refusal(why)] }),
        }
    }

    /// Returns whether the kernel writes argument `index`. The argument's memory is then mutable
    /// and shares no byte with another argument's.
    pub fn writes(&self, index: usize) -> bool {
        self.writes.get(index).copied().unwrap_or(false)
    }
}

/// Returns the name of argument `index` in messages.
pub(crate) fn name(program: &Monomorphic, index: usize) -> String {
    program.arguments().get(index).map_or_else(|| (index + 1).to_string(), |a| format!("`{}`", a.name))
}

fn fact(argument: &Argument) -> Fact {
    match argument {
        Argument::Scalar { ty, bits } => Fact::Scalar { ty: *ty, bits: *bits },
        Argument::Memory(memory) => {
            let (element, mutable, address) = (memory.element(), memory.mutable(), memory.address());
            match memory.shape() {
                ArgumentShape::Slice(len) => Fact::Slice { element, mutable, len: *len, address },
                shape @ (ArgumentShape::View { extents, strides } | ArgumentShape::Strided { extents, strides }) => {
                    let strided = matches!(shape, ArgumentShape::Strided { .. });
                    let (extents, strides) = (extents.to_vec(), strides.to_vec());
                    Fact::View { element, mutable, strided, extents, strides, address }
                }
            }
        }
    }
}

/// Returns the values of the entry's parameters, in order: a scalar; or an address, extents, and
/// strides (without the last if it is always 1). Each value is in the low bytes of a `u64`. From
/// there the driver reads the parameter's size, which needs a little-endian host.
fn values(arguments: &[Argument]) -> Vec<u64> {
    const { assert!(cfg!(target_endian = "little"), "parameters are passed by their low bytes") };
    // An address, and up to 9 extents and strides.
    let mut values = Vec::with_capacity(10 * arguments.len());
    for argument in arguments {
        match argument {
            Argument::Scalar { bits, .. } => values.push(*bits),
            Argument::Memory(memory) => {
                values.push(memory.address());
                let (extents, strides) = memory.shape().parameters();
                values.extend_from_slice(extents);
                values.extend_from_slice(strides);
            }
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel_dsl::launcher::ArgumentMemory;

    #[test]
    fn parameters_are_in_the_order_of_the_entry() {
        let memory = |shape| {
            // SAFETY: nothing accesses it.
            Argument::Memory(unsafe { ArgumentMemory::new(Scalar::F32.into(), 1, 0x100, shape, false) })
        };
        let arguments = [
            Argument::scalar(-1i32),
            memory(ArgumentShape::Slice(7)),
            memory(ArgumentShape::View { extents: [2, 3, 4][..].into(), strides: [24, 8, 1][..].into() }),
            memory(ArgumentShape::Strided { extents: [5, 6][..].into(), strides: [1, 9][..].into() }),
            Argument::Scalar { ty: Scalar::Bool, bits: 1 },
        ];
        assert_eq!(values(&arguments), [0xffff_ffff, 0x100, 7, 0x100, 2, 3, 4, 24, 8, 0x100, 5, 6, 1, 9, 1]);
    }
}
