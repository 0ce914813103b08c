//! Commands that measure a model: perplexity and speed.

use crate::talk::{RunOptions, bar};
use models::Error;
use models::engine::{Sampler, Sampling};
use models::tokenizer::Encoding;
use runtime::Device;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Returns the mean and its standard error.
fn mean(numbers: &[f32]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let squares = numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// Returns the perplexity of a text file: e to the mean of −ln of the probabilities of its tokens.
/// Windows of `window` tokens do not overlap, and the first token of each has no probability.
pub fn perplexity(
    file: &Path,
    text: &Path,
    window: usize,
    options: &RunOptions,
    wants_json: bool,
) -> Result<String, Error> {
    let checkpoint = options.open(file)?;
    let bytes = std::fs::read(text).map_err(|source| Error::Io { action: "read", path: text.to_owned(), source })?;
    let model = options.load(&checkpoint)?;
    let tokens = model.tokenizer.encode(&String::from_utf8_lossy(&bytes), Encoding::default())?;
    let window = window.clamp(2, model.configuration.context.max(2));
    let mut session = model.session(options.session(window))?;
    let shown = bar("{bar:30} {pos} of {len} tokens, {eta} left");
    shown.set_length(tokens.len() as u64);
    let mut losses = Vec::new();
    for window in tokens.chunks(window).filter(|window| window.len() > 1) {
        losses.extend(session.losses(window)?);
        shown.inc(window.len() as u64);
    }
    shown.finish_and_clear();
    if losses.is_empty() {
        let problem = format!("`{}` has {} tokens; expected 2 or more", text.display(), tokens.len());
        return Err(Error::Tokens { action: "compute a perplexity", problem });
    }
    let (loss, error) = mean(&losses);
    let (perplexity, error) = (loss.exp(), loss.exp() * error);
    if wants_json {
        let value = json!({
            "tokens": losses.len(), "window": window, "loss": loss, "perplexity": perplexity, "error": error,
            "device": model.device.to_string(),
        });
        return Ok(format!("{value:#}\n"));
    }
    Ok(format!("perplexity {perplexity:.4} ± {error:.4} over {} tokens in windows of {window}\n", losses.len()))
}

/// Returns the bytes a second that a copy on the device reads and writes; none on the CPU, whose
/// interpreter does not limit memory.
fn copied(device: &Device) -> Result<Option<f64>, Error> {
    if device.is_cpu() {
        return Ok(None);
    }
    const BYTES: usize = 256 << 20;
    const COPIES: usize = 10;
    let stream = device.stream()?;
    let (from, mut to) = (device.zeros::<u8>(BYTES)?, device.zeros::<u8>(BYTES)?);
    let mut best = 0.0f64;
    for _ in 0..3 {
        stream.wait()?;
        let start = Instant::now();
        for _ in 0..COPIES {
            stream.copy(&from, &mut to)?;
        }
        stream.wait()?;
        best = best.max((2 * BYTES * COPIES) as f64 / start.elapsed().as_secs_f64());
    }
    Ok(Some(best))
}

/// The texts that `bench` runs.
pub struct Bench {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens that are generated.
    pub generate: usize,
    /// Tokens before the prompt.
    pub depths: Vec<usize>,
}

/// Returns the tokens a second of a prompt and of generation after texts of some depths.
pub fn bench(
    file: &Path,
    Bench { prompt, generate, depths }: &Bench,
    options: &RunOptions,
    wants_json: bool,
) -> Result<String, Error> {
    let checkpoint = options.open(file)?;
    let model = options.load(&checkpoint)?;
    let configuration = &model.configuration;
    let (prompt, generate) = ((*prompt).max(1), (*generate).max(1));
    let read = checkpoint.read_per_step(configuration)?;
    let copied = copied(&model.device)?;
    let shown = bar("{bar:30} {pos} of {len} tokens, {eta} left");
    let all = |depth: &usize| (depth + prompt + generate) as u64;
    shown.set_length(depths.iter().map(all).sum());
    // Other tokens one after another, by a linear congruence.
    let token = |i: usize| (i.wrapping_mul(7919) % configuration.vocabulary) as u32;
    if !model.device.is_cpu() {
        // The driver compiles the kernels of a prompt when the first prompt runs.
        let mut session = model.session(options.session(prompt + 1))?;
        session.set(&(0..prompt).map(token).collect::<Vec<_>>())?;
    }
    let mut found = Vec::new();
    for depth in depths {
        let room = depth + prompt + generate + 1;
        let mut session = model.session(options.session(room))?;
        let text: Vec<u32> = (0..depth + prompt).map(token).collect();
        if *depth > 0 {
            session.set(&text[..*depth])?;
            shown.inc(*depth as u64);
        }
        let start = Instant::now();
        session.set(&text)?;
        let prompted = start.elapsed().as_secs_f64();
        shown.inc(prompt as u64);
        let mut sampler = Sampler::new(&model.device, Sampling::default(), configuration.vocabulary, &[])?;
        // The first token is drawn from the logits of the prompt, and compiles what draws.
        session.next(&mut sampler)?;
        let start = Instant::now();
        for _ in 0..generate {
            session.next(&mut sampler)?;
            shown.inc(1);
        }
        let seconds = start.elapsed().as_secs_f64();
        let keys = (depth + prompt) as f64 + (generate as f64 + 1.0) / 2.0;
        let bytes = read as f64 + keys * configuration.cache_per_token(options.session(room).cache) as f64;
        let rate = bytes * generate as f64 / seconds;
        found.push((*depth, prompt as f64 / prompted, generate as f64 / seconds, bytes, copied.map(|all| rate / all)));
    }
    shown.finish_and_clear();
    if wants_json {
        let runs = found.iter().map(|(depth, prompted, generated, bytes, share)| {
            json!({
                "depth": depth, "prompt_tokens_per_second": prompted, "generated_tokens_per_second": generated,
                "bytes_per_step": bytes, "share_of_copy": share,
            })
        });
        let value = json!({
            "device": model.device.to_string(), "prompt": prompt, "generate": generate,
            "copy_bytes_per_second": copied, "runs": runs.collect::<Vec<_>>(),
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut out = String::new();
    let _ = writeln!(out, "{}, prompt of {prompt}, {generate} generated\n", model.device);
    let _ = writeln!(out, "   depth  prompt tokens/s  generated tokens/s  MB a step  of a copy");
    for (depth, prompted, generated, bytes, share) in found {
        let share = share.map_or("–".to_owned(), |share| format!("{share:.2}"));
        let _ = writeln!(out, "{depth:>8} {prompted:>16.1} {generated:>19.1} {:>10.1} {share:>10}", bytes / 1e6);
    }
    Ok(out)
}
