//! Generic parameters, and the bounds of types.

use super::TraitBound;
use crate::Scalar;
use crate::language;
use crate::syntax::{Generic, GenericKind, Reader};
use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::{GenericParam, Token, TypeParamBound};

impl Reader {
    /// Reads generic parameters with their bounds, including those of the `where` clause.
    pub(in crate::syntax) fn generics(&mut self, generics: &syn::Generics) -> Vec<Generic> {
        let mut all: Vec<Generic> = generics.params.iter().filter_map(|p| self.generic(p)).collect();
        for predicate in generics.where_clause.iter().flat_map(|w| &w.predicates) {
            let syn::WherePredicate::Type(of) = predicate else { continue };
            let name = match &of.bounded_ty {
                syn::Type::Path(p) => p.path.get_ident(),
                _ => None,
            };
            let bounds = self.bounds(&of.bounds);
            let found = all.iter_mut().find(|g| Some(&g.name) == name);
            match found.map(|g| &mut g.kind) {
                Some(GenericKind::Type(of)) => of.extend(bounds),
                _ => self.refuse(syn::Error::new_spanned(
                    predicate,
                    "a `where` clause can bound only type parameters: for conditions on constants write `const { assert!(…) }` in the body",
                )),
            }
        }
        all
    }

    fn generic(&mut self, parameter: &GenericParam) -> Option<Generic> {
        match parameter {
            GenericParam::Type(t) => {
                Some(Generic { name: t.ident.clone(), kind: GenericKind::Type(self.bounds(&t.bounds)) })
            }
            GenericParam::Const(c) => {
                let ty = match &c.ty {
                    syn::Type::Path(p) => p.path.get_ident().and_then(|i| Scalar::from_name(&i.to_string())),
                    _ => None,
                };
                match ty.filter(|ty| ty.is_integer() || *ty == Scalar::Bool) {
                    Some(ty) => Some(Generic { name: c.ident.clone(), kind: GenericKind::Constant(ty) }),
                    None => {
                        let message = "a generic constant must be an integer or a `bool`";
                        self.refuse(syn::Error::new_spanned(&c.ty, message));
                        None
                    }
                }
            }
            // rustc checks lifetimes, which change no code.
            GenericParam::Lifetime(_) => None,
        }
    }

    /// Reads the bounds of a type or of a trait.
    pub(super) fn bounds(&mut self, bounds: &Punctuated<TypeParamBound, Token![+]>) -> Vec<TraitBound> {
        bounds
            .iter()
            .filter_map(|bound| match bound {
                TypeParamBound::Trait(t) => Some(self.bound_of(&t.path)),
                // A lifetime bound; every value on the device is `'static`.
                _ => None,
            })
            .collect()
    }

    fn bound_of(&mut self, path: &syn::Path) -> TraitBound {
        // The types of the language with an operator that returns the type itself.
        if let Some(last) = path.segments.last()
            && (has_output(&last.arguments) || last.ident.to_string().ends_with("Assign"))
            && self.trait_of_rust(path).is_some()
            && let Some(numbers) = language::numbers_with(&last.ident.to_string())
        {
            let name = Ident::new(numbers, last.ident.span());
            return TraitBound { path: self.path(&name.into()), signature: None };
        }
        let mut plain = path.clone();
        let mut signature = None;
        if let Some(last) = plain.segments.last_mut()
            && last.ident == "DeviceFn"
            && let syn::PathArguments::AngleBracketed(arguments) = std::mem::take(&mut last.arguments)
        {
            let (mut parameters, mut output) = (Vec::new(), None);
            for argument in &arguments.args {
                match argument {
                    syn::GenericArgument::Type(syn::Type::Tuple(t)) => {
                        parameters = t.elems.iter().map(|t| self.ty(t)).collect();
                    }
                    syn::GenericArgument::AssocType(a) if a.ident == "Output" => output = Some(self.ty(&a.ty)),
                    other => self.refuse(syn::Error::new_spanned(
                        other,
                        "`DeviceFn` takes a tuple of parameter types and an output type: `DeviceFn<(f32,), Output = f32>`",
                    )),
                }
            }
            match output {
                Some(output) => signature = Some((parameters, output)),
                None => self.refuse(syn::Error::new_spanned(
                    path,
                    "`DeviceFn` needs an output type: `DeviceFn<(f32,), Output = f32>`",
                )),
            }
        }
        TraitBound { path: self.path(&plain), signature }
    }
}

/// Returns whether generic arguments state the type `Output`, as in `Add<Output = T>`.
fn has_output(arguments: &syn::PathArguments) -> bool {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else { return false };
    arguments.args.iter().any(|a| matches!(a, syn::GenericArgument::AssocType(a) if a.ident == "Output"))
}
