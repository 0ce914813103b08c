//! The folder that has the library under the driver's name, and the environment variables with
//! which programs find this folder.

use crate::stand_ins::tools;
use std::env;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX, EXE_SUFFIX};
use std::ffi::{OsStr, OsString};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

/// The environment variable of the library search path.
pub const LIBRARY_PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

/// The library of the driver.
const DRIVER: &str = "cuda_on_cpu";

/// The library that the dynamic linker loads before a program.
const PRELOAD: &str = "cuda_on_cpu_preload";

/// Returns the folder, beside the executable, that holds the library under the names that programs
/// load. Creates the folder if it does not exist.
pub fn folder() -> Result<PathBuf> {
    let library = find(DRIVER)?;
    let folder = library.parent().unwrap_or(Path::new(".")).join("cuda-on-cpu.names");
    std::fs::create_dir_all(&folder)?;
    for name in NAMES {
        link(&library, &folder.join(name))?;
    }
    if cfg!(target_os = "linux") {
        for krate in [PRELOAD, "cuda_on_cpu_nvjitlink", "cuda_on_cpu_nvrtc"] {
            // Without these libraries, programs still find the driver.
            if let Ok(library) = find(krate) {
                link(&library, &folder.join(library.file_name().unwrap_or_default()))?;
            }
        }
    }
    Ok(folder)
}

/// Returns the variables with which a program finds the library of that folder, and the stand-ins.
pub fn environment(folder: &Path) -> Vec<(&'static str, OsString)> {
    let mut variables = vec![(LIBRARY_PATH, prepend(folder, LIBRARY_PATH))];
    let name = format!("{DLL_PREFIX}{PRELOAD}{DLL_SUFFIX}");
    let path = folder.join(&name);
    if cfg!(target_os = "linux") && path.exists() {
        // A space or a colon ends an entry of the list. The search path leads to a bare name.
        let ends = |byte: &u8| byte.is_ascii_whitespace() || *byte == b':';
        let is_bare = path.as_os_str().as_encoded_bytes().iter().any(ends);
        let mut list = if is_bare { OsString::from(name) } else { path.into_os_string() };
        if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            list.push(":");
            list.push(others);
        }
        variables.push(("LD_PRELOAD", list));
    }
    variables
}

/// Returns the search path `PATH` with the stand-ins of compilers first. Each is a link to
/// `program`, which is `cuda-on-cpu`.
pub fn compilers(folder: &Path, program: &Path) -> Result<OsString> {
    let compilers = folder.join("bin");
    std::fs::create_dir_all(&compilers)?;
    for name in tools::NAMES {
        place(program, &compilers.join(format!("{name}{EXE_SUFFIX}")))?;
    }
    Ok(prepend(&compilers, "PATH"))
}

/// Returns the list of folders of a variable with `folder` prepended.
fn prepend(folder: &Path, variable: &str) -> OsString {
    let others = env::var_os(variable).unwrap_or_default();
    let others = env::split_paths(&others).filter(|path| !path.as_os_str().is_empty() && path != folder);
    let folders: Vec<PathBuf> = [folder.to_path_buf()].into_iter().chain(others).collect();
    env::join_paths(folders).unwrap_or_else(|_| env::var_os(variable).unwrap_or_default())
}

/// Returns the path of a crate's library. cargo puts the library of this crate beside the
/// executable. Libraries of other crates are up to date in `deps` only.
fn find(krate: &str) -> Result<PathBuf> {
    let program = env::current_exe()?.canonicalize()?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let name = format!("{DLL_PREFIX}{krate}{DLL_SUFFIX}");
    // Tests run in `deps`, and examples in a folder beside it.
    let mut places = [beside.join(&name), beside.join("deps").join(&name), beside.join("../deps").join(&name)];
    if krate != DRIVER {
        places.rotate_left(1);
    }
    let missing = || Error::new(ErrorKind::NotFound, format!("{name} is not in the folder of {}", program.display()));
    places.iter().find(|place| place.exists()).ok_or_else(missing)?.canonicalize()
}

/// The names of the driver.
#[cfg(unix)]
const NAMES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];
#[cfg(not(unix))]
const NAMES: [&str; 1] = ["nvcuda.dll"];

/// Links the name to the library. The link is relative, so that it also works in a copy of the
/// build folder.
fn link(library: &Path, name: &Path) -> Result<()> {
    let above = name.parent().and_then(Path::parent);
    match above.and_then(|above| library.strip_prefix(above).ok()) {
        Some(relative) if cfg!(unix) => place(&Path::new("..").join(relative), name),
        _ => place(library, name),
    }
}

/// Creates `name` as a link to `target`, or as a copy where links are impossible, unless it exists.
fn place(target: &Path, name: &Path) -> Result<()> {
    #[cfg(unix)]
    let made = std::os::unix::fs::symlink(target, name);
    #[cfg(not(unix))]
    let made = std::fs::copy(target, name).map(|_| ());
    match made {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
        _ => Ok(()),
    }
}

/// Returns the name of the program without its folder and suffix.
pub fn program_name(argument: &OsStr) -> &OsStr {
    Path::new(argument).file_stem().unwrap_or_default()
}
