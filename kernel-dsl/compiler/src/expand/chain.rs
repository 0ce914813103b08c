//! The chain that brings the HIR of device functions together.
//!
//! A macro sees nothing but its own item. So a device function's name is also that of a macro, which carries its HIR as a
//! byte literal; Rust's own name resolution finds it, through modules, renames, globs and crates. An item that calls
//! `act::silu` and `lerp` expands to
//! ```text
//! act::silu! { [[lerp] [::kernel_dsl::__link]] {kernel} {(attribute) item} }
//! ```
//! and each macro passes the state on to the next in the brackets, its literal appended:
//! ```text
//! lerp! { [[::kernel_dsl::__link]] {kernel} {(attribute) item} b"HIR of silu" }
//! ::kernel_dsl::__link! { [] {kernel} {(attribute) item} b"HIR of silu" b"HIR of lerp" }
//! ```

use super::report;
use crate::check::Callee;
use crate::hir::serial;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::{LitByteStr, Path, braced, bracketed, parenthesized};

/// What the end of the chain makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ChainEnd {
    /// A kernel's artifact, an expression.
    Kernel,
    /// A device function's macro, items.
    Device,
    /// The macros of a device item that is no function, or of a module's items.
    Module,
}

/// A chain to be set out on.
pub(super) struct Link<'a> {
    pub end: ChainEnd,
    pub facade: &'a Path,
    /// `(attribute) item`
    pub payload: TokenStream,
}

/// A chain that has arrived.
pub(super) struct Linked {
    pub end: ChainEnd,
    pub attribute: TokenStream,
    /// A function; for [`ChainEnd::Module`] any other item.
    pub item: TokenStream,
    /// One a callee, in the order in which the item names them.
    pub libraries: Vec<LitByteStr>,
}

/// Why the HIR of a callee cannot be used.
pub(super) enum CalleeState {
    /// The callee has mistakes, which are reported at the callee itself.
    Failed,
    /// The bytes are not HIR of this compiler.
    Unreadable(syn::Error),
}

impl CalleeState {
    /// Renders the errors to report at the caller, as items.
    pub(super) fn errors(self) -> TokenStream {
        match self {
            CalleeState::Failed => TokenStream::new(),
            CalleeState::Unreadable(error) => report::refused(error),
        }
    }
}

impl Link<'_> {
    /// The call of the first callee's macro; of the end itself if there is no callee.
    pub(super) fn start(&self, callees: &[Path]) -> TokenStream {
        let (facade, payload) = (self.facade, &self.payload);
        let end: Path = syn::parse_quote!(#facade::__link);
        let mut stops = callees.iter().chain([&end]);
        let (first, rest) = (stops.next(), stops);
        let kind = match self.end {
            ChainEnd::Kernel => quote!(kernel),
            ChainEnd::Device => quote!(device),
            ChainEnd::Module => quote!(module),
        };
        quote!(#first ! { [#([#rest])*] { #kind } { #payload } })
    }
}

impl Linked {
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
        while !input.is_empty() {
            libraries.push(LitByteStr::parse(input)?);
        }
        Ok(Linked { end, attribute, item, libraries })
    }
}

/// The callee at `path`, from the bytes that its macro handed over.
pub(super) fn callee(path: &Path, bytes: &[u8]) -> Result<Callee, CalleeState> {
    match serial::library(bytes) {
        Ok(library) => Ok(Callee { path: written(path), library }),
        Err(error) => {
            let message = format!("cannot read the device item `{}`: {error}", written(path));
            Err(CalleeState::Unreadable(syn::Error::new_spanned(path, message)))
        }
    }
}

/// The path as the check stage names a callee.
pub(super) fn written(path: &Path) -> String {
    let names: Vec<_> = path.segments.iter().map(|s| s.ident.to_string()).collect();
    format!("{}{}", if path.leading_colon.is_some() { "::" } else { "" }, names.join("::"))
}

/// Refuses calls that the chain cannot follow: of the function itself, and of names that are macros of std.
pub(super) fn callable(name_of: &Ident, callees: &[Path]) -> syn::Result<()> {
    let mut refused: Option<syn::Error> = None;
    for path in callees {
        let Some(name) = path.get_ident() else { continue };
        let error = if name == name_of {
            syn::Error::new(
                name.span(),
                format!("`{name}` calls itself; device calls are always inlined, so write a loop"),
            )
        } else if taken(name) {
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

/// Refuses a device function whose name a macro cannot have.
pub(super) fn definable(name: &Ident) -> syn::Result<()> {
    if taken(name) { Err(not_free(name)) } else { Ok(()) }
}

fn not_free(name: &Ident) -> syn::Error {
    let message = format!(
        "a device function cannot be named `{name}`: it also defines a macro of that name, and Rust already has one; rename it"
    );
    syn::Error::new_spanned(name.to_token_stream(), message)
}

fn taken(name: &Ident) -> bool {
    let name = name.to_string();
    TAKEN.contains(&name.as_str())
}

/// Lower-case names in the macro namespace that every module sees: macros of std's prelude, built-in attributes, ours.
const TAKEN: &[&str] = &[
    "allow",
    "assert",
    "assert_eq",
    "assert_ne",
    "bench",
    "cfg",
    "cfg_attr",
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
