//! `kernels show`: an instance as PTX, IR, machine code, or Rust.

use super::lines::SourceFunctions;
use super::listing::{ListingContents, Paint};
use super::machine::Tools;
use super::name::{self, SelectedInstance};
use crate::error::{CommandOutcome, Error};
use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::driver::Compilation;
use kernel_dsl::compiler::hir::{Function, Instance, monomorphic};
use kernel_dsl::compiler::ir::Kernel;
use kernel_dsl::compiler::lower::checked::{CheckedKernel, MODERATE_ARGUMENT_LIMIT};
use kernel_dsl::compiler::passes::Optimized;
use kernel_dsl::compiler::{Errors, Target, compile, emit};
use runtime::interpreter::report::shown_path;
use std::borrow::Cow;
use std::io::Write;

/// Shows an instance: its PTX, its intermediate representation, its machine code, or its Rust
#[derive(Args)]
pub(super) struct ShowArgs {
    /// The instance: saxpy, gemm@f32_128x128_v4, 'matmul<T = 16>'. An undeclared instance is
    /// compiled on request. A kernel's name, or a pattern, is enough if it selects one instance
    name: String,
    #[command(flatten)]
    form: ShownForm,
    /// Show the IR after all passes, from which PTX is generated, instead of the IR as lowered,
    /// which the interpreter checks
    #[arg(long, requires = "ir")]
    optimized: bool,
    /// Show the checked form, which `launch` runs on a GPU: each access that is not proven to be in
    /// bounds is checked and reported
    #[arg(long, conflicts_with = "source")]
    checked: bool,
    /// The architecture to compile for, such as sm_80; by default the kernel's own, which is sm_61
    /// unless the kernel names another
    #[arg(long, value_name = "SM")]
    target: Option<Target>,
}

#[derive(Args)]
#[group(multiple = false)]
struct ShownForm {
    /// Show the PTX (default)
    #[arg(long)]
    ptx: bool,
    /// Show the compiler's intermediate representation
    #[arg(long)]
    ir: bool,
    /// Show the machine code under its lines of Rust. Braces enclose instructions that issue
    /// together; loops show the cost of an iteration; register bank conflicts are marked
    #[arg(long)]
    sass: bool,
    /// Show the Rust source of the kernel and of the device functions that it calls, with line
    /// numbers
    #[arg(long)]
    source: bool,
}

impl ShowArgs {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let ShownForm { ptx: _, ir, sass, source } = self.form;
        if source {
            for (i, function) in name::program(name::kernel(&self.name)?)?.functions.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                text(out, function)?;
            }
            return Ok(CommandOutcome::Success);
        }
        let SelectedInstance { artifact, instance } = name::instance(&self.name)?;
        let target = self.target.unwrap_or(artifact.target);
        let text = match (ir, sass, self.checked) {
            (false, false, false) => ptx(artifact, &instance, target)?,
            _ => {
                let name = artifact.instance_name(&instance.0);
                let failed = failed(artifact, &instance, target);
                let program = monomorphic(&name::program(artifact)?, &instance).map_err(&failed)?;
                let compilation = Compilation::new(&program, target).map_err(&failed)?;
                let kernel = match self.checked {
                    // The form that nearly all launches use.
                    true => ShownKernel::Checked(Box::new(
                        compilation.checked().with_arguments_up_to(MODERATE_ARGUMENT_LIMIT),
                    )),
                    false => ShownKernel::Unchecked(Box::new(compilation)),
                };
                let optimized = || kernel.optimized().map_err(&failed);
                if sass {
                    let optimized = optimized()?;
                    let ptx = emit::emit_with(&optimized, emit::LineDirectives::Kept).map_err(&failed)?;
                    self::sass(&name, &optimized, &ptx.to_string(), out)?;
                    return Ok(CommandOutcome::Success);
                }
                match (ir, self.optimized) {
                    (true, false) => kernel.lowered().to_string(),
                    (true, true) => optimized()?.to_string(),
                    (false, _) => emit::emit(&*optimized()?).map_err(&failed)?.to_string(),
                }
            }
        };
        write!(out, "{text}{}", if text.ends_with('\n') { "" } else { "\n" })?;
        Ok(CommandOutcome::Success)
    }
}

/// An instance in the form to show.
enum ShownKernel<'p> {
    Unchecked(Box<Compilation<'p>>),
    Checked(Box<CheckedKernel>),
}

impl ShownKernel<'_> {
    /// Returns the IR before all passes.
    fn lowered(&self) -> &Kernel {
        match self {
            ShownKernel::Unchecked(compilation) => compilation.lowered(),
            ShownKernel::Checked(checked) => &checked.kernel,
        }
    }

    /// Returns the IR after all passes.
    fn optimized(&self) -> Result<Cow<'_, Optimized>, Errors> {
        Ok(match self {
            ShownKernel::Unchecked(compilation) => Cow::Borrowed(compilation.optimized()?),
            ShownKernel::Checked(checked) => Cow::Owned(checked.optimized()?),
        })
    }
}

/// Returns the PTX that the program was built with, or compiles it for another instance or target.
pub(super) fn ptx(artifact: &'static Artifact, instance: &Instance, target: Target) -> Result<String, Error> {
    let declared = artifact.instances.iter().find(|d| d.constants == instance.0);
    match declared {
        Some(declared) if target == artifact.target => Ok(declared.ptx.to_string()),
        _ => compile(&name::program(artifact)?, instance, target).map_err(failed(artifact, instance, target)),
    }
}

fn failed(artifact: &'static Artifact, instance: &Instance, target: Target) -> impl Fn(Errors) -> Error {
    let instance = artifact.instance_name(&instance.0);
    move |source| Error::Compile { instance: instance.clone(), target, source }
}

/// Prints the machine code of PTX under its lines of Rust.
fn sass(name: &str, optimized: &Optimized, ptx: &str, out: &mut dyn Write) -> Result<(), Error> {
    let target = optimized.target;
    let tools =
        Tools::find(target).ok_or_else(|| Error::NoTools { missing: format!("a ptxas that knows {target}") })?;
    let machine = tools.assemble(name, ptx, target)?;
    let code = machine.code.as_ref().ok_or_else(|| Error::NoTools { missing: "nvdisasm".to_string() })?;
    let listed = ListingContents {
        instance: name,
        target,
        ptxas: tools.ptxas.to_string(),
        shared_bytes: optimized.shared_bytes(),
        machine: &machine,
        code,
        lines: SourceFunctions::of(&optimized.sources),
        paint: Paint::of_stdout(),
    };
    Ok(listed.print(out)?)
}

/// Prints the source of a function under the name of its file.
fn text(out: &mut dyn Write, function: &Function) -> Result<(), Error> {
    let source = &function.source;
    writeln!(out, "// {}", shown_path(&source.file))?;
    let width = (source.line as usize + source.text.len()).to_string().len();
    for (number, line) in (source.line..).zip(&source.text) {
        writeln!(out, "{}", format!("{number:width$} │ {line}").trim_end())?;
    }
    Ok(())
}
