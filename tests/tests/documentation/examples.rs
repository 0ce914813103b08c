//! Checks that no example in the documentation of a crate is left untested.
//!
//! rustdoc takes seconds for a crate without examples. Such a crate has `doctest = false`.

use crate::{ROOT, add_sources, published_crates};
use std::path::Path;

/// Returns the lines that begin an example which rustdoc would compile.
fn examples(text: &str) -> Vec<usize> {
    let mut inside = false;
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { continue };
        let Some(language) = line.trim_start().strip_prefix("```") else { continue };
        inside = !inside;
        let words: Vec<_> = language.split([',', ' ']).filter(|word| !word.is_empty()).collect();
        let rust = ["rust", "should_panic", "no_run", "compile_fail"];
        if inside && words.iter().all(|word| rust.contains(word)) {
            found.push(i + 1);
        }
    }
    found
}

#[test]
fn examples_are_found() {
    assert_eq!(
        examples("/// ```text\n/// a\n/// ```\n//! ```\n//! b\n//! ```\nfn f() {}\n/// ```rust,no_run\n"),
        [4, 8]
    );
}

#[test]
fn crates_without_tests_of_examples_have_no_example() {
    let mut untested = Vec::new();
    for (folder, manifest) in published_crates() {
        if !manifest.lines().any(|line| line == "doctest = false") {
            continue;
        }
        let mut files = Vec::new();
        add_sources(&Path::new(ROOT).join(&folder).join("src"), &mut files);
        for file in files {
            let text = std::fs::read_to_string(&file).expect("Rust source");
            untested.extend(examples(&text).iter().map(|line| format!("{}:{line}", file.display())));
        }
    }
    let advice = "remove `doctest = false` from the manifest of their crate";
    assert!(untested.is_empty(), "examples that no test compiles; {advice}:\n{}", untested.join("\n"));
}
