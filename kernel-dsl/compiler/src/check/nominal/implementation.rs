//! Traits: the bounds of a type, the impls that fit it, and the associated types that they give.

use crate::check::checker::FunctionChecker;
use crate::check::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{self, Builtin, TraitBound, TraitId, TraitItemKind, TypeId};

impl FunctionChecker<'_> {
    /// Returns the bounds of a type parameter or of its associated type.
    pub(in crate::check) fn bounds_of(&self, id: TypeIndex) -> Vec<TraitBound> {
        match self.table.get(id) {
            Ty::Parameter(i) => match &self.generics[*i as usize].kind {
                hir::GenericKind::Type(bounds) => bounds.clone(),
                hir::GenericKind::Constant(_) => Vec::new(),
            },
            Ty::Projection { of_trait, item, .. } => {
                match &self.environment.trait_of(*of_trait).items[*item as usize].kind {
                    TraitItemKind::Type(bounds) => bounds.clone(),
                    _ => Vec::new(),
                }
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether the bounds of a type parameter imply `wanted`.
    pub(in crate::check) fn implements(&self, id: TypeIndex, wanted: Builtin) -> bool {
        self.environment.implies(&self.bounds_of(id), wanted)
    }

    /// Returns the trait that the type implements and that has an item with this name.
    pub(super) fn trait_item(&mut self, of: TypeIndex, name: &str) -> Option<(TraitId, u32)> {
        let environment = self.environment;
        let position = |id: TraitId| environment.trait_of(id).items.iter().position(|i| i.name == name);
        let traits = match self.table.get(of) {
            Ty::Parameter(_) | Ty::Projection { .. } => environment.traits(&self.bounds_of(of)),
            _ => (0..environment.items.traits.len() as u32)
                .map(TraitId)
                .filter(|t| position(*t).is_some() && !self.implementations(*t, of).is_empty())
                .collect(),
        };
        traits.into_iter().find_map(|id| Some((id, position(id)? as u32)))
    }

    /// Returns the impls of a trait that match the known part of a type.
    pub(in crate::check) fn implementations(&self, of_trait: TraitId, of: TypeIndex) -> Vec<usize> {
        let impls = self.environment.items.impls.iter().enumerate();
        impls.filter(|(_, each)| each.of_trait == Some(of_trait) && self.may_be(each, of)).map(|(i, _)| i).collect()
    }

    /// Returns whether an impl's type can be `of`, which may be partly unknown.
    pub(in crate::check) fn may_be(&self, each: &hir::Impl, of: TypeIndex) -> bool {
        self.fits(&each.types, each.for_type, of, &mut vec![None; each.generics.len()])
    }

    /// Returns whether the type `pattern` of an impl's table can be `of`. `bound` collects the
    /// impl's generic arguments.
    fn fits(&self, types: &[hir::Type], pattern: TypeId, of: TypeIndex, bound: &mut [Option<TypeIndex>]) -> bool {
        use hir::Type as T;
        match (&types[pattern.0 as usize], self.table.get(of)) {
            (T::Parameter(i) | T::Constant(hir::Size::Generic(i)), _) => {
                match bound[*i as usize].replace(of) {
                    // The parameter occurs twice. A copy of the table is unified, because the impl
                    // is not chosen yet.
                    Some(before) => self.table.clone().unify(before, of),
                    None => true,
                }
            }
            (_, Ty::Wrong) => true,
            (T::Scalar(s), Ty::Unknown(kind)) => match kind {
                UnknownKind::Any => true,
                UnknownKind::Integer => s.is_integer(),
                UnknownKind::Float => s.is_float() || s.is_half(),
                UnknownKind::Size => false,
            },
            (pattern, Ty::Unknown(kind)) => match pattern {
                T::Constant(_) => *kind == UnknownKind::Size,
                _ => *kind == UnknownKind::Any,
            },
            (T::Struct(a, p), Ty::Struct(b, q)) => {
                a == b && p.iter().zip(q).all(|(p, q)| self.fits(types, *p, *q, bound))
            }
            (T::Enum(a, p), Ty::Enum(b, q)) => a == b && p.iter().zip(q).all(|(p, q)| self.fits(types, *p, *q, bound)),
            (T::Tuple(p), Ty::Tuple(q)) => {
                p.len() == q.len() && p.iter().zip(q).all(|(p, q)| self.fits(types, *p, *q, bound))
            }
            (T::Array(p, n), Ty::Array(q, m)) => {
                self.fits(types, *p, *q, bound)
                    && match (n, self.table.get(*m)) {
                        (hir::Size::Value(_), _) => false,
                        (hir::Size::Known(n), Ty::Size(hir::Size::Known(m))) => n == m,
                        // An impl cannot name a length that is a parameter of the function.
                        (hir::Size::Known(_), Ty::Size(hir::Size::Generic(_))) => false,
                        (hir::Size::Known(_), _) => true,
                        (hir::Size::Generic(i), _) => match bound[*i as usize].replace(*m) {
                            Some(before) => self.table.clone().unify(before, *m),
                            None => true,
                        },
                    }
            }
            (T::Option(p), Ty::Option(q)) => self.fits(types, *p, *q, bound),
            (T::Reference { to: p, mutable: m }, Ty::Reference { to: q, mutable: n }) => {
                m == n && self.fits(types, *p, *q, bound)
            }
            (T::Slice { element: p, mutable: m }, Ty::Slice { element: q, mutable: n }) => {
                m == n && self.fits(types, *p, *q, bound)
            }
            (
                T::View { element: p, rank: r, mutable: m, strided: d },
                Ty::View { element: q, rank: s, mutable: n, strided: e },
            ) => (r, m, d) == (s, n, e) && self.fits(types, *p, *q, bound),
            (T::Shared { element: p, rank: r }, Ty::Shared { element: q, rank: s }) => {
                r == s && self.fits(types, *p, *q, bound)
            }
            (T::Item(a), Ty::Item(b)) => a == b,
            (T::Scalar(a), Ty::Scalar(b)) => a == b,
            (T::Constant(a), Ty::Size(b)) => a == b,
            (T::Unit, Ty::Unit) => true,
            _ => false,
        }
    }

    /// Returns the generic arguments of an impl for the type `of`, if it matches.
    pub(in crate::check) fn of_impl(&mut self, each: &hir::Impl, of: TypeIndex) -> Option<Vec<TypeIndex>> {
        let arguments = self.arguments(&each.generics, &[]);
        let whole = self.instantiate(&each.types, each.for_type, &arguments);
        self.table.unify(whole, of).then_some(arguments)
    }

    /// Returns the type `<of as of_trait>::item`, or a placeholder until `of` is known.
    pub(in crate::check) fn projection(&mut self, of: TypeIndex, of_trait: TraitId, item: u32) -> TypeIndex {
        match self.table.get(of) {
            Ty::Parameter(_) | Ty::Projection { .. } => self.table.add(Ty::Projection { of, of_trait, item }),
            Ty::Wrong => self.wrong(),
            Ty::Unknown(_) => {
                let result = self.table.unknown();
                self.projections.push((of, of_trait, item, result));
                result
            }
            _ => {
                let environment = self.environment;
                let name = &environment.trait_of(of_trait).items[item as usize].name;
                match self.implementations(of_trait, of)[..] {
                    [i] => {
                        let each = &environment.items.impls[i];
                        let ty = each.associated.iter().find(|(n, _)| n == name);
                        if let (Some((_, ty)), Some(arguments)) = (ty, self.of_impl(each, of)) {
                            return self.instantiate(&each.types, *ty, &arguments);
                        }
                        self.wrong()
                    }
                    // rustc reports the missing impl.
                    [] => self.wrong(),
                    // A later step chooses the impl, when more of the type is known.
                    _ => {
                        let result = self.table.unknown();
                        self.projections.push((of, of_trait, item, result));
                        result
                    }
                }
            }
        }
    }

    /// Resolves the associated types of types that have become known.
    pub(in crate::check) fn project(&mut self) {
        for (of, of_trait, item, result) in std::mem::take(&mut self.projections) {
            let found = self.projection(of, of_trait, item);
            self.table.unify(result, found);
        }
    }
}
