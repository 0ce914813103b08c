//! Checks that the chapters show the current source, output and pictures. A comment above a block
//! says what the block shows:
//!
//! ```text
//! <!-- source FILE ITEM… -->     items of a file of the crate
//! <!-- prints ARGUMENTS -->      the output of the program `guide`; `| from TEXT`, `| to TEXT` and
//!                                `| lines N` select lines of it
//! <!-- message NAME -->          the compiler's output of a test of rejected kernels
//! <!-- picture INSTANCE | KIND | ACCESS -->    a picture of `inspect`
//! ```
//!
//! `UPDATE=1 cargo test -p guide --test chapters` writes blocks and pictures.

mod picture;

use kernels_rs_command::{nvdisasm::Nvdisasm, ptxas::Ptxas};
use runtime::testing::on_every_core;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs};

/// Runs the program with arguments and returns what it prints.
fn printed(arguments: &[&str]) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_guide"));
    let output = command.args(arguments).current_dir(root).output().expect("the program starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.is_empty(), "`guide {}` prints nothing", arguments.join(" "));
    text
}

/// Returns whether the release of NVIDIA's tools that the chapters show is installed.
fn has_tools() -> bool {
    let ptxas = Ptxas::find().filter(|ptxas| ptxas.release.as_deref() == Some("12.9"));
    ptxas.and_then(|ptxas| Nvdisasm::find(&ptxas)).is_some()
}

/// Splits a command line at blanks outside single quotes.
fn words(line: &str) -> Vec<&str> {
    let parts = line.split('\'').enumerate();
    parts.flat_map(|(i, part)| if i % 2 == 1 { vec![part] } else { part.split_whitespace().collect() }).collect()
}

/// Applies the selections of a `prints` comment to the output.
fn selected(text: &str, selections: &[&str]) -> String {
    let mut lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    for selection in selections {
        let (kind, what) = selection.trim().split_once(' ').expect("a selection has an argument");
        let at = || lines.iter().position(|line| line.contains(what)).unwrap_or_else(|| panic!("no line has `{what}`"));
        match kind {
            "from" => lines = lines.split_off(at()),
            "to" => lines.truncate(at() + 1),
            "lines" => lines.truncate(what.parse().expect("a number of lines")),
            other => panic!("unknown selection `{other}`"),
        }
    }
    lines.join("\n")
}

/// Returns the text of an item: its documentation, attributes and body.
fn item(source: &str, name: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let words = ["fn", "struct", "const", "mod", "trait", "enum"];
    let declares = |line: &&str| {
        let mut parts = line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
        !line.starts_with([' ', '/']) && parts.any(|part| words.contains(&part)) && parts.next() == Some(name)
    };
    let at = lines.iter().position(declares).unwrap_or_else(|| panic!("no item `{name}`"));
    let first = (0..at).rev().find(|i| lines[*i].is_empty()).map_or(0, |i| i + 1);
    let end = (at..lines.len()).find(|i| lines[*i] == "}");
    lines[first..=end.expect("the item ends")].join("\n")
}

/// A comment of a chapter that states what stands below it.
struct Comment<'t> {
    text: &'t str,
    /// The first line below that is not blank: an image for a picture, a fence for a block.
    below: &'t str,
}

/// Returns the comments of a chapter.
fn comments(chapter: &str) -> Vec<Comment<'_>> {
    let mut lines = chapter.lines();
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(text) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else { continue };
        let below = lines.clone().find(|line| !line.is_empty()).unwrap_or_default();
        found.push(Comment { text, below });
    }
    found
}

impl Comment<'_> {
    /// Returns the file of the picture below the comment, or `None` if a block is below.
    fn picture(&self) -> Option<PathBuf> {
        self.text.strip_prefix("picture ")?;
        let file = self.below.rsplit_once("(../pictures/").expect("an image follows").1.trim_end_matches(')');
        Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("pictures").join(file))
    }

    /// Returns the current text of the block or picture below; `None` if tools are missing.
    fn content(&self, has_tools: bool) -> Option<String> {
        let (kind, rest) = self.text.split_once(' ').unwrap_or((self.text, ""));
        match kind {
            "source" => {
                let mut names = rest.split_whitespace();
                let file = format!("{}/src/{}", env!("CARGO_MANIFEST_DIR"), names.next().expect("a file"));
                let source = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
                Some(names.map(|name| item(&source, name)).collect::<Vec<_>>().join("\n\n"))
            }
            "message" => {
                let root = env!("CARGO_MANIFEST_DIR");
                let file = format!("{root}/../../kernel-dsl/compile_fail/expected/{rest}.stderr");
                let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"));
                // The first message is enough.
                Some(text.split("\n\n").next().unwrap_or_default().trim_end().to_owned())
            }
            "prints" => {
                let mut parts = rest.split(" | ");
                let arguments = words(parts.next().unwrap_or_default());
                let needs_tools = ["report", "steps"].contains(&arguments[0]) || arguments.contains(&"--sass");
                if needs_tools && !has_tools {
                    return None;
                }
                Some(selected(&printed(&arguments), &parts.collect::<Vec<_>>()))
            }
            "picture" => {
                let [instance, kind, access] = rest.split(" | ").collect::<Vec<_>>()[..] else {
                    panic!("a picture has an instance, a kind and an access: {rest}")
                };
                // ptxas counts the registers.
                if access.starts_with("registers") && !has_tools {
                    return None;
                }
                Some(picture::draw(&model(instance), kind, access))
            }
            other => panic!("unknown comment `{other}`"),
        }
    }
}

/// Returns the chapter with current blocks. `contents` has an element for each of its comments.
fn with_blocks(chapter: &str, contents: &[Option<String>]) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut lines = chapter.lines();
    for (comment, content) in comments(chapter).into_iter().zip(contents) {
        let start = format!("<!-- {} -->", comment.text);
        // The comment, and the first line below it: an image, or a fence.
        for until in [&start[..], comment.below] {
            for line in lines.by_ref() {
                out.push(line);
                if line == until {
                    break;
                }
            }
        }
        if comment.picture().is_some() {
            continue;
        }
        let old: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match content {
            Some(content) => out.extend(content.lines()),
            None => out.extend(old),
        }
        out.push("```");
    }
    out.extend(lines);
    out.join("\n") + "\n"
}

/// Returns the data from which `inspect` draws the page of an instance.
fn model(instance: &str) -> serde_json::Value {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let page = env::temp_dir().join(format!("guide-{}-{number}.html", std::process::id()));
    printed(&["inspect", instance, "-o", &page.to_string_lossy()]);
    let text = fs::read_to_string(&page).expect("the page is written");
    fs::remove_file(&page).expect("the page is removed");
    let (_, json) = text.split_once("id=\"model\">").expect("the page holds its model");
    let (json, _) = json.split_once("</script>").expect("the model ends");
    serde_json::from_str(json).expect("the model is JSON")
}

/// Asserts that a file holds a text, or writes it on request.
fn hold(path: &Path, text: &str) {
    let old = fs::read_to_string(path).unwrap_or_default();
    if old == text {
        return;
    }
    if env::var_os("UPDATE").is_some() {
        fs::write(path, text).expect("the file is written");
        return;
    }
    let differs = old.lines().zip(text.lines()).find(|(old, new)| old != new);
    panic!(
        "{} is not current, first at {differs:?}; `UPDATE=1 cargo test -p guide --test chapters` writes it",
        path.display()
    );
}

#[test]
fn chapters_are_current() {
    let has_tools = has_tools();
    if !has_tools {
        println!("machine code is not compared: no ptxas 12.9 with an nvdisasm; `tests/get-nvdisasm` fetches both");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("chapters");
    let mut chapters: Vec<_> = fs::read_dir(folder).unwrap().map(|chapter| chapter.unwrap().path()).collect();
    chapters.sort();
    let texts: Vec<String> = chapters.iter().map(|chapter| fs::read_to_string(chapter).unwrap()).collect();
    let all: Vec<Comment> = texts.iter().flat_map(|text| comments(text)).collect();
    let mut contents = &on_every_core(&all, |comment| comment.content(has_tools))[..];
    for (picture, content) in all.iter().zip(contents) {
        if let (Some(path), Some(content)) = (picture.picture(), content) {
            hold(&path, content);
        }
    }
    for (chapter, text) in chapters.iter().zip(&texts) {
        let (own, others) = contents.split_at(comments(text).len());
        hold(chapter, &with_blocks(text, own));
        contents = others;
    }
}

/// Runs every kernel with registered cases on all executors, and compares with its reference.
#[test]
fn executors_agree() {
    use kernel_dsl::compiler::hir::Instance;
    use runtime::testing::{Checker, kernel_specs};

    let specs = kernel_specs();
    let own = specs.iter().filter(|spec| spec.artifact.module.split("::").next() == Some("guide"));
    let mut checked = 0;
    for spec in own {
        for declared in spec.artifact.instances {
            let report = Checker::new(None).check(spec, &Instance(declared.constants.to_vec()), 1);
            assert!(report.passed(), "{report}");
            checked += 1;
        }
    }
    assert!(checked >= guide::EXPERIMENTS.len().min(4));
}

/// Checks that the program ends without a message if its output is closed.
#[test]
fn a_closed_pipe_ends_the_program() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guide"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the program ends");
    assert!(output.status.success(), "{}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
