//! What somebody who misspelt a name may have meant.

/// The one of `names` that is fewest edits away from `given`, if it is near enough to be meant.
pub(super) fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let enough = (given.chars().count() / 3).max(2);
    let near = names.into_iter().map(|name| (edits(given, name), name)).filter(|(edits, _)| *edits <= enough);
    near.min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// Characters inserted, deleted or replaced to make `b` of `a` (Levenshtein), by rows of the table.
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
    fn edits_are_levenshteins() {
        // The textbook pairs.
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("flaw", "lawn"), 2);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let names = ["saxpy", "matmul::<16>", "matmul::<32>"];
        assert_eq!(nearest("saxby", names), Some("saxpy"));
        assert_eq!(nearest("matmul<32>", names), Some("matmul::<32>"));
        assert_eq!(nearest("flash_attention", names), None);
    }
}
