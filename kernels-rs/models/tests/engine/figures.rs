//! Figures of the command: memory, losses, speed.

use crate::reference::Reference;
use crate::small::{HEAD, KV_HEADS, LAYERS, TOKENS, small, small_chat_model};
use crate::support::smollm2;
use models::engine::{Generation, Sampling, SessionOptions};
use models::file::gguf::Gguf;
use models::memory::{CacheFormat, MemoryPlan};
use models::tokenizer::Encoding;
use models::{Checkpoint, Model};
use runtime::Device;
use runtime::interpreter::Checks;
use std::path::PathBuf;

/// Compares the estimate of activations with the bytes that the device allocates for the graphs of
/// a batch, and for a prompt in one chunk. The estimate does not count partial sums of products.
#[test]
fn activations_are_estimated() {
    for (architecture, quantized, cache, sequences, drafts) in [
        ("qwen3", false, CacheFormat::F32, 1, 0),
        ("llama", true, CacheFormat::F16, 8, 0),
        ("llama", true, CacheFormat::F16, 1, 15),
        ("qwen2", true, CacheFormat::Q8_0, 1, 0),
        ("qwen3moe", true, CacheFormat::F16, 1, 0),
    ] {
        let device = Device::cpu();
        device.set_checks(Checks::Values);
        let file = small(&format!("estimate-{architecture}"), architecture, quantized);
        let model = Model::load(&device, &file).unwrap();
        let tokens: Vec<u32> = (0..256).map(|i| i * 7 % TOKENS as u32).collect();
        let loaded = device.memory();
        let options = SessionOptions { context_size: 256, chunk_size: 256, cache, drafts, ..SessionOptions::default() };
        let mut batch = model.batch(options, sequences).unwrap();
        batch.set(0, &tokens).unwrap();
        while !batch.prefill(0).unwrap() {}
        let peak = device.memory().peak_in_use;
        assert!(
            peak > loaded.peak_in_use,
            "{architecture}: loading takes {} bytes, the prompt {peak}",
            loaded.peak_in_use
        );
        let [all_sequences, drafts] = [sequences, drafts].map(|count| count as u64);
        let plan = MemoryPlan { tokens: 256 * all_sequences, sequences: all_sequences, chunk_size: 256, drafts, cache };
        let needs = model.configuration.memory(plan, loaded.in_use);
        let found = (peak - loaded.in_use - needs.cache) as f64 / needs.activations as f64;
        println!(
            "{architecture}, {sequences} sequences, {drafts} drafts: {found} of the estimate of {} bytes",
            needs.activations
        );
        assert!(
            (0.9..1.1).contains(&found),
            "{architecture}, {sequences} sequences, {drafts} drafts: {found} of {} bytes",
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
