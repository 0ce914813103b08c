//! Signatures, blocks, statements and patterns.

use super::assertion::{is_assertion, is_log};
use super::inline::is_inline;
use super::{Block, Expr, ExprKind, Function, Parameter, Path, Reader, RustSyntax, Segment, Statement, generic, place};
use proc_macro2::Ident;
use std::rc::Rc;
use syn::spanned::Spanned;
use syn::{FnArg, ItemFn, Pat, ReturnType, Stmt};

impl Reader {
    pub(super) fn function(&mut self, item: &ItemFn) -> Function {
        let signature = &item.sig;
        self.reject_conditions_within(signature, &item.block);
        let what = if self.in_kernel { "a kernel" } else { "a device function" };
        if let Some(t) = &signature.asyncness {
            let message = format!("{what} cannot be `async`: remove it; nothing in a kernel can be awaited");
            self.refuse(syn::Error::new_spanned(t, message));
        }
        if let Some(t) = &signature.abi {
            self.refuse(syn::Error::new_spanned(t, format!("{what} cannot declare an ABI: remove `extern`")));
        }
        if let syn::Safety::Unsafe(t) = &signature.safety {
            self.refuse(syn::Error::new_spanned(
                t,
                format!("{what} cannot be `unsafe`: remove it; the oracle checks every memory access"),
            ));
        }
        if let Some(t) = &signature.variadic {
            let message = format!("{what} cannot be variadic: name each parameter, or take a slice");
            self.refuse(syn::Error::new_spanned(t, message));
        }
        let source = place::source(item);
        let hash = place::hash(item, &source);
        // A kernel takes no closures and no `impl Trait`; a closure has been reported.
        let plain = self.in_kernel && generic::closures(&signature.generics).is_empty();
        let explicit = if plain { signature.clone() } else { generic::explicit(signature) };
        let generics = self.generics(&explicit.generics);
        let mut unpacked = Vec::new();
        let parameters = explicit.inputs.iter().filter_map(|p| self.parameter(p, &mut unpacked)).collect();
        let mut function = Function {
            name: signature.ident.clone(),
            generics,
            parameters,
            receiver: signature.receiver().is_some(),
            returns: match &signature.output {
                ReturnType::Default => None,
                ReturnType::Type(_, ty) => Some(self.ty(ty)),
            },
            constant: None,
            private: matches!(item.vis, syn::Visibility::Inherited),
            allowances: Vec::new(),
            body: self.block(&item.block),
            source,
            hash,
            written: Some(RustSyntax(Rc::new(item.clone()))),
        };
        function.body.statements.splice(0..0, unpacked);
        self.reject_stray_allowances();
        function.allowances = std::mem::take(&mut self.allowances);
        function
    }

    /// Reads a parameter. A pattern becomes a `let` of the parameter, added to `unpacked`.
    fn parameter(&mut self, argument: &FnArg, unpacked: &mut Vec<Statement>) -> Option<Parameter> {
        match argument {
            FnArg::Receiver(receiver) => self.receiver(receiver),
            FnArg::Typed(t) => match &*t.pat {
                Pat::Ident(p) if p.by_ref.is_none() && p.subpat.is_none() => {
                    if let syn::Type::Slice(slice) = &*t.ty {
                        let message = "a slice is passed by reference: write `&[T]`, or `&mut [T]` to write to it";
                        self.refuse(syn::Error::new_spanned(slice, message));
                    }
                    Some(Parameter { name: p.ident.clone(), mutable: p.mutability.is_some(), ty: self.ty(&t.ty) })
                }
                // A method may ignore a parameter of its trait.
                Pat::Wild(w) => {
                    let name = Ident::new("_", w.underscore_token.span);
                    Some(Parameter { name, mutable: false, ty: self.ty(&t.ty) })
                }
                other => {
                    let mark = self.mark(other);
                    let name = Ident::new(&format!("unpacked_parameter_{}", unpacked.len()), mark.first);
                    let segment = Segment { name: name.clone(), arguments: Vec::new() };
                    let path = Path { global: false, segments: vec![segment], mark };
                    unpacked.push(Statement::Let {
                        pattern: self.pattern(other),
                        ty: None,
                        value: Some(Expr { kind: ExprKind::Path(path), mark }),
                        otherwise: None,
                        mark,
                    });
                    Some(Parameter { name, mutable: false, ty: self.ty(&t.ty) })
                }
            },
        }
    }

    pub(super) fn block(&mut self, block: &syn::Block) -> Block {
        let mark = self.between(block.brace_token.span.open(), block.brace_token.span.close());
        let mut statements = Vec::new();
        let mut value = None;
        for (i, statement) in block.stmts.iter().enumerate() {
            let last = i + 1 == block.stmts.len();
            if !self.allowing.is_empty() {
                self.allowed(statement);
            }
            match statement {
                Stmt::Local(local) => statements.push(self.binding(local)),
                Stmt::Expr(syn::Expr::Const(c), _) => statements.extend(self.assertions(c)),
                Stmt::Expr(e, None) if last => value = Some(Box::new(self.expression(e))),
                Stmt::Expr(e, None) => statements.push(Statement::Unit(self.expression(e))),
                Stmt::Expr(e, _) => statements.push(Statement::Expr(self.expression(e))),
                Stmt::Item(syn::Item::Const(c)) => statements.push(Statement::Constant {
                    name: c.ident.clone(),
                    ty: self.ty(&c.ty),
                    value: self.expression(&c.expr),
                    mark: self.mark(c),
                }),
                Stmt::Item(item) => self.refuse(syn::Error::new(
                    item.span(),
                    "items inside a function body are not supported: move this item out and mark it `#[device]`",
                )),
                Stmt::Macro(m) if is_inline(&m.mac) || is_assertion(&m.mac) || is_log(&m.mac) => {
                    let mark = self.mark(&m.mac);
                    let kind = match &m.mac {
                        mac if is_inline(mac) => self.inline(mac),
                        mac if is_log(mac) => self.log(mac),
                        mac => self.assertion(mac),
                    };
                    let call = Expr { kind, mark };
                    match last && m.semi_token.is_none() {
                        true => value = Some(Box::new(call)),
                        false => statements.push(Statement::Expr(call)),
                    }
                }
                Stmt::Macro(m) => self.refuse(macro_refusal(&m.mac)),
            }
        }
        Block { statements, value, mark }
    }

    fn binding(&mut self, local: &syn::Local) -> Statement {
        let (pattern, ty) = match &local.pat {
            Pat::Type(t) => (&*t.pat, Some(self.ty(&t.ty))),
            other => (other, None),
        };
        let diverge = local.init.as_ref().and_then(|init| init.diverge.as_ref());
        let pattern = if diverge.is_some() { self.refutable_pattern(pattern) } else { self.pattern(pattern) };
        let otherwise = diverge.and_then(|(_, e)| match &**e {
            syn::Expr::Block(b) => Some(Box::new(self.block(&b.block))),
            _ => None,
        });
        let value = local.init.as_ref().map(|init| self.expression(&init.expr));
        let mut mark = self.mark(local);
        mark.first = local.let_token.span;
        Statement::Let { pattern, ty, value, otherwise, mark }
    }

    /// Reads `const { assert!(condition, "message"); … }`
    fn assertions(&mut self, block: &syn::ExprConst) -> Vec<Statement> {
        let mut found = Vec::new();
        for statement in &block.block.stmts {
            let mac = match statement {
                Stmt::Macro(m) => Some(&m.mac),
                Stmt::Expr(syn::Expr::Macro(m), _) => Some(&m.mac),
                _ => None,
            };
            let arguments = mac
                .filter(|m| m.path.is_ident("assert"))
                .map(|m| m.parse_body_with(syn::punctuated::Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated));
            match arguments {
                Some(Ok(arguments)) if !arguments.is_empty() => {
                    let condition: Expr = self.expression(&arguments[0]);
                    let message = match arguments.get(1) {
                        Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(s), .. })) => s.value(),
                        _ => String::new(),
                    };
                    found.push(Statement::Assert { condition, message });
                }
                Some(Err(e)) => self.refuse(e),
                _ => self.refuse(syn::Error::new(
                    statement.span(),
                    "a `const` block in a kernel can contain only `assert!(…)`",
                )),
            }
        }
        found
    }
}

/// Returns why a macro cannot be called in a kernel.
pub(super) fn macro_refusal(mac: &syn::Macro) -> syn::Error {
    let name = mac.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    let way_out = match name.as_str() {
        "println" | "print" | "eprintln" | "eprint" | "dbg" => {
            ": use `log!`, which prints a line with the block and thread"
        }
        "vec" => {
            ": kernels have no heap; use an array in registers, `[0.0; 4]`, or in shared memory, `Shared::new([…])`"
        }
        "format" | "write" | "writeln" | "concat" | "stringify" => ": kernels have no text; use `log!` to print values",
        "cfg" => ": select by a generic constant, or put `#[cfg]` on the kernel",
        "line" | "column" | "file" | "env" | "option_env" | "include" | "include_str" | "include_bytes" => {
            ": put its value into a `#[device]` constant"
        }
        _ => {
            ": the compiler sees the call and not its expansion. Write a `#[device]` function, with `&mut` parameters for the variables that it changes, or a macro whose expansion is the whole kernel"
        }
    };
    syn::Error::new_spanned(&mac.path, format!("the macro `{name}!` is not supported in kernels{way_out}"))
}

impl ExprKind {
    /// Returns whether a type is `()`.
    pub(super) fn unit() -> ExprKind {
        ExprKind::Tuple(Vec::new())
    }
}
