//! Diagnostics of methods, and of constants of impls. They wait for rustc as those of functions do
//! (see `witness`).
//!
//! The copy is a method of a new trait that is implemented for the impl's type, so that `Self` has
//! the same meaning. The method returns a closure whose first parameter replaces `self`.

use super::witness::{any_value, said};
use crate::check::Diagnostic;
use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::visit_mut::VisitMut;
use syn::{FnArg, GenericParam, Generics, ItemFn, ItemImpl, Path, ReturnType, Type};

/// Returns a copy of `item` of the impl `of`, and constants that report `diagnostics` if rustc
/// accepts the copy. `None` if an instance needs a type with bounds, which is not known here.
pub(super) fn diagnostics(
    of: &ItemImpl,
    item: &ItemFn,
    facade: &Path,
    diagnostics: &[Diagnostic],
) -> Option<TokenStream> {
    let opaque = item.sig.inputs.iter().any(|i| matches!(i, FnArg::Typed(t) if matches!(&*t.ty, Type::ImplTrait(_))));
    if bounded(&of.generics) || bounded(&item.sig.generics) || opaque {
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
    let (name, own, body) = (&item.sig.ident, &item.sig.generics, &item.block);
    let mut closure = Group::new(Delimiter::Brace, quote!(|#(#parameters),*| #returns #body));
    closure.set_span(item.block.brace_token.span.join());
    let values: Vec<_> = own.params.iter().filter_map(any_value).collect();
    let instance = if values.is_empty() { quote!() } else { quote!(::<#(#values),*>) };
    let (of_impl, itself) = (&of.generics, &of.self_ty);
    let some = instance_of(itself.to_token_stream(), of_impl);
    let copies = Ident::new("Copies", Span::mixed_site());
    let said = said(facade, &quote!(<#some as #copies>::#name #instance), diagnostics);
    Some(quote! {
        trait #copies {
            fn #name #own () -> impl ::core::marker::Sized;
        }
        impl #of_impl #copies for #itself {
            fn #name #own () -> impl ::core::marker::Sized #closure
        }
        #said
    })
}

/// Returns constants that report `diagnostics` of a constant if rustc can evaluate it: they use its
/// value first.
pub(super) fn diagnostics_of_constant(
    of: Option<&ItemImpl>,
    name: &Ident,
    diagnostics: &[Diagnostic],
) -> Option<TokenStream> {
    let path = match of {
        None => name.to_token_stream(),
        Some(of) if bounded(&of.generics) => return None,
        Some(of) => {
            let some = instance_of(of.self_ty.to_token_stream(), &of.generics);
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

/// Returns whether an instance needs a type that is not known here.
fn bounded(g: &Generics) -> bool {
    g.where_clause.is_some() || g.type_params().any(|t| !t.bounds.is_empty())
}

/// Returns the name that replaces `self`, which only a method can have. The name has the span of
/// the user's `self`.
fn name(span: Span) -> Ident {
    Ident::new("itself", span)
}

/// Returns a type with some value for each parameter of the impl.
fn instance_of(ty: TokenStream, generics: &Generics) -> TokenStream {
    let value = |name: &Ident| {
        let parameter = generics.params.iter().find(|p| match p {
            GenericParam::Type(t) => t.ident == *name,
            GenericParam::Const(c) => c.ident == *name,
            GenericParam::Lifetime(_) => false,
        });
        parameter.and_then(any_value)
    };
    ty.into_iter()
        .flat_map(|token| match token {
            TokenTree::Ident(name) => value(&name).unwrap_or_else(|| name.to_token_stream()),
            TokenTree::Group(g) => {
                let mut inner = Group::new(g.delimiter(), instance_of(g.stream(), generics));
                inner.set_span(g.span());
                inner.to_token_stream()
            }
            other => other.to_token_stream(),
        })
        .collect()
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
