//! An instance's parameters: converts a case to launch arguments, and reads the outputs back.

use super::input::{InputForm, StridedArray};
use super::{Case, Input};
use kernel_dsl::Argument;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::launch;
use runtime_devices::executor::{self, RawBuffer};
use runtime_devices::{Device, Result};

/// The contents of the written arguments after a launch, with the argument's index.
pub(super) type Outputs = Vec<(usize, StridedArray)>;

/// The parameters of an instance.
pub(super) struct InstanceSignature {
    pub names: Vec<String>,
    forms: Vec<InputForm>,
    writes: Vec<bool>,
}

impl InstanceSignature {
    pub fn of(program: &Monomorphic) -> InstanceSignature {
        let types = &program.kernel().types;
        let arguments = program.arguments();
        InstanceSignature {
            names: arguments.iter().map(|a| a.name.clone()).collect(),
            forms: arguments.iter().map(|a| InputForm::of(&types[a.ty.0 as usize])).collect(),
            writes: executor::writes(program),
        }
    }

    /// Returns copies of the case, one for each block size to try.
    pub fn sized(&self, program: &Monomorphic, case: &Case) -> Vec<Case> {
        match (case.block, launch::chooses_block(program), launch::block(program)) {
            (None, true, Ok(block)) => {
                let axis = block.open().map_or(0, |open| open.axis);
                block.samples().into_iter().map(|size| case.clone().with_block(size[axis] as usize)).collect()
            }
            _ => vec![case.clone()],
        }
    }

    /// Returns for each argument a buffer with the case's array; `None` for a scalar.
    pub fn buffers(&self, device: &Device, case: &Case) -> Result<Vec<Option<RawBuffer>>> {
        let buffer = |input: &Input| match input {
            Input::Scalar { .. } => Ok(None),
            Input::Array(array) => {
                array.check()?;
                let mut buffer = RawBuffer::new(device, executor::PoolKind::Device, array.bytes().len())?;
                buffer.write(array.bytes())?;
                Ok(Some(buffer))
            }
        };
        case.inputs.iter().map(buffer).collect()
    }

    /// Returns the buffers of arguments that the kernel may write, with the argument's index.
    pub fn written<'b>(&self, buffers: &'b [Option<RawBuffer>]) -> Vec<(usize, &'b RawBuffer)> {
        let writes = |index: &usize| self.writes.get(*index).copied().unwrap_or(false);
        let all = buffers.iter().enumerate().filter(|(index, _)| writes(index));
        all.filter_map(|(index, buffer)| Some((index, buffer.as_ref()?))).collect()
    }

    /// Returns the arguments of a launch of the case on these buffers.
    ///
    /// # Safety
    /// Each array of the case has a buffer of its length. The buffer is initialized at each launch,
    /// outlives the arguments, and belongs to one argument of a launch.
    pub unsafe fn arguments<'b>(&self, case: &Case, buffers: &[Option<&'b RawBuffer>]) -> Vec<Argument<'b>> {
        let argument = |(index, (input, buffer)): (usize, (&Input, &Option<&'b RawBuffer>))| match (input, buffer) {
            (Input::Array(array), Some(buffer)) => {
                let form = self.forms.get(index).copied().unwrap_or(InputForm::View);
                let mutable = self.writes.get(index).copied().unwrap_or(false);
                // SAFETY: the shape covers only bytes of the buffer; the rest is the caller's
                // promise.
                Argument::Memory(unsafe { buffer.argument(array.element(), array.shape(form), mutable) })
            }
            (Input::Scalar { ty, bits }, _) => Argument::Scalar { ty: *ty, bits: *bits },
            (Input::Array(_), None) => unreachable!("each array has a buffer"),
        };
        case.inputs.iter().zip(buffers).enumerate().map(argument).collect()
    }

    /// Runs `launch` on copies of the case's inputs in memory of `device`.
    pub fn run(&self, device: &Device, case: &Case, launch: impl FnOnce(&[Argument]) -> Result<()>) -> Result<Outputs> {
        let buffers = self.buffers(device, case)?;
        let lent: Vec<_> = buffers.iter().map(Option::as_ref).collect();
        // SAFETY: `buffers` made and initialized the buffers for the case. All buffers outlive the
        // arguments, and each belongs to one argument.
        launch(&unsafe { self.arguments(case, &lent) })?;
        let mut outputs = Vec::new();
        for (index, buffer) in self.written(&buffers) {
            if let Some(Input::Array(array)) = case.inputs.get(index) {
                let mut bytes = vec![0; array.bytes().len()];
                buffer.read(&mut bytes)?;
                outputs.push((index, array.with_bytes(bytes)));
            }
        }
        Ok(outputs)
    }
}
