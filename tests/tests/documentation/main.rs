//! Tests of pages, documentation and names: they state what the code does.

mod documented;
mod examples;
mod import_circles;
mod public_surface;
mod readme;
mod subset;
mod type_names;

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
