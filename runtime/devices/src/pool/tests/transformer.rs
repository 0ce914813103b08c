//! The allocations of a transformer with the shape of Qwen3-VL-2B. The trace has the buffers in the
//! order in which a plain implementation creates and drops them. The first steps process an image
//! and a prompt; the last ones generate a few tokens.
//!
//! `transformer.trace` has the order, a line for each step: `+ bytes` creates the next buffer,
//! numbered from 0, `- number` drops one. This code generates the trace; a test run with `UPDATE=1`
//! writes the file.

use super::{Device, DevicePool, WaitSet};
use std::fmt::Write;
use std::path::Path;

/// f32, as kernels on Pascal compute.
const WIDE: u64 = 4;
/// f16, as weights and caches are kept.
const NARROW: u64 = 2;

// From the model's published configuration.
const HIDDEN: u64 = 2048;
const LAYERS: u64 = 28;
const HEADS: u64 = 16;
const KEY_HEADS: u64 = 8;
const HEAD: u64 = 128;
const INNER: u64 = 6144;
const VOCABULARY: u64 = 151_936;
const EYE_LAYERS: u64 = 24;
const EYE_HIDDEN: u64 = 1024;
const EYE_INNER: u64 = 4096;

/// A run as steps.
#[derive(Default)]
struct Trace {
    lines: String,
    made: usize,
}

impl Trace {
    fn make(&mut self, bytes: u64) -> usize {
        writeln!(self.lines, "+ {bytes}").unwrap();
        self.made += 1;
        self.made - 1
    }

    fn drop(&mut self, buffers: impl IntoIterator<Item = usize>) {
        for buffer in buffers {
            writeln!(self.lines, "- {buffer}").unwrap();
        }
    }

    fn weights(&mut self) {
        self.make(VOCABULARY * HIDDEN * NARROW);
        for _ in 0..LAYERS {
            for elements in [
                HIDDEN * HEADS * HEAD,
                HIDDEN * KEY_HEADS * HEAD,
                HIDDEN * KEY_HEADS * HEAD,
                HEADS * HEAD * HIDDEN,
                HIDDEN * INNER,
                HIDDEN * INNER,
                INNER * HIDDEN,
                // Norms: of the layer, of queries and keys.
                HIDDEN,
                HIDDEN,
                HEAD,
                HEAD,
            ] {
                self.make(elements * NARROW);
            }
        }
        self.make(HIDDEN * NARROW);
        for _ in 0..EYE_LAYERS {
            for elements in [
                3 * EYE_HIDDEN * EYE_HIDDEN,
                EYE_HIDDEN * EYE_HIDDEN,
                EYE_HIDDEN * EYE_INNER,
                EYE_INNER * EYE_HIDDEN,
                3 * EYE_HIDDEN,
                EYE_HIDDEN,
                EYE_INNER,
                EYE_HIDDEN,
            ] {
                self.make(elements * NARROW);
            }
        }
    }

    /// Encodes the image as tokens, four patches each.
    fn encode_image(&mut self, patches: u64) -> usize {
        let mut x = self.make(patches * EYE_HIDDEN * WIDE);
        let mut kept = Vec::new();
        for layer in 0..EYE_LAYERS {
            let normed = self.make(patches * EYE_HIDDEN * WIDE);
            let qkv = self.make(patches * 3 * EYE_HIDDEN * WIDE);
            self.drop([normed]);
            let seen = self.make(patches * EYE_HIDDEN * WIDE);
            self.drop([qkv]);
            let y = self.make(patches * EYE_HIDDEN * WIDE);
            self.drop([seen, x]);
            let normed = self.make(patches * EYE_HIDDEN * WIDE);
            let inner = self.make(patches * EYE_INNER * WIDE);
            self.drop([normed]);
            x = self.make(patches * EYE_HIDDEN * WIDE);
            self.drop([inner, y]);
            // The first decoder layers get these features beside the tokens.
            if [5, 11, 17].contains(&layer) {
                kept.push(self.make(patches / 4 * HIDDEN * WIDE));
            }
        }
        let tokens = self.make(patches / 4 * HIDDEN * WIDE);
        self.drop([x]);
        self.drop(kept);
        tokens
    }

    fn step(&mut self, tokens: u64, positions: u64, image: Option<usize>) {
        let ids = self.make(tokens * 4);
        let mut x = self.make(tokens * HIDDEN * WIDE);
        self.drop(image);
        let angles = self.make(tokens * HEAD * WIDE);
        for _ in 0..LAYERS {
            let normed = self.make(tokens * HIDDEN * WIDE);
            let [q, k, v] = [HEADS, KEY_HEADS, KEY_HEADS].map(|heads| self.make(tokens * heads * HEAD * WIDE));
            self.drop([normed]);
            let rotated = self.make(tokens * HEADS * HEAD * WIDE);
            self.drop([q]);
            // Keys and values go to the cache.
            self.drop([k, v]);
            // Attention treats parts of the positions concurrently, and combines their results.
            let parts = (tokens == 1).then(|| self.make(positions.div_ceil(256) * HEADS * (HEAD + 2) * WIDE));
            let seen = self.make(tokens * HEADS * HEAD * WIDE);
            self.drop([rotated]);
            self.drop(parts);
            let y = self.make(tokens * HIDDEN * WIDE);
            self.drop([seen, x]);
            let normed = self.make(tokens * HIDDEN * WIDE);
            let gate = self.make(tokens * INNER * WIDE);
            let up = self.make(tokens * INNER * WIDE);
            self.drop([normed]);
            let inner = self.make(tokens * INNER * WIDE);
            self.drop([gate, up]);
            x = self.make(tokens * HIDDEN * WIDE);
            self.drop([inner, y]);
        }
        let last = self.make(HIDDEN * WIDE);
        self.drop([x, angles, ids]);
        let logits = self.make(VOCABULARY * WIDE);
        let chances = self.make(VOCABULARY * WIDE);
        self.drop([last, logits]);
        let chosen = self.make(4);
        self.drop([chances, chosen]);
    }
}

/// Traces an image of 1024 patches, a prompt, and a few tokens.
fn run(weights: bool) -> String {
    const PROMPT: u64 = 512;
    const GENERATED: u64 = 4;
    let mut trace = Trace::default();
    if weights {
        trace.weights();
    }
    for _ in 0..2 * LAYERS {
        trace.make((PROMPT + 256) * KEY_HEADS * HEAD * NARROW);
    }
    let image = trace.encode_image(1024);
    trace.step(PROMPT, PROMPT, Some(image));
    for n in 1..=GENERATED {
        trace.step(1, PROMPT + n, None);
    }
    trace.lines
}

/// Returns the largest number of requested live bytes, and the largest number of bytes held by the
/// pool.
fn played(trace: &str) -> (u64, u64) {
    let (pool, device) = (DevicePool::default(), Device::of(64 << 30));
    let (mut buffers, mut live, mut most) = (Vec::new(), 0, 0);
    for line in trace.lines() {
        let (what, number) = line.split_once(' ').unwrap();
        let number: usize = number.parse().unwrap();
        if what == "+" {
            buffers.push(Some((pool.take(number, &device).unwrap().0, number)));
            live += number;
        } else {
            let (piece, bytes) = buffers[number].take().unwrap();
            pool.give_back(piece, WaitSet::new(), &device);
            live -= bytes;
        }
        most = most.max(live);
    }
    let statistics = pool.statistics();
    (most as u64, statistics.peak_reserved)
}

/// Returns the pool's largest size in percent of the largest live size.
fn percent(trace: &str) -> u64 {
    let (live, reserved) = played(trace);
    assert!(live <= reserved);
    (100 * reserved).div_ceil(live)
}

#[test]
fn a_model_reserves_little_more_than_it_uses() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/pool/tests/transformer.trace");
    let made = run(true);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert!(recorded == made, "the trace is not what the code makes: UPDATE=1 writes it anew");
    let percent = percent(&recorded);
    assert!(percent <= 105, "{percent}");
}

/// Shows that a block never spans two segments: a buffer of 12 MiB cannot lie on the free ends of
/// two. The run has no weights, because they hide small effects.
#[test]
fn blocks_do_not_span_segments() {
    let percent = percent(&run(false));
    assert!(percent <= 118, "{percent}");
}
