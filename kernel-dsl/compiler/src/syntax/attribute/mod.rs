//! The attributes `#[kernel(…)]` and `#[requires(…)]`.

mod clause;
mod derived;
mod instance;

use super::place::written;
use super::{BlockExtent, Function, Kernel, LaunchTokens, Reader};
use crate::Target;
use clause::Clauses;
use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{ItemFn, Token};

pub use clause::{CLAUSES, Clause};
pub use instance::{InstanceArgument, InstanceOf};

impl Reader {
    pub(super) fn attributes(&mut self, attribute: TokenStream, item: &ItemFn, function: Function) -> Kernel {
        let clauses = Clauses::parse.parse2(attribute).unwrap_or_else(|e| {
            self.refuse(e);
            Clauses { block: syn::parse_str("1").ok(), grid: syn::parse_str("1").ok(), ..Clauses::default() }
        });
        clauses.refused.into_iter().for_each(|e| self.refuse(e));

        let mut tokens = LaunchTokens::default();
        let block = self.axes(clauses.block.as_ref(), &function, "block");
        let block = block.into_iter().map(|e| self.block_extent(e, &mut tokens.block)).collect();
        let grid = self.axes(clauses.grid.as_ref(), &function, "grid");
        tokens.grid.extend(grid.iter().map(|e| e.to_token_stream()));
        let grid = grid.into_iter().map(|e| self.expression(e)).collect();
        let mut limit = |e: Option<&syn::Expr>| {
            tokens.limits.extend(e.map(ToTokens::to_token_stream));
            e.map(|e| self.expression(e))
        };
        let min_blocks = limit(clauses.min_blocks.as_ref());
        let max_registers = limit(clauses.max_registers.as_ref());
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
        for (name, value) in &clauses.derived {
            // Not parsed as one expression: the value may be a comparison itself, which Rust does
            // not chain.
            let condition = syn::Expr::Binary(syn::ExprBinary {
                attrs: Vec::new(),
                left: Box::new(syn::parse_quote!(#name)),
                op: syn::BinOp::Eq(Default::default()),
                right: Box::new(value.clone()),
            });
            requires.push((self.expression(&condition), written(&condition)));
            tokens.requires.push(condition.to_token_stream());
        }
        let instances = self.instances(&function, &clauses.instances, &clauses.derived);
        Kernel {
            block,
            grid,
            requires,
            instances,
            min_blocks,
            max_registers,
            contract: clauses.contract,
            assertions: clauses.assertions,
            cooperative: clauses.cooperative,
            tolerances: clauses.tolerances,
            writes: clauses.writes,
            target: clauses.target.unwrap_or(Target::SM_61),
            crate_path: clauses.crate_path.unwrap_or_else(|| syn::parse_quote!(::kernel_dsl)),
            launch_tokens: tokens,
            function,
        }
    }

    /// Reads one to three expressions: `256`, or `(x, y)`.
    fn axes<'e>(&mut self, e: Option<&'e syn::Expr>, function: &Function, clause: &str) -> Vec<&'e syn::Expr> {
        let axes: Vec<&syn::Expr> = match e.map(ungrouped) {
            None => {
                self.refuse(syn::Error::new(
                    function.name.span(),
                    format!("missing clause `{clause}`: write `#[kernel(block = …, grid = …)]`"),
                ));
                return Vec::new();
            }
            Some(syn::Expr::Tuple(t)) => t.elems.iter().collect(),
            Some(one) => vec![one],
        };
        if !(1..=3).contains(&axes.len()) {
            self.refuse(syn::Error::new_spanned(e, format!("expected 1 to 3 axes in `{clause}`")));
        }
        axes
    }

    /// Reads the number of threads along an axis: an expression, or a range that the launch chooses
    /// from, `a..=b` or `(a..=b).step_by(n)`.
    fn block_extent(&mut self, e: &syn::Expr, tokens: &mut Vec<TokenStream>) -> BlockExtent {
        let e = ungrouped(e);
        let (range, step) = match e {
            syn::Expr::MethodCall(m) if m.method == "step_by" && m.args.len() == 1 => (&*m.receiver, m.args.first()),
            e => (e, None),
        };
        let range = match ungrouped(range) {
            syn::Expr::Paren(inner) => ungrouped(&inner.expr),
            other => other,
        };
        let syn::Expr::Range(range) = range else {
            tokens.push(e.to_token_stream());
            return BlockExtent::Computed(self.expression(e));
        };
        match (&range.start, &range.end, &range.limits) {
            (Some(least), Some(most), syn::RangeLimits::Closed(_)) => {
                tokens
                    .extend([Some(&**least), Some(&**most), step].into_iter().flatten().map(ToTokens::to_token_stream));
                let step = step.map(|step| self.expression(step));
                BlockExtent::Chosen { least: self.expression(least), most: self.expression(most), step }
            }
            _ => {
                let message = "expected an inclusive range, such as `32..=1024`";
                self.refuse(syn::Error::new_spanned(range, message));
                BlockExtent::Computed(self.expression(&syn::parse_quote!(1)))
            }
        }
    }
}

/// Returns the expression inside the invisible group that a macro made.
fn ungrouped(mut e: &syn::Expr) -> &syn::Expr {
    while let syn::Expr::Group(group) = e {
        e = &group.expr;
    }
    e
}
