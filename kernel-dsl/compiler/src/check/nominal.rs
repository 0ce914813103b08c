//! Structs, enums, traits and constants: resolution of paths and methods.

use super::checker::{FunctionChecker, Literal};
use super::types::{Ty, TypeIndex, UnknownKind};
use super::variant::{EnumVariant, members};
use crate::Scalar;
use crate::hir::{
    self, Associated, Builtin, EnumId, Expr, ExprKind, FunctionId, Intrinsic, Pattern, Root, StructId, TraitBound,
    TraitId, TraitItemKind, TypeId,
};
use crate::language;
use crate::syntax::{self, Member, Path, Segment, SpanPair, TypeOrConst};
use proc_macro2::Ident;

/// The item that a name of a type resolves to.
#[derive(Clone, Debug)]
pub(super) enum ResolvedItem {
    /// A function or constant of an impl, with all generic arguments.
    Function { function: FunctionId, generics: Vec<TypeIndex>, receiver: bool },
    /// A function or constant of a trait, as the trait declares it; the first of `generics` is
    /// `Self`.
    Method { of_trait: TraitId, item: u32, function: FunctionId, generics: Vec<TypeIndex>, receiver: bool },
    /// A variant of an enum.
    Variant(EnumVariant),
    /// `T::from_f32` or `T::to_f32`: a conversion between the two types.
    Convert { from: TypeIndex, to: TypeIndex },
    /// `T::default`, `N::default`: zero.
    Default,
    /// No item: the error is reported.
    Missing,
}

impl FunctionChecker<'_> {
    /// Returns the type parameter, associated type, struct or enum that a path names.
    pub(super) fn named_type(&mut self, path: &Path) -> Option<TypeIndex> {
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

    fn struct_arguments(&mut self, id: StructId, given: &[TypeOrConst], mark: SpanPair) -> Vec<TypeIndex> {
        let item = self.environment.struct_of(id);
        self.item_arguments(&item.name, &item.generics, given, mark)
    }

    fn enum_arguments(&mut self, id: EnumId, given: &[TypeOrConst], mark: SpanPair) -> Vec<TypeIndex> {
        let items = &self.environment.items;
        if Some(id) == self.environment.result() && given.len() == 1 {
            self.needs_both_types(mark);
            return vec![self.wrong(), self.wrong()];
        }
        self.item_arguments(&items.enums[id.0 as usize].name, items.enum_generics(id), given, mark)
    }

    /// Reports a `Result` without both of its types, which may be an alias that is not a device
    /// item.
    pub(super) fn needs_both_types(&mut self, mark: SpanPair) {
        self.report(
            mark,
            "`Result` takes two types, `Result<T, E>`: write both. If `Result` is a type or an alias of yours, mark it `#[device]`, outside of functions",
        );
    }

    /// Returns the generic arguments of the item `name`, as written or to be inferred. Reports a
    /// wrong number of them.
    pub(super) fn item_arguments(
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
    pub(super) fn arguments(&mut self, generics: &[hir::Generic], given: &[TypeOrConst]) -> Vec<TypeIndex> {
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

    /// Returns the bounds of a type parameter or of its associated type.
    pub(super) fn bounds_of(&self, id: TypeIndex) -> Vec<TraitBound> {
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
    pub(super) fn implements(&self, id: TypeIndex, wanted: Builtin) -> bool {
        self.environment.implies(&self.bounds_of(id), wanted)
    }

    /// Returns the trait that the type implements and that has an item with this name.
    fn trait_item(&mut self, of: TypeIndex, name: &str) -> Option<(TraitId, u32)> {
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
    pub(super) fn implementations(&self, of_trait: TraitId, of: TypeIndex) -> Vec<usize> {
        let impls = self.environment.items.impls.iter().enumerate();
        impls.filter(|(_, each)| each.of_trait == Some(of_trait) && self.may_be(each, of)).map(|(i, _)| i).collect()
    }

    /// Returns whether an impl's type can be `of`, which may be partly unknown.
    pub(super) fn may_be(&self, each: &hir::Impl, of: TypeIndex) -> bool {
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
    pub(super) fn of_impl(&mut self, each: &hir::Impl, of: TypeIndex) -> Option<Vec<TypeIndex>> {
        let arguments = self.arguments(&each.generics, &[]);
        let whole = self.instantiate(&each.types, each.for_type, &arguments);
        self.table.unify(whole, of).then_some(arguments)
    }

    /// Returns the type `<of as of_trait>::item`, or a placeholder until `of` is known.
    pub(super) fn projection(&mut self, of: TypeIndex, of_trait: TraitId, item: u32) -> TypeIndex {
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
    pub(super) fn project(&mut self) {
        for (of, of_trait, item, result) in std::mem::take(&mut self.projections) {
            let found = self.projection(of, of_trait, item);
            self.table.unify(result, found);
        }
    }

    /// Returns the value of a constant that a type uses as a size.
    pub(super) fn constant_size(&self, ty: &syntax::Type) -> Option<u32> {
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
    pub(super) fn number(&self, e: &syntax::Expr) -> Option<u32> {
        super::environment::number(e, &|path| self.constant_number(path))
    }

    /// Returns the path with the number type in place of its alias or of `Self`: `f32::MAX` for
    /// `Real::MAX`. Returns `None` for other paths.
    pub(super) fn of_number(&mut self, path: &Path) -> Option<Path> {
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
    pub(super) fn of_device_trait(&mut self, path: &Path) -> Option<ResolvedItem> {
        let [of, last] = path.segments.as_slice() else { return None };
        let scalar = Scalar::from_name(&of.name.to_string())?;
        if language::has_associated(scalar, &last.name.to_string()) {
            return None;
        }
        let of = self.table.scalar(scalar);
        self.member(of, &last.name, &last.arguments)
    }

    /// Resolves the last name of a path, if the names before it are a type.
    pub(super) fn associated(&mut self, path: &Path) -> Option<ResolvedItem> {
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

    /// Checks an associated item used as a value: a variant, a constant, or a function passed as a
    /// closure.
    pub(super) fn associated_value(&mut self, found: ResolvedItem, path: &Path) -> (ExprKind, TypeIndex) {
        match found {
            ResolvedItem::Variant(variant) => self.unit_variant(variant, path.mark),
            ResolvedItem::Missing => (ExprKind::Tuple(Vec::new()), self.wrong()),
            ResolvedItem::Default => {
                let ty = path.item().and_then(|owner| self.named_type(&owner)).unwrap_or_else(|| self.wrong());
                (self.zero(path.mark), ty)
            }
            ResolvedItem::Convert { from, to } => {
                let argument = self.declare("x".into(), from, path.mark);
                self.scope.pop();
                let span = path.mark.span;
                let x = Expr { kind: ExprKind::Local(argument), ty: TypeId(from.0), span };
                let kind = ExprKind::Intrinsic { intrinsic: Intrinsic::Convert, arguments: vec![x] };
                let body = Box::new(Expr { kind, ty: TypeId(to.0), span });
                self.closures += 1;
                let ty = Ty::Closure { number: self.closures, parameters: vec![from], returns: to };
                (ExprKind::Closure { parameters: vec![Pattern::Local(argument)], body }, self.table.add(ty))
            }
            ResolvedItem::Function { function, ref generics, .. } => {
                if self.environment.is_constant(function) {
                    return self.called_with(&found, Vec::new());
                }
                let ty = self.function_type(function, generics);
                (ExprKind::Function { function, generics: ids(generics) }, ty)
            }
            ResolvedItem::Method { of_trait, item, function, ref generics, .. } => {
                let declared = &self.environment.trait_of(of_trait).items[item as usize];
                if matches!(declared.kind, TraitItemKind::Constant { .. }) {
                    return self.called_with(&found, Vec::new());
                }
                let ty = self.function_type(function, generics);
                let (of, own) = (TypeId(generics[0].0), ids(&generics[1..]));
                (ExprKind::MethodValue { of, of_trait, item, generics: own }, ty)
            }
        }
    }

    fn zero(&mut self, mark: SpanPair) -> ExprKind {
        self.literal(Literal::Integer(0, mark))
    }

    /// Returns the type of a function passed as a closure.
    pub(super) fn function_type(&mut self, function: FunctionId, generics: &[TypeIndex]) -> TypeIndex {
        let (parameters, returns) = (self.parameters(function, generics), self.returns_of(function, generics));
        self.closures += 1;
        self.table.add(Ty::Closure { number: self.closures, parameters, returns })
    }

    /// Checks `Type::name(arguments)`
    pub(super) fn associated_call(
        &mut self,
        found: ResolvedItem,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> (ExprKind, TypeIndex) {
        let name = path.name();
        match found {
            ResolvedItem::Variant(variant) => {
                let fields = arguments.iter().enumerate().map(|(i, e)| (Member::Index(i as u32), e));
                self.variant_value(variant, fields.collect(), path)
            }
            ResolvedItem::Missing => {
                arguments.iter().for_each(|e| {
                    self.expr(e, None);
                });
                (ExprKind::Tuple(Vec::new()), self.wrong())
            }
            ResolvedItem::Default => {
                self.count(&name, 0, arguments.len(), mark);
                self.associated_value(ResolvedItem::Default, path)
            }
            ResolvedItem::Convert { from, to } => {
                if !self.count(&name, 1, arguments.len(), mark) {
                    return (ExprKind::Tuple(Vec::new()), self.wrong());
                }
                let x = self.expr_of_type(&arguments[0], from);
                (ExprKind::Intrinsic { intrinsic: Intrinsic::Convert, arguments: vec![x] }, to)
            }
            ResolvedItem::Function { function, ref generics, .. }
            | ResolvedItem::Method { function, ref generics, .. } => {
                let parameters = self.parameters(function, generics);
                if !self.count(&name, parameters.len(), arguments.len(), mark) {
                    return (ExprKind::Tuple(Vec::new()), self.wrong());
                }
                let arguments = arguments.iter().zip(parameters).map(|(e, ty)| self.expr_of_type(e, ty)).collect();
                self.called_with(&found, arguments)
            }
        }
    }

    pub(super) fn parameters(&mut self, function: FunctionId, generics: &[TypeIndex]) -> Vec<TypeIndex> {
        let environment = self.environment;
        let callee = environment.function(function);
        let parameters = callee.locals[..callee.parameters as usize].iter();
        parameters.map(|p| self.instantiate(&callee.types, p.ty, generics)).collect()
    }

    fn returns_of(&mut self, function: FunctionId, generics: &[TypeIndex]) -> TypeIndex {
        let environment = self.environment;
        let callee = environment.function(function);
        self.instantiate(&callee.types, callee.returns, generics)
    }

    /// Returns the call of a function with all its generic arguments.
    pub(super) fn call_of(
        &mut self,
        function: FunctionId,
        generics: &[TypeIndex],
        arguments: Vec<Expr>,
    ) -> (ExprKind, TypeIndex) {
        let returns = self.returns_of(function, generics);
        (ExprKind::Call { function, generics: ids(generics), arguments }, returns)
    }

    fn called_with(&mut self, found: &ResolvedItem, arguments: Vec<Expr>) -> (ExprKind, TypeIndex) {
        match *found {
            ResolvedItem::Function { function, ref generics, .. } => self.call_of(function, generics, arguments),
            ResolvedItem::Method { of_trait, item, function, ref generics, .. } => {
                let returns = self.returns_of(function, generics);
                let (of, own) = (TypeId(generics[0].0), ids(&generics[1..]));
                (ExprKind::CallMethod { of, of_trait, item, generics: own, arguments }, returns)
            }
            _ => unreachable!("only functions and constants can be called"),
        }
    }

    /// Checks `receiver.name(arguments)` of a struct, enum or type parameter; `None` if it has no
    /// such method.
    pub(super) fn nominal_method(
        &mut self,
        receiver: &Expr,
        name: &Ident,
        given: &[TypeOrConst],
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let found = self.member(TypeIndex(receiver.ty.0), name, given)?;
        match &found {
            ResolvedItem::Convert { from, to }
                if name == "to_f32" && self.table.unify(*from, TypeIndex(receiver.ty.0)) =>
            {
                self.refuse_generics(name, given, mark);
                self.count("to_f32", 0, arguments.len(), mark);
                let arguments = vec![receiver.clone()];
                Some((ExprKind::Intrinsic { intrinsic: Intrinsic::Convert, arguments }, *to))
            }
            ResolvedItem::Function { function, generics, receiver: true }
            | ResolvedItem::Method { function, generics, receiver: true, .. } => {
                let parameters = self.parameters(*function, generics);
                if !self.count(&name.to_string(), parameters.len() - 1, arguments.len(), mark) {
                    return Some((ExprKind::Tuple(Vec::new()), self.wrong()));
                }
                let itself = match *self.table.get(parameters[0]) {
                    Ty::Reference { mutable, .. } => {
                        let mut receiver = receiver.clone();
                        if mutable {
                            self.assignable(&mut receiver, mark);
                        }
                        let span = receiver.span;
                        Expr { kind: ExprKind::Reference(Box::new(receiver)), ty: TypeId(parameters[0].0), span }
                    }
                    _ => receiver.clone(),
                };
                let mut all = vec![itself];
                for (e, ty) in arguments.iter().zip(&parameters[1..]) {
                    all.push(self.expr_of_type(e, *ty));
                }
                Some(self.called_with(&found, all))
            }
            _ => None,
        }
    }

    /// Checks `F::call((a, b))` for a type parameter that is a device function.
    pub(super) fn item_call(
        &mut self,
        path: &Path,
        arguments: &[syntax::Expr],
        mark: SpanPair,
    ) -> Option<(ExprKind, TypeIndex)> {
        let [owner, last] = path.segments.as_slice() else { return None };
        if last.name != "call" {
            return None;
        }
        let owner = Path { global: false, segments: vec![owner.clone()], mark: path.mark };
        let of = self.named_type(&owner)?;
        let bounds = self.bounds_of(of);
        let (parameters, returns) = bounds.into_iter().find_map(|bound| match bound {
            TraitBound::Function { parameters, returns } => Some((parameters, returns)),
            _ => None,
        })?;
        let parts = match arguments {
            [syntax::Expr { kind: syntax::ExprKind::Tuple(parts), .. }] => parts.as_slice(),
            _ => {
                self.report(mark, "`F::call` takes the arguments as a tuple: `F::call((x,))`");
                return Some((ExprKind::Tuple(Vec::new()), self.wrong()));
            }
        };
        if !self.count(&path.name(), parameters.len(), parts.len(), mark) {
            return Some((ExprKind::Tuple(Vec::new()), self.wrong()));
        }
        let arguments = parts.iter().zip(parameters).map(|(e, ty)| self.expr_of_type(e, TypeIndex(ty.0))).collect();
        Some((ExprKind::CallItem { of: TypeId(of.0), arguments }, TypeIndex(returns.0)))
    }

    /// Checks `size_of::<T>()`
    pub(super) fn size_of(&mut self, path: &Path, mark: SpanPair) -> (ExprKind, TypeIndex) {
        let usize = self.table.scalar(Scalar::Usize);
        match path.segments.last().map_or(&[][..], |s| &s.arguments) {
            [TypeOrConst::Type(ty)] => {
                let of = self.ty(ty);
                (ExprKind::SizeOf(TypeId(of.0)), usize)
            }
            _ => {
                self.report(mark, "`size_of` needs a type: `size_of::<f32>()`");
                (ExprKind::Tuple(Vec::new()), self.wrong())
            }
        }
    }

    /// Returns the type of the struct that a path names, including `Self`.
    fn struct_type(&mut self, path: &Path) -> Option<(StructId, Vec<TypeIndex>, TypeIndex)> {
        let ty = self.named_type(path)?;
        match self.table.get(ty).clone() {
            Ty::Struct(id, arguments) => Some((id, arguments, ty)),
            _ => None,
        }
    }

    pub(super) fn field_types(&mut self, id: StructId, arguments: &[TypeIndex]) -> Vec<(String, TypeIndex)> {
        let environment = self.environment;
        let item = environment.struct_of(id);
        item.fields.iter().map(|f| (f.name.clone(), self.instantiate(&item.types, f.ty, arguments))).collect()
    }

    /// Checks `Name { field: value, ..rest }`
    pub(super) fn struct_literal(
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
    pub(super) fn unit_struct(&mut self, path: &Path) -> Option<(ExprKind, TypeIndex)> {
        let (id, _, ty) = self.struct_type(path)?;
        self.environment
            .struct_of(id)
            .fields
            .is_empty()
            .then(|| (ExprKind::Struct { fields: Vec::new(), rest: None }, ty))
    }

    /// Checks `Name(a, b)` for a tuple struct.
    pub(super) fn tuple_struct(
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
    pub(super) fn visible_field(&mut self, of: StructId, field: &str, mark: SpanPair) {
        let environment = self.environment;
        let item = environment.struct_of(of);
        if let Some(found) = item.fields.iter().find(|f| f.name == field) {
            self.visible(found.private_to, || format!("the field `{field}` of `{}`", item.name), mark);
        }
    }

    /// Returns the index and type of the field `member` of a value of type `ty`.
    pub(super) fn part_of(&mut self, ty: TypeIndex, member: &Member) -> Option<(u32, TypeIndex)> {
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
    pub(super) fn struct_pattern(
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

    /// Returns whether a type is an enum whose variants hold no data.
    pub(super) fn is_discriminant(&self, ty: TypeIndex) -> bool {
        matches!(self.table.get(ty), Ty::Enum(id, _) if self.environment.items.enums[id.0 as usize].data.is_none())
    }
}

/// Returns type ids in the form that the HIR holds until the function is finished.
pub(super) fn ids(generics: &[TypeIndex]) -> Vec<TypeId> {
    generics.iter().map(|g| TypeId(g.0)).collect()
}
