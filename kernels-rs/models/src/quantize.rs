//! Conversion of GGUF files: matrices get other formats, and other tensors are copied.
//!
//! The rules of `kernels_rs::quant::formats::host` quantize each block by itself. For K and IQ
//! formats, llama.cpp searches for the scales with the least weighted error, so its files differ.

use crate::error::{Error, Result};
use crate::file::gguf::{Gguf, ValueType};
use crate::file::{FileTensor, TensorFormat};
use kernel_dsl::half::{bf16, f16};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The formats to which elements can be converted, with their numbers in `general.file_type`: those
/// of llama.cpp's `llama_ftype`.
const TARGET_FORMATS: [(TensorFormat, u32); 16] = [
    (TensorFormat::F32, 0),
    (TensorFormat::F16, 1),
    (TensorFormat::BF16, 32),
    (TensorFormat::Q4_0, 2),
    (TensorFormat::Q4_1, 3),
    (TensorFormat::Q5_0, 8),
    (TensorFormat::Q5_1, 9),
    (TensorFormat::Q8_0, 7),
    (TensorFormat::Q2_K, 10),
    (TensorFormat::Q3_K, 11),
    (TensorFormat::Q4_K, 14),
    (TensorFormat::Q5_K, 16),
    (TensorFormat::Q6_K, 18),
    (TensorFormat::IQ4_NL, 25),
    (TensorFormat::IQ4_XS, 30),
    (TensorFormat::MXFP4, 38),
];

/// Returns the format with a name, in upper or lower case.
///
/// # Errors
/// If there is no format of this name to which elements can be converted.
pub fn target_format(name: &str) -> Result<TensorFormat> {
    let found = TARGET_FORMATS.iter().find(|(format, _)| format.name().eq_ignore_ascii_case(name));
    found.map(|(format, _)| *format).ok_or_else(|| {
        let names: Vec<&str> = TARGET_FORMATS.iter().map(|(format, _)| format.name()).collect();
        Error::unsupported("quantize", "format", format!("the format `{name}`"), names.join(", "))
    })
}

/// Converts the bytes of a tensor to `f32`. Returns `None` if the crate cannot convert the format,
/// or the last block is incomplete.
pub fn dequantized(format: TensorFormat, bytes: &[u8]) -> Option<Vec<f32>> {
    if !bytes.len().is_multiple_of(format.block_bytes() as usize) {
        return None;
    }
    let halves = || bytes.chunks_exact(2).map(|half| [half[0], half[1]]);
    Some(match format {
        TensorFormat::F32 => bytes.chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect(),
        TensorFormat::F16 => halves().map(|half| f16::from_le_bytes(half).to_f32()).collect(),
        TensorFormat::BF16 => halves().map(|half| bf16::from_le_bytes(half).to_f32()).collect(),
        _ => return format.quant_format()?.dequantize(bytes),
    })
}

/// Converts elements to the bytes of a format. Returns `None` if there is no rule for the format,
/// or the last block would be incomplete.
pub fn quantized(format: TensorFormat, numbers: &[f32]) -> Option<Vec<u8>> {
    if !numbers.len().is_multiple_of(format.block_elements() as usize) {
        return None;
    }
    Some(match format {
        TensorFormat::F32 => numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        TensorFormat::F16 => numbers.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect(),
        TensorFormat::BF16 => numbers.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
        _ => return format.quant_format()?.quantize(numbers),
    })
}

/// The formats of the matrices of a new file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetFormats {
    /// The format of the matrices of layers.
    pub layers: TensorFormat,
    /// The format of the embedding and the output matrix.
    pub embedding: TensorFormat,
}

impl TargetFormats {
    /// Returns the format of a tensor in the new file.
    ///
    /// Vectors, the router of experts and the tensors of vision towers keep their formats. A matrix
    /// whose rows are not whole blocks of 256 gets the next larger format with blocks of 32, as in
    /// llama.cpp. Rows that are not whole blocks of 32 get F16.
    pub fn of(&self, tensor: &FileTensor<'_>) -> TensorFormat {
        let is_end = matches!(tensor.name, "token_embd.weight" | "output.weight");
        let is_matrix = (2..=3).contains(&tensor.extents.len()) && tensor.name.ends_with(".weight");
        let is_layer = tensor.name.starts_with("blk.") && !tensor.name.ends_with("ffn_gate_inp.weight");
        if !is_matrix || !(is_end || is_layer) {
            return tensor.format;
        }
        let requested = if is_end { self.embedding } else { self.layers };
        let smaller = match requested {
            TensorFormat::Q2_K | TensorFormat::Q3_K | TensorFormat::IQ4_XS => TensorFormat::IQ4_NL,
            TensorFormat::Q4_K => TensorFormat::Q5_0,
            TensorFormat::Q5_K => TensorFormat::Q5_1,
            TensorFormat::Q6_K => TensorFormat::Q8_0,
            other => other,
        };
        let columns = tensor.extents.last().copied().unwrap_or(0);
        let fits = |format: &TensorFormat| columns.is_multiple_of(format.block_elements());
        [requested, smaller].into_iter().find(fits).unwrap_or(TensorFormat::F16)
    }
}

/// The change of all tensors with the same old format and the same new format.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct FormatChange {
    /// The name of the old format.
    pub from: &'static str,
    /// The name of the new format.
    pub to: &'static str,
    /// The number of tensors.
    pub tensors: u64,
    /// Bytes of the tensors in the old format.
    pub before: u64,
    /// Bytes of the tensors in the new format.
    pub after: u64,
    /// √(Σ (new − old)² / Σ old²) over all elements.
    pub error: f64,
}

/// The number of elements that a thread converts at once: a multiple of every block.
const CHUNK_ELEMENTS: usize = 1 << 20;

/// Converts a chunk of a tensor. Returns the new bytes, and the sums Σ (new − old)² and Σ old².
fn converted_chunk(from: TensorFormat, to: TensorFormat, bytes: &[u8]) -> Option<(Vec<u8>, [f64; 2])> {
    let old = dequantized(from, bytes)?;
    let made = quantized(to, &old)?;
    let new = dequantized(to, &made)?;
    let square = |x: f64| x * x;
    let error = old.iter().zip(&new).map(|(old, new)| square(f64::from(*new) - f64::from(*old))).sum();
    Some((made, [error, old.iter().map(|x| square(f64::from(*x))).sum()]))
}

/// Returns the path of the file that [`quantize`] writes to until the file is complete.
pub fn unfinished_path(to: &Path) -> PathBuf {
    let mut part = to.as_os_str().to_owned();
    part.push(".part");
    PathBuf::from(part)
}

/// Writes a GGUF model with matrices in other formats, as one file of GGUF version 3. Metadata is
/// copied, except the file type, the quantization version, the alignment and the entries about
/// parts. `progress` receives the bytes read so far, and the bytes of all tensors, first when the
/// new file is there.
///
/// Until the file is complete, its name ends in `.part`. An existing file is replaced.
///
/// # Errors
/// If a tensor has a format that cannot be converted, or the file cannot be written. Also if `to`
/// is a file of the model itself, or exists and is not a regular file: a device, a pipe, a folder
/// or a symbolic link.
pub fn quantize(
    gguf: &Gguf,
    to: &Path,
    formats: TargetFormats,
    mut progress: impl FnMut(u64, u64),
) -> Result<Vec<FormatChange>> {
    let part = &unfinished_path(to);
    check_target(gguf, to)?;
    check_target(gguf, part)?;
    let written = write(gguf, part, formats, &mut progress);
    let renamed = written.and_then(|changes| {
        std::fs::rename(part, to).map_err(|source| Error::Io { action: "rename to", path: to.to_owned(), source })?;
        Ok(changes)
    });
    if renamed.is_err() {
        let _ = std::fs::remove_file(part);
    }
    renamed
}

/// Rejects a path to write to where a regular file would replace something else, or the model.
fn check_target(gguf: &Gguf, path: &Path) -> Result<()> {
    // An absent file, or one whose folder cannot be read, is left to the writer.
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    let is_same = |file: &str| {
        let [file, path] = [Path::new(file), path].map(std::fs::canonicalize);
        matches!((file, path), (Ok(file), Ok(path)) if file == path)
    };
    let problem = if !metadata.is_file() {
        "there is something other than a regular file"
    } else if gguf.files().any(is_same) {
        "this is the model to convert, which would be lost"
    } else {
        return Ok(());
    };
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, problem);
    Err(Error::Io { action: "write", path: path.to_owned(), source })
}

/// The alignment of tensors in the file, in bytes: GGUF's default.
const ALIGNMENT: u64 = 32;

/// Writes the new file to `path`.
fn write(
    gguf: &Gguf,
    path: &Path,
    formats: TargetFormats,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Vec<FormatChange>> {
    let failed = |source| Error::Io { action: "write", path: path.to_owned(), source };
    let tensors: Vec<(FileTensor<'_>, TensorFormat)> =
        gguf.tensors().map(|tensor| (tensor, formats.of(&tensor))).collect();
    let header = header(gguf, &tensors, formats)?;
    let mut file = BufWriter::with_capacity(1 << 20, std::fs::File::create(path).map_err(failed)?);
    let total = tensors.iter().map(|(tensor, _)| tensor.bytes.len() as u64).sum();
    progress(0, total);
    file.write_all(&header).map_err(failed)?;
    let (mut read, mut changes) = (0, Vec::<(FormatChange, [f64; 2])>::new());
    for (tensor, to) in &tensors {
        let lost = || Error::tensor(gguf.file(), tensor.name, format!("{} cannot become {to}", tensor.format));
        let (mut length, mut squares) = (0, [0.0; 2]);
        // A chunk consists of whole blocks in both formats.
        let bytes = (CHUNK_ELEMENTS as u64 / tensor.format.block_elements() * tensor.format.block_bytes()) as usize;
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
        let chunks: Vec<&[u8]> = tensor.bytes.chunks(bytes).collect();
        for chunks in chunks.chunks(threads) {
            let made: Vec<_> = if *to == tensor.format {
                chunks.iter().map(|chunk| Some((Cow::Borrowed(*chunk), [0.0, 1.0]))).collect()
            } else {
                std::thread::scope(|scope| {
                    let convert = |chunk| scope.spawn(move || converted_chunk(tensor.format, *to, chunk));
                    let running: Vec<_> = chunks.iter().copied().map(convert).collect();
                    let made = running.into_iter().map(|thread| thread.join().ok().flatten());
                    made.map(|made| made.map(|(bytes, squares)| (Cow::Owned(bytes), squares))).collect()
                })
            };
            for made in made {
                let (bytes, [error, all]) = made.ok_or_else(lost)?;
                file.write_all(&bytes).map_err(failed)?;
                length += bytes.len() as u64;
                squares = [squares[0] + error, squares[1] + all];
            }
            read += chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            progress(read, total);
        }
        let padding = length.next_multiple_of(ALIGNMENT) - length;
        file.write_all(&[0; ALIGNMENT as usize][..padding as usize]).map_err(failed)?;
        add_change(&mut changes, tensor, *to, length, squares);
    }
    file.flush().map_err(failed)?;
    Ok(changes.into_iter().map(|(change, _)| change).collect())
}

/// Adds a tensor of `length` new bytes to the changes. `squares` are the sums that
/// [`converted_chunk`] returns, over the whole tensor.
fn add_change(
    changes: &mut Vec<(FormatChange, [f64; 2])>,
    tensor: &FileTensor<'_>,
    to: TensorFormat,
    length: u64,
    squares: [f64; 2],
) {
    let (from, to) = (tensor.format.name(), to.name());
    let found = changes.iter().position(|(change, _)| (change.from, change.to) == (from, to));
    let at = found.unwrap_or_else(|| {
        changes.push((FormatChange { from, to, tensors: 0, before: 0, after: 0, error: 0.0 }, [0.0; 2]));
        changes.len() - 1
    });
    let (change, sums) = &mut changes[at];
    change.tensors += 1;
    change.before += tensor.bytes.len() as u64;
    change.after += length;
    *sums = [sums[0] + squares[0], sums[1] + squares[1]];
    change.error = if sums[0] == 0.0 { 0.0 } else { (sums[0] / sums[1]).sqrt() };
}

/// Returns the header of the file, up to the first tensor's bytes.
fn header(gguf: &Gguf, tensors: &[(FileTensor<'_>, TensorFormat)], formats: TargetFormats) -> Result<Vec<u8>> {
    let file_type = TARGET_FORMATS.iter().find(|(format, _)| *format == formats.layers).map(|(_, number)| *number);
    let changed = ["general.file_type", "general.quantization_version", "general.alignment"];
    let is_kept = |key: &str| !changed.contains(&key) && !key.starts_with("split.");
    let kept: Vec<_> = gguf.raw_metadata().filter(|(key, ..)| is_kept(key)).collect();
    let numbers = [("general.file_type", file_type), ("general.quantization_version", Some(2))];
    let numbers: Vec<(&str, u32)> = numbers.into_iter().filter_map(|(key, number)| Some((key, number?))).collect();
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend((tensors.len() as u64).to_le_bytes());
    bytes.extend(((kept.len() + numbers.len()) as u64).to_le_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    };
    for (key, value_type, value) in kept {
        text(&mut bytes, key);
        bytes.extend((value_type as u32).to_le_bytes());
        bytes.extend(value);
    }
    for (key, number) in numbers {
        text(&mut bytes, key);
        bytes.extend((ValueType::U32 as u32).to_le_bytes());
        bytes.extend(number.to_le_bytes());
    }
    let mut offset = 0u64;
    for (tensor, format) in tensors {
        text(&mut bytes, tensor.name);
        bytes.extend((tensor.extents.len() as u32).to_le_bytes());
        // GGUF has the innermost extent first.
        tensor.extents.iter().rev().for_each(|extent| bytes.extend(extent.to_le_bytes()));
        bytes.extend(format.number().to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        let columns = tensor.extents.last().copied().unwrap_or(1);
        let length = format.bytes(columns, tensor.elements()).ok_or_else(|| {
            Error::tensor(gguf.file(), tensor.name, format!("rows of {columns} elements are not blocks of {format}"))
        })?;
        offset += length.next_multiple_of(ALIGNMENT);
    }
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
    Ok(bytes)
}
