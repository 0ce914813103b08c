//! Types of the HIR as Rust writes them, for rustc to confirm.

use crate::{hir, syntax};
use proc_macro2::TokenStream;
use quote::quote;

/// Returns whether Rust can name a type parameter.
fn is_named(parameter: &str) -> bool {
    parameter != "Self" && !syntax::is_anonymous(parameter)
}

/// Returns a type as Rust tokens that need no import; `None` for types of the prelude.
pub(super) fn rust_type(types: &[hir::Type], generics: &[hir::Generic], id: hir::TypeId) -> Option<TokenStream> {
    let ident = |name: &str| proc_macro2::Ident::new(name, proc_macro2::Span::call_site());
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
            let element = rust_type(types, generics, *element)?;
            let size = match size {
                hir::Size::Known(n) => {
                    let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                    quote!(#n)
                }
                hir::Size::Value(_) => return None,
                hir::Size::Generic(i) => {
                    let name = ident(&generics[*i as usize].name);
                    quote!(#name)
                }
            };
            quote!([#element; #size])
        }
        hir::Type::Parameter(i) if is_named(&generics[*i as usize].name) => {
            let name = ident(&generics[*i as usize].name);
            quote!(#name)
        }
        hir::Type::Constant(size) => match size {
            hir::Size::Known(n) => {
                let n = proc_macro2::Literal::usize_unsuffixed(*n as usize);
                quote!(#n)
            }
            hir::Size::Value(_) => return None,
            hir::Size::Generic(i) => {
                let name = ident(&generics[*i as usize].name);
                quote!(#name)
            }
        },
        _ => return None,
    })
}
