//! Configurations from the metadata of GGUF files.

use super::*;
use crate::file::gguf::{Gguf, MetadataValue};

/// The metadata whose keys begin with a prefix and a dot, such as `llama.block_count`.
struct Metadata<'a> {
    gguf: &'a Gguf,
    prefix: &'a str,
}

impl Metadata<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }
}

impl ConfigurationFields for Metadata<'_> {
    fn file(&self) -> &str {
        self.gguf.file()
    }

    fn integer(&self, key: &str) -> Result<Option<u64>> {
        self.gguf.optional(&self.key(key), "an integer", MetadataValue::unsigned)
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        self.gguf.optional(&self.key(key), "a floating-point number", MetadataValue::float)
    }

    fn name(&self, key: &str) -> String {
        format!("metadata `{}`", self.key(key))
    }
}

impl Configuration {
    /// Reads the configuration of the language model in a GGUF file.
    ///
    /// # Errors
    /// If the model has an unsupported architecture or feature, or a field is absent or out of
    /// range.
    pub fn from_gguf(gguf: &Gguf) -> Result<Configuration> {
        let key = "general.architecture";
        let name = gguf.required(key, "the name of an architecture", MetadataValue::text)?;
        let architecture = match name {
            "llama" => ModelArchitecture::Llama,
            "qwen2" => ModelArchitecture::Qwen2,
            "qwen3" => ModelArchitecture::Qwen3,
            "qwen3moe" => ModelArchitecture::Qwen3Moe,
            "qwen3vl" => ModelArchitecture::Qwen3Vl,
            other => {
                let needed = match other {
                    "clip" => "a vision tower without its language model".to_owned(),
                    _ => format!("the architecture `{other}`"),
                };
                return Err(Error::unsupported(gguf.file(), format!("metadata `{key}`"), needed, ARCHITECTURES));
            }
        };
        let fields = Metadata { gguf, prefix: name };
        let heads = fields.extent("attention.head_count", MAX_HEADS)?;
        let width = fields.extent("embedding_length", MAX_WIDTH)?;
        let head = fields.optional_extent("attention.key_length", MAX_WIDTH)?.unwrap_or(width / heads);
        let context = fields.extent("context_length", MAX_CONTEXT)?;
        // The following fields would change the result. Only their usual values are supported.
        for (key, usual) in [("attention.value_length", head), ("rope.dimension_count", head)] {
            if let Some(found) = fields.optional_extent(key, MAX_WIDTH)?.filter(|found| *found != usual) {
                return Err(fields.unsupported(key, found.to_string(), &format!("the {usual} elements of a key")));
            }
        }
        if let Some(window) = fields.integer("attention.sliding_window")?.filter(|window| *window < context as u64) {
            return Err(fields.unsupported("attention.sliding_window", window.to_string(), "attention to all tokens"));
        }
        let absent = ["attention.scale", "attn_logit_softcapping", "final_logit_softcapping", "logit_scale"];
        for key in absent.into_iter().chain(["expert_shared_count", "leading_dense_block_count"]) {
            let value = gguf.get(&fields.key(key));
            if let Some(value) = value.filter(|value| value.float() != Some(0.0) && value.unsigned() != Some(0)) {
                let number = value.float().or(value.unsigned().map(|value| value as f64)).unwrap_or(f64::NAN);
                return Err(fields.unsupported(key, number.to_string(), "models without it"));
            }
        }
        let experts = match architecture {
            ModelArchitecture::Qwen3Moe => Some(Experts {
                count: fields.extent("expert_count", MAX_EXPERTS)?,
                used: fields.extent("expert_used_count", MAX_EXPERTS)?,
                normalized: true,
            }),
            _ => match fields.integer("expert_count")? {
                None | Some(0) => None,
                Some(count) => {
                    let needed = format!("{count} experts in the architecture {name}");
                    return Err(fields.unsupported("expert_count", needed, "experts in qwen3moe"));
                }
            },
        };
        let inner = if experts.is_some() { "expert_feed_forward_length" } else { "feed_forward_length" };
        let embedding = gguf.tensor("token_embd.weight").and_then(|tensor| tensor.extents.first().copied());
        let vocabulary = match fields.optional_extent("vocab_size", MAX_VOCABULARY)? {
            Some(vocabulary) => vocabulary,
            None => embedding.filter(|rows| *rows <= MAX_VOCABULARY).ok_or_else(|| {
                Error::tensor(gguf.file(), "token_embd.weight", "the tensor is required, and it is absent or too large")
            })? as usize,
        };
        let configuration = Configuration {
            architecture,
            name: gguf.get("general.name").and_then(|name| name.text()).map(str::to_owned),
            vocabulary,
            context_length: context,
            layers: fields.extent("block_count", MAX_LAYERS)?,
            width,
            heads,
            kv_heads: fields.optional_extent("attention.head_count_kv", MAX_HEADS)?.unwrap_or(heads),
            head_size: head,
            inner_size: fields.extent(inner, MAX_INNER)?,
            epsilon: fields.positive("attention.layer_norm_rms_epsilon", None)? as f32,
            rotary: rotary(&fields, architecture, head)?,
            experts,
            has_tied_output: gguf.tensor("output.weight").is_none(),
            deepstack_layers: fields.integer("n_deepstack_layers")?.unwrap_or(0).min(MAX_LAYERS) as usize,
            vision: None,
        };
        configuration.check(&fields, "attention.head_count", "attention.key_length")
    }
}

impl Configuration {
    /// Reads the configuration of the language model in a GGUF file, and of its vision tower in
    /// another file.
    ///
    /// # Errors
    /// Returns the errors of [`from_gguf`](Configuration::from_gguf) and of
    /// [`VisionConfiguration::from_gguf`]. Also if the two files do not belong together.
    pub fn from_gguf_with(gguf: &Gguf, projector: &Gguf) -> Result<Configuration> {
        let mut configuration = Configuration::from_gguf(gguf)?;
        let vision = VisionConfiguration::from_gguf(projector)?;
        let wrong = |problem: String| Err(Error::field(projector.file(), "vision", problem));
        let Configuration { architecture, width, deepstack_layers, .. } = configuration;
        if architecture != ModelArchitecture::Qwen3Vl {
            return wrong(format!("a vision tower of Qwen3-VL beside a model of {}", architecture.name()));
        }
        if vision.output != width {
            return wrong(format!("a token of the tower has {} elements, one of the text {width}", vision.output));
        }
        if vision.deepstack.len() != deepstack_layers {
            let found = vision.deepstack.len();
            return wrong(format!(
                "features of {found} layers of the tower, for {deepstack_layers} layers of the text"
            ));
        }
        configuration.vision = Some(vision);
        Ok(configuration)
    }
}

/// Reads the rotary positions of heads of `head` elements.
fn rotary(fields: &Metadata<'_>, architecture: ModelArchitecture, head: usize) -> Result<RotaryConfiguration> {
    let gguf = fields.gguf;
    let kind = gguf.optional(&fields.key("rope.scaling.type"), "the name of a scaling", MetadataValue::text)?;
    let factor = || fields.positive("rope.scaling.factor", None);
    let key = "rope.scaling.attn_factor";
    let attention_factor = fields.positive(key, Some(1.0))?;
    if kind != Some("yarn") && attention_factor != 1.0 {
        return Err(fields.unsupported(key, attention_factor.to_string(), "1, or any number with the scaling yarn"));
    }
    let scaling = match kind {
        None | Some("none") => match gguf.tensor("rope_freqs.weight") {
            Some(_) => Scaling::Divisors,
            None => Scaling::None,
        },
        Some("linear") => Scaling::Linear { factor: factor()? },
        Some("yarn") => {
            let factor = factor()?;
            Scaling::Yarn {
                factor,
                beta_fast: fields.positive("rope.scaling.yarn_beta_fast", Some(32.0))?,
                beta_slow: fields.positive("rope.scaling.yarn_beta_slow", Some(1.0))?,
                original: fields.extent("rope.scaling.original_context_length", MAX_CONTEXT)? as f64,
                // llama.cpp multiplies YaRN's factor with this number (`llama_context` in
                // `llama-context.cpp`, and `rope_yarn` of ggml).
                attention_factor: yarn_attention_factor(factor, 1.0) * attention_factor,
            }
        }
        Some(other) => {
            return Err(fields.unsupported(
                "rope.scaling.type",
                format!("the scaling `{other}`"),
                "none, linear, yarn",
            ));
        }
    };
    let key = "rope.dimension_sections";
    let axes = match gguf.optional(&fields.key(key), "an array", MetadataValue::array)? {
        None => None,
        Some(array) => {
            let mut sections = array.iter().map(|section| section.unsigned().unwrap_or(u64::MAX));
            let mut next = || sections.next().unwrap_or(0).min(MAX_WIDTH) as usize;
            let (axes, rest) = (RotaryAxes { sections: [next(), next(), next()] }, next());
            if rest != 0 || axes.sections.iter().sum::<usize>() != head / 2 {
                return Err(gguf.unexpected(&fields.key(key), format!("three sections whose sum is {}", head / 2)));
            }
            Some(axes)
        }
    };
    if axes.is_none() && architecture == ModelArchitecture::Qwen3Vl {
        return Err(gguf.unexpected(&fields.key(key), "sections of a head for time, height and width"));
    }
    let pairing = if architecture == ModelArchitecture::Llama { Pairing::Neighbors } else { Pairing::Halves };
    let base = fields.positive("rope.freq_base", Some(10_000.0))?;
    Ok(RotaryConfiguration { base, dimensions: head, pairing, scaling, axes })
}

impl VisionConfiguration {
    /// Reads the configuration of a vision tower in an mmproj file.
    ///
    /// # Errors
    /// If the file is not a vision tower of Qwen3-VL, or a field is absent or out of range.
    pub fn from_gguf(gguf: &Gguf) -> Result<VisionConfiguration> {
        let key = "clip.projector_type";
        let kind = gguf.optional(key, "a name", MetadataValue::text)?;
        let kind = kind.or(gguf.optional("clip.vision.projector_type", "a name", MetadataValue::text)?);
        let Some(kind) = kind else {
            return Err(Error::field(gguf.file(), format!("metadata `{key}`"), "absent: the file has no vision tower"));
        };
        if kind != "qwen3vl_merger" {
            let needed = format!("the projector `{kind}`");
            return Err(Error::unsupported(gguf.file(), format!("metadata `{key}`"), needed, "qwen3vl_merger"));
        }
        let fields = Metadata { gguf, prefix: "clip.vision" };
        let layers = fields.extent("block_count", MAX_LAYERS)?;
        let patch = fields.extent("patch_size", 1024)?;
        let side = fields.extent("image_size", 1 << 20)? / patch;
        let flags = gguf.optional("clip.vision.is_deepstack_layers", "an array", MetadataValue::array)?;
        let flags = flags.iter().flat_map(|flags| flags.iter()).take(layers + 1);
        let vision = VisionConfiguration {
            layers,
            width: fields.extent("embedding_length", MAX_WIDTH)?,
            heads: fields.extent("attention.head_count", MAX_HEADS)?,
            inner_size: fields.extent("feed_forward_length", MAX_INNER)?,
            patch,
            frames: if gguf.tensor("v.patch_embd.weight.1").is_some() { 2 } else { 1 },
            merge: fields.optional_extent("spatial_merge_size", 16)?.unwrap_or(2),
            positions: side * side,
            output: fields.extent("projection_dim", MAX_WIDTH)?,
            deepstack: flags.enumerate().filter(|(_, flag)| flag.bool() == Some(true)).map(|(i, _)| i).collect(),
            epsilon: fields.positive("attention.layer_norm_epsilon", Some(1e-6))? as f32,
        };
        vision.check(&fields)
    }
}
