//! `#[allow(global_race, reason = "…")]` at a statement: a violation that the kernel makes on
//! purpose.
//!
//! rustc's lints use the same attribute. An `allow` that names a check of the oracle, or gives a
//! reason, belongs to the oracle and is removed from the tokens for rustc ([`is_allowance`]). Any
//! other `allow` belongs to rustc.

use super::Reader;
use crate::oracle::{Allowance, Check, GROUPS};
use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, LitStr, Stmt, Token};

/// The arguments in the parentheses.
struct AllowArguments {
    names: Vec<(String, Span)>,
    reason: Option<LitStr>,
}

impl AllowArguments {
    fn parse(input: ParseStream) -> syn::Result<AllowArguments> {
        let mut written = AllowArguments { names: Vec::new(), reason: None };
        while !input.is_empty() {
            let first = input.call(Ident::parse_any)?;
            if first == "reason" && input.peek(Token![=]) {
                input.parse::<Token![=]>()?;
                written.reason = Some(input.parse()?);
            } else {
                let mut name = first.to_string();
                loop {
                    let joint = if input.parse::<Option<Token![-]>>()?.is_some() {
                        "-"
                    } else if input.parse::<Option<Token![::]>>()?.is_some() {
                        "::"
                    } else {
                        break;
                    };
                    name = format!("{name}{joint}{}", input.call(Ident::parse_any)?);
                }
                written.names.push((name.replace('_', "-"), first.span()));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(written)
    }

    fn of(attribute: &Attribute) -> Option<AllowArguments> {
        let found =
            attribute.path().is_ident("allow").then(|| attribute.parse_args_with(AllowArguments::parse).ok()).flatten();
        found.filter(|w| w.reason.is_some() || w.names.iter().any(|(name, _)| checks(name).is_some()))
    }
}

/// Returns the checks of a name, which may be a group.
fn checks(name: &str) -> Option<Vec<Check>> {
    Check::parse(name).ok()
}

/// Returns whether the attribute is for the oracle, and not for rustc.
pub(crate) fn is_allowance(attribute: &Attribute) -> bool {
    AllowArguments::of(attribute).is_some()
}

impl Reader {
    /// Records the allowances of a statement.
    pub(super) fn allowed(&mut self, statement: &Stmt) {
        // The position of a statement's attributes in the tree depends on its kind; among its
        // tokens they are the first.
        let first = |input: ParseStream| {
            let attributes = input.call(Attribute::parse_outer)?;
            input.parse::<proc_macro2::TokenStream>()?;
            Ok(attributes)
        };
        let attributes = first.parse2(statement.to_token_stream()).unwrap_or_default();
        let span = self.mark(statement).span;
        for attribute in attributes {
            let Some(written) = AllowArguments::of(&attribute) else { continue };
            let at = place_of(&attribute);
            self.allowing.retain(|other| place_of(other) != at);
            let mut all = Vec::new();
            for (name, span) in &written.names {
                match checks(name) {
                    Some(checks) => all.extend(checks),
                    None => self.refuse(syn::Error::new(*span, unknown(name))),
                }
            }
            match written.reason.map(|reason| reason.value()) {
                Some(reason) if !reason.trim().is_empty() => {
                    self.allowances.push(Allowance { span, checks: all, reason });
                }
                _ => self.refuse(syn::Error::new_spanned(
                    &attribute,
                    "an allowed check needs a reason, which the report of a run shows: `#[allow(…, reason = \"…\")]`",
                )),
            }
        }
    }

    /// Rejects allowances that are not at a statement.
    pub(super) fn reject_stray_allowances(&mut self) {
        for attribute in std::mem::take(&mut self.allowing) {
            let message = "`#[allow(<check>)]` applies to a statement; place it directly before one";
            self.refuse(syn::Error::new_spanned(&attribute, message));
        }
    }
}

fn place_of(attribute: &Attribute) -> (usize, usize) {
    let start = attribute.pound_token.span.start();
    (start.line, start.column)
}

fn unknown(name: &str) -> String {
    let groups = GROUPS.iter().map(|(group, _)| *group);
    let names: Vec<_> = groups.chain(Check::ORACLE.iter().map(|c| c.name())).map(|n| n.replace('-', "_")).collect();
    let name = name.replace('-', "_");
    format!(
        "unknown check `{name}`; the oracle's checks are {}\nhelp: to allow a rustc lint, leave out the reason or put the attribute on the kernel",
        names.join(", ")
    )
}
