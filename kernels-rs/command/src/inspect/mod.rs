//! `kernels inspect`: an instance as a page, with all forms of its code linked line by line.

mod compare;
pub(super) mod error;
mod execution;
pub(super) mod limits;
mod model;
mod page;
mod pass_steps;
mod pictures;
mod serve;
mod stalls;

pub(super) use model::Inspection;

use super::cases::CaseOptions;
use super::forms::CompiledForms;
use super::machine::Tools;
use super::name::{self, SelectedInstance};
use super::report::ReportJson;
use super::trace::ThreadArgs;
use super::{emit_lines, unrolling};
use crate::error::CommandOutcome;
use clap::Args;
use compare::ComparedCode;
use error::Error;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::hir::{Instance, Program, monomorphic};
use kernel_dsl::compiler::{Compilation, Errors, Target};
use model::CodeLine;
use runtime::interpreter::profile::MemoryProfile;
use runtime::testing::{Case, Profiler};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Writes a page on an instance: its Rust, IR, PTX and machine code side by side, linked line by
/// line, with costs and pictures
///
/// The page is one HTML file and needs no network. Machine code and registers require NVIDIA's
/// ptxas and nvdisasm. Executed instructions, banks, sectors and tiles are those of a test case,
/// as the interpreter measures them.
#[derive(Args)]
pub(super) struct InspectArgs {
    /// The instance: saxpy, gemm@f32_128x128_v4, 'matmul<T = 16>'. A kernel's name, or a pattern,
    /// is enough if it selects one instance
    name: String,
    /// The file to write; by default the instance's name with the ending .html
    #[arg(short, long, value_name = "FILE", conflicts_with = "serve")]
    output: Option<PathBuf>,
    /// Mark the differences from another instance, a saved page (.html) or a PTX file (.ptx)
    #[arg(long, value_name = "FILE|INSTANCE", conflicts_with = "serve")]
    against: Option<String>,
    /// Serve the page on this machine, and follow the source: a saved file shows on the page within
    /// a second
    #[arg(long)]
    serve: bool,
    /// The port to serve on; 0 selects a free port
    #[arg(long, default_value_t = 0, requires = "serve")]
    port: u16,
    /// The source file to follow; by default the kernel's own, as seen from the current folder
    #[arg(long, value_name = "FILE", requires = "serve")]
    source: Option<PathBuf>,
    /// The architecture to compile for, such as sm_80; by default the kernel's own, which is sm_61
    /// unless the kernel names another
    #[arg(long, value_name = "SM")]
    target: Option<Target>,
    /// Also suggest how to unroll each loop: the kernel is assembled up to five times for each
    #[arg(long)]
    unroll: bool,
    #[command(flatten)]
    wanted: CaseOptions,
    #[command(flatten)]
    followed: ThreadArgs,
}

/// Parts of an examination beyond the compiled forms of an instance.
#[derive(Clone, Copy, Default)]
pub(super) struct Examination<'a> {
    /// Tools of the machine code.
    pub(super) tools: Option<&'a Tools>,
    /// The measured case.
    pub(super) wanted: Option<&'a CaseOptions>,
    /// The thread of that case to trace.
    pub(super) followed: Option<&'a ThreadArgs>,
    /// Whether to assemble the loops in their unrolled forms.
    pub(super) unrolls: bool,
}

/// Profiles the selected case of an instance. Returns the case's name and the profile; `None` if no
/// case is registered and none was requested, or if the case's grid has no block.
fn measured(
    wanted: &CaseOptions,
    artifact: &Artifact,
    instance: &Instance,
    name: &str,
    profiler: impl FnOnce() -> runtime::Result<Profiler>,
) -> Result<Option<(Case, MemoryProfile)>, crate::error::Error> {
    let cases = match wanted.of(artifact, instance) {
        // Without a requested case, the report omits the measurements.
        Err(crate::cases::Error::NoSpec { .. }) if !wanted.is_given() => return Ok(None),
        cases => cases?,
    };
    let Some(case) = cases.into_iter().next() else { return Ok(None) };
    let profiled = profiler().and_then(|profiler| profiler.run(&case));
    let profiled = profiled.map_err(|source| crate::error::Error::Profile {
        instance: name.to_string(),
        case: case.name.clone(),
        source: source.into(),
    })?;
    Ok(profiled.map(|(_, profile)| (case, profile)))
}

/// Examines an instance of `generic`, the artifact's program or a newer version of it.
pub(super) fn examine(
    selected: &SelectedInstance,
    generic: &Program,
    target: Target,
    examination: Examination<'_>,
) -> Result<Inspection, crate::error::Error> {
    let Examination { tools, wanted, followed, unrolls } = examination;
    let SelectedInstance { artifact, instance } = selected;
    let name = artifact.instance_name(&instance.0);
    let failed = |source: Errors| crate::error::Error::Compile { instance: name.clone(), target, source };
    let program = monomorphic(generic, instance).map_err(failed)?;
    let compilation = Compilation::new(&program, target).map_err(failed)?;
    let forms = CompiledForms::of(name.clone(), &compilation, tools)?;
    let mut report = ReportJson::of(&forms);
    let measure = |wanted| {
        let profiler = || Profiler::of_program(program.clone(), target);
        measured(wanted, artifact, instance, &name, profiler)
    };
    let profile = wanted.map(measure).transpose()?.flatten();
    if let Some((case, profile)) = &profile {
        report.measure(case.name.clone(), profile);
    }
    if unrolls
        && let Some(tools) = tools
        && let Some((_, machine)) = &forms.machine
        && let Some(code) = &machine.code
    {
        let loops = unrolling::of(&name, (generic, instance), target, tools, (code, machine.resources))?;
        report.unrolling = Some(loops);
    }
    let mut inspection = Inspection::new(&forms, report, profile.as_ref().map(|(_, profile)| profile));
    if let (Some((case, _)), Some(followed)) = (&profile, followed) {
        inspection.execute(&program, target, case, followed)?;
        if tools.is_some() {
            inspection.estimate(artifact, &program, target, case)?;
        }
        inspection.passes = pass_steps::of(compilation.lowered()).map_err(failed)?;
    }
    Ok(inspection)
}

/// Returns the page of an inspection, which does not change while it is open.
pub(super) fn fixed_page(inspection: &Inspection) -> String {
    page::of(inspection, page::Updates::Fixed)
}

/// Extent of an examination.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// Source, IR and PTX.
    Compiled,
    /// Also machine code and the measurements of a case.
    Complete,
}

impl InspectArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, crate::error::Error> {
        let selected = name::instance(&self.name)?;
        let program = name::program(selected.artifact)?;
        if self.serve {
            return serve::Server::new(self, selected, program)?.run(out);
        }
        let mut inspection = self.inspect(&selected, &program, Depth::Complete)?;
        if let Some(against) = &self.against {
            inspection.compare(self.compared_code(against)?);
        }
        let name = &inspection.report.instance;
        let file = self.output.clone().unwrap_or_else(|| PathBuf::from(format!("{}.html", file_name(name))));
        let written = fs::write(&file, fixed_page(&inspection));
        written.map_err(|source| Error::Write { file: file.clone(), source })?;
        writeln!(out, "{name}: {}", file.display())?;
        Ok(CommandOutcome::Success)
    }

    fn inspect(
        &self,
        selected: &SelectedInstance,
        program: &Program,
        depth: Depth,
    ) -> Result<Inspection, crate::error::Error> {
        let target = self.target.unwrap_or(program.launch.target);
        let (tools, wanted) = match depth {
            Depth::Compiled => (None, None),
            Depth::Complete => (Tools::find(target), Some(&self.wanted)),
        };
        if self.unroll && depth == Depth::Complete {
            Tools::required(tools.as_ref(), target)?;
        }
        let examination = Examination {
            tools: tools.as_ref(),
            wanted,
            followed: wanted.map(|_| &self.followed),
            unrolls: self.unroll,
        };
        examine(selected, program, target, examination)
    }

    /// Returns the other side of a comparison: a file, or else an instance.
    fn compared_code(&self, against: &str) -> Result<ComparedCode, crate::error::Error> {
        let file = Path::new(against);
        let ending = file.extension().and_then(|ending| ending.to_str());
        if !matches!(ending, Some("ptx" | "html")) {
            let selected = name::instance(against)?;
            let program = name::program(selected.artifact)?;
            return Ok(self.inspect(&selected, &program, Depth::Complete)?.into());
        }
        let text = crate::text_file::read(file).map_err(|source| Error::Read { file: file.into(), source })?;
        if ending == Some("html") {
            return Ok(page::read(&text).ok_or_else(|| Error::NoPage { file: file.into() })?);
        }
        ptx_code(against, &text, self.target.unwrap_or(Target::SM_61))
    }
}

/// Returns a PTX text as the other side of a comparison.
pub(super) fn ptx_code(name: &str, ptx: &str, target: Target) -> Result<ComparedCode, crate::error::Error> {
    if !ptx.contains(".entry") {
        return Err(Error::NoEntry { file: name.to_string() }.into());
    }
    let lines = emit_lines::of_text(ptx).into_iter();
    let lines = lines.map(|line| CodeLine { text: line.text, ..CodeLine::default() }).collect();
    let mut other = ComparedCode {
        name: name.to_string(),
        facts: Vec::new(),
        lowered: Vec::new(),
        optimized: Vec::new(),
        ptx: lines,
        sass: Vec::new(),
    };
    if let Some(tools) = Tools::find(target) {
        let machine = tools.assemble(name, ptx, target)?;
        other.facts.push(("registers".to_string(), machine.resources.registers.to_string()));
        if let Some(code) = machine.code {
            let (instructions, slots) = code.size();
            other.facts.push(("issue slots".to_string(), format!("{slots} for {instructions} instructions")));
            other.sass = model::machine_code_lines(&code, &|_| None);
        }
    }
    Ok(other)
}

/// Returns the name of an instance in characters that file names may contain.
fn file_name(instance: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '@') { c } else { '_' };
    let name: String = instance.chars().map(plain).collect();
    name.replace("___", "_").trim_matches('_').to_string()
}

/// Returns the file that holds the kernel's source, as seen from the current folder or one above.
fn source_file(artifact: &Artifact) -> Option<PathBuf> {
    // The first component is the crate's name.
    let (_, inside) = artifact.file.split_once('/')?;
    let holds =
        |file: &PathBuf| fs::read_to_string(file).is_ok_and(|text| text.contains(&format!("fn {}", artifact.name)));
    let here = std::env::current_dir().ok()?;
    let files = here.ancestors().flat_map(|folder| [folder.join(artifact.file), folder.join(inside)]);
    let mut found = files.filter(holds);
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain() {
        assert_eq!(file_name("matmul<T = 16>"), "matmul_T_16");
        assert_eq!(file_name("gemm@f32_128x128_v4"), "gemm@f32_128x128_v4");
    }
}
