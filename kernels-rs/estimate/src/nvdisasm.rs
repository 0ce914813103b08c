//! NVIDIA's disassembler. It is optional: reports use it if it is found.

use super::ptxas::{Ptxas, Resources};
use crate::sass::Listing;
use kernel_dsl::compiler::Target;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Installed nvdisasm.
#[derive(Debug)]
pub struct Nvdisasm {
    path: PathBuf,
}

impl Nvdisasm {
    /// Finds the first nvdisasm beside `ptxas`, on PATH, or in `target/tools`, to which
    /// `tests/get-nvdisasm` downloads it.
    pub fn find(ptxas: &Ptxas) -> Option<Nvdisasm> {
        let file = format!("nvdisasm{}", env::consts::EXE_SUFFIX);
        let beside = ptxas.path.parent().map(PathBuf::from);
        let files = beside.into_iter().chain(super::ptxas::folders()).map(|folder| folder.join(&file));
        files.into_iter().find(|p| p.is_file()).map(|path| Nvdisasm { path })
    }

    /// Assembles a module with one kernel. Returns its resources and its machine code as text, with
    /// lines if the PTX has them, or the failing tool's message.
    pub fn text(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, String), String> {
        self.run(ptxas, ptx, target, &["-c", "-g"])
    }

    fn run(&self, ptxas: &Ptxas, ptx: &str, target: Target, options: &[&str]) -> Result<(Resources, String), String> {
        let cubin = Scratch::new();
        let resources = ptxas.assemble_to(ptx, target, &cubin.0)?;
        let output = Command::new(&self.path).args(options).arg(&cubin.0).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", self.path.display()))?;
        if !output.status.success() {
            return Err(format!("{}: {}", self.path.display(), String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok((resources, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Assembles a module with one kernel. Returns its resources, and its machine code with
    /// encodings and the lines of the PTX, or the failing tool's message.
    pub fn encoded(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, String), String> {
        self.run(ptxas, ptx, target, &["-c", "-gp", "-hex"])
    }

    /// Assembles a module with one kernel and parses the disassembly. Returns the resources and the
    /// listing, or the failing tool's message.
    pub fn disassemble(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, Listing), String> {
        let (resources, text) = self.text(ptxas, ptx, target)?;
        let listing =
            Listing::read(&text).ok_or_else(|| format!("cannot parse the output of {}", self.path.display()))?;
        Ok((resources, listing))
    }

    /// Returns only the machine code of a module with one kernel.
    pub fn listing(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<Listing, String> {
        Ok(self.disassemble(ptxas, ptx, target)?.1)
    }
}

/// Temporary file, removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Scratch(env::temp_dir().join(format!("kernels-{}-{number}.cubin", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = fs::remove_file(&self.0);
    }
}
