//! Tests of `kernels new`. The templates are modules of this test, so that they are compiled and
//! checked. The script `tests/new` builds the crates.

use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{Checker, kernel_specs};
use std::process::Command;

#[path = "../templates/attention.rs"]
mod attention;
#[path = "../templates/elementwise.rs"]
mod elementwise;
#[path = "../templates/reduction.rs"]
mod reduction;
#[path = "../templates/tiled.rs"]
mod tiled;

#[test]
fn every_template_passes_its_test() {
    let specs = kernel_specs();
    let names: Vec<_> = specs.iter().map(|spec| spec.artifact.name).collect();
    assert_eq!(names, ["attend", "axpy", "row_sums", "product"]);
    for spec in specs {
        for declared in spec.artifact.instances {
            let report = Checker::new(None).check(spec, &Instance(declared.constants.to_vec()), 1);
            assert!(report.passed(), "{report}");
        }
    }
}

#[test]
fn a_crate_has_all_files_and_no_placeholder() {
    let folder = std::env::temp_dir().join(format!("kernels-new-{}", std::process::id()));
    let new = |name: &str, more: &[&str]| {
        let path = folder.join(name);
        let output = Command::new(env!("CARGO_BIN_EXE_kernels")).arg("new").arg(&path).args(more).output().unwrap();
        (path, output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for template in ["elementwise", "reduction", "tiled", "attention"] {
        let (path, code, errors) = new(&format!("my-{template}"), &["--template", template]);
        assert_eq!((code, errors.as_str()), (Some(0), ""));
        let read = |file: &str| std::fs::read_to_string(path.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
        let files =
            ["src/main.rs", "src/lib.rs", "tests/kernels.rs", "benches/costs.rs", "README.md", ".vscode/settings.json"];
        for file in files {
            assert!(!read(file).contains("{{"), "{file}");
        }
        assert!(read("Cargo.toml").contains(&format!("name = \"my-{template}\"")));
        assert!(read("src/main.rs").contains(&format!("use my_{template} as _;")));
        assert!(read(".github/workflows/ci.yml").contains("cargo test"));
    }
    let (_, code, errors) = new("my-tiled", &[]);
    assert!(code == Some(2) && errors.contains("exists already"), "{errors}");
    // An empty folder is used as it is: by its path, and as the current folder.
    let empty = folder.join("in-place");
    std::fs::create_dir_all(empty.join(".git")).unwrap();
    let here = || Command::new(env!("CARGO_BIN_EXE_kernels")).args(["new", "."]).current_dir(&empty).output().unwrap();
    let output = here();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = std::fs::read_to_string(empty.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"in-place\""), "{manifest}");
    let output = here();
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists already"));
    let (_, code, errors) = new("My crate", &[]);
    assert!(code == Some(2) && errors.contains("cannot be the name of a crate"), "{errors}");
    for (name, why) in [
        ("fn", "a keyword of Rust"),
        ("gen", "a keyword of Rust"),
        ("test", "Rust's own library"),
        ("kernel-dsl", "a dependency"),
    ] {
        let (path, code, errors) = new(name, &[]);
        assert!(code == Some(2) && errors.contains(why) && !path.exists(), "{errors}");
    }
    let (path, code, _) = new("remote", &["--from", "https://example.org/kernels-rs"]);
    assert_eq!(code, Some(0));
    let cargo = std::fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(cargo.contains("runtime = { git = \"https://example.org/kernels-rs\" }"), "{cargo}");
    std::fs::remove_dir_all(folder).unwrap();
}
