//! Compares the table of methods with the chapter on methods, `kernel-dsl/src/methods.rs`.

use super::{ARRAY_METHODS, METHODS, OPTION_METHODS, RESULT_METHODS, Receiver};
use std::collections::BTreeSet;

const CHAPTER: &str = include_str!("../../../src/methods.rs");

/// Returns the chapter's word for a receiver that is a number; `None` for other receivers.
fn word(on: Receiver) -> Option<&'static str> {
    match on {
        Receiver::Float => Some("floats"),
        Receiver::Integer => Some("integers"),
        Receiver::Signed => Some("signed"),
        Receiver::Unsigned => Some("unsigned"),
        _ => None,
    }
}

#[test]
fn the_chapter_of_methods_and_the_checker_agree() {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in CHAPTER.lines() {
        let Some(row) = line.strip_prefix("//! | `") else { continue };
        let mut cells = row.split(" | ").map(str::trim);
        let (name, on) = (cells.next().unwrap(), cells.next().unwrap());
        assert!(cells.next().is_some_and(|ptx| !ptx.is_empty()), "no PTX: {line}");
        rows.push((name.trim_end_matches('`').to_string(), on.to_string()));
    }
    let written: BTreeSet<_> = rows.iter().cloned().collect();
    assert_eq!(written.len(), rows.len(), "a method occurs twice");
    let of_numbers = METHODS.iter().filter_map(|m| Some((m.name, word(m.on)?)));
    let of_arrays = ARRAY_METHODS.iter().map(|name| (*name, "arrays"));
    let of_options = OPTION_METHODS.iter().map(|name| (*name, "options"));
    let of_results = RESULT_METHODS.iter().map(|name| (*name, "results"));
    let all = of_numbers.chain(of_arrays).chain(of_options).chain(of_results);
    let known: BTreeSet<_> = all.map(|(name, on)| (name.to_string(), on.to_string())).collect();
    let missing: Vec<_> = known.difference(&written).collect();
    let unknown: Vec<_> = written.difference(&known).collect();
    assert!(missing.is_empty(), "kernel-dsl/src/methods.rs lacks {missing:?}");
    assert!(unknown.is_empty(), "language/methods.rs lacks {unknown:?}");
}
