//! Scores: functions of logits before the softmax, which a kernel is compiled with.
//!
//! A score is a struct with its parameters: numbers and views. A user's crate can define others,
//! with `impl Score for …` in a `#[device] mod`. A user-defined score can combine several of this
//! module by calling their `score` in sequence.

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// The indices of a query and a key. Both indices are within the sequence, so that they can
    /// index a view.
    #[derive(Clone, Copy)]
    pub struct ScoreIndex {
        /// The sequence of the batch.
        pub sequence: usize,
        /// The head of the query.
        pub head: usize,
        /// The index of the query in the sequence.
        pub query: usize,
        /// The index of the key in the sequence.
        pub key: usize,
        /// The sequence's number of queries and number of keys. Query i is at position keys −
        /// queries + i.
        pub lengths: (usize, usize),
    }

    /// A function of logits.
    pub trait Score: Copy {
        /// Whether [`score`](Score::score) may return −∞ to exclude a key. If `true`, an excluded
        /// key has no effect on gradients, even if its values are infinite or NaN; this costs the
        /// backward pass a comparison for each logit. If `false`, a score of −∞ is a weight of 0 in
        /// the backward pass, and 0 times a NaN of dO·V is a NaN.
        const LEAVES_OUT: bool = true;

        /// Returns the logit of `x`, the scaled product of a query and a key. −∞ excludes the key;
        /// a row with +∞ or a NaN is NaN.
        fn score(&self, x: f32, at: ScoreIndex) -> f32;

        /// Returns the derivative of `score` with respect to `x`, for the backward pass. The
        /// default is 1.
        fn slope(&self, _x: f32, _at: ScoreIndex) -> f32 {
            1.0
        }
    }

    /// The product, unchanged.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Plain;

    impl Score for Plain {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, _at: ScoreIndex) -> f32 {
            x
        }
    }

    /// Attention with linear biases (Press, Smith and Lewis, 2021): x − slope · distance, with one
    /// slope for each head. The distance is the query's position minus the key's, and is negative
    /// for a key after the query.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Alibi {
        /// One slope for each head.
        pub slopes: View<f32, 1>,
    }

    impl Score for Alibi {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, at: ScoreIndex) -> f32 {
            let (queries, keys) = at.lengths;
            let distance = (at.key + queries) as f32 - (at.query + keys) as f32;
            self.slopes[at.head].mul_add(distance, x)
        }
    }

    /// An additive bias: x + bias, and −∞ where the bias is −∞, for any x.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct ScoreBias {
        /// [sequence, head, query, key]; a stride of 0 shares the bias between sequences, heads or
        /// queries.
        pub bias: View<f32, 4>,
    }

    impl Score for ScoreBias {
        fn score(&self, x: f32, at: ScoreIndex) -> f32 {
            let bias = self.bias[(at.sequence, at.head, at.query, at.key)];
            // The product of an excluded key may be NaN or +∞, which adding −∞ would not mask.
            if bias == f32::NEG_INFINITY { bias } else { x + bias }
        }
    }

    /// A soft limit of logits to ±cap (Gemma 2): cap · tanh(x / cap). The hyperbolic tangent is the
    /// hardware's approximation.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Softcap {
        /// The largest logit.
        pub cap: f32,
    }

    impl Score for Softcap {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, _at: ScoreIndex) -> f32 {
            self.cap * math::tanh(x / self.cap)
        }

        fn slope(&self, x: f32, _at: ScoreIndex) -> f32 {
            let t = math::tanh(x / self.cap);
            (-t).mul_add(t, 1.0)
        }
    }
}
