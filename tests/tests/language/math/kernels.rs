//! Kernels of one function of `math` each: `plain` kernels, whose machine code is counted, and
//! kernels that store bits, with one pattern for all NaNs.

use kernel_dsl::{Artifact, Kernel, math};

/// A function, its kernels, and its results on the host.
pub struct Function<F> {
    pub name: &'static str,
    /// The kernel with only loads and stores around the function.
    pub plain: &'static Artifact,
    /// The kernel that stores the bits of the results.
    pub bits: &'static Artifact,
    pub host: F,
}

/// The pattern stored for every NaN, whose bits are unspecified.
pub const NAN: u32 = 0x7FFF_FFFF;

macro_rules! functions {
    ($list:ident: $t:ident, $plain:ident, $bits:ident: $($name:ident = $($path:ident)::+),* $(,)?) => {
        pub mod $plain {
            use kernel_dsl::prelude::*;
            $(
                #[kernel(block = 64, grid = y.len().div_ceil(64))]
                #[requires(x.len() == y.len())]
                pub fn $name(x: &[$t], y: &mut [$t]) {
                    let i = grid::index();
                    if i < y.len() {
                        y[i] = $($path)::+(x[i]);
                    }
                }
            )*
        }

        pub mod $bits {
            use kernel_dsl::prelude::*;
            $(
                #[kernel(block = 64, grid = x.len().div_ceil(64))]
                #[requires(y.len() == 2 * x.len())]
                pub fn $name(x: &[$t], y: &mut [u32]) {
                    let i = grid::index();
                    if i < x.len() {
                        let value = $($path)::+(x[i]);
                        let bits = value.to_bits() as u64;
                        y[2 * i] = if value == value { bits as u32 } else { 0x7FFF_FFFF };
                        y[2 * i + 1] = if value == value { (bits >> 32) as u32 } else { 0x7FFF_FFFF };
                    }
                }
            )*
        }

        pub const $list: &[Function<fn($t) -> $t>] = &[$(Function {
            name: stringify!($name),
            plain: <$plain::$name as Kernel>::ARTIFACT,
            bits: <$bits::$name as Kernel>::ARTIFACT,
            host: $($path)::+,
        }),*];
    };
}

functions! { SINGLE: f32, single, single_bits:
    exp = math::exp,
    exp2 = math::exp2,
    exp_m1 = math::exp_m1,
    ln = math::ln,
    log2 = math::log2,
    log10 = math::log10,
    ln_1p = math::ln_1p,
    sin = math::sin,
    cos = math::cos,
    tan = math::tan,
    asin = math::asin,
    acos = math::acos,
    atan = math::atan,
    sinh = math::sinh,
    cosh = math::cosh,
    tanh = math::tanh,
    asinh = math::asinh,
    acosh = math::acosh,
    atanh = math::atanh,
    sigmoid = math::sigmoid,
    erf = math::erf,
    rsqrt = math::rsqrt,
    cbrt = math::cbrt,
}

functions! { DOUBLE: f64, double, double_bits:
    exp = math::f64::exp,
    exp2 = math::f64::exp2,
    exp_m1 = math::f64::exp_m1,
    ln = math::f64::ln,
    log2 = math::f64::log2,
    sin = math::f64::sin,
    cos = math::f64::cos,
    tanh = math::f64::tanh,
}

macro_rules! pairwise {
    ($list:ident: $plain:ident, $bits:ident: $($name:ident = $($path:ident)::+),* $(,)?) => {
        pub mod $plain {
            use kernel_dsl::prelude::*;
            $(
                #[kernel(block = 64, grid = z.len().div_ceil(64))]
                #[requires(x.len() == z.len(), y.len() == z.len())]
                pub fn $name(x: &[f32], y: &[f32], z: &mut [f32]) {
                    let i = grid::index();
                    if i < z.len() {
                        z[i] = $($path)::+(x[i], y[i]);
                    }
                }
            )*
        }

        pub mod $bits {
            use kernel_dsl::prelude::*;
            $(
                #[kernel(block = 64, grid = x.len().div_ceil(64))]
                #[requires(x.len() == y.len(), z.len() == x.len())]
                pub fn $name(x: &[f32], y: &[f32], z: &mut [u32]) {
                    let i = grid::index();
                    if i < x.len() {
                        let value = $($path)::+(x[i], y[i]);
                        z[i] = if value == value { value.to_bits() } else { 0x7FFF_FFFF };
                    }
                }
            )*
        }

        pub const $list: &[Function<fn(f32, f32) -> f32>] = &[$(Function {
            name: stringify!($name),
            plain: <$plain::$name as Kernel>::ARTIFACT,
            bits: <$bits::$name as Kernel>::ARTIFACT,
            host: $($path)::+,
        }),*];
    };
}

pairwise! { PAIRWISE: pairwise, pairwise_bits:
    pow = math::pow,
    atan2 = math::atan2,
    hypot = math::hypot,
}

/// Kernels of functions with several operands or results, and frames without a function.
pub mod several {
    use kernel_dsl::prelude::*;

    #[kernel(block = 64, grid = y.len().div_ceil(64))]
    #[requires(x.len() == y.len())]
    pub fn copy(x: &[f32], y: &mut [f32]) {
        let i = grid::index();
        if i < y.len() {
            y[i] = x[i];
        }
    }

    #[kernel(block = 64, grid = z.len().div_ceil(64))]
    #[requires(x.len() == z.len(), y.len() == z.len())]
    pub fn add(x: &[f32], y: &[f32], z: &mut [f32]) {
        let i = grid::index();
        if i < z.len() {
            z[i] = x[i] + y[i];
        }
    }

    #[kernel(block = 64, grid = x.len().div_ceil(64))]
    #[requires(x.len() == s.len(), x.len() == c.len())]
    pub fn copy2(x: &[f32], s: &mut [f32], c: &mut [f32]) {
        let i = grid::index();
        if i < x.len() {
            (s[i], c[i]) = (x[i], x[i]);
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

    #[kernel(block = 64, grid = x.len().div_ceil(64))]
    #[requires(x.len() == y.len(), z.len() == 2 * x.len())]
    pub fn pow_f64_bits(x: &[f64], y: &[f64], z: &mut [u32]) {
        let i = grid::index();
        if i < x.len() {
            let value = math::f64::pow(x[i], y[i]);
            let bits = value.to_bits();
            z[2 * i] = if value == value { bits as u32 } else { 0x7FFF_FFFF };
            z[2 * i + 1] = if value == value { (bits >> 32) as u32 } else { 0x7FFF_FFFF };
        }
    }

    #[kernel(block = 64, grid = x.len().div_ceil(64))]
    #[requires(z.len() == 2 * x.len())]
    pub fn sin_cos_bits(x: &[f32], z: &mut [u32]) {
        let i = grid::index();
        if i < x.len() {
            let (s, c) = math::sin_cos(x[i]);
            z[2 * i] = if s == s { s.to_bits() } else { 0x7FFF_FFFF };
            z[2 * i + 1] = if c == c { c.to_bits() } else { 0x7FFF_FFFF };
        }
    }

    #[kernel(block = 64, grid = x.len().div_ceil(64))]
    #[requires(z.len() == 4 * x.len())]
    pub fn sin_cos_f64_bits(x: &[f64], z: &mut [u32]) {
        let i = grid::index();
        if i < x.len() {
            let (s, c) = math::f64::sin_cos(x[i]);
            z[4 * i] = if s == s { s.to_bits() as u32 } else { 0x7FFF_FFFF };
            z[4 * i + 1] = if s == s { (s.to_bits() >> 32) as u32 } else { 0x7FFF_FFFF };
            z[4 * i + 2] = if c == c { c.to_bits() as u32 } else { 0x7FFF_FFFF };
            z[4 * i + 3] = if c == c { (c.to_bits() >> 32) as u32 } else { 0x7FFF_FFFF };
        }
    }
}
