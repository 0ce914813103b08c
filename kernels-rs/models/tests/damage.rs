//! Readers of files with random damage. A reader must return an error or a value, without a panic,
//! an endless loop, or an allocation above a limit. Seeds are fixed, so a failure is reproducible.

mod support;

use models::configuration::{Configuration, VisionConfiguration};
use models::file::gguf::Gguf;
use models::file::safetensors::Safetensors;
use models::template::{ChatTemplate, Conversation, Message};
use models::tensors::Naming;
use models::tokenizer::{Encoding, Tokenizer};
use serde_json::Value;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::{GgufWriter, data, json};

/// An allocator that records the largest allocation of each thread.
struct RecordingAllocator;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// Records an allocation.
fn record(bytes: usize) {
    // A thread that is ending may have dropped its counter.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller meets the same requirements.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller meets the same requirements.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        record(bytes);
        // SAFETY: the caller meets the same requirements.
        unsafe { System.realloc(pointer, layout, bytes) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller meets the same requirements.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator;

/// Random numbers by SplitMix64 (Steele, Lea, Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a number below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Returns `bytes` with one to four changes, most of them in the first `header` bytes. Some changes
/// insert one of `inserts`.
fn damaged(random: &mut Random, bytes: &[u8], header: usize, inserts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + random.below(4) {
        if bytes.is_empty() {
            break;
        }
        let end = if random.below(8) == 0 { bytes.len() } else { header.clamp(1, bytes.len()) };
        let at = random.below(end);
        let length = (1 + random.below(16)).min(bytes.len() - at);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => drop(bytes.splice(at..at, random.pick(inserts).iter().copied())),
            _ => {
                let insert = random.pick(inserts);
                let end = bytes.len().min(at + insert.len());
                bytes[at..end].copy_from_slice(&insert[..end - at]);
            }
        }
    }
    bytes
}

/// Returns lengths and counts that a careless reader would not check.
fn hostile() -> Vec<Vec<u8>> {
    let numbers = [0, 1, 7, 1 << 16, (1 << 31) - 1, 1 << 31, 1 << 32, 1 << 40, 1 << 62, u64::MAX - 7, u64::MAX];
    let long = numbers.iter().map(|n: &u64| n.to_le_bytes().to_vec());
    let short = numbers.iter().map(|n: &u64| (*n as u32).to_le_bytes().to_vec());
    long.chain(short).collect()
}

/// Texts to insert into JSON and templates.
const TEXTS: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "-1",
    "1e999",
    "18446744073709551616",
    "\\u0000",
    "[[[[[[[[",
    "\u{1f980}",
    "{{",
    "}}",
    "{%",
    "%}",
    "{% for x in messages %}",
    "{% endfor %}",
    "(",
    "|",
    "~ 'x' * 99999999",
    "not",
];

/// Runs `read` on `rounds` damaged copies of `bytes`, and checks that it does not panic or allocate
/// more than `largest` bytes at once. `read` returns the message of an error.
fn survives(
    name: &str,
    bytes: &[u8],
    header: usize,
    inserts: &[Vec<u8>],
    rounds: u64,
    largest: usize,
    read: impl Fn(Vec<u8>) -> Result<(), String>,
) {
    read(bytes.to_vec()).unwrap_or_else(|error| panic!("{name}, undamaged: {error}"));
    let inserts: Vec<&[u8]> = inserts.iter().map(Vec::as_slice).collect();
    let mut refused = 0;
    for seed in 0..rounds {
        let damaged = damaged(&mut Random(seed), bytes, header, &inserts);
        LARGEST.set(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| read(damaged)));
        let most = LARGEST.get();
        assert!(most <= largest, "{name}, seed {seed}: an allocation of {most} bytes");
        match outcome {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                refused += 1;
                assert!(error.len() > 20 && error.len() < 4000, "{name}, seed {seed}: {error}");
            }
            Err(_) => panic!("{name}, seed {seed}: a panic"),
        }
    }
    assert!(refused > rounds / 10, "{name}: only {refused} of {rounds} damaged files were refused");
}

fn texts() -> Vec<Vec<u8>> {
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Encodes and decodes some texts, and decodes each token.
fn exercise(tokenizer: &Tokenizer) -> Result<(), models::Error> {
    for text in ["Hello, world 12345", "  naïve\n\n\t日本 🦀 <|im_start|>", "\u{fffd}\0"] {
        for encoding in [Encoding::default(), Encoding { parse_special: true, add_special: true }] {
            let tokens = tokenizer.encode(text, encoding)?;
            tokenizer.decode(&tokens)?;
        }
    }
    (0..tokenizer.len() as u32).try_for_each(|token| tokenizer.decode(&[token]).map(|_| ()))
}

/// Opens a GGUF file, and reads all of its metadata and tensors.
fn gguf(bytes: Vec<u8>) -> Result<Gguf, models::Error> {
    let gguf = Gguf::from_bytes("x.gguf", bytes)?;
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    let all: u64 = gguf.tensors().map(|tensor| sum(tensor.bytes) + tensor.elements()).fold(0, u64::wrapping_add);
    let shown: usize = gguf.metadata().map(|(key, value)| key.len() + format!("{value:?}").len()).sum();
    std::hint::black_box((all, shown));
    Ok(gguf)
}

/// Returns a GGUF file with the configuration and vocabulary of a small language model.
fn model() -> Vec<u8> {
    let tokens: Vec<String> = ["a", "b", "ab", "Ġ", "Ġa", "<|im_end|>"].map(str::to_owned).to_vec();
    let file = GgufWriter::default()
        .text("general.architecture", "llama")
        .u32("llama.block_count", 1)
        .u32("llama.context_length", 64)
        .u32("llama.embedding_length", 64)
        .u32("llama.feed_forward_length", 32)
        .u32("llama.attention.head_count", 1)
        .f32("llama.attention.layer_norm_rms_epsilon", 1e-5)
        .f32("llama.rope.freq_base", 10000.0)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "smollm")
        .texts("tokenizer.ggml.tokens", &tokens)
        .i32s("tokenizer.ggml.token_type", &[1, 1, 1, 1, 1, 3])
        .texts("tokenizer.ggml.merges", &["a b", "Ġ a"])
        .u32("tokenizer.ggml.eos_token_id", 5);
    file.tensor("token_embd.weight", &[6, 64], 0, vec![0; 6 * 64 * 4]).finish()
}

#[test]
fn damaged_gguf_files_cause_no_panic() {
    let text = |error: models::Error| error.to_string();
    let hostile = hostile();
    let every = std::fs::read(data("every.gguf")).unwrap();
    survives("every.gguf", &every, 4500, &hostile, 3000, 4 << 20, |bytes| gguf(bytes).map(drop).map_err(text));
    let pieces = std::fs::read(data("pieces.gguf")).unwrap();
    survives("pieces.gguf", &pieces, pieces.len(), &hostile, 300, 4 << 20, |bytes| {
        gguf(bytes).and_then(|gguf| exercise(&Tokenizer::from_gguf(&gguf)?)).map_err(text)
    });
    survives("model.gguf", &model(), 1200, &hostile, 3000, 4 << 20, |bytes| {
        let gguf = gguf(bytes).map_err(text)?;
        let _ = VisionConfiguration::from_gguf(&gguf);
        let configuration = Configuration::from_gguf(&gguf).map_err(text)?;
        std::hint::black_box(configuration.tensors(Naming::Gguf));
        Tokenizer::from_gguf(&gguf).and_then(|tokenizer| exercise(&tokenizer)).map_err(text)
    });
}

#[test]
fn damaged_safetensors_cause_no_panic() {
    let header = serde_json::json!({
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
        "b": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]},
    })
    .to_string();
    let file = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[7; 16]].concat();
    let inserts: Vec<Vec<u8>> = hostile().into_iter().chain(texts()).collect();
    survives("x.safetensors", &file, header.len() + 8, &inserts, 5000, 1 << 20, |bytes| {
        let file = Safetensors::from_bytes("x.safetensors", bytes).map_err(|error| error.to_string())?;
        std::hint::black_box(file.tensors().map(|tensor| tensor.bytes.len()).sum::<usize>());
        Ok(())
    });
}

#[test]
fn damaged_configurations_cause_no_panic() {
    let config = serde_json::json!({
        "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "hidden_size": 896,
        "intermediate_size": 4864, "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
        "rms_norm_eps": 1e-6, "rope_theta": 1e6, "vocab_size": 151936, "max_position_embeddings": 32768,
        "tie_word_embeddings": true, "use_sliding_window": false,
        "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192},
    })
    .to_string();
    survives("config.json", config.as_bytes(), config.len(), &texts(), 5000, 8 << 20, |bytes| {
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| format!("no JSON, as in: {error}"))?;
        let configuration = Configuration::from_json("config.json", &json).map_err(|error| error.to_string())?;
        configuration.rotary.frequencies(&[]).map_err(|error| error.to_string())?;
        // The list of tensors is skipped for many layers: a hostile file may require millions.
        if configuration.layers < 100 {
            configuration.tensors(Naming::Transformers);
        }
        Ok(())
    });
}

#[test]
fn damaged_tokenizers_cause_no_panic() {
    for name in ["bytes.tokenizer.json", "pieces.tokenizer.json"] {
        let file = std::fs::read(data(name)).unwrap();
        survives(name, &file, file.len(), &texts(), 1000, 16 << 20, |bytes| {
            let tokenizer = Tokenizer::from_json_bytes("x.json", &bytes);
            tokenizer.and_then(|tokenizer| exercise(&tokenizer)).map_err(|error| error.to_string())
        });
    }
}

#[test]
fn damaged_templates_cause_no_panic() {
    let chats: Vec<Value> = json("chats.json");
    for name in ["turns", "tools", "strict"] {
        let chat = chats.iter().find(|chat| chat["name"] == name).unwrap();
        let source = chat["template"].as_str().unwrap();
        survives(name, source.as_bytes(), source.len(), &texts(), 1500, 64 << 20, |bytes| {
            let source = String::from_utf8_lossy(&bytes).into_owned();
            let messages = vec![Message::new("user", "What is 2+2?"), Message::new("assistant", "4")];
            let template = ChatTemplate::new(&source, "<s>", "</s>").map_err(|error| error.to_string())?;
            template.render(&Conversation::new(messages)).map(drop).map_err(|error| error.to_string())
        });
    }
}
