//! Configurations: the architecture and the sizes of a model, from the metadata of GGUF or from
//! `config.json`.

mod gguf;
mod json;
mod rotary;

pub use rotary::{Pairing, RotaryAxes, RotaryConfiguration, Scaling, yarn_attention_factor};

use crate::error::{Error, Result};
use kernels_rs::blocks::heads::WIDTHS;
use serde::Serialize;

/// The supported architectures by their names in GGUF, for messages.
pub(crate) const ARCHITECTURES: &str = "llama, qwen2, qwen3, qwen3moe, qwen3vl";

/// The largest extents that the reader accepts. Real models have a width up to 16,384, an inner
/// width up to 53,248, and a vocabulary up to 262,144.
const MAX_WIDTH: u64 = 1 << 18;
const MAX_INNER: u64 = 1 << 20;
const MAX_VOCABULARY: u64 = 1 << 22;
const MAX_LAYERS: u64 = 1 << 12;
const MAX_HEADS: u64 = 1 << 12;
const MAX_EXPERTS: u64 = 1 << 12;
const MAX_CONTEXT: u64 = 1 << 32;

/// An architecture: a family of models with the same layers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum ModelArchitecture {
    /// Llama 2 and 3, SmolLM2.
    Llama,
    /// Qwen2 and 2.5: Llama with biases of queries, keys and values.
    Qwen2,
    /// Qwen3: Llama with norms of the heads of queries and keys.
    Qwen3,
    /// Qwen3 with a mixture of experts in place of the feed-forward network.
    Qwen3Moe,
    /// Qwen3 with rotary positions on three axes, and a vision tower.
    Qwen3Vl,
}

impl ModelArchitecture {
    /// Returns the name in GGUF files.
    pub const fn name(self) -> &'static str {
        match self {
            ModelArchitecture::Llama => "llama",
            ModelArchitecture::Qwen2 => "qwen2",
            ModelArchitecture::Qwen3 => "qwen3",
            ModelArchitecture::Qwen3Moe => "qwen3moe",
            ModelArchitecture::Qwen3Vl => "qwen3vl",
        }
    }

    /// Tells whether queries, keys and values have biases.
    pub const fn has_biases(self) -> bool {
        matches!(self, ModelArchitecture::Qwen2)
    }

    /// Tells whether each head of queries and keys has a norm.
    pub const fn has_head_norms(self) -> bool {
        matches!(self, ModelArchitecture::Qwen3 | ModelArchitecture::Qwen3Moe | ModelArchitecture::Qwen3Vl)
    }
}

/// The architecture and the sizes of a language model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Configuration {
    /// The architecture.
    pub architecture: ModelArchitecture,
    /// The name, if the file has one.
    pub name: Option<String>,
    /// The number of tokens of the vocabulary: rows of the embedding.
    pub vocabulary: usize,
    /// The context length: tokens of the longest sequence that the model was trained for.
    pub context_length: usize,
    /// The number of layers.
    pub layers: usize,
    /// The hidden size: elements of a token between layers.
    pub width: usize,
    /// The number of heads of queries, a multiple of `kv_heads`.
    pub heads: usize,
    /// The number of heads of keys, and of values. `heads / kv_heads` heads of queries share each.
    pub kv_heads: usize,
    /// Elements of a head.
    pub head_size: usize,
    /// The inner size of the feed-forward network, or of one expert: rows of its gate matrix.
    pub inner_size: usize,
    /// The number that norms add to the mean square.
    #[serde(serialize_with = "shortest")]
    pub epsilon: f32,
    /// Rotary positions.
    pub rotary: RotaryConfiguration,
    /// Experts, if they replace the feed-forward network of each layer.
    pub experts: Option<Experts>,
    /// Whether the embedding is also the output matrix.
    pub has_tied_output: bool,
    /// The number of first layers after which features of images are added.
    pub deepstack_layers: usize,
    /// The vision tower, if the files of the model have one.
    pub vision: Option<VisionConfiguration>,
}

/// Experts of a layer: for each token, a router chooses `used` of `count` networks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Experts {
    /// The number of networks.
    pub count: usize,
    /// The number of networks that each token passes.
    pub used: usize,
    /// Whether the weights of the chosen networks are scaled so that their sum is 1.
    pub normalized: bool,
}

/// The sizes of a vision tower of Qwen3-VL.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VisionConfiguration {
    /// The number of layers.
    pub layers: usize,
    /// Elements of a patch between layers.
    pub width: usize,
    /// The number of heads. Each has `width / heads` elements.
    pub heads: usize,
    /// The inner size of the feed-forward network.
    pub inner_size: usize,
    /// The side of a patch in pixels.
    pub patch: usize,
    /// Frames of a patch. A still image is repeated in each frame.
    pub frames: usize,
    /// The side, in patches, of a square that becomes one token.
    pub merge: usize,
    /// The number of learned positions, which form a square grid.
    pub positions: usize,
    /// Elements of a token after the merger: the hidden size of the language model.
    pub output: usize,
    /// Layers whose results become features for the language model's first layers, in ascending
    /// order.
    pub deepstack: Vec<usize>,
    /// The number that norms add to the variance.
    #[serde(serialize_with = "shortest")]
    pub epsilon: f32,
}

/// Writes the shortest decimal number that rounds to `value` in `f32`.
fn shortest<S: serde::Serializer>(value: &f32, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_f64(value.to_string().parse().unwrap_or(f64::from(*value)))
}

/// The fields of a configuration in GGUF or JSON. A field of another type is an error.
trait ConfigurationFields {
    /// Returns the name of the file for messages.
    fn file(&self) -> &str;
    /// Returns an unsigned integer, `None` if the field is absent.
    fn integer(&self, key: &str) -> Result<Option<u64>>;
    /// Returns a floating-point number, `None` if the field is absent.
    fn number(&self, key: &str) -> Result<Option<f64>>;
    /// Returns a field's name for messages.
    fn name(&self, key: &str) -> String;

    /// Returns an integer from 1 to `limit`.
    fn extent(&self, key: &str, limit: u64) -> Result<usize> {
        let found = self.optional_extent(key, limit)?;
        found.ok_or_else(|| Error::field(self.file(), self.name(key), "the field is required, and it is absent"))
    }

    /// Returns an integer from 1 to `limit`, `None` if the field is absent.
    fn optional_extent(&self, key: &str, limit: u64) -> Result<Option<usize>> {
        match self.integer(key)? {
            Some(value) if value == 0 || value > limit => {
                let problem = format!("expected 1 to {limit}, found {value}");
                Err(Error::field(self.file(), self.name(key), problem))
            }
            value => Ok(value.map(|value| value as usize)),
        }
    }

    /// Returns a positive number, `default` if the field is absent.
    fn positive(&self, key: &str, default: Option<f64>) -> Result<f64> {
        let Some(value) = self.number(key)?.or(default) else {
            return Err(Error::field(self.file(), self.name(key), "the field is required, and it is absent"));
        };
        if value > 0.0 && value < 1e30 {
            return Ok(value);
        }
        Err(Error::field(self.file(), self.name(key), format!("expected a positive number, found {value}")))
    }

    /// Returns an error about a value that needs something this crate lacks.
    fn unsupported(&self, key: &str, needed: impl Into<String>, supported: &str) -> Error {
        Error::unsupported(self.file(), self.name(key), needed, supported)
    }
}

impl Configuration {
    /// Checks that sizes are consistent, and that kernels support heads of this size. `heads` and
    /// `head` are the keys that messages name.
    fn check(self, fields: &impl ConfigurationFields, heads: &str, head: &str) -> Result<Configuration> {
        let Configuration { heads: n, kv_heads, head_size: size, .. } = self;
        if !n.is_multiple_of(kv_heads) {
            let problem = format!("expected a multiple of the {kv_heads} heads of keys, found {n}");
            return Err(Error::field(fields.file(), fields.name(heads), problem));
        }
        if !WIDTHS.contains(&size) {
            let supported = WIDTHS.map(|width| width.to_string()).join(", ");
            return Err(fields.unsupported(head, format!("a head of {size} elements"), &supported));
        }
        if let Some(Experts { count, used, .. }) = self.experts
            && used > count
        {
            let problem = format!("each token uses {used} experts of {count}");
            return Err(Error::field(fields.file(), "experts", problem));
        }
        if let Some(VisionConfiguration { output, .. }) = &self.vision
            && *output != self.width
        {
            let problem = format!("a token of the tower has {output} elements, one of the text {}", self.width);
            return Err(Error::field(fields.file(), "vision", problem));
        }
        Ok(self)
    }
}

impl VisionConfiguration {
    /// Checks that sizes are consistent.
    fn check(self, fields: &impl ConfigurationFields) -> Result<VisionConfiguration> {
        let wrong = |problem: String| Err(Error::field(fields.file(), "vision", problem));
        let VisionConfiguration { layers, width, heads, positions, ref deepstack, .. } = self;
        if !width.is_multiple_of(heads) {
            return wrong(format!("a width of {width} is not a multiple of {heads} heads"));
        }
        if let Some(layer) = deepstack.iter().find(|layer| **layer >= layers) {
            return wrong(format!("features after layer {layer}: the tower has {layers} layers, counted from 0"));
        }
        if !deepstack.is_sorted_by(|a, b| a < b) {
            return wrong(format!("expected the layers of features in ascending order, found {deepstack:?}"));
        }
        if positions.isqrt().pow(2) != positions {
            return wrong(format!("expected a square number of positions, found {positions}"));
        }
        Ok(self)
    }
}
