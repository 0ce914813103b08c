//! The second copy of a function, in which rustc confirms the checker's results.
//!
//! If the checker accepts a function, rustc confirms its results: the type of each variable, and
//! the identity of each function of the prelude, so that a user's own `block::sync` cannot mean two
//! things. Types are compared by `&x as &T`, which rustc checks after inference and which does not
//! affect inference.
//!
//! If the checker finds errors, their messages appear only if rustc finds none. The copy hides the
//! type of the body in an opaque type, and a constant needs the size of this type. To compute the
//! size, rustc must first check the body. If the body has errors, the constant fails silently. So
//! the constant's panic, which is our message, appears only if rustc accepts the body.

use super::copy::copy_without_lints;
use super::launch::parameters;
use super::stand_ins::{StandIns, diagnostic_constants};
use super::{inline, report, with_span};
use crate::check::Diagnostic;
use crate::syntax::InstanceArgument;
use proc_macro2::{Delimiter, Group, Ident, LineColumn, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, ItemFn, Pat, PatType, Path, ReturnType, Stmt, Visibility};

/// Returns a copy in which rustc confirms the types of `locals`, found by the position of their
/// names, and the functions of `prelude`.
pub(super) fn agreement(
    item: &ItemFn,
    facade: &Path,
    locals: &[(Span, TokenStream)],
    prelude: &[(TokenStream, TokenStream)],
) -> TokenStream {
    let mut compare = Compare { types: places(item, locals) };
    if compare.types.is_empty() && prelude.is_empty() {
        return TokenStream::new();
    }
    let mut copy = inline::for_rustc(item);
    copy.attrs.clear();
    copy.vis = Visibility::Inherited;
    compare.visit_block_mut(&mut copy.block);
    let parameters: Vec<_> = parameters(item).flat_map(|p| compare.names(&p.pat)).collect();
    let paths = prelude.iter().map(|(written, canonical)| -> Stmt {
        let span = written.span();
        let canonical = with_span(quote!(#facade::prelude::#canonical), span);
        let same = quote_spanned!(span=> let mut function = #written; function = #canonical;);
        syn::parse_quote!({ #same })
    });
    copy.block.stmts.splice(0..0, parameters.into_iter().chain(paths));
    copy_without_lints(item, &copy)
}

/// Returns the variables by the position of their names. Returns none if two names of the function
/// share a position, as in some editors and for repeated macro arguments.
fn places<'l>(item: &ItemFn, locals: &'l [(Span, TokenStream)]) -> Vec<(LineColumn, &'l TokenStream)> {
    let mut names = PatternNames(Vec::new());
    names.visit_item_fn(item);
    let different: HashSet<_> = names.0.iter().map(|name| name.span().start()).collect();
    if different.len() < names.0.len() {
        return Vec::new();
    }
    locals.iter().map(|(span, ty)| (span.start(), ty)).collect()
}

/// Adds a comparison after each binding of a variable.
struct Compare<'a> {
    types: Vec<(LineColumn, &'a TokenStream)>,
}

impl Compare<'_> {
    fn names(&self, pattern: &Pat) -> Vec<Stmt> {
        let mut names = PatternNames(Vec::new());
        names.visit_pat(pattern);
        let compared = names.0.iter().filter_map(|name| {
            let (_, ty) = self.types.iter().find(|(at, _)| *at == name.span().start())?;
            let comparison = quote_spanned!(name.span()=> let _ = &#name as &#ty;);
            syn::parse2(comparison).ok()
        });
        compared.collect()
    }
}

impl VisitMut for Compare<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let statements = std::mem::take(&mut block.stmts);
        for mut statement in statements {
            self.visit_stmt_mut(&mut statement);
            let compared = match &statement {
                Stmt::Local(local) if local.init.is_some() => self.names(&local.pat),
                _ => Vec::new(),
            };
            block.stmts.push(statement);
            block.stmts.extend(compared);
        }
    }

    fn visit_expr_for_loop_mut(&mut self, each: &mut syn::ExprForLoop) {
        syn::visit_mut::visit_expr_for_loop_mut(self, each);
        let compared = self.names(&each.pat);
        each.body.stmts.splice(0..0, compared);
    }
}

/// The names that a pattern binds.
struct PatternNames(Vec<Ident>);

impl<'p> Visit<'p> for PatternNames {
    fn visit_pat_ident(&mut self, pattern: &'p syn::PatIdent) {
        self.0.push(pattern.ident.clone());
    }
}

/// Returns a copy, and items that report `diagnostics` if rustc accepts the body. `values` are
/// the generic arguments of an instance, if one is declared.
pub(super) fn diagnostics(
    item: &ItemFn,
    facade: &Path,
    body: &Block,
    values: &[InstanceArgument],
    diagnostics: &[Diagnostic],
) -> TokenStream {
    let body = &inline::block_for_rustc(body);
    let signature = &item.sig;
    let name = &signature.ident;
    let mut generics = signature.generics.clone();
    // A closure parameter cannot be `impl Fn`: such a type becomes a generic parameter.
    let parameters: Vec<TokenStream> = parameters(item)
        .enumerate()
        .map(|(number, PatType { pat, ty, .. })| match &**ty {
            syn::Type::ImplTrait(callable) => {
                let name = quote::format_ident!("Callable{number}");
                let bounds = &callable.bounds;
                generics.params.push(syn::parse_quote!(#name: #bounds));
                quote!(#pat: #name)
            }
            ty => quote!(#pat: #ty),
        })
        .collect();
    let returns = match &signature.output {
        ReturnType::Default => quote!(-> ()),
        written => written.to_token_stream(),
    };
    let stand_ins = StandIns::new(facade, &generics);
    let reports = match values {
        [] => {
            let arguments = stand_ins.arguments(&generics);
            let instance = if arguments.is_empty() { quote!() } else { quote!(::<#(#arguments),*>) };
            stand_ins.report(&quote!(#name #instance), diagnostics)
        }
        values => Some(diagnostic_constants(facade, &quote!(#name::<#(#values),*>), diagnostics)),
    };
    let Some(reports) = reports else { return report::render_unconditionally(diagnostics) };
    // The hidden type is that of a closure, because rustc's messages about closures match those
    // about functions. The copy is at the position of the function: rustc does not suggest a
    // function for a misspelt name in its own body, and would suggest a copy at another position.
    let mut closure = Group::new(Delimiter::Brace, quote!(|#(#parameters),*| #returns #body));
    closure.set_span(item.block.brace_token.span.join());
    let (fn_token, clauses) = (signature.fn_token, &generics.where_clause);
    quote! {
        #fn_token #name #generics () -> impl ::core::marker::Sized #clauses #closure
        #reports
    }
}
