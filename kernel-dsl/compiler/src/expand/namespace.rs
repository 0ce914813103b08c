//! The type of a kernel's name, and its contents.
//!
//! The type is a braced struct, which leaves the value namespace free: with a kernel `softmax` in
//! scope, `let softmax = …` still binds a variable.

use super::{conditions, copy, launch};
use crate::syntax::{self, InstanceOf};
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{GenericParam, ItemFn, Path};

/// The result of reading a kernel.
pub(super) enum Stage<'a> {
    /// The kernel was read.
    Read(&'a syntax::Kernel),
    /// The kernel could not be read: its launch functions accept any arguments, so that only the
    /// errors are reported.
    Refused,
}

/// Returns the type, its constants, its launch functions and its entry in the registry. `artifact`
/// is an expression.
pub(super) fn kernel(item: &ItemFn, facade: &Path, stage: &Stage, artifact: TokenStream) -> TokenStream {
    let (name, visibility, generics) = (&item.sig.ident, &item.vis, &item.sig.generics);
    let (of_impl, of_type, _) = generics.split_for_impl();
    let device_types = where_device_types(item, facade);
    let (conditions, fields, launch) = (conditions(&item.attrs), fields(item), launch::functions(item, facade, stage));
    let kept = item.attrs.iter().filter(|a| is_one_of(a, &["doc", "deprecated", "allow", "warn", "deny", "forbid"]));
    // rustc marks the type from its visibility to its braces, which have the span of the function's
    // name.
    let bounds = &generics.where_clause;
    let (word, fields) = (quote_spanned!(name.span()=> struct), quote_spanned!(name.span()=> { #fields }));
    let (texts, constants) = match stage {
        Stage::Read(parsed) => (
            parsed.instances.iter().enumerate().map(|(i, n)| text(item, facade, i, n)).collect(),
            constants(item, facade),
        ),
        Stage::Refused => (any_text(item), quote!()),
    };
    // The artifact has the kernel's name too, so that rustc names the kernel if the constant fails.
    quote! {
        #conditions
        #(#kept)*
        #[allow(non_camel_case_types, non_upper_case_globals, dead_code)]
        #visibility #word #name #generics #bounds #fields
        #conditions
        #[allow(non_upper_case_globals, deprecated)]
        const _: () = {
            const #name: &#facade::Artifact = &#artifact;
            impl #of_impl #facade::Kernel for #name #of_type #device_types {
                const ARTIFACT: &'static #facade::Artifact = #name;
                const CONSTANTS: &'static [#facade::compiler::hir::Constant] = &[#constants];
            }
            #facade::__private::inventory::submit! { #facade::artifact::Registered(#name) }
        };
        #texts
        #conditions
        #launch
    }
}

/// Returns a field that uses the generic parameters, because rustc rejects a struct with unused
/// ones.
fn fields(item: &ItemFn) -> TokenStream {
    let used = item.sig.generics.params.iter().filter_map(|p| match p {
        GenericParam::Lifetime(l) => Some(&l.lifetime).map(|l| quote!(&#l ())),
        GenericParam::Type(t) => Some(&t.ident).map(|t| quote!(fn() -> #t)),
        GenericParam::Const(_) => None,
    });
    let used: Vec<_> = used.collect();
    if used.is_empty() { quote!() } else { quote!(_unused: ::core::marker::PhantomData<(#(#used,)*)>) }
}

/// Returns the impl with `PTX` of the `i`th declared instance.
fn text(item: &ItemFn, facade: &Path, i: usize, instance: &InstanceOf) -> TokenStream {
    let (name, conditions, constant) = (&item.sig.ident, conditions(&item.attrs), at_name(item, "PTX"));
    let of_type = instance.arguments();
    let docs = format!("The PTX of `{}`, for sm_61.", instance.rust_name(&name.to_string()));
    quote! {
        #conditions
        #[allow(deprecated)]
        impl #name #of_type {
            #[doc = #docs]
            pub const #constant: &'static str = <Self as #facade::Kernel>::ARTIFACT.instances[#i].ptx;
        }
    }
}

/// Returns the impl with `PTX` of any instance, for a kernel that could not be read.
fn any_text(item: &ItemFn) -> TokenStream {
    let (name, conditions, constant) = (&item.sig.ident, conditions(&item.attrs), at_name(item, "PTX"));
    let (of_impl, of_type, bounds) = item.sig.generics.split_for_impl();
    quote! {
        #conditions
        #[allow(deprecated)]
        impl #of_impl #name #of_type #bounds {
            #[allow(missing_docs)]
            pub const #constant: &'static str = "";
        }
    }
}

/// Returns the generic arguments of the instance, as a list of `Constant`s, computed from the
/// parameters of the type.
fn constants(item: &ItemFn, facade: &Path) -> TokenStream {
    let all = item.sig.generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Const(constant) => {
            let name = &constant.ident;
            let make = match &constant.ty {
                syn::Type::Path(p) if p.path.is_ident("bool") => quote!(Bool(#name)),
                syn::Type::Path(p) if p.path.is_ident("u128") => {
                    let message = format!("the generic constant `{name}` has at most 127 bits");
                    quote!(Integer({
                        ::core::assert!(#name >> 127 == 0, #message);
                        #name as i128
                    }))
                }
                syn::Type::Path(p) if !p.path.is_ident("usize") => quote!(Integer(#name as i128)),
                _ => quote!(Usize(#facade::__private::device_usize(#name))),
            };
            Some(quote!(#facade::compiler::hir::Constant::#make,))
        }
        GenericParam::Type(ty) => {
            let name = &ty.ident;
            Some(quote!(<#name as #facade::GenericArgument>::CONSTANT,))
        }
        GenericParam::Lifetime(_) => None,
    });
    all.collect()
}

/// Returns the `where` clause of impls that need the type arguments as device types.
pub(super) fn where_device_types(item: &ItemFn, facade: &Path) -> TokenStream {
    let types = item.sig.generics.type_params().map(|t| {
        let name = &t.ident;
        let passed = super::launch::parameters(item).any(|p| match &*p.ty {
            syn::Type::Path(p) => p.path.is_ident(name),
            _ => false,
        });
        let passed = passed.then(|| quote!(+ #facade::launcher::ValueArgument));
        quote!(#name: #facade::GenericArgument #passed,)
    });
    let types: Vec<_> = types.collect();
    match &item.sig.generics.where_clause {
        Some(clause) => {
            let written = &clause.predicates;
            let comma = (!written.empty_or_trailing()).then(|| quote!(,));
            quote!(where #written #comma #(#types)*)
        }
        None if types.is_empty() => quote!(),
        None => quote!(where #(#types)*),
    }
}

/// Rejects attributes that would have no effect, because the kernel is no host function. Rejects
/// names that PTX does not allow.
pub(super) fn check_attributes_and_name(item: &ItemFn) -> syn::Result<()> {
    let name = &item.sig.ident;
    let plain = name.to_string().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let unfit = (!plain).then(|| {
        let message =
            "a kernel's name is also the name of its PTX entry: use only ASCII letters, digits and `_`, without `r#`";
        syn::Error::new_spanned(name, message)
    });
    let refused = item.attrs.iter().filter(|a| {
        let known = is_one_of(a, &["doc", "deprecated", "cfg", "requires"]) || is_one_of(a, &copy::LINT_LEVELS);
        let tool = a.path().segments.len() > 1 && a.path().segments[0].ident == "rustfmt";
        !known && !tool
    });
    let errors = refused.map(|a| {
        let name = a.path().to_token_stream().to_string().replace(' ', "");
        let message =
            format!("`#[{name}]` has no effect on a kernel, which is not compiled as a host function: remove it");
        syn::Error::new_spanned(a.path(), message)
    });
    let all = unfit.into_iter().chain(errors).reduce(|mut all, error| {
        all.combine(error);
        all
    });
    all.map_or(Ok(()), Err)
}

fn is_one_of(attribute: &syn::Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}

/// Returns a generated name with the span of the kernel's name, so that go-to-definition and notes
/// of rustc lead there.
pub(super) fn at_name(item: &ItemFn, name: &str) -> Ident {
    Ident::new(name, item.sig.ident.span())
}
