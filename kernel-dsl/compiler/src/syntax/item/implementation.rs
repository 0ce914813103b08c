//! Traits and impls, and the receivers of their methods.

use super::module::is_private;
use super::{Impl, Trait, TraitItem};
use crate::language;
use crate::syntax::{Function, Parameter, Path, Reader, RustSyntax, Segment, Type, TypeKind, TypeOrConst, place};
use proc_macro2::Ident;
use std::rc::Rc;
use syn::visit_mut::VisitMut;
use syn::{ImplItem, ItemFn};

impl Reader {
    /// Reads a trait.
    pub(super) fn read_trait(&mut self, t: &syn::ItemTrait) -> Trait {
        if !t.generics.params.is_empty() {
            self.refuse(syn::Error::new_spanned(
                &t.generics,
                "a device trait cannot have generic parameters: use associated types or constants",
            ));
        }
        let mut items = Vec::new();
        for item in &t.items {
            match item {
                syn::TraitItem::Fn(f) => {
                    self.unconditional(&f.attrs);
                    let block = f.default.clone().unwrap_or_else(|| syn::parse_quote!({}));
                    let function = method_as_function(&f.sig, &block);
                    if let Some(function) = self.inner(&function) {
                        let function = Function { private: false, ..function };
                        items.push(TraitItem::Function { function, provided: f.default.is_some() });
                    }
                }
                syn::TraitItem::Const(c) => {
                    self.unconditional(&c.attrs);
                    let value = c.default.as_ref().map(|(_, e)| e);
                    let function = self.constant(&c.ident, &c.attrs, &c.ty, value, c);
                    items.push(TraitItem::Constant { function, provided: value.is_some() });
                }
                syn::TraitItem::Type(ty) => {
                    self.unconditional(&ty.attrs);
                    let bounds = self.bounds(&ty.bounds);
                    items.push(TraitItem::Type { name: ty.ident.clone(), bounds });
                }
                other => self.refuse(syn::Error::new_spanned(
                    other,
                    "this item is not supported in a device trait; it can contain functions, constants and types",
                )),
            }
        }
        let bounds = self.bounds(&t.supertraits);
        Trait { name: t.ident.clone(), bounds, items, hash: place::hash_of(&t.ident, t) }
    }

    /// Reads an impl.
    pub(super) fn read_impl(&mut self, i: &syn::ItemImpl) -> Impl {
        let of_rust = i.trait_.as_ref().and_then(|(path, _)| self.trait_of_rust(path));
        let operator = of_rust.as_deref().and_then(language::operator_trait);
        let output = i.items.iter().find_map(|item| match item {
            ImplItem::Type(ty) if operator.is_some() && ty.ident == "Output" => Some(ty.ty.clone()),
            _ => None,
        });
        let (mut types, mut constants, mut functions) = (Vec::new(), Vec::new(), Vec::new());
        for item in &i.items {
            self.unconditional(match item {
                ImplItem::Fn(f) => &f.attrs,
                ImplItem::Const(c) => &c.attrs,
                ImplItem::Type(ty) => &ty.attrs,
                _ => &[],
            });
            match item {
                ImplItem::Fn(f) if operator == Some("PartialEq") && f.sig.ident != "eq" => {
                    self.refuse(syn::Error::new_spanned(
                        &f.sig.ident,
                        "on the device, `!=` is the negation of `eq`: remove this function from the impl",
                    ));
                }
                ImplItem::Fn(f) => {
                    let mut function = method_as_function(&f.sig, &f.block);
                    if let Some(output) = &output {
                        OutputReplacement(output).visit_item_fn_mut(&mut function);
                    }
                    let private = i.trait_.is_none() && is_private(&f.vis);
                    functions.extend(self.inner(&function).map(|function| Function { private, ..function }));
                }
                ImplItem::Const(c) => {
                    let constant = self.constant(&c.ident, &c.attrs, &c.ty, Some(&c.expr), c);
                    let private = i.trait_.is_none() && is_private(&c.vis);
                    constants.push(Function { private, ..constant });
                }
                ImplItem::Type(ty) => types.push((ty.ident.clone(), self.ty(&ty.ty))),
                other => self.refuse(syn::Error::new_spanned(
                    other,
                    "this item is not supported in a device impl; it can contain functions, constants and types",
                )),
            }
        }
        if let (Some((path, _)), Some(why)) = (&i.trait_, of_rust.as_deref().and_then(language::unsupported_trait)) {
            self.refuse(syn::Error::new_spanned(path, format!("a device type cannot implement this trait: {why}")));
        }
        let of_trait = match &i.trait_ {
            Some((path, _)) if operator.is_none() => Some(self.path(path)),
            _ => None,
        };
        let name = Ident::new("impl", i.impl_token.span);
        Impl {
            generics: self.generics(&i.generics),
            of_trait,
            operator,
            for_type: self.ty(&i.self_ty),
            types,
            constants,
            functions,
            hash: place::hash_of(&name, i),
            written: RustSyntax(Rc::new(syn::ItemImpl { items: Vec::new(), attrs: Vec::new(), ..i.clone() })),
        }
    }

    /// Returns the name of a trait, if Rust's library declares the trait.
    pub(super) fn trait_of_rust(&self, path: &syn::Path) -> Option<String> {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let (name, before) = names.split_last()?;
        let of_rust = match before {
            [] => match self.names.iter().find(|(own, _)| own == name) {
                Some((_, of_rust)) => *of_rust,
                // Imported by `use super::*`, or in scope everywhere.
                None => language::operator_trait(name).is_some() || PRELUDE.contains(&name.as_str()),
            },
            [first, ..] => matches!(first.as_str(), "std" | "core" | "ops" | "cmp"),
        };
        of_rust.then(|| name.clone())
    }

    /// Reads `self`, `&self`, `&mut self`
    pub(in crate::syntax) fn receiver(&mut self, receiver: &syn::Receiver) -> Option<Parameter> {
        let mark = self.mark(receiver);
        let name = Ident::new("self", receiver.self_token.span);
        let segment = Segment { name: Ident::new("Self", name.span()), arguments: Vec::<TypeOrConst>::new() };
        let itself = Type { kind: TypeKind::Path(Path { global: false, segments: vec![segment], mark }), mark };
        let reference = |mutable| Type { kind: TypeKind::Reference { mutable, to: Box::new(itself.clone()) }, mark };
        let ty = match &receiver.kind {
            syn::ReceiverKind::Value => itself,
            syn::ReceiverKind::Reference(_, _, mutability) => reference(mutability.is_some()),
            _ => {
                self.refuse(syn::Error::new_spanned(receiver, "a receiver must be `self`, `&self` or `&mut self`"));
                return None;
            }
        };
        let mutable = receiver.mutability.is_some() && matches!(ty.kind, TypeKind::Path(_));
        Some(Parameter { name, mutable, ty })
    }
}

/// Replaces `Self::Output` in an impl of an operator.
struct OutputReplacement<'a>(&'a syn::Type);

impl VisitMut for OutputReplacement<'_> {
    fn visit_type_mut(&mut self, ty: &mut syn::Type) {
        let output = matches!(ty, syn::Type::Path(p) if p.qself.is_none() && is_output(&p.path));
        match output {
            true => *ty = self.0.clone(),
            false => syn::visit_mut::visit_type_mut(self, ty),
        }
    }
}

/// Returns whether a path is `Self::Output`.
fn is_output(path: &syn::Path) -> bool {
    path.segments.len() == 2 && path.segments[0].ident == "Self" && path.segments[1].ident == "Output"
}

/// Traits of Rust that are in scope without an import.
const PRELUDE: [&str; 7] = ["AsMut", "AsRef", "Drop", "IntoIterator", "Iterator", "TryFrom", "TryInto"];

/// Returns a method as a free function with the same signature and body.
fn method_as_function(signature: &syn::Signature, block: &syn::Block) -> ItemFn {
    let (attrs, vis) = (Vec::new(), syn::Visibility::Inherited);
    ItemFn { attrs, vis, modifiers: Default::default(), sig: signature.clone(), block: Box::new(block.clone()) }
}
