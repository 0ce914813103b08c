//! The epilogue of linear layers with an activation or a residual.

pub use items::*;

/// The activations of a linear layer by name, in the order of [`LinearEpilogue::activation`].
pub const ACTIVATIONS: [&str; 5] = ["none", "relu", "silu", "gelu", "gelu_tanh"];

#[kernel_dsl::device]
mod items {
    use kernel_dsl::prelude::*;
    use kernels_rs::activation::{gelu, gelu_tanh, silu};
    use kernels_rs::gemm::epilogue::Epilogue;

    /// The function activation(x + bias) + residual of a product's elements x.
    #[derive(Clone, Copy, DeviceCopy)]
    pub struct LinearEpilogue {
        /// One element for each column; empty without a bias.
        pub bias: View<f32, 1>,
        /// The extents of the product; no matrices without a residual.
        pub residual: View<f32, 3>,
        /// The index of the activation's name.
        pub activation: u32,
    }

    impl Epilogue for LinearEpilogue {
        fn apply<const V: usize>(&self, mut x: [f32; V], at: [usize; 3]) -> [f32; V] {
            let (biased, added) = (!self.bias.is_empty(), self.residual.dim(0) > 0);
            for i in unroll(0..V) {
                let mut y = x[i];
                if biased {
                    y += self.bias[at[2] + i];
                }
                if self.activation == 1 {
                    // A NaN stays NaN.
                    y = if y < 0.0 { 0.0 } else { y };
                } else if self.activation == 2 {
                    y = silu(y);
                } else if self.activation == 3 {
                    y = gelu(y);
                } else if self.activation == 4 {
                    y = gelu_tanh(y);
                }
                if added {
                    y += self.residual[(at[0], at[1], at[2] + i)];
                }
                x[i] = y;
            }
            x
        }
    }
}
