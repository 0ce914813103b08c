//! Display of a place in a text together with its line.

use kernel_dsl::compiler::ptx::parse::{Error, ParseErrors};

/// Text with locations to show.
pub(super) struct Snippet<'t> {
    pub(super) file: &'t str,
    pub(super) text: &'t str,
}

impl Snippet<'_> {
    /// Returns `file:line:column` and the line, with a mark under the column. Both count from 1,
    /// columns in characters.
    fn place(&self, line: u32, column: u32) -> String {
        let code = self.line(line);
        let gutter = " ".repeat(line.to_string().len());
        // Tabs before the column are kept, so that the mark is aligned with it.
        let before = code.chars().take(column.saturating_sub(1) as usize);
        let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let place = format!("{}:{line}:{column}", self.file);
        format!("{gutter}--> {place}\n{gutter} |\n{line} | {}\n{gutter} | {before}^", code.trim_end())
    }

    /// Returns the place of a statement of which only the line is known: the first character of
    /// that line.
    pub(super) fn statement(&self, line: u32) -> String {
        let indent = self.line(line).chars().take_while(|c| c.is_whitespace()).count();
        self.place(line, indent as u32 + 1)
    }

    /// Lists all syntax errors.
    pub(super) fn syntax(&self, errors: &ParseErrors) -> String {
        let one = |Error { line, column, mistake }: &Error| format!("{mistake}\n{}", self.place(*line, *column));
        errors.0.iter().map(one).collect::<Vec<_>>().join("\n\nerror: ")
    }

    fn line(&self, line: u32) -> &str {
        self.text.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_marked() {
        let snippet = Snippet { file: "k.ptx", text: "a\n\tb c;\n" };
        assert_eq!(snippet.place(2, 4), " --> k.ptx:2:4\n  |\n2 | \tb c;\n  | \t  ^");
        assert_eq!(snippet.statement(2), " --> k.ptx:2:2\n  |\n2 | \tb c;\n  | \t^");
        // An error at the end of the text is marked after its last character.
        assert_eq!(snippet.place(3, 1), " --> k.ptx:3:1\n  |\n3 | \n  | ^");
    }
}
