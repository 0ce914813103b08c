//! A mixture of experts, which replaces the network of a block (Shazeer and others, 2017). A router
//! chooses a few of many networks for each token.

use super::linear::{Linear, in_pieces};
use super::operand::{Operand, refused};
use kernels_rs::Queue;
use kernels_rs::activation::{fast_swiglu, swiglu};
use kernels_rs::elementwise::map2;
use kernels_rs::quant::{Routing, Weights};
use runtime::{BufferView, BufferViewMut, Error};

/// y ← Σ weight · down(silu(gate(x)) · up(x)) over the experts of each token.
#[derive(Debug)]
pub struct ExpertNetworks {
    /// The logits of the experts.
    router: Linear,
    routing: Routing,
    /// The matrices of all experts, one expert below the other.
    gate: Weights,
    up: Weights,
    down: Weights,
}

impl ExpertNetworks {
    /// Makes experts of their matrices, each `[experts·rows, columns]`.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn new(router: Linear, routing: Routing, [gate, up, down]: [Weights; 3]) -> crate::Result<ExpertNetworks> {
        let ([count, width], [rows, _]) = (router.extents(), down.extents());
        let [_, inner] = down.extents();
        let of_inner = [count * inner, width];
        if gate.extents() != of_inner || up.extents() != of_inner || rows != count * width {
            let found = [gate.extents(), up.extents(), down.extents()];
            let problem = format!("expected {count} experts of {width} and {inner} elements, found {found:?}");
            return Err(crate::Error::tensor("experts", "gate, up and down", problem));
        }
        Ok(ExpertNetworks { router, routing, gate, up, down })
    }

    /// Queues y ← the experts of x, both `[tokens, width]`. x has the form `F32`. With `exact`,
    /// each token is computed alone and without approximations.
    ///
    /// # Errors
    /// If extents or the form do not match, or memory runs out.
    pub(super) fn run(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &Operand<'_>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let Operand::F32(x) = x else { return Err(refused("experts read activations in `f32`".to_owned())) };
        let at_once = if exact { 1 } else { usize::MAX };
        in_pieces(at_once, x, y, |x, y| self.run_together(on, exact, x, y))
    }

    /// Queues the experts of tokens. Work that experts share depends on the number of tokens.
    fn run_together(
        &self,
        on: &impl Queue,
        exact: bool,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let ([n, width], [count, _], [_, inner]) = (x.extents(), self.router.extents(), self.down.extents());
        let mut logits = on.scratch::<f32>(n * count)?;
        self.router.run_as(on, exact, x, &mut logits.view_mut([n, count])?)?;
        let rows = self.routing.run(on, &logits.view([n, count])?, None)?.rows(on)?;
        let (of_inner, of_output) = ([rows.count(), inner], [rows.count(), width]);
        let numbers = rows.count() * inner;
        let (mut gate, mut up) = (on.scratch::<f32>(numbers)?, on.scratch::<f32>(numbers)?);
        rows.product_of_tokens(on, &self.gate, x, &mut gate.view_mut(of_inner)?)?;
        rows.product_of_tokens(on, &self.up, x, &mut up.view_mut(of_inner)?)?;
        let mut gated = on.scratch::<f32>(numbers)?;
        let to = gated.view_mut(of_inner)?.strided();
        let (gate, up) = (gate.view(of_inner)?.strided(), up.view(of_inner)?.strided());
        match exact {
            true => map2(on, swiglu {}, gate, up, to)?,
            false => map2(on, fast_swiglu {}, gate, up, to)?,
        }
        let mut output = on.scratch::<f32>(rows.count() * width)?;
        rows.product_of_rows(on, &self.down, &gated.view(of_inner)?, &mut output.view_mut(of_output)?)?;
        rows.combine(on, &output.view(of_output)?, y)
    }
}
