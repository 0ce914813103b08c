//! A mixture of experts, which replaces the network of a block (Shazeer and others, *Outrageously
//! Large Neural Networks*, 2017). A router chooses a few of many networks for each token.

use super::linear::{LinearLayer, in_row_chunks};
use super::operand::{ActivationOperand, refused_operand};
use crate::configuration::Experts;
use kernels_rs::Queue;
use kernels_rs::activation::{fast_swiglu, swiglu};
use kernels_rs::elementwise::map2;
use kernels_rs::quant::plan::ExpertPlan;
use kernels_rs::quant::{Routing, Weights};
use runtime::{BufferView, BufferViewMut, Error};

/// A mixture of experts: y ← Σ weight · down(silu(gate(x)) · up(x)) over the experts of each token.
/// The matrices of experts are block-quantized.
#[derive(Debug)]
pub struct ExpertNetworks {
    /// The matrix that computes a logit for each expert.
    router: LinearLayer,
    /// The choice of experts from the logits, and their weights.
    routing: Routing,
    /// The matrices of all experts: the rows of one expert after those of another.
    gate: Weights,
    up: Weights,
    down: Weights,
}

impl ExpertNetworks {
    /// Makes experts from the matrices of all experts. `gate` and `up` are
    /// `[experts·inner, width]`, and `down` is `[experts·width, inner]`.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn new(router: LinearLayer, routing: Routing, [gate, up, down]: [Weights; 3]) -> crate::Result<ExpertNetworks> {
        let ([count, width], [rows, _]) = (router.extents(), down.extents());
        let [_, inner] = down.extents();
        let inner_extents = [count * inner, width];
        if gate.extents() != inner_extents || up.extents() != inner_extents || rows != count * width {
            let found = [gate.extents(), up.extents(), down.extents()];
            let problem = format!("expected {count} experts of {width} and {inner} elements, found {found:?}");
            return Err(crate::Error::tensor("experts", "gate, up and down", problem));
        }
        Ok(ExpertNetworks { router, routing, gate, up, down })
    }

    /// Returns the number of elements that [`run`](ExpertNetworks::run) allocates for some tokens
    /// of `width` elements: the logits of the router, and gate, up, their product and the result of
    /// each expert. Gate and up have `inner` elements each.
    pub(super) fn elements(experts: &Experts, [width, inner]: [usize; 2], tokens: u64) -> u64 {
        let routes = tokens.saturating_mul(experts.used as u64);
        let rows = ExpertPlan::of(routes as usize, experts.count).rows(routes as usize, experts.count) as u64;
        let count = experts.count as u64;
        tokens.saturating_mul(count).saturating_add(rows.saturating_mul((3 * inner + width) as u64))
    }

    /// Queues y ← the experts of x, both `[tokens, width]`. x has the form `F32`. With `exact`,
    /// each token is computed by separate launches, without approximations.
    ///
    /// # Errors
    /// If extents or the form do not match, or memory runs out.
    pub(super) fn run(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &ActivationOperand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let ActivationOperand::F32(x) = x else {
            return Err(refused_operand("experts read activations in `f32`".to_owned()));
        };
        let chunk_rows = if exact { 1 } else { usize::MAX };
        in_row_chunks(chunk_rows, x, y, |x, y| self.run_together(on, exact, x, y))
    }

    /// Queues the experts of all tokens of `x` together. The plan of the products, and so their
    /// order of sums, depends on the number of tokens.
    fn run_together(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let ([n, width], [count, _], [_, inner]) = (x.extents(), self.router.extents(), self.down.extents());
        let mut logits = on.scratch::<f32>(n * count)?;
        self.router.run_with_exactness(on, exact, x, &mut logits.view_mut([n, count])?)?;
        let rows = self.routing.run(on, &logits.view([n, count])?, None)?.rows(on)?;
        let (inner_extents, output_extents) = ([rows.count(), inner], [rows.count(), width]);
        let elements = rows.count() * inner;
        let (mut gate, mut up) = (on.scratch::<f32>(elements)?, on.scratch::<f32>(elements)?);
        rows.product_of_tokens(on, &self.gate, x, &mut gate.view_mut(inner_extents)?)?;
        rows.product_of_tokens(on, &self.up, x, &mut up.view_mut(inner_extents)?)?;
        let mut gated = on.scratch::<f32>(elements)?;
        let to = gated.view_mut(inner_extents)?.strided();
        let (gate, up) = (gate.view(inner_extents)?.strided(), up.view(inner_extents)?.strided());
        match exact {
            true => map2(on, swiglu {}, gate, up, to)?,
            false => map2(on, fast_swiglu {}, gate, up, to)?,
        }
        let mut output = on.scratch::<f32>(rows.count() * width)?;
        rows.product_of_rows(on, &self.down, &gated.view(inner_extents)?, &mut output.view_mut(output_extents)?)?;
        rows.combine(on, &output.view(output_extents)?, y)
    }
}
