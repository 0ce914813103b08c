//! The second copy: rustc as a witness of the checker's results.
//!
//! If the checker accepts a function, rustc confirms its results: the type of each variable, and
//! the identity of each function of the prelude, so that a user's own `block::sync` cannot mean two
//! things. Types are compared by `&x as &T`, which rustc checks after inference and which does not
//! affect inference.
//!
//! If the checker finds errors, they wait for rustc. The copy hides the type of the body in an
//! opaque type, and a constant needs the size of this type. To compute the size, rustc must first
//! check the body. If the body has errors, the constant fails silently. So the constant's panic,
//! which is our message, appears only if rustc accepts the body.

use super::copy::copy_without_lints;
use super::inline;
use super::launch::parameters;
use super::respan;
use crate::check::{Diagnostic, ReportedBy};
use crate::syntax::InstanceArgument;
use proc_macro2::{Delimiter, Group, Ident, LineColumn, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, GenericParam, ItemFn, Pat, PatType, Path, ReturnType, Stmt, Visibility};

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
        let canonical = respan(quote!(#facade::prelude::#canonical), span);
        let same = quote_spanned!(span=> let mut function = #written; function = #canonical;);
        syn::parse_quote!({ #same })
    });
    copy.block.stmts.splice(0..0, parameters.into_iter().chain(paths));
    copy_without_lints(item, &copy)
}

/// Returns the variables by the position of their names. Returns none if two names of the function
/// share a position, as in some editors and for repeated macro arguments.
fn places<'l>(item: &ItemFn, locals: &'l [(Span, TokenStream)]) -> Vec<(LineColumn, &'l TokenStream)> {
    let mut names = Names(Vec::new());
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
        let mut names = Names(Vec::new());
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
struct Names(Vec<Ident>);

impl<'p> Visit<'p> for Names {
    fn visit_pat_ident(&mut self, pattern: &'p syn::PatIdent) {
        self.0.push(pattern.ident.clone());
    }
}

/// Returns a copy, and constants that report `diagnostics` if rustc accepts the body. `values` are
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
    let (name, generics) = (&signature.ident, &signature.generics);
    // A closure parameter cannot be `impl Fn`: such a type becomes a generic parameter,
    // instantiated with a function pointer.
    let (mut bounds, mut pointers) = (Vec::new(), Vec::new());
    let parameters: Vec<TokenStream> = parameters(item)
        .map(|PatType { pat, ty, .. }| match &**ty {
            syn::Type::ImplTrait(callable) => {
                let name = quote::format_ident!("Callable{}", bounds.len());
                let bound = &callable.bounds;
                bounds.push(quote!(#name: #bound));
                pointers.push(pointer(callable));
                quote!(#pat: #name)
            }
            ty => quote!(#pat: #ty),
        })
        .collect();
    let returns = match &signature.output {
        ReturnType::Default => quote!(-> ()),
        written => written.to_token_stream(),
    };
    let mut values: Vec<TokenStream> = match values {
        [] => generics.params.iter().filter_map(any_value).collect(),
        values => values.iter().map(ToTokens::to_token_stream).collect(),
    };
    values.extend(pointers);
    let declared = match bounds.is_empty() {
        true => generics.to_token_stream(),
        false => {
            let all = generics.params.iter().map(ToTokens::to_token_stream).chain(bounds);
            quote!(<#(#all),*>)
        }
    };
    let instance = if values.is_empty() { quote!() } else { quote!(::<#(#values),*>) };
    let said = said(facade, &quote!(#name #instance), diagnostics);
    // The hidden type is that of a closure, because rustc's messages about closures match those
    // about functions. The copy is at the position of the function: rustc does not suggest a
    // function for a misspelt name in its own body, and would suggest a copy at another position.
    let mut closure = Group::new(Delimiter::Brace, quote!(|#(#parameters),*| #returns #body));
    closure.set_span(item.block.brace_token.span.join());
    let fn_token = signature.fn_token;
    quote! {
        #fn_token #name #declared () -> impl ::core::marker::Sized #closure
        #said
    }
}

/// Returns a constant for each diagnostic, which reports it if rustc accepts `body`, a function
/// with an opaque return type.
pub(super) fn said(facade: &Path, body: &TokenStream, diagnostics: &[Diagnostic]) -> TokenStream {
    let ours = diagnostics.iter().filter(|diagnostic| diagnostic.reported_by == ReportedBy::Compiler);
    let each = ours.map(|diagnostic| {
        let message = &diagnostic.message;
        // rustc marks a range from the first token of the panic to its last.
        let panic = quote_spanned!(diagnostic.mark.first=> ::core::panic!);
        let argument = quote_spanned!(diagnostic.mark.last=> ("{}", #message));
        quote!(const _: () = if #facade::__private::size_of_body(#body) == 0 { #panic #argument };)
    });
    each.collect()
}

/// Returns the function pointer type `fn(A) -> R` for `impl Fn(A) -> R`.
fn pointer(callable: &syn::TypeImplTrait) -> TokenStream {
    let signature = callable.bounds.iter().find_map(|bound| match bound {
        syn::TypeParamBound::Trait(t) => match &t.path.segments.last()?.arguments {
            syn::PathArguments::Parenthesized(signature) => Some(signature),
            _ => None,
        },
        _ => None,
    });
    match signature {
        Some(syn::ParenthesizedGenericArguments { inputs, output, .. }) => quote!(fn(#inputs) #output),
        None => quote!(fn()),
    }
}

/// Returns some argument for a generic parameter.
pub(super) fn any_value(parameter: &GenericParam) -> Option<TokenStream> {
    let constant = match parameter {
        GenericParam::Const(constant) => constant,
        // The type that satisfies most bounds. If it does not satisfy one, rustc reports that at
        // the instance.
        GenericParam::Type(_) => return Some(quote!(f32)),
        GenericParam::Lifetime(_) => return None,
    };
    let is_bool = matches!(&constant.ty, syn::Type::Path(p) if p.path.is_ident("bool"));
    Some(if is_bool { quote!(false) } else { quote!(1) })
}
