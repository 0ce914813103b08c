//! Reports and pages of a kernel for programs that link this crate, such as the Python package.
//! The kernel need not be registered.

use crate::inspect::{self, Examination, Inspection};
use crate::machine::Tools;
use crate::name::SelectedInstance;
use crate::report::print_summary;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::hir::{Instance, Program};

/// An examined instance: its forms, costs and advice.
pub struct Examined(Inspection);

/// Error that keeps an instance from being examined, such as a compile error.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] crate::error::Error);

impl Examined {
    /// Compiles and examines an instance of `program`, whose artifact is `artifact`. Registers and
    /// machine code require ptxas and nvdisasm of NVIDIA, which are used if they are found.
    ///
    /// # Errors
    /// Returns the compiler's errors, and an error if ptxas rejects the PTX.
    pub fn new(
        artifact: &'static Artifact,
        program: &Program,
        instance: Instance,
        target: Target,
    ) -> Result<Examined, Error> {
        let selected = SelectedInstance { artifact, instance };
        let tools = Tools::find(target);
        let examination = Examination { tools: tools.as_ref(), ..Examination::default() };
        Ok(Examined(inspect::examine(&selected, program, target, examination)?))
    }

    /// Marks the differences from a PTX text, as `kernels inspect --against FILE.ptx` does. The
    /// page calls the text `name`.
    ///
    /// # Errors
    /// Returns an error if ptxas is found and rejects the PTX for `target`.
    pub fn compare_ptx(&mut self, name: &str, ptx: &str, target: Target) -> Result<(), Error> {
        self.0.compare(inspect::ptx_code(name, ptx, target)?);
        Ok(())
    }

    /// Returns the report of `kernels report`.
    ///
    /// # Errors
    /// Returns no error in practice, because the text is written to memory.
    pub fn report(&self) -> Result<String, Error> {
        let mut text = Vec::new();
        print_summary(&self.0, &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Returns the page of `kernels inspect`: one HTML document that needs no network.
    pub fn page(&self) -> String {
        inspect::fixed_page(&self.0)
    }
}
