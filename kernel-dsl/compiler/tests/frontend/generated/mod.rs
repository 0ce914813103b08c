//! Generated kernels that index register arrays by constants, tables, arrays of indices and indices
//! of unrolled loops, compiled from Rust text to PTX. The kernels also use arrays in local memory,
//! structs, generic enums with data, comparisons of all types, and generic constants.
//!
//! Every kernel compiles, unless the generator gave it an index that only a thread knows. Such a
//! kernel may be rejected, by a message that names the index.
//!
//! The project has three generators. The programs of this one have the richest types: nested
//! arrays, tuples, structs and enums. The kernels are only compiled, never run, so values may be
//! undefined. `tests/fuzz/src/generate` makes kernels of many threads to run, in which every value
//! is defined. `passes/generator.rs` makes IR that no Rust is lowered to.

mod expression;
mod generator;
mod statement;

use crate::support::{Random, Refusal};
use generator::Generator;
use kernel_dsl_compiler::driver::Compilation;
use kernel_dsl_compiler::{Errors, check, hir, ir, syntax};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A generated kernel.
pub struct Program {
    /// A module of device items.
    pub module: String,
    /// The kernel, which names items of the module.
    pub kernel: String,
    /// Whether a register array may have an index that is not constant.
    pub run_time: bool,
}

/// Returns the program of a seed.
pub fn program(seed: u64) -> Program {
    Generator::new(Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)).program()
}

/// The result of compiling a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// Both forms of the kernel have PTX.
    Compiled,
    /// A register array has an index that is not constant, and the message says so.
    Refused,
}

/// Compiles the program of a seed.
///
/// # Errors
/// The program and the messages, if the outcome is not one that it may have.
pub fn run(seed: u64) -> Result<Outcome, String> {
    let program = program(seed);
    let text = || format!("seed {seed}:\n{}\n{}", program.module, program.kernel);
    let outcome = catch_unwind(AssertUnwindSafe(|| compile(&program)));
    match outcome.map_err(|_| format!("a panic for {}", text()))? {
        Ok(()) => Ok(Outcome::Compiled),
        Err(said) => {
            let refused = |line: &str| {
                line.contains("registers cannot be indexed by `")
                    || line.contains("is in registers, and its index is not a constant")
                    || line.contains("of this range is not a constant: the loop cannot be unrolled")
                    || line.starts_with("help: ")
            };
            match program.run_time && said.lines().all(refused) {
                true => Ok(Outcome::Refused),
                false => Err(format!("{said}\nfor {}", text())),
            }
        }
    }
}

/// Compiles both forms of a program to the text of their PTX.
fn compile(program: &Program) -> Result<(), String> {
    let front = |refusal: Refusal| refusal.0.iter().map(|c| c.message.clone()).collect::<Vec<_>>().join("\n");
    let later = |errors: Errors| errors.to_string();
    let module: syn::Item = syn::parse_str(&program.module).map_err(|e| format!("the module is not Rust: {e}"))?;
    let read = syntax::module(&module).map_err(|e| front(e.into()))?;
    let checked = check::module(&read, &[]);
    let checked = checked.map_err(|e| e.into_iter().map(|e| front(e.diagnostics.into())).collect::<String>())?;
    let mut kernel: syn::ItemFn =
        syn::parse_str(&program.kernel).map_err(|e| format!("the kernel is not Rust: {e}"))?;
    let attribute = match kernel.attrs.remove(0).meta {
        syn::Meta::List(list) => list.tokens,
        _ => Default::default(),
    };
    let read = syntax::kernel(attribute, &kernel).map_err(|e| front(e.into()))?;
    let callee = |path: syn::Path| {
        let name = &path.segments.last()?.ident;
        let (_, library) = checked.libraries.iter().find(|(of, _)| of == name)?;
        Some(check::ItemReference { path: name.to_string(), library: library.clone() })
    };
    let callees: Vec<_> = read.callees().into_iter().filter_map(callee).collect();
    let program = check::kernel(&read, &callees).map_err(|e| front(e.into()))?.hir;
    let instance = program.launch.instances.first().ok_or("no instance")?;
    let monomorphic = hir::monomorphic(&program, &instance.arguments).map_err(later)?;
    let compilation = Compilation::new(&monomorphic, program.launch.target).map_err(later)?;
    ir::verify::verify(compilation.lowered()).map_err(|e| format!("the verifier rejects the IR as lowered: {e}"))?;
    compilation.text().map_err(later)?;
    compilation.checked().ptx().map_err(|e| format!("only the checked form fails: {e}"))?;
    Ok(())
}

/// The number of programs of the test.
#[cfg(test)]
const PROGRAMS: u64 = 2000;

#[test]
fn generated_kernels_compile() {
    let outcomes: Vec<Outcome> = (0..PROGRAMS).map(|seed| run(seed).unwrap_or_else(|e| panic!("{e}"))).collect();
    let refused = outcomes.iter().filter(|o| **o == Outcome::Refused).count() as u64;
    // Few enough that most kernels go the whole way; the message is seen too.
    assert!((1..PROGRAMS / 4).contains(&refused), "{refused} of {PROGRAMS} kernels are rejected");
}
