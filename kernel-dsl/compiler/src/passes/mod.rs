//! Rewrites of IR that preserve what a kernel computes.
//!
//! A pass takes IR that [`verify`](crate::ir::verify) accepts, and leaves IR that it accepts.
//!
//! # What a pass may do
//!
//! * Values stay equal bit for bit. There are two exceptions: the payload and sign of a NaN that
//!   arithmetic produces, and values that the language leaves unspecified (an uninitialized
//!   variable, a division by zero).
//! * Loads, stores and atomic operations keep their order, and their position among barriers. Three
//!   exceptions concern loads of read-only memory: such a load may trade places with an adjacent
//!   load, and it may be dropped if it is unused or repeats an earlier load. Unrolling copies
//!   accesses in order.
//! * A pure instruction may run where the program would not have run it. So reports of overflow or
//!   division by zero are meaningful on IR as lowered only.
//!
//! # Order
//!
//! [`PHASES`] is the pipeline. Code that needs only a part of the pipeline passes the phases to
//! [`run`].
//!
//! 1. [`FRONT`] drops operations that only the oracle runs, turns variables into values, folds
//!    constants, and unrolls loops. Register arrays become values after unrolling.
//! 2. [`SIMPLIFY`] removes decided comparisons, unchanged loop-carried values, dead code and common
//!    subexpressions. Branches are still branches.
//! 3. [`PLACES`] turns small branches into selects and predicates, merges the reports of failed
//!    checks, hoists invariants, and places tables. Accesses still name buffers, indices and
//!    extents.
//! 4. [`ADDRESSES`] turns places into addresses and chooses the cheapest form of each.
//! 5. [`MACHINE`] packs small integers into words, sinks computations below loops, and schedules
//!    loads.
//!
//! The `tables` pass uses [`uniformity`](crate::analyses::uniformity), which is the only analysis
//! that a pass may use: it depends on no pass.

pub mod address_lowering;
pub mod async_group_numbering;
pub mod base_commoning;
pub mod correlated_value_propagation;
pub mod cse;
pub mod dce;
pub mod fold;
pub mod if_conversion;
pub mod induction_variables;
pub mod licm;
pub mod load_scheduling;
pub mod loop_carried;
pub mod oracle_op_removal;
pub mod pointer_strength_reduction;
pub mod predicated_loads;
pub mod promote;
pub mod report_merging;
pub mod sink;
pub mod strength_reduction;
pub mod subword_packing;
pub mod tables;
pub mod unroll;

mod constants;
mod exits;
mod rewrite;
mod simplify;
mod table_reads;

use crate::assertion::FailureEffect;
use crate::error::Errors;
use crate::ir::{AccessPlace, Kernel, Op, Region, Unroll, WaitGroup};

/// A pass: rewrites IR in place. After an error the IR must be discarded.
pub type PassFunction = fn(&mut Kernel) -> Result<(), Errors>;

/// A pass with its name.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// The name in `kernels check` and `kernels show --ir`.
    pub name: &'static str,
    /// The rewrite.
    pub run: PassFunction,
}

/// Turns variables into values and unrolls loops.
pub const FRONT: &[Pass] = &[
    Pass { name: "oracle_op_removal", run: oracle_op_removal::oracle_op_removal },
    Pass { name: "promote", run: promote::promote },
    Pass { name: "fold", run: fold::fold },
    Pass { name: "unroll", run: unroll::unroll },
    Pass { name: "promote", run: promote::promote },
    Pass { name: "promote_folded", run: |kernel| promote::promote_folded(kernel).map(drop) },
];

/// Simplifies while branches are still branches.
pub const SIMPLIFY: &[Pass] = &[
    Pass { name: "correlated_value_propagation", run: correlated_value_propagation::correlated_value_propagation },
    Pass { name: "fold", run: fold::fold },
    Pass { name: "loop_carried", run: loop_carried::loop_carried },
    Pass { name: "dce", run: dce::dce },
    Pass { name: "cse", run: cse::cse },
];

/// Converts small branches to predicates while accesses still name buffers, indices and extents.
pub const PLACES: &[Pass] = &[
    Pass { name: "if_conversion", run: if_conversion::if_conversion },
    Pass { name: "predicated_loads", run: predicated_loads::predicated_loads },
    Pass { name: "report_merging", run: report_merging::report_merging },
    Pass { name: "licm", run: licm::licm },
    Pass { name: "tables", run: tables::tables },
];

/// Turns places into addresses, and chooses the cheapest form of each address.
pub const ADDRESSES: &[Pass] = &[
    Pass { name: "address_lowering", run: address_lowering::address_lowering },
    Pass { name: "cse", run: cse::cse },
    Pass { name: "licm", run: licm::licm },
    Pass { name: "pointer_strength_reduction", run: pointer_strength_reduction::pointer_strength_reduction },
    Pass { name: "induction_variables", run: induction_variables::induction_variables },
    Pass { name: "base_commoning", run: base_commoning::base_commoning },
    Pass { name: "strength_reduction", run: strength_reduction::strength_reduction },
    Pass { name: "async_group_numbering", run: async_group_numbering::async_group_numbering },
];

/// Prepares for the machine: packs small integers, places instructions.
pub const MACHINE: &[Pass] = &[
    // Dead uses would block packing.
    Pass { name: "dce", run: dce::dce },
    Pass { name: "subword_packing", run: subword_packing::subword_packing },
    Pass { name: "sink", run: sink::sink },
    Pass { name: "load_scheduling", run: load_scheduling::load_scheduling },
];

/// All phases in order. A pass may occur more than once.
pub const PHASES: [&[Pass]; 5] = [FRONT, SIMPLIFY, PLACES, ADDRESSES, MACHINE];

/// Returns the passes of all phases in order.
pub fn pipeline() -> impl Iterator<Item = &'static Pass> {
    PHASES.into_iter().flatten()
}

/// Runs the passes of `phases` in order.
pub fn run(kernel: &mut Kernel, phases: &[&[Pass]]) -> Result<(), Errors> {
    phases.iter().copied().flatten().try_for_each(|pass| (pass.run)(kernel))
}

/// IR after all passes, as emission needs it. Each constant has one value, defined at the start of
/// the body. There are no locals, no places except addresses, and no loops left to unroll. Only
/// [`optimize`] and [`legal`] make it.
#[derive(Clone, PartialEq, Debug)]
pub struct Optimized(Kernel);

impl std::ops::Deref for Optimized {
    type Target = Kernel;
    fn deref(&self) -> &Kernel {
        &self.0
    }
}

/// Runs all passes.
pub fn optimize(kernel: impl Into<Kernel>) -> Result<Optimized, Errors> {
    optimize_with(kernel.into(), |_, _| {})
}

/// Runs all passes, and calls `observe` with the IR after each.
pub fn optimize_with(mut kernel: Kernel, mut observe: impl FnMut(&Pass, &Kernel)) -> Result<Optimized, Errors> {
    for pass in pipeline() {
        (pass.run)(&mut kernel)?;
        if cfg!(verified) {
            assert_eq!(crate::ir::verify::verify(&kernel), Ok(()), "after {}:\n{kernel}", pass.name);
        }
        observe(pass, &kernel);
    }
    legal(kernel)
}

/// Runs the phases before places become addresses. Accesses still name buffers and indices, and
/// loops are unrolled.
pub fn with_places(mut kernel: Kernel) -> Result<Kernel, Errors> {
    run(&mut kernel, &[FRONT, SIMPLIFY, PLACES])?;
    dce::dce(&mut kernel)?;
    Ok(kernel)
}

/// Checks that IR is in the form that emission needs.
///
/// # Errors
/// Each instruction that is not legal.
pub fn legal(kernel: Kernel) -> Result<Optimized, Errors> {
    let mut errors = promote::unpromoted(&kernel);
    if errors.is_empty() {
        illegal(&kernel.body, &kernel, &mut errors);
    }
    errors.dedup();
    if errors.is_empty() { Ok(Optimized(kernel)) } else { Err(Errors(errors)) }
}

/// Collects an error for each instruction that emission does not accept.
fn illegal(region: &Region, kernel: &Kernel, errors: &mut Vec<crate::error::Error>) {
    for inst in &region.insts {
        let fault = match &inst.op {
            Op::ReadLocal { local, .. } | Op::WriteLocal { local, .. } if !kernel.locals[local.0 as usize].memory => {
                "a variable is still a local"
            }
            Op::Load { place, .. } | Op::Store { place, .. } | Op::Atomic { place, .. }
                if !matches!(place, AccessPlace::Address { .. }) =>
            {
                "a place is not an address yet"
            }
            Op::CopyAsync(copy)
                if ![&copy.to, &copy.from].into_iter().all(|p| matches!(p, AccessPlace::Address { .. })) =>
            {
                "a place is not an address yet"
            }
            Op::CopyWait(WaitGroup::UpTo(_)) => "a wait for copies does not say how many groups come after",
            Op::Dynamic { .. } => "an array of dynamic size has no address yet",
            Op::Panic { outcome: FailureEffect::Continue | FailureEffect::Exit, .. } => "an assertion is still there",
            Op::MarkUndef { .. } | Op::LifetimeStart(_) | Op::DbgValue { .. } => {
                "an operation that only the oracle runs remains"
            }
            Op::For(l) if l.unroll == Unroll::Full => "a loop is not unrolled yet",
            op => {
                op.regions().into_iter().for_each(|r| illegal(r, kernel, errors));
                continue;
            }
        };
        errors.push(kernel.error(inst.location, format!("IR is not ready for emission: {fault}")));
        inst.op.regions().into_iter().for_each(|r| illegal(r, kernel, errors));
    }
}
