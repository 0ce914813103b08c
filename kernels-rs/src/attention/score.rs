//! What is done with a logit before the softmax: functions that a kernel is compiled with.
//!
//! A score is a struct, with what it needs: numbers, and views. A user's own crate can have others: `impl Score for …` in a
//! `#[device] mod`. Of those here it makes one that does several, by calling their `score` one after the other.

pub use items::*;

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;

    /// Which query looks at which key. Indices lie within the sequence, so that they can index a view.
    #[derive(Clone, Copy)]
    pub struct Place {
        /// The sequence of the batch.
        pub sequence: usize,
        /// The head of the query.
        pub head: usize,
        /// The query of its sequence.
        pub query: usize,
        /// The key of its sequence.
        pub key: usize,
        /// How many queries and how many keys the sequence has: query i sits at position keys − queries + i.
        pub lengths: (usize, usize),
    }

    /// A function of logits.
    pub trait Score: Copy {
        /// Whether [`score`](Score::score) may return −∞ to leave a key out. Then a value of that
        /// key has no effect, even an infinity or a NaN, at the cost of a barrier and a comparison
        /// for each logit. Where it is `false`, a score of −∞ is a weight of 0, and 0 times a NaN
        /// is a NaN.
        const LEAVES_OUT: bool = true;

        /// Returns the logit of `x`, the scaled product of a query and a key. −∞ leaves the key
        /// out; a row with +∞ or a NaN is NaN.
        fn score(&self, x: f32, at: Place) -> f32;

        /// The derivative of `score` by `x`, for the backward pass. 1 where nothing else is said.
        fn slope(&self, _x: f32, _at: Place) -> f32 {
            1.0
        }
    }

    /// The product as it is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Plain;

    impl Score for Plain {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, _at: Place) -> f32 {
            x
        }
    }

    /// x − slope · distance, the distance from the key to the query's position, a slope a head: attention with linear biases (Press, Smith
    /// and Lewis, 2021). Of a key behind the query the distance is negative.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Alibi {
        /// One a head.
        pub slopes: View<f32, 1>,
    }

    impl Score for Alibi {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, at: Place) -> f32 {
            let (queries, keys) = at.lengths;
            let distance = (at.key + queries) as f32 - (at.query + keys) as f32;
            self.slopes[at.head].mul_add(distance, x)
        }
    }

    /// x + bias; −∞ where the bias is, whatever x is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Bias {
        /// [sequence, head, query, key]; a stride of 0 where sequences, heads or queries share it.
        pub bias: View<f32, 4>,
    }

    impl Score for Bias {
        fn score(&self, x: f32, at: Place) -> f32 {
            let bias = self.bias[(at.sequence, at.head, at.query, at.key)];
            // What is left out may be a NaN or +∞, to which −∞ makes no difference.
            if bias == f32::NEG_INFINITY { bias } else { x + bias }
        }
    }

    /// cap · tanh(x / cap): logits that stay within ±cap (Gemma 2). The hyperbolic tangent is the hardware's approximation.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Softcap {
        /// The largest logit.
        pub cap: f32,
    }

    impl Score for Softcap {
        const LEAVES_OUT: bool = false;

        fn score(&self, x: f32, _at: Place) -> f32 {
            self.cap * math::tanh(x / self.cap)
        }

        fn slope(&self, x: f32, _at: Place) -> f32 {
            let t = math::tanh(x / self.cap);
            (-t).mul_add(t, 1.0)
        }
    }
}
