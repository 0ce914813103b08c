//! The interface to NVIDIA's assembler, ptxas, which is optional.

use kernel_dsl::compiler::Target;
use serde::Serialize;
use std::collections::HashMap;
use std::env;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Null device, which discards output.
const NULL_DEVICE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Installed ptxas.
#[derive(Serialize)]
pub struct Ptxas {
    /// Path of the executable.
    pub path: PathBuf,
    /// Release of the CUDA toolkit, such as `12.9`; `None` if unknown.
    pub release: Option<String>,
}

impl Ptxas {
    /// Finds a ptxas on PATH or in `target/tools`, to which `tests/get-ptxas` downloads it. Prefers
    /// the first that supports sm_61.
    pub fn find() -> Option<Ptxas> {
        let mut found: Vec<Ptxas> = Vec::new();
        for ptxas in Ptxas::named("ptxas") {
            if ptxas.takes_sm_61() {
                return Some(ptxas);
            }
            found.push(ptxas);
        }
        (!found.is_empty()).then(|| found.swap_remove(0))
    }

    /// Finds the ptxas of a release such as `12.2`, under the name `ptxas` or `ptxas-12.2`.
    /// `tests/get-ptxas --earlier` downloads it.
    pub fn of_release(release: &str) -> Option<Ptxas> {
        let mut found = Ptxas::named("ptxas").chain(Ptxas::named(&format!("ptxas-{release}")));
        found.find(|ptxas| ptxas.release.as_deref() == Some(release))
    }

    /// Finds every executable with this name.
    fn named(name: &str) -> impl Iterator<Item = Ptxas> + use<> {
        let file = format!("{name}{}", env::consts::EXE_SUFFIX);
        let files = folders().into_iter().map(move |folder| folder.join(&file));
        files.filter(|path| path.is_file()).map(|path| {
            let output = Command::new(&path).arg("--version").output().ok();
            let release = output.and_then(|output| release(&String::from_utf8_lossy(&output.stdout)));
            Ptxas { path, release }
        })
    }

    /// Returns whether ptxas supports sm_61: CUDA 13 dropped it.
    pub fn takes_sm_61(&self) -> bool {
        self.supports(Target::SM_61)
    }

    /// Returns whether ptxas supports `target`. Assumes so if the release is unknown.
    pub fn supports(&self, target: Target) -> bool {
        let number = |part: Option<&str>| part.and_then(|n| n.parse::<u32>().ok());
        let mut parts = self.release.as_deref().unwrap_or_default().split('.');
        let Some(major) = number(parts.next()) else { return true };
        let release = (major, number(parts.next()).unwrap_or(0));
        // The first CUDA release that supports the target, by NVIDIA's release notes. CUDA 13.0
        // dropped all targets before Turing.
        let first = match target.sm() {
            0..70 => (8, 0),
            70..75 => (9, 0),
            75..80 => (10, 0),
            80..86 => (11, 0),
            86..89 => (11, 1),
            _ => (11, 8),
        };
        release >= first && (major < 13 || target >= Target::SM_75)
    }

    /// Assembles PTX for `target`, which is the module's own target or a later one. Returns the
    /// resources of the machine code.
    ///
    /// # Errors
    /// Returns the message of ptxas if it fails.
    pub fn assemble(&self, ptx: &str, target: Target) -> Result<Resources, String> {
        self.assemble_to(ptx, target, Path::new(NULL_DEVICE))
    }

    /// Assembles PTX for `target` and keeps the machine code in the file `cubin`, with lines if the
    /// PTX has them.
    ///
    /// # Errors
    /// Returns the message of ptxas if it fails.
    pub fn assemble_to(&self, ptx: &str, target: Target, cubin: &Path) -> Result<Resources, String> {
        let output = self.run(ptx, target, cubin)?;
        Resources::read(&output).ok_or_else(|| self.cannot_parse(&output))
    }

    /// Assembles a module of several kernels for `target` and keeps the machine code in the file
    /// `cubin`. Returns the resources of each kernel by its entry's name.
    pub(crate) fn assemble_kernels_to(
        &self,
        ptx: &str,
        target: Target,
        cubin: &Path,
    ) -> Result<HashMap<String, Resources>, String> {
        let output = self.run(ptx, target, cubin)?;
        let kernels = output.split("Compiling entry function '").skip(1).map(|part| {
            let (name, rest) = part.split_once('\'')?;
            Some((name.to_string(), Resources::read(rest)?))
        });
        kernels.collect::<Option<_>>().ok_or_else(|| self.cannot_parse(&output))
    }

    fn cannot_parse(&self, output: &str) -> String {
        format!("cannot parse the output of {self} for the kernel:\n{}", output.trim())
    }

    /// Runs ptxas and returns its output about the module.
    fn run(&self, ptx: &str, target: Target, cubin: &Path) -> Result<String, String> {
        let mut command = Command::new(&self.path);
        command.args(["-v", "-lineinfo"]).arg(format!("-arch={target}")).arg("-o").arg(cubin).arg("-");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot run {}: {e}", self.path.display()))?;
        if let Some(mut input) = child.stdin.take() {
            // ptxas explains on stderr why it stopped reading early.
            let _ = input.write_all(ptx.as_bytes());
        }
        let output = child.wait_with_output().map_err(|e| format!("{}: {e}", self.path.display()))?;
        let text = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(text.trim().to_string());
        }
        Ok(text.into_owned())
    }
}

/// Returns the folders searched for NVIDIA's tools: PATH, and `target/tools` of the workspace that
/// the program runs in.
pub(crate) fn folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let here = env::current_dir().unwrap_or_default();
    let of_workspaces = here.ancestors().map(|folder| folder.join("target/tools"));
    env::split_paths(&path).chain(of_workspaces).collect()
}

/// Resources of a multiprocessor that the machine code of a kernel takes, as ptxas reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of shared memory per block, without what a launch adds.
    pub shared_bytes: u32,
    /// Bytes of local memory per thread, for values without a register.
    pub stack_bytes: u32,
    /// Bytes of spill stores per thread.
    pub spill_stores: u32,
    /// Bytes of spill loads per thread.
    pub spill_loads: u32,
}

impl Resources {
    /// Parses the output of `ptxas -v` for a module with one entry.
    fn read(output: &str) -> Option<Resources> {
        let before = |what: &str| output.split_once(what)?.0.split([' ', '\n', ',']).next_back()?.parse().ok();
        Some(Resources {
            registers: before(" registers")?,
            // ptxas omits the entry for a size of 0.
            shared_bytes: before(" bytes smem").unwrap_or(0),
            stack_bytes: before(" bytes stack frame")?,
            spill_stores: before(" bytes spill stores")?,
            spill_loads: before(" bytes spill loads")?,
        })
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, ", self.registers)?;
        match (self.spill_stores, self.spill_loads) {
            (0, 0) => f.write_str("no spills"),
            (stores, loads) => write!(f, "{stores} bytes of spill stores, {loads} of spill loads"),
        }
    }
}

impl fmt::Display for Ptxas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ptxas {}", self.release.as_deref().unwrap_or("of unknown release"))
    }
}

/// Extracts the release from the output of `ptxas --version`.
fn release(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("release ")?;
    rest.split([',', '\n']).next().map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_parsed() {
        // Output of ptxas from CUDA 12.9.
        let text = "ptxas: NVIDIA (R) Ptx optimizing assembler\nCopyright (c) 2005-2025 NVIDIA Corporation\n\
            Built on Tue_May_27_02:19:38_PDT_2025\nCuda compilation tools, release 12.9, V12.9.86\n";
        assert_eq!(release(text).as_deref(), Some("12.9"));
        assert_eq!(release("nonsense"), None);
    }

    #[test]
    fn a_release_knows_some_targets() {
        let takes = |release: Option<&str>| {
            let ptxas = Ptxas { path: PathBuf::new(), release: release.map(str::to_string) };
            Target::ALL.map(|target| ptxas.supports(target))
        };
        assert_eq!(takes(Some("12.9")), [true; 7]);
        assert_eq!(takes(None), [true; 7]);
        assert_eq!(takes(Some("11.4")), [true, true, true, true, true, false, false]);
        assert_eq!(takes(Some("13.0")), [false, false, true, true, true, true, true]);
    }

    #[test]
    fn resources_are_parsed() {
        // Output of ptxas from CUDA 12.9.
        let text = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_61'\n\
            ptxas info    : Function properties for k\n    \
            40 bytes stack frame, 24 bytes spill stores, 36 bytes spill loads\n\
            ptxas info    : Used 31 registers, used 1 barriers, 2048 bytes smem, 388 bytes cmem[0]\n";
        let resources =
            Resources { registers: 31, shared_bytes: 2048, stack_bytes: 40, spill_stores: 24, spill_loads: 36 };
        assert_eq!(Resources::read(text), Some(resources));
        assert_eq!(Resources::read("ptxas info    : 0 bytes gmem\n"), None);
    }
}
