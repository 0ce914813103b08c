//! What crosses the crates is tested here:
//!
//! * `tests/subset.rs`: the page of what of Rust is in and out, from programs that are taken and refused.
//! * `tests/ptx.rs`: the PTX of every declared instance of every kernel of kernels-rs, in snapshots.
//! * `tests/ptxas.rs`: NVIDIA's assembler takes each kernel, bare and checked, for its first target and later ones in turn.
//! * `tests/witness.rs`: kernels as rustc compiles them and as we do compute the same.
//! * `tests/memory`: accesses of several elements, masked ones, atomic operations.
//! * `tests/refusals.rs`: what the calls of the library refuse is said in the words of the caller.
//! * `tests/shapes.rs`: the kernels on shapes and values that proptest makes up.
//! * `tests/constructs`: a program for each construct of the language, by name; the compiler makes the reference page of them.
//! * `tests/operators.rs`: every operator and cast at the edges of its types, against rustc.
//! * `tests/language`: groups, block reductions, loops, methods of numbers, targets and fences.
//! * `tests/readme.rs`: the README shows what the program prints.
//! * `tests/outside.rs`: crates of somebody else's, with kernels of their own; `tests/editor` asks rust-analyzer about them.
//! * `tests/uniform.rs`: what is proven the same for a warp or a block is so in runs.
//! * `tests/checked.rs`: the checked form of wrong kernels reports what the oracle finds.
//! * `tests/zoo`: kernels with one bug each, which the oracle tells at the marked line, beside mended twins, of which it says nothing.
//! * `tests/mutation`: our kernels with one change of their IR at a time, which the oracle or the reference must notice.
//! * `fuzz`, a package of its own: kernels made at random, on every executor, which must agree.
//! * `tests/analyses.rs`: bank conflicts, sectors and what is slow, against addresses counted in plain Rust.
//! * `tests/extents`: every public call of the library at extents of 0, 1 and around 65,535, on buffers beyond 2³¹ bytes, and misaligned.
//! * `tests/profile.rs`: the same of every kernel, against what the interpreter measures.
//! * `tests/paper.rs`: kernels as experts write them, which stand in `src/paper` here; the program `paper` is the command `kernels`
//!   over them.
//! * `tests/nvrtc`: thirteen kernels beside what NVRTC makes of them in CUDA C: issue slots and registers on sm_61.
//! * `tests/sass.rs`: lines of Rust in PTX and in machine code, which is read in full for every kernel.
//! * `tests/gpu.rs`: every kernel on a GPU.

mod paper;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A snapshot of PTX.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Name of the kernel's entry, such as `matmul_16`.
    pub name: String,
    /// The module.
    pub ptx: String,
}

/// The snapshots of `tests/ptx.rs`, by name.
pub fn ptx_snapshots() -> io::Result<Vec<Snapshot>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    // insta writes what it found beside what is accepted, by another extension.
    files.retain(|file| file.extension().is_some_and(|extension| extension == "snap"));
    files.sort();
    let mut all = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        if let Some(name) = stem.strip_prefix("ptx__") {
            let text = fs::read_to_string(&file)?;
            // What insta writes about a snapshot stands between two lines of dashes.
            let ptx = text.splitn(3, "---\n").nth(2).unwrap_or_default();
            all.push(Snapshot { name: name.to_string(), ptx: ptx.to_string() });
        }
    }
    Ok(all)
}
