//! One name for one type: nouns that fit every module, such as `Kind`, name no further type.
//!
//! A type with such a name is found neither by a search nor in the documentation. The name of a new
//! type has a noun of its domain: `AllocationKind`. The table lists the types that have the bare
//! name, and becomes shorter only.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Nouns that fit every module, each with the file of the one type that has the bare name, if any.
const NAMES: [(&str, Option<&str>); 11] = [
    ("Access", None),
    ("Flow", None),
    ("Kind", None),
    ("Memory", None),
    ("Part", None),
    ("Place", None),
    ("Report", Some("runtime/simt/src/report/mod.rs")),
    ("Shape", Some("tests/tests/language/items.rs")),
    ("Slot", Some("runtime/devices/src/graph/slot.rs")),
    ("Source", None),
    ("State", None),
];

/// Returns the name of the type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let kinds = ["struct ", "enum ", "union ", "trait "];
    let name = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn nouns_of_every_module_name_no_further_type() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["kernel-dsl", "kernel-macros", "kernels-rs", "runtime", "tests"] {
        crate::add_sources(&root.join(folder), &mut sources);
    }
    sources.sort();
    let mut found: BTreeMap<&str, Vec<String>> = NAMES.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for source in sources {
        let text = fs::read_to_string(&source).expect("a source");
        let file = source.strip_prefix(&root).expect("below the root").display().to_string();
        for name in text.lines().filter_map(defined) {
            if let Some(files) = found.get_mut(name) {
                files.push(file.clone());
            }
        }
    }
    for (name, listed) in NAMES {
        let listed: Vec<&str> = listed.into_iter().collect();
        assert_eq!(found[name], listed, "types named `{name}`: give a new one a noun of its domain");
    }
}

#[test]
fn definitions_are_found() {
    assert_eq!(defined("pub(crate) struct Kind<'a> {"), Some("Kind"));
    assert_eq!(defined("    enum State { A }"), Some("State"));
    assert_eq!(defined("pub trait Source: Copy {"), Some("Source"));
    assert_eq!(defined("impl Kind {"), None);
}
