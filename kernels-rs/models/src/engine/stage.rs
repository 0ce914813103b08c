//! Consecutive layers of a model on one device, and the split of a model over devices.
//!
//! ```text
//!   device 0: embedding ─ blocks 0 to 13 ─┐             ┌─ tokens
//!   device 1:                             └─ blocks 14 to 27 ─ norm ─ output matrix ─ logits ─ draw
//! ```
//!
//! A stage is the part of a model on one device. A step passes the stages one after another.
//! Between two stages, the activations are copied to the next device. The drawn tokens are copied
//! to the first device, which has the embedding.

use super::attention::DevicePlaces;
use super::block::TransformerBlock;
use super::cache::CacheElement;
use super::model::{ImageTokens, KeyValueLayers, Model, StepMemory};
use crate::configuration::Configuration;
use crate::error::{Error, Result};
use crate::memory::{MemoryPlan, WeightBytes};
use kernels_rs::Queue;
use runtime::{Device, DeviceBuffer, Stream};
use std::ops::Range;
use std::sync::Arc;

/// Consecutive blocks of a model on one device, with the tables of rotary positions.
#[derive(Debug)]
pub struct PipelineStage {
    /// The device.
    pub device: Device,
    /// The index of the first block in the model.
    pub first_layer: usize,
    /// The blocks in order.
    pub blocks: Vec<TransformerBlock>,
    /// The angle of each rotated pair per position, in radians.
    frequencies: Arc<DeviceBuffer<f32>>,
    /// The axis whose position rotates each pair in a sequence without images: 0.
    text_axes: Arc<DeviceBuffer<u32>>,
    /// The axis whose position rotates each pair in a sequence with images: time (0), height (1) or
    /// width (2).
    image_axes: Arc<DeviceBuffer<u32>>,
}

/// The tables of a [`PipelineStage`] by which pairs are rotated.
#[derive(Clone, Copy)]
pub(super) struct RotaryTables<'a> {
    /// The angle of each pair per position, in radians.
    pub frequencies: &'a Arc<DeviceBuffer<f32>>,
    /// The axis whose position rotates each pair.
    pub axes: &'a Arc<DeviceBuffer<u32>>,
}

impl PipelineStage {
    /// Makes a stage from its blocks. `frequencies` and `image_axes` have an element for each pair
    /// of a head.
    ///
    /// # Errors
    /// If memory runs out.
    pub(super) fn new(
        device: Device,
        first_layer: usize,
        blocks: Vec<TransformerBlock>,
        frequencies: &[f32],
        image_axes: &[u32],
    ) -> Result<PipelineStage> {
        Ok(PipelineStage {
            frequencies: Arc::new(device.upload(frequencies)?),
            text_axes: Arc::new(device.zeros(image_axes.len())?),
            image_axes: Arc::new(device.upload(image_axes)?),
            device,
            first_layer,
            blocks,
        })
    }

    /// Returns the tables for tokens with one position each or, if `has_images`, with three.
    pub(super) fn rotary(&self, has_images: bool) -> RotaryTables<'_> {
        let axes = if has_images { &self.image_axes } else { &self.text_axes };
        RotaryTables { frequencies: &self.frequencies, axes }
    }

    /// Queues the blocks for the activations in `memory`, and adds features of images after the
    /// first blocks. `cache` returns the cache of each layer.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run<K: CacheElement>(
        &self,
        on: &impl Queue,
        images: &[ImageTokens],
        places: &DevicePlaces<'_>,
        cache: &mut dyn KeyValueLayers<K>,
        memory: &mut StepMemory,
    ) -> Result<()> {
        let StepMemory { activations, blocks } = memory;
        for (i, block) in self.blocks.iter().enumerate() {
            block.run(on, activations, places, cache.layer(i)?, blocks)?;
            for ImageTokens { rows, features, first_image_token } in images {
                if let Some(features) = features.after(self.first_layer + i)? {
                    activations.add_features(
                        on,
                        rows.clone(),
                        &features.slice(*first_image_token..first_image_token + rows.len())?,
                    )?;
                }
            }
        }
        Ok(())
    }
}

/// The devices of a model, and the layers of each device.
///
/// A device has consecutive layers. The first device also has the embedding and a vision tower, and
/// the last one the output matrix and the logits.
///
/// ```no_run
/// use models::engine::LayerSplit;
/// use models::{Checkpoint, Model};
/// use runtime::Device;
///
/// # fn main() -> models::Result<()> {
/// let split = LayerSplit::new(&[Device::cuda(0)?, Device::cuda(1)?]);
/// let model = Model::load_split(&split, &Checkpoint::open("Qwen3-8B-Q8_0.gguf".as_ref())?, |_, _| {})?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct LayerSplit {
    devices: Vec<Device>,
    layers: Option<Vec<usize>>,
    plan: MemoryPlan,
}

impl LayerSplit {
    /// Returns a split over `devices`, in this order. Weights, and the cache of the default
    /// [`MemoryPlan`], take about the same fraction of each device's free memory.
    pub fn new(devices: &[Device]) -> LayerSplit {
        LayerSplit { devices: devices.to_vec(), layers: None, plan: MemoryPlan::default() }
    }

    /// Sets the plan whose cache and activations count in a split by bytes.
    pub fn with_plan(self, plan: MemoryPlan) -> LayerSplit {
        LayerSplit { plan, ..self }
    }

    /// Sets the number of layers of each device, instead of a split by bytes.
    pub fn with_layers(self, layers: &[usize]) -> LayerSplit {
        LayerSplit { layers: Some(layers.to_vec()), ..self }
    }

    /// Returns the devices with their layers. The CPU may occur several times, to try a split
    /// without a GPU.
    ///
    /// # Errors
    /// If a GPU occurs twice. Also returns the errors of [`Configuration::layers_by_device`].
    pub(super) fn ranges(
        &self,
        configuration: &Configuration,
        weights: &WeightBytes,
    ) -> Result<Vec<(Device, Range<usize>)>> {
        let is_same = |a: &Device, b: &Device| !a.is_cpu() && a.identity() == b.identity();
        for (i, device) in self.devices.iter().enumerate() {
            if let Some(first) = self.devices[..i].iter().position(|other| is_same(other, device)) {
                let problem = format!("entries {first} and {i} are both {device}; expected different devices");
                return Err(Error::field("a split", "devices", problem));
            }
        }
        let free: Vec<Option<u64>> = self.devices.iter().map(Device::free_memory).collect();
        let layers = configuration.layers_by_device(self.plan, weights, &free, self.layers.as_deref())?;
        let mut from = 0;
        let device_ranges = self.devices.iter().zip(layers).map(|(device, layers)| {
            from += layers;
            (device.clone(), from - layers..from)
        });
        Ok(device_ranges.collect())
    }
}

/// A stream for each stage of a model.
pub(super) struct StageStreams(pub(super) Vec<Stream>);

impl StageStreams {
    /// Makes a stream on the device of each stage.
    pub(super) fn new(model: &Model) -> Result<StageStreams> {
        let streams = model.stages.iter().map(|stage| stage.device.stream());
        Ok(StageStreams(streams.collect::<runtime::Result<_>>()?))
    }

    /// Returns the stream of the first stage, which has the embedding.
    pub(super) fn first(&self) -> &Stream {
        &self.0[0]
    }

    /// Returns the stream of the last stage, which has the logits.
    pub(super) fn last(&self) -> &Stream {
        &self.0[self.0.len() - 1]
    }

    /// Waits for all work of all stages.
    ///
    /// # Errors
    /// If a launch failed, or the CPU device has found an invalid access.
    pub(super) fn wait(&self) -> Result<()> {
        Ok(self.0.iter().try_for_each(Stream::wait)?)
    }
}
