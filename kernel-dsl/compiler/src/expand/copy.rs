//! The type-checking copy of a kernel: its own tokens, for rustc and for editors.

use super::{conditions, inline};
use crate::syntax::{LaunchTokens, foreign};
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, FnArg, GenericParam, ItemFn, Lifetime, Path, Type, TypeReference, Visibility};

/// Returns the kernel as a function. The launch expressions come first in the body, where the
/// parameters are in scope; there are none if the kernel could not be read.
pub(super) fn kernel(item: &ItemFn, facade: &Path, launch: Option<&LaunchTokens>) -> TokenStream {
    let mut copy = inline::for_rustc(item);
    copy.attrs.clear();
    copy.vis = Visibility::Inherited;
    match launch {
        Some(launch) => *copy.block = with_launch(item, facade, launch),
        None => {
            without_refused(&mut copy.block);
            copy.attrs.push(syn::parse_quote!(#[allow(unused)]));
        }
    }
    copy_with_user_lints(item, &copy)
}

/// Returns a refused kernel whose signature rustc accepts: without named lifetimes and `const`, and
/// with references to slices. The reader has already reported these errors.
pub(super) fn with_valid_signature(item: &ItemFn) -> ItemFn {
    let mut item = item.clone();
    let signature = &mut item.sig;
    signature.constness = None;
    let parameters = std::mem::take(&mut signature.generics.params);
    signature.generics.params = parameters.into_iter().filter(|p| !matches!(p, GenericParam::Lifetime(_))).collect();
    Lifetimes.visit_signature_mut(&mut item.sig);
    for input in &mut item.sig.inputs {
        if let FnArg::Typed(input) = input
            && let Type::Slice(slice) = &*input.ty
        {
            *input.ty = syn::parse_quote!(&mut #slice);
        }
    }
    item
}

struct Lifetimes;

impl VisitMut for Lifetimes {
    fn visit_type_reference_mut(&mut self, reference: &mut TypeReference) {
        visit_mut::visit_type_reference_mut(self, reference);
        reference.lifetime = None;
    }

    fn visit_lifetime_mut(&mut self, lifetime: &mut Lifetime) {
        *lifetime = Lifetime::new("'_", lifetime.span());
    }
}

/// Removes code that the reader has rejected and that rustc would report again. Such code is a body
/// that names something foreign, and each `?`, which rustc rejects in a function without an
/// `Option` as result.
pub(super) fn without_refused(block: &mut Block) {
    match foreign::names_foreign(block) {
        true => *block = syn::parse_quote!({ ::core::unreachable!() }),
        false => Tries.visit_block_mut(block),
    }
}

struct Tries;

impl VisitMut for Tries {
    fn visit_expr_mut(&mut self, e: &mut Expr) {
        visit_mut::visit_expr_mut(self, e);
        if let Expr::Try(tried) = e {
            let option = &tried.expr;
            *e = syn::parse_quote!(match #option {
                ::core::option::Option::Some(value) => value,
                ::core::option::Option::None => ::core::unreachable!(),
            });
        }
    }
}

/// Returns the body, preceded by the launch expressions.
pub(super) fn with_launch(item: &ItemFn, facade: &Path, launch: &LaunchTokens) -> Block {
    let mut block = inline::block_for_rustc(&item.block);
    // A struct field and an `if` give the expected type without a note about its origin.
    let axes = launch
        .block
        .iter()
        .chain(&launch.grid)
        .chain(&launch.limits)
        .map(|e| quote!(let _ = #facade::__private::Axis { blocks_or_threads: #e };));
    let conditions = launch.requires.iter().map(|e| quote!(if #e {}));
    let checks: TokenStream = axes.chain(conditions).collect();
    // A closure that is dropped at once accesses the parameters without moving them. The checker
    // rejects conditions that do not parse after `if`, such as one with a struct literal.
    if let Ok(checks) = syn::parse2(quote!(let _ = || { #checks };)) {
        block.stmts.insert(0, checks);
    }
    block
}

/// Returns a copy for which rustc reports its own lints. Lints about unused functions and clippy's
/// lints are off, because the copy is never called and is not host code.
pub(super) fn copy_with_user_lints(item: &ItemFn, copy: &impl ToTokens) -> TokenStream {
    let levels = item.attrs.iter().filter(|a| LINT_LEVELS.iter().any(|level| a.path().is_ident(level)));
    let (lints, conditions) = (lints(), conditions(&item.attrs));
    quote! {
        #conditions
        #lints
        #[allow(dead_code)]
        #(#levels)*
        const _: () = { #copy };
    }
}

/// Returns a copy without any lints, because the first copy has reported them. `warnings` covers
/// only lints at the level `warn`; lints that the user's crate denies are errors and must be named.
pub(super) fn copy_without_lints(item: &ItemFn, copy: &impl ToTokens) -> TokenStream {
    let conditions = conditions(&item.attrs);
    quote! {
        #conditions
        #[allow(warnings, unused, nonstandard_style, deprecated, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        const _: () = { #copy };
    }
}

/// The attributes that set the level of a lint.
pub(super) const LINT_LEVELS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];

/// Returns the attribute that disables clippy, whose lints are for host code: they suggest
/// iterators for index loops and structs for long argument lists.
pub(super) fn lints() -> TokenStream {
    quote!(#[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)])
}
