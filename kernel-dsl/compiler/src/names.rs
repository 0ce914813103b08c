//! Names in a text that rustc does not read: duplicate declarations, items out of scope, private
//! items of modules, and impls that do not fit their traits.
//!
//! The checker finds an item by the last name of its path. This module decides whether Rust would
//! find the item there.

use crate::language;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use syn::visit::{self, Visit};
use syn::{Ident, Item, ItemImpl, Member, Pat, Visibility};

/// Returns the mistakes in the names of a file.
pub(crate) fn mistakes(file: &syn::File) -> Vec<syn::Error> {
    let mut modules = NameModules::default();
    modules.add(None, &file.items);
    // The methods of an associated type's bounds need no import.
    let mut bounds = BoundList(BTreeSet::new());
    for item in modules.traits.values().flat_map(|of| &of.items) {
        if let syn::TraitItem::Type(ty) = item {
            bounds.visit_trait_item_type(ty);
        }
    }
    let mut names = NameVisitor {
        modules: &modules,
        module: 0,
        generics: Vec::new(),
        bounds: bounds.0,
        bound: BTreeSet::new(),
        found: Vec::new(),
    };
    names.items(&file.items);
    names.visit_file(file);
    names.found
}

/// The number of imports that lead from one to the next.
const MAX_IMPORTS: u32 = 8;

/// The modules of a file; the first is the file itself.
#[derive(Default)]
struct NameModules<'f> {
    all: Vec<NameModule<'f>>,
    /// The modules that declare an item of a name.
    declared: HashMap<String, Vec<usize>>,
    /// The traits, by name.
    traits: HashMap<String, &'f syn::ItemTrait>,
    /// The names of the functions of impls without a trait.
    inherent: BTreeSet<String>,
    /// The types with an `impl Clone`.
    cloned: BTreeSet<String>,
}

#[derive(Default)]
struct NameModule<'f> {
    parent: Option<usize>,
    items: HashMap<String, DeclaredName>,
    /// The imports: the path, and the name that it gets, or `*`.
    imports: Vec<(Vec<String>, String)>,
    inner: HashMap<*const syn::ItemMod, usize>,
    of: std::marker::PhantomData<&'f ()>,
}

#[derive(Clone, Copy)]
struct DeclaredName {
    public: bool,
    module: Option<usize>,
}

/// The result of looking for a path.
enum PathLookup {
    Found,
    /// The item is private.
    Private(String),
    /// The name is not in scope.
    Missing,
    /// The path leaves the file.
    Foreign,
}

impl<'f> NameModules<'f> {
    fn add(&mut self, parent: Option<usize>, items: &'f [Item]) -> usize {
        let at = self.all.len();
        self.all.push(NameModule { parent, ..NameModule::default() });
        for item in items {
            let mut inner = None;
            if let Item::Mod(module) = item
                && let Some((_, items)) = &module.content
            {
                let new = self.add(Some(at), items);
                self.all[at].inner.insert(module, new);
                inner = Some(new);
            }
            if let Item::Trait(item) = item {
                self.traits.insert(item.ident.to_string(), item);
            }
            if let Item::Impl(i) = item
                && i.trait_.as_ref().is_some_and(|(path, _)| path.segments.last().is_some_and(|s| s.ident == "Clone"))
            {
                idents(quote::ToTokens::to_token_stream(&i.self_ty), &mut self.cloned);
            }
            if let Item::Impl(i) = item
                && i.trait_.is_none()
            {
                self.inherent.extend(i.items.iter().filter_map(member_name).map(|name| name.to_string()));
            }
            if let Item::Use(import) = item {
                imported(&import.tree, &mut Vec::new(), &mut self.all[at].imports);
            }
            if let Some((name, visibility)) = name_of(item) {
                let declared = DeclaredName { public: !matches!(visibility, Visibility::Inherited), module: inner };
                self.all[at].items.insert(name.to_string(), declared);
                self.declared.entry(name.to_string()).or_default().push(at);
            }
        }
        at
    }

    /// Returns whether code of the module `from` sees private items of `of`.
    fn sees(&self, mut from: usize, of: usize) -> bool {
        loop {
            if from == of {
                return true;
            }
            match self.all[from].parent {
                Some(parent) => from = parent,
                None => return false,
            }
        }
    }

    /// Looks for the item that a path names in a module. `from` is the module of the path.
    fn find(&self, path: &[String], module: usize, from: usize) -> PathLookup {
        self.find_below(path, module, from, true, 0)
    }

    /// Looks for the item that a path names in a module. `globs` says whether the first name may
    /// come from an import with `*`.
    fn find_below(&self, path: &[String], module: usize, from: usize, globs: bool, depth: u32) -> PathLookup {
        let Some((first, rest)) = path.split_first() else { return PathLookup::Found };
        if depth > MAX_IMPORTS {
            return PathLookup::Foreign;
        }
        let next = |module: usize| self.find_below(rest, module, from, true, depth + 1);
        let here = &self.all[module];
        match first.as_str() {
            "crate" => return next(0),
            "self" => return next(module),
            "super" => return here.parent.map_or(PathLookup::Foreign, next),
            _ => {}
        }
        if let Some(declared) = here.items.get(first) {
            if !declared.public && !self.sees(from, module) {
                return PathLookup::Private(first.clone());
            }
            return match declared.module {
                Some(inner) if !rest.is_empty() => next(inner),
                // The rest is an associated item or a variant.
                _ => PathLookup::Found,
            };
        }
        let of_import = |path: &[String], from: usize| {
            let whole: Vec<String> = path.iter().chain(rest).cloned().collect();
            self.find_below(&whole, module, from, false, depth + 1)
        };
        if let Some((path, _)) = here.imports.iter().find(|(_, name)| name == first) {
            // An import is checked where it is written.
            return match of_import(path, module) {
                PathLookup::Found => PathLookup::Found,
                _ => PathLookup::Foreign,
            };
        }
        if !globs {
            return PathLookup::Missing;
        }
        let mut foreign = false;
        for (path, _) in here.imports.iter().filter(|(_, name)| name == "*") {
            let whole: Vec<String> = path.iter().chain([first]).cloned().collect();
            match of_import(&whole, module) {
                PathLookup::Found => return PathLookup::Found,
                PathLookup::Foreign => foreign = true,
                PathLookup::Private(_) | PathLookup::Missing => {}
            }
        }
        if foreign { PathLookup::Foreign } else { PathLookup::Missing }
    }
}

/// Collects the names that an import makes.
fn imported(tree: &syn::UseTree, path: &mut Vec<String>, all: &mut Vec<(Vec<String>, String)>) {
    let with = |path: &[String], name: &Ident| path.iter().cloned().chain([name.to_string()]).collect::<Vec<_>>();
    match tree {
        syn::UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            imported(&inner.tree, path, all);
            path.pop();
        }
        syn::UseTree::Name(name) if name.ident == "self" => {
            if let Some(last) = path.last() {
                all.push((path.clone(), last.clone()));
            }
        }
        syn::UseTree::Name(name) => all.push((with(path, &name.ident), name.ident.to_string())),
        syn::UseTree::Rename(name) => all.push((with(path, &name.ident), name.rename.to_string())),
        syn::UseTree::Glob(_) => all.push((path.clone(), "*".to_string())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, path, all)),
    }
}

fn name_of(item: &Item) -> Option<(&Ident, &Visibility)> {
    Some(match item {
        Item::Fn(i) => (&i.sig.ident, &i.vis),
        Item::Struct(i) => (&i.ident, &i.vis),
        Item::Enum(i) => (&i.ident, &i.vis),
        Item::Const(i) => (&i.ident, &i.vis),
        Item::Static(i) => (&i.ident, &i.vis),
        Item::Mod(i) => (&i.ident, &i.vis),
        Item::Type(i) => (&i.ident, &i.vis),
        Item::Trait(i) => (&i.ident, &i.vis),
        _ => return None,
    })
}

/// Visits a file for mistakes.
struct NameVisitor<'m, 'f> {
    modules: &'m NameModules<'f>,
    /// The module of the current item.
    module: usize,
    /// The generic parameters in scope.
    generics: Vec<String>,
    /// The traits whose methods need no import here, because they bound a type.
    bounds: BTreeSet<String>,
    /// The variables of the current function.
    bound: BTreeSet<String>,
    found: Vec<syn::Error>,
}

impl NameVisitor<'_, '_> {
    fn report(&mut self, place: &impl quote::ToTokens, message: String) {
        self.found.push(syn::Error::new_spanned(place, message));
    }

    /// Reports names that occur twice. `what` says what the names are.
    fn twice<'n>(&mut self, names: impl IntoIterator<Item = &'n Ident>, what: &str) {
        let mut seen = BTreeSet::new();
        for name in names {
            if !seen.insert(name.to_string()) {
                self.report(name, format!("{what} `{name}` is declared twice: rename or remove one"));
            }
        }
    }

    /// Reports items of one name in a module.
    fn items(&mut self, items: &[Item]) {
        let of_types = items.iter().filter_map(|item| match item {
            Item::Struct(_) | Item::Enum(_) | Item::Mod(_) | Item::Type(_) | Item::Trait(_) => name_of(item),
            _ => None,
        });
        self.twice(of_types.map(|(name, _)| name), "the item");
        let of_values = items.iter().filter_map(|item| match item {
            Item::Fn(_) | Item::Const(_) | Item::Static(_) => name_of(item),
            Item::Struct(s) if !matches!(s.fields, syn::Fields::Named(_)) => name_of(item),
            _ => None,
        });
        self.twice(of_values.map(|(name, _)| name), "the item");
        let mut impls = BTreeSet::new();
        let mut methods = BTreeMap::<String, Vec<&Ident>>::new();
        for item in items {
            let Item::Impl(i) = item else { continue };
            let of = quote::ToTokens::to_token_stream(&i.self_ty).to_string();
            match &i.trait_ {
                Some((path, _)) => {
                    let key = format!("{} for {of}", quote::ToTokens::to_token_stream(path));
                    if i.generics.params.is_empty() && !impls.insert(key.clone()) {
                        self.report(path, format!("`impl {key}` exists twice: remove one"));
                    }
                }
                None => methods.entry(of).or_default().extend(i.items.iter().filter_map(member_name)),
            }
        }
        for names in methods.into_values() {
            self.twice(names, "the associated item");
        }
    }

    /// Reports a path whose item Rust does not find, or does not let code here name.
    fn path(&mut self, path: &syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        let [first, ..] = names.as_slice() else { return };
        if path.leading_colon.is_some()
            || first == "Self"
            || self.generics.contains(first)
            || names.len() == 1 && self.bound.contains(first)
        {
            return;
        }
        match self.modules.find(&names, self.module, self.module) {
            PathLookup::Found | PathLookup::Foreign => {}
            PathLookup::Private(name) => {
                self.report(path, format!("`{name}` is private to its module: declare it `pub`"));
            }
            PathLookup::Missing => {
                // NameVisitor that no module of the file declares belong to the language.
                let declared = |name: &String| self.modules.declared.contains_key(name);
                let is_path = names.len() > 1
                    && self.modules.all.iter().any(|m| m.items.get(first).is_some_and(|d| d.module.is_some()));
                if declared(first) || is_path {
                    self.report(
                        path,
                        format!(
                            "`{}` is not in scope here: import it, `use …::{first};`, or write its whole path",
                            names.join("::")
                        ),
                    );
                }
            }
        }
    }

    /// Adds the traits of bounds to those in scope. Returns those from before.
    fn bounded_by(&mut self, visit: impl FnOnce(&mut BoundList)) -> BTreeSet<String> {
        let mut list = BoundList(self.bounds.clone());
        visit(&mut list);
        std::mem::replace(&mut self.bounds, list.0)
    }

    /// Visits a function with its variables, generic parameters and bounds in scope.
    fn within_function(
        &mut self,
        names: PatternNameList<'_>,
        signature: &syn::Signature,
        visit: impl FnOnce(&mut Self),
    ) {
        let names = names.0.iter().map(|name| name.to_string()).collect();
        let outer = std::mem::replace(&mut self.bound, names);
        let bounds = self.bounded_by(|list| list.visit_signature(signature));
        let depth = self.generics_of(&signature.generics);
        visit(self);
        self.generics.truncate(depth);
        (self.bound, self.bounds) = (outer, bounds);
    }

    /// Reports a method that only traits declare, of which none is in scope.
    fn method(&mut self, name: &Ident) {
        let declares = |of: &&&syn::ItemTrait| of.items.iter().any(|item| trait_item_name(item) == Some(name));
        let mut traits = self.modules.traits.values().filter(declares).peekable();
        let text = name.to_string();
        let other = self.modules.inherent.contains(&text)
            || language::METHODS.iter().any(|method| text == method.name)
            || language::OPTION_METHODS.contains(&text.as_str())
            || language::RESULT_METHODS.contains(&text.as_str());
        if other || traits.peek().is_none() {
            return;
        }
        let in_scope = |of: &syn::ItemTrait| {
            let of = of.ident.to_string();
            self.bounds.contains(&of)
                || !matches!(self.modules.find(&[of], self.module, self.module), PathLookup::Missing)
        };
        let missing: Vec<_> = traits.map(|of| (of.ident.to_string(), in_scope(of))).collect();
        if missing.iter().all(|(_, found)| !found) {
            let of = &missing[0].0;
            self.report(
                name,
                format!(
                    "`{name}` is a method of the trait `{of}`, which is not in scope here: import it, `use …::{of};`"
                ),
            );
        }
    }

    /// Reports a type that derives `Copy` and is not `Clone`.
    fn copied(&mut self, attributes: &[syn::Attribute], name: &Ident) {
        let mut derived = BTreeSet::new();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("derive")) {
            idents(quote::ToTokens::to_token_stream(&attribute.meta), &mut derived);
        }
        if derived.contains("Copy") && !derived.contains("Clone") && !self.modules.cloned.contains(&name.to_string()) {
            self.report(
                name,
                format!("`{name}` derives `Copy` and not `Clone`: derive both, `#[derive(Clone, Copy)]`"),
            );
        }
    }

    fn pattern_names(&mut self, patterns: &[&Pat]) {
        let mut names = PatternNameList(Vec::new());
        patterns.iter().for_each(|pattern| names.visit_pat(pattern));
        let names = names.0;
        let mut seen = BTreeSet::new();
        for name in &names {
            if !seen.insert(name.to_string()) {
                self.report(
                    name,
                    format!("the name `{name}` is bound twice in one pattern or parameter list: rename one"),
                );
            }
        }
    }

    fn generics_of(&mut self, generics: &syn::Generics) -> usize {
        let depth = self.generics.len();
        for parameter in &generics.params {
            let name = match parameter {
                syn::GenericParam::Type(t) => &t.ident,
                syn::GenericParam::Const(c) => &c.ident,
                syn::GenericParam::Lifetime(_) => continue,
            };
            if self.generics.contains(&name.to_string()) {
                self.report(name, format!("the generic parameter `{name}` is declared twice: rename one"));
            }
            self.generics.push(name.to_string());
        }
        depth
    }

    /// Reports items that an impl of a trait lacks, or that the trait does not have.
    fn of_trait(&mut self, i: &ItemImpl) {
        let Some((path, _)) = &i.trait_ else { return };
        let Some(last) = path.segments.last() else { return };
        let mut names: Vec<&Ident> = i.items.iter().filter_map(member_name).collect();
        names.sort();
        self.twice(names, "the associated item");
        if let Some((receiver, count)) = operator_form(&last.ident.to_string())
            && !self.modules.traits.contains_key(&last.ident.to_string())
        {
            for item in &i.items {
                if let syn::ImplItem::Fn(f) = item
                    && (receiver_form(&f.sig) != Some(receiver) || f.sig.inputs.len() != count)
                {
                    let message = format!(
                        "`{}` of the trait `{}` takes `{receiver}` and {} more",
                        f.sig.ident,
                        last.ident,
                        count - 1
                    );
                    self.report(&f.sig.ident, message);
                }
            }
        }
        let Some(declared) = self.modules.traits.get(&last.ident.to_string()).copied() else { return };
        for item in &i.items {
            let Some(name) = member_name(item) else { continue };
            match declared.items.iter().find(|d| trait_item_name(d) == Some(name)) {
                None => {
                    self.report(
                        name,
                        format!("the trait `{}` has no item `{name}`: remove it, or declare it there", last.ident),
                    );
                }
                Some(syn::TraitItem::Fn(wanted)) => {
                    if let syn::ImplItem::Fn(given) = item {
                        self.signature(&wanted.sig, &given.sig, &last.ident);
                    }
                }
                Some(_) => {}
            }
        }
        for wanted in &declared.items {
            let provided = match wanted {
                syn::TraitItem::Fn(f) => f.default.is_some(),
                syn::TraitItem::Const(c) => c.default.is_some(),
                syn::TraitItem::Type(t) => t.default.is_some(),
                _ => true,
            };
            let Some(name) = trait_item_name(wanted).filter(|_| !provided) else { continue };
            if !i.items.iter().any(|item| member_name(item) == Some(name)) {
                self.report(path, format!("this impl lacks `{name}` of the trait `{}`: add it", last.ident));
            }
        }
    }

    /// Reports a function of an impl whose parameters differ from those of its trait.
    fn signature(&mut self, wanted: &syn::Signature, given: &syn::Signature, of: &Ident) {
        let (wanted_form, given_form) = (receiver_form(wanted), receiver_form(given));
        let differs = wanted.inputs.len() != given.inputs.len()
            || wanted.generics.params.len() != given.generics.params.len()
            || wanted_form != given_form;
        if differs {
            self.report(
                &given.ident,
                format!(
                    "the parameters of `{}` differ from those that the trait `{of}` declares: make them equal",
                    given.ident
                ),
            );
        }
    }
}

/// Returns how a function takes its receiver, if it has one.
fn receiver_form(signature: &syn::Signature) -> Option<&'static str> {
    signature.receiver().map(|receiver| match &receiver.kind {
        syn::ReceiverKind::Reference(_, _, Some(_)) => "&mut self",
        syn::ReceiverKind::Reference(_, _, None) => "&self",
        _ => "self",
    })
}

/// Returns the receiver, and the number of parameters with it, of the function of an operator's
/// trait.
fn operator_form(of_trait: &str) -> Option<(&'static str, usize)> {
    Some(match of_trait {
        "Add" | "Sub" | "Mul" | "Div" | "Rem" | "BitAnd" | "BitOr" | "BitXor" | "Shl" | "Shr" => ("self", 2),
        "AddAssign" | "SubAssign" | "MulAssign" | "DivAssign" | "RemAssign" => ("&mut self", 2),
        "BitAndAssign" | "BitOrAssign" | "BitXorAssign" | "ShlAssign" | "ShrAssign" => ("&mut self", 2),
        "Neg" | "Not" => ("self", 1),
        "Index" => ("&self", 2),
        "IndexMut" => ("&mut self", 2),
        _ => return None,
    })
}

fn member_name(item: &syn::ImplItem) -> Option<&Ident> {
    match item {
        syn::ImplItem::Fn(f) => Some(&f.sig.ident),
        syn::ImplItem::Const(c) => Some(&c.ident),
        syn::ImplItem::Type(t) => Some(&t.ident),
        _ => None,
    }
}

fn trait_item_name(item: &syn::TraitItem) -> Option<&Ident> {
    match item {
        syn::TraitItem::Fn(f) => Some(&f.sig.ident),
        syn::TraitItem::Const(c) => Some(&c.ident),
        syn::TraitItem::Type(t) => Some(&t.ident),
        _ => None,
    }
}

/// The last names of the traits in bounds.
struct BoundList(BTreeSet<String>);

impl<'b> Visit<'b> for BoundList {
    fn visit_trait_bound(&mut self, bound: &'b syn::TraitBound) {
        self.0.extend(bound.path.segments.last().map(|last| last.ident.to_string()));
    }
}

/// The names that patterns bind. Of alternatives, the first counts.
struct PatternNameList<'p>(Vec<&'p Ident>);

impl<'p> Visit<'p> for PatternNameList<'p> {
    fn visit_pat_ident(&mut self, pattern: &'p syn::PatIdent) {
        // A name in capitals may be that of a constant or unit struct.
        if !pattern.ident.to_string().starts_with(|c: char| c.is_uppercase()) {
            self.0.push(&pattern.ident);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_pat_or(&mut self, pattern: &'p syn::PatOr) {
        if let Some(first) = pattern.cases.first() {
            self.visit_pat(first);
        }
    }

    fn visit_expr(&mut self, _: &'p syn::Expr) {}
}

/// Returns whether the item is part of a kernel's program, and not of a host.
fn of_device(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| a.path().segments.last().is_some_and(|s| s.ident == "kernel" || s.ident == "device"))
}

impl<'a> Visit<'a> for NameVisitor<'_, '_> {
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        let Some((_, items)) = &module.content else { return };
        let pointer: *const syn::ItemMod = module;
        let Some(inner) = self.modules.all[self.module].inner.get(&pointer).copied() else { return };
        let outer = std::mem::replace(&mut self.module, inner);
        self.items(items);
        visit::visit_item_mod(self, module);
        self.module = outer;
    }

    fn visit_item_use(&mut self, import: &'a syn::ItemUse) {
        let mut all = Vec::new();
        imported(&import.tree, &mut Vec::new(), &mut all);
        for (path, _) in all {
            let here = &self.modules.all[self.module];
            let of_file = path.first().is_some_and(|first| {
                ["self", "super", "crate"].contains(&first.as_str())
                    || here.items.get(first).is_some_and(|declared| declared.module.is_some())
            });
            if !of_file {
                continue;
            }
            match self.modules.find(&path, self.module, self.module) {
                PathLookup::Private(name) => {
                    self.report(&import.tree, format!("`{name}` is private to its module: declare it `pub`"));
                }
                PathLookup::Missing => {
                    self.report(
                        &import.tree,
                        format!("there is no item `{}` to import: correct the path", path.join("::")),
                    );
                }
                PathLookup::Found | PathLookup::Foreign => {}
            }
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        // The host's own functions are no part of the program.
        if self.module == 0 && !of_device(&item.attrs) {
            return;
        }
        let mut names = PatternNameList(Vec::new());
        names.visit_item_fn(item);
        self.within_function(names, &item.sig, |visitor| visit::visit_item_fn(visitor, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        let mut names = PatternNameList(Vec::new());
        names.visit_impl_item_fn(item);
        self.within_function(names, &item.sig, |visitor| visit::visit_impl_item_fn(visitor, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        let mut names = PatternNameList(Vec::new());
        names.visit_trait_item_fn(item);
        self.within_function(names, &item.sig, |visitor| visit::visit_trait_item_fn(visitor, item));
    }

    fn visit_item_impl(&mut self, item: &'a ItemImpl) {
        self.of_trait(item);
        let depth = self.generics_of(&item.generics);
        let bounds = self.bounded_by(|list| list.visit_generics(&item.generics));
        visit::visit_item_impl(self, item);
        self.generics.truncate(depth);
        self.bounds = bounds;
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.twice(item.items.iter().filter_map(trait_item_name), "the associated item");
        let bounds =
            self.bounded_by(|list| item.supertraits.iter().for_each(|bound| list.visit_type_param_bound(bound)));
        visit::visit_item_trait(self, item);
        self.bounds = bounds;
    }

    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.copied(&item.attrs, &item.ident);
        self.twice(item.fields.iter().filter_map(|field| field.ident.as_ref()), "the field");
        let depth = self.generics_of(&item.generics);
        self.unused_generics(&item.generics, &item.fields);
        visit::visit_item_struct(self, item);
        self.generics.truncate(depth);
    }

    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.copied(&item.attrs, &item.ident);
        self.twice(item.variants.iter().map(|variant| &variant.ident), "the variant");
        for variant in &item.variants {
            self.twice(variant.fields.iter().filter_map(|field| field.ident.as_ref()), "the field");
        }
        let depth = self.generics_of(&item.generics);
        self.unused_generics(&item.generics, &item.variants);
        visit::visit_item_enum(self, item);
        self.generics.truncate(depth);
    }

    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        let depth = self.generics_of(&item.generics);
        visit::visit_item_type(self, item);
        self.generics.truncate(depth);
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        let patterns: Vec<&Pat> = signature
            .inputs
            .iter()
            .filter_map(|input| match input {
                syn::FnArg::Typed(input) => Some(&*input.pat),
                syn::FnArg::Receiver(_) => None,
            })
            .collect();
        self.pattern_names(&patterns);
        visit::visit_signature(self, signature);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        self.pattern_names(&[&local.pat]);
        visit::visit_local(self, local);
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        self.pattern_names(&[&arm.pat]);
        visit::visit_arm(self, arm);
    }

    fn visit_expr_for_loop(&mut self, each: &'a syn::ExprForLoop) {
        self.pattern_names(&[&each.pat]);
        visit::visit_expr_for_loop(self, each);
    }

    fn visit_expr_closure(&mut self, closure: &'a syn::ExprClosure) {
        self.pattern_names(&closure.inputs.iter().collect::<Vec<_>>());
        visit::visit_expr_closure(self, closure);
    }

    fn visit_expr_struct(&mut self, literal: &'a syn::ExprStruct) {
        let names: Vec<&Member> = literal.fields.iter().map(|field| &field.member).collect();
        self.members(&names);
        visit::visit_expr_struct(self, literal);
    }

    fn visit_pat_struct(&mut self, pattern: &'a syn::PatStruct) {
        let names: Vec<&Member> = pattern.fields.iter().map(|field| &field.member).collect();
        self.members(&names);
        visit::visit_pat_struct(self, pattern);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        self.method(&call.method);
        visit::visit_expr_method_call(self, call);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.path(path);
        visit::visit_path(self, path);
    }

    // The paths of macros and their tokens are not resolved here.
    fn visit_macro(&mut self, _: &'a syn::Macro) {}
}

impl NameVisitor<'_, '_> {
    fn members(&mut self, names: &[&Member]) {
        let mut seen = BTreeSet::new();
        for name in names {
            let text = quote::ToTokens::to_token_stream(name).to_string();
            if !seen.insert(text.clone()) {
                self.report(name, format!("the field `{text}` is named twice: remove one"));
            }
        }
    }

    /// Reports type parameters that no field names.
    fn unused_generics(&mut self, generics: &syn::Generics, fields: &impl quote::ToTokens) {
        let mut used = BTreeSet::new();
        idents(quote::ToTokens::to_token_stream(fields), &mut used);
        for parameter in &generics.params {
            if let syn::GenericParam::Type(t) = parameter
                && !used.contains(&t.ident.to_string())
            {
                let name = &t.ident;
                self.report(name, format!("no field uses the type parameter `{name}`: use it, or remove it"));
            }
        }
    }
}

fn idents(tokens: proc_macro2::TokenStream, all: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Ident(ident) => drop(all.insert(ident.to_string())),
            proc_macro2::TokenTree::Group(group) => idents(group.stream(), all),
            _ => {}
        }
    }
}
