//! The public surface of the crates that users name, as snapshots: a removed or changed item shows
//! in the review of a change.
//!
//! `syn` reads the sources. The list has each public item that a path of the crate reaches, also
//! through `pub use` from a private module or another crate of this workspace. The list leaves out
//! items with `#[doc(hidden)]` and of `#[cfg(test)]`. Items that a macro of a crate makes are not
//! seen. Names of the compiler and of other crates are listed without their content.

use crate::{ROOT, published_crates};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use syn::{Attribute, FnArg, ImplItem, Item, TraitItem, UseTree, Visibility};

/// A crate or module: its items, and its modules with their visibility.
struct Module {
    items: Vec<Item>,
    modules: BTreeMap<String, (bool, Module)>,
}

/// A module or item: the name of its crate, then the names along its path.
type Location = Vec<String>;

fn public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Returns whether the item is for users: neither hidden nor of tests.
fn is_for_users(attributes: &[Attribute]) -> bool {
    let text = |a: &Attribute| a.meta.to_token_stream().to_string();
    !attributes.iter().map(text).any(|text| text == "doc (hidden)" || text == "cfg (test)")
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

impl Module {
    /// Reads a file whose modules are in `folder`.
    fn read(file: &Path, folder: &Path) -> Module {
        let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        Module::of(parsed.items, folder)
    }

    fn of(all: Vec<Item>, folder: &Path) -> Module {
        let (mut items, mut modules) = (Vec::new(), BTreeMap::new());
        for item in all.into_iter().filter(|item| is_for_users(attributes(item))) {
            let Item::Mod(module) = item else {
                items.push(item);
                continue;
            };
            let name = module.ident.to_string();
            let inner = folder.join(&name);
            let content = match module.content {
                Some((_, items)) => Module::of(items, &inner),
                None => {
                    let file = folder.join(format!("{name}.rs"));
                    Module::read(&if file.exists() { file } else { inner.join("mod.rs") }, &inner)
                }
            };
            modules.insert(name, (public(&module.vis), content));
        }
        Module { items, modules }
    }

    fn add_impls<'m>(&'m self, all: &mut Vec<&'m syn::ItemImpl>) {
        all.extend(self.items.iter().filter_map(|item| if let Item::Impl(i) = item { Some(i) } else { None }));
        self.modules.values().for_each(|(_, module)| module.add_impls(all));
    }
}

/// Joins tokens as rustfmt would, roughly.
fn tidy(tokens: impl ToTokens) -> String {
    let mut text = tokens.to_token_stream().to_string().replace('\n', " ");
    let pairs = [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" <", "<"),
        ("< ", "<"),
        (" >", ">"),
        (" ,", ","),
        (" ;", ";"),
        (" :", ":"),
        ("& ", "&"),
        (" (", "("),
        ("( ", "("),
        (" )", ")"),
        (" [", "["),
        ("[ ", "["),
        (" ]", "]"),
        (" .", "."),
        (" ?", "?"),
        ("->", " -> "),
        ("- >", "->"),
        (",)", ")"),
        (",>", ">"),
        ("  ", " "),
        ("  ", " "),
    ];
    for (from, to) in pairs {
        text = text.replace(from, to);
    }
    text
}

/// Returns the last name of a type's path.
fn type_name(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

fn signature(signature: &syn::Signature) -> String {
    let mut signature = signature.clone();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => receiver.attrs.clear(),
            FnArg::Typed(typed) => typed.attrs.clear(),
        }
    }
    tidy(signature)
}

fn field(field: &syn::Field) -> String {
    let name = field.ident.as_ref().map_or(String::new(), |name| format!("{name}: "));
    name + &tidy(&field.ty)
}

fn implementation(of: &syn::ItemImpl) -> Vec<String> {
    let generics = tidy(&of.generics);
    let head = tidy(&of.self_ty);
    if let Some((of_trait, _)) = &of.trait_ {
        return vec![format!("impl{generics} {} for {head}{}", tidy(of_trait), tidy(&of.generics.where_clause))];
    }
    let shown = of.items.iter().filter_map(|item| match item {
        ImplItem::Fn(f) if public(&f.vis) && is_for_users(&f.attrs) => Some(signature(&f.sig)),
        ImplItem::Const(c) if public(&c.vis) && is_for_users(&c.attrs) => {
            Some(format!("const {}: {}", c.ident, tidy(&c.ty)))
        }
        _ => None,
    });
    shown.map(|shown| format!("impl{generics} {head}: {shown}")).collect()
}

/// Crates of the workspace, by the name that Rust uses.
struct Crates(BTreeMap<String, Module>);

/// The list of a crate under construction.
#[derive(Default)]
struct Surface {
    lines: BTreeSet<String>,
    /// The path under which each location is listed.
    listed: BTreeMap<Location, String>,
    /// Modules to list: the path that users write, and the location.
    pending: VecDeque<(String, Location)>,
}

impl Crates {
    fn module(&self, location: &[String]) -> Option<&Module> {
        let (first, rest) = location.split_first()?;
        rest.iter().try_fold(self.0.get(first)?, |module, name| Some(&module.modules.get(name)?.1))
    }

    /// Returns the location that a path names in a module; `None` outside the workspace.
    fn resolve(&self, module: &[String], path: &[String]) -> Option<Location> {
        let (first, rest) = path.split_first()?;
        let start: Location = match first.as_str() {
            "crate" => vec![module[0].clone()],
            "self" => module.to_vec(),
            "super" => module[..module.len() - 1].to_vec(),
            name if self.module(module)?.modules.contains_key(name) || self.defines(module, name) => {
                return Some([module, path].concat());
            }
            name => {
                self.0.get(name)?;
                vec![name.to_string()]
            }
        };
        match rest.first().map(String::as_str) {
            Some("super") => self.resolve(&start, rest),
            _ => Some([&start, rest].concat()),
        }
    }

    /// Returns whether a location is a crate or a public module. Others cannot be reexported.
    fn is_public_module(&self, location: &[String]) -> bool {
        let Some((name, parent)) = location.split_last() else { return false };
        let of = |parent: &Module| parent.modules.get(name).is_some_and(|(is_public, _)| *is_public);
        parent.is_empty() && self.0.contains_key(name) || self.module(parent).is_some_and(of)
    }

    fn defines(&self, module: &[String], name: &str) -> bool {
        self.module(module).is_some_and(|module| module.items.iter().any(|item| named(item).is_some_and(|n| n == name)))
    }

    /// Returns the names of a `use`, each with its path; `*` names all.
    fn names(tree: &UseTree, path: &[String]) -> Vec<(String, Location)> {
        let with = |name: &syn::Ident| [path, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(inner) => Crates::names(&inner.tree, &with(&inner.ident)),
            UseTree::Name(name) if name.ident == "self" => {
                vec![(path.last().cloned().unwrap_or_default(), path.to_vec())]
            }
            UseTree::Name(name) => vec![(name.ident.to_string(), with(&name.ident))],
            UseTree::Rename(name) if name.ident == "self" => vec![(name.rename.to_string(), path.to_vec())],
            UseTree::Rename(name) => vec![(name.rename.to_string(), with(&name.ident))],
            UseTree::Glob(_) => vec![("*".to_string(), path.to_vec())],
            UseTree::Group(group) => group.items.iter().flat_map(|tree| Crates::names(tree, path)).collect(),
        }
    }

    /// Lists what a `pub use` makes available under `shown`.
    fn reexport(&self, surface: &mut Surface, shown: &str, module: &[String], path: &[String]) {
        let Some(location) = self.resolve(module, path) else {
            surface.lines.insert(format!("{shown} = {}", path.join("::")));
            return;
        };
        if self.is_public_module(&location) {
            surface.pending.push_back((shown.to_string(), location));
            return;
        }
        let Some((name, parent)) = location.split_last() else { return };
        let Some(of) = self.module(parent) else {
            surface.lines.insert(format!("{shown} = {}", path.join("::")));
            return;
        };
        let mut is_defined = false;
        for item in of.items.iter().filter(|item| named(item).is_some_and(|n| n == *name)) {
            self.item(surface, shown, parent, item);
            is_defined = true;
        }
        // If the module does not define the name, one of its `use` items imports it.
        for item in of.items.iter().filter(|_| !is_defined) {
            let Item::Use(used) = item else { continue };
            for (alias, path) in Crates::names(&used.tree, &[]) {
                if alias == *name {
                    self.reexport(surface, shown, parent, &path);
                }
            }
        }
    }

    fn modules(&self, surface: &mut Surface) {
        while let Some((shown, location)) = surface.pending.pop_front() {
            let Some(module) = self.module(&location) else { continue };
            let first = surface.listed.entry(location.clone()).or_insert_with(|| shown.clone());
            if *first != shown {
                let line = format!("{shown} = {first}");
                surface.lines.insert(line);
                continue;
            }
            self.content(surface, &shown, &location, module);
        }
    }

    fn content(&self, surface: &mut Surface, shown: &str, location: &[String], module: &Module) {
        for item in &module.items {
            match item {
                Item::Use(used) if public(&used.vis) => {
                    for (name, path) in Crates::names(&used.tree, &[]) {
                        match (name.as_str(), self.resolve(location, &path)) {
                            ("_", _) => {}
                            ("*", Some(all)) => {
                                if let Some(module) = self.module(&all) {
                                    self.content(surface, shown, &all, module);
                                }
                            }
                            _ => self.reexport(surface, &format!("{shown}::{name}"), location, &path),
                        }
                    }
                }
                item if is_public(item) => {
                    let name = named(item).unwrap_or_default();
                    self.item(surface, &format!("{shown}::{name}"), location, item);
                }
                _ => {}
            }
        }
        for (name, _) in module.modules.iter().filter(|(_, (is_public, _))| *is_public) {
            let inner = [location, std::slice::from_ref(name)].concat();
            surface.pending.push_back((format!("{shown}::{name}"), inner));
        }
    }

    fn item(&self, surface: &mut Surface, shown: &str, module: &[String], item: &Item) {
        let Some(name) = named(item) else { return };
        let kind = match item {
            Item::Fn(_) => "()",
            Item::Macro(_) => "!",
            _ => "",
        };
        let location = [module, &[format!("{name}{kind}")]].concat();
        let first = surface.listed.entry(location).or_insert_with(|| shown.to_string());
        if *first != shown {
            let line = format!("{shown} = {first}");
            surface.lines.insert(line);
            return;
        }
        let mut add = |line: String| surface.lines.insert(format!("{shown}: {line}"));
        let fields = |fields: &syn::Fields| {
            let shown: Vec<_> = fields.iter().filter(|f| is_for_users(&f.attrs)).map(field).collect();
            shown.join(", ")
        };
        match item {
            Item::Const(i) => add(format!("const {}", tidy(&i.ty))),
            Item::Static(i) => add(format!("static {}", tidy(&i.ty))),
            Item::Type(i) => add(format!("type{} = {}", tidy(&i.generics), tidy(&i.ty))),
            Item::Fn(i) => add(signature(&i.sig)),
            Item::Macro(_) => add("macro".to_string()),
            Item::Struct(i) => {
                add(format!("struct{} {}", tidy(&i.generics), tidy(&i.generics.where_clause)).trim_end().to_string());
                for f in i.fields.iter().filter(|f| public(&f.vis) && is_for_users(&f.attrs)) {
                    add(format!("pub {}", field(f)));
                }
                true
            }
            Item::Enum(i) => {
                add(format!("enum{}", tidy(&i.generics)));
                for v in i.variants.iter().filter(|v| is_for_users(&v.attrs)) {
                    add(format!("variant {} {}", v.ident, fields(&v.fields)).trim_end().to_string());
                }
                true
            }
            Item::Trait(i) => {
                add(format!("trait{}: {}", tidy(&i.generics), tidy(&i.supertraits)));
                for item in &i.items {
                    match item {
                        TraitItem::Fn(f) if is_for_users(&f.attrs) => {
                            let provided = if f.default.is_some() { " { … }" } else { "" };
                            add(format!("trait {}{provided}", signature(&f.sig)));
                        }
                        TraitItem::Const(c) if is_for_users(&c.attrs) => {
                            add(format!("trait const {}: {}", c.ident, tidy(&c.ty)));
                        }
                        TraitItem::Type(t) if is_for_users(&t.attrs) => {
                            add(format!("trait type {}: {}", t.ident, tidy(&t.bounds)));
                        }
                        _ => {}
                    }
                }
                true
            }
            _ => false,
        };
        if matches!(item, Item::Struct(_) | Item::Enum(_)) {
            let mut impls = Vec::new();
            if let Some(module) = self.0.get(&module[0]) {
                module.add_impls(&mut impls);
            }
            for of in impls.iter().filter(|of| type_name(&of.self_ty).as_deref() == Some(name.as_str())) {
                implementation(of).into_iter().for_each(|line| {
                    add(line);
                });
            }
        }
    }
}

/// Returns the name of an item. A macro has one if other crates can name it.
fn named(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(i) => i.ident.to_string(),
        Item::Enum(i) => i.ident.to_string(),
        Item::Fn(i) => i.sig.ident.to_string(),
        Item::Static(i) => i.ident.to_string(),
        Item::Struct(i) => i.ident.to_string(),
        Item::Trait(i) => i.ident.to_string(),
        Item::Type(i) => i.ident.to_string(),
        Item::Macro(i) if i.attrs.iter().any(|a| a.path().is_ident("macro_export")) => i.ident.as_ref()?.to_string(),
        _ => return None,
    })
}

fn is_public(item: &Item) -> bool {
    match item {
        Item::Const(i) => public(&i.vis),
        Item::Enum(i) => public(&i.vis),
        Item::Fn(i) => public(&i.vis),
        Item::Static(i) => public(&i.vis),
        Item::Struct(i) => public(&i.vis),
        Item::Trait(i) => public(&i.vis),
        Item::Type(i) => public(&i.vis),
        _ => false,
    }
}

/// Returns the list of a crate, a line for each item, field, variant, method and trait.
fn surface(crates: &Crates, name: &str) -> String {
    let mut surface = Surface::default();
    surface.pending.push_back((name.to_string(), vec![name.to_string()]));
    // A macro with `#[macro_export]` is at the root of its crate, wherever it is defined.
    let mut modules: Vec<_> = crates.0.get(name).into_iter().collect();
    while let Some(module) = modules.pop() {
        modules.extend(module.modules.values().map(|(_, module)| module));
        for item in module.items.iter().filter(|item| matches!(item, Item::Macro(_))) {
            surface.lines.extend(named(item).map(|macro_name| format!("{name}::{macro_name}: macro")));
        }
    }
    crates.modules(&mut surface);
    surface.lines.into_iter().map(|line| line + "\n").collect()
}

/// Crates that users do not name: the list has their names without their content.
const UNNAMED: [&str; 2] = ["kernel-dsl/compiler", "kernel-macros"];

fn workspace() -> Crates {
    let read = |(folder, manifest): (String, String)| {
        let source = Path::new(ROOT).join(folder).join("src");
        let name = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        (name.expect("a name").replace('-', "_"), Module::read(&source.join("lib.rs"), &source))
    };
    let named = published_crates().into_iter().filter(|(folder, _)| !UNNAMED.contains(&folder.as_str()));
    Crates(named.map(read).collect())
}

/// Compares the surface of the crates that `kernel-dsl/docs/crates.md` promises.
#[test]
fn the_public_surface_is_the_reviewed_one() {
    let crates = workspace();
    for name in ["kernel_dsl", "runtime", "kernels_rs", "kernels_rs_command"] {
        insta::assert_snapshot!(name, surface(&crates, name));
    }
}

/// Checks that the list has an item reached by each way, and none that users cannot name.
#[test]
fn items_are_found_where_users_name_them() {
    let text = "
        mod private {
            mod Shown { pub fn unseen() {} }
            pub struct Shown<T> { pub a: T, b: u8 }
            pub struct Unnamed;
            impl<T> Shown<T> { pub fn get(&self) -> &T { &self.a } fn own(&self) {} #[doc(hidden)] pub fn internal(&self) {} }
            pub mod inner { pub fn f(x: u32) {} pub(crate) fn g() {} }
        }
        pub use private::{Shown, inner as renamed};
        pub use other::*;
        #[doc(hidden)] pub mod hidden { pub fn h() {} }
        #[cfg(test)] pub mod tests { pub fn t() {} }
        pub mod prelude { pub use crate::Shown; }
    ";
    let module = |text: &str| Module::of(syn::parse_file(text).expect("a file").items, Path::new(""));
    let other = module("mod deep { pub enum E { A(u8), B { x: i8 } } } pub use deep::E; fn private() {}");
    let crates = Crates([("one".to_string(), module(text)), ("other".to_string(), other)].into());
    let expected = "\
one::E: enum
one::E: variant A u8
one::E: variant B x: i8
one::Shown: impl<T> Shown<T>: fn get(&self) -> &T
one::Shown: pub a: T
one::Shown: struct<T>
one::prelude::Shown = one::Shown
one::renamed::f: fn f(x: u32)
";
    assert_eq!(surface(&crates, "one"), expected);
}
