//! Small models with random weights.
#![allow(dead_code)]

use crate::support::GgufWriter;
use models::file::gguf::Gguf;
use std::path::{Path, PathBuf};

/// Returns `n` random numbers from −`size` to `size`, by a linear congruence.
pub fn random(seed: &mut u64, n: usize, size: f32) -> Vec<f32> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 40) as f32 / (1 << 24) as f32 - 0.5) * 2.0 * size
    };
    (0..n).map(|_| next()).collect()
}

/// Returns numbers as bytes in F32.
fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Returns numbers as bytes in Q8_0.
fn q8(numbers: &[f32]) -> Vec<u8> {
    let block = |block: &[f32]| {
        let scale = block.iter().fold(0.0f32, |top, x| top.max(x.abs())) / 127.0;
        let q = block.iter().map(|x| (x / scale).round() as i8 as u8);
        half::f16::from_f32(scale).to_le_bytes().into_iter().chain(q).collect::<Vec<u8>>()
    };
    numbers.chunks(32).flat_map(block).collect()
}

pub const WIDTH: u64 = 128;
/// Heads of queries.
pub const HEADS: u64 = 4;
/// Heads of keys, and of values.
pub const KV_HEADS: u64 = 2;
/// Elements of a head.
pub const HEAD: u64 = 64;
pub const INNER: u64 = 96;
/// Tokens of the vocabulary of [`small`].
pub const TOKENS: u64 = 40;
pub const LAYERS: u32 = 2;
pub const EXPERTS: u64 = 8;
/// Experts for each token.
pub const USED_EXPERTS: u32 = 3;

/// Writes a small model of an architecture with random weights, in F32 or in Q8_0. Returns the path
/// of the GGUF file.
pub fn small(name: &str, architecture: &str, quantized: bool) -> PathBuf {
    small_with_heads(name, architecture, quantized, HEAD)
}

/// Writes a model as [`small`] does, with heads of `head` elements.
pub fn small_with_heads(name: &str, architecture: &str, quantized: bool, head: u64) -> PathBuf {
    let tokens: Vec<String> = (0..TOKENS).map(|i| format!("t{i}")).collect();
    let file = GgufWriter::default().texts("tokenizer.ggml.tokens", &tokens).u32("tokenizer.ggml.bos_token_id", 1);
    write_model(name, architecture, quantized, head, 128, tokens.len() as u64, file)
}

/// Returns the texts of the tokens of [`small_chat_model`]: a token for each byte, as GPT-2 writes
/// it, and two control tokens.
pub fn byte_tokens() -> Vec<String> {
    let is_shown = |byte: &u32| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let hidden: Vec<u32> = (0..256).filter(|byte| !is_shown(byte)).collect();
    let shown = |byte: u32| match hidden.iter().position(|other| *other == byte) {
        Some(at) => char::from_u32(256 + at as u32).unwrap(),
        None => char::from_u32(byte).unwrap(),
    };
    let bytes = (0..256).map(|byte| shown(byte).to_string());
    bytes.chain(["<|begin|>".to_owned(), "<|end|>".to_owned()]).collect()
}

/// Writes a small model with random weights in Q8_0, a token for each byte, and a chat template.
/// The context length is `context` tokens. With `ends`, an end token ends answers.
pub fn small_chat_model(name: &str, context: u32, ends: bool) -> PathBuf {
    let template = "{% for message in messages %}<|begin|>{{ message.role }}:{{ message.content }}<|end|>\
                    {% endfor %}<|begin|>";
    let mut kinds = vec![1; 256];
    kinds.extend([3, 3]);
    let tokens = byte_tokens();
    let mut file = GgufWriter::default()
        .texts("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &kinds)
        .text("tokenizer.chat_template", template);
    if ends {
        file = file.u32("tokenizer.ggml.eos_token_id", 257);
    }
    write_model(name, "qwen3", true, HEAD, context, tokens.len() as u64, file)
}

/// Adds configuration and weights of a model to `file`, which has a vocabulary of `vocabulary`
/// tokens. Writes the file and returns the path.
fn write_model(
    name: &str,
    architecture: &str,
    quantized: bool,
    head: u64,
    context: u32,
    vocabulary: u64,
    file: GgufWriter,
) -> PathBuf {
    let seed = &mut 7;
    let key = |key: &str| format!("{architecture}.{key}");
    let mut file = file
        .text("general.architecture", architecture)
        .u32(&key("block_count"), LAYERS)
        .u32(&key("context_length"), context)
        .u32(&key("embedding_length"), WIDTH as u32)
        .u32(&key("feed_forward_length"), INNER as u32)
        .u32(&key("attention.head_count"), HEADS as u32)
        .u32(&key("attention.head_count_kv"), KV_HEADS as u32)
        .u32(&key("attention.key_length"), head as u32)
        .u32(&key("attention.value_length"), head as u32)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
        .f32(&key("rope.freq_base"), 10000.0)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts::<&str>("tokenizer.ggml.merges", &[]);
    let mut matrix = |file: GgufWriter, name: &str, rows: u64, columns: u64| {
        let numbers = random(seed, (rows * columns) as usize, 1.5 / (columns as f32).sqrt());
        match quantized {
            true => file.tensor(name, &[rows, columns], 8, q8(&numbers)),
            false => file.tensor(name, &[rows, columns], 0, bytes(&numbers)),
        }
    };
    file = matrix(file, "token_embd.weight", vocabulary, WIDTH);
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        file = matrix(file, &name("attn_q.weight"), HEADS * head, WIDTH);
        file = matrix(file, &name("attn_k.weight"), KV_HEADS * head, WIDTH);
        file = matrix(file, &name("attn_v.weight"), KV_HEADS * head, WIDTH);
        file = matrix(file, &name("attn_output.weight"), WIDTH, HEADS * head);
        if architecture == "qwen3moe" {
            continue;
        }
        file = matrix(file, &name("ffn_gate.weight"), INNER, WIDTH);
        file = matrix(file, &name("ffn_up.weight"), INNER, WIDTH);
        file = matrix(file, &name("ffn_down.weight"), WIDTH, INNER);
    }
    if architecture == "qwen3moe" {
        file = file
            .u32(&key("expert_count"), EXPERTS as u32)
            .u32(&key("expert_used_count"), USED_EXPERTS)
            .u32(&key("expert_feed_forward_length"), INNER as u32);
        for layer in 0..LAYERS {
            let name = |name: &str| format!("blk.{layer}.{name}");
            let router = bytes(&random(seed, (EXPERTS * WIDTH) as usize, 0.3));
            file = file.tensor(&name("ffn_gate_inp.weight"), &[EXPERTS, WIDTH], 0, router);
            for (kind, rows, columns) in [("gate", INNER, WIDTH), ("up", INNER, WIDTH), ("down", WIDTH, INNER)] {
                let size = 1.5 / (columns as f32).sqrt();
                let numbers = random(seed, (EXPERTS * rows * columns) as usize, size);
                let (format, bytes) = if quantized { (8, q8(&numbers)) } else { (0, bytes(&numbers)) };
                file = file.tensor(&name(&format!("ffn_{kind}_exps.weight")), &[EXPERTS, rows, columns], format, bytes);
            }
        }
    }
    let mut vector = |file: GgufWriter, name: &str, n: u64, around: f32| {
        let numbers: Vec<f32> = random(seed, n as usize, 0.5).iter().map(|x| x + around).collect();
        file.tensor(name, &[n], 0, bytes(&numbers))
    };
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        file = vector(file, &name("attn_norm.weight"), WIDTH, 1.0);
        file = vector(file, &name("ffn_norm.weight"), WIDTH, 1.0);
        if architecture == "qwen2" {
            file = vector(file, &name("attn_q.bias"), HEADS * head, 0.0);
            file = vector(file, &name("attn_k.bias"), KV_HEADS * head, 0.0);
            file = vector(file, &name("attn_v.bias"), KV_HEADS * head, 0.0);
        }
        if architecture.starts_with("qwen3") {
            file = vector(file, &name("attn_q_norm.weight"), head, 1.0);
            file = vector(file, &name("attn_k_norm.weight"), head, 1.0);
        }
    }
    file = vector(file, "output_norm.weight", WIDTH, 1.0);
    if architecture == "llama" {
        // The divisors by which Llama 3 stretches positions.
        file = vector(file, "rope_freqs.weight", head / 2, 2.0);
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.gguf"));
    std::fs::write(&path, file.finish()).unwrap();
    path
}

/// Writes a copy of a model in which the embedding of the last token begins with other bytes.
/// Returns the path.
pub fn with_last_embedding(file: &Path, bytes: &[u8]) -> PathBuf {
    let gguf = Gguf::open(file).unwrap();
    let matrix = gguf.tensor("token_embd.weight").unwrap();
    let mut all = std::fs::read(file).unwrap();
    let at = all.windows(matrix.bytes.len()).position(|window| window == matrix.bytes).unwrap();
    let last_row = at + matrix.bytes.len() - matrix.bytes.len() / matrix.extents[0] as usize;
    all[last_row..last_row + bytes.len()].copy_from_slice(bytes);
    let path = file.with_extension("damaged.gguf");
    std::fs::write(&path, all).unwrap();
    path
}
