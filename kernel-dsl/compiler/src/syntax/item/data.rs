//! Structs, enums and type aliases.

use super::module::is_private;
use super::{Enum, Struct};
use crate::hir::DerivedComparisons;
use crate::syntax::{Reader, Type, place};
use quote::ToTokens;
use syn::punctuated::Punctuated;
use syn::{Fields, Token};

impl Reader {
    /// Reads a struct.
    pub(super) fn read_struct(&mut self, s: &syn::ItemStruct) -> Struct {
        self.reject_lifetimes(&s.generics);
        s.fields.iter().for_each(|f| self.unconditional(&f.attrs));
        let fields = match &s.fields {
            Fields::Named(all) => {
                all.named.iter().filter_map(|f| Some((f.ident.as_ref()?.to_string(), self.ty(&f.ty)))).collect()
            }
            Fields::Unnamed(all) => {
                all.unnamed.iter().enumerate().map(|(i, f)| (i.to_string(), self.ty(&f.ty))).collect()
            }
            Fields::Unit => Vec::new(),
        };
        let (mut repr_c, mut align) = (false, 1);
        for attribute in s.attrs.iter().filter(|a| a.path().is_ident("repr")) {
            let read = attribute.parse_args_with(Punctuated::<syn::Meta, Token![,]>::parse_terminated);
            for meta in read.into_iter().flatten() {
                if meta.path().is_ident("C") {
                    repr_c = true;
                } else if let Some(bytes) = alignment(&meta) {
                    align = bytes;
                } else {
                    let message = "only `repr(C)` and `repr(C, align(16))` are supported on a device struct";
                    self.refuse(syn::Error::new_spanned(meta, message));
                }
            }
            if align > 1 && !repr_c {
                let message = "a device struct with an alignment needs `repr(C, align(…))`";
                self.refuse(syn::Error::new_spanned(attribute, message));
            }
        }
        Struct {
            name: s.ident.clone(),
            generics: self.generics(&s.generics),
            fields,
            repr_c,
            align,
            copy: derives(&s.attrs, "Copy"),
            private: is_private(&s.vis),
            private_fields: s
                .fields
                .iter()
                .zip(s.fields.members())
                .filter(|(field, _)| is_private(&field.vis))
                .map(|(_, member)| member.to_token_stream().to_string())
                .collect(),
            derived: derived(&s.attrs),
            hash: place::hash_of(&s.ident, s),
        }
    }

    /// Reads a type alias.
    pub(super) fn read_alias(&mut self, t: &syn::ItemType) -> Struct {
        self.reject_lifetimes(&t.generics);
        Struct {
            name: t.ident.clone(),
            generics: self.generics(&t.generics),
            fields: vec![("type".to_string(), self.ty(&t.ty))],
            repr_c: false,
            align: 1,
            copy: true,
            private: false,
            private_fields: Vec::new(),
            derived: DerivedComparisons::default(),
            hash: place::hash_of(&t.ident, t),
        }
    }

    /// Reads an enum.
    pub(super) fn read_enum(&mut self, e: &syn::ItemEnum) -> Enum {
        let mut variants: Vec<(String, i32)> = Vec::new();
        let mut fields: Vec<(String, Type)> = Vec::new();
        let mut next = Some(0);
        for variant in &e.variants {
            self.unconditional(&variant.attrs);
            for (field, member) in variant.fields.iter().zip(variant.fields.members()) {
                self.unconditional(&field.attrs);
                let ty = self.ty(&field.ty);
                fields.push((format!("{}.{}", variant.ident, member.to_token_stream()), ty));
            }
            let value = match &variant.discriminant {
                None => next,
                Some((_, value)) => discriminant(value),
            };
            let Some(value) = value else {
                self.refuse(syn::Error::new_spanned(variant, "a discriminant must be an `i32` literal"));
                continue;
            };
            variants.push((variant.ident.to_string(), value));
            next = value.checked_add(1);
        }
        self.reject_lifetimes(&e.generics);
        if fields.is_empty() && e.generics.type_params().next().is_some() | e.generics.const_params().next().is_some() {
            let message = "a device enum whose variants hold no data cannot have generic parameters";
            self.refuse(syn::Error::new_spanned(&e.generics, message));
        }
        let (derived, hash) = (derived(&e.attrs), place::hash_of(&e.ident, e));
        let copy = derives(&e.attrs, "Copy");
        let data = (!fields.is_empty()).then(|| {
            fields.insert(0, ("tag".to_string(), self.ty(&syn::parse_quote!(i32))));
            let generics = self.generics(&e.generics);
            Struct {
                name: e.ident.clone(),
                generics,
                fields,
                repr_c: false,
                align: 1,
                copy,
                private: false,
                private_fields: Vec::new(),
                derived,
                hash,
            }
        });
        Enum { name: e.ident.clone(), variants, copy, private: is_private(&e.vis), derived, data, hash }
    }

    /// Rejects lifetime parameters of a type, whose fields would be references.
    fn reject_lifetimes(&mut self, generics: &syn::Generics) {
        for lifetime in generics.lifetimes() {
            self.refuse(syn::Error::new_spanned(
                lifetime,
                "a device type cannot have lifetime parameters: write `View<T, 1>` for a field `&[T]`, and a value for another reference",
            ));
        }
    }
}

/// Returns the comparisons that a type derives.
fn derived(attributes: &[syn::Attribute]) -> DerivedComparisons {
    DerivedComparisons { equality: derives(attributes, "PartialEq"), order: derives(attributes, "PartialOrd") }
}

/// Returns whether a type derives the trait `name`.
pub(crate) fn derives(attributes: &[syn::Attribute], name: &str) -> bool {
    let lists = attributes.iter().filter(|a| a.path().is_ident("derive"));
    let lists = lists.flat_map(|a| a.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated));
    lists.flatten().any(|path| path.segments.last().is_some_and(|last| last.ident == name))
}

/// Returns the bytes of `align(16)`.
fn alignment(meta: &syn::Meta) -> Option<u32> {
    let syn::Meta::List(list) = meta else { return None };
    list.path.is_ident("align").then(|| list.parse_args::<syn::LitInt>().ok()?.base10_parse().ok())?
}

/// Returns the value of a discriminant such as `5` or `-1`.
fn discriminant(e: &syn::Expr) -> Option<i32> {
    match e {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) => n.base10_parse().ok(),
        syn::Expr::Unary(syn::ExprUnary { op: syn::UnOp::Neg(_), expr, .. }) => discriminant(expr)?.checked_neg(),
        _ => None,
    }
}
