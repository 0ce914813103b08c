//! One instance of a kernel for one target: HIR to IR, as the program says it.
//!
//! Calls are inlined, tuples and views taken apart, generic constants put in, and shared memory laid out. Nothing is
//! optimised: what leaves this module is what the oracle runs and what the passes must preserve. [`checked`] makes the form
//! whose accesses are guarded on the device.

mod access;
mod array;
mod bits;
mod captures;
mod cell;
pub mod checked;
mod closure;
mod combine;
mod contract;
mod cooperation;
mod copy;
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
mod loops;
mod memory;
mod method;
mod option;
mod overflow;
mod pattern;
mod pending;
mod piece;
mod pipeline;
mod share;
mod shared;
mod statement;
mod storage;
mod table;
mod threads;
mod value;
mod wide;

use crate::Scalar;
use crate::error::{Error, Errors};
use crate::hir::{self, Instance, Monomorphic, Program, Size, TypeId};
use crate::ir::build::Builder;
use crate::ir::{self, Label, Location, Op, Parameter, Role, SourceLocation, Type};
use crate::launch;
use crate::oracle::Declared;
use crate::passes;
use crate::source::Span;
use crate::target::Target;
use cell::Cell;
use closure::Callable;
use function::Frame;
use std::collections::HashMap;
use value::{Known, Val, View, Wish};

/// The instance of `program` for `target`, as the program says it; or all that is wrong with it.
pub fn lower(program: &Program, instance: &Instance, target: Target) -> Result<ir::Kernel, Errors> {
    lower_monomorphic(&hir::monomorphic(program, instance)?, target)
}

/// The same of a program that has been made for its instance.
pub fn lower_monomorphic(monomorphic: &Monomorphic, target: Target) -> Result<ir::Kernel, Errors> {
    lower_with(monomorphic, target, false)
}

/// The same with an [`Op::Named`] wherever a variable that never changes is bound: for those who follow a thread. Variables
/// that change are locals, and have their names.
pub fn lower_named(monomorphic: &Monomorphic, target: Target) -> Result<ir::Kernel, Errors> {
    lower_with(monomorphic, target, true)
}

fn lower_with(monomorphic: &Monomorphic, target: Target, named: bool) -> Result<ir::Kernel, Errors> {
    let (program, instance, function) = (monomorphic.program(), monomorphic.instance(), monomorphic.kernel());
    let refused = |e: launch::Refusal| Error::whole(e.to_string());
    let block = launch::block(monomorphic).map_err(refused)?;
    let limits = launch::limits(monomorphic).map_err(refused)?;
    let kernel = ir::Kernel {
        name: instance.entry(&function.name),
        instance: instance.name(&function.name),
        target,
        block,
        min_blocks: limits.min_blocks,
        max_registers: limits.max_registers,
        parameters: Vec::new(),
        values: Vec::new(),
        locals: Vec::new(),
        shared: Vec::new(),
        dynamic: Vec::new(),
        tables: Vec::new(),
        sources: Vec::new(),
        locations: Vec::new(),
        declared: Declared { outputs: monomorphic.outputs(), allowances: Vec::new() },
        unrolled: passes::unroll::LIMIT,
        body: ir::Region::default(),
    };
    let mut lowerer = Lowerer {
        program,
        builder: Builder::new(kernel),
        frames: Vec::new(),
        sources: HashMap::new(),
        locations: HashMap::new(),
        labels: 0,
        callables: Vec::new(),
        entered: 0,
        padded: Vec::new(),
        arrays: Vec::new(),
        aliases: Vec::new(),
        exchanged: Vec::new(),
        hidden_loops: 0,
        beginnings: Vec::new(),
        conversions: Vec::new(),
        tokens: 0,
        later: HashMap::new(),
        unplaced: HashMap::new(),
        errors: Vec::new(),
        full: false,
        name_hint: None,
        named,
        tables: HashMap::new(),
        bases: HashMap::new(),
        evaluating: false,
        wishes: HashMap::new(),
        promises: launch::promises(monomorphic),
        divisors: HashMap::new(),
    };
    lowerer.kernel(function, &monomorphic.arguments());
    if !lowerer.errors.is_empty() {
        return Err(Errors(lowerer.errors));
    }
    let plan = layout::Plan { padded: lowerer.padded, events: lowerer.arrays, aliases: lowerer.aliases };
    let mut kernel = lowerer.builder.finish();
    layout::assign(&mut kernel, &plan)?;
    Ok(kernel)
}

#[derive(Clone)]
struct Lowerer<'h> {
    program: &'h Program,
    builder: Builder,
    /// The kernel and the calls being inlined, innermost last.
    frames: Vec<Frame<'h>>,
    /// Index into the kernel's sources of each function, by its hash: its instances share one.
    sources: HashMap<u64, u32>,
    locations: HashMap<SourceLocation, Location>,
    labels: u32,
    /// What a `Val::Callable` names.
    callables: Vec<Callable<'h>>,
    /// Functions entered so far.
    entered: u32,
    /// Arrays whose pitch the compiler is to choose.
    padded: Vec<ir::SharedId>,
    /// When shared arrays come and go.
    arrays: Vec<layout::Event>,
    /// Shared arrays on the bytes of others.
    aliases: Vec<layout::Alias>,
    /// The arrays through which the threads of a block trade values, by the type of their elements.
    exchanged: Vec<(Scalar, ir::SharedId)>,
    /// Loops around the closures that are being inlined, which these do not get out of.
    hidden_loops: u32,
    /// Where shared arrays of dynamic size begin: aligned to what is widest.
    beginnings: Vec<ir::Value>,
    /// What copies ahead do with elements when they are waited for.
    conversions: Vec<pending::Conversion<'h>>,
    /// Variables for tokens so far.
    tokens: u32,
    /// By such a variable, kinds of flights that it is given after its first value.
    later: HashMap<u32, Vec<pending::Kind>>,
    /// By such a variable, those that there was no room for.
    unplaced: HashMap<u32, Vec<pending::Kind>>,
    errors: Vec<Error>,
    /// It was said that the kernel is too large.
    full: bool,
    /// What the kernel's conditions say of its parameters.
    promises: Vec<launch::Promise>,
    /// Numbers that are known to divide values of `usize`.
    divisors: HashMap<ir::Value, u32>,
    /// The variable being bound, for the names of shared arrays and register arrays.
    name_hint: Option<&'h str>,
    /// Whether the IR is to say what variables are called.
    named: bool,
    /// The table of each constant, once it was asked for; `None` where there is none.
    tables: HashMap<hir::FunctionId, Option<(ir::TableId, Cell)>>,
    /// The tables whose addresses these values are.
    bases: HashMap<ir::Value, ir::TableId>,
    /// What is being lowered is run here, and nothing stays of it.
    evaluating: bool,
    /// How the views are to be read whose addresses are in these variables: as the first one that each was given.
    wishes: HashMap<ir::LocalId, Wish>,
}

impl<'h> Lowerer<'h> {
    fn frame(&self) -> &Frame<'h> {
        self.frames.last().expect("a function is being lowered")
    }

    fn frame_mut(&mut self) -> &mut Frame<'h> {
        self.frames.last_mut().expect("a function is being lowered")
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
        self.labels += 1;
        Label(self.labels - 1)
    }

    /// What follows is made from `span` of the current function.
    fn at(&mut self, span: Span) {
        let frame = self.frame();
        let location = SourceLocation { source: frame.source, span, caller: frame.caller };
        let locations = &mut self.builder.kernel.locations;
        self.builder.location = *self.locations.entry(location).or_insert_with(|| {
            locations.push(location);
            Location(locations.len() as u32 - 1)
        });
    }

    fn kernel(&mut self, function: &'h hir::Function, arguments: &[hir::monomorphic::Argument]) {
        let frame = self.enter_function(function, None);
        self.frames.push(frame);
        self.at(Span { line: 0, column: 1, end_line: 0, end_column: 1 });
        let mut argument = 0;
        for i in 0..function.parameters {
            let local = &function.locals[i as usize];
            let mut value = self.parameter(arguments, &mut argument, local.ty, local.span);
            if let Val::View(view) = &mut value {
                self.promised(hir::LocalId(i), view);
            }
            self.bind_local(hir::LocalId(i), value);
        }
        self.block(&function.body);
        self.frames.pop();
    }

    /// The value of a parameter from the entry's; `argument` counts what a launch passes.
    fn parameter(&mut self, all: &[hir::monomorphic::Argument], argument: &mut u32, ty: TypeId, span: Span) -> Val {
        let cell = match *self.ty(ty) {
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
            hir::Type::Slice { element, .. } | hir::Type::View { element, .. } => self.element_cell(element, span),
            _ => Cell::Scalar(Scalar::U8),
        };
        let element = cell.element();
        let name = entry_name(all.get(*argument as usize).map_or("argument", |a| &a.name));
        let mut part = |suffix: String, role: Role| -> ir::Value {
            let kernel = &mut self.builder.kernel;
            let mut name = format!("{name}{suffix}");
            while kernel.parameters.iter().any(|p| p.name == name) {
                name.push('_');
            }
            let parameter = Parameter { name, argument: *argument, role };
            let ty = parameter.ty();
            kernel.parameters.push(parameter);
            let index = kernel.parameters.len() as u32 - 1;
            self.builder.value(Op::Parameter(index), ty)
        };
        let known = |value| Known { value, bits: None };
        let value = match *self.frames[0].function.ty(ty) {
            hir::Type::Scalar(s) => Val::Scalar(known(part(String::new(), Role::Value(s)))),
            hir::Type::Slice { mutable, .. } => Val::View(View {
                base: part(String::new(), Role::Address { element, mutable }),
                extents: [known(part("_len".into(), Role::Extent(0)))].into_iter().collect(),
                strides: [None].into_iter().collect(),
                cell,
                mutable,
                wish: Wish::None,
                aligned: 1,
            }),
            hir::Type::View { rank, mutable, strided, .. } => Val::View(View {
                base: part(String::new(), Role::Address { element, mutable }),
                extents: (0..rank).map(|d| known(part(format!("_dim{d}"), Role::Extent(d)))).collect(),
                strides: (0..rank)
                    .map(|d| (strided || d + 1 < rank).then(|| part(format!("_stride{d}"), Role::Stride(d))))
                    .collect(),
                cell,
                mutable,
                wish: Wish::None,
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
            Size::Generic(_) => unreachable!("a monomorphic program has no generic sizes"),
        }
    }

    /// How elements of memory lie.
    fn element_cell(&mut self, id: TypeId, span: Span) -> Cell {
        self.cell(id).unwrap_or_else(|| {
            self.error(span, "memory holds numbers, and arrays, tuples and structs of numbers");
            Cell::Scalar(Scalar::U8)
        })
    }

    /// The types of the values that a value of type `id` is taken apart into; `None` for what lives in registers or is a
    /// handle.
    fn parts(&self, id: TypeId) -> Option<Vec<Type>> {
        Some(match self.ty(id) {
            hir::Type::Unit | hir::Type::Never | hir::Type::Group(_) => Vec::new(),
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

    /// A `usize` constant.
    fn index(&mut self, n: u32) -> Known {
        Known { value: self.builder.index(n), bits: Some(u64::from(n)) }
    }

    fn binary(&mut self, op: ir::Binary, ty: Scalar, a: Known, b: Known) -> Known {
        if ty.is_half() {
            return self.half_binary(op, ty, a, b);
        }
        let value = self.builder.scalar(Op::Binary(op, a.value, b.value), ty);
        if ty == Scalar::Usize {
            self.note_divisor(op, a, b, value);
        }
        Known { value, bits: value::known_binary(op, ty, a, b) }
    }

    fn compare(&mut self, comparison: ir::Comparison, ty: Scalar, a: Known, b: Known) -> Known {
        if ty.is_half() {
            return self.half_compare(comparison, ty, a, b);
        }
        let value = self.builder.compare(comparison, a.value, b.value);
        Known { value, bits: value::known_compare(comparison, ty, a, b) }
    }

    /// Lowers `e` for its constant value alone; nothing stays of its instructions.
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

/// A parameter's name in the PTX entry: Rust's, with `_` for what PTX's names cannot have.
fn entry_name(name: &str) -> String {
    let plain = name.strip_prefix("r#").unwrap_or(name);
    let name: String = plain.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // The one word that PTX has for itself and that does not begin with a dot or a percent sign.
    if name == "WARP_SZ" || name == "_" { name + "_" } else { name }
}
