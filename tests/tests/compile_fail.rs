//! What a user sees of a wrong kernel: whole programs through the macros and rustc, and every word of what comes out.
//!
//! `TRYBUILD=overwrite cargo test -p tests --test compile_fail` writes the expected messages anew.

use std::fs;
use std::path::PathBuf;

/// Words that only expansions use.
const GENERATED: [&str; 9] =
    ["__", "size_of_body", "Axis", "macro_rules", "const _", "quote", "{closure", "panic!", "internal compiler error"];

#[test]
fn messages() {
    // Registry crates come from the lock file and the disk, as in CI.
    // SAFETY: this test binary runs nothing beside this but a test that reads files.
    unsafe { std::env::set_var("CARGO_NET_OFFLINE", "true") };
    trybuild::TestCases::new().compile_fail("compile_fail/*.rs");
}

#[test]
fn messages_show_nothing_generated_and_come_once() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compile_fail");
    let mut files: Vec<_> = fs::read_dir(&folder).expect("the cases").map(|e| e.expect("a case").path()).collect();
    files.sort();
    let mut faults = Vec::new();
    for case in files.iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        let expected = case.with_extension("stderr");
        let Ok(text) = fs::read_to_string(&expected) else {
            faults.push(format!("{}: nothing is expected", expected.display()));
            continue;
        };
        // Lines that quote the user's own source start with a line number and a bar.
        let said = |line: &&str| !line.trim_start().starts_with(|c: char| c.is_ascii_digit());
        for line in text.lines().filter(said) {
            faults.extend(
                GENERATED
                    .iter()
                    .filter(|word| line.contains(**word))
                    .map(|word| format!("{}: `{word}` in: {line}", expected.display())),
            );
        }
        let mut errors: Vec<&str> = text.split("\n\n").collect();
        let all = errors.len();
        errors.sort();
        errors.dedup();
        if errors.len() < all {
            faults.push(format!("{}: something is said twice", expected.display()));
        }
        let mut places: Vec<&str> =
            text.lines().filter(|l| l.starts_with(" --> ") || l.starts_with("  --> ")).collect();
        let all = places.len();
        places.sort();
        places.dedup();
        if places.len() < all {
            faults.push(format!("{}: two errors at one place", expected.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
