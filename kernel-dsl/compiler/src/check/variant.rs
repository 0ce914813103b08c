//! Variants of enums: their values and patterns.
//!
//! A value of an enum with data is a struct of its discriminant and the fields of all variants. The
//! fields of the other variants are zero; passes remove those that nothing reads.

use super::checker::{FunctionChecker, Literal};
use super::types::{Ty, TypeIndex};
use crate::Scalar;
use crate::hir::{EnumId, Expr, ExprKind, Pattern, TypeId};
use crate::syntax::{self, Member, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;

/// A variant of an enum.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnumVariant {
    of: EnumId,
    index: usize,
    /// The type of the enum with its generic arguments.
    ty: TypeIndex,
}

impl FunctionChecker<'_> {
    /// Returns the variant that a path names.
    pub(super) fn variant(&mut self, path: &Path) -> Option<EnumVariant> {
        let ty = self.named_type(&path.item()?)?;
        let last = path.segments.last()?;
        self.variant_of(ty, &last.name, &last.arguments)
    }

    /// Returns the variant of an enum with this name. `given` are the generic arguments that are
    /// written after the variant.
    pub(super) fn variant_of(&mut self, ty: TypeIndex, name: &Ident, given: &[TypeOrConst]) -> Option<EnumVariant> {
        let Ty::Enum(of, ref arguments) = *self.table.get(ty) else { return None };
        let arguments = arguments.clone();
        let items = &self.environment.items;
        let index = items.enums[of.0 as usize].variants.iter().position(|v| name == &v.name)?;
        if given.len() == arguments.len() {
            for (argument, given) in arguments.into_iter().zip(self.arguments(items.enum_generics(of), given)) {
                self.table.unify(argument, given);
            }
        }
        Some(EnumVariant { of, index, ty })
    }

    /// Returns the fields of a variant: the name, the index in the enum's struct, and the type.
    fn variant_fields(&mut self, variant: EnumVariant) -> Vec<(String, u32, TypeIndex)> {
        let item = &self.environment.items.enums[variant.of.0 as usize];
        let prefix = format!("{}.", item.variants[variant.index].name);
        let (Some(data), Ty::Enum(_, arguments)) = (item.data, self.table.get(variant.ty).clone()) else {
            return Vec::new();
        };
        let all = self.field_types(data, &arguments).into_iter().zip(0..);
        all.filter_map(|((name, ty), at)| Some((name.strip_prefix(&prefix)?.to_string(), at, ty))).collect()
    }

    fn discriminant(&mut self, variant: EnumVariant, mark: SpanPair) -> Expr {
        let value = self.environment.items.enums[variant.of.0 as usize].variants[variant.index].value;
        let kind = self.literal(Literal::Integer(u128::from(value as u32), mark));
        Expr { kind, ty: TypeId(self.table.scalar(Scalar::I32).0), span: mark.span }
    }

    /// Returns the value of a variant without fields.
    pub(super) fn unit_variant(&mut self, variant: EnumVariant, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let ty = variant.ty;
        let discriminant = self.discriminant(variant, mark);
        if self.is_discriminant(ty) {
            return (discriminant.kind, ty);
        }
        if !self.variant_fields(variant).is_empty() {
            let name = &self.environment.items.enums[variant.of.0 as usize].variants[variant.index].name;
            let message = format!(
                "the variant `{name}` holds data: give it here, or write a closure if this is an argument, `|x| …`"
            );
            self.report(mark, message);
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        }
        (ExprKind::Struct { fields: vec![(0, discriminant)], rest: None }, ty)
    }

    /// Checks `Enum::Variant(a, b)` or `Enum::Variant { field: value }`.
    pub(super) fn variant_value(
        &mut self,
        variant: EnumVariant,
        given: Vec<(Member, &syntax::Expr)>,
        path: &Path,
    ) -> (ExprKind, TypeIndex) {
        let known = self.variant_fields(variant);
        let mut fields = vec![(0, self.discriminant(variant, path.mark))];
        for (member, value) in &given {
            match known.iter().find(|(name, ..)| *name == member.to_string()) {
                Some((_, at, ty)) => fields.push((*at, self.expr_of_type(value, *ty))),
                None => {
                    self.expr(value, None);
                    self.report(value.mark, format!("`{}` has no field `{member}`", path.shown()));
                }
            }
        }
        if given.len() < known.len() {
            let message = format!("`{}` has {} fields, {} given", path.shown(), known.len(), given.len());
            self.report(path.mark, message);
        }
        let ty = variant.ty;
        if self.is_discriminant(ty) {
            return self.unit_variant(variant, path.mark);
        }
        (ExprKind::Struct { fields, rest: None }, ty)
    }

    /// Checks the pattern `Enum::Variant`, `Enum::Variant(a, ..)` or `Enum::Variant { a, .. }`.
    pub(super) fn variant_pattern(
        &mut self,
        variant: EnumVariant,
        fields: &[(Member, syntax::Pattern)],
        ty: TypeIndex,
        unset: bool,
        mark: SpanPair,
    ) -> Pattern {
        let whole = variant.ty;
        self.coerce(ty, whole, mark);
        let discriminant = Pattern::Value(Box::new(self.discriminant(variant, mark)));
        if self.is_discriminant(whole) {
            return discriminant;
        }
        let known = self.variant_fields(variant);
        let mut parts = vec![discriminant];
        for (member, pattern) in members(fields, known.len()) {
            match known.iter().find(|(name, ..)| *name == member.to_string()) {
                Some((_, at, ty)) => {
                    let at = *at as usize;
                    parts.resize(parts.len().max(at + 1), Pattern::Ignore);
                    parts[at] = self.bind(pattern, *ty, unset, mark);
                }
                None => self.report(mark, format!("this variant has no field `{member}`")),
            }
        }
        Pattern::Parts(parts)
    }

    /// Returns whether a type is an enum whose variants hold no data.
    pub(super) fn is_discriminant(&self, ty: TypeIndex) -> bool {
        matches!(self.table.get(ty), Ty::Enum(id, _) if self.environment.items.enums[id.0 as usize].data.is_none())
    }
}

/// Returns the patterns of fields without `..`. The fields after `..` are the last of `count`.
pub(super) fn members(
    fields: &[(Member, syntax::Pattern)],
    count: usize,
) -> impl Iterator<Item = (Member, &syntax::Pattern)> {
    let rest = fields.iter().position(|(_, pattern)| matches!(pattern, syntax::Pattern::Rest(_)));
    let skipped = (count + 1).saturating_sub(fields.len()) as u32;
    let named = fields.iter().enumerate().filter(move |(i, _)| Some(*i) != rest);
    named.map(move |(i, (member, pattern))| match member {
        Member::Index(at) if rest.is_some_and(|rest| i > rest) => (Member::Index(at + skipped - 1), pattern),
        member => (member.clone(), pattern),
    })
}
