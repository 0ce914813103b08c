//! Kernels on which executors did not agree, in files that a test runs.

use crate::program::Kernel;
use crate::run::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A kernel that something was wrong with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// What the file is called.
    pub name: String,
    /// The seed of what it is launched on.
    pub seed: u64,
    /// The file's text, which the front end takes as it is.
    pub text: String,
}

/// The folder of those that are kept.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found")
}

/// The files in a folder, by name.
pub fn read(folder: &Path) -> io::Result<Vec<Found>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let seed =
            text.lines().find_map(|line| line.strip_prefix("//! Seed ")?.split([':', ' ', '.']).next()?.parse().ok());
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        all.push(Found { name, seed: seed.unwrap_or(0), text });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Writes a kernel that was made small: the file's path.
pub fn write(folder: &Path, seed: u64, kernel: &Kernel, failure: &Failure) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("seed_{seed}.rs"));
    let said = failure.to_string();
    let said: Vec<_> = said.lines().take(12).map(|line| format!("//! {line}\n")).collect();
    fs::write(
        &path,
        format!("//! Seed {seed}: whose fault it was is to be written here.\n//!\n{}\n{kernel}", said.concat()),
    )?;
    Ok(path)
}
