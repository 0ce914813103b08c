//! Preparation of images, vision towers, and whole models with images, compared with transformers.
//! `data/vision.py` computed the expected values.

#[path = "support/pictures.rs"]
mod pictures;
#[path = "support/small.rs"]
mod small;
mod support;

use models::configuration::VisionConfiguration;
use models::engine::{Generation, Prompt, Sampler, Sampling, Session, SessionOptions};
use models::image::{Image, ImageProcessor, PreparedImage};
use models::memory::CacheFormat;
use models::tensors::Naming;
use models::{Checkpoint, Model};
use pictures::{CONTROL, IMAGE, MatrixFormat, picture, processor, projector, qwen3_vl, qwen3_vl_gguf};
use runtime::Device;
use runtime::interpreter::Checks;
use safetensors::SafeTensors;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use support::{data, json};

/// The content of `vision.json`.
#[derive(Deserialize)]
struct ExpectedResults {
    /// The tokens of a text with two images.
    ids: Vec<u32>,
    /// Rows and columns of patches of each image.
    grids: Vec<[usize; 2]>,
    /// Time, height and width of each token.
    positions: [Vec<u32>; 3],
    resized: Vec<Resized>,
    /// Height, width, minimum and maximum of pixels, and height and width after resizing.
    sizes: Vec<[usize; 6]>,
    /// Names and extents of the tensors in files of transformers.
    names: Vec<(String, Vec<u64>)>,
}

/// An image that transformers has prepared by Pillow and by PyTorch.
#[derive(Deserialize)]
struct Resized {
    height: usize,
    width: usize,
    /// The minimum number of pixels of the resized image, and the maximum.
    least: u64,
    most: u64,
    /// Rows and columns of patches.
    grid: [usize; 2],
}

/// Returns the bytes of an expected tensor.
fn expected_bytes(name: &str) -> Option<Vec<u8>> {
    let file = std::fs::read(data("vision.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    tensors.tensor(name).ok().map(|tensor| tensor.data().to_vec())
}

/// Returns the numbers of an expected tensor.
fn expected(name: &str) -> Vec<f32> {
    let bytes = expected_bytes(name).unwrap();
    bytes.chunks_exact(4).map(|x| f32::from_le_bytes(x.try_into().unwrap())).collect()
}

/// Returns the largest difference, relative to the largest expected magnitude.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let top = expected.iter().fold(0.0f32, |top, x| top.max(x.abs()));
    // A NaN is the largest difference.
    found.iter().zip(expected).map(|(a, b)| (a - b).abs() / top).fold(0.0, |most, x| if x <= most { most } else { x })
}

/// Returns the configuration of the vision tower.
fn vision() -> VisionConfiguration {
    models::configuration::Configuration::from_json("config.json", &pictures::configuration()).unwrap().vision.unwrap()
}

/// Returns the two prepared images in the text of `vision.py`.
fn prepared_pictures() -> [Arc<PreparedImage>; 2] {
    let processor = processor(&vision());
    [picture(128, 192), picture(64, 96)].map(|image| Arc::new(processor.prepare(&image).unwrap()))
}

/// Returns the tokens of a text with one placeholder for each image.
fn collapsed(ids: &[u32]) -> Vec<u32> {
    let mut tokens = ids.to_vec();
    tokens.dedup_by(|a, b| *a == IMAGE && *b == IMAGE);
    tokens
}

/// Returns the first `end` tokens of the text of `vision.py`, where an image counts as one token.
fn prompt(expected_results: &ExpectedResults, end: usize) -> Prompt {
    let tokens = &collapsed(&expected_results.ids)[..end];
    let images = tokens.iter().filter(|token| **token == IMAGE).count();
    Prompt::with_images(tokens, IMAGE, &prepared_pictures()[..images]).unwrap()
}

/// Returns options with a cache in F32 for sequences of up to 64 tokens.
fn wide(chunk_size: usize) -> SessionOptions {
    SessionOptions { context_size: 64, chunk_size, cache: CacheFormat::F32, ..SessionOptions::default() }
}

#[test]
fn sizes_are_those_of_transformers() {
    let expected_results: ExpectedResults = json("vision.json");
    for [height, width, least, most, to_height, to_width] in expected_results.sizes {
        let processor = ImageProcessor::new(&vision()).with_pixels(least as u64, most as u64).unwrap();
        assert_eq!(processor.resized_extents(height, width).unwrap(), [to_height, to_width], "{height} × {width}");
    }
}

/// Compares resized images with those of Pillow, byte for byte. PyTorch's factors have fewer bits,
/// so its images may differ by two levels.
#[test]
fn images_are_prepared_as_in_transformers() {
    let expected_results: ExpectedResults = json("vision.json");
    for (i, Resized { height, width, least, most, grid }) in expected_results.resized.into_iter().enumerate() {
        let processor = ImageProcessor::new(&vision()).with_pixels(least, most).unwrap();
        let prepared = processor.prepare(&picture(height, width)).unwrap();
        assert_eq!(prepared.grid(), grid);
        let levels: Vec<f32> = prepared.patches().iter().map(|x| (x * 0.5 + 0.5) * 255.0).collect();
        assert!(levels.iter().all(|level| (level - level.round()).abs() < 1e-3));
        let found: Vec<u8> = levels.iter().map(|level| level.round() as u8).collect();
        assert_eq!(found, expected_bytes(&format!("patches.{i}.pil")).unwrap(), "{height} × {width}");
        if let Some(other) = expected_bytes(&format!("patches.{i}.torch")) {
            let most = found.iter().zip(&other).map(|(a, b)| a.abs_diff(*b)).max();
            assert!(most <= Some(2), "{height} × {width}: {most:?} levels");
        }
    }
}

/// Compares names and extents with the files that transformers writes.
#[test]
fn tensors_are_those_of_transformers() {
    let expected_results: ExpectedResults = json("vision.json");
    let configuration = models::configuration::Configuration::from_json("config.json", &pictures::configuration());
    let needed = configuration.unwrap().tensors(Naming::Transformers);
    let needed: BTreeMap<_, _> = needed.into_iter().map(|needed| (needed.name, needed.extents)).collect();
    assert_eq!(needed, expected_results.names.into_iter().collect());
}

/// Returns the features of both images together: the embeddings of tokens, and the summands for
/// each of the first blocks.
fn features(model: &Model) -> Vec<Vec<f32>> {
    let stream = model.device.stream().unwrap();
    let mut parts: Vec<Vec<f32>> = vec![Vec::new(); 3];
    for picture in prepared_pictures() {
        let found = model.tower.as_ref().unwrap().run(&stream, &picture).unwrap();
        stream.wait().unwrap();
        for (part, numbers) in parts.iter_mut().zip(found.download().unwrap()) {
            part.extend(numbers);
        }
    }
    parts
}

/// Compares the features of the images, and the logits after the first `first` tokens of the text
/// and after each further token. An image counts as one token.
fn compared(device: &Device, kind: MatrixFormat, options: SessionOptions, first: usize, bound: f32) {
    let expected_results: ExpectedResults = json("vision.json");
    let name = format!("{kind:?}-{}-{}", device.is_cpu(), options.chunk_size);
    let model = Model::load(device, &qwen3_vl(&name, kind)).unwrap();
    if (kind, options) == (MatrixFormat::F32, wide(64)) {
        for (name, found) in ["features", "deepstack.0", "deepstack.1"].into_iter().zip(features(&model)) {
            let error = difference(&found, &expected(name));
            println!("{kind:?} {name}: {error}");
            assert!(error <= bound, "{kind:?} {name}: {error}");
        }
    }
    let mut session = model.session(options).unwrap();
    let logits = expected("logits");
    for end in first..=collapsed(&expected_results.ids).len() {
        let prompt = prompt(&expected_results, end);
        let last = prompt.tokens().len() - 1;
        session.set_prompt(prompt).unwrap();
        let error = difference(&session.logits().unwrap(), &logits[last * 264..][..264]);
        println!("{kind:?} token {last}: {error}");
        assert!(error <= bound, "{kind:?}, {options:?}, token {last}: {error}");
    }
}

/// Compares results for F32 and BF16, and for chunks that end within images. In BF16, the logits of
/// transformers differ from those in `f32` by 1.3·10⁻² of the largest logit.
fn all_compared(device: &Device) {
    compared(device, MatrixFormat::F32, wide(64), 1, 1e-5);
    compared(device, MatrixFormat::F32, wide(7), 15, 1e-5);
    compared(device, MatrixFormat::Bf16, wide(64), 15, 1.5e-2);
}

#[test]
fn images_have_the_logits_of_transformers() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    all_compared(&device);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_images_have_the_logits_of_transformers() {
    all_compared(&Device::cuda(0).unwrap());
}

/// Runs the tower, a prompt with images and a step with every access checked.
#[test]
fn images_pass_every_check() {
    let device = Device::cpu();
    device.set_checks(Checks::All);
    let model = Model::load(&device, &qwen3_vl("checked", MatrixFormat::F32)).unwrap();
    let processor = processor(&vision());
    let prompt = model.prompt_with("<|image_pad|>a", &[picture(32, 64)], &processor).unwrap();
    let mut session = model.session(wide(64)).unwrap();
    session.set_prompt(prompt).unwrap();
    let mut sampler = Sampler::new(&device, Sampling::default(), 264, &[]).unwrap();
    session.next(&mut sampler).unwrap();
    session.next(&mut sampler).unwrap();
}

/// Reads the language model and the tower from separate files.
#[test]
fn gguf_files_have_the_logits_of_transformers() {
    let expected_results: ExpectedResults = json("vision.json");
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let checkpoint = Checkpoint::open(&qwen3_vl_gguf("language")).unwrap();
    let text = Model::load_with(&device, &checkpoint, |_, _| {}).unwrap();
    let mut session = text.session(wide(64)).unwrap();
    session.set(&expected_results.ids[expected_results.ids.len() - 4..]).unwrap();
    let expected_text = expected("text_logits");
    assert!(difference(&session.logits().unwrap(), &expected_text[3 * 264..]) < 2e-5);
    let whole = prompt(&expected_results, collapsed(&expected_results.ids).len());
    let error = session.set_prompt(whole.clone()).unwrap_err().to_string();
    assert!(error.contains("the prompt has images, but the model has no vision tower"), "{error}");

    let tower = projector("tower", MatrixFormat::F16, &[true, true, false]);
    let checkpoint = Checkpoint::open(&qwen3_vl_gguf("language")).unwrap().with_projector(&tower).unwrap();
    let model = Model::load_with(&device, &checkpoint, |_, _| {}).unwrap();
    assert_eq!(model.processor().unwrap(), processor(&vision()));
    let mut session = model.session(wide(64)).unwrap();
    session.set_prompt(whole.clone()).unwrap();
    let logits = expected("logits");
    let error = difference(&session.logits().unwrap(), &logits[logits.len() - 264..]);
    assert!(error <= 3e-3, "{error}");
}

/// Continues a text with images by `n` single steps, and compares the logits with those of the
/// whole text as a prompt. `tokens` has a placeholder for each image.
fn continued(sessions: [&mut Session; 2], tokens: &[u32], images: &[Arc<PreparedImage>], n: usize) {
    let [session, fresh] = sessions;
    let prompt = Prompt::with_images(tokens, IMAGE, images).unwrap();
    let from = prompt.tokens().len();
    session.set_prompt(prompt).unwrap();
    let mut sampler = Sampler::new(&session.model().device, Sampling::default(), 264, &[]).unwrap();
    for _ in 0..n {
        session.next(&mut sampler).unwrap();
    }
    let whole = [tokens, &session.tokens()[from..]].concat();
    let whole = Prompt::with_images(&whole, IMAGE, images).unwrap();
    assert_eq!(whole.tokens(), session.tokens());
    fresh.set_prompt(whole).unwrap();
    let error = difference(&session.logits().unwrap(), &fresh.logits().unwrap());
    assert!(error < 2e-5, "{error}");
}

#[test]
fn steps_continue_a_text_with_images() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &qwen3_vl("steps", MatrixFormat::F32)).unwrap();
    let processor = processor(&vision());
    let images = [picture(64, 96), picture(64, 32)].map(|image| Arc::new(processor.prepare(&image).unwrap()));
    for options in [wide(64), SessionOptions { drafts: 3, ..wide(64) }] {
        let (mut session, mut fresh) = (model.session(options).unwrap(), model.session(wide(64)).unwrap());
        let mut compared =
            |tokens: &[u32], images: &[Arc<PreparedImage>], n| continued([&mut session, &mut fresh], tokens, images, n);
        let tokens = [1, 2, IMAGE, 3, 4, IMAGE, 5, 6];
        compared(&tokens, &images, 6);
        // The same tokens have other positions in a text without images.
        compared(&(20..34).collect::<Vec<u32>>(), &[], 4);
        // A text that ends with an image.
        compared(&tokens[..3], &images[..1], 3);
    }
}

/// Reuses keys and values up to the first image that differs.
#[test]
fn equal_images_are_kept() {
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &qwen3_vl("kept", MatrixFormat::F32)).unwrap();
    let mut batch = model.batch(wide(64), 2).unwrap();
    let processor = processor(&vision());
    let prepared = |image: Image| Arc::new(processor.prepare(&image).unwrap());
    let tokens = [1, 2, IMAGE, 3, IMAGE, 4];
    let whole =
        |second: Image| Prompt::with_images(&tokens, IMAGE, &[prepared(picture(64, 96)), prepared(second)]).unwrap();
    let first = whole(picture(64, 32));
    batch.set_prompt(0, first.clone()).unwrap();
    while !batch.prefill(0).unwrap() {}
    // The images have 6 tokens and 2.
    assert_eq!(first.tokens().len(), 12);
    // The images are equal, but in other memory.
    assert_eq!(batch.reusable_tokens(0, &whole(picture(64, 32))).unwrap(), 11);
    assert_eq!(batch.reusable_tokens(1, &first).unwrap(), 0);
    // The second image has equal extents and other pixels.
    let other = Image::new(32, 64, vec![7; 32 * 64 * 3]).unwrap();
    assert_eq!(batch.reusable_tokens(0, &whole(other)).unwrap(), 9);
    // The tokens are equal, but there are no images.
    assert_eq!(batch.reusable_tokens(0, &first.tokens().to_vec().into()).unwrap(), 2);
    // Two sequences in one step, one of them with images.
    batch.set_prompt(1, vec![5, 6, 7].into()).unwrap();
    batch.advance(&[0, 1]).unwrap();
    let found = [batch.logits(0).unwrap(), batch.logits(1).unwrap()];
    let mut alone = model.session(wide(64)).unwrap();
    for (found, prompt) in found.into_iter().zip([first, vec![5, 6, 7].into()]) {
        alone.set_prompt(prompt).unwrap();
        assert!(difference(&found, &alone.logits().unwrap()) < 2e-5);
    }
}

#[test]
fn texts_have_a_place_for_each_image() {
    let expected_results: ExpectedResults = json("vision.json");
    let device = Device::cpu();
    device.set_checks(Checks::Values);
    let model = Model::load(&device, &qwen3_vl("places", MatrixFormat::F32)).unwrap();
    let processor = processor(&vision());
    let images = [picture(128, 192), picture(64, 96)];
    let whole = prompt(&expected_results, collapsed(&expected_results.ids).len());
    let character = |token: &u32| match CONTROL.get((*token as usize).wrapping_sub(256)) {
        Some(name) => (*name).to_owned(),
        None => char::from(*token as u8).to_string(),
    };
    let text: String = collapsed(&expected_results.ids).iter().map(character).collect();
    assert_eq!(model.prompt_with(&text, &images, &processor).unwrap(), whole);
    assert_eq!(expected_results.grids, prepared_pictures().map(|picture| picture.grid()));
    assert_eq!(whole.positions(0..whole.tokens().len()), expected_results.positions);
    assert_eq!(whole.positions(9..35).map(|axis| axis.len()), [26; 3]);
    for from in [0, 3, 9, 30] {
        let part = whole.positions(from..40);
        assert_eq!(part, expected_results.positions.clone().map(|axis| axis[from..40].to_vec()));
    }
    for (text, images, problem) in [
        ("a", &images[..1], "expected 0 images, one for each placeholder in the text; found 1"),
        (
            "<|image_pad|><|image_pad|>",
            &images[..1],
            "expected 2 images, one for each placeholder in the text; found 1",
        ),
        ("<|image_pad|>", &[], "expected 1 images, one for each placeholder in the text; found 0"),
    ] {
        let error = model.prompt_with(text, images, &processor).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
    // The prompt has more tokens than the context size.
    let mut session = model.session(SessionOptions { context_size: 20, ..wide(64) }).unwrap();
    assert!(session.set_prompt(whole).unwrap_err().to_string().contains("the context size is 20"));
    assert_eq!(processor.with_tokens(4).prepare(&images[0]).unwrap().tokens(), 2);
    let generation = Generation { max_tokens: 2, ..Generation::default() };
    let mut session = model.session(wide(64)).unwrap();
    let prompt = model.prompt_with("<|image_pad|>a", &images[1..], &processor).unwrap();
    assert_eq!(session.generate_after(prompt, &generation).unwrap().count(), 2);
}

#[test]
fn towers_that_do_not_belong_are_refused() {
    let refused = |checkpoint: models::Result<Checkpoint>| {
        let result = checkpoint.and_then(|checkpoint| checkpoint.configuration());
        result.unwrap_err().to_string()
    };
    let tower = projector("tower-of-one", MatrixFormat::F16, &[true, false, false]);
    let language = || Checkpoint::open(&qwen3_vl_gguf("refused")).unwrap();
    let error = refused(language().with_projector(&tower));
    assert!(error.contains("features of 1 layers of the tower, for 2 layers of the text"), "{error}");
    let error = refused(language().with_projector(&qwen3_vl_gguf("refused")));
    assert!(error.contains("projector"), "{error}");
    let other = Checkpoint::open(&small::small("other", "llama", false)).unwrap();
    let error = refused(other.with_projector(&tower));
    assert!(error.contains("a vision tower of Qwen3-VL beside a model of llama"), "{error}");
    let error = refused(Checkpoint::open(&qwen3_vl("refused", MatrixFormat::F32)).unwrap().with_projector(&tower));
    assert!(error.contains("safetensors have their vision tower in the same files"), "{error}");
    let alone = Model::load(&Device::cpu(), &tower).unwrap_err().to_string();
    assert!(alone.contains("a vision tower without its language model"), "{alone}");
}

/// Reads `preprocessor_config.json` beside safetensors.
#[test]
fn settings_of_images_are_read() {
    let folder = qwen3_vl("settings", MatrixFormat::F32);
    let read = |settings: serde_json::Value| {
        std::fs::write(folder.join("preprocessor_config.json"), settings.to_string()).unwrap();
        let checkpoint = Checkpoint::open(&folder).unwrap();
        ImageProcessor::from_checkpoint(&checkpoint, &vision()).map_err(|error| error.to_string())
    };
    let usual = ImageProcessor::new(&vision());
    let real = serde_json::json!({
        "size": {"longest_edge": 16777216, "shortest_edge": 65536}, "patch_size": 16, "temporal_patch_size": 2,
        "merge_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
        "processor_class": "Qwen3VLProcessor", "image_processor_type": "Qwen2VLImageProcessorFast",
    });
    assert_eq!(read(real), Ok(usual));
    assert_eq!(read(serde_json::json!({})), Ok(usual));
    let pixels = serde_json::json!({ "min_pixels": 2048, "max_pixels": 4096 });
    assert_eq!(read(pixels), Ok(usual.with_pixels(2048, 4096).unwrap()));
    for (settings, problem) in [
        (serde_json::json!({ "patch_size": 14 }), "`patch_size`: 14 is not supported; supported: 16"),
        (serde_json::json!({ "resample": 2 }), "`resample`: 2 is not supported; supported: 3"),
        (serde_json::json!({ "image_std": [0.5, 0.0, 0.5] }), "colors of an image"),
        (serde_json::json!({ "image_mean": [0.5] }), "`image_mean`: expected three numbers"),
        (serde_json::json!({ "min_pixels": 0 }), "pixels of an image"),
        (serde_json::json!({ "max_pixels": 1u64 << 40 }), "pixels of an image"),
        (serde_json::json!({ "min_pixels": 5000, "max_pixels": 4096 }), "found 5000 and 4096"),
    ] {
        let error = read(settings).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

/// Encodes an image as a file.
fn encoded(image: &Image, format: image::ImageFormat) -> Vec<u8> {
    let [width, height] = image.extents();
    let mut bytes = std::io::Cursor::new(Vec::new());
    let pixels = image::RgbImage::from_raw(width as u32, height as u32, image.pixels().to_vec()).unwrap();
    pixels.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// Reads files of each format, and rejects damaged files and files that are too large.
#[test]
fn files_of_images_are_read() {
    use image::ImageFormat::{Jpeg, Png, Pnm};
    let original = picture(33, 21);
    for format in [Png, Pnm] {
        assert_eq!(Image::read("x", &encoded(&original, format)).unwrap(), original);
    }
    let smooth = Image::new(32, 16, (0..32 * 16 * 3).map(|i| (i / 8) as u8).collect()).unwrap();
    let jpeg = Image::read("x", &encoded(&smooth, Jpeg)).unwrap();
    assert_eq!(jpeg.extents(), [32, 16]);
    for format in [Png, Pnm, Jpeg] {
        let file = encoded(&original, format);
        // A JPEG file that is cut after its headers is not an error.
        let headers = file.windows(2).position(|bytes| bytes == [0xff, 0xda]).filter(|_| format == Jpeg);
        for end in 0..headers.unwrap_or(file.len() / 2) {
            assert!(Image::read("x", &file[..end]).is_err(), "{format:?} cut after {end} bytes");
        }
        // Some damage goes unnoticed, but none may crash the program.
        let mut seed = 5u64;
        for _ in 0..500 {
            let mut damaged = file.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % damaged.len().min(200);
                damaged[at] = (seed >> 20) as u8;
            }
            if let Ok(image) = Image::read("x", &damaged) {
                assert!(image.extents().iter().all(|side| *side <= 1 << 16));
            }
        }
    }
    // The headers of the following files claim images that exceed the limits.
    let mut large = encoded(&original, Png);
    large[16..24].copy_from_slice(&[0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff]);
    assert!(Image::read("x", &large).is_err());
    assert!(Image::read("x", b"P6 65535 65535 255\nabc").is_err());
    assert!(Image::read("x", b"P6 99999999 99999999 255\nabc").is_err());
    let error = Image::read("x.gif", b"GIF89a").unwrap_err().to_string();
    assert_eq!(error, "x.gif, image: the format of the file is not supported; supported: PNG, JPEG, PPM");
    assert!(Image::open(Path::new("absent.png")).unwrap_err().to_string().contains("absent.png"));
    assert!(Image::new(0, 5, Vec::new()).is_err() && Image::new(2, 2, vec![0; 11]).is_err());
    let processor = ImageProcessor::new(&vision());
    let long = Image::new(603, 3, vec![0; 603 * 9]).unwrap();
    assert!(processor.prepare(&long).unwrap_err().to_string().contains("at most a ratio of 200"));
}

/// Runs the command `generate` with an image.
#[test]
fn the_command_sees_images() {
    let folder = qwen3_vl("command", MatrixFormat::F32);
    let file = folder.join("x.png");
    std::fs::write(&file, encoded(&picture(64, 64), image::ImageFormat::Png)).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_models"));
        command.arg(arguments[0]).arg(&folder).args(&arguments[1..]).args(["--device", "cpu", "--max-tokens", "3"]);
        let output = command.arg("--image").arg(&file).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (is_success, error) = run(&["generate", "--prompt", "a", "--image-tokens", "4"]);
    assert!(is_success && error.contains("3 tokens"), "{error}");
    // By default, an image has at least 2¹⁶ pixels, which are 64 tokens.
    let (is_success, error) = run(&["generate", "--prompt", "a", "--ctx-size", "16"]);
    assert!(!is_success && error.contains("tokens; the context size is 16 "), "{error}");
}

/// Compares features and logits of a model with the extents of Qwen3-VL-2B on a GPU. The command
/// `vision.py FOLDER 2b` makes the model, and the variable `QWEN3_VL_2B` names the folder.
#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_qwen3_vl_2b_has_the_logits_of_transformers() {
    let Some(folder) = std::env::var_os("QWEN3_VL_2B").map(std::path::PathBuf::from) else {
        println!("skipped: `QWEN3_VL_2B` names no folder of `vision.py FOLDER 2b`");
        return;
    };
    let device = Device::cuda(0).unwrap();
    let file = std::fs::read(folder.join("2b.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let words = |name: &str| {
        let bytes = tensors.tensor(name).unwrap().data().chunks_exact(4);
        bytes.map(|x| u32::from_le_bytes(x.try_into().unwrap())).collect::<Vec<u32>>()
    };
    let numbers = |name: &str| words(name).into_iter().map(f32::from_bits).collect::<Vec<f32>>();
    let placeholder = 151_655;
    let mut tokens = words("ids");
    tokens.dedup_by(|a, b| *a == placeholder && *b == placeholder);
    // The difference between transformers in bf16 and in f32, for equal weights.
    let narrow = ["features", "logits"]
        .map(|name| difference(&numbers(&format!("bf16.{name}")), &numbers(&format!("rounded.{name}"))));
    println!("transformers in bf16: {narrow:?}");
    for (kind, before, bounds) in [("f32", "", [1e-5, 1e-5]), ("bf16", "rounded.", narrow)] {
        let path = folder.join(kind);
        pictures::with_tokenizer(&path);
        let start = std::time::Instant::now();
        let model = Model::load(&device, &path).unwrap();
        println!("{kind}: loaded in {:.1} s", start.elapsed().as_secs_f64());
        let processor = model.processor().unwrap();
        let images = [picture(480, 640), picture(256, 300)];
        let images = images.map(|image| Arc::new(processor.prepare(&image).unwrap()));
        let stream = device.stream().unwrap();
        let mut parts: Vec<Vec<f32>> = vec![Vec::new(); 4];
        for image in &images {
            let start = std::time::Instant::now();
            let found = model.tower.as_ref().unwrap().run(&stream, image).unwrap();
            stream.wait().unwrap();
            println!("{kind}: {image:?} in {:.1} ms", 1e3 * start.elapsed().as_secs_f64());
            parts.iter_mut().zip(found.download().unwrap()).for_each(|(part, numbers)| part.extend(numbers));
        }
        let error = difference(&parts[0], &numbers(&format!("{before}features")));
        println!("{kind} features: {error}");
        let mut errors = vec![(error, bounds[0])];
        for (i, part) in parts[1..].iter().enumerate().filter(|_| kind == "f32") {
            let error = difference(part, &numbers(&format!("deepstack.{i}")));
            println!("{kind} deepstack {i}: {error}");
            errors.push((error, bounds[0]));
        }
        let options = SessionOptions { context_size: 512, cache: CacheFormat::F32, ..SessionOptions::default() };
        let mut session = model.session(options).unwrap();
        let logits = numbers(&format!("{before}logits"));
        for i in 0..5 {
            let end = tokens.len() - 4 + i;
            session.set_prompt(Prompt::with_images(&tokens[..end], placeholder, &images).unwrap()).unwrap();
            let error = difference(&session.logits().unwrap(), &logits[i * 151_936..][..151_936]);
            println!("{kind} logits {i}: {error}");
            errors.push((error, bounds[1]));
        }
        assert!(errors.iter().all(|(error, bound)| error <= bound), "{kind}: {errors:?}");
    }
}
