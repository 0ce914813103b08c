//! Device constants, structs, enums, traits and impls, and modules of them.
//!
//! The checker first collects names, so that items can refer to one another in any order, then
//! checks the fields of types, signatures and bodies. The library of each item is the whole module
//! with that item as root, because impls have no name.

use super::checker::{FunctionChecker, ItemScope, SelfMeaning};
use super::diagnostic::{Diagnostic, ReportedBy};
use super::environment::{Environment, ItemReference};
use super::finish::{CheckedItem, finish_bounds};
use super::types::{Finished, Ty, TypeIndex};
use crate::hir::{self, Associated, EnumId, FunctionId, Root, StructId, TraitId, TraitItemKind, Type, TypeId};
use crate::syntax::{self, Item, TraitItem};
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use syn::{ItemFn, ItemImpl};

/// Returns a placeholder for a function, which reserves its index.
pub(super) fn blank(function: &syntax::Function) -> hir::Function {
    hir::Function {
        name: function.name.to_string(),
        hash: function.hash,
        source: function.source.clone(),
        generics: Vec::new(),
        types: vec![Type::Unit],
        locals: Vec::new(),
        parameters: 0,
        returns: TypeId(0),
        constant: function.constant,
        allowances: Vec::new(),
        private_to: 0,
        body: hir::Block::default(),
    }
}

/// Returns a struct whose fields and bounds are not checked yet, which reserves its index.
fn blank_struct(name: String, hash: u64, item: &syntax::Struct) -> hir::Struct {
    let generics = item.generics.iter().map(|generic| hir::Generic {
        name: generic.name.to_string(),
        kind: match generic.kind {
            syntax::GenericKind::Constant(scalar) => hir::GenericKind::Constant(scalar),
            syntax::GenericKind::Type(_) => hir::GenericKind::Type(Vec::new()),
        },
    });
    let (generics, types, fields) = (generics.collect(), Vec::new(), Vec::new());
    hir::Struct {
        name,
        hash,
        generics,
        types,
        fields,
        repr_c: item.repr_c,
        private_to: 0,
        copy: item.copy,
        derived: item.derived,
    }
}

/// A function of a module with its surroundings.
struct ModuleMember<'a> {
    id: FunctionId,
    function: &'a syntax::Function,
    surroundings: Surroundings<'a>,
    /// Whether impls of the trait must provide the function, because the trait gives it no body.
    required: bool,
}

/// The surroundings of a function of a module.
#[derive(Clone, Copy, Default)]
struct Surroundings<'a> {
    scope: ItemScope<'a>,
    item: ContainingItem<'a>,
}

/// The item that contains a function of a module.
#[derive(Clone, Copy, Default)]
enum ContainingItem<'a> {
    #[default]
    Nothing,
    Impl(&'a syntax::Impl),
    Trait,
}

/// Diagnostics of a module, with the item that they are in, if rustc can check that item alone.
pub struct ItemDiagnostics {
    /// The diagnostics.
    pub diagnostics: Vec<Diagnostic>,
    /// The item that contains them; `None` if rustc cannot check that item alone.
    pub within: Option<ItemPart>,
}

/// A function or constant of a module with diagnostics.
pub enum ItemPart {
    /// A function of the module.
    Function(Rc<ItemFn>),
    /// A function of an impl. `of` is the impl without its items.
    #[allow(missing_docs)]
    Method { function: Rc<ItemFn>, of: Rc<ItemImpl> },
    /// A constant, of the module or of an impl.
    #[allow(missing_docs)]
    Constant { name: proc_macro2::Ident, of: Option<Rc<ItemImpl>> },
}

impl ModuleMember<'_> {
    fn within(&self) -> Option<ItemPart> {
        let of = match self.surroundings.item {
            ContainingItem::Nothing => None,
            ContainingItem::Impl(i) => Some(i.written.0.clone()),
            ContainingItem::Trait => return None,
        };
        Some(match (&self.function.written, of) {
            (None, of) => ItemPart::Constant { name: self.function.name.clone(), of },
            (Some(function), None) => ItemPart::Function(function.0.clone()),
            (Some(function), Some(of)) => ItemPart::Method { function: function.0.clone(), of },
        })
    }
}

/// The items of a module, checked.
pub struct CheckedModule {
    /// The library of each named item, with its name.
    pub libraries: Vec<(proc_macro2::Ident, hir::DeviceLibrary)>,
    /// The functions of the module, with the facts that rustc can confirm.
    pub functions: Vec<(Rc<ItemFn>, CheckedItem<()>)>,
}

/// Checks the items of a module.
pub fn module(module: &syntax::Module, callees: &[ItemReference]) -> Result<CheckedModule, Vec<ItemDiagnostics>> {
    let mut environment = Environment::new(None, callees);
    environment.module = if module.named { module.hash } else { 0 };
    if module.names_result() {
        environment.add_result();
    }
    let mut named: Vec<(proc_macro2::Ident, Root)> = Vec::new();
    let mut members = Vec::new();
    declare(module, &mut environment, &mut named, &mut members);
    let mut diagnostics = Vec::new();
    shapes(module, &mut environment, &mut diagnostics);
    let mut wrong = Vec::new();
    if !diagnostics.is_empty() {
        wrong.push(ItemDiagnostics { diagnostics, within: None });
    }
    // Signatures, so that bodies can call one another.
    for member in &members {
        match signature(member, &environment) {
            Ok(mut function) => {
                function.hash = environment.function(member.id).hash;
                function.private_to = environment.function(member.id).private_to;
                environment.functions[member.id.0 as usize] = function;
            }
            Err(diagnostics) => wrong.push(ItemDiagnostics { diagnostics, within: member.within() }),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut functions = Vec::new();
    for member in members.iter().filter(|m| !m.required) {
        let mut checker = FunctionChecker::new(member.function, &member.surroundings.scope, &environment);
        checker.signature();
        let mut body = checker.body();
        match checker.finish(&mut body).done(body) {
            Ok((mut function, checked)) => {
                function.hash = environment.function(member.id).hash;
                function.private_to = environment.function(member.id).private_to;
                if let Some(ItemPart::Function(of)) = member.within() {
                    functions.push((of, checked));
                }
                environment.functions[member.id.0 as usize] = function;
            }
            Err(diagnostics) => wrong.push(ItemDiagnostics { diagnostics, within: member.within() }),
        }
    }
    for member in &members {
        if let Some(message) = recursion(member.id, &environment) {
            let name = member.function.name.span();
            let mark = syntax::SpanPair { first: name, last: name, ..member.function.body.mark };
            wrong.push(ItemDiagnostics {
                diagnostics: vec![Diagnostic { mark, message, reported_by: ReportedBy::Compiler }],
                within: None,
            });
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let whole = hir::DeviceLibrary { root: None, functions: environment.functions, items: environment.items };
    let libraries =
        named.into_iter().map(|(name, root)| (name, hir::DeviceLibrary { root: Some(root), ..whole.clone() }));
    Ok(CheckedModule { libraries: libraries.collect(), functions })
}

/// Gives each item its index and name.
fn declare<'a>(
    module: &'a syntax::Module,
    environment: &mut Environment,
    named: &mut Vec<(proc_macro2::Ident, Root)>,
    members: &mut Vec<ModuleMember<'a>>,
) {
    // Items that a macro makes several times have equal tokens at the same place; the index in the
    // module distinguishes them.
    let mut count = 0u64;
    let mut mixed = |own: u64| {
        count += 1;
        mix(&[module.hash, own, count])
    };
    let mut member = |environment: &mut Environment, function: &'a syntax::Function, hash, surroundings, required| {
        let id = FunctionId(environment.functions.len() as u32);
        let private_to = if function.private { environment.module } else { 0 };
        environment.functions.push(hir::Function { hash, private_to, ..blank(function) });
        members.push(ModuleMember { id, function, surroundings, required });
        id
    };
    let alone = Surroundings::default();
    for item in &module.items {
        let (name, root) = match item {
            Item::Function(f) => (&f.name, Root::Function(member(environment, f, mixed(f.hash), alone, false))),
            Item::Constant(f) => (&f.name, Root::Constant(member(environment, f, mixed(f.hash), alone, false))),
            Item::Struct(s) | Item::Alias(s) => {
                let id = StructId(environment.items.structs.len() as u32);
                let private_to = if s.private { environment.module } else { 0 };
                let blank = blank_struct(s.name.to_string(), mixed(s.hash), s);
                environment.items.structs.push(hir::Struct { private_to, ..blank });
                (&s.name, if matches!(item, Item::Alias(_)) { Root::Alias(id) } else { Root::Struct(id) })
            }
            Item::Enum(e) => {
                let data = e.data.as_ref().map(|data| {
                    let id = StructId(environment.items.structs.len() as u32);
                    let name = format!("data of {}", data.name);
                    environment.items.structs.push(blank_struct(name, mixed(data.hash), data));
                    id
                });
                let id = EnumId(environment.items.enums.len() as u32);
                let variants =
                    e.variants.iter().map(|(name, value)| hir::Variant { name: name.clone(), value: *value });
                environment.items.enums.push(hir::Enum {
                    name: e.name.to_string(),
                    hash: mixed(e.hash),
                    variants: variants.collect(),
                    private_to: if e.private { environment.module } else { 0 },
                    copy: e.copy,
                    derived: e.derived,
                    data,
                });
                (&e.name, Root::Enum(id))
            }
            Item::Trait(t) => {
                let id = TraitId(environment.items.traits.len() as u32);
                let scope = ItemScope { generics: &[], itself: Some(SelfMeaning::Trait(id)) };
                let within = Surroundings { scope, item: ContainingItem::Trait };
                let mut items = Vec::new();
                for item in &t.items {
                    let (name, kind) = match item {
                        TraitItem::Type { name, .. } => (name, TraitItemKind::Type(Vec::new())),
                        TraitItem::Constant { function, provided } => {
                            let id = member(environment, function, mixed(function.hash), within, !provided);
                            (&function.name, TraitItemKind::Constant { function: id, provided: *provided })
                        }
                        TraitItem::Function { function, provided } => {
                            let id = member(environment, function, mixed(function.hash), within, !provided);
                            let (provided, receiver) = (*provided, function.receiver);
                            (&function.name, TraitItemKind::Function { function: id, provided, receiver })
                        }
                    };
                    items.push(hir::TraitItem { name: name.to_string(), kind });
                }
                let (name, hash) = (t.name.to_string(), mixed(t.hash));
                environment.items.traits.push(hir::Trait { name, hash, bounds: Vec::new(), items });
                (&t.name, Root::Trait(id))
            }
            Item::Impl(i) => {
                let scope = ItemScope { generics: &i.generics, itself: Some(SelfMeaning::Type(&i.for_type)) };
                let within = Surroundings { scope, item: ContainingItem::Impl(i) };
                let mut functions = Vec::new();
                for f in &i.constants {
                    let id = member(environment, f, mixed(f.hash), within, false);
                    functions.push((f.name.to_string(), Associated::Constant(id)));
                }
                for f in &i.functions {
                    let (id, receiver) = (member(environment, f, mixed(f.hash), within, false), f.receiver);
                    let name = i.operator.map_or_else(|| f.name.to_string(), hir::operator_function);
                    functions.push((name, Associated::Function { function: id, receiver }));
                }
                environment.items.impls.push(hir::Impl {
                    hash: mixed(i.hash),
                    generics: Vec::new(),
                    types: vec![Type::Unit],
                    of_trait: None,
                    for_type: TypeId(0),
                    associated: Vec::new(),
                    functions,
                });
                continue;
            }
        };
        named.push((name.clone(), root));
        environment.name(name.to_string(), root);
        if let (Item::Constant(f), Root::Constant(id)) = (item, root) {
            let value = f.body.value.as_ref().and_then(|e| {
                super::environment::number(e, &|path| match environment.find(&path.written())? {
                    Root::Constant(id) => environment.number(id),
                    _ => None,
                })
            });
            if let Some(n) = value {
                environment.set_number(id, n);
            }
        }
    }
}

fn mix(parts: &[u64]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Checks the fields of structs and the items of traits and impls.
fn shapes(module: &syntax::Module, environment: &mut Environment, diagnostics: &mut Vec<Diagnostic>) {
    let (structs, mut traits, mut impls) = own_items(module, environment);
    aliases(module, structs.clone(), environment);
    let mut structs = structs;
    for item in &module.items {
        if let Some(s) = item.fields() {
            let at = structs.next().expect("each struct was declared");
            fields(s, at, environment, diagnostics);
        }
        if let Item::Trait(t) = item {
            let at = traits.next().expect("each trait was declared");
            let function = function_without_body(&t.name, &[]);
            let scope = ItemScope { generics: &[], itself: Some(SelfMeaning::Trait(TraitId(at as u32))) };
            let mut checker = FunctionChecker::new(&function, &scope, environment);
            let bounds = checker.bounds(&t.bounds);
            let of_types: Vec<_> = t
                .items
                .iter()
                .map(|item| match item {
                    TraitItem::Type { bounds, .. } => Some(checker.bounds(bounds)),
                    _ => None,
                })
                .collect();
            diagnostics.append(&mut checker.diagnostics);
            let item = &mut environment.items.traits[at];
            item.bounds = bounds;
            for (item, bounds) in item.items.iter_mut().zip(of_types) {
                if let Some(bounds) = bounds {
                    item.kind = TraitItemKind::Type(bounds);
                }
            }
        }
    }
    for item in &module.items {
        let Item::Impl(i) = item else { continue };
        let at = impls.next().expect("each impl was declared");
        let name = proc_macro2::Ident::new("impl", i.for_type.mark.first);
        let function = function_without_body(&name, &i.generics);
        let scope = ItemScope { generics: &[], itself: Some(SelfMeaning::Type(&i.for_type)) };
        let mut checker = FunctionChecker::new(&function, &scope, environment);
        let mut all = vec![checker.itself.expect("an impl is for a type")];
        all.extend(i.types.iter().map(|(_, ty)| checker.ty(ty)));
        let of_trait = i.of_trait.as_ref().and_then(|path| match environment.find(&path.written()) {
            Some(Root::Trait(id)) => Some(id),
            _ => {
                let message = format!("`{}` is not a device trait: put the trait into a `#[device] mod`", path.name());
                checker.report(path.mark, message);
                None
            }
        });
        if let (Some(id), Some(path)) = (of_trait, &i.of_trait) {
            of_its_trait(&mut checker, id, i, &all, path.mark);
        }
        let Header { generics, types, named } = Header::of(checker, all, diagnostics);
        let item = &mut environment.items.impls[at];
        (item.generics, item.types, item.of_trait, item.for_type) = (generics, types, of_trait, named[0]);
        item.associated = i.types.iter().zip(&named[1..]).map(|((name, _), ty)| (name.to_string(), *ty)).collect();
    }
}

/// Reports built-in traits that a type or an associated type lacks and its trait needs. `all` are
/// the type and the associated types of the impl.
fn of_its_trait(
    checker: &mut FunctionChecker,
    of_trait: TraitId,
    i: &syntax::Impl,
    all: &[TypeIndex],
    mark: syntax::SpanPair,
) {
    let environment = checker.environment;
    let declared = environment.trait_of(of_trait);
    let mut needed = vec![(all[0], &declared.bounds)];
    for ((name, _), ty) in i.types.iter().zip(&all[1..]) {
        let item = declared.items.iter().find(|item| name == &item.name);
        if let Some(TraitItemKind::Type(bounds)) = item.map(|item| &item.kind) {
            needed.push((*ty, bounds));
        }
    }
    for (ty, bounds) in needed {
        let missing =
            |bound: &&hir::TraitBound| matches!(bound, hir::TraitBound::Builtin(_)) && !checker.satisfies(ty, bound);
        if let Some(bound) = bounds.iter().find(missing) {
            let (ty, bound) = (checker.named(ty), checker.name_of_bound(bound));
            checker.report(
                mark,
                format!("`{ty}` does not implement `{bound}`, which the trait `{}` needs", declared.name),
            );
        }
    }
}

/// Checks the type aliases, so that fields can name them. An alias may name aliases after it.
fn aliases(module: &syntax::Module, structs: std::ops::Range<usize>, environment: &mut Environment) {
    let all = module.items.iter().filter(|item| item.fields().is_some());
    let aliases: Vec<_> = all.zip(structs).filter(|(item, _)| matches!(item, Item::Alias(_))).collect();
    // A chain of n aliases is resolved after at most n rounds.
    for _ in 0..aliases.len() {
        for (item, at) in &aliases {
            if let Item::Alias(alias) = item {
                // The check of all items reports the diagnostics.
                fields(alias, *at, environment, &mut Vec::new());
            }
        }
    }
}

/// Checks the fields of the struct or alias `at` this index.
fn fields(s: &syntax::Struct, at: usize, environment: &mut Environment, diagnostics: &mut Vec<Diagnostic>) {
    let function = function_without_body(&s.name, &s.generics);
    let mut checker = FunctionChecker::new(&function, &ItemScope::default(), environment);
    let types: Vec<TypeIndex> = s.fields.iter().map(|(_, ty)| checker.ty(ty)).collect();
    if s.repr_c {
        padding(&mut checker, s, &types);
    }
    let Header { generics, types, named } = Header::of(checker, types, diagnostics);
    let fields = s.fields.iter().zip(named);
    let module = environment.module;
    let private_to = |name: &String| if s.private_fields.contains(name) { module } else { 0 };
    let fields =
        fields.map(|((name, _), ty)| hir::Field { name: name.clone(), ty, private_to: private_to(name) }).collect();
    let item = &mut environment.items.structs[at];
    (item.generics, item.types, item.fields) = (generics, types, fields);
}

/// Returns the indices of the module's own structs, traits and impls: the last ones of each list.
#[allow(clippy::type_complexity)]
fn own_items(
    module: &syntax::Module,
    environment: &Environment,
) -> (std::ops::Range<usize>, std::ops::Range<usize>, std::ops::Range<usize>) {
    let count = |is: fn(&Item) -> bool| module.items.iter().filter(|i| is(i)).count();
    let last = |all: usize, n: usize| all - n..all;
    let items = &environment.items;
    (
        last(items.structs.len(), count(|i| i.fields().is_some())),
        last(items.traits.len(), count(|i| matches!(i, Item::Trait(_)))),
        last(items.impls.len(), count(|i| matches!(i, Item::Impl(_)))),
    )
}

/// Returns a function without a body, whose generic parameters are in scope for checking types.
fn function_without_body(name: &proc_macro2::Ident, generics: &[syntax::Generic]) -> syntax::Function {
    let span = name.span();
    let mark = syntax::SpanPair { first: span, last: span, span: crate::source::Span::default() };
    syntax::Function {
        name: name.clone(),
        generics: generics.to_vec(),
        parameters: Vec::new(),
        receiver: false,
        returns: None,
        constant: None,
        private: false,
        allowances: Vec::new(),
        body: syntax::Block { statements: Vec::new(), value: None, mark },
        source: crate::source::KernelSource { name: name.to_string(), file: String::new(), line: 0, text: Vec::new() },
        hash: 0,
        written: None,
    }
}

/// Generic parameters and types that were checked without a body.
struct Header {
    generics: Vec<hir::Generic>,
    types: Vec<Type>,
    named: Vec<TypeId>,
}

impl Header {
    fn of(mut checker: FunctionChecker, all: Vec<TypeIndex>, diagnostics: &mut Vec<Diagnostic>) -> Header {
        checker.project();
        let mut finished = Finished::new(&checker.table);
        let named = all.into_iter().map(|id| finished.get(&checker.table, id)).collect();
        finish_bounds(&mut checker.generics, &mut finished, &checker.table);
        diagnostics.append(&mut checker.diagnostics);
        Header { generics: checker.generics, types: finished.types, named }
    }
}

/// Rejects padding in a `repr(C)` struct, which a host would have to fill.
fn padding(checker: &mut FunctionChecker, s: &syntax::Struct, types: &[TypeIndex]) {
    let (mut end, mut align) = (0u32, s.align);
    for ((name, written), ty) in s.fields.iter().zip(types) {
        if !checker.is_element(*ty) && !matches!(checker.table.get(*ty), Ty::View { .. } | Ty::Slice { .. }) {
            let ty = checker.named(*ty);
            let message = format!(
                "a `repr(C)` device struct must fit in a buffer, which cannot hold `{name}` of type `{ty}`: remove `repr(C)`, or use numbers of fixed width"
            );
            checker.report(written.mark, message);
            return;
        }
        let Some((bytes, to)) = size(checker, *ty) else { return };
        if !end.is_multiple_of(to) {
            let message = format!(
                "`{name}` would be preceded by {} bytes of padding: order the fields by size, or add a field for those bytes",
                end.next_multiple_of(to) - end
            );
            checker.report(written.mark, message);
            return;
        }
        (end, align) = (end.saturating_add(bytes), align.max(to));
    }
    if !end.is_multiple_of(align)
        && let Some((_, last)) = s.fields.last()
    {
        let message = format!(
            "`{}` would end with {} bytes of padding: add a field for those bytes",
            s.name,
            end.next_multiple_of(align) - end
        );
        checker.report(last.mark, message);
    }
}

/// Returns size and alignment in bytes, unless they depend on a type parameter.
fn size(checker: &FunctionChecker, ty: TypeIndex) -> Option<(u32, u32)> {
    match checker.table.get(ty) {
        Ty::Scalar(s) => Some((s.bytes(), s.bytes())),
        Ty::Array(element, n) => {
            let (bytes, align) = size(checker, *element)?;
            match checker.table.get(*n) {
                Ty::Size(hir::Size::Known(n)) => Some((bytes.checked_mul(*n)?, align)),
                _ => None,
            }
        }
        Ty::Struct(id, _) => {
            let item = checker.environment.struct_of(*id);
            let types: Vec<_> = item.fields.iter().map(|f| f.ty).collect();
            let offsets = hir::layout::offsets(&item.types, &types)?;
            let align =
                types.iter().filter_map(|t| Some(hir::layout::layout(&item.types, *t)?.align)).max().unwrap_or(1);
            let last = types.last().and_then(|t| hir::layout::layout(&item.types, *t)).map_or(0, |l| l.bytes);
            Some((offsets.last().map_or(0, |o| o + last), align))
        }
        _ => None,
    }
}

/// Checks the signature of a function of the module, and returns the function without its body.
fn signature(member: &ModuleMember, environment: &Environment) -> Result<hir::Function, Vec<Diagnostic>> {
    let mut checker = FunctionChecker::new(member.function, &member.surroundings.scope, environment);
    checker.signature();
    let (function, _) = checker.finish(&mut hir::Block::default()).done(hir::Block::default())?;
    Ok(function)
}

/// Returns the error of a function that calls itself, directly or through others.
fn recursion(id: FunctionId, environment: &Environment) -> Option<String> {
    let mut seen = vec![id];
    let mut next = 0;
    while next < seen.len() {
        let mut body = environment.function(seen[next]).body.clone();
        let mut found = false;
        hir::visit::block(&mut body, &mut |e| {
            if let hir::ExprKind::Call { function, .. } | hir::ExprKind::Function { function, .. } = &e.kind {
                found |= *function == id;
                if !seen.contains(function) {
                    seen.push(*function);
                }
            }
        });
        if found {
            let name = &environment.function(id).name;
            return Some(format!("`{name}` calls itself; device calls are always inlined, so write a loop"));
        }
        next += 1;
    }
    None
}
