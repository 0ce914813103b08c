//! The place of an instruction in the Rust source.

use kernel_dsl::compiler::ir::{Kernel, Location};
use kernel_dsl::compiler::source::{KernelSource, Span};
use serde::Serialize;

/// Place in the source.
#[derive(Clone, PartialEq, Serialize)]
pub(crate) struct SourcePlace {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u16,
    pub(crate) text: String,
}

impl SourcePlace {
    pub(crate) fn new(kernel: &Kernel, location: Location) -> SourcePlace {
        let at = kernel.locations[location.0 as usize];
        SourcePlace::of_source(&kernel.sources[at.source as usize], at.span)
    }

    /// Returns the start of a span.
    pub(crate) fn of_source(source: &KernelSource, span: Span) -> SourcePlace {
        let offset = u32::from(span.line);
        SourcePlace {
            file: source.file.clone(),
            line: source.line + offset,
            column: span.column,
            text: source.line_code(offset).to_string(),
        }
    }
}
