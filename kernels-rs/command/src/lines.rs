//! Rust source lines of machine code.

use kernel_dsl::compiler::emit::file_name;
use kernel_dsl::compiler::source::KernelSource;
use kernels_rs_estimate::sass::Line;

/// Source functions that an instance was compiled from, by the file names in its PTX.
pub(super) struct SourceFunctions<'k>(Vec<(String, &'k KernelSource)>);

impl SourceFunctions<'_> {
    pub(super) fn of(sources: &[KernelSource]) -> SourceFunctions<'_> {
        SourceFunctions(sources.iter().map(|source| (file_name(source), source)).collect())
    }

    /// Returns the code of a line without its comment, or an empty string if the line is unknown.
    pub(super) fn code(&self, line: &Line) -> &str {
        let of_file = self.0.iter().filter(|(file, _)| *file == line.file);
        let codes = of_file.filter_map(|(_, source)| {
            let offset = line.number.checked_sub(source.line)?;
            source.line_text(offset).is_some().then(|| source.line_code(offset))
        });
        { codes }.next().unwrap_or_default()
    }
}
