//! The second copy: rustc as a witness of what the checker found.
//!
//! Where the checker accepts a function, rustc is asked to agree: each variable's type is compared with ours, and each
//! function of the prelude with ours of that name, so that a `block::sync` of the user's own cannot mean two things.
//! Types are compared by `&x as &T`, which rustc judges after inference and which takes no part in it.
//!
//! Where the checker has mistakes, they wait for rustc. The copy hides the body's type in an opaque one, and a constant
//! asks for its size. To know it rustc must first check the body; if that fails, the constant does too, without a word. So
//! its panic, our message, is seen where rustc has nothing to say.

use super::copy::silent;
use super::inline;
use super::launch::parameters;
use super::respan;
use crate::check::{Mistake, Teller};
use crate::syntax::InstanceArgument;
use proc_macro2::{Delimiter, Group, Ident, LineColumn, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::visit_mut::VisitMut;
use syn::{Block, GenericParam, ItemFn, Pat, PatType, Path, ReturnType, Stmt, Visibility};

/// A copy in which rustc confirms the types of `locals`, by the place of each one's name, and what the paths of `prelude` name.
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
    silent(item, &copy)
}

/// Variables by the place of their names. None, if two names of the function share a place: then places tell nothing (an
/// editor has them all in line 1, a macro's arguments may come several times).
fn places<'l>(item: &ItemFn, locals: &'l [(Span, TokenStream)]) -> Vec<(LineColumn, &'l TokenStream)> {
    let mut names = Names(Vec::new());
    names.visit_item_fn(item);
    let different: HashSet<_> = names.0.iter().map(|name| name.span().start()).collect();
    if different.len() < names.0.len() {
        return Vec::new();
    }
    locals.iter().map(|(span, ty)| (span.start(), ty)).collect()
}

/// Puts a comparison behind each variable's binding.
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

/// A copy whose constants say `mistakes` if rustc accepts the body, as items. `values` are those of some instance, if one
/// is declared.
pub(super) fn mistakes(
    item: &ItemFn,
    facade: &Path,
    body: &Block,
    values: &[InstanceArgument],
    mistakes: &[Mistake],
) -> TokenStream {
    let body = &inline::block_for_rustc(body);
    let signature = &item.sig;
    let (name, generics) = (&signature.ident, &signature.generics);
    // A closure's parameter cannot be `impl Fn`: such a type becomes a generic parameter, given as a function pointer.
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
    let said = said(facade, &quote!(#name #instance), mistakes);
    // The body's type is that of a closure: it is as opaque as needed, and rustc's words about a closure's body and
    // parameters are those about a function's. The copy stands where the function does: rustc offers no function for a
    // misspelt name in its own body, and would offer a copy that stands elsewhere.
    let mut closure = Group::new(Delimiter::Brace, quote!(|#(#parameters),*| #returns #body));
    closure.set_span(item.block.brace_token.span.join());
    let fn_token = signature.fn_token;
    quote! {
        #fn_token #name #declared () -> impl ::core::marker::Sized #closure
        #said
    }
}

/// A constant for each mistake that says it if `body`, a function that gives an opaque type, is one that rustc accepts.
pub(super) fn said(facade: &Path, body: &TokenStream, mistakes: &[Mistake]) -> TokenStream {
    let ours = mistakes.iter().filter(|mistake| mistake.teller == Teller::Us);
    let each = ours.map(|mistake| {
        let message = &mistake.message;
        // rustc marks a range from the first token of the panic to its last.
        let panic = quote_spanned!(mistake.mark.first=> ::core::panic!);
        let argument = quote_spanned!(mistake.mark.last=> ("{}", #message));
        quote!(const _: () = if #facade::__private::size_of_body(#body) == 0 { #panic #argument };)
    });
    each.collect()
}

/// `fn(A) -> R` for `impl Fn(A) -> R`.
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

/// A value that a generic constant can have.
pub(super) fn any_value(parameter: &GenericParam) -> Option<TokenStream> {
    let constant = match parameter {
        GenericParam::Const(constant) => constant,
        // The one type that has most of what a bound may ask; where it has not, rustc says so of the instance's line.
        GenericParam::Type(_) => return Some(quote!(f32)),
        GenericParam::Lifetime(_) => return None,
    };
    let is_bool = matches!(&constant.ty, syn::Type::Path(p) if p.path.is_ident("bool"));
    Some(if is_bool { quote!(false) } else { quote!(1) })
}
