//! The macro that has a device function's name and hands over its HIR; see [`chain`](super::chain).

use super::conditions;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use std::hash::{DefaultHasher, Hash, Hasher};
use syn::{ItemFn, Visibility};

/// Hands over `library`.
pub(super) fn whole(item: &ItemFn, library: &[u8]) -> TokenStream {
    export(item, &Literal::byte_string(library))
}

/// Hands over nothing, which tells the next that the function has mistakes of its own.
pub(super) fn failed(item: &ItemFn) -> TokenStream {
    export(item, &Literal::byte_string(&[]))
}

/// A `macro_rules` under a name of its own and a `use` that gives it the function's name, place and visibility. Only a
/// macro that is exported can be used outside its crate, and it then lies at the crate's root, so its name is a hash.
fn export(item: &ItemFn, literal: &Literal) -> TokenStream {
    let name = &item.sig.ident;
    let visibility = &item.vis;
    let hidden = Ident::new(&format!("__device_{}_{:016x}", plain(name), hash(item)), Span::call_site());
    let exported = matches!(visibility, Visibility::Public(_)).then(|| quote!(#[macro_export]));
    let conditions = conditions(item);
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

/// Tells apart functions of one name in one crate.
fn hash(item: &ItemFn) -> u64 {
    let span = item.sig.ident.span();
    let mut hasher = DefaultHasher::new();
    (span.file(), span.start().line, span.start().column).hash(&mut hasher);
    item.to_token_stream().to_string().hash(&mut hasher);
    hasher.finish()
}
