//! The cache of each layer of a model: buffers outside graphs, and slots in graphs.

use super::cache::{CacheElement, KeyValues, SequencePages};
use super::model::{KeyValueLayers, Model};
use crate::error::Result;
use kernel_dsl::half::f16;
use runtime::{DeviceBuffer, SlotMut};

/// The buffers of a layer's cache, with the elements of [`KeyValues`].
pub(super) struct LayerCache<K: kernel_dsl::Element> {
    pub(super) elements: DeviceBuffer<K>,
    pub(super) scales: DeviceBuffer<f16>,
}

/// The caches of all layers, grouped by stage.
pub(super) type StageCaches<K> = Vec<Vec<LayerCache<K>>>;

/// The cache of a layer as slots of a graph.
#[derive(Clone, Copy)]
pub(super) struct LayerSlots<K: kernel_dsl::Element> {
    pub(super) elements: SlotMut<K>,
    pub(super) scales: SlotMut<f16>,
}

/// The extents of the cache of a layer: those of the elements, then those of the scales. All layers
/// have the same extents.
#[derive(Clone, Copy)]
pub(super) struct CacheExtents(pub(super) [[usize; 4]; 2]);

impl CacheExtents {
    /// Returns the extents for a model and its pages.
    pub(super) fn new<K: CacheElement>(model: &Model, pages: &SequencePages) -> CacheExtents {
        let ([count, rows], configuration) = (pages.extents(), &model.configuration);
        let row_extents = [configuration.head_size, K::scales_per_head(configuration.head_size)];
        CacheExtents(row_extents.map(|elements| [2 * count, configuration.kv_heads, rows, elements]))
    }
}

/// The caches of a stage in a graph that is being recorded.
pub(super) struct RecordedCaches<'a, K: kernel_dsl::Element>(pub(super) &'a [LayerSlots<K>], pub(super) CacheExtents);

impl<K: kernel_dsl::Element> KeyValueLayers<K> for RecordedCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([element_extents, scale_extents]) = self.1;
        let LayerSlots { elements, scales } = self.0[layer];
        Ok(KeyValues { elements: elements.view_mut(element_extents)?, scales: scales.view_mut(scale_extents)? })
    }
}

/// The caches of a stage outside graphs.
pub(super) struct BorrowedCaches<'a, K: kernel_dsl::Element>(
    pub(super) &'a mut [LayerCache<K>],
    pub(super) CacheExtents,
);

impl<K: kernel_dsl::Element> KeyValueLayers<K> for BorrowedCaches<'_, K> {
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>> {
        let CacheExtents([element_extents, scale_extents]) = self.1;
        let LayerCache { elements, scales } = &mut self.0[layer];
        Ok(KeyValues { elements: elements.view_mut(element_extents)?, scales: scales.view_mut(scale_extents)? })
    }
}
