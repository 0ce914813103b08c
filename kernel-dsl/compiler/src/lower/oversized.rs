//! Arrays that nothing could hold: refused before anything is done with each of their elements.

use crate::error::{Error, Errors};
use crate::hir::{Function, Program, Size, Type, TypeId};

/// Numbers of an array at most: many more than a thread has registers, and as many bytes as constant memory has.
const MOST: u64 = 1 << 16;

/// Refuses functions with a larger array in them.
pub(super) fn refuse(program: &Program, kernel: &Function) -> Result<(), Errors> {
    let errors: Vec<Error> = std::iter::once(kernel).chain(&program.functions).filter_map(oversized).collect();
    if errors.is_empty() { Ok(()) } else { Err(Errors(errors)) }
}

/// What is wrong with a function that has an array of too many numbers: at the variable, if one is such an array.
fn oversized(function: &Function) -> Option<Error> {
    let size = |ty: TypeId| numbers(function, ty);
    let largest = (0..function.types.len()).map(|i| size(TypeId(i as u32))).max().filter(|n| *n > MOST)?;
    let local = function.locals.iter().find(|local| size(local.ty) > MOST);
    let span = local.map(|local| local.span).unwrap_or_default();
    let message = format!("an array of {largest} numbers is more than a thread can hold: it has 255 registers");
    let help = "keep it in shared memory (`Shared::new`), or in a buffer";
    Some(Error::at(&function.source, span, message).help(help))
}

/// Numbers that a value in registers is made of.
fn numbers(function: &Function, ty: TypeId) -> u64 {
    match &function.types[ty.0 as usize] {
        Type::Scalar(_) => 1,
        Type::Tuple(parts) => parts.iter().fold(0, |sum, part| numbers(function, *part).saturating_add(sum)),
        Type::Array(element, Size::Known(n)) => numbers(function, *element).saturating_mul(u64::from(*n)),
        Type::Option(inner) => numbers(function, *inner).saturating_add(1),
        _ => 0,
    }
}
