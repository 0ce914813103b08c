//! The artifact of a kernel: its HIR and the PTX of its declared instances, as literals.

use super::report::{About, Failed};
use crate::driver::Compilation;
use crate::error::{Error, Errors};
use crate::hir::{self, Instance, Program, serial};
use crate::syntax::{InstanceArgument, InstanceOf};
use crate::launch;
use crate::target::Target;
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use std::collections::BTreeSet;
use syn::{Expr, ExprLit, ItemFn, Lit, Meta, Path};

/// What compilation makes of the declared instances.
pub(super) struct Compiled {
    /// The PTX of each.
    pub texts: Vec<String>,
    /// The kernel's parameters that approximations reach in one of them.
    pub approximate: BTreeSet<u32>,
}

/// The PTX of each declared instance; or, of those that cannot be compiled, why.
pub(super) fn compile(program: &Program) -> Result<Compiled, Vec<Failed>> {
    let name = &program.functions[0].name;
    let mut compiled = Compiled { texts: Vec::new(), approximate: BTreeSet::new() };
    let mut failed = Vec::new();
    for instance in &program.launch.instances {
        match text(program, instance, &mut compiled.approximate) {
            Ok(text) => compiled.texts.push(text),
            Err((about, errors)) => {
                let of = program.launch.instances.len();
                failed.push(Failed { instance: instance.name(name), of, about, errors });
            }
        }
    }
    if failed.is_empty() { Ok(compiled) } else { Err(failed) }
}

fn text(program: &Program, instance: &Instance, approximate: &mut BTreeSet<u32>) -> Result<String, (About, Errors)> {
    let body = |errors| (About::Body, errors);
    let program = hir::monomorphic(program, instance).map_err(body)?;
    // Lowering rejects the block too, but has no tokens of the attribute to mark.
    launch::block(&program).map_err(|refusal| (About::Block, Error::whole(refusal.0).into()))?;
    let compilation = Compilation::new(&program, program.program().launch.target).map_err(body)?;
    let arguments = program.arguments();
    let reached = compilation.approximations().reached.iter().filter_map(|i| arguments.get(*i as usize));
    approximate.extend(reached.map(|argument| argument.parameter));
    compilation.text().map_err(body)
}

/// The artifact of a kernel without mistakes. `beside` are items.
pub(super) fn whole(
    item: &ItemFn,
    facade: &Path,
    program: &Program,
    declared_instances: &[InstanceOf],
    texts: &[String],
    beside: TokenStream,
) -> TokenStream {
    let source = &program.functions[0].source;
    let parts = Parts {
        file: &source.file,
        line: source.line,
        target: program.launch.target,
        hir: &serial::encode_program(program),
    };
    let instances = declared_instances.iter().zip(texts);
    let instances = instances.map(|(instance, text)| declared(item, facade, instance, text));
    parts.artifact(item, facade, instances.collect(), beside)
}

/// What stands in for it otherwise: the instances without their text. `errors` are items.
pub(super) fn stub(
    item: &ItemFn,
    facade: &Path,
    instances: &[InstanceOf],
    beside: TokenStream,
    errors: TokenStream,
) -> TokenStream {
    let parts = Parts { file: "", line: 0, target: Target::SM_61, hir: &[] };
    let instances = instances.iter().map(|instance| declared(item, facade, instance, ""));
    parts.artifact(item, facade, instances.collect(), quote!(#beside #errors))
}

struct Parts<'a> {
    file: &'a str,
    line: u32,
    target: Target,
    hir: &'a [u8],
}

impl Parts<'_> {
    fn artifact(&self, item: &ItemFn, facade: &Path, instances: Vec<TokenStream>, beside: TokenStream) -> TokenStream {
        let (name, docs) = (item.sig.ident.to_string(), docs(item));
        let target = quote::format_ident!("SM_{}", self.target.sm());
        let (file, line, hir) = (self.file, self.line, Literal::byte_string(self.hir));
        quote! {{
            #beside
            #facade::Artifact {
                name: #name,
                module: ::core::module_path!(),
                file: #file,
                line: #line,
                docs: #docs,
                target: #facade::compiler::Target::#target,
                hir: #hir,
                instances: &[#(#instances),*],
            }
        }}
    }
}

fn declared(item: &ItemFn, facade: &Path, instance: &InstanceOf, text: &str) -> TokenStream {
    let name = instance.name(&item.sig.ident.to_string());
    let constants = instance.0.iter().map(|argument| match argument {
        InstanceArgument::Usize(_) => quote!(#facade::compiler::hir::Constant::Usize(#argument)),
        InstanceArgument::Bool(_) => quote!(#facade::compiler::hir::Constant::Bool(#argument)),
        InstanceArgument::Type { .. } => quote!(<#argument as #facade::GenericArgument>::CONSTANT),
    });
    quote!(#facade::Declared { name: #name, constants: &[#(#constants),*], ptx: #text })
}

/// The documentation comment, a line of text a line.
fn docs(item: &ItemFn) -> String {
    let lines = item.attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            // `#[doc = include_str!(…)]` and the like.
            other => Some(other.to_token_stream().to_string()),
        },
        _ => None,
    });
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_string()).collect();
    lines.join("\n")
}
