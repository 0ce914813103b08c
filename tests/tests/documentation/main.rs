//! Tests of pages, documentation and names: they state what the code does.

mod documented;
mod examples;
mod import_circles;
mod module_files;
mod public_surface;
mod readme;
mod subset;
mod type_names;

use std::path::{Path, PathBuf};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Returns the folder and the manifest of each published crate of the workspace.
fn published_crates() -> Vec<(String, String)> {
    let manifest = |folder: &str| std::fs::read_to_string(format!("{ROOT}/{folder}/Cargo.toml")).expect("a manifest");
    let root = manifest(".");
    let members =
        root.split_once("members = [").and_then(|(_, rest)| rest.split_once(']')).expect("a list of members").0;
    let folders = members.split('"').skip(1).step_by(2);
    let crates = folders.map(|folder| (folder.to_string(), manifest(folder)));
    let published: Vec<_> = crates.filter(|(_, text)| !text.lines().any(|line| line == "publish = false")).collect();
    assert!(published.len() > 10, "{}", published.len());
    published
}

/// Adds the sources of a folder, except those of build outputs and of rejected programs.
fn add_sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let skipped = ["target", "compile_fail", "outside", "wip"];
        if path.is_dir() && !skipped.iter().any(|name| path.ends_with(name)) {
            add_sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}
