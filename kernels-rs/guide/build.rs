//! Prepares the chapters for rustdoc: pictures are inserted, and each block of Rust gets the hidden
//! lines that make it a test. The chapters themselves read well without rustdoc.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=chapters");
    println!("cargo::rerun-if-changed=pictures");
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    for chapter in fs::read_dir("chapters")? {
        let path = chapter?.path();
        let name = path.file_name().unwrap_or_default();
        fs::write(Path::new(&out).join(name), prepared(&path)?)?;
    }
    Ok(())
}

/// Returns the text of a chapter for rustdoc.
fn prepared(path: &Path) -> io::Result<String> {
    // `03_memory.md` belongs to module `memory`.
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let module = stem.split_once('_').map_or("", |(_, module)| module);
    let mut text = String::new();
    let chapter = fs::read_to_string(path)?;
    let mut lines = chapter.lines();
    while let Some(line) = lines.next() {
        if let Some((_, file)) = line.strip_prefix("![").and_then(|rest| rest.split_once("](../")) {
            // A picture that the test has not drawn yet is left out.
            let drawn = fs::read_to_string(file.trim_end_matches(')')).unwrap_or_default();
            text += &format!("<figure>\n{}\n</figure>\n", drawn.trim_end());
            continue;
        }
        text += &format!("{line}\n");
        if line.starts_with("```rust") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            text += &tested(&body.join("\n"), module);
        }
    }
    // Links between chapters are links between modules.
    Ok(linked(&text))
}

/// Returns a block of Rust with the hidden lines of a test, and its closing fence.
fn tested(body: &str, module: &str) -> String {
    // A block that declares device functions would see them twice, since the module has them too.
    let items = if body.contains("#[device]") { String::new() } else { format!("# use guide::{module}::*;\n") };
    format!(
        "# use kernel_dsl::prelude::*;\n# use runtime::Device;\n# use runtime::testing::{{self, Expected}};\n\
         {items}{body}\n# fn main() {{}}\n```\n"
    )
}

/// Replaces links to files of chapters by links to their modules.
fn linked(text: &str) -> String {
    let mut parts = text.split("](");
    let mut linked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let chapter = part.split_once(".md)").filter(|(file, _)| file.starts_with(|c: char| c.is_ascii_digit()));
        match chapter.and_then(|(file, rest)| Some((file.split_once('_')?.1, rest))) {
            Some((module, rest)) => linked += &format!("](crate::{module}){rest}"),
            None => linked += &format!("]({part}"),
        }
    }
    linked
}
