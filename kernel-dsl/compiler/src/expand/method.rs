//! Diagnostics of methods, and of constants of impls, which wait for rustc as those of functions do
//! (see `witness`).
//!
//! The copy is a method of a new trait that is implemented for the impl's type, so that `Self` has
//! the same meaning. The method returns a closure whose first parameter replaces `self`.

use super::stand_ins::StandIns;
use crate::check::Diagnostic;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{FnArg, Generics, ItemFn, ItemImpl, Path, ReturnType, Type};

/// Returns a copy of `item` of the impl `of`, and items that report `diagnostics` if rustc accepts
/// the copy. `None` if the copy cannot be written.
pub(super) fn diagnostics(
    of: &ItemImpl,
    item: &ItemFn,
    facade: &Path,
    diagnostics: &[Diagnostic],
) -> Option<TokenStream> {
    let opaque = item.sig.inputs.iter().any(|i| matches!(i, FnArg::Typed(t) if matches!(&*t.ty, Type::ImplTrait(_))));
    if opaque {
        return None;
    }
    let mut item = item.clone();
    let mut itself = ImplRewriter { of_trait: of.trait_.as_ref().map(|(path, _)| path), hidden: false };
    itself.visit_item_fn_mut(&mut item);
    if itself.hidden {
        return None;
    }
    let parameters: Vec<TokenStream> = item
        .sig
        .inputs
        .iter()
        .map(|input| match input {
            FnArg::Typed(t) => t.to_token_stream(),
            FnArg::Receiver(r) => {
                let (name, mutable) = (name(r.self_token.span), r.mutability);
                match &r.kind {
                    syn::ReceiverKind::Reference(_, _, mutable) => quote!(#name: &#mutable Self),
                    _ => quote!(#mutable #name: Self),
                }
            }
        })
        .collect();
    let returns = match &item.sig.output {
        ReturnType::Default => quote!(-> ()),
        written => written.to_token_stream(),
    };
    let (own, body) = (&item.sig.generics, &item.block);
    // The copy has another name than the method, so that a call of a method that `Self` lacks does
    // not find the copy.
    let name = quote::format_ident!("copy_of_{}", item.sig.ident);
    let mut closure = Group::new(Delimiter::Brace, quote!(|#(#parameters),*| #returns #body));
    closure.set_span(item.block.brace_token.span.join());
    let (of_impl, itself) = (&of.generics, &of.self_ty);
    let mut all = of_impl.clone();
    all.params.extend(own.params.iter().cloned());
    if let Some(clauses) = &own.where_clause {
        all.make_where_clause().predicates.extend(clauses.predicates.iter().cloned());
    }
    let stand_ins = StandIns::new(facade, &all);
    let values = stand_ins.arguments(own);
    let instance = if values.is_empty() { quote!() } else { quote!(::<#(#values),*>) };
    let some = stand_ins.replace(itself.to_token_stream())?;
    let copies = Ident::new("Copies", Span::mixed_site());
    let reports = stand_ins.report(&quote!(<#some as #copies>::#name #instance), diagnostics)?;
    let (impl_clauses, clauses) = (&of_impl.where_clause, &own.where_clause);
    Some(quote! {
        trait #copies {
            fn #name #own () -> impl ::core::marker::Sized #clauses;
        }
        impl #of_impl #copies for #itself #impl_clauses {
            fn #name #own () -> impl ::core::marker::Sized #clauses #closure
        }
        #reports
    })
}

/// Returns constants that report `diagnostics` of a constant if rustc can evaluate that constant:
/// each uses its value before it panics.
pub(super) fn diagnostics_of_constant(
    of: Option<&ItemImpl>,
    name: &Ident,
    facade: &Path,
    diagnostics: &[Diagnostic],
) -> Option<TokenStream> {
    let path = match of {
        None => name.to_token_stream(),
        Some(of) if bounded(&of.generics) => return None,
        Some(of) => {
            let some = StandIns::new(facade, &of.generics).replace(of.self_ty.to_token_stream())?;
            match &of.trait_ {
                Some((of_trait, _)) => quote!(<#some as #of_trait>::#name),
                None => quote!(<#some>::#name),
            }
        }
    };
    let each = diagnostics.iter().map(|diagnostic| {
        let message = &diagnostic.message;
        let panic = quote_spanned!(diagnostic.mark.first=> ::core::panic!);
        let argument = quote_spanned!(diagnostic.mark.last=> ("{}", #message));
        quote!(const _: () = { let _ = &#path; #panic #argument };)
    });
    Some(each.collect())
}

/// Returns whether the evaluation of a constant needs a type that is not known here.
fn bounded(g: &Generics) -> bool {
    g.where_clause.is_some() || g.type_params().any(|t| !t.bounds.is_empty())
}

/// Returns the name that replaces `self`, because a closure cannot have a parameter `self`. The
/// name has the span of the user's `self`.
fn name(span: Span) -> Ident {
    Ident::new("itself", span)
}

/// Rewrites tokens that have a meaning only in the impl.
struct ImplRewriter<'a> {
    of_trait: Option<&'a Path>,
    /// Whether a macro contains `self`.
    hidden: bool,
}

impl VisitMut for ImplRewriter<'_> {
    fn visit_ident_mut(&mut self, i: &mut Ident) {
        if i == "self" {
            *i = name(i.span());
        }
    }

    fn visit_receiver_mut(&mut self, _: &mut syn::Receiver) {}

    fn visit_type_mut(&mut self, ty: &mut Type) {
        syn::visit_mut::visit_type_mut(self, ty);
        let Type::Path(path) = &*ty else { return };
        let segments = &path.path.segments;
        if let (Some(of_trait), None, 2, true) =
            (self.of_trait, &path.qself, segments.len(), segments.first().is_some_and(|s| s.ident == "Self"))
        {
            let name = &segments[1];
            *ty = syn::parse_quote!(<Self as #of_trait>::#name);
        }
    }

    fn visit_macro_mut(&mut self, m: &mut syn::Macro) {
        fn has(tokens: TokenStream) -> bool {
            tokens.into_iter().any(|token| match token {
                TokenTree::Ident(i) => i == "self",
                TokenTree::Group(g) => has(g.stream()),
                _ => false,
            })
        }
        self.hidden |= has(m.tokens.clone());
    }
}
