//! What `#[kernel(…)]` and `#[requires(…)]` say.

use super::place::written;
use super::{Expr, Function, Kernel, LaunchTokens, Reader};
use crate::hir::{Constant, Instance};
use crate::{Scalar, Target};
use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{ItemFn, Token, parenthesized};

/// The attribute's clauses, as parsed.
#[derive(Default)]
struct Clauses {
    block: Option<syn::Expr>,
    grid: Option<syn::Expr>,
    instances: Vec<Declaration>,
    min_blocks: Option<u32>,
    max_registers: Option<u32>,
    target: Option<Target>,
    crate_path: Option<syn::Path>,
    refused: Vec<syn::Error>,
}

/// One `A = 1 | 2, B = true` of `instances(…; …)`.
type Declaration = Vec<(Ident, Vec<syn::Lit>)>;

impl Clauses {
    fn parse(input: ParseStream) -> syn::Result<Clauses> {
        let mut clauses = Clauses::default();
        while !input.is_empty() {
            let name = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
            let again = |there: bool| there.then(|| syn::Error::new(name.span(), format!("`{name}` is said twice")));
            match name.to_string().as_str() {
                "block" => clauses.refused.extend(again(clauses.block.replace(equals(input)?).is_some())),
                "grid" => clauses.refused.extend(again(clauses.grid.replace(equals(input)?).is_some())),
                "min_blocks" => clauses.min_blocks = Some(number(input)?),
                "max_registers" => clauses.max_registers = Some(number(input)?),
                "target" => match target(input)? {
                    Ok(named) => clauses.refused.extend(again(clauses.target.replace(named).is_some())),
                    Err(e) => clauses.refused.push(e),
                },
                "crate" => clauses.crate_path = Some(equals(input)?),
                "instances" => {
                    let inner;
                    parenthesized!(inner in input);
                    clauses.instances.extend(declarations(&inner)?);
                }
                _ => {
                    return Err(syn::Error::new(
                        name.span(),
                        format!(
                            "`{name}` is not a clause of `#[kernel]`; there are block, grid, instances, min_blocks, max_registers, target and crate"
                        ),
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(clauses)
    }
}

fn equals<T: syn::parse::Parse>(input: ParseStream) -> syn::Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

fn number(input: ParseStream) -> syn::Result<u32> {
    let n = equals::<syn::LitInt>(input)?;
    n.base10_parse().map_err(|_| syn::Error::new_spanned(&n, "expected a number of at most 32 bits"))
}

/// The name of a target; an error in it does not end the reading of the clauses.
fn target(input: ParseStream) -> syn::Result<Result<Target, syn::Error>> {
    input.parse::<Token![=]>()?;
    if !input.peek(syn::Ident) {
        return Err(input.error("expected a target, such as sm_80"));
    }
    let name: Ident = input.parse()?;
    Ok(name.to_string().parse().map_err(|e| syn::Error::new(name.span(), e)))
}

fn declarations(input: ParseStream) -> syn::Result<Vec<Declaration>> {
    let mut all = vec![Vec::new()];
    while !input.is_empty() {
        let name: Ident = input.parse()?;
        input.parse::<Token![=]>()?;
        let mut values = vec![input.parse()?];
        while input.peek(Token![|]) {
            input.parse::<Token![|]>()?;
            values.push(input.parse()?);
        }
        all.last_mut().expect("never empty").push((name, values));
        if input.peek(Token![;]) {
            input.parse::<Token![;]>()?;
            if !input.is_empty() {
                all.push(Vec::new());
            }
        } else if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(all)
}

impl Reader {
    pub(super) fn attributes(&mut self, attribute: TokenStream, item: &ItemFn, function: Function) -> Kernel {
        let clauses = Clauses::parse.parse2(attribute).unwrap_or_else(|e| {
            self.refuse(e);
            Clauses { block: syn::parse_str("1").ok(), grid: syn::parse_str("1").ok(), ..Clauses::default() }
        });
        clauses.refused.into_iter().for_each(|e| self.refuse(e));

        let mut tokens = LaunchTokens::default();
        let block = self.axes(clauses.block.as_ref(), &function, "block", &mut tokens.block);
        let grid = self.axes(clauses.grid.as_ref(), &function, "grid", &mut tokens.grid);
        let mut requires = Vec::new();
        for attribute in item.attrs.iter().filter(|a| a.path().is_ident("requires")) {
            match attribute.parse_args_with(Punctuated::<syn::Expr, Token![,]>::parse_terminated) {
                Ok(conditions) => {
                    for condition in conditions {
                        requires.push((self.expression(&condition), written(&condition)));
                        tokens.requires.push(condition.to_token_stream());
                    }
                }
                Err(e) => self.refuse(e),
            }
        }
        let instances = self.instances(&function, &clauses.instances);
        Kernel {
            block,
            grid,
            requires,
            instances,
            min_blocks: clauses.min_blocks,
            max_registers: clauses.max_registers,
            target: clauses.target.unwrap_or(Target::SM_61),
            crate_path: clauses.crate_path.unwrap_or_else(|| syn::parse_quote!(::kernel_dsl)),
            launch_tokens: tokens,
            function,
        }
    }

    /// One to three expressions: `256`, or `(x, y)`.
    fn axes(
        &mut self,
        e: Option<&syn::Expr>,
        function: &Function,
        clause: &str,
        tokens: &mut Vec<TokenStream>,
    ) -> Vec<Expr> {
        let axes: Vec<&syn::Expr> = match e {
            None => {
                self.refuse(syn::Error::new(
                    function.name.span(),
                    format!("the kernel does not say its {clause}: write `#[kernel(block = …, grid = …)]`"),
                ));
                return Vec::new();
            }
            Some(syn::Expr::Tuple(t)) => t.elems.iter().collect(),
            Some(one) => vec![one],
        };
        if !(1..=3).contains(&axes.len()) {
            self.refuse(syn::Error::new_spanned(e, format!("a {clause} has one, two or three axes")));
        }
        tokens.extend(axes.iter().map(|e| e.to_token_stream()));
        axes.into_iter().map(|e| self.expression(e)).collect()
    }

    fn instances(&mut self, function: &Function, declared: &[Declaration]) -> Vec<Instance> {
        let generics = &function.generics;
        if generics.is_empty() {
            for (name, _) in declared.iter().flatten() {
                self.refuse(syn::Error::new(name.span(), format!("the kernel has no generic constant `{name}`")));
            }
            return vec![Instance::default()];
        }
        let mut all = Vec::new();
        for declaration in declared {
            // The product over the parameters in their order, the last varying fastest.
            let mut product = vec![Vec::new()];
            for generic in generics {
                let Some((_, values)) = declaration.iter().find(|(name, _)| *name == generic.name) else {
                    let at = declaration.first().map_or(generic.name.span(), |(name, _)| name.span());
                    self.refuse(syn::Error::new(at, format!("an instance needs a value for `{}`", generic.name)));
                    continue;
                };
                let constants: Vec<_> = values.iter().filter_map(|v| self.constant(v, generic.ty)).collect();
                product = product
                    .iter()
                    .flat_map(|p| constants.iter().map(move |c| [p.as_slice(), &[*c]].concat()))
                    .collect();
            }
            for (name, _) in declaration.iter().filter(|(name, _)| generics.iter().all(|g| g.name != *name)) {
                self.refuse(syn::Error::new(name.span(), format!("the kernel has no generic constant `{name}`")));
            }
            for values in product {
                let instance = Instance(values);
                if !all.contains(&instance) {
                    all.push(instance);
                }
            }
        }
        all
    }

    fn constant(&mut self, literal: &syn::Lit, ty: Scalar) -> Option<Constant> {
        let constant = match (literal, ty) {
            (syn::Lit::Int(n), Scalar::Usize) => n.base10_parse().ok().map(Constant::Usize),
            (syn::Lit::Bool(b), Scalar::Bool) => Some(Constant::Bool(b.value)),
            _ => None,
        };
        if constant.is_none() {
            let wanted = if ty == Scalar::Bool { "`true` or `false`" } else { "a number of at most 32 bits" };
            self.refuse(syn::Error::new_spanned(literal, format!("expected {wanted}")));
        }
        constant
    }
}
