//! The macro that has a device function's name and hands over its HIR; see [`chain`](super::chain).

use super::conditions;
use super::distinct::{Purpose, distinct};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use std::hash::{DefaultHasher, Hash, Hasher};
use syn::{Item, ItemFn, Visibility};

/// Hands over `library`.
pub(super) fn whole(item: &ItemFn, library: &[u8]) -> TokenStream {
    export(&item.sig.ident, &item.vis, &conditions(&item.attrs), item, &Literal::byte_string(library))
}

/// Hands over nothing, which tells the next that the function has mistakes of its own.
pub(super) fn failed(item: &ItemFn) -> TokenStream {
    whole(item, &[])
}

/// Hands over `library` for the item of a module that is called `name`; nothing, where there are mistakes.
pub(super) fn named(item: &Item, name: &Ident, library: &[u8]) -> TokenStream {
    let (visibility, conditions) = match item {
        Item::Fn(i) => (&i.vis, conditions(&i.attrs)),
        Item::Const(i) => (&i.vis, conditions(&i.attrs)),
        Item::Struct(i) => (&i.vis, conditions(&i.attrs)),
        Item::Enum(i) => (&i.vis, conditions(&i.attrs)),
        Item::Trait(i) => (&i.vis, conditions(&i.attrs)),
        _ => return TokenStream::new(),
    };
    export(name, visibility, &conditions, item, &Literal::byte_string(library))
}

/// A `macro_rules` under a name of its own and a `use` that gives it the function's name, place and visibility. Only a
/// macro that is exported can be used outside its crate, and it then lies at the crate's root, so its name is a hash.
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

/// The name without `r#`.
fn plain(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map_or(name.clone(), str::to_string)
}

/// Tells apart functions of one name in one crate, as far as place and words do.
fn hash(name: &Ident, item: &impl ToTokens) -> u64 {
    let span = name.span();
    let mut hasher = DefaultHasher::new();
    (span.file(), span.start().line, span.start().column).hash(&mut hasher);
    item.to_token_stream().to_string().hash(&mut hasher);
    hasher.finish()
}
