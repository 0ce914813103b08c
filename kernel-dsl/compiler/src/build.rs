//! The build settings of this compiler. A program has two copies of the compiler: one in the
//! macros, which ran when the program was built, and one in the program, which compiles further
//! instances.

/// The build settings of a copy of the compiler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Build {
    /// Cargo's `opt-level`: `0` is unoptimized.
    pub opt_level: &'static str,
    /// Whether the IR is verified after every pass. The profile `release`, and profiles that
    /// inherit from it, skip this.
    pub verified: bool,
    /// The output of `rustc --version`; empty if there was none.
    pub rustc: &'static str,
}

impl Build {
    /// The settings of this copy of the compiler.
    pub const THIS: Build =
        Build { opt_level: env!("KERNEL_DSL_OPT_LEVEL"), verified: cfg!(verified), rustc: env!("KERNEL_DSL_RUSTC") };
}

/// The identity of this compiler: its version and a hash of its source. Compilers with equal
/// fingerprints give equal results for equal input.
pub const FINGERPRINT: &str = concat!(env!("CARGO_PKG_VERSION"), "-", env!("KERNEL_DSL_SOURCE"));
