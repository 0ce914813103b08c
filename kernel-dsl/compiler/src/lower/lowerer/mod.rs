//! The state of lowering one kernel, and its parts.
//!
//! The files of this folder name no other file of `lower`. Every other file of `lower` adds methods
//! to [`Lowerer`], and names this folder and the types of a few files beside it. All items of the
//! folder are private to `lower`.

pub(in crate::lower) mod copies;
pub(in crate::lower) mod divisibility;
pub(in crate::lower) mod frame;
pub(in crate::lower) mod inliner;
pub(in crate::lower) mod maybe_const;
pub(in crate::lower) mod mem_layout;
pub(in crate::lower) mod shared_arrays;
pub(in crate::lower) mod sources;
pub(in crate::lower) mod tables;
pub(in crate::lower) mod value;

use crate::Scalar;
use crate::error::Error;
use crate::hir::{self, Monomorphic, Program, Size, TypeId};
use crate::ir::build::Builder;
use crate::ir::{self, Label, Op, SourceLocation, Type};
use crate::source::Span;
use copies::CopyTokens;
use divisibility::Divisibility;
use frame::FunctionFrame;
use inliner::Inliner;
use maybe_const::MaybeConst;
use mem_layout::MemLayout;
use shared_arrays::SharedArrays;
use sources::SourceMap;
use std::collections::HashMap;
use tables::Tables;
use value::{CacheHint, Val};

/// The state of lowering one kernel.
#[derive(Clone)]
pub(in crate::lower) struct Lowerer<'h> {
    pub program: &'h Program,
    pub monomorphic: &'h Monomorphic,
    pub builder: Builder,
    /// The source functions and locations of the instructions so far.
    pub sources: SourceMap,
    /// The calls that are being inlined.
    pub inliner: Inliner<'h>,
    /// The shared arrays so far.
    pub shared: SharedArrays,
    /// The variables for copy tokens so far.
    pub tokens: CopyTokens<'h>,
    /// The tables of constants so far.
    pub tables: Tables,
    /// Known divisors of `usize` values.
    pub divisibility: Divisibility,
    /// The cache hint of each view variable, by the local of its address. The first view assigned
    /// to the variable determines the hint.
    pub cache_hints: HashMap<ir::LocalId, CacheHint>,
    /// The variable being bound, for the names of shared arrays and register arrays.
    pub name_hint: Option<&'h str>,
    /// The first local of an array in local memory that is not bound to a variable yet.
    pub unbound: Option<ir::LocalId>,
    /// Whether lowering emits the names of variables, for tracing.
    pub named: bool,
    pub errors: Vec<Error>,
}

impl<'h> Lowerer<'h> {
    pub fn frame(&self) -> &FunctionFrame<'h> {
        self.inliner.frame()
    }

    pub fn frame_mut(&mut self) -> &mut FunctionFrame<'h> {
        self.inliner.frame_mut()
    }

    pub fn function(&self) -> &'h hir::Function {
        self.frame().function
    }

    pub fn error(&mut self, span: Span, message: impl Into<String>) {
        let error = Error::at(&self.function().source, span, message);
        self.errors.push(error);
    }

    pub fn error_with_help(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        let error = Error::at(&self.function().source, span, message).help(help);
        self.errors.push(error);
    }

    pub fn label(&mut self) -> Label {
        self.inliner.next_label()
    }

    /// Sets the location of the instructions that follow to `span` of the current function.
    pub fn at(&mut self, span: Span) {
        let frame = self.frame();
        let location = SourceLocation { source: frame.source, span, caller: frame.caller };
        self.builder.location = self.sources.location(&mut self.builder.kernel, location);
    }

    pub fn ty(&self, id: TypeId) -> &'h hir::Type {
        self.function().ty(id)
    }

    pub fn scalar_type(&self, id: TypeId) -> Scalar {
        match self.ty(id) {
            hir::Type::Scalar(s) => *s,
            _ => Scalar::Usize,
        }
    }

    pub fn size(&self, size: Size) -> u32 {
        match size {
            Size::Known(n) => n,
            Size::Value(_) | Size::Generic(_) => unreachable!("a length of a monomorphic program is known"),
        }
    }

    /// Returns the memory layout of elements of type `id`; reports an error if there is none.
    pub fn element_mem_layout(&mut self, id: TypeId, span: Span) -> MemLayout {
        self.mem_layout(id).unwrap_or_else(|| {
            self.error(span, "memory holds numbers, and arrays, tuples and structs of numbers");
            MemLayout::Scalar(Scalar::U8)
        })
    }

    /// Returns the types of the IR values that make up a value of type `id`; `None` for arrays and
    /// handles.
    pub fn parts(&self, id: TypeId) -> Option<Vec<Type>> {
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
            | hir::Type::Enum(..)
            | hir::Type::Item(_) => {
                return None;
            }
        })
    }

    /// Lowers a `usize` constant.
    pub fn index(&mut self, n: u32) -> MaybeConst {
        MaybeConst::new(self.builder.index(n), Some(u64::from(n)))
    }

    pub fn binary(&mut self, op: ir::Binary, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
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
        MaybeConst::new(value, maybe_const::known_binary(op, ty, a, b))
    }

    pub fn compare(&mut self, comparison: ir::Comparison, ty: Scalar, a: MaybeConst, b: MaybeConst) -> MaybeConst {
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
        MaybeConst::new(value, maybe_const::known_compare(comparison, ty, a, b))
    }

    /// Returns the constant bits of `e`, if known. The instructions of `e` are dropped.
    pub fn constant(&mut self, e: &'h hir::Expr) -> Option<u64> {
        self.builder.enter([]);
        let value = self.expr(e);
        self.builder.leave();
        match value {
            Val::Scalar(k) => k.bits,
            _ => None,
        }
    }
}
