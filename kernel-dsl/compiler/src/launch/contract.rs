//! The checks of a launch: each argument, overlaps between arguments, the kernel's conditions, and
//! the limits of block and grid.

use super::evaluate::{EvaluationFailure, LaunchFacts};
use super::{AXES, DeviceFacts, Fact, InstanceLimits, LaunchShape, MAX_GRID, Refusal, explain, value_suffix};
use crate::ElementType;
use crate::Scalar;
use crate::hir::{Expr, Function, Monomorphic, Type};
use crate::ir::BlockExtents;

const MAX_RANK: usize = 5;
const U32_MAX: u64 = u32::MAX as u64;

pub(super) fn shape(
    monomorphic: &Monomorphic,
    device: DeviceFacts,
    chosen: Option<u64>,
    facts: &[Fact],
) -> Result<LaunchShape, Vec<Refusal>> {
    let (program, instance) = (monomorphic.program(), monomorphic.instance());
    let function = kernel(monomorphic).map_err(|r| vec![r])?;
    let arguments = monomorphic.arguments();
    let parameters: Vec<_> = arguments.iter().map(|a| (a.name.as_str(), function.ty(a.ty))).collect();
    let mut refusals = Vec::new();
    if parameters.len() != facts.len() {
        let names: Vec<_> = parameters.iter().map(|(name, _)| format!("`{name}`")).collect();
        refusals.push(Refusal(format!(
            "expected {} ({}), given {}",
            plural(parameters.len(), "argument"),
            names.join(", "),
            facts.len()
        )));
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }

    // A rejected argument is excluded from the checks that follow, so that a mistake is reported
    // once.
    let mut known = Vec::new();
    for ((name, ty), fact) in parameters.iter().zip(facts) {
        let wrong = argument(monomorphic, name, ty, fact);
        known.push(wrong.is_empty().then_some(fact));
        refusals.extend(wrong);
    }
    overlaps(&parameters, &known, &mut refusals);

    let mut facts = LaunchFacts {
        function,
        monomorphic,
        bound: None,
        instance,
        device: Some(device),
        block: None,
        arguments: &arguments,
        facts: &known,
    };
    let block = self::block(monomorphic).map_err(Some);
    let block = block.and_then(|block| super::block::of_launch(&program.launch, &facts, chosen, &block));
    facts.block = block.as_ref().ok().copied();
    for requirement in &program.launch.requires {
        let mentioned = || explain::mentioned(&requirement.condition, &facts);
        match facts.condition(&requirement.condition) {
            Ok(true) | Err(EvaluationFailure::Unknown) => {}
            Ok(false) => refusals.push(Refusal(format!("requires `{}`: {}", requirement.text, mentioned()))),
            Err(EvaluationFailure::Invalid(why)) => refusals.push(Refusal(format!(
                "requires `{}`, but the condition {why}{}",
                requirement.text,
                value_suffix(&mentioned())
            ))),
        }
    }

    let grid = extents("grid", &program.launch.grid, &facts).and_then(checked_grid);
    match (block, grid) {
        (Ok(block), Ok(grid)) if refusals.is_empty() => Ok(LaunchShape { block, grid }),
        (block, grid) => {
            refusals.extend(block.err().into_iter().chain(grid.err()).flatten());
            Err(refusals)
        }
    }
}

pub(super) fn block(monomorphic: &Monomorphic) -> Result<BlockExtents, Refusal> {
    without_arguments(monomorphic, |facts| super::block::of_instance(&monomorphic.program().launch, facts))?
}

pub(super) fn limits(monomorphic: &Monomorphic) -> Result<InstanceLimits, Refusal> {
    let launch = &monomorphic.program().launch;
    without_arguments(monomorphic, |facts| {
        let limit = |name: &str, e: Option<&Expr>| match e.map(|e| facts.count(e)) {
            None => Ok(None),
            Some(Ok(0)) => Err(Refusal(format!("{name}: expected 1 or more, given 0"))),
            Some(Ok(n)) => Ok(Some(n)),
            Some(Err(EvaluationFailure::Invalid(why))) => Err(Refusal(format!("{name}: the expression {why}"))),
            Some(Err(EvaluationFailure::Unknown)) => Err(Refusal(format!(
                "{name}: the expression depends on an argument; it must be a compile-time constant"
            ))),
        };
        Ok(InstanceLimits {
            min_blocks: limit("min_blocks", launch.min_blocks.as_ref())?,
            max_registers: limit("max_registers", launch.max_registers.as_ref())?,
        })
    })?
}

/// Calls `f` with the facts that are known before any launch.
pub(super) fn without_arguments<R>(monomorphic: &Monomorphic, f: impl FnOnce(&LaunchFacts) -> R) -> Result<R, Refusal> {
    let function = kernel(monomorphic)?;
    let arguments = monomorphic.arguments();
    let unknown = vec![None; arguments.len()];
    Ok(f(&LaunchFacts {
        function,
        monomorphic,
        bound: None,
        instance: monomorphic.instance(),
        device: None,
        block: None,
        arguments: &arguments,
        facts: &unknown,
    }))
}

fn kernel(program: &Monomorphic) -> Result<&Function, Refusal> {
    let function = program.kernel();
    let well_formed = function.locals.len() >= function.parameters as usize
        && function.locals.iter().all(|l| (l.ty.0 as usize) < function.types.len());
    if well_formed { Ok(function) } else { Err(Refusal("the program's HIR is malformed".to_string())) }
}

/// Checks one argument. Returns its errors.
fn argument(program: &Monomorphic, name: &str, ty: &Type, fact: &Fact) -> Vec<Refusal> {
    let types = &program.kernel().types;
    let mut wrong = Vec::new();
    let mut refuse = |what: String| wrong.push(Refusal(format!("argument `{name}`: {what}")));
    let fits = match (ty, fact) {
        (Type::Scalar(expected), Fact::Scalar { ty, .. }) => expected == ty,
        (Type::Slice { element: expected, mutable: writes }, Fact::Slice { element, mutable, .. }) => {
            element.equals_hir_type(types, *expected) && writes <= mutable
        }
        (
            Type::View { element: expected, rank, mutable: writes, strided: any },
            Fact::View { element, extents, strides, mutable, strided, .. },
        ) => {
            element.equals_hir_type(types, *expected)
                && any == strided
                && extents.len() == *rank as usize
                && strides.len() == extents.len()
                && (1..=MAX_RANK).contains(&extents.len())
                && writes <= mutable
        }
        _ => false,
    };
    if !fits {
        refuse(format!("expected {}, given {}", explain::parameter(program, ty), explain::fact(fact)));
        return wrong;
    }
    match fact {
        Fact::Scalar { ty: Scalar::Usize, bits } if *bits > U32_MAX => {
            refuse(format!("{bits} does not fit in `usize`, which has 32 bits on the device"));
        }
        Fact::Scalar { ty, bits } if bits & !ty.mask() != 0 => refuse(format!("{bits:#x} is not a valid `{ty}`")),
        Fact::Scalar { .. } => {}
        Fact::Slice { len, .. } => {
            if *len > U32_MAX {
                refuse(format!("the length {len} does not fit in `usize`, which has 32 bits on the device"));
            }
        }
        Fact::View { extents, strides, strided, mutable, .. } => {
            for (what, numbers) in [("extent", extents), ("stride", strides)] {
                for (d, n) in numbers.iter().enumerate().filter(|(_, n)| **n > U32_MAX) {
                    refuse(format!(
                        "{what} {n} of dimension {d} does not fit in `usize`, which has 32 bits on the device"
                    ));
                }
            }
            if *strided && *mutable && shared_element(extents, strides) {
                refuse(format!(
                    "two indices of a writable view select the same element: extents {extents:?}, strides {strides:?}"
                ));
            }
            if !strided && strides.last() != Some(&1) {
                refuse(format!("expected a last stride of 1, given strides {strides:?}"));
            }
        }
    }
    let range = ByteSpan::of(fact);
    if wrong.is_empty()
        && let Some(range) = range
    {
        let mut refuse = |what: String| wrong.push(Refusal(format!("argument `{name}`: {what}")));
        if range.elements > u128::from(U32_MAX) {
            refuse(format!(
                "the view spans {} elements, more than a 32-bit `usize` can index on the device",
                range.elements
            ));
        }
        if range.end > 1 << 64 {
            refuse(format!("the memory starts at {:#x} and would end beyond the address space", range.start));
        }
        let align = range.element.device_align();
        if range.start % u128::from(align) != 0 {
            let (start, element) = (range.start, range.element);
            let what = if element.scalar().is_some() { "size" } else { "alignment" };
            refuse(format!("the address {start:#x} is not a multiple of {align} bytes, the {what} of `{element}`"));
        }
    }
    wrong
}

/// Returns whether two indices may name one element: whether a stride is at most the reach of the
/// smaller strides.
fn shared_element(extents: &[u64], strides: &[u64]) -> bool {
    let mut dims: Vec<_> = extents.iter().zip(strides).filter(|(n, _)| **n > 1).collect();
    dims.sort_by_key(|(_, stride)| **stride);
    let mut reach = 0u128;
    !extents.contains(&0)
        && dims.into_iter().any(|(n, stride)| {
            let within = u128::from(*stride) <= reach;
            reach += u128::from(n - 1) * u128::from(*stride);
            within
        })
}

/// The bytes that a slice or view spans, including gaps; the end is exclusive. Sums use 128 bits,
/// so that none wraps.
#[derive(Clone, Copy)]
struct ByteSpan {
    element: ElementType,
    elements: u128,
    start: u128,
    end: u128,
}

impl ByteSpan {
    /// Returns the range of a slice or view; `None` for scalars and empty views, which access no
    /// memory.
    fn of(fact: &Fact) -> Option<ByteSpan> {
        let (element, address, elements) = match fact {
            Fact::Scalar { .. } => return None,
            Fact::Slice { element, len, address, .. } => (*element, *address, u128::from(*len)),
            Fact::View { extents, .. } if extents.contains(&0) => return None,
            Fact::View { element, extents, strides, address, .. } => {
                let last = extents.iter().zip(strides).map(|(n, s)| u128::from(n - 1) * u128::from(*s));
                (*element, *address, last.fold(1, u128::saturating_add))
            }
        };
        let start = u128::from(address);
        let end = start.saturating_add(elements.saturating_mul(u128::from(element.bytes())));
        (elements != 0).then_some(ByteSpan { element, elements, start, end })
    }
}

/// Rejects each pair of overlapping arguments of which the kernel writes one.
fn overlaps(parameters: &[(&str, &Type)], known: &[Option<&Fact>], refusals: &mut Vec<Refusal>) {
    let ranges: Vec<_> = parameters
        .iter()
        .zip(known)
        .filter_map(|((name, ty), fact)| {
            let writes = matches!(ty, Type::Slice { mutable: true, .. } | Type::View { mutable: true, .. });
            Some((name, writes, ByteSpan::of((*fact)?)?))
        })
        .collect();
    for (i, (a, a_writes, a_range)) in ranges.iter().enumerate() {
        for (b, b_writes, b_range) in &ranges[i + 1..] {
            if (*a_writes || *b_writes) && a_range.start < b_range.end && b_range.start < a_range.end {
                let written = if *a_writes { a } else { b };
                refusals.push(Refusal(format!(
                    "arguments `{a}` and `{b}` overlap, and the kernel writes `{written}`: \
                     bytes {:#x}..{:#x} and {:#x}..{:#x}",
                    a_range.start, a_range.end, b_range.start, b_range.end
                )));
            }
        }
    }
}

/// Evaluates `grid`; missing axes have extent 1. `Err(None)` means that the grid depends on a
/// rejected argument.
fn extents(what: &str, exprs: &[Expr], facts: &LaunchFacts) -> Result<[u32; 3], Option<Refusal>> {
    if !(1..=3).contains(&exprs.len()) {
        return Err(Some(Refusal(format!("{what}: expected 1 to 3 extents, given {}", exprs.len()))));
    }
    let mut extents = [1; 3];
    for (axis, expr) in exprs.iter().enumerate() {
        extents[axis] = facts.count(expr).map_err(|failure| match failure {
            EvaluationFailure::Unknown => None,
            EvaluationFailure::Invalid(why) => {
                let mentioned = explain::mentioned(expr, facts);
                Some(Refusal(format!("{what}: the extent in {} {why}{}", AXES[axis], value_suffix(&mentioned))))
            }
        })?;
    }
    Ok(extents)
}

fn checked_grid(grid: [u32; 3]) -> Result<[u32; 3], Option<Refusal>> {
    let [x, y, z] = MAX_GRID;
    if grid.iter().zip(MAX_GRID).any(|(n, most)| *n > most) {
        return Err(Some(Refusal(format!(
            "grid: expected at most {x} × {y} × {z} blocks, given {} × {} × {}",
            grid[0], grid[1], grid[2]
        ))));
    }
    Ok(grid)
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
