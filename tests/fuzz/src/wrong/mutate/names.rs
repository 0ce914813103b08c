//! The names, types, patterns and statements of a program, from which mutations choose.

use quote::ToTokens;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{Ident, Member, Pat, Stmt, Type};

/// The names of a program.
#[derive(Default)]
pub(super) struct ProgramNames {
    pub variables: Vec<Ident>,
    pub fields: Vec<Ident>,
    pub methods: Vec<Ident>,
    pub types: Vec<Type>,
    /// The expressions of paths, such as variants and constants.
    pub paths: Vec<syn::Path>,
    pub patterns: Vec<Pat>,
    pub statements: Vec<Stmt>,
    seen: BTreeSet<String>,
}

impl ProgramNames {
    pub(super) fn of(program: &syn::File) -> ProgramNames {
        let mut names = ProgramNames::default();
        names.visit_file(program);
        for text in ["u32", "i32", "f32", "f64", "u8", "u64", "usize", "bool", "[f32; 3]", "(u32, f32)", "Option<u32>"]
        {
            names.types.extend(syn::parse_str::<Type>(text));
        }
        names
    }

    fn is_new(&mut self, kind: &str, tokens: &impl ToTokens) -> bool {
        self.seen.insert(format!("{kind} {}", tokens.to_token_stream()))
    }
}

impl<'a> Visit<'a> for ProgramNames {
    fn visit_pat_ident(&mut self, pattern: &'a syn::PatIdent) {
        if self.is_new("variable", &pattern.ident) {
            self.variables.push(pattern.ident.clone());
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_member(&mut self, member: &'a Member) {
        if let Member::Named(name) = member
            && self.is_new("field", name)
        {
            self.fields.push(name.clone());
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if self.is_new("method", &call.method) {
            self.methods.push(call.method.clone());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_type(&mut self, ty: &'a Type) {
        if self.is_new("type", ty) {
            self.types.push(ty.clone());
        }
        visit::visit_type(self, ty);
    }

    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        if self.is_new("path", path) {
            self.paths.push(path.path.clone());
        }
    }

    fn visit_pat(&mut self, pattern: &'a Pat) {
        if self.is_new("pattern", pattern) {
            self.patterns.push(pattern.clone());
        }
        visit::visit_pat(self, pattern);
    }

    fn visit_stmt(&mut self, statement: &'a Stmt) {
        self.statements.push(statement.clone());
        visit::visit_stmt(self, statement);
    }

    // Attributes contain no code of the program.
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
}
