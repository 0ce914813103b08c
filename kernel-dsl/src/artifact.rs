//! The data of a kernel in its expansion: names, HIR, and the PTX of the declared instances.

use kernel_dsl_compiler::hir::{self, Constant, Instance, Program, serial};
use kernel_dsl_compiler::{Build, Target};

/// The compiled form of a kernel in its crate: the PTX of the declared instances, and the HIR from
/// which other instances are compiled.
#[derive(Debug)]
pub struct Artifact {
    /// The name in Rust, without its path.
    pub name: &'static str,
    /// `module_path!()` of the kernel.
    pub module: &'static str,
    /// The source file, relative to its crate and prefixed with that crate's name.
    pub file: &'static str,
    /// The line of the `fn`, counted from 1.
    pub line: u32,
    /// The documentation comment.
    pub docs: &'static str,
    /// The kernel's target: sm_61, unless a clause `target` names a later one.
    pub target: Target,
    /// The serialized [`Program`]; see `hir::serial`.
    pub hir: &'static [u8],
    /// The names of the generic parameters, in order.
    pub parameters: &'static [&'static str],
    /// The instances that the kernel declares, with their PTX.
    pub instances: &'static [Declared],
}

impl Artifact {
    /// Decodes the kernel's HIR.
    ///
    /// # Errors
    /// The error of [`serial::program`] if the HIR has another format version or is corrupt.
    pub fn program(&self) -> Result<Program, serial::Error> {
        serial::program(self.hir)
    }

    /// Returns the name of an instance, declared or not, as reports and errors print it.
    pub fn instance_name(&self, constants: &[Constant]) -> String {
        match self.instances.iter().find(|declared| declared.constants == constants) {
            Some(declared) => declared.name.to_string(),
            None => self.name_with_arguments(constants),
        }
    }

    /// Returns the generic argument of an instance for the parameter with the given name; `None` if
    /// the kernel has no such parameter.
    pub fn constant<'a>(&self, instance: &'a Instance, parameter: &str) -> Option<&'a Constant> {
        let position = self.parameters.iter().position(|name| *name == parameter)?;
        instance.0.get(position)
    }

    /// Returns an instance with its generic arguments, even if the kernel declares a name for the
    /// instance: `matmul<T = 16>`.
    pub fn name_with_arguments(&self, constants: &[Constant]) -> String {
        hir::name_with_arguments(self.name, self.parameters.iter().copied(), constants)
    }
}

/// A declared instance.
#[derive(Debug)]
pub struct Declared {
    /// The name in reports and on the command line: `saxpy`, `matmul<T = 16>`, `gemm@tile`.
    pub name: &'static str,
    /// The generic arguments, constants and types, in the order of the parameters.
    pub constants: &'static [Constant],
    /// PTX for the kernel's target.
    pub ptx: &'static str,
}

/// A kernel as a type. `#[kernel]` implements it for the function's name.
pub trait Kernel {
    /// The content of the expansion.
    const ARTIFACT: &'static Artifact;
    /// The generic arguments of this instance, constants and types, in the order of the parameters.
    const CONSTANTS: &'static [Constant];
}

/// An entry of the registry of linked kernels.
#[derive(Debug)]
pub struct Registered(pub &'static Artifact);
inventory::collect!(Registered);

/// Lists the kernels that the program links, sorted by module and name.
pub fn kernels() -> Vec<&'static Artifact> {
    let mut all: Vec<_> = inventory::iter::<Registered>().map(|r| r.0).collect();
    all.sort_by_key(|a| (a.module, a.name));
    all
}

/// The build settings of the macros that expanded the kernels of this program.
pub const MACROS: Build = {
    let (opt_level, verified, rustc) = kernel_macros::__build!();
    Build { opt_level, verified, rustc }
};
