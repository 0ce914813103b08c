//! `kernels show`: an instance as PTX, IR, machine code, or Rust.

use super::lines::Lines;
use super::listing::{ListingContents, Paint};
use super::machine::Tools;
use super::name::{self, Selected};
use crate::error::{Error, Outcome};
use clap::Args;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::driver::Compilation;
use kernel_dsl::compiler::hir::{Function, Instance, monomorphic};
use kernel_dsl::compiler::{Errors, Target, compile, emit};
use std::io::Write;

/// Shows an instance: its PTX, its intermediate representation, its machine code, or its Rust
#[derive(Args)]
pub(super) struct Show {
    /// The instance: saxpy, gemm@f32_128x128_v4, 'matmul<T = 16>'. An undeclared instance is
    /// compiled on request. A kernel's name, or a pattern, is enough if it selects one instance
    name: String,
    #[command(flatten)]
    form: ShownForm,
    /// Show the IR after all passes, from which PTX is generated, instead of the IR as lowered,
    /// which the interpreter checks
    #[arg(long, requires = "ir")]
    optimized: bool,
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

impl Show {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<Outcome, Error> {
        let ShownForm { ptx: _, ir, sass, source } = self.form;
        if source {
            for (i, function) in name::program(name::kernel(&self.name)?)?.functions.iter().enumerate() {
                if i > 0 {
                    writeln!(out)?;
                }
                text(out, function)?;
            }
            return Ok(Outcome::Good);
        }
        let Selected { artifact, instance } = name::instance(&self.name)?;
        let target = self.target.unwrap_or(artifact.target);
        if sass {
            self::sass(artifact, &instance, target, out)?;
            return Ok(Outcome::Good);
        }
        let text = match ir {
            true => self::ir(artifact, &instance, target, self.optimized)?,
            false => ptx(artifact, &instance, target)?,
        };
        write!(out, "{text}{}", if text.ends_with('\n') { "" } else { "\n" })?;
        Ok(Outcome::Good)
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

/// Returns the IR as lowered, or after all passes.
fn ir(artifact: &'static Artifact, instance: &Instance, target: Target, optimized: bool) -> Result<String, Error> {
    let failed = failed(artifact, instance, target);
    let program = monomorphic(&name::program(artifact)?, instance).map_err(&failed)?;
    let compilation = Compilation::new(&program, target).map_err(&failed)?;
    if optimized {
        return Ok(compilation.optimized().map_err(&failed)?.to_string());
    }
    Ok(compilation.lowered().to_string())
}

/// Prints machine code under its lines of Rust.
fn sass(artifact: &'static Artifact, instance: &Instance, target: Target, out: &mut dyn Write) -> Result<(), Error> {
    let tools =
        Tools::find(target).ok_or_else(|| Error::NoTools { missing: format!("a ptxas that knows {target}") })?;
    let failed = failed(artifact, instance, target);
    let program = monomorphic(&name::program(artifact)?, instance).map_err(&failed)?;
    let compilation = Compilation::new(&program, target).map_err(&failed)?;
    let optimized = compilation.optimized().map_err(&failed)?;
    let ptx = compilation.module(emit::LineDirectives::Kept).map_err(&failed)?.to_string();
    let name = artifact.instance_name(&instance.0);
    let machine = tools.assemble(&name, &ptx, target)?;
    let code = machine.code.as_ref().ok_or_else(|| Error::NoTools { missing: "nvdisasm".to_string() })?;
    let listed = ListingContents {
        instance: &name,
        target,
        ptxas: tools.ptxas.to_string(),
        shared_bytes: optimized.shared_bytes(),
        machine: &machine,
        code,
        lines: Lines::of(&optimized.sources),
        paint: Paint::of_stdout(),
    };
    Ok(listed.print(out)?)
}

fn failed(artifact: &'static Artifact, instance: &Instance, target: Target) -> impl Fn(Errors) -> Error {
    let instance = artifact.instance_name(&instance.0);
    move |source| Error::Compile { instance: instance.clone(), target, source }
}

/// Prints the source of a function under the name of its file.
fn text(out: &mut dyn Write, function: &Function) -> Result<(), Error> {
    let source = &function.source;
    writeln!(out, "// {}", source.file)?;
    let width = (source.line as usize + source.text.len()).to_string().len();
    for (number, line) in (source.line..).zip(&source.text) {
        writeln!(out, "{}", format!("{number:width$} │ {line}").trim_end())?;
    }
    Ok(())
}
