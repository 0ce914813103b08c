//! The right programs that mutants are made of.

use super::witness::RustcWitness;
use super::{text, verdict};
use crate::generate;
use std::collections::BTreeSet;
use syn::visit::Visit;
use syn::{File, Item};

/// The files whose kernels are programs.
const FILES: [&str; 12] = [
    include_str!("seeds.txt"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/cases.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/closures.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/collectives.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/control.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/functions.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/gaps.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/iterate.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/memory.rs"),
    include_str!("../../../../kernel-dsl/compiler/tests/frontend/lowered/values.rs"),
    include_str!("../../../tests/language/constructs/items.rs"),
    include_str!("../../../tests/language/items.rs"),
];

/// The generated kernels among the programs.
const GENERATED: u64 = 12;

/// Returns the right programs: those that rustc and our checker accept.
///
/// # Errors
/// A message, if rustc does not run.
pub fn right(witness: &RustcWitness) -> Result<Vec<File>, String> {
    let all = all();
    let errors = witness.errors(&all)?;
    let accepted = |program: &File| verdict::refusal(&text(program)).is_none();
    Ok(all
        .into_iter()
        .zip(errors)
        .filter(|(program, error)| error.is_none() && accepted(program))
        .map(|(p, _)| p)
        .collect())
}

/// Returns the programs of the files, and generated ones.
pub fn all() -> Vec<File> {
    let generated = (0..GENERATED).flat_map(|seed| programs(&generate::kernel(seed).to_string()));
    FILES.iter().flat_map(|file| programs(file)).chain(generated).collect()
}

/// Returns a program for each kernel of a file, with the items that it names.
fn programs(file: &str) -> Vec<File> {
    let Ok(parsed) = syn::parse_file(file) else { return Vec::new() };
    let mut items = Vec::new();
    collect(parsed.items.clone(), &mut items);
    let (kernels, others): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| is_marked(item, "kernel"));
    let empty = File { items: Vec::new(), attrs: Vec::new(), ..parsed };
    let program = |kernel: Item| {
        let mut names = ItemIdents::default();
        names.visit_item(&kernel);
        let mut kept = vec![false; others.len()];
        loop {
            let new = |at: &usize| !kept[*at] && declared(&others[*at]).iter().any(|name| names.0.contains(name));
            let Some(at) = (0..others.len()).find(new) else { break };
            kept[at] = true;
            names.visit_item(&others[at]);
        }
        let mut items: Vec<Item> = others.iter().zip(kept).filter(|(_, kept)| *kept).map(|(i, _)| i.clone()).collect();
        items.push(kernel);
        File { items, ..empty.clone() }
    };
    kernels.into_iter().map(program).collect()
}

/// Collects device items, kernels, and imports of the file's own items.
fn collect(items: Vec<Item>, all: &mut Vec<Item>) {
    for item in items {
        match &item {
            Item::Macro(call) if call.mac.path.is_ident("witnessed") => {
                if let Ok(inner) = call.mac.parse_body::<File>() {
                    collect(inner.items, all);
                }
            }
            Item::Use(import) => {
                let own = match &import.tree {
                    syn::UseTree::Path(path) => {
                        !["kernel_dsl", "super", "crate", "runtime"].iter().any(|name| path.ident == name)
                    }
                    _ => false,
                };
                if own {
                    all.push(item);
                }
            }
            item if is_marked(item, "kernel") || is_marked(item, "device") => all.push(item.clone()),
            _ => {}
        }
    }
}

fn is_marked(item: &Item, name: &str) -> bool {
    let attributes = match item {
        Item::Fn(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::Const(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        _ => return false,
    };
    attributes.iter().any(|a| a.path().segments.last().is_some_and(|s| s.ident == name))
}

/// Returns the names that an item declares or imports.
fn declared(item: &Item) -> Vec<String> {
    fn imported(tree: &syn::UseTree, names: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => imported(&path.tree, names),
            syn::UseTree::Name(name) => names.push(name.ident.to_string()),
            syn::UseTree::Rename(rename) => names.push(rename.rename.to_string()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| imported(tree, names)),
            syn::UseTree::Glob(_) => {}
        }
    }
    match item {
        Item::Fn(i) => vec![i.sig.ident.to_string()],
        Item::Struct(i) => vec![i.ident.to_string()],
        Item::Enum(i) => vec![i.ident.to_string()],
        Item::Const(i) => vec![i.ident.to_string()],
        Item::Type(i) => vec![i.ident.to_string()],
        Item::Trait(i) => vec![i.ident.to_string()],
        Item::Mod(i) => {
            let inner = i.content.iter().flat_map(|(_, items)| items.iter().filter(|i| !matches!(i, Item::Use(_))));
            inner.flat_map(declared).chain([i.ident.to_string()]).collect()
        }
        Item::Use(i) => {
            let mut names = Vec::new();
            imported(&i.tree, &mut names);
            names
        }
        _ => Vec::new(),
    }
}

/// The identifiers of items, with those of attributes.
#[derive(Default)]
struct ItemIdents(BTreeSet<String>);

impl<'a> Visit<'a> for ItemIdents {
    fn visit_ident(&mut self, ident: &'a proc_macro2::Ident) {
        self.0.insert(ident.to_string());
    }

    fn visit_token_stream(&mut self, tokens: &'a proc_macro2::TokenStream) {
        ItemIdents::tokens(&mut self.0, tokens.clone());
    }
}

impl ItemIdents {
    fn tokens(all: &mut BTreeSet<String>, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Ident(ident) => drop(all.insert(ident.to_string())),
                proc_macro2::TokenTree::Group(group) => ItemIdents::tokens(all, group.stream()),
                _ => {}
            }
        }
    }
}
