//! The chain of macro calls that collects the HIR of device functions.
//!
//! A macro sees only its own item. Each device function therefore also defines a macro of its name,
//! which carries the HIR as a byte literal. Rust's name resolution finds the macro, through
//! modules, renames, globs and crates. An item that calls `act::silu` and `lerp` expands to:
//! ```text
//! act::silu! { [[lerp] [::kernel_dsl::__link]] {kernel} {(attribute) item} }
//! ```
//! and each macro passes the state to the next macro in the brackets, with its literal appended:
//! ```text
//! lerp! { [[::kernel_dsl::__link]] {kernel} {(attribute) item} b"HIR of silu" }
//! ::kernel_dsl::__link! { [] {kernel} {(attribute) item} b"HIR of silu" b"HIR of lerp" }
//! ```
//!
//! For an item of the host, rustc would report "cannot find macro". The chain of a kernel therefore
//! calls its callees by aliases. In an outer block each alias is the macro `__missing`, which
//! passes [`MISSING`] instead of HIR. In the block within, `use lerp as alias` replaces the macro,
//! if `lerp` has one. The call is in a third block: otherwise the call itself could define `lerp`,
//! so that rustc could not resolve the name.
//!
//! The chain of a device item defines a macro for its module, so that chain cannot be in a block.
//! The module [`beside`](super::beside) describes its chain.

use super::distinct::{HashPurpose, distinct};
use super::report;
use crate::check::{Diagnostic, ItemReference, ReportedBy};
use crate::hir::serial;
use crate::language;
use crate::source;
use crate::syntax::SpanPair;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{LitByteStr, LitInt, Path, braced, bracketed, parenthesized};

/// The kind of item that the end of a chain expands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChainEnd {
    /// A kernel: the expression of its artifact.
    Kernel,
    /// A device function: the items that its expansion adds.
    Device,
    /// Any other device item or a module: the items that its expansion adds.
    Module,
}

/// The part of the expansion of a device item that the end of a chain makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExpansionPart {
    /// All of it.
    Whole,
    /// The macros that pass the HIR, and a macro that calls the end of the chain for the rest.
    Exports,
    /// Everything but the macros. The item has this identity on the device.
    Rest { identity: u64 },
}

/// A chain before its first call.
pub(super) struct ChainStart<'a> {
    pub end: ChainEnd,
    pub facade: &'a Path,
    /// `(attribute) item`
    pub payload: TokenStream,
}

/// The arguments of the end of a chain.
pub(super) struct Linked {
    pub end: ChainEnd,
    pub part: ExpansionPart,
    pub attribute: TokenStream,
    /// The item: a function, or for [`ChainEnd::Module`] any other item.
    pub item: TokenStream,
    /// The HIR of each callee, in the order in which the item names them.
    pub libraries: Vec<LitByteStr>,
}

/// The bytes that the macro `__missing` passes for a callee that is not a device item.
pub(super) const MISSING: &[u8] = b"missing";

/// The reason why the HIR of a callee cannot be used.
pub(super) enum CalleeState {
    /// The callees that are no device items, with a message for each.
    Missing(Vec<Diagnostic>),
    /// The callee has diagnostics, which are reported at the callee itself.
    Failed,
    /// The bytes are not HIR of this compiler.
    Unreadable(syn::Error),
}

impl CalleeState {
    /// Renders the errors to report at the caller, as items.
    pub(super) fn errors(self) -> TokenStream {
        match self {
            CalleeState::Failed => TokenStream::new(),
            CalleeState::Missing(diagnostics) => report::render_unconditionally(&diagnostics),
            CalleeState::Unreadable(error) => report::refused(error),
        }
    }
}

impl ChainStart<'_> {
    /// Returns the call of the first callee's macro, or of the end if there is no callee.
    ///
    /// The chain of a device item in a block calls the macros by their own names. Rust's prelude
    /// has no macro `Result`, so this chain passes [`MISSING`] for the name at once.
    pub(super) fn start(&self, callees: &[Path]) -> TokenStream {
        let facade = self.facade;
        match self.end {
            ChainEnd::Device | ChainEnd::Module => {
                let results = callees.iter().take_while(|path| is_result(path)).count();
                let passed = vec![Literal::byte_string(MISSING); results];
                self.call(&callees[results..], &passed)
            }
            ChainEnd::Kernel => {
                let aliases: Vec<Path> =
                    (0..callees.len()).map(|i| quote::format_ident!("__callee_{i}").into()).collect();
                let call = self.call(&aliases, &[]);
                quote!({
                    #(#[allow(unused_imports)] use #facade::__missing as #aliases;)*
                    {
                        #(#[allow(unused_imports, deprecated)] use #callees as #aliases;)*
                        { #call }
                    }
                })
            }
        }
    }

    /// Returns the call of the first macro of `names`, or of the end. `passed` are the bytes of the
    /// callees before them.
    fn call(&self, names: &[Path], passed: &[Literal]) -> TokenStream {
        let (facade, payload, kind) = (self.facade, &self.payload, self.kind());
        let end: Path = syn::parse_quote!(#facade::__link);
        let mut stops = names.iter().chain([&end]);
        let (first, rest) = (stops.next(), stops);
        quote!(#first ! { [#([#rest])*] { #kind } { #payload } #(#passed)* })
    }

    /// Returns the word for the item in the state of the chain.
    pub(super) fn kind(&self) -> TokenStream {
        match self.end {
            ChainEnd::Kernel => quote!(kernel),
            ChainEnd::Device => quote!(device),
            ChainEnd::Module => quote!(module),
        }
    }
}

/// The result of a chain, for the expansion of its item.
pub(super) struct ChainResult<'a> {
    pub part: ExpansionPart,
    pub libraries: &'a [LitByteStr],
}

impl ChainResult<'_> {
    /// The result for an item without callees, which needs no chain.
    pub(super) const NONE: ChainResult<'static> = ChainResult { part: ExpansionPart::Whole, libraries: &[] };

    /// Returns the identity of the item, whose tokens have the hash `hash`.
    pub(super) fn identity(&self, hash: u64) -> u64 {
        match self.part {
            ExpansionPart::Rest { identity } => identity,
            ExpansionPart::Whole | ExpansionPart::Exports => distinct(HashPurpose::Identity, hash),
        }
    }
}

impl Linked {
    pub(super) fn own(&self) -> ChainResult<'_> {
        ChainResult { part: self.part, libraries: &self.libraries }
    }

    pub(super) fn parse(tokens: TokenStream) -> syn::Result<Linked> {
        Parser::parse2(Linked::read, tokens)
    }

    fn read(input: ParseStream) -> syn::Result<Linked> {
        let (left, kind, payload, attribute);
        bracketed!(left in input);
        if !left.is_empty() {
            return Err(left.error("the HIR of some device functions is still missing"));
        }
        braced!(kind in input);
        let name: Ident = kind.parse()?;
        let exports = kind.peek(syn::Ident) && kind.parse::<Ident>()? == "exports";
        let end = match name.to_string().as_str() {
            "kernel" => ChainEnd::Kernel,
            "device" => ChainEnd::Device,
            "module" => ChainEnd::Module,
            _ => return Err(syn::Error::new(name.span(), "neither a kernel nor a device item")),
        };
        braced!(payload in input);
        parenthesized!(attribute in payload);
        let attribute = attribute.parse()?;
        let item = payload.parse()?;
        let mut libraries = Vec::new();
        while input.peek(LitByteStr) {
            libraries.push(LitByteStr::parse(input)?);
        }
        let part = match (exports, input.is_empty()) {
            (true, _) => ExpansionPart::Exports,
            (false, true) => ExpansionPart::Whole,
            (false, false) => ExpansionPart::Rest { identity: input.parse::<LitInt>()?.base10_parse()? },
        };
        Ok(Linked { end, part, attribute, item, libraries })
    }
}

/// Decodes the callee at `path` from the bytes of its macro.
pub(super) fn callee(path: &Path, bytes: &[u8]) -> Result<ItemReference, CalleeState> {
    match serial::library(bytes) {
        Ok(library) => Ok(ItemReference { path: written(path), library }),
        Err(error) => {
            let message = format!("cannot read the device item `{}`: {error}", written(path));
            Err(CalleeState::Unreadable(syn::Error::new_spanned(path, message)))
        }
    }
}

/// Returns whether a callee is `Result`: a device item, or else the enum of Rust's prelude.
pub(super) fn is_result(path: &Path) -> bool {
    path.is_ident(language::RESULT_NAME)
}

/// Returns the diagnostic of a callee that is not a device item.
pub(super) fn missing(path: &Path, user: ChainEnd) -> Diagnostic {
    let spans = || path.segments.iter().map(|s| s.ident.span());
    let (first, last) = (spans().next(), spans().next_back());
    let first = first.unwrap_or_else(Span::call_site);
    let mark = SpanPair { first, last: last.unwrap_or(first), span: source::Span::default() };
    let user = match user {
        ChainEnd::Kernel => "a kernel",
        ChainEnd::Device => "a device function",
        ChainEnd::Module => "a device item",
    };
    Diagnostic { mark, message: language::missing_item(&written(path), user), reported_by: ReportedBy::Compiler }
}

/// Returns the path in the form that the checker uses for callees.
pub(super) fn written(path: &Path) -> String {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, names.join("::"))
}

/// Rejects calls that the chain cannot follow: recursive calls, and names of macros of std.
pub(super) fn callable(name_of: &Ident, callees: &[Path]) -> syn::Result<()> {
    let mut refused: Option<syn::Error> = None;
    for path in callees {
        let Some(name) = path.get_ident() else { continue };
        let error = if name == name_of {
            syn::Error::new(
                name.span(),
                format!("`{name}` calls itself; device calls are always inlined, so write a loop"),
            )
        } else if is_rust_macro(name) {
            not_free(name)
        } else {
            continue;
        };
        match &mut refused {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }
    refused.map_or(Ok(()), Err)
}

/// Rejects a device function whose name a macro cannot have.
pub(super) fn definable(name: &Ident) -> syn::Result<()> {
    match language::foreign_function(&name.to_string()) {
        Some(message) => Err(syn::Error::new_spanned(name, message)),
        None if is_rust_macro(name) => Err(not_free(name)),
        None => Ok(()),
    }
}

fn not_free(name: &Ident) -> syn::Error {
    let message = format!(
        "a device function cannot be named `{name}`: it also defines a macro of that name, and Rust already has one; rename it"
    );
    syn::Error::new_spanned(name.to_token_stream(), message)
}

fn is_rust_macro(name: &Ident) -> bool {
    let name = name.to_string();
    RUST_MACRO_NAMES.contains(&name.as_str())
}

/// The lower-case names in the macro namespace of every module: macros of std's prelude, built-in
/// attributes, and the macros of kernel-dsl.
const RUST_MACRO_NAMES: &[&str] = &[
    "allow",
    "assert",
    "assert_eq",
    "assert_ne",
    "bench",
    "cfg",
    "cfg_attr",
    "cfg_select",
    "cold",
    "column",
    "compile_error",
    "concat",
    "dbg",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "deny",
    "deprecated",
    "derive",
    "device",
    "doc",
    "env",
    "eprint",
    "eprintln",
    "expect",
    "file",
    "forbid",
    "format",
    "format_args",
    "global_allocator",
    "ignore",
    "include",
    "include_bytes",
    "include_str",
    "inline",
    "is_x86_feature_detected",
    "kernel",
    "line",
    "link",
    "log",
    "macro_export",
    "macro_use",
    "matches",
    "module_path",
    "must_use",
    "no_mangle",
    "option_env",
    "panic",
    "path",
    "print",
    "println",
    "proc_macro",
    "ptx",
    "repr",
    "requires",
    "should_panic",
    "stringify",
    "target_feature",
    "test",
    "thread_local",
    "todo",
    "track_caller",
    "unimplemented",
    "unreachable",
    "used",
    "vec",
    "warn",
    "write",
    "writeln",
];
