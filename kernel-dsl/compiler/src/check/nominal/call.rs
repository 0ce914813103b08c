//! Calls of associated functions and methods, and such functions as values.

use super::ResolvedItem;
use crate::Scalar;
use crate::check::checker::{FunctionChecker, Literal};
use crate::check::types::{Ty, TypeIndex};
use crate::hir::{Expr, ExprKind, FunctionId, Intrinsic, Pattern, TraitBound, TraitItemKind, TypeId};
use crate::syntax::{self, Member, Path, SpanPair, TypeOrConst};
use proc_macro2::Ident;

impl FunctionChecker<'_> {
    /// Checks an associated item used as a value: a variant, a constant, or a function passed as a
    /// closure.
    pub(in crate::check) fn associated_value(&mut self, found: ResolvedItem, path: &Path) -> (ExprKind, TypeIndex) {
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
    pub(in crate::check) fn function_type(&mut self, function: FunctionId, generics: &[TypeIndex]) -> TypeIndex {
        let (parameters, returns) = (self.parameters(function, generics), self.returns_of(function, generics));
        self.closures += 1;
        self.table.add(Ty::Closure { number: self.closures, parameters, returns })
    }

    /// Checks `Type::name(arguments)`
    pub(in crate::check) fn associated_call(
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

    /// Returns the types of a function's parameters.
    pub(in crate::check) fn parameters(&mut self, function: FunctionId, generics: &[TypeIndex]) -> Vec<TypeIndex> {
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
    pub(in crate::check) fn call_of(
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
    pub(in crate::check) fn nominal_method(
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
    pub(in crate::check) fn item_call(
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
    pub(in crate::check) fn size_of(&mut self, path: &Path, mark: SpanPair) -> (ExprKind, TypeIndex) {
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
}

/// Returns type ids in the form that the HIR holds until the function is finished.
pub(in crate::check) fn ids(generics: &[TypeIndex]) -> Vec<TypeId> {
    generics.iter().map(|g| TypeId(g.0)).collect()
}
