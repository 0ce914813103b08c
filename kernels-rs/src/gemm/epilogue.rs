//! What is done with the elements of a product before they are written: functions that a kernel is compiled with.
//!
//! An epilogue is a struct, with what it needs: numbers, and views of what it adds. A user's own crate can have others:
//! `impl Epilogue for …` in a `#[device] mod`. Of those here it makes one that does several, by calling their `apply` one after the other.

use kernel_dsl::prelude::*;

pub use items::*;

/// c ← epilogue(α·x + β·c), of which c is not read where β is 0.
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

    /// A function of pieces of rows of a product.
    pub trait Epilogue: Copy {
        /// What becomes of `x`, `V` elements of a row of C that begin at `at`: matrix, row and column.
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V];
    }

    /// The product as it is.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Identity;

    impl Epilogue for Identity {
        fn apply<const V: usize>(&self, x: [f32; V], _at: [usize; 3]) -> [f32; V] {
            x
        }
    }

    /// x + bias of the column.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct Bias {
        /// One element a column.
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

    /// x + an element of the same place, of a batch like C.
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

    /// max(x, 0); of NaN, 0.
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

    /// x / (1 + e⁻ˣ): the sigmoid linear unit (Elfwing, Uchibe, Doya, 2017).
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

    /// x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))): the Gaussian error linear unit by its approximation (Hendrycks, Gimpel, 2016).
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
    /// [`Gelu`] of x + bias of the column.
    #[derive(Clone, Copy, Debug, DeviceCopy)]
    pub struct BiasGelu {
        /// What is added to each row before.
        pub bias: Bias,
    }

    impl Epilogue for BiasGelu {
        fn apply<const V: usize>(&self, x: [f32; V], at: [usize; 3]) -> [f32; V] {
            Gelu.apply(self.bias.apply(x, at), at)
        }
    }
}
