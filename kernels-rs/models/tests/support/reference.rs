//! The reference for the engine: a language model in plain loops, from the tensors of a GGUF file.
//! Activations are `f32`, and sums are `f64`. The reference shares only the reader of files with
//! the crate.
#![allow(dead_code)]

use models::file::gguf::Gguf;
use models::file::{FileTensor, TensorFormat};
use std::collections::HashMap;

/// A model, and the keys and values of the tokens so far.
pub struct Reference {
    weights: HashMap<String, Vec<f32>>,
    layers: usize,
    width: usize,
    heads: usize,
    kv_heads: usize,
    head: usize,
    epsilon: f32,
    /// The base of the rotary frequencies.
    base: f64,
    /// Whether elements 2·i and 2·i + 1 are rotated together, instead of i and i + `head` / 2.
    neighbors: bool,
    /// Whether products round activations to 8 bits, as the engine does for quantized weights.
    rounds_activations: bool,
    /// The number of experts for each token, if there are experts.
    used: Option<usize>,
    /// Keys and values of each layer, token after token.
    cache: Vec<[Vec<f32>; 2]>,
}

/// Returns the value of an F16 number in two bytes.
fn half(low: u8, high: u8) -> f32 {
    half::f16::from_le_bytes([low, high]).to_f32()
}

/// Returns the elements of a tensor, by the formulas of ggml.
pub fn numbers(tensor: &FileTensor<'_>) -> Vec<f32> {
    let bytes = tensor.bytes;
    match tensor.format {
        TensorFormat::F32 => bytes.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        TensorFormat::F16 => bytes.chunks(2).map(|b| half(b[0], b[1])).collect(),
        TensorFormat::BF16 => {
            bytes.chunks(2).map(|b| f32::from_bits(u32::from(b[1]) << 24 | u32::from(b[0]) << 16)).collect()
        }
        TensorFormat::Q8_0 => {
            let block = |b: &[u8]| b[2..].iter().map(|q| half(b[0], b[1]) * f32::from(*q as i8)).collect::<Vec<f32>>();
            bytes.chunks(34).flat_map(block).collect()
        }
        TensorFormat::Q4_1 => {
            let block = |b: &[u8]| {
                let (d, m) = (half(b[0], b[1]), half(b[2], b[3]));
                let low = b[4..].iter().map(move |q| d * f32::from(q & 15) + m);
                low.chain(b[4..].iter().map(move |q| d * f32::from(q >> 4) + m)).collect::<Vec<f32>>()
            };
            bytes.chunks(20).flat_map(block).collect()
        }
        other => panic!("the reference does not read {other}"),
    }
}

/// Returns the product of a matrix, whose rows are as long as x, with x.
fn product(matrix: &[f32], x: &[f32]) -> Vec<f32> {
    let row = |row: &[f32]| {
        let mut sums = [0.0f64; 8];
        for (w, x) in row.chunks(8).zip(x.chunks(8)) {
            for (sum, (w, x)) in sums.iter_mut().zip(w.iter().zip(x)) {
                *sum += f64::from(*w) * f64::from(*x);
            }
        }
        sums.iter().sum::<f64>() as f32
    };
    matrix.chunks(x.len()).map(row).collect()
}

/// Rounds each block of 32 numbers to multiples of 1/127 of its largest magnitude, as the engine
/// does before products with quantized weights.
fn rounded(x: &[f32]) -> Vec<f32> {
    let block = |block: &[f32]| {
        let top = block.iter().fold(1e-30f32, |top, x| top.max(x.abs()));
        block.iter().map(|x| (x * (127.0 / top)).round_ties_even() * (top / 127.0)).collect::<Vec<f32>>()
    };
    x.chunks(32).flat_map(block).collect()
}

/// Returns x with a root mean square of 1, multiplied by the weights.
fn norm(x: &[f32], weight: &[f32], epsilon: f32) -> Vec<f32> {
    let square = x.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / x.len() as f64;
    let factor = 1.0 / (square + f64::from(epsilon)).sqrt();
    x.iter().zip(weight).map(|(x, w)| (f64::from(*x) * factor) as f32 * w).collect()
}

/// Adds y to x.
fn add(x: &mut [f32], y: &[f32]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

impl Reference {
    /// Reads a model of the architectures llama, qwen2, qwen3 or qwen3moe.
    pub fn new(gguf: &Gguf) -> Reference {
        let architecture = gguf.get("general.architecture").unwrap().text().unwrap().to_owned();
        let integer = |key: &str| gguf.get(&format!("{architecture}.{key}")).and_then(|value| value.unsigned());
        let number = |key: &str| gguf.get(&format!("{architecture}.{key}")).and_then(|value| value.float());
        let (width, heads) =
            (integer("embedding_length").unwrap() as usize, integer("attention.head_count").unwrap() as usize);
        let layers = integer("block_count").unwrap() as usize;
        Reference {
            weights: gguf.tensors().map(|tensor| (tensor.name.to_owned(), numbers(&tensor))).collect(),
            layers,
            width,
            heads,
            kv_heads: integer("attention.head_count_kv").map_or(heads, |kv_heads| kv_heads as usize),
            head: integer("attention.key_length").map_or(width / heads, |head| head as usize),
            epsilon: number("attention.layer_norm_rms_epsilon").unwrap() as f32,
            base: number("rope.freq_base").unwrap(),
            neighbors: architecture == "llama",
            rounds_activations: false,
            used: integer("expert_used_count").map(|used| used as usize),
            cache: vec![[Vec::new(), Vec::new()]; layers],
        }
    }

    /// Sets that products round activations to 8 bits.
    pub fn rounds_activations(self) -> Reference {
        Reference { rounds_activations: true, ..self }
    }

    fn weight(&self, name: &str) -> &[f32] {
        &self.weights[name]
    }

    /// Returns the product of the matrix with this name and x.
    fn product(&self, name: &str, x: &[f32]) -> Vec<f32> {
        self.product_of(self.weight(name), x)
    }

    fn product_of(&self, matrix: &[f32], x: &[f32]) -> Vec<f32> {
        product(matrix, &if self.rounds_activations { rounded(x) } else { x.to_vec() })
    }

    /// Returns down(silu(gate(x))·up(x)).
    fn network(&self, [gate, up, down]: [&[f32]; 3], x: &[f32]) -> Vec<f32> {
        let [gate, up] = [gate, up].map(|matrix| self.product_of(matrix, x));
        let gated: Vec<f32> = gate.iter().zip(up).map(|(gate, up)| gate / (1.0 + (-gate).exp()) * up).collect();
        self.product_of(down, &gated)
    }

    /// Rotates the pairs of each head of x by the angles of a position.
    fn rotate(&self, x: &mut [f32], position: usize) {
        let half = self.head / 2;
        for head in x.chunks_mut(self.head) {
            for i in 0..half {
                let mut frequency = self.base.powf(-2.0 * i as f64 / self.head as f64);
                if let Some(divisors) = self.weights.get("rope_freqs.weight") {
                    frequency /= f64::from(divisors[i]);
                }
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                let (a, b) = if self.neighbors { (2 * i, 2 * i + 1) } else { (i, i + half) };
                let (x, y) = (f64::from(head[a]), f64::from(head[b]));
                head[a] = (x * cos - y * sin) as f32;
                head[b] = (x * sin + y * cos) as f32;
            }
        }
    }

    /// Returns queries, keys or values of x, if `name` is `q`, `k` or `v`.
    fn projected(&self, layer: usize, name: &str, x: &[f32]) -> Vec<f32> {
        let mut y = self.product(&format!("blk.{layer}.attn_{name}.weight"), x);
        if let Some(bias) = self.weights.get(&format!("blk.{layer}.attn_{name}.bias")) {
            add(&mut y, bias);
        }
        if let Some(weight) = self.weights.get(&format!("blk.{layer}.attn_{name}_norm.weight")) {
            y = y.chunks(self.head).flat_map(|head| norm(head, weight, self.epsilon)).collect();
        }
        y
    }

    /// Adds a token, and returns the logits after it.
    pub fn step(&mut self, token: u32) -> Vec<f32> {
        let (width, head) = (self.width, self.head);
        let mut x = self.weight("token_embd.weight")[token as usize * width..][..width].to_vec();
        for layer in 0..self.layers {
            let tensor = |name: &str| format!("blk.{layer}.{name}.weight");
            let normed = norm(&x, self.weight(&tensor("attn_norm")), self.epsilon);
            let [mut q, mut k, v] = ["q", "k", "v"].map(|name| self.projected(layer, name, &normed));
            let pitch = self.kv_heads * head;
            let position = self.cache[layer][0].len() / pitch;
            self.rotate(&mut q, position);
            self.rotate(&mut k, position);
            self.cache[layer][0].extend(k);
            self.cache[layer][1].extend(v);
            let [keys, values] = &self.cache[layer];
            let mut o = Vec::new();
            for (i, q) in q.chunks(head).enumerate() {
                let at = i / (self.heads / self.kv_heads) * head;
                let dot = |key: &[f32]| key[at..at + head].iter().zip(q).map(|(k, q)| f64::from(k * q)).sum::<f64>();
                let logits: Vec<f64> = keys.chunks(pitch).map(|key| dot(key) / (head as f64).sqrt()).collect();
                let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let weights: Vec<f64> = logits.iter().map(|logit| (logit - top).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let mut mean = vec![0.0f64; head];
                for (weight, value) in weights.iter().zip(values.chunks(pitch)) {
                    mean.iter_mut().zip(&value[at..]).for_each(|(mean, v)| *mean += weight / sum * f64::from(*v));
                }
                o.extend(mean.iter().map(|mean| *mean as f32));
            }
            add(&mut x, &self.product(&tensor("attn_output"), &o));
            let normed = norm(&x, self.weight(&tensor("ffn_norm")), self.epsilon);
            match self.used {
                None => {
                    let matrices = ["ffn_gate", "ffn_up", "ffn_down"].map(|name| self.weight(&tensor(name)));
                    add(&mut x, &self.network(matrices, &normed));
                }
                Some(used) => {
                    let logits = product(self.weight(&tensor("ffn_gate_inp")), &normed);
                    let mut best: Vec<usize> = (0..logits.len()).collect();
                    best.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
                    let weight = |expert: &usize| f64::from(logits[*expert] - logits[best[0]]).exp();
                    let sum: f64 = best[..used].iter().map(weight).sum();
                    for expert in &best[..used] {
                        let matrices = ["ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"].map(|name| {
                            let all = self.weight(&tensor(name));
                            let of_one = all.len() / logits.len();
                            &all[expert * of_one..][..of_one]
                        });
                        let share = (weight(expert) / sum) as f32;
                        let y: Vec<f32> = self.network(matrices, &normed).iter().map(|y| share * y).collect();
                        add(&mut x, &y);
                    }
                }
            }
        }
        let normed = norm(&x, self.weight("output_norm.weight"), self.epsilon);
        let output = if self.weights.contains_key("output.weight") { "output.weight" } else { "token_embd.weight" };
        self.product(output, &normed)
    }
}

/// Returns the index of the largest number.
pub fn likeliest(logits: &[f32]) -> u32 {
    (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b])).unwrap() as u32
}
