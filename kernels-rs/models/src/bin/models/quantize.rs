//! The command `quantize`.

use crate::options;
use crate::table::format_bytes;
use models::quantize::{self, FormatChange, TargetFormats};
use models::{Checkpoint, Files};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

/// Writes a file whose matrices have other formats, and returns a table of the changes. `formats`
/// are the names of the formats of layers and of the embedding.
pub fn quantize(file: &Path, to: &Path, formats: [&str; 2], wants_json: bool) -> Result<String, models::Error> {
    let [layers, embedding] = formats.map(quantize::target_format);
    let formats = TargetFormats { layers: layers?, embedding: embedding? };
    let checkpoint = Checkpoint::open(file)?;
    let Files::Gguf(gguf) = checkpoint.files() else {
        let (file, field) = (checkpoint.file().to_owned(), "file".to_owned());
        let (needed, supported) = ("quantizing safetensors".to_owned(), "GGUF".to_owned());
        return Err(models::Error::Unsupported { file, field, needed, supported });
    };
    let bar = options::bar("quantizing {bar:30} {bytes} of {total_bytes}");
    let changes = quantize::quantize(gguf, to, formats, |read, total| {
        bar.set_length(total);
        bar.set_position(read);
    })?;
    bar.finish_and_clear();
    if wants_json {
        return Ok(format!("{:#}\n", json!({ "file": to, "changes": changes })));
    }
    let mut out =
        format!("{:<8} {:<8} {:>7} {:>10} {:>10} {:>12}\n", "from", "to", "tensors", "before", "after", "error");
    for FormatChange { from, to, tensors, before, after, error } in changes {
        let (before, after) = (format_bytes(before), format_bytes(after));
        let _ = writeln!(out, "{from:<8} {to:<8} {tensors:>7} {before:>10} {after:>10} {error:>12.6}");
    }
    let _ = writeln!(out, "error: the root of Σ (new − old)² / Σ old²");
    Ok(out)
}
