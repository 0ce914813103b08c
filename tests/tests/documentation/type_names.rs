//! Names of types: no new type has a bare noun that fits every module, such as `Kind`, as its name,
//! and no other name denotes many types.
//!
//! A type with such a name is found neither by a search nor in the documentation. The name of a new
//! type has a noun of its domain: `AllocationKind`. The table lists the types that still have such
//! a name, and may only become shorter.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

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

/// The most types of the libraries that share a name, each in a separate crate.
const MAX_TYPES_OF_A_NAME: usize = 4;

/// The compiler's forms of a program. Each has a type for one construct: a block as written, as
/// checked, and in the IR.
const PROGRAM_FORMS: [&str; 4] = ["syntax", "hir", "ir", "ptx"];

/// Returns the name of the type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let kinds = ["struct ", "enum ", "union ", "trait ", "type "];
    let name = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

/// Returns whether a file belongs to a library.
fn is_library(file: &str) -> bool {
    let aside = ["tests", "examples", "benches", "templates", "guide"];
    !file.split('/').any(|folder| aside.contains(&folder))
}

/// Returns the crate of a file, and for the compiler also the form of the program that the file
/// belongs to.
fn namespace(file: &str) -> (&str, &str) {
    let (library, path) = file.split_once("/src/").unwrap_or((file, ""));
    let folder = path.split(['/', '.']).next().unwrap_or_default();
    let is_form = library == "kernel-dsl/compiler" && PROGRAM_FORMS.contains(&folder);
    (library, if is_form { folder } else { "" })
}

/// Returns each source with its path from the root.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["kernel-dsl", "kernel-macros", "kernels-rs", "runtime", "tests"] {
        crate::add_sources(&root.join(folder), &mut sources);
    }
    sources.sort();
    let read = |source: PathBuf| {
        let text = fs::read_to_string(&source).expect("a source");
        (source.strip_prefix(&root).expect("below the root").display().to_string(), text)
    };
    sources.into_iter().map(read).collect()
}

/// Returns the types by name: for each, the file and whether the line is indented.
fn types() -> BTreeMap<String, Vec<(String, bool)>> {
    let mut types = BTreeMap::<String, Vec<(String, bool)>>::new();
    for (file, text) in sources() {
        for line in text.lines() {
            // An associated type, whose name its trait gives, is indented.
            let is_associated = |line: &str| line.starts_with(' ') && line.trim_start().starts_with("type ");
            if let Some(name) = defined(line).filter(|_| !is_associated(line)) {
                types.entry(name.to_string()).or_default().push((file.clone(), line.starts_with(' ')));
            }
        }
    }
    types
}

#[test]
fn nouns_of_every_module_name_no_further_type() {
    let types = types();
    for (name, listed) in NAMES {
        let listed: Vec<&str> = listed.into_iter().collect();
        let found: Vec<&str> = types.get(name).into_iter().flatten().map(|(file, _)| file.as_str()).collect();
        assert_eq!(found, listed, "types named `{name}`: give a new one a noun of its domain");
    }
}

#[test]
fn few_types_share_a_name() {
    let mut wrong = Vec::new();
    for (name, files) in types() {
        // Types of functions and unit tests are indented, and seen nowhere else.
        let shared = files.iter().filter(|(file, indented)| !indented && is_library(file)).map(|(file, _)| file);
        let shared: Vec<&String> = shared.collect();
        let mut namespaces: Vec<_> = shared.iter().map(|file| namespace(file)).collect();
        namespaces.sort_unstable();
        let are_apart = namespaces.windows(2).all(|pair| pair[0] != pair[1]);
        let allowed = are_apart && shared.len() <= MAX_TYPES_OF_A_NAME || matches!(&name[..], "Error" | "Result");
        if !allowed {
            wrong.push(format!("types named `{name}`: give some of them a noun of their domain: {shared:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Adjectives, verbs and vague nouns. No constant has one of them as its whole name.
const BARE_CONSTANTS: [&str; 42] = [
    "ABANDONED",
    "ALIKE",
    "APART",
    "ASKING",
    "BEFORE",
    "BELOW",
    "EACH",
    "FAR",
    "FEW",
    "FILLED",
    "FORGOTTEN",
    "FOUND",
    "KEEPS",
    "LAST",
    "LEAST",
    "LENT",
    "LIMIT",
    "LISTED",
    "LONG",
    "LOST",
    "MOST",
    "NAMED",
    "NEARLY",
    "NOBODY",
    "NOTHING",
    "ODD",
    "OTHERS",
    "PATIENCE",
    "PICKED",
    "RECENT",
    "ROOM",
    "SETTLED",
    "SMALL",
    "SPINNING",
    "SUFFICIENT",
    "TOLD",
    "TURNS",
    "UNUSED",
    "USED",
    "WIDEST",
    "WITHIN",
    "WORTHWHILE",
];

#[test]
fn constants_have_a_noun() {
    let mut bare = Vec::new();
    for (file, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            // A constant of a module, not of a function or trait.
            let name = ["const ", "static "].iter().find_map(|word| {
                let before = line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches(|c| c != ' '));
                before.trim_start_matches(' ').strip_prefix(word).filter(|_| !line.starts_with(' '))
            });
            let name = name.and_then(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next());
            if is_library(&file) && name.is_some_and(|name| BARE_CONSTANTS.contains(&name) || name.starts_with("MOST_"))
            {
                bare.push(format!("{file}:{}: {line}", number + 1));
            }
        }
    }
    assert!(bare.is_empty(), "give these constants a noun, as in `MAX_NAMED_ELEMENTS`:\n{}", bare.join("\n"));
}

#[test]
fn definitions_are_found() {
    assert_eq!(defined("pub(crate) struct Kind<'a> {"), Some("Kind"));
    assert_eq!(defined("    enum State { A }"), Some("State"));
    assert_eq!(defined("pub trait Source: Copy {"), Some("Source"));
    assert_eq!(defined("impl Kind {"), None);
}
