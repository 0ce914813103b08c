//! Errors as tokens that make rustc report them at the user's tokens.

use super::chain;
use crate::check::{Diagnostic, ItemReference};
use crate::error::{Error, Errors};
use crate::hir::Program;
use crate::source::{KernelSource, Span};
use proc_macro2::{LineColumn, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{ItemFn, Path};

/// Renders errors that appear whether or not rustc finds others. The errors are inside a `const`,
/// which is valid as an item and as a statement.
pub(super) fn refused(error: syn::Error) -> TokenStream {
    let errors = error.to_compile_error();
    quote!(const _: () = { #errors };)
}

/// The part of a kernel that an error is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorSubject {
    /// The clause `block` of the attribute.
    Block,
    /// The function.
    Body,
}

/// An instance that failed to compile.
pub(super) struct FailedInstance {
    /// The name of the instance.
    pub instance: String,
    /// The number of instances of the kernel.
    pub of: usize,
    /// The part to mark for errors without a place.
    pub about: ErrorSubject,
    pub errors: Errors,
}

/// The user's tokens of a kernel.
pub(super) struct KernelTokens<'a> {
    pub item: &'a ItemFn,
    /// The tokens of the clause `block`.
    pub block: &'a [TokenStream],
    /// The device functions that the kernel names.
    pub paths: &'a [Path],
}

/// Renders errors of lowering, analyses, passes and emission, each once. An error that not all
/// instances have names its instances.
pub(super) fn compilation(
    tokens: &KernelTokens,
    program: &Program,
    callees: &[ItemReference],
    failed: &[FailedInstance],
) -> TokenStream {
    let KernelTokens { item, block, paths } = *tokens;
    let mut merged: Vec<(&Error, ErrorSubject, Vec<&str>)> = Vec::new();
    for failure in failed {
        for error in &failure.errors.0 {
            match merged.iter_mut().find(|(e, ..)| *e == error) {
                Some((.., instances)) => instances.push(&failure.instance),
                None => merged.push((error, failure.about, vec![&failure.instance])),
            }
        }
    }
    let mut all: Option<syn::Error> = None;
    for (error, about, instances) in merged {
        let mut message = error.text();
        let named = instances.iter().any(|instance| message.contains(instance));
        if !named && failed.iter().any(|f| instances.len() < f.of) {
            message += &format!("\nnote: in {}", quoted(&instances));
        }
        let own = &program.functions[0].source;
        let error = match &error.place {
            Some((source, span)) if source == own => syn::Error::new_spanned(tokens_at(item, source, *span), message),
            Some((source, span)) => {
                let line = source.line + u32::from(span.line);
                let message = format!("in `{}` ({}:{line}:{}): {message}", source.name, source.file, span.column);
                syn::Error::new_spanned(caller_of(source, callees, paths, item), message)
            }
            None if about == ErrorSubject::Block && !block.is_empty() => {
                syn::Error::new_spanned(quote!(#(#block)*), message)
            }
            None => syn::Error::new_spanned(&item.sig.ident, message),
        };
        match &mut all {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }
    // A stage that fails without an error is a bug.
    refused(all.unwrap_or_else(|| {
        syn::Error::new_spanned(
            &item.sig.ident,
            "internal error: kernel-dsl failed to compile this kernel without a message; please report this",
        )
    }))
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

/// Returns the call in the kernel that leads to the function with `source`.
fn caller_of(source: &KernelSource, callees: &[ItemReference], paths: &[Path], item: &ItemFn) -> TokenStream {
    let name = callees.iter().find(|c| c.library.functions.iter().any(|f| f.source == *source)).map(|c| &c.path);
    let path = paths.iter().find(|p| Some(&chain::written(p)) == name);
    path.map_or_else(|| item.sig.ident.to_token_stream(), ToTokens::into_token_stream)
}

/// Returns the tokens of `item` that `span` covers. Returns the function's name if there are none,
/// as in an editor that gives no line numbers.
pub(super) fn tokens_at(item: &ItemFn, source: &KernelSource, span: Span) -> TokenStream {
    let place =
        |line: u16, column: u16| (source.line as usize + usize::from(line), usize::from(column).saturating_sub(1));
    let (start, end) = (place(span.line, span.column), place(span.end_line, span.end_column));
    let mut found = TokenStream::new();
    leaves(item.to_token_stream(), &mut |token| {
        let at = |p: LineColumn| (p.line, p.column);
        if at(token.span().start()) >= start && at(token.span().end()) <= end {
            found.extend([token]);
        }
    });
    if found.is_empty() { item.sig.ident.to_token_stream() } else { found }
}

/// Calls `f` for each token, with delimiters as punctuation.
fn leaves(tokens: TokenStream, f: &mut dyn FnMut(TokenTree)) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let delimiter = |span| {
                    let mut punct = proc_macro2::Punct::new('.', proc_macro2::Spacing::Alone);
                    punct.set_span(span);
                    TokenTree::Punct(punct)
                };
                if group.delimiter() == proc_macro2::Delimiter::None {
                    leaves(group.stream(), f);
                } else {
                    f(delimiter(group.span_open()));
                    leaves(group.stream(), f);
                    f(delimiter(group.span_close()));
                }
            }
            other => f(other),
        }
    }
}

/// Renders diagnostics of items that rustc cannot check alone.
pub(super) fn render_unconditionally(diagnostics: &[Diagnostic]) -> TokenStream {
    let each = diagnostics.iter().map(|diagnostic| {
        let message = &diagnostic.message;
        let error = quote_spanned!(diagnostic.mark.first=> ::core::compile_error!);
        let words = quote_spanned!(diagnostic.mark.last=> { #message });
        quote!(const _: () = { #error #words };)
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_source_is_found_among_the_tokens() {
        let item: ItemFn = syn::parse_str("fn k(y: &mut [f32]) {\n    let i = 1;\n    y[i] = 2.0 + 3.0;\n}").unwrap();
        let line = item.sig.fn_token.span.start().line as u32;
        let source = KernelSource { name: "k".into(), file: String::new(), line, text: vec![] };
        let found = |line, column, end_line, end_column| {
            tokens_at(&item, &source, Span { line, column, end_line, end_column }).to_string()
        };
        assert_eq!(found(2, 12, 2, 21), "2.0 + 3.0");
        assert_eq!(found(1, 9, 1, 10), "i");
        assert_eq!(found(70, 1, 70, 2), "k", "nowhere: the name");
    }
}
