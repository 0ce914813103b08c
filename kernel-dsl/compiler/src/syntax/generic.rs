//! Generic functions in the form that the checker knows.
//!
//! In this form each parameter that takes a closure has the type `impl Fn(A) -> R`, and each other
//! `impl Trait` is a type parameter.

use proc_macro2::Ident;
use quote::format_ident;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{FnArg, GenericParam, Generics, Pat, Signature, Token, Type, TypeParamBound, WherePredicate, parse_quote};

type Bounds = Punctuated<TypeParamBound, Token![+]>;

/// The start of the name of a type parameter that replaces `impl Trait`.
const ANONYMOUS: &str = "ImplOf_";

/// Returns whether a type parameter replaces `impl Trait`, so that no Rust can name it.
pub(crate) fn is_anonymous(parameter: &str) -> bool {
    parameter.starts_with(ANONYMOUS)
}

/// Returns the type parameters whose bounds have a closure's trait, with all their bounds.
pub(super) fn closures(generics: &Generics) -> Vec<(Ident, Bounds)> {
    let mut all = Vec::new();
    for parameter in generics.type_params() {
        let mut bounds = parameter.bounds.clone();
        for predicate in generics.where_clause.iter().flat_map(|w| &w.predicates) {
            if let WherePredicate::Type(of) = predicate
                && is_parameter(&of.bounded_ty, &parameter.ident)
            {
                bounds.extend(of.bounds.iter().cloned());
            }
        }
        if bounds.iter().any(is_function) {
            all.push((parameter.ident.clone(), bounds));
        }
    }
    all
}

/// Returns the signature of a device function in the form that the checker knows.
pub(super) fn explicit(signature: &Signature) -> Signature {
    let mut signature = signature.clone();
    for (closure, bounds) in closures(&signature.generics) {
        let generics = &mut signature.generics;
        generics.params = std::mem::take(&mut generics.params)
            .into_iter()
            .filter(|p| !matches!(p, GenericParam::Type(t) if t.ident == closure))
            .collect();
        if let Some(clause) = &mut generics.where_clause {
            clause.predicates = std::mem::take(&mut clause.predicates)
                .into_iter()
                .filter(|p| !matches!(p, WherePredicate::Type(of) if is_parameter(&of.bounded_ty, &closure)))
                .collect();
        }
        let mut replacement = ClosureTypes { closure, bounds };
        signature.inputs.iter_mut().for_each(|input| replacement.visit_fn_arg_mut(input));
    }
    let mut added = Vec::new();
    for input in &mut signature.inputs {
        if let FnArg::Typed(input) = input {
            let of = match &*input.pat {
                Pat::Ident(p) => p.ident.to_string(),
                _ => added.len().to_string(),
            };
            TraitTypes { of, added: &mut added }.visit_type_mut(&mut input.ty);
        }
    }
    signature.generics.params.extend(added);
    signature
}

/// Replaces the type parameter of a closure by `impl Fn(A) -> R`.
struct ClosureTypes {
    closure: Ident,
    bounds: Bounds,
}

impl VisitMut for ClosureTypes {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if is_parameter(ty, &self.closure) {
            let bounds = &self.bounds;
            *ty = parse_quote!(impl #bounds);
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}

/// Replaces each `impl Trait` that is no closure by a type parameter.
struct TraitTypes<'a> {
    /// The parameter of the function.
    of: String,
    added: &'a mut Vec<GenericParam>,
}

impl VisitMut for TraitTypes<'_> {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(of) = ty
            && !of.bounds.iter().any(is_function)
        {
            let index = self.added.len();
            let name = format_ident!("{ANONYMOUS}{}_{index}", self.of, span = of.impl_token.span);
            let bounds = &of.bounds;
            self.added.push(parse_quote!(#name: #bounds));
            *ty = parse_quote!(#name);
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}

/// Returns whether a bound is written like a closure trait, with parentheses: `Fn(A) -> R`,
/// `FnMut(A) -> R`.
pub(super) fn is_function(bound: &TypeParamBound) -> bool {
    let TypeParamBound::Trait(bound) = bound else { return false };
    bound.path.segments.last().is_some_and(|s| matches!(s.arguments, syn::PathArguments::Parenthesized(_)))
}

/// Returns whether a type is the type parameter `name`.
fn is_parameter(ty: &Type, name: &Ident) -> bool {
    matches!(ty, Type::Path(p) if p.qself.is_none() && p.path.is_ident(name))
}
