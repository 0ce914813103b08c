//! One kernel for each function of `math`.

/// Kernels of `f32` under the functions' names, and what each gives on the host.
macro_rules! single {
    ($($name:ident)*) => {
        pub mod single {
            use kernel_dsl::prelude::*;
            $(
                #[kernel(block = 64, grid = y.len().div_ceil(64))]
                #[requires(x.len() == y.len())]
                pub fn $name(x: &[f32], y: &mut [f32]) {
                    let i = grid::index();
                    if i < y.len() {
                        y[i] = math::$name(x[i]);
                    }
                }
            )*
        }

        /// The functions of one `f32`.
        pub const SINGLE: &[(&str, &kernel_dsl::Artifact, fn(f32) -> f32)] = &[
            $((stringify!($name), <single::$name as kernel_dsl::Kernel>::ARTIFACT, kernel_dsl::math::$name)),*
        ];
    };
}

single! { exp exp2 exp_m1 ln log2 log10 ln_1p sin cos tan tanh sigmoid erf rsqrt cbrt }

pub mod several {
    use kernel_dsl::prelude::*;

    #[kernel(block = 64, grid = z.len().div_ceil(64))]
    #[requires(x.len() == z.len(), y.len() == z.len())]
    pub fn pow(x: &[f32], y: &[f32], z: &mut [f32]) {
        let i = grid::index();
        if i < z.len() {
            z[i] = math::pow(x[i], y[i]);
        }
    }

    #[kernel(block = 64, grid = x.len().div_ceil(64))]
    #[requires(x.len() == s.len(), x.len() == c.len())]
    pub fn sin_cos(x: &[f32], s: &mut [f32], c: &mut [f32]) {
        let i = grid::index();
        if i < x.len() {
            (s[i], c[i]) = math::sin_cos(x[i]);
        }
    }
}
