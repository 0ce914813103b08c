//! The type-checking copy of a kernel: its own tokens, for rustc and for the editor.

use super::{conditions, inline};
use crate::syntax::LaunchTokens;
use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ItemFn, Path, Visibility};

/// The kernel as a function, with its launch expressions at the start, where its parameters are in scope; without them, if
/// the kernel could not be read.
pub(super) fn kernel(item: &ItemFn, facade: &Path, launch: Option<&LaunchTokens>) -> TokenStream {
    let mut copy = inline::for_rustc(item);
    copy.attrs.clear();
    copy.vis = Visibility::Inherited;
    match launch {
        Some(launch) => *copy.block = with_launch(item, facade, launch),
        None => {
            without_tries(&mut copy.block);
            copy.attrs.push(syn::parse_quote!(#[allow(unused)]));
        }
    }
    loud(item, &copy)
}

/// Makes a `match` of each `?`, which has been refused: rustc would refuse it in its own way where the function gives no
/// `Option`.
pub(super) fn without_tries(block: &mut Block) {
    Tries.visit_block_mut(block);
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

/// The body behind the launch expressions.
pub(super) fn with_launch(item: &ItemFn, facade: &Path, launch: &LaunchTokens) -> Block {
    let mut block = inline::block_for_rustc(&item.block);
    // A struct's field and an `if` name their types without a word about where they come from.
    let axes = launch
        .block
        .iter()
        .chain(&launch.grid)
        .chain(&launch.limits)
        .map(|e| quote!(let _ = #facade::__private::Axis { blocks_or_threads: #e };));
    let conditions = launch.requires.iter().map(|e| quote!(if #e {}));
    let checks: TokenStream = axes.chain(conditions).collect();
    // A closure that is dropped at once: it sees the parameters and moves none.
    // A condition that is no condition behind an `if`, such as one with a struct in it, is refused by the checker.
    if let Ok(checks) = syn::parse2(quote!(let _ = || { #checks };)) {
        block.stmts.insert(0, checks);
    }
    block
}

/// A copy under the lints that are the user's to see. rustc's own are right about a kernel's tokens; but nobody calls
/// the copy, and clippy's are about Rust for the host.
pub(super) fn loud(item: &ItemFn, copy: &impl ToTokens) -> TokenStream {
    let levels = item.attrs.iter().filter(|a| LEVELS.iter().any(|level| a.path().is_ident(level)));
    let (lints, conditions) = (lints(), conditions(&item.attrs));
    quote! {
        #conditions
        #lints
        #[allow(dead_code)]
        #(#levels)*
        const _: () = { #copy };
    }
}

/// A copy that is the second of its kind, so that its lints have been said. `warnings` are those that are warnings where
/// this stands: one that the user's crate denies is an error, and has to be named.
pub(super) fn silent(item: &ItemFn, copy: &impl ToTokens) -> TokenStream {
    let conditions = conditions(&item.attrs);
    quote! {
        #conditions
        #[allow(warnings, unused, nonstandard_style, deprecated, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
        const _: () = { #copy };
    }
}

/// Attributes that set a lint's level.
pub(super) const LEVELS: [&str; 5] = ["allow", "warn", "deny", "forbid", "expect"];

/// Clippy knows Rust for the host: it wants iterators for index loops and structs for argument lists.
pub(super) fn lints() -> TokenStream {
    quote!(#[allow(clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)])
}
