//! A block, and the stream of activations between blocks.

use super::attention::{self, Attention, FusedAttention, Places, prefix};
use super::cache::{CacheElement, KeyValues};
use super::experts::ExpertNetworks;
use super::linear::{Linear, MAX_FUSED_TOKENS, pieces};
use super::network::{self, FusedNetwork, Network};
use super::operand::{ActivationSource, Form, Operand, OperandMemory};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::elementwise::saxpy;
use kernels_rs::{Queue, QueueMemory};
use kernels_rs::{quant, rowwise};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::ops::Range;
use std::sync::Arc;

/// An RMS norm with a weight for each column (Zhang, Sennrich, 2019).
#[derive(Debug)]
pub struct Norm {
    weight: Arc<DeviceBuffer<f32>>,
    epsilon: f32,
}

impl Norm {
    /// Uploads the weights of a norm.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(device: &Device, weight: &[f32], epsilon: f32) -> crate::Result<Norm> {
        Ok(Norm { weight: Arc::new(device.upload(weight)?), epsilon })
    }
}

/// The activations of tokens between blocks: a sum to which each half of a block adds.
///
/// The kernel of the next norm adds the result of a half to the sum. Until then, the result is in
/// separate memory. Products of few tokens with matrices that are not block-quantized add to the
/// sum themselves.
#[derive(Debug)]
pub struct HiddenStates {
    /// The sum, and memory for the next sum.
    sums: [QueueMemory<f32>; 2],
    /// The result of the last residual branch.
    added: QueueMemory<f32>,
    /// Whether `added` is not yet part of the sum.
    is_added: bool,
    /// The norm of the sum.
    normed: OperandMemory,
    extents: [usize; 2],
    exact: bool,
}

impl HiddenStates {
    /// Allocates the activations of `tokens` tokens. With `exact`, norms add the elements of each
    /// token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(on: &impl Queue, tokens: usize, width: usize, exact: bool) -> Result<HiddenStates, Error> {
        let memory = || on.scratch::<f32>(tokens * width);
        let sums = [memory()?, memory()?];
        let normed = OperandMemory::new(tokens * width);
        Ok(HiddenStates { sums, added: memory()?, is_added: false, normed, extents: [tokens, width], exact })
    }

    /// Begins with `tokens` tokens. Returns the sum, which the caller writes.
    ///
    /// # Errors
    /// If the memory is too small for the tokens.
    pub fn begin(&mut self, tokens: usize) -> Result<BufferViewMut<'_, f32, 2>, Error> {
        self.extents[0] = tokens;
        self.is_added = false;
        prefix(&mut self.sums[0], self.extents)
    }

    /// Queues the addition of features to some rows of the sum.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn add(&mut self, on: &impl Queue, rows: Range<usize>, features: &BufferView<'_, f32, 2>) -> Result<(), Error> {
        let numbers = rows.len() * self.extents[1];
        let summand = if self.is_added { &mut self.added } else { &mut self.sums[0] };
        let to = prefix(summand, self.extents)?.slice(rows)?.strided().reshaped([numbers])?.side_by_side()?;
        saxpy::launch(on, 1.0, features.strided().reshaped([numbers])?.side_by_side()?, to)
    }

    /// Queues the addition of the last branch's result, if it is not yet part of the sum.
    fn settle(&mut self, on: &impl Queue) -> Result<(), Error> {
        if self.is_added {
            let numbers = [self.extents.iter().product()];
            let (added, sum) = (prefix(&mut self.added, numbers)?.shared(), prefix(&mut self.sums[0], numbers)?);
            // SAFETY: the launch compares the lengths, and each thread its index with them.
            unsafe { saxpy::launch_unchecked(on, 1.0, added, sum)? };
            self.is_added = false;
        }
        Ok(())
    }

    /// Returns the sum, to which another device writes the activations that enter a stage.
    pub(super) fn entering(&mut self) -> &mut QueueMemory<f32> {
        self.is_added = false;
        &mut self.sums[0]
    }

    /// Queues the addition of the last branch's result, and returns the sum for another device. The
    /// kernel of a norm would add with the same rounding, so a split over devices does not change
    /// bits.
    ///
    /// # Errors
    /// If the launch is refused.
    pub(super) fn leaving(&mut self, on: &impl Queue) -> Result<&QueueMemory<f32>, Error> {
        self.settle(on)?;
        Ok(&self.sums[0])
    }

    /// Queues a residual branch: the norm of the sum in a form, then `run` with the norm. `run`
    /// writes its result to the second operand, which the next norm adds to the sum.
    fn residual(
        &mut self,
        on: &impl Queue,
        norm: &Norm,
        form: Form,
        run: impl FnOnce(&Operand<'_>, &mut BufferViewMut<'_, f32, 2>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let HiddenStates { sums, added, is_added, normed, extents, exact } = self;
        let (extents, rows) = (*extents, 0..extents[0]);
        let source = Normed { norm, sums, added: &mut *added, is_added: &mut *is_added, extents, rows, exact: *exact };
        let normed = normed.filled(on, form, source)?;
        *is_added = true;
        run(&normed, &mut prefix(added, extents)?)
    }

    /// Queues the last norm and the product with the output matrix for the last tokens, those of
    /// `logits`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn finish(
        &mut self,
        on: &impl Queue,
        norm: &Norm,
        output: &Linear,
        logits: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let HiddenStates { sums, added, is_added, normed, extents, exact } = self;
        let ([n, _], [rows, _], exact) = (*extents, logits.extents(), *exact);
        let last = n.saturating_sub(rows)..n;
        let source = Normed { norm, sums, added, is_added, extents: *extents, rows: last, exact };
        let normed = normed.filled(on, output.form(rows, exact), source)?;
        output.product(on, exact, &normed, logits)
    }
}

/// The norm of a sum. If `is_added`, `added` is added to the sum first.
struct Normed<'a> {
    norm: &'a Norm,
    /// The sum, and memory for the next sum.
    sums: &'a mut [QueueMemory<f32>; 2],
    added: &'a mut QueueMemory<f32>,
    is_added: &'a mut bool,
    /// The extents of the sum.
    extents: [usize; 2],
    rows: Range<usize>,
    exact: bool,
}

impl Normed<'_> {
    /// Passes to `run` the norm and the rows of the sum. If something is added, `run` also gets the
    /// summand and the memory for the new sum.
    fn with<R>(
        self,
        on: &impl Queue,
        run: impl FnOnce(rowwise::Norm<'_, f32>, &BufferView<'_, f32, 2>, rowwise::Added<'_, '_, f32>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let Normed { norm, sums, added, is_added, extents, rows, .. } = self;
        let weight = on.share(&norm.weight)?;
        let weight = weight.view([extents[1]])?;
        let rms = rowwise::Norm::rms(norm.epsilon).weight(&weight);
        let [sum, next] = &mut *sums;
        let sum = prefix(sum, extents)?.shared().slice(rows.clone())?;
        let result = if *is_added {
            let added = prefix(added, extents)?.shared().slice(rows.clone())?;
            run(rms, &sum, Some((&added, &mut prefix(next, extents)?.slice(rows)?)))?
        } else {
            run(rms, &sum, None)?
        };
        if *is_added {
            sums.swap(0, 1);
        }
        *is_added = false;
        Ok(result)
    }
}

impl ActivationSource for Normed<'_> {
    fn extents(&self) -> [usize; 2] {
        [self.rows.len(), self.extents[1]]
    }

    fn write<T: Float + GenericArgument>(self, on: &impl Queue, y: &mut BufferViewMut<'_, T, 2>) -> Result<(), Error> {
        // The order in which a norm adds depends on the number of rows.
        let at_once = if self.exact { 1 } else { usize::MAX };
        self.with(on, |rms, sum, mut added| {
            pieces(sum.extents()[0], at_once).try_for_each(|rows| {
                let (sum, mut y) = (sum.slice(rows.clone())?, y.reborrow().slice(rows.clone())?);
                match &mut added {
                    None => rms.run(on, &sum, &mut y),
                    Some((added, next)) => {
                        let (added, mut next) = (added.slice(rows.clone())?, next.reborrow().slice(rows)?);
                        rms.run_added(on, &sum, Some((&added, &mut next)), &mut y, None)
                    }
                }
            })
        })
    }

    /// Queues the norm in the kernel that quantizes.
    fn quantize(self, on: &impl Queue) -> Result<quant::Activations, Error> {
        self.with(on, |rms, sum, added| quant::Activations::normed(on, rms, sum, added))
    }
}

/// Memory that the blocks of a step use one after another.
#[derive(Debug)]
pub struct BlockWork {
    attention: attention::AttentionWork,
    network: network::NetworkWork,
}

impl BlockWork {
    /// Allocates memory for up to `tokens` tokens, of sequences up to `room` tokens. With `exact`,
    /// blocks have no approximations and compute each token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(
        on: &impl Queue,
        shape: attention::AttentionShape,
        inner: usize,
        tokens: usize,
        room: usize,
        exact: bool,
    ) -> Result<BlockWork, Error> {
        let attention = attention::AttentionWork::new(on, shape, tokens, room, exact)?;
        Ok(BlockWork { attention, network: network::NetworkWork::new(on, inner, tokens, exact)? })
    }
}

/// The second half of a block.
#[derive(Debug)]
pub enum SecondHalf {
    /// One network for all tokens.
    Network(Network),
    /// Experts that a router chooses for each token.
    Experts(ExpertNetworks),
}

/// A block: x ← x + attention(norm(x)), x ← x + network(norm(x)).
#[derive(Debug)]
pub struct Block {
    /// The norm before attention.
    pub attention_norm: Norm,
    /// Attention.
    pub attention: Attention,
    /// The norm before the network.
    pub network_norm: Norm,
    /// The network, or experts.
    pub network: SecondHalf,
}

impl Block {
    /// Returns both halves in the form whose kernels compute a norm and the next product together;
    /// `None` for many tokens, with `exact`, or if a matrix is block-quantized. The products add to
    /// the residual sum. The choice does not depend on the previous block, so a split over devices
    /// does not change bits.
    fn fused(&self, x: &HiddenStates) -> Option<(FusedAttention<'_>, FusedNetwork<'_>)> {
        let SecondHalf::Network(network) = &self.network else { return None };
        if x.exact || x.extents[0] > MAX_FUSED_TOKENS {
            return None;
        }
        Some((self.attention.fused()?, network.fused()?))
    }

    /// Queues the block for tokens, whose keys and values are stored in the cache.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run<K: CacheElement>(
        &self,
        on: &impl Queue,
        x: &mut HiddenStates,
        places: &Places<'_>,
        cache: KeyValues<'_, K>,
        work: &mut BlockWork,
    ) -> Result<(), Error> {
        if let Some((attention, network)) = self.fused(x) {
            x.settle(on)?;
            let [_, width] = x.extents;
            let mut sum = prefix(&mut x.sums[0], x.extents)?;
            let (first, second) = (on.share(&self.attention_norm.weight)?, on.share(&self.network_norm.weight)?);
            let (first, second) = (first.view([width])?, second.view([width])?);
            let norm = rowwise::Norm::rms(self.attention_norm.epsilon).weight(&first);
            attention.add(on, norm, &mut sum, places, cache, &mut work.attention)?;
            let norm = rowwise::Norm::rms(self.network_norm.epsilon).weight(&second);
            return network.add(on, norm, &mut sum);
        }
        let (n, exact) = (x.extents[0], x.exact);
        x.residual(on, &self.attention_norm, self.attention.projection().form(n, exact), |normed, added| {
            self.attention.run(on, normed, places, cache, added, &mut work.attention)
        })?;
        let form = match &self.network {
            SecondHalf::Network(network) => network.gate_and_up().form(n, exact),
            SecondHalf::Experts(_) => Form::F32,
        };
        x.residual(on, &self.network_norm, form, |normed, added| match &self.network {
            SecondHalf::Network(network) => network.run(on, normed, added, &mut work.network),
            SecondHalf::Experts(experts) => experts.run(on, exact, normed, added),
        })
    }
}
