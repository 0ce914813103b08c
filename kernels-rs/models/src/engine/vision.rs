//! The vision tower of Qwen3-VL, which computes the features of an image for the language model.
//!
//! ```text
//!   patches ─ product ─ + positions ─ layer 0 ─ layer 1 ─ … ─ merger ─▶ embeddings of the image's tokens
//!                                       │         │
//!                                       └─ merger ┴─ merger ─▶ features for the first blocks of the text
//! ```
//!
//! A merger makes one token of each square of patches. Sources: Qwen3-VL's technical report (2025),
//! and *DeepStack* (Meng and others, 2024) for the features of several layers. [`VisionLayer`] has
//! the formulas of a layer.

use super::linear::{FileRows, LinearLayer};
use crate::configuration::VisionConfiguration;
use crate::error::{Error, Result};
use crate::file::TensorFormat;
use crate::image::{ImageProcessor, PreparedImage};
use kernel_dsl::half::bf16;
use kernel_dsl::{Element, Float, GenericArgument};
use kernels_rs::activation::gelu;
use kernels_rs::blocks::{self, LayerNorm, VisionLayer, VisionShape, VisionWeights};
use kernels_rs::elementwise::{map, saxpy};
use kernels_rs::rotary::{PairLayout, Rotary};
use kernels_rs::rowwise::Norm;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer, Stream};
use std::sync::Arc;

/// The base of the tower's rotary frequencies.
const ROTARY_BASE: f64 = 10_000.0;

/// A layer of the tower, in any format of its matrices.
trait AnyVisionLayer: Send + Sync {
    /// Queues x ← layer(x) for the patches of one image, `[patches, width]`. `positions` is
    /// `[2, patches]`: rows and columns of patches. `image` has the range of the image's patches:
    /// `[0, patches]`.
    fn run(
        &self,
        on: &Stream,
        x: &mut BufferViewMut<'_, f32, 2>,
        rotary: &Rotary,
        positions: &BufferView<'_, u32, 2>,
        image: &BufferView<'_, u32, 1>,
    ) -> Result<()>;
}

impl<T: Float + GenericArgument> AnyVisionLayer for VisionLayer<T> {
    fn run(
        &self,
        on: &Stream,
        x: &mut BufferViewMut<'_, f32, 2>,
        rotary: &Rotary,
        positions: &BufferView<'_, u32, 2>,
        image: &BufferView<'_, u32, 1>,
    ) -> Result<()> {
        let patches = x.extents()[0];
        Ok(VisionLayer::run(self, on, x, rotary, positions, image, patches)?)
    }
}

/// The elements of a weight, and of its bias.
pub(super) struct WeightAndBias {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
}

impl WeightAndBias {
    fn linear<T: Element + Float>(self, device: &Device) -> Result<blocks::Linear<T>> {
        let weight: Vec<T> = self.weight.into_iter().map(T::from_f32).collect();
        Ok(blocks::Linear { weight: Arc::new(device.upload(&weight)?), bias: Arc::new(device.upload(&self.bias)?) })
    }

    fn norm(self, device: &Device) -> Result<LayerNorm> {
        Ok(LayerNorm { weight: Arc::new(device.upload(&self.weight)?), bias: Arc::new(device.upload(&self.bias)?) })
    }
}

/// The parameters of a layer, on the host.
pub(super) struct VisionLayerParameters {
    pub norm: WeightAndBias,
    pub projection: WeightAndBias,
    pub output: WeightAndBias,
    pub network_norm: WeightAndBias,
    pub up: WeightAndBias,
    pub down: WeightAndBias,
}

impl VisionLayerParameters {
    fn layer<T: Float + GenericArgument>(self, device: &Device, shape: VisionShape) -> Result<Box<dyn AnyVisionLayer>> {
        let weights = VisionWeights::<T> {
            norm: self.norm.norm(device)?,
            projection: self.projection.linear(device)?,
            output: self.output.linear(device)?,
            network_norm: self.network_norm.norm(device)?,
            up: self.up.linear(device)?,
            down: self.down.linear(device)?,
        };
        Ok(Box::new(VisionLayer::new(shape, weights)))
    }
}

/// Makes one token of each square of patches: down(gelu(up(norm(x)))).
#[derive(Debug)]
pub(super) struct PatchMerger {
    norm: LayerNorm,
    /// Whether the norm is computed over a whole square instead of each patch.
    norms_squares: bool,
    epsilon: f32,
    up: LinearLayer,
    down: LinearLayer,
}

impl PatchMerger {
    /// Makes a merger. The norm is computed over whole squares if `norm` has a weight for each
    /// element of a square.
    pub fn new(
        device: &Device,
        norm: WeightAndBias,
        epsilon: f32,
        up: LinearLayer,
        down: LinearLayer,
    ) -> Result<PatchMerger> {
        let norms_squares = norm.weight.len() == up.extents()[1];
        Ok(PatchMerger { norm: norm.norm(device)?, norms_squares, epsilon, up, down })
    }

    /// Queues the merger for the activations `x` of `patches` patches. Returns the tokens,
    /// `[tokens, output]`.
    fn run(&self, on: &Stream, x: &DeviceBuffer<f32>, patches: usize) -> Result<DeviceBuffer<f32>> {
        let device = on.device();
        let [between, joined] = self.up.extents();
        let tokens = x.len() / joined.max(1);
        let rows = if self.norms_squares { tokens } else { patches };
        let norm_extents = [rows, x.len() / rows.max(1)];
        let mut normed = device.alloc::<f32>(x.len())?;
        let (weight, bias) = (self.norm.weight.view([norm_extents[1]])?, self.norm.bias.view([norm_extents[1]])?);
        let norm = Norm::layer(self.epsilon).weight(&weight).bias(&bias);
        norm.run(on, &x.view(norm_extents)?, &mut normed.view_mut(norm_extents)?)?;
        let between_extents = [tokens, between];
        let (mut sums, mut activated) = (device.alloc(tokens * between)?, device.alloc(tokens * between)?);
        self.up.run(on, &normed.view([tokens, joined])?, &mut sums.view_mut(between_extents)?)?;
        map(on, gelu {}, sums.view(between_extents)?.strided(), activated.view_mut(between_extents)?.strided())?;
        let width = self.down.extents()[0];
        let mut y = device.alloc(tokens * width)?;
        self.down.run(on, &activated.view(between_extents)?, &mut y.view_mut([tokens, width])?)?;
        Ok(y)
    }
}

/// The result of a vision tower for an image.
#[derive(Debug)]
pub struct ImageFeatures {
    /// The embeddings of the image's tokens; then, for each of the first blocks of the language
    /// model, the features that are added to the tokens after the block. Each part is
    /// `[tokens, width]`.
    parts: Vec<DeviceBuffer<f32>>,
    /// The number of tokens, and the number of elements of a token.
    extents: [usize; 2],
}

impl ImageFeatures {
    /// Returns the number of tokens, and the number of elements of a token.
    pub fn extents(&self) -> [usize; 2] {
        self.extents
    }

    /// Copies all parts to the host: the embeddings of the tokens, then the features for each of
    /// the first blocks. Each part is `[tokens, width]`.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn download(&self) -> Result<Vec<Vec<f32>>> {
        self.parts.iter().map(|part| Ok(part.download()?)).collect()
    }

    /// Moves the features for each block to the device of the block. `stream` returns a stream on
    /// the device of a block.
    ///
    /// # Errors
    /// If memory runs out.
    pub(super) fn on_devices<'s>(mut self, stream: impl Fn(usize) -> &'s Stream) -> Result<ImageFeatures> {
        for (block, part) in self.parts.iter_mut().skip(1).enumerate() {
            let stream = stream(block);
            if part.device().identity() != stream.device().identity() {
                let mut there = stream.device().alloc(part.len())?;
                stream.copy(part, &mut there)?;
                *part = there;
            }
        }
        Ok(self)
    }

    /// Returns the embeddings of the tokens, `[tokens, width]`.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn embeddings(&self) -> Result<BufferView<'_, f32, 2>> {
        Ok(self.parts[0].view(self.extents)?)
    }

    /// Returns the features that are added to the tokens after a block, `[tokens, width]`. `None`
    /// if the block has none.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn after(&self, block: usize) -> Result<Option<BufferView<'_, f32, 2>>> {
        Ok(self.parts.get(1 + block).map(|part| part.view(self.extents)).transpose()?)
    }
}

/// The vision tower of a model. If the matrices of the file are in BF16, layers compute in BF16.
/// Otherwise layers compute in `f32`, because intermediate results could exceed the range of F16.
pub struct VisionTower {
    /// The extents.
    pub configuration: VisionConfiguration,
    /// The processor that prepares images for the tower.
    pub processor: ImageProcessor,
    /// The product of a patch's pixels, `[width, 3·side·side]`.
    patch: LinearLayer,
    /// Learned positions: a square grid of vectors of `width` elements.
    positions: Vec<f32>,
    rotary: Rotary,
    layers: Vec<Box<dyn AnyVisionLayer>>,
    merger: PatchMerger,
    /// The mergers after the layers of [`VisionConfiguration::deepstack`].
    deepstack: Vec<PatchMerger>,
}

impl std::fmt::Debug for VisionTower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VisionTower({:?}, {:?})", self.configuration, self.processor)
    }
}

impl VisionTower {
    /// Makes a tower from its parts. The weight of `patch` is `[width, 3, frames, side, side]`.
    /// `layer` returns the parameters of a layer. With `is_bf16`, layers compute in BF16.
    pub(super) fn new(
        device: &Device,
        (configuration, processor): (VisionConfiguration, ImageProcessor),
        patch: WeightAndBias,
        positions: Vec<f32>,
        is_bf16: bool,
        mut layer: impl FnMut(usize) -> Result<VisionLayerParameters>,
        (merger, deepstack): (PatchMerger, Vec<PatchMerger>),
    ) -> Result<VisionTower> {
        let VisionConfiguration { layers, width, heads, inner_size: inner, patch: side, frames, epsilon, .. } =
            configuration;
        let frame_pixels = side * side;
        // The frames of a still image are equal, so one product with the sum of the frames' weights
        // replaces a product for each frame.
        let still: Vec<f32> = patch
            .weight
            .chunks_exact(frames * frame_pixels)
            .flat_map(|color| (0..frame_pixels).map(|i| color[i..].iter().step_by(frame_pixels).sum::<f32>()))
            .collect();
        let bytes: Vec<u8> = still.iter().flat_map(|x| x.to_le_bytes()).collect();
        let rows = FileRows { format: TensorFormat::F32, extents: [width, 3 * frame_pixels], bytes: &bytes };
        let patch = LinearLayer::new(device, &[rows], Some(&patch.bias))?;
        // The row of a patch rotates the first half of the pairs, and the column the second half,
        // with the same frequencies.
        let pairs = width / heads / 2;
        let frequencies = Rotary::frequencies(ROTARY_BASE, pairs).repeat(2);
        let axes = Rotary::sections(&[pairs / 2, pairs / 2]);
        let rotary = Rotary::with_axes(device, PairLayout::Halves, &frequencies, &axes)?;
        let shape = VisionShape { width, heads, inner, epsilon };
        let layers = (0..layers).map(|i| match is_bf16 {
            true => layer(i)?.layer::<bf16>(device, shape),
            false => layer(i)?.layer::<f32>(device, shape),
        });
        let layers = layers.collect::<Result<_>>()?;
        Ok(VisionTower { configuration, processor, patch, positions, rotary, layers, merger, deepstack })
    }

    /// Queues the tower for an image, and returns the features of the image.
    ///
    /// # Errors
    /// If the image was prepared for patches or squares of another size, or memory runs out.
    pub fn run(&self, on: &Stream, picture: &PreparedImage) -> Result<ImageFeatures> {
        let VisionConfiguration { width, patch, merge, ref deepstack, .. } = self.configuration;
        if picture.patch_and_merge() != [patch, merge] {
            let problem =
                format!("squares of {:?} pixels and patches; expected {:?}", picture.patch_and_merge(), [patch, merge]);
            return Err(Error::field("an image", "patches", problem));
        }
        let places: Vec<[usize; 2]> = picture.patch_places().collect();
        let n = places.len();
        let axis_positions = |axis: usize| places.iter().map(move |place| place[axis] as u32);
        let positions = on.upload(&axis_positions(0).chain(axis_positions(1)).collect::<Vec<u32>>())?;
        let image = on.upload(&[0, n as u32])?;
        let pixels = on.upload(&picture.patches())?;
        let learned = on.upload(&interpolated(&self.positions, width, picture.grid(), &places))?;
        let mut x = on.device().alloc::<f32>(n * width)?;
        self.patch.run(on, &pixels.view([n, 3 * patch * patch])?, &mut x.view_mut([n, width])?)?;
        saxpy::launch(on, 1.0, &learned, &mut x)?;
        let mut features = Vec::with_capacity(1 + deepstack.len());
        for (i, layer) in self.layers.iter().enumerate() {
            layer.run(on, &mut x.view_mut([n, width])?, &self.rotary, &positions.view([2, n])?, &image.view([2])?)?;
            if let Some(at) = deepstack.iter().position(|layer| *layer == i) {
                features.push(self.deepstack[at].run(on, &x, n)?);
            }
        }
        features.insert(0, self.merger.run(on, &x, n)?);
        Ok(ImageFeatures { parts: features, extents: [picture.tokens(), self.configuration.output] })
    }
}

/// Returns the position vector of each of `places`, the rows and columns of patches in a grid. The
/// corners of the grid have the vectors at the corners of the learned square. Vectors in between
/// are interpolated linearly on both axes.
fn interpolated(learned: &[f32], width: usize, grid: [usize; 2], places: &[[usize; 2]]) -> Vec<f32> {
    let side = (learned.len() / width).isqrt();
    // Returns the two neighbors of a patch on an axis, and their weights.
    let neighbors = |axis: usize, at: usize| {
        let source = at as f32 * (side - 1) as f32 / (grid[axis] - 1).max(1) as f32;
        let low = source.floor();
        [(low as usize, 1.0 - (source - low)), ((low as usize + 1).min(side - 1), source - low)]
    };
    let axes: [Vec<_>; 2] = std::array::from_fn(|axis| (0..grid[axis]).map(|at| neighbors(axis, at)).collect());
    let mut numbers = vec![0.0f32; places.len() * width];
    for ([row, column], to) in places.iter().zip(numbers.chunks_exact_mut(width)) {
        for (y, part_y) in axes[0][*row] {
            for (x, part_x) in axes[1][*column] {
                let (from, part) = (&learned[(y * side + x) * width..][..width], part_y * part_x);
                to.iter_mut().zip(from).for_each(|(to, from)| *to += part * from);
            }
        }
    }
    numbers
}
