//! Runs every example of `kernels-rs/examples`, and checks the kernels of the expert examples:
//! every declared instance on every executor against plain Rust, and through ptxas.

#[allow(dead_code, reason = "the test runs a smaller layer than `main`")]
#[path = "../../kernels-rs/examples/decoder.rs"]
mod decoder;
mod every_target;
#[path = "../../kernels-rs/examples/find_bug.rs"]
mod find_bug;
#[path = "../../kernels-rs/examples/library.rs"]
mod library;
#[path = "../../kernels-rs/examples/property.rs"]
mod property;
#[path = "../../kernels-rs/examples/reduce.rs"]
mod reduce;
#[path = "../../kernels-rs/examples/saxpy.rs"]
mod saxpy;
#[path = "../../kernels-rs/examples/streams.rs"]
mod streams;
#[path = "../../kernels-rs/examples/transpose.rs"]
mod transpose;

use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::Instance;
use kernels_rs::blocks::DecoderShape;
use runtime::Device;
use runtime::testing::{Checker, kernel_specs, on_every_core};
use std::error::Error;
use std::fs;
use std::path::Path;
use tests::examples::MAINS;

/// Returns the kernels of a module.
fn kernels_of(module: &str) -> Vec<&'static Artifact> {
    let module = format!("tests::examples::{module}");
    let kernels: Vec<_> = kernel_dsl::kernels().into_iter().filter(|k| k.module == module).collect();
    assert!(!kernels.is_empty(), "{module} has no kernels");
    kernels
}

/// Checks the kernels of a module.
fn check(checker: &Checker, module: &str) {
    for kernel in kernels_of(module) {
        let all = kernel_specs();
        let spec = all.iter().find(|s| (s.artifact.module, s.artifact.name) == (kernel.module, kernel.name));
        let spec = spec.unwrap_or_else(|| panic!("nothing tries {}", kernel.name));
        on_every_core(kernel.instances, |declared| {
            let report = checker.check(spec, &Instance(declared.constants.to_vec()), 1);
            assert!(report.passed(), "{report}");
        });
    }
}

macro_rules! kernels {
    ($($module:ident)*) => {
        $(#[test]
        fn $module() {
            check(&Checker::new(None), stringify!($module));
            kernels_of(stringify!($module)).into_iter().for_each(every_target::assemble);
        })*

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn gpu_expert_examples_pass() {
            let checker = Checker::new(Some(Device::cuda(0).expect("an NVIDIA GPU is present")));
            $(check(&checker, stringify!($module));)*
        }
    };
}
kernels!(sgemm q8_gemm flash_attention decode_attention scan histogram bitonic conv3d elementwise topk bfs bvh fft hash_table heat keccak knn look_back nbody radix_sort sha256 smith_waterman
    work_queue);

#[test]
fn masked_loads_need_no_select() {
    let conv3d =
        kernel_dsl::kernels().into_iter().find(|k| k.name == "conv3d").expect("conv3d is a kernel of an example");
    // `x.get(at).unwrap_or(0.0)` becomes a masked load, which needs no select.
    assert!(conv3d.instances.iter().all(|instance| !instance.ptx.contains("selp")));
}

/// Checks that the report shows what unrolling saves in `nbody`, whose loop is unrolled by 4: a
/// body takes fewer issue slots than rolled.
#[test]
fn nbody_shows_what_unrolling_saves() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_all-kernels"));
    let output = command.args(["report", "nbody", "--unroll", "--json"]).output().unwrap();
    if !output.status.success() {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let [inner] = &report[0]["unrolling"].as_array().unwrap()[..] else { panic!("{report}") };
    let loops = report[0]["machine_code"]["sass"]["loops"].as_array().unwrap();
    let machine = loops.iter().find(|l| l["line"]["number"] == inner["line"]).unwrap();
    let slots = |form: usize| inner["forms"][form]["slots"].as_f64().unwrap();
    let [declared, rolled, by_4] = [slots(0), slots(1), slots(3)];
    assert_eq!((inner["iterations"].as_u64(), &inner["forms"][3]["unrolling"]["by"]), (Some(128), &4.into()));
    assert_eq!((declared, 4.0 * declared), (by_4, machine["slots"].as_f64().unwrap()));
    assert!(declared + 2.0 <= rolled, "{declared} and {rolled}");
}

/// The main function of an example.
type Main = fn() -> Result<(), Box<dyn Error>>;

/// The examples besides the expert ones.
const OTHERS: [(&str, Main); 8] = [
    ("decoder", decode),
    ("find_bug", find_bug::main),
    ("library", library::main),
    ("property", property::main),
    ("reduce", reduce::main),
    ("saxpy", saxpy::main),
    ("streams", streams::main),
    ("transpose", transpose::main),
];

/// Runs the example `decoder` with a small layer.
fn decode() -> Result<(), Box<dyn Error>> {
    let shape = DecoderShape { width: 48, heads: 2, groups: 1, head: 64, inner: 40, epsilon: 1e-6 };
    decoder::run(&Device::best()?, shape, 3, 2)
}

#[test]
fn examples_run() {
    for (name, main) in OTHERS.iter().chain(MAINS) {
        main().unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

#[test]
fn every_example_is_run_and_in_the_readme() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let files = fs::read_dir(root.join("kernels-rs/examples")).unwrap();
    let name = |file: fs::DirEntry| file.path().file_stem().unwrap().to_str().unwrap().to_string();
    let mut names: Vec<String> = files.map(|file| name(file.unwrap())).collect();
    let mut run: Vec<&str> = OTHERS.iter().chain(MAINS).map(|(name, _)| *name).collect();
    names.sort();
    run.sort();
    assert_eq!(run, names);
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let missing: Vec<&String> = names.iter().filter(|name| !readme.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "README.md does not list {missing:?}");
}
