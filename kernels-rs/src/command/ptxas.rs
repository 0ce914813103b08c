//! NVIDIA's assembler, which nothing here needs; tests and reports use it where it is found.

use serde::Serialize;
use std::env;
use std::path::PathBuf;
use std::process::Command;

/// A ptxas that was found.
#[derive(Serialize)]
pub(super) struct Ptxas {
    pub(super) path: PathBuf,
    /// Such as `12.9`; `None` where it does not say.
    pub(super) release: Option<String>,
}

impl Ptxas {
    /// The first on PATH, else the one that `tests/get-ptxas` fetches to `target/tools`.
    pub(super) fn find() -> Option<Ptxas> {
        let path = env::var_os("PATH").unwrap_or_default();
        let here = env::current_dir().unwrap_or_default();
        let of_workspaces = here.ancestors().map(|folder| folder.join("target/tools"));
        let file = format!("ptxas{}", env::consts::EXE_SUFFIX);
        let path =
            env::split_paths(&path).chain(of_workspaces).map(|folder| folder.join(&file)).find(|p| p.is_file())?;
        let said = Command::new(&path).arg("--version").output().ok();
        let release = said.and_then(|output| release(&String::from_utf8_lossy(&output.stdout)));
        Some(Ptxas { path, release })
    }
}

/// The release in what `ptxas --version` prints.
fn release(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("release ")?;
    rest.split([',', '\n']).next().map(str::to_string)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_release_is_read() {
        // As ptxas of CUDA 12.9 prints it.
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCopyright (c) 2005-2025 NVIDIA Corporation\n\
            Built on Tue_May_27_02:19:38_PDT_2025\nCuda compilation tools, release 12.9, V12.9.86\n";
        assert_eq!(super::release(text).as_deref(), Some("12.9"));
        assert_eq!(super::release("nonsense"), None);
    }
}
