//! Models whose layers are split over several devices, compared with the same models on one device.
//!
//! Tests without a GPU use several CPU devices, which have separate graphs and streams. Activations
//! are copied between these devices as between GPUs.

#[path = "support/pictures.rs"]
mod pictures;
#[path = "support/small.rs"]
mod small;
mod support;

use kernel_dsl::compiler::launch::DeviceFacts;
use models::engine::{LayerSplit, Prompt, Sampling, SessionOptions};
use models::memory::{CacheFormat, MemoryPlan};
use models::{Checkpoint, Model};
use pictures::{IMAGE, MatrixFormat, picture, processor, qwen3_vl};
use runtime::Device;
use runtime::interpreter::Checks;
use small::{LAYERS, TOKENS, small};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

/// Returns a CPU device that does not check accesses.
fn cpu() -> Device {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    device
}

/// Returns GPUs 0 and 1. If there is only one, prints so and returns `None`.
fn two_gpus() -> Option<[Device; 2]> {
    let first = Device::cuda(0).unwrap();
    match Device::cuda(1) {
        Ok(second) => Some([first, second]),
        Err(runtime::Error::NoSuchDevice { .. }) => {
            println!("skipped: there is one device");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Loads a model with these numbers of layers on the devices.
fn loaded(path: &Path, devices: &[Device], layers: &[usize]) -> Model {
    let split = LayerSplit::new(devices).with_layers(layers);
    let model = Model::load_split(&split, &Checkpoint::open(path).unwrap(), |_, _| {}).unwrap();
    let found: Vec<usize> = model.stages.iter().map(|stage| stage.blocks.len()).collect();
    assert_eq!(found, layers);
    model
}

fn bits(numbers: Vec<f32>) -> Vec<u32> {
    numbers.into_iter().map(f32::to_bits).collect()
}

/// Runs a model without images in every way, and returns the tokens and the bits of logits and
/// losses. The ways are prompts in chunks, steps, draws, drafts, reused beginnings, and sequences
/// that share pages.
fn results(model: &Model, options: SessionOptions) -> Vec<Vec<u32>> {
    let text: Vec<u32> = (0..30).map(|i| i * 7 % TOKENS as u32).collect();
    let warm =
        Sampling { temperature: 1.5, seed: 3, top_k: 20, min_p: 0.01, presence_penalty: 0.5, ..Sampling::default() };
    let mut found = Vec::new();
    let mut session = model.session(options).unwrap();
    for end in [18, 21] {
        session.set(&text[..end]).unwrap();
        found.push(bits(session.logits().unwrap()));
    }
    for sampling in [Sampling::default(), warm] {
        let mut sampler = model.sampler(sampling, session.tokens()).unwrap();
        for _ in 0..3 {
            session.next(&mut sampler).unwrap();
            found.push(bits(session.logits().unwrap()));
        }
        found.push(session.tokens().to_vec());
    }
    session.set(&[&text[..9], &[1, 2]].concat()).unwrap();
    found.push(bits(session.logits().unwrap()));
    found.push(bits(session.losses(&text).unwrap()));
    found.push(session.likeliest(&text).unwrap());
    found.push(session.drafts().iter().map(|count| *count as u32).collect());

    let mut batch = model.batch(SessionOptions { page: 4, ..options }, 3).unwrap();
    let texts = [&text[..9], &[9], &text[..10]];
    for (i, text) in texts.into_iter().enumerate() {
        assert_eq!(batch.reusable_tokens(i, &text.to_vec().into()).unwrap(), if i == 2 { 8 } else { 0 });
        batch.set(i, text).unwrap();
        while !batch.prefill(i).unwrap() {}
    }
    let mut samplers =
        [Sampling::default(), warm, Sampling::default()].map(|sampling| model.sampler(sampling, &[]).unwrap());
    // Steps of one to three sequences use graphs of different widths, which share the caches.
    for running in [&[0, 1, 2][..], &[0, 1, 2], &[1], &[2, 0], &[0, 1, 2]] {
        batch.advance(running).unwrap();
        for i in running {
            batch.draw(*i, &mut samplers[*i]).unwrap();
        }
    }
    for i in 0..3 {
        found.push(batch.tokens(i).unwrap().to_vec());
        found.push(bits(batch.logits(i).unwrap()));
    }
    found
}

/// Returns the bits of logits after a text with two images, and after two more tokens.
fn results_with_images(model: &Model) -> Vec<Vec<u32>> {
    let processor = processor(&model.configuration.vision.clone().unwrap());
    let images = [picture(64, 96), picture(64, 32)].map(|image| Arc::new(processor.prepare(&image).unwrap()));
    // A chunk ends within an image.
    let options = SessionOptions { context_size: 64, chunk_size: 7, ..SessionOptions::default() };
    let mut session = model.session(options).unwrap();
    session.set_prompt(Prompt::with_images(&[1, 2, IMAGE, 3, IMAGE, 4], IMAGE, &images).unwrap()).unwrap();
    let mut found = vec![bits(session.logits().unwrap())];
    let mut sampler = model.sampler(Sampling::default(), session.tokens()).unwrap();
    for _ in 0..2 {
        session.next(&mut sampler).unwrap();
        found.push(bits(session.logits().unwrap()));
    }
    found
}

/// Compares results on several devices with those on the device `alone`.
fn compared(path: &Path, alone: &Device, devices: &[Device], layers: &[usize], options: SessionOptions) {
    let one = results(&loaded(path, std::slice::from_ref(alone), &[layers.iter().sum()]), options);
    let split = results(&loaded(path, devices, layers), options);
    for (i, (split, one)) in split.iter().zip(&one).enumerate() {
        assert_eq!(split, one, "{}, {layers:?} layers on {devices:?}, {options:?}, result {i}", path.display());
    }
    assert_eq!(split.len(), one.len());
}

const OPTIONS: SessionOptions =
    SessionOptions { context_size: 40, chunk_size: 12, cache: CacheFormat::F16, page: 64, exact: false, drafts: 0 };

/// Compares results for several architectures, formats of the cache, fused and separate norms, and
/// drafts.
fn all_compared(name: &str, alone: &Device, devices: &[Device]) {
    for (architecture, quantized, options) in [
        ("qwen3", true, OPTIONS),
        ("qwen2", false, SessionOptions { cache: CacheFormat::F32, drafts: 3, ..OPTIONS }),
        ("llama", true, SessionOptions { cache: CacheFormat::Q8_0, exact: true, drafts: 3, ..OPTIONS }),
        ("qwen3moe", true, OPTIONS),
    ] {
        compared(&small(&format!("{name}-{architecture}"), architecture, quantized), alone, devices, &[1, 1], options);
    }
}

#[test]
fn two_devices_give_the_bits_of_one() {
    all_compared("split", &cpu(), &[cpu(), cpu()]);
}

/// Splits over three devices. Each of the first two has a layer after which image features are
/// added.
#[test]
fn three_devices_give_the_bits_of_one() {
    for (format, layers) in [(MatrixFormat::F32, [1, 2, 1]), (MatrixFormat::Bf16, [1, 1, 2])] {
        let path = qwen3_vl(&format!("split-{format:?}"), format);
        let one = results_with_images(&loaded(&path, &[cpu()], &[4]));
        assert_eq!(results_with_images(&loaded(&path, &[cpu(), cpu(), cpu()], &layers)), one, "{format:?}");
    }
    let path = qwen3_vl("split-three", MatrixFormat::Bf16);
    compared(&path, &cpu(), &[cpu(), cpu(), cpu()], &[2, 1, 1], SessionOptions { context_size: 64, ..OPTIONS });
}

/// Runs two devices with every access checked.
#[test]
fn two_devices_pass_every_check() {
    let devices = [Device::cpu(), Device::cpu()];
    devices.iter().for_each(|device| device.set_checks(Checks::All));
    let model = loaded(&qwen3_vl("split-checked", MatrixFormat::F32), &devices, &[1, 3]);
    let image = model.processor().unwrap().with_tokens(4).prepare(&picture(64, 64)).unwrap();
    let mut session = model.session(SessionOptions { context_size: 64, ..OPTIONS }).unwrap();
    session.set_prompt(Prompt::with_images(&[1, IMAGE, 2], IMAGE, &[Arc::new(image)]).unwrap()).unwrap();
    let mut sampler = model.sampler(Sampling::default(), &[]).unwrap();
    session.next(&mut sampler).unwrap();
    session.next(&mut sampler).unwrap();
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_two_devices_give_the_bits_of_one() {
    let Some(devices) = two_gpus() else { return };
    all_compared("gpu-split", &devices[0], &devices);
    let path = qwen3_vl("gpu-split", MatrixFormat::Bf16);
    let one = results_with_images(&loaded(&path, &devices[..1], &[4]));
    for layers in [[1, 3], [3, 1]] {
        assert_eq!(results_with_images(&loaded(&path, &devices, &layers)), one, "{layers:?}");
    }
}

/// Runs some layers on the CPU and the others on a GPU. Exact steps give the same bits on each
/// device.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_and_cpu_together_give_the_bits_of_one() {
    let path = small("gpu-cpu-split", "qwen3", true);
    let exact = SessionOptions { exact: true, ..OPTIONS };
    compared(&path, &cpu(), &[Device::cuda(0).unwrap()], &[2], exact);
    for devices in [[Device::cuda(0).unwrap(), cpu()], [cpu(), Device::cuda(0).unwrap()]] {
        compared(&path, &cpu(), &devices, &[1, 1], exact);
    }
}

#[test]
fn layers_are_split_by_bytes() {
    let path = small("split-by-bytes", "llama", true);
    let checkpoint = Checkpoint::open(&path).unwrap();
    let model = Model::load_split(&LayerSplit::new(&[cpu(), cpu()]), &checkpoint, |_, _| {}).unwrap();
    let of_stages: Vec<_> = model.stages.iter().map(|stage| (stage.first_layer, stage.blocks.len())).collect();
    assert_eq!(of_stages, [(0, 1), (1, 1)]);
    assert_eq!(model.device_names(), "cpu (interpreter), cpu (interpreter)");
    // The devices together have the weights of the file, and the tied output matrix a second time.
    let configuration = checkpoint.configuration().unwrap();
    let weights = checkpoint.weight_bytes(&configuration).unwrap();
    let embedding = checkpoint.tensor("token_embd.weight").unwrap().bytes.len() as u64;
    assert_eq!((weights.first, weights.total()), (embedding, checkpoint.tensor_bytes() + embedding));
    assert_eq!(weights.layers.len(), LAYERS as usize);
}

/// Limits the memory of two devices differently, then exchanges the limits. Loading splits layers
/// as the configuration does for this free memory.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_layers_follow_free_memory() {
    let Some(devices) = two_gpus() else { return };
    let checkpoint = Checkpoint::open(&qwen3_vl("gpu-split-free", MatrixFormat::F32)).unwrap();
    let configuration = checkpoint.configuration().unwrap();
    let weights = checkpoint.weight_bytes(&configuration).unwrap();
    // With so many tokens, the caches are larger than the embedding.
    let plan = MemoryPlan { tokens: 1 << 16, ..MemoryPlan::default() };
    for (limits, expected) in [([64, 192], [1, 3]), ([192, 64], [3, 1])] {
        for (device, limit) in devices.iter().zip(limits) {
            device.limit_memory(Some((limit << 20) + device.memory().in_use));
        }
        let free: Vec<Option<u64>> = devices.iter().map(Device::free_memory).collect();
        assert_eq!(free, limits.map(|limit| Some(limit << 20)));
        let layers = configuration.layers_by_device(plan, &weights, &free, None).unwrap();
        assert_eq!(layers, expected);
        let split = LayerSplit::new(&devices).with_plan(plan);
        let model = Model::load_split(&split, &checkpoint, |_, _| {}).unwrap();
        assert_eq!(model.stages.iter().map(|stage| stage.blocks.len()).collect::<Vec<_>>(), layers);
    }
    devices.iter().for_each(|device| device.limit_memory(None));
}

#[test]
fn splits_that_do_not_fit_are_refused() {
    let checkpoint = Checkpoint::open(&small("split-refused", "llama", true)).unwrap();
    let refused = |devices: usize, layers: Option<&[usize]>| {
        let devices: Vec<Device> = (0..devices).map(|_| cpu()).collect();
        let split = LayerSplit::new(&devices);
        let split = layers.map_or(split.clone(), |layers| split.with_layers(layers));
        Model::load_split(&split, &checkpoint, |_, _| {}).unwrap_err().to_string()
    };
    assert_eq!(refused(3, None), "a split, devices: found 3 devices for 2 layers; expected 1 to 2, each with a layer");
    assert_eq!(refused(0, None), "a split, devices: found 0 devices for 2 layers; expected 1 to 2, each with a layer");
    for layers in [&[2][..], &[2, 0], &[1, 2], &[usize::MAX, 3], &[1, 1, 0]] {
        let expected = "expected 2 numbers of 1 or more, one for each device, with the sum 2";
        assert_eq!(refused(2, Some(layers)), format!("a split, layers: found {layers:?}; {expected}"));
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_a_device_is_refused_twice() {
    let checkpoint = Checkpoint::open(&small("split-twice", "llama", true)).unwrap();
    let devices = [Device::cuda(0).unwrap(), Device::cuda(0).unwrap()];
    let error = Model::load_split(&LayerSplit::new(&devices), &checkpoint, |_, _| {}).unwrap_err().to_string();
    assert!(error.starts_with("a split, devices: entries 0 and 1 are both "), "{error}");
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_models")).args(arguments).output().unwrap()
}

/// Returns what the command prints.
fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_splits_layers() {
    let file = small::small_chat_model("split-command", 128, false);
    let text = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("split.txt");
    std::fs::write(&text, "Paris is a city.").unwrap();
    let (file, text) = (file.to_str().unwrap(), text.to_str().unwrap());
    let (one, two) = (["--device", "cpu"], ["--devices", "cpu,cpu", "--split", "1,1"]);
    for arguments in [
        &["generate", file, "--prompt", "Paris", "--max-tokens", "6", "--ctx-size", "64"][..],
        &["perplexity", file, text, "--window", "9"],
    ] {
        assert_eq!(printed(&[arguments, &two].concat()), printed(&[arguments, &one].concat()), "{arguments:?}");
    }
    let bench = ["bench", file, "--prompt", "5", "--generate", "2", "--kernels", "--json"];
    let read = |arguments: &[&str]| serde_json::from_str::<serde_json::Value>(&printed(arguments)).unwrap();
    let [one, two] = [&one[..], &two].map(|devices| read(&[&bench[..], devices].concat()));
    assert_eq!(two["device"], "cpu (interpreter), cpu (interpreter)");
    let launches = |found: &serde_json::Value, name: &str| {
        let kernels = found["runs"][0]["times"]["step"]["kernels"].as_array().unwrap().iter();
        let named = kernels.filter(|kernel| kernel["instance"].as_str().unwrap().starts_with(name));
        named.map(|kernel| kernel["launches"].as_u64().unwrap()).sum::<u64>()
    };
    // The launches of the layers are the same. The kernel `advance` runs on each device.
    assert_eq!([&one, &two].map(|found| launches(found, "flash_decode")), [2, 2]);
    assert_eq!([&one, &two].map(|found| launches(found, "advance")), [1, 2]);
    for (arguments, problem) in [
        (&["--split", "1,1"][..], "--devices"),
        (&["--devices", "cpu,x"], "expected the number of a GPU, or cpu"),
        (&["--devices", "cpu", "--device", "cpu"], "cannot be used with"),
        (&["--devices", "cpu,cpu,cpu"], "found 3 devices for 2 layers"),
    ] {
        let output = run(&[&["generate", file, "--prompt", "a"], arguments].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(problem), "{error}");
    }
}

/// Compares the sums over two devices with the bytes of one device.
#[test]
fn fit_prints_the_bytes_of_each_device() {
    let path = small("split-fit", "qwen2", true);
    let file = path.to_str().unwrap();
    let read = |arguments: &[&str]| {
        let text = printed(&[&["fit", file, "--json"], arguments].concat());
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["needs"].as_array().unwrap().clone()
    };
    // `fit` also accepts GPUs that this machine lacks.
    for (one, two) in read(&[]).iter().zip(read(&["--devices", "0,1"])) {
        assert_eq!(one["cache_format"], two["cache_format"]);
        let devices = two["devices"].as_array().unwrap();
        assert_eq!(devices.iter().map(|device| device["layers"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 1]);
        let sum = |field: &str| devices.iter().map(|device| device["memory"][field].as_u64().unwrap()).sum::<u64>();
        for field in ["weights", "cache", "cache_per_token"] {
            assert_eq!(one["memory"][field].as_u64(), Some(sum(field)), "{field}");
        }
        let totals = devices.iter().map(|device| device["total"].as_u64().unwrap()).sum::<u64>();
        assert_eq!(two["total"].as_u64(), Some(totals));
        // Each device has activations. The last one also has the logits of a prompt and of a step.
        let logits = 2 * 4 * TOKENS;
        let of_layer = devices[0]["memory"]["activations"].as_u64().unwrap();
        assert_eq!(devices[1]["memory"]["activations"].as_u64(), Some(of_layer + logits));
        assert_eq!(one["memory"]["activations"].as_u64(), Some(of_layer + logits));
    }
    let repeated = run(&["fit", file, "--devices", "cpu,0,cpu,0"]);
    let error = String::from_utf8_lossy(&repeated.stderr).into_owned();
    assert!(!repeated.status.success() && error.contains("device 0 is given several times; only cpu may"), "{error}");
    // No machine has a GPU of this number.
    assert!(printed(&["fit", file, "--devices", "cpu,9999"]).contains("\nfree on device 9999: unknown\n"));
    let text = printed(&["fit", file, "--devices", "1,0", "--split", "1,1"]);
    let table = text.lines().skip_while(|line| !line.starts_with("cache"));
    let rows: Vec<Vec<&str>> = table.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..3], ["cache", "device", "layers"]);
    assert_eq!([&rows[1][..3], &rows[2][..3]], [["F32", "1", "0–0"], ["F32", "0", "1–1"]]);
    assert_eq!(rows[3][..3], ["F32", "all", "devices"]);
    assert!(text.lines().skip(1).all(|line| line.chars().count() <= 80), "{text}");
}

/// Computes equal bits on one device and on a split over two devices that differ in size.
#[test]
fn exact_steps_have_equal_bits_on_devices_of_other_sizes() {
    let path = small("split-sizes", "qwen3", true);
    let devices = [2, 132].map(|multiprocessors| {
        let device = Device::cpu_with_facts(DeviceFacts { multiprocessors });
        device.set_checks(Checks::Values);
        device
    });
    compared(&path, &cpu(), &devices, &[1, 1], SessionOptions { exact: true, ..OPTIONS });
}
