//! Types of the HIR as Rust writes them, for rustc to confirm.

use crate::{hir, syntax};
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote;

/// Returns whether Rust can name a type parameter.
fn is_named(parameter: &str) -> bool {
    parameter != "Self" && !syntax::is_anonymous(parameter)
}

fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// Returns a length or generic constant as Rust tokens; `None` for a number of another type than
/// `usize`.
fn rust_size(size: &hir::Size, generics: &[hir::Generic]) -> Option<TokenStream> {
    match size {
        hir::Size::Known(n) => {
            let n = Literal::usize_unsuffixed(*n as usize);
            Some(quote!(#n))
        }
        hir::Size::Value(_) => None,
        hir::Size::Generic(i) => {
            let name = ident(&generics[*i as usize].name);
            Some(quote!(#name))
        }
    }
}

/// Returns a type as Rust tokens that need no import; `None` for types of the prelude.
pub(super) fn rust_type(types: &[hir::Type], generics: &[hir::Generic], id: hir::TypeId) -> Option<TokenStream> {
    Some(match &types[id.0 as usize] {
        hir::Type::Scalar(s) if s.is_half() => return None,
        hir::Type::Scalar(s) => {
            let name = ident(s.name());
            quote!(::core::primitive::#name)
        }
        hir::Type::Tuple(parts) => {
            let parts = parts.iter().map(|p| rust_type(types, generics, *p)).collect::<Option<Vec<_>>>()?;
            quote!((#(#parts),*))
        }
        hir::Type::Option(inner) => {
            let inner = rust_type(types, generics, *inner)?;
            quote!(::core::option::Option<#inner>)
        }
        hir::Type::Array(element, size) => {
            let (element, size) = (rust_type(types, generics, *element)?, rust_size(size, generics)?);
            quote!([#element; #size])
        }
        hir::Type::Parameter(i) if is_named(&generics[*i as usize].name) => {
            let name = ident(&generics[*i as usize].name);
            quote!(#name)
        }
        hir::Type::Constant(size) => rust_size(size, generics)?,
        _ => return None,
    })
}
