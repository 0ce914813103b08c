//! Generic arguments of an item, as written or to be inferred, and the constants in them.

use crate::check::checker::FunctionChecker;
use crate::check::environment;
use crate::check::types::{Ty, TypeIndex, UnknownKind};
use crate::hir::{self, EnumId, Root, StructId};
use crate::syntax::{self, Path, SpanPair, TypeOrConst};

impl FunctionChecker<'_> {
    /// Returns the generic arguments of a struct, as written or to be inferred.
    pub(super) fn struct_arguments(&mut self, id: StructId, given: &[TypeOrConst], mark: SpanPair) -> Vec<TypeIndex> {
        let item = self.environment.struct_of(id);
        self.item_arguments(&item.name, &item.generics, given, mark)
    }

    /// Returns the generic arguments of an enum, as written or to be inferred.
    pub(super) fn enum_arguments(&mut self, id: EnumId, given: &[TypeOrConst], mark: SpanPair) -> Vec<TypeIndex> {
        let items = &self.environment.items;
        if Some(id) == self.environment.result() && given.len() == 1 {
            self.needs_both_types(mark);
            return vec![self.wrong(), self.wrong()];
        }
        self.item_arguments(&items.enums[id.0 as usize].name, items.enum_generics(id), given, mark)
    }

    /// Reports a `Result` without both of its types, which may be an alias that is not a device
    /// item.
    pub(in crate::check) fn needs_both_types(&mut self, mark: SpanPair) {
        self.report(
            mark,
            "`Result` takes two types, `Result<T, E>`: write both. If `Result` is a type or an alias of yours, mark it `#[device]`, outside of functions",
        );
    }

    /// Returns the generic arguments of the item `name`, as written or to be inferred. Reports a
    /// wrong number of them.
    pub(in crate::check) fn item_arguments(
        &mut self,
        name: &str,
        generics: &[hir::Generic],
        given: &[TypeOrConst],
        mark: SpanPair,
    ) -> Vec<TypeIndex> {
        if !given.is_empty() && given.len() != generics.len() {
            let (wanted, plural) = (generics.len(), if generics.len() == 1 { "" } else { "s" });
            self.report(mark, format!("`{name}` takes {wanted} generic argument{plural}, {} given", given.len()));
        }
        self.arguments(generics, given)
    }

    /// Returns the arguments for these generic parameters, as given or to be inferred.
    pub(in crate::check) fn arguments(&mut self, generics: &[hir::Generic], given: &[TypeOrConst]) -> Vec<TypeIndex> {
        let one = |(i, generic): (usize, &hir::Generic)| match (given.get(i), &generic.kind) {
            (Some(argument), hir::GenericKind::Constant(scalar)) => self.constant(argument, *scalar),
            (None, hir::GenericKind::Constant(_)) => self.table.add(Ty::Unknown(UnknownKind::Size)),
            (Some(TypeOrConst::Type(ty)), hir::GenericKind::Type(_)) => self.type_argument(ty),
            (Some(TypeOrConst::Number(_, mark) | TypeOrConst::Bool(_, mark)), hir::GenericKind::Type(_)) => {
                self.report(*mark, format!("`{}` must be a type", generic.name));
                self.wrong()
            }
            (None, hir::GenericKind::Type(_)) => self.table.unknown(),
        };
        let arguments: Vec<TypeIndex> = generics.iter().enumerate().map(one).collect();
        self.must_satisfy(generics, &arguments);
        arguments
    }

    /// Returns a type, or a device function passed for a type with `DeviceFn`.
    fn type_argument(&mut self, ty: &syntax::Type) -> TypeIndex {
        if let syntax::TypeKind::Path(path) = &ty.kind
            && let Some(Root::Function(id)) = self.environment.find(&path.written())
        {
            return self.table.add(Ty::Item(id));
        }
        self.ty(ty)
    }

    /// Returns the value of a constant that a type uses as a size.
    pub(in crate::check) fn constant_size(&self, ty: &syntax::Type) -> Option<u32> {
        match &ty.kind {
            syntax::TypeKind::Path(path) => self.constant_number(path),
            _ => None,
        }
    }

    fn constant_number(&self, path: &Path) -> Option<u32> {
        if let Some(local) = path.single().and_then(|name| self.variable(name)) {
            return self.constants.iter().find(|(id, _)| *id == local).map(|(_, n)| *n);
        }
        match self.environment.find(&path.written())? {
            Root::Constant(id) => self.environment.number(id),
            _ => None,
        }
    }

    /// Returns the value of a constant expression, if it is computed from numbers.
    pub(in crate::check) fn number(&self, e: &syntax::Expr) -> Option<u32> {
        environment::number(e, &|path| self.constant_number(path))
    }
}
