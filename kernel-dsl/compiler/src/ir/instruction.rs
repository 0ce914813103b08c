//! Instructions: operations, and their operands that are not values.

use super::{
    AccessPlace, AtomicOperator, Binary, Bits, Comparison, DynamicId, FenceScope, For, Label, LocalId, Location,
    Region, SharedId, Shuffle, TableId, Unary, Value, Values, Vote,
};
use crate::approximation::Approximation;
use crate::assertion::FailureEffect;
use crate::ptx::InlineBlock;
use crate::scalar::Scalar;
use smallvec::SmallVec;
use std::sync::Arc;

/// Maximum number of values that [`Op::Log`] prints after the block and the thread. CUDA's `printf`
/// takes 32 in total.
pub const MAX_LOG_VALUES: usize = 26;

/// An instruction, its source location, and the values that it defines.
#[derive(Clone, PartialEq, Debug)]
pub struct Inst {
    /// The operation.
    pub op: Op,
    /// The values that the instruction defines.
    pub results: Values,
    /// The Rust source from which lowering made the instruction.
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
    /// Bits of a value, read as another type of the same width.
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
    /// those of [`Kernel::shared`](super::Kernel::shared), each aligned to 16 bytes. The arrays
    /// have the order of [`Kernel::dynamic`](super::Kernel::dynamic).
    #[allow(missing_docs)]
    Dynamic { array: DynamicId, extents: SmallVec<[Value; 2]> },
    /// Reads consecutive scalars, one into each of `results`. The first is aligned to the bytes of
    /// all of them, at most to [`MAX_VECTOR_BYTES`](super::MAX_VECTOR_BYTES), which is the widest
    /// access of the machine.
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
    /// Waits for copies of the thread (`cp.async.wait_group`). Afterwards the thread observes the
    /// copied bytes. Other threads observe these bytes after a barrier.
    CopyWait(WaitGroup),
    /// Starts the lifetime of the array. The array's bytes were used by another array, or by an
    /// earlier lifetime, and are undefined until they are stored. The operation emits no code, and
    /// all threads of the block execute it, or none.
    LifetimeStart(SharedId),
    /// The scalar value of a variable of the kernel from here on. The operation emits no code,
    /// and only IR lowered for tracing has it ([`lower_named`](crate::lower::lower_named)).
    #[allow(missing_docs)]
    DbgValue { name: Box<str>, value: Value },
    /// Reads an element, writes the result of `operation`, and returns the previous value, if there
    /// is a result. `Load` does not write, and `Store` has no result. Any other atomic operation on
    /// the element happens entirely before or after this one. The operation is relaxed: it orders
    /// no other access. In `f32`, `Add` on global memory flushes subnormal operands and sums to
    /// zero, as the hardware does. On shared memory it does not.
    Atomic {
        /// How the new value is computed.
        operation: AtomicOperator,
        /// The location of the element.
        place: AccessPlace,
        /// Element type, which [`AtomicOperator::takes`].
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
    Inline { code: Arc<InlineBlock>, inputs: Values },
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
    /// are scalars. [`Op::Return`] follows. `outcome` is the effect in the unchecked form.
    #[allow(missing_docs)]
    Panic { outcome: FailureEffect, message: Box<str>, values: Values },
    /// Prints a line by C's `printf`. The conversions of `format` are `%s` for a `bool`, as `true`
    /// or `false`, and those of `i32`, `u32`, `i64`, `u64` and `f64`. At most [`MAX_LOG_VALUES`]
    /// values follow the block and the thread.
    #[allow(missing_docs)]
    Log { format: Box<str>, values: Values },
    /// Records a failed check in the launch's record. The first thread of the launch that fails a
    /// check writes the record; later failures leave the record unchanged. Only the checked form
    /// has this operation ([`lower::checked`](crate::lower::checked)).
    RecordViolation {
        /// The address of the [`record`](super::record).
        record: Value,
        /// A `u32`: 1 plus the number of the check, which is an index into
        /// [`CheckedKernel::sites`](crate::lower::checked::CheckedKernel::sites). The site has the
        /// location, and the number and meaning of its values.
        state: Value,
        /// `usize` values, at most [`record::MAX_VALUES`](super::record::MAX_VALUES). There may be
        /// more of them than the check has.
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
    /// All closed groups except the last n, where n is this number.
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
