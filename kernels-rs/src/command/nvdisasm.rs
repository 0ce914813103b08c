//! NVIDIA's disassembler, which nothing here needs; reports use it where it is found.

use super::ptxas::{Ptxas, Resources};
use crate::sass::Listing;
use kernel_dsl::compiler::Target;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// An nvdisasm that was found.
#[derive(Debug)]
pub struct Nvdisasm {
    path: PathBuf,
}

impl Nvdisasm {
    /// The first beside `ptxas`, on PATH, or what `tests/get-nvdisasm` fetches to `target/tools`.
    pub fn find(ptxas: &Ptxas) -> Option<Nvdisasm> {
        let file = format!("nvdisasm{}", env::consts::EXE_SUFFIX);
        let beside = ptxas.path.parent().map(PathBuf::from);
        let files = beside.into_iter().chain(super::ptxas::folders()).map(|folder| folder.join(&file));
        files.into_iter().find(|p| p.is_file()).map(|path| Nvdisasm { path })
    }

    /// Assembles a module with one kernel: what it takes, and its machine code as text, with lines where the PTX has them. What a
    /// tool has to say if it cannot.
    pub fn text(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, String), String> {
        let cubin = Scratch::new();
        let resources = ptxas.assemble_to(ptx, target, &cubin.0)?;
        let output = Command::new(&self.path).args(["-c", "-g"]).arg(&cubin.0).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", self.path.display()))?;
        if !output.status.success() {
            return Err(format!("{}: {}", self.path.display(), String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok((resources, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The same, read.
    pub fn disassemble(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, Listing), String> {
        let (resources, text) = self.text(ptxas, ptx, target)?;
        let listing = Listing::read(&text).ok_or_else(|| format!("cannot read what {} prints", self.path.display()))?;
        Ok((resources, listing))
    }

    /// The machine code alone.
    pub fn listing(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<Listing, String> {
        Ok(self.disassemble(ptxas, ptx, target)?.1)
    }
}

/// A file that is gone in the end.
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
        // It may never have been written.
        let _ = fs::remove_file(&self.0);
    }
}
