//! Quantized files, which are read back and compared with their sources.

#[path = "support/reference.rs"]
mod reference;
#[path = "support/small.rs"]
mod small;
mod support;

use models::file::gguf::Gguf;
use models::file::{FileTensor, TensorFormat};
use models::quantize::{TargetFormats, dequantized, quantize, target_format, unfinished_path};
use small::{random, small};
use std::path::{Path, PathBuf};
use support::{GgufWriter, smollm2};

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the largest allowed error of a quantized number: half a step between the codes of its
/// block, plus the rounding of the block's scales.
///
/// | format | step |
/// |---|---|
/// | signed codes of n bits | largest magnitude / 2ⁿ⁻¹ |
/// | unsigned codes of n bits, where code 0 is the minimum | range / (2ⁿ − 1) |
///
/// Signed codes end at 2ⁿ⁻¹ − 1, so the error of the positive end is a whole step.
fn bound(format: TensorFormat, block: &[f32]) -> f32 {
    let top = block.iter().fold(0.0f32, |top, x| top.max(x.abs()));
    let low = block.iter().copied().fold(f32::INFINITY, f32::min);
    let range = block.iter().copied().fold(f32::NEG_INFINITY, f32::max) - low;
    match format {
        TensorFormat::F32 => 0.0,
        TensorFormat::F16 => top / 2048.0,
        TensorFormat::BF16 => top / 256.0,
        TensorFormat::Q8_0 => top / 127.0 * 0.5 + top / 1024.0,
        TensorFormat::Q4_0 => top / 8.0 + top / 512.0,
        TensorFormat::Q5_0 => top / 16.0 + top / 512.0,
        TensorFormat::Q4_1 => range / 15.0 * 0.5 + top / 256.0,
        TensorFormat::Q5_1 => range / 31.0 * 0.5 + top / 256.0,
        // Q6_K rounds scales of groups to 1/127 of the largest. Other formats round scales and
        // minima to 1/63.
        TensorFormat::Q6_K => top / 32.0 + top / 127.0,
        TensorFormat::Q4_K => range.max(top) / 15.0 * 0.5 + range.max(top) / 63.0 * 2.0,
        TensorFormat::Q5_K => range.max(top) / 31.0 * 0.5 + range.max(top) / 63.0 * 2.0,
        other => panic!("no bound for {other}"),
    }
}

/// Compares a file with its source: metadata, names and extents are equal, and numbers are within
/// the bound of the format.
fn compared(source: &Gguf, found: &Gguf, formats: TargetFormats) {
    let changed = ["general.file_type", "general.quantization_version"];
    for (key, value) in source.metadata().filter(|(key, _)| !changed.contains(key)) {
        assert_eq!(found.get(key), Some(value), "{key}");
    }
    assert_eq!(source.tensors().count(), found.tensors().count());
    for (old, new) in source.tensors().zip(found.tensors()) {
        assert_eq!((old.name, old.extents, formats.of(&old)), (new.name, new.extents, new.format));
        if old.format == new.format {
            assert_eq!(old.bytes, new.bytes);
            continue;
        }
        let (old, numbers) = (reference::numbers(&old), read(&new));
        let block = new.format.block_elements().max(32) as usize;
        for (old, new_numbers) in old.chunks(block).zip(numbers.chunks(block)) {
            let bound = bound(new.format, old);
            for (old, found) in old.iter().zip(new_numbers) {
                assert!((old - found).abs() <= bound, "{} of {}: {old} became {found}", new.format, new.name);
            }
        }
    }
}

/// Returns the elements of a tensor, by the formulas of the reference where these exist.
fn read(tensor: &FileTensor<'_>) -> Vec<f32> {
    match tensor.format {
        TensorFormat::F32 | TensorFormat::F16 | TensorFormat::BF16 | TensorFormat::Q8_0 | TensorFormat::Q4_1 => {
            reference::numbers(tensor)
        }
        format => dequantized(format, tensor.bytes).unwrap(),
    }
}

#[test]
fn every_format_is_near_its_source() {
    // Rows of 512 numbers are whole blocks of 256.
    let matrix = |seed: u64, n: usize| random(&mut { seed }, n, 1.0).iter().flat_map(|x| x.to_le_bytes()).collect();
    let file = GgufWriter::default()
        .text("general.architecture", "llama")
        .texts("some.list", &["a", "bc"])
        .u32("general.file_type", 0)
        .tensor("token_embd.weight", &[5, 512], 0, matrix(1, 5 * 512))
        .tensor("blk.0.attn_q.weight", &[7, 512], 0, matrix(2, 7 * 512))
        .tensor("blk.0.ffn_up_exps.weight", &[2, 3, 512], 0, matrix(3, 6 * 512))
        .tensor("blk.0.attn_k.weight", &[3, 32], 0, matrix(4, 96))
        .tensor("blk.0.attn_v.weight", &[3, 5], 0, matrix(5, 15))
        .tensor("blk.0.attn_norm.weight", &[512], 0, matrix(6, 512))
        .tensor("blk.0.ffn_gate_inp.weight", &[2, 512], 0, matrix(7, 1024));
    let source = Gguf::from_bytes("source", file.finish()).unwrap();
    let names = ["f32", "F16", "bf16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "q4_k", "Q5_K", "Q6_K"];
    for name in names {
        let formats = TargetFormats { layers: target_format(name).unwrap(), embedding: TensorFormat::Q8_0 };
        let path = temporary(&format!("format-{name}.gguf"));
        let (mut most, mut first) = ((0, 0), None);
        let changes = quantize(&source, &path, formats, |read, total| {
            first.get_or_insert_with(|| (read, unfinished_path(&path).exists()));
            most = (read, total);
        });
        let changes = changes.unwrap();
        // A program that is interrupted knows from then on that it has a file to remove.
        assert_eq!(first, Some((0, true)));
        let found = Gguf::open(&path).unwrap();
        compared(&source, &found, formats);
        assert_eq!((most.0, found.version()), (most.1, 3));
        let bytes: u64 = found.tensors().map(|tensor| tensor.bytes.len() as u64).sum();
        assert_eq!(changes.iter().map(|change| change.after).sum::<u64>(), bytes);
        assert_eq!(changes.iter().map(|change| change.tensors).sum::<u64>(), 7);
        let format = |name: &str| found.tensor(name).unwrap().format;
        assert_eq!(format("blk.0.ffn_up_exps.weight"), formats.layers);
        assert_eq!(format("token_embd.weight"), TensorFormat::Q8_0);
        assert_eq!(format("blk.0.ffn_gate_inp.weight"), TensorFormat::F32);
        let narrow = match formats.layers {
            TensorFormat::Q4_K => TensorFormat::Q5_0,
            TensorFormat::Q5_K => TensorFormat::Q5_1,
            TensorFormat::Q6_K => TensorFormat::Q8_0,
            other => other,
        };
        assert_eq!(format("blk.0.attn_k.weight"), narrow);
        let narrowest = if formats.layers.block_elements() == 1 { formats.layers } else { TensorFormat::F16 };
        assert_eq!(format("blk.0.attn_v.weight"), narrowest);
        assert!(!temporary(&format!("format-{name}.gguf.part")).exists());
    }
    assert!(
        target_format("Q9").unwrap_err().to_string().contains("the format `Q9` is not supported; supported: F32, F16")
    );
}

/// Dequantizes blocks, and quantizes the numbers again. The numbers have the bits of the
/// reference's formulas. Quantizing changes the numbers by at most the rounding of a scale.
#[test]
fn formats_survive_a_round_trip() {
    let source = Gguf::open(&small("there", "qwen3", true)).unwrap();
    let (wide, back) = (temporary("there-wide.gguf"), temporary("there-back.gguf"));
    let all = |format| TargetFormats { layers: format, embedding: format };
    let changes = quantize(&source, &wide, all(TensorFormat::F32), |_, _| {}).unwrap();
    let wide = Gguf::open(&wide).unwrap();
    for (old, new) in source.tensors().zip(wide.tensors()) {
        let [old, new] =
            [old, new].map(|tensor| reference::numbers(&tensor).iter().map(|x| x.to_bits()).collect::<Vec<_>>());
        assert_eq!(old, new);
    }
    assert!(changes.iter().all(|change| change.error == 0.0));
    quantize(&wide, &back, all(TensorFormat::Q8_0), |_, _| {}).unwrap();
    let back = Gguf::open(&back).unwrap();
    for (old, new) in source.tensors().zip(back.tensors()) {
        let [old, new] = [old, new].map(|tensor| reference::numbers(&tensor));
        let top = old.iter().fold(0.0f32, |top, x| top.max(x.abs()));
        // The scale of a block is rounded to 16 bits a second time.
        assert!(old.iter().zip(&new).all(|(old, new)| (old - new).abs() <= top / 1024.0));
    }
    let missing = temporary("no-folder").join("file.gguf");
    assert!(
        quantize(&source, &missing, all(TensorFormat::F16), |_, _| {})
            .unwrap_err()
            .to_string()
            .contains("cannot write")
    );
}

/// Rejects targets that a new file would destroy. All of them are as before afterwards.
#[test]
fn targets_that_would_be_lost_are_refused() {
    let path = small("lost", "qwen3", true);
    let source = Gguf::open(&path).unwrap();
    let before = std::fs::read(&path).unwrap();
    let refusal = |to: &Path| {
        let formats = TargetFormats { layers: TensorFormat::F16, embedding: TensorFormat::F16 };
        quantize(&source, to, formats, |_, _| {}).unwrap_err().to_string()
    };
    assert!(refusal(&path).ends_with("this is the model to convert, which would be lost"));
    // The same file by another path, and as the file that has the name until it is complete.
    let folder = temporary("lost-folder");
    std::fs::create_dir_all(&folder).unwrap();
    let name = path.file_name().unwrap();
    assert!(refusal(&folder.join("..").join(name)).contains("the model to convert"));
    let part = temporary("lost-too.part");
    std::fs::write(&part, &before).unwrap();
    let opened = Gguf::open(&part).unwrap();
    let formats = TargetFormats { layers: TensorFormat::F16, embedding: TensorFormat::F16 };
    let error = quantize(&opened, &temporary("lost-too"), formats, |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("the model to convert"), "{error}");
    assert_eq!(std::fs::read(&part).unwrap(), before);
    assert!(refusal(&folder).ends_with("there is something other than a regular file"));
    #[cfg(unix)]
    {
        let link = temporary("lost-link.gguf");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let pipe = temporary("lost-pipe.gguf");
        let _ = std::fs::remove_file(&pipe);
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for special in [link.as_path(), pipe.as_path()] {
            assert!(refusal(special).ends_with("there is something other than a regular file"));
            assert!(!std::fs::symlink_metadata(special).unwrap().is_file());
        }
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

/// Runs the command, and returns the JSON that it prints.
fn command(arguments: &[&str]) -> serde_json::Value {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_models")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares the loss of SmolLM2 in Q8_0 with that of its file in Q4_1. The losses were 1.7245 and
/// 1.7033.
#[test]
fn smollm2_in_another_format_has_nearly_its_perplexity() {
    let Some(path) = smollm2() else { return };
    let text = temporary("quantized.txt");
    std::fs::write(&text, "The capital of France is Paris. The capital of Italy is Rome.").unwrap();
    let (file, text) = (path.to_str().unwrap(), text.to_str().unwrap());
    let loss = |file: &str| {
        let found = command(&["perplexity", file, text, "--device", "cpu", "--json"]);
        found["loss"].as_f64().unwrap()
    };
    let expected = loss(file);
    let to = temporary("smollm2-Q8_0.gguf");
    let changed = command(&["quantize", file, to.to_str().unwrap(), "--format", "Q8_0", "--json"]);
    let found = loss(to.to_str().unwrap());
    println!("a loss of {found}, of the file {expected}; {changed}");
    assert!((found - expected).abs() < 0.05, "{found}, not {expected}");
    std::fs::remove_file(to).unwrap();
}
