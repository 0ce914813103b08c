//! The assembler as a witness, if one that supports sm_61 is installed.

#[allow(dead_code, reason = "not every test changes texts")]
pub mod mutate;

use std::env;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the first ptxas on PATH, or in `target/tools`, from before CUDA 13, which dropped sm_61.
fn ptxas() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let knows_sm_61 = |path: &PathBuf| {
        let said = Command::new(path).arg("--version").output().map(|o| o.stdout).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let release = said.split_once("release ").and_then(|(_, rest)| rest.split('.').next()?.parse::<u32>().ok());
        release.is_some_and(|major| major < 13)
    };
    let find = || {
        let path = env::var_os("PATH").unwrap_or_default();
        let here = env::current_dir().unwrap_or_default();
        let of_workspaces = here.ancestors().map(|folder| folder.join("target/tools"));
        env::split_paths(&path).chain(of_workspaces).map(|folder| folder.join("ptxas")).find(knows_sm_61)
    };
    FOUND.get_or_init(find).as_ref()
}

/// Returns whether a ptxas that supports sm_61 is installed; prints a notice if not.
pub fn installed() -> bool {
    let found = ptxas().is_some();
    if !found {
        println!("note: no ptxas that knows sm_61, and nothing was assembled; `tests/get-ptxas` fetches one");
    }
    found
}

/// Returns the errors of `ptxas -arch=sm_{sm}` for `text`.
pub fn assemble(text: &str, sm: u16) -> Result<(), String> {
    assembled(text, sm).map(|_| ())
}

/// Returns the output of `ptxas -arch=sm_{sm}` for `text`, or its errors. Functions may be left
/// undefined.
pub fn assembled(text: &str, sm: u16) -> Result<Vec<u8>, String> {
    run(text, sm, &["-c"])
}

/// Returns the output of `ptxas` for a whole program for sm_61, or its errors.
#[allow(dead_code, reason = "not every test assembles whole programs")]
pub fn assembled_whole(text: &str) -> Result<Vec<u8>, String> {
    run(text, 61, &[])
}

fn run(text: &str, sm: u16, options: &[&str]) -> Result<Vec<u8>, String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("kernel-dsl-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let [from, to] = ["ptx", "cubin"].map(|e| env::temp_dir().join(format!("{name}.{e}")));
    std::fs::write(&from, text).expect("the temporary directory takes a file");
    let ptxas = ptxas().expect("the caller checks first that it is installed");
    let run = Command::new(ptxas).arg(format!("-arch=sm_{sm}")).args(options).arg(&from).arg("-o").arg(&to).output();
    let made = std::fs::read(&to);
    let _ = (std::fs::remove_file(&from), std::fs::remove_file(&to));
    let run = run.expect("ptxas runs");
    if run.status.success() {
        Ok(made.expect("ptxas wrote it"))
    } else {
        Err(String::from_utf8_lossy(&run.stderr).into_owned())
    }
}
