//! rustc's verdict on many programs at once: each is a module of one crate.
//!
//! rustc stops after a phase with errors, so the programs without errors are compiled again, until
//! rustc accepts all that are left.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use syn::visit_mut::VisitMut;

/// The compiler of the host, with the crate whose items kernels use.
pub struct RustcWitness {
    rustc: PathBuf,
    library: PathBuf,
    dependencies: PathBuf,
    folder: PathBuf,
}

/// An error of rustc: its code, or nothing, and its message.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct RustcError {
    pub code: String,
    pub message: String,
}

impl RustcWitness {
    /// Uses the crate `kernel_dsl` that cargo built beside this executable. `folder` is for files
    /// of the compilation.
    ///
    /// # Errors
    /// A message, if there is no such crate, or if `folder` cannot be made.
    pub fn new(folder: &Path) -> Result<RustcWitness, String> {
        let this = env::current_exe().map_err(|e| format!("the path of this executable: {e}"))?;
        let beside = this.parent().unwrap_or(Path::new("."));
        let built = [beside.to_path_buf(), beside.join("deps")].into_iter().find(|folder| newest(folder).is_some());
        RustcWitness::with(&built.unwrap_or_else(|| beside.to_path_buf()), folder)
    }

    /// Uses the newest crate `kernel_dsl` in the folder `dependencies`.
    ///
    /// # Errors
    /// A message, if there is no such crate, or if `folder` cannot be made.
    pub fn with(dependencies: &Path, folder: &Path) -> Result<RustcWitness, String> {
        let library = newest(dependencies)
            .ok_or_else(|| format!("no libkernel_dsl in {}: build the crate `kernel-dsl`", dependencies.display()))?;
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let rustc = env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
        Ok(RustcWitness { rustc, library, dependencies: dependencies.to_path_buf(), folder: folder.to_path_buf() })
    }

    /// Returns rustc's first error for each program, `None` for a program that rustc accepts.
    ///
    /// # Errors
    /// A message, if rustc does not run, or reports an error outside all programs.
    pub fn errors(&self, programs: &[syn::File]) -> Result<Vec<Option<RustcError>>, String> {
        let texts: Vec<String> = programs.iter().map(text_for_rustc).collect();
        let mut verdicts: Vec<Option<RustcError>> = vec![None; texts.len()];
        loop {
            let left: Vec<usize> = (0..texts.len()).filter(|at| verdicts[*at].is_none()).collect();
            let found = self.compile(&left, &texts)?;
            if found.is_empty() {
                return Ok(verdicts);
            }
            for (at, error) in found {
                verdicts[at] = Some(error);
            }
        }
    }

    /// Compiles the programs with these indices. Returns the first error of each that has one.
    fn compile(&self, left: &[usize], texts: &[String]) -> Result<BTreeMap<usize, RustcError>, String> {
        let mut lines = vec!["#![allow(warnings)]".to_string()];
        for at in left {
            lines.push(format!("mod program_{at} {{ #[allow(unused)] use kernel_dsl::prelude::*; {} }}", texts[*at]));
        }
        let file = self.folder.join("programs.rs");
        fs::write(&file, lines.join("\n")).map_err(|e| format!("{}: {e}", file.display()))?;
        let run = Command::new(&self.rustc)
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--error-format=json", "--out-dir"])
            .arg(&self.folder)
            .arg(format!("--extern=kernel_dsl={}", self.library.display()))
            .arg(format!("-Ldependency={}", self.dependencies.display()))
            .arg(&file)
            .output()
            .map_err(|e| format!("{}: {e}", self.rustc.display()))?;
        let text = String::from_utf8_lossy(&run.stderr);
        let mut found = BTreeMap::new();
        let mut elsewhere = Vec::new();
        for diagnostic in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            if diagnostic["level"] != "error" {
                continue;
            }
            let error = RustcError {
                code: diagnostic["code"]["code"].as_str().unwrap_or_default().to_string(),
                message: diagnostic["message"].as_str().unwrap_or_default().to_string(),
            };
            let spans = diagnostic["spans"].as_array().map_or(&[][..], Vec::as_slice);
            let line = spans.iter().find(|s| s["is_primary"] == true).and_then(|s| line_in(s, &file));
            let line = line.or_else(|| spans.iter().find_map(|s| line_in(s, &file)));
            match line.and_then(|line| left.get(line.wrapping_sub(2))) {
                Some(at) => {
                    found.entry(*at).or_insert(error);
                }
                None => elsewhere.push(error.message),
            }
        }
        match found.is_empty() && !run.status.success() {
            true => Err(format!("rustc fails outside the programs: {}", elsewhere.join("; "))),
            false => Ok(found),
        }
    }
}

/// Returns the line of a span, or of the macro call that it expands from, in `file`.
fn line_in(span: &Value, file: &Path) -> Option<usize> {
    if span["file_name"].as_str().map(Path::new) == Some(file) {
        return Some(span["line_start"].as_u64()? as usize);
    }
    match &span["expansion"] {
        Value::Object(expansion) => line_in(expansion.get("span")?, file),
        _ => None,
    }
}

/// Returns the newest build of `kernel_dsl` in a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let libraries = fs::read_dir(folder).ok()?.flatten().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libkernel_dsl-") && name.ends_with(".rlib")
    });
    libraries.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok()).map(|entry| entry.path())
}

/// Returns the text of a program in one line, without the attributes of the DSL.
fn text_for_rustc(program: &syn::File) -> String {
    let mut program = program.clone();
    WithoutAttributes.visit_file_mut(&mut program);
    let text = quote::ToTokens::to_token_stream(&program).to_string();
    text.replace('\n', " ")
}

struct WithoutAttributes;

impl VisitMut for WithoutAttributes {
    fn visit_attributes_mut(&mut self, attributes: &mut Vec<syn::Attribute>) {
        let own = |a: &syn::Attribute| {
            let last = a.path().segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
            ["kernel", "device", "requires", "doc"].contains(&last.as_str())
        };
        attributes.retain(|a| !own(a));
    }
}
