//! The interpreter's instructions: IR in a flat, dense form.
//!
//! Values are rows of the frame; control flow consists of jumps and masks. Each construct of the IR
//! has a [`MaskSlot`] of two masks, selected by its nesting depth. Lanes that leave a region early
//! wait in the slot until the end of the construct. An instruction that leaves no lane active jumps
//! to the end of its region. The index of an instruction is its *site*, which identifies it in
//! reports and shadow memory.

pub mod bits;
pub mod cast;
pub mod division;
pub mod frame;
pub mod fuse;
pub mod lanes;
pub mod operands;
pub mod origin;
pub mod uniform;

use self::frame::FrameRegister;
use kernel_dsl_compiler::ir::{
    self, Binary, Bits, Comparison, FenceScope, Location, Shuffle, Special, Swizzle, Unary, Vote,
};
use kernel_dsl_compiler::{Approximation, Scalar};
use runtime_ptx::inline::Inline as PtxBlock;
use runtime_ptx::registers::RegisterPlace as Home;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A row of the frame.
pub type RowIndex = u32;

/// Index of an instruction.
pub type Pc = u32;

/// Words of shared memory of a block: more than any target has, and a power of two, so that a
/// 16-bit index is always in bounds.
pub const SHARED_WORDS: usize = 1 << 16;

/// The index of a construct's masks: its nesting depth.
pub type SlotIndex = u32;

/// The masks of an open construct.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MaskSlot {
    /// Lanes that continue with the next part: an `If`'s `otherwise`, a loop's next iteration.
    pub pending: u32,
    /// Lanes that wait at the construct's end.
    pub done: u32,
}

/// An instruction. Fields named `to` are results. Registers are given by row where the type
/// determines the width.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Inst {
    Unary {
        op: Unary,
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
    },
    /// `Unary` with a report if the operand is `MIN`.
    CheckedUnary {
        op: Unary,
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
    },
    Binary {
        op: Binary,
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
        b: RowIndex,
    },
    /// `Binary` with a report on overflow or division by zero.
    CheckedBinary {
        op: Binary,
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
        b: RowIndex,
    },
    MulAdd {
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
        b: RowIndex,
        c: RowIndex,
    },
    Compare {
        op: Comparison,
        ty: Scalar,
        to: RowIndex,
        a: RowIndex,
        b: RowIndex,
    },
    Select {
        wide: bool,
        to: RowIndex,
        condition: RowIndex,
        yes: RowIndex,
        no: RowIndex,
    },
    Cast {
        from: Scalar,
        into: Scalar,
        to: RowIndex,
        a: RowIndex,
        /// Whether some operand values do not fit the result.
        lossy: bool,
    },
    /// A copy of a register in all lanes.
    Copy {
        to: FrameRegister,
        from: FrameRegister,
    },
    /// A copy of the bits to a register of another type.
    Bitcast {
        from: Scalar,
        into: Scalar,
        to: FrameRegister,
        a: FrameRegister,
    },
    /// A copy of a register in the active lanes.
    Move {
        to: FrameRegister,
        from: FrameRegister,
    },
    Approximate {
        what: Approximation,
        to: RowIndex,
        a: RowIndex,
    },
    /// Index into [`Code::operations`].
    Bits(u32),
    /// Index into [`Code::offsets`].
    Offset(u32),
    /// Index into [`Code::accesses`].
    Load(u32),
    /// Index into [`Code::accesses`].
    Store(u32),
    /// Index into [`Code::accesses`].
    MarkUndef(u32),
    /// Index into [`Code::copies`].
    CopyAsync(u32),
    CopyCommit {
        to: RowIndex,
    },
    CopyWait(WaitGroup),
    /// Starts the lifetime of a shared array; `number` identifies this instruction among all
    /// `LifetimeStart` instructions.
    LifetimeStart {
        array: u32,
        number: u32,
    },
    /// The offset of an array of dynamic size.
    Dynamic {
        array: u32,
        to: RowIndex,
    },
    /// Index into [`Code::atomics`].
    Atomic(u32),
    /// Reads element 0 of a local.
    ReadLocal {
        local: u32,
        to: FrameRegister,
    },
    WriteLocal {
        local: u32,
        from: FrameRegister,
    },
    /// Reads an element of a local by index.
    ReadElement {
        local: u32,
        index: RowIndex,
        to: FrameRegister,
    },
    WriteElement {
        local: u32,
        index: RowIndex,
        from: FrameRegister,
    },
    GridSync,
    BlockSync,
    WarpSync,
    Shuffle {
        mode: Shuffle,
        width: u8,
        to: FrameRegister,
        from: FrameRegister,
        selector: RowIndex,
    },
    Vote {
        mode: Vote,
        to: RowIndex,
        value: RowIndex,
    },
    Fence(FenceScope),
    Match {
        to: RowIndex,
        from: FrameRegister,
    },
    /// The type is `i32` or an unsigned type of 32 bits.
    Reduce {
        op: Binary,
        ty: Scalar,
        to: RowIndex,
        from: RowIndex,
    },
    /// Index into [`Code::reports`].
    RecordViolation(u32),
    /// Threads fail an assertion or panic.
    Panic(u32),
    /// Threads print a line.
    Log(u32),
    /// The name of a variable, without effect. Index into [`Code::names`].
    DbgValue(u32),
    /// Index into [`Code::inlines`].
    Inline(u32),
    /// Lanes whose condition is false wait for `otherwise`; if all do, jumps there.
    If {
        slot: SlotIndex,
        condition: RowIndex,
        otherwise: Pc,
    },
    /// Lanes that have run `then` wait; the others continue. If there are no others, jumps to
    /// `end`.
    Else {
        slot: SlotIndex,
        end: Pc,
    },
    /// Reactivates all lanes that wait.
    EndIf {
        slot: SlotIndex,
        exit: Pc,
    },
    /// Begins a block or a loop.
    Enter {
        slot: SlotIndex,
    },
    /// Begins a `For`, and reports a step that is not positive.
    EnterFor {
        ty: Scalar,
        slot: SlotIndex,
        step: RowIndex,
    },
    /// Lanes whose index has reached the limit wait; if all have, jumps to `end`.
    Test {
        ty: Scalar,
        slot: SlotIndex,
        index: RowIndex,
        limit: RowIndex,
        end: Pc,
    },
    /// Steps the index and tests it; jumps to `body` if a lane is left.
    Step {
        ty: Scalar,
        slot: SlotIndex,
        index: RowIndex,
        step: RowIndex,
        limit: RowIndex,
        body: Pc,
    },
    /// `Step` on 32 unsigned bits, with operands that are uniform across the active lanes.
    StepUniform {
        ty: Scalar,
        slot: SlotIndex,
        index: RowIndex,
        step: RowIndex,
        limit: RowIndex,
        body: Pc,
    },
    /// Jumps to `body` if a lane is left.
    Again {
        slot: SlotIndex,
        body: Pc,
    },
    /// Reactivates all lanes that wait at the end of a block or loop.
    Leave {
        slot: SlotIndex,
        exit: Pc,
    },
    Break {
        slot: SlotIndex,
    },
    Continue {
        slot: SlotIndex,
    },
    /// A fused sequence that begins here: index into [`Code::fused`].
    Fused(u32),
    /// Ends the active lanes.
    Return,
    /// The end of the kernel.
    Exit,
}

/// Address arithmetic: [`Op::Offset`](kernel_dsl_compiler::ir::Op::Offset).
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Offset {
    pub to: FrameRegister,
    pub base: FrameRegister,
    /// Index and stride; `None` is 1.
    pub terms: Box<[(RowIndex, Option<RowIndex>)]>,
    /// Bytes of an element.
    pub size: u32,
    /// Whether overflow of a product is an error.
    pub checked: bool,
}

/// A load or store.
#[derive(Clone, Debug)]
pub struct AccessOp {
    /// The element.
    pub place: AccessLocation,
    /// The location inside the element.
    pub within: OffsetInElement,
    /// Type of the scalars.
    pub element: Scalar,
    /// Number of scalars.
    pub count: u32,
    /// The registers that the scalars are loaded to or stored from.
    pub values: Box<[FrameRegister]>,
    /// The condition of the access, by lane; `None` is all lanes.
    pub guard: Option<RowIndex>,
    /// The result of a load in the other lanes.
    pub otherwise: Box<[FrameRegister]>,
    /// The classified indices of an access to one word of shared memory.
    pub split: Option<Split>,
    /// Whether the access reads or writes one word of a buffer whose address, extents and strides
    /// are uniform across the active lanes.
    pub flat: bool,
}

impl Code {
    /// Returns the atomic operation at an instruction.
    pub fn atomic(&self, site: Pc) -> Option<&AtomicAccess> {
        match self.insts.get(site as usize)? {
            Inst::Atomic(i) => self.atomics.get(*i as usize),
            _ => None,
        }
    }
}

impl AccessOp {
    /// Returns whether each lane accesses one word of an array of words, without a guard.
    pub fn is_word(&self) -> bool {
        let word = self.within.unit == 4 && self.element.bytes() == 4;
        word && self.values.len() == 1 && self.guard.is_none()
    }
}

/// The dimensions of an access to a shared array, divided into two kinds (`uniform`).
#[derive(Clone, Debug)]
pub struct Split {
    /// The array's first word.
    pub first: u32,
    /// Dimensions whose index never changes.
    pub fixed: Box<[SharedDim]>,
    /// Dimensions whose index is uniform across the active lanes.
    pub uniform: Box<[SharedDim]>,
    /// The index of the warp's [`Memo`](crate::machine::shared_fast_path::Memo) for the fixed
    /// dimensions.
    pub memo: u32,
}

/// A copy that bypasses the registers: [`Op::CopyAsync`](kernel_dsl_compiler::ir::Op::CopyAsync).
/// The accesses have no values.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct AsyncCopyAccess {
    pub to: AccessOp,
    pub from: AccessOp,
    pub guard: Option<RowIndex>,
    pub inside: Option<RowIndex>,
    pub bytes: Option<RowIndex>,
}

/// The copies that a thread waits for.
#[derive(Clone, Copy, Debug)]
pub enum WaitGroup {
    /// Copies up to the group of this number.
    UpTo(RowIndex),
    /// All copies except for the last groups of this number.
    AllBut(u32),
}

/// The start of an access inside an element: `offset` + Σ index · stride bytes.
#[derive(Clone, Debug)]
pub struct OffsetInElement {
    /// Bytes of an element.
    pub unit: u32,
    /// The constant part.
    pub offset: u32,
    /// Arrays in the element; strides are in bytes.
    pub steps: Box<[SharedDim]>,
    /// Elements that the access spans.
    pub reach: u32,
}

/// An atomic operation.
#[derive(Clone, Debug)]
pub struct AtomicAccess {
    /// The element, and the last operand of `operation`, if it has one.
    pub access: AccessOp,
    /// The operation that computes the new value.
    pub operation: ir::AtomicOperator,
    /// The expected value of a `CompareExchange`.
    pub expected: Option<FrameRegister>,
    /// The previous value of the element.
    pub to: Option<FrameRegister>,
}

/// A failed assertion or a panic.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Panic {
    pub message: Box<str>,
    pub values: Box<[(FrameRegister, Scalar)]>,
}

/// A line of a `log!`: a format of C's `printf` with its values.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Log {
    pub format: Box<str>,
    pub values: Box<[(FrameRegister, Scalar)]>,
}

/// A report of the checked form to its record:
/// [`Op::RecordViolation`](kernel_dsl_compiler::ir::Op::RecordViolation).
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct ViolationReport {
    /// Address of the record.
    pub record: RowIndex,
    /// 1 plus the number of the check.
    pub state: RowIndex,
    pub values: Box<[RowIndex]>,
}

/// The location that an access names.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum AccessLocation {
    Global {
        base: RowIndex,
        dims: Box<[Dim]>,
        origin: Origin,
    },
    /// An element of a shared array at byte `offset` of shared memory.
    Shared {
        array: u32,
        offset: u32,
        dims: Box<[SharedDim]>,
        swizzle: Option<Swizzle>,
    },
    /// Shared memory of dynamic size.
    Dynamic {
        array: Option<u32>,
        base: RowIndex,
        dims: Box<[Dim]>,
    },
    /// Address in global memory.
    Address {
        base: RowIndex,
        offset: i32,
        origin: Origin,
    },
    /// Byte offset in shared memory.
    SharedAddress {
        base: RowIndex,
        offset: i32,
    },
}

impl AccessLocation {
    /// Returns whether the location is in shared memory.
    pub fn is_shared(&self) -> bool {
        matches!(
            self,
            AccessLocation::Shared { .. } | AccessLocation::Dynamic { .. } | AccessLocation::SharedAddress { .. }
        )
    }
}

/// A dimension of an access to a buffer.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Dim {
    pub index: RowIndex,
    pub extent: RowIndex,
    pub stride: Option<RowIndex>,
}

/// A dimension of an access to a shared array.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct SharedDim {
    pub index: RowIndex,
    pub extent: u32,
    pub stride: u32,
}

/// The argument that an address was computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// No argument.
    None,
    /// The argument, by its index in Rust.
    Argument(u32),
    /// Several arguments, depending on the path; the address itself decides.
    Several,
}

impl Origin {
    /// Returns the origin of an address that may have either origin.
    pub fn join(self, other: Origin) -> Origin {
        match (self, other) {
            (Origin::None, o) | (o, Origin::None) => o,
            (a, b) if a == b => a,
            _ => Origin::Several,
        }
    }
}

/// A local, in the frame.
#[derive(Clone, Debug)]
pub struct Local {
    /// Name in Rust.
    pub name: String,
    /// The first element; the others follow.
    pub first: FrameRegister,
    /// Type of an element; `None` if it is an address.
    pub ty: Option<Scalar>,
    /// Number of elements.
    pub len: u32,
    /// Index of its first element among all elements of locals.
    pub element: u32,
}

/// A decoded kernel.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// The instructions.
    pub insts: Vec<Inst>,
    /// The instructions with each fused sequence at the index of its first instruction; for runs
    /// without an observer.
    pub quick: Vec<Inst>,
    /// The operands of `Inst::Fused`.
    pub fused: Vec<Fused>,
    /// The location of each instruction.
    pub locations: Vec<Location>,
    /// The operands of `Inst::Offset`.
    pub offsets: Vec<Offset>,
    pub operations: Vec<BitsOperation>,
    /// The operands of `Inst::Load` and `Inst::Store`.
    pub accesses: Vec<AccessOp>,
    /// The operands of `Inst::CopyAsync`.
    pub copies: Vec<AsyncCopyAccess>,
    /// The operands of `Inst::Atomic`.
    pub atomics: Vec<AtomicAccess>,
    /// The operands of `Inst::Panic`.
    pub panics: Vec<Panic>,
    /// The operands of `Inst::Log`.
    pub logs: Vec<Log>,
    /// The operands of `Inst::RecordViolation`.
    pub reports: Vec<ViolationReport>,
    /// The operands of `Inst::Inline`.
    pub inlines: Vec<Inline>,
    /// The mutable variables.
    pub locals: Vec<Local>,
    /// The operands of `Inst::DbgValue`: names of variables that do not change.
    pub names: Vec<(String, FrameRegister, Scalar)>,
    /// The results of instructions that exchange values between lanes of a warp.
    pub exchanges: BTreeMap<Pc, (FrameRegister, Scalar)>,
    /// The constant registers and their bits.
    pub constants: Vec<(FrameRegister, u64)>,
    /// The rows of constants that are a NaN or an infinity, with their types.
    pub written: HashMap<RowIndex, Scalar>,
    /// The registers that hold a parameter of the entry, by its index.
    pub parameters: Vec<(FrameRegister, u32)>,
    /// The registers that hold a special register.
    pub specials: Vec<(RowIndex, Special)>,
    /// The number of rows of a frame.
    pub rows: u32,
    /// The number of elements of all locals.
    pub elements: u32,
    /// The maximum nesting depth of constructs.
    pub slots: u32,
    /// The number of `LifetimeStart` instructions.
    pub begins: u32,
    /// The number of memos of fixed indices in a warp.
    pub memos: u32,
    /// By shared array, the array that determines the lifetime of its bytes: itself, or the array
    /// that it aliases.
    pub lifetimes: Vec<u32>,
}

impl Local {
    /// Returns the type of an element's bits.
    pub fn scalar(&self) -> Scalar {
        self.ty.unwrap_or(if self.first.wide { Scalar::U64 } else { Scalar::U32 })
    }

    /// Returns the register of element `index`, unless it is out of bounds.
    pub fn get(&self, index: u32) -> Option<FrameRegister> {
        (index < self.len).then(|| self.at(index))
    }

    /// Returns the register of element `index`.
    pub fn at(&self, index: u32) -> FrameRegister {
        let rows = if self.first.wide { 2 } else { 1 };
        FrameRegister { row: self.first.row + rows * index, wide: self.first.wide }
    }
}

/// An integer instruction of the `Bits` family.
#[derive(Clone, Debug)]
pub struct BitsOperation {
    pub what: Bits,
    pub types: Box<[Scalar]>,
    pub operands: Box<[FrameRegister]>,
    pub to: FrameRegister,
}

/// A block of inline PTX in a kernel.
#[derive(Clone, Debug)]
pub struct Inline {
    /// The instructions.
    pub block: Arc<PtxBlock>,
    /// The inputs: their types, the kernel's registers and those of the block.
    pub inputs: Box<[(Scalar, FrameRegister, Home)]>,
    /// The results: their types, the kernel's registers and those of the block.
    pub results: Box<[(Scalar, FrameRegister, Home)]>,
    /// Whether an operation without a defined result is an error.
    pub checked: bool,
    /// Whether the block reads values that depend on the machine rather than the launch.
    pub reads_machine: bool,
}

/// A sequence of loads and reads of operands, one arithmetic operation on `f32`s, and an optional
/// write of the result to a variable.
#[derive(Clone, Debug)]
pub struct Fused {
    /// The number of instructions in the sequence.
    pub length: u32,
    /// The arithmetic operation.
    pub arithmetic: F32Operator,
    /// The operands.
    pub operands: [CodeOperand; 2],
    /// The addend of a `MulAdd`.
    pub addend: Option<CodeOperand>,
    /// The row of the result, if other instructions read it.
    pub to: Option<RowIndex>,
    /// The variable that the result is written to.
    pub variable: Option<LocalElement>,
    /// The loop around the sequence, if the sequence is its whole body and accumulates a product.
    pub uniform_loop: Option<UniformLoop>,
}

/// A loop whose index, step and limit are uniform across the active lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct UniformLoop {
    pub index: RowIndex,
    pub step: RowIndex,
    pub limit: RowIndex,
}

/// Operators on `f32`s.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum F32Operator {
    MulAdd,
    Add,
    Sub,
    Mul,
}

/// The source of an operand.
#[derive(Clone, Debug)]
pub enum CodeOperand {
    /// A row written by an earlier instruction.
    Row(RowIndex),
    /// A variable.
    Element(LocalElement),
    /// A word of shared memory.
    Word(SharedWord),
}

/// An element of a local.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalElement {
    /// The row of the first element.
    pub row: RowIndex,
    /// The index of the first element among all elements of locals.
    pub element: u32,
    /// The number of elements.
    pub len: u32,
    /// The index, uniform across the active lanes; `None` is 0.
    pub index: Option<RowIndex>,
}

/// A load of a word of shared memory.
#[derive(Clone, Debug)]
pub struct SharedWord {
    /// The classified indices of the access.
    pub split: Split,
    /// The distance in instructions from the first of the sequence.
    pub after: u32,
    /// The row that the word is loaded to; no other instruction reads it.
    pub to: RowIndex,
}
