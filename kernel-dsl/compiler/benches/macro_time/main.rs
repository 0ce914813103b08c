//! Expansion time of each declared instance of kernels-rs, in milliseconds. Run it with
//! `cargo bench -p kernel-dsl-compiler --features frontend --bench macro_time [-- --json]`.
//!
//! The tokens come from proc-macro2's own lexer; inside rustc each token access is slower.

mod measure;
#[path = "../../tests/frontend/support.rs"]
mod support;

use measure::Times;
use std::error::Error;
use std::process::Command;

/// The option that prints the times of this build as JSON.
const TIMES: &str = "--times";

/// The time limit of an instance in an optimized build.
const AIM: f64 = 2.0;

fn main() -> Result<(), Box<dyn Error>> {
    let has = |option: &str| std::env::args().any(|a| a == option);
    if has(TIMES) {
        println!("{}", serde_json::to_string(&measure::all())?);
        return Ok(());
    }
    let optimized = measure::all();
    let unoptimized = unoptimized()?;
    if has("--json") {
        println!("{}", serde_json::to_string_pretty(&json(&optimized, &unoptimized))?);
        return Ok(());
    }
    println!("milliseconds an instance, medians; parse, syntax and check are done once a kernel\n");
    println!(
        "{:18} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>13}",
        "", "front", "lower", "analyses", "passes", "emit", "total", "unoptimized"
    );
    for (fast, slow) in optimized.iter().zip(&unoptimized) {
        let Times { instance, front, lower, analyses, passes, emit, total } = fast;
        println!(
            "{instance:18} {front:8.3} {lower:8.3} {analyses:8.3} {passes:8.3} {emit:8.3} {total:8.3} {:13.3}{}",
            slow.total,
            if *total > AIM { "  above the aim of 2 ms" } else { "" }
        );
    }
    Ok(())
}

fn json(optimized: &[Times], unoptimized: &[Times]) -> Vec<serde_json::Value> {
    let pair = |(fast, slow): (&Times, &Times)| serde_json::json!({ "instance": fast.instance, "optimized_ms": fast, "unoptimized_ms": slow });
    optimized.iter().zip(unoptimized).map(pair).collect()
}

/// Runs the same program built as cargo builds macros by default.
fn unoptimized() -> Result<Vec<Times>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = Command::new(cargo)
        .args(["bench", "--quiet", "--profile", "dev", "--features", "frontend", "--bench", "macro_time"])
        .args(["--manifest-path", manifest, "--", TIMES])
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
