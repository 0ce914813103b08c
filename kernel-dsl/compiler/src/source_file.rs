//! A kernel from the text of its source file, without rustc.
//!
//! A macro sees one item at a time, and rustc resolves the names between items. A tool that follows
//! a file while it is edited has no rustc. [`program`] resolves a device item by the last segment
//! of its path. Functions and constants come from the text if it has them. All other items, and
//! items of other files, come from the program as rustc compiled it: generic arguments refer to the
//! types and traits of that program. [`standalone`] reads all items from the text, because rustc
//! has not compiled the program. So [`standalone`] also makes the checks that a macro leaves to
//! rustc: [`ownership`], and the check of device items that the kernel does not use.

use crate::check::{self, Diagnostic, ItemReference};
use crate::error::{Error, Errors};
use crate::hir::{self, DeviceLibrary, FunctionId, Program, Root, StructId, TraitId};
use crate::language::RESULT_NAME;
use crate::names;
use crate::ownership;
use crate::source::{KernelSource, Span};
use crate::syntax;
use proc_macro2::{LineColumn, TokenStream, TokenTree};
use std::cell::RefCell;
use std::collections::HashSet;
use syn::{Attribute, Item, ItemConst, ItemEnum, ItemFn, ItemMod, ItemStruct, ItemTrait, ItemType, Meta};

/// Maximum depth of calls between device functions; a deeper call is recursive.
const MAX_DEPTH: u32 = 64;

/// Maximum depth of nested brackets and braces of a text.
const MAX_BRACKET_DEPTH: usize = 512;

/// Reads the kernel `name` from `text`, the contents of `file`. `linked` is the kernel's program as
/// rustc compiled it.
///
/// # Errors
/// Text that is not Rust, a file without such a kernel, and the mistakes of syntax and check, each
/// with its place in the file.
pub fn program(text: &str, file: &str, name: &str, linked: &Program) -> Result<Program, Errors> {
    SourceFile::read(text, file, Some(linked))?.program(name)
}

/// Reads the kernel `name` from `text`, which contains all items that the kernel refers to.
/// Without a name, the text has one kernel. `file` is the name of the text in messages.
///
/// # Errors
/// The errors of [`program`], and a text with several kernels and no `name`, which lists them. Also
/// a text with two kernels of one name.
pub fn standalone(text: &str, file: &str, name: Option<&str>) -> Result<Program, Errors> {
    let reader = SourceFile::read(text, file, None)?;
    let kernels = reader.kernels();
    let of_name = |name: &str| match kernels.iter().filter(|known| *known == name).count() {
        0 | 1 => reader.complete_program(name),
        several => {
            Err(Error::without_span(format!("{file} has {several} kernels `{name}`: rename all but one")).into())
        }
    };
    if let Some(name) = name {
        return of_name(name);
    }
    match &kernels[..] {
        [] => Err(Error::without_span(format!("{file} has no `#[kernel]` function")).into()),
        [first, rest @ ..] if rest.iter().all(|name| name == first) => of_name(first),
        several => {
            let names: Vec<_> = several.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("{file} has {} kernels, {}: name one", several.len(), names.join(", "));
            Err(Error::without_span(message).into())
        }
    }
}

/// An item that the macros read.
enum DeviceItem {
    /// The attribute's tokens and the function.
    Kernel(TokenStream, ItemFn),
    Function(ItemFn),
    /// A constant, struct, enum, type alias, or module of items.
    Other(Item),
}

/// A source file, with the kernel's program as rustc compiled it from an earlier version of the
/// file.
struct SourceFile<'a> {
    text: &'a str,
    file: &'a str,
    /// The program; `None` if the text is complete.
    linked: Option<&'a Program>,
    items: RefCell<Vec<DeviceItem>>,
}

impl<'a> SourceFile<'a> {
    fn read(text: &'a str, file: &'a str, linked: Option<&'a Program>) -> Result<SourceFile<'a>, Errors> {
        let reader = SourceFile { text, file, linked, items: RefCell::default() };
        reader.check_depth()?;
        let parsed = syn::parse_file(text).map_err(|e| reader.refused(e))?;
        if linked.is_none() {
            let wrong =
                names::mistakes(&parsed).into_iter().chain(incomplete_derives(&parsed)).reduce(|mut all, more| {
                    all.combine(more);
                    all
                });
            wrong.map_or(Ok(()), |wrong| Err(reader.refused(wrong)))?;
        }
        reader.collect(parsed.items);
        Ok(reader)
    }

    /// Rejects text whose brackets are nested too deeply for the parser, which is recursive.
    fn check_depth(&self) -> Result<(), Errors> {
        if self.text.matches(['(', '[', '{']).count() <= MAX_BRACKET_DEPTH {
            return Ok(());
        }
        // The parser reports text that has no tokens.
        let Ok(tokens) = self.text.parse::<TokenStream>() else { return Ok(()) };
        let mut open = vec![tokens.into_iter()];
        while let Some(last) = open.last_mut() {
            match last.next() {
                Some(TokenTree::Group(group)) if open.len() > MAX_BRACKET_DEPTH => {
                    let message = format!(
                        "brackets are nested more than {MAX_BRACKET_DEPTH} deep here: compute parts of the expression \
                         in `let` statements before it"
                    );
                    return Err(self.refused(syn::Error::new(group.span_open(), message)));
                }
                Some(TokenTree::Group(group)) => open.push(group.stream().into_iter()),
                Some(_) => {}
                None => drop(open.pop()),
            }
        }
        Ok(())
    }

    /// Returns the names of the kernels, in order.
    fn kernels(&self) -> Vec<String> {
        let name = |item: &DeviceItem| match item {
            DeviceItem::Kernel(_, item) => Some(item.sig.ident.to_string()),
            _ => None,
        };
        self.items.borrow().iter().filter_map(name).collect()
    }

    /// Compiles the kernel `name` to HIR.
    fn program(&self, name: &str) -> Result<Program, Errors> {
        let items = self.items.borrow();
        let found = items.iter().find_map(|item| match item {
            DeviceItem::Kernel(attribute, item) if item.sig.ident == name => Some((attribute, item)),
            _ => None,
        });
        let (attribute, item) = found.ok_or_else(|| {
            Errors::from(Error::without_span(format!("{} has no `#[kernel]` function `{name}`", self.file)))
        })?;
        let kernel = syntax::kernel(attribute.clone(), item).map_err(|e| self.refused(e))?;
        let callees = self.callees(&kernel.callees(), 0)?;
        let mut program = check::kernel(&kernel, &callees).map_err(|wrong| self.wrong(wrong))?.hir;
        program.functions.iter_mut().for_each(|function| self.name_file(&mut function.source));
        Ok(program)
    }

    /// Compiles the kernel `name` to HIR, and checks what rustc would check.
    fn complete_program(&self, name: &str) -> Result<Program, Errors> {
        let program = self.program(name)?;
        let mut seen = HashSet::new();
        let mut errors = Vec::new();
        let mut check = |functions: &[hir::Function], items: &hir::Items| {
            for function in functions.iter().filter(|function| seen.insert(function.hash)) {
                errors.extend(ownership::check(function, functions, items));
            }
        };
        check(&program.functions, &program.items);
        for item in &*self.items.borrow() {
            let used = |name: &syn::Ident| program.functions.iter().any(|function| *name == function.name);
            if matches!(item, DeviceItem::Function(function) if used(&function.sig.ident)) {
                continue;
            }
            for (_, mut library) in self.libraries(item, 0)?.into_iter().take(1) {
                library.functions.iter_mut().for_each(|function| self.name_file(&mut function.source));
                check(&library.functions, &library.items);
            }
        }
        match errors.is_empty() {
            true => Ok(program),
            false => Err(Errors(errors)),
        }
    }

    /// Collects the kernels and device items of `items` and of the modules among them.
    fn collect(&self, items: Vec<Item>) {
        for item in items {
            match item {
                Item::Fn(mut function) => {
                    if let Some(attribute) = take(&mut function.attrs, "kernel") {
                        self.items.borrow_mut().push(DeviceItem::Kernel(attribute, function));
                    } else if take(&mut function.attrs, "device").is_some() {
                        self.items.borrow_mut().push(DeviceItem::Function(function));
                    }
                }
                Item::Mod(module) if !module.attrs.iter().any(|a| is(a, "device")) => {
                    self.collect(module.content.map(|(_, items)| items).unwrap_or_default());
                }
                mut other => {
                    // With a linked program, only constants are read: generic arguments refer to
                    // the types and traits of that program.
                    let read = self.linked.is_none() || matches!(other, Item::Const(_));
                    if let Some(all) = attributes(&mut other)
                        && read
                        && all.iter().any(|a| is(a, "device"))
                    {
                        // The placement of a table belongs to the constant.
                        all.retain(|a| !is(a, "device") || places(a));
                        self.items.borrow_mut().push(DeviceItem::Other(other));
                    }
                }
            }
        }
    }

    /// Returns the libraries of the items that a function names.
    fn callees(&self, paths: &[syn::Path], depth: u32) -> Result<Vec<ItemReference>, Errors> {
        let callee = |path: &syn::Path| -> Result<Option<ItemReference>, Errors> {
            let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            let global = if path.leading_colon.is_some() { "::" } else { "" };
            let name = names.last().map_or("", String::as_str);
            let found = self.of_text(name, depth)?.or_else(|| self.of_program(name));
            if found.is_none() && path.is_ident(RESULT_NAME) {
                // The name is that of Rust's prelude.
                return Ok(None);
            }
            let library = match found {
                Some(library) => library,
                None => {
                    let items = self.items.borrow();
                    let is_kernel = |item: &DeviceItem| matches!(item, DeviceItem::Kernel(_, f) if f.sig.ident == name);
                    let message = match self.linked {
                        _ if items.iter().any(is_kernel) => format!(
                            "`{name}` is a kernel, which no kernel can call; move the common code into a `#[device]` \
                             function"
                        ),
                        Some(_) => format!(
                            "`{name}` is not in this file, nor in the kernel as it was compiled; compile the crate \
                             to call it"
                        ),
                        None => format!("`{name}` is not a `#[device]` item of {}", self.file),
                    };
                    return Err(self.refused(syn::Error::new_spanned(path, message)));
                }
            };
            Ok(Some(ItemReference { path: format!("{global}{}", names.join("::")), library }))
        };
        paths.iter().filter_map(|path| callee(path).transpose()).collect()
    }

    /// Returns the library of a device item of the text.
    fn of_text(&self, name: &str, depth: u32) -> Result<Option<DeviceLibrary>, Errors> {
        if depth > MAX_DEPTH {
            return Err(Error::without_span(format!("`{name}` calls itself; device calls are always inlined")).into());
        }
        let named = |item: &&DeviceItem| match item {
            DeviceItem::Kernel(..) => false,
            DeviceItem::Function(item) => item.sig.ident == name,
            DeviceItem::Other(item) => declares(item, name),
        };
        let items = self.items.borrow();
        let Some(item) = items.iter().find(named) else { return Ok(None) };
        let found = self.libraries(item, depth)?.into_iter().find(|(known, _)| known == name);
        Ok(found.map(|(_, library)| library))
    }

    /// Returns the libraries of a device item, with their names: of a module, one for each item.
    fn libraries(&self, item: &DeviceItem, depth: u32) -> Result<Vec<(String, DeviceLibrary)>, Errors> {
        match item {
            DeviceItem::Kernel(..) => Ok(Vec::new()),
            DeviceItem::Function(item) => {
                let function = syntax::device(item).map_err(|e| self.refused(e))?;
                let callees = self.callees(&function.callees(), depth + 1)?;
                let checked = check::device(&function, &callees).map_err(|wrong| self.wrong(wrong))?;
                Ok(vec![(item.sig.ident.to_string(), checked.hir)])
            }
            DeviceItem::Other(item) => {
                let module = syntax::module(item).map_err(|e| self.refused(e))?;
                let callees = self.callees(&module.callees(), depth + 1)?;
                let checked = check::module(&module, &callees)
                    .map_err(|wrong| self.wrong(wrong.into_iter().flat_map(|item| item.diagnostics).collect()))?;
                Ok(checked.libraries.into_iter().map(|(name, library)| (name.to_string(), library)).collect())
            }
        }
    }

    /// Returns the library of an item of the compiled program.
    fn of_program(&self, name: &str) -> Option<DeviceLibrary> {
        let Program { functions, items, .. } = self.linked?;
        let function_root = || {
            let at = functions.iter().skip(1).position(|f| f.name == name)? + 1;
            let id = FunctionId(at as u32);
            // Rust writes the names of constants in capitals.
            let constant = name.chars().all(|c| !c.is_lowercase());
            Some(if constant { Root::Constant(id) } else { Root::Function(id) })
        };
        let struct_root = || Some(Root::Struct(StructId(items.structs.iter().position(|s| s.name == name)? as u32)));
        let enum_root =
            || Some(Root::Enum(crate::hir::EnumId(items.enums.iter().position(|e| e.name == name)? as u32)));
        let trait_root = || Some(Root::Trait(TraitId(items.traits.iter().position(|t| t.name == name)? as u32)));
        let root = function_root().or_else(struct_root).or_else(enum_root).or_else(trait_root)?;
        Some(DeviceLibrary { root: Some(root), functions: functions.clone(), items: items.clone() })
    }

    /// Sets the file of a function that was read from the text.
    fn name_file(&self, source: &mut KernelSource) {
        // `proc_macro2` names parsed text `<parsed string 1>`.
        if source.file.ends_with('>') {
            source.file = self.file.to_string();
        }
    }

    fn refused(&self, error: syn::Error) -> Errors {
        let one = |e: syn::Error| self.error(e.span().start(), e.span().end(), e.to_string());
        Errors(error.into_iter().map(one).collect())
    }

    fn wrong(&self, diagnostics: Vec<Diagnostic>) -> Errors {
        let one = |d: Diagnostic| self.error(d.mark.first.start(), d.mark.last.end(), d.message);
        Errors(diagnostics.into_iter().map(one).collect())
    }

    fn error(&self, start: LineColumn, end: LineColumn, message: String) -> Error {
        let text = self.text.lines().map(str::to_string).collect();
        let source = KernelSource { name: String::new(), file: self.file.to_string(), line: 1, text };
        let number = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let span = Span {
            line: number(start.line.saturating_sub(1)),
            column: number(start.column + 1),
            end_line: number(end.line.saturating_sub(1)),
            end_column: number(end.column + 1),
        };
        Error::at(&source, span, message)
    }
}

/// Returns the mistakes of types that derive `DeviceCopy` without `Copy`, which it needs.
fn incomplete_derives(file: &syn::File) -> Vec<syn::Error> {
    let (mut items, mut at): (Vec<&Item>, _) = (file.items.iter().collect(), 0);
    while let Some(item) = items.get(at) {
        if let Item::Mod(ItemMod { content: Some((_, inner)), .. }) = item {
            items.extend(inner);
        }
        at += 1;
    }
    let copied: HashSet<_> = items.iter().filter_map(|item| copied_by(item)).collect();
    let wrong = items.iter().filter_map(|item| {
        let (attributes, name) = match item {
            Item::Struct(item) => (&item.attrs, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.ident),
            _ => return None,
        };
        let derives = |of| syntax::derives(attributes, of);
        let message = format!("`DeviceCopy` needs `Copy`: write `#[derive(Clone, Copy, DeviceCopy)]` on `{name}`");
        (derives("DeviceCopy") && !derives("Copy") && !copied.contains(name))
            .then(|| syn::Error::new_spanned(name, message))
    });
    wrong.collect()
}

/// Returns the type of an `impl Copy`.
fn copied_by(item: &Item) -> Option<&syn::Ident> {
    let Item::Impl(i) = item else { return None };
    let (path, _) = i.trait_.as_ref()?;
    let syn::Type::Path(of) = &*i.self_ty else { return None };
    path.segments.last().filter(|last| last.ident == "Copy").and_then(|_| of.path.get_ident())
}

fn is(attribute: &Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|segment| segment.ident == name)
}

/// Returns the attributes of an item that `#[device]` accepts, other than a function.
fn attributes(item: &mut Item) -> Option<&mut Vec<Attribute>> {
    match item {
        Item::Const(ItemConst { attrs, .. })
        | Item::Enum(ItemEnum { attrs, .. })
        | Item::Mod(ItemMod { attrs, .. })
        | Item::Struct(ItemStruct { attrs, .. })
        | Item::Trait(ItemTrait { attrs, .. })
        | Item::Type(ItemType { attrs, .. }) => Some(attrs),
        _ => None,
    }
}

/// Returns whether the attribute is `#[device(constant)]` or `#[device(global)]`.
fn places(attribute: &Attribute) -> bool {
    attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "constant" || word == "global")
}

/// Returns whether the item, or an item of the module, has the name.
fn declares(item: &Item, name: &str) -> bool {
    match item {
        Item::Const(ItemConst { ident, .. })
        | Item::Enum(ItemEnum { ident, .. })
        | Item::Struct(ItemStruct { ident, .. })
        | Item::Trait(ItemTrait { ident, .. })
        | Item::Type(ItemType { ident, .. }) => ident == name,
        Item::Fn(ItemFn { sig, .. }) => sig.ident == name,
        Item::Mod(ItemMod { content, .. }) => content.iter().any(|(_, items)| items.iter().any(|i| declares(i, name))),
        _ => false,
    }
}

/// Removes the attribute `name` and returns the tokens in its parentheses.
fn take(attributes: &mut Vec<Attribute>, name: &str) -> Option<TokenStream> {
    let at = attributes.iter().position(|a| is(a, name))?;
    match attributes.remove(at).meta {
        Meta::List(list) => Some(list.tokens),
        _ => Some(TokenStream::new()),
    }
}
