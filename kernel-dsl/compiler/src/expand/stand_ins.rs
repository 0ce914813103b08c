//! Generic arguments of the copies that rustc checks (see `witness`).
//!
//! A copy needs arguments, although rustc must check it for all arguments. For a generic constant
//! any value serves. For a type parameter no known type satisfies the bounds, so `Any<'any, N>`
//! replaces the parameter.
//!
//! The reporting function assumes the bounds in its `where` clause. rustc rejects a false
//! assumption that names no parameter, so `Any` has a lifetime parameter. The panic is in the
//! repeat count of an array: rustc checks that count under the assumptions of the function, and
//! evaluates the count when it checks the function.

use super::with_span;
use crate::check::{Diagnostic, ReportedBy};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericParam, Generics, Lifetime, Path, TypeParamBound, WherePredicate};

/// The generic parameters of a copy, whose arguments are stand-ins.
pub(super) struct StandIns<'g> {
    facade: &'g Path,
    generics: &'g Generics,
}

impl<'g> StandIns<'g> {
    pub(super) fn new(facade: &'g Path, generics: &'g Generics) -> Self {
        Self { facade, generics }
    }

    /// Returns one stand-in for each of `parameters`.
    pub(super) fn arguments(&self, parameters: &Generics) -> Vec<TokenStream> {
        let names = parameters.params.iter().filter_map(|parameter| self.argument(name(parameter)?, &inferred()));
        names.collect()
    }

    /// Replaces the parameters in `tokens` by stand-ins. Returns `None` if the trait of an
    /// associated type is not certain.
    pub(super) fn replace(&self, tokens: TokenStream) -> Option<TokenStream> {
        self.with_lifetime(tokens, &inferred())
    }

    /// Returns an item that reports `diagnostics` if rustc accepts `body`, a function with an
    /// opaque return type. Returns `None` if the bounds cannot be assumed.
    pub(super) fn report(&self, body: &TokenStream, diagnostics: &[Diagnostic]) -> Option<TokenStream> {
        if self.generics.type_params().next().is_none() {
            return Some(diagnostic_constants(self.facade, body, diagnostics));
        }
        let any = Lifetime::new("'any", Span::mixed_site());
        let bounds = self.generics.type_params().flat_map(|parameter| {
            parameter.bounds.iter().filter_map(|bound| {
                let name = &parameter.ident;
                assumable(bound).then(|| quote!(#name: #bound))
            })
        });
        let clauses = self.generics.where_clause.iter().flat_map(|clause| &clause.predicates).map(|p| quote!(#p));
        let assumed: Vec<_> =
            bounds.chain(clauses).map(|assumed| self.with_lifetime(assumed, &any)).collect::<Option<_>>()?;
        let each = conditions(self.facade, body, diagnostics);
        let check = Ident::new("check", Span::mixed_site());
        Some(quote! {
            #[allow(dead_code)]
            fn #check<#any>() where #(#assumed),* {
                #(let _ = [(); #each];)*
            }
        })
    }

    fn argument(&self, parameter: &Ident, lifetime: &Lifetime) -> Option<TokenStream> {
        let facade = self.facade;
        let index = self.generics.params.iter().position(|p| name(p) == Some(parameter))?;
        Some(match &self.generics.params[index] {
            GenericParam::Type(_) => {
                let any = quote!(#facade::__private::Any<#lifetime, #index>);
                with_span(any, parameter.span())
            }
            GenericParam::Const(c) if matches!(&c.ty, syn::Type::Path(p) if p.path.is_ident("bool")) => quote!(false),
            GenericParam::Const(_) => quote!(1),
            GenericParam::Lifetime(_) => return None,
        })
    }

    fn with_lifetime(&self, tokens: TokenStream, lifetime: &Lifetime) -> Option<TokenStream> {
        let mut tokens = tokens.into_iter();
        let mut replaced = TokenStream::new();
        let mut after = [None, None];
        while let Some(token) = tokens.next() {
            let punctuation = match &token {
                TokenTree::Punct(p) => Some(p.as_char()),
                _ => None,
            };
            match token {
                // A name after `::` is that of an item in a path or of an associated type, and no
                // parameter.
                TokenTree::Ident(name) if after != [Some(':'), Some(':')] => match self.argument(&name, lifetime) {
                    None => replaced.extend(name.to_token_stream()),
                    Some(argument) if starts_with_colons(tokens.clone()) => {
                        let of_trait = self.with_lifetime(self.only_trait(&name)?, lifetime)?;
                        replaced.extend(quote!(<#argument as #of_trait>));
                    }
                    Some(argument) => replaced.extend(argument),
                },
                TokenTree::Group(g) => {
                    let mut inner = Group::new(g.delimiter(), self.with_lifetime(g.stream(), lifetime)?);
                    inner.set_span(g.span());
                    replaced.extend(inner.to_token_stream());
                }
                other => replaced.extend(other.to_token_stream()),
            }
            after = [after[1], punctuation];
        }
        Some(replaced)
    }

    /// Returns the trait that bounds a type parameter, if exactly one does.
    fn only_trait(&self, parameter: &Ident) -> Option<TokenStream> {
        let own = self.generics.type_params().filter(|p| p.ident == *parameter).flat_map(|p| &p.bounds);
        let clauses = self.generics.where_clause.iter().flat_map(|clause| &clause.predicates);
        let clauses = clauses.filter_map(|predicate| match predicate {
            WherePredicate::Type(of) => {
                matches!(&of.bounded_ty, syn::Type::Path(p) if p.path.is_ident(parameter)).then_some(&of.bounds)
            }
            _ => None,
        });
        let mut traits = own.chain(clauses.flatten()).filter_map(|bound| match bound {
            TypeParamBound::Trait(bound) => Some(&bound.path),
            _ => None,
        });
        match (traits.next(), traits.next()) {
            (Some(only), None) => Some(only.to_token_stream()),
            _ => None,
        }
    }
}

/// Returns the lifetime that rustc infers.
fn inferred() -> Lifetime {
    Lifetime::new("'_", Span::mixed_site())
}

fn name(parameter: &GenericParam) -> Option<&Ident> {
    match parameter {
        GenericParam::Type(t) => Some(&t.ident),
        GenericParam::Const(c) => Some(&c.ident),
        GenericParam::Lifetime(_) => None,
    }
}

/// Returns whether a `where` clause may contain the bound. `?Sized` is allowed only at the
/// parameter itself.
fn assumable(bound: &TypeParamBound) -> bool {
    match bound {
        TypeParamBound::Trait(bound) => bound.maybe.is_none(),
        TypeParamBound::Lifetime(_) => true,
        _ => false,
    }
}

fn starts_with_colons(mut tokens: impl Iterator<Item = TokenTree>) -> bool {
    let mut colon = || matches!(tokens.next(), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon() && colon()
}

/// Returns a constant for each diagnostic, which reports it if rustc accepts `body`, a function
/// with an opaque return type.
pub(super) fn diagnostic_constants(facade: &Path, body: &TokenStream, diagnostics: &[Diagnostic]) -> TokenStream {
    conditions(facade, body, diagnostics).map(|condition| quote!(const _: usize = #condition;)).collect()
}

/// Returns, for each diagnostic, an expression that panics when evaluated if rustc accepts `body`.
fn conditions(facade: &Path, body: &TokenStream, diagnostics: &[Diagnostic]) -> impl Iterator<Item = TokenStream> {
    let ours = diagnostics.iter().filter(|diagnostic| diagnostic.reported_by == ReportedBy::Compiler);
    ours.map(move |diagnostic| {
        let message = &diagnostic.message;
        // rustc marks a range from the first token of the panic to its last.
        let panic = quote_spanned!(diagnostic.mark.first=> ::core::panic!);
        let argument = quote_spanned!(diagnostic.mark.last=> ("{}", #message));
        quote!(if #facade::__private::size_of_body(#body) == 0 { #panic #argument } else { 0 })
    })
}
