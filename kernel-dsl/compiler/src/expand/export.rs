//! The macro that has the name of a device function and passes the function's HIR; see
//! [`chain`](super::chain).

use super::conditions;
use super::distinct::{Purpose, distinct};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use std::hash::{DefaultHasher, Hash, Hasher};
use syn::{Item, ItemFn, Visibility};

/// Returns the macro of a device function without diagnostics.
pub(super) fn complete(item: &ItemFn, library: &[u8]) -> TokenStream {
    export(&item.sig.ident, &item.vis, &conditions(&item.attrs), item, &Literal::byte_string(library))
}

/// Returns the macro of a device function with diagnostics. The macro passes no bytes, so that
/// callers report nothing.
pub(super) fn failed(item: &ItemFn) -> TokenStream {
    complete(item, &[])
}

/// Returns the macro of the item `name` of a module; an empty `library` means that the item has
/// diagnostics.
pub(super) fn named(item: &Item, name: &Ident, library: &[u8]) -> TokenStream {
    let (visibility, conditions) = match item {
        Item::Fn(i) => (&i.vis, conditions(&i.attrs)),
        Item::Const(i) => (&i.vis, conditions(&i.attrs)),
        Item::Struct(i) => (&i.vis, conditions(&i.attrs)),
        Item::Enum(i) => (&i.vis, conditions(&i.attrs)),
        Item::Type(i) => (&i.vis, conditions(&i.attrs)),
        Item::Trait(i) => (&i.vis, conditions(&i.attrs)),
        _ => return TokenStream::new(),
    };
    export(name, visibility, &conditions, item, &Literal::byte_string(library))
}

/// Returns a `macro_rules` with a hashed name, and a `use` that gives it the function's name, scope
/// and visibility. An exported macro is at the root of its crate, so its name must be unique there.
fn export(
    name: &Ident,
    visibility: &Visibility,
    conditions: &TokenStream,
    item: &impl ToTokens,
    literal: &Literal,
) -> TokenStream {
    let hash = distinct(Purpose::Name, hash(name, item));
    let hidden = Ident::new(&format!("__device_{}_{hash:016x}", plain(name)), Span::call_site());
    let exported = matches!(visibility, Visibility::Public(_)).then(|| quote!(#[macro_export]));
    quote! {
        #conditions
        #[doc(hidden)]
        #[allow(unused_macros, non_local_definitions)]
        #exported
        macro_rules! #hidden {
            ([[$($next:tt)*] $([$($rest:tt)*])*] $($state:tt)*) => {
                $($next)* ! { [$([$($rest)*])*] $($state)* #literal }
            }
        }
        #conditions
        #[doc(hidden)]
        #[allow(unused_imports)]
        #visibility use #hidden as #name;
    }
}

/// Returns the name without `r#`.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_string)
}

/// Returns a hash of the name, position and tokens of an item.
fn hash(name: &Ident, item: &impl ToTokens) -> u64 {
    let span = name.span();
    let mut hasher = DefaultHasher::new();
    (span.file(), span.start().line, span.start().column).hash(&mut hasher);
    item.to_token_stream().to_string().hash(&mut hasher);
    hasher.finish()
}
