//! Names of types. No new type has a bare noun that fits every module as its name, such as `Kind`.
//! No name denotes two types of the libraries, public or private.
//!
//! A type with such a name is found neither by a search nor in the documentation. The name of a new
//! type has a noun of its domain: `AllocationKind`. `NAMES` lists the types that still have a bare
//! noun. `GROUPS` lists the names that several types share, with the reason.

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

/// Types that share a name because they are forms of one thing.
struct NameGroup {
    /// The reason why a reader expects one name.
    reason: &'static str,
    /// Beginnings of the paths of the types' files. Below each is one type of a name; below
    /// `ANYWHERE` are any number.
    folders: &'static [&'static str],
    /// The shared names.
    names: &'static [&'static str],
}

/// The folder of a group whose types may be anywhere.
const ANYWHERE: &str = "";

/// The names that types share. A name is in one group only.
const GROUPS: [NameGroup; 5] = [
    NameGroup {
        reason: "the forms of a program: as written, checked, in the IR, in PTX, and decoded by an interpreter",
        folders: &[
            "kernel-dsl/compiler/src/syntax/",
            "kernel-dsl/compiler/src/hir/",
            "kernel-dsl/compiler/src/ir/",
            "kernel-dsl/compiler/src/ptx/",
            "runtime/oracle/src/",
            "runtime/ptx/src/",
        ],
        names: &[
            "Arm",
            "Binary",
            "Block",
            "BlockExtent",
            "Dim",
            "Enum",
            "Expr",
            "ExprKind",
            "Function",
            "Generic",
            "GenericKind",
            "Guard",
            "Impl",
            "Inst",
            "Item",
            "Label",
            "Local",
            "LocalId",
            "Location",
            "Parameter",
            "Pattern",
            "Program",
            "Shuffle",
            "Special",
            "Statement",
            "Struct",
            "Tolerance",
            "Trait",
            "TraitBound",
            "TraitItem",
            "Type",
            "Unary",
            "Unroll",
            "Variable",
            "Vote",
            "WaitGroup",
        ],
    },
    NameGroup {
        reason: "the two interpreters, of IR and of PTX, whose parts correspond",
        folders: &["runtime/oracle/src/", "runtime/ptx/src/"],
        names: &[
            "AsyncCopyAccess",
            "AtomicAccess",
            "Buffer",
            "Checks",
            "Code",
            "Copies",
            "Decoder",
            "InFlightCopy",
            "Inline",
            "Launch",
            "Machine",
            "Mismatch",
            "Options",
            "Outcome",
            "Pc",
            "Running",
            "Unsupported",
            "Warp",
        ],
    },
    NameGroup {
        reason: "objects of the CUDA driver: in the driver on the CPU, for users of the runtime, and in Python",
        folders: &["runtime/cuda-on-cpu/src/", "runtime/devices/src/", "runtime/python/src/"],
        names: &["Context", "Event", "Graph", "Library", "Node", "Stream"],
    },
    NameGroup {
        reason: "units of code: a kernel and a module, in Rust, in PTX, in the driver and in Python",
        folders: &[
            "kernel-dsl/src/",
            "kernel-dsl/compiler/src/syntax/",
            "kernel-dsl/compiler/src/ir/",
            "kernel-dsl/compiler/src/ptx/",
            "runtime/cuda-on-cpu/src/",
            "runtime/python/src/",
        ],
        names: &["Kernel", "Module"],
    },
    NameGroup {
        reason: "conventions of Rust: a module's error, its result, and the trait that seals another",
        folders: &[ANYWHERE],
        names: &["Error", "Result", "Sealed"],
    },
];

/// Returns the name of the type that a line of code defines.
fn defined(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let kinds = ["struct ", "enum ", "union ", "trait ", "unsafe trait ", "type "];
    let name = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind))?;
    // A macro's definition of `$name` has no name yet.
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// Returns whether a file belongs to a library.
fn is_library(file: &str) -> bool {
    let aside = ["tests", "examples", "benches", "templates", "guide", "compile_fail"];
    !file.split('/').any(|folder| aside.contains(&folder))
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

/// A definition of a type.
struct TypeDefinition {
    file: String,
    /// Whether the type is a private one of a function, a unit test or an inline module.
    is_local: bool,
}

/// Returns the definitions of types by name.
fn types() -> BTreeMap<String, Vec<TypeDefinition>> {
    let mut types = BTreeMap::<String, Vec<TypeDefinition>>::new();
    for (file, text) in sources() {
        for line in text.lines() {
            // An associated type, whose name its trait gives, is indented.
            let is_associated = |line: &str| line.starts_with(' ') && line.trim_start().starts_with("type ");
            if let Some(name) = defined(line).filter(|_| !is_associated(line)) {
                let definition = TypeDefinition {
                    file: file.clone(),
                    is_local: line.starts_with(' ') && !line.trim_start().starts_with("pub "),
                };
                types.entry(name.to_string()).or_default().push(definition);
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
        let found: Vec<&str> = types.get(name).into_iter().flatten().map(|found| found.file.as_str()).collect();
        assert_eq!(found, listed, "types named `{name}`: give a new one a noun of its domain");
    }
}

/// Returns the files of the types that other modules of the libraries may name.
fn library_files(definitions: &[TypeDefinition]) -> Vec<&str> {
    let library = definitions.iter().filter(|definition| !definition.is_local && is_library(&definition.file));
    library.map(|definition| definition.file.as_str()).collect()
}

/// Returns what is wrong with the types of a name, if anything.
fn wrongly_shared(name: &str, files: &[&str]) -> Option<String> {
    if files.len() < 2 {
        return None;
    }
    let advice = "give all but the most central one a noun of their domain, such as `TextureLocation`";
    let Some(group) = GROUPS.iter().find(|group| group.names.contains(&name)) else {
        return Some(format!(
            "types named `{name}`: {advice}. If they are forms of one thing, add the name to a group of \
             `GROUPS` in tests/tests/documentation/type_names.rs. {files:?}"
        ));
    };
    if group.folders == [ANYWHERE] {
        return None;
    }
    let folder = |file: &&str| group.folders.iter().position(|folder| file.starts_with(folder));
    let mut folders: Vec<_> = files.iter().map(folder).collect();
    folders.sort_unstable();
    let are_in_group = folders.iter().all(Option::is_some) && folders.windows(2).all(|pair| pair[0] != pair[1]);
    (!are_in_group).then(|| {
        format!(
            "types named `{name}`: the name belongs to {}. Each of these folders has one: {:?}. For the \
             others, {advice}. {files:?}",
            group.reason, group.folders
        )
    })
}

#[test]
fn each_name_denotes_one_type() {
    let wrong: Vec<_> =
        types().iter().filter_map(|(name, found)| wrongly_shared(name, &library_files(found))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn groups_list_only_shared_names() {
    let types = types();
    let mut unused = Vec::new();
    for name in GROUPS.iter().flat_map(|group| group.names) {
        if types.get(*name).is_none_or(|found| library_files(found).len() < 2) {
            unused.push(name);
        }
        assert_eq!(GROUPS.iter().filter(|group| group.names.contains(name)).count(), 1, "`{name}` is in one group");
    }
    assert!(unused.is_empty(), "one type at most has these names; remove them from `GROUPS`: {unused:?}");
}

#[test]
fn a_name_is_shared_only_in_a_group() {
    let outside = wrongly_shared("Texel", &["runtime/ptx/src/texture.rs", "runtime/simt/src/lib.rs"]);
    assert!(outside.is_some_and(|message| message.contains("add the name to a group")));
    let other_folder = wrongly_shared("Stream", &["runtime/devices/src/stream/mod.rs", "kernels-rs/src/lib.rs"]);
    assert!(other_folder.is_some_and(|message| message.contains("objects of the CUDA driver")));
    let twice = wrongly_shared("Warp", &["runtime/ptx/src/warp.rs", "runtime/ptx/src/body.rs"]);
    assert!(twice.is_some());
    assert_eq!(wrongly_shared("Warp", &["runtime/ptx/src/warp.rs", "runtime/oracle/src/machine/mod.rs"]), None);
    assert_eq!(wrongly_shared("Texel", &["runtime/ptx/src/texture.rs"]), None);
}

/// Adjectives, verbs and vague nouns. No constant has one of them as its whole name.
const BARE_CONSTANTS: [&str; 50] = [
    "ABANDONED",
    "AHEAD",
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
    "FRESH",
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
    "OBSERVED",
    "ODD",
    "OTHERS",
    "PATIENCE",
    "PICKED",
    "REAL",
    "RECENT",
    "ROOM",
    "SETS",
    "SETTLED",
    "SMALL",
    "SPECIAL",
    "SPINNING",
    "SPREAD",
    "SUFFICIENT",
    "TOGETHER",
    "TOLD",
    "TURNS",
    "UNUSED",
    "USED",
    "WIDEST",
    "WITHIN",
    "WORTHWHILE",
];

/// Iterates over the names of the constants, constant parameters and statics that a line declares:
/// of a module, a trait, an impl or a function.
fn declared_constants(line: &str) -> impl Iterator<Item = &str> {
    ["const ", "static "].into_iter().flat_map(move |word| line.match_indices(word)).filter_map(|(at, word)| {
        let begins = line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '\'');
        let rest = &line[at + word.len()..];
        let end = rest.find(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_')?;
        (begins && end > 0 && rest[end..].starts_with(':')).then_some(&rest[..end])
    })
}

#[test]
fn constants_have_a_noun() {
    let mut bare = Vec::new();
    for (file, text) in sources().into_iter().filter(|(file, _)| is_library(file)) {
        for (number, line) in text.lines().enumerate() {
            let is_bare = |name: &str| BARE_CONSTANTS.contains(&name) || name.starts_with("MOST_");
            if declared_constants(line).any(is_bare) {
                bare.push(format!("{file}:{}: {line}", number + 1));
            }
        }
    }
    assert!(bare.is_empty(), "give these constants a noun, as in `MAX_NAMED_ELEMENTS`:\n{}", bare.join("\n"));
}

#[test]
fn constants_are_found() {
    let found = |line| declared_constants(line).collect::<Vec<_>>();
    assert_eq!(found("pub(super) const NAMED: u32 = 1;"), ["NAMED"]);
    assert_eq!(found("        const REAL: bool;"), ["REAL"]);
    assert_eq!(found("    static FOUND: Lock = Lock::new();"), ["FOUND"]);
    assert_eq!(found("    const AHEAD: usize,"), ["AHEAD"]);
    assert_eq!(found("fn run<const CHECKED: bool, const OBSERVED: bool>("), ["CHECKED", "OBSERVED"]);
    assert!(found("    let constant = 1;").is_empty());
    assert!(found("const fn of(name: &'static str) -> u32 {").is_empty());
}

#[test]
fn definitions_are_found() {
    assert_eq!(defined("pub(crate) struct Kind<'a> {"), Some("Kind"));
    assert_eq!(defined("    enum State { A }"), Some("State"));
    assert_eq!(defined("pub unsafe trait Source: Copy {"), Some("Source"));
    assert_eq!(defined("impl Kind {"), None);
    assert_eq!(defined("pub struct Q4_0;"), Some("Q4_0"));
    assert_eq!(defined("pub struct $name;"), None);
}
