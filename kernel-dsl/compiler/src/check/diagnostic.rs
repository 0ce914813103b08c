//! Errors in names, types and mutability, and who reports each.

use crate::syntax::SpanPair;

/// An error in names, types or mutability.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// The first and last token.
    pub mark: SpanPair,
    /// The message.
    pub message: String,
    /// The reporter of the error if rustc runs.
    pub reported_by: ReportedBy,
}

/// The reporter of an error, so that each error is reported once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReportedBy {
    /// This compiler, if rustc accepts the function.
    Compiler,
    /// rustc in any case, at a bound of the launch functions.
    LaunchBound,
}
