//! Files of kernels on which executors disagreed; a test runs them.

use crate::program::Kernel;
use crate::run::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// File of a failing kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailureFile {
    /// Name of the file.
    pub name: String,
    /// Seed of the launch data.
    pub seed: u64,
    /// Text of the file, which the front end reads unchanged.
    pub text: String,
}

/// Returns the folder of the committed kernels.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found")
}

/// Reads the files of a folder, sorted by name.
pub fn read(folder: &Path) -> io::Result<Vec<FailureFile>> {
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
        all.push(FailureFile { name, seed: seed.unwrap_or(0), text });
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// Writes a shrunk kernel and returns the path of the file.
pub fn write(folder: &Path, seed: u64, kernel: &Kernel, failure: &Failure) -> io::Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("seed_{seed}.rs"));
    let said = failure.to_string();
    let said: Vec<_> = said.lines().take(12).map(|line| format!("//! {line}\n")).collect();
    fs::write(
        &path,
        format!("//! Seed {seed}: state the cause here, as `Fault: …`.\n//!\n{}\n{kernel}", said.concat()),
    )?;
    Ok(path)
}
