//! The command `quantize`.

use crate::generate::INTERRUPTED_CODE;
use crate::options;
use crate::output::write_message;
use crate::table::format_bytes;
use models::quantize::{self, FormatChange, TargetFormats};
use models::{Checkpoint, Files};
use serde_json::json;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes ctrl-C end the command, and remove the unfinished file if the command has begun to write.
fn remove_if_interrupted(unfinished: PathBuf, is_written: Arc<AtomicBool>) {
    let handler = ctrlc::set_handler(move || {
        if is_written.load(Ordering::Relaxed) {
            let _ = std::fs::remove_file(&unfinished);
        }
        std::process::exit(INTERRUPTED_CODE.into());
    });
    if let Err(error) = handler {
        write_message(format_args!("cannot catch ctrl-C, which now leaves an unfinished file: {error}"));
    }
}

/// Writes a file whose matrices have other formats, and returns a table of the changes.
pub fn quantize(file: &Path, to: &Path, formats: TargetFormats, wants_json: bool) -> Result<String, models::Error> {
    let checkpoint = Checkpoint::open(file)?;
    let Files::Gguf(gguf) = checkpoint.files() else {
        let (file, field) = (checkpoint.file().to_owned(), "file".to_owned());
        let (needed, supported) = ("quantizing safetensors".to_owned(), "GGUF".to_owned());
        return Err(models::Error::Unsupported { file, field, needed, supported });
    };
    let is_written = Arc::new(AtomicBool::new(false));
    remove_if_interrupted(quantize::unfinished_path(to), is_written.clone());
    let bar = options::bar("quantizing {bar:30} {decimal_bytes} of {decimal_total_bytes}");
    let changes = quantize::quantize(gguf, to, formats, |read, total| {
        is_written.store(true, Ordering::Relaxed);
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
