//! Golden PTX: snapshots of the PTX of a kernel's instances, and budgets of their machine code.
//!
//! [`golden!`](crate::golden!) belongs in a test of the crate that declares the kernel. The crate
//! needs `insta` as a development dependency.
//!
//! ```no_run
//! # use kernel_dsl::prelude::*;
//! #[kernel(block = 256, grid = y.len().div_ceil(256))]
//! #[requires(x.len() == y.len())]
//! fn double(x: &[f32], y: &mut [f32]) {
//!     let i = grid::index();
//!     if i < y.len() {
//!         y[i] = 2.0 * x[i];
//!     }
//! }
//!
//! # /*
//! #[test]
//! # */
//! fn double_keeps_its_machine_code() {
//!     kernels_rs_command::golden!(double, max_registers = 16, max_spill_bytes = 0);
//! }
//! # double_keeps_its_machine_code();
//! ```

use crate::output::counted;
use kernel_dsl::Artifact;
use kernel_dsl::compiler::analyses::mix;
use kernel_dsl::compiler::hir::Instance;
use kernel_dsl::compiler::ptx::{Function, Operand, Statement, parse};
use kernels_rs_estimate::nvdisasm::Nvdisasm;
use kernels_rs_estimate::ptxas::Ptxas;
use std::collections::HashMap;

/// Limits of the machine code of each declared instance of a kernel. A limit that is `None` is not
/// checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MachineCodeLimits {
    /// Registers of a thread.
    pub max_registers: Option<u32>,
    /// Bytes of spill stores and spill loads of a thread.
    pub max_spill_bytes: Option<u32>,
    /// Bytes of shared memory of a block, without what a launch adds.
    pub max_shared_bytes: Option<u32>,
    /// Issue slots of an iteration, in the innermost loop that has the most slots.
    pub max_loop_slots: Option<u32>,
}

/// Returns the entry name and the snapshot text of each declared instance of a kernel.
///
/// The text begins with a summary, so that the difference of two snapshots first shows what
/// changed: the instructions of each class, those of each loop, the registers of each type, and the
/// arrays in memory. The PTX follows, without comments.
///
/// # Panics
///
/// Panics if the PTX of an instance does not parse, which is a bug of the compiler.
pub fn texts(artifact: &Artifact) -> Vec<(String, String)> {
    let named = artifact.instances.iter().map(|declared| {
        let entry = Instance(declared.constants.to_vec()).entry(artifact.name);
        (entry, text(artifact.name, declared.ptx))
    });
    named.collect()
}

fn text(kernel: &str, ptx: &str) -> String {
    let module = parse(ptx).unwrap_or_else(|error| panic!("{kernel}: {error}"));
    let classes = mix::mix(&module);
    let total: u32 = classes.iter().map(|(_, n)| n).sum();
    let mut text = format!("{}\n", counted(total, "instruction"));
    classes.iter().for_each(|(class, n)| text += &format!("  {n} {}\n", class.name()));
    for (label, n) in module.entries().flat_map(loops) {
        text += &format!("{} from {label} back to it\n", counted(n, "instruction"));
    }
    let code: Vec<&str> = ptx.lines().map(without_comment).filter(|line| !line.trim().is_empty()).collect();
    for directive in [".reg", ".shared", ".local"] {
        let lines = code.iter().map(|line| line.trim()).filter(|line| line.starts_with(directive));
        text.extend(lines.map(|line| format!("{}\n", line.trim_end_matches(';'))));
    }
    text += "\n";
    code.iter().for_each(|line| text += &format!("{line}\n"));
    text
}

/// Returns the label and the number of instructions of each loop, by the branches back to a label.
fn loops(function: &Function) -> Vec<(String, u32)> {
    let (mut starts, mut loops, mut count) = (HashMap::new(), Vec::new(), 0);
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Label(label) => {
                starts.insert(*label, count);
            }
            Statement::Instruction(instruction) => {
                count += 1;
                if let [Operand::Label(label)] = instruction.operands[..]
                    && let Some(start) = starts.get(&label)
                {
                    loops.push((function.labels[label.0 as usize].clone(), count - start));
                }
            }
            _ => {}
        }
    }
    loops
}

fn without_comment(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code).trim_end()
}

/// Checks the machine code of each declared instance.
///
/// ptxas finds registers, spills and shared memory, and nvdisasm finds loops. For a missing tool, a
/// line is printed, and its limits are not checked.
///
/// # Errors
/// Returns a text that lists every exceeded limit.
pub fn check(artifact: &Artifact, budget: MachineCodeLimits) -> Result<(), String> {
    if budget == MachineCodeLimits::default() {
        return Ok(());
    }
    let Some(ptxas) = Ptxas::find().filter(|ptxas| ptxas.supports(artifact.target)) else {
        println!(
            "skipped: no ptxas for {} is found, so the budget of {} is not checked",
            artifact.target, artifact.name
        );
        return Ok(());
    };
    let nvdisasm = Nvdisasm::find(&ptxas);
    if budget.max_loop_slots.is_some() && nvdisasm.is_none() {
        println!("skipped: no nvdisasm is found, so the loops of {} are not checked", artifact.name);
    }
    let mut exceeded = Vec::new();
    for declared in artifact.instances {
        let (resources, loops) = match &nvdisasm {
            Some(nvdisasm) => {
                let (resources, listing) = nvdisasm.disassemble(&ptxas, declared.ptx, artifact.target)?;
                (resources, listing.loops())
            }
            None => (ptxas.assemble(declared.ptx, artifact.target)?, Vec::new()),
        };
        let spilled = resources.spill_stores + resources.spill_loads;
        let slots = loops.iter().map(|l| l.slots).max().unwrap_or(0);
        let name = artifact.instance_name(declared.constants);
        for (what, found, limit) in [
            ("registers", resources.registers, budget.max_registers),
            ("bytes of spills", spilled, budget.max_spill_bytes),
            ("bytes of shared memory", resources.shared_bytes, budget.max_shared_bytes),
            ("issue slots in a loop", slots, budget.max_loop_slots),
        ] {
            if let Some(limit) = limit.filter(|limit| found > *limit) {
                exceeded.push(format!("{name}: {found} {what}; the budget is {limit} ({ptxas})"));
            }
        }
    }
    if exceeded.is_empty() { Ok(()) } else { Err(exceeded.join("\n")) }
}

/// Compares the PTX of each declared instance of a kernel with an `insta` snapshot, and its machine
/// code with a budget.
///
/// The calling crate needs `insta` as a development dependency (`cargo add --dev insta`).
///
/// The arguments after the kernel are fields of
/// [`MachineCodeLimits`](crate::golden::MachineCodeLimits):
/// `golden!(product, max_registers = 64, max_spill_bytes = 0)`. The macro panics if a snapshot
/// differs or a limit is exceeded. `cargo insta review`, or a run with `INSTA_UPDATE=always`,
/// accepts new PTX.
#[macro_export]
macro_rules! golden {
    ($kernel:ty $(, $limit:ident = $value:expr)* $(,)?) => {{
        let artifact = $crate::golden::artifact::<$kernel>();
        #[allow(unused_mut)]
        let mut budget = $crate::golden::MachineCodeLimits::default();
        $(budget.$limit = Some($value);)*
        for (name, text) in $crate::golden::texts(artifact) {
            insta::assert_snapshot!(name, text);
        }
        if let Err(exceeded) = $crate::golden::check(artifact, budget) {
            panic!("{exceeded}");
        }
    }};
}

/// Returns the compiled form of a kernel.
#[doc(hidden)]
pub fn artifact<K: kernel_dsl::Kernel>() -> &'static Artifact {
    K::ARTIFACT
}
