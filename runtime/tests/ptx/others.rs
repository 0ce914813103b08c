//! PTX of other compilers, from the parser's tests: the entries that run, and those rejected by
//! name.

use kernel_dsl::compiler::ptx::parse;
use runtime::ptx::Program;

/// Returns each entry of a text with the reason of its rejection; empty if the entry is decoded.
fn entries(name: &str) -> Vec<(String, String)> {
    let path = format!("{}/../kernel-dsl/compiler/tests/ptx/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
    let module = parse(&std::fs::read_to_string(path).unwrap()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let refused = |entry: &str| Program::decode(&module, entry).map_or_else(|e| e.to_string(), |_| String::new());
    module.entries().map(|e| (e.name.clone(), refused(&e.name))).collect()
}

#[test]
fn only_missing_functions_are_rejected() {
    let mut decoded = 0;
    for name in ["clang", "clang_unoptimized", "everything", "llvm", "nvrtc", "nvrtc_lines"] {
        for (entry, refused) in entries(name) {
            decoded += usize::from(refused.is_empty());
            for line in refused.lines().skip(1) {
                assert!(
                    line.contains("`call ") && line.contains("the module does not define it"),
                    "{name} {entry}: {line}"
                );
            }
        }
    }
    assert!(decoded >= 10, "{decoded}");
}
