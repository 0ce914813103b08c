//! Tests of the PTX parser: it prints what it reads, reads what it prints, and reports what it
//! rejects. ptxas accepts every text that it accepts, including those of other compilers.

#[allow(dead_code, reason = "not every test needs all of it")]
use super::ptx_support;
use kernel_dsl_compiler::ptx::{Module, Statement, parse};
use ptx_support::mutate::{Random, mutated, pieces};
use std::path::{Path, PathBuf};

/// Returns the files of a folder with an extension.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == ending));
    files.sort();
    files
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn parsed(text: &str, of: &Path) -> Module {
    parse(text).unwrap_or_else(|e| panic!("{}:\n{e}", of.display()))
}

/// Returns the texts of other compilers.
fn others() -> Vec<(PathBuf, String)> {
    files("tests/ptx", "ptx").into_iter().map(|f| (f.clone(), read(&f))).collect()
}

#[test]
fn printed_ir_parses_to_the_same() {
    for (path, text) in others() {
        let module = parsed(&text, &path);
        let printed = module.to_string();
        let again = parsed(&printed, &path);
        assert!(again == module, "{} differs", path.display());
        assert_eq!(again.to_string(), printed);
    }
}

#[test]
fn emitted_ptx_is_printed_unchanged() {
    let folders = [
        "tests/ptx/snapshots",
        "../../tests/tests/machine_code/snapshots",
        "../../tests/tests/language/memory/snapshots",
    ];
    let mut count = 0;
    for path in folders.iter().flat_map(|f| files(f, "snap")) {
        let snapshot = read(&path);
        let text = snapshot.splitn(3, "---\n").nth(2).unwrap_or_default();
        // The snapshots of this file were not emitted by the compiler.
        if !text.contains("\n.version ") || snapshot.contains("ptx/parse.rs") {
            continue;
        }
        assert_eq!(parsed(text, &path).to_string(), text, "{}", path.display());
        count += 1;
    }
    assert!(count > 15, "the snapshots are elsewhere");
}

/// Checks that the assembler makes the same machine code of a text and of its printed form.
#[test]
fn printed_text_assembles_to_the_same_code() {
    if !ptx_support::installed() {
        return;
    }
    for (path, text) in others() {
        // Line numbers are part of debug information, and differ.
        if text.contains(".loc") || text.contains("debug") {
            continue;
        }
        let printed = parsed(&text, &path).to_string();
        let [before, after] = [&text, &printed].map(|t| ptx_support::assembled(t, 61).unwrap());
        assert!(before == after, "{}", path.display());
    }
}

/// Checks texts of old versions, and forms that few compilers write: ptxas accepts them, and their
/// printed form.
#[test]
fn legal_forms_of_all_versions_parse() {
    for path in files("tests/ptx/legal", "ptx") {
        let text = read(&path);
        let module = parsed(&text, &path);
        let printed = module.to_string();
        assert!(parsed(&printed, &path) == module, "{printed}");
        if ptx_support::installed() {
            for text in [&text, &printed] {
                ptx_support::assembled_whole(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            }
        }
    }
}

#[test]
fn every_statement_is_printed_in_its_form() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/everything.ptx");
    let text = read(&path);
    let printed = parsed(&text, &path).to_string();
    insta::assert_snapshot!(printed);
    if ptx_support::installed() {
        ptx_support::assemble(&text, 61).unwrap();
        ptx_support::assemble(&printed, 61).unwrap();
    }
}

/// Checks that every statement knows its line.
#[test]
fn statements_have_their_lines() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/everything.ptx");
    let text = read(&path);
    let module = parsed(&text, &path);
    let entry = module.entry("everything").unwrap();
    for (i, statement) in entry.statements().iter().enumerate() {
        let Statement::Instruction(instruction) = statement else { continue };
        let line = entry.lines.of(i).unwrap() as usize;
        let here: String = text.lines().skip(line - 1).take(2).collect();
        assert!(here.contains(instruction.opcode.spelling()), "{line}: {statement:?}");
    }
}

#[test]
fn mistakes_have_their_messages() {
    let mut told = String::new();
    let cases = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/mistakes.txt"));
    for case in cases.split("----\n").skip(1) {
        let errors = parse(case).expect_err(case);
        told += &format!("{case}{}\n\n", errors.to_string().lines().map(|l| format!("  > {l}\n")).collect::<String>());
        if ptx_support::installed() && !case.starts_with("// ptxas takes") {
            ptx_support::assemble(case, 61).expect_err(case);
        }
    }
    insta::assert_snapshot!(told);
}

/// Checks that no text makes the parser panic, and that it prints accepted texts in a form that it
/// and ptxas accept.
#[test]
fn changed_texts_cause_no_panic() {
    let texts: Vec<String> = others().into_iter().map(|(_, t)| t).collect();
    let words: Vec<&str> = texts.iter().flat_map(|t| pieces(t)).filter(|p| !p.trim().is_empty()).collect();
    let mut random = Random(0);
    let (mut taken, mut tried) = (0, 0);
    let installed = ptx_support::installed();
    // The environment can request more texts and other seeds.
    let asked = |name: &str, otherwise| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(otherwise);
    let count = asked("COUNT", 1500);
    random.0 = asked("SEED", 61);
    let mut failures = Vec::new();
    for _ in 0..count {
        let text = mutated(&texts[random.below(texts.len())], &words, &mut random);
        let Ok(module) = parse(&text) else { continue };
        taken += 1;
        let printed = module.to_string();
        match parse(&printed) {
            Ok(again) => assert!(again == module, "{text}\n----\n{printed}"),
            Err(e) => panic!("{e}\n{printed}\n----\n{text}"),
        }
        if installed && taken % 8 == 0 {
            tried += 1;
            if let Err(e) = ptx_support::assemble(&text, 61)
                && !e.contains("Internal error")
            {
                let number = e.lines().find_map(|l| l.split("line ").nth(1)?.split(';').next()?.parse::<usize>().ok());
                let line = number.and_then(|n| text.lines().nth(n - 1)).unwrap_or_default();
                failures
                    .push(format!("{}\n    {line}", e.lines().find(|l| !l.contains("warning")).unwrap_or_default()));
            }
        }
    }
    println!("{taken} of {count} texts taken; {tried} assembled");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Tests texts that are meant to be slow or deep.
#[test]
fn deep_and_long_texts_end() {
    let module = |body: &str| format!(".version 6.0\n.target sm_61\n.address_size 64\n.func f() {{\n{body}\n}}\n");
    let many = |s: &str| s.repeat(100_000);
    for text in [
        many("("),
        module(&many("{")),
        module(&many("{}")),
        module(&format!(".reg .b32 %r<2>; mov.u32 %r0, {}1;", many("-"))),
        module(&format!(".reg .b32 %r<2>; mov.u32 %r0, {}1{};", many("("), many(")"))),
        module(&format!(".reg .b32 %r<2>; mov.u32 %r0, 1{};", many("?1:1"))),
        module(&format!(".reg .b32 %r<2>; mov.u32 %r0, 1{};", many("+1"))),
        module(&many("bra l; ")),
        module(&format!("{}{}", "{ bra a; bra b; ".repeat(5000), "}".repeat(5000))),
        module(&many("/**/")),
        module(&format!("add{};", many(".u32"))),
        module(&format!("add.u32 {};", many("%r1,"))),
        format!(".version 6.0\n.target sm_61\n.address_size 64\n.global .u8 a{};", many("[1]")),
        format!(".version 6.0\n.target sm_61\n.address_size 64\n{}", many(".visible ")),
        many("\n"),
        many("\""),
        many("/*"),
        many("%"),
        many("0f"),
    ] {
        let _ = parse(&text).map(|m| m.to_string());
    }
}
