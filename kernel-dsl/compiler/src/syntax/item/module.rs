//! Modules: their items, their imports, and the attributes that they must not have.

use super::{Item, Module};
use crate::language;
use crate::syntax::allow::is_allowance;
use crate::syntax::{Function, Reader, place};
use proc_macro2::Ident;
use syn::ItemFn;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Reads a device item: a constant, struct, enum, or a module of items.
pub fn module(item: &syn::Item) -> Result<Module, syn::Error> {
    let mut reader = Reader::from_line(item.span().start().line);
    let name = Ident::new("module", item.span());
    let named = matches!(item, syn::Item::Mod(_));
    let mut module = Module { items: Vec::new(), hash: place::hash_of(&name, item), named };
    match item {
        syn::Item::Mod(m) => match &m.content {
            Some((_, items)) => {
                reader.names = items.iter().flat_map(names).collect();
                for item in items {
                    reader.conditional(item);
                    reader.item(item, &mut module);
                }
            }
            None => reader.refuse(syn::Error::new_spanned(
                item,
                "`#[device]` cannot read a module from another file: write its items inline, `mod name { … }`",
            )),
        },
        other => reader.item(other, &mut module),
    }
    reader.finish(module)
}

impl Reader {
    /// Rejects `#[cfg]` inside a device module.
    fn conditional(&mut self, item: &syn::Item) {
        let attributes = match item {
            syn::Item::Fn(i) => &i.attrs,
            syn::Item::Const(i) => &i.attrs,
            syn::Item::Struct(i) => &i.attrs,
            syn::Item::Enum(i) => &i.attrs,
            syn::Item::Type(i) => &i.attrs,
            syn::Item::Trait(i) => &i.attrs,
            syn::Item::Impl(i) => &i.attrs,
            _ => return,
        };
        self.unconditional(attributes);
    }

    /// Rejects `#[cfg]` among the attributes of a part of an item.
    pub(super) fn unconditional(&mut self, attributes: &[syn::Attribute]) {
        for attribute in attributes.iter().filter(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
            self.refuse(syn::Error::new_spanned(
                attribute,
                "`#[cfg]` is not supported inside a device item; put it on the item",
            ));
        }
    }

    /// Rejects `#[cfg]` inside a function, and collects its allowances.
    pub(in crate::syntax) fn reject_conditions_within(&mut self, signature: &syn::Signature, body: &syn::Block) {
        struct Conditions<'r>(&'r mut Reader);
        impl<'a> Visit<'a> for Conditions<'_> {
            fn visit_attribute(&mut self, attribute: &'a syn::Attribute) {
                self.0.unconditional(std::slice::from_ref(attribute));
                if is_allowance(attribute) {
                    self.0.allowing.push(attribute.clone());
                }
            }
        }
        let mut conditions = Conditions(self);
        conditions.visit_signature(signature);
        conditions.visit_block(body);
    }

    fn item(&mut self, item: &syn::Item, module: &mut Module) {
        let type_name = match item {
            syn::Item::Struct(s) => Some(&s.ident),
            syn::Item::Type(t) => Some(&t.ident),
            syn::Item::Enum(e) => Some(&e.ident),
            _ => None,
        };
        if let Some(name) = type_name.filter(|name| language::reserves_type(&name.to_string())) {
            let message =
                format!("a device type cannot be named `{name}`, which is a type of kernels: give it another name");
            self.refuse(syn::Error::new_spanned(name, message));
        }
        match item {
            syn::Item::Fn(f) => {
                if let Some(function) = self.inner(f) {
                    module.items.push(Item::Function(function));
                }
            }
            syn::Item::Const(c) => {
                let constant = self.constant(&c.ident, &c.attrs, &c.ty, Some(&c.expr), c);
                module.items.push(Item::Constant(Function { private: is_private(&c.vis), ..constant }));
            }
            syn::Item::Struct(s) => {
                let item = self.read_struct(s);
                module.items.push(Item::Struct(item));
            }
            syn::Item::Type(t) => {
                let item = self.read_alias(t);
                module.items.push(Item::Alias(item));
            }
            syn::Item::Enum(e) => {
                let item = self.read_enum(e);
                module.items.push(Item::Enum(item));
            }
            syn::Item::Trait(t) => {
                let item = self.read_trait(t);
                module.items.push(Item::Trait(item));
            }
            syn::Item::Impl(i) => {
                // Derived and hand-written impls of Rust's own traits belong to the host.
                let host = i.trait_.as_ref().is_some_and(|(path, _)| is_of_the_host(path));
                if host {
                    copied(i, module);
                } else {
                    let item = self.read_impl(i);
                    module.items.push(Item::Impl(item));
                }
            }
            syn::Item::Use(_) => {}
            syn::Item::Mod(m) if m.attrs.iter().any(is_cfg_test) => {}
            other => self.refuse(syn::Error::new_spanned(
                other,
                "this item is not supported in a device module; it can contain functions, constants, structs, enums, type aliases, traits and impls",
            )),
        }
    }

    /// Reads a function whose source lines count from its own first line.
    pub(super) fn inner(&mut self, f: &ItemFn) -> Option<Function> {
        let mut reader = Reader::new(f);
        let function = reader.function(f);
        if let Some(error) = reader.refused {
            self.refuse(error);
            return None;
        }
        Some(function)
    }
}

/// Returns the names that an item of a module imports, or of the trait that it defines. The second
/// part is true for imports from Rust's library.
fn names(item: &syn::Item) -> Vec<(String, bool)> {
    fn imported(tree: &syn::UseTree, of_rust: bool, all: &mut Vec<(String, bool)>) {
        match tree {
            syn::UseTree::Path(p) => imported(&p.tree, of_rust, all),
            syn::UseTree::Name(n) => all.push((n.ident.to_string(), of_rust)),
            syn::UseTree::Rename(r) => all.push((r.rename.to_string(), of_rust)),
            syn::UseTree::Group(g) => g.items.iter().for_each(|tree| imported(tree, of_rust, all)),
            syn::UseTree::Glob(_) => {}
        }
    }
    let mut all = Vec::new();
    match item {
        syn::Item::Trait(t) => all.push((t.ident.to_string(), false)),
        syn::Item::Use(u) => {
            let of_rust = matches!(&u.tree, syn::UseTree::Path(p) if p.ident == "std" || p.ident == "core");
            imported(&u.tree, of_rust, &mut all);
        }
        _ => {}
    }
    all
}

fn is_of_the_host(path: &syn::Path) -> bool {
    const HOST: &[&str] = &[
        "Clone",
        "Copy",
        "Debug",
        "Default",
        "Display",
        "DeviceCopy",
        "Eq",
        "From",
        "Hash",
        "Into",
        "Ord",
        "PartialOrd",
        "Send",
        "Sync",
    ];
    path.segments.last().is_some_and(|s| HOST.contains(&s.ident.to_string().as_str()))
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|of| of == "test")
}

/// Marks the type of an `impl Copy`, if the module declares the type before it.
fn copied(i: &syn::ItemImpl, module: &mut Module) {
    let is_copy = i.trait_.as_ref().and_then(|(path, _)| path.segments.last()).is_some_and(|s| s.ident == "Copy");
    let syn::Type::Path(of) = &*i.self_ty else { return };
    let Some(name) = of.path.segments.last().map(|s| &s.ident).filter(|_| is_copy) else { return };
    for item in &mut module.items {
        match item {
            Item::Struct(s) if s.name == *name => s.copy = true,
            Item::Enum(e) if e.name == *name => {
                e.copy = true;
                e.data.iter_mut().for_each(|data| data.copy = true);
            }
            _ => {}
        }
    }
}

/// Returns whether an item has no `pub`.
pub(super) fn is_private(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Inherited)
}
