//! Tests written as text. Each file in `filetests/` holds IR, says what to do with it, and holds
//! the result:
//!
//! ```text
//! // What the test shows.
//! // run: fold, dce
//! kernel k = k for sm_61, block 32×1×1
//! …
//! ==== result
//! …
//! ```
//!
//! `run` lists passes by their names in the pipeline, or one of these:
//!
//! * `optimize`: all passes;
//! * `ptx`: all passes, and emission;
//! * `verify`: the verifier, whose findings are the result;
//! * `legal`: the check of what emission needs.
//!
//! The verifier accepts the IR before and after each pass. The error of a pass is also a result.
//! The IR in a file has the form in which the compiler prints it, which the test checks. `UPDATE=1`
//! rewrites the results.

use kernel_dsl_compiler::emit::emit;
use kernel_dsl_compiler::ir::Kernel;
use kernel_dsl_compiler::ir::verify::verify;
use kernel_dsl_compiler::passes::{Pass, legal, optimize, pipeline};
use std::fmt::Display;
use std::path::Path;

/// The line between the IR and the result.
const SEPARATOR: &str = "==== result\n";

/// Returns the text without comments and indentation.
pub fn plain(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the result of `run` for the IR, or the reason why the file is not a test.
fn result(run: &str, text: &str) -> Result<String, String> {
    let kernel: Kernel = text.parse().map_err(|fault| format!("{fault}"))?;
    if plain(&kernel.to_string()) != plain(text) {
        return Err(format!("the IR is not as it prints:\n{kernel}"));
    }
    let ended = |result: Result<String, String>| result.unwrap_or_else(|errors| errors);
    fn said(errors: impl Display) -> String {
        format!("{errors}\n")
    }
    if run == "verify" {
        return Ok(ended(verify(&kernel).map(|()| "accepted\n".to_string()).map_err(said)));
    }
    verify(&kernel).map_err(|errors| format!("the verifier refuses the IR: {errors}"))?;
    match run {
        "legal" => Ok(ended(legal(kernel).map(|_| "accepted\n".to_string()).map_err(said))),
        "optimize" => Ok(ended(optimize(kernel).map(|kernel| kernel.to_string()).map_err(said))),
        "ptx" => {
            let module = optimize(kernel).and_then(|kernel| emit(&kernel));
            Ok(ended(module.map(|module| module.to_string()).map_err(said)))
        }
        names => {
            let mut kernel = kernel;
            for name in names.split(", ") {
                let pass: Option<&Pass> = pipeline().find(|pass| pass.name == name);
                let pass = pass.ok_or_else(|| format!("there is no pass `{name}`"))?;
                if let Err(errors) = (pass.run)(&mut kernel) {
                    return Ok(said(errors));
                }
                verify(&kernel).map_err(|errors| format!("after `{name}`: {errors}\n{kernel}"))?;
            }
            Ok(kernel.to_string())
        }
    }
}

/// Runs the file at `path`; returns the errors.
fn check(path: &Path, update: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let (ir, expected) = text.split_once(SEPARATOR).unwrap_or((&text, ""));
    let run = ir.lines().find_map(|line| line.strip_prefix("// run: ")).ok_or("no line begins with `// run: `")?;
    let found = result(run.trim(), ir)?;
    if found == expected {
        return Ok(());
    }
    if update {
        return std::fs::write(path, format!("{ir}{SEPARATOR}{found}")).map_err(|e| e.to_string());
    }
    Err(format!("expected\n{expected}found\n{found}run with `UPDATE=1` to accept it"))
}

#[test]
fn filetests_have_the_accepted_results() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes/filetests");
    let update = std::env::var("UPDATE").is_ok_and(|v| v == "1");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "kir"));
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let wrong = paths.iter().filter_map(|path| Some(format!("{}: {}", name(path), check(path, update).err()?)));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_pass_has_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes/filetests");
    let texts = std::fs::read_dir(folder).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
    let runs: Vec<String> = texts.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect();
    let names = runs.iter().filter_map(|line| line.strip_prefix("// run: ")).flat_map(|names| names.split(", "));
    let named: Vec<&str> = names.collect();
    for pass in pipeline() {
        let found = named.contains(&pass.name);
        assert!(found, "`{}` needs a file in tests/passes/filetests whose `run` names it", pass.name);
    }
}
