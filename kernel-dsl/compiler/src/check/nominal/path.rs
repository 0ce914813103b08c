//! Paths: the type or the associated item that a path names.

use super::ResolvedItem;
use crate::Scalar;
use crate::check::checker::FunctionChecker;
use crate::check::types::{Ty, TypeIndex};
use crate::hir::{self, Associated, Builtin, Root, TraitItemKind};
use crate::language;
use crate::syntax::{Path, Segment, SpanPair, TypeOrConst};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Returns the type parameter, associated type, struct or enum that a path names.
    pub(in crate::check) fn named_type(&mut self, path: &Path) -> Option<TypeIndex> {
        if let Some(name) = path.single() {
            if name == "Self" {
                return self.itself;
            }
            let position = self.generics.iter().position(|g| name == &g.name);
            if let Some(i) = position
                && let hir::GenericKind::Type(_) = self.generics[i].kind
            {
                return Some(self.table.add(Ty::Parameter(i as u32)));
            }
        }
        let arguments = path.segments.last().map(|s| s.arguments.clone()).unwrap_or_default();
        match self.environment.find(&path.written()) {
            Some(Root::Struct(id)) => {
                let item = self.environment.struct_of(id);
                self.visible(item.private_to, || format!("`{}`", item.name), path.mark);
                let arguments = self.struct_arguments(id, &arguments, path.mark);
                return Some(self.table.add(Ty::Struct(id, arguments)));
            }
            Some(Root::Enum(id)) => {
                let item = &self.environment.items.enums[id.0 as usize];
                self.visible(item.private_to, || format!("`{}`", item.name), path.mark);
                let arguments = self.enum_arguments(id, &arguments, path.mark);
                return Some(self.table.add(Ty::Enum(id, arguments)));
            }
            Some(Root::Alias(id)) => {
                let arguments = self.struct_arguments(id, &arguments, path.mark);
                let ty = self.field_types(id, &arguments).pop();
                return Some(ty.map_or_else(|| self.wrong(), |(_, ty)| ty));
            }
            _ => {}
        }
        // `M::T`
        let (last, before) = path.segments.split_last()?;
        if before.is_empty() || path.global {
            return None;
        }
        let owner = Path { global: false, segments: before.to_vec(), mark: path.mark };
        let of = self.named_type(&owner)?;
        let name = last.name.to_string();
        let (of_trait, item) = self.trait_item(of, &name)?;
        Some(self.projection(of, of_trait, item))
    }

    /// Returns the path with the number type in place of its alias or of `Self`: `f32::MAX` for
    /// `Real::MAX`. Returns `None` for other paths.
    pub(in crate::check) fn of_number(&mut self, path: &Path) -> Option<Path> {
        let (last, before) = path.segments.split_last()?;
        if before.is_empty() || path.is_builtin() {
            return None;
        }
        let owner = Path { global: path.global, segments: before.to_vec(), mark: path.mark };
        let is_self = owner.single().is_some_and(|name| name == "Self");
        if !is_self && !matches!(self.environment.find(&owner.written()), Some(Root::Alias(_))) {
            return None;
        }
        let of = self.named_type(&owner)?;
        let Ty::Scalar(scalar) = *self.table.get(of) else { return None };
        // An item of a device trait may have any other name.
        if !language::has_associated(scalar, &last.name.to_string()) {
            return None;
        }
        let number = Segment { name: Ident::new(scalar.name(), before[0].name.span()), arguments: Vec::new() };
        Some(Path { global: false, segments: vec![number, last.clone()], mark: path.mark })
    }

    /// Resolves `u32::NAME` to an item of a device trait, unless the number type itself has one.
    pub(in crate::check) fn of_device_trait(&mut self, path: &Path) -> Option<ResolvedItem> {
        let [of, last] = path.segments.as_slice() else { return None };
        let scalar = Scalar::from_name(&of.name.to_string())?;
        if language::has_associated(scalar, &last.name.to_string()) {
            return None;
        }
        let of = self.table.scalar(scalar);
        self.member(of, &last.name, &last.arguments)
    }

    /// Resolves the last name of a path, if the names before it are a type.
    pub(in crate::check) fn associated(&mut self, path: &Path) -> Option<ResolvedItem> {
        let (last, before) = path.segments.split_last()?;
        if before.is_empty() || path.is_builtin() {
            return None;
        }
        let owner = Path { global: path.global, segments: before.to_vec(), mark: path.mark };
        let of = self.named_type(&owner)?;
        Some(self.member(of, &last.name, &last.arguments).unwrap_or_else(|| {
            let ty = self.named(of);
            let mark = SpanPair { first: last.name.span(), last: last.name.span(), ..path.mark };
            let own = match self.result_parts(of) {
                Some(_) => ": if `Result` is a type of yours, mark it `#[device]`, outside of functions",
                None if last.name == "from" => {
                    ": an `impl From` belongs to the host. Write a function with another name in an `impl` of the type"
                }
                None => "",
            };
            self.report(mark, format!("there is no `{}` of `{ty}` on the device{own}", last.name));
            ResolvedItem::Missing
        }))
    }

    /// Resolves `of::name`.
    pub(super) fn member(&mut self, of: TypeIndex, name: &Ident, given: &[TypeOrConst]) -> Option<ResolvedItem> {
        let environment = self.environment;
        let text = name.to_string();
        if let Some(variant) = self.variant_of(of, name, given) {
            return Some(ResolvedItem::Variant(variant));
        }
        let mark = SpanPair { first: name.span(), last: name.span(), span: self.function.body.mark.span };
        let inherent = environment.inherent(&text, |i| self.may_be(i, of));
        if let Some((each, associated)) = inherent {
            let function = associated.function();
            self.visible(environment.function(function).private_to, || format!("`{text}`"), mark);
            let mut generics = self.of_impl(each, of)?;
            let own = &environment.function(function).generics[each.generics.len()..];
            generics.extend(self.item_arguments(&text, own, given, mark));
            let receiver = matches!(associated, Associated::Function { receiver: true, .. });
            return Some(ResolvedItem::Function { function, generics, receiver });
        }
        if let Some((of_trait, item)) = self.trait_item(of, &text) {
            let (function, receiver) = match environment.trait_of(of_trait).items[item as usize].kind {
                TraitItemKind::Function { function, receiver, .. } => (function, receiver),
                TraitItemKind::Constant { function, .. } => (function, false),
                TraitItemKind::Type(_) => return None,
            };
            let mut generics = vec![of];
            let own = &environment.function(function).generics[1..];
            generics.extend(self.item_arguments(&text, own, given, mark));
            return Some(ResolvedItem::Method { of_trait, item, function, generics, receiver });
        }
        let f32 = self.table.scalar(Scalar::F32);
        match text.as_str() {
            "to_f32" if self.implements(of, Builtin::Float) => Some(ResolvedItem::Convert { from: of, to: f32 }),
            "from_f32" if self.implements(of, Builtin::Float) => Some(ResolvedItem::Convert { from: f32, to: of }),
            "default" if self.implements(of, Builtin::Default) => Some(ResolvedItem::Default),
            _ => None,
        }
    }
}
