//! The page `kernel_dsl::subset`: which constructs of Rust kernels support, which not, and why.
//!
//! The programs of `tests/tests/language/constructs` test the supported constructs, and each row
//! names some of them. The programs of `kernel-dsl/compile_fail/subset_*.rs` test the unsupported
//! constructs, and the page shows their messages.
//! `UPDATE=1 cargo test -p tests --test documentation subset` writes the page.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The folder of rejected programs.
const CASES: &str = "../kernel-dsl/compile_fail";

/// Supported Rust, with restrictions, and constructs of the reference that show it.
const IN: &[(&str, &str, &[&str])] = &[
    (
        "integers of 8 to 64 bits, `usize`, `bool`, `f32`, `f64`",
        "`usize` has 32 bits",
        &["`u64`, `i64`", "`usize`", "`f64`"],
    ),
    ("`u128`", "two words of 64 bits, with the operators and methods of integers; no atomic operations", &["`u128`"]),
    ("`f16`, `bf16`", "from the crate `half`; arithmetic is in `f32`, with rounded results", &["`f16`", "`bf16`"]),
    ("`b'A'`, `b\"ACGT\"`, `'A' as u32`", "bytes and arrays of bytes; `char` is no type", &["`u8`, `i8`"]),
    ("tuples, arrays", "in registers", &["`(A, B)`", "`[[T; N]; M]`"]),
    ("`Option`", "with the methods that cannot panic", &["`Some(x)`, `None`", "`o.map_or(x, |x| …)`"]),
    ("`Result`", "with the methods that cannot panic", &["`Ok(x)`, `Err(e)`", "`r.map_err(|e| …)`"]),
    ("`?`", "of options and results, in device functions and closures; converts no errors", &["`o?`", "`r?`"]),
    ("slices", "as parameters of kernels, in global memory", &["`x[i]`", "`x.get(i).copied()`"]),
    (
        "references",
        "to variables and elements, as parameters; a `&mut` refers to the caller's variable",
        &["`&mut x`", "`&mut` parameters"],
    ),
    (
        "operators, and assignment operators",
        "integers wrap, which the oracle reports",
        &["`a + b`", "`a += b`, and each operator that assigns"],
    ),
    (
        "`as`, `from`, `into`",
        "as in Rust, including NaNs; `from` and `into` of numbers",
        &["`f32 as i32`", "`u32 as u64`"],
    ),
    ("methods of numbers", "those of `methods`", &["`a.rotate_left(b)`", "`a.mul_add(b, c)`"]),
    (
        "`let`, shadowing, destructuring, `let … else`",
        "as in Rust",
        &["shadowing", "`(x, y) = (y, x)`", "`let … else`"],
    ),
    ("blocks, `if`, `match` as values", "as in Rust", &["`{ … }`, a block as a value", "`match`, of numbers"]),
    (
        "patterns",
        "of numbers, constants, ranges, tuples, arrays, structs, enums; `|`, `@`, guards; also as parameters of device functions",
        &[
            "`1..=4`, `5..`",
            "`x @ 1..=4`",
            "`x if …`",
            "`[p, .., q]`",
            "`Some(x) | Other(x)`, alternatives that bind",
            "a pattern as a parameter",
        ],
    ),
    ("`if let`, `while let`, chains of these with `&&`", "as in Rust", &["`if let … && …`", "`while let`"]),
    (
        "`loop`, `while`, `for`, labels, `break` with a value",
        "a `for` iterates over ranges, arrays and the language's own iterators",
        &[
            "`loop`, `break` with a value",
            "`for x in array`",
            "`for x in &array`, `array.iter()`",
            "`(a..b).rev()`",
            "`for i in a..=b`",
        ],
    ),
    (
        "functions",
        "`#[device]`, from any module or crate; always inlined; with named lifetimes",
        &["a call of a `#[device] fn`", "`return`"],
    ),
    ("closures, `impl Fn`, `F: Fn`", "names for code that is inlined", &["`|x| …`", "`impl Fn(A) -> B`"]),
    ("`const`, in bodies and modules", "as in Rust", &["`const NAME: T = …;`", "`#[device] const`"]),
    (
        "structs",
        "also generic; in buffers with `repr(C)`",
        &["`#[device] struct`, generic", "`#[repr(C)]` elements of buffers"],
    ),
    ("enums", "also generic; variants may hold data", &["`#[device] enum`"]),
    ("`type` aliases", "also generic; in a `#[device] mod` or alone", &["`#[device] type`"]),
    (
        "`impl Add`, `impl Index`, and the other arithmetic, bitwise and assignment operators",
        "for structs and enums of a `#[device] mod`",
        &["`impl Add for`, and other operators"],
    ),
    (
        "methods, associated functions, constants and types",
        "in a `#[device] mod`",
        &["a method with `&mut self`", "an associated type"],
    ),
    (
        "traits, impls over generic types, provided methods",
        "resolved when an instance is compiled",
        &["`trait`, `impl Trait for`", "an `impl` over generic types", "a provided method"],
    ),
    (
        "generic parameters",
        "constants of integer types and `bool`, and types; `impl Trait` as a parameter of a device function",
        &["generic over a constant", "`T: Float` of a kernel"],
    ),
    (
        "`size_of`, `std::array::from_fn`, `std::mem::swap`, `matches!`",
        "`swap` takes variables, fields and elements",
        &["`size_of::<T>()`", "`std::mem::swap(&mut a, &mut b)`", "`matches!(x, …)`"],
    ),
    (
        "`assert!`, `assert_eq!`, `assert_ne!`, `debug_assert!`, `panic!`",
        "a finding with line and values; the thread ends",
        &["`assert!(…)`", "`panic!(…)`"],
    ),
    ("`const { assert!(…) }`", "checked for each instance", &["`const { assert!(…) }`"]),
];

const HEAD: &str = "\
//! The subset of Rust that kernels can use.
//!
//! A kernel is Rust, and rustc checks it like any other function. Constructs that a GPU cannot
//! execute, or that would hide their cost, are not in the subset. The compiler rejects them at
//! their tokens, with a message that says what to write instead.
//!
//! # Supported
//!
//! The last column of each row names constructs that show it. [`reference`](crate::reference) lists
//! them with their PTX, and the tests run them.
//!
//! | Rust | in a kernel | shown by |
//! |---|---|---|
";

/// Files of rejected programs, and their common reason.
const OUT: [(&str, &str); 3] = [
    ("subset_syntax", "Rejected by the parser:"),
    ("subset_check", "Rejected by the checker, though rustc accepts it:"),
    ("subset_device", "Valid Rust that the device or the target does not support, rejected for an instance:"),
];

/// A rejected program: its subject, and all error messages.
struct Refused {
    name: String,
    messages: Vec<String>,
}

/// Returns the programs of a file, with their messages from `expected`.
fn refused(program: &str, expected: &str) -> Vec<Refused> {
    let mut all: Vec<(usize, Refused)> = Vec::new();
    for (i, line) in program.lines().enumerate() {
        if let Some(name) = line.strip_prefix("/// ") {
            all.push((i + 1, Refused { name: name.to_string(), messages: Vec::new() }));
        }
    }
    let mut message = None;
    for line in expected.lines() {
        if let Some(said) = line.strip_prefix("error") {
            let said =
                said.split_once("evaluation panicked: ").or(said.split_once(": ")).map_or(said, |(_, said)| said);
            message = Some(said.to_string());
        }
        let place = line.trim_start().strip_prefix("--> ").and_then(|p| p.split(':').nth(1)?.parse::<usize>().ok());
        if let (Some(said), Some(at)) = (&message, place) {
            let about = all.iter_mut().rev().find(|(first, _)| *first <= at).expect("a program's line");
            about.1.messages.push(said.clone());
            message = None;
        }
    }
    all.into_iter().map(|(_, refused)| refused).collect()
}

#[test]
fn page_is_up_to_date() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(here.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
    let reference = read("../kernel-dsl/src/reference.rs");
    let cell = |text: &str| text.replace('|', "\\|");
    let mut page = HEAD.to_string();
    for (rust, way, constructs) in IN {
        for construct in *constructs {
            let row = format!("//! | {} |", cell(construct));
            assert!(reference.contains(&row), "no program shows {construct}");
        }
        let _ = writeln!(page, "//! | {} | {} | {} |", cell(rust), cell(way), cell(&constructs.join(", ")));
    }
    let _ = writeln!(page, "//!\n//! # Unsupported");
    let mut count = 0;
    for (file, what) in OUT {
        let all = refused(&read(&format!("{CASES}/{file}.rs")), &read(&format!("{CASES}/expected/{file}.stderr")));
        let _ = writeln!(page, "//!\n//! {what}\n//!\n//! | Rust | message of the compiler |\n//! |---|---|");
        for Refused { name, messages } in &all {
            assert!(!messages.is_empty(), "{name} has no message");
            let _ = writeln!(page, "//! | {} | {} |", cell(name), cell(&messages[0]));
        }
        count += all.len();
    }
    println!("{count} rejected programs of one construct each");
    assert!(count >= 100, "{count}");
    let path = here.join("../kernel-dsl/src/subset.rs");
    if std::env::var("UPDATE").is_ok() {
        fs::write(&path, &page).expect("the page is writable");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let different = written.lines().zip(page.lines()).find(|(a, b)| a != b);
    assert!(written == page, "kernel-dsl/src/subset.rs is out of date ({different:?}): set UPDATE=1");
}
