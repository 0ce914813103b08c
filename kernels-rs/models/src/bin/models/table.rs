//! Parts of printed lines: cut texts, counts of bytes, and wrapped messages.

/// The columns of the widest line that is printed.
pub const LINE_WIDTH: usize = 80;

/// Returns `text` in at most `width` columns: escaped, and cut in the middle.
pub fn truncated(text: &str, width: usize) -> String {
    let escaped: Vec<char> = text.chars().flat_map(char::escape_debug).collect();
    if escaped.len() <= width {
        return escaped.into_iter().collect();
    }
    let begin = (width - 1) * 2 / 3;
    let end = escaped.len() - (width - 1 - begin);
    escaped[..begin].iter().chain(&['…']).chain(&escaped[end..]).collect()
}

/// Returns a count and its noun, which has an s unless the count is 1.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Returns a count of bytes with a decimal unit: 1 kB is 1000 bytes.
pub fn format_bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// Splits a message into lines of at most 80 columns, if its words are not longer.
pub fn wrapped_lines(text: &str) -> impl Iterator<Item = String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].chars().count() + 1 + word.chars().count() > LINE_WIDTH && !lines[last].is_empty() {
            lines.push(format!("  {word}"));
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(space);
            lines[last].push_str(word);
        }
    }
    lines.into_iter()
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn one_has_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "token")), ["0 tokens", "1 token", "2 tokens"]);
    }
}
