//! NVIDIA's assembler, which nothing here needs; tests and reports use it where it is found.

use kernel_dsl::compiler::Target;
use serde::Serialize;
use std::env;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where what is written is lost.
const NOWHERE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// A ptxas that was found.
#[derive(Serialize)]
pub struct Ptxas {
    /// Where it is.
    pub path: PathBuf,
    /// Such as `12.9`; `None` where it does not say.
    pub release: Option<String>,
}

impl Ptxas {
    /// The first on PATH, or what `tests/get-ptxas` fetches to `target/tools`, that knows sm_61; else the first.
    pub fn find() -> Option<Ptxas> {
        let path = env::var_os("PATH").unwrap_or_default();
        let here = env::current_dir().unwrap_or_default();
        let of_workspaces = here.ancestors().map(|folder| folder.join("target/tools"));
        let file = format!("ptxas{}", env::consts::EXE_SUFFIX);
        let files = env::split_paths(&path).chain(of_workspaces).map(|folder| folder.join(&file));
        let mut found: Vec<Ptxas> = Vec::new();
        for path in files.filter(|p| p.is_file()) {
            let said = Command::new(&path).arg("--version").output().ok();
            let release = said.and_then(|output| release(&String::from_utf8_lossy(&output.stdout)));
            let ptxas = Ptxas { path, release };
            if ptxas.takes_sm_61() {
                return Some(ptxas);
            }
            found.push(ptxas);
        }
        (!found.is_empty()).then(|| found.swap_remove(0))
    }

    /// Whether it knows sm_61: CUDA 13 has dropped it.
    pub fn takes_sm_61(&self) -> bool {
        let major = self.release.as_deref().and_then(|release| release.split('.').next()?.parse::<u32>().ok());
        major.is_none_or(|major| major < 13)
    }

    /// Assembles PTX for sm_61; what it has to say if it cannot.
    pub fn assemble(&self, ptx: &str) -> Result<(), String> {
        let mut command = Command::new(&self.path);
        command.arg(format!("-arch={}", Target::SM_61)).args(["-o", NOWHERE, "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot run {}: {e}", self.path.display()))?;
        if let Some(mut input) = child.stdin.take() {
            // Where it stops reading early, it says why.
            let _ = input.write_all(ptx.as_bytes());
        }
        let output = child.wait_with_output().map_err(|e| format!("{}: {e}", self.path.display()))?;
        if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_string()) }
    }
}

impl fmt::Display for Ptxas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptxas {}", self.release.as_deref().unwrap_or("of unknown release"))
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
