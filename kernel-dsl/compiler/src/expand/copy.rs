//! The type-checking copy of a kernel: its own tokens, for rustc and for the editor.

use super::conditions;
use crate::syntax::LaunchTokens;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{ItemFn, Path, Visibility};

/// The kernel as a function, with its launch expressions at the start, where its parameters are in scope. rustc's own
/// lints stay on, since they speak of the user's tokens and are right; the function itself is never called.
pub(super) fn kernel(item: &ItemFn, facade: &Path, launch: Option<&LaunchTokens>) -> TokenStream {
    let mut copy = item.clone();
    let kept = |a: &syn::Attribute| LEVELS.iter().any(|level| a.path().is_ident(level));
    copy.attrs.retain(kept);
    copy.vis = Visibility::Inherited;
    if let Some(launch) = launch {
        copy.block.stmts.insert(0, launch_expressions(facade, launch));
    }
    let (lints, conditions) = (lints(), conditions(item));
    quote! {
        #conditions
        const _: () = {
            #lints
            #[allow(dead_code)]
            #copy
        };
    }
}

/// Attributes that set a lint's level.
pub(super) const LEVELS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];

/// Clippy knows Rust for the host: it wants iterators for index loops and structs for argument lists.
pub(super) fn lints() -> TokenStream {
    quote!(#[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)])
}

/// A closure that is dropped at once: it sees the parameters and moves none.
fn launch_expressions(facade: &Path, launch: &LaunchTokens) -> syn::Stmt {
    let axes = launch.block.iter().chain(&launch.grid).map(|e| quote!(#facade::__private::axis(#e);));
    let conditions = launch.requires.iter().map(|e| quote!(#facade::__private::condition(#e);));
    let checks: TokenStream = axes.chain(conditions).collect();
    syn::parse_quote!(let _ = || { #checks };)
}

/// The function with what the witness needs: another body, no attributes, no lints.
pub(super) fn silent(item: &ItemFn, function: &impl ToTokens) -> TokenStream {
    let conditions = conditions(item);
    quote! {
        #conditions
        #[allow(warnings, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        const _: () = { #function };
    }
}
