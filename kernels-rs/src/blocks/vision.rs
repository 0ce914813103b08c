//! A layer of a vision tower, in which every patch of an image sees every other.

use crate::LaunchStruct;
use crate::attention::{Attention, Layout, Qkv};
use crate::gemm::Gemm;
use crate::gemm::epilogue::{Bias, BiasGelu, Epilogue};
use crate::permute::fill;
use crate::rotary::Rotary;
use crate::rowwise::Norm;
use crate::{Queue, QueueMemory, SharedBuffer};
use kernel_dsl::{Element, Float, GenericArgument};
use runtime::{BufferView, BufferViewMut, DeviceBuffer, Error};
use std::sync::Arc;

/// The extents of a vision tower's layers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct VisionShape {
    /// Elements of a patch between layers: heads · head.
    pub width: usize,
    /// Heads.
    pub heads: usize,
    /// Elements of a patch between the two products of the network.
    pub inner: usize,
    /// The constant that the norms add to the variance.
    pub epsilon: f32,
}

/// A linear layer with a bias.
#[derive(Clone, Debug)]
pub struct Linear<T: Element> {
    /// The row-major matrix, `[out, in]`.
    pub weight: Arc<DeviceBuffer<T>>,
    /// The bias, `[out]`.
    pub bias: Arc<DeviceBuffer<f32>>,
}

/// Weight and bias of a layer norm, each `[width]`.
#[derive(Clone, Debug)]
pub struct LayerNorm {
    /// The factors.
    pub weight: Arc<DeviceBuffer<f32>>,
    /// The summands.
    pub bias: Arc<DeviceBuffer<f32>>,
}

/// The parameters of a layer.
#[derive(Clone, Debug)]
pub struct VisionWeights<T: Element> {
    /// The norm before attention.
    pub norm: LayerNorm,
    /// Queries, keys and values: `[3·width, width]`.
    pub projection: Linear<T>,
    /// The layer after attention, `[width, width]`.
    pub output: Linear<T>,
    /// The norm before the network.
    pub network_norm: LayerNorm,
    /// The first layer of the network, `[inner, width]`.
    pub up: Linear<T>,
    /// The second layer of the network, `[width, inner]`.
    pub down: Linear<T>,
}

/// A layer in the style of Qwen3-VL's vision tower: x ← x + attention(norm(x)), x ← x +
/// network(norm(x)). The layer has layer norms, biases, two-dimensional rotary positions, and a
/// GELU between the network's products (Dosovitskiy and others, 2021; Ba, Kiros, Hinton, 2016;
/// Hendrycks, Gimpel, 2016).
///
/// Between layers x is `f32`, and is updated in place. Intermediate results and the weights'
/// matrices are stored as `T`.
#[derive(Clone, Debug)]
pub struct VisionLayer<T: Element> {
    shape: VisionShape,
    weights: VisionWeights<T>,
}

impl<T: Float + GenericArgument> VisionLayer<T> {
    /// Returns a layer that has these weights and checks their extents when it runs.
    pub fn new(shape: VisionShape, weights: VisionWeights<T>) -> VisionLayer<T> {
        VisionLayer { shape, weights }
    }

    /// Queues the layer. x is `[patches, width]`. Positions are `[axes, patches]`, with the axes of
    /// `rotary`. Image i has the patches from `images[i]` to `images[i + 1]`, at most `longest`,
    /// and sees no other image's patches. Patches of no image see nothing.
    ///
    /// # Errors
    /// Returns an error if extents do not match, or memory is insufficient.
    pub fn run(
        &self,
        on: &impl Queue,
        x: &mut BufferViewMut<'_, f32, 2>,
        rotary: &Rotary,
        positions: &BufferView<'_, u32, 2>,
        images: &BufferView<'_, u32, 1>,
        longest: usize,
    ) -> Result<(), Error> {
        let VisionShape { width, heads, inner, .. } = self.shape;
        let VisionWeights { norm, projection, output, network_norm, up, down } = &self.weights;
        let [n, _] = x.extents();
        let head = width / heads.max(1);

        let normed = self.normed(on, norm, x)?;
        let mut qkv = on.scratch::<T>(n * 3 * width)?;
        linear(on, &normed, width, projection, |bias| Bias { bias }, 0.0, &mut qkv.view_mut([1, n, 3 * width])?)?;
        let rows = qkv.view_mut([n, 3 * heads, head])?;
        // Queries and keys are adjacent, with consecutive heads.
        let of_two = rows.strided().permuted([1, 0, 2])?.slice(0..2 * heads)?.permuted([1, 0, 2])?;
        rotary.run_in_place(on, positions, &mut of_two.side_by_side()?)?;
        let mut o = on.scratch::<T>(n * width)?;
        // Attention does not write the patches of no image. Bytes of 0 are a 0 in every format.
        fill(on, 0i8, o.view_mut([n * width])?.cast::<i8>()?.strided())?;
        let qkv = qkv.view([n, 3, heads, head])?.strided().permuted([1, 2, 0, 3])?;
        let part = |i: usize| qkv.slice(i..i + 1)?.side_by_side();
        let mut o_heads = o.view_mut([1, n, heads, head])?.strided().permuted([0, 2, 1, 3])?.side_by_side()?;
        let qkv = Qkv { q: part(0)?, k: part(1)?, v: part(2)? };
        let packed = Layout::Packed { queries: *images, keys: *images, longest: [longest; 2] };
        Attention::new().layout(packed).run(on, qkv, &mut o_heads, None)?;
        let mut sum = x.reborrow().strided().reshaped([1, n, width])?.side_by_side()?;
        linear(on, &o, width, output, |bias| Bias { bias }, 1.0, &mut sum)?;

        let normed = self.normed(on, network_norm, x)?;
        let mut between = on.scratch::<T>(n * inner)?;
        let gelu = |bias| BiasGelu { bias: Bias { bias } };
        linear(on, &normed, width, up, gelu, 0.0, &mut between.view_mut([1, n, inner])?)?;
        let mut sum = x.reborrow().strided().reshaped([1, n, width])?.side_by_side()?;
        linear(on, &between, inner, down, |bias| Bias { bias }, 1.0, &mut sum)
    }

    fn normed(
        &self,
        on: &impl Queue,
        norm: &LayerNorm,
        x: &mut BufferViewMut<'_, f32, 2>,
    ) -> Result<QueueMemory<T>, Error> {
        let VisionShape { width, epsilon, .. } = self.shape;
        let [n, _] = x.extents();
        let (weight, bias): (SharedBuffer<f32>, SharedBuffer<f32>) = (on.share(&norm.weight)?, on.share(&norm.bias)?);
        let (weight, bias) = (weight.view([width])?, bias.view([width])?);
        let mut y = on.scratch::<T>(n * width)?;
        let norm = Norm::layer(epsilon).weight(&weight).bias(&bias);
        norm.run(on, &x.reborrow().shared(), &mut y.view_mut([n, width])?)?;
        Ok(y)
    }
}

/// Computes y ← epilogue(x·Wᵀ + β·y), with an epilogue that takes the layer's bias.
fn linear<T: Float + GenericArgument, O: Float + GenericArgument, E: Epilogue + LaunchStruct>(
    on: &impl Queue,
    x: &QueueMemory<T>,
    depth: usize,
    layer: &Linear<T>,
    epilogue: impl FnOnce(kernel_dsl::View<f32, 1>) -> E,
    beta: f32,
    y: &mut BufferViewMut<'_, O, 3>,
) -> Result<(), Error> {
    let [_, n, cols] = y.extents();
    let (weight, bias) = (on.share(&layer.weight)?, on.share(&layer.bias)?);
    let (a, b, bias) = (x.view([1, n, depth])?, weight.view([1, cols, depth])?, bias.view([cols])?);
    // SAFETY: the bias has an element for each column of y. The launch records it as read, and is
    // queued before its borrow ends.
    let product = || unsafe { Gemm::new().transpose_b().beta(beta).run_with(on, &a, &b, y, epilogue(bias.detached())) };
    on.reading(&bias, product)
}
