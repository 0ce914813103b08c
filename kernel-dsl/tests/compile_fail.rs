//! Compile errors as a user sees them: whole programs, compiled with the macros and rustc.
//!
//! `compile_fail/*.rs` are the programs, and `compile_fail/expected/*.stderr` the complete
//! messages. The macros' own messages are compared as a whole. The messages of rustc differ between
//! versions and installed components, so only their code and location are compared: the macros must
//! make rustc report an error once, at the right token.
//!
//! `MESSAGES=overwrite cargo test -p kernel-dsl --test compile_fail` rewrites the expected
//! messages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names that occur only in expanded code.
const GENERATED: [&str; 8] =
    ["__", "size_of_body", "Axis", "macro_rules", "quote", "{closure", "panic!", "internal compiler error"];

/// How the lines begin that rustc prints after the last error.
const SUMMARIES: [&str; 4] =
    ["error: aborting due to", "Some errors have detailed", "For more information about", "error: could not compile"];

/// Splits rustc's output into errors and warnings, which start at the margin.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("error") || line.starts_with("warning") {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(line.trim_end());
            part.push('\n');
        }
    }
    parts.iter().map(|p| p.trim_end().to_string()).collect()
}

/// Returns the location of an error: `file.rs:7:12`.
fn place(part: &str) -> &str {
    part.lines().find_map(|l| l.trim_start().strip_prefix("--> ")).unwrap_or("nowhere")
}

/// Returns the part of an error that is compared.
fn essence(part: &str) -> String {
    let head = part.lines().next().unwrap_or("");
    match head.strip_prefix("error[E0080]: evaluation panicked: ") {
        Some(own) => format!("{}: {own}", place(part)),
        None if head.starts_with("error[") => format!("{}: {}", place(part), head.split(':').next().unwrap_or("")),
        // For a lint, rustc also reports what set its level and suggests a replacement.
        None if head.starts_with("error: unused ") => format!("{}: {head}", place(part)),
        None if head.contains("cannot find macro") => format!("{}: no such macro", place(part)),
        None => part.to_string(),
    }
}

fn errors(text: &str) -> Vec<String> {
    let mut all: Vec<_> = parts(text).iter().filter(|p| p.starts_with("error")).map(|p| essence(p)).collect();
    all.sort();
    all
}

/// Returns the faults that any message of a case must not have.
fn faults(case: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    // Lines that quote the user's program start with their number; other lines only mark a
    // location.
    let quotes = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let draws = |line: &str| line.chars().all(|c| " |_^".contains(c));
    // Names of the user's program are not generated: `__syncthreads`.
    let program: String = text.lines().filter(|line| quotes(line)).collect();
    let names = program.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    let own: Vec<_> = names.filter(|name| name.starts_with("__")).collect();
    for line in text.lines().filter(|line| !quotes(line) && !draws(line)) {
        let line = own.iter().fold(line.to_string(), |line, name| line.replace(name, ""));
        let shown = GENERATED.iter().filter(|word| line.contains(**word));
        faults.extend(shown.map(|word| format!("{case}: `{word}` shows in: {line}")));
    }
    let all = parts(text);
    let errors: Vec<_> = all.iter().filter(|p| p.starts_with("error")).collect();
    for (i, error) in errors.iter().enumerate() {
        // A missing clause name is reported at the kernel's name, in addition to another error of
        // the same kernel.
        let same = |other: &&&String| place(other) == place(error) && !error.contains("missing clause");
        if errors[..i].iter().any(|other| same(&other)) {
            faults.push(format!("{case}: two errors at {}", place(error)));
        }
    }
    if errors.is_empty() {
        faults.push(format!("{case}: no error"));
    }
    faults
}

/// Compiles the cases against the crate as cargo built it for this test, and returns their messages
/// by case name.
fn messages(folder: &Path) -> BTreeMap<String, String> {
    let this = std::env::current_exe().expect("this test's path");
    let dependencies = this.parent().expect("the folder of built crates");
    let crate_file = newest(dependencies, "libkernel_dsl-");
    let cases = sources(folder);
    let next = AtomicUsize::new(0);
    let compiled = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = compile(case, dependencies, &crate_file);
                    compiled.lock().expect("no thread panics with the lock").insert(name(case), text);
                }
            });
        }
    });
    compiled.into_inner().expect("no thread panics with the lock")
}

/// Returns the library that cargo built last. This test depends on it, because cargo builds the
/// dependencies of a test before it runs the test.
fn newest(folder: &Path, prefix: &str) -> PathBuf {
    let libraries = fs::read_dir(folder).expect("the folder of built crates").flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(prefix) && name.ends_with(".rlib")
    });
    let built = |entry: &fs::DirEntry| entry.metadata().and_then(|m| m.modified()).expect("a time of modification");
    libraries.max_by_key(built).map(|entry| entry.path()).expect("the library that this test depends on")
}

/// Returns what rustc prints for a program, as cargo shows it, with paths relative to the package.
fn compile(case: &Path, dependencies: &Path, crate_file: &Path) -> String {
    // Cargo runs rustc here, so that rustc finds the sources that its messages quote.
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace of this package");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let run = Command::new(rustc)
        .current_dir(workspace)
        .args(["--edition=2024", "--crate-type=bin", "--emit=metadata", "--out-dir", env!("CARGO_TARGET_TMPDIR")])
        .arg(format!("--extern=kernel_dsl={}", crate_file.display()))
        .arg(format!("-Ldependency={}", dependencies.display()))
        .arg(case.strip_prefix(workspace).expect("a case of this workspace"))
        .output()
        .expect("rustc runs");
    let text = String::from_utf8_lossy(&run.stderr).replace("kernel-dsl/", "");
    // Cargo shows a message once that rustc repeats.
    let mut shown: Vec<String> = Vec::new();
    for part in parts(&text) {
        let part = without_moving_lines(&part).trim_end().to_string();
        if !part.is_empty() && !shown.contains(&part) {
            shown.push(part);
        }
    }
    shown.iter().map(|part| format!("{part}\n")).collect::<Vec<_>>().join("\n")
}

/// Returns a message without its last lines, and without the numbers of lines of the library's own
/// source: these move with each change there.
fn without_moving_lines(part: &str) -> String {
    let mut in_library = false;
    let offers = |line: &&str| !SUMMARIES.iter().any(|start| line.starts_with(start));
    let lines = part.lines().filter(offers).map(|line| {
        let location = line.trim_start();
        if location.starts_with("--> ") || location.starts_with("::: ") {
            in_library = location[4..].starts_with("src/");
            let end = line.find(':').filter(|_| in_library && location.starts_with("-->"));
            return line[..end.unwrap_or(line.len())].to_string();
        }
        match line.split_once('|') {
            Some((number, code)) if in_library && number.trim().parse::<u32>().is_ok() => {
                format!("{}|{code}", " ".repeat(number.len()))
            }
            _ => line.to_string(),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<_> = fs::read_dir(folder).expect("the cases").flatten().map(|e| e.path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "rs"));
    all.sort();
    all
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

#[test]
fn wrong_kernels_have_the_expected_errors() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compile_fail");
    let said = messages(&folder);
    let mut wrong = Vec::new();
    for case in sources(&folder) {
        let name = name(&case);
        let Some(text) = said.get(&name) else {
            wrong.push(format!("{name}: nothing was said"));
            continue;
        };
        wrong.extend(faults(&name, text));
        let expected = folder.join("expected").join(format!("{name}.stderr"));
        if std::env::var("MESSAGES").is_ok_and(|m| m == "overwrite") {
            fs::create_dir_all(folder.join("expected")).expect("a folder for what is expected");
            fs::write(&expected, text).expect("what is expected");
        }
        let before = fs::read_to_string(&expected).unwrap_or_default();
        if errors(&before) != errors(text) {
            wrong.push(format!("{name}: expected\n\n{before}\nbut rustc says\n\n{text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_expectation_has_its_case() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("compile_fail");
    for expected in fs::read_dir(folder.join("expected")).expect("what is expected").flatten() {
        let name = name(&expected.path());
        assert!(folder.join(format!("{name}.rs")).exists(), "`{name}` is expected and has no case");
    }
}
