//! Lowering: one instance of a kernel for one target, from HIR to IR.
//!
//! Lowering inlines calls, splits tuples and views into scalars, replaces generic constants and
//! lays out shared memory. Lowering optimizes nothing: the oracle runs its result, and passes must
//! preserve its meaning. `lowerer` has the state of lowering. [`checked`] makes the form that
//! checks its accesses on the device.

mod access;
mod array;
mod assertion;
mod bits;
mod captures;
pub mod checked;
mod closure;
mod combine;
mod comparison;
mod contract;
mod cooperation;
mod copy;
mod double_word;
mod dynamic;
mod exchange;
mod expression;
mod fast;
mod float16;
mod function;
mod half;
mod inline;
mod intrinsic;
mod layout;
mod log;
mod loops;
mod lowerer;
mod memory;
mod memory_value;
mod method;
mod option;
mod overflow;
mod pack;
mod pattern;
mod pending;
mod pipeline;
mod share;
mod shared;
mod statement;
mod storage;
mod switched;
mod table;
mod threads;
mod wide;

use crate::Scalar;
use crate::error::{Error, Errors};
use crate::hir::{self, Instance, Monomorphic, Program, TypeId};
use crate::ir::build::Builder;
use crate::ir::{self, Op, Parameter, Role};
use crate::launch;
use crate::oracle::OracleDeclarations;
use crate::source::Span;
use crate::target::Target;
use lowerer::Lowerer;
use lowerer::copies::CopyTokens;
use lowerer::divisibility::Divisibility;
use lowerer::inliner::Inliner;
use lowerer::maybe_const::MaybeConst;
use lowerer::mem_layout::MemLayout;
use lowerer::shared_arrays::SharedArrays;
use lowerer::sources::SourceMap;
use lowerer::tables::Tables;
use lowerer::value::{CacheHint, Val, ViewValue};
use std::collections::HashMap;

/// Lowers one instance of `program` for `target`.
pub fn lower(program: &Program, instance: &Instance, target: Target) -> Result<ir::Kernel, Errors> {
    lower_monomorphic(&hir::monomorphic(program, instance)?, target)
}

/// Lowers a monomorphic program for `target`.
pub fn lower_monomorphic(monomorphic: &Monomorphic, target: Target) -> Result<ir::Kernel, Errors> {
    lower_with(monomorphic, target, false)
}

/// Lowers a monomorphic program for tracing: with an [`Op::DbgValue`] where a variable that never
/// changes is bound. Variables that change are locals, which have names.
pub fn lower_named(monomorphic: &Monomorphic, target: Target) -> Result<ir::Kernel, Errors> {
    lower_with(monomorphic, target, true)
}

fn lower_with(monomorphic: &Monomorphic, target: Target, named: bool) -> Result<ir::Kernel, Errors> {
    let (program, instance, function) = (monomorphic.program(), monomorphic.instance(), monomorphic.kernel());
    let refused = |e: launch::Refusal| Error::without_span(e.to_string());
    let block = launch::block(monomorphic).map_err(refused)?;
    let limits = launch::limits(monomorphic).map_err(refused)?;
    let kernel = ir::Kernel {
        name: instance.entry(&function.name),
        rust_name: instance.name(&function.name),
        instance: program.instance_name(instance),
        min_blocks: limits.min_blocks,
        max_registers: limits.max_registers,
        declared: OracleDeclarations {
            outputs: monomorphic.outputs(),
            allowances: Vec::new(),
            cooperative: program.launch.cooperative,
        },
        ..ir::Kernel::empty(target, block)
    };
    let mut lowerer = Lowerer {
        program,
        monomorphic,
        builder: Builder::new(kernel),
        sources: SourceMap::default(),
        inliner: Inliner::default(),
        shared: SharedArrays::new(program),
        tokens: CopyTokens::default(),
        tables: Tables::default(),
        divisibility: Divisibility::new(launch::promises(monomorphic)),
        cache_hints: HashMap::new(),
        name_hint: None,
        unbound: None,
        named,
        errors: Vec::new(),
    };
    lowerer.kernel(function, &monomorphic.arguments());
    if !lowerer.errors.is_empty() {
        return Err(Errors(lowerer.errors));
    }
    let mut kernel = lowerer.builder.finish();
    layout::assign(&mut kernel, &lowerer.shared.plan)?;
    Ok(kernel)
}

impl<'h> Lowerer<'h> {
    fn kernel(&mut self, function: &'h hir::Function, arguments: &[hir::monomorphic::LaunchArgument]) {
        let frame = self.enter_function(function, None);
        self.inliner.push(frame);
        self.at(Span { line: 0, column: 1, end_line: 0, end_column: 1 });
        let mut argument = 0;
        for i in 0..function.parameters {
            let local = &function.locals[i as usize];
            let mut value = self.parameter(arguments, &mut argument, local.ty, local.span);
            if let Val::View(view) = &mut value {
                self.record_guarantees(hir::LocalId(i), view);
            }
            self.bind_local(hir::LocalId(i), value);
        }
        self.block(&function.body);
        if let Some(made) = self.unbound.take() {
            self.report_unbound(made);
        }
        self.inliner.pop();
    }

    /// Lowers a parameter from the parameters of the entry. `argument` counts the arguments that a
    /// launch passes.
    fn parameter(
        &mut self,
        all: &[hir::monomorphic::LaunchArgument],
        argument: &mut u32,
        ty: TypeId,
        span: Span,
    ) -> Val {
        let mem_layout = match *self.ty(ty) {
            // Two arguments, like those of a tuple.
            hir::Type::Scalar(Scalar::U128) => {
                let mut word = || {
                    let name = entry_name(all.get(*argument as usize).map_or("argument", |a| &a.name));
                    *argument += 1;
                    entry_parameter(&mut self.builder, name, *argument - 1, Role::Value(Scalar::U64))
                };
                let words = [word(), word()];
                return self.joined(&mut words.into_iter());
            }
            hir::Type::Tuple(ref parts) => {
                return Val::Tuple(parts.iter().map(|part| self.parameter(all, argument, *part, span)).collect());
            }
            hir::Type::Array(element, size) => {
                let array = self.storage(ty, "argument");
                for i in 0..self.size(size) {
                    let value = self.parameter(all, argument, element, span);
                    let i = self.index(i);
                    let place = self.element(&array, i);
                    self.write_storage(&place, value);
                }
                return Val::Array(array);
            }
            hir::Type::Slice { element, .. } | hir::Type::View { element, .. } => {
                self.element_mem_layout(element, span)
            }
            _ => MemLayout::Scalar(Scalar::U8),
        };
        let element = mem_layout.element();
        let name = entry_name(all.get(*argument as usize).map_or("argument", |a| &a.name));
        let mut part = |suffix: String, role: Role| -> ir::Value {
            entry_parameter(&mut self.builder, format!("{name}{suffix}"), *argument, role)
        };
        let known = |value| MaybeConst::unknown(value);
        let value = match *self.inliner.kernel().ty(ty) {
            hir::Type::Scalar(s) => Val::Scalar(known(part(String::new(), Role::Value(s)))),
            hir::Type::Slice { mutable, .. } => Val::View(ViewValue {
                base: part(String::new(), Role::Address { element, mutable }),
                extents: [known(part("_len".into(), Role::Extent(0)))].into_iter().collect(),
                strides: [None].into_iter().collect(),
                mem_layout,
                mutable,
                hint: CacheHint::None,
                aligned: 1,
            }),
            hir::Type::View { rank, mutable, strided, .. } => Val::View(ViewValue {
                base: part(String::new(), Role::Address { element, mutable }),
                extents: (0..rank).map(|d| known(part(format!("_dim{d}"), Role::Extent(d)))).collect(),
                strides: (0..rank)
                    .map(|d| (strided || d + 1 < rank).then(|| part(format!("_stride{d}"), Role::Stride(d))))
                    .collect(),
                mem_layout,
                mutable,
                hint: CacheHint::None,
                aligned: 1,
            }),
            hir::Type::Unit => return Val::Unit,
            _ => {
                self.error(span, "kernel parameters are numbers, bool, slices, views and structs of these");
                Val::Unit
            }
        };
        *argument += 1;
        value
    }
}

/// Adds a parameter of the entry, with underscores after a name that is taken.
fn entry_parameter(builder: &mut Builder, mut name: String, argument: u32, role: Role) -> ir::Value {
    let kernel = &mut builder.kernel;
    while kernel.parameters.iter().any(|p| p.name == name) {
        name.push('_');
    }
    let parameter = Parameter { name, argument, role };
    let ty = parameter.ty();
    kernel.parameters.push(parameter);
    let index = kernel.parameters.len() as u32 - 1;
    builder.value(Op::Parameter(index), ty)
}

/// Returns the name of a parameter in the PTX entry: the Rust name, with `_` for characters that
/// PTX does not allow.
fn entry_name(name: &str) -> String {
    let plain = name.strip_prefix("r#").unwrap_or(name);
    let name: String = plain.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // `WARP_SZ` is the only reserved word of PTX that begins with neither a dot nor a percent sign.
    if name == "WARP_SZ" || name == "_" { name + "_" } else { name }
}
