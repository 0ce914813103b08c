//! Examples of `kernels-rs/examples` beside CUDA C.
//!
//! `cuda/EXAMPLE.cu` has the kernels of an example in CUDA C: the same algorithm with the same
//! blocks, as CUDA programmers write it. The PTX interpreter runs NVRTC's PTX on the cases of the
//! example's spec, as if that PTX were ours. Reports must be those of our kernel. Bits must be
//! equal, except for approximate values and results that depend on the order of atomic operations.

use super::{Compared, Phase, Work, read, theirs};
use crate::support::checker;
use kernel_dsl::compiler::hir::Instance;
use runtime::testing::{PreparedInstance, Random, kernel_specs, on_every_core};
use std::fs;
use std::path::Path;
use tests::examples::MAINS;

/// The module of the examples.
pub const MODULE: &str = "tests::examples::";

/// The examples.
pub const NAMES: [&str; 12] = [
    "bfs",
    "bvh",
    "fft",
    "hash_table",
    "heat",
    "keccak",
    "look_back",
    "nbody",
    "radix_sort",
    "sha256",
    "smith_waterman",
    "work_queue",
];

/// The part of the page that explains how the kernels of examples are counted.
pub const SLOTS: &str = "
## Examples

The kernels of twelve of `kernels-rs/examples`. The CUDA C has the same algorithm and blocks, and the PTX interpreter runs its PTX on the
cases of the examples. None of the kernels spills.

Slots are those of one of these:

- an edge (expand), a node (trace), a probe (insert, look_up), a point (heat), a round (keccak), a body (nbody), a step (smith_waterman)
- a store to shared memory (radix_sort), two a bit
- a multiply-add (mandelbrot), three an iteration

The other kernels are counted as a whole, each loop once. The loop of heat has a branch for even and odd steps in our code. Both branches
are counted, although a step executes one of them.

NVRTC unrolls the loop of expand by four, so four edges share a comparison and a branch. In the loop of look_up, ptxas predicates our step
to the next slot: it copies the slot, and compares twice more than in NVRTC's code.

Both versions of trace (bvh) join comparisons by `&`, so that all loads of a node are in flight at once. With `&&`, a load waits for the
comparison before it: a slice may end there, so no compiler may load earlier.

`rsqrtf` of CUDA C treats denormal numbers in more instructions than `fast::rsqrt`. With NVRTC's option `--ftz=true`, both loops of nbody
take the same number of slots.

";

/// The part of the page that explains how lines are counted.
pub const LINES: &str = "
Lines of code of an example's kernels, with their device functions and constants. Comments, empty lines, brackets alone, attributes
and `#include` are not counted. A list in parentheses over several lines counts once. Attributes of a kernel describe its launch, which is
host code in CUDA C.

";

/// The kernels: names, counted instructions, and the parameters of our entry that the CUDA C
/// takes, in its order.
const KERNELS: [(&str, Work, &str); 13] = [
    ("expand", each(&[once("LDG")]), "level count frontier starts ends distance next found"),
    ("trace", each(&[once("LDS")]), "boxes child rays hits hits_len"),
    ("fft", Work::Whole, "roots x"),
    ("insert", each(&[once("ATOM")]), "keys keys_len table table_len counts"),
    ("look_up", each(&[once("LDG")]), "keys keys_len table table_len counts found"),
    ("heat", Work::Rolled, "rows columns tolerance even odd changes changes_len steps"),
    ("keccak", Work::Rolled, "x x_dim0"),
    ("look_back", Work::Whole, "x x_len y states ticket"),
    ("nbody", each(&[once("MUFU")]), "bodies bodies_dim0 accelerations"),
    ("radix_sort", each(&[once("STS")]), "bits x"),
    ("sha256", Work::Whole, "x x_dim0 y"),
    ("smith_waterman", each(&[once("SHFL")]), "a a_dim1 b b_dim1 best"),
    ("mandelbrot", each(&[Phase { counts: "FFMA", without: "I2F" }]), "image image_dim0 image_dim1 next"),
];

const fn once(counts: &'static str) -> Phase {
    Phase { counts, without: "" }
}

const fn each(phases: &'static [Phase]) -> Work {
    Work::Loops(phases)
}

/// Returns the kernels of the examples, which are linked because `MAINS` is read.
pub fn kernels() -> Vec<Compared> {
    assert!(!MAINS.is_empty());
    let all = kernel_dsl::kernels();
    let of = |(name, work, _): (&str, Work, &str)| {
        let kernel = all.iter().find(|k| k.name == name && k.module.starts_with(MODULE));
        (*kernel.unwrap_or_else(|| panic!("no example has the kernel {name}")), work)
    };
    KERNELS.into_iter().map(of).collect()
}

/// Returns the parameters of the only entry of a module: the lines of its list.
fn parameters(ptx: &str) -> impl Iterator<Item = &str> {
    let list = ptx.split_once(".entry ").map_or("", |(_, entry)| entry);
    let list = list.split_once('(').map_or("", |(_, list)| list);
    list.split_once(')').map_or("", |(list, _)| list).split(',').map(str::trim)
}

/// Returns `theirs` with the parameters of our entry. Parameters that the CUDA C takes have the
/// names of the CUDA C.
fn with_our_parameters(ours: &str, theirs: &str, taken: &str) -> String {
    let taken: Vec<&str> = taken.split(' ').collect();
    let given: Vec<&str> = parameters(theirs).collect();
    assert_eq!(given.len(), taken.len(), "NVRTC's parameters are {given:?}");
    let parameter = |ours: &str| {
        let name = ours.rsplit(' ').next().unwrap_or_default();
        taken.iter().position(|taken| *taken == name).map_or(ours, |k| given[k]).to_string()
    };
    let all: Vec<String> = parameters(ours).map(parameter).collect();
    let (head, rest) = theirs.split_once('(').expect("an entry has parameters");
    let (_, body) = rest.split_once(')').expect("the list of parameters ends");
    format!("{head}({}){body}", all.join(", "))
}

/// Returns the table of lines.
pub fn line_table() -> String {
    let mut table = "| example | lines | lines of CUDA C |\n|---|---|---|\n".to_string();
    for name in NAMES {
        let [ours, theirs] = lines(name);
        table += &format!("| {name} | {ours} | {theirs} |\n");
    }
    table
}

/// Returns the lines of code of an example's kernels, and of the CUDA C.
fn lines(name: &str) -> [usize; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../kernels-rs/examples/{name}.rs"));
    let example = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    [count(device_code(&example).into_iter()), count(read(&format!("cuda/{name}.cu")).lines())]
}

/// Returns the lines of the kernels and device items of a file, which rustfmt has formatted.
fn device_code(example: &str) -> Vec<&str> {
    let (mut code, mut depth, mut inside) = (Vec::new(), 0, false);
    for line in example.lines() {
        inside |= line.starts_with("#[kernel") || line.starts_with("#[device");
        if inside {
            code.push(line);
            depth += depth_change(line, "([{", ")]}");
            inside = depth > 0 || !line.ends_with([';', '}']);
        }
    }
    code
}

/// Counts lines of code. A list in parentheses counts once. Lines that hold only brackets are not
/// counted, because the two languages put opening braces in different places.
fn count<'a>(lines: impl Iterator<Item = &'a str>) -> usize {
    let (mut number, mut depth) = (0, 0);
    for line in lines.map(|line| without_comment(line).trim()) {
        let is_code =
            line.contains(|c| !"()[]{};,".contains(c)) && !line.starts_with("#[") && !line.starts_with("#include");
        number += usize::from(depth == 0 && is_code);
        depth += depth_change(line, "(", ")");
    }
    number
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Returns the number of opening brackets of a line less that of closing ones.
fn depth_change(line: &str, open: &str, close: &str) -> i32 {
    let number = |of: &str| without_comment(line).matches(|c| of.contains(c)).count() as i32;
    number(open) - number(close)
}

#[test]
fn examples_have_no_more_lines_than_cuda_c() {
    for name in NAMES {
        let [ours, theirs] = lines(name);
        assert!(0 < ours && ours <= theirs, "{name} has {ours} lines, and {theirs} in CUDA C");
    }
}

#[test]
fn lines_of_code_are_counted() {
    let example = "//! A.\nuse b;\n\n/// C.\n#[device]\nconst D: u32 = 1;\n\n/// E.\n#[kernel(\n    block = 1,\n)]\n\
                   #[requires(true)]\nfn f(\n    a: u32, // G\n) {\n    // H\n    i(a);\n\n}\n\nfn j() {}\n";
    assert_eq!(count(device_code(example).into_iter()), 3);
    assert_eq!(count("#include <a>\n// B\nint c(int d,\n    int e)\n{\n    return d;\n}\n".lines()), 2);
}

#[test]
fn cuda_c_of_examples_computes_the_same() {
    let (checker, specs) = (checker(false), kernel_specs());
    on_every_core(&KERNELS, |(name, _, taken)| {
        let spec = specs.iter().find(|s| s.artifact.name == *name && s.artifact.module.starts_with(MODULE));
        let spec = spec.unwrap_or_else(|| panic!("{name} has no spec"));
        let declared = &spec.artifact.instances[0];
        let instance = Instance(declared.constants.to_vec());
        let ptx = with_our_parameters(declared.ptx, &theirs(spec.artifact), taken);
        let prepared = PreparedInstance::compile(spec.artifact, &instance).and_then(|p| p.with_ptx(&ptx));
        let prepared = prepared.unwrap_or_else(|e| panic!("{name}: {e}"));
        for case in (spec.cases)(&instance, &mut Random::new(1)) {
            let result = checker.case(&prepared, &case, |inputs| (spec.reference)(&instance, inputs));
            assert!(result.is_ok(), "{name}, {}: {}", case.name, result.unwrap_err());
        }
    });
}
