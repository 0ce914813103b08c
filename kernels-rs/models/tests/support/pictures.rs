//! A small Qwen3-VL with weights and images from the formulas of `data/vision.py`.
#![allow(dead_code)]

use crate::small::byte_tokens;
use crate::support::GgufWriter;
use kernel_dsl::half::{bf16, f16};
use models::configuration::{Configuration, VisionConfiguration};
use models::image::{Image, ImageProcessor};
use models::tensors::{Naming, TensorRequirement};
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The control tokens, which follow the tokens of the 256 bytes.
pub const CONTROL: [&str; 8] = [
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    "<|a|>",
    "<|b|>",
];

/// The token `<|image_pad|>`, the placeholder of an image.
pub const IMAGE: u32 = 260;

/// A chat template with Qwen3-VL's placeholders for images.
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n\
    {% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}\
    {% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}\
    {% endfor %}{% endif %}<|im_end|>\n{% endfor %}<|im_start|>assistant";

/// Returns the `config.json` of the model in `vision.py`.
pub fn configuration() -> Value {
    json!({
        "model_type": "qwen3_vl",
        "tie_word_embeddings": true,
        "image_token_id": IMAGE,
        "text_config": {
            "vocab_size": 264, "hidden_size": 128, "intermediate_size": 96, "num_hidden_layers": 4,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "rms_norm_eps": 1e-6,
            "max_position_embeddings": 512, "hidden_act": "silu", "attention_bias": false,
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 5000000.0, "mrope_section": [12, 10, 10],
                "mrope_interleaved": true,
            },
        },
        "vision_config": {
            "depth": 3, "hidden_size": 128, "intermediate_size": 192, "num_heads": 2, "patch_size": 16,
            "spatial_merge_size": 2, "temporal_patch_size": 2, "out_hidden_size": 128,
            "num_position_embeddings": 36, "deepstack_visual_indexes": [0, 1], "in_channels": 3,
            "hidden_act": "gelu_pytorch_tanh",
        },
    })
}

/// Returns the weights of a tensor. `name` is that in files of transformers, and its FNV-1a hash is
/// the seed of SplitMix64, which gives 24 bits per weight.
pub fn numbers(name: &str, extents: &[u64]) -> Vec<f32> {
    let fnv = |seed: u64, byte: u8| (seed ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    let unit = |i: u64| {
        let z = seed.wrapping_add(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let count: u64 = extents.iter().product();
    let is_norm = name.ends_with("norm.weight")
        || ["norm1.weight", "norm2.weight", "layernorm"].iter().any(|part| name.contains(part));
    let (around, size) = match extents.len() {
        1 if is_norm => (1.0, 0.5),
        1 => (0.0, 0.25),
        _ if name.contains("embed_tokens") => (0.0, 1.0),
        _ if name.contains("pos_embed") => (0.0, 0.5),
        _ => {
            let columns = count / extents[0];
            (0.0, f32::exp2(1.0 - ((64 - columns.leading_zeros()) / 2) as f32))
        }
    };
    (1..=count).map(|i| around + unit(i) * size).collect()
}

/// Returns an image with smooth slopes and sharp edges.
pub fn picture(height: usize, width: usize) -> Image {
    let byte = |y: usize, x: usize, c: usize| ((x * 7 + y * 13 + c * 50 + (x * y) / 16) % 256) as u8;
    let rows = (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| byte(y, x, c))));
    Image::new(width, height, rows.collect()).unwrap()
}

/// Returns the settings by which `vision.py` prepares images.
pub fn processor(vision: &VisionConfiguration) -> ImageProcessor {
    ImageProcessor::new(vision).with_pixels(1024, 1 << 20).unwrap()
}

/// The format of the matrices of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MatrixFormat {
    F32,
    F16,
    Bf16,
}

impl MatrixFormat {
    /// Returns numbers as bytes in this format.
    fn bytes(self, numbers: &[f32]) -> Vec<u8> {
        match self {
            MatrixFormat::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
            MatrixFormat::F16 => numbers.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
            MatrixFormat::Bf16 => numbers.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
        }
    }

    fn dtype(self) -> Dtype {
        match self {
            MatrixFormat::F32 => Dtype::F32,
            MatrixFormat::F16 => Dtype::F16,
            MatrixFormat::Bf16 => Dtype::BF16,
        }
    }

    /// Returns the number of the format in GGUF.
    fn gguf(self) -> u32 {
        match self {
            MatrixFormat::F32 => 0,
            MatrixFormat::F16 => 1,
            MatrixFormat::Bf16 => 30,
        }
    }
}

/// Returns a path in the folder for files of tests.
fn temporary(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the texts of the tokens: bytes, then control tokens.
fn tokens() -> Vec<String> {
    let bytes = byte_tokens().into_iter().take(256);
    bytes.chain(CONTROL.map(str::to_owned)).collect()
}

/// Writes the model as a folder of safetensors, and returns the folder.
pub fn qwen3_vl(name: &str, kind: MatrixFormat) -> PathBuf {
    let folder = temporary(name);
    std::fs::create_dir_all(&folder).unwrap();
    let configuration = configuration();
    let needed = Configuration::from_json("config.json", &configuration).unwrap().tensors(Naming::Transformers);
    let tensors: Vec<(String, Vec<usize>, Vec<u8>)> = needed
        .iter()
        .map(|TensorRequirement { name, extents, .. }| {
            let bytes = kind.bytes(&numbers(name, extents));
            (name.clone(), extents.iter().map(|n| *n as usize).collect(), bytes)
        })
        .collect();
    let views = tensors
        .iter()
        .map(|(name, extents, bytes)| (name.clone(), TensorView::new(kind.dtype(), extents.clone(), bytes).unwrap()));
    std::fs::write(folder.join("model.safetensors"), safetensors::serialize(views, None).unwrap()).unwrap();
    std::fs::write(folder.join("config.json"), configuration.to_string()).unwrap();
    std::fs::write(folder.join("chat_template.jinja"), TEMPLATE).unwrap();
    with_tokenizer(&folder);
    folder
}

/// Writes the tokenizer into the folder of a model.
pub fn with_tokenizer(folder: &Path) {
    let names = tokens();
    let vocabulary: serde_json::Map<String, Value> =
        names.iter().take(256).enumerate().map(|(i, name)| (name.clone(), json!(i))).collect();
    let added = CONTROL.iter().enumerate().map(|(i, name)| {
        json!({
            "id": 256 + i, "content": name, "special": true, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false,
        })
    });
    let bytes = json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true });
    let tokenizer = json!({
        "version": "1.0", "added_tokens": added.collect::<Vec<_>>(), "pre_tokenizer": bytes, "decoder": bytes,
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
    });
    std::fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), json!({ "eos_token": "<|im_end|>" }).to_string()).unwrap();
}

/// Adds tensors to a GGUF file. Names and extents are those of `gguf`, and weights follow from the
/// names of the same tensors in `transformers`. Vectors are in F32.
fn with_tensors(
    file: GgufWriter,
    gguf: &[TensorRequirement],
    transformers: &[TensorRequirement],
    kind: MatrixFormat,
) -> GgufWriter {
    gguf.iter().zip(transformers).fold(file, |file, (to, from)| {
        assert_eq!((to.role, to.index, &to.extents), (from.role, from.index, &from.extents));
        let kind = if to.extents.len() == 1 { MatrixFormat::F32 } else { kind };
        file.tensor(&to.name, &to.extents, kind.gguf(), kind.bytes(&numbers(&from.name, &from.extents)))
    })
}

/// Writes the language model as GGUF, and returns the path.
pub fn qwen3_vl_gguf(name: &str) -> PathBuf {
    let configuration = Configuration::from_json("config.json", &configuration()).unwrap();
    let configuration = Configuration { vision: None, ..configuration };
    let mut kinds = vec![1; 256];
    kinds.extend([3; CONTROL.len()]);
    let file = GgufWriter::default()
        .text("general.architecture", "qwen3vl")
        .u32("qwen3vl.block_count", 4)
        .u32("qwen3vl.context_length", 512)
        .u32("qwen3vl.embedding_length", 128)
        .u32("qwen3vl.feed_forward_length", 96)
        .u32("qwen3vl.attention.head_count", 4)
        .u32("qwen3vl.attention.head_count_kv", 2)
        .u32("qwen3vl.attention.key_length", 64)
        .u32("qwen3vl.attention.value_length", 64)
        .f32("qwen3vl.attention.layer_norm_rms_epsilon", 1e-6)
        .f32("qwen3vl.rope.freq_base", 5_000_000.0)
        .i32s("qwen3vl.rope.dimension_sections", &[12, 10, 10, 0])
        .u32("qwen3vl.n_deepstack_layers", 2)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "qwen2")
        .texts::<&str>("tokenizer.ggml.merges", &[])
        .texts("tokenizer.ggml.tokens", &tokens())
        .i32s("tokenizer.ggml.token_type", &kinds)
        .u32("tokenizer.ggml.eos_token_id", 257)
        .text("tokenizer.chat_template", TEMPLATE);
    let [gguf, transformers] = [Naming::Gguf, Naming::Transformers].map(|naming| configuration.tensors(naming));
    let path = temporary(&format!("{name}.gguf"));
    std::fs::write(&path, with_tensors(file, &gguf, &transformers, MatrixFormat::F32).finish()).unwrap();
    path
}

/// Writes the vision tower as GGUF, and returns the path. `deepstack` tells for each of the three
/// layers whether its results become features.
pub fn projector(name: &str, kind: MatrixFormat, deepstack: &[bool; 3]) -> PathBuf {
    let configuration = Configuration::from_json("config.json", &configuration()).unwrap();
    let mut vision = configuration.vision.unwrap();
    vision.deepstack = (0..3).filter(|layer| deepstack[*layer]).collect();
    let file = GgufWriter::default()
        .text("general.architecture", "clip")
        .text("clip.projector_type", "qwen3vl_merger")
        .u32("clip.vision.block_count", 3)
        .u32("clip.vision.embedding_length", 128)
        .u32("clip.vision.feed_forward_length", 192)
        .u32("clip.vision.attention.head_count", 2)
        .u32("clip.vision.image_size", 96)
        .u32("clip.vision.patch_size", 16)
        .u32("clip.vision.projection_dim", 128)
        .u32("clip.vision.image_min_pixels", 1024)
        .u32("clip.vision.image_max_pixels", 1 << 20)
        .bools("clip.vision.is_deepstack_layers", deepstack);
    let [gguf, transformers] = [Naming::Gguf, Naming::Transformers].map(|naming| vision.tensors(naming));
    // GGUF has a tensor for each of the two frames of a patch.
    let patches = numbers(&transformers[0].name, &transformers[0].extents);
    let file = (0..2).fold(file, |file, frame| {
        let of_frame = patches.chunks(2 * 256).flat_map(|color| &color[frame * 256..][..256]).copied();
        let bytes = kind.bytes(&of_frame.collect::<Vec<f32>>());
        file.tensor(&gguf[frame].name, &gguf[frame].extents, kind.gguf(), bytes)
    });
    let path = temporary(&format!("{name}.gguf"));
    std::fs::write(&path, with_tensors(file, &gguf[2..], &transformers[1..], kind).finish()).unwrap();
    path
}
