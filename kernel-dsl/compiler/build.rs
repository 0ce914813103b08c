//! Hands `Build::THIS` what only cargo knows: how the compiler itself is being compiled.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC");
    let variable = |name| std::env::var(name).unwrap_or_default();
    // Of the profile that the library is compiled with, not of this script's.
    println!("cargo::rustc-env=KERNEL_DSL_OPT_LEVEL={}", variable("OPT_LEVEL"));
    let version = Command::new(variable("RUSTC")).arg("--version").output();
    let version = version.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    println!("cargo::rustc-env=KERNEL_DSL_RUSTC={}", version.trim());
}
