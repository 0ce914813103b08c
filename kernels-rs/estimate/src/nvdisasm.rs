//! The interface to NVIDIA's disassembler, nvdisasm, which is optional.

use super::ptxas::{Ptxas, Resources};
use crate::sass::Listing;
use kernel_dsl::compiler::Target;
use kernel_dsl::compiler::ptx::ast::Module;
use kernel_dsl::compiler::ptx::link::link;
use kernel_dsl::compiler::ptx::parse;
use std::collections::{BTreeMap, HashMap};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Start of a kernel's section in the output of nvdisasm, before its name.
const SECTION: &str = "//--------------------- .text.";

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

    /// Returns the path of the program.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Assembles a module with one kernel. Returns its resources and its machine code as text, with
    /// lines if the PTX has them.
    ///
    /// # Errors
    /// Returns the message of the tool that fails.
    pub fn text(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, String), String> {
        self.run(ptxas, ptx, target, &["-c", "-g"])
    }

    fn run(&self, ptxas: &Ptxas, ptx: &str, target: Target, options: &[&str]) -> Result<(Resources, String), String> {
        let cubin = TemporaryFile::new();
        let resources = ptxas.assemble_to(ptx, target, &cubin.0)?;
        Ok((resources, self.read(&cubin, options)?))
    }

    /// Disassembles a file.
    fn read(&self, cubin: &TemporaryFile, options: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.path).args(options).arg(&cubin.0).output();
        let output = output.map_err(|e| format!("cannot run {}: {e}", self.path.display()))?;
        if !output.status.success() {
            return Err(format!("{}: {}", self.path.display(), String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Assembles and disassembles modules with one kernel each. The modules of a PTX version become
    /// one, since nvdisasm takes 0.14 s to start; the version affects the machine code. Returns the
    /// resources and the machine code of each kernel, without source lines.
    ///
    /// # Errors
    /// Returns the message of the tool that fails.
    pub fn disassemble_all<'p>(
        &self,
        ptxas: &Ptxas,
        modules: impl IntoIterator<Item = &'p str>,
        target: Target,
    ) -> Result<Vec<(Resources, Listing)>, String> {
        let mut versions: BTreeMap<_, Vec<(String, Module)>> = BTreeMap::new();
        let mut names = Vec::new();
        for (number, ptx) in modules.into_iter().enumerate() {
            let mut module = parse(ptx).map_err(|e| e.to_string())?;
            // Kernels of several modules may have one name.
            let name = format!("kernel_{number}");
            if !module.rename_entry(name.clone()) {
                return Err("a module has no entry".to_string());
            }
            names.push(name.clone());
            versions.entry(module.version()).or_default().push((name, module));
        }
        let mut kernels = HashMap::new();
        for modules in versions.into_values() {
            kernels.extend(self.disassemble_linked(ptxas, modules, target)?);
        }
        let kernel = |name| kernels.remove(&name).ok_or_else(|| format!("the machine code lacks {name}"));
        names.into_iter().map(kernel).collect()
    }

    /// Links modules, each with the name of its kernel, and returns the machine code by name.
    fn disassemble_linked(
        &self,
        ptxas: &Ptxas,
        modules: Vec<(String, Module)>,
        target: Target,
    ) -> Result<HashMap<String, (Resources, Listing)>, String> {
        let linked = link(modules).map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        let cubin = TemporaryFile::new();
        let mut resources = ptxas.assemble_kernels_to(&linked.to_string(), target, &cubin.0)?;
        // With `-g`, nvdisasm 12.9 crashes if several kernels have lines.
        let text = self.read(&cubin, &["-c"])?;
        let mut sections = text.split(SECTION);
        let header = sections.next().unwrap_or_default();
        let kernels = sections.filter_map(|section| section.split_once(' ')).filter_map(|(name, code)| {
            let resources = resources.remove(name)?;
            Some(
                self.parse(&format!("{header}{SECTION}{name} {code}"))
                    .map(|code| (name.to_string(), (resources, code))),
            )
        });
        kernels.collect()
    }

    /// Assembles a module with one kernel. Returns its resources, and its machine code with
    /// encodings and the lines of the PTX.
    ///
    /// # Errors
    /// Returns the message of the tool that fails.
    pub fn encoded(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, String), String> {
        self.run(ptxas, ptx, target, &["-c", "-gp", "-hex"])
    }

    /// Assembles a module with one kernel and parses the disassembly. Returns the resources and the
    /// listing.
    ///
    /// # Errors
    /// Returns the message of the tool that fails.
    pub fn disassemble(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<(Resources, Listing), String> {
        let (resources, text) = self.text(ptxas, ptx, target)?;
        Ok((resources, self.parse(&text)?))
    }

    fn parse(&self, text: &str) -> Result<Listing, String> {
        Listing::read(text).ok_or_else(|| format!("cannot parse the output of {}", self.path.display()))
    }

    /// Returns only the machine code of a module with one kernel.
    ///
    /// # Errors
    /// Returns the message of the tool that fails.
    pub fn listing(&self, ptxas: &Ptxas, ptx: &str, target: Target) -> Result<Listing, String> {
        Ok(self.disassemble(ptxas, ptx, target)?.1)
    }
}

/// Temporary file, removed on drop.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new() -> TemporaryFile {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        TemporaryFile(env::temp_dir().join(format!("kernels-{}-{number}.cubin", std::process::id())))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = fs::remove_file(&self.0);
    }
}
