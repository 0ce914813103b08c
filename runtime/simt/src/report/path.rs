//! Paths of sources, as a reader in some folder can open them.
//!
//! Reports record paths that begin with the name of a package, such as `mine/src/lib.rs`, so that
//! they do not depend on the machine. A program that prints reports calls [`show_paths_from`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The number of levels of folders in which packages are searched.
const MAX_PACKAGE_DEPTH: usize = 3;

/// The folder from which paths are shown.
static SHOWN_FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// The packages of that folder, which are searched for the first path.
static SHOWN_PACKAGES: OnceLock<PackageFolders> = OnceLock::new();

/// Lets reports of this process show paths that can be opened from `folder`: `src/lib.rs` in the
/// folder of a package, `member/src/lib.rs` in its workspace. Paths of packages that are not below
/// the folder begin with the name of the package, as all paths do without this call. Only the first
/// call has an effect.
pub fn show_paths_from(folder: &Path) {
    let _ = SHOWN_FOLDER.set(folder.to_path_buf());
}

/// Returns the path of a source as it is shown after [`show_paths_from`]. `file` begins with the
/// name of its package.
pub fn shown_path(file: &str) -> Cow<'_, str> {
    let packages = SHOWN_FOLDER.get().map(|folder| SHOWN_PACKAGES.get_or_init(|| PackageFolders::below(folder)));
    match packages.and_then(|packages| packages.path(file)) {
        Some(path) => Cow::Owned(path),
        None => Cow::Borrowed(file),
    }
}

/// The packages in and below a folder.
struct PackageFolders {
    root: PathBuf,
    /// The path from the root to each package, by name: empty or with a slash at the end.
    folders: BTreeMap<String, String>,
}

impl PackageFolders {
    fn below(root: &Path) -> PackageFolders {
        let mut packages = PackageFolders { root: root.to_path_buf(), folders: BTreeMap::new() };
        packages.add(root, "", MAX_PACKAGE_DEPTH);
        packages
    }

    fn add(&mut self, folder: &Path, path: &str, depth: usize) {
        if let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml"))
            && let Some(name) = package_name(&manifest)
        {
            self.folders.entry(name.to_string()).or_insert_with(|| path.to_string());
        }
        let Some(inner) = depth.checked_sub(1) else { return };
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| !name.starts_with('.') && *name != "target") else { continue };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                self.add(&entry.path(), &format!("{path}{name}/"), inner);
            }
        }
    }

    /// Returns the path from the root to a source, if the file exists.
    fn path(&self, file: &str) -> Option<String> {
        let (package, rest) = file.split_once('/')?;
        let path = format!("{}{rest}", self.folders.get(package)?);
        self.root.join(&path).is_file().then_some(path)
    }
}

/// Returns the name of the package of a manifest; `None` for a workspace without a package.
fn package_name(manifest: &str) -> Option<&str> {
    let package = manifest.lines().skip_while(|line| line.trim() != "[package]").skip(1);
    let mut fields = package.take_while(|line| !line.starts_with('['));
    let value = fields.find_map(|line| line.strip_prefix("name")?.trim_start().strip_prefix('='))?;
    value.split('"').nth(1)
}

#[cfg(test)]
mod tests {
    use super::{PackageFolders, package_name};
    use std::{env, fs, process};

    #[test]
    fn paths_can_be_opened_from_the_folder() {
        let root = env::temp_dir().join(format!("kernels-paths-{}", process::id()));
        for (folder, name) in [("kernels/inner", "mine"), ("kernels", "kernels"), ("target/mine", "built")] {
            let folder = root.join(folder);
            fs::create_dir_all(folder.join("src")).unwrap();
            fs::write(folder.join("Cargo.toml"), format!("[package]\nname = \"{name}\"\n")).unwrap();
            fs::write(folder.join("src/lib.rs"), "").unwrap();
        }
        fs::write(root.join("Cargo.toml"), "[workspace]\nmembers = [\"kernels\"]\n").unwrap();
        let whole = PackageFolders::below(&root);
        assert_eq!(whole.path("mine/src/lib.rs").as_deref(), Some("kernels/inner/src/lib.rs"));
        assert_eq!(whole.path("kernels/src/lib.rs").as_deref(), Some("kernels/src/lib.rs"));
        let inside = PackageFolders::below(&root.join("kernels/inner"));
        assert_eq!(inside.path("mine/src/lib.rs").as_deref(), Some("src/lib.rs"));
        // Another package, a file that does not exist, a folder of build outputs, and PTX.
        for file in ["kernels/src/lib.rs", "mine/src/main.rs", "built/src/lib.rs", "kernel.ptx"] {
            assert_eq!(inside.path(file), None);
        }
        assert_eq!(whole.path("built/src/lib.rs"), None);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn packages_have_names() {
        assert_eq!(
            package_name("[package]\nversion = \"1\"\nname = \"mine\"\n[lib]\nname = \"other\"\n"),
            Some("mine")
        );
        assert_eq!(package_name("[workspace]\n[lib]\nname = \"other\"\n"), None);
    }
}
