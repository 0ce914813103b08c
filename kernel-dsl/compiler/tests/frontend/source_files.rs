//! Kernels read from the text of their file: linked with a program, or standalone.

use kernel_dsl_compiler::hir::{Instance, Program};
use kernel_dsl_compiler::source_file::{program, standalone};
use kernel_dsl_compiler::{Target, check, compile, syntax};
use syn::ItemFn;

const TEXT: &str = "#[device]\nfn twice(x: f32) -> f32 {\n    x + x\n}\n\n\
    #[kernel(block = 32, grid = 1)]\nfn k(y: &mut [f32]) {\n    y[thread::x()] = twice(y[thread::x()]);\n}\n";

/// Returns a program without device items.
fn first() -> Program {
    let text = "#[kernel(block = 32, grid = 1)]\nfn k(y: &mut [f32]) {}\n";
    let nothing = Program { launch: empty().launch, functions: Vec::new(), items: Default::default() };
    program(text, "f.rs", "k", &nothing).unwrap()
}

fn empty() -> Program {
    let item: ItemFn = syn::parse_quote!(
        fn k() {}
    );
    let kernel = syntax::kernel(quote::quote!(block = 32, grid = 1), &item).unwrap();
    check::kernel(&kernel, &[]).unwrap().hir
}

#[test]
fn functions_of_the_text_are_compiled() {
    let read = program(TEXT, "crate/src/f.rs", "k", &first()).unwrap();
    let ptx = compile(&read, &Instance::default(), Target::SM_61).unwrap();
    assert!(ptx.contains("add.rn.f32") || ptx.contains("add.f32"), "{ptx}");
    let places: Vec<_> = read.functions.iter().map(|f| (f.source.file.as_str(), f.source.line)).collect();
    assert_eq!(places, [("crate/src/f.rs", 7), ("crate/src/f.rs", 2)]);
}

/// Checks that a text without a linked program may have structs, traits, and modules of items.
#[test]
fn standalone_texts_have_items_of_every_form() {
    let text = "#[device]\nconst TWO: f32 = 2.0;\n\
        #[device]\n#[derive(Clone, Copy)]\nstruct Scale {\n    by: f32,\n}\n\
        #[device]\nmod maps {\n    use kernel_dsl::prelude::*;\n    pub trait Map: Copy {\n        fn apply(self, x: f32) -> f32;\n    }\n    \
        #[derive(Clone, Copy)]\n    pub struct Double;\n    impl Map for Double {\n        fn apply(self, x: f32) -> f32 {\n            \
        x + x\n        }\n    }\n}\nuse maps::*;\n\
        #[kernel(block = 32, grid = 1, instances(M = Double))]\nfn k<M: Map>(m: M, s: Scale, y: &mut [f32]) {\n    \
        y[thread::x()] = m.apply(TWO * s.by * y[thread::x()]);\n}\n";
    let read = standalone(text, "s.rs", None).unwrap();
    let instance = read.launch.instances[0].arguments.clone();
    let ptx = compile(&read, &instance, Target::SM_61).unwrap();
    assert!(ptx.contains(".param .f32 s_by") && ptx.contains("add.rn.f32"), "{ptx}");
    let missing = standalone(&text.replace("TWO *", "THREE *"), "s.rs", Some("k")).unwrap_err();
    assert!(missing.to_string().ends_with("`THREE` is not a `#[device]` item of s.rs"), "{missing}");
}

#[test]
fn a_kernel_cannot_be_called() {
    let text = "#[kernel(block = 32, grid = 1)]\nfn k(y: &mut [f32]) {\n    k(y);\n}\n";
    let refused = standalone(text, "s.rs", None).unwrap_err().to_string();
    assert!(refused.contains("`k` is a kernel, which no kernel can call; move the common code"), "{refused}");
}

#[test]
fn standalone_texts_have_one_kernel_or_a_name() {
    let twice = format!("{TEXT}{}", TEXT.replace("fn k", "fn j").replace("fn twice", "fn thrice"));
    let several = standalone(&twice, "f.rs", None).unwrap_err();
    assert_eq!(several.to_string(), "f.rs has 2 kernels, `k`, `j`: name one");
    assert_eq!(standalone(&twice, "f.rs", Some("j")).unwrap().functions[0].name, "j");
    for name in [Some("k"), None] {
        let equal = standalone(&twice.replace("fn j", "fn k"), "f.rs", name).unwrap_err();
        assert!(equal.to_string().ends_with("the item `k` is declared twice: rename or remove one"), "{equal}");
    }
    let none = standalone("fn f() {}", "f.rs", None).unwrap_err();
    assert_eq!(none.to_string(), "f.rs has no `#[kernel]` function");
}

/// Checks that text which is nested too deeply is an error with its place.
#[test]
fn deep_texts_are_rejected() {
    // A thread of a test has a small stack.
    let deep = std::thread::Builder::new().stack_size(256 << 20).spawn(|| {
        let text = |value: String| {
            format!("#[kernel(block = 32, grid = 1)]\nfn k(y: &mut [f32]) {{\n    y[0] = {value};\n}}\n")
        };
        let sum = |n: usize| text(format!("1.0{}", " + 1.0".repeat(n)));
        let parentheses = |n: usize| text(format!("{}1.0{}", "(".repeat(n), ")".repeat(n)));
        for text in [sum(2000), parentheses(500), text(format!("{}1.0", "-".repeat(2000)))] {
            standalone(&text, "f.rs", None).unwrap();
        }
        for (text, message) in [
            (sum(2500), "f.rs:3:12: expressions are nested more than 2048 deep here"),
            (text(format!("{}1.0", "-".repeat(2500))), "f.rs:3:"),
            (parentheses(20_000), "f.rs:3:523: brackets are nested more than 512 deep here"),
        ] {
            let errors = standalone(&text, "f.rs", None).unwrap_err();
            assert_eq!(errors.0.len(), 1);
            assert!(errors.to_string().starts_with(message) && errors.to_string().contains("deep here"), "{errors}");
        }
    });
    deep.unwrap().join().unwrap();
}

/// Checks that functions which the text lacks come from the program that rustc compiled.
#[test]
fn functions_of_other_files_are_those_of_the_program() {
    let linked = program(TEXT, "f.rs", "k", &first()).unwrap();
    let (_, kernel) = TEXT.split_once("\n\n").unwrap();
    let read = program(&kernel.replace("twice(", "other::twice("), "g.rs", "k", &linked).unwrap();
    assert!(compile(&read, &Instance::default(), Target::SM_61).unwrap().contains("add"));
    assert!(read.functions.iter().any(|f| f.name == "twice" && f.source.file == "f.rs"));
    let missing = program(&kernel.replace("twice", "thrice"), "g.rs", "k", &linked).unwrap_err();
    assert!(missing.to_string().starts_with("g.rs:3:22: `thrice` is not in this file"), "{missing}");
}

#[test]
fn mistakes_have_their_place() {
    let wrong = program(&TEXT.replace("x + x", "x + z"), "f.rs", "k", &first()).unwrap_err();
    assert!(wrong.to_string().starts_with("f.rs:3:9: "), "{wrong}");
    let no_rust = program("fn k( {", "f.rs", "k", &first()).unwrap_err();
    assert!(no_rust.to_string().starts_with("f.rs:1:"), "{no_rust}");
    let none = program(TEXT, "f.rs", "j", &first()).unwrap_err();
    assert_eq!(none.to_string(), "f.rs has no `#[kernel]` function `j`");
}
