//! How a copy of this compiler was compiled. A program has two: one in the macros, which ran when the program was built,
//! and one of its own, which compiles further instances.

/// What made a copy of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Build {
    /// Cargo's `opt-level`: `0` is not optimised.
    pub opt_level: &'static str,
    /// With `debug-assertions`, the IR is verified after every pass.
    pub debug_assertions: bool,
    /// What `rustc --version` says; empty where it said nothing.
    pub rustc: &'static str,
}

impl Build {
    /// Of this copy.
    pub const THIS: Build = Build {
        opt_level: env!("KERNEL_DSL_OPT_LEVEL"),
        debug_assertions: cfg!(debug_assertions),
        rustc: env!("KERNEL_DSL_RUSTC"),
    };
}

/// What this compiler is known by: its version and a hash of its own text. What two of the same make of the same is the same.
pub const FINGERPRINT: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("KERNEL_DSL_SOURCE"));
