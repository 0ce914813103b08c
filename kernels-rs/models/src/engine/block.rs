//! A transformer block, and the activations between blocks.

use super::attention::{self, AttentionLayer, DevicePlaces, FusedAttention, contiguous_prefix};
use super::cache::{CacheElement, KeyValues};
use super::experts::ExpertNetworks;
use super::linear::{LinearLayer, MAX_FUSED_TOKENS, row_ranges};
use super::network::{self, FusedNetwork, Network};
use super::operand::{ActivationForm, ActivationOperand, ActivationSource, OperandMemory};
use kernel_dsl::{Float, GenericArgument};
use kernels_rs::elementwise::saxpy;
use kernels_rs::{Queue, QueueMemory};
use kernels_rs::{quant, rowwise};
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Error};
use std::ops::Range;
use std::sync::Arc;

/// An RMS norm with a weight for each column (Zhang, Sennrich, 2019).
#[derive(Debug)]
pub struct NormLayer {
    weight: Arc<DeviceBuffer<f32>>,
    epsilon: f32,
}

impl NormLayer {
    /// Uploads the weights of a norm.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(device: &Device, weight: &[f32], epsilon: f32) -> crate::Result<NormLayer> {
        Ok(NormLayer { weight: Arc::new(device.upload(weight)?), epsilon })
    }
}

/// The activations of tokens between blocks: the residual sum, to which both branches of a block
/// add (attention and network).
///
/// A branch writes its result to separate memory, and the kernel of the next norm adds that result
/// to the sum. Products of few tokens with matrices that are not block-quantized add to the sum
/// themselves.
#[derive(Debug)]
pub struct HiddenStates {
    /// The sum of the branches so far, and memory for the next sum.
    sums: [QueueMemory<f32>; 2],
    /// The result of the last branch.
    branch: QueueMemory<f32>,
    /// Whether `branch` is not yet part of the sum.
    is_branch_pending: bool,
    /// Memory for the norm of the sum.
    normed: OperandMemory,
    /// The number of tokens, and the number of elements of a token.
    extents: [usize; 2],
    exact: bool,
}

impl HiddenStates {
    /// Allocates memory for up to `tokens` tokens of `width` elements. With `exact`, the norm of a
    /// token has the bits of a norm of that token alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(on: &impl Queue, tokens: usize, width: usize, exact: bool) -> Result<HiddenStates, Error> {
        let memory = || on.scratch::<f32>(tokens * width);
        let sums = [memory()?, memory()?];
        let normed = OperandMemory::new(tokens * width);
        Ok(HiddenStates { sums, branch: memory()?, is_branch_pending: false, normed, extents: [tokens, width], exact })
    }

    /// Returns the number of elements that are allocated for a token of `width` elements: two sums,
    /// the result of a branch, and the norm in `f32`, its widest form.
    pub(super) const fn elements_per_token(width: usize) -> usize {
        4 * width
    }

    /// Begins a step of `tokens` tokens. Returns the sum, `[tokens, width]`, for the caller to
    /// write.
    ///
    /// # Errors
    /// If the memory is too small for the tokens.
    pub fn begin(&mut self, tokens: usize) -> Result<BufferViewMut<'_, f32, 2>, Error> {
        self.extents[0] = tokens;
        self.is_branch_pending = false;
        contiguous_prefix(&mut self.sums[0], self.extents)
    }

    /// Queues the addition of features to some rows of the sum.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn add_features(
        &mut self,
        on: &impl Queue,
        rows: Range<usize>,
        features: &BufferView<'_, f32, 2>,
    ) -> Result<(), Error> {
        let elements = rows.len() * self.extents[1];
        let summand = if self.is_branch_pending { &mut self.branch } else { &mut self.sums[0] };
        let to =
            contiguous_prefix(summand, self.extents)?.slice(rows)?.strided().reshaped([elements])?.side_by_side()?;
        saxpy::launch(on, 1.0, features.strided().reshaped([elements])?.side_by_side()?, to)
    }

    /// Queues the addition of the last branch's result, if it is not yet part of the sum.
    fn add_branch(&mut self, on: &impl Queue) -> Result<(), Error> {
        if self.is_branch_pending {
            let elements = [self.extents.iter().product()];
            let (branch, sum) = (
                contiguous_prefix(&mut self.branch, elements)?.shared(),
                contiguous_prefix(&mut self.sums[0], elements)?,
            );
            // SAFETY: the launch compares the lengths, and each thread its index with them.
            unsafe { saxpy::launch_unchecked(on, 1.0, branch, sum)? };
            self.is_branch_pending = false;
        }
        Ok(())
    }

    /// Returns the memory of the sum, to which the activations of the previous stage are copied.
    pub(super) fn input_memory(&mut self) -> &mut QueueMemory<f32> {
        self.is_branch_pending = false;
        &mut self.sums[0]
    }

    /// Queues the addition of the last branch's result, and returns the sum, to be copied to the
    /// next stage. The kernel of a norm would add with the same rounding, so a split over devices
    /// does not change bits.
    ///
    /// # Errors
    /// If the launch is refused.
    pub(super) fn finished_sum(&mut self, on: &impl Queue) -> Result<&QueueMemory<f32>, Error> {
        self.add_branch(on)?;
        Ok(&self.sums[0])
    }

    /// Queues a branch: the norm of the sum in the form `form`, then `run`. `run` receives the
    /// norm, and memory for the result of the branch, which the next norm adds to the sum.
    fn queue_branch(
        &mut self,
        on: &impl Queue,
        norm: &NormLayer,
        form: ActivationForm,
        run: impl FnOnce(&ActivationOperand<'_>, &mut BufferViewMut<'_, f32, 2>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let HiddenStates { sums, branch, is_branch_pending, normed, extents, exact } = self;
        let (extents, rows) = (*extents, 0..extents[0]);
        let source = NormedSum {
            norm,
            sums,
            branch: &mut *branch,
            is_branch_pending: &mut *is_branch_pending,
            extents,
            rows,
            exact: *exact,
        };
        let normed = normed.queue_in_form(on, form, source)?;
        *is_branch_pending = true;
        run(&normed, &mut contiguous_prefix(branch, extents)?)
    }

    /// Queues the last norm, and the product with the output matrix. `logits`,
    /// `[rows, vocabulary]`, are those of the last `rows` tokens.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn finish(
        &mut self,
        on: &impl Queue,
        norm: &NormLayer,
        output: &LinearLayer,
        logits: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<(), Error> {
        let HiddenStates { sums, branch, is_branch_pending, normed, extents, exact } = self;
        let ([n, _], [rows, _], exact) = (*extents, logits.extents(), *exact);
        let last = n.saturating_sub(rows)..n;
        let source = NormedSum { norm, sums, branch, is_branch_pending, extents: *extents, rows: last, exact };
        let normed = normed.queue_in_form(on, output.form(rows, exact), source)?;
        output.product(on, exact, &normed, logits)
    }
}

/// The norm of some rows of a sum. If `is_branch_pending`, `branch` is added to the sum first.
struct NormedSum<'a> {
    norm: &'a NormLayer,
    /// The sum of the branches so far, and memory for the next sum.
    sums: &'a mut [QueueMemory<f32>; 2],
    branch: &'a mut QueueMemory<f32>,
    is_branch_pending: &'a mut bool,
    /// The extents of the sum.
    extents: [usize; 2],
    rows: Range<usize>,
    exact: bool,
}

impl NormedSum<'_> {
    /// Passes to `run` the norm and the rows of the sum. If a branch is pending, `run` also
    /// receives the branch and the memory for the new sum.
    fn run_norm<R>(
        self,
        on: &impl Queue,
        run: impl FnOnce(rowwise::Norm<'_, f32>, &BufferView<'_, f32, 2>, rowwise::Added<'_, '_, f32>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let NormedSum { norm, sums, branch, is_branch_pending, extents, rows, .. } = self;
        let weight = on.share(&norm.weight)?;
        let weight = weight.view([extents[1]])?;
        let rms = rowwise::Norm::rms(norm.epsilon).weight(&weight);
        let [sum, next] = &mut *sums;
        let sum = contiguous_prefix(sum, extents)?.shared().slice(rows.clone())?;
        let result = if *is_branch_pending {
            let added = contiguous_prefix(branch, extents)?.shared().slice(rows.clone())?;
            run(rms, &sum, Some((&added, &mut contiguous_prefix(next, extents)?.slice(rows)?)))?
        } else {
            run(rms, &sum, None)?
        };
        if *is_branch_pending {
            sums.swap(0, 1);
        }
        *is_branch_pending = false;
        Ok(result)
    }
}

impl ActivationSource for NormedSum<'_> {
    fn extents(&self) -> [usize; 2] {
        [self.rows.len(), self.extents[1]]
    }

    fn write<T: Float + GenericArgument>(self, on: &impl Queue, y: &mut BufferViewMut<'_, T, 2>) -> Result<(), Error> {
        // The order in which a norm adds elements depends on the number of rows.
        let chunk_rows = if self.exact { 1 } else { usize::MAX };
        self.run_norm(on, |rms, sum, mut added| {
            row_ranges(sum.extents()[0], chunk_rows).try_for_each(|rows| {
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

    /// Queues the norm and its quantization: one kernel, if a row has a multiple of 4 elements.
    fn quantize(self, on: &impl Queue) -> Result<quant::Activations, Error> {
        self.run_norm(on, |rms, sum, added| quant::Activations::quantize_norm(on, rms, sum, added))
    }
}

/// Memory for attention and networks that the blocks of a step use one after another.
#[derive(Debug)]
pub struct BlockMemory {
    attention: attention::AttentionMemory,
    network: network::NetworkMemory,
}

impl BlockMemory {
    /// Allocates memory for up to `tokens` tokens, of sequences up to `context_size` tokens. A
    /// network has `inner` elements. With `exact`, blocks have no approximations and compute each
    /// token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(
        on: &impl Queue,
        shape: attention::AttentionShape,
        inner: usize,
        tokens: usize,
        context_size: usize,
        exact: bool,
    ) -> Result<BlockMemory, Error> {
        let attention = attention::AttentionMemory::new(on, shape, tokens, context_size, exact)?;
        Ok(BlockMemory { attention, network: network::NetworkMemory::new(on, inner, tokens, exact)? })
    }

    /// Returns the number of elements that are allocated for a token. A network has `inner`
    /// elements.
    pub(super) fn elements_per_token(shape: attention::AttentionShape, inner: usize) -> usize {
        attention::AttentionMemory::elements_per_token(shape) + network::NetworkMemory::elements_per_token(inner)
    }
}

/// The feed-forward branch of a block.
#[derive(Debug)]
pub enum FeedForward {
    /// One network for all tokens.
    Network(Network),
    /// Experts that a router chooses for each token.
    Experts(ExpertNetworks),
}

/// A transformer block: x ← x + attention(norm(x)), then x ← x + network(norm(x)).
#[derive(Debug)]
pub struct TransformerBlock {
    /// The norm before attention.
    pub attention_norm: NormLayer,
    /// Attention.
    pub attention: AttentionLayer,
    /// The norm before the network.
    pub network_norm: NormLayer,
    /// The network, or experts.
    pub network: FeedForward,
}

impl TransformerBlock {
    /// Returns the fused form of both branches: one kernel computes a norm and the next product,
    /// and the last product adds to the residual sum. Returns `None` for more than
    /// [`MAX_FUSED_TOKENS`] tokens, with `exact`, with experts, or if a matrix is block-quantized.
    /// The choice does not depend on the previous block, so a split over devices does not change
    /// bits.
    fn fused(&self, x: &HiddenStates) -> Option<(FusedAttention<'_>, FusedNetwork<'_>)> {
        let FeedForward::Network(network) = &self.network else { return None };
        if x.exact || x.extents[0] > MAX_FUSED_TOKENS {
            return None;
        }
        Some((self.attention.fused()?, network.fused()?))
    }

    /// Queues the block for the tokens of `x`, and stores their keys and values in `cache`.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run<K: CacheElement>(
        &self,
        on: &impl Queue,
        x: &mut HiddenStates,
        places: &DevicePlaces<'_>,
        cache: KeyValues<'_, K>,
        memory: &mut BlockMemory,
    ) -> Result<(), Error> {
        if let Some((attention, network)) = self.fused(x) {
            x.add_branch(on)?;
            let [_, width] = x.extents;
            let mut sum = contiguous_prefix(&mut x.sums[0], x.extents)?;
            let (first, second) = (on.share(&self.attention_norm.weight)?, on.share(&self.network_norm.weight)?);
            let (first, second) = (first.view([width])?, second.view([width])?);
            let norm = rowwise::Norm::rms(self.attention_norm.epsilon).weight(&first);
            attention.add(on, norm, &mut sum, places, cache, &mut memory.attention)?;
            let norm = rowwise::Norm::rms(self.network_norm.epsilon).weight(&second);
            return network.add(on, norm, &mut sum);
        }
        let (n, exact) = (x.extents[0], x.exact);
        x.queue_branch(on, &self.attention_norm, self.attention.projection().form(n, exact), |normed, branch| {
            self.attention.run(on, normed, places, cache, branch, &mut memory.attention)
        })?;
        let form = match &self.network {
            FeedForward::Network(network) => network.gate_and_up().form(n, exact),
            FeedForward::Experts(_) => ActivationForm::F32,
        };
        x.queue_branch(on, &self.network_norm, form, |normed, branch| match &self.network {
            FeedForward::Network(network) => network.run(on, normed, branch, &mut memory.network),
            FeedForward::Experts(experts) => experts.run(on, exact, normed, branch),
        })
    }
}
