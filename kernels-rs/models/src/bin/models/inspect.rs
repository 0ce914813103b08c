//! The command `inspect`.

use crate::table::{LINE_WIDTH, counted, format_bytes, truncated, wrapped_lines};
use models::configuration::VisionConfiguration;
use models::file::gguf::{Gguf, MetadataValue};
use models::{Checkpoint, Files};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the configuration, metadata, tensors and sizes of a model or vision tower.
pub fn inspect(file: &Path, wants_json: bool) -> Result<String, models::Error> {
    let checkpoint = Checkpoint::open(file)?;
    let configuration = configuration_json(&checkpoint);
    let tensors = checkpoint.tensors();
    let mut formats: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for tensor in &tensors {
        let (count, bytes) = formats.entry(tensor.format.name()).or_default();
        (*count, *bytes) = (*count + 1, *bytes + tensor.bytes.len() as u64);
    }
    let (kind, parts) = match checkpoint.files() {
        Files::Gguf(gguf) => (format!("GGUF version {}", gguf.version()), gguf.parts()),
        Files::Safetensors(safetensors) => ("safetensors".to_owned(), safetensors.parts()),
    };
    let metadata: Vec<(&str, MetadataValue<'_>)> = match checkpoint.files() {
        Files::Gguf(gguf) => gguf.metadata().collect(),
        Files::Safetensors(_) => Vec::new(),
    };
    if wants_json {
        let tensor = |tensor: &models::file::FileTensor<'_>| {
            let (name, format) = (tensor.name, tensor.format.name());
            json!({ "name": name, "format": format, "extents": tensor.extents, "bytes": tensor.bytes.len() })
        };
        let pairs: serde_json::Map<String, _> =
            metadata.iter().map(|(key, value)| ((*key).to_owned(), as_json(value))).collect();
        let value = json!({
            "file": checkpoint.file(),
            "kind": kind,
            "files": parts,
            "configuration": configuration.as_ref().ok(),
            "problem": configuration.as_ref().err().map(|error| error.to_string()),
            "metadata": pairs,
            "tensors": tensors.iter().map(tensor).collect::<Vec<_>>(),
            "bytes": checkpoint.tensor_bytes(),
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut text = String::new();
    let mut line = |line: String| {
        text.push_str(line.trim_end());
        text.push('\n');
    };
    line(truncated(checkpoint.file(), LINE_WIDTH));
    let files = if parts == 1 { "one file".to_owned() } else { format!("{parts} files") };
    let tensor_count = counted(tensors.len(), "tensor");
    line(format!("{kind}, {files}, {tensor_count}, {}", format_bytes(checkpoint.tensor_bytes())));
    line(String::new());
    match &configuration {
        Ok(configuration) => {
            line("configuration".to_owned());
            for (key, value) in flattened("", configuration) {
                line(truncated(&format!("  {key:<24} {value}"), LINE_WIDTH));
            }
        }
        // `inspect` also shows a file that the crate cannot run.
        Err(error) => wrapped_lines(&format!("not supported: {error}")).for_each(&mut line),
    }
    if !metadata.is_empty() {
        line(String::new());
        line("metadata".to_owned());
        for (key, value) in &metadata {
            let key = format!("  {:<42} ", truncated(key, 42));
            line(format!("{key}{}", truncated(&metadata_text(value), LINE_WIDTH - key.chars().count())));
        }
    }
    line(String::new());
    line(format!("{:<42} {:<8} {:<18} {:>8}", "tensors", "format", "extents", "bytes"));
    for tensor in &tensors {
        let extents = tensor.extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
        let (name, extents) = (truncated(tensor.name, 40), truncated(&extents, 18));
        line(format!("  {name:<40} {:<8} {extents:<18} {:>8}", tensor.format, format_bytes(tensor.bytes.len() as u64)));
    }
    line(String::new());
    for (format, (count, bytes)) in formats {
        line(format!("  {format:<8} {count:>5} tensors {:>8}", format_bytes(bytes)));
    }
    Ok(text)
}

/// Describes a metadata value on one line. Strings and arrays are cut.
fn metadata_text(value: &MetadataValue<'_>) -> String {
    match value {
        MetadataValue::String(bytes) => String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned(),
        MetadataValue::Array(array) => {
            let first: Vec<String> = array.iter().take(8).map(|value| metadata_text(&value)).collect();
            let rest = if array.length > 8 { ", …" } else { "" };
            format!("{} × {}: {}{rest}", array.length, array.element.name(), first.join(", "))
        }
        _ => as_json(value).to_string(),
    }
}

/// Returns a metadata value as JSON. An array of more than 64 elements becomes an object with the
/// length and the first elements.
fn as_json(value: &MetadataValue<'_>) -> serde_json::Value {
    match value {
        // Prints the shortest decimal number that rounds to the value in `f32`.
        MetadataValue::F32(value) => json!(value.to_string().parse::<f64>().ok()),
        MetadataValue::F64(value) => json!(value),
        MetadataValue::Bool(value) => json!(value),
        MetadataValue::String(bytes) => json!(String::from_utf8_lossy(bytes)),
        MetadataValue::I8(value) => json!(value),
        MetadataValue::I16(value) => json!(value),
        MetadataValue::I32(value) => json!(value),
        MetadataValue::I64(value) => json!(value),
        MetadataValue::Array(array) if array.length > 64 => {
            let first: Vec<_> = array.iter().take(8).map(|value| as_json(&value)).collect();
            json!({ "length": array.length, "first": first })
        }
        MetadataValue::Array(array) => array.iter().map(|value| as_json(&value)).collect(),
        _ => json!(value.unsigned()),
    }
}

/// Returns the configuration of a language model or, for an *mmproj* file, of a vision tower.
fn configuration_json(checkpoint: &Checkpoint) -> Result<serde_json::Value, models::Error> {
    let is_tower = |gguf: &Gguf| gguf.get("general.architecture").and_then(|name| name.text()) == Some("clip");
    match checkpoint.files() {
        Files::Gguf(gguf) if is_tower(gguf) => VisionConfiguration::from_gguf(gguf).map(|vision| json!(vision)),
        _ => checkpoint.configuration().map(|configuration| json!(configuration)),
    }
}

/// Returns the fields of an object with their values. Fields of inner objects have names such as
/// `outer.inner`.
fn flattened(prefix: &str, object: &serde_json::Value) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match value {
            serde_json::Value::Object(_) => fields.extend(flattened(&format!("{prefix}{key}."), value)),
            serde_json::Value::Null => {}
            serde_json::Value::String(text) => fields.push((format!("{prefix}{key}"), text.clone())),
            other => fields.push((format!("{prefix}{key}"), other.to_string())),
        }
    }
    fields
}
