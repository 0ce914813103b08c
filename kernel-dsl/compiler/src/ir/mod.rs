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
//! * [`Op::Approximate`] is what the hardware gives, within the bound of its [`Approximation`]. The
//!   interpreters compute its stand-in.
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
mod memory;
mod operation;
mod parse;
mod part;
pub mod print;
pub mod record;
mod table;
pub mod verify;

pub use bits::Bits;
pub use block::{BlockExtents, OpenAxis};
pub use formula::{Formula, NoFormula};
pub use memory::{
    AccessPlace, Dim, DynamicArray, Element, ElementIndex, ElementOffset, SHARED_LIMIT, SharedArray, SharedLayout,
    SharedMemory, Swizzle,
};
pub use operation::{OpClass, OpKey};
pub use parse::Fault;
pub use table::{CONSTANT_LIMIT, Placement, Table};

use crate::approximation::Approximation;
use crate::assertion::Outcome;
use crate::oracle::OracleDeclarations;
use crate::ptx::Inline;
use crate::scalar::Scalar;
use crate::source::{KernelSource, Span};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes of the widest access of the machine.
pub const MAX_VECTOR_BYTES: u32 = 16;

/// Maximum number of instructions of a kernel after unrolling, unless lowering sets another limit.
/// A larger kernel takes seconds to assemble and overflows the instruction cache.
pub const MAX_UNROLLED_INSTRUCTIONS: usize = 1 << 18;

/// Maximum number of values that [`Op::Log`] prints after the block and the thread. CUDA's `printf`
/// takes 32 in total.
pub const MAX_LOG_VALUES: usize = 26;

/// One instance of a kernel, for one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Entry name in PTX, such as `matmul_16`.
    pub name: String,
    /// The instance as Rust names it, such as `matmul::<16>`.
    pub rust_name: String,
    /// The instance as reports name it, such as `matmul<T = 16>` or `gemm@tile`.
    pub instance: String,
    /// The target that the kernel is compiled for.
    pub target: Target,
    /// Threads of a block in x, y, z.
    pub block: BlockExtents,
    /// Blocks that a multiprocessor should hold at once (`.minnctapersm`), if the kernel sets it.
    pub min_blocks: Option<u32>,
    /// Maximum number of registers of a thread (`.maxnreg`), if the kernel sets it.
    pub max_registers: Option<u32>,
    /// The parameters of the PTX entry, in order.
    pub parameters: Vec<Parameter>,
    /// The type of each value.
    pub values: Vec<Type>,
    /// Mutable variables and register arrays.
    pub locals: Vec<Local>,
    /// Arrays in shared memory.
    pub shared: Vec<SharedArray>,
    /// Arrays in shared memory whose size the launch evaluates.
    pub dynamic: Vec<DynamicArray>,
    /// Arrays that are known at compile time and read by a run-time index.
    pub tables: Vec<Table>,
    /// The functions whose lines appear in `locations`; the kernel's own is the first.
    pub sources: Vec<KernelSource>,
    /// The source locations that a [`Location`] indexes.
    pub locations: Vec<SourceLocation>,
    /// Declarations of the kernel to the oracle.
    pub declared: OracleDeclarations,
    /// Maximum number of instructions after unrolling.
    pub unrolled: usize,
    /// The code of a thread.
    pub body: Region,
}

impl Kernel {
    /// Returns a kernel without a name, parameters and code.
    pub fn empty(target: Target, block: BlockExtents) -> Kernel {
        Kernel {
            name: String::new(),
            rust_name: String::new(),
            instance: String::new(),
            target,
            block,
            min_blocks: None,
            max_registers: None,
            parameters: Vec::new(),
            values: Vec::new(),
            locals: Vec::new(),
            shared: Vec::new(),
            dynamic: Vec::new(),
            tables: Vec::new(),
            sources: Vec::new(),
            locations: Vec::new(),
            declared: OracleDeclarations::default(),
            unrolled: MAX_UNROLLED_INSTRUCTIONS,
            body: Region::default(),
        }
    }
}

/// A value: the result of one instruction, or a parameter of a region. Index into
/// [`Kernel::values`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

/// Index into [`Kernel::locals`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LocalId(pub u32);

/// Index into [`Kernel::shared`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SharedId(pub u32);

/// Index into [`Kernel::dynamic`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DynamicId(pub u32);

/// Index into [`Kernel::tables`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TableId(pub u32);

/// Index into [`Kernel::locations`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Location(pub u32);

/// The label of a construct, named by the `Break` and `Continue` inside it; unique in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// Operands or results, of which there are usually one or two.
pub type Values = SmallVec<[Value; 2]>;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Type {
    /// A number or a truth value.
    Scalar(Scalar),
    /// A 64-bit address in global memory.
    Global,
    /// A 64-bit address in constant memory. Only passes make it.
    Constant,
    /// A 32-bit byte offset in the block's shared memory. Lowering makes it by `Op::Dynamic` and
    /// `Op::Offset`. Passes also make constants of this type.
    Shared,
}

impl Type {
    /// Returns the scalar type, if this is one.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(s),
            _ => None,
        }
    }
}

/// A parameter of the PTX entry. A slice argument gives two: address and length. A view of rank R
/// gives 2R: address, R extents, R − 1 strides. A view gives one more if its last stride is not 1.
/// A scalar argument gives one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name in PTX, unique: `x`, `x_len`, `a_dim0`, `a_stride0`.
    pub name: String,
    /// Index of the Rust argument that the parameter belongs to.
    pub argument: u32,
    /// The part of the argument.
    pub role: Role,
}

/// The content of a parameter of the entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A scalar argument.
    Value(Scalar),
    /// The address of a slice's or view's first element.
    Address {
        /// The element type of the array.
        element: Element,
        /// Whether the kernel may write to the array.
        mutable: bool,
    },
    /// Elements of a slice, or of dimension `.0` of a view; `usize`.
    Extent(u32),
    /// Elements between adjacent indices of dimension `.0` of a view; `usize`. The last dimension
    /// has stride 1 if it has none.
    Stride(u32),
}

impl Parameter {
    /// Returns the type of the value that `Op::Parameter` gives.
    pub fn ty(&self) -> Type {
        match self.role {
            Role::Value(s) => Type::Scalar(s),
            Role::Address { .. } => Type::Global,
            Role::Extent(_) | Role::Stride(_) => Type::Scalar(Scalar::Usize),
        }
    }
}

/// A mutable variable of each thread, or an array of them. Contents are undefined until written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Name in Rust, for reading; not unique.
    pub name: String,
    /// Element type: a scalar, or an address in global memory.
    pub element: Type,
    /// Number of elements; 1 for a plain variable. Arrays of arrays are flattened, row-major.
    pub len: u32,
    /// Whether the kernel places the array in local memory if not all of its indices are constant.
    pub memory: bool,
}

impl Local {
    /// Returns the bytes that an element takes in local memory.
    pub fn element_bytes(&self) -> u32 {
        match self.element {
            Type::Scalar(scalar) => scalar.bytes(),
            Type::Global | Type::Constant => 8,
            Type::Shared => 4,
        }
    }

    /// Returns the bytes that the array takes in local memory of each thread.
    pub fn bytes(&self) -> u32 {
        self.element_bytes().saturating_mul(self.len)
    }
}

/// A location in the source of one of the functions that a kernel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation {
    /// Index into [`Kernel::sources`].
    pub source: u32,
    /// The range of tokens in that source.
    pub span: Span,
    /// The call that inlined this function here, if it is not the kernel's own code.
    pub caller: Option<Location>,
}

/// A sequence of instructions with parameters, ended by a terminator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Region {
    /// Values that the construct defines each time that it enters the region. For `For`: the index
    /// and the carried values. For `Loop`: the carried values. Otherwise none.
    pub parameters: Values,
    /// Instructions. The last is the terminator.
    pub insts: Vec<Inst>,
}

impl Region {
    /// Returns what the unchecked form does at the end of the region, if threads fail there.
    pub fn panics(&self) -> Option<Outcome> {
        match self.insts.as_slice() {
            [.., Inst { op: Op::Panic { outcome, .. }, .. }, Inst { op: Op::Return, .. }] => Some(*outcome),
            _ => None,
        }
    }

    /// Returns the values that the region yields, or `None` if it ends with another terminator.
    pub fn yielded(&self) -> Option<&Values> {
        match &self.insts.last()?.op {
            Op::Yield(values) => Some(values),
            _ => None,
        }
    }
}

/// An instruction, its source location, and the values that it defines.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// The values that the instruction defines.
    pub results: Values,
    /// The Rust source that the instruction was made from.
    pub location: Location,
}

/// An operation. The table in `operation` gives the class and the syntax of each.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// The constant of the result's type with these bits, zero-extended to 64.
    Constant(u64),
    /// A parameter of the entry, by its index.
    Parameter(u32),
    /// A special register; `usize`.
    Special(Special),
    /// One operand, and a result of the same type. Counting operators give `u32`.
    Unary(Unary, Value),
    /// Two operands of one type, and a result of the same type. The second operand of a shift is
    /// `u32`.
    Binary(Binary, Value, Value),
    /// a · b + c with one rounding; floats.
    MulAdd(Value, Value, Value),
    /// A hardware approximation of an `f32` function. No pass folds the operation, because the bits
    /// of its result are unspecified.
    Approximate(Approximation, Value),
    /// An integer operation of one machine instruction, beyond Rust's operators. [`Bits::result`]
    /// gives its types.
    Bits(Bits, SmallVec<[Value; 4]>),
    /// Two operands of one type; `bool` result.
    Compare(Comparison, Value, Value),
    /// `yes` where `condition` holds, `no` elsewhere. Both are evaluated.
    #[allow(missing_docs)]
    Select { condition: Value, yes: Value, no: Value },
    /// Rust's `as` from the operand's type to the result's. Floats to integers saturate; a NaN
    /// gives 0.
    Cast(Value),
    /// The same bits as another type of the same width.
    Bitcast(Value),
    /// The address of the element at the indices `terms` from `base`. Only overflow of the products
    /// is checked. A view moves by this operation. The result has the type of `base`. A global
    /// address moves in 64 bits: each term is zero-extended before it is scaled to bytes. An offset
    /// in shared memory moves in 32 bits.
    Offset {
        /// Address of the view's first element.
        base: Value,
        /// Index and stride of each dimension, in elements; `None` is a stride of 1.
        terms: SmallVec<[(Value, Option<Value>); 2]>,
        /// Bytes of an element.
        bytes: u32,
    },
    /// The address of a table's first byte. Lowering gives it type `Global`. The pass `tables`
    /// decides where the table lies.
    Table(TableId),
    /// The address of an array in shared memory whose extents the launch evaluates. Extents are
    /// `usize`, outermost first, computed from parameters and constants alone. Such arrays follow
    /// those of [`Kernel::shared`], in the order of [`Kernel::dynamic`], each aligned to 16 bytes.
    #[allow(missing_docs)]
    Dynamic { array: DynamicId, extents: SmallVec<[Value; 2]> },
    /// Reads consecutive scalars, one into each of `results`. The first is aligned to the bytes of
    /// all of them, at most to [`MAX_VECTOR_BYTES`], which is the widest access of the machine.
    Load {
        /// The location of the first scalar.
        place: AccessPlace,
        /// Type in memory, and of the results.
        element: Scalar,
        /// How the memory may be cached.
        policy: CachePolicy,
        /// Lanes that load. Masked lanes get `Guard::otherwise` and touch no memory.
        guard: Option<Guard>,
    },
    /// Writes consecutive scalars, aligned like those of a load.
    Store {
        /// The location of the first scalar.
        place: AccessPlace,
        /// Type of the scalars.
        element: Scalar,
        /// One value for each scalar.
        values: Values,
        /// Lanes that store. Masked lanes touch no memory.
        guard: Option<Value>,
    },
    /// Marks consecutive scalars in shared memory as undefined until they are stored: a copy to
    /// them is in flight. The operation emits no code, and the race checks treat it as a store.
    MarkUndef {
        /// The location of the first scalar.
        place: AccessPlace,
        /// Type of the scalars.
        element: Scalar,
        /// Number of scalars.
        count: u32,
        /// Lanes that mark. Masked lanes touch no memory.
        guard: Option<Value>,
    },
    /// Starts a copy from global to shared memory that bypasses registers (`cp.async`). The copy
    /// belongs to the thread's open group.
    CopyAsync(Box<AsyncCopy>),
    /// Closes the thread's open group of copies, which may be empty, and opens the next
    /// (`cp.async.commit_group`). The result is the number of the closed group, `usize`, from 0.
    CopyCommit,
    /// Waits for copies of the thread (`cp.async.wait_group`). Afterwards the thread sees the
    /// copied bytes. Other threads see them after a barrier.
    CopyWait(WaitGroup),
    /// Starts the lifetime of the array. The array's bytes were used by another array, or by an
    /// earlier lifetime, and are undefined until they are stored. The operation emits no code, and
    /// all threads of the block execute it, or none.
    LifetimeStart(SharedId),
    /// The scalar value of a variable of the kernel from here on. The operation emits no code,
    /// and only IR lowered for tracing has it ([`lower_named`](crate::lower::lower_named)).
    #[allow(missing_docs)]
    DbgValue { name: Box<str>, value: Value },
    /// Reads an element, writes the result of `operation`, and gives the previous value, if there
    /// is a result. `Load` does not write, and `Store` has no result.
    /// Other atomic operations on the element come before or after. The operation is
    /// relaxed: it orders no other access. In `f32`, `Add` on global memory flushes subnormal
    /// operands and sums to zero, as the hardware does. On shared memory it does not.
    Atomic {
        /// How the new value is computed.
        operation: Atomic,
        /// The location of the element.
        place: AccessPlace,
        /// Element type, which [`Atomic::takes`].
        element: Scalar,
        /// The operand. `CompareExchange` has the expected value and then the new one.
        values: Values,
    },
    /// Reads an element of a local, at `index` (`usize`; `None` is 0).
    #[allow(missing_docs)]
    ReadLocal { local: LocalId, index: Option<Value> },
    /// Writes an element of a local.
    #[allow(missing_docs)]
    WriteLocal { local: LocalId, index: Option<Value>, value: Value },
    /// Waits until all threads of the grid arrive, and orders memory among them. Only in
    /// cooperative launches.
    GridSync,
    /// Waits until all threads of the block arrive, and orders memory among them (`bar.sync 0`).
    BlockSync,
    /// Waits until all lanes of the warp arrive, and orders memory among them (`bar.warp.sync`).
    WarpSync,
    /// Orders the thread's accesses to memory among the threads of `scope`. A thread that observes
    /// a later access of this thread also observes the earlier ones (release). Later accesses
    /// observe what another thread's fence released, if an earlier read returned a value written
    /// after that fence (acquire). These reads and writes must be atomic operations, which order
    /// nothing themselves. Only accesses to read-only memory may move across a fence.
    Fence(FenceScope),
    /// PTX instructions written by the kernel. `inputs` are the input operands, the results its
    /// output operands. The semantics are those of PTX.
    #[allow(missing_docs)]
    Inline { code: Arc<Inline>, inputs: Values },
    /// The value of another lane, selected by `mode` and `selector`. All 32 lanes must be
    /// converged. 32-bit or 64-bit scalars.
    Shuffle {
        /// How the source lane is found.
        mode: Shuffle,
        /// The value that each lane provides.
        value: Value,
        /// Lane, distance or mask; `u32`.
        selector: Value,
        /// Lanes of a segment: 2, 4, 8, 16 or 32. Lanes exchange values within their segment.
        width: u32,
    },
    /// Combines a `bool` of each lane for all lanes of the warp, which must be converged. `Ballot`
    /// gives `u32`, the others `bool`.
    #[allow(missing_docs)]
    Vote { mode: Vote, value: Value },
    /// The lanes of the warp whose value equals this lane's bit for bit, as bits of a `u32`. All 32
    /// lanes must be converged. 32-bit or 64-bit scalars; from sm_70.
    Match(Value),
    /// The sum (`Add`), `Min` or `Max` of the values of all 32 lanes, which must be converged.
    /// Integers of 32 bits. A sum wraps; the oracle reports a sum that does not fit. From sm_80.
    Reduce(Binary, Value),
    /// The thread fails an assertion or panics: the oracle reports `message` with `values`, which
    /// are scalars. [`Op::Return`] follows. The unchecked form does what `outcome` says.
    #[allow(missing_docs)]
    Panic { outcome: Outcome, message: Box<str>, values: Values },
    /// Prints a line by C's `printf`. The conversions of `format` are `%s` for a `bool`, as `true`
    /// or `false`, and those of `i32`, `u32`, `i64`, `u64` and `f64`. At most [`MAX_LOG_VALUES`]
    /// values follow the block and the thread.
    #[allow(missing_docs)]
    Log { format: Box<str>, values: Values },
    /// Records a failed check in the launch's record. The first lane of all threads writes the
    /// record; later ones leave it unchanged. Only the checked form has it
    /// ([`lower::checked`](crate::lower::checked)).
    RecordViolation {
        /// The address of the [`record`].
        record: Value,
        /// Number of the check: the form's table says where it is and what `values` mean.
        site: u32,
        /// `usize` values, at most [`record::MAX_VALUES`].
        values: Values,
    },
    /// Runs `then` in the lanes where `condition` holds and `otherwise` in the others. Results come
    /// from their `Yield`s.
    #[allow(missing_docs)]
    If { condition: Value, then: Region, otherwise: Region },
    /// Runs `body` for index = start, start + step, … while index < end; `step` > 0. The kernel
    /// must ensure that index + step does not overflow, as for `Add`.
    For(Box<For>),
    /// Runs `body` repeatedly until a `Break`. `Yield` and `Continue` pass values to the next
    /// iteration.
    Loop {
        /// The label that `Break` and `Continue` name.
        label: Label,
        /// First values of the body's parameters.
        inits: Values,
        /// The parameters of the body are the carried values. Results of the loop come from
        /// `Break`.
        body: Region,
    },
    /// Runs `body` once. `Yield` at its end and `Break` inside give the results.
    #[allow(missing_docs)]
    Block { label: Label, body: Region },
    /// Terminator: the results of an `If` or `Block`, or the carried values of a loop's next
    /// iteration. A `Yield` without values also ends the kernel's body.
    Yield(Values),
    /// Terminator: leaves the construct with these results.
    Break(Label, Values),
    /// Terminator: continues with the loop's next iteration, with these carried values.
    Continue(Label, Values),
    /// Terminator: ends the thread.
    Return,
}

/// A counted loop.
#[derive(Clone, PartialEq, Debug)]
pub struct For {
    /// The label that `Break` and `Continue` name.
    pub label: Label,
    /// First index, whose integer type is also that of `end` and `step`.
    pub start: Value,
    /// Exclusive upper bound of the index.
    pub end: Value,
    /// Step of the index, > 0.
    pub step: Value,
    /// How the kernel requests unrolling.
    pub unroll: Unroll,
    /// First values of the carried parameters.
    pub inits: Values,
    /// The parameters are the index and the carried values, which `Yield` and `Continue` pass on.
    /// The results of the loop are the carried values after the last iteration, or those of
    /// `Break`.
    pub body: Region,
}

/// Whether a loop is to be unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroll {
    /// The compiler decides.
    Auto,
    /// `unroll(…)`: a copy for each iteration; start, end and step must be constant.
    Full,
    /// `rolled(…)`, or an already unrolled loop: neither passes nor ptxas unroll it
    /// (`.pragma "nounroll"`).
    Never,
}

/// A copy of consecutive scalars from global to shared memory. The source may be read at any time
/// until the thread waits for the copy's group. Until then, the destination is undefined. The race
/// checks treat the copy as two stores to the destination: at its start and at its completion.
#[derive(Clone, PartialEq, Debug)]
pub struct AsyncCopy {
    /// Location of the first scalar in shared memory, aligned to the bytes of all.
    pub to: AccessPlace,
    /// Location of the first scalar in global memory, aligned to the bytes of all.
    pub from: AccessPlace,
    /// Type of the scalars.
    pub element: Scalar,
    /// Number of scalars: 4, 8 or 16 bytes in total.
    pub count: u32,
    /// Lanes that copy. Masked lanes touch no memory.
    pub guard: Option<Value>,
    /// Lanes whose source is in bounds. Other lanes copy zeros. `None` means all lanes.
    pub inside: Option<Value>,
    /// Bytes that these lanes read, `usize`. Zeros are copied for the rest. `None` means all bytes.
    pub bytes: Option<Value>,
}

impl AsyncCopy {
    /// Returns the number of bytes that the copy writes.
    pub fn size(&self) -> u32 {
        self.count * self.element.bytes()
    }
}

/// The groups of copies that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitGroup {
    /// The group with this number, `usize`, and all earlier ones. The pass `async_group_numbering`
    /// replaces it by `AllBut`.
    UpTo(Value),
    /// All closed groups except the latest ones, of this number.
    AllBut(u32),
}

/// The condition of a guarded load.
#[derive(Clone, PartialEq, Debug)]
pub struct Guard {
    /// Lanes that load; `bool`.
    pub condition: Value,
    /// Values of the masked lanes, one for each result.
    pub otherwise: Values,
}

/// The cache operator of a load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CachePolicy {
    /// The launch never writes this memory: the read-only path (`ld.global.nc`).
    ReadOnly,
    /// Read-only memory with each part read once: caches evict it first (`ld.global.cs.nc`).
    ReadOnce,
    /// Memory that the launch may write, or shared memory.
    Coherent,
    /// Memory that the launch may write, with each part read once (`ld.global.cs`).
    CoherentOnce,
    /// Memory that is cached in L2 only (`ld.global.cg`).
    BypassL1,
}

/// A special register of PTX.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Special {
    /// Thread index in its block, by axis (0 = x).
    Thread(u8),
    /// Block index in the grid, by axis.
    Block(u8),
    /// Blocks of the grid, by axis.
    Grid(u8),
    /// Threads of a block, by axis.
    BlockDim(u8),
}

impl Special {
    /// Returns the axis of the register: 0 is x.
    pub fn axis(self) -> u8 {
        let (Special::Thread(axis) | Special::Block(axis) | Special::Grid(axis) | Special::BlockDim(axis)) = self;
        axis
    }
}

/// Operators of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Unary {
    /// Numbers; `MIN` wraps and is reported.
    Neg,
    /// Bitwise on integers, logical on `bool`.
    Not,
    /// Floats, and signed integers (`MIN` wraps and is reported).
    Abs,
    /// Correctly rounded; floats.
    Sqrt,
    /// To integral values; floats. Ties go to even in `RoundEven`.
    Floor,
    Ceil,
    Trunc,
    RoundEven,
    /// Integers of 32 and 64 bits; give `u32`.
    CountOnes,
    LeadingZeros,
    /// Integers of 32 and 64 bits.
    ReverseBits,
    SwapBytes,
}

/// Operators of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    /// Integers; no report on overflow.
    WrappingAdd,
    WrappingSub,
    WrappingMul,
    Min,
    Max,
    /// Bitwise on integers, logical on `bool` (both operands are evaluated).
    And,
    Or,
    Xor,
    /// Shift by a `u32`, taken modulo the width.
    Shl,
    /// Arithmetic on signed integers.
    Shr,
    /// Shifts that the oracle does not check for a distance of the width or more.
    WrappingShl,
    WrappingShr,
    /// Integers of 32 bits.
    RotateLeft,
}

impl Unary {
    /// Returns whether the operator exists on operands of this type.
    pub fn takes(self, operand: Scalar) -> bool {
        use Unary::*;
        match self {
            Neg => operand.is_float() || operand.is_integer(),
            Not => operand.is_integer() || operand == Scalar::Bool,
            Abs => operand.is_float() || operand.is_signed(),
            Sqrt | Floor | Ceil | Trunc | RoundEven => operand.is_float(),
            CountOnes | LeadingZeros | ReverseBits | SwapBytes => operand.is_integer() && operand.bits() >= 32,
        }
    }

    /// Returns the type of the result for operands of a type that the operator takes.
    pub fn result(self, operand: Scalar) -> Scalar {
        if matches!(self, Unary::CountOnes | Unary::LeadingZeros) { Scalar::U32 } else { operand }
    }
}

impl Binary {
    /// Returns whether the operator exists on a first operand of this type, which is also the type
    /// of the result.
    pub fn takes(self, operand: Scalar) -> bool {
        use Binary::*;
        match self {
            Add | Sub | Mul | Div | Rem | Min | Max => operand.is_integer() || operand.is_float(),
            And | Or | Xor => operand.is_integer() || operand == Scalar::Bool,
            RotateLeft => operand.is_integer() && operand.bits() == 32,
            WrappingAdd | WrappingSub | WrappingMul | Shl | Shr | WrappingShl | WrappingShr => operand.is_integer(),
        }
    }

    /// Returns whether the second operand is a distance, which is a `u32` for every type of the
    /// first.
    pub fn is_shift(self) -> bool {
        use Binary::*;
        matches!(self, Shl | Shr | WrappingShl | WrappingShr | RotateLeft)
    }

    /// Returns whether the operands commute. The result then has the same bits, except those of a
    /// NaN.
    pub fn commutes(self) -> bool {
        use Binary::*;
        matches!(self, Add | WrappingAdd | Mul | WrappingMul | Min | Max | And | Or | Xor)
    }
}

/// How an atomic operation computes the value that it writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Atomic {
    /// The sum; integers wrap.
    Add,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// The operand, whatever the element was.
    Exchange,
    /// The second operand if the element has the bits of the first, otherwise the element itself.
    CompareExchange,
    /// The element itself: nothing is written.
    Load,
    /// The operand, without a result.
    Store,
}

impl Atomic {
    /// Returns whether the operation exists on elements of this type. Where the machine lacks it,
    /// emission writes a loop ([`Atomic::loops`]).
    pub fn takes(self, element: Scalar) -> bool {
        let integer = element.is_integer() && element.bits() <= 64 && element != Scalar::Usize;
        match self {
            Atomic::Add | Atomic::Exchange | Atomic::Min | Atomic::Max => integer || element.is_float(),
            Atomic::Load | Atomic::Store => integer || element.is_float() || element.is_half(),
            _ => integer,
        }
    }

    /// Returns whether the operation is a loop of `atom.cas`: on elements of 8 and 16 bits, and the
    /// minimum and maximum of floats.
    pub fn loops(self, element: Scalar) -> bool {
        match self {
            Atomic::Load | Atomic::Store => false,
            Atomic::Min | Atomic::Max if element.is_float() => true,
            _ => element.bits() < 32,
        }
    }

    /// Returns the number of operands.
    pub fn operands(self) -> usize {
        match self {
            Atomic::CompareExchange => 2,
            Atomic::Load => 0,
            _ => 1,
        }
    }
}

/// Comparisons. `bool` has equality only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl Comparison {
    /// Returns the comparison that holds where this one does not. Not valid for floats, which may
    /// be NaN.
    pub fn inverse(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Ne,
            Comparison::Ne => Comparison::Eq,
            Comparison::Lt => Comparison::Ge,
            Comparison::Le => Comparison::Gt,
            Comparison::Gt => Comparison::Le,
            Comparison::Ge => Comparison::Lt,
        }
    }

    /// Returns the comparison for swapped operands.
    pub fn mirrored(self) -> Comparison {
        match self {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            other => other,
        }
    }
}

/// How a shuffle finds its source lane within a segment of `width` lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Shuffle {
    /// Lane `selector` mod `width` of the segment.
    Index,
    /// Own lane XOR `selector`, with `selector` < `width`.
    Xor,
    /// Own lane − `selector`. Lanes without such a source keep their own value.
    Up,
    /// Own lane + `selector`. Lanes without such a source keep their own value.
    Down,
}

/// The threads that a fence orders accesses for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum FenceScope {
    /// Threads of the block.
    Block,
    /// Threads of the grid, and all other work of the device.
    Grid,
    /// Threads of the host and other devices too.
    System,
}

/// How a vote combines the lanes' values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Vote {
    /// Bit l is lane l's value.
    Ballot,
    /// Whether all lanes' values hold.
    All,
    /// Whether any lane's value holds.
    Any,
}

impl Kernel {
    /// Returns the type of `value`.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.0 as usize]
    }

    /// Adds a value of type `ty`, which an instruction must define.
    pub fn value(&mut self, ty: Type) -> Value {
        self.values.push(ty);
        Value(self.values.len() as u32 - 1)
    }

    /// Returns the shared memory that a launch must provide for a block.
    pub fn shared_memory(&self) -> SharedMemory {
        SharedMemory { fixed: self.shared_bytes(), dynamic: self.dynamic.clone() }
    }

    /// Returns the first byte of the arrays in shared memory whose size the launch evaluates.
    pub fn dynamic_offset(&self) -> u32 {
        self.shared_bytes().next_multiple_of(MAX_VECTOR_BYTES)
    }

    /// Returns the bytes of static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared.iter().map(|s| s.offset.saturating_add(s.bytes())).max().unwrap_or(0)
    }
}
