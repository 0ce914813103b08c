//! The file of a module with children: `mod.rs` in its folder, or `name.rs` beside the folder, by
//! crate.

use super::ROOT;
use std::path::Path;

/// The sources with `name.rs` beside the folder `name`.
const BESIDE_THE_FOLDER: [&str; 3] = ["kernel-dsl/src", "kernels-rs/src", "kernels-rs/models/src"];

#[test]
fn modules_with_children_have_their_file_where_the_crate_has_it() {
    let mut open: Vec<_> = ["kernel-dsl", "kernel-macros", "kernels-rs", "runtime"].map(String::from).into();
    let (mut checked, mut misplaced) = (0, Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(Path::new(ROOT).join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("UTF-8");
            let path = format!("{folder}/{name}");
            if entry.path().is_dir() {
                if name != "target" {
                    open.push(path);
                }
                continue;
            }
            let Some((_, module)) = path.split_once("/src/") else { continue };
            let in_folder = module.ends_with("/mod.rs");
            let has_folder = name.ends_with(".rs") && entry.path().with_extension("").is_dir();
            let beside = BESIDE_THE_FOLDER.iter().any(|source| path.starts_with(&format!("{source}/")));
            checked += usize::from(in_folder || has_folder);
            if if beside { in_folder } else { has_folder } {
                misplaced.push(path);
            }
        }
    }
    assert!(checked > 70, "only {checked} modules with children");
    assert!(misplaced.is_empty(), "see the rule in .github/CONTRIBUTING.md: {misplaced:#?}");
}
