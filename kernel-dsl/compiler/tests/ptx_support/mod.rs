//! The assembler as a witness, where it is installed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Whether `ptxas` is on the path; says so where it is not.
pub fn installed() -> bool {
    let found = Command::new("ptxas").arg("--version").output().is_ok();
    if !found {
        println!("note: ptxas is not on PATH; nothing was assembled");
    }
    found
}

/// What `ptxas -arch=sm_{sm}` says against `text`.
pub fn assemble(text: &str, sm: u16) -> Result<(), String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("kernel-dsl-{}-{}.ptx", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&path, text).expect("the temporary directory takes a file");
    let run = Command::new("ptxas").arg(format!("-arch=sm_{sm}")).arg(&path).args(["-o", "/dev/null"]).output();
    let _ = std::fs::remove_file(&path);
    let run = run.expect("ptxas runs");
    if run.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&run.stderr).into_owned()) }
}
