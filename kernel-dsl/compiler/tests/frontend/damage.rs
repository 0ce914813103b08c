//! Programs damaged token by token, and the stage that the compiler reaches with them.
//!
//! The tests damage a fixed number of programs; the example `fuzz` continues for a given time.

pub use crate::support::Random;
use crate::support::{Checked, Crate, Function};
use kernel_dsl_compiler::lower::checked::CheckedKernel as Guarded;
use kernel_dsl_compiler::{analyses, emit, expand, ir, lower, passes};
use proc_macro2::{Delimiter, Group, Ident, Literal, TokenStream, TokenTree};
use quote::ToTokens;
use std::time::Duration;

/// The time limit of one program on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Boundary values.
const EDGES: [u64; 10] = [0, 1, 31, 32, 48, 1025, 65536, 4294967295, 4294967296, u64::MAX];

/// Returns the number of tokens of a tree, including groups.
fn count(tokens: &TokenStream) -> usize {
    let below = |t: TokenTree| match t {
        TokenTree::Group(g) => 1 + count(&g.stream()),
        _ => 1,
    };
    tokens.clone().into_iter().map(below).sum()
}

/// Collects all tokens of a tree, in order.
fn all(tokens: &TokenStream, found: &mut Vec<TokenTree>) {
    for token in tokens.clone() {
        if let TokenTree::Group(g) = &token {
            all(&g.stream(), found);
        }
        found.push(token);
    }
}

/// The damage to a token.
enum Damage {
    Delete,
    Duplicate,
    /// Swaps the token with the next one.
    Swap,
    /// Replaces the token by the first of these with the same kind: most programs remain functions
    /// that way.
    Replace(Vec<TokenTree>),
    /// Removes a group's delimiters.
    Unwrap,
}

/// Returns whether a parser may accept either token in the same position.
fn alike(a: &TokenTree, b: &TokenTree) -> bool {
    let keyword = |i: &Ident| syn::parse_str::<Ident>(&i.to_string()).is_err();
    match (a, b) {
        (TokenTree::Group(a), TokenTree::Group(b)) => a.delimiter() == b.delimiter(),
        (TokenTree::Ident(a), TokenTree::Ident(b)) => keyword(a) == keyword(b),
        (TokenTree::Punct(a), TokenTree::Punct(b)) => a.spacing() == b.spacing(),
        (TokenTree::Literal(_), TokenTree::Literal(_) | TokenTree::Ident(_)) => true,
        (TokenTree::Ident(_), TokenTree::Literal(_)) => true,
        _ => false,
    }
}

/// Returns `tokens` with damage to the token numbered `*at`.
fn damaged(tokens: TokenStream, at: &mut usize, damage: &Damage) -> TokenStream {
    let mut out: Vec<TokenTree> = Vec::new();
    let mut tokens = tokens.into_iter();
    while let Some(token) = tokens.next() {
        if *at == 0 {
            *at = usize::MAX;
            match (damage, token) {
                (Damage::Delete, _) => {}
                (Damage::Duplicate, token) => out.extend([token.clone(), token]),
                (Damage::Swap, token) => {
                    out.extend(tokens.next());
                    out.push(token);
                }
                (Damage::Replace(by), token) => {
                    out.push(by.iter().find(|t| alike(&token, t)).unwrap_or(&token).clone())
                }
                (Damage::Unwrap, TokenTree::Group(g)) => out.extend(g.stream()),
                (Damage::Unwrap, token) => out.push(Group::new(Delimiter::Parenthesis, token.into()).into()),
            }
            continue;
        }
        *at -= usize::from(*at != usize::MAX);
        out.push(match token {
            TokenTree::Group(g) => {
                let mut group = Group::new(g.delimiter(), damaged(g.stream(), at, damage));
                group.set_span(g.span());
                group.into()
            }
            other => other,
        });
    }
    out.into_iter().collect()
}

/// Returns `tokens` with damage at one position.
fn damage(tokens: TokenStream, stock: &[TokenTree], random: &mut Random) -> TokenStream {
    let mut some: Vec<_> = (0..8).map(|_| stock[random.below(stock.len())].clone()).collect();
    let damage = match random.below(12) {
        0 => Damage::Delete,
        1 => Damage::Duplicate,
        2 => Damage::Swap,
        3 => Damage::Unwrap,
        4..7 => Damage::Replace(vec![Literal::u64_unsuffixed(EDGES[random.below(EDGES.len())]).into()]),
        _ => {
            some.push(Literal::f64_unsuffixed(0.5).into());
            Damage::Replace(some)
        }
    };
    let mut at = random.below(count(&tokens));
    damaged(tokens, &mut at, &damage)
}

/// Damages `attribute` and `item` at one to three positions, with their own tokens or those of
/// another program. The attribute is a small part of a program, and is damaged with a separate
/// probability.
fn mutated(attribute: &mut TokenStream, item: TokenStream, other: &TokenStream, random: &mut Random) -> TokenStream {
    let mut tokens = item;
    for _ in 0..1 + random.below(3) {
        let mut stock = Vec::new();
        all(if random.below(3) == 0 { other } else { &tokens }, &mut stock);
        if stock.is_empty() {
            break;
        }
        let part = match !attribute.is_empty() && random.below(8) == 0 {
            true => &mut *attribute,
            false => &mut tokens,
        };
        *part = damage(std::mem::take(part), &stock, random);
    }
    tokens
}

/// Returns a damaged copy of `function`, partly from `other`: its text, and the function if it
/// still is one.
pub fn mutate(function: &Function, other: &Function, random: &mut Random) -> (String, Option<Function>) {
    let mut attribute = function.attribute.clone().unwrap_or_default();
    let tokens = mutated(&mut attribute, function.item.to_token_stream(), &other.item.to_token_stream(), random);
    let text = format!("#[kernel({attribute})]\n{tokens}");
    let attribute = function.attribute.is_some().then_some(attribute);
    (text, syn::parse2(tokens).ok().map(|item| Function { attribute, item }))
}

/// An item marked with one of this project's macros.
#[derive(Clone)]
pub struct Marked {
    kernel: bool,
    attribute: TokenStream,
    item: TokenStream,
}

impl Marked {
    /// Returns the items of a file that are marked `#[kernel]` or `#[device]`.
    pub fn all(text: &str) -> Vec<Marked> {
        let file = syn::parse_file(text).expect("the file is Rust");
        let attributes = |item: &mut syn::Item| match item {
            syn::Item::Fn(i) => std::mem::take(&mut i.attrs),
            syn::Item::Struct(i) => std::mem::take(&mut i.attrs),
            syn::Item::Enum(i) => std::mem::take(&mut i.attrs),
            syn::Item::Const(i) => std::mem::take(&mut i.attrs),
            syn::Item::Mod(i) => std::mem::take(&mut i.attrs),
            _ => Vec::new(),
        };
        let mut found = Vec::new();
        for mut item in file.items {
            let mut marks = attributes(&mut item);
            let of = |name: &str| marks.iter().position(|a| a.path().is_ident(name));
            let (kernel, device) = (of("kernel"), of("device"));
            let Some(at) = kernel.or(device) else { continue };
            let attribute = match marks.remove(at).meta {
                syn::Meta::List(list) => list.tokens,
                _ => TokenStream::new(),
            };
            // Keeps the item's other attributes.
            let item = quote::quote!(#(#marks)* #item);
            found.push(Marked { kernel: kernel.is_some(), attribute, item });
        }
        found
    }

    /// Returns a damaged copy, partly from `other`, and its text.
    pub fn mutate(&self, other: &Marked, random: &mut Random) -> (String, Marked) {
        let mut attribute = self.attribute.clone();
        let item = mutated(&mut attribute, self.item.clone(), &other.item, random);
        let name = if self.kernel { "kernel" } else { "device" };
        (format!("#[{name}({attribute})]\n{item}"), Marked { kernel: self.kernel, attribute, item })
    }

    /// Expands the item, and returns the outcome.
    pub fn expand(&self) -> &'static str {
        match self.kernel {
            true => expand::kernel(self.attribute.clone(), self.item.clone()),
            false => expand::device(self.attribute.clone(), self.item.clone()),
        };
        "expanded"
    }
}

/// Compiles the function up to the text of its PTX, and that of its checked form. Returns the
/// outcome.
pub fn compile(all: &Crate, function: &Function) -> &'static str {
    let program = match all.check(function) {
        Ok(Checked::Kernel(program)) => program,
        Ok(Checked::Device(_)) => return "checked",
        Err(_) => return "refused",
    };
    let Some(instance) = program.launch.instances.first() else { return "checked" };
    match lower::lower(&program, &instance.arguments, program.launch.target) {
        Ok(kernel) => {
            ir::verify::verify(&kernel).unwrap_or_else(|e| panic!("{e}\n{kernel}"));
            if analyses::accept(kernel.clone()).is_err() {
                return "refused by an analysis";
            }
            let guarded = Guarded::of(kernel.clone());
            match passes::optimize(kernel).and_then(|optimized| emit::emit(&optimized)).map(|module| module.to_string())
            {
                Ok(_) => match guarded.ptx() {
                    Ok(_) => "compiled",
                    Err(e) => panic!("compiles, and its checked form does not: {e}"),
                },
                Err(_) => "refused by a pass",
            }
        }
        Err(_) => "refused by lowering",
    }
}
