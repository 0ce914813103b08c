//! Tests that span several crates:
//!
//! * `tests/library`: every call of the library against plain Rust, on the CPU and on a GPU. Random
//!   shapes and values are by proptest. Messages of `refusals` name the caller's arguments.
//! * `tests/language`: the language through the macros. `constructs` has a program for each
//!   construct, from which the compiler generates the reference page. In `witness`, rustc and our
//!   compiler compile the same kernels. `scalar_operators` tests operators and casts at the edges
//!   of types, `memory` wide, masked and atomic accesses. `extents` runs every public call of the
//!   library at extents of 0, 1 and around 65,535, on buffers beyond 2³¹ bytes, and misaligned.
//! * `tests/devices`: graphs, streams and occupancy.
//! * `tests/machine_code`: the PTX of the library's kernels in snapshots, and what ptxas makes of
//!   it: registers, spills and issue slots (`budgets`), by release of ptxas (`compilers`), and the
//!   source lines of instructions (`sass`).
//! * `tests/ptxas.rs`: NVIDIA's assembler accepts each kernel, unchecked and checked, for its first
//!   target and for later ones in rotation.
//! * `tests/analyses`: bank conflicts, sectors, slow code, reached bytes and uniform values,
//!   against addresses in plain Rust and measurements of the interpreter.
//! * `tests/oracle`: every check of the oracle, and the page of checks. `checked` tests the checked
//!   form of faulty kernels.
//! * `tests/zoo`: kernels with one bug each, which the oracle reports at the marked line, beside
//!   corrected twins, for which it reports nothing.
//! * `tests/mutation`: our kernels with one change of their IR at a time, which the oracle or the
//!   reference must detect.
//! * `tests/specs`: extreme inputs of the specs, and every kernel on a GPU.
//! * `tests/examples.rs`: runs every example of `kernels-rs/examples`, and checks the kernels of
//!   the expert ones with the cases in `src/cases`; the program `all-kernels` is the command
//!   `kernels` for them and for the library.
//! * `tests/nvrtc`: thirteen kernels, and those of twelve examples, beside CUDA C that NVRTC
//!   compiled: issue slots and registers on sm_61, and lines of code of the examples.
//! * `tests/documentation`: the README shows the program's current output, the page of supported
//!   Rust is current, calls do what their documentation states. Also the layers of the runtime
//!   (`import_circles`) and the names of types.
//! * `tests/faults`, `tests/latency.rs`, `tests/traced.rs`: tests that need a process each, for a
//!   lost device, a counting allocator, and a global subscriber of `tracing`.
//! * `outside`: crates outside the workspace, with their own kernels. The script
//!   `tests/outside/run` tests them, and `tests/editor` runs rust-analyzer on them.
//! * `fuzz`, a separate package: random kernels, on which all executors must agree.

mod cases;
pub mod examples;
pub mod share;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A snapshot of PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// The name of the kernel's entry, such as `matmul_16`.
    pub name: String,
    /// The PTX module.
    pub ptx: String,
}

/// Returns the snapshots of `tests/machine_code/ptx.rs`, by name.
pub fn ptx_snapshots() -> io::Result<Vec<Snapshot>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine_code/snapshots");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    // insta writes rejected results beside the accepted ones, with another extension.
    files.retain(|file| file.extension().is_some_and(|extension| extension == "snap"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(name) = stem.strip_prefix("machine_code__ptx__") {
            let text = fs::read_to_string(&file)?;
            // insta's header of a snapshot is between two lines of dashes.
            let ptx = text.splitn(3, "---\n").nth(2).unwrap_or_default();
            all.push(Snapshot { name: name.to_string(), ptx: ptx.to_string() });
        }
    }
    Ok(all)
}
