//! Whole models on the CPU device, against plain loops over `f32`.

#[path = "support/reference.rs"]
mod reference;
mod support;

use models::engine::{Generation, Options, Sampling, Stop};
use models::file::gguf::Gguf;
use models::memory::CacheFormat;
use models::template::{Conversation, Message};
use models::tokenizer::Encoding;
use models::{Checkpoint, Model};
use reference::{Reference, likeliest};
use runtime::Device;
use std::path::PathBuf;
use support::{Writer, smollm2};

/// Returns random numbers near 0, by a linear congruence.
fn random(seed: &mut u64, n: usize, size: f32) -> Vec<f32> {
    let mut next = || {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((*seed >> 40) as f32 / (1 << 24) as f32 - 0.5) * 2.0 * size
    };
    (0..n).map(|_| next()).collect()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Quantizes to Q8_0.
fn q8(numbers: &[f32]) -> Vec<u8> {
    let block = |block: &[f32]| {
        let scale = block.iter().fold(0.0f32, |top, x| top.max(x.abs())) / 127.0;
        let q = block.iter().map(|x| (x / scale).round() as i8 as u8);
        half::f16::from_f32(scale).to_le_bytes().into_iter().chain(q).collect::<Vec<u8>>()
    };
    numbers.chunks(32).flat_map(block).collect()
}

const WIDTH: u64 = 128;
const HEADS: u64 = 4;
const GROUPS: u64 = 2;
const HEAD: u64 = 64;
const INNER: u64 = 96;
const TOKENS: u64 = 40;
const LAYERS: u32 = 2;

/// Writes a small model of an architecture with random weights, in F32 or in Q8_0.
fn small(name: &str, architecture: &str, quantized: bool) -> PathBuf {
    let seed = &mut 7;
    let key = |key: &str| format!("{architecture}.{key}");
    let tokens: Vec<String> = (0..TOKENS).map(|i| format!("t{i}")).collect();
    let mut file = Writer::default()
        .text("general.architecture", architecture)
        .u32(&key("block_count"), LAYERS)
        .u32(&key("context_length"), 128)
        .u32(&key("embedding_length"), WIDTH as u32)
        .u32(&key("feed_forward_length"), INNER as u32)
        .u32(&key("attention.head_count"), HEADS as u32)
        .u32(&key("attention.head_count_kv"), GROUPS as u32)
        .u32(&key("attention.key_length"), HEAD as u32)
        .u32(&key("attention.value_length"), HEAD as u32)
        .f32(&key("attention.layer_norm_rms_epsilon"), 1e-5)
        .f32(&key("rope.freq_base"), 10000.0)
        .text("tokenizer.ggml.model", "gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", &tokens)
        .texts::<&str>("tokenizer.ggml.merges", &[])
        .u32("tokenizer.ggml.bos_token_id", 1);
    let mut matrix = |file: Writer, name: &str, rows: u64, columns: u64| {
        let numbers = random(seed, (rows * columns) as usize, 1.5 / (columns as f32).sqrt());
        match quantized {
            true => file.tensor(name, &[rows, columns], 8, q8(&numbers)),
            false => file.tensor(name, &[rows, columns], 0, bytes(&numbers)),
        }
    };
    file = matrix(file, "token_embd.weight", TOKENS, WIDTH);
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        file = matrix(file, &name("attn_q.weight"), HEADS * HEAD, WIDTH);
        file = matrix(file, &name("attn_k.weight"), GROUPS * HEAD, WIDTH);
        file = matrix(file, &name("attn_v.weight"), GROUPS * HEAD, WIDTH);
        file = matrix(file, &name("attn_output.weight"), WIDTH, HEADS * HEAD);
        file = matrix(file, &name("ffn_gate.weight"), INNER, WIDTH);
        file = matrix(file, &name("ffn_up.weight"), INNER, WIDTH);
        file = matrix(file, &name("ffn_down.weight"), WIDTH, INNER);
    }
    let mut vector = |file: Writer, name: &str, n: u64, around: f32| {
        let numbers: Vec<f32> = random(seed, n as usize, 0.5).iter().map(|x| x + around).collect();
        file.tensor(name, &[n], 0, bytes(&numbers))
    };
    for layer in 0..LAYERS {
        let name = |name: &str| format!("blk.{layer}.{name}");
        file = vector(file, &name("attn_norm.weight"), WIDTH, 1.0);
        file = vector(file, &name("ffn_norm.weight"), WIDTH, 1.0);
        if architecture == "qwen2" {
            file = vector(file, &name("attn_q.bias"), HEADS * HEAD, 0.0);
            file = vector(file, &name("attn_k.bias"), GROUPS * HEAD, 0.0);
            file = vector(file, &name("attn_v.bias"), GROUPS * HEAD, 0.0);
        }
        if architecture == "qwen3" {
            file = vector(file, &name("attn_q_norm.weight"), HEAD, 1.0);
            file = vector(file, &name("attn_k_norm.weight"), HEAD, 1.0);
        }
    }
    file = vector(file, "output_norm.weight", WIDTH, 1.0);
    if architecture == "llama" {
        // The divisors by which Llama 3 stretches positions.
        file = vector(file, "rope_freqs.weight", HEAD / 2, 2.0);
    }
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.gguf"));
    std::fs::write(&path, file.finish()).unwrap();
    path
}

/// Returns the largest difference, relative to the largest logit.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    let top = expected.iter().fold(0.0f32, |top, x| top.max(x.abs()));
    found.iter().zip(expected).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / top
}

/// Compares logits after a prompt in pieces, and after single steps.
fn compared(device: &Device, path: &std::path::Path, cache: CacheFormat, pieces: &[usize], bound: f32) {
    let mut reference = Reference::new(&Gguf::open(path).unwrap());
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(Options { room: 40, piece: 64, cache }).unwrap();
    let tokens: Vec<u32> = (0..40).map(|i| i * 7 % 40).collect();
    let mut at = 0;
    for piece in pieces {
        let mut expected = Vec::new();
        for token in &tokens[at..at + piece] {
            expected = reference.step(*token);
        }
        at += piece;
        session.set(&tokens[..at]).unwrap();
        let found = session.logits().unwrap();
        let error = difference(&found, &expected);
        assert!(error <= bound, "{}, {cache:?}, {at} tokens: {error}", path.display());
    }
}

/// Compares every architecture, format of a cache, and way through attention.
fn all_compared(device: &Device) {
    for architecture in ["llama", "qwen2", "qwen3"] {
        let path = small(&format!("f32-{architecture}-{}", device.is_cpu()), architecture, false);
        // Tiles of queries, queries apart, and one query.
        compared(device, &path, CacheFormat::F32, &[20, 3, 1, 1], 2e-5);
        compared(device, &path, CacheFormat::F16, &[18, 1], 2e-3);
        // Activations of 8 bits: 1 in 254 of the largest of 32, in seven products one after
        // another.
        let path = small(&format!("q8-{architecture}-{}", device.is_cpu()), architecture, true);
        compared(device, &path, CacheFormat::F32, &[2, 9, 17], 3e-2);
    }
}

#[test]
fn small_models_have_the_logits_of_the_reference() {
    all_compared(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_small_models_have_the_logits_of_the_reference() {
    all_compared(&Device::cuda(0).unwrap());
}

/// Decodes by the graph what a new session computes as a prompt, and reuses a common begin.
#[test]
fn decoding_continues_a_prompt() {
    let path = small("decoding", "llama", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let options = Options { room: 12, piece: 4, cache: CacheFormat::F32 };
    let mut session = model.session(options).unwrap();
    session.set(&[1, 2, 3]).unwrap();
    let greedy = Sampling::default();
    let mut sampler = models::engine::Sampler::new(&model.device, greedy, TOKENS as usize, &[]).unwrap();
    for _ in 0..9 {
        session.next(&mut sampler).unwrap();
    }
    let error = session.next(&mut sampler).unwrap_err().to_string();
    assert_eq!(error, "cannot add a token: the session has room for 12 tokens");
    let text = session.tokens().to_vec();
    assert_eq!(text.len(), 12);
    let after = session.logits().unwrap();
    let mut reference = Reference::new(&Gguf::open(&path).unwrap());
    let mut expected = vec![];
    for (i, token) in text.iter().enumerate() {
        assert!(i < 3 || likeliest(&expected) == *token);
        expected = reference.step(*token);
    }
    assert!(difference(&after, &expected) < 2e-5);
    // Another end after the same begin.
    let mut other = text[..7].to_vec();
    other.push(30);
    session.set(&other).unwrap();
    let mut fresh = model.session(options).unwrap();
    fresh.set(&other).unwrap();
    assert!(difference(&session.logits().unwrap(), &fresh.logits().unwrap()) < 2e-5);
    assert!(session.set(&[]).unwrap_err().to_string().contains("no token"));
    assert!(session.set(&[40]).unwrap_err().to_string().contains("beyond the vocabulary of 40"));
    assert!(session.set(&[0; 13]).unwrap_err().to_string().contains("13 tokens, and the session room for 12"));
}

/// Applies each option of sampling.
#[test]
fn samplers() {
    let path = small("sampling", "qwen3", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(Options { room: 40, ..Options::default() }).unwrap();
    let mut draw = |sampling: Sampling, n: usize| {
        session.set(&[5, 6]).unwrap();
        let mut sampler = models::engine::Sampler::new(&model.device, sampling, TOKENS as usize, &[5, 6]).unwrap();
        (0..n).map(|_| session.next(&mut sampler).unwrap()).collect::<Vec<u32>>()
    };
    let greedy = draw(Sampling::default(), 8);
    let warm = Sampling { temperature: 2.0, seed: 3, ..Sampling::default() };
    let drawn = draw(warm, 8);
    assert_eq!(drawn, draw(warm, 8), "equal seeds give equal tokens");
    assert_ne!(drawn, draw(Sampling { seed: 4, ..warm }, 8));
    for narrow in [Sampling { top_k: 1, ..warm }, Sampling { top_p: 1e-6, ..warm }, Sampling { min_p: 1.0, ..warm }] {
        assert_eq!(draw(narrow, 8), greedy, "{narrow:?}");
    }
    // A large penalty lets no token come twice, and one of repetition keeps those of the prompt
    // out.
    let all = draw(Sampling { presence: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    let all = draw(Sampling { frequency: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    for wrong in
        [Sampling { temperature: -1.0, ..warm }, Sampling { top_p: 0.0, ..warm }, Sampling { min_p: 2.0, ..warm }]
    {
        assert!(models::engine::Sampler::new(&model.device, wrong, 40, &[]).is_err());
    }
}

/// Ends before a stop text, after a number of tokens, and where there is no more room.
#[test]
fn generation_stops() {
    let path = small("stops", "qwen2", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(Options { room: 9, ..Options::default() }).unwrap();
    let mut generated = |generation: Generation| {
        let pieces: Vec<_> = session.generate("", &generation).unwrap().map(|piece| piece.unwrap()).collect();
        let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        (text, pieces.len(), pieces.last().unwrap().stop)
    };
    let (all, count, stop) = generated(Generation::default());
    assert_eq!((count, stop), (8, Some(Stop::Room)));
    assert_eq!(all.matches('t').count(), 8, "{all}");
    let (text, count, stop) = generated(Generation { tokens: 3, ..Generation::default() });
    assert_eq!((count, stop), (3, Some(Stop::Tokens)));
    assert!(all.starts_with(&text));
    // A stop that spreads over tokens, and one that begins like it and does not come.
    let from = all.match_indices('t').nth(4).unwrap().0;
    let stops = vec![format!("{}x", &all[from..from + 4]), all[from..from + 4].to_owned()];
    let (text, _, stop) = generated(Generation { stops: stops.clone(), ..Generation::default() });
    assert_eq!((text.as_str(), stop), (&all[..all.find(&stops[1]).unwrap()], Some(Stop::Text)));
}

/// Compares the reference with the token and the logit of other programs.
#[test]
fn smollm2_knows_the_capital_of_france() {
    let Some(path) = smollm2() else { return };
    let checkpoint = Checkpoint::open(&path).unwrap();
    let models::Files::Gguf(gguf) = checkpoint.files() else { panic!("a GGUF file") };
    let tokens = checkpoint.tokenizer().unwrap().encode("The capital of France is", Encoding::default()).unwrap();
    assert_eq!(tokens, [504, 3575, 282, 4649, 314]);
    let mut reference = Reference::new(gguf);
    let logits = tokens.iter().fold(vec![], |_, token| reference.step(*token));
    assert_eq!(likeliest(&logits), 7042);
    assert!((logits[7042] - 17.3713).abs() < 2e-4, "{}", logits[7042]);

    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(Options { room: 64, ..Options::default() }).unwrap();
    session.set(&tokens).unwrap();
    let found = session.logits().unwrap();
    assert_eq!(likeliest(&found), 7042);
    let error = difference(&found, &logits);
    println!("activations of 8 bits: {error} of the largest logit");
    assert!(error < 5e-2, "{error}");
}

/// Answers a question in the chat template, token by token through the graph.
#[test]
fn smollm2_answers() {
    let Some(path) = smollm2() else { return };
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(Options { room: 128, ..Options::default() }).unwrap();
    let conversation = Conversation::new(vec![Message::new("user", "What is 2+2?")]);
    let prompt = model.template.as_ref().unwrap().render(&conversation).unwrap();
    let generation = Generation { control: true, ..Generation::default() };
    let (mut text, mut stop) = (String::new(), None);
    for piece in session.generate(&prompt, &generation).unwrap() {
        let piece = piece.unwrap();
        text.push_str(&piece.text);
        stop = piece.stop;
    }
    assert_eq!((text.as_str(), stop), ("The answer to this classic math problem is 4.", Some(Stop::End)));
}

/// Draws the tokens of the CPU on a GPU.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_smollm2_has_the_tokens_of_the_cpu() {
    let Some(path) = smollm2() else { return };
    let text = |device: &Device| {
        let model = Model::load(device, &path).unwrap();
        let mut session = model.session(Options { room: 128, ..Options::default() }).unwrap();
        let generation = Generation { tokens: 64, ..Generation::default() };
        let pieces = session.generate("The capital of France is", &generation).unwrap();
        pieces.map(|piece| piece.unwrap().token).collect::<Vec<u32>>()
    };
    assert_eq!(text(&Device::cuda(0).unwrap()), text(&Device::cpu()));
}
