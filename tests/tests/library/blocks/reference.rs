//! Transformer layers in plain Rust and `f64`: each formula as in its paper, row by row.

/// A matrix stored by rows.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub values: Vec<f64>,
    pub cols: usize,
}

impl Matrix {
    pub fn new(values: &[f32], cols: usize) -> Matrix {
        Matrix { values: values.iter().map(|x| f64::from(*x)).collect(), cols }
    }

    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks(self.cols)
    }

    fn map_rows(&self, cols: usize, row: impl FnMut(&[f64]) -> Vec<f64>) -> Matrix {
        Matrix { values: self.rows().flat_map(row).collect(), cols }
    }

    pub fn plus(&self, other: &Matrix) -> Matrix {
        Matrix { values: self.values.iter().zip(&other.values).map(|(a, b)| a + b).collect(), cols: self.cols }
    }

    /// Returns x·Wᵀ. Linear layers store their weights as [out, in].
    pub fn through(&self, weights: &Matrix) -> Matrix {
        let out = weights.values.len() / weights.cols;
        self.map_rows(out, |x| weights.rows().map(|w| x.iter().zip(w).map(|(x, w)| x * w).sum()).collect())
    }

    /// Adds the bias to each row.
    pub fn biased(&self, bias: &[f64]) -> Matrix {
        self.map_rows(self.cols, |x| x.iter().zip(bias).map(|(x, b)| x + b).collect())
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Matrix {
        Matrix { values: self.values.iter().copied().map(f).collect(), cols: self.cols }
    }

    /// Returns some of the columns.
    pub fn columns(&self, range: std::ops::Range<usize>) -> Matrix {
        self.map_rows(range.len(), |x| x[range.clone()].to_vec())
    }
}

/// Computes x / √(mean x² + ε) · weight (Zhang, Sennrich, 2019).
pub fn rms_norm(x: &Matrix, weight: &[f64], epsilon: f64) -> Matrix {
    x.map_rows(x.cols, |x| {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        x.iter().zip(weight).map(|(x, w)| x / (mean + epsilon).sqrt() * w).collect()
    })
}

/// Computes (x − mean) / √(variance + ε) · weight + bias (Ba, Kiros, Hinton, 2016).
pub fn layer_norm(x: &Matrix, weight: &[f64], bias: &[f64], epsilon: f64) -> Matrix {
    x.map_rows(x.cols, |x| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let of = |((x, w), b): ((&f64, &f64), &f64)| (x - mean) / (variance + epsilon).sqrt() * w + b;
        x.iter().zip(weight).zip(bias).map(of).collect()
    })
}

/// Rotates the pairs (i, i + d/2) of each head of a row at `position(row)` by position ·
/// base^(−2i/d) (Su et al., 2021).
pub fn rotate(x: &Matrix, dim: usize, base: f64, position: impl Fn(usize) -> usize) -> Matrix {
    let mut rotated = x.clone();
    for (row, values) in rotated.values.chunks_mut(x.cols).enumerate() {
        for head in values.chunks_mut(dim) {
            for i in 0..dim / 2 {
                let angle = position(row) as f64 * base.powf(-2.0 * i as f64 / dim as f64);
                let (a, b) = (head[i], head[i + dim / 2]);
                head[i] = a * angle.cos() - b * angle.sin();
                head[i + dim / 2] = b * angle.cos() + a * angle.sin();
            }
        }
    }
    rotated
}

/// Applies `f` to each head separately: the heads lie side by side in a row.
pub fn each_head(x: &Matrix, dim: usize, f: impl Fn(&Matrix) -> Matrix) -> Matrix {
    let heads = Matrix { values: x.values.clone(), cols: dim };
    Matrix { values: f(&heads).values, cols: x.cols }
}

/// Computes softmax(q·kᵀ / √d)·v for each head; the heads lie side by side in rows.
///
/// Several heads of queries share a head of keys, if there are more of them. Query i has the
/// position keys − queries + i, and if `causal` is set it sees no later key.
pub fn attention(q: &Matrix, k: &Matrix, v: &Matrix, dim: usize, causal: bool) -> Matrix {
    let (queries, keys) = (q.values.len() / q.cols, k.values.len() / k.cols);
    let group = q.cols / k.cols;
    let mut out = vec![0.0; q.values.len()];
    for i in 0..queries {
        for head in 0..q.cols / dim {
            let at = |m: &Matrix, row: usize, head: usize| row * m.cols + head * dim;
            let query = &q.values[at(q, i, head)..][..dim];
            let seen = if causal { keys - queries + i + 1 } else { keys };
            let dot = |j: usize| {
                let key = &k.values[at(k, j, head / group)..][..dim];
                query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>() / (dim as f64).sqrt()
            };
            let logits: Vec<f64> = (0..seen).map(dot).collect();
            let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let total: f64 = logits.iter().map(|x| (x - top).exp()).sum();
            for (j, logit) in logits.iter().enumerate() {
                let weight = (logit - top).exp() / total;
                for c in 0..dim {
                    out[at(q, i, head) + c] += weight * v.values[at(v, j, head / group) + c];
                }
            }
        }
    }
    Matrix { values: out, cols: q.cols }
}

/// Computes x / (1 + e⁻ˣ).
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// Computes the tanh approximation of the Gaussian error linear unit (Hendrycks, Gimpel, 2016).
pub fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}
