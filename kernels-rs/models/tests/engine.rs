//! Whole models on the CPU device, against plain loops over `f32`.

#[path = "support/reference.rs"]
mod reference;
mod support;

use kernel_dsl::compiler::launch::DeviceFacts;
use models::engine::{Generation, Options, Sampling, Stop};
use models::file::gguf::Gguf;
use models::memory::CacheFormat;
use models::template::{Conversation, Message};
use models::tokenizer::Encoding;
use models::{Checkpoint, Model};
use reference::{Reference, likeliest};
use runtime::Device;
use runtime::interpreter::Checks;
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
fn compared(device: &Device, path: &std::path::Path, options: Options, pieces: &[usize], bound: f32) {
    let mut reference = Reference::new(&Gguf::open(path).unwrap());
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(options).unwrap();
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
        assert!(error <= bound, "{}, {options:?}, {at} tokens: {error}", path.display());
    }
}

/// Compares every architecture, format of a cache, and way through attention.
fn all_compared(device: &Device) {
    let wide = Options { room: 40, piece: 64, cache: CacheFormat::F32, exact: false };
    let narrow = Options { cache: CacheFormat::F16, ..wide };
    for architecture in ["llama", "qwen2", "qwen3"] {
        let path = small(&format!("f32-{architecture}-{}", device.is_cpu()), architecture, false);
        // Tiles of queries, queries apart, and one query.
        compared(device, &path, wide, &[20, 3, 1, 1], 2e-5);
        compared(device, &path, narrow, &[18, 1], 2e-3);
        // More keys than a warp has lanes.
        compared(device, &path, Options { exact: true, ..wide }, &[33, 1, 1], 2e-5);
        compared(device, &path, Options { exact: true, ..narrow }, &[9, 1], 2e-3);
        // Activations of 8 bits: 1 in 254 of the largest of 32, in seven products one after
        // another.
        let path = small(&format!("q8-{architecture}-{}", device.is_cpu()), architecture, true);
        compared(device, &path, wide, &[2, 9, 17], 3e-2);
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
    let options = Options { room: 12, piece: 4, cache: CacheFormat::F32, exact: false };
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

/// The prompt of the text below.
const PROMPT: &str = "The capital of France is";

/// Returns the prompt's tokens and `n` that are generated.
fn continued(device: &Device, path: &std::path::Path, exact: bool, n: usize) -> Vec<u32> {
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(Options { room: 80, exact, ..Options::default() }).unwrap();
    let generation = Generation { tokens: n, ..Generation::default() };
    session.generate(PROMPT, &generation).unwrap().for_each(|piece| drop(piece.unwrap()));
    session.tokens().to_vec()
}

/// Returns the largest distance of a token's logit below the likeliest one, relative to the largest
/// magnitude. The first `from` tokens do not count.
fn shortfall(mut reference: Reference, tokens: &[u32], from: usize) -> f32 {
    let (mut most, mut logits) = (0.0f32, Vec::new());
    for (i, token) in tokens.iter().enumerate() {
        if i >= from {
            let below = logits[likeliest(&logits) as usize] - logits[*token as usize];
            let size = logits.iter().fold(0.0f32, |top, x| top.max(x.abs()));
            most = most.max(below / size);
        }
        logits = reference.step(*token);
    }
    most
}

/// Continues a text on a GPU. Exact steps give the tokens of the CPU. Other steps give tokens
/// that are nearly as likely as those of plain loops.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_smollm2_continues_its_prompt() {
    let Some(path) = smollm2() else { return };
    let device = Device::cuda(0).unwrap();
    let tokens = continued(&device, &path, false, 64);
    let lost = shortfall(Reference::new(&Gguf::open(&path).unwrap()).of_bytes(), &tokens, 5);
    println!("{tokens:?}: below the likeliest of the reference at most {lost}");
    assert!(lost < 2e-2, "{lost}");
    let cpu = Device::cpu();
    cpu.set_checks(Checks::Values);
    assert_eq!(continued(&device, &path, true, 64), continued(&cpu, &path, true, 64));
}

/// Computes equal bits whatever a plan makes of the number of multiprocessors.
#[test]
fn exact_steps_have_equal_bits_on_devices_of_any_size() {
    let path = small("sizes", "qwen3", true);
    let tokens: Vec<u32> = (0..70).map(|i| i * 7 % 40).collect();
    let logits = |multiprocessors: u32| {
        let device = Device::cpu_with_facts(DeviceFacts { multiprocessors });
        device.set_checks(Checks::Values);
        let model = Model::load(&device, &path).unwrap();
        let mut session = model.session(Options { room: 80, exact: true, ..Options::default() }).unwrap();
        session.set(&tokens).unwrap();
        session.logits().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
    };
    assert_eq!(logits(2), logits(132));
}

/// Returns −ln of the probability of a token.
fn loss(logits: &[f32], token: u32) -> f64 {
    let top = logits.iter().fold(f32::NEG_INFINITY, |top, x| top.max(*x));
    let sum: f64 = logits.iter().map(|x| f64::from(x - top).exp()).sum();
    sum.ln() - f64::from(logits[token as usize] - top)
}

/// Returns −ln of the probability of each token after the first.
fn losses(mut reference: Reference, tokens: &[u32]) -> Vec<f64> {
    tokens.windows(2).map(|pair| loss(&reference.step(pair[0]), pair[1])).collect()
}

/// Compares the losses of a text in pieces of several sizes.
#[test]
fn losses_are_those_of_the_reference() {
    let path = small("losses", "llama", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let tokens: Vec<u32> = (0..23).map(|i| i * 11 % 40).collect();
    let expected = losses(Reference::new(&Gguf::open(&path).unwrap()), &tokens);
    for (piece, exact) in [(64, false), (5, false), (64, true)] {
        let options = Options { room: 23, piece, cache: CacheFormat::F32, exact };
        let mut session = model.session(options).unwrap();
        let found = session.losses(&tokens).unwrap();
        assert_eq!(found.len(), 22);
        assert!(session.tokens().is_empty());
        for (found, expected) in found.iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-4, "{found} {expected}");
        }
        assert!(session.losses(&[]).unwrap_err().to_string().contains("no token"));
        assert!(session.losses(&[3]).unwrap().is_empty());
    }
}

/// Runs the command, and returns the JSON that it prints.
fn command(arguments: &[&str]) -> serde_json::Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_models")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn bench_counts_the_bytes_of_a_step() {
    let path = small("bench", "qwen2", false);
    let arguments = ["--prompt", "5", "--generate", "3", "--depth", "0", "--depth", "7", "--device", "cpu", "--json"];
    let found = command(&[&["bench", path.to_str().unwrap()][..], &arguments].concat());
    let weights: usize = Gguf::open(&path).unwrap().tensors().map(|tensor| tensor.bytes.len()).sum();
    for (run, depth) in [(&found["runs"][0], 0), (&found["runs"][1], 7)] {
        assert_eq!(run["depth"], depth);
        // Steps of 3 tokens see 6 to 8 keys more than the depth: keys and values of 16 bits.
        let cache = (depth + 7) * 2 * u64::from(LAYERS) * GROUPS * HEAD * 2;
        assert_eq!(run["bytes_per_step"].as_f64(), Some((weights as u64 + cache) as f64));
        assert!(run["generated_tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(run["prompt_tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(run["share_of_copy"].is_null());
    }
}

#[test]
fn perplexity_of_a_text() {
    let Some(path) = smollm2() else { return };
    let text = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("perplexity.txt");
    std::fs::write(&text, "The capital of France is Paris.").unwrap();
    let (file, text) = (path.to_str().unwrap(), text.to_str().unwrap());
    let found = command(&["perplexity", file, text, "--device", "cpu", "--json"]);
    let tokenizer = Checkpoint::open(&path).unwrap().tokenizer().unwrap();
    let tokens = tokenizer.encode("The capital of France is Paris.", Encoding::default()).unwrap();
    let expected = losses(Reference::new(&Gguf::open(&path).unwrap()).of_bytes(), &tokens);
    assert_eq!(found["tokens"], 6);
    let mean = expected.iter().sum::<f64>() / 6.0;
    let loss = found["loss"].as_f64().unwrap();
    println!("a loss of {loss}, of plain loops {mean}");
    assert!((loss - mean).abs() < 0.05, "{loss} {mean}");
    assert!((found["perplexity"].as_f64().unwrap() - loss.exp()).abs() < 1e-9);
}
