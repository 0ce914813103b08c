//! The macro that has the name of a device function and passes the function's HIR; see
//! [`chain`](super::chain).

use super::chain::ExpansionPart;
use super::conditions;
use super::distinct::{HashPurpose, distinct};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use std::hash::{DefaultHasher, Hash, Hasher};
use syn::{Item, ItemFn, Visibility};

/// An item that a macro passes: its name, visibility and conditions.
pub(super) struct Exported<'a> {
    pub name: &'a Ident,
    pub visibility: &'a Visibility,
    pub conditions: TokenStream,
}

impl Exported<'_> {
    pub(super) fn function(item: &ItemFn) -> Exported<'_> {
        Exported { name: &item.sig.ident, visibility: &item.vis, conditions: conditions(&item.attrs) }
    }

    /// Returns `None` for an item that no macro passes.
    pub(super) fn item(item: &Item) -> Option<Exported<'_>> {
        let (name, visibility, attributes) = match item {
            Item::Fn(i) => (&i.sig.ident, &i.vis, &i.attrs),
            Item::Const(i) => (&i.ident, &i.vis, &i.attrs),
            Item::Struct(i) => (&i.ident, &i.vis, &i.attrs),
            Item::Enum(i) => (&i.ident, &i.vis, &i.attrs),
            Item::Type(i) => (&i.ident, &i.vis, &i.attrs),
            Item::Trait(i) => (&i.ident, &i.vis, &i.attrs),
            _ => return None,
        };
        Some(Exported { name, visibility, conditions: conditions(attributes) })
    }
}

/// Returns the macro of a device function without diagnostics.
pub(super) fn complete(item: &ItemFn, library: &[u8], part: ExpansionPart) -> TokenStream {
    export(&Exported::function(item), item, library, part)
}

/// Returns the macro of a device function with diagnostics. The macro passes no bytes, so that
/// callers report nothing.
pub(super) fn failed(item: &ItemFn, part: ExpansionPart) -> TokenStream {
    complete(item, &[], part)
}

/// Returns the macro of an item of a module; an empty `library` means that the item has
/// diagnostics.
pub(super) fn named(item: &Item, library: &[u8], part: ExpansionPart) -> TokenStream {
    Exported::item(item).map(|exported| export(&exported, item, library, part)).unwrap_or_default()
}

/// Returns a `macro_rules` with a hashed name, and a `use` that gives it the function's name, scope
/// and visibility. An exported macro is at the root of its crate, so its name must be unique there.
/// In the module of a chain the `use` is for the module around, whose own `use` has the visibility.
fn export(exported: &Exported, item: &impl ToTokens, library: &[u8], part: ExpansionPart) -> TokenStream {
    let Exported { name, visibility, conditions } = exported;
    let literal = Literal::byte_string(library);
    let public = matches!(visibility, Visibility::Public(_));
    let visibility = match part {
        ExpansionPart::Rest { .. } => return TokenStream::new(),
        ExpansionPart::Exports if !public => quote!(pub(crate)),
        ExpansionPart::Exports | ExpansionPart::Whole => visibility.to_token_stream(),
    };
    let hash = distinct(HashPurpose::Name, hash(name, item));
    let hidden = Ident::new(&format!("__device_{}_{hash:016x}", without_raw_prefix(name)), Span::call_site());
    let exported = public.then(|| quote!(#[macro_export]));
    quote! {
        #conditions
        #[doc(hidden)]
        #[allow(unused_macros, non_local_definitions)]
        #exported
        macro_rules! #hidden {
            ([[$($next:tt)*] $([$($rest:tt)*])*] $($state:tt)*) => {
                $($next)* ! { [$([$($rest)*])*] $($state)* #literal }
            };
            (_ => { $define:ident ! { $missing:literal $($state:tt)* } }) => {
                $define ! { #literal $($state)* }
            }
        }
        #conditions
        #[doc(hidden)]
        #[allow(unused_imports)]
        #visibility use #hidden as #name;
    }
}

/// Returns the name without `r#`.
fn without_raw_prefix(name: &Ident) -> String {
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
