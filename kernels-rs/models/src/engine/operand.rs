//! Activations in the form that the next product reads.
//!
//! Norms, gates and the attention of few tokens write elements of 16 bits themselves, and norms and
//! gates also write quantized activations. These activations need no launch that converts them.
//! Attention needs a separate launch to quantize its result, and one to convert the result for a
//! prompt.

use super::attention::contiguous_prefix;
use kernel_dsl::compiler::launch::Refusal;
use kernel_dsl::half::{bf16, f16};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::quant;
use kernels_rs::{Queue, QueueMemory};
use runtime::{BufferView, BufferViewMut, Error};

/// A computation of activations, not yet queued: a norm, attention, or a gate.
pub(super) trait ActivationSource: Sized {
    /// Returns the number of tokens, and the number of elements of a token.
    fn extents(&self) -> [usize; 2];

    /// Queues y ← the activations, `[tokens, elements]`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    fn write<T: Float + GenericArgument>(self, on: &impl Queue, y: &mut BufferViewMut<'_, T, 2>) -> Result<(), Error>;

    /// Queues the activations and their quantization, as separate launches by default.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    fn quantize(self, on: &impl Queue) -> Result<quant::Activations, Error> {
        let extents = self.extents();
        let mut x = on.scratch::<f32>(extents.iter().product())?;
        self.write(on, &mut x.view_mut(extents)?)?;
        quant::Activations::quantize(on, &x.view(extents)?)
    }
}

/// The form in which a product reads activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ActivationForm {
    F32,
    F16,
    Bf16,
    /// 8 bits an element, with a scale for each 32 elements.
    Quantized,
}

/// Activations in one of the forms, `[tokens, columns]`.
#[derive(Debug)]
pub(super) enum ActivationOperand<'a> {
    F32(BufferView<'a, f32, 2>),
    F16(BufferView<'a, f16, 2>),
    Bf16(BufferView<'a, bf16, 2>),
    Quantized(Box<quant::Activations>),
}

impl ActivationOperand<'_> {
    /// Returns the number of tokens.
    pub fn tokens(&self) -> usize {
        match self {
            ActivationOperand::F32(x) => x.extents()[0],
            ActivationOperand::F16(x) => x.extents()[0],
            ActivationOperand::Bf16(x) => x.extents()[0],
            ActivationOperand::Quantized(x) => x.extents()[0],
        }
    }
}

/// Memory for activations in any form. The memory of a form is allocated when the form is first
/// used, and that of quantized activations at each use.
#[derive(Debug)]
pub(super) struct OperandMemory {
    /// The largest number of elements.
    elements: usize,
    f32: Option<QueueMemory<f32>>,
    f16: Option<QueueMemory<f16>>,
    bf16: Option<QueueMemory<bf16>>,
}

impl OperandMemory {
    /// Makes memory for up to `elements` elements, without allocating any.
    pub fn new(elements: usize) -> OperandMemory {
        OperandMemory { elements, f32: None, f16: None, bf16: None }
    }

    /// Queues a computation of activations, and returns the result in the form `form`.
    ///
    /// # Errors
    /// If extents do not match or exceed the memory, or memory runs out.
    pub fn queue_in_form(
        &mut self,
        on: &impl Queue,
        form: ActivationForm,
        source: impl ActivationSource,
    ) -> Result<ActivationOperand<'_>, Error> {
        let elements = self.elements;
        Ok(match form {
            ActivationForm::F32 => ActivationOperand::F32(queue_as(on, &mut self.f32, elements, source)?),
            ActivationForm::F16 => ActivationOperand::F16(queue_as(on, &mut self.f16, elements, source)?),
            ActivationForm::Bf16 => ActivationOperand::Bf16(queue_as(on, &mut self.bf16, elements, source)?),
            ActivationForm::Quantized => ActivationOperand::Quantized(Box::new(source.quantize(on)?)),
        })
    }
}

/// Queues a computation of activations of type `T`, and returns the result. If `memory` is `None`,
/// allocates memory for `elements` elements.
fn queue_as<'m, T: Float + GenericArgument>(
    on: &impl Queue,
    memory: &'m mut Option<QueueMemory<T>>,
    elements: usize,
    source: impl ActivationSource,
) -> Result<BufferView<'m, T, 2>, Error> {
    let extents = source.extents();
    let memory = match memory {
        Some(memory) => memory,
        none => none.insert(on.scratch(elements)?),
    };
    source.write(on, &mut contiguous_prefix(memory, extents)?)?;
    Ok(contiguous_prefix(memory, extents)?.shared())
}

/// Returns the error of a product that refuses its operand, for the reason `why`.
pub(super) fn refused_operand(why: String) -> Error {
    Error::RefusedArguments { refusals: vec![Refusal(why)] }
}
