//! Logits of whole models, compared with plain loops and between ways to compute them.

use crate::difference;
use crate::reference::{Reference, likeliest};
use crate::small::{TOKENS, random, small, small_with_heads};
use kernel_dsl::compiler::launch::DeviceFacts;
use kernels_rs::blocks::heads::WIDTHS;
use models::Model;
use models::engine::linear::{FileRows, LinearLayer};
use models::engine::{Sampler, Sampling, SessionOptions};
use models::file::TensorFormat;
use models::file::gguf::Gguf;
use models::memory::CacheFormat;
use models::quantize::quantized;
use runtime::Device;
use runtime::interpreter::Checks;

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
