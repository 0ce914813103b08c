//! The chain of a device item, in a module beside the item.
//!
//! For a callee of the host, the chain of a device item must pass [`MISSING`] as the chain of a
//! kernel does (see [`chain`](super::chain)). But the chain ends in a macro for the item's module,
//! which a block cannot define. The chain is therefore in a module beside the item:
//! ```text
//! mod device_items_of_f {
//!     pub(crate) mod __names {
//!         pub(super) use super::super::*;
//!         pub(super) use ::kernel_dsl::__private::CALLEE_NAME as lerp;
//!     }
//!     use ::kernel_dsl::__step as __define;
//!     use __names::lerp as cfg_select;
//!     cfg_select! { _ => { __define! { b"missing" [] {device} {(attribute) item} } } }
//! }
//! use device_items_of_f::f as f;
//! const _: () = {
//!     use device_items_of_f::__rest as cfg_select;
//!     cfg_select! { any() => { __rest! { {device} {(attribute) item} } } _ => { … } }
//! };
//! ```
//! If `lerp` has a macro, the import replaces the macro `cfg_select` of Rust's prelude, and the
//! macro of `lerp` calls `__define` with its HIR. Otherwise `cfg_select` of the prelude remains,
//! which expands to its argument. The macro [`step`] then continues with the next callee, in a
//! module within. A fallback by a glob import is impossible: rustc calls a macro ambiguous that
//! both a glob and an expansion import. With `CALLEE_NAME`, the import of an item without a macro
//! is no error: rustc reports unknown names in the function itself.
//!
//! rustc knows that `lerp` has no macro only after all calls in the item's module. Hence the module
//! has no call that waits for the callees: `__rest` is in a block. The block has everything but the
//! macros, in the scope of the item. `__rest` has no macro only if rustc gives up, as for two
//! functions that call each other.
//!
//! An item in a block is not in scope in any module, so that its chain starts at the item. The
//! module `__level_f` finds out by the same means: it looks for a marker of the item in the module
//! around.

use super::chain::{ChainStart, Linked, MISSING};
use super::export::Exported;
use crate::Build;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{LitByteStr, Path, bracketed};

/// Returns the chain of a device item called `name`, which defines the macros of `exported`.
/// `declared` are items that the end of a chain adds to the module around.
pub(super) fn start(
    link: &ChainStart,
    name: &Ident,
    exported: &[Exported],
    callees: &[Path],
    declared: Option<TokenStream>,
) -> TokenStream {
    let in_block = link.start(callees);
    let facade = link.facade;
    if !has_cfg_select(Build::THIS.rustc) || !absolute(facade) {
        return in_block;
    }
    let plain = name.unraw();
    let hidden = |kind: &str| Ident::new(&format!("__{kind}_{plain}"), Span::call_site());
    let (level, marker) = (hidden("level"), hidden("marker"));
    // A module has no condition here: its chain is inside it.
    let none = TokenStream::new();
    let conditions = match exported {
        [one] => &one.conditions,
        _ => &none,
    };
    let in_module = in_module(link, name, &hidden, conditions, exported, callees);
    let lints = no_lints();
    quote! {
        #conditions
        #[doc(hidden)]
        #[allow(unused_imports)]
        use #facade::__in_module as #marker;
        #conditions
        #[doc(hidden)]
        #lints
        mod #level {
            mod both {
                pub(super) use super::super::*;
                pub(super) struct #marker;
            }
            use both::#marker as cfg_select;
            cfg_select! { _ => { pub(super) use #facade::__second as level; } }
        }
        #conditions
        #level::level! { { #declared #in_module } { #in_block } }
    }
}

/// Returns the chain of an item in a module.
fn in_module(
    link: &ChainStart,
    name: &Ident,
    hidden: &dyn Fn(&str) -> Ident,
    conditions: &TokenStream,
    exported: &[Exported],
    callees: &[Path],
) -> TokenStream {
    let (facade, payload, kind, lints) = (link.facade, &link.payload, link.kind(), no_lints());
    // rustc names this module if it gives up.
    let chain = format_ident!("device_items_of_{}", name.unraw());
    let mut aliases = TokenStream::new();
    let names: Vec<Ident> = callees
        .iter()
        .enumerate()
        .map(|(i, path)| match path.get_ident() {
            Some(name) => name.clone(),
            // The first name of a path can be anything in scope beside the item.
            None => {
                let alias = hidden(&format!("callee_{i}"));
                let import = quote!(use #path as #alias;);
                aliases.extend(quote!(#conditions #[doc(hidden)] #[allow(unused_imports, deprecated)] #import));
                alias
            }
        })
        .collect();
    let single = callees.iter().filter_map(Path::get_ident);
    let first = stop(facade, &names, &quote!({ #kind exports } { #payload }));
    let end = names.iter().skip(1).fold(quote!(#chain), |path, _| quote!(#path::next));
    let uses = exported.iter().map(|Exported { name, visibility, conditions }| {
        quote!(#conditions #[doc(hidden)] #[allow(unused_imports)] #visibility use #end::#name as #name;)
    });
    let message = format!(
        "the device items that `{name}` uses cannot be resolved: either they call `{name}` in a cycle (write a loop, because device calls are inlined), or a macro of this module is invalid"
    );
    let place = callees.first().map_or(name.span(), Spanned::span);
    let panic = quote_spanned!(place=> ::core::panic!(#message));
    quote! {
        #aliases
        #conditions
        #[doc(hidden)]
        #lints
        mod #chain {
            pub(crate) mod __names {
                pub(super) use super::super::*;
                #(pub(super) use #facade::__private::CALLEE_NAME as #single;)*
            }
            #first
        }
        #(#uses)*
        #conditions
        #lints
        const _: () = {
            use #end::__rest as cfg_select;
            cfg_select! {
                any() => { __rest! { { #kind } { #payload } } }
                _ => { const _: () = #panic; }
            }
        };
    }
}

/// Returns the call of the macro of the first name. `state` is that of the chain, without the
/// callees.
fn stop(facade: &Path, names: &[Ident], state: &TokenStream) -> TokenStream {
    let (first, rest) = (names.first(), names.iter().skip(1));
    let missing = Literal::byte_string(MISSING);
    quote! {
        pub(crate) use #facade::__private::CALLEE_NAME as __rest;
        use #facade::__step as __define;
        use __names::#first as cfg_select;
        cfg_select! { _ => { __define! { #missing [#(#rest)*] #state } } }
    }
}

/// Expands `b"HIR" [names of callees] {kind} {(attribute) item} b"…"`: the call of the next macro,
/// or the end of the chain.
pub(super) fn step(tokens: TokenStream) -> syn::Result<TokenStream> {
    let parse = |input: ParseStream| {
        let library: LitByteStr = input.parse()?;
        let names;
        bracketed!(names in input);
        let mut all: Vec<Ident> = Vec::new();
        while !names.is_empty() {
            all.push(names.call(Ident::parse_any)?);
        }
        let state: TokenStream = input.parse()?;
        Ok((all, quote!(#state #library)))
    };
    let (names, state) = parse.parse2(tokens)?;
    let linked = Linked::parse(quote!([] #state))?;
    if names.is_empty() {
        return super::linked_item(linked);
    }
    let stop = stop(&super::facade(linked.attribute), &names, &state);
    Ok(quote! {
        pub(crate) mod next {
            pub(crate) use super::__names;
            #stop
        }
    })
}

/// Returns the macro that calls the end of the chain for everything but the macros.
pub(super) fn rest_macro(facade: &Path, libraries: &[LitByteStr], identity: u64) -> TokenStream {
    quote! {
        macro_rules! rest_of_item {
            (any() => { $rest:ident ! { $($state:tt)* } } $($never:tt)*) => {
                #facade::__link! { [] $($state)* #(#libraries)* #identity }
            };
        }
        pub(crate) use rest_of_item as __rest;
    }
}

/// Returns the attribute that disables lints, which are about code of the user only.
fn no_lints() -> TokenStream {
    quote! {
        #[allow(warnings, unused, nonstandard_style, deprecated, non_local_definitions, clippy::all, clippy::pedantic, clippy::nursery, clippy::restriction)]
    }
}

/// Returns whether a path means the same in every module.
fn absolute(path: &Path) -> bool {
    path.leading_colon.is_some() || path.segments.first().is_some_and(|first| first.ident == "crate")
}

/// Returns whether the Rust of `version` has the macro `cfg_select`, which is stable since 1.95.
/// Before that release rustc reports "cannot find macro" for a callee of the host.
fn has_cfg_select(version: &str) -> bool {
    let number = version.split(' ').nth(1).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) >= (Some(1), Some(95))
}

#[cfg(test)]
mod tests {
    use super::has_cfg_select;

    #[test]
    fn the_release_is_read_from_the_version() {
        assert!(!has_cfg_select("rustc 1.94.1 (e408947bf 2026-03-25)"));
        assert!(has_cfg_select("rustc 1.95.0 (59807616e 2026-04-14)"));
        assert!(has_cfg_select("rustc 1.100.0-nightly (0 2027-01-01)"));
        assert!(!has_cfg_select(""));
    }
}
