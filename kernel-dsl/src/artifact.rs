//! What an expansion holds of a kernel beside its type-checking copy.

use kernel_dsl_compiler::hir::Constant;
use kernel_dsl_compiler::{Build, Target};

/// A kernel as its crate was compiled: declared instances with their PTX, and the HIR to compile others from.
#[derive(Debug)]
pub struct Artifact {
    /// Name in Rust, without its path.
    pub name: &'static str,
    /// `module_path!()` of the kernel.
    pub module: &'static str,
    /// Source file, relative to the crate that holds it and prefixed with that crate's name.
    pub file: &'static str,
    /// Line of the `fn`, from 1.
    pub line: u32,
    /// Documentation comment.
    pub docs: &'static str,
    /// What the kernel says it is for: sm_61, unless a clause `target` names a later one.
    pub target: Target,
    /// The serialised [`Program`](kernel_dsl_compiler::hir::Program); see `hir::serial`.
    pub hir: &'static [u8],
    /// The instances that the kernel declares, with their PTX.
    pub instances: &'static [Declared],
}

/// A declared instance.
#[derive(Debug)]
pub struct Declared {
    /// As named in Rust: `saxpy`, `matmul::<16>`.
    pub name: &'static str,
    /// Values of the generic constants, in order.
    pub constants: &'static [Constant],
    /// PTX for the kernel's target.
    pub ptx: &'static str,
}

/// A kernel as a type: what `#[kernel]` makes of a function's name.
pub trait Kernel {
    /// What the expansion holds.
    const ARTIFACT: &'static Artifact;
    /// Values of this instance's generic constants.
    const CONSTANTS: &'static [Constant];
}

/// An entry of the registry of linked kernels.
#[derive(Debug)]
pub struct Registered(pub &'static Artifact);
inventory::collect!(Registered);

/// The kernels that the program links, by module and name.
pub fn kernels() -> Vec<&'static Artifact> {
    let mut all: Vec<_> = inventory::iter::<Registered>().map(|r| r.0).collect();
    all.sort_by_key(|a| (a.module, a.name));
    all
}

/// How the macros that this program was built with were themselves compiled.
pub const MACROS: Build = {
    let (opt_level, debug_assertions, rustc) = kernel_macros::__build!();
    Build { opt_level, debug_assertions, rustc }
};
