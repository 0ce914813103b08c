//! Mutations of items, signatures and attributes.

use super::{MutationClass, Mutator, removed};
use syn::punctuated::Punctuated;
use syn::{Item, Token, parse_quote};

impl Mutator<'_> {
    pub(super) fn items(&mut self, items: &mut Vec<Item>) {
        let own = |item: &Item| !matches!(item, Item::Use(_));
        for at in 0..items.len() {
            if own(&items[at]) && self.hit(MutationClass::ItemRemoved) {
                items.remove(at);
                return;
            }
            if own(&items[at]) && self.hit(MutationClass::ItemRepeated) {
                items.insert(at, items[at].clone());
                return;
            }
        }
    }

    pub(super) fn signature(&mut self, signature: &mut syn::Signature) {
        if !signature.inputs.is_empty() && self.hit(MutationClass::ParameterRemoved) {
            signature.inputs = removed(&signature.inputs, self.random.below(signature.inputs.len()));
        }
        if self.hit(MutationClass::ParameterAdded) {
            let (name, ty) = (self.variable(), self.ty());
            signature.inputs.push(parse_quote!(#name: #ty));
        }
        for input in &mut signature.inputs {
            if let syn::FnArg::Typed(input) = input
                && self.hit(MutationClass::ParameterRetyped)
            {
                *input.ty = self.ty();
            }
        }
        if self.hit(MutationClass::ReturnTypeChanged) {
            signature.output = match (&signature.output, self.random.below(2)) {
                (syn::ReturnType::Type(..), 0) => syn::ReturnType::Default,
                _ => {
                    let ty = self.ty();
                    parse_quote!(-> #ty)
                }
            };
        }
    }

    pub(super) fn attributes(&mut self, attributes: &mut [syn::Attribute]) {
        for attribute in attributes {
            if attribute.path().is_ident("derive") && self.hit(MutationClass::DeriveRemoved) {
                let names = attribute.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated);
                let Ok(names) = names else { return };
                let kept = match names.len() {
                    0 => names,
                    n => removed(&names, self.random.below(n)),
                };
                *attribute = parse_quote!(#[derive(#kept)]);
            }
        }
    }
}
