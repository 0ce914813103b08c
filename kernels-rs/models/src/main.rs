//! The command `models`: runs, serves and measures a model; prints the content of a file, the
//! tokens of a text, and the memory that a model needs.

mod measure;
mod serve;
mod talk;

use clap::{Parser, Subcommand};
use models::configuration::{Configuration, VisionConfiguration};
use models::file::gguf::{Gguf, MetadataValue};
use models::memory::{CacheFormat, MemoryNeeds, MemoryPlan};
use models::quantize::{self, FormatChange, TargetFormats};
use models::tokenizer::{Encoding, TokenType, Tokenizer};
use models::{Checkpoint, Files};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The widest line that is printed.
const LINE_WIDTH: usize = 80;

/// Runs language models, and prints their files, tokens and memory.
#[derive(Parser)]
#[command(version, max_term_width = LINE_WIDTH)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Continues a text with tokens from the model.
    Generate {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The text.
        #[arg(long)]
        prompt: String,
        #[command(flatten)]
        options: talk::GenerateOptions,
    },
    /// Answers messages, in the chat template of the model. Each line of the input is a message.
    Chat {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// A message before the conversation.
        #[arg(long)]
        system: Option<String>,
        #[command(flatten)]
        options: talk::GenerateOptions,
    },
    /// Answers requests by the HTTP interface of OpenAI, several at once.
    Serve {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        #[command(flatten)]
        options: serve::ServeOptions,
    },
    /// Prints the perplexity of a text.
    Perplexity {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The file of the text, UTF-8.
        text: PathBuf,
        /// Tokens that the model sees at once.
        #[arg(long, default_value_t = 512)]
        window: usize,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        options: talk::RunOptions,
    },
    /// Compares the logits of two models with the same vocabulary, such as a file before and after
    /// quantization.
    Compare {
        /// The file or folder.
        file: PathBuf,
        /// The other file or folder.
        other: PathBuf,
        /// Sequences of pseudorandom tokens.
        #[arg(long, default_value_t = 8)]
        sequences: usize,
        /// Tokens of a sequence.
        #[arg(long, default_value_t = 64)]
        tokens: usize,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        options: talk::RunOptions,
    },
    /// Measures the tokens per second of a prompt and of generation.
    Bench {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// Tokens of the prompt.
        #[arg(long, default_value_t = 512)]
        prompt: usize,
        /// Tokens that are generated.
        #[arg(long, default_value_t = 128)]
        generate: usize,
        /// Tokens that are in the cache before the prompt. The option may be given several times.
        #[arg(long = "depth", default_values_t = [0])]
        depths: Vec<usize>,
        /// Sequences that are generated at once: 1, 2, 4, 8 or 16.
        #[arg(long, default_value_t = 1)]
        sequences: usize,
        /// Times the graph of a step without the host, and each of its kernels alone.
        #[arg(long)]
        kernels: bool,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        options: talk::RunOptions,
    },
    /// Writes a GGUF file with matrices in another format.
    Quantize {
        /// The GGUF file, in any format whose elements can be read.
        file: PathBuf,
        /// The new file.
        to: PathBuf,
        /// The format of the matrices of layers: Q4_0, Q4_K, Q8_0, F16 and others.
        #[arg(long, default_value = "Q8_0")]
        format: String,
        /// The format of the embedding and of the output matrix.
        #[arg(long, default_value = "Q8_0")]
        embedding_format: String,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints configuration, metadata, tensors and sizes of a GGUF file, a safetensors file or a
    /// folder.
    Inspect {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the tokens of a text.
    Tokenize {
        /// The file or folder of a model, or a tokenizer.json.
        file: PathBuf,
        /// The text.
        text: String,
        /// Reads names of control tokens, such as <|im_end|>, as these tokens.
        #[arg(long)]
        parse_special: bool,
        /// Adds the tokens that the model expects at the beginning and end of a text.
        #[arg(long)]
        add_special: bool,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints the memory that a model needs, and checks that all of its tensors are there.
    Fit {
        /// The GGUF or safetensors file of a model, or its folder.
        file: PathBuf,
        /// The GGUF file of the vision tower, if FILE is GGUF. Safetensors contain the tower.
        #[arg(long)]
        mmproj: Option<PathBuf>,
        /// The capacity of the cache: the tokens of all sequences together.
        #[arg(long, default_value_t = MemoryPlan::default().tokens)]
        tokens: u64,
        /// Sequences that are decoded at once.
        #[arg(long, default_value_t = MemoryPlan::default().sequences)]
        sequences: u64,
        /// The chunk size: tokens of a prompt that pass through the layers at once.
        #[arg(long, default_value_t = MemoryPlan::default().chunk_size)]
        chunk_size: u64,
        #[command(flatten)]
        split: talk::SplitOptions,
        /// Prints JSON.
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let text = match Arguments::parse().command {
        Command::Generate { file, prompt, options } => talk::generate(&file, &prompt, &options).map(|()| String::new()),
        Command::Chat { file, system, options } => {
            talk::chat(&file, system.as_deref(), &options).map(|()| String::new())
        }
        Command::Serve { file, options } => serve::serve(&file, &options).map(|()| String::new()),
        Command::Perplexity { file, text, window, json, options } => {
            measure::perplexity(&file, &text, window, &options, json)
        }
        Command::Compare { file, other, sequences, tokens, json, options } => {
            measure::compare([&file, &other], [sequences, tokens], &options, json)
        }
        Command::Bench { file, prompt, generate, depths, sequences, kernels, json, options } => measure::bench(
            &file,
            &measure::BenchWorkload { prompt, generate, depths, sequences, kernels },
            &options,
            json,
        ),
        Command::Quantize { file, to, format, embedding_format, json } => {
            quantize(&file, &to, [&format, &embedding_format], json)
        }
        Command::Inspect { file, json } => inspect(&file, json),
        Command::Tokenize { file, text, parse_special, add_special, json } => {
            tokenize(&file, &text, Encoding { parse_special, add_special }, json)
        }
        Command::Fit { file, mmproj, tokens, sequences, chunk_size, split, json } => fit(
            &file,
            mmproj.as_deref(),
            MemoryPlan { tokens, sequences, chunk_size, ..MemoryPlan::default() },
            &split,
            json,
        ),
    };
    match text {
        Ok(text) => {
            // A reader such as `head` may close the pipe early.
            let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns `text` in at most `width` columns, cut in the middle.
fn truncated(text: &str, width: usize) -> String {
    let escaped: Vec<char> = text.chars().flat_map(char::escape_debug).collect();
    if escaped.len() <= width {
        return escaped.into_iter().collect();
    }
    let begin = (width - 1) * 2 / 3;
    let end = escaped.len() - (width - 1 - begin);
    escaped[..begin].iter().chain(&['…']).chain(&escaped[end..]).collect()
}

/// Returns a count of bytes with its unit.
fn format_bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// Describes a metadata value on one line.
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

/// Returns a metadata value as JSON. A long array becomes its length and first elements.
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

/// Returns the configuration of a language model or, for an mmproj file, of a vision tower.
fn configuration_json(checkpoint: &Checkpoint) -> Result<serde_json::Value, models::Error> {
    let is_tower = |gguf: &Gguf| gguf.get("general.architecture").and_then(|name| name.text()) == Some("clip");
    match checkpoint.files() {
        Files::Gguf(gguf) if is_tower(gguf) => VisionConfiguration::from_gguf(gguf).map(|vision| json!(vision)),
        _ => checkpoint.configuration().map(|configuration| json!(configuration)),
    }
}

/// Returns the description of a file.
fn inspect(file: &Path, wants_json: bool) -> Result<String, models::Error> {
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
            "bytes": checkpoint.bytes(),
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
    line(format!("{kind}, {files}, {} tensors, {}", tensors.len(), format_bytes(checkpoint.bytes())));
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

/// Writes a file in other formats, and returns a table of the changes.
fn quantize(file: &Path, to: &Path, formats: [&str; 2], wants_json: bool) -> Result<String, models::Error> {
    let [layers, embedding] = formats.map(quantize::target);
    let formats = TargetFormats { layers: layers?, embedding: embedding? };
    let gguf = Gguf::open(file)?;
    let bar = talk::bar("quantizing {bar:30} {bytes} of {total_bytes}");
    let changes = quantize::quantize(&gguf, to, formats, |read, total| {
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

/// Returns the fields of an object and of the objects in it, with their values.
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

/// Breaks a message into lines of at most 80 columns.
fn wrapped_lines(text: &str) -> impl Iterator<Item = String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].chars().count() + 1 + word.chars().count() > LINE_WIDTH && !lines[last].is_empty() {
            lines.push(format!("  {word}"));
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(space);
            lines[last].push_str(word);
        }
    }
    lines.into_iter()
}

/// Returns the tokens of a text.
fn tokenize(file: &Path, text: &str, encoding: Encoding, wants_json: bool) -> Result<String, models::Error> {
    let tokenizer = if file.file_name().is_some_and(|name| name == "tokenizer.json") {
        Tokenizer::from_json(file)?
    } else {
        Checkpoint::open(file)?.tokenizer()?
    };
    let tokens = tokenizer.encode(text, encoding)?;
    let text_of = |token: &u32| String::from_utf8_lossy(tokenizer.text(*token).unwrap_or_default()).into_owned();
    if wants_json {
        let tokens = tokens.iter().map(|token| json!({ "token": token, "text": text_of(token) }));
        return Ok(format!("{:#}\n", tokens.collect::<serde_json::Value>()));
    }
    let mut out = String::new();
    for token in &tokens {
        let mark = if tokenizer.token_type(*token) == Some(TokenType::Control) { " (control)" } else { "" };
        let _ = writeln!(out, "{token:>8}  \"{}\"{mark}", truncated(&text_of(token), 58));
    }
    let _ = writeln!(out, "{} tokens of {} bytes", tokens.len(), text.len());
    Ok(out)
}

/// The memory that a model needs with a format of the cache.
struct MemoryByDevice {
    cache: CacheFormat,
    /// The layers of each device.
    layers: Vec<usize>,
    devices: Vec<MemoryNeeds>,
}

impl MemoryByDevice {
    fn total(&self) -> u64 {
        self.devices.iter().map(MemoryNeeds::total).fold(0, u64::saturating_add)
    }

    fn as_json(&self) -> serde_json::Value {
        let MemoryByDevice { cache, layers, devices } = self;
        match &devices[..] {
            [memory] => json!({ "cache_format": cache, "memory": memory, "total": memory.total() }),
            _ => {
                let device_needs = layers
                    .iter()
                    .zip(devices)
                    .map(|(layers, memory)| json!({ "layers": layers, "memory": memory, "total": memory.total() }));
                json!({ "cache_format": cache, "devices": device_needs.collect::<Vec<_>>(), "total": self.total() })
            }
        }
    }
}

/// Returns the memory that a model needs, on one device or on each of several.
fn fit(
    file: &Path,
    mmproj: Option<&Path>,
    plan: MemoryPlan,
    split: &talk::SplitOptions,
    wants_json: bool,
) -> Result<String, models::Error> {
    let checkpoint = talk::open(file, mmproj)?;
    let configuration: Configuration = checkpoint.configuration()?;
    let weights = checkpoint.weight_bytes(&configuration)?;
    let free = split.free_memory();
    let needs = |cache| {
        let plan = MemoryPlan { cache, ..plan };
        let layers = configuration.layers_by_device(plan, &weights, &free, split.layers())?;
        let devices = configuration.memory_by_device(plan, &weights, &layers);
        Ok(MemoryByDevice { cache, layers, devices })
    };
    let needs = CacheFormat::ALL.into_iter().map(needs).collect::<Result<Vec<MemoryByDevice>, models::Error>>()?;
    if wants_json {
        let needs: Vec<_> = needs.iter().map(MemoryByDevice::as_json).collect();
        return Ok(format!("{:#}\n", json!({ "plan": plan, "free": free, "needs": needs })));
    }
    let MemoryPlan { tokens, sequences, chunk_size, .. } = plan;
    let mut out = String::new();
    let _ = writeln!(out, "{}", truncated(checkpoint.file(), LINE_WIDTH));
    let _ =
        writeln!(out, "a cache of {tokens} tokens, sequences: {sequences}, prompts in chunks of {chunk_size} tokens");
    let known = split.devices.iter().zip(&free).filter_map(|(device, free)| Some((device, (*free)?)));
    for (device, free) in known {
        let _ = writeln!(out, "free on device {device}: {}", format_bytes(free));
    }
    let _ = writeln!(out);
    let device_columns = if split.devices.len() > 1 { "device  layers  " } else { "" };
    let _ = writeln!(out, "cache  {device_columns}  a token      cache    weights  activations      total");
    for needs in &needs {
        let cache = needs.cache.format().name();
        let mut from = 0;
        for (i, (layers, memory)) in needs.layers.iter().zip(&needs.devices).enumerate() {
            let MemoryNeeds { weights, cache: all, cache_per_token, activations } = *memory;
            let [token, all, weights, activations] = [cache_per_token, all, weights, activations].map(format_bytes);
            let total = format_bytes(memory.total());
            let device_column = match split.devices.get(i) {
                Some(device) if split.devices.len() > 1 => {
                    format!("{:>6}  {:>6}  ", device.to_string(), format!("{from}–{}", from + layers - 1))
                }
                _ => String::new(),
            };
            from += layers;
            let _ = writeln!(
                out,
                "{cache:<5}  {device_column}{token:>9} {all:>10} {weights:>10} {activations:>12} {total:>10}"
            );
        }
        if needs.devices.len() > 1 {
            let _ = writeln!(out, "{cache:<5}  {:>70}", format!("all devices {:>10}", format_bytes(needs.total())));
        }
    }
    Ok(out)
}
