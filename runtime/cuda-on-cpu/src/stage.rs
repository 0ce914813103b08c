//! The folder where programs find the library under the driver's name.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// Returns the folder, beside the executable, that holds the library under the names that programs
/// load. Creates the folder if it does not exist.
pub fn folder() -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let name = format!("{DLL_PREFIX}cuda_on_cpu{DLL_SUFFIX}");
    // Tests run in `deps`, and examples in a folder beside it.
    let places = [beside.join(&name), beside.join("deps").join(&name), beside.join("../deps").join(&name)];
    let library = places.iter().find(|place| place.exists());
    let missing = || Error::new(ErrorKind::NotFound, format!("{name} is not in the folder of {}", program.display()));
    let library = library.ok_or_else(missing)?.canonicalize()?;
    let folder = library.parent().unwrap_or(Path::new(".")).join("cuda-on-cpu.names");
    std::fs::create_dir_all(&folder)?;
    for name in NAMES {
        match link(&library, &folder.join(name)) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    Ok(folder)
}

#[cfg(unix)]
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
#[cfg(not(unix))]
const NAMES: [&str; 1] = ["nvcuda.dll"];

/// Links the name to the library in the folder above. The link is relative, so that it also works
/// in a copy of the build folder.
#[cfg(unix)]
fn link(library: &Path, name: &Path) -> Result<()> {
    std::os::unix::fs::symlink(Path::new("..").join(library.file_name().unwrap_or_default()), name)
}

#[cfg(not(unix))]
fn link(library: &Path, name: &Path) -> Result<()> {
    std::fs::copy(library, name).map(|_| ())
}
