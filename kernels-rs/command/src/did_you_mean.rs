//! Suggestions for misspelled names.

/// Returns the name with the smallest edit distance to `given`, if it is similar enough.
pub(super) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let enough = (given.chars().count() / 3).max(2);
    let near = names.into_iter().map(|name| (edits(given, name), name)).filter(|(edits, _)| *edits <= enough);
    near.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// Returns the edit distance: inserted, deleted and replaced characters that turn `a` into `b`
/// (Levenshtein), computed by rows.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<_> = b.chars().collect();
    let mut row: Vec<_> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_levenshteins() {
        // The textbook pairs.
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("flaw", "lawn"), 2);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }

    #[test]
    fn only_similar_names_are_suggested() {
        let names = ["saxpy", "matmul::<16>", "matmul::<32>"];
        assert_eq!(nearest("saxby", names), Some("saxpy"));
        assert_eq!(nearest("matmul<32>", names), Some("matmul::<32>"));
        assert_eq!(nearest("flash_attention", names), None);
    }
}
