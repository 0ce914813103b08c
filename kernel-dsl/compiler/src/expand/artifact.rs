//! The artifact of a kernel: its HIR and the PTX of its declared instances, as literals.

use super::report::{ErrorSubject, FailedInstance};
use crate::driver::Compilation;
use crate::error::{Error, Errors};
use crate::hir::{self, Instance, Program, serial};
use crate::launch;
use crate::syntax::{InstanceArgument, InstanceOf};
use crate::target::Target;
use proc_macro2::{Literal, TokenStream};
use quote::{ToTokens, quote};
use std::collections::BTreeSet;
use syn::{Expr, ExprLit, GenericParam, ItemFn, Lit, Meta, Path};

/// The compiled declared instances.
pub(super) struct CompiledInstances {
    /// The PTX of each instance.
    pub texts: Vec<String>,
    /// The kernel parameters that approximate results reach in some instance.
    pub approximate: BTreeSet<u32>,
}

/// Compiles each declared instance. Returns the errors of all instances that fail.
pub(super) fn compile(program: &Program) -> Result<CompiledInstances, Vec<FailedInstance>> {
    let mut compiled = CompiledInstances { texts: Vec::new(), approximate: BTreeSet::new() };
    let mut failed = Vec::new();
    for instance in &program.launch.instances {
        match text(program, &instance.arguments, &mut compiled.approximate) {
            Ok(text) => compiled.texts.push(text),
            Err((about, errors)) => {
                let of = program.launch.instances.len();
                failed.push(FailedInstance { instance: program.instance_name(&instance.arguments), of, about, errors });
            }
        }
    }
    if failed.is_empty() { Ok(compiled) } else { Err(failed) }
}

fn text(
    program: &Program,
    instance: &Instance,
    approximate: &mut BTreeSet<u32>,
) -> Result<String, (ErrorSubject, Errors)> {
    let body = |errors| (ErrorSubject::Body, errors);
    let program = hir::monomorphic(program, instance).map_err(body)?;
    // Lowering rejects such a block too, but cannot mark the tokens of the attribute.
    launch::block(&program).map_err(|refusal| (ErrorSubject::Block, Error::without_span(refusal.0).into()))?;
    let compilation = Compilation::new(&program, program.program().launch.target).map_err(body)?;
    let arguments = program.arguments();
    let reached = compilation.approximations().reached.iter().filter_map(|i| arguments.get(*i as usize));
    approximate.extend(reached.map(|argument| argument.parameter));
    compilation.text().map_err(body)
}

/// The artifact of a kernel.
pub(super) enum ArtifactExpansion {
    /// HIR and PTX as literals.
    Literals(Literals),
    /// The chain of macro calls that ends in the literals.
    Chain(TokenStream),
}

/// The contents of an artifact.
pub(super) struct Literals {
    file: String,
    line: u32,
    target: Target,
    hir: Vec<u8>,
    /// The declared instances.
    instances: Vec<ArtifactInstance>,
}

/// A declared instance of an artifact.
struct ArtifactInstance {
    instance: InstanceOf,
    /// The name in reports.
    name: String,
    ptx: String,
}

impl ArtifactExpansion {
    /// Returns the artifact of a kernel without diagnostics. `texts` are the PTX of `instances`.
    pub(super) fn complete(program: &Program, instances: &[InstanceOf], texts: Vec<String>) -> ArtifactExpansion {
        let source = &program.functions[0].source;
        let names = program.launch.instances.iter().map(|declared| program.instance_name(&declared.arguments));
        let declared = instances.iter().cloned().zip(names).zip(texts);
        ArtifactExpansion::Literals(Literals {
            file: source.file.clone(),
            line: source.line,
            target: program.launch.target,
            hir: serial::encode_program(program),
            instances: declared.map(|((instance, name), ptx)| ArtifactInstance { instance, name, ptx }).collect(),
        })
    }

    /// Returns the artifact of a kernel with diagnostics: no HIR, and instances without PTX.
    pub(super) fn failed(instances: &[InstanceOf]) -> ArtifactExpansion {
        let declared = |instance: &InstanceOf| ArtifactInstance {
            instance: instance.clone(),
            name: String::new(),
            ptx: String::new(),
        };
        ArtifactExpansion::Literals(Literals {
            file: String::new(),
            line: 0,
            target: Target::SM_61,
            hir: Vec::new(),
            instances: instances.iter().map(declared).collect(),
        })
    }
}

impl Literals {
    /// Renders the artifact of `item` as an expression.
    pub(super) fn expression(&self, item: &ItemFn, facade: &Path) -> TokenStream {
        let (name, docs) = (item.sig.ident.to_string(), docs(item));
        let target = quote::format_ident!("SM_{}", self.target.sm());
        let (file, line, hir) = (&self.file, self.line, Literal::byte_string(&self.hir));
        let instances = self.instances.iter().map(|declared| declared.expression(facade));
        let generics = &item.sig.generics.params;
        let parameters = generics.iter().filter_map(|parameter| match parameter {
            GenericParam::Const(constant) => Some(constant.ident.to_string()),
            GenericParam::Type(ty) => Some(ty.ident.to_string()),
            GenericParam::Lifetime(_) => None,
        });
        quote! {
            #facade::Artifact {
                name: #name,
                module: ::core::module_path!(),
                file: #file,
                line: #line,
                docs: #docs,
                target: #facade::compiler::Target::#target,
                hir: #hir,
                parameters: &[#(#parameters),*],
                instances: &[#(#instances),*],
            }
        }
    }
}

impl ArtifactInstance {
    /// Renders the instance as an expression.
    fn expression(&self, facade: &Path) -> TokenStream {
        let ArtifactInstance { instance, name, ptx } = self;
        let constants = instance.arguments.iter().map(|argument| match argument {
            InstanceArgument::Usize(_) => quote!(#facade::compiler::hir::Constant::Usize(#argument)),
            InstanceArgument::Bool(_) => quote!(#facade::compiler::hir::Constant::Bool(#argument)),
            InstanceArgument::Integer(_) => quote!(#facade::compiler::hir::Constant::Integer(#argument)),
            InstanceArgument::Type { .. } => quote!(<#argument as #facade::GenericArgument>::CONSTANT),
        });
        quote!(#facade::Declared { name: #name, constants: &[#(#constants),*], ptx: #ptx })
    }
}

/// Returns the text of the documentation comment.
fn docs(item: &ItemFn) -> String {
    let lines = item.attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            // Another expression, such as `#[doc = include_str!(…)]`.
            other => Some(other.to_token_stream().to_string()),
        },
        _ => None,
    });
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).to_string()).collect();
    lines.join("\n")
}
