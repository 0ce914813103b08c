//! Epilogues: functions of the elements of a product before they are stored, which a kernel is
//! compiled with.
//!
//! An epilogue is a struct with its parameters: numbers, and views of the operands that it adds. A
//! user's crate can define others, with `impl Epilogue for …` in a `#[device] mod`. A user-defined
//! epilogue can combine several of this module by calling their `apply` in sequence.

use kernel_dsl::prelude::*;

pub use items::*;

/// Stores c ← epilogue(α·x + β·c) for `V` elements. c is not read if β is 0.
#[device]
pub fn store<C: Float, E: Epilogue, const V: usize>(
    alpha: f32,
    x: [f32; V],
    beta: f32,
    c: ViewMut<C, 2>,
    row: usize,
    col: usize,
    batch: usize,
    epilogue: E,
) {
    let mut x = x;
    for e in unroll(0..V) {
        x[e] = alpha * x[e];
    }
    if beta != 0.0 {
        let old = c.load::<V>((row, col)).map(C::to_f32);
        for e in unroll(0..V) {
            x[e] = beta.mul_add(old[e], x[e]);
        }
    }
    c.store((row, col), epilogue.apply(x, [batch, row, col]).map(C::from_f32));
}

#[device]
mod items {
    use crate::activation::{gelu_tanh, silu};
    use kernel_dsl::prelude::*;

    /// A function of consecutive elements of a row of a product.
    pub trait Epilogue: Copy {
        /// Returns the result for `x`, `V` elements of a row of C that begin at `at`: matrix, row
        /// and column.
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V];
    }

    /// The product, unchanged.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Identity;

    impl Epilogue for Identity {
        fn apply<const V: usize>(&self, x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            x
        }
    }

    /// A bias for each column: x + bias.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Bias {
        /// One element for each column.
        pub bias: View<f32, 1>,
    }

    impl Epilogue for Bias {
        fn apply<const V: usize>(&self, mut x: [f32; V], at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] += self.bias[at[2] + i];
            }
            x
        }
    }

    /// A residual connection: x + the element with the same indices, of a batch like C.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Residual {
        /// [batch, M, N].
        pub with: View<f32, 3>,
    }

    impl Epilogue for Residual {
        fn apply<const V: usize>(&self, mut x: [f32; V], at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] += self.with[(at[0], at[1], at[2] + i)];
            }
            x
        }
    }

    /// The rectified linear unit: max(x, 0), and 0 for NaN.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Relu;

    impl Epilogue for Relu {
        fn apply<const V: usize>(&self, mut x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] = x[i].max(0.0);
            }
            x
        }
    }

    /// The sigmoid linear unit (Elfwing, Uchibe, Doya, 2017): x / (1 + e⁻ˣ).
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Silu;

    impl Epilogue for Silu {
        fn apply<const V: usize>(&self, mut x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] = silu(x[i]);
            }
            x
        }
    }

    /// The Gaussian error linear unit in its tanh approximation (Hendrycks, Gimpel, 2016):
    /// x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))).
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Gelu;

    impl Epilogue for Gelu {
        fn apply<const V: usize>(&self, mut x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            for i in unroll(0..V) {
                x[i] = gelu_tanh(x[i]);
            }
            x
        }
    }
    /// A bias for each column, followed by [`Gelu`].
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct BiasGelu {
        /// The bias that is added first.
        pub bias: Bias,
    }

    impl Epilogue for BiasGelu {
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V] {
            Gelu.apply(self.bias.apply(x, at), at)
        }
    }
}
