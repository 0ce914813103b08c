//! The Rust line of each group of instructions, for readers of the PTX and for tools that read
//! ptxas output.

use super::Emitter;
use crate::ptx::ast::SourcePosition;
use crate::source::KernelSource;

/// Whether a module has the directives `.file` and `.loc`, which map instructions to lines of Rust.
///
/// A line belongs to the function whose text it is in, so inlined code has lines of the device
/// function. With `-lineinfo`, ptxas writes these lines for debuggers, profilers and disassemblers.
/// The machine code stays the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineDirectives {
    /// The module has line directives.
    Kept,
    /// The module has no line directives, so that a kernel that moves within its file keeps its
    /// PTX.
    Omitted,
}

/// Returns the file name for `.file`: [`KernelSource::file`] without characters that a PTX string
/// cannot hold. Where the file is unknown, the name is the function's name in angle brackets.
pub fn file_name(source: &KernelSource) -> String {
    if source.file.is_empty() {
        return format!("<{}>", source.name);
    }
    let plain = |c: char| match c {
        '\\' => '/',
        '"' => '_',
        ' '..='~' => c,
        _ => '_',
    };
    source.file.chars().map(plain).collect()
}

impl Emitter<'_> {
    /// Writes the Rust line of the current instruction, if it is not the one that was written last.
    /// The comment counts lines from the first line of the function, so that a kernel that moves
    /// within its file keeps its PTX.
    pub(super) fn line(&mut self) {
        let Some(at) = self.location.and_then(|l| self.kernel.locations.get(l.0 as usize)) else { return };
        let line = (at.source, at.span.line);
        if self.written == Some(line) {
            return;
        }
        self.written = Some(line);
        let Some(source) = self.kernel.sources.get(at.source as usize) else { return };
        let offset = u32::from(at.span.line);
        self.builder.comment(source.heading(offset, at.source != 0));
        if self.lines == LineDirectives::Kept {
            let file = self.builder.file(&file_name(source));
            // The comment is about the whole line, so the directive names no column.
            self.builder.location(SourcePosition { file, line: source.line + offset, column: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_valid_in_ptx() {
        let named = |file: &str| {
            let (name, file) = ("f".to_string(), file.to_string());
            file_name(&KernelSource { name, file, line: 1, text: Vec::new() })
        };
        assert_eq!(named("kernels-rs/src/gemm.rs"), "kernels-rs/src/gemm.rs");
        assert_eq!(named(r#"a\b"c/é.rs"#), "a/b_c/_.rs");
        assert_eq!(named(""), "<f>");
    }
}
