//! Structs: their values, patterns and fields.

use crate::check::checker::FunctionChecker;
use crate::check::types::{Ty, TypeIndex};
use crate::check::variant::members;
use crate::hir::{ExprKind, Pattern, StructId};
use crate::syntax::{self, Member, Path, SpanPair};

impl FunctionChecker<'_> {
    /// Returns the type of the struct that a path names, including `Self`.
    fn struct_type(&mut self, path: &Path) -> Option<(StructId, Vec<TypeIndex>, TypeIndex)> {
        let ty = self.named_type(path)?;
        match self.table.get(ty).clone() {
            Ty::Struct(id, arguments) => Some((id, arguments, ty)),
            _ => None,
        }
    }

    /// Returns the names and types of a struct's fields.
    pub(in crate::check) fn field_types(&mut self, id: StructId, arguments: &[TypeIndex]) -> Vec<(String, TypeIndex)> {
        let environment = self.environment;
        let item = environment.struct_of(id);
        item.fields.iter().map(|f| (f.name.clone(), self.instantiate(&item.types, f.ty, arguments))).collect()
    }

    /// Checks `Name { field: value, ..rest }`
    pub(in crate::check) fn struct_literal(
        &mut self,
        path: &Path,
        given: &[(Member, syntax::Expr)],
        rest: Option<&syntax::Expr>,
        expected: Option<TypeIndex>,
    ) -> (ExprKind, TypeIndex) {
        if let Some(variant) = self.variant(path) {
            return self.variant_value(variant, given.iter().map(|(member, e)| (member.clone(), e)).collect(), path);
        }
        let Some((id, arguments, ty)) = self.struct_type(path) else {
            given.iter().for_each(|(_, e)| {
                self.expr(e, None);
            });
            self.report(path.mark, format!("`{}` is not a device struct: mark it `#[device]`", path.name()));
            return (ExprKind::Tuple(Vec::new()), self.wrong());
        };
        if let Some(expected) = expected
            && matches!(self.table.get(expected), Ty::Struct(other, _) if *other == id)
        {
            self.table.unify(ty, expected);
        }
        let types = self.field_types(id, &arguments);
        let mut fields = Vec::with_capacity(given.len());
        for (member, value) in given {
            match types.iter().position(|(name, _)| *name == member.to_string()) {
                Some(i) => {
                    self.visible_field(id, &types[i].0, value.mark);
                    let value = self.expr_of_type(value, types[i].1);
                    fields.push((i as u32, value));
                }
                None => {
                    let name = self.named(ty);
                    self.report(value.mark, format!("`{name}` has no field `{member}`"));
                }
            }
        }
        if let Some(rest) = rest {
            types.iter().for_each(|(name, _)| self.visible_field(id, name, rest.mark));
        }
        let rest = rest.map(|e| Box::new(self.expr_of_type(e, ty)));
        // rustc reports missing fields.
        if rest.is_none() && fields.len() != types.len() {
            let name = self.named(ty);
            self.report(path.mark, format!("`{name}` has {} fields, {} given", types.len(), fields.len()));
        }
        (ExprKind::Struct { fields, rest }, ty)
    }

    /// Checks the name of a unit struct.
    pub(in crate::check) fn unit_struct(&mut self, path: &Path) -> Option<(ExprKind, TypeIndex)> {
        let (id, _, ty) = self.struct_type(path)?;
        self.environment
            .struct_of(id)
            .fields
            .is_empty()
            .then(|| (ExprKind::Struct { fields: Vec::new(), rest: None }, ty))
    }

    /// Checks `Name(a, b)` for a tuple struct.
    pub(in crate::check) fn tuple_struct(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let (id, of, ty) = self.struct_type(path)?;
        let types = self.field_types(id, &of);
        types.iter().for_each(|(name, _)| self.visible_field(id, name, path.mark));
        if !self.count(&path.name(), types.len(), arguments.len(), mark) {
            return Some((ExprKind::Tuple(Vec::new()), self.wrong()));
        }
        let fields = arguments.iter().zip(types).enumerate();
        let fields = fields.map(|(i, (e, (_, wanted)))| (i as u32, self.expr_of_type(e, wanted))).collect();
        Some((ExprKind::Struct { fields, rest: None }, ty))
    }

    /// Reports an error if a field is private to a module, and this function is outside.
    pub(in crate::check) fn visible_field(&mut self, of: StructId, field: &str, mark: SpanPair) {
        let environment = self.environment;
        let item = environment.struct_of(of);
        if let Some(found) = item.fields.iter().find(|f| f.name == field) {
            self.visible(found.private_to, || format!("the field `{field}` of `{}`", item.name), mark);
        }
    }

    /// Returns the index and type of the field `member` of a value of type `ty`.
    pub(in crate::check) fn part_of(&mut self, ty: TypeIndex, member: &Member) -> Option<(u32, TypeIndex)> {
        match (self.table.get(ty).clone(), member) {
            (Ty::Tuple(parts), Member::Index(i)) => Some((*i, *parts.get(*i as usize)?)),
            (Ty::Struct(id, arguments), _) => {
                let types = self.field_types(id, &arguments);
                let i = types.iter().position(|(name, _)| *name == member.to_string())?;
                Some((i as u32, types[i].1))
            }
            (Ty::Wrong, _) => Some((0, ty)),
            _ => None,
        }
    }

    /// Checks the pattern `Name { field: pattern, .. }`.
    pub(in crate::check) fn struct_pattern(
        &mut self,
        path: &Path,
        fields: &[(Member, syntax::Pattern)],
        ty: TypeIndex,
        unset: bool,
        mark: SpanPair,
    ) -> Pattern {
        if let Some(variant) = self.variant(path) {
            return self.variant_pattern(variant, fields, ty, unset, mark);
        }
        let Some((id, arguments, whole)) = self.struct_type(path) else {
            self.report(path.mark, format!("`{}` is not a device struct: mark it `#[device]`", path.name()));
            return Pattern::Ignore;
        };
        self.coerce(ty, whole, mark);
        let types = self.field_types(id, &arguments);
        let mut parts = vec![Pattern::Ignore; types.len()];
        for (member, pattern) in members(fields, types.len()) {
            let member = &member;
            match types.iter().position(|(name, _)| *name == member.to_string()) {
                Some(i) => {
                    self.visible_field(id, &types[i].0, mark);
                    parts[i] = self.bind(pattern, types[i].1, unset, mark);
                }
                None => self.report(mark, format!("`{}` has no field `{member}`", path.name())),
            }
        }
        Pattern::Parts(parts)
    }
}
