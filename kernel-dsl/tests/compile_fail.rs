//! What a user sees of a wrong kernel: whole programs through the macros and rustc, and what comes out of it.
//!
//! `compile_fail/*.rs` are the programs, `compile_fail/expected/*.stderr` every word that is said of each.
//! Our own messages are compared whole. Of rustc's, which differ from version to version and with the components that
//! are installed, the code and the place are: that they stand at the token, once, is ours to see to.
//!
//! `MESSAGES=overwrite cargo test -p kernel-dsl --test compile_fail` writes the expected messages anew.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What only expansions contain.
const GENERATED: [&str; 8] =
    ["__", "size_of_body", "Axis", "macro_rules", "quote", "{closure", "panic!", "internal compiler error"];

/// The parts of rustc's output that start at the margin: errors and warnings.
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

/// `file.rs:7:12`
fn place(part: &str) -> &str {
    part.lines().find_map(|l| l.trim_start().strip_prefix("--> ")).unwrap_or("nowhere")
}

/// What counts of an error.
fn essence(part: &str) -> String {
    let head = part.lines().next().unwrap_or("");
    match head.strip_prefix("error[E0080]: evaluation panicked: ") {
        Some(own) => format!("{}: {own}", place(part)),
        None if head.starts_with("error[") => format!("{}: {}", place(part), head.split(':').next().unwrap_or("")),
        // Of a lint rustc also says what set its level, and what one could write.
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

/// What is wrong with the messages of a case, whatever they are.
fn faults(case: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    // Lines that quote the user's program start with their number; some only draw where it is meant.
    let quotes = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let draws = |line: &str| line.chars().all(|c| " |_^".contains(c));
    for line in text.lines().filter(|line| !quotes(line) && !draws(line)) {
        let shown = GENERATED.iter().filter(|word| line.contains(**word));
        faults.extend(shown.map(|word| format!("{case}: `{word}` shows in: {line}")));
    }
    let all = parts(text);
    let errors: Vec<_> = all.iter().filter(|p| p.starts_with("error")).collect();
    for (i, error) in errors.iter().enumerate() {
        // A missing name of a clause is told beside another of the same kernel, at the kernel's name.
        let same = |other: &&&String| place(other) == place(error) && !error.contains("the kernel does not say");
        if errors[..i].iter().any(|other| same(&other)) {
            faults.push(format!("{case}: two errors at {}", place(error)));
        }
    }
    if errors.is_empty() {
        faults.push(format!("{case}: no error"));
    }
    faults
}

/// Compiles the cases; what is said of each, by its name.
fn messages(folder: &Path) -> BTreeMap<String, String> {
    // trybuild compares with a file beside the case. Where there is none, it puts what was said into this folder, and
    // fails; so it does that in a process of its own.
    let said = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("wip");
    let _ = fs::remove_dir_all(&said);
    let this = std::env::current_exe().expect("this test's path");
    let run = Command::new(this)
        .args(["--exact", "cases", "--ignored", "--nocapture"])
        .env_remove("TRYBUILD")
        .output()
        .expect("this test runs again");
    let mut all = BTreeMap::new();
    for case in sources(folder) {
        let name = name(&case);
        if let Ok(text) = fs::read_to_string(said.join(format!("{name}.stderr"))) {
            all.insert(name, text);
        }
    }
    let _ = fs::remove_dir_all(&said);
    assert!(!all.is_empty(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    all
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
#[ignore = "`wrong_kernels` runs it, and reads what it leaves"]
fn cases() {
    trybuild::TestCases::new().compile_fail("compile_fail/*.rs");
}

#[test]
fn wrong_kernels() {
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
