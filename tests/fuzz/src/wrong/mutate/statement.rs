//! Mutations of statements and patterns.

use super::{MutationClass, Mutator};
use quote::quote;
use syn::{Block, Local, Pat, Stmt, parse_quote};

impl Mutator<'_> {
    pub(super) fn local(&mut self, local: &mut Local) {
        if local.init.is_some() && self.hit(MutationClass::InitializerRemoved) {
            local.init = None;
        }
        if let Some(init) = &mut local.init
            && init.diverge.is_some()
            && self.hit(MutationClass::ElseRemoved)
        {
            init.diverge = None;
        }
        match &local.pat {
            Pat::Type(typed) => {
                if self.hit(MutationClass::AnnotationRemoved) {
                    local.pat = (*typed.pat).clone();
                }
            }
            other => {
                if self.hit(MutationClass::AnnotationAdded) {
                    let (other, ty) = (other.clone(), self.ty());
                    local.pat = match syn::parse2::<Stmt>(quote!(let #other: #ty;)) {
                        Ok(Stmt::Local(made)) => made.pat,
                        _ => other,
                    };
                }
            }
        }
    }

    pub(super) fn pattern(&mut self, pattern: &mut Pat) {
        if !matches!(pattern, Pat::Type(_) | Pat::Guard(_)) && self.hit(MutationClass::PatternChanged) {
            let names = self.names;
            *pattern = match self.random.below(8) {
                0 => parse_quote!(_),
                1 => parse_quote!(0),
                2 => parse_quote!(true),
                3 => parse_quote!(5..=9),
                4 => {
                    let name = self.variable();
                    parse_quote!(#name)
                }
                _ => self.one_of(&names.patterns).cloned().unwrap_or_else(|| parse_quote!(_)),
            };
            if let Pat::Guard(guarded) = pattern {
                *pattern = (*guarded.pat).clone();
            }
            if let Pat::Type(typed) = pattern {
                *pattern = (*typed.pat).clone();
            }
        }
    }

    /// Applies mutations of the statements of a block.
    pub(super) fn block(&mut self, block: &mut Block) {
        let n = block.stmts.len();
        for at in 0..n {
            if self.hit(MutationClass::StatementRemoved) {
                block.stmts.remove(at);
                break;
            }
            if self.hit(MutationClass::StatementRepeated) {
                let names = self.names;
                let own = block.stmts[at].clone();
                let statement = match self.random.below(2) {
                    0 => Some(&own),
                    _ => self.one_of(&names.statements),
                };
                if let Some(statement) = statement {
                    block.stmts.insert(at, terminated(statement.clone()));
                }
                break;
            }
            if at + 1 < n && self.hit(MutationClass::StatementsSwapped) {
                let later = at + 1 + self.random.below((n - at - 1).min(3));
                block.stmts.swap(at, later);
                let last = block.stmts.len() - 1;
                for statement in &mut block.stmts[..last] {
                    *statement = terminated(statement.clone());
                }
                break;
            }
            if self.hit(MutationClass::StatementInserted) {
                let made: Block = {
                    let tokens = self.statements();
                    syn::parse2(quote!({ #tokens })).unwrap_or_else(|_| parse_quote!({}))
                };
                block.stmts.splice(at..at, made.stmts);
                break;
            }
        }
        if let Some(Stmt::Expr(_, semicolon)) = block.stmts.last_mut()
            && self.hit(MutationClass::SemicolonChanged)
        {
            *semicolon = match semicolon {
                Some(_) => None,
                None => Some(Default::default()),
            };
        }
    }
}

/// Returns the statement, with a semicolon if it is an expression.
fn terminated(statement: Stmt) -> Stmt {
    match statement {
        Stmt::Expr(e, None) => Stmt::Expr(e, Some(Default::default())),
        other => other,
    }
}
