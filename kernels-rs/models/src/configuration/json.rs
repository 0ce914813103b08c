//! Configurations from the `config.json` of Hugging Face's transformers.

use super::*;
use serde_json::Value;

/// An object of `config.json`.
struct JsonObject<'a> {
    file: &'a str,
    /// The path of the object with a dot at the end, empty for the whole file.
    path: String,
    value: &'a Value,
}

impl JsonObject<'_> {
    /// Returns a value, `None` if it is absent or null.
    fn get(&self, key: &str) -> Option<&Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    /// Returns an error about a field whose value is not what was expected.
    fn unexpected(&self, key: &str, expected: &str, found: &Value) -> Error {
        let mut found = found.to_string();
        if found.len() > 60 {
            found = found.chars().take(60).chain(['…']).collect();
        }
        Error::field(self.file, self.name(key), format!("expected {expected}, found {found}"))
    }

    fn text(&self, key: &str) -> Result<Option<&str>> {
        let text = |value: &'_ Value| value.as_str().is_some();
        match self.get(key) {
            Some(value) if !text(value) => Err(self.unexpected(key, "a string", value)),
            value => Ok(value.and_then(Value::as_str)),
        }
    }

    /// Returns an object inside this one. An absent object is empty.
    fn object(&self, key: &str) -> JsonObject<'_> {
        JsonObject {
            file: self.file,
            path: format!("{}{key}.", self.path),
            value: self.get(key).unwrap_or(&Value::Null),
        }
    }

    /// Rejects a field with another value than `usual`, and accepts an absent field.
    fn only(&self, key: &str, usual: &Value) -> Result<()> {
        match self.get(key) {
            Some(value) if value != usual => {
                let needed = value.to_string().chars().take(60).collect::<String>();
                Err(self.unsupported(key, needed, &usual.to_string()))
            }
            _ => Ok(()),
        }
    }
}

impl ConfigurationFields for JsonObject<'_> {
    fn file(&self) -> &str {
        self.file
    }

    fn integer(&self, key: &str) -> Result<Option<u64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.unexpected(key, "an integer that is not negative", value)),
            },
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.unexpected(key, "a number", value)),
            },
        }
    }

    fn name(&self, key: &str) -> String {
        format!("`{}{key}`", self.path)
    }
}

impl Configuration {
    /// Reads `config.json`. Error messages use the name `file`.
    ///
    /// # Errors
    /// If the model has an unsupported architecture or feature, or a field is absent or out of
    /// range.
    pub fn from_json(file: &str, json: &Value) -> Result<Configuration> {
        let root = JsonObject { file, path: String::new(), value: json };
        let kind = root.text("model_type")?.unwrap_or("");
        let architecture = match kind {
            "llama" => ModelArchitecture::Llama,
            "qwen2" => ModelArchitecture::Qwen2,
            "qwen3" => ModelArchitecture::Qwen3,
            "qwen3_moe" => ModelArchitecture::Qwen3Moe,
            "qwen3_vl" => ModelArchitecture::Qwen3Vl,
            other => {
                let supported = "llama, qwen2, qwen3, qwen3_moe, qwen3_vl";
                return Err(root.unsupported("model_type", format!("the architecture `{other}`"), supported));
            }
        };
        if let Some(value) = root.get("quantization_config") {
            let needed = format!("the quantization {}", value["quant_method"]);
            return Err(root.unsupported("quantization_config", needed, "F32, F16, BF16, and the formats of GGUF"));
        }
        let is_vision = architecture == ModelArchitecture::Qwen3Vl;
        let text = if is_vision { root.object("text_config") } else { JsonObject { path: String::new(), ..root } };
        let root = JsonObject { file, path: String::new(), value: json };
        // The following fields would change the result. Only their usual values are supported.
        text.only("hidden_act", &"silu".into())?;
        text.only("mlp_bias", &false.into())?;
        text.only("use_sliding_window", &false.into())?;
        text.only("partial_rotary_factor", &1.0.into())?;
        text.only("attention_bias", &architecture.has_biases().into())?;
        let heads = text.extent("num_attention_heads", MAX_HEADS)?;
        let width = text.extent("hidden_size", MAX_WIDTH)?;
        let head = text.optional_extent("head_dim", MAX_WIDTH)?.unwrap_or(width / heads);
        let experts = match architecture {
            ModelArchitecture::Qwen3Moe => {
                text.only("decoder_sparse_step", &1.into())?;
                text.only("mlp_only_layers", &Value::Array(Vec::new()))?;
                Some(Experts {
                    count: match text.optional_extent("num_experts", MAX_EXPERTS)? {
                        Some(count) => count,
                        None => text.extent("num_local_experts", MAX_EXPERTS)?,
                    },
                    used: text.extent("num_experts_per_tok", MAX_EXPERTS)?,
                    normalized: text.get("norm_topk_prob").and_then(Value::as_bool).unwrap_or(false),
                })
            }
            _ => None,
        };
        let inner = if experts.is_some() { "moe_intermediate_size" } else { "intermediate_size" };
        let vision = if is_vision { Some(vision(&root.object("vision_config"))?) } else { None };
        let tied = |object: &JsonObject<'_>| object.get("tie_word_embeddings").and_then(Value::as_bool);
        let configuration = Configuration {
            architecture,
            name: root.text("_name_or_path")?.filter(|name| !name.is_empty()).map(str::to_owned),
            vocabulary: text.extent("vocab_size", MAX_VOCABULARY)?,
            context_length: text.extent("max_position_embeddings", MAX_CONTEXT)?,
            layers: text.extent("num_hidden_layers", MAX_LAYERS)?,
            width,
            heads,
            kv_heads: text.optional_extent("num_key_value_heads", MAX_HEADS)?.unwrap_or(heads),
            head_size: head,
            inner_size: text.extent(inner, MAX_INNER)?,
            epsilon: text.positive("rms_norm_eps", Some(1e-6))? as f32,
            rotary: rotary(&text, is_vision, head)?,
            experts,
            has_tied_output: tied(&root).or(tied(&text)).unwrap_or(false),
            deepstack_layers: vision.as_ref().map_or(0, |vision| vision.deepstack.len()),
            vision,
        };
        configuration.check(&text, "num_attention_heads", "head_dim")
    }
}

/// Reads the rotary positions of heads of `head` elements. Version 5 of transformers writes
/// `rope_parameters` instead of `rope_scaling` and `rope_theta`.
fn rotary(text: &JsonObject<'_>, is_vision: bool, head: usize) -> Result<RotaryConfiguration> {
    let key = if text.get("rope_parameters").is_some() { "rope_parameters" } else { "rope_scaling" };
    let parameters = text.object(key);
    let base = match parameters.number("rope_theta")? {
        Some(_) => parameters.positive("rope_theta", None)?,
        None => text.positive("rope_theta", Some(10_000.0))?,
    };
    let kind = match parameters.text("rope_type")? {
        Some(kind) => Some(kind),
        None => parameters.text("type")?,
    };
    let factor = || parameters.positive("factor", None);
    let original = || match parameters.optional_extent("original_max_position_embeddings", MAX_CONTEXT)? {
        Some(original) => Ok(original),
        None => text.extent("max_position_embeddings", MAX_CONTEXT),
    };
    let scaling = match kind {
        // Older files of vision models have "mrope", the positions on three axes, as the type.
        None | Some("default" | "mrope") => Scaling::None,
        Some("linear") => Scaling::Linear { factor: factor()? },
        Some("llama3") => {
            let low_factor = parameters.positive("low_freq_factor", None)?;
            let high_factor = parameters.positive("high_freq_factor", None)?;
            if low_factor >= high_factor {
                let problem =
                    format!("expected more than `low_freq_factor`, which is {low_factor}, found {high_factor}");
                return Err(Error::field(text.file, parameters.name("high_freq_factor"), problem));
            }
            Scaling::Llama3 { factor: factor()?, low_factor, high_factor, original: original()? as f64 }
        }
        Some("yarn") => {
            parameters.only("truncate", &true.into())?;
            let factor = factor()?;
            Scaling::Yarn {
                factor,
                beta_fast: parameters.positive("beta_fast", Some(32.0))?,
                beta_slow: parameters.positive("beta_slow", Some(1.0))?,
                original: original()? as f64,
                attention_factor: attention_factor(&parameters, factor)?,
            }
        }
        Some(other) => {
            let supported = "default, linear, llama3, yarn";
            return Err(parameters.unsupported("rope_type", format!("the scaling `{other}`"), supported));
        }
    };
    let axes = if is_vision {
        parameters.only("mrope_interleaved", &true.into())?;
        let list = parameters.get("mrope_section").and_then(Value::as_array);
        let list: Option<Vec<usize>> =
            list.map(|list| list.iter().filter_map(|n| Some(n.as_u64()?.min(MAX_WIDTH) as usize)).collect());
        match list.as_deref() {
            Some(&[time, height, width]) if time + height + width == head / 2 => {
                Some(RotaryAxes { sections: [time, height, width] })
            }
            _ => {
                let found = parameters.get("mrope_section").unwrap_or(&Value::Null);
                let expected = format!("three sections whose sum is {}", head / 2);
                return Err(parameters.unexpected("mrope_section", &expected, found));
            }
        }
    } else {
        None
    };
    Ok(RotaryConfiguration { base, dimensions: head, pairing: Pairing::Halves, scaling, axes })
}

/// Reads YaRN's factor of rotated queries and keys, as transformers does: `attention_factor`, or a
/// quotient of two factors with the multipliers `mscale` and `mscale_all_dim`, or the factor of the
/// paper (`_compute_yarn_parameters` in `modeling_rope_utils.py`).
fn attention_factor(parameters: &JsonObject<'_>, factor: f64) -> Result<f64> {
    if parameters.get("attention_factor").is_some() {
        return parameters.positive("attention_factor", None);
    }
    let multiplier = |key: &str| Ok::<_, Error>(parameters.number(key)?.filter(|number| *number != 0.0));
    let (Some(of_one), Some(of_all)) = (multiplier("mscale")?, multiplier("mscale_all_dim")?) else {
        return Ok(yarn_attention_factor(factor, 1.0));
    };
    let quotient = yarn_attention_factor(factor, of_one) / yarn_attention_factor(factor, of_all);
    if quotient > 0.0 && quotient < 1e30 {
        return Ok(quotient);
    }
    let problem = format!("expected multipliers that give a positive factor, found {of_one} and {of_all}");
    Err(Error::field(parameters.file, parameters.name("mscale"), problem))
}

/// Reads the vision tower of Qwen3-VL.
fn vision(object: &JsonObject<'_>) -> Result<VisionConfiguration> {
    object.only("hidden_act", &"gelu_pytorch_tanh".into())?;
    object.only("in_channels", &3.into())?;
    let layers = object.extent("depth", MAX_LAYERS)?;
    let deepstack = object.get("deepstack_visual_indexes").and_then(Value::as_array);
    let deepstack = deepstack.into_iter().flatten().take(layers + 1);
    let vision = VisionConfiguration {
        layers,
        width: object.extent("hidden_size", MAX_WIDTH)?,
        heads: object.extent("num_heads", MAX_HEADS)?,
        inner_size: object.extent("intermediate_size", MAX_INNER)?,
        patch: object.extent("patch_size", 1024)?,
        frames: object.optional_extent("temporal_patch_size", 16)?.unwrap_or(2),
        merge: object.optional_extent("spatial_merge_size", 16)?.unwrap_or(2),
        positions: object.extent("num_position_embeddings", 1 << 32)?,
        output: object.extent("out_hidden_size", MAX_WIDTH)?,
        deepstack: deepstack.map(|layer| layer.as_u64().unwrap_or(u64::MAX) as usize).collect(),
        epsilon: 1e-6,
    };
    vision.check(object)
}
