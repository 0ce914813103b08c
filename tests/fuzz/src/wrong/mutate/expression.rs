//! Mutations of expressions.

use super::{MutationClass, Mutator, removed, toggled};
use proc_macro2::Span;
use quote::{format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Expr, Member, Pat, Token, parse_quote};

impl Mutator<'_> {
    /// Applies mutations of expressions.
    pub(super) fn expression(&mut self, e: &mut Expr) {
        use MutationClass as M;
        if self.hit(M::LiteralOfOtherType) {
            *e = self.value();
        }
        if self.hit(M::VariableInstead) {
            let name = self.variable();
            *e = parse_quote!(#name);
        }
        if !matches!(e, Expr::Break(_) | Expr::Return(_) | Expr::Continue(_) | Expr::Let(_)) && self.hit(M::Wrapped) {
            *e = self.wrapped(&e.clone());
        }
        if matches!(e, Expr::Lit(_)) && self.hit(M::LiteralChanged) {
            *e = self.edge();
        }
        match e {
            Expr::MethodCall(call) => {
                if self.hit(M::MethodRenamed) {
                    let names = self.names;
                    let other = self.one_of(&names.methods).cloned();
                    call.method = match self.random.below(3) {
                        0 => format_ident!("unknown_method"),
                        _ => other.unwrap_or_else(|| format_ident!("wrapping_add")),
                    };
                }
                self.arguments(&mut call.args);
                if self.hit(M::GenericsChanged) {
                    let ty = self.ty();
                    call.turbofish = match call.turbofish {
                        Some(_) => None,
                        None => Some(parse_quote!(::<#ty>)),
                    };
                }
            }
            Expr::Call(call) => self.arguments(&mut call.args),
            Expr::Field(field) if self.hit(M::FieldRenamed) => {
                let names = self.names;
                let other = self.one_of(&names.fields).cloned();
                field.member = match (self.random.below(4), other) {
                    (0, _) => Member::Named(format_ident!("unknown_field")),
                    (1, _) | (_, None) => Member::Unnamed((self.random.below(3)).into()),
                    (_, Some(other)) => Member::Named(other),
                };
            }
            Expr::Path(path) if self.hit(M::PathChanged) => {
                let names = self.names;
                if let Some(other) = self.one_of(&names.paths) {
                    path.path = other.clone();
                }
            }
            Expr::Binary(binary) if self.hit(M::OperatorChanged) => {
                let all: [syn::BinOp; 12] = [
                    parse_quote!(+),
                    parse_quote!(&&),
                    parse_quote!(<),
                    parse_quote!(==),
                    parse_quote!(<<),
                    parse_quote!(%),
                    parse_quote!(&),
                    parse_quote!(+=),
                    parse_quote!(/),
                    parse_quote!(||),
                    parse_quote!(^),
                    parse_quote!(>>),
                ];
                binary.op = all[self.random.below(all.len())];
            }
            Expr::Struct(literal) => {
                if !literal.fields.is_empty() && self.hit(M::StructFieldRemoved) {
                    let at = self.random.below(literal.fields.len());
                    literal.fields = removed(&literal.fields, at);
                }
                if !literal.fields.is_empty() && self.hit(M::StructFieldRepeated) {
                    let field = literal.fields[self.random.below(literal.fields.len())].clone();
                    literal.fields.push(field);
                }
            }
            Expr::Match(cases) => {
                if self.hit(M::ArmRemoved) {
                    let at = self.random.below(cases.arms.len());
                    if !cases.arms.is_empty() {
                        cases.arms.remove(at);
                    }
                }
                if cases.arms.len() > 1 && self.hit(M::ArmsSwapped) {
                    let at = self.random.below(cases.arms.len() - 1);
                    cases.arms.swap(at, at + 1);
                    cases.arms.iter_mut().for_each(|arm| arm.comma = Some(Default::default()));
                }
                if !cases.arms.is_empty() && self.hit(M::GuardChanged) {
                    let at = self.random.below(cases.arms.len());
                    let arm = &mut cases.arms[at];
                    arm.pat = match arm.pat.clone() {
                        Pat::Guard(guarded) => *guarded.pat,
                        pattern => {
                            let name = self.variable();
                            match syn::parse2::<syn::Arm>(quote!(#pattern if #name > 0 => 0)) {
                                Ok(arm) => arm.pat,
                                Err(_) => pattern,
                            }
                        }
                    };
                }
            }
            Expr::If(branch) if branch.else_branch.is_some() && self.hit(M::ElseRemoved) => branch.else_branch = None,
            Expr::Break(jump) if self.hit(M::JumpChanged) => match self.random.below(3) {
                0 => jump.label = None,
                1 => jump.label = Some(syn::Lifetime::new("'unknown", Span::call_site())),
                _ => {
                    jump.expr = match jump.expr {
                        Some(_) => None,
                        None => Some(Box::new(self.value())),
                    }
                }
            },
            Expr::Continue(jump) if self.hit(M::JumpChanged) => match jump.label {
                Some(_) => jump.label = None,
                None => jump.label = Some(syn::Lifetime::new("'unknown", Span::call_site())),
            },
            Expr::Return(jump) if self.hit(M::JumpChanged) => {
                jump.expr = match jump.expr {
                    Some(_) => None,
                    None => Some(Box::new(self.value())),
                }
            }
            Expr::Closure(closure) if self.hit(M::ClosureChanged) => match self.random.below(4) {
                0 => drop(closure.inputs.pop()),
                1 => closure.inputs.push(parse_quote!(added)),
                2 => {
                    let typed: syn::FnArg = parse_quote!(added: bool);
                    if let syn::FnArg::Typed(typed) = typed {
                        closure.inputs.push(syn::Pat::Type(typed));
                    }
                }
                _ => {
                    let body = &closure.body;
                    *closure.body = parse_quote!({ #body; });
                }
            },
            Expr::Reference(reference) if self.hit(M::MutabilityChanged) => {
                reference.mutability = toggled(reference.mutability);
            }
            _ => {}
        }
    }

    fn arguments(&mut self, all: &mut Punctuated<Expr, Token![,]>) {
        if self.hit(MutationClass::ArgumentAdded) {
            let value = self.value();
            all.push(value);
        }
        if !all.is_empty() && self.hit(MutationClass::ArgumentRemoved) {
            *all = removed(all, self.random.below(all.len()));
        }
        if all.len() > 1 && self.hit(MutationClass::ArgumentsSwapped) {
            let mut list: Vec<_> = all.iter().cloned().collect();
            let at = self.random.below(list.len() - 1);
            list.swap(at, at + 1);
            *all = list.into_iter().collect();
        }
    }
}
