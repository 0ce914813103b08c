//! The lines of a PTX module's text, each with its line of Rust.

use kernel_dsl::compiler::ptx::Module;
use std::collections::HashMap;

/// A line of PTX.
pub(super) struct LinkedLine {
    pub(super) text: String,
    /// File and number of the line of Rust, counted from 1.
    pub(super) place: Option<(String, u32)>,
}

/// Returns the lines of a module that has line directives, without those directives.
pub(super) fn of_module(module: &Module) -> Vec<LinkedLine> {
    of_text(&module.to_string())
}

/// Returns the lines of a module's text, without its line directives.
pub(super) fn of_text(text: &str) -> Vec<LinkedLine> {
    let files: HashMap<u32, String> = text.lines().filter_map(|line| file(line.trim())).collect();
    let mut lines: Vec<LinkedLine> = Vec::new();
    let (mut place, mut comments) = (None, 0);
    for line in text.lines() {
        let code = line.trim();
        if let Some(position) = code.strip_prefix(".loc ") {
            let mut numbers = position.split([' ', ',']).map(|n| n.parse::<u32>().ok());
            let (file, number) = (numbers.next().flatten(), numbers.next().flatten());
            place = file.zip(number).and_then(|(file, number)| Some((files.get(&file)?.clone(), number)));
            // The comment above the directive shows the same line.
            let start = lines.len() - comments;
            lines[start..].iter_mut().for_each(|line| line.place = place.clone());
            continue;
        }
        if code.starts_with(".file ") {
            continue;
        }
        if code == "}" {
            place = None;
        }
        comments = if code.starts_with("//") { comments + 1 } else { 0 };
        lines.push(LinkedLine { text: line.to_string(), place: place.clone() });
    }
    lines
}

/// Parses `.file 1 "src/lib.rs"`.
fn file(line: &str) -> Option<(u32, String)> {
    let (number, name) = line.strip_prefix(".file")?.trim().split_once(char::is_whitespace)?;
    let name = name.trim().strip_prefix('"')?;
    Some((number.parse().ok()?, name[..name.find('"')?].to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_link_the_lines_below_them() {
        let text = ".file 1 \"src/a.rs\"\n{\n    mov.u32 %r0, 1;\n    // +2 let i = 2;\n    .loc 1 12 0\n    \
                    mov.u32 %r1, 2;\n}\n";
        let lines: Vec<_> = of_text(text).into_iter().map(|line| (line.text, line.place)).collect();
        let place = Some(("src/a.rs".to_string(), 12));
        let expected = [
            ("{", None),
            ("    mov.u32 %r0, 1;", None),
            ("    // +2 let i = 2;", place.clone()),
            ("    mov.u32 %r1, 2;", place),
            ("}", None),
        ];
        assert_eq!(lines, expected.map(|(text, place)| (text.to_string(), place)));
    }
}
