//! Bugs of the zoo that do not compile: `kernel-dsl/compile_fail/zoo_*.rs`.
//!
//! The marks there are compared with the errors that `kernel-dsl/tests/compile_fail.rs` records.
//! The corrected twins in these files compile, so an error in a twin would be reported.

use std::fs;
use std::path::Path;

/// A kernel that the compiler rejects.
#[derive(Debug)]
pub struct Refused {
    pub name: String,
    /// The line of documentation above the kernel.
    pub title: String,
    pub class: String,
    /// The marked line.
    pub line: String,
    /// The code of the error at that line, or `None` if there is no error.
    pub code: Option<String>,
}

/// Returns all rejected kernels, in the order of files and lines.
pub fn all() -> Vec<Refused> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-dsl/compile_fail");
    let files = fs::read_dir(&folder).expect("the cases").flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| name(path).starts_with("zoo_") && path.is_file()).collect();
    files.sort();
    files.iter().flat_map(|file| of(&folder, file)).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn of(folder: &Path, file: &Path) -> Vec<Refused> {
    let text = fs::read_to_string(file).expect("the case is readable text");
    let said = folder.join("expected").join(format!("{}.stderr", name(file)));
    let said = fs::read_to_string(said).unwrap_or_default();
    let (mut title, mut kernel, mut all) = (String::new(), String::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        if let Some(docs) = line.strip_prefix("/// ") {
            title = docs.to_string();
        }
        if let Some((kernel_name, _)) = line.strip_prefix("pub fn ").and_then(|rest| rest.split_once('(')) {
            kernel = kernel_name.to_string();
        }
        let Some((code, class)) = line.split_once("//~") else { continue };
        all.push(Refused {
            name: kernel.clone(),
            title: title.clone(),
            class: class.trim().to_string(),
            line: code.trim().to_string(),
            code: error_at(&said, i + 1),
        });
    }
    all
}

/// Returns the code of the error at a line.
fn error_at(said: &str, line: usize) -> Option<String> {
    let mut code = None;
    for text in said.lines() {
        if text.starts_with("error") || text.starts_with("warning") {
            code = text.strip_prefix("error[").and_then(|rest| rest.split_once(']')).map(|(code, _)| code.to_string());
        }
        if let Some(place) = text.trim_start().strip_prefix("--> ")
            && place.split(':').nth(1) == Some(&line.to_string())
            && code.is_some()
        {
            return code;
        }
    }
    None
}
