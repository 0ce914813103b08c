//! Commands that measure models: `perplexity`, `compare` and `bench`.

use crate::options::{RunOptions, bar};
use indicatif::ProgressBar;
use models::engine::timing::{InstanceTime, StepTimes, TimedStep};
use models::engine::{Batch, Sampling, SessionOptions};
use models::tokenizer::Encoding;
use models::{Checkpoint, Error, Model};
use runtime::Device;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

/// Returns the mean of some numbers, and the standard error of the mean.
fn mean_and_error(numbers: &[f32]) -> (f64, f64) {
    let n = numbers.len() as f64;
    let mean = numbers.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let squares = numbers.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
    (mean, (squares / (n - 1.0).max(1.0) / n).sqrt())
}

/// Rejects numbers that are not finite, which say nothing about a model.
fn check_finite(action: &'static str, file: &Path, what: &str, numbers: &[f32]) -> Result<(), Error> {
    match numbers.iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => {
            let file = file.display();
            let problem = format!("found {number} among the {what} of `{file}`: the weights may be damaged");
            Err(Error::Tokens { action, problem })
        }
    }
}

/// Returns the perplexity of a text file: exp of the mean of −ln p over its tokens, where p is a
/// token's probability. Windows of `window` tokens do not overlap, and the first token of each does
/// not count.
pub fn perplexity(
    file: &Path,
    text: &Path,
    window: usize,
    options: &RunOptions,
    wants_json: bool,
) -> Result<String, Error> {
    let checkpoint = Checkpoint::open(file)?;
    let bytes = std::fs::read(text).map_err(|source| Error::Io { action: "read", path: text.to_owned(), source })?;
    let content = String::from_utf8(bytes).map_err(|error| {
        let problem = format!("byte {} is not UTF-8", error.utf8_error().valid_up_to());
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, problem);
        Error::Io { action: "read", path: text.to_owned(), source }
    })?;
    let model = options.load(&checkpoint, [1, window], 0)?;
    let tokens = model.tokenizer.encode(&content, Encoding::default())?;
    let window = window.min(model.configuration.context_length.max(2));
    let mut session = model.session(options.session(window))?;
    let progress = bar("{bar:30} {pos} of {len} tokens, {eta} left");
    progress.set_length(tokens.len() as u64);
    let mut losses = Vec::new();
    for window in tokens.chunks(window).filter(|window| window.len() > 1) {
        losses.extend(session.losses(window)?);
        progress.inc(window.len() as u64);
    }
    progress.finish_and_clear();
    if losses.is_empty() {
        let problem = format!("`{}` has {} tokens; expected 2 or more", text.display(), tokens.len());
        return Err(Error::Tokens { action: "compute a perplexity", problem });
    }
    check_finite("compute a perplexity", file, "losses", &losses)?;
    let (loss, error) = mean_and_error(&losses);
    let (perplexity, error) = (loss.exp(), loss.exp() * error);
    if wants_json {
        let value = json!({
            "tokens": losses.len(), "window": window, "loss": loss, "perplexity": perplexity, "standard_error": error,
            "device": model.device_names(),
        });
        return Ok(format!("{value:#}\n"));
    }
    Ok(format!("perplexity {perplexity:.4} ± {error:.4} over {} tokens in windows of {window}\n", losses.len()))
}

/// Returns the differences between the logits of two models after each of `sequences` sequences of
/// `length` pseudorandom tokens. The Kullback–Leibler divergence is Σ p·ln(p/q), with the
/// probabilities p of `other` and q of `file`.
pub fn compare(
    [file, other]: [&Path; 2],
    [sequences, length]: [usize; 2],
    options: &RunOptions,
    wants_json: bool,
) -> Result<String, Error> {
    let logits = |file: &Path| {
        let model = options.load(&Checkpoint::open(file)?, [1, length], 0)?;
        let vocabulary = model.configuration.vocabulary;
        let mut session = model.session(options.session(length))?;
        let logits_of_sequence = |sequence: usize| {
            let tokens: Vec<u32> = (0..length).map(|i| ((i + sequence * length) * 7919 % vocabulary) as u32).collect();
            session.set(&tokens)?;
            let logits = session.logits()?;
            check_finite("compare models", file, "logits", &logits)?;
            Ok(logits)
        };
        (0..sequences).map(logits_of_sequence).collect::<Result<Vec<Vec<f32>>, Error>>()
    };
    let (found, expected) = (logits(file)?, logits(other)?);
    if found[0].len() != expected[0].len() {
        let problem = format!("the vocabularies have {} and {} tokens", found[0].len(), expected[0].len());
        return Err(Error::Tokens { action: "compare models", problem });
    }
    let (mut largest, mut squares, mut divergence) = (0.0f64, [0.0f64; 2], 0.0f64);
    for (found, expected) in found.iter().zip(&expected) {
        let pairs = || found.iter().zip(expected).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let top = pairs().fold(0.0f64, |top, (_, b)| top.max(b.abs()));
        largest = pairs().fold(largest, |largest, (a, b)| largest.max((a - b).abs() / top));
        squares = pairs().fold(squares, |[error, all], (a, b)| [error + (a - b) * (a - b), all + b * b]);
        // The largest logit is subtracted, because exp(710) is no number.
        let log_sum = |logits: &[f32]| {
            let largest = logits.iter().fold(f64::NEG_INFINITY, |largest, x| largest.max(f64::from(*x)));
            largest + logits.iter().map(|x| (f64::from(*x) - largest).exp()).sum::<f64>().ln()
        };
        let (found_log_sum, expected_log_sum) = (log_sum(found), log_sum(expected));
        divergence += pairs()
            .map(|(a, b)| (b - expected_log_sum).exp() * (b - expected_log_sum - a + found_log_sum))
            .sum::<f64>();
    }
    // Rounding may make the divergence of nearly equal logits negative.
    let (root, divergence) = ((squares[0] / squares[1]).sqrt(), (divergence / sequences as f64).max(0.0));
    if wants_json {
        let value = json!({
            "sequences": sequences, "tokens": length, "largest_difference": largest, "root_mean_square": root,
            "kl_divergence": divergence,
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut out = format!("logits after {sequences} sequences of {length} tokens\n\n");
    let _ = writeln!(out, "largest difference, of the largest logit        {largest:.3e}");
    let _ = writeln!(out, "root mean square of differences, of the logits  {root:.3e}");
    let _ = writeln!(out, "Kullback–Leibler divergence                     {divergence:.3e}");
    Ok(out)
}

/// Returns the bytes that a copy on the device reads and writes per second. Returns `None` for the
/// CPU, where the interpreter limits the speed, and not the memory.
fn copy_bandwidth(device: &Device) -> Result<Option<f64>, Error> {
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

/// The sequences that `bench` runs, and the measurements.
pub struct BenchWorkload {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens that are generated.
    pub generate: usize,
    /// Tokens before the prompt, for each run.
    pub depths: Vec<usize>,
    /// Sequences that are generated at once.
    pub sequences: usize,
    /// The maximum number of drafts in a step.
    pub drafts: usize,
    /// Whether each kernel is also timed alone.
    pub times_kernels: bool,
}

/// The measurements at a depth.
struct BenchMeasurement {
    depth: usize,
    /// The seconds that the prompt of a sequence takes.
    prompt: f64,
    /// The seconds that a step takes, in which each sequence gets a token.
    step: f64,
    /// The bytes of weights and of keys and values that a step reads.
    bytes: f64,
    /// The times of the prompt's last chunk and of a step on the device alone, if measured.
    times: Option<[StepTimes; 2]>,
}

/// Measures prompts and generation after `depth` tokens in the cache.
fn measure(
    model: &Model,
    options: SessionOptions,
    depth: usize,
    BenchWorkload { prompt, generate, sequences, times_kernels, .. }: &BenchWorkload,
    progress: &ProgressBar,
) -> Result<BenchMeasurement, Error> {
    let configuration = &model.configuration;
    // Tokens are pseudorandom, so that neighbors differ.
    let token = |i: usize| (i.wrapping_mul(7919) % configuration.vocabulary) as u32;
    let mut batch = model.batch(options, *sequences)?;
    let mut seconds = 0.0;
    for sequence in 0..*sequences {
        let tokens: Vec<u32> = (0..depth + prompt).map(|i| token(i + sequence)).collect();
        if depth > 0 {
            batch.set(sequence, &tokens[..depth])?;
            while !batch.prefill(sequence)? {}
            progress.inc(depth as u64);
        }
        batch.set(sequence, &tokens)?;
        let start = Instant::now();
        while !batch.prefill(sequence)? {}
        seconds += start.elapsed().as_secs_f64();
        progress.inc(*prompt as u64);
    }
    let mut sampler = model.sampler(Sampling::default(), &[])?;
    let all_sequences: Vec<usize> = (0..*sequences).collect();
    let mut step = |batch: &mut Batch| {
        batch.advance(&all_sequences)?;
        all_sequences.iter().try_for_each(|sequence| batch.draw(*sequence, &mut sampler).map(drop))
    };
    // Warm up: the first tokens come from the logits of prompts, and the first step compiles
    // kernels.
    for _ in 0..2 {
        step(&mut batch)?;
    }
    let start = Instant::now();
    for _ in 0..*generate {
        step(&mut batch)?;
        progress.inc(1);
    }
    let step = start.elapsed().as_secs_f64() / *generate as f64;
    drop(batch);
    let times = match times_kernels {
        false => None,
        true => {
            let tokens = (*prompt).min(options.chunk_size);
            let before = depth + prompt - tokens;
            let prompt_times = model.step_times(options, TimedStep::Prompt { tokens, before })?;
            let before = depth + prompt + generate / 2;
            Some([prompt_times, model.step_times(options, TimedStep::Decode { sequences: *sequences, before })?])
        }
    };
    // The mean number of keys of a sequence over the timed steps, which follow the warm-up steps.
    let keys = (depth + prompt) as f64 + (*generate as f64 + 3.0) / 2.0;
    let bytes = *sequences as f64 * keys * configuration.cache_per_token(options.cache) as f64;
    Ok(BenchMeasurement { depth, prompt: seconds / *sequences as f64, step, bytes, times })
}

/// Returns the tokens per second of prompts and of generation, for each depth of a workload.
pub fn bench(file: &Path, bench: &BenchWorkload, options: &RunOptions, wants_json: bool) -> Result<String, Error> {
    let checkpoint = Checkpoint::open(file)?;
    let BenchWorkload { prompt, generate, sequences, drafts, .. } = *bench;
    let context_size = |depth: usize| depth.saturating_add(prompt).saturating_add(generate).saturating_add(3);
    let deepest = bench.depths.iter().copied().max().unwrap_or(0);
    let model = options.load(&checkpoint, [sequences, context_size(deepest)], drafts)?;
    let weight_bytes = checkpoint.weight_bytes_per_step(&model.configuration)? as f64;
    let copy_bandwidth = copy_bandwidth(&model.device)?;
    let progress = bar("{bar:30} {pos} of {len} tokens, {eta} left");
    // The limit of the context size is checked later, so the numbers may be large.
    let run_tokens = |depth: &usize| depth.saturating_add(prompt).saturating_mul(sequences).saturating_add(generate);
    progress.set_length(bench.depths.iter().map(run_tokens).fold(0, usize::saturating_add) as u64);
    // Warm up: the first prompt compiles kernels.
    let session = |depth: usize| SessionOptions { drafts, ..options.session(context_size(depth)) };
    if !model.device.is_cpu() {
        let mut session = model.session(session(0))?;
        session.set(&vec![0; prompt])?;
    }
    let mut found = Vec::new();
    for depth in &bench.depths {
        let mut measured = measure(&model, session(*depth), *depth, bench, &progress)?;
        measured.bytes += weight_bytes;
        found.push(measured);
    }
    progress.finish_and_clear();
    let share = |found: &BenchMeasurement| copy_bandwidth.map(|all| found.bytes / found.step / all);
    if wants_json {
        let runs = found.iter().map(|found| {
            let times = found.times.as_ref().map(|times| {
                let list = times.each_ref().map(|times| {
                    let kernel = |InstanceTime { instance, launches, seconds }: &InstanceTime| {
                        json!({ "instance": instance, "launches": launches, "seconds": seconds })
                    };
                    let kernels: Vec<_> = times.kernels.iter().map(kernel).collect();
                    json!({ "graph_seconds": times.graph, "kernels": kernels })
                });
                json!({ "prompt": list[0], "step": list[1] })
            });
            json!({
                "depth": found.depth, "prompt_tokens_per_second": prompt as f64 / found.prompt,
                "generated_tokens_per_second": sequences as f64 / found.step, "bytes_per_step": found.bytes,
                "share_of_copy": share(found), "times": times,
            })
        });
        let value = json!({
            "device": model.device_names(), "prompt": prompt, "generate": generate, "sequences": sequences,
            "copy_bytes_per_second": copy_bandwidth, "runs": runs.collect::<Vec<_>>(),
        });
        return Ok(format!("{value:#}\n"));
    }
    let mut out = String::new();
    let _ =
        writeln!(out, "{}, prompt of {prompt}, {generate} generated, sequences: {sequences}\n", model.device_names());
    let _ = writeln!(out, "   depth  prompt tokens/s  generated tokens/s  MB a step  of a copy");
    for measured in &found {
        let share = share(measured).map_or("–".to_owned(), |share| format!("{share:.2}"));
        let (prompt_rate, generated_rate) = (prompt as f64 / measured.prompt, sequences as f64 / measured.step);
        let (depth, megabytes) = (measured.depth, measured.bytes / 1e6);
        let _ = writeln!(out, "{depth:>8} {prompt_rate:>16.1} {generated_rate:>19.1} {megabytes:>10.1} {share:>10}");
    }
    for BenchMeasurement { depth, prompt: prompt_seconds, step, times, .. } in &found {
        let Some([prompt_times, step_times]) = times else { continue };
        let chunk_seconds = prompt_seconds * prompt.min(session(*depth).chunk_size) as f64 / prompt as f64;
        for (what, took, times) in
            [("a chunk of the prompt", chunk_seconds, prompt_times), ("a step", *step, step_times)]
        {
            let (graph, sum) = (times.graph, times.alone());
            let _ = writeln!(
                out,
                "\n{what} at depth {depth}: {:.1} µs; the graph alone {:.1} µs, {:.3} times its kernels one by one, {:.1} µs\n",
                took * 1e6,
                graph * 1e6,
                graph / sum,
                sum * 1e6
            );
            let _ = writeln!(out, "launches        µs  share  kernel");
            for InstanceTime { instance, launches, seconds } in &times.kernels {
                let share = 100.0 * seconds / sum;
                let _ = writeln!(out, "{launches:>8} {:>9.1} {share:>4.1} %  {instance}", seconds * 1e6);
            }
        }
    }
    Ok(out)
}
