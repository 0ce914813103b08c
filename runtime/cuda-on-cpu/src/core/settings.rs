//! Settings of the device, of the checks and of the log, from environment variables.

use super::findings::ProcessFindings;
use super::inject::FaultInjection;
use super::leaks::LeakCheck;
use kernel_dsl_compiler::oracle::GROUPS;
use kernel_dsl_compiler::target::Target;
use runtime_ptx::{Check, CheckSet, Checks};
use std::fs::OpenOptions;
use std::path::Path;

/// The settings of the process.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Compute capability.
    pub capability: (u32, u32),
    /// The device's reported name.
    pub name: String,
    /// The device's memory in bytes.
    pub memory: u64,
    /// The reported number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The number of devices, all alike.
    pub devices: u32,
    /// The number of devices visible to the process.
    pub visible: u32,
    /// The checks applied to kernels.
    pub checks: Checks,
    /// The maximum number of warp instructions of a launch.
    pub fuel: u64,
    /// The injected fault: the calls that fail.
    pub fail: Option<FaultInjection>,
    /// The log's destination.
    pub log: Option<String>,
    /// The reaction to a finding in a kernel.
    pub on_finding: OnFinding,
    /// The objects that the leak check reports.
    pub leak_check: LeakCheck,
    /// The exit code of the process if there are findings.
    pub error_exit: Option<i32>,
    /// The file for the findings as JSON.
    pub json: Option<String>,
    /// The file for the findings as SARIF.
    pub sarif: Option<String>,
    /// The file of findings to leave out.
    pub suppressions: Option<String>,
}

/// Reaction to a finding in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFinding {
    /// The launch stops with an error, and the context fails, as on a GPU.
    Stop,
    /// The access is left out, and the kernel continues. At the end, a summary lists the findings.
    Continue,
}

/// The environment variables, with descriptions.
pub const VARIABLES: [(&str, &str); 16] = [
    ("CUDA_ON_CPU_DEVICES", "number of identical devices with separate memory, at most 16; default 1"),
    ("CUDA_ON_CPU_CAPABILITY", "compute capability of the device, such as 8.6; default 6.1"),
    ("CUDA_ON_CPU_NAME", "name of the device"),
    ("CUDA_ON_CPU_MEMORY", "size of its memory in bytes, with an optional K, M or G; default 8G"),
    ("CUDA_ON_CPU_MULTIPROCESSORS", "number of multiprocessors that it reports; default 2"),
    (
        "CUDA_ON_CPU_CHECKS",
        "`faults`: faults that a GPU detects too; `all`: every check of the PTX interpreter; or names of checks after the faults, as in `faults,uninitialized-buffer`",
    ),
    (
        "CUDA_ON_CPU_FUEL",
        "warp instructions that a block may run before its launch is stopped; 100000000 stop an endless loop after seconds; default 2^36, about an hour",
    ),
    (
        "CUDA_ON_CPU_FAIL",
        "calls that fail with a CUDA error code: `700@17` the 17th call, `2@cuMemAlloc_v2` every call of that name, `2@cuMemAlloc_v2#3` its third call",
    ),
    (
        "CUDA_ON_CPU_LOG",
        "`stderr`, `off`, or a file: one line for each rejected call; default stderr with the command, off without it",
    ),
    (
        "CUDA_ON_CPU_ON_FINDING",
        "`stop`: a launch fails at its first error; `continue`: the access is left out, and a summary at the end lists all",
    ),
    (
        "CUDA_ON_CPU_LEAK_CHECK",
        "`full`: a summary at the end lists memory, streams, events, graphs and other objects that still exist; `modules`: also modules and libraries; default `no`",
    ),
    ("CUDA_ON_CPU_ERROR_EXITCODE", "exit code of the process if kernels had errors or objects leaked, 1 to 255"),
    ("CUDA_ON_CPU_JSON", "file for the findings, as JSON"),
    ("CUDA_ON_CPU_SARIF", "file for the findings, as SARIF 2.1.0"),
    (
        "CUDA_ON_CPU_SUPPRESSIONS",
        "file of findings to leave out, one a line: CHECK KERNEL, or leak FUNCTION, with `*` for any text",
    ),
    ("CUDA_ON_CPU_COMPILERS", "`on`: `ptxas` and `nvcc` write PTX as the cubin; `off`: PATH is unchanged; default off"),
];

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            capability: (6, 1),
            name: "CPU, by the PTX interpreter of kernels-rs".to_string(),
            memory: 8 << 30,
            // The value that `kernel_dsl::device` gives for the CPU.
            multiprocessors: 2,
            devices: 1,
            visible: 1,
            checks: Checks::Faults,
            fuel: 1 << 36,
            fail: None,
            log: None,
            on_finding: OnFinding::Stop,
            leak_check: LeakCheck::No,
            error_exit: None,
            json: None,
            sarif: None,
            suppressions: None,
        }
    }
}

impl Settings {
    /// Parses the variables. Also returns one line for each invalid variable, whose setting keeps
    /// its default.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> (Settings, Vec<String>) {
        let (mut settings, mut wrong) = (Settings::default(), Vec::new());
        for (name, meaning) in VARIABLES {
            let Some(text) = variable(name) else { continue };
            if settings.set(name, text.trim()).is_none() {
                wrong.push(format!("invalid {name}={text}: {meaning}"));
            }
        }
        settings.visible = settings.devices;
        if let Some(visible) = variable("CUDA_VISIBLE_DEVICES") {
            // The list ends at its first nonexistent device. The devices are alike, so only their
            // number matters.
            let known = |number: &str| number.trim().parse::<u32>().is_ok_and(|number| number < settings.devices);
            settings.visible = visible.split(',').take_while(|number| known(number)).count() as u32;
            settings.visible = settings.visible.min(settings.devices);
        }
        (settings, wrong)
    }

    fn set(&mut self, name: &str, text: &str) -> Option<()> {
        match name {
            "CUDA_ON_CPU_CAPABILITY" => {
                let (major, minor) = text.split_once('.')?;
                let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
                // The limits of other capabilities are unknown.
                Target::new(u16::try_from(10 * major.min(100) + minor.min(10)).ok()?)?;
                self.capability = (major, minor);
            }
            "CUDA_ON_CPU_NAME" => self.name = (!text.is_empty()).then(|| text.to_string())?,
            "CUDA_ON_CPU_MEMORY" => self.memory = bytes(text).filter(|bytes| *bytes > 0)?,
            "CUDA_ON_CPU_MULTIPROCESSORS" => {
                self.multiprocessors = text.parse().ok().filter(|n| (1..=1024).contains(n))?;
            }
            "CUDA_ON_CPU_DEVICES" => {
                self.devices = text.parse().ok().filter(|n| (1..=16).contains(n))?;
            }
            "CUDA_ON_CPU_CHECKS" => {
                self.checks = match text {
                    "faults" => Checks::Faults,
                    "all" => Checks::All,
                    names => Checks::Named(named(names)?),
                }
            }
            "CUDA_ON_CPU_FUEL" => self.fuel = text.parse().ok().filter(|n| *n > 0)?,
            "CUDA_ON_CPU_FAIL" => self.fail = Some(text.parse().ok()?),
            "CUDA_ON_CPU_ON_FINDING" => {
                self.on_finding = match text {
                    "stop" => OnFinding::Stop,
                    "continue" => OnFinding::Continue,
                    _ => return None,
                }
            }
            "CUDA_ON_CPU_LEAK_CHECK" => {
                self.leak_check = match text {
                    "no" => LeakCheck::No,
                    "full" => LeakCheck::Full,
                    "modules" => LeakCheck::Modules,
                    _ => return None,
                }
            }
            "CUDA_ON_CPU_ERROR_EXITCODE" => {
                self.error_exit = Some(text.parse().ok().filter(|code| (1..=255).contains(code))?);
            }
            "CUDA_ON_CPU_JSON" => self.json = path(text),
            "CUDA_ON_CPU_SARIF" => self.sarif = path(text),
            "CUDA_ON_CPU_SUPPRESSIONS" => self.suppressions = path(text),
            // The command reads the variable, not the library.
            "CUDA_ON_CPU_COMPILERS" => matches!(text, "on" | "off").then_some(())?,
            _ => self.log = path(text).filter(|path| path != "off"),
        }
        Some(())
    }

    /// Returns the compilation target of the device.
    pub fn target(&self) -> Target {
        let (major, minor) = self.capability;
        Target::new((10 * major + minor) as u16).unwrap_or(Target::SM_61)
    }
}

/// Returns one line for each invalid variable, and for each file that cannot be read or written.
pub fn invalid_settings(variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (settings, mut wrong) = Settings::read(variable);
    let (_, problems) = ProcessFindings::new(&settings);
    wrong.extend(problems);
    let log = settings.log.filter(|log| !is_stderr(log));
    for path in [settings.json, settings.sarif, log].iter().flatten() {
        let is_new = !Path::new(path).exists();
        match OpenOptions::new().create(true).append(true).open(path) {
            // Only the end of the process writes a report.
            Ok(_) if is_new => _ = std::fs::remove_file(path),
            Ok(_) => {}
            Err(e) => wrong.push(format!("{path} cannot be written: {e}")),
        }
    }
    wrong
}

/// Returns whether a log goes to the standard error output.
pub fn is_stderr(log: &str) -> bool {
    matches!(log, "stderr" | "1")
}

fn path(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

/// Parses names of checks and of groups of checks, separated by commas. `faults` may be among them,
/// and adds nothing.
fn named(names: &str) -> Option<CheckSet> {
    names.split(',').map(str::trim).filter(|name| *name != "faults").try_fold(CheckSet::default(), |set, name| {
        let group = GROUPS.iter().find(|(known, _)| *known == name).map(|(_, checks)| *checks);
        let known = Check::ALL.iter().position(|check| check.name() == name);
        let checks = group.or_else(|| known.map(|at| &Check::ALL[at..=at]))?;
        Some(set.union(checks.iter().copied().collect()))
    })
}

/// Parses a size such as `512`, `64K`, `100M` or `8G`.
fn bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> (Settings, Vec<String>) {
        Settings::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string()))
    }

    #[test]
    fn the_environment_sets_the_device() {
        assert_eq!(read(&[]), (Settings::default(), vec![]));
        let (settings, wrong) = read(&[
            ("CUDA_ON_CPU_CAPABILITY", "8.6"),
            ("CUDA_ON_CPU_MEMORY", "24G"),
            ("CUDA_ON_CPU_MULTIPROCESSORS", "30"),
            ("CUDA_ON_CPU_CHECKS", "all"),
            ("CUDA_VISIBLE_DEVICES", "0,1"),
        ]);
        assert!(wrong.is_empty());
        assert_eq!((settings.capability, settings.memory, settings.multiprocessors), ((8, 6), 24 << 30, 30));
        assert_eq!((settings.checks, settings.visible, settings.target()), (Checks::All, 1, Target::SM_86));
        let named = read(&[("CUDA_ON_CPU_CHECKS", "faults, uninitialized-buffer")]).0.checks;
        assert_eq!(named, Checks::Named(CheckSet::from_iter([Check::UninitializedBuffer])));
        assert!(named.enables(Check::OutOfBounds) && !named.enables(Check::UndefinedValue));
        let races = read(&[("CUDA_ON_CPU_CHECKS", "race")]).0.checks;
        assert!(races.enables(Check::GlobalRace) && races.enables(Check::SharedRace));
        assert_eq!(read(&[("CUDA_VISIBLE_DEVICES", "")]).0.visible, 0);
        let visible = |devices| read(&[("CUDA_ON_CPU_DEVICES", "3"), ("CUDA_VISIBLE_DEVICES", devices)]).0.visible;
        assert_eq!([visible("2,0"), visible("1"), visible("0,7,1"), visible("-1")], [2, 1, 1, 0]);
        assert_eq!(read(&[("CUDA_ON_CPU_DEVICES", "3")]).0.visible, 3);
    }

    #[test]
    fn invalid_settings_are_reported_and_ignored() {
        for (name, text) in [
            ("CUDA_ON_CPU_CAPABILITY", "6"),
            ("CUDA_ON_CPU_CAPABILITY", "6.7"),
            ("CUDA_ON_CPU_CAPABILITY", "99999999999.0"),
            ("CUDA_ON_CPU_MEMORY", "much"),
            ("CUDA_ON_CPU_MEMORY", "99999999999999999999G"),
            ("CUDA_ON_CPU_CHECKS", "none"),
            ("CUDA_ON_CPU_FUEL", "0"),
            ("CUDA_ON_CPU_FAIL", "700"),
            ("CUDA_ON_CPU_DEVICES", "0"),
            ("CUDA_ON_CPU_ON_FINDING", "perhaps"),
            ("CUDA_ON_CPU_LEAK_CHECK", "all"),
            ("CUDA_ON_CPU_ERROR_EXITCODE", "256"),
            ("CUDA_ON_CPU_COMPILERS", "all"),
        ] {
            let (settings, wrong) = read(&[(name, text)]);
            assert_eq!(settings, Settings::default(), "{name}={text}");
            assert!(wrong[0].contains(name) && wrong.len() == 1);
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_invalid() {
        let wrong = |name: &'static str, text: &'static str| {
            invalid_settings(|variable| (variable == name).then(|| text.to_string()))
        };
        for name in ["CUDA_ON_CPU_JSON", "CUDA_ON_CPU_SARIF", "CUDA_ON_CPU_LOG", "CUDA_ON_CPU_SUPPRESSIONS"] {
            assert_eq!(wrong(name, "no/such/folder/file").len(), 1, "{name}");
        }
        assert_eq!(wrong("CUDA_ON_CPU_CHECKS", "al").len(), 1);
        assert!(wrong("CUDA_ON_CPU_LOG", "off").is_empty() && wrong("CUDA_ON_CPU_LOG", "stderr").is_empty());
        assert_eq!(read(&[("CUDA_ON_CPU_LOG", "off")]).0.log, None);
    }
}
