//! Device items other than functions: constants, structs, enums, type aliases, traits and impls,
//! alone or in a module.

use super::allow::is_allowance;
use super::{
    Block, Expr, Function, Generic, GenericKind, Parameter, Path, Reader, RustSyntax, Segment, Type, TypeKind,
    TypeOrConst, place,
};
use crate::Scalar;
use crate::hir::DerivedComparisons;
use crate::ir::Placement;
use crate::language;
use proc_macro2::Ident;
use quote::ToTokens;
use std::rc::Rc;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Fields, GenericParam, ImplItem, ItemFn, Token, TypeParamBound};

/// The items of a `#[device] mod`, or a single item.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The items in source order.
    pub items: Vec<Item>,
    /// A hash of the tokens and the source position.
    pub hash: u64,
    /// Whether the items are those of a `mod`, which alone may name its private items.
    pub named: bool,
}

/// A device item.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Item {
    Function(Function),
    /// A constant, as a function without parameters that returns its value.
    Constant(Function),
    Struct(Struct),
    /// A type alias, as a struct whose only field has the type.
    Alias(Struct),
    Enum(Enum),
    Trait(Trait),
    Impl(Impl),
}

impl Item {
    /// Returns the fields of a struct, a type alias, or an enum with data; `None` for other items.
    pub fn fields(&self) -> Option<&Struct> {
        match self {
            Item::Struct(s) | Item::Alias(s) => Some(s),
            Item::Enum(e) => e.data.as_ref(),
            _ => None,
        }
    }
}

/// A struct.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Struct {
    pub name: Ident,
    pub generics: Vec<Generic>,
    /// The fields, with their types; those of a tuple struct are named `0`, `1`, ….
    pub fields: Vec<(String, Type)>,
    /// Has `#[repr(C)]`.
    pub repr_c: bool,
    /// The bytes of `align(…)`, or 1.
    pub align: u32,
    /// Derives `Copy`, or has an `impl Copy` in its module.
    pub copy: bool,
    /// Has no `pub`.
    pub private: bool,
    /// The fields without `pub`.
    pub private_fields: Vec<String>,
    pub derived: DerivedComparisons,
    pub hash: u64,
}

/// An enum.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Enum {
    pub name: Ident,
    pub variants: Vec<(String, i32)>,
    /// Derives `Copy`, or has an `impl Copy` in its module.
    pub copy: bool,
    /// Has no `pub`.
    pub private: bool,
    pub derived: DerivedComparisons,
    /// The parts of a value, if a variant holds data: the discriminant `tag`, and a field
    /// `Variant.field` for each field of each variant.
    pub data: Option<Struct>,
    pub hash: u64,
}

/// A trait.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Trait {
    pub name: Ident,
    pub bounds: Vec<TraitBound>,
    pub items: Vec<TraitItem>,
    pub hash: u64,
}

/// An item of a trait.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum TraitItem {
    Type { name: Ident, bounds: Vec<TraitBound> },
    Constant { function: Function, provided: bool },
    Function { function: Function, provided: bool },
}

/// An `impl` block.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Impl {
    pub generics: Vec<Generic>,
    /// The device trait that the type implements; `None` for an inherent impl and for an operator.
    pub of_trait: Option<Path>,
    /// The name of Rust's trait, for the impl of an operator.
    pub operator: Option<&'static str>,
    pub for_type: Type,
    pub types: Vec<(Ident, Type)>,
    pub constants: Vec<Function>,
    pub functions: Vec<Function>,
    pub hash: u64,
    /// The Rust source of the impl, without its items.
    pub written: RustSyntax<syn::ItemImpl>,
}

/// A bound of a type parameter: a trait.
#[derive(Clone, Debug)]
pub struct TraitBound {
    /// The path.
    pub path: Path,
    /// The parameters and result of `DeviceFn<(A, B), Output = R>`.
    pub signature: Option<(Vec<Type>, Type)>,
}

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

    fn unconditional(&mut self, attributes: &[syn::Attribute]) {
        for attribute in attributes.iter().filter(|a| a.path().is_ident("cfg") || a.path().is_ident("cfg_attr")) {
            self.refuse(syn::Error::new_spanned(
                attribute,
                "`#[cfg]` is not supported inside a device item; put it on the item",
            ));
        }
    }

    /// Rejects `#[cfg]` inside a function, and collects its allowances.
    pub(super) fn reject_conditions_within(&mut self, signature: &syn::Signature, body: &syn::Block) {
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
    fn inner(&mut self, f: &ItemFn) -> Option<Function> {
        let mut reader = Reader::new(f);
        let function = reader.function(f);
        if let Some(error) = reader.refused {
            self.refuse(error);
            return None;
        }
        Some(function)
    }

    /// Reads a constant as a function that returns its value.
    fn constant(
        &mut self,
        name: &Ident,
        attributes: &[syn::Attribute],
        ty: &syn::Type,
        value: Option<&syn::Expr>,
        item: &impl ToTokens,
    ) -> Function {
        let placement = self.placement(attributes);
        let mut reader = Reader::from_line(name.span().start().line);
        let value: Option<Box<Expr>> = value.map(|e| Box::new(reader.expression(e)));
        let returns = Some(reader.ty(ty));
        let mark = reader.mark(item);
        if let Some(error) = reader.refused {
            self.refuse(error);
        }
        let source = place::source_of(name, item);
        Function {
            name: name.clone(),
            generics: Vec::new(),
            parameters: Vec::new(),
            receiver: false,
            returns,
            constant: Some(placement),
            private: false,
            allowances: Vec::new(),
            body: Block { statements: Vec::new(), value, mark },
            hash: place::hash_of(name, item),
            source,
            written: None,
        }
    }

    /// Reads the placement of a table from `#[device(constant)]` or `#[device(global)]`.
    fn placement(&mut self, attributes: &[syn::Attribute]) -> Placement {
        let mut placement = Placement::ByUse;
        for attribute in attributes.iter().filter(|a| is_placement(a)) {
            match attribute.parse_args::<Ident>() {
                Ok(word) if word == "constant" => placement = Placement::Constant,
                Ok(word) if word == "global" => placement = Placement::Global,
                _ => self.refuse(syn::Error::new_spanned(
                    attribute,
                    "expected `#[device(constant)]` or `#[device(global)]`; without either, the placement follows from how the constant is read",
                )),
            }
        }
        placement
    }

    fn read_struct(&mut self, s: &syn::ItemStruct) -> Struct {
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

    fn read_alias(&mut self, t: &syn::ItemType) -> Struct {
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

    fn read_enum(&mut self, e: &syn::ItemEnum) -> Enum {
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

    fn read_trait(&mut self, t: &syn::ItemTrait) -> Trait {
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

    fn read_impl(&mut self, i: &syn::ItemImpl) -> Impl {
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
    fn trait_of_rust(&self, path: &syn::Path) -> Option<String> {
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

    /// Reads generic parameters with their bounds, including those of the `where` clause.
    pub(super) fn generics(&mut self, generics: &syn::Generics) -> Vec<Generic> {
        let mut all: Vec<Generic> = generics.params.iter().filter_map(|p| self.generic(p)).collect();
        for predicate in generics.where_clause.iter().flat_map(|w| &w.predicates) {
            let syn::WherePredicate::Type(of) = predicate else { continue };
            let name = match &of.bounded_ty {
                syn::Type::Path(p) => p.path.get_ident(),
                _ => None,
            };
            let bounds = self.bounds(&of.bounds);
            let found = all.iter_mut().find(|g| Some(&g.name) == name);
            match found.map(|g| &mut g.kind) {
                Some(GenericKind::Type(of)) => of.extend(bounds),
                _ => self.refuse(syn::Error::new_spanned(
                    predicate,
                    "a `where` clause can bound only type parameters: for conditions on constants write `const { assert!(…) }` in the body",
                )),
            }
        }
        all
    }

    fn generic(&mut self, parameter: &GenericParam) -> Option<Generic> {
        match parameter {
            GenericParam::Type(t) => {
                Some(Generic { name: t.ident.clone(), kind: GenericKind::Type(self.bounds(&t.bounds)) })
            }
            GenericParam::Const(c) => {
                let ty = match &c.ty {
                    syn::Type::Path(p) => p.path.get_ident().and_then(|i| Scalar::from_name(&i.to_string())),
                    _ => None,
                };
                match ty.filter(|ty| ty.is_integer() || *ty == Scalar::Bool) {
                    Some(ty) => Some(Generic { name: c.ident.clone(), kind: GenericKind::Constant(ty) }),
                    None => {
                        let message = "a generic constant must be an integer or a `bool`";
                        self.refuse(syn::Error::new_spanned(&c.ty, message));
                        None
                    }
                }
            }
            // rustc checks lifetimes, which change no code.
            GenericParam::Lifetime(_) => None,
        }
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

    fn bounds(&mut self, bounds: &Punctuated<TypeParamBound, Token![+]>) -> Vec<TraitBound> {
        bounds
            .iter()
            .filter_map(|bound| match bound {
                TypeParamBound::Trait(t) => Some(self.bound_of(&t.path)),
                // A lifetime bound; every value on the device is `'static`.
                _ => None,
            })
            .collect()
    }

    fn bound_of(&mut self, path: &syn::Path) -> TraitBound {
        // The types of the language with an operator that returns the type itself.
        if let Some(last) = path.segments.last()
            && (has_output(&last.arguments) || last.ident.to_string().ends_with("Assign"))
            && self.trait_of_rust(path).is_some()
            && let Some(numbers) = language::numbers_with(&last.ident.to_string())
        {
            let name = Ident::new(numbers, last.ident.span());
            return TraitBound { path: self.path(&name.into()), signature: None };
        }
        let mut plain = path.clone();
        let mut signature = None;
        if let Some(last) = plain.segments.last_mut()
            && last.ident == "DeviceFn"
            && let syn::PathArguments::AngleBracketed(arguments) = std::mem::take(&mut last.arguments)
        {
            let (mut parameters, mut output) = (Vec::new(), None);
            for argument in &arguments.args {
                match argument {
                    syn::GenericArgument::Type(syn::Type::Tuple(t)) => {
                        parameters = t.elems.iter().map(|t| self.ty(t)).collect();
                    }
                    syn::GenericArgument::AssocType(a) if a.ident == "Output" => output = Some(self.ty(&a.ty)),
                    other => self.refuse(syn::Error::new_spanned(
                        other,
                        "`DeviceFn` takes a tuple of parameter types and an output type: `DeviceFn<(f32,), Output = f32>`",
                    )),
                }
            }
            match output {
                Some(output) => signature = Some((parameters, output)),
                None => self.refuse(syn::Error::new_spanned(
                    path,
                    "`DeviceFn` needs an output type: `DeviceFn<(f32,), Output = f32>`",
                )),
            }
        }
        TraitBound { path: self.path(&plain), signature }
    }

    /// Reads `self`, `&self`, `&mut self`
    pub(super) fn receiver(&mut self, receiver: &syn::Receiver) -> Option<Parameter> {
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

/// Returns whether generic arguments state the type `Output`, as in `Add<Output = T>`.
fn has_output(arguments: &syn::PathArguments) -> bool {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else { return false };
    arguments.args.iter().any(|a| matches!(a, syn::GenericArgument::AssocType(a) if a.ident == "Output"))
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

/// Returns a method as a free function with the same signature and body.
fn method_as_function(signature: &syn::Signature, block: &syn::Block) -> ItemFn {
    let (attrs, vis) = (Vec::new(), syn::Visibility::Inherited);
    ItemFn { attrs, vis, modifiers: Default::default(), sig: signature.clone(), block: Box::new(block.clone()) }
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

/// Returns whether an attribute places a constant: `#[device(global)]` on a constant inside a
/// device item.
pub fn is_placement(attribute: &syn::Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|s| s.ident == "device")
        && matches!(attribute.meta, syn::Meta::List(_))
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args::<Ident>().is_ok_and(|of| of == "test")
}

/// Returns the comparisons that a type derives.
fn derived(attributes: &[syn::Attribute]) -> DerivedComparisons {
    DerivedComparisons { equality: derives(attributes, "PartialEq"), order: derives(attributes, "PartialOrd") }
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

fn is_private(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Inherited)
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
