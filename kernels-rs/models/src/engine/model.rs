//! A whole model: loading, its parts, and memory for a step.

use super::attention::AttentionShape;
use super::batch::Batch;
use super::block::{BlockMemory, HiddenStates, NormLayer};
use super::cache::KeyValues;
use super::embedding::Embedding;
use super::experts::ExpertNetworks;
use super::linear::{LinearLayer, convert};
use super::load::Loader;
use super::prompt::IMAGE_MARKUP;
use super::sampling::{Sampler, Sampling};
use super::session::{Session, SessionOptions};
use super::stage::{LayerSplit, PipelineStage};
use super::vision::{ImageFeatures, VisionTower};
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Scaling};
use crate::error::{Error, Result};
use crate::image::ImageProcessor;
use crate::memory::CacheFormat;
use crate::template::ChatTemplate;
use crate::tensors::TensorRole;
use crate::tokenizer::Tokenizer;
use kernel_dsl::half::f16;
use kernels_rs::Queue;
use kernels_rs::rotary;
use runtime::{BufferView, BufferViewMut, Device};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A language model on a device, or on several. Clones share one model.
///
/// ```no_run
/// use models::Model;
/// use models::engine::{Generation, SessionOptions};
///
/// # fn main() -> models::Result<()> {
/// let device = runtime::Device::best()?;
/// let model = Model::load(&device, "SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
/// let mut session = model.session(SessionOptions::default())?;
/// for token in session.generate("The capital of France is", &Generation::default())? {
///     print!("{}", token?.text);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Model(Arc<ModelParts>);

/// The parts of a model.
#[derive(Debug)]
pub struct ModelParts {
    /// The first device, which has the embedding and the vision tower.
    pub device: Device,
    /// The architecture and extents.
    pub configuration: Configuration,
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// The chat template, if the file has one.
    pub template: Option<ChatTemplate>,
    /// The embedding: a row for each token.
    pub embedding: Embedding,
    /// The blocks in order, grouped by device.
    pub stages: Vec<PipelineStage>,
    /// The norm after the last block.
    pub norm: NormLayer,
    /// The output matrix.
    pub output: LinearLayer,
    /// The vision tower, if the model has one.
    pub tower: Option<VisionTower>,
    /// The number of the placeholder token of images, if the vocabulary has this token.
    pub(super) image_token: Option<u32>,
}

impl std::ops::Deref for Model {
    type Target = ModelParts;

    fn deref(&self) -> &ModelParts {
        &self.0
    }
}

impl Model {
    /// Loads a GGUF file, a safetensors file or index, or a folder of safetensors.
    ///
    /// # Errors
    /// If a file cannot be read, is damaged, or needs something this crate lacks; or if memory runs
    /// out.
    pub fn load(device: &Device, path: &Path) -> Result<Model> {
        Model::load_with(device, &Checkpoint::open(path)?, |_, _| {})
    }

    /// Loads an open checkpoint. `progress` receives the bytes loaded so far, and the bytes of all
    /// tensors.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Model::load).
    pub fn load_with(device: &Device, checkpoint: &Checkpoint, progress: impl FnMut(u64, u64)) -> Result<Model> {
        Model::load_split(&LayerSplit::new(std::slice::from_ref(device)), checkpoint, progress)
    }

    /// Loads an open checkpoint to several devices. The model has the interface of a model on one
    /// device. If the devices are equal, the results also have the same bits.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Model::load). Also if a GPU occurs twice, a device would have
    /// no layer, or the layers given in `split` do not match the devices and the model.
    pub fn load_split(
        split: &LayerSplit,
        checkpoint: &Checkpoint,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Model> {
        let configuration = checkpoint.configuration()?;
        let tokenizer = checkpoint.tokenizer()?;
        let template = checkpoint.chat_template(&tokenizer)?;
        let device_layers = split.ranges(&configuration, &checkpoint.weight_bytes(&configuration)?)?;
        let (Some((first, _)), Some((last, _))) = (device_layers.first(), device_layers.last()) else {
            return Err(Error::field("a split", "devices", "expected at least one"));
        };
        let mut loader = Loader::new(first, checkpoint, &configuration, &mut progress)?;
        let divisors = match configuration.rotary.scaling {
            Scaling::Divisors => loader.vector(TensorRole::RotaryDivisors, 0)?,
            _ => Vec::new(),
        };
        let mut frequencies = configuration.rotary.frequencies(&divisors)?;
        // A frequency of 0 leaves pairs beyond the rotated elements unchanged.
        frequencies.resize(configuration.head_size / 2, 0.0);
        let image_axes = match configuration.rotary.axes {
            None => vec![0; configuration.head_size / 2],
            Some(axes) => rotary::Rotary::interleaved_sections(&axes.sections),
        };
        let embedding = loader.embedding()?;
        let tower = match &configuration.vision {
            None => None,
            Some(vision) => Some(loader.tower(vision, ImageProcessor::from_checkpoint(checkpoint, vision)?)?),
        };
        let mut stages = Vec::new();
        for (device, layers) in &device_layers {
            loader.set_device(device);
            let blocks = layers.clone().map(|layer| loader.block(layer)).collect::<Result<_>>()?;
            stages.push(PipelineStage::new(device.clone(), layers.start, blocks, &frequencies, &image_axes)?);
        }
        loader.set_device(last);
        let norm = loader.norm(TensorRole::OutputNorm, 0)?;
        let output = loader.output()?;
        drop(loader);
        Ok(Model(Arc::new(ModelParts {
            device: first.clone(),
            image_token: tokenizer.find(IMAGE_MARKUP[1]),
            configuration,
            tokenizer,
            template,
            embedding,
            stages,
            norm,
            output,
            tower,
        })))
    }

    /// Returns a session without tokens. The cache has memory for the context size of `options`.
    ///
    /// # Errors
    /// If the context size, chunk size or page is 0, or the context size exceeds 2³² − 2. Also if
    /// there are more than 15 drafts, or memory runs out.
    pub fn session(&self, options: SessionOptions) -> Result<Session> {
        Session::new(self.clone(), options)
    }

    /// Returns empty sequences that are decoded together. The cache has memory for the context size
    /// of `options` for each sequence.
    ///
    /// # Errors
    /// If `sequences` is 0 or more than [`Batch::MAX_SEQUENCES`], or all sequences together may
    /// have 2³² − 1 tokens or more. Also returns the errors of [`session`](Model::session).
    pub fn batch(&self, options: SessionOptions, sequences: usize) -> Result<Batch> {
        Batch::new(self.clone(), options, sequences)
    }

    /// Returns a sampler for the model. `text` has the tokens of the sequence so far.
    ///
    /// # Errors
    /// Returns the errors of [`Sampler::new`].
    pub fn sampler(&self, sampling: Sampling, text: &[u32]) -> Result<Sampler> {
        Sampler::new(self.logits_device(), sampling, self.configuration.vocabulary, text)
    }
}

impl ModelParts {
    /// Returns the last device, which computes the logits.
    pub fn logits_device(&self) -> &Device {
        self.stages.last().map_or(&self.device, |stage| &stage.device)
    }

    /// Returns the names of the devices in the order of their layers, separated by commas.
    pub fn device_names(&self) -> String {
        self.stages.iter().map(|stage| stage.device.to_string()).collect::<Vec<String>>().join(", ")
    }

    /// Queues the activations before the first block, in `memory`: rows of the embedding, and
    /// features of images. `on` belongs to the first device.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn embed(
        &self,
        on: &impl Queue,
        tokens: BufferView<'_, u32, 1>,
        images: &[ImageTokens],
        memory: &mut StepMemory,
    ) -> Result<()> {
        let ([n], activations) = (tokens.extents(), &mut memory.activations);
        self.embedding.run(on, &tokens, &mut activations.begin(n)?)?;
        for ImageTokens { rows, features, first_image_token } in images {
            let features = features.embeddings()?.slice(*first_image_token..first_image_token + rows.len())?;
            convert(on, features, activations.begin(n)?.slice(rows.clone())?)?;
        }
        Ok(())
    }

    /// Queues the steps after the last block: the norm and the output matrix. `logits`,
    /// `[rows, vocabulary]`, are those after each of the last `rows` tokens. `on` belongs to the
    /// last device.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn finish(
        &self,
        on: &impl Queue,
        logits: &mut BufferViewMut<'_, f32, 2>,
        memory: &mut StepMemory,
    ) -> Result<()> {
        Ok(memory.activations.finish(on, &self.norm, &self.output, logits)?)
    }
}

/// Consecutive tokens of an image in a step.
#[derive(Debug)]
pub struct ImageTokens {
    /// The rows of the step that are tokens of the image.
    pub rows: Range<usize>,
    /// The features of the image.
    pub features: Arc<ImageFeatures>,
    /// The token of the image in the first of these rows, counted from the image's first token.
    pub first_image_token: usize,
}

/// The caches of the layers of a stage.
pub trait KeyValueLayers<K: kernel_dsl::Element> {
    /// Returns the keys and values of a layer, counted from the first layer of the stage.
    ///
    /// # Errors
    /// If the buffers of the layer are smaller than the extents of the cache.
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>>;
}

/// Memory that a stage uses during a step.
#[derive(Debug)]
pub struct StepMemory {
    pub(super) activations: HiddenStates,
    pub(super) blocks: BlockMemory,
}

impl StepMemory {
    /// Allocates memory for steps of up to `tokens` tokens, of sequences up to `context_size`
    /// tokens. With `exact`, steps use no approximation, and compute each token as if it were
    /// alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(
        on: &impl Queue,
        configuration: &Configuration,
        tokens: usize,
        context_size: usize,
        exact: bool,
    ) -> Result<StepMemory> {
        let Configuration { width, inner_size: inner, ref experts, .. } = *configuration;
        // Experts allocate the memory of their networks themselves.
        let inner = if experts.is_some() { 0 } else { inner };
        let blocks = BlockMemory::new(on, AttentionShape::of(configuration), inner, tokens, context_size, exact)?;
        Ok(StepMemory { activations: HiddenStates::new(on, tokens, width, exact)?, blocks })
    }

    /// Returns the bytes of activations of a step of `tokens` tokens: the memory that
    /// [`new`](StepMemory::new) and the layers allocate, with operands of products in `f32`. There
    /// is memory for the experts of `layers` layers. Further memory of library calls, such as
    /// partial sums, depends on the device, and is not counted.
    fn bytes(configuration: &Configuration, layers: usize, tokens: u64) -> u64 {
        let Configuration { width, inner_size, ref experts, .. } = *configuration;
        let (inner, of_experts) = match experts {
            None => (inner_size, 0),
            Some(experts) => (0, ExpertNetworks::elements(experts, [width, inner_size], tokens)),
        };
        let shape = AttentionShape::of(configuration);
        let token = HiddenStates::elements_per_token(width) + BlockMemory::elements_per_token(shape, inner);
        let elements = tokens.saturating_mul(token as u64).saturating_add(of_experts.saturating_mul(layers as u64));
        elements.saturating_mul(size_of::<f32>() as u64)
    }

    /// Estimates the bytes of activations of the graph of a step of `tokens` tokens. The experts of
    /// each layer have separate memory in a graph.
    pub(crate) fn graph_bytes(configuration: &Configuration, layers: usize, tokens: u64) -> u64 {
        StepMemory::bytes(configuration, layers, tokens)
    }

    /// Estimates the bytes of activations of a chunk of `tokens` tokens of a prompt. Layers use the
    /// same memory one after another.
    pub(crate) fn prompt_bytes(configuration: &Configuration, cache: CacheFormat, tokens: u64) -> u64 {
        let conversion = StepMemory::conversion_bytes_per_token(configuration, cache) as u64;
        StepMemory::bytes(configuration, 1, tokens).saturating_add(tokens.saturating_mul(conversion))
    }

    /// Returns the bytes that attention allocates in addition for a token of a prompt. Queries and
    /// results are converted to the format in which attention of a cache computes. A cache of Q8_0
    /// also needs keys and values in `f32` before they are quantized.
    fn conversion_bytes_per_token(configuration: &Configuration, cache: CacheFormat) -> usize {
        let Configuration { heads, kv_heads, head_size: head, .. } = *configuration;
        match cache {
            CacheFormat::F32 => 2 * heads * head * size_of::<f32>(),
            CacheFormat::F16 => 2 * heads * head * size_of::<f16>(),
            CacheFormat::Q8_0 => (2 * heads * head * size_of::<f16>()).max(2 * kv_heads * head * size_of::<f32>()),
        }
    }
}
