//! Errors for a kernel or launch that did not run, or did not run to its end.

use kernel_dsl_compiler::error::Error;
use std::fmt;

/// The reason that a kernel cannot run: its IR violates a rule, or requires a feature that the
/// interpreter lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsupported(pub Box<Error>);

/// Arguments that do not fit the kernel; nothing has run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub Vec<String>);

/// A launch that exceeds the limit of shadow memory. The launch has ended; its stores until then
/// are in its buffers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TooLarge {
    /// The instance.
    pub kernel: String,
    /// The limit: [`Options::shadow`](crate::Options::shadow).
    pub limit: usize,
    /// Each buffer with shadow memory, with its size and that of its shadow.
    pub buffers: Vec<(String, usize, usize)>,
}

/// The reason that a launch has no outcome.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LaunchFailure {
    /// The launch has not run.
    Arguments(Mismatch),
    /// The launch has ended at the limit of shadow memory.
    TooLarge(TooLarge),
}

impl From<Mismatch> for LaunchFailure {
    fn from(mismatch: Mismatch) -> LaunchFailure {
        LaunchFailure::Arguments(mismatch)
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the interpreter cannot run this kernel: {}", self.0)
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        write!(
            f,
            "`{}` touches more than {} of shadow memory, the limit of `Options::shadow`, can cover:",
            self.kernel,
            mib(self.limit)
        )?;
        for (i, (name, bytes, shadow)) in self.buffers.iter().enumerate() {
            let and = if i > 0 { "," } else { "" };
            write!(f, "{and} `{name}` of {} has taken {}", mib(*bytes), mib(*shadow))?;
        }
        f.write_str(
            "; check it on a smaller shape, give `Options::shadow` more (24 bytes for each element that is touched, twice that with \
             atomic operations, more with fences), or leave races out with `Checks::Accesses`",
        )
    }
}

impl fmt::Display for LaunchFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchFailure::Arguments(mismatch) => mismatch.fmt(f),
            LaunchFailure::TooLarge(large) => large.fmt(f),
        }
    }
}

impl From<TooLarge> for LaunchFailure {
    fn from(large: TooLarge) -> LaunchFailure {
        LaunchFailure::TooLarge(large)
    }
}

impl std::error::Error for Unsupported {}
impl std::error::Error for Mismatch {}
impl std::error::Error for TooLarge {}
impl std::error::Error for LaunchFailure {}
