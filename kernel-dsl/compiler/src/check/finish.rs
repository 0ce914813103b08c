//! The end of a function's check: inference ends, and types, literals and operators that depend on
//! it are resolved.

use super::checker::{Called, FunctionChecker, Literal, OperatorClass, OperatorOperands};
use super::diagnostic::Diagnostic;
use super::rust_type::rust_type;
use super::types::{Finished, Ty, TypeIndex, TypeTable};
use crate::Scalar;
use crate::hir::{self, GenericKind, TraitBound};
use proc_macro2::TokenStream;
use quote::quote;

/// A checked item, with the facts that rustc can confirm.
#[derive(Clone, Debug)]
pub struct CheckedItem<T> {
    /// The result.
    pub hir: T,
    /// Each variable bound by a plain `let`: the token of its name, and the inferred type, if Rust
    /// can write it.
    pub locals: Vec<(proc_macro2::Span, TokenStream)>,
    /// Each called function of the prelude: its path as written, and below `kernel_dsl::prelude`,
    /// both with generic arguments.
    pub prelude: Vec<(TokenStream, TokenStream)>,
}

impl<T> CheckedItem<T> {
    pub(super) fn map<U>(self, f: impl FnOnce(T) -> U) -> CheckedItem<U> {
        CheckedItem { hir: f(self.hir), locals: self.locals, prelude: self.prelude }
    }
}

impl<'a> FunctionChecker<'a> {
    /// Ends inference, and resolves the types, literals and operators that depend on it.
    pub(super) fn finish(mut self, body: &mut hir::Block) -> Finish<'a> {
        self.project();
        for OperatorOperands { ty, of, mark } in std::mem::take(&mut self.operands) {
            match of {
                OperatorClass::Arithmetic(allowed) => self.operands(ty, allowed, mark),
                OperatorClass::Comparison(comparison) => self.comparable(ty, comparison, mark),
            }
        }
        self.bounded();
        self.negations();
        self.check_conversions();
        let types = Finished::new(&self.table);
        let mut finish = Finish { checker: self, types };
        hir::visit::block(body, &mut |e| finish.one(e));
        finish
    }
}

/// A function after inference, while its expressions are being resolved.
pub(super) struct Finish<'a> {
    checker: FunctionChecker<'a>,
    types: Finished,
}

impl Finish<'_> {
    /// Resolves an expression outside of the body.
    pub(super) fn expr(&mut self, e: &mut hir::Expr) {
        hir::visit::expr(e, &mut |e| self.one(e));
    }

    /// Returns the finished type of an index into the table of types.
    fn ty(&mut self, index: hir::TypeId) -> hir::TypeId {
        self.types.get(&self.checker.table, TypeIndex(index.0))
    }

    /// Resolves an expression without the expressions in it.
    fn one(&mut self, e: &mut hir::Expr) {
        e.ty = self.ty(e.ty);
        match &mut e.kind {
            hir::ExprKind::Literal(index) => e.kind = self.literal(self.checker.literals[*index as usize], e.ty),
            hir::ExprKind::Call { generics, .. } | hir::ExprKind::Function { generics, .. } => {
                for g in generics {
                    *g = self.ty(*g);
                }
            }
            hir::ExprKind::CallMethod { of, generics, .. } | hir::ExprKind::MethodValue { of, generics, .. } => {
                for g in generics.iter_mut().chain([of]) {
                    *g = self.ty(*g);
                }
            }
            hir::ExprKind::CallItem { of, .. } | hir::ExprKind::SizeOf(of) => {
                *of = self.ty(*of);
            }
            hir::ExprKind::Assertion { condition: Some(condition), message, .. } => {
                if let hir::ExprKind::Compare(_, side, _) = &condition.kind
                    && self.is_shown(side.ty)
                {
                    message.push_str(" (left: {}, right: {})");
                }
            }
            _ => {}
        }
    }

    /// Returns a literal of type `ty`, with its bits.
    fn literal(&mut self, literal: Literal, ty: hir::TypeId) -> hir::ExprKind {
        // A literal without a scalar type is the discriminant of a variant, or the zero of a type
        // parameter.
        let scalar = match self.types.types[ty.0 as usize] {
            hir::Type::Scalar(scalar) => Some(scalar),
            _ => None,
        };
        hir::ExprKind::Literal(match (literal, scalar) {
            (Literal::Float(x), Some(Scalar::F32)) => u64::from(x.single.to_bits()),
            (Literal::Float(x), _) => x.double.to_bits(),
            (Literal::Integer(n, _), Some(Scalar::U128)) if n > u64::MAX.into() => {
                return hir::ExprKind::LongLiteral(n);
            }
            (Literal::Integer(n, mark), Some(ty)) if n > ty.mask().into() => {
                let message = format!("`{n}` does not fit in `{ty}`, which has {} bits on the device", ty.bits());
                self.checker.report(mark, message);
                n as u64
            }
            (Literal::Integer(n, _), _) => n as u64,
        })
    }

    /// Returns whether a message can show values of the type: whether lowering makes it a scalar.
    fn is_shown(&self, ty: hir::TypeId) -> bool {
        match self.types.types[ty.0 as usize] {
            hir::Type::Scalar(_) | hir::Type::Parameter(_) | hir::Type::Projection { .. } => true,
            hir::Type::Enum(id, _) => self.checker.environment.items.enums[id.0 as usize].data.is_none(),
            _ => false,
        }
    }

    /// Reports an error for each shift by a literal that is at least the width.
    fn shifts(&mut self) {
        for (of, by, mark) in std::mem::take(&mut self.checker.shifts) {
            let ty = self.types.get(&self.checker.table, of);
            if let hir::Type::Scalar(ty) = self.types.types[ty.0 as usize]
                && by >= u128::from(ty.bits())
            {
                self.checker.report(
                    mark,
                    format!("a shift by {by} is out of range for `{ty}`, which has {} bits: shift a wider type, or use `wrapping_shl` or `wrapping_shr`, which shift modulo {}", ty.bits(), ty.bits()),
                );
            }
        }
    }

    /// Returns the function and the facts for rustc, or all errors.
    pub(super) fn done(mut self, body: hir::Block) -> Result<(hir::Function, CheckedItem<()>), Vec<Diagnostic>> {
        let locals: Vec<_> = self
            .checker
            .locals
            .iter()
            .map(|v| hir::Local {
                name: v.name.clone(),
                ty: self.types.get(&self.checker.table, v.ty),
                // A view is declared `mut` to write its elements, so its variable counts as mutable
                // only if it is assigned.
                mutable: match self.checker.table.get(v.ty) {
                    Ty::View { .. } | Ty::Slice { .. } | Ty::Shared { .. } => v.assigned || v.form.unset,
                    _ => v.form.mutable || v.form.unset,
                },
                constant: v.constant,
                late: v.form.unset && !v.form.mutable,
                span: v.mark.span,
            })
            .collect();
        let returns = self.types.get(&self.checker.table, self.checker.returns);
        self.shifts();
        // An unknown type is an error only if a variable has this type; rustc reports the rest.
        // After other errors nothing is reported, because they may have caused the unknown type.
        let unknown = std::mem::take(&mut self.types.unknown);
        for id in unknown.into_iter().filter(|_| self.checker.diagnostics.is_empty()).collect::<Vec<_>>() {
            let root = self.checker.table.root(id);
            if let Some(v) = self.checker.locals.iter().find(|v| self.checker.table.root(v.ty) == root) {
                let (mark, message) =
                    (v.mark, format!("cannot infer the type of `{}`: annotate it, `{}: …`", v.name, v.name));
                self.checker.report(mark, message);
            }
        }
        let mut checker = self.checker;
        if !checker.diagnostics.is_empty() {
            return Err(checker.diagnostics);
        }
        finish_bounds(&mut checker.generics, &mut self.types, &checker.table);
        let checked = CheckedItem {
            locals: checker
                .bound
                .iter()
                .filter_map(|(span, local)| {
                    Some((*span, rust_type(&self.types.types, &checker.generics, locals[local.0 as usize].ty)?))
                })
                .collect(),
            prelude: checker
                .called
                .iter()
                .filter_map(|Called { written, canonical, arguments, combines }| {
                    let types = arguments.iter().map(|id| {
                        let id = self.types.get(&checker.table, *id);
                        rust_type(&self.types.types, &checker.generics, id)
                    });
                    let mut types: Vec<TokenStream> = types.collect::<Option<_>>()?;
                    if let (true, Some(ty)) = (combines, types.first()) {
                        types.push(quote!(fn(#ty, #ty) -> #ty));
                    }
                    let arguments = if types.is_empty() { quote!() } else { quote!(::<#(#types),*>) };
                    Some((quote!(#written #arguments), quote!(#canonical #arguments)))
                })
                .collect(),
            hir: (),
        };
        let function = hir::Function {
            name: checker.function.name.to_string(),
            hash: checker.function.hash,
            source: checker.function.source.clone(),
            generics: checker.generics,
            types: self.types.types,
            parameters: checker.function.parameters.len() as u32,
            locals,
            returns,
            constant: checker.function.constant,
            allowances: checker.function.allowances.clone(),
            private_to: 0,
            body,
        };
        Ok((function, checked))
    }
}

/// Resolves the types in bounds.
pub(super) fn finish_bounds(generics: &mut [hir::Generic], types: &mut Finished, table: &TypeTable) {
    for generic in generics {
        let GenericKind::Type(bounds) = &mut generic.kind else { continue };
        for bound in bounds {
            if let TraitBound::Function { parameters, returns } = bound {
                for ty in parameters.iter_mut().chain([returns]) {
                    *ty = types.get(table, TypeIndex(ty.0));
                }
            }
        }
    }
}
