//! Lint of the project's English: comments, documentation, messages and pages.
//!
//! `cargo run -p words` reads the sources, pages, settings, lists and scripts that git tracks, or
//! the given paths. The lint prints each violation with its file, line, rule and replacement. In Rust
//! the lint also checks the spelling of identifiers. The exit code is 1 if a violation is found.
//! `--summary` prints one line a folder instead.

mod extract;
mod rules;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let (options, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|a| a.starts_with("--"));
    if let Some(unknown) = options.iter().find(|option| *option != "--summary") {
        eprintln!("unknown option `{unknown}`; usage: words [--summary] [PATH…]");
        return ExitCode::from(2);
    }
    let files = match tracked(&paths) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !rules::is_exempt(file)) {
        match std::fs::read_to_string(file) {
            Ok(text) => {
                found.extend(rules::check(file, &extract::passages(file, &text)));
                if file.ends_with(".rs") {
                    found.extend(rules::check_identifiers(file, &text));
                }
            }
            Err(error) => {
                eprintln!("cannot read {file}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    if !options.is_empty() {
        summarize(&found);
    } else {
        found.iter().for_each(|violation| println!("{violation}"));
    }
    println!("{} files, {} violations", files.len(), found.len());
    if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The extensions of files that the lint reads. `.in` files are templates.
const EXTENSIONS: [&str; 15] =
    ["rs", "md", "toml", "py", "pyi", "kir", "js", "mjs", "in", "cu", "c", "css", "html", "yml", "txt"];

/// Lists the files with these extensions, and the scripts, that git tracks under `paths` or under
/// the current folder.
fn tracked(paths: &[String]) -> Result<Vec<String>, String> {
    let output = Command::new("git").arg("ls-files").arg("--").args(paths).output();
    let output = output.map_err(|error| format!("cannot run `git ls-files`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`git ls-files` failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let listing = String::from_utf8_lossy(&output.stdout);
    let readable = |file: &&str| match Path::new(file).extension() {
        Some(extension) => EXTENSIONS.iter().any(|known| extension == *known),
        None => std::fs::read(file).is_ok_and(|bytes| bytes.starts_with(b"#!")),
    };
    Ok(listing.lines().filter(readable).filter(|file| Path::new(file).exists()).map(str::to_owned).collect())
}

/// Prints the number of violations of each folder, and of each rule.
fn summarize(found: &[rules::Violation]) {
    let mut folders = BTreeMap::<&str, usize>::new();
    let mut rules = BTreeMap::<String, usize>::new();
    for violation in found {
        *folders.entry(violation.folder()).or_default() += 1;
        *rules.entry(violation.rule_name()).or_default() += 1;
    }
    folders.iter().for_each(|(folder, count)| println!("{count:6}  {folder}"));
    println!();
    rules.iter().for_each(|(rule, count)| println!("{count:6}  {rule}"));
}
