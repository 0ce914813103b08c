//! The cache of keys and values on a device: its formats, and the pages of sequences.
//!
//! A page has the keys and values of consecutive tokens of a sequence. A page number names the same
//! rows in the cache of every layer. A table lists the pages of each sequence (Kwon and others,
//! *PagedAttention*, 2023). Sequences that begin with the same tokens share the full pages of these
//! tokens. A single sequence has one page.
//!
//! | format | elements | scales | queries in prompts |
//! |---|---|---|---|
//! | F32 | `f32` | none | `f32` |
//! | F16 | `f16` | none | `f16` |
//! | Q8_0 | `i8` | an `f16` for each 32 elements | `f16` |

use super::attention::DevicePlaces;
use kernel_dsl::half::f16;
use kernel_dsl::prelude::*;
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::Queue;
use kernels_rs::attention::cache::{BLOCK, StoredElement};
use kernels_rs::attention::{Append, KvCache, KvCacheMut};
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::heads::{Norms, prepare};
use kernels_rs::rotary::PairLayout;
use runtime::{BufferView, BufferViewMut, Error};

/// The cache of a layer, to write. The extents are `[2·pages, kv_heads, rows of a page, …]`: the
/// pages of keys, then those of values. The last extent is the size of a head, or its number of
/// scales.
#[derive(Debug)]
pub struct KeyValues<'a, K: Element> {
    /// The elements of heads, or integer multiples of their scales.
    pub elements: BufferViewMut<'a, K, 4>,
    /// A scale for each [`BLOCK`] elements of a head, or none.
    pub scales: BufferViewMut<'a, f16, 4>,
}

/// The cache of a layer, to read: the halves of [`KeyValues`], each with `pages` pages.
#[derive(Clone, Copy, Debug)]
pub struct KeyValueViews<'a, K: Element> {
    /// Elements of keys and of values.
    pub elements: [BufferView<'a, K, 4>; 2],
    /// Scales of keys and of values.
    pub scales: [BufferView<'a, f16, 4>; 2],
}

impl<K: Element> KeyValueViews<'_, K> {
    /// Returns the first `rows` rows of each page.
    ///
    /// # Errors
    /// If pages have fewer rows.
    pub(super) fn first_rows(&self, rows: usize) -> Result<Self, Error> {
        let ([keys, values], [key_scales, value_scales]) = (self.elements, self.scales);
        Ok(KeyValueViews {
            elements: [slice_rows(keys, rows)?, slice_rows(values, rows)?],
            scales: [slice_rows(key_scales, rows)?, slice_rows(value_scales, rows)?],
        })
    }
}

/// Returns the first `rows` elements of the third axis, the rows of a page.
fn slice_rows<T: Element>(all: BufferView<'_, T, 4>, rows: usize) -> Result<BufferView<'_, T, 4>, Error> {
    all.strided().permuted([2, 1, 0, 3])?.slice(0..rows)?.permuted([2, 1, 0, 3])?.side_by_side()
}

impl<K: Element> KeyValues<'_, K> {
    /// Returns the number of pages.
    pub fn pages(&self) -> usize {
        self.elements.extents()[0] / 2
    }

    /// Returns read-only views.
    ///
    /// # Errors
    /// If the pages of keys and of values differ in number.
    pub fn views(&mut self) -> Result<KeyValueViews<'_, K>, Error> {
        let pages = self.pages();
        let (keys, values) = self.elements.reborrow().shared().split_at(pages)?;
        let (key_scales, value_scales) = self.scales.reborrow().shared().split_at(pages)?;
        Ok(KeyValueViews { elements: [keys, values], scales: [key_scales, value_scales] })
    }

    /// Returns keys and values as separate views to write: elements, then scales.
    #[allow(clippy::type_complexity, reason = "keys and values of two types")]
    fn halves(&mut self) -> Result<([BufferViewMut<'_, K, 4>; 2], [BufferViewMut<'_, f16, 4>; 2]), Error> {
        let pages = self.pages();
        let (keys, values) = self.elements.reborrow().split_at(pages)?;
        let (key_scales, value_scales) = self.scales.reborrow().split_at(pages)?;
        Ok(([keys, values], [key_scales, value_scales]))
    }
}

/// The result of a projection: queries, keys and values of tokens; and the norms to be applied.
#[derive(Clone, Copy, Debug)]
pub struct QueryKeyValues<'a> {
    /// Queries, keys and values, `[tokens, (heads + 2·kv_heads)·head]`.
    pub elements: BufferView<'a, f32, 2>,
    /// The norms of the heads of queries and keys.
    pub norms: Option<Norms<'a, f32>>,
}

/// An element type of caches that the engine supports.
pub trait CacheElement: StoredElement + GenericArgument {
    /// The element type of queries and results in the attention of prompts.
    type PromptElement: Float + GenericArgument;

    /// Returns the number of scales of a head of `width` elements.
    fn scales_per_head(width: usize) -> usize;

    /// Queues q ← the queries after norms and rotation, `[tokens, heads, head]`. Also stores keys,
    /// after norms and rotation, and values in the cache.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    fn store(
        on: &impl Queue,
        projected: &QueryKeyValues<'_>,
        places: &DevicePlaces<'_>,
        q: &mut BufferViewMut<'_, f32, 3>,
        cache: &mut KeyValues<'_, Self>,
    ) -> Result<(), Error>;

    /// Returns the operand of attention for a cache without a page table.
    fn attention_operand<'a>(views: KeyValueViews<'a, Self>) -> KvCache<'a, Self>;
}

macro_rules! floats {
    ($($T:ty),*) => {$(
        impl CacheElement for $T {
            type PromptElement = $T;

            fn scales_per_head(_width: usize) -> usize {
                0
            }

            fn store(
                on: &impl Queue,
                projected: &QueryKeyValues<'_>,
                places: &DevicePlaces<'_>,
                q: &mut BufferViewMut<'_, f32, 3>,
                cache: &mut KeyValues<'_, $T>,
            ) -> Result<(), Error> {
                let ([keys, values], _) = cache.halves()?;
                prepare(on, &projected.elements, projected.norms, &places.rotary_and_slots, q, &mut Cache { keys, values })
            }

            fn attention_operand<'a>(views: KeyValueViews<'a, $T>) -> KvCache<'a, $T> {
                let [keys, values] = views.elements;
                KvCache::new(keys, values)
            }
        }
    )*};
}

floats!(f32, f16);

impl CacheElement for i8 {
    type PromptElement = f16;

    fn scales_per_head(width: usize) -> usize {
        width.div_ceil(BLOCK)
    }

    /// Stores in two steps: `prepare` rotates keys, and [`Append`] without frequencies quantizes.
    fn store(
        on: &impl Queue,
        projected: &QueryKeyValues<'_>,
        places: &DevicePlaces<'_>,
        q: &mut BufferViewMut<'_, f32, 3>,
        cache: &mut KeyValues<'_, i8>,
    ) -> Result<(), Error> {
        let ([n, _, head], [_, kv_heads, ..]) = (q.extents(), cache.elements.extents());
        let memory = || on.scratch::<f32>(n * kv_heads * head);
        let (mut keys, mut values) = (memory()?, memory()?);
        let row_extents = [n, kv_heads, 1, head];
        let mut rows = Cache { keys: keys.view_mut(row_extents)?, values: values.view_mut(row_extents)? };
        let tokens = Tokens { slots: places.temporary_slots, ..places.rotary_and_slots };
        prepare(on, &projected.elements, projected.norms, &tokens, q, &mut rows)?;
        let (none, mut no_heads) = (on.scratch::<f32>(0)?, on.scratch::<f32>(0)?);
        let (new, no_heads_extents) = ([n, kv_heads, head], [n, 0, head]);
        let ([to_keys, to_values], scales) = cache.halves()?;
        let to = KvCacheMut::new(to_keys, to_values).blocks(scales).paged(places.pages);
        Append::new(PairLayout::Halves, &none.view([0])?).run(
            on,
            &none.view(no_heads_extents)?,
            &mut no_heads.view_mut(no_heads_extents)?,
            [&keys.view(new)?, &values.view(new)?],
            to,
            &places.token_indices,
        )
    }

    fn attention_operand<'a>(views: KeyValueViews<'a, i8>) -> KvCache<'a, i8> {
        let [keys, values] = views.elements;
        KvCache::new(keys, values).blocks(views.scales)
    }
}

/// Returns element `d` of a key or value, multiplied with its scale if there are scales. The last
/// extent of `scales` is 0 if there are none.
#[device]
pub fn dequantized_element<K: StoredElement>(
    elements: View<K, 4>,
    scales: View<f16, 4>,
    page: usize,
    group: usize,
    row: usize,
    d: usize,
) -> f32 {
    let x = K::widen(K::keep([elements[(page, group, row, d)]; 4]), 0);
    if scales.dim(3) == 0 { x } else { x * scales[(page, group, row, d / 32)].to_f32() }
}

/// The tables of pages of all sequences.
#[derive(Debug)]
pub struct SequencePages {
    /// The number of tokens of a page.
    page_tokens: usize,
    /// The pages of each sequence.
    tables: Vec<Vec<u32>>,
    /// For each page, the number of sequences that use it.
    users: Vec<u32>,
    /// The number of changes of `tables`.
    version: u64,
}

impl SequencePages {
    /// Makes tables for `sequences` sequences of up to `context_size` tokens, with `page_tokens`
    /// tokens a page. A single sequence has one page. A page of 0 tokens counts as one of 1 token.
    pub fn new(sequences: usize, context_size: usize, page_tokens: usize) -> SequencePages {
        let page_tokens = if sequences == 1 { context_size } else { page_tokens.min(context_size) }.max(1);
        let pages_per_sequence = context_size.div_ceil(page_tokens);
        let table = |sequence: usize| {
            (sequence * pages_per_sequence..(sequence + 1) * pages_per_sequence).map(|page| page as u32).collect()
        };
        SequencePages {
            page_tokens,
            tables: (0..sequences).map(table).collect(),
            users: vec![1; sequences * pages_per_sequence],
            version: 0,
        }
    }

    /// Returns the number of pages, and the number of tokens of a page.
    pub fn extents(&self) -> [usize; 2] {
        [self.users.len(), self.page_tokens]
    }

    /// Returns the pages of a sequence.
    pub fn table(&self, sequence: usize) -> &[u32] {
        &self.tables[sequence]
    }

    /// Returns the number of changes of tables so far. Equal numbers mean equal tables.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Returns the row of the cache for a token, counted through all pages. `u32::MAX` if the token
    /// is beyond the pages of the sequence.
    pub fn cache_row(&self, sequence: usize, token: usize) -> u32 {
        let page = self.tables[sequence].get(token / self.page_tokens);
        page.map_or(u32::MAX, |page| page * self.page_tokens as u32 + (token % self.page_tokens) as u32)
    }

    /// Returns how many of the first `tokens` tokens of the sequence `from` can become the
    /// beginning of the sequence `to`. Between different sequences, only full pages are shared. A
    /// sequence can also keep its own page that is not full, unless another sequence uses that
    /// page.
    pub fn reusable(&self, to: usize, from: usize, tokens: usize) -> usize {
        let full = tokens / self.page_tokens;
        let is_own = |page: &u32| to == from && self.users[*page as usize] == 1;
        if self.tables[from].get(full).is_some_and(is_own) { tokens } else { full * self.page_tokens }
    }

    /// Gives the sequence `to` the pages of the first `kept` tokens of the sequence `from`, and
    /// then free pages up to the context size. `kept` is a result of
    /// [`reusable`](SequencePages::reusable).
    pub fn share_prefix(&mut self, to: usize, from: usize, kept: usize) {
        let pages_per_sequence = self.tables[to].len();
        let mut table = self.tables[from][..kept.div_ceil(self.page_tokens)].to_vec();
        for page in &table {
            self.users[*page as usize] += 1;
        }
        for page in &self.tables[to] {
            self.users[*page as usize] -= 1;
        }
        // There are enough pages for all sequences without sharing, so enough pages are free.
        let free = (0..self.users.len()).filter(|page| self.users[*page] == 0);
        table.extend(free.take(pages_per_sequence - table.len()).map(|page| page as u32));
        for page in &table[kept.div_ceil(self.page_tokens)..] {
            self.users[*page as usize] = 1;
        }
        if table != self.tables[to] {
            self.version += 1;
            self.tables[to] = table;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SequencePages;

    /// Compares the counted users of each page with the stored ones, and rejects a page that a
    /// sequence has twice.
    fn check(pages: &SequencePages) {
        let mut users = vec![0; pages.users.len()];
        for table in &pages.tables {
            let mut sorted = table.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), table.len(), "{table:?}");
            table.iter().for_each(|page| users[*page as usize] += 1);
        }
        assert_eq!(users, pages.users);
    }

    #[test]
    fn sequences_share_full_pages() {
        let mut pages = SequencePages::new(3, 10, 4);
        assert_eq!(pages.extents(), [9, 4]);
        assert_eq!(pages.reusable(1, 0, 9), 8);
        pages.share_prefix(1, 0, 8);
        check(&pages);
        assert_eq!((&pages.table(0)[..2], pages.version()), (&pages.table(1)[..2], 1));
        // Sequence 0 keeps its own last page, and leaves a shared one.
        assert_eq!((pages.reusable(0, 0, 9), pages.reusable(0, 0, 7)), (9, 4));
        pages.share_prefix(0, 0, 4);
        check(&pages);
        assert_eq!(pages.table(0)[0], pages.table(1)[0]);
        assert_ne!(pages.table(0)[1], pages.table(1)[1]);
        // The page belongs to sequence 1 alone now, and to sequence 2 after it.
        assert_eq!(pages.reusable(1, 1, 7), 7);
        pages.share_prefix(2, 1, 4);
        pages.share_prefix(1, 2, 0);
        pages.share_prefix(0, 0, 0);
        check(&pages);
        assert_eq!(pages.cache_row(2, 5), pages.table(2)[1] * 4 + 1);
        assert_eq!(pages.cache_row(2, 12), u32::MAX);
    }

    #[test]
    fn a_single_sequence_has_one_page() {
        let mut pages = SequencePages::new(1, 10, 4);
        assert_eq!((pages.extents(), pages.reusable(0, 0, 7)), ([1, 10], 7));
        pages.share_prefix(0, 0, 7);
        check(&pages);
        assert_eq!((pages.version(), pages.cache_row(0, 9)), (0, 9));
    }

    /// Begins sequences in a fixed pseudorandom order.
    #[test]
    fn pages_suffice_for_any_order() {
        let mut pages = SequencePages::new(4, 50, 8);
        let mut seed = 1u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n
        };
        for _ in 0..500 {
            let (to, from, tokens) = (next(4), next(4), next(51));
            let kept = pages.reusable(to, from, tokens);
            assert!(kept <= tokens && tokens - kept < 8);
            pages.share_prefix(to, from, kept);
            check(&pages);
        }
    }
}
