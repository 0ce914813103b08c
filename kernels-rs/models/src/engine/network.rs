//! The gated feed-forward network of a block (Shazeer, *GLU Variants Improve Transformer*, 2020).

use super::attention::contiguous_prefix;
use super::linear::{DenseMatrix, LinearLayer};
use super::operand::{ActivationOperand, ActivationSource, OperandMemory};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::activation::{fast_swiglu, swiglu};
use kernels_rs::elementwise::gate;
use kernels_rs::quant::Activations;
use kernels_rs::rowwise::Norm;
use kernels_rs::{Queue, QueueMemory};
use runtime::{BufferView, BufferViewMut, Error};

/// A gated network: y ← down(silu(gate(x)) · up(x)).
#[derive(Debug)]
pub struct Network {
    /// The number of elements of a token between the two products.
    inner: usize,
    /// The rows of the gate, then those of up.
    gate_and_up: LinearLayer,
    down: LinearLayer,
}

/// Memory that the networks of a step use one after another.
#[derive(Debug)]
pub struct NetworkMemory {
    /// The results of gate and up, `[tokens, 2·inner]`.
    gate_and_up_results: QueueMemory<f32>,
    /// The input of down, `[tokens, inner]`.
    gated: OperandMemory,
    exact: bool,
}

impl NetworkMemory {
    /// Allocates memory for up to `tokens` tokens and networks of `inner` elements. With `exact`,
    /// the gate has no approximations, and each token is computed as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(on: &impl Queue, inner: usize, tokens: usize, exact: bool) -> Result<NetworkMemory, Error> {
        Ok(NetworkMemory {
            gate_and_up_results: on.scratch(tokens * 2 * inner)?,
            gated: OperandMemory::new(tokens * inner),
            exact,
        })
    }

    /// Returns the number of elements that are allocated for a token: the results of gate and up,
    /// and the input of down in `f32`, its widest form.
    pub(super) const fn elements_per_token(inner: usize) -> usize {
        3 * inner
    }
}

/// A network for few tokens, in two kernels that also compute the norm, the gate and the residual
/// sum.
pub(super) struct FusedNetwork<'a> {
    inner: usize,
    gate_and_up: &'a DenseMatrix,
    down: &'a DenseMatrix,
}

impl FusedNetwork<'_> {
    /// Queues x ← x + network(norm(x)). x is `[tokens, width]`.
    pub(super) fn add(
        &self,
        on: &impl Queue,
        norm: Norm<'_, f32>,
        x: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        self.down.add_gated(on, norm, self.gate_and_up, self.inner, x)
    }
}

impl Network {
    /// Makes a network from its matrices. `gate_and_up`, `[2·inner, width]`, has the rows of the
    /// gate, then those of up. `down` is `[width, inner]`.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn new(gate_and_up: LinearLayer, down: LinearLayer) -> crate::Result<Network> {
        let ([both, _], [_, inner]) = (gate_and_up.extents(), down.extents());
        if both != 2 * inner {
            let problem = format!("expected twice the {inner} columns of `down`, found {both} rows");
            return Err(crate::Error::tensor("a network", "gate and up", problem));
        }
        Ok(Network { inner, gate_and_up, down })
    }

    /// Returns the number of elements of a token between the two products.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Returns the form of the network for few tokens. `None` if a matrix is block-quantized, or
    /// has parts in several formats.
    pub(super) fn fused(&self) -> Option<FusedNetwork<'_>> {
        let (gate_and_up, down) = (self.gate_and_up.dense_matrix()?, self.down.dense_matrix()?);
        Some(FusedNetwork { inner: self.inner, gate_and_up, down })
    }

    /// Returns the matrix of gate and up, which reads the activations.
    pub(super) fn gate_and_up(&self) -> &LinearLayer {
        &self.gate_and_up
    }

    /// Queues y ← network(x), both `[tokens, width]`. x has the form that
    /// [`gate_and_up`](Network::gate_and_up) reads.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub(super) fn run(
        &self,
        on: &impl Queue,
        x: &ActivationOperand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
        memory: &mut NetworkMemory,
    ) -> Result<(), Error> {
        let NetworkMemory { gate_and_up_results, gated, exact } = memory;
        let (n, exact) = (x.tokens(), *exact);
        let both_extents = [n, 2 * self.inner];
        self.gate_and_up.product(on, exact, x, &mut contiguous_prefix(gate_and_up_results, both_extents)?)?;
        let gate_and_up_results = contiguous_prefix(gate_and_up_results, both_extents)?.shared();
        let gated = gated.queue_in_form(on, self.down.form(n, exact), GatedHalves { gate_and_up_results, exact })?;
        self.down.product(on, exact, &gated, y)
    }
}

/// The gated activations of a network: silu(a)·b, where a and b are the halves of each row.
struct GatedHalves<'a> {
    gate_and_up_results: BufferView<'a, f32, 2>,
    exact: bool,
}

impl ActivationSource for GatedHalves<'_> {
    fn extents(&self) -> [usize; 2] {
        let [n, both] = self.gate_and_up_results.extents();
        [n, both / 2]
    }

    fn write<T: Float + GenericArgument>(self, on: &impl Queue, y: &mut BufferViewMut<'_, T, 2>) -> Result<(), Error> {
        let (gate_and_up_results, y) = (self.gate_and_up_results.strided(), y.reborrow().strided());
        match self.exact {
            true => gate(on, swiglu {}, gate_and_up_results, y),
            false => gate(on, fast_swiglu {}, gate_and_up_results, y),
        }
    }

    /// Queues the gate and the quantization as one kernel. Only inexact products read the result,
    /// so that the gate may be approximate.
    fn quantize(self, on: &impl Queue) -> Result<Activations, Error> {
        let [n, inner] = self.extents();
        let halves = self.gate_and_up_results.strided().reshaped([n, 2, inner])?.permuted([1, 0, 2])?;
        let half = |i: usize| halves.slice(i..i + 1)?.reshaped([n, inner])?.side_by_side();
        Activations::quantize_gated(on, fast_swiglu {}, &half(0)?, &half(1)?)
    }
}
