//! The page `kernel_dsl::reference`: each construct of the language with its PTX, compiled from a
//! program that uses this construct alone.
//!
//! The programs are those of `tests/tests/language/constructs`, where they run.
//! `UPDATE=1 cargo test -p kernel-dsl-compiler --features frontend --test frontend reference`
//! rewrites the page.

use crate::support::{Crate, Function, math};
use kernel_dsl_compiler::language::{BuiltinName, words};
use kernel_dsl_compiler::ptx::cost::Rate;
use kernel_dsl_compiler::ptx::{Instruction, Opcode, Statement};
use kernel_dsl_compiler::{driver, emit, passes};
use proc_macro2::{TokenStream, TokenTree};
use quote::quote;
use std::collections::BTreeSet;
use std::fmt::Write;
use syn::Item;

const FILES: [&str; 8] = [
    include_str!("../../../../tests/tests/language/constructs/types.rs"),
    include_str!("../../../../tests/tests/language/constructs/integers.rs"),
    include_str!("../../../../tests/tests/language/constructs/floats.rs"),
    include_str!("../../../../tests/tests/language/constructs/control.rs"),
    include_str!("../../../../tests/tests/language/constructs/items.rs"),
    include_str!("../../../../tests/tests/language/constructs/memory.rs"),
    include_str!("../../../../tests/tests/language/constructs/shared.rs"),
    include_str!("../../../../tests/tests/language/constructs/cooperation.rs"),
];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/reference.rs");

const HEAD: &str = "\
//! All constructs of the language, the PTX that each compiles to, and its cost on sm_61.
//!
//! The compiler generates this page. For each construct it compiles a program that uses this
//! construct alone, and lists the resulting instructions in order, each once with its count.
//! Constants are folded, and variables are in registers, as in every kernel. A construct without
//! instructions is evaluated at compile time, or its instructions belong to its uses. On other
//! types a construct has the instructions of those types. The tests run every program on each
//! executor (`tests/tests/language/constructs`), and compare with code compiled by rustc.
//!
//! *Rate* is the throughput of each instruction, as a fraction of 128 results per clock of a
//! multiprocessor of sm_61:
//!
//! - 1 for `f32` arithmetic, and for addition and logic of integers;
//! - 1/2 for shifts, comparisons, minima and bit fields;
//! - 1/4 for conversions, shuffles and the special function unit;
//! - 1/32 for `f64`;
//! - 1/64 for arithmetic of 16-bit floats, which the compiler never emits.
//!
//! A *sequence* is several machine instructions made by ptxas. A product of integers has three or
//! four, a division of integers about thirty, a correctly rounded quotient or root ten to thirty.
//! The cost of *shared* accesses depends on their bank conflicts, and that of *global* ones on the
//! number of sectors. The cost of *atomic* ones depends on the number of threads with the same
//! address. `kernels report` measures them for a kernel.
";

/// A construct, and its instructions; `None` for an item, whose instructions are part of its uses.
struct Row {
    chapter: String,
    name: String,
    target: String,
    ptx: Option<Vec<Instruction>>,
}

/// A reader of tokens.
struct Tokens(std::iter::Peekable<proc_macro2::token_stream::IntoIter>);

impl Tokens {
    fn of(tokens: TokenStream) -> Tokens {
        Tokens(tokens.into_iter().peekable())
    }
    fn next(&mut self) -> TokenTree {
        self.0.next().expect("a table has another token")
    }
    fn skip(&mut self, text: &str) {
        let token = self.next();
        assert_eq!(token.to_string(), text, "{:?}", token.span().start());
    }
    fn text(&mut self) -> String {
        let token = TokenStream::from(self.next());
        syn::parse2::<syn::LitStr>(token).expect("a text").value()
    }
    fn group(&mut self) -> proc_macro2::Group {
        match self.next() {
            TokenTree::Group(group) => group,
            other => panic!("{other} where there should be a group, at {:?}", other.span().start()),
        }
    }
    fn is_group(&mut self) -> bool {
        matches!(self.0.peek(), Some(TokenTree::Group(_)))
    }
}

/// Returns the rows of a file's tables.
fn rows(text: &str) -> Vec<Row> {
    let all = Crate::parse(text).expect("the file is Rust").with(&math());
    let mut rows = Vec::new();
    for item in syn::parse_file(text).expect("the file is Rust").items {
        let Item::Macro(call) = item else { continue };
        let mut tokens = Tokens::of(call.mac.tokens);
        match call.mac.path.require_ident().expect("a table's name").to_string().as_str() {
            "values" => values(&all, &mut tokens, &mut rows),
            "programs" => programs(&all, text, &mut tokens, &mut rows),
            "items" => items(&mut tokens, &mut rows),
            other => panic!("`{other}!` is not a table"),
        }
    }
    rows
}

/// Parses the head of a table: `module, "Chapter",`.
fn chapter(tokens: &mut Tokens) -> String {
    tokens.next();
    tokens.skip(",");
    let chapter = tokens.text();
    tokens.skip(",");
    chapter
}

fn values(all: &Crate, tokens: &mut Tokens, rows: &mut Vec<Row>) {
    let chapter = chapter(tokens);
    let first = tokens.group().stream();
    let (clauses, parameters) = match tokens.is_group() {
        true => (first, tokens.group().stream()),
        false => (TokenStream::new(), first),
    };
    let parameters = syn::parse::Parser::parse2(
        |input: syn::parse::ParseStream| {
            let one = |input: syn::parse::ParseStream| {
                let name: syn::Ident = input.parse()?;
                input.parse::<syn::Token![:]>()?;
                let ty: syn::Type = input.parse()?;
                input.parse::<syn::Token![=]>()?;
                input.parse::<syn::Expr>()?;
                Ok((name, ty))
            };
            input.parse_terminated(one, syn::Token![,])
        },
        parameters,
    );
    // Tokens of this test have line 1, including the parameters; the construct has its own lines.
    let here = |name: syn::Ident| syn::Ident::new(&name.to_string(), proc_macro2::Span::call_site());
    let (names, types): (Vec<_>, Vec<_>) =
        parameters.expect("parameters").into_iter().map(|(name, ty)| (here(name), ty)).unzip();
    tokens.skip(":");
    while tokens.0.peek().is_some() {
        let construct = tokens.text();
        tokens.skip("fn");
        let name = tokens.next();
        tokens.skip("-");
        tokens.skip(">");
        let (result, body) = (tokens.next(), tokens.group());
        let item = quote! {
            fn #name(#(#names: &[#types],)* out: &mut [#result]) {
                let i = grid::index();
                if i < out.len() {
                    #(let #names = #names[i];)*
                    let value: #result = #body;
                    out[i] = value;
                }
            }
        };
        let attribute = quote!(block = 32, grid = 1, #clauses);
        rows.push(row(all, &chapter, construct, attribute, item, |offset| offset > 0));
    }
}

fn programs(all: &Crate, text: &str, tokens: &mut Tokens, rows: &mut Vec<Row>) {
    let chapter = chapter(tokens);
    let clauses = if tokens.is_group() { tokens.group().stream() } else { TokenStream::new() };
    tokens.next();
    let parameters = tokens.group();
    tokens.skip(":");
    let lines: Vec<&str> = text.lines().collect();
    while tokens.0.peek().is_some() {
        let construct = tokens.text();
        let keyword = tokens.next();
        let first = keyword.span().start().line;
        let (name, body) = (tokens.next(), tokens.group());
        let item = quote!(#keyword #name #parameters #body);
        let attribute = quote!(block = 64, grid = 1, #clauses);
        let words = needles(&construct);
        let about = |offset: usize| words.iter().any(|word| lines[first - 1 + offset].contains(word.as_str()));
        let row = row(all, &chapter, construct, attribute, item, about);
        let span = lines[first - 1..body.span_close().end().line].join("\n");
        assert!(words.iter().any(|word| span.contains(word.as_str())), "no line is about {}:\n{span}", row.name);
        rows.push(row);
    }
}

fn items(tokens: &mut Tokens, rows: &mut Vec<Row>) {
    let chapter = tokens.text();
    tokens.skip(":");
    while tokens.0.peek().is_some() {
        let name = tokens.text();
        while tokens.next().to_string() != ";" {}
        rows.push(Row { chapter: chapter.clone(), name, target: "sm_61".to_string(), ptx: None });
    }
}

/// Returns what identifies the lines that implement a construct: its text, or the path or method
/// that it calls.
fn needles(construct: &str) -> Vec<String> {
    let written = construct.trim_matches('`');
    let mut all = vec![written.to_string()];
    let Some((called, _)) = written.split_once('(').filter(|(called, _)| !called.contains('[')) else { return all };
    let path = match called.rsplit_once(">::") {
        // The last name of a generic type.
        Some((_, last)) => format!("::{last}"),
        None => called.split("::<").next().unwrap_or_default().to_string(),
    };
    let path = path.find('.').map_or(path.as_str(), |dot| &path[dot..]);
    all.extend(["(", "::<"].map(|behind| format!("{path}{behind}")));
    all
}

/// Returns a kernel's row: the instructions of its lines that are `about` the construct.
fn row(
    all: &Crate,
    chapter: &str,
    name: String,
    attribute: TokenStream,
    item: TokenStream,
    about: impl Fn(usize) -> bool,
) -> Row {
    let item = syn::parse2(item).unwrap_or_else(|e| panic!("{name}: {e}"));
    let program = all.program(&Function { attribute: Some(attribute), item });
    let target = program.launch.target;
    let kernel = driver::lowered(&program, &program.launch.instances[0].arguments, target);
    let kernel = passes::optimize(kernel.unwrap_or_else(|e| panic!("{name}: {e}")));
    let module =
        emit::emit(&kernel.unwrap_or_else(|e| panic!("{name}: {e}"))).unwrap_or_else(|e| panic!("{name}: {e}"));
    let body = module.entries().next().and_then(|entry| entry.body.as_ref()).expect("a kernel has a body");
    let mut ptx = Vec::new();
    let mut inside = false;
    for statement in body {
        match statement {
            Statement::Comment(heading) => {
                // `+3 let …` for the kernel; for a called function, its name precedes.
                let (function, offset) = heading.split_once('+').unwrap_or((heading, ""));
                let offset = offset.split(' ').next().and_then(|n| n.parse().ok());
                inside = match offset {
                    Some(offset) if function.trim().is_empty() => about(offset),
                    Some(_) => true,
                    None => false,
                };
            }
            Statement::Instruction(instruction) if inside && instruction.opcode != Opcode::Ret => {
                ptx.push(instruction.clone())
            }
            _ => {}
        }
    }
    Row { chapter: chapter.to_string(), name, target: target.to_string(), ptx: Some(ptx) }
}

/// Returns the instruction's name, such as `add.s32`.
fn mnemonic(instruction: &Instruction) -> String {
    let modifiers = instruction.modifiers.iter().map(|m| m.spelling());
    modifiers.fold(instruction.opcode.spelling().to_string(), |text, m| match m.starts_with('.') {
        true => text + m,
        false => text + "." + m,
    })
}

fn cells(row: &Row) -> (String, String) {
    let Some(ptx) = &row.ptx else { return ("depends on its use".to_string(), String::new()) };
    let mut counted: Vec<(String, u32)> = Vec::new();
    for text in ptx.iter().map(mnemonic) {
        match counted.iter_mut().find(|(known, _)| *known == text) {
            Some((_, count)) => *count += 1,
            None => counted.push((text, 1)),
        }
    }
    let instructions = counted.iter().map(|(text, count)| match count {
        1 => format!("`{text}`"),
        n => format!("{n} `{text}`"),
    });
    let rates: BTreeSet<Rate> = ptx.iter().map(Rate::of).collect();
    let rates = rates.iter().map(Rate::to_string).collect::<Vec<_>>().join(", ");
    match counted.is_empty() {
        true => ("none".to_string(), String::new()),
        false => (instructions.collect::<Vec<_>>().join(", "), rates),
    }
}

fn page(rows: &[Row]) -> String {
    let mut page = HEAD.to_string();
    let mut chapters: Vec<&str> = Vec::new();
    for row in rows {
        if !chapters.contains(&&*row.chapter) {
            chapters.push(&row.chapter);
        }
    }
    for chapter in chapters {
        let _ =
            writeln!(page, "//!\n//! # {chapter}\n//!\n//! | construct | PTX | from | rate |\n//! |---|---|---|---|");
        for row in rows.iter().filter(|row| row.chapter == chapter) {
            let (ptx, rates) = cells(row);
            let name = row.name.replace('|', "\\|");
            let _ = writeln!(page, "//! | {name} | {ptx} | {} | {rates} |", row.target);
        }
    }
    page
}

#[test]
fn the_page_matches_the_compiler() {
    let rows: Vec<Row> = FILES.into_iter().flat_map(rows).collect();
    let page = page(&rows);
    if std::env::var("UPDATE").is_ok() {
        std::fs::write(PAGE, &page).expect("the page is written");
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let different = written.lines().zip(page.lines()).find(|(a, b)| a != b);
    assert!(
        written == page,
        "kernel-dsl/src/reference.rs is not what the compiler makes ({different:?}): set UPDATE=1"
    );
    println!("{} constructs", rows.len());
}

/// Returns the chapters of the methods of a receiver.
fn chapters(on: &str) -> &'static [&'static str] {
    match on {
        "Float" => &["Floats"],
        "Half" => &["Floats of 16 bits"],
        "Integer" => &["Integers"],
        "Slice" => &["Slices"],
        "View" => &["Views"],
        "Shared" => &["Shared memory", "Copies to shared memory"],
        "Memory" => &["Slices", "Views", "Atomic operations"],
        "Pending" => &["Copies to shared memory"],
        "Group" => &["Groups of lanes"],
        "Array" => &["Types"],
        "Option" => &["Options", "Slices"],
        "Result" => &["Results"],
        other => panic!("methods of {other} have no chapter"),
    }
}

/// Words of launch expressions, which do not occur in a kernel's body.
const OF_LAUNCHES: [&str; 3] = ["aligned", "device::multiprocessors", "device::waves"];

#[test]
fn every_word_of_the_language_has_a_program() {
    let rows: Vec<Row> = FILES.into_iter().flat_map(rows).collect();
    let has = |chapters: &[&str], parts: &[String]| {
        let of_these = rows.iter().filter(|row| chapters.is_empty() || chapters.contains(&&*row.chapter));
        of_these.flat_map(|row| row.name.split('`')).any(|text| parts.iter().any(|part| text.contains(&**part)))
    };
    let missing: Vec<BuiltinName> = words()
        .into_iter()
        .filter(|word| match word {
            BuiltinName::Function(path) | BuiltinName::Method { name: path, .. } if OF_LAUNCHES.contains(path) => false,
            BuiltinName::Function(path) => !has(&[], &[format!("{path}("), format!("{path}::<")]),
            BuiltinName::Constructor(name) => !has(&["Shared memory"], &[format!("::{name}(")]),
            BuiltinName::Method { on, name } => !has(chapters(on), &[format!(".{name}("), format!(".{name}::<")]),
        })
        .collect();
    assert!(missing.is_empty(), "tests/tests/language/constructs has no program for {missing:?}");
}
