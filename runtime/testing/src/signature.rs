//! An instance's parameters: converts a case to launch arguments, and reads the outputs back.

use super::input::{Array, InputForm};
use super::{Case, Input};
use kernel_dsl::Argument;
use kernel_dsl::compiler::hir::Monomorphic;
use kernel_dsl::compiler::launch;
use runtime_devices::executor::{self, RawBuffer};
use runtime_devices::{Device, Result};

/// The contents of the written arguments after a launch, with the argument's index.
pub(super) type Outputs = Vec<(usize, Array)>;

/// The parameters of an instance.
pub(super) struct Signature {
    pub names: Vec<String>,
    forms: Vec<InputForm>,
    writes: Vec<bool>,
}

impl Signature {
    pub fn of(program: &Monomorphic) -> Signature {
        let types = &program.kernel().types;
        let arguments = program.arguments();
        Signature {
            names: arguments.iter().map(|a| a.name.clone()).collect(),
            forms: arguments.iter().map(|a| InputForm::of(&types[a.ty.0 as usize])).collect(),
            writes: executor::writes(program),
        }
    }

    /// Returns the case once for each block size to try.
    pub fn sized(&self, program: &Monomorphic, case: &Case) -> Vec<Case> {
        match (case.block, launch::chooses_block(program), launch::block(program)) {
            (None, true, Ok(block)) => {
                let axis = block.open().map_or(0, |open| open.axis);
                block.samples().into_iter().map(|size| case.clone().with_block(size[axis] as usize)).collect()
            }
            _ => vec![case.clone()],
        }
    }

    /// Runs `launch` on copies of the case's inputs in memory of `device`.
    pub fn run(&self, device: &Device, case: &Case, launch: impl FnOnce(&[Argument]) -> Result<()>) -> Result<Outputs> {
        let mut buffers = Vec::new();
        for input in &case.inputs {
            buffers.push(match input {
                Input::Scalar { .. } => None,
                Input::Array(array) => {
                    array.check()?;
                    let mut buffer = RawBuffer::new(device, executor::PoolKind::Device, array.bytes().len())?;
                    buffer.write(array.bytes())?;
                    Some(buffer)
                }
            });
        }
        let arguments: Vec<_> = case
            .inputs
            .iter()
            .zip(&buffers)
            .enumerate()
            .map(|(index, (input, buffer))| match (input, buffer) {
                (Input::Array(array), Some(buffer)) => {
                    let form = self.forms.get(index).copied().unwrap_or(InputForm::View);
                    let mutable = self.writes.get(index).copied().unwrap_or(false);
                    // SAFETY: the shape covers only bytes of the buffer, all of which are
                    // initialized. The buffers are local to this function and outlive the
                    // arguments. Each buffer belongs to one argument.
                    let memory = unsafe { buffer.argument(array.element(), array.shape(form), mutable) };
                    Argument::Memory(memory)
                }
                (Input::Scalar { ty, bits }, _) => Argument::Scalar { ty: *ty, bits: *bits },
                (Input::Array(_), None) => unreachable!("each array has a buffer"),
            })
            .collect();
        launch(&arguments)?;
        drop(arguments);
        let mut outputs = Vec::new();
        for (index, (input, buffer)) in case.inputs.iter().zip(&buffers).enumerate() {
            let written = self.writes.get(index).copied().unwrap_or(false);
            if let (Input::Array(array), Some(buffer), true) = (input, buffer, written) {
                let mut bytes = vec![0; array.bytes().len()];
                buffer.read(&mut bytes)?;
                outputs.push((index, array.with_bytes(bytes)));
            }
        }
        Ok(outputs)
    }
}
