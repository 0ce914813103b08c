//! The gated network of a block (Shazeer, *GLU Variants Improve Transformer*, 2020).

use super::attention::prefix;
use super::linear::{Linear, Numbers};
use kernels_rs::activation::{fast_swiglu, swiglu};
use kernels_rs::elementwise::gate;
use kernels_rs::rowwise::Norm;
use kernels_rs::{Queue, QueueMemory};
use runtime::{BufferView, BufferViewMut, Error};

/// y ← down(silu(gate(x)) · up(x)).
#[derive(Debug)]
pub struct Network {
    inner: usize,
    /// The rows of the gate, then those of up.
    gate_and_up: Linear,
    down: Linear,
}

/// Memory that the networks of a step use one after another.
#[derive(Debug)]
pub struct Work {
    both: QueueMemory<f32>,
    gated: QueueMemory<f32>,
    exact: bool,
}

impl Work {
    /// Allocates memory for up to `tokens` tokens and networks of `inner` numbers. With `exact`,
    /// the gate is computed without approximations, and each token as if alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(on: &impl Queue, inner: usize, tokens: usize, exact: bool) -> Result<Work, Error> {
        Ok(Work { both: on.scratch(tokens * 2 * inner)?, gated: on.scratch(tokens * inner)?, exact })
    }
}

impl Work {
    /// Tells whether results have no approximations.
    pub(super) fn is_exact(&self) -> bool {
        self.exact
    }
}

/// A network of few tokens, whose products include the norm before it, the gate, and the sum after
/// it.
pub(super) struct FusedNetwork<'a> {
    inner: usize,
    gate_and_up: &'a Numbers,
    down: &'a Numbers,
}

impl FusedNetwork<'_> {
    /// Queues x ← x + network of norm(x).
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
    /// Makes a network of its matrices: `gate_and_up` has the rows of the gate, then those of up.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn new(gate_and_up: Linear, down: Linear) -> crate::Result<Network> {
        let ([both, _], [_, inner]) = (gate_and_up.extents(), down.extents());
        if both != 2 * inner {
            let problem = format!("expected twice the {inner} columns of `down`, found {both} rows");
            return Err(crate::Error::tensor("a network", "gate and up", problem));
        }
        Ok(Network { inner, gate_and_up, down })
    }

    /// Returns the numbers of a token between the two products.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Returns the network whose products include the norm before it, the gate, and the sum after
    /// it, if both matrices have numbers.
    pub(super) fn fused(&self) -> Option<FusedNetwork<'_>> {
        let (gate_and_up, down) = (self.gate_and_up.numbers()?, self.down.numbers()?);
        Some(FusedNetwork { inner: self.inner, gate_and_up, down })
    }

    /// Queues y ← the network of x, both `[tokens, width]`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run(
        &self,
        on: &impl Queue,
        x: &BufferView<'_, f32, 2>,
        y: &mut BufferViewMut<'_, f32, 2>,
        work: &mut Work,
    ) -> Result<(), Error> {
        let n = x.extents()[0];
        let (of_both, of_gated) = ([n, 2 * self.inner], [n, self.inner]);
        self.gate_and_up.run_as(on, work.exact, x, &mut prefix(&mut work.both, of_both)?)?;
        let both = prefix(&mut work.both, of_both)?.shared();
        let gated = prefix(&mut work.gated, of_gated)?.strided();
        match work.exact {
            true => gate(on, swiglu {}, both.strided(), gated)?,
            false => gate(on, fast_swiglu {}, both.strided(), gated)?,
        }
        self.down.run_as(on, work.exact, &prefix(&mut work.gated, of_gated)?.shared(), y)
    }
}
