//! The expansion of `#[kernel]` and `#[device]`.
//!
//! A kernel becomes a type with its name, which serves as a namespace (`matmul::<16>::PTX`,
//! `matmul::<16>::launch`). Beside the type, inside `const _`, are:
//! * the *copy*: the function as written, with its spans, so that rustc checks it and editors work
//!   in it. If our checker found errors, the copy makes them wait for rustc's errors;
//! * the *witness*: a second copy, in which rustc confirms the results of our checker;
//! * the *artifact*: HIR and PTX as literals, registered with the kernels of the program;
//! * the launch functions.
//!
//! A device function stays unchanged. Beside it is a macro of the same name that passes the
//! function's HIR; a `use` of the function imports both. An item that calls device functions
//! expands to a *chain* through their macros. The chain ends in a call of [`link`] with the HIR of
//! all of them. In a module, the macros of device items lead through [`step`].
//!
//! # One error for a mistake
//!
//! Rust outside the subset becomes a `compile_error!` at the token. rustc reports an error in names
//! or types, from the copy; our message appears only if rustc accepts the function (module
//! `witness`). The expansion of a failed kernel contains stand-ins, so that uses of the kernel do
//! not fail too. A failed device function passes an empty literal, and its callers report nothing.
//! rustc prints a diagnostic once, however many copies cause it, because all spans are equal.
//!
//! An expansion uses only the path of the facade crate, the user's own names and hidden names. A
//! message shows a hidden name only if device items call each other.

mod artifact;
mod beside;
mod chain;
mod copy;
mod derives;
mod distinct;
mod expansion;
mod export;
mod inline;
mod launch;
mod method;
mod module;
mod namespace;
mod report;
mod stand_ins;
mod witness;

use crate::check::{self, ItemReference};
use crate::hir::serial;
use crate::syntax;
use artifact::ArtifactExpansion;
use chain::{CalleeState, ChainEnd, ChainResult, ChainStart, ExpansionPart};
use expansion::Expansion;
use export::Exported;
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::{Item, ItemFn, Path, Token};

/// Expands `#[kernel(attribute)] item`.
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let item = match function("kernel", item) {
        Ok(item) => item,
        Err(tokens) => return tokens,
    };
    if let Some(tokens) = method("kernel", &item) {
        return tokens;
    }
    let facade = facade(attribute.clone());
    let kernel = match read_kernel(attribute.clone(), &item) {
        Ok(kernel) => kernel,
        Err(refused) => return Expansion::refused(&copy::with_valid_signature(&item), &facade, refused).render(),
    };
    let callees = kernel.callees();
    let expansion = if callees.is_empty() {
        compile_kernel(&item, &facade, &kernel, &[])
    } else {
        let payload = quote!((#attribute) #item);
        let chain = ChainStart { end: ChainEnd::Kernel, facade: &facade, payload }.start(&callees);
        Expansion { artifact: ArtifactExpansion::Chain(chain), ..Expansion::read(&item, &facade, &kernel) }
    };
    expansion.with_launchers(&kernel).render()
}

/// Reads a kernel, and rejects attributes and names that its expansion cannot express.
fn read_kernel(attribute: TokenStream, item: &ItemFn) -> syn::Result<syntax::Kernel> {
    let kernel = syntax::kernel(attribute, item)?;
    namespace::check_attributes_and_name(item)?;
    chain::callable(&kernel.function.name, &kernel.callees())?;
    Ok(kernel)
}

/// Expands a kernel up to its artifact, with `callees` for the device items that it names.
fn compile_kernel<'a>(
    item: &'a ItemFn,
    facade: &'a Path,
    kernel: &syntax::Kernel,
    callees: &[ItemReference],
) -> Expansion<'a> {
    let mut expansion = Expansion::read(item, facade, kernel);
    let checked = match check::kernel(kernel, callees) {
        Ok(checked) => checked,
        Err(diagnostics) => return with_diagnostics(item, facade, kernel, &diagnostics),
    };
    expansion.witness = witness::agreement(item, facade, &checked.locals, &checked.prelude);
    match artifact::compile(&checked.hir) {
        Ok(compiled) => match unreached_tolerances(kernel, &checked.hir, &compiled) {
            None => expansion.artifact = ArtifactExpansion::complete(&checked.hir, &kernel.instances, compiled.texts),
            Some(error) => expansion.errors = report::refused(error),
        },
        Err(failed) => {
            let tokens = report::KernelTokens { item, block: &kernel.launch_tokens.block, paths: &kernel.callees() };
            expansion.errors = report::compilation(&tokens, &checked.hir, callees, &failed);
        }
    }
    expansion
}

/// Expands a kernel that our checker rejects. Messages of the checker appear only if rustc accepts
/// the kernel.
fn with_diagnostics<'a>(
    item: &'a ItemFn,
    facade: &'a Path,
    kernel: &syntax::Kernel,
    diagnostics: &[check::Diagnostic],
) -> Expansion<'a> {
    let body = copy::with_launch(item, facade, &kernel.launch_tokens);
    let values = kernel.instances.first().map_or(&[][..], |i| &i.arguments);
    let copy = witness::diagnostics(item, facade, &body, values, diagnostics);
    Expansion { copy: copy::copy_with_user_lints(item, &copy), ..Expansion::read(item, facade, kernel) }
}

/// Expands `#[device(attribute)] item`.
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => device_function(attribute, function),
        Ok(item @ (Item::Const(_) | Item::Struct(_) | Item::Enum(_) | Item::Type(_) | Item::Mod(_))) => {
            module::device(attribute, item)
        }
        Ok(other) => {
            let way_out = match &other {
                Item::Static(_) => ": make this `static` a `const`",
                Item::Trait(_) => ": put this trait in a `#[device] mod`",
                Item::Impl(_) => ": put this `impl` and its type in a `#[device] mod`",
                _ => "",
            };
            let message = format!(
                "`#[device]` applies to a function, constant, struct, enum or type alias, or to a `mod` with traits and impls{way_out}"
            );
            let errors = report::refused(syn::Error::new_spanned(&other, message));
            quote!(#errors #other)
        }
        Err(error) => {
            let errors = report::refused(error);
            quote!(#errors #item)
        }
    }
}

fn device_function(attribute: TokenStream, item: ItemFn) -> TokenStream {
    if let Some(tokens) = method("device", &item) {
        return tokens;
    }
    let facade = facade(attribute.clone());
    let (lints, mut host) = (copy::lints(), inline::for_rustc(&item));
    let read = device_attribute(attribute, DeviceItemKind::Function).and_then(|clauses| {
        chain::definable(&item.sig.ident)?;
        let parsed = syntax::device(&item)?;
        chain::callable(&parsed.name, &parsed.callees())?;
        Ok((clauses.value, parsed))
    });
    let (value, parsed) = match read {
        Ok(read) => read,
        Err(refused) => {
            copy::without_refused(&mut host.block);
            let (errors, export) = (report::refused(refused), export::failed(&item, ExpansionPart::Whole));
            return quote!(#[allow(unused)] #lints #host #errors #export);
        }
    };
    let callees = parsed.callees();
    let rest = if callees.is_empty() {
        finish_device(&item, &facade, parsed, &[], value, &ChainResult::NONE)
    } else {
        let value = value.then(|| quote!(, value));
        let payload = quote!((crate = #facade #value) #item);
        let link = ChainStart { end: ChainEnd::Device, facade: &facade, payload };
        let declared = value.map(|_| module::function_struct(&item));
        beside::start(&link, &parsed.name, &[Exported::function(&item)], &callees, declared)
    };
    quote!(#lints #host #rest)
}

/// Expands `#[derive(DeviceCopy)] item`.
pub fn device_copy(item: TokenStream) -> TokenStream {
    match syn::parse2(item).and_then(|item| module::device_copy(&item)) {
        Ok(tokens) => tokens,
        Err(error) => report::refused(error),
    }
}

/// Expands the end of a chain: `[] {kind} {(attribute) item} b"…" b"…"`.
pub fn link(tokens: TokenStream) -> TokenStream {
    match chain::Linked::parse(tokens) {
        Ok(linked) => linked_item(linked).unwrap_or_else(report::refused),
        Err(error) => report::refused(error),
    }
}

/// Expands a stop in the chain of a device item: `b"…" [names] {kind} {(attribute) item} b"…"`.
pub fn step(tokens: TokenStream) -> TokenStream {
    beside::step(tokens).unwrap_or_else(report::refused)
}

/// Expands an item at the end of its chain.
///
/// The end of a chain is a new macro call, to which only tokens pass: the item is parsed once in
/// each call. The start has reported all errors of reading, so an error here means a call by hand.
fn linked_item(linked: chain::Linked) -> syn::Result<TokenStream> {
    let facade = facade(linked.attribute.clone());
    match linked.end {
        ChainEnd::Kernel => {
            let item: ItemFn = syn::parse2(linked.item)?;
            let kernel = read_kernel(linked.attribute, &item)?;
            let expansion = match callees(linked.end, &kernel.function.name, &kernel.callees(), &linked.libraries) {
                Ok(callees) => compile_kernel(&item, &facade, &kernel, &callees),
                Err(CalleeState::Missing(diagnostics)) => with_diagnostics(&item, &facade, &kernel, &diagnostics),
                Err(state) => Expansion { errors: state.errors(), ..Expansion::read(&item, &facade, &kernel) },
            };
            Ok(expansion.render())
        }
        ChainEnd::Device => {
            let item: ItemFn = syn::parse2(linked.item.clone())?;
            let DeviceClauses { value, .. } = device_attribute(linked.attribute.clone(), DeviceItemKind::Function)?;
            let parsed = syntax::device(&item)?;
            Ok(match callees(linked.end, &parsed.name, &parsed.callees(), &linked.libraries) {
                Ok(callees) => finish_device(&item, &facade, parsed, &callees, value, &linked.own()),
                Err(state) => {
                    let errors = match state {
                        CalleeState::Missing(missing) => device_diagnostics(&item, &facade, &missing),
                        state => state.errors(),
                    };
                    failed_device(&item, &facade, &parsed, errors, value, &linked.own())
                }
            })
        }
        ChainEnd::Module => module::linked(&facade, &syn::parse2(linked.item.clone())?, &linked.own()),
    }
}

/// Returns the error of tolerances for parameters that no approximate result reaches: their values
/// are exact everywhere.
fn unreached_tolerances(
    parsed: &syntax::Kernel,
    program: &crate::hir::Program,
    compiled: &artifact::CompiledInstances,
) -> Option<syn::Error> {
    let declared = parsed.tolerances.iter().zip(&program.launch.tolerances);
    let needless =
        declared.filter(|(_, t)| !parsed.instances.is_empty() && !compiled.approximate.contains(&t.parameter));
    let errors = needless.map(|(written, _)| {
        let name = &written.name;
        let message = format!(
            "`{name}` needs no tolerance: no approximation affects it, so its results are bit-identical on every executor\nhelp: remove the tolerance; it applies to results of `fast::` functions"
        );
        syn::Error::new(name.span(), message)
    });
    errors.reduce(|mut all, error| {
        all.combine(error);
        all
    })
}

/// Returns the items beside a device function, with `callees` for the device items that it names.
fn finish_device(
    item: &ItemFn,
    facade: &Path,
    mut parsed: syntax::Function,
    callees: &[ItemReference],
    value: bool,
    chain: &ChainResult,
) -> TokenStream {
    parsed.hash = chain.identity(parsed.hash);
    match check::device(&parsed, callees) {
        Ok(checked) => {
            let library = serial::encode_library(&checked.hir);
            let export = export::complete(item, &library, chain.part);
            if chain.part == ExpansionPart::Exports {
                let rest = beside::rest_macro(facade, chain.libraries, parsed.hash);
                return quote!(#export #rest);
            }
            let witness = witness::agreement(item, facade, &checked.locals, &checked.prelude);
            let value = value.then(|| module::function_type(item, facade, parsed.hash, &library, chain.part));
            quote!(#witness #value #export)
        }
        Err(diagnostics) => {
            let errors = device_diagnostics(item, facade, &diagnostics);
            failed_device(item, facade, &parsed, errors, value, chain)
        }
    }
}

/// Returns the items beside a device function with errors.
fn failed_device(
    item: &ItemFn,
    facade: &Path,
    parsed: &syntax::Function,
    errors: TokenStream,
    value: bool,
    chain: &ChainResult,
) -> TokenStream {
    let export = export::failed(item, chain.part);
    if chain.part == ExpansionPart::Exports {
        let rest = beside::rest_macro(facade, chain.libraries, parsed.hash);
        return quote!(#export #rest);
    }
    let value = value.then(|| module::function_type(item, facade, parsed.hash, &[], chain.part));
    quote!(#errors #value #export)
}

/// Reports diagnostics of a device function, unless rustc reports an error.
fn device_diagnostics(item: &ItemFn, facade: &Path, diagnostics: &[check::Diagnostic]) -> TokenStream {
    copy::copy_without_lints(item, &witness::diagnostics(item, facade, &item.block, &[], diagnostics))
}

/// Returns the callees of an item from the libraries of its chain, in the same order.
fn callees(
    end: ChainEnd,
    name: &Ident,
    paths: &[Path],
    libraries: &[syn::LitByteStr],
) -> Result<Vec<ItemReference>, CalleeState> {
    if paths.len() != libraries.len() {
        let message = format!("{} device items passed for {} names", libraries.len(), paths.len());
        return Err(CalleeState::Unreadable(syn::Error::new(name.span(), message)));
    }
    // Without a device item called `Result`, the name is that of Rust's prelude.
    let is_of_rust = |path: &Path, bytes: &syn::LitByteStr| chain::is_result(path) && bytes.value() == chain::MISSING;
    let passed = || paths.iter().zip(libraries).filter(|(path, bytes)| !is_of_rust(path, bytes));
    let missing = passed().filter(|(_, bytes)| bytes.value() == chain::MISSING);
    let missing: Vec<_> = missing.map(|(path, _)| chain::missing(path, end)).collect();
    if !missing.is_empty() {
        return Err(CalleeState::Missing(missing));
    }
    if libraries.iter().any(|l| l.value().is_empty()) {
        return Err(CalleeState::Failed);
    }
    passed().map(|(path, bytes)| chain::callee(path, &bytes.value())).collect()
}

/// Parses the item as a function. Otherwise returns the error together with the item, so that uses
/// of the item do not fail too.
fn function(attribute: &str, item: TokenStream) -> Result<ItemFn, TokenStream> {
    let error = match syn::parse2::<ItemFn>(item.clone()) {
        Ok(function) => return Ok(function),
        Err(error) => match syn::parse2::<Item>(item.clone()) {
            Ok(Item::Fn(_)) | Err(_) => error,
            Ok(other) => syn::Error::new_spanned(other, format!("`#[{attribute}]` applies to a function")),
        },
    };
    let errors = report::refused(error);
    Err(quote!(#errors #item))
}

/// Returns the error for a method, without further items: an `impl` allows no other item than a
/// macro call beside a method.
fn method(attribute: &str, item: &ItemFn) -> Option<TokenStream> {
    let receiver = item.sig.receiver()?;
    let message = format!("`#[{attribute}]` applies to a free function, without `self`: pass the value as a parameter");
    Some(syn::Error::new_spanned(receiver, message).to_compile_error())
}

/// Returns the path of the facade crate, if the attribute has one. The reader reports errors in the
/// attribute.
fn facade(attribute: TokenStream) -> Path {
    let find = |input: ParseStream| -> syn::Result<Option<Path>> {
        let mut found = None;
        while !input.is_empty() {
            if input.peek(Token![crate]) && input.peek2(Token![=]) {
                input.parse::<Token![crate]>()?;
                input.parse::<Token![=]>()?;
                found = Some(input.call(Path::parse_mod_style)?);
            } else {
                input.parse::<TokenTree>()?;
            }
        }
        Ok(found)
    };
    find.parse2(attribute).ok().flatten().unwrap_or_else(|| syn::parse_quote!(::kernel_dsl))
}

/// The kind of item under `#[device]`, which determines the allowed clauses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeviceItemKind {
    Function,
    Constant,
    Other,
}

/// The clauses of `#[device(crate = path, …)]`.
#[derive(Default)]
struct DeviceClauses {
    /// `value` on a function: the function is also a type.
    value: bool,
    /// `constant` or `global` on a constant: the placement of its table.
    placement: Option<Ident>,
}

fn device_attribute(attribute: TokenStream, on: DeviceItemKind) -> syn::Result<DeviceClauses> {
    let clauses = |input: ParseStream| -> syn::Result<DeviceClauses> {
        let mut clauses = DeviceClauses::default();
        while !input.is_empty() {
            let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
            if name == "crate" {
                input.parse::<Token![=]>()?;
                input.call(Path::parse_mod_style)?;
            } else if name == "value" && on == DeviceItemKind::Function {
                clauses.value = true;
            } else if (name == "constant" || name == "global")
                && on == DeviceItemKind::Constant
                && clauses.placement.is_none()
            {
                clauses.placement = Some(name);
            } else {
                let there = match on {
                    DeviceItemKind::Function => "the clauses are crate and value",
                    DeviceItemKind::Constant => "the clauses are crate, and either constant or global",
                    DeviceItemKind::Other => "the only clause is crate",
                };
                let message = format!("unknown clause `{name}` in `#[device]`; {there}");
                return Err(syn::Error::new(name.span(), message));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(clauses)
    };
    clauses.parse2(attribute)
}

/// Returns the `#[cfg]` attributes of an item, which every item generated from it also gets.
fn conditions(attributes: &[syn::Attribute]) -> TokenStream {
    attributes.iter().filter(|a| a.path().is_ident("cfg")).map(ToTokens::to_token_stream).collect()
}

/// Returns the tokens with another span.
fn with_span(tokens: TokenStream, span: Span) -> TokenStream {
    let at = |token| {
        let mut token = match token {
            TokenTree::Group(g) => TokenTree::Group(Group::new(g.delimiter(), with_span(g.stream(), span))),
            other => other,
        };
        token.set_span(span);
        token
    };
    tokens.into_iter().map(at).collect()
}
