//! The intermediate representation: typed, in static single assignment form, with structured
//! control flow.
//!
//! # Structure
//!
//! A [`Kernel`] is one instance of a kernel for one target. No generics are left, every call is
//! inlined, and every aggregate (tuple, view, handle to shared memory) is split into scalars. The
//! body is a [`Region`], a list of [`Inst`]s. An instruction computes from [`Value`]s and defines
//! the values in `results`. Each value has a [`Type`] and one definition: an instruction, or a
//! parameter of a region.
//!
//! Control flow is a tree. [`Op::If`], [`Op::For`], [`Op::Loop`] and [`Op::Block`] hold regions.
//! Each region ends with its only terminator: [`Op::Yield`], [`Op::Break`], [`Op::Continue`] or
//! [`Op::Return`]. So the points where lanes diverge and reconverge are explicit. A warp runs a
//! kernel in lockstep under a mask: each construct narrows the mask and restores it at its end. A
//! value may be used after its definition in the same region, and in every region nested there.
//!
//! Values leave regions through results. `Yield` passes its values to the results of the construct.
//! `Break` passes its values to the results of the construct that it leaves. `Continue` passes its
//! values to the parameters of the loop's next iteration.
//!
//! # As lowered, and after passes
//!
//! In IR as lowered, a `let mut` variable or a register array is a [`Local`], accessed by
//! [`Op::ReadLocal`] and [`Op::WriteLocal`]. An access to memory names buffer, indices and extents
//! ([`AccessPlace`]), as the Rust source does. The oracle runs this form with every check. Passes
//! turn locals into values and places into addresses, and unroll loops. The output of passes runs
//! on the same interpreter and must give the same bits.
//!
//! The *checked form* is IR as lowered with comparisons around its accesses, and reports where they
//! fail. See [`lower::checked`](crate::lower::checked). The checked form goes through the same
//! passes.
//!
//! # Text
//!
//! A kernel prints as text and is parsed from text ([`mod@print`], `str::parse`). The table in
//! `operation` declares class and syntax of each operation. From the table come walking, keys for
//! the elimination of common subexpressions, the printer and the parser.
//!
//! # Semantics
//!
//! * Integers are two's complement. [`Binary::Add`], `Sub` and `Mul` wrap. Wrapping on `usize` is
//!   an error of the kernel: the oracle reports it, and passes may assume that it does not occur.
//!   On fixed-width types the oracle reports it as Rust's debug builds do. `Wrapping…` operators
//!   never report.
//! * `Div` and `Rem` truncate towards zero. A zero divisor, and `MIN / −1`, is reported and gives
//!   an unspecified value.
//! * Shift amounts are `u32`, masked to the width.
//! * Floats follow IEEE 754: round to nearest even, subnormals kept. `Min` and `Max` return the
//!   operand that is not a NaN, and order −0 below +0. Payload and sign of a NaN that arithmetic
//!   produces are unspecified.
//! * [`Op::Approximate`] has the result of the hardware, within the bound of its `Approximation`.
//!   The interpreters compute `Approximation::stand_in` instead.
//! * Comparisons are Rust's: with a NaN, only `!=` holds.
//! * [`Op::Cast`] is Rust's `as`.
//! * Floats of 16 bits are a storage format: loaded, stored, held in locals, selected, and bitcast
//!   to and from `u16`. Lowering expands arithmetic and comparisons: they run in `f32`, rounded to
//!   nearest even.
//! * Casts exist from `f16` to `f32`, which is exact, and back, which rounds once. Every NaN
//!   becomes the code 0x7FFF. Lowering expands conversions of `bf16` to integer operations, with
//!   the same NaN.

mod bits;
mod block;
pub mod build;
pub mod eval;
mod formula;
mod instruction;
mod kernel;
mod memory;
mod operation;
mod operator;
mod parse;
mod part;
pub mod print;
pub mod record;
mod region;
mod table;
mod value;
pub mod verify;

pub use bits::Bits;
pub use block::{BlockExtents, OpenAxis};
pub use formula::{Formula, NoFormula};
pub use instruction::{AsyncCopy, CachePolicy, Guard, Inst, MAX_LOG_VALUES, Op, Special, WaitGroup};
pub use kernel::{Kernel, Local, MAX_UNROLLED_INSTRUCTIONS, Parameter, Role, SourceLocation};
pub use memory::{
    AccessPlace, Dim, DynamicArray, ElementIndex, ElementOffset, MemoryElement, SHARED_LIMIT, SharedArray,
    SharedLayout, SharedMemoryNeed, Swizzle,
};
pub use operation::{OpClass, OpKey};
pub use operator::{AtomicOperator, Binary, Comparison, FenceScope, Shuffle, Unary, Vote};
pub use parse::IrParseError;
pub use region::{For, Region, Unroll};
pub use table::{CONSTANT_LIMIT, Placement, Table};
pub use value::{DynamicId, Label, LocalId, Location, SharedId, TableId, Type, Value, Values};

/// Bytes of the widest access of the machine.
pub const MAX_VECTOR_BYTES: u32 = 16;
