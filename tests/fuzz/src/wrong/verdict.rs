//! The verdict of our compiler without rustc, as for a kernel from a string.

use kernel_dsl_compiler::hir::{Instance, monomorphic};
use kernel_dsl_compiler::source_file::standalone;
use kernel_dsl_compiler::{Compilation, Errors};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A refusal: the stage and its message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckerRefusal {
    /// The stage.
    pub stage: &'static str,
    /// The messages.
    pub message: String,
}

/// The stage whose refusals rustc shares.
const FRONT_END: &str = "the front end";

/// Messages of the front end about what the type checker and the borrow checker of rustc check too.
const SHARED_WITH_RUSTC: &[&str] = &[
    "expected `",
    "no variable or generic constant",
    "is not declared `mut`",
    "cannot assign",
    "takes ",
    "has no field",
    "is not covered",
    "is used after it was moved",
    "is borrowed",
    "may have no value",
    "cannot be cast",
    "does not apply to",
    "is private",
];

impl CheckerRefusal {
    /// Returns whether rustc may accept the program: the message states a limit of the language, or
    /// a mistake that only our compiler finds.
    pub fn is_limit(&self) -> bool {
        self.stage != FRONT_END || !SHARED_WITH_RUSTC.iter().any(|part| self.message.contains(part))
    }
}

/// Returns the refusal of a program with one kernel; `None` if it is compiled.
///
/// A panic counts as a refusal, with its own stage.
pub fn refusal(text: &str) -> Option<CheckerRefusal> {
    let refused = |stage| move |errors: Errors| CheckerRefusal { stage, message: errors.to_string() };
    let compile = || -> Result<(), CheckerRefusal> {
        let program = standalone(text, "kernel.rs", None).map_err(refused(FRONT_END))?;
        let declared = program.launch.instances.iter().map(|declared| declared.arguments.clone());
        let plain = program.functions[0].generics.is_empty().then(Instance::default);
        for instance in declared.chain(plain).take(1) {
            let monomorphic = monomorphic(&program, &instance).map_err(refused("the instance"))?;
            let compilation = Compilation::new(&monomorphic, program.launch.target).map_err(refused("lowering"))?;
            compilation.optimized().map_err(refused("the passes"))?;
        }
        Ok(())
    };
    match catch_unwind(AssertUnwindSafe(compile)) {
        Ok(outcome) => outcome.err(),
        Err(_) => Some(CheckerRefusal { stage: "a panic", message: String::new() }),
    }
}
