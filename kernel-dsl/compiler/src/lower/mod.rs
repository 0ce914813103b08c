//! Lowering: one instance of a kernel for one target, from HIR to IR.
//!
//! Lowering inlines calls, splits tuples and views into scalars, replaces generic constants and
//! lays out shared memory. Lowering optimizes nothing: the oracle runs its result, and passes must
//! preserve its meaning. [`checked`] makes the form that checks its accesses on the device.

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
mod inliner;
mod intrinsic;
mod layout;
mod log;
mod loops;
mod mem_layout;
mod memory;
mod method;
mod option;
mod overflow;
mod pack;
mod pattern;
mod pending;
mod pipeline;
mod share;
mod shared;
mod sources;
mod statement;
mod storage;
mod switched;
mod table;
mod threads;
mod value;
mod wide;

use crate::Scalar;
use crate::error::{Error, Errors};
use crate::hir::{self, Instance, Monomorphic, Program, Size, TypeId};
use crate::ir::build::Builder;
use crate::ir::{self, Label, Op, Parameter, Role, SourceLocation, Type};
use crate::launch;
use crate::oracle::OracleDeclarations;
use crate::source::Span;
use crate::target::Target;
use function::FunctionFrame;
use inliner::Inliner;
use mem_layout::MemLayout;
use pending::CopyTokens;
use shared::SharedArrays;
use sources::SourceMap;
use std::collections::HashMap;
use table::Tables;
use value::{CacheHint, MaybeConst, Val, ViewValue};
use wide::Divisibility;

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

/// State of lowering one kernel. The methods of each component are in the file of its type.
#[derive(Clone)]
struct Lowerer<'h> {
    program: &'h Program,
    monomorphic: &'h Monomorphic,
    builder: Builder,
    /// The source functions and locations of the instructions so far.
    sources: SourceMap,
    /// The calls that are being inlined.
    inliner: Inliner<'h>,
    /// The shared arrays so far.
    shared: SharedArrays,
    /// The variables for copy tokens so far.
    tokens: CopyTokens<'h>,
    /// The tables of constants so far.
    tables: Tables,
    /// Known divisors of `usize` values.
    divisibility: Divisibility,
    /// The cache hint of each view variable, by the local of its address. The first view assigned
    /// to the variable determines the hint.
    cache_hints: HashMap<ir::LocalId, CacheHint>,
    /// The variable being bound, for the names of shared arrays and register arrays.
    name_hint: Option<&'h str>,
    /// The first local of an array in local memory that is not bound to a variable yet.
    unbound: Option<ir::LocalId>,
    /// Whether lowering emits the names of variables, for tracing.
    named: bool,
    errors: Vec<Error>,
}

impl<'h> Lowerer<'h> {
    fn frame(&self) -> &FunctionFrame<'h> {
        self.inliner.frame()
    }

    fn frame_mut(&mut self) -> &mut FunctionFrame<'h> {
        self.inliner.frame_mut()
    }

    fn function(&self) -> &'h hir::Function {
        self.frame().function
    }

    fn error(&mut self, span: Span, message: impl Into<String>) {
        let error = Error::at(&self.function().source, span, message);
        self.errors.push(error);
    }

    fn error_with_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let error = Error::at(&self.function().source, span, message).help(help);
        self.errors.push(error);
    }

    fn label(&mut self) -> Label {
        self.inliner.next_label()
    }

    /// Sets the location of the instructions that follow to `span` of the current function.
    fn at(&mut self, span: Span) {
        let frame = self.frame();
        let location = SourceLocation { source: frame.source, span, caller: frame.caller };
        self.builder.location = self.sources.location(&mut self.builder.kernel, location);
    }

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

    fn ty(&self, id: TypeId) -> &'h hir::Type {
        self.function().ty(id)
    }

    fn scalar_type(&self, id: TypeId) -> Scalar {
        match self.ty(id) {
            hir::Type::Scalar(s) => *s,
            _ => Scalar::Usize,
        }
    }

    fn size(&self, size: Size) -> u32 {
        match size {
            Size::Known(n) => n,
            Size::Value(_) | Size::Generic(_) => unreachable!("a length of a monomorphic program is known"),
        }
    }

    /// Returns the memory layout of elements of type `id`; reports an error if there is none.
    fn element_mem_layout(&mut self, id: TypeId, span: Span) -> MemLayout {
        self.mem_layout(id).unwrap_or_else(|| {
            self.error(span, "memory holds numbers, and arrays, tuples and structs of numbers");
            MemLayout::Scalar(Scalar::U8)
        })
    }

    /// Returns the types of the IR values that make up a value of type `id`; `None` for arrays and
    /// handles.
    fn parts(&self, id: TypeId) -> Option<Vec<Type>> {
        Some(match self.ty(id) {
            hir::Type::Unit | hir::Type::Never | hir::Type::Group(_) => Vec::new(),
            hir::Type::Scalar(Scalar::U128) => vec![Type::Scalar(Scalar::U64); 2],
            hir::Type::Scalar(s) => vec![Type::Scalar(*s)],
            hir::Type::Tuple(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    all.extend(self.parts(*part)?);
                }
                all
            }
            hir::Type::Slice { .. } => vec![Type::Global, Type::Scalar(Scalar::Usize)],
            hir::Type::View { rank, strided, .. } => {
                let sizes = 2 * *rank as usize - usize::from(!strided);
                let sizes = std::iter::repeat_n(Type::Scalar(Scalar::Usize), sizes);
                std::iter::once(Type::Global).chain(sizes).collect()
            }
            hir::Type::Option(inner) => {
                let mut all = vec![Type::Scalar(Scalar::Bool)];
                all.extend(self.parts(*inner)?);
                all
            }
            hir::Type::Pending
            | hir::Type::Array(..)
            | hir::Type::Shared { .. }
            | hir::Type::Reference { .. }
            | hir::Type::Function { .. }
            | hir::Type::Constant(_)
            | hir::Type::Parameter(_)
            | hir::Type::Projection { .. }
            | hir::Type::Struct(..)
            | hir::Type::Enum(_)
            | hir::Type::Item(_) => {
                return None;
            }
        })
    }

    /// Lowers a `usize` constant.
    fn index(&mut self, n: u32) -> MaybeConst {
        MaybeConst::new(self.builder.index(n), Some(u64::from(n)))
    }

    fn binary(&mut self, op: ir::Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        if ty.is_half() {
            return self.half_binary(op, ty, a, b);
        }
        if ty == Scalar::U128 {
            return self.double_binary(op, a, b);
        }
        let value = self.builder.scalar(Op::Binary(op, a.value, b.value), ty);
        if ty == Scalar::Usize {
            self.note_divisor(op, a, b, value);
        }
        MaybeConst::new(value, value::known_binary(op, ty, a, b))
    }

    fn compare(&mut self, comparison: ir::Comparison, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
        if ty.is_half() {
            return self.half_compare(comparison, ty, a, b);
        }
        if ty == Scalar::U128 {
            return self.double_compare(comparison, a, b);
        }
        if ty == Scalar::Bool && comparison.is_order() {
            return self.bool_order(comparison, a, b);
        }
        let value = self.builder.compare(comparison, a.value, b.value);
        MaybeConst::new(value, value::known_compare(comparison, ty, a, b))
    }

    /// Returns the constant bits of `e`, if known. The instructions of `e` are dropped.
    fn constant(&mut self, e: &'h hir::Expr) -> Option<u64> {
        self.builder.enter([]);
        let value = self.expr(e);
        self.builder.leave();
        match value {
            Val::Scalar(k) => k.bits,
            _ => None,
        }
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
