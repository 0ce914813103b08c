//! `kernels doctor`: what this machine provides for kernels.

use crate::error::{CommandOutcome, Error};
use crate::output::json;
use clap::Args;
use kernel_dsl::artifact::MACROS;
use kernels_rs_estimate::nvdisasm::Nvdisasm;
use kernels_rs_estimate::ptxas::Ptxas;
use runtime::doctor::{self, DriverFinding, MachineDescription};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Reports what this machine provides for kernels: driver, GPUs, tools, and how the macros were
/// compiled
///
/// Only Rust is required: without a GPU, kernels run on the CPU.
#[derive(Args)]
pub(super) struct DoctorArgs {
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoctorReport {
    #[serde(flatten)]
    machine: MachineDescription,
    /// Assembler, or `null` if none is found.
    ptxas: Option<Ptxas>,
    /// Path of the disassembler, or `null` if none is found.
    nvdisasm: Option<PathBuf>,
    macros: Macros,
}

/// Build options of the macros, which contain the compiler that made the program's PTX.
#[derive(Serialize)]
struct Macros {
    /// Cargo's `opt-level`.
    opt_level: &'static str,
    optimized: bool,
    /// Whether the macros verify the IR after every pass.
    verified: bool,
    rustc: &'static str,
}

impl DoctorArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<CommandOutcome, Error> {
        let macros = Macros {
            opt_level: MACROS.opt_level,
            optimized: MACROS.opt_level != "0",
            verified: MACROS.verified,
            rustc: MACROS.rustc,
        };
        let ptxas = Ptxas::find();
        let nvdisasm = ptxas.as_ref().and_then(Nvdisasm::find).map(|nvdisasm| nvdisasm.path().to_path_buf());
        let report = DoctorReport { machine: doctor::examine(), ptxas, nvdisasm, macros };
        match self.json {
            true => json(out, &report)?,
            false => report.print(out)?,
        }
        Ok(CommandOutcome::Success)
    }
}

impl DoctorReport {
    fn print(&self, out: &mut dyn Write) -> Result<(), Error> {
        match &self.machine.driver {
            DriverFinding::Found { cuda, on_cpu: true, .. } => {
                writeln!(out, "driver   CUDA {cuda} by cuda-on-cpu: its device is the PTX interpreter, on the CPU")?;
            }
            DriverFinding::Found { cuda, needed, release, on_cpu: false } => {
                let release = release.as_ref().map_or_else(String::new, |release| format!(", release {release}"));
                writeln!(out, "driver   CUDA {cuda}{release} (CUDA {needed} or later is needed)")?;
            }
            DriverFinding::Unusable { reason } => writeln!(out, "driver   {reason}")?,
        }
        let on_cpu = matches!(self.machine.driver, DriverFinding::Found { on_cpu: true, .. });
        let label = if on_cpu { "no GPU" } else { "GPU" };
        for device in &self.machine.devices {
            let name = device.info.as_ref().map_or_else(
                || "a GPU".to_string(),
                |info| {
                    let gib = info.memory_bytes as f64 / f64::from(1u32 << 30);
                    format!("{info}, {} multiprocessors, {gib:.1} GiB", info.multiprocessors)
                },
            );
            match &device.problem {
                Some(problem) => writeln!(out, "{label:8} {name}: {problem}")?,
                None => writeln!(out, "{label:8} {name}")?,
            }
        }
        writeln!(out, "CPU      {} threads", self.machine.cpu_threads)?;
        if let Some(best) = &self.machine.best {
            // The lines above give the reason for the choice.
            writeln!(out, "device   {}", best.device)?;
        }
        match &self.ptxas {
            Some(ptxas) => {
                let dropped =
                    if ptxas.takes_sm_61() { "" } else { "; it no longer knows sm_61: 12.9 is the last that does" };
                let release = ptxas.release.as_deref().unwrap_or("of unknown release");
                writeln!(out, "ptxas    {release}, {}{dropped}", ptxas.path.display())?;
            }
            None => writeln!(
                out,
                "ptxas    none on PATH or in target/tools; estimate, tune, report, bench, inspect, show --sass and tests \
                 use it"
            )?,
        }
        match &self.nvdisasm {
            Some(path) => writeln!(out, "nvdisasm {}", path.display())?,
            None => writeln!(
                out,
                "nvdisasm none beside ptxas, on PATH or in target/tools; estimate, tune, inspect and show --sass need \
                 it; `tests/get-nvdisasm` of kernels-rs fetches both"
            )?,
        }
        let Macros { opt_level, optimized, verified, rustc } = self.macros;
        let note = if verified { ", IR verified after each pass" } else { "" };
        writeln!(out, "macros   opt-level {opt_level}{note}, {rustc}")?;
        if !optimized {
            let setting = "[profile.dev.package.kernel-dsl-compiler]: opt-level = 1";
            writeln!(out, "         many instances compile faster with optimized macros; in Cargo.toml, {setting}")?;
        }
        Ok(())
    }
}
