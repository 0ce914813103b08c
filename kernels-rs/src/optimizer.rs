//! Optimizer steps of training: [`AdamW`], in one pass over all states.
//!
//! The update for gradient g at step t (Loshchilov and Hutter, *Decoupled Weight Decay
//! Regularization*, 2019, algorithm 2):
//!
//! ```text
//!   m ← β₁·m + (1 − β₁)·g          w ← (1 − rate·decay)·w − rate/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε)
//!   v ← β₂·v + (1 − β₂)·g²
//! ```
//!
//! A thread has four elements of each array: the loads of all arrays are in flight together. The
//! limit is memory: g is read, and w, m and v are read and written. The computation takes some 60
//! slots an element on sm_61. A Tesla P40 has 370 slots while its memory delivers an element with
//! `bf16` weights.
//!
//! # Extreme inputs
//!
//! Arithmetic is exact IEEE arithmetic, and elements have no effect on each other:
//!
//! | g | result |
//! |---|---|
//! | ±0, with m = v = 0 | w decays only; ε = 0 gives a NaN |
//! | subnormal or tiny | m follows it; v may be 0, and ε then limits the step |
//! | above 1.8·10¹⁹/√(1 − β₂) | v is infinite: this and all later steps only decay w |
//! | ±∞ | m is ±∞, v is ∞, and w is NaN |
//! | NaN | w, m and v are NaN |

use crate::Queue;
use crate::axes::{pieces_are_contiguous, pieces_are_contiguous_mut};
use crate::dispatch::dispatch;
use crate::operand::ArrayOperand;
use crate::queue::LibraryCall;
use kernel_dsl::GenericArgument;
use kernel_dsl::prelude::*;
use runtime::{BufferView, BufferViewMut, Error};

/// Updates w, m and v by one step of [`AdamW`] with the gradient g, `V` elements a thread.
///
/// `keep` is 1 − rate·decay, `rate` includes 1/(1 − β₁ᵗ), `rest1` is 1 − β₁, and `correction` is
/// 1/√(1 − β₂ᵗ).
///
/// The arrays g, w, m and v have one length, a multiple of `V`.
#[kernel(
    block = 256, grid = g.len().div_ceil(256 * V), writes(w = once, m = once, v = once),
    instances(f32_v4: W = f32, G = f32, V = 4 | 1; bf16_v4: W = bf16, G = bf16, V = 4 | 1; f16_v4: W = f16, G = f16, V = 4),
)]
#[requires(
    w.len() == g.len(), m.len() == g.len(), v.len() == g.len(), g.len() % V == 0,
    g.aligned(V), w.aligned(V), m.aligned(V), v.aligned(V),
)]
pub fn adamw<W: Float, G: Float, const V: usize>(
    keep: f32,
    rate: f32,
    beta1: f32,
    rest1: f32,
    beta2: f32,
    rest2: f32,
    correction: f32,
    epsilon: f32,
    g: View<G, 1>,
    w: ViewMut<W, 1>,
    m: ViewMut<f32, 1>,
    v: ViewMut<f32, 1>,
) {
    let at = grid::index() * V;
    if at < g.len() {
        let g: [f32; V] = g.load::<V>(at).map(G::to_f32);
        let mut x: [f32; V] = w.load::<V>(at).map(W::to_f32);
        let (mut first, mut second) = (m.load::<V>(at), v.load::<V>(at));
        for e in unroll(0..V) {
            first[e] = rest1.mul_add(g[e], beta1 * first[e]);
            second[e] = (rest2 * g[e]).mul_add(g[e], beta2 * second[e]);
            let step = first[e] / second[e].sqrt().mul_add(correction, epsilon);
            x[e] = (-rate).mul_add(step, keep * x[e]);
        }
        w.store(at, x.map(W::from_f32));
        m.store(at, first);
        v.store(at, second);
    }
}

/// The optimizer AdamW (Loshchilov and Hutter, 2019) and its settings.
///
/// ```
/// # fn main() -> Result<(), runtime::Error> {
/// use kernels_rs::optimizer::AdamW;
///
/// let device = runtime::Device::cpu();
/// let (g, mut w) = (device.upload(&[0.5f32, -2.0])?, device.upload(&[1.0f32, 1.0])?);
/// let (mut m, mut v) = (device.zeros::<f32>(2)?, device.zeros::<f32>(2)?);
/// let adamw = AdamW::new(1e-3).decay(0.0);
/// adamw.step(&device, 1, &g.view([2])?, &mut w.view_mut([2])?, &mut m.view_mut([2])?, &mut v.view_mut([2])?)?;
/// // The first step has the length of the rate, whatever the gradient's length.
/// assert_eq!(w.download()?, [0.999, 1.001]);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AdamW {
    rate: f64,
    betas: [f64; 2],
    epsilon: f64,
    decay: f64,
}

impl AdamW {
    /// Makes an optimizer with a learning rate, β = (0.9, 0.999), ε = 10⁻⁸ and a decay of 0.01.
    pub const fn new(rate: f64) -> AdamW {
        AdamW { rate, betas: [0.9, 0.999], epsilon: 1e-8, decay: 0.01 }
    }

    /// Sets β₁ and β₂, the shares of m and v that a step keeps. Both are at least 0 and below 1.
    pub const fn betas(self, betas: [f64; 2]) -> AdamW {
        AdamW { betas, ..self }
    }

    /// Sets ε, which is added to the root of v.
    pub const fn epsilon(self, epsilon: f64) -> AdamW {
        AdamW { epsilon, ..self }
    }

    /// Sets the weight decay. A step multiplies weights by 1 − rate·decay.
    pub const fn decay(self, decay: f64) -> AdamW {
        AdamW { decay, ..self }
    }

    /// Updates the weights `w` and the states `m` and `v` with the gradient `g`. Step numbers begin
    /// at 1; `m` and `v` are 0 before the first step.
    ///
    /// All four are arrays of n elements. Weights and gradients may be `f32`, `f16`, `bf16` or
    /// caller-defined; the arithmetic is that of `f32`, and w is rounded once. 16 bytes of a state
    /// are accessed at once if n is a multiple of four and the arrays are aligned.
    ///
    /// # Errors
    /// Returns an error if a setting is out of its range, `step` is 0, extents differ, arrays
    /// overlap, or a buffer belongs to another device.
    pub fn step<W: Float + GenericArgument, G: Float + GenericArgument>(
        &self,
        on: &impl Queue,
        step: u64,
        g: &BufferView<'_, G, 1>,
        w: &mut BufferViewMut<'_, W, 1>,
        m: &mut BufferViewMut<'_, f32, 1>,
        v: &mut BufferViewMut<'_, f32, 1>,
    ) -> Result<(), Error> {
        let [n] = g.extents();
        self.check(step).map_err(|why| g.refused_operand(why))?;
        w.expected("w", [n], "an element for each of g")?;
        m.expected("m", [n], "an element for each of g")?;
        v.expected("v", [n], "an element for each of g")?;
        g.countable(n, 256 * 4)?;
        // Normalizes the stride of an array of one element, which has no meaning.
        let g = &g.strided().reshaped([n])?.side_by_side()?;
        let w = &mut w.reborrow().strided().reshaped([n])?.side_by_side()?;
        let m = &mut m.reborrow().strided().reshaped([n])?.side_by_side()?;
        let v = &mut v.reborrow().strided().reshaped([n])?.side_by_side()?;
        let row = [1, 1, 1, n];
        let whole = pieces_are_contiguous(&g.strided().reshaped(row)?, 4)
            && pieces_are_contiguous_mut(&mut w.reborrow().strided().reshaped(row)?, 4)
            && pieces_are_contiguous_mut(&mut m.reborrow().strided().reshaped(row)?, 4)
            && pieces_are_contiguous_mut(&mut v.reborrow().strided().reshaped(row)?, 4);
        let [beta1, beta2] = self.betas;
        // A power of a number below 1 is 0 from some step on, long before the cast saturates.
        let power = |beta: f64| beta.powi(i32::try_from(step).unwrap_or(i32::MAX));
        let scalars = [
            1.0 - self.rate * self.decay,
            self.rate / (1.0 - power(beta1)),
            beta1,
            1.0 - beta1,
            beta2,
            1.0 - beta2,
            1.0 / (1.0 - power(beta2)).sqrt(),
            self.epsilon,
        ];
        let [keep, rate, beta1, rest1, beta2, rest2, correction, epsilon] = scalars.map(|x| x as f32);
        dispatch!(let V: usize = if whole { 4 } else { 1 }, of [1, 4];
        // SAFETY: the launch compares all extents with one another, and the kernel accesses
        // elements within them only. The oracle ran the kernel at and around every edge (`kernels
        // check`).
        unsafe {
            adamw::<W, G, V>::launch_unchecked(
                &LibraryCall(on), keep, rate, beta1, rest1, beta2, rest2, correction, epsilon, g, w, m, v,
            )
        })
    }

    /// Checks that the settings and the step number have defined results.
    fn check(&self, step: u64) -> Result<(), String> {
        let AdamW { rate, betas: [beta1, beta2], epsilon, decay } = *self;
        for (name, x) in [("rate", rate), ("epsilon", epsilon), ("decay", decay)] {
            if !(x.is_finite() && x >= 0.0) {
                return Err(format!("the {name} is {x}; it must be a finite number of at least 0"));
            }
        }
        for (name, x) in [("first beta", beta1), ("second beta", beta2)] {
            if !(0.0..1.0).contains(&x) {
                return Err(format!("the {name} is {x}; it must be at least 0 and below 1"));
            }
        }
        if step == 0 { Err("the step number is 0; steps are counted from 1".to_string()) } else { Ok(()) }
    }
}
