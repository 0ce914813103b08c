//! The layers within each crate: no circle of imports between files of different folders is larger
//! than a pair, and the sizes of circles within a folder are stated here.
//!
//! The test reads the `crate::`, `super::` and `self::` paths of every file of these crates and
//! resolves each to the file that defines the name; a re-export leads on to the definition.
//! A circle is a strongly connected component of that graph of files. A call of a method is no
//! import. Cargo rules out circles between crates. Modules of unit tests are left out. A module's
//! own file counts as a file of the folder of its children.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories with crate roots, from the root of the workspace.
const CRATES: [&str; 20] = [
    "kernel-dsl/src",
    "kernel-dsl/compiler/src",
    "kernel-macros/src",
    "runtime/src",
    "runtime/simt/src",
    "runtime/ptx/src",
    "runtime/oracle/src",
    "runtime/devices/src",
    "runtime/testing/src",
    "runtime/cuda-on-cpu/src",
    "runtime/cuda-on-cpu/nvjitlink/src",
    "runtime/cuda-on-cpu/nvrtc/src",
    "runtime/cuda-on-cpu/preload/src",
    "runtime/python/src",
    "kernels-rs/src",
    "kernels-rs/specs/src",
    "kernels-rs/command/src",
    "kernels-rs/estimate/src",
    "kernels-rs/guide/src",
    "kernels-rs/models/src",
];

/// The folders with circles larger than a pair: the sizes, the largest first, and why they remain.
const LARGER_CIRCLES: [(&str, &[usize], &str); 20] = [
    ("kernel-dsl/compiler/src/expand", &[11], "mod.rs lists the expansions and has what they share"),
    ("kernel-dsl/compiler/src/emit", &[7], "mod.rs has the emitter, and calls the files that add methods to it"),
    ("kernel-dsl/compiler/src/ir", &[6, 3], "regions have instructions, which have regions; parts print and parse"),
    ("kernel-dsl/compiler/src/launch", &[3], "evaluation calls methods and explains errors by evaluation"),
    ("kernel-dsl/compiler/src/ptx/ast", &[3], "a module has functions, which have the operands of a module"),
    ("runtime/ptx/src", &[16], "a warp accesses memory through the machine, which runs warps"),
    ("runtime/ptx/src/decode", &[13], "mod.rs calls the file of a group, which has the decoder as an argument"),
    ("runtime/oracle/src/machine", &[14, 3], "a warp accesses memory through the machine, which runs warps"),
    ("runtime/devices/src/cuda", &[5], "a context has streams and events, which keep their context alive"),
    ("runtime/devices/src/stream", &[3], "mod.rs has the stream, which records and profiles itself"),
    ("runtime/cuda-on-cpu/src/core", &[4], "work signals events, and a graph is work"),
    ("runtime/python/src", &[4], "a device keeps the arrays of pending calls, which it reads from PyTorch"),
    ("runtime/python/src/library", &[4], "mod.rs registers the calls, which have its arrays"),
    ("kernels-rs/src/attention", &[3], "a cache appends and extends itself by calls of the library"),
    ("kernels-rs/command/src/bench/suites", &[11], "mod.rs lists the suites and has what they share"),
    ("kernels-rs/command/src/inspect", &[7], "the model of a page has the parts, each of which is made from it"),
    ("kernels-rs/guide/src", &[5], "lib.rs lists the chapters and has what they share"),
    ("kernels-rs/models/src/engine", &[8, 5], "a model runs steps, which use the model; a cache is read by attention"),
    ("kernels-rs/models/src/tokenizer", &[5], "the tokenizer is made by the files, which use its vocabulary"),
    ("kernels-rs/models/src/bin/models/serve", &[3], "a request has an answer in the form of its API"),
];

#[test]
fn circles_of_imports_stay_within_folders_and_have_the_stated_sizes() {
    let root = std::env::var("CIRCLES_ROOT").map(PathBuf::from).unwrap_or_else(|_| workspace());
    let mut between_folders = Vec::new();
    let mut within_folders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for path in CRATES {
        let sources = Sources::read(&root.join(path));
        for circle in circles(&sources.graph()).into_iter().filter(|circle| circle.len() > 2) {
            println!("{path}: {} files: {circle:?}", circle.len());
            let folders: BTreeSet<_> = circle.iter().map(|file| sources.folder(file)).collect();
            match folders.first().filter(|_| folders.len() == 1) {
                Some(folder) => {
                    let folder = format!("{path}/{folder}");
                    within_folders.entry(folder.trim_end_matches('/').to_string()).or_default().push(circle.len());
                }
                None => between_folders.push(circle),
            }
        }
    }
    assert!(between_folders.is_empty(), "circles of imports between folders: {between_folders:#?}");
    let stated: BTreeMap<_, _> =
        LARGER_CIRCLES.iter().map(|(folder, sizes, _)| (folder.to_string(), sizes.to_vec())).collect();
    assert_eq!(within_folders, stated, "the circles within folders, and LARGER_CIRCLES");
}

#[test]
fn an_import_through_a_reexport_leads_to_the_definition() {
    let file = |module: &str, text: &str| {
        (module.split("::").filter(|s| !s.is_empty()).map(str::to_string).collect::<Vec<_>>(), text.to_string())
    };
    let files = [
        file("", "mod a; mod b; pub use a::{X, inner::Y};"),
        file("a", "pub mod inner; use crate::b::Z; pub struct X;"),
        file("a::inner", "// use super::X;\npub(in crate::a) struct Y;"),
        file("b", "use crate::{X, Y}; fn f() { super::a::inner::g() }\n#[cfg(test)]\nmod tests { use crate::Y; }"),
    ];
    let files = files.into_iter().enumerate();
    let files = files.map(|(i, (module, text))| (module, (format!("f{i}"), used_paths(&scrub(&text)))));
    let graph = Sources { files: files.collect() }.graph();
    let to = |file: &str| graph[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(to("f0"), Vec::<&str>::new());
    assert_eq!(to("f1"), ["f3"]);
    assert_eq!(to("f3"), ["f1", "f2"]);
    assert_eq!(circles(&graph), [["f1", "f3"]]);
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// A path in a text, with whether the text re-exports it.
type UsedPath = (bool, Vec<String>);

/// The modules of a crate: the path of each, with its file and the paths in its text.
struct Sources {
    files: BTreeMap<Vec<String>, (String, Vec<UsedPath>)>,
}

impl Sources {
    fn read(source: &Path) -> Sources {
        let mut files = BTreeMap::new();
        let mut folders = vec![source.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
                let name = entry.strip_prefix(source).expect("below the source folder").with_extension("");
                let mut module: Vec<_> = name.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|e| e == "rs") && !module.contains(&"tests".to_string()) {
                    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
                        module.pop();
                    }
                    let path = entry.strip_prefix(source).expect("below the source folder").display().to_string();
                    let text = scrub(&fs::read_to_string(&entry).expect("text"));
                    files.insert(module, (path, used_paths(&text)));
                }
            }
        }
        Sources { files }
    }

    /// Returns the files that each file imports from.
    fn graph(&self) -> Graph {
        let edges = self.files.iter().map(|(module, (file, paths))| {
            let used = paths.iter().filter(|(public, _)| !public);
            let targets = used.filter_map(|(_, path)| self.defining(module, path, 0));
            (file.clone(), targets.filter(|target| target != file).collect())
        });
        edges.collect()
    }

    /// Returns the folder of a file; that of its children for the file of a module with children.
    fn folder(&self, file: &str) -> String {
        let own = file.trim_end_matches(".rs");
        let has_children = self.files.values().any(|(other, _)| other.starts_with(&format!("{own}/")));
        let folder = if has_children { own } else { file.rsplit_once('/').map_or("", |(folder, _)| folder) };
        folder.to_string()
    }

    /// Returns the file that defines what `path` names in `module`; `None` for another crate's.
    fn defining(&self, module: &[String], path: &[String], depth: usize) -> Option<String> {
        let mut at = module.to_vec();
        let mut rest = path;
        match rest.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &rest[1..]),
            "self" => rest = &rest[1..],
            "super" => {}
            // A path from a child module, as `use child::Name` in `mod.rs`.
            first if self.files.contains_key(&[module, &[first.to_string()]].concat()) => {}
            _ => return None,
        }
        while rest.first().is_some_and(|s| s == "super") {
            at.pop();
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            at.push(name.clone());
            if !self.files.contains_key(&at) {
                at.pop();
                break;
            }
            rest = &rest[1..];
        }
        let (file, paths) = self.files.get(&at)?;
        if let Some(name) = rest.first().filter(|_| depth < 8) {
            let exported = paths.iter().find(|(public, p)| *public && p.last() == Some(name));
            if let Some(target) = exported.and_then(|(_, path)| self.defining(&at, path, depth + 1)) {
                return Some(target);
            }
        }
        Some(file.clone())
    }
}

/// Returns the paths of a text.
fn used_paths(text: &str) -> Vec<UsedPath> {
    let mut paths = Vec::new();
    let mut rest = text;
    let mut plain = String::new();
    while let Some(start) = rest.find("use ") {
        let before = &rest[..start];
        let end = rest[start..].find(';').map_or(rest.len(), |end| start + end);
        let boundary = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        plain.push_str(before);
        if !boundary {
            plain.push_str("use ");
            rest = &rest[start + 4..];
            continue;
        }
        let last = before.trim_end().rsplit(['\n', ';', '}']).next().unwrap_or_default().trim();
        let mut tree = Vec::new();
        expand(&rest[start + 4..end], &mut Vec::new(), &mut tree);
        paths.extend(tree.into_iter().map(|path| (last.starts_with("pub"), path)));
        rest = &rest[end..];
    }
    plain.push_str(rest);
    // Paths in code begin with one of the three keywords, or with a child module.
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    for word in plain.split(|c: char| !is_part(c)) {
        let parts: Vec<_> = word.split("::").map(str::to_string).collect();
        // `pub(super)` is not a path. The graph ignores paths whose first name is no child module.
        if parts.len() > 1 && parts[0].chars().next().is_some_and(char::is_lowercase) {
            paths.push((false, parts));
        }
    }
    paths
}

/// Expands a tree of imports to paths; an alias is dropped.
fn expand(tree: &str, prefix: &mut Vec<String>, out: &mut Vec<Vec<String>>) {
    let mut depth = 0;
    let mut start = 0;
    let mut items = Vec::new();
    for (i, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                items.push(&tree[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    items.push(&tree[start..]);
    for item in items.into_iter().map(str::trim).filter(|item| !item.is_empty()) {
        let item = item.split(" as ").next().unwrap_or(item);
        let (path, inner) = match item.split_once('{') {
            Some((path, inner)) if item.ends_with('}') => (path, Some(&inner[..inner.len() - 1])),
            _ => (item, None),
        };
        let parts: Vec<_> = path.split("::").map(|s| s.trim().to_string()).filter(|s| !s.is_empty()).collect();
        let length = prefix.len();
        prefix.extend(parts);
        match inner {
            Some(inner) => expand(inner, prefix, out),
            None => out.push(prefix.iter().filter(|s| *s != "self" || prefix[0] == "self").cloned().collect()),
        }
        prefix.truncate(length);
    }
}

/// Removes comments, the paths of `pub(in path)`, and the trailing module of unit tests.
fn scrub(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines = lines.collect::<Vec<_>>().join("\n");
    let mut parts = lines.split("pub(in ");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |all, part| all + "pub" + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Returns the strongly connected components of more than one file, the largest first.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.as_str()]);
            while let Some(at) = open.pop() {
                let next = graph.get(at).into_iter().flatten().map(String::as_str);
                open.extend(next.filter(|to| seen.insert(*to)));
            }
            (from.as_str(), seen)
        })
        .collect();
    let mut found = BTreeSet::new();
    for (from, to) in &reach {
        let both = to.iter().filter(|other| reach.get(*other).is_some_and(|back| back.contains(from)));
        let circle: Vec<_> = both.map(|file| file.to_string()).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}
