//! Descriptions of the arguments of a launch and of the values that a condition uses.

use super::evaluate::{LaunchFacts, display};
use super::{AXES, Fact};
use crate::hir::{Expr, ExprKind, Intrinsic, Monomorphic, Type, view_name};

/// Returns the type of an argument, in Rust notation.
pub(super) fn fact(fact: &Fact) -> String {
    match fact {
        Fact::Scalar { ty, .. } => format!("`{ty}`"),
        Fact::Slice { element, mutable: false, .. } => format!("`&[{element}]`"),
        Fact::Slice { element, mutable: true, .. } => format!("`&mut [{element}]`"),
        Fact::View { element, mutable, strided, extents, .. } => {
            format!("`{}<{element}, {}>`", view_name(*mutable, *strided), extents.len())
        }
    }
}

/// Returns the type of a parameter, in Rust notation.
pub(super) fn parameter(program: &Monomorphic, ty: &Type) -> String {
    match ty {
        Type::Scalar(ty) => format!("`{ty}`"),
        Type::Slice { element, mutable: false } => format!("`&[{}]`", program.name(*element)),
        Type::Slice { element, mutable: true } => format!("`&mut [{}]`", program.name(*element)),
        Type::View { element, rank, mutable, strided } => {
            format!("`{}<{}, {rank}>`", view_name(*mutable, *strided), program.name(*element))
        }
        other => format!("`{other:?}`, which is not an argument type"),
    }
}

/// Returns the values that `expr` uses, in order and each once: `x.len() is 5, y.len() is 4`.
pub(super) fn mentioned(expr: &Expr, facts: &LaunchFacts) -> String {
    let mut words = Vec::new();
    MentionedFacts(facts).collect(expr, &mut words);
    let mut seen = Vec::new();
    for word in words {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen.join(", ")
}

struct MentionedFacts<'a>(&'a LaunchFacts<'a>);

impl MentionedFacts<'_> {
    fn collect(&self, expr: &Expr, words: &mut Vec<String>) {
        match &expr.kind {
            ExprKind::Generic(index) => {
                let index = *index as usize;
                if let (Some(generic), Some(value)) =
                    (self.0.function.generics.get(index), self.0.instance.0.get(index))
                {
                    words.push(format!("{} is {value}", generic.name));
                }
            }
            ExprKind::Local(_) | ExprKind::Field { .. } | ExprKind::Index { .. } => {
                if let Some((name, Fact::Scalar { ty, bits })) = self.argument(expr) {
                    words.push(format!("{name} is {}", display(*ty, *bits)));
                }
                match &expr.kind {
                    ExprKind::Field { base, .. } if self.0.argument_named(expr).is_none() => self.collect(base, words),
                    ExprKind::Index { base, index } => {
                        self.collect(index, words);
                        if self.0.argument_named(expr).is_none() {
                            self.collect(base, words);
                        }
                    }
                    _ => {}
                }
            }
            ExprKind::Intrinsic { intrinsic, arguments } => {
                match (intrinsic, arguments.first().and_then(|x| self.argument(x))) {
                    (Intrinsic::Extent(Some(d)), Some((name, fact))) => self.extent(name, fact, usize::from(*d), words),
                    (Intrinsic::Extent(None) | Intrinsic::IsEmpty, Some((name, fact))) => {
                        (0..fact.extents().len()).for_each(|d| self.extent(name, fact, d, words));
                    }
                    (Intrinsic::Stride, Some((name, Fact::View { strides, .. }))) => {
                        words.push(format!("{name}'s strides are {strides:?}"));
                    }
                    (Intrinsic::Aligned, Some((name, fact))) => alignment(name, fact, words),
                    _ => {}
                }
                if let (Intrinsic::BlockThreads, Some(block)) = (intrinsic, self.0.block) {
                    words.push(format!("block::threads() is {}", block.iter().product::<u32>()));
                }
                if let (Intrinsic::BlockDim(axis), Some(block)) = (intrinsic, self.0.block) {
                    let axis = usize::from(*axis).min(2);
                    words.push(format!("block::dim_{}() is {}", AXES[axis], block[axis]));
                }
                arguments.iter().for_each(|e| self.collect(e, words));
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(a) => self.collect(a, words),
            ExprKind::Reference(of) | ExprKind::Dereference(of) => self.collect(of, words),
            ExprKind::Binary(_, a, b)
            | ExprKind::Compare(_, a, b)
            | ExprKind::AndAlso(a, b)
            | ExprKind::OrElse(a, b) => {
                self.collect(a, words);
                self.collect(b, words);
            }
            ExprKind::Tuple(parts) | ExprKind::Array(parts) => parts.iter().for_each(|e| self.collect(e, words)),
            ExprKind::If { condition, then, otherwise } => {
                self.collect(condition, words);
                then.value.iter().for_each(|e| self.collect(e, words));
                otherwise.iter().for_each(|e| self.collect(e, words));
            }
            ExprKind::Block(block) => block.value.iter().for_each(|e| self.collect(e, words)),
            _ => {}
        }
    }

    /// Returns the argument that `expr` names, with its fact.
    fn argument(&self, expr: &Expr) -> Option<(&str, &Fact)> {
        let i = self.0.argument_named(expr)?;
        Some((&self.0.arguments[i].name, (*self.0.facts.get(i)?)?))
    }

    fn extent(&self, name: &str, fact: &Fact, d: usize, words: &mut Vec<String>) {
        let extents = fact.extents();
        let Some(n) = extents.get(d) else { return };
        words.push(match (extents.len(), d) {
            (1, _) => format!("{name}.len() is {n}"),
            (2, 0) => format!("{name}.rows() is {n}"),
            (2, _) => format!("{name}.cols() is {n}"),
            _ => format!("{name}.dim({d}) is {n}"),
        });
    }
}

fn alignment(name: &str, fact: &Fact, words: &mut Vec<String>) {
    let (Fact::Slice { element, address, .. } | Fact::View { element, address, .. }) = fact else { return };
    let bytes = u64::from(element.bytes());
    let power = 1 << address.trailing_zeros().min(63);
    words.push(format!("{name} starts at a multiple of {} elements", (power / bytes).clamp(1, 1 << 20)));
    if let Fact::View { strides, .. } = fact
        && let Some((_, outer)) = strides.split_last()
        && !outer.is_empty()
    {
        words.push(format!("{name}'s outer strides are {outer:?} elements"));
    }
}
