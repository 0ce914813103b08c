//! Estimates of the memory that a model needs, from its configuration and the sizes of its tensors.
//! No tensor is loaded.

use super::model::StepMemory;
use crate::configuration::Configuration;
use crate::error::{Error, Result};
use crate::memory::{CacheFormat, MemoryNeeds, MemoryPlan, WeightBytes};
use kernels_rs::attention::cache::BLOCK;

impl Configuration {
    /// Returns the bytes of the keys and values of one token in all layers.
    pub fn cache_per_token(&self, cache: CacheFormat) -> u64 {
        self.layers as u64 * self.cache_of_layer(cache)
    }

    /// Returns the bytes of the keys and values of one token in a layer.
    fn cache_of_layer(&self, cache: CacheFormat) -> u64 {
        let head_bytes = match cache {
            CacheFormat::F32 => 4 * self.head_size,
            CacheFormat::F16 => 2 * self.head_size,
            CacheFormat::Q8_0 => self.head_size + 2 * self.head_size.div_ceil(BLOCK),
        };
        2 * (self.kv_heads * head_bytes) as u64
    }

    /// Estimates the bytes that the model needs on one device. `weights` are the bytes of its
    /// tensors, such as those of [`Checkpoint::weight_bytes`](crate::Checkpoint::weight_bytes).
    ///
    /// Layers use the same memory for activations, one after another. The estimate counts the
    /// following values in `f32`, and the last ones in the format of the cache:
    ///
    /// | values | elements a token |
    /// |---|---|
    /// | two sums between layers, the result of a branch, a norm | 4·width |
    /// | queries, keys, values | (heads + 2·kv_heads)·head |
    /// | queries after rotation, output of attention | 2·heads·head |
    /// | gate, up and their product | 3·inner |
    /// | with experts: logits of the router | count of experts |
    /// | with experts, for each in use: gate, up, product, result | 3·inner + width |
    /// | queries and output of attention, of a prompt | 2·heads·head |
    ///
    /// The tokens are those of a chunk, and of the graphs of steps: one graph each for 1, 2, 4, …
    /// tokens. The widest graph has a token for each sequence, and for a token and all its drafts.
    /// Experts have further rows, up to whole groups of rows, and in a graph each layer has
    /// separate memory for them. Logits have 4·vocabulary bytes for each token of a graph, and for
    /// the prompt.
    ///
    /// Memory of library calls that depends on the device is not counted, such as partial sums of
    /// products.
    pub fn memory(&self, plan: MemoryPlan, weights: u64) -> MemoryNeeds {
        self.device_memory(plan, weights, self.layers, true)
    }

    /// Estimates the bytes that the model needs on each of several devices, as
    /// [`memory`](Configuration::memory) does. `layers` has the number of layers of each device,
    /// such as the result of [`layers_by_device`](Configuration::layers_by_device).
    ///
    /// ```text
    ///   first device          its layers and their cache, activations, embedding, vision tower
    ///   devices between       their layers and their cache, activations
    ///   last device           its layers and their cache, activations, output matrix, logits
    /// ```
    pub fn memory_by_device(&self, plan: MemoryPlan, weights: &WeightBytes, layers: &[usize]) -> Vec<MemoryNeeds> {
        let mut from = 0;
        let device_needs = layers.iter().enumerate().map(|(i, layers_here)| {
            let is_last = i + 1 == layers.len();
            let layers_bytes = weights.layers.iter().skip(from).take(*layers_here);
            from += layers_here;
            let ends =
                [(i == 0, weights.first), (is_last, weights.last)].map(|(is_here, bytes)| u64::from(is_here) * bytes);
            let bytes = ends.iter().chain(layers_bytes).fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            self.device_memory(plan, bytes, *layers_here, is_last)
        });
        device_needs.collect()
    }

    /// Returns the number of layers of each device: `given`, or a split by bytes. In a split by
    /// bytes, weights, the plan's cache and activations take about the same fraction of each
    /// device's free memory.
    ///
    /// `free` has the free bytes of each device, if known. If one is unknown, each device gets
    /// about the same number of bytes. In both cases as few bytes as possible exceed the known free
    /// memory.
    ///
    /// # Errors
    /// If there is no device, or a device would have no layer. Also if `given` does not have a
    /// number for each device, or the sum of these numbers is not the number of layers.
    pub fn layers_by_device(
        &self,
        plan: MemoryPlan,
        weights: &WeightBytes,
        free: &[Option<u64>],
        given: Option<&[usize]>,
    ) -> Result<Vec<usize>> {
        let refused = |field: &str, problem: String| Err(Error::field("a split", field, problem));
        let (all, devices) = (self.layers, free.len());
        if devices == 0 || devices > all {
            let problem = format!("found {devices} devices for {all} layers; expected 1 to {all}, each with a layer");
            return refused("devices", problem);
        }
        if let Some(given) = given {
            let sum = given.iter().try_fold(0usize, |sum, layers| sum.checked_add(*layers));
            if given.len() != devices || given.contains(&0) || sum != Some(all) {
                let problem = format!(
                    "found {given:?}; expected {devices} numbers of 1 or more, one for each device, with the sum {all}"
                );
                return refused("layers", problem);
            }
            return Ok(given.to_vec());
        }
        let layer_cache = self.cache_of_layer(plan.cache).saturating_mul(plan.tokens);
        let bytes: Vec<u64> = weights.layers.iter().map(|bytes| bytes.saturating_add(layer_cache)).collect();
        // Every device has activations, and the last one the logits.
        let [others, last] = [false, true].map(|has_logits| self.device_memory(plan, 0, 0, has_logits).total());
        let mut ends = vec![others; devices];
        ends[devices - 1] = last.saturating_add(weights.last);
        ends[0] = ends[0].saturating_add(weights.first);
        Ok(split_layers(&bytes, &ends, free))
    }

    /// Estimates the bytes of a device that has `layers` layers.
    fn device_memory(&self, plan: MemoryPlan, weights: u64, layers: usize, has_logits: bool) -> MemoryNeeds {
        let prompt = StepMemory::prompt_bytes(self, plan.cache, plan.chunk_size.min(plan.tokens));
        let widest = plan.sequences.max(plan.drafts.saturating_add(1)).clamp(1, 1 << 32).next_power_of_two();
        let widths = (0..=widest.ilog2()).map(|i| 1 << i);
        let graphs =
            widths.map(|width| StepMemory::graph_bytes(self, layers.max(1), width)).fold(0, u64::saturating_add);
        // The graphs for 1, 2, 4, … tokens have 2·widest − 1 tokens, and the prompt has one.
        let logits = if has_logits { (4 * self.vocabulary as u64).saturating_mul(2 * widest) } else { 0 };
        let cache_per_token = layers as u64 * self.cache_of_layer(plan.cache);
        MemoryNeeds {
            weights,
            cache: cache_per_token.saturating_mul(plan.tokens),
            cache_per_token,
            activations: prompt.saturating_add(graphs).saturating_add(logits),
        }
    }
}

/// The cost of a split: the bytes beyond free memory, and the sum of b² ÷ f, as [`split_layers`]
/// defines them. Tuples are compared in this order.
type SplitCost = (u128, u128);

/// Splits consecutive layers over devices, and returns the number of layers of each device, at
/// least one. `bytes` has the bytes of each layer. `fixed_bytes` has further bytes of each device,
/// and `free` the free bytes of each device.
///
/// The number of bytes beyond the free memory is as small as possible. Let b be the bytes on a
/// device and f its free bytes. Among such splits, the result has the least sum of b² ÷ f, which
/// makes the fractions b ÷ f as even as possible. If the free memory of a device is unknown, f is
/// the same for all. The caller passes at least as many layers as devices.
fn split_layers(bytes: &[u64], fixed_bytes: &[u64], free: &[Option<u64>]) -> Vec<usize> {
    let n = bytes.len();
    let mut sums = vec![0u128];
    for number in bytes {
        sums.push(sums[sums.len() - 1] + u128::from(*number));
    }
    let largest = free.iter().copied().collect::<Option<Vec<u64>>>().and_then(|free| free.into_iter().max());
    // 1 ÷ f in units of 2⁻¹⁶ ÷ the largest f.
    let factor = |free: Option<u64>| match (largest, free) {
        (Some(largest), Some(free)) => (u128::from(largest) << 16) / u128::from(free.max(1)),
        _ => 1 << 16,
    };
    // Dynamic programming over devices. `best[end]` is the least cost of the devices so far, if
    // their layers end before layer `end`. `first_layers` has the first layer of each device for
    // each end.
    let mut best: Vec<Option<SplitCost>> = vec![None; n + 1];
    best[0] = Some((0, 0));
    let mut first_layers = Vec::new();
    for (part, (fixed_bytes, free)) in fixed_bytes.iter().zip(free).enumerate() {
        let factor = factor(*free);
        let mut next = vec![None; n + 1];
        let mut begin = vec![0; n + 1];
        for end in part + 1..=n {
            let cost = |from: usize| {
                let (beyond, uneven) = best[from]?;
                let sum = sums[end] - sums[from] + u128::from(*fixed_bytes);
                let excess = free.map_or(0, |free| sum.saturating_sub(u128::from(free)));
                let square = sum.saturating_mul(sum).saturating_mul(factor);
                Some((beyond + excess, uneven.saturating_add(square)))
            };
            let least = (part..end).filter_map(|from| Some((cost(from)?, from))).min();
            (next[end], begin[end]) = least.map_or((None, 0), |(cost, from)| (Some(cost), from));
        }
        best = next;
        first_layers.push(begin);
    }
    let mut end = n;
    let mut counts: Vec<usize> = first_layers
        .iter()
        .rev()
        .map(|begin| {
            let count = end - begin[end];
            end = begin[end];
            count
        })
        .collect();
    counts.reverse();
    counts
}

#[cfg(test)]
mod tests {
    use super::split_layers;

    /// Returns every way to split `n` into `parts` numbers of 1 or more.
    fn splits(n: usize, parts: usize) -> Vec<Vec<usize>> {
        if parts == 1 {
            return vec![vec![n]];
        }
        let with_first =
            |first: usize| splits(n - first, parts - 1).into_iter().map(move |rest| [vec![first], rest].concat());
        (1..=n + 1 - parts).flat_map(with_first).collect()
    }

    /// Returns the bytes of each device.
    fn bytes(numbers: &[u64], added: &[u64], counts: &[usize]) -> Vec<u64> {
        let mut from = 0;
        let part_sums = counts.iter().zip(added).map(|(count, added)| {
            from += count;
            numbers[from - count..from].iter().sum::<u64>() + added
        });
        part_sums.collect()
    }

    #[test]
    fn parts_are_as_even_as_they_can_be() {
        assert_eq!(split_layers(&[5; 28], &[0, 0], &[None; 2]), [14, 14]);
        // The first part has an embedding of four layers, the last one an output matrix of two.
        assert_eq!(split_layers(&[5; 28], &[20, 10], &[None; 2]), [13, 15]);
        assert_eq!(split_layers(&[5; 4], &[1000, 0, 0], &[None; 3]), [1, 1, 2]);
        assert_eq!(split_layers(&[u64::MAX; 3], &[u64::MAX, 0, u64::MAX], &[None; 3]), [1, 1, 1]);
        let mut seed = 1u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 54
        };
        for parts in 1..5 {
            let numbers: Vec<u64> = (0..9).map(|_| next()).collect();
            let added: Vec<u64> = (0..parts).map(|_| next()).collect();
            let squares = |counts: &[usize]| bytes(&numbers, &added, counts).iter().map(|sum| sum.pow(2)).sum::<u64>();
            let least = splits(9, parts).iter().map(|counts| squares(counts)).min();
            assert_eq!(Some(squares(&split_layers(&numbers, &added, &vec![None; parts]))), least);
            // Equal free memory changes nothing.
            let equal = split_layers(&numbers, &added, &vec![Some(1 << 30); parts]);
            assert_eq!(Some(squares(&equal)), least);
        }
    }

    #[test]
    fn parts_follow_free_memory() {
        assert_eq!(split_layers(&[5; 30], &[0, 0], &[Some(200), Some(100)]), [20, 10]);
        assert_eq!(split_layers(&[5; 30], &[0, 0, 0], &[Some(1000), Some(3000), Some(1000)]), [6, 18, 6]);
        // Even parts of 75 would exceed the known free memory.
        assert_eq!(split_layers(&[5; 30], &[0, 0], &[Some(40), None]), [8, 22]);
        // A device without free memory has one layer, because each has one.
        assert_eq!(split_layers(&[5; 30], &[0, 0], &[Some(0), Some(1000)]), [1, 29]);
        let mut seed = 2u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 54
        };
        for round in 0..40 {
            let parts = 2 + round % 3;
            let numbers: Vec<u64> = (0..9).map(|_| 1 + next()).collect();
            let added: Vec<u64> = (0..parts).map(|_| next()).collect();
            let all: u64 = numbers.iter().chain(&added).sum();
            // The free memory is sometimes too small for all layers.
            let free: Vec<u64> = (0..parts).map(|_| 1 + next() * all / 700).collect();
            let known: Vec<Option<u64>> = free.iter().copied().map(Some).collect();
            let cost = |counts: &[usize]| {
                let sums = bytes(&numbers, &added, counts);
                let pairs = || sums.iter().zip(&free);
                let beyond: u64 = pairs().map(|(sum, free)| sum.saturating_sub(*free)).sum();
                (beyond, pairs().map(|(sum, free)| (*sum as f64).powi(2) / *free as f64).sum::<f64>())
            };
            let least = splits(9, parts).iter().map(|counts| cost(counts)).min_by(|a, b| a.partial_cmp(b).unwrap());
            let ((least_excess, least_cost), (found_excess, found_cost)) =
                (least.unwrap(), cost(&split_layers(&numbers, &added, &known)));
            assert_eq!(found_excess, least_excess, "{numbers:?} {added:?} {free:?}");
            assert!(found_cost <= 1.001 * least_cost, "{found_cost} {least_cost}: {numbers:?} {added:?} {free:?}");
        }
    }
}
