//! Name resolution, type inference and mutability: from the syntax tree to HIR.
//!
//! Types are inferred by unification over one table for each function, as in rustc, so that a
//! kernel means the same in both compilers. rustc checks the same body, and reports a mistake that
//! both find (see [`expand`](crate::expand)). The messages of this module are for code that rustc
//! accepts and the device does not support. Users of the compiler as a library see all of them.
//! [`ownership`](crate::ownership) has the checks that only rustc makes of a kernel in a crate.
//!
//! A `FunctionChecker` has a function during its check. Each file adds the methods for a construct
//! of the language. `finish` ends inference.
//!
//! The resulting HIR has no unknown type, no unresolved name, and no assignment to a variable that
//! is not `mut`.

mod array;
mod bound;
mod call;
mod checker;
mod closure;
mod comparison;
mod contract;
mod convert;
mod destructure;
mod diagnostic;
mod dot;
mod environment;
mod expression;
mod finish;
mod group;
mod item;
mod iterate;
mod nominal;
mod operator;
mod option;
mod pattern;
mod result;
mod rust_type;
mod shared;
mod statement;
mod types;
mod variant;
mod written;

use crate::Scalar;
use crate::hir::{self, FunctionId, Root};
use crate::syntax;
use checker::{FunctionChecker, ItemScope};
use environment::Environment;

pub use diagnostic::{Diagnostic, ReportedBy};
pub use environment::ItemReference;
pub use finish::CheckedItem;
pub use item::{CheckedModule, ItemDiagnostics, ItemPart, module};

/// Checks a kernel. `callees` are the device items that the kernel names.
pub fn kernel(
    kernel: &syntax::Kernel,
    callees: &[ItemReference],
) -> Result<CheckedItem<hir::Program>, Vec<Diagnostic>> {
    let blank = item::blank(&kernel.function);
    let mut environment = Environment::new(Some(blank), callees);
    if kernel.names_result() {
        environment.add_result();
    }
    let mut checker = FunctionChecker::new(&kernel.function, &ItemScope::default(), &environment);
    checker.signature();
    let usize = checker.table.scalar(Scalar::Usize);
    let bool = checker.table.scalar(Scalar::Bool);
    let list = |checker: &mut FunctionChecker, all: &[syntax::Expr]| -> Vec<hir::Expr> {
        all.iter().map(|e| checker.launch_expression(e, usize)).collect()
    };
    let block = kernel.block.iter().map(|extent| match extent {
        syntax::BlockExtent::Computed(e) => hir::BlockExtent::Computed(checker.launch_expression(e, usize)),
        syntax::BlockExtent::Chosen { least, most, step } => hir::BlockExtent::Chosen {
            least: checker.launch_expression(least, usize),
            most: checker.launch_expression(most, usize),
            step: step.as_ref().map(|step| checker.launch_expression(step, usize)),
        },
    });
    let mut block: Vec<_> = block.collect();
    let mut grid = list(&mut checker, &kernel.grid);
    let mut min_blocks = kernel.min_blocks.as_ref().map(|e| checker.launch_expression(e, usize));
    let mut max_registers = kernel.max_registers.as_ref().map(|e| checker.launch_expression(e, usize));
    let mut requires: Vec<_> = kernel
        .requires
        .iter()
        .map(|(e, text)| hir::Requirement { condition: checker.launch_expression(e, bool), text: text.clone() })
        .collect();
    if let Some(ty) = &kernel.function.returns {
        checker.report(ty.mark, "a kernel cannot return a value: write the results to buffers");
    }
    checker.parameters_of_kernel();
    let instances = kernel.instances.iter().map(|i| checker.instance(i)).collect();
    let tolerances = kernel.tolerances.iter().filter_map(|t| checker.tolerance(t)).collect();
    let outputs = kernel.writes.iter().filter_map(|(name, coverage)| checker.output(name, *coverage)).collect();
    let mut body = checker.body();
    let mut finish = checker.finish(&mut body);
    let conditions = requires.iter_mut().map(|r| &mut r.condition);
    let extents = block.iter_mut().flat_map(hir::BlockExtent::expressions_mut);
    for e in extents.chain(&mut grid).chain(&mut min_blocks).chain(&mut max_registers).chain(conditions) {
        finish.expr(e);
    }
    let (function, rest) = finish.done(body)?;
    let launch = hir::LaunchContract {
        block,
        grid,
        requires,
        min_blocks,
        max_registers,
        contract: kernel.contract,
        assertions: kernel.assertions,
        cooperative: kernel.cooperative,
        target: kernel.target,
        instances,
        tolerances,
        outputs,
    };
    environment.functions[0] = function;
    Ok(rest.map(|()| hir::Program { launch, functions: environment.functions, items: environment.items }))
}

/// Checks a device function. `callees` are the device items that the function names.
pub fn device(
    function: &syntax::Function,
    callees: &[ItemReference],
) -> Result<CheckedItem<hir::DeviceLibrary>, Vec<Diagnostic>> {
    let mut environment = Environment::new(Some(item::blank(function)), callees);
    if function.names_result() {
        environment.add_result();
    }
    let mut checker = FunctionChecker::new(function, &ItemScope::default(), &environment);
    checker.signature();
    let mut body = checker.body();
    let finish = checker.finish(&mut body);
    let (function, rest) = finish.done(body)?;
    environment.functions[0] = function;
    let root = Some(Root::Function(FunctionId(0)));
    Ok(rest.map(|()| hir::DeviceLibrary { root, functions: environment.functions, items: environment.items }))
}
