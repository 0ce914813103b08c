//! A whole model and its loading.

use super::attention::{AttentionShape, Places};
use super::batch::Batch;
use super::block::{Activations, Block, Norm, Work};
use super::cache::{CacheElement, KeyValues};
use super::embedding::Embedding;
use super::linear::{Linear, convert};
use super::load::Loader;
use super::prompt::PLACEHOLDER;
use super::session::{Options, Session};
use super::vision::{Features, Tower};
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Scaling};
use crate::error::Result;
use crate::image::Processor;
use crate::template::ChatTemplate;
use crate::tensors::Role;
use crate::tokenizer::Tokenizer;
use kernels_rs::Queue;
use kernels_rs::rotary;
use runtime::{BufferView, BufferViewMut, Device, DeviceBuffer};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A language model on a device. Clones share it.
///
/// ```no_run
/// use models::Model;
/// use models::engine::{Generation, Options};
///
/// # fn main() -> models::Result<()> {
/// let device = runtime::Device::best()?;
/// let model = Model::load(&device, "SmolLM2-135M-Instruct.Q4_1.gguf".as_ref())?;
/// let mut session = model.session(Options::default())?;
/// for piece in session.generate("The capital of France is", &Generation::default())? {
///     print!("{}", piece?.text);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Model(Arc<Parts>);

/// The parts of a model.
#[derive(Debug)]
pub struct Parts {
    /// The device.
    pub device: Device,
    /// The extents.
    pub configuration: Configuration,
    /// The vocabulary.
    pub tokenizer: Tokenizer,
    /// The chat template, if the file has one.
    pub template: Option<ChatTemplate>,
    /// Rows of tokens.
    pub embedding: Embedding,
    /// The blocks in order.
    pub blocks: Vec<Block>,
    /// The norm after the last block.
    pub norm: Norm,
    /// The output matrix.
    pub output: Linear,
    /// The vision tower, if the model has one.
    pub tower: Option<Tower>,
    /// The token of images, if the vocabulary has one.
    pub(super) image: Option<u32>,
    /// The angle of each rotated pair for a position.
    pub(super) frequencies: Arc<DeviceBuffer<f32>>,
    /// The row of positions of each pair in a text: 0.
    pub(super) axes: Arc<DeviceBuffer<u32>>,
    /// The row of positions of each pair where there are images: time, height or width.
    pub(super) image_axes: Arc<DeviceBuffer<u32>>,
}

impl std::ops::Deref for Model {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Model {
    /// Loads a GGUF file, a safetensors file or index, or a folder of safetensors.
    ///
    /// # Errors
    /// If a file is damaged or needs something this crate lacks, or memory runs out.
    pub fn load(device: &Device, path: &Path) -> Result<Model> {
        Model::load_with(device, &Checkpoint::open(path)?, |_, _| {})
    }

    /// Loads an open checkpoint. `progress` receives the bytes that are loaded and those of the
    /// whole model.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Model::load).
    pub fn load_with(device: &Device, checkpoint: &Checkpoint, mut progress: impl FnMut(u64, u64)) -> Result<Model> {
        let configuration = checkpoint.configuration()?;
        let tokenizer = checkpoint.tokenizer()?;
        let template = checkpoint.chat_template(&tokenizer)?;
        let mut loader = Loader::new(device, checkpoint, &configuration, &mut progress)?;
        let divisors = match configuration.rotary.scaling {
            Scaling::Divisors => loader.vector(Role::RotaryDivisors, 0)?,
            _ => Vec::new(),
        };
        let mut frequencies = configuration.rotary.frequencies(&divisors)?;
        // Pairs beyond the rotated ones stay as they are.
        frequencies.resize(configuration.head / 2, 0.0);
        let embedding = loader.embedding()?;
        let blocks = (0..configuration.layers).map(|layer| loader.block(layer)).collect::<Result<Vec<Block>>>()?;
        let norm = loader.norm(Role::OutputNorm, 0)?;
        let output = loader.output()?;
        let tower = match &configuration.vision {
            None => None,
            Some(vision) => Some(loader.tower(vision, Processor::of(checkpoint, vision)?)?),
        };
        drop(loader);
        let image_axes = match configuration.rotary.axes {
            None => vec![0; configuration.head / 2],
            Some(axes) => rotary::Rotary::sections_in_turns(&axes.sections),
        };
        Ok(Model(Arc::new(Parts {
            device: device.clone(),
            frequencies: Arc::new(device.upload(&frequencies)?),
            axes: Arc::new(device.zeros(configuration.head / 2)?),
            image_axes: Arc::new(device.upload(&image_axes)?),
            image: tokenizer.find(PLACEHOLDER[1]),
            configuration,
            tokenizer,
            template,
            embedding,
            blocks,
            norm,
            output,
            tower,
        })))
    }

    /// Returns an empty text, with memory for what is going to be in it.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn session(&self, options: Options) -> Result<Session> {
        Session::new(self.clone(), options)
    }

    /// Returns empty texts that are decoded together, with memory for what is going to be in them.
    ///
    /// # Errors
    /// If `sequences` is 0 or more than [`Batch::MAX_SEQUENCES`], or memory runs out.
    pub fn batch(&self, options: Options, sequences: usize) -> Result<Batch> {
        Batch::new(self.clone(), options, sequences)
    }
}

impl Parts {
    /// Queues the model for tokens, whose keys and values are stored in the cache: `cache` returns
    /// that of a layer. `logits`, `[rows, vocabulary]`, are those after each of the last `rows`
    /// tokens.
    ///
    /// # Errors
    /// If extents do not match, or memory runs out.
    pub fn run<K: CacheElement>(
        &self,
        on: &impl Queue,
        Input { tokens, images }: Input<'_>,
        places: &Places<'_>,
        cache: &mut dyn Cached<K>,
        logits: &mut BufferViewMut<'_, f32, 2>,
        memory: &mut StepMemory,
    ) -> Result<()> {
        let [n] = tokens.extents();
        let StepMemory { activations, work } = memory;
        self.embedding.run(on, &tokens, &mut activations.begin(n)?)?;
        for Inserted { rows, features, from } in images {
            let features = features.embeddings()?.slice(*from..from + rows.len())?;
            convert(on, features, activations.begin(n)?.slice(rows.clone())?)?;
        }
        for (layer, block) in self.blocks.iter().enumerate() {
            block.run(on, activations, places, cache.layer(layer)?, work)?;
            for Inserted { rows, features, from } in images {
                if let Some(features) = features.after(layer)? {
                    activations.add(on, rows.clone(), &features.slice(*from..from + rows.len())?)?;
                }
            }
        }
        Ok(activations.finish(on, &self.norm, &self.output, logits)?)
    }
}

/// The tokens of a step, and the images with tokens in it.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The tokens.
    pub tokens: BufferView<'a, u32, 1>,
    /// The images.
    pub images: &'a [Inserted],
}

/// Tokens of an image in a step.
#[derive(Debug)]
pub struct Inserted {
    /// The rows of the step.
    pub rows: Range<usize>,
    /// The features of the image.
    pub features: Arc<Features>,
    /// The token of the image in the first of the rows.
    pub from: usize,
}

/// The keys and values of sequences, layer by layer.
pub trait Cached<K: kernel_dsl::Element> {
    /// Returns those of a layer.
    ///
    /// # Errors
    /// If the layer has none.
    fn layer(&mut self, layer: usize) -> Result<KeyValues<'_, K>>;
}

/// Memory of one step.
#[derive(Debug)]
pub struct StepMemory {
    activations: Activations,
    work: Work,
}

impl StepMemory {
    /// Allocates memory for steps of up to `tokens` tokens, of sequences up to `room` tokens. With
    /// `exact`, steps use no approximation, and compute each token as if it were alone.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new(
        on: &impl Queue,
        configuration: &Configuration,
        tokens: usize,
        room: usize,
        exact: bool,
    ) -> Result<StepMemory> {
        let Configuration { width, inner, ref experts, .. } = *configuration;
        // Experts have memory of their tokens.
        let inner = if experts.is_some() { 0 } else { inner };
        let work = Work::new(on, AttentionShape::of(configuration), inner, tokens, room, exact)?;
        Ok(StepMemory { activations: Activations::new(on, tokens, width, exact)?, work })
    }
}
