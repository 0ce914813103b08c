//! The bounds of type parameters: whether a type implements the traits that an item needs of it.

use super::checker::FunctionChecker;
use super::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{self, Builtin, Root, TraitBound, TypeId};
use crate::syntax::{self, SpanPair};

/// A type that must satisfy bounds, once inference has found it.
pub(super) struct BoundedType {
    pub ty: TypeIndex,
    pub bounds: Vec<TraitBound>,
    /// The expression or type that needs the bounds.
    pub mark: SpanPair,
}

impl FunctionChecker<'_> {
    /// Returns the bounds of a type parameter, and reports those that are no device traits.
    pub(super) fn bounds(&mut self, bounds: &[syntax::TraitBound]) -> Vec<TraitBound> {
        let mut all = Vec::with_capacity(bounds.len());
        for bound in bounds {
            if let Some((parameters, returns)) = &bound.signature {
                let parameters = parameters.iter().map(|t| TypeId(self.ty(t).0)).collect();
                all.push(TraitBound::Function { parameters, returns: TypeId(self.ty(returns).0) });
                continue;
            }
            let last = bound.path.segments.last().map(|s| s.name.to_string()).unwrap_or_default();
            match self.environment.find(&bound.path.written()) {
                Some(Root::Trait(id)) => all.push(TraitBound::Trait(id)),
                _ if bound.path.is_builtin_bound() => {
                    all.push(TraitBound::Builtin(Builtin::from_name(&last).unwrap_or(Builtin::Value)));
                }
                _ => self.report(
                    bound.path.mark,
                    format!("`{}` is not a device trait: put the trait into a `#[device] mod`", bound.path.name()),
                ),
            }
        }
        all
    }

    /// Reports types that lack a trait which an item needs of them.
    pub(super) fn bounded(&mut self) {
        for BoundedType { ty, bounds, mark } in std::mem::take(&mut self.bounded) {
            if let Some(missing) = bounds.iter().find(|bound| !self.satisfies(ty, bound)) {
                let trait_name = self.name_of_bound(missing);
                let ty = self.named(ty);
                self.report(mark, format!("`{ty}` does not implement `{trait_name}`, which is needed here"));
            }
        }
    }

    /// Reports negations of integers whose type, found later, is unsigned.
    pub(super) fn negations(&mut self) {
        for (ty, mark) in std::mem::take(&mut self.negated) {
            if matches!(self.table.get(ty), Ty::Scalar(scalar) if !scalar.is_signed()) {
                self.report_negation(ty, mark);
            }
        }
    }

    pub(super) fn report_negation(&mut self, ty: TypeIndex, mark: SpanPair) {
        let name = self.named(ty);
        self.report(mark, format!("`-` does not apply to `{name}`, which has no negative values"));
    }

    pub(super) fn name_of_bound(&self, bound: &TraitBound) -> String {
        match bound {
            TraitBound::Builtin(builtin) => builtin.name().to_string(),
            TraitBound::Trait(id) => self.environment.trait_of(*id).name.clone(),
            TraitBound::Function { .. } => "DeviceFn".to_string(),
        }
    }

    /// Returns whether a type satisfies a bound. A type that is not known does.
    pub(super) fn satisfies(&self, ty: TypeIndex, bound: &TraitBound) -> bool {
        let builtin = match bound {
            TraitBound::Builtin(builtin) => *builtin,
            TraitBound::Function { .. } => return true,
            TraitBound::Trait(id) => {
                return match self.table.get(ty) {
                    Ty::Unknown(UnknownKind::Any | UnknownKind::Size) | Ty::Wrong | Ty::Never => true,
                    Ty::Parameter(_) | Ty::Projection { .. } => {
                        self.environment.traits(&self.bounds_of(ty)).contains(id)
                    }
                    _ => !self.implementations(*id, ty).is_empty(),
                };
            }
        };
        let number = matches!(builtin, Builtin::Number | Builtin::Float | Builtin::Integer);
        match self.table.get(ty) {
            Ty::Unknown(UnknownKind::Integer) => builtin != Builtin::Float,
            Ty::Unknown(UnknownKind::Float) => builtin != Builtin::Integer,
            Ty::Unknown(_) | Ty::Wrong | Ty::Never | Ty::Size(_) | Ty::Same(_) => true,
            Ty::Scalar(scalar) => builtin.holds(*scalar),
            Ty::Parameter(_) | Ty::Projection { .. } => self.implements(ty, builtin),
            _ if number => false,
            _ if builtin == Builtin::Element => self.is_element(ty),
            _ if builtin == Builtin::Copy => self.is_copy(ty),
            _ => true,
        }
    }

    /// Returns whether values of a type are copied.
    fn is_copy(&self, ty: TypeIndex) -> bool {
        let items = &self.environment.items;
        match self.table.get(ty) {
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_copy(*part)),
            Ty::Array(element, _) | Ty::Option(element) => self.is_copy(*element),
            Ty::Slice { mutable, .. } | Ty::Reference { mutable, .. } => !mutable,
            Ty::Pending => false,
            Ty::Struct(id, arguments) => items.struct_of(*id).copy && arguments.iter().all(|a| self.is_copy(*a)),
            Ty::Enum(id, arguments) => items.enums[id.0 as usize].copy && arguments.iter().all(|a| self.is_copy(*a)),
            Ty::Parameter(_) | Ty::Projection { .. } => self.implements(ty, Builtin::Copy),
            _ => true,
        }
    }

    /// Records that the arguments of an item must satisfy the bounds of its generic parameters.
    pub(super) fn must_satisfy(&mut self, generics: &[hir::Generic], arguments: &[TypeIndex]) {
        for (generic, ty) in generics.iter().zip(arguments) {
            if let hir::GenericKind::Type(bounds) = &generic.kind
                && !bounds.is_empty()
            {
                self.bounded.push(BoundedType { ty: *ty, bounds: bounds.clone(), mark: self.current });
            }
        }
    }
}
