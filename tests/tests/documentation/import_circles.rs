//! The layers of the runtime and of the command: no circle of imports between files of different
//! folders is larger than a pair.
//!
//! The test reads the `crate::`, `super::` and `self::` paths of every file of these crates and
//! resolves each to the file that defines the name; a re-export leads on to the definition.
//! A circle is a strongly connected component of that graph of files. Cargo rules out circles
//! between crates. Modules of unit tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Directories with crate roots, from the root of the workspace.
const CRATES: [&str; 9] = [
    "runtime/src",
    "runtime/simt/src",
    "runtime/ptx/src",
    "runtime/oracle/src",
    "runtime/devices/src",
    "runtime/testing/src",
    "runtime/cuda-on-cpu/src",
    "runtime/python/src",
    "kernels-rs/command/src",
];

#[test]
fn no_circle_between_folders_is_larger_than_a_pair() {
    let root = std::env::var("CIRCLES_ROOT").map(PathBuf::from).unwrap_or_else(|_| workspace());
    let mut larger = Vec::new();
    for source in CRATES.iter().map(|path| root.join(path)).filter(|path| path.join("lib.rs").exists()) {
        let sources = Sources::read(&source);
        let graph = sources.graph();
        for circle in circles(&graph) {
            let folders: BTreeSet<_> = circle.iter().map(|file| folder(file)).collect();
            println!("{}: {} files in {} folders: {circle:?}", source.display(), circle.len(), folders.len());
            if folders.len() > 1 && circle.len() > 2 {
                larger.push(circle);
            }
        }
    }
    assert!(larger.is_empty(), "circles of imports between folders: {larger:#?}");
}

#[test]
fn an_import_through_a_reexport_leads_to_the_definition() {
    let file = |module: &str, text: &str| {
        (module.split("::").filter(|s| !s.is_empty()).map(str::to_string).collect::<Vec<_>>(), text.to_string())
    };
    let files = [
        file("", "mod a; mod b; pub use a::{X, inner::Y};"),
        file("a", "pub mod inner; use crate::b::Z; pub struct X;"),
        file("a::inner", "// use super::X;\npub struct Y;"),
        file("b", "use crate::{X, Y}; fn f() { super::a::inner::g() }\n#[cfg(test)]\nmod tests { use crate::Y; }"),
    ];
    let files = files.into_iter().enumerate().map(|(i, (module, text))| (module, (format!("f{i}"), scrub(&text))));
    let graph = Sources { files: files.collect() }.graph();
    let to = |file: &str| graph[file].iter().map(String::as_str).collect::<Vec<_>>();
    assert_eq!(to("f0"), Vec::<&str>::new());
    assert_eq!(to("f1"), ["f3"]);
    assert_eq!(to("f3"), ["f1", "f2"]);
    assert_eq!(circles(&graph), [["f1", "f3"]]);
}

type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of a crate: the path of each, with its file and its text.
struct Sources {
    files: BTreeMap<Vec<String>, (String, String)>,
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
                    files.insert(module, (path, scrub(&fs::read_to_string(&entry).expect("text"))));
                }
            }
        }
        Sources { files }
    }

    /// Returns the files that each file imports from.
    fn graph(&self) -> Graph {
        let edges = self.files.iter().map(|(module, (file, text))| {
            let used = used_paths(text).into_iter().filter(|(public, _)| !public);
            let targets = used.filter_map(|(_, path)| self.defining(module, &path, 0));
            (file.clone(), targets.filter(|target| target != file).collect())
        });
        edges.collect()
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
        let (file, text) = self.files.get(&at)?;
        if let Some(name) = rest.first().filter(|_| depth < 8) {
            let exported = used_paths(text).into_iter().find(|(public, p)| *public && p.last() == Some(name));
            if let Some(target) = exported.and_then(|(_, path)| self.defining(&at, &path, depth + 1)) {
                return Some(target);
            }
        }
        Some(file.clone())
    }
}

/// Returns the paths of a text, each with whether it is a re-export.
fn used_paths(text: &str) -> Vec<(bool, Vec<String>)> {
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

/// Removes comments and the trailing module of unit tests.
fn scrub(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
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

/// Returns the folder of a file.
fn folder(file: &str) -> &str {
    file.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}
