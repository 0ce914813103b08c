//! Guarantees about arguments that follow from a kernel's conditions. Lowering relies on them,
//! because a launch that violates a condition does not run.

use super::contract;
use super::evaluate::LaunchFacts;
use crate::hir::{Expr, ExprKind, Intrinsic, LocalId, Monomorphic};
use crate::ir::{Binary, Comparison};

/// A guarantee that lowering uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Promise {
    /// The base and all strides except the last of a slice or view parameter are multiples of this
    /// number of elements.
    #[allow(missing_docs)]
    Aligned { parameter: LocalId, elements: u32 },
    /// An extent of the parameter is a multiple of this number.
    #[allow(missing_docs)]
    Extent { parameter: LocalId, dimension: u8, multiple: u32 },
}

/// Returns the guarantees of an instance.
pub(super) fn promises(program: &Monomorphic) -> Vec<Promise> {
    let mut all = Vec::new();
    let _ = contract::without_arguments(program, |facts| {
        for requirement in &program.program().launch.requires {
            collect(&requirement.condition, facts, &mut all);
        }
    });
    all
}

/// Returns `e`, or the side of it that is evaluated if it is an `if` that the instance decides.
pub(super) fn evaluated_side<'e>(mut e: &'e Expr, facts: &LaunchFacts) -> &'e Expr {
    loop {
        e = match &e.kind {
            ExprKind::If { condition, then, otherwise: Some(otherwise) } => match facts.condition(condition) {
                Ok(true) => match (&then.statements[..], then.value.as_deref()) {
                    ([], Some(value)) => value,
                    _ => return e,
                },
                Ok(false) => otherwise,
                Err(_) => return e,
            },
            ExprKind::Block(block) if block.statements.is_empty() => match block.value.as_deref() {
                Some(value) => value,
                None => return e,
            },
            _ => return e,
        }
    }
}

fn collect(condition: &Expr, facts: &LaunchFacts, all: &mut Vec<Promise>) {
    let condition = evaluated_side(condition, facts);
    let parameter = |e: &Expr| match e.kind {
        ExprKind::Local(id) => Some(id),
        _ => None,
    };
    let extent = |e: &Expr| match &evaluated_side(e, facts).kind {
        ExprKind::Intrinsic { intrinsic: Intrinsic::Extent(dimension), arguments } => {
            let dimension = match (dimension, arguments.get(1)) {
                (Some(dimension), _) => *dimension,
                (None, counted) => u8::try_from(facts.count(counted?).ok()?).ok()?,
            };
            Some((arguments.first().and_then(parameter)?, dimension))
        }
        _ => None,
    };
    match &condition.kind {
        ExprKind::AndAlso(a, b) => {
            collect(a, facts, all);
            collect(b, facts, all);
        }
        ExprKind::Intrinsic { intrinsic: Intrinsic::Aligned, arguments } => {
            if let [of, n] = &arguments[..]
                && let (Some(parameter), Ok(elements)) = (parameter(of), facts.count(n))
            {
                all.push(Promise::Aligned { parameter, elements });
            }
        }
        ExprKind::Compare(Comparison::Eq, a, b) => {
            for (of, other) in [(a, b), (b, a)] {
                let multiple = match &of.kind {
                    ExprKind::Binary(Binary::Rem, of, by) if facts.count(other) == Ok(0) => {
                        extent(of).zip(facts.count(by).ok())
                    }
                    _ => extent(of).zip(facts.count(other).ok()),
                };
                if let Some(((parameter, dimension), multiple)) = multiple {
                    all.push(Promise::Extent { parameter, dimension, multiple });
                }
            }
        }
        _ => {}
    }
}
