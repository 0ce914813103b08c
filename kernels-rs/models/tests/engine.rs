//! Whole models on the CPU device and on a GPU, compared with plain loops over `f32`.

#[path = "support/reference.rs"]
mod reference;
#[path = "support/small.rs"]
mod small;
mod support;

use kernel_dsl::compiler::launch::DeviceFacts;
use kernels_rs::blocks::heads::WIDTHS;
use models::engine::cache::SequencePages;
use models::engine::linear::{FileRows, LinearLayer};
use models::engine::timing::TimedStep;
use models::engine::{Batch, Generation, Sampler, Sampling, SessionOptions, StopReason};
use models::file::TensorFormat;
use models::file::gguf::Gguf;
use models::memory::{CacheFormat, MemoryPlan};
use models::quantize::quantized;
use models::template::{Conversation, Message};
use models::tokenizer::Encoding;
use models::{Checkpoint, Model};
use reference::{Reference, likeliest};
use runtime::Device;
use runtime::interpreter::Checks;
use small::{HEAD, KV_HEADS, LAYERS, TOKENS, random, small, small_chat_model, small_with_heads};
use std::path::PathBuf;
use support::smollm2;

/// Returns the largest difference, relative to the largest magnitude of an expected logit.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    let top = expected.iter().fold(0.0f32, |top, x| top.max(x.abs()));
    found.iter().zip(expected).fold(0.0f32, |most, (a, b)| most.max((a - b).abs())) / top
}

/// Compares the logits of a session with those of the reference after each chunk. `chunks`
/// has the numbers of tokens.
fn compared(device: &Device, path: &std::path::Path, options: SessionOptions, chunks: &[usize], bound: f32) {
    let mut reference = Reference::new(&Gguf::open(path).unwrap());
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(options).unwrap();
    let tokens: Vec<u32> = (0..40).map(|i| i * 7 % 40).collect();
    let mut at = 0;
    for chunk in chunks {
        let mut expected = Vec::new();
        for token in &tokens[at..at + chunk] {
            expected = reference.step(*token);
        }
        at += chunk;
        session.set(&tokens[..at]).unwrap();
        let found = session.logits().unwrap();
        let error = difference(&found, &expected);
        assert!(error <= bound, "{}, {options:?}, {at} tokens: {error}", path.display());
    }
}

/// Compares every architecture without experts and images, in two cache formats and every path
/// through attention.
fn all_compared(device: &Device) {
    let wide =
        SessionOptions { context_size: 40, chunk_size: 64, cache: CacheFormat::F32, ..SessionOptions::default() };
    let narrow = SessionOptions { cache: CacheFormat::F16, ..wide };
    for architecture in ["llama", "qwen2", "qwen3"] {
        let path = small(&format!("f32-{architecture}-{}", device.is_cpu()), architecture, false);
        // The chunks cover attention for a tile of queries, separate queries, and one query.
        compared(device, &path, wide, &[20, 3, 1, 1], 2e-5);
        compared(device, &path, narrow, &[18, 1], 2e-3);
        // The prompt has more keys than a warp has lanes.
        compared(device, &path, SessionOptions { exact: true, ..wide }, &[33, 1, 1], 2e-5);
        compared(device, &path, SessionOptions { exact: true, ..narrow }, &[9, 1], 2e-3);
        // Activations have 8 bits. Each of seven products in sequence adds an error of up to 1/254
        // of the largest activation of 32.
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

/// Compares heads of each supported size, in each cache format and every path through attention.
fn widths_compared(device: &Device) {
    // Llama rotates heads without norms, and Qwen3 with norms.
    let caches =
        [(CacheFormat::F32, "qwen3", 2e-5), (CacheFormat::F16, "llama", 2e-3), (CacheFormat::Q8_0, "qwen3", 3e-2)];
    for width in WIDTHS {
        for (cache, architecture, bound) in caches {
            let name = format!("width-{width}-{architecture}-{}", device.is_cpu());
            let path = small_with_heads(&name, architecture, false, width as u64);
            let options = SessionOptions { context_size: 40, chunk_size: 64, cache, ..SessionOptions::default() };
            // The chunks cover a tile of queries, separate queries, and one query.
            compared(device, &path, options, &[18, 2, 1], bound);
            compared(device, &path, SessionOptions { exact: true, ..options }, &[2, 1], bound);
        }
    }
}

#[test]
fn heads_of_every_width_have_the_logits_of_the_reference() {
    let device = Device::cpu();
    device.set_checks(Checks::Accesses);
    widths_compared(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_heads_of_every_width_have_the_logits_of_the_reference() {
    widths_compared(&Device::cuda(0).unwrap());
}

/// Compares experts with plain loops: for prompts in which an expert has few or many tokens, and
/// with `exact`, which computes each token alone. Then compares steps by the graph with a prompt.
fn experts_compared(device: &Device) {
    let path = small(&format!("experts-{}", device.is_cpu()), "qwen3moe", true);
    let tokens: Vec<u32> = (0..40).map(|i| i * 7 % 40).collect();
    let options = SessionOptions { context_size: 40, cache: CacheFormat::F32, ..SessionOptions::default() };
    let mut flips = 0;
    for options in [options, SessionOptions { chunk_size: 5, ..options }, SessionOptions { exact: true, ..options }] {
        let mut reference = Reference::new(&Gguf::open(&path).unwrap()).rounds_activations();
        let mut session = Model::load(device, &path).unwrap().session(options).unwrap();
        for (i, token) in tokens.iter().enumerate() {
            let expected = reference.step(*token);
            if [0, 1, 5, 39].contains(&i) {
                session.set(&tokens[..=i]).unwrap();
                let error = difference(&session.logits().unwrap(), &expected);
                println!("{options:?}, {i}: {error}");
                // Another order of a sum can change the rounding of an activation to 8 bits, which
                // changes the logits visibly.
                flips += usize::from(error >= 1e-4);
                assert!(error < 1e-2, "{options:?}, {i}: {error}");
            }
        }
    }
    assert!(flips <= 2, "{flips} of 12 logits differ by more than sums do");
    // Three steps by the graph.
    let model = Model::load(device, &path).unwrap();
    let (mut session, mut fresh) = (model.session(options).unwrap(), model.session(options).unwrap());
    session.set(&tokens[..3]).unwrap();
    let mut sampler = Sampler::new(device, Sampling::default(), TOKENS as usize, &[]).unwrap();
    for _ in 0..3 {
        session.next(&mut sampler).unwrap();
    }
    fresh.set(session.tokens()).unwrap();
    assert!(difference(&session.logits().unwrap(), &fresh.logits().unwrap()) < 1e-2);
    let error = Model::load(device, &small("experts-f32", "qwen3moe", false)).unwrap_err().to_string();
    assert!(error.contains("`blk.0.ffn_gate_exps.weight`: a tensor of the format F32 for experts is not"), "{error}");
}

/// Compares experts with logits of transformers 5.17 for the same weights, which `data/moe.py`
/// wrote. Plain loops and transformers compute in `f32`. The engine rounds activations to 8 bits.
#[test]
fn experts_have_the_logits_of_transformers() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let path = small("experts-transformers", "qwen3moe", true);
    let data = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/moe.json")).unwrap();
    let data: serde_json::Value = serde_json::from_str(&data).unwrap();
    let numbers = |value: &serde_json::Value| value.as_array().unwrap().clone();
    let tokens: Vec<u32> = numbers(&data["tokens"]).iter().map(|token| token.as_u64().unwrap() as u32).collect();
    let mut reference = Reference::new(&Gguf::open(&path).unwrap());
    let mut session = Model::load(&device, &path).unwrap().session(SessionOptions::default()).unwrap();
    for (i, token) in tokens.iter().enumerate() {
        let logits = reference.step(*token);
        let Some(expected) = data["logits"].get(i.to_string()) else { continue };
        let expected: Vec<f32> = numbers(expected).iter().map(|logit| logit.as_f64().unwrap() as f32).collect();
        session.set(&tokens[..=i]).unwrap();
        let errors = [difference(&logits, &expected), difference(&session.logits().unwrap(), &expected)];
        println!("{i}: plain loops {}, the engine {}", errors[0], errors[1]);
        assert!(errors[0] < 1e-5 && errors[1] < 3e-2, "{i}: {errors:?}");
    }
}

#[test]
fn experts_have_the_logits_of_the_reference() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    experts_compared(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_experts_have_the_logits_of_the_reference() {
    experts_compared(&Device::cuda(0).unwrap());
}

/// Compares decoding by the graph with the reference. Then compares a text whose beginning is
/// reused with the same text in a new session.
#[test]
fn decoding_continues_a_prompt() {
    let path = small("decoding", "llama", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let options =
        SessionOptions { context_size: 12, chunk_size: 4, cache: CacheFormat::F32, ..SessionOptions::default() };
    let mut session = model.session(options).unwrap();
    session.set(&[1, 2, 3]).unwrap();
    let greedy = Sampling::default();
    let mut sampler = Sampler::new(&model.device, greedy, TOKENS as usize, &[]).unwrap();
    for _ in 0..9 {
        session.next(&mut sampler).unwrap();
    }
    let error = session.next(&mut sampler).unwrap_err().to_string();
    assert_eq!(error, "cannot add a token: the context size is 12 tokens");
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
    // The new text begins like the old one, and ends differently.
    let mut other = text[..7].to_vec();
    other.push(30);
    session.set(&other).unwrap();
    let mut fresh = model.session(options).unwrap();
    fresh.set(&other).unwrap();
    assert!(difference(&session.logits().unwrap(), &fresh.logits().unwrap()) < 2e-5);
    assert!(session.set(&[]).unwrap_err().to_string().contains("no token"));
    assert!(session.set(&[40]).unwrap_err().to_string().contains("beyond the vocabulary of 40"));
    assert!(session.set(&[0; 13]).unwrap_err().to_string().contains("13 tokens; the context size is 12"));
}

/// Applies each option of sampling.
#[test]
fn options_of_sampling_are_applied() {
    let path = small("sampling", "qwen3", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 40, ..SessionOptions::default() }).unwrap();
    let mut draw = |sampling: Sampling, n: usize| {
        session.set(&[5, 6]).unwrap();
        let mut sampler = Sampler::new(&model.device, sampling, TOKENS as usize, &[5, 6]).unwrap();
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
    // With a large presence or frequency penalty, no token repeats.
    let all = draw(Sampling { presence_penalty: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    let all = draw(Sampling { frequency_penalty: 1e9, ..Sampling::default() }, 30);
    assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 30);
    for wrong in
        [Sampling { temperature: -1.0, ..warm }, Sampling { top_p: 0.0, ..warm }, Sampling { min_p: 2.0, ..warm }]
    {
        assert!(Sampler::new(&model.device, wrong, 40, &[]).is_err());
    }
}

/// Stops generation before a stop string, after a number of tokens, and when the sequence is full.
#[test]
fn generation_stops() {
    let path = small("stops", "qwen2", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 9, ..SessionOptions::default() }).unwrap();
    let mut generated = |generation: Generation| {
        let tokens: Vec<_> = session.generate("", &generation).unwrap().map(|token| token.unwrap()).collect();
        let text: String = tokens.iter().map(|token| token.text.as_str()).collect();
        (text, tokens.len(), tokens.last().unwrap().stop)
    };
    let (all, count, stop) = generated(Generation::default());
    assert_eq!((count, stop), (8, Some(StopReason::ContextFull)));
    assert_eq!(all.matches('t').count(), 8, "{all}");
    let (text, count, stop) = generated(Generation { max_tokens: 3, ..Generation::default() });
    assert_eq!((count, stop), (3, Some(StopReason::TokenLimit)));
    assert!(all.starts_with(&text));
    // The first stop string does not occur, but begins like the second, which spans several tokens.
    let from = all.match_indices('t').nth(4).unwrap().0;
    let stops = vec![format!("{}x", &all[from..from + 4]), all[from..from + 4].to_owned()];
    let (text, _, stop) = generated(Generation { stops: stops.clone(), ..Generation::default() });
    assert_eq!((text.as_str(), stop), (&all[..all.find(&stops[1]).unwrap()], Some(StopReason::StopString)));
}

/// Compares the reference with the likeliest token and its logit in other programs, and the engine
/// with the reference.
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
    let mut session = model.session(SessionOptions { context_size: 64, ..SessionOptions::default() }).unwrap();
    session.set(&tokens).unwrap();
    let found = session.logits().unwrap();
    assert_eq!(likeliest(&found), 7042);
    let error = difference(&found, &logits);
    println!("activations of 8 bits: {error} of the largest logit");
    assert!(error < 5e-2, "{error}");
}

/// Answers a question in the chat template, token by token by the graph.
#[test]
fn smollm2_answers() {
    let Some(path) = smollm2() else { return };
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 128, ..SessionOptions::default() }).unwrap();
    let conversation = Conversation::new(vec![Message::new("user", "What is 2+2?")]);
    let prompt = model.template.as_ref().unwrap().render(&conversation).unwrap();
    let generation = Generation { parse_special: true, ..Generation::default() };
    let (mut text, mut stop) = (String::new(), None);
    for token in session.generate(&prompt, &generation).unwrap() {
        let token = token.unwrap();
        text.push_str(&token.text);
        stop = token.stop;
    }
    assert_eq!((text.as_str(), stop), ("The answer to this classic math problem is 4.", Some(StopReason::EndToken)));
}

/// Continues a text by 64 tokens with every access checked, and compares them with the likeliest
/// tokens of plain loops.
///
/// The engine gets the tokens of the plain loops in chunks of 8, and computes the likeliest token
/// after each. Exact steps compute each token as if it were alone, so decoding token by token gives
/// the same results.
#[test]
fn smollm2_continues_with_every_access_checked() {
    let Some(path) = smollm2() else { return };
    let device = Device::cpu();
    device.set_checks(Checks::All);
    let model = Model::load(&device, &path).unwrap();
    let prompt = model.prompt("1, 2, 3, 4, 5, 6,", false).unwrap();
    let mut reference = Reference::new(&Gguf::open(&path).unwrap()).rounds_activations();
    let (mut text, mut logits) = (prompt.clone(), Vec::new());
    for token in &prompt {
        logits = reference.step(*token);
    }
    for _ in 0..64 {
        text.push(likeliest(&logits));
        logits = reference.step(text[text.len() - 1]);
    }
    println!("{}", String::from_utf8_lossy(&model.tokenizer.decode(&text).unwrap()));
    let mut session =
        model.session(SessionOptions { context_size: text.len(), exact: true, ..SessionOptions::default() }).unwrap();
    let found = session.likeliest(&text[..text.len() - 1]).unwrap();
    assert_eq!(found[prompt.len() - 1..], text[prompt.len()..]);
}

/// The prompt of [`continued`].
const PROMPT: &str = "The capital of France is";

/// Returns the tokens of the prompt and `n` generated tokens.
fn continued(device: &Device, path: &std::path::Path, exact: bool, n: usize) -> Vec<u32> {
    let model = Model::load(device, path).unwrap();
    let mut session = model.session(SessionOptions { context_size: 80, exact, ..SessionOptions::default() }).unwrap();
    let generation = Generation { max_tokens: n, ..Generation::default() };
    session.generate(PROMPT, &generation).unwrap().for_each(|token| drop(token.unwrap()));
    session.tokens().to_vec()
}

/// Returns by how much the logits of `tokens` are below the largest logit, relative to the largest
/// magnitude. The result is the maximum over the tokens after the first `from`.
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
    let lost = shortfall(Reference::new(&Gguf::open(&path).unwrap()).rounds_activations(), &tokens, 5);
    println!("{tokens:?}: below the likeliest of the reference at most {lost}");
    assert!(lost < 2e-2, "{lost}");
    let cpu = Device::cpu();
    cpu.set_checks(Checks::Values);
    assert_eq!(continued(&device, &path, true, 64), continued(&cpu, &path, true, 64));
}

/// Computes equal bits for 2 and 132 multiprocessors. Launch plans depend on this number.
#[test]
fn exact_steps_have_equal_bits_on_devices_of_any_size() {
    let path = small("sizes", "qwen3", true);
    let tokens: Vec<u32> = (0..70).map(|i| i * 7 % 40).collect();
    let logits = |multiprocessors: u32| {
        let device = Device::cpu_with_facts(DeviceFacts { multiprocessors });
        device.set_checks(Checks::Values);
        let model = Model::load(&device, &path).unwrap();
        let mut session =
            model.session(SessionOptions { context_size: 80, exact: true, ..SessionOptions::default() }).unwrap();
        session.set(&tokens).unwrap();
        session.logits().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
    };
    assert_eq!(logits(2), logits(132));
}

/// Computes the same bits for several rows together and for each row alone. `exact` requires this
/// property of products with quantized weights.
#[test]
fn products_of_few_rows_have_the_bits_of_one_row() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let (rows, columns) = (37, 768);
    let x = device.upload(&random(&mut 3, 8 * columns, 2.0)).unwrap();
    let weights = random(&mut 5, rows * columns, 0.1);
    for format in TensorFormat::ALL {
        let Some(bytes) = quantized(*format, &weights).filter(|_| format.block_elements() > 1) else { continue };
        let part = FileRows { format: *format, extents: [rows, columns], bytes: &bytes };
        let linear = LinearLayer::new(&device, &[part], None).unwrap();
        let product = |n: usize, from: usize| {
            let mut y = device.zeros::<f32>(n * rows).unwrap();
            let x = x.view([8, columns]).unwrap().slice(from..from + n).unwrap();
            linear.run(&device, &x, &mut y.view_mut([n, rows]).unwrap()).unwrap();
            y.download().unwrap().iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
        };
        let alone: Vec<u32> = (0..8).flat_map(|i| product(1, i)).collect();
        for n in [2, 3, 5, 8] {
            assert_eq!(product(n, 0), alone[..n * rows], "{format}, {n} rows");
        }
    }
}

/// A text of a batch.
struct PlannedText {
    prompt: Vec<u32>,
    sampling: Sampling,
    /// The round in which the text begins.
    round: usize,
    /// The number of tokens to draw.
    tokens: usize,
}

impl PlannedText {
    /// Returns a text of the likeliest tokens, which begins in the first round.
    fn greedy(prompt: &[u32], tokens: usize) -> PlannedText {
        PlannedText { prompt: prompt.to_vec(), sampling: Sampling::default(), round: 0, tokens }
    }
}

/// Returns the tokens that a session draws after a prompt.
fn drawn_alone(model: &Model, options: SessionOptions, text: &PlannedText) -> Vec<u32> {
    let PlannedText { prompt, sampling, tokens, .. } = text;
    let mut session = model.session(options).unwrap();
    session.set(prompt).unwrap();
    let vocabulary = model.configuration.vocabulary;
    let mut sampler = Sampler::new(&model.device, *sampling, vocabulary, prompt).unwrap();
    (0..*tokens).map(|_| session.next(&mut sampler).unwrap()).collect()
}

/// Returns the tokens that a batch draws after each prompt. A text begins in its round or later, in
/// the first free sequence.
fn drawn_together(model: &Model, options: SessionOptions, sequences: usize, planned: &[PlannedText]) -> Vec<Vec<u32>> {
    let mut batch = model.batch(options, sequences).unwrap();
    let vocabulary = model.configuration.vocabulary;
    let mut drawn = vec![Vec::new(); planned.len()];
    // Text, sequence, sampler, and whether the prompt is computed.
    let mut running: Vec<(usize, usize, Sampler, bool)> = Vec::new();
    let mut waiting: Vec<usize> = (0..planned.len()).collect();
    let mut round = 0;
    while !running.is_empty() || !waiting.is_empty() {
        waiting.retain(|i| {
            let PlannedText { prompt, sampling, round: first_round, .. } = &planned[*i];
            let is_free = |sequence: &usize| running.iter().all(|(_, other, ..)| other != sequence);
            let Some(sequence) = (0..sequences).find(is_free).filter(|_| *first_round <= round) else { return true };
            batch.set(sequence, prompt).unwrap();
            let sampler = Sampler::new(&model.device, *sampling, vocabulary, prompt).unwrap();
            running.push((*i, sequence, sampler, false));
            false
        });
        // A round computes one chunk of one prompt.
        if let Some((_, sequence, _, is_prompted)) = running.iter_mut().find(|(.., is_prompted)| !is_prompted) {
            *is_prompted = batch.prefill(*sequence).unwrap();
        }
        let ready = running.iter_mut().filter(|(.., is_prompted)| *is_prompted).collect::<Vec<_>>();
        batch.advance(&ready.iter().map(|(_, sequence, ..)| *sequence).collect::<Vec<_>>()).unwrap();
        for (i, sequence, sampler, _) in ready {
            drawn[*i].push(batch.draw(*sequence, sampler).unwrap());
        }
        running.retain(|(i, ..)| drawn[*i].len() < planned[*i].tokens);
        round += 1;
    }
    drawn
}

/// Draws the same tokens for each sequence of a batch as for it alone. The sequences begin and end
/// at different times, with prompts in chunks and reused sequences.
fn sequences_as_if_alone(device: &Device) {
    let warm = |seed| Sampling { temperature: 1.5, seed, top_k: 20, presence_penalty: 0.5, ..Sampling::default() };
    let prompt = |from: u32, n: u32| (from..from + n).map(|i| i * 7 % 40).collect::<Vec<u32>>();
    let planned = [
        PlannedText { prompt: prompt(0, 3), sampling: Sampling::default(), round: 0, tokens: 9 },
        PlannedText { prompt: prompt(5, 11), sampling: warm(1), round: 0, tokens: 4 },
        PlannedText { prompt: prompt(1, 1), sampling: warm(2), round: 3, tokens: 7 },
        PlannedText { prompt: prompt(5, 12), sampling: Sampling::default(), round: 5, tokens: 6 },
        PlannedText { prompt: prompt(9, 20), sampling: warm(3), round: 6, tokens: 5 },
    ];
    let models =
        [("qwen3", true, CacheFormat::F16), ("qwen2", false, CacheFormat::F32), ("llama", true, CacheFormat::Q8_0)];
    for (architecture, quantized, cache) in models {
        let path = small(&format!("batch-{architecture}-{}", device.is_cpu()), architecture, quantized);
        let model = Model::load(device, &path).unwrap();
        // Pages of 4 tokens apply to the batch. A session has a single page.
        let options = SessionOptions {
            context_size: 40,
            chunk_size: 5,
            cache,
            page: 4,
            exact: true,
            ..SessionOptions::default()
        };
        let alone: Vec<Vec<u32>> = planned.iter().map(|text| drawn_alone(&model, options, text)).collect();
        assert_eq!(drawn_together(&model, options, 3, &planned), alone, "{architecture}");
        // Chunks of one token give the same result as longer chunks.
        let single = SessionOptions { chunk_size: 1, ..options };
        assert_eq!(drawn_alone(&model, single, &planned[3]), alone[3]);
        for (drafts, text) in [(3, 0), (15, 1)] {
            let options = SessionOptions { drafts, ..options };
            assert_eq!(drawn_alone(&model, options, &planned[text]), alone[text], "{drafts} drafts");
        }
    }
}

#[test]
fn sequences_of_a_batch_are_as_if_alone() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    sequences_as_if_alone(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_sequences_of_a_batch_are_as_if_alone() {
    sequences_as_if_alone(&Device::cuda(0).unwrap());
}

/// Shares the full pages of a common beginning between sequences, and draws the same tokens as in a
/// session.
#[test]
fn sequences_that_begin_alike_share_pages() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    for cache in CacheFormat::ALL {
        let model = Model::load(&device, &small(&format!("alike-{cache:?}"), "qwen3", true)).unwrap();
        let options = SessionOptions {
            context_size: 40,
            chunk_size: 5,
            cache,
            page: 4,
            exact: true,
            ..SessionOptions::default()
        };
        let mut batch = model.batch(options, 3).unwrap();
        let sampler = || Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
        let draw = |batch: &mut Batch, sequence: usize, tokens: &[u32], kept: usize| {
            let planned = PlannedText::greedy(tokens, 6);
            assert_eq!(batch.reusable_tokens(sequence, &tokens.to_vec().into()).unwrap(), kept, "{tokens:?}");
            batch.set(sequence, tokens).unwrap();
            while !batch.prefill(sequence).unwrap() {}
            let drawn: Vec<u32> = (0..6).map(|_| batch.draw(sequence, &mut sampler()).unwrap()).collect();
            assert_eq!(drawn, drawn_alone(&model, options, &planned), "{tokens:?}");
        };
        let text: Vec<u32> = (0..14).map(|i| i * 7 % 40).collect();
        let other = [&text[..10], &[1, 2, 3]].concat();
        draw(&mut batch, 0, &text, 0);
        // Full pages contain 8 of the 10 common tokens. The same sequence then reuses all but the
        // last of its 13 tokens.
        draw(&mut batch, 1, &other, 8);
        draw(&mut batch, 1, &other, 12);
        draw(&mut batch, 2, &text, 12);
        // Two sequences share the third page. A text that differs within this page computes it
        // again.
        draw(&mut batch, 0, &[&text[..11], &[5]].concat(), 8);
        draw(&mut batch, 2, &[&text[..11], &[6]].concat(), 11);
    }
}

/// Compares the logits of sequences in one step with those of the reference, without `exact`.
#[test]
fn steps_of_several_sequences_have_the_logits_of_the_reference() {
    for (cache, bound) in [(CacheFormat::F32, 2e-5), (CacheFormat::F16, 2e-3), (CacheFormat::Q8_0, 2e-2)] {
        steps_of_several_sequences(cache, bound);
    }
}

/// Compares the logits of sequences whose cache has this format. A prompt of 20 tokens passes the
/// layers at once.
fn steps_of_several_sequences(cache: CacheFormat, bound: f32) {
    let device = Device::cpu();
    device.set_checks(Checks::Accesses);
    let path = small(&format!("several-{cache:?}"), "qwen2", false);
    let model = Model::load(&device, &path).unwrap();
    let options = SessionOptions { context_size: 30, chunk_size: 20, cache, page: 7, ..SessionOptions::default() };
    let mut batch = model.batch(options, 3).unwrap();
    let texts =
        [vec![1, 2, 3, 4, 5, 6, 7, 8], vec![9], vec![3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]];
    let greedy = || Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
    for (i, text) in texts.iter().enumerate() {
        batch.set(i, text).unwrap();
        while !batch.prefill(i).unwrap() {}
        batch.draw(i, &mut greedy()).unwrap();
    }
    for _ in 0..3 {
        batch.advance(&[2, 0, 1]).unwrap();
        for i in 0..3 {
            let mut reference = Reference::new(&Gguf::open(&path).unwrap());
            let expected = batch.tokens(i).unwrap().iter().fold(vec![], |_, token| reference.step(*token));
            let error = difference(&batch.logits(i).unwrap(), &expected);
            println!("{cache:?}: {error}");
            assert!(error < bound, "{cache:?}: {error}");
            let drawn = batch.draw(i, &mut greedy()).unwrap();
            assert!(cache != CacheFormat::F32 || drawn == likeliest(&expected));
        }
    }
    assert!(batch.set(3, &[1]).unwrap_err().to_string().contains("no sequence 3 among 3"));
    assert!(model.batch(options, 17).unwrap_err().to_string().contains("1 to 16 sequences, found 17"));
    assert!(model.batch(options, 0).is_err());
    assert!(model.session(SessionOptions { drafts: 16, ..options }).is_err());
}

/// Rejects options and steps without tokens, instead of a panic.
#[test]
fn options_without_tokens_are_refused() {
    let device = Device::cpu();
    // A kernel that is timed alone reads memory that other kernels of the step did not write.
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &small("zeros", "qwen2", true)).unwrap();
    let options = SessionOptions { context_size: 8, ..SessionOptions::default() };
    let decode = |sequences| TimedStep::Decode { sequences, before: 2 };
    let zeros = [
        (SessionOptions { context_size: 0, ..options }, "context size"),
        (SessionOptions { chunk_size: 0, ..options }, "chunk size"),
        (SessionOptions { page: 0, ..options }, "page"),
    ];
    for (options, name) in zeros {
        let errors = [
            model.session(options).unwrap_err(),
            model.batch(options, 2).unwrap_err(),
            model.step_times(options, decode(1)).unwrap_err(),
            model.step_times(options, decode(2)).unwrap_err(),
            model.step_times(options, TimedStep::Prompt { tokens: 1, before: 0 }).unwrap_err(),
        ];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.contains(&format!("a {name} of 1 token or more, found 0")), "{error}");
        }
    }
    for sequences in [0, 17] {
        let error = model.step_times(options, decode(sequences)).unwrap_err().to_string();
        assert!(error.contains(&format!("1 to 16 sequences, found {sequences}")), "{error}");
    }
    for (tokens, before) in [(0, 0), (0, 3), (1, usize::MAX), (2, u32::MAX as usize - 2)] {
        let error = model.step_times(options, TimedStep::Prompt { tokens, before }).unwrap_err().to_string();
        assert_eq!(error, format!("cannot time a step: expected 1 to 2³² − 2 tokens, found {tokens} after {before}"));
    }
    model.step_times(options, decode(3)).unwrap();
    assert_eq!(SequencePages::new(2, 5, 0).extents(), [10, 1]);
    assert_eq!(SequencePages::new(1, 0, 0).extents(), [0, 1]);
}

/// Compares the estimate of activations with the bytes that the device allocates for the graphs of
/// a batch, and for a prompt in one chunk. The estimate does not count partial sums of products.
#[test]
fn activations_are_estimated() {
    for (architecture, quantized, cache, sequences) in [
        ("qwen3", false, CacheFormat::F32, 1),
        ("llama", true, CacheFormat::F16, 8),
        ("qwen2", true, CacheFormat::Q8_0, 1),
        ("qwen3moe", true, CacheFormat::F16, 1),
    ] {
        let device = Device::cpu();
        device.set_checks(Checks::Values);
        let model = Model::load(&device, &small(&format!("estimate-{architecture}"), architecture, quantized)).unwrap();
        let tokens: Vec<u32> = (0..256).map(|i| i * 7 % TOKENS as u32).collect();
        let loaded = device.memory();
        let options = SessionOptions { context_size: 256, chunk_size: 256, cache, ..SessionOptions::default() };
        let mut batch = model.batch(options, sequences).unwrap();
        batch.set(0, &tokens).unwrap();
        while !batch.prefill(0).unwrap() {}
        let peak = device.memory().peak_in_use;
        assert!(
            peak > loaded.peak_in_use,
            "{architecture}: loading takes {} bytes, the prompt {peak}",
            loaded.peak_in_use
        );
        let plan = MemoryPlan { tokens: 256 * sequences as u64, sequences: sequences as u64, chunk_size: 256, cache };
        let needs = model.configuration.memory(plan, loaded.in_use);
        let found = (peak - loaded.in_use - needs.cache) as f64 / needs.activations as f64;
        println!("{architecture}, {sequences} sequences: {found} of the estimate of {} bytes", needs.activations);
        assert!(
            (0.9..1.1).contains(&found),
            "{architecture}, {sequences} sequences: {found} of {} bytes",
            needs.activations
        );
        assert_eq!(needs.total(), loaded.in_use + needs.cache + needs.activations);
    }
}

/// Draws tokens with each option of sampling on the command line.
#[test]
fn the_command_has_the_options_of_sampling() {
    let path = small_chat_model("options", 64, false);
    let sampling = Sampling {
        seed: 3,
        temperature: 1.5,
        top_k: 20,
        top_p: 0.9,
        min_p: 0.01,
        repetition_penalty: 1.2,
        frequency_penalty: 0.3,
        presence_penalty: 0.5,
    };
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let mut session = Model::load(&device, &path).unwrap().session(SessionOptions::default()).unwrap();
    for (sampling, arguments) in [
        (
            sampling,
            "--seed 3 --temperature 1.5 --top-k 20 --top-p 0.9 --min-p 0.01 --repetition-penalty 1.2 \
             --frequency-penalty 0.3 --presence-penalty 0.5",
        ),
        (Sampling::default(), ""),
    ] {
        let generation = Generation { sampling, max_tokens: 9, ..Generation::default() };
        let text: String = session.generate("ab", &generation).unwrap().map(|token| token.unwrap().text).collect();
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_models"));
        command.arg("generate").arg(&path).args(["--prompt", "ab", "--max-tokens", "9", "--device", "cpu"]);
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("ab{text}\n"), "{arguments}");
    }
}

/// Drafts the tokens of a text that repeats itself, and draws the same tokens as without drafts.
#[test]
fn drafts_of_a_repetition_are_right() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &small("drafts", "llama", true)).unwrap();
    let options = SessionOptions { context_size: 100, exact: true, drafts: 7, ..SessionOptions::default() };
    // The likeliest tokens of a small model soon repeat.
    let planned = PlannedText::greedy(&[1, 2, 3], 60);
    let mut session = model.session(options).unwrap();
    session.set(&planned.prompt).unwrap();
    let mut sampler = Sampler::new(&device, Sampling::default(), TOKENS as usize, &[]).unwrap();
    let drawn: Vec<u32> = (0..60).map(|_| session.next(&mut sampler).unwrap()).collect();
    assert_eq!(drawn, drawn_alone(&model, SessionOptions { drafts: 0, ..options }, &planned));
    let [all, right] = session.drafts();
    assert!(right >= 20 && all >= right, "{right} of {all}");
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

/// Compares the losses of a sequence with those of the reference, in chunks of several sizes.
#[test]
fn losses_are_those_of_the_reference() {
    let path = small("losses", "llama", false);
    let model = Model::load(&Device::cpu(), &path).unwrap();
    let tokens: Vec<u32> = (0..23).map(|i| i * 11 % 40).collect();
    let expected = losses(Reference::new(&Gguf::open(&path).unwrap()), &tokens);
    for (chunk_size, exact) in [(64, false), (5, false), (64, true)] {
        let options = SessionOptions {
            context_size: 23,
            chunk_size,
            cache: CacheFormat::F32,
            exact,
            ..SessionOptions::default()
        };
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
    assert!(found["runs"][0]["times"].is_null());
    let weights: usize = Gguf::open(&path).unwrap().tensors().map(|tensor| tensor.bytes.len()).sum();
    for (run, depth) in [(&found["runs"][0], 0), (&found["runs"][1], 7)] {
        assert_eq!(run["depth"], depth);
        // The three steps see 7 to 9 keys more than the depth, 8 on average. Keys and values have
        // 16 bits.
        let cache = (depth + 8) * 2 * u64::from(LAYERS) * KV_HEADS * HEAD * 2;
        assert_eq!(run["bytes_per_step"].as_f64(), Some((weights as u64 + cache) as f64));
        assert!(run["generated_tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(run["prompt_tokens_per_second"].as_f64().unwrap() > 0.0);
        assert!(run["share_of_copy"].is_null());
    }
    // Two sequences with different keys, and each kernel timed alone. A kernel of a layer has one
    // launch for each layer. Norms are part of the products in a step of two tokens, but not in a
    // prompt of five.
    let arguments = ["--prompt", "5", "--generate", "3", "--sequences", "2", "--kernels", "--device", "cpu", "--json"];
    let found = command(&[&["bench", path.to_str().unwrap()][..], &arguments].concat());
    let run = &found["runs"][0];
    let cache = 2 * 8 * 2 * u64::from(LAYERS) * KV_HEADS * HEAD * 2;
    assert_eq!(run["bytes_per_step"].as_f64(), Some((weights as u64 + cache) as f64));
    let launches = |found: &serde_json::Value, what: &str, name: &str| {
        let kernels = found["runs"][0]["times"][what]["kernels"].as_array().unwrap().iter();
        let named = kernels.filter(|kernel| kernel["instance"].as_str().unwrap().starts_with(name));
        named.map(|kernel| kernel["launches"].as_u64().unwrap()).sum::<u64>()
    };
    let of_step = ["gemv_normed", "heads", "flash_decode", "advance"].map(|name| launches(&found, "step", name));
    assert_eq!(of_step, [4, 2, 2, 1]);
    assert_eq!(["gemv_normed", "heads", "advance"].map(|name| launches(&found, "prompt", name)), [0, 2, 0]);
    // With quantized weights, the kernels of norms and gates also quantize. A separate launch
    // quantizes the result of attention.
    let path = small("bench-q8", "qwen2", true);
    let found = command(&[&["bench", path.to_str().unwrap()][..], &arguments].concat());
    let of_step = ["norm_activations", "quantize_activations", "norm_rows", "map"];
    assert_eq!(of_step.map(|name| launches(&found, "step", name)), [5, 4, 0, 0]);
}

/// Compares a model with itself, and with one whose weights have 8 bits.
#[test]
fn models_are_compared() {
    let compared = |name: &str, quantized: bool| {
        let [file, other] =
            [(name, quantized), ("compared", false)].map(|(name, quantized)| small(name, "qwen2", quantized));
        let files = ["compare", file.to_str().unwrap(), other.to_str().unwrap()];
        command(&[&files[..], &["--sequences", "2", "--tokens", "5", "--device", "cpu", "--json"]].concat())
    };
    let same = compared("compared", false);
    assert_eq!((same["largest_difference"].as_f64(), same["root_mean_square"].as_f64()), (Some(0.0), Some(0.0)));
    assert!(same["kl_divergence"].as_f64().unwrap() >= 0.0);
    let rounded = compared("compared-q8", true);
    for name in ["largest_difference", "root_mean_square", "kl_divergence"] {
        let error = rounded[name].as_f64().unwrap();
        assert!(error > 1e-6 && error < 0.1, "{name}: {error}");
    }
}

#[test]
fn perplexity_is_that_of_the_text() {
    let Some(path) = smollm2() else { return };
    let text = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("perplexity.txt");
    std::fs::write(&text, "The capital of France is Paris.").unwrap();
    let (file, text) = (path.to_str().unwrap(), text.to_str().unwrap());
    let found = command(&["perplexity", file, text, "--device", "cpu", "--json"]);
    let tokenizer = Checkpoint::open(&path).unwrap().tokenizer().unwrap();
    let tokens = tokenizer.encode("The capital of France is Paris.", Encoding::default()).unwrap();
    let expected = losses(Reference::new(&Gguf::open(&path).unwrap()).rounds_activations(), &tokens);
    assert_eq!(found["tokens"], 6);
    let mean = expected.iter().sum::<f64>() / 6.0;
    let loss = found["loss"].as_f64().unwrap();
    println!("a loss of {loss}, of plain loops {mean}");
    assert!((loss - mean).abs() < 0.05, "{loss} {mean}");
    assert!((found["perplexity"].as_f64().unwrap() - loss.exp()).abs() < 1e-9);
}
