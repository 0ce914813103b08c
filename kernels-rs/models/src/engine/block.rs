//! A block, and the stream of activations between blocks.

use super::attention::{self, Attention, FusedAttention, Places, prefix};
use super::cache::{CacheElement, KeyValues};
use super::experts::Experts;
use super::linear::{FUSED, pieces};
use super::network::{self, FusedNetwork, Network};
use kernels_rs::elementwise::saxpy;
use kernels_rs::rowwise;
use kernels_rs::{Queue, QueueMemory};
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
/// The kernel of the next norm adds the result of a half. Until then, the result has separate
/// memory. Few tokens and matrices of numbers need no such memory: products add to the sum.
#[derive(Debug)]
pub struct Activations {
    /// The sum, and memory for the next one.
    sums: [QueueMemory<f32>; 2],
    /// The summand of the last half of a block.
    added: QueueMemory<f32>,
    /// Whether `added` is not yet part of the sum.
    is_added: bool,
    /// The norm of the sum.
    normed: QueueMemory<f32>,
    extents: [usize; 2],
    exact: bool,
}

impl Activations {
    /// Allocates the activations of `tokens` tokens. With `exact`, norms add the numbers of each
    /// token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(on: &impl Queue, tokens: usize, width: usize, exact: bool) -> Result<Activations, Error> {
        let memory = || on.scratch::<f32>(tokens * width);
        let sums = [memory()?, memory()?];
        Ok(Activations { sums, added: memory()?, is_added: false, normed: memory()?, extents: [tokens, width], exact })
    }

    /// Begins with `tokens` tokens, for which there is memory. Returns the sum, to be written.
    ///
    /// # Errors
    /// If there are more tokens than memory.
    pub fn begin(&mut self, tokens: usize) -> Result<BufferViewMut<'_, f32, 2>, Error> {
        self.extents[0] = tokens;
        self.is_added = false;
        prefix(&mut self.sums[0], self.extents)
    }

    /// Queues the addition of features to some rows, after a block.
    ///
    /// # Errors
    /// If extents do not match.
    pub fn add(&mut self, on: &impl Queue, rows: Range<usize>, features: &BufferView<'_, f32, 2>) -> Result<(), Error> {
        let numbers = rows.len() * self.extents[1];
        let summand = if self.is_added { &mut self.added } else { &mut self.sums[0] };
        let to = prefix(summand, self.extents)?.slice(rows)?.strided().reshaped([numbers])?.side_by_side()?;
        saxpy::launch(on, 1.0, features.strided().reshaped([numbers])?.side_by_side()?, to)
    }

    /// Queues the norm of the sum.
    fn norm(&mut self, on: &impl Queue, norm: &Norm) -> Result<(), Error> {
        let weight = on.share(&norm.weight)?;
        let weight = weight.view([self.extents[1]])?;
        let rms = rowwise::Norm::rms(norm.epsilon).weight(&weight);
        let [sum, next] = &mut self.sums;
        let sum = prefix(sum, self.extents)?.shared();
        let added = prefix(&mut self.added, self.extents)?.shared();
        let (mut normed, mut next) = (prefix(&mut self.normed, self.extents)?, prefix(next, self.extents)?);
        // The order of a sum depends on the number of rows.
        let at_once = if self.exact { 1 } else { usize::MAX };
        for rows in pieces(self.extents[0], at_once) {
            let (sum, mut normed) = (sum.slice(rows.clone())?, normed.reborrow().slice(rows.clone())?);
            if self.is_added {
                let (added, mut next) = (added.slice(rows.clone())?, next.reborrow().slice(rows)?);
                rms.run_added(on, &sum, Some((&added, &mut next)), &mut normed, None)?;
            } else {
                rms.run(on, &sum, &mut normed)?;
            }
        }
        if self.is_added {
            self.sums.swap(0, 1);
        }
        self.is_added = false;
        Ok(())
    }

    /// Returns the norm, and memory for what is added to the sum.
    fn half(&mut self) -> Result<(BufferView<'_, f32, 2>, BufferViewMut<'_, f32, 2>), Error> {
        self.is_added = true;
        Ok((prefix(&mut self.normed, self.extents)?.shared(), prefix(&mut self.added, self.extents)?))
    }

    /// Queues the norm after the last block, and returns it.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn finish(&mut self, on: &impl Queue, norm: &Norm) -> Result<BufferView<'_, f32, 2>, Error> {
        self.norm(on, norm)?;
        Ok(prefix(&mut self.normed, self.extents)?.shared())
    }
}

/// Memory that the blocks of a step use one after another.
#[derive(Debug)]
pub struct Work {
    attention: attention::Work,
    network: network::Work,
}

impl Work {
    /// Allocates memory for up to `tokens` tokens, of sequences up to `room` tokens. With `exact`,
    /// tokens pass the blocks without approximations, each as if alone.
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
    ) -> Result<Work, Error> {
        let attention = attention::Work::new(on, shape, tokens, room, exact)?;
        Ok(Work { attention, network: network::Work::new(on, inner, tokens, exact)? })
    }
}

/// The second half of a block.
#[derive(Debug)]
pub enum SecondHalf {
    /// One network for all tokens.
    Network(Network),
    /// Experts that a router chooses for each token.
    Experts(Experts),
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
    /// Returns the halves whose norms and products are one kernel each, if they are such: for few
    /// tokens, and without `exact`. Products then add to the sum of the stream.
    fn fused(&self, x: &Activations) -> Option<(FusedAttention<'_>, FusedNetwork<'_>)> {
        let SecondHalf::Network(network) = &self.network else { return None };
        if x.exact || x.is_added || x.extents[0] > FUSED {
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
        x: &mut Activations,
        places: &Places<'_>,
        cache: KeyValues<'_, K>,
        work: &mut Work,
    ) -> Result<(), Error> {
        if let Some((attention, network)) = self.fused(x) {
            let [_, width] = x.extents;
            let mut sum = prefix(&mut x.sums[0], x.extents)?;
            let (first, second) = (on.share(&self.attention_norm.weight)?, on.share(&self.network_norm.weight)?);
            let (first, second) = (first.view([width])?, second.view([width])?);
            let norm = rowwise::Norm::rms(self.attention_norm.epsilon).weight(&first);
            attention.add(on, norm, &mut sum, places, cache, &mut work.attention)?;
            let norm = rowwise::Norm::rms(self.network_norm.epsilon).weight(&second);
            return network.add(on, norm, &mut sum);
        }
        x.norm(on, &self.attention_norm)?;
        let (normed, mut added) = x.half()?;
        self.attention.run(on, &normed, places, cache, &mut added, &mut work.attention)?;
        x.norm(on, &self.network_norm)?;
        let (normed, mut added) = x.half()?;
        match &self.network {
            SecondHalf::Network(network) => network.run(on, &normed, &mut added, &mut work.network),
            SecondHalf::Experts(experts) => experts.run(on, work.network.is_exact(), &normed, &mut added),
        }
    }
}
