//! The intermediate representation: typed, in static single assignment form, with structured control flow.
//!
//! # How a kernel looks here
//!
//! A [`Kernel`] is one instance of a kernel for one target: no generics are left, every call is inlined, and every
//! aggregate (a tuple, a view, a handle to shared memory) has been taken apart into scalars. Its body is a [`Region`], a
//! list of [`Inst`]s. An instruction computes from [`Value`]s and defines the values in `results`; each value is defined
//! once, by an instruction or as a region's parameter, and has a [`Type`].
//!
//! Control flow is a tree. [`Op::If`], [`Op::For`], [`Op::Loop`] and [`Op::Block`] hold regions; each region ends with
//! exactly one terminator ([`Op::Yield`], [`Op::Break`], [`Op::Continue`], [`Op::Return`]) and has no other. So where
//! lanes part and where they meet again is plain to see: a warp runs a kernel in lockstep under a mask, each construct
//! narrowing the mask and restoring it at its end. A value may be used in the region that defines it, after its
//! definition, and in every region nested there.
//!
//! Values flow out of regions through results: `Yield` hands its values to the construct's results, `Break` hands them to
//! the results of the construct that it leaves, `Continue` hands them to the parameters of the loop's next iteration.
//!
//! # As lowered, and after passes
//!
//! Lowering writes what the program says: a `let mut` variable or a register array is a [`Local`], read and written
//! by [`Op::ReadLocal`] and [`Op::WriteLocal`], and an access to memory names the buffer, the indices and the extents
//! ([`Place`]), as the Rust does. The oracle runs this form, with every check. Passes then make what the machine likes:
//! locals become values, places become addresses, loops unroll. What a pass makes runs on the same interpreter and
//! must give the same bits.
//!
//! The *checked form* is IR as lowered too, with comparisons around its accesses and reports where they fail
//! ([`lower::checked`](crate::lower::checked)); it goes through the same passes.
//!
//! # Meaning
//!
//! Integers are two's complement. [`Binary::Add`], `Sub` and `Mul` wrap; on `usize`, wrapping is an error of the kernel that
//! the oracle reports, and that passes may assume absent; on the fixed-width types it is reported as Rust's debug builds
//! do, and wraps. `Wrapping…` never reports. `Div` and `Rem` truncate towards zero; a zero divisor (and `MIN / −1`) is
//! reported and gives an unspecified value. Shift amounts are `u32`, masked to the width. Floats are IEEE 754, rounded to nearest even, subnormals kept;
//! `Min` and `Max` of floats return the operand that is not a NaN, and order −0 below +0. The payload and sign of a NaN
//! that arithmetic makes are unspecified. [`Op::Approximate`] is what the hardware gives, within the bound of its
//! [`Approximation`]; the interpreters give its stand-in. Comparisons are Rust's: everything is false of a NaN but `!=`.
//! [`Op::Cast`] is Rust's `as`.
//!
//! Floats of 16 bits are for keeping: they are loaded and stored, held in locals, selected, and bitcast to and from
//! `u16`. Arithmetic and comparisons lowering writes out: in `f32`, then rounded to nearest even. Of conversions there
//! are casts `f16` to `f32`, exact, and back, rounding once, where any NaN becomes the code 0x7FFF; those of `bf16` lowering writes
//! out in integers, with the same NaN.

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
pub use block::{Block, Open};
pub use formula::{Formula, NoFormula};
pub use memory::{
    Dim, DynamicArray, Element, Layout, Place, SHARED_LIMIT, SharedArray, SharedMemory, Step, Swizzle, Within,
};
pub use operation::{OpClass, OpKey};
pub use parse::Fault;
pub use table::{CONSTANT_LIMIT, Placement, Table};

use crate::approximation::Approximation;
use crate::oracle::Declared;
use crate::ptx::Inline;
use crate::scalar::Scalar;
use crate::source::{Source, Span};
use crate::target::Target;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes that one access of the machine moves at most.
pub const WIDEST: u32 = 16;

/// Instructions of a kernel that unrolling may make at most, unless the kernel says otherwise. Beyond, the assembler takes
/// seconds and the instruction cache misses.
pub const MAX_UNROLLED_INSTRUCTIONS: usize = 1 << 18;

/// One instance of a kernel, for one target.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Entry name in PTX, such as `matmul_16`.
    pub name: String,
    /// The instance as Rust names it, such as `matmul::<16>`.
    pub instance: String,
    /// What it is compiled for.
    pub target: Target,
    /// Threads of a block in x, y, z.
    pub block: Block,
    /// Blocks that a multiprocessor should hold at once (`.minnctapersm`), where the kernel asks.
    pub min_blocks: Option<u32>,
    /// Registers a thread at most (`.maxnreg`), where the kernel asks.
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
    /// Arrays that are known now and read by an index of run time.
    pub tables: Vec<Table>,
    /// The functions whose lines appear in `locations`; the kernel's own is the first.
    pub sources: Vec<Source>,
    /// What an instruction's [`Location`] names.
    pub locations: Vec<SourceLocation>,
    /// What the oracle is told beside the code.
    pub declared: Declared,
    /// Instructions that unrolling may make of it at most.
    pub unrolled: usize,
    /// What a thread does.
    pub body: Region,
}

/// A value: the result of one instruction, or a parameter of a region. Index into [`Kernel::values`].
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

/// What a construct is called by the `Break` and `Continue` inside it; unique in a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// Operands and results are few.
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
    /// A 32-bit byte offset in the block's shared memory. Lowering makes it by `Op::Dynamic` and `Op::Offset`, passes from an
    /// `Op::Constant` too.
    Shared,
}

impl Type {
    /// The scalar, if it is one.
    pub fn scalar(self) -> Option<Scalar> {
        match self {
            Type::Scalar(s) => Some(s),
            _ => None,
        }
    }
}

/// A parameter of the PTX entry. A slice argument gives two (address, length), a view of rank R gives 2R (address, R
/// extents, R − 1 strides), or one more where its last stride is not 1, a scalar one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Name in PTX, unique: `x`, `x_len`, `a_dim0`, `a_stride0`.
    pub name: String,
    /// Index of the argument in Rust that it is part of.
    pub argument: u32,
    /// Which part.
    pub role: Role,
}

/// What a parameter of the entry carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// A scalar argument.
    Value(Scalar),
    /// The address of a slice's or view's first element.
    Address {
        /// What it is an array of.
        element: Element,
        /// Whether the kernel may write there.
        mutable: bool,
    },
    /// Elements of a slice, or of a view in dimension `.0`; `usize`.
    Extent(u32),
    /// Elements from one index to the next in dimension `.0` of a view (the last dimension's is 1 if it has none); `usize`.
    Stride(u32),
}

impl Parameter {
    /// The type of the value that `Op::Parameter` gives.
    pub fn ty(&self) -> Type {
        match self.role {
            Role::Value(s) => Type::Scalar(s),
            Role::Address { .. } => Type::Global,
            Role::Extent(_) | Role::Stride(_) => Type::Scalar(Scalar::Usize),
        }
    }
}

/// A mutable variable, or an array of them, of each thread. Contents are undefined until written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Local {
    /// Name in Rust, for reading; not unique.
    pub name: String,
    /// Element type: a scalar, or an address in global memory.
    pub element: Type,
    /// Number of elements; 1 for a plain variable. Arrays of arrays are flattened, row-major.
    pub len: u32,
}

/// A place in the source of one of the functions that a kernel is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SourceLocation {
    /// Index into [`Kernel::sources`].
    pub source: u32,
    /// Where in it.
    pub span: Span,
    /// The call that inlined this function here, if it is not the kernel's own code.
    pub caller: Option<Location>,
}

/// A sequence of instructions with parameters, ended by a terminator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Region {
    /// Values that the construct defines anew each time that it enters the region: for `For`, the index and then the
    /// carried values; for `Loop`, the carried values; otherwise none.
    pub parameters: Values,
    /// Instructions; the last is the terminator.
    pub insts: Vec<Inst>,
}

impl Region {
    /// What it hands on at its end; `None` where control goes elsewhere from there.
    pub fn yielded(&self) -> Option<&Values> {
        match &self.insts.last()?.op {
            Op::Yield(values) => Some(values),
            _ => None,
        }
    }
}

/// An instruction, where it comes from, and the values that it defines.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// What it does.
    pub op: Op,
    /// What it defines.
    pub results: Values,
    /// The Rust that it was made from.
    pub location: Location,
}

/// What an instruction does.
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// The constant whose bits are given, zero-extended to 64; its type is the result's.
    Constant(u64),
    /// A parameter of the entry, by its index.
    Parameter(u32),
    /// A special register; `usize`.
    Special(Special),
    /// One operand, same type out (but for the counting ones, which give `u32`).
    Unary(Unary, Value),
    /// Two operands of one type, same type out; for shifts the second is `u32`.
    Binary(Binary, Value, Value),
    /// a · b + c with one rounding; floats.
    MulAdd(Value, Value, Value),
    /// What the hardware approximates; `f32`. Its bits are nobody's promise: no pass computes it.
    Approximate(Approximation, Value),
    /// What one instruction does with integers, beyond the operators; [`Bits::result`] is its types.
    Bits(Bits, SmallVec<[Value; 4]>),
    /// Two operands of one type; `bool` out.
    Compare(Comparison, Value, Value),
    /// `yes` where `condition` holds, `no` elsewhere; both are evaluated.
    #[allow(missing_docs)]
    Select { condition: Value, yes: Value, no: Value },
    /// Rust's `as` from the operand's type to the result's. Floats to integers saturate, a NaN gives 0.
    Cast(Value),
    /// The same bits as another type of the same width.
    Bitcast(Value),
    /// The address of the element that `indices` and `strides` name, from `base`; nothing is checked but the overflow
    /// of the products. This is how a view moves. The result has the type of `base`: a global address moves in 64 bits
    /// (each term zero-extended before it is scaled to bytes), an offset in shared memory in 32.
    Offset {
        /// Address of the view's first element.
        base: Value,
        /// Index and stride of each dimension, in elements; `None` is a stride of 1.
        terms: SmallVec<[(Value, Option<Value>); 2]>,
        /// Bytes of an element.
        bytes: u32,
    },
    /// The address of a table's first byte. Lowering makes it a global one; pass `tables` says where the table lies.
    Table(TableId),
    /// The address of an array in shared memory whose extents (`usize`, outermost first) the launch evaluates: they are
    /// computed from parameters and constants alone. Such arrays lie one after the other behind those of
    /// [`Kernel::shared`], each at a multiple of 16 bytes, in the order of [`Kernel::dynamic`].
    #[allow(missing_docs)]
    Dynamic { array: DynamicId, extents: SmallVec<[Value; 2]> },
    /// Reads one scalar into each of `results`, which are consecutive. The first is aligned to the bytes of all, or to
    /// [`WIDEST`] where they are more: that much goes in one access of the machine.
    Load {
        /// From where.
        place: Place,
        /// Type in memory, and of the results.
        element: Scalar,
        /// How the memory may be cached.
        policy: Policy,
        /// Lanes that load; the others get `Guard::otherwise` and touch nothing.
        guard: Option<Guard>,
    },
    /// Writes consecutive scalars, aligned as those of a load.
    Store {
        /// To where.
        place: Place,
        /// Their type.
        element: Scalar,
        /// One value a scalar.
        values: Values,
        /// Lanes that store; the others touch nothing.
        guard: Option<Value>,
    },
    /// Leaves consecutive scalars in shared memory undefined until they are stored: what is to come is on its way. To
    /// races it is a store; on the machine it is nothing.
    MarkUndef {
        /// Which.
        place: Place,
        /// Their type.
        element: Scalar,
        /// How many.
        count: u32,
        /// Lanes that do; the others touch nothing.
        guard: Option<Value>,
    },
    /// Begins to copy from global to shared memory, past the registers (`cp.async`): part of the thread's open group.
    CopyAsync(Box<AsyncCopy>),
    /// Closes the thread's open group of copies, empty or not, and opens the next (`cp.async.commit_group`). The result is the number
    /// of the closed one, `usize`, counted from 0.
    CopyCommit,
    /// Waits for copies of the thread (`cp.async.wait_group`): what they bring is there for the thread itself, and after a
    /// barrier for others.
    CopyWait(WaitGroup),
    /// The array's lifetime begins: its bytes were another array's, or its own of another time, and are undefined until they
    /// are stored. All threads of the block come here, or none. On the machine it is nothing.
    LifetimeStart(SharedId),
    /// The value that a variable of the kernel is given, a scalar. On the machine it is nothing; only the IR that is lowered to
    /// be traced has it ([`lower_named`](crate::lower::lower_named)).
    #[allow(missing_docs)]
    DbgValue { name: Box<str>, value: Value },
    /// Reads an element, writes what `operation` makes of it, and gives what was there before, if there is a result: in
    /// one step, between which no other atomic operation on the element comes. It orders no other access of the thread
    /// (relaxed). In `f32`, `Add` on global memory takes subnormal operands and sums for zeros of their sign, as
    /// the hardware does; on shared memory it does not.
    Atomic {
        /// How the new value comes about.
        operation: Atomic,
        /// Where the element is.
        place: Place,
        /// Element type; [`Atomic::takes`] it.
        element: Scalar,
        /// The operand; for `CompareExchange` the expected value and then the new one.
        values: Values,
    },
    /// An element of a local, at `index` (`usize`; `None` is 0).
    #[allow(missing_docs)]
    ReadLocal { local: LocalId, index: Option<Value> },
    /// Sets an element of a local.
    #[allow(missing_docs)]
    WriteLocal { local: LocalId, index: Option<Value>, value: Value },
    /// All threads of the block wait for one another; memory is ordered among them (`bar.sync 0`).
    BlockSync,
    /// All lanes of the warp wait for one another; memory is ordered among them (`bar.warp.sync`).
    WarpSync,
    /// Orders the thread's accesses to memory: what it did before is seen by the threads of `scope` that see anything of
    /// what it does after (a release), and what it does after sees all of that which another thread's fence has
    /// released by a value that it read before (an acquire). Which value was read and written must be by atomic
    /// operations, which order nothing themselves. No access moves across it but those of read-only memory.
    Fence(Scope),
    /// Instructions of PTX that the kernel wrote itself: from `inputs`, those operands that come in, to the results, those
    /// that come out. It means what the PTX means.
    #[allow(missing_docs)]
    Inline { code: Arc<Inline>, inputs: Values },
    /// Lane `selector` (by `mode`) of `value`, for all 32 lanes, which must be here together. 32-bit or 64-bit scalars.
    Shuffle {
        /// How the source lane is found.
        mode: Shuffle,
        /// What is handed over.
        value: Value,
        /// Lane, distance or mask; `u32`.
        selector: Value,
        /// Lanes of a segment: 2, 4, 8, 16 or 32. Lanes trade within their segment.
        width: u32,
    },
    /// One truth value of each lane to all lanes of the warp, which must be here together.
    /// `Ballot` gives `u32`, the others `bool`.
    #[allow(missing_docs)]
    Vote { mode: Vote, value: Value },
    /// The lanes of the warp, as bits of a `u32`, whose value has the bits of this lane's. All 32 must be here together.
    /// 32-bit or 64-bit scalars; from sm_70.
    Match(Value),
    /// The sum (`Add`), `Min` or `Max` of all 32 lanes' values, for all of them, which must be here together. Integers of 32
    /// bits; a sum wraps, which is reported where the exact one does not fit. From sm_80.
    Reduce(Binary, Value),
    /// Tells the launch's record what a lane found wrong. The first lane to come, of all threads, writes it; later ones
    /// change nothing. Only the checked form has it ([`lower::checked`](crate::lower::checked)).
    RecordViolation {
        /// The address of the [`record`].
        record: Value,
        /// Where, and what `values` mean: a number that the form's table explains.
        site: u32,
        /// `usize` values, at most [`record::MAX_VALUES`].
        values: Values,
    },
    /// Runs `then` in the lanes where `condition` holds and `otherwise` in the others; results come from their `Yield`s.
    #[allow(missing_docs)]
    If { condition: Value, then: Region, otherwise: Region },
    /// Runs `body` for index = start, start + step, … while index < end; `step` > 0.
    /// That index + step does not exceed the type is the kernel's duty (an overflow as in `Add`).
    For(Box<For>),
    /// Runs `body` again and again until a `Break`. `Yield` and `Continue` carry values to the next iteration.
    Loop {
        /// What `Break` and `Continue` name.
        label: Label,
        /// First values of the body's parameters.
        inits: Values,
        /// Its parameters are the carried values. Results of the loop come from `Break`.
        body: Region,
    },
    /// Runs `body` once; `Yield` at its end and `Break` from within give the results.
    #[allow(missing_docs)]
    Block { label: Label, body: Region },
    /// Terminator: the values of an `If`'s or `Block`'s results, or of a loop's next iteration. Ends the kernel's body too, empty.
    Yield(Values),
    /// Terminator: leaves the construct with these results.
    Break(Label, Values),
    /// Terminator: on to the loop's next iteration with these carried values.
    Continue(Label, Values),
    /// Terminator: the thread has ended.
    Return,
}

/// A counted loop.
#[derive(Clone, PartialEq, Debug)]
pub struct For {
    /// What `Break` and `Continue` name.
    pub label: Label,
    /// First index; an integer type, that of `end` and `step` too.
    pub start: Value,
    /// Index that is not reached.
    pub end: Value,
    /// Distance, > 0.
    pub step: Value,
    /// What the kernel asks.
    pub unroll: Unroll,
    /// First values of the carried parameters.
    pub inits: Values,
    /// Its parameters are the index and the carried values. `Yield` and `Continue` carry them on; the results of the loop are
    /// the carried values after the last iteration, or those of `Break`.
    pub body: Region,
}

/// Whether a loop is to be unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroll {
    /// As the compiler likes.
    Auto,
    /// `unroll(…)`: a copy for each iteration; start, end and step must be constant.
    Full,
    /// `rolled(…)`, or copies that are made already: never again, nor by ptxas (`.pragma "nounroll"`).
    Never,
}

/// Consecutive scalars on their way from global to shared memory. The source may be read at any time until the thread waits for
/// the copy's group; until then, what is at the destination is undefined. To races it is a store there when it begins, and
/// one when it has landed.
#[derive(Clone, PartialEq, Debug)]
pub struct AsyncCopy {
    /// Where the first goes, in shared memory; aligned to the bytes of all.
    pub to: Place,
    /// Where the first comes from, in global memory; aligned like that.
    pub from: Place,
    /// Their type.
    pub element: Scalar,
    /// How many: 4, 8 or 16 bytes in all.
    pub count: u32,
    /// Lanes that copy; the others touch nothing.
    pub guard: Option<Value>,
    /// Lanes that find the first at its source; to the others all are zero. `None` is all.
    pub inside: Option<Value>,
    /// Bytes that those read, `usize`; zero is copied for the rest. `None` is all.
    pub bytes: Option<Value>,
}

impl AsyncCopy {
    /// Bytes that are written.
    pub fn size(&self) -> u32 {
        self.count * self.element.bytes()
    }
}

/// Which copies a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitGroup {
    /// Those of the group with this number, `usize`, and of all before. A pass finds how many groups there are after it.
    UpTo(Value),
    /// Those of all closed groups but so many, the last.
    AllBut(u32),
}

/// The condition of a guarded load.
#[derive(Clone, PartialEq, Debug)]
pub struct Guard {
    /// Lanes that load; `bool`.
    pub condition: Value,
    /// What the others get, one value a result.
    pub otherwise: Values,
}

/// How a load may be served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Policy {
    /// Nobody writes this memory during the launch: the read-only path (`ld.global.nc`).
    ReadOnly,
    /// The same, and each part of it is read once: the caches are to drop it first (`ld.global.cs.nc`).
    ReadOnce,
    /// Memory that the launch may write, or shared memory.
    Coherent,
    /// The same, and each part of it is read once (`ld.global.cs`).
    CoherentOnce,
    /// By way of the second cache alone (`ld.global.cg`).
    SecondCache,
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
    /// The axis that it is of: 0 is x.
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
    /// By a `u32`, which counts modulo the width.
    Shl,
    /// Arithmetic on signed integers.
    Shr,
    /// No report where the distance is the width or more.
    WrappingShl,
    WrappingShr,
    /// Integers of 32 bits: what leaves on the left comes back on the right.
    RotateLeft,
}

impl Binary {
    /// Whether its second operand is a distance, a `u32` whatever the first is.
    pub fn is_shift(self) -> bool {
        use Binary::*;
        matches!(self, Shl | Shr | WrappingShl | WrappingShr | RotateLeft)
    }

    /// Whether its operands can change places: the result has the same bits, but for those of a NaN.
    pub fn commutes(self) -> bool {
        use Binary::*;
        matches!(self, Add | WrappingAdd | Mul | WrappingMul | Min | Max | And | Or | Xor)
    }
}

/// What an atomic operation writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Atomic {
    /// The sum; integers wrap.
    Add,
    /// The lesser of the two.
    Min,
    /// The greater of the two.
    Max,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// The operand.
    Exchange,
    /// The second operand where the element has the bits of the first, and else the element itself.
    CompareExchange,
}

impl Atomic {
    /// Whether sm_61 has the operation on elements of this type.
    pub fn takes(self, element: Scalar) -> bool {
        let integer = matches!(element, Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64);
        match self {
            Atomic::Add | Atomic::Exchange => integer || element.is_float(),
            _ => integer,
        }
    }

    /// Values that it takes.
    pub fn operands(self) -> usize {
        if self == Atomic::CompareExchange { 2 } else { 1 }
    }
}

/// Comparisons; on `bool` only equality.
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
    /// The comparison that holds where this one does not; not of floats, which may be NaN.
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

    /// The comparison with its operands swapped.
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
    /// Own lane XOR `selector`; `selector` < `width`.
    Xor,
    /// Own lane − `selector`; lanes that have none there keep their own value.
    Up,
    /// Own lane + `selector`; lanes that have none there keep their own value.
    Down,
}

/// The threads that a fence is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Scope {
    /// Those of the block.
    Block,
    /// Those of the grid, and of all else that the device runs.
    Grid,
    /// Those of the host and of other devices too.
    System,
}

/// What a vote tells.
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
    /// The type of `value`.
    pub fn ty(&self, value: Value) -> Type {
        self.values[value.0 as usize]
    }

    /// A new value of type `ty`; an instruction is to define it.
    pub fn value(&mut self, ty: Type) -> Value {
        self.values.push(ty);
        Value(self.values.len() as u32 - 1)
    }

    /// What a launch must know of the block's shared memory.
    pub fn shared_memory(&self) -> SharedMemory {
        SharedMemory { fixed: self.shared_bytes(), dynamic: self.dynamic.clone() }
    }

    /// Where in the block's shared memory arrays begin whose size the launch evaluates.
    pub fn dynamic_offset(&self) -> u32 {
        self.shared_bytes().next_multiple_of(WIDEST)
    }

    /// Bytes of static shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared.iter().map(|s| s.offset.saturating_add(s.bytes())).max().unwrap_or(0)
    }
}
