//! Passes to the compiler what only cargo knows: how the compiler itself is compiled.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let variable = |name| std::env::var(name).unwrap_or_default();
    // The profile of the library, not of this script.
    println!("cargo::rustc-env=KERNEL_DSL_OPT_LEVEL={}", variable("OPT_LEVEL"));
    // In builds for development, the compiler verifies the IR after every pass.
    println!("cargo::rustc-check-cfg=cfg(verified)");
    if variable("PROFILE") == "debug" {
        println!("cargo::rustc-cfg=verified");
    }
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    println!("cargo::rustc-env=KERNEL_DSL_RUSTC={}", version.trim());
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=KERNEL_DSL_SOURCE={:016x}", hash_of_sources());
}

/// Returns a hash of the compiler's own source, so that results of another compiler are not reused.
fn hash_of_sources() -> u64 {
    let mut files = Vec::new();
    list(Path::new("src"), &mut files);
    files.sort();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for file in files {
        let content = std::fs::read(&file).unwrap_or_default();
        for byte in file.to_string_lossy().bytes().chain(content) {
            // FNV-1a.
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    hash
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { list(&path, files) } else { files.push(path) }
    }
}
