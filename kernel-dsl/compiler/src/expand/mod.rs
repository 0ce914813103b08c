//! What `#[kernel]` and `#[device]` become.
//!
//! A kernel becomes a type of its name, which is a namespace (`matmul::<16>::PTX`, `matmul::<16>::launch`), and beside it, inside `const _`:
//! * the *copy*: the function as the user wrote it, spans and all, so that rustc type-checks it and an editor works in
//!   it; where our checker found mistakes, in a form that makes them wait for rustc's;
//! * the *witness*: a second copy, in which rustc is asked to agree with what our checker found;
//! * the *artifact*: HIR and PTX as literals, registered with the kernels of the program;
//! * the launch functions.
//!
//! A device function stays as it is. Beside it comes a macro of the same name that hands over the function's HIR: a `use`
//! of the function imports both. What calls device functions expands to a *chain* through their macros, which ends in
//! one call of [`link`] with all the HIR in hand.
//!
//! # One error for a mistake
//!
//! Rust outside the subset is a `compile_error!` at the token. A mistake of names or types is told by rustc, from the
//! copy; we speak of it only where rustc accepts the function (module `witness`). The stand-ins that a failed kernel leaves
//! behind keep its uses from failing too, and a failed device function hands over an empty literal, at which those that
//! call it fall silent. rustc prints a diagnostic once, however many copies cause it, since all its spans are the same.
//!
//! An expansion names nothing but the facade crate's path and the user's own names, and no name that it makes up shows
//! in a message.

mod artifact;
mod chain;
mod copy;
mod distinct;
mod expansion;
mod export;
mod inline;
mod launch;
mod method;
mod module;
mod namespace;
mod report;
mod witness;

#[cfg(test)]
mod tests;

use crate::check::{self, Callee};
use crate::hir::serial;
use crate::syntax;
use artifact::Artifact;
use chain::{CalleeState, ChainEnd, Link};
use distinct::{Purpose, distinct};
use expansion::Expansion;
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
        Err(refused) => return Expansion::refused(&item, &facade, refused).render(),
    };
    let callees = kernel.callees();
    let expansion = if callees.is_empty() {
        compile_kernel(&item, &facade, &kernel, &[])
    } else {
        let payload = quote!((#attribute) #item);
        let chain = Link { end: ChainEnd::Kernel, facade: &facade, payload }.start(&callees);
        Expansion { artifact: Artifact::Chain(chain), ..Expansion::read(&item, &facade, &kernel) }
    };
    expansion.with_launchers(&kernel).render()
}

/// Reads a kernel and rejects what its expansion cannot express.
fn read_kernel(attribute: TokenStream, item: &ItemFn) -> syn::Result<syntax::Kernel> {
    let kernel = syntax::kernel(attribute, item)?;
    namespace::fit(item)?;
    chain::callable(&kernel.function.name, &kernel.callees())?;
    Ok(kernel)
}

/// Expands a kernel up to its artifact, with `callees` for the device items that it names.
fn compile_kernel<'a>(
    item: &'a ItemFn,
    facade: &'a Path,
    kernel: &syntax::Kernel,
    callees: &[Callee],
) -> Expansion<'a> {
    let mut expansion = Expansion::read(item, facade, kernel);
    let checked = match check::kernel(kernel, callees) {
        Ok(checked) => checked,
        Err(mistakes) => {
            let body = copy::with_launch(item, facade, &kernel.launch_tokens);
            let values = kernel.instances.first().map_or(&[][..], |i| &i.0);
            let copy = witness::mistakes(item, facade, &body, values, &mistakes);
            expansion.copy = copy::loud(item, &copy);
            return expansion;
        }
    };
    expansion.witness = witness::agreement(item, facade, &checked.locals, &checked.prelude);
    match artifact::compile(&checked.hir) {
        Ok(compiled) => match needless(kernel, &checked.hir, &compiled) {
            None => expansion.artifact = Artifact::complete(&checked.hir, &kernel.instances, compiled.texts),
            Some(error) => expansion.errors = report::refused(error),
        },
        Err(failed) => {
            let tokens = report::Tokens { item, block: &kernel.launch_tokens.block, paths: &kernel.callees() };
            expansion.errors = report::compilation(&tokens, &checked.hir, callees, &failed);
        }
    }
    expansion
}

/// `#[device(attribute)] item`
pub fn device(attribute: TokenStream, item: TokenStream) -> TokenStream {
    match syn::parse2::<Item>(item.clone()) {
        Ok(Item::Fn(function)) => device_function(attribute, function),
        Ok(item @ (Item::Const(_) | Item::Struct(_) | Item::Enum(_) | Item::Mod(_))) => module::device(attribute, item),
        Ok(other) => {
            let message =
                "`#[device]` applies to a function, constant, struct or enum, or to a `mod` with traits and impls";
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
    let read = device_attribute(attribute, On::Function).and_then(|clauses| {
        chain::definable(&item.sig.ident)?;
        let parsed = syntax::device(&item)?;
        chain::callable(&parsed.name, &parsed.callees())?;
        Ok((clauses.value, parsed))
    });
    let (value, parsed) = match read {
        Ok(read) => read,
        Err(refused) => {
            copy::without_tries(&mut host.block);
            let (errors, export) = (report::refused(refused), export::failed(&item));
            return quote!(#[allow(unused)] #lints #host #errors #export);
        }
    };
    let callees = parsed.callees();
    let rest = if callees.is_empty() {
        finish_device(&item, &facade, parsed, &[], value)
    } else {
        let value = value.then(|| quote!(, value));
        let payload = quote!((crate = #facade #value) #item);
        Link { end: ChainEnd::Device, facade: &facade, payload }.start(&callees)
    };
    quote!(#lints #host #rest)
}

/// `#[derive(DeviceCopy)] item`
pub fn device_copy(item: TokenStream) -> TokenStream {
    match syn::parse2(item).and_then(|item| module::device_copy(&item)) {
        Ok(tokens) => tokens,
        Err(error) => report::refused(error),
    }
}

/// The end of a chain: `[] {kind} {(attribute) item} b"…" b"…"`.
pub fn link(tokens: TokenStream) -> TokenStream {
    match chain::Linked::parse(tokens) {
        Ok(linked) => linked_item(linked).unwrap_or_else(report::refused),
        Err(error) => report::refused(error),
    }
}

/// Expands an item at the end of its chain.
///
/// The end of a chain is a new macro call, to which only tokens pass: the item is parsed once in each
/// call. Its start has reported all errors of reading, so an error here means a call by hand.
fn linked_item(linked: chain::Linked) -> syn::Result<TokenStream> {
    let facade = facade(linked.attribute.clone());
    match linked.end {
        ChainEnd::Kernel => {
            let item: ItemFn = syn::parse2(linked.item)?;
            let kernel = read_kernel(linked.attribute, &item)?;
            let expansion = match callees(&kernel.function.name, &kernel.callees(), &linked.libraries) {
                Ok(callees) => compile_kernel(&item, &facade, &kernel, &callees),
                Err(state) => Expansion { errors: state.errors(), ..Expansion::read(&item, &facade, &kernel) },
            };
            Ok(expansion.render())
        }
        ChainEnd::Device => {
            let item: ItemFn = syn::parse2(linked.item)?;
            let Clauses { value, .. } = device_attribute(linked.attribute, On::Function)?;
            let parsed = syntax::device(&item)?;
            Ok(match callees(&parsed.name, &parsed.callees(), &linked.libraries) {
                Ok(callees) => finish_device(&item, &facade, parsed, &callees, value),
                Err(state) => {
                    let (errors, export) = (state.errors(), export::failed(&item));
                    quote!(#errors #export)
                }
            })
        }
        ChainEnd::Module => module::linked(&facade, &syn::parse2(linked.item)?, &linked.libraries),
    }
}

/// The tolerances for what no approximation reaches: such values are the same everywhere.
fn needless(
    parsed: &syntax::Kernel,
    program: &crate::hir::Program,
    compiled: &artifact::Compiled,
) -> Option<syn::Error> {
    let declared = parsed.tolerances.iter().zip(&program.launch.tolerances);
    let needless =
        declared.filter(|(_, t)| !parsed.instances.is_empty() && !compiled.approximate.contains(&t.parameter));
    let errors = needless.map(|(written, _)| {
        let name = &written.name;
        let message = format!(
            "`{name}` needs no tolerance: its results are exact on every executor\nhelp: remove the tolerance; it applies to results of `fast::` functions"
        );
        syn::Error::new(name.span(), message)
    });
    errors.reduce(|mut all, error| {
        all.combine(error);
        all
    })
}

/// What stands beside a device function whose callees are at hand.
fn finish_device(
    item: &ItemFn,
    facade: &Path,
    mut parsed: syntax::Function,
    callees: &[Callee],
    value: bool,
) -> TokenStream {
    parsed.hash = distinct(Purpose::Identity, parsed.hash);
    match check::device(&parsed, callees) {
        Ok(checked) => {
            let witness = witness::agreement(item, facade, &checked.locals, &checked.prelude);
            let library = serial::encode_library(&checked.hir);
            let value = value.then(|| module::function_type(item, facade, parsed.hash, &library));
            let export = export::whole(item, &library);
            quote!(#witness #value #export)
        }
        Err(mistakes) => {
            let copy = witness::mistakes(item, facade, &item.block, &[], &mistakes);
            let (copy, export) = (copy::silent(item, &copy), export::failed(item));
            let value = value.then(|| module::function_type(item, facade, parsed.hash, &[]));
            quote!(#copy #value #export)
        }
    }
}

/// What an item names with the libraries that its chain brought, in the same order.
fn callees(name: &Ident, paths: &[Path], libraries: &[syn::LitByteStr]) -> Result<Vec<Callee>, CalleeState> {
    if paths.len() != libraries.len() {
        let message = format!("{} device items passed for {} names", libraries.len(), paths.len());
        return Err(CalleeState::Unreadable(syn::Error::new(name.span(), message)));
    }
    if libraries.iter().any(|l| l.value().is_empty()) {
        return Err(CalleeState::Failed);
    }
    paths.iter().zip(libraries).map(|(path, bytes)| chain::callee(path, &bytes.value())).collect()
}

/// The function under the attribute; otherwise what to say, with the item kept, so that its uses stay whole.
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

/// A method is refused without more: next to one, nothing but a macro call can stand.
fn method(attribute: &str, item: &ItemFn) -> Option<TokenStream> {
    let receiver = item.sig.receiver()?;
    let message = format!("`#[{attribute}]` applies to a free function, without `self`: pass the value as a parameter");
    Some(syn::Error::new_spanned(receiver, message).to_compile_error())
}

/// The path of the facade crate, as far as the attribute can be read: its mistakes are the syntax stage's to tell.
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

/// What `#[device]` stands on, which decides what it may say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Function,
    Constant,
    Other,
}

/// What `#[device(crate = path, …)]` says.
#[derive(Default)]
struct Clauses {
    /// `value`, of a function: it is a type too.
    value: bool,
    /// `constant` or `global`, of a constant: where it lies as a table.
    placement: Option<Ident>,
}

fn device_attribute(attribute: TokenStream, on: On) -> syn::Result<Clauses> {
    let clauses = |input: ParseStream| -> syn::Result<Clauses> {
        let mut clauses = Clauses::default();
        while !input.is_empty() {
            let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
            if name == "crate" {
                input.parse::<Token![=]>()?;
                input.call(Path::parse_mod_style)?;
            } else if name == "value" && on == On::Function {
                clauses.value = true;
            } else if (name == "constant" || name == "global") && on == On::Constant && clauses.placement.is_none() {
                clauses.placement = Some(name);
            } else {
                let there = match on {
                    On::Function => "the clauses are crate and value",
                    On::Constant => "the clauses are crate, and either constant or global",
                    On::Other => "the only clause is crate",
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

/// Attributes that decide whether an item exists, for all that is made of it.
fn conditions(attributes: &[syn::Attribute]) -> TokenStream {
    attributes.iter().filter(|a| a.path().is_ident("cfg")).map(ToTokens::to_token_stream).collect()
}

/// The same tokens at another place.
fn respan(tokens: TokenStream, span: Span) -> TokenStream {
    let at = |token| {
        let mut token = match token {
            TokenTree::Group(g) => TokenTree::Group(Group::new(g.delimiter(), respan(g.stream(), span))),
            other => other,
        };
        token.set_span(span);
        token
    };
    tokens.into_iter().map(at).collect()
}
