//! The extents of a block: their possible values before a launch, and their values in a launch.

use super::bounds::SteppedRange;
use super::evaluate::{EvaluationFailure, LaunchFacts};
use super::{AXES, MAX_BLOCK, MAX_THREADS, Refusal, explain, value_suffix};
use crate::hir::{BlockExtent, Expr, ExprKind, Intrinsic, LaunchContract};
use crate::ir::{Binary, BlockExtents, Comparison, OpenAxis};

/// Returns the properties of the block that are the same in all launches of an instance. `facts`
/// contains no arguments.
pub(super) fn of_instance(launch: &LaunchContract, facts: &LaunchFacts) -> Result<BlockExtents, Refusal> {
    if !(1..=3).contains(&launch.block.len()) {
        return Err(Refusal(format!("block: expected 1 to 3 extents, given {}", launch.block.len())));
    }
    let mut most = [1; 3];
    let mut open: Option<(usize, SteppedRange)> = None;
    for (axis, extent) in launch.block.iter().enumerate() {
        let known = match extent {
            BlockExtent::Computed(e) => match facts.count(e) {
                Ok(n) => Ok(n),
                Err(EvaluationFailure::Unknown) => Err(computed(axis, e, facts)?),
                Err(failure) => return Err(refusal(axis, failure, e, facts)),
            },
            BlockExtent::Chosen { least, most, step } => Err(chosen(axis, [least, most], step.as_ref(), facts)?),
        };
        most[axis] = known.unwrap_or_else(|bounds| bounds.most);
        match (&open, known) {
            (None, Err(bounds)) => open = Some((axis, bounds)),
            (Some((before, _)), _) if most[axis] != 1 => {
                return Err(Refusal(format!(
                    "block: the extent in {} is known only at launch, so the later extent in {} must be 1; put the axis that the launch chooses last",
                    AXES[*before], AXES[axis]
                )));
            }
            _ => {}
        }
    }
    checked(most)?;
    let block = match open {
        None => BlockExtents::fixed(most),
        Some((axis, SteppedRange { least, step, .. })) => BlockExtents::ranging(most, axis, least, step)
            .ok_or_else(|| Refusal(format!("block: the range of the extent in {} is empty", AXES[axis])))?,
    };
    Ok(launch.requires.iter().fold(block, |block, r| known_divisors(&r.condition, facts, block)))
}

/// Returns the block of a launch that chooses the extent `given`. `Err(None)` means that the block
/// depends on a rejected argument.
pub(super) fn of_launch(
    launch: &LaunchContract,
    facts: &LaunchFacts,
    given: Option<u64>,
    block: &BlockExtents,
) -> Result<[u32; 3], Option<Refusal>> {
    let mut extents = [1; 3];
    let mut given = given;
    for (axis, extent) in launch.block.iter().enumerate() {
        extents[axis] = match extent {
            BlockExtent::Computed(e) => facts.count(e).map_err(|failure| match failure {
                EvaluationFailure::Unknown => None,
                failure => Some(refusal(axis, failure, e, facts)),
            })?,
            BlockExtent::Chosen { .. } => {
                let expected = expected(block, axis);
                let Some(n) = given.take() else {
                    return Err(Some(Refusal(format!("block: expected the launch to choose {expected}, given none"))));
                };
                // Here only the range of this extent is checked. The check of `requires` reports
                // conditions on the number of threads.
                match u32::try_from(n) {
                    Ok(n) if block.has_extent(axis, n) => n,
                    _ => return Err(Some(Refusal(format!("block: expected {expected}, given {n}")))),
                }
            }
        };
    }
    match given {
        Some(n) => Err(Some(Refusal(format!(
            "block: the kernel fixes its block size, so the launch cannot choose one; given {n}"
        )))),
        None => checked(extents).map_err(Some),
    }
}

/// Describes the allowed extents along an axis.
fn expected(block: &BlockExtents, axis: usize) -> String {
    let of = AXES[axis];
    match block.open() {
        Some(OpenAxis { least, step: 1, .. }) => format!("{least} to {} threads in {of}", block.max_extents()[axis]),
        Some(OpenAxis { least, step, .. }) => {
            format!("{least} to {} threads in {of}, in steps of {step}", block.max_extents()[axis])
        }
        None => format!("{} threads in {of}", block.max_extents()[axis]),
    }
}

/// Returns the bounds of the range that the launch chooses from.
fn chosen(axis: usize, ends: [&Expr; 2], step: Option<&Expr>, facts: &LaunchFacts) -> Result<SteppedRange, Refusal> {
    let constant = |e: &Expr| match facts.count(e) {
        Ok(n) => Ok(n),
        Err(EvaluationFailure::Unknown) => Err(Refusal(format!(
            "block: the bounds of the range in {} depend on an argument; they must be compile-time constants",
            AXES[axis]
        ))),
        Err(failure) => Err(refusal(axis, failure, e, facts)),
    };
    let [least, most] = [constant(ends[0])?, constant(ends[1])?];
    let whole = |n: u32| n.is_multiple_of(WARP_THREADS);
    let step = match step {
        Some(step) => constant(step)?,
        None if whole(least) && whole(most) => WARP_THREADS,
        None => 1,
    };
    if least == 0 || least > most || step == 0 {
        return Err(Refusal(format!(
            "block: expected a range that starts at 1 or more, with a step of 1 or more; given {least}..={most} in steps of {step}"
        )));
    }
    Ok(SteppedRange { least, most, step })
}

/// Returns the bounds that follow from an expression over arguments.
fn computed(axis: usize, e: &Expr, facts: &LaunchFacts) -> Result<SteppedRange, Refusal> {
    SteppedRange::of(e, facts).ok_or_else(|| {
        Refusal(format!(
            "block: the extent in {} depends on an argument and has no upper bound: add one, as in `n.min(256)` or `n.clamp(32, 256)`",
            AXES[axis]
        ))
    })
}

/// Adds divisors of the number of threads, from conditions such as `block::threads() % n == 0`.
fn known_divisors(condition: &Expr, facts: &LaunchFacts, block: BlockExtents) -> BlockExtents {
    match &condition.kind {
        ExprKind::AndAlso(a, b) => known_divisors(b, facts, known_divisors(a, facts, block)),
        ExprKind::Compare(Comparison::Eq, rest, zero) => match &rest.kind {
            ExprKind::Binary(Binary::Rem, of, by) if is_threads(of) && facts.count(zero) == Ok(0) => {
                facts.count(by).map_or(block, |n| block.multiple_of(n))
            }
            _ => block,
        },
        _ => block,
    }
}

fn is_threads(e: &Expr) -> bool {
    matches!(e.kind, ExprKind::Intrinsic { intrinsic: Intrinsic::BlockThreads, .. })
}

fn refusal(axis: usize, failure: EvaluationFailure, e: &Expr, facts: &LaunchFacts) -> Refusal {
    let why = match failure {
        EvaluationFailure::Invalid(why) => why,
        EvaluationFailure::Unknown => "depends on an argument".to_string(),
    };
    Refusal(format!("block: the extent in {} {why}{}", AXES[axis], value_suffix(&explain::mentioned(e, facts))))
}

fn checked(block: [u32; 3]) -> Result<[u32; 3], Refusal> {
    let threads: u64 = block.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
    let [x, y, z] = MAX_BLOCK;
    if threads == 0 || threads > u64::from(MAX_THREADS) || block.iter().zip(MAX_BLOCK).any(|(n, most)| *n > most) {
        return Err(Refusal(format!(
            "block: expected 1 to {MAX_THREADS} threads, at most {x} × {y} × {z}, given {} × {} × {}",
            block[0], block[1], block[2]
        )));
    }
    Ok(block)
}

/// The number of threads of a warp.
const WARP_THREADS: u32 = 32;
