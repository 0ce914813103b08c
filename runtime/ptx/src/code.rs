//! The decoded form of a kernel: a flat list of instructions, with operands resolved to places.
//! Calls are inlined, except those of a [`Routine`].

use super::arithmetic::lanes::MemberResult;
use super::registers::{RegisterPlace, Registers, Sizes, StateId};
use super::structure::Structure;
use kernel_dsl_compiler::ptx::Space;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;

/// The index of an instruction.
pub type Pc = u32;

/// The index that means no instruction.
pub const NOWHERE: Pc = Pc::MAX;

/// The reason why registers that the driver sets are undefined.
pub(crate) const NO_DRIVER: &str = "only the driver sets its value";

/// A kernel, ready to run.
#[derive(Debug, Default)]
pub struct Code {
    /// The instructions; execution starts at the first.
    pub insts: Vec<Inst>,
    /// The structure that determines where diverged lanes reconverge.
    pub structure: Structure,
    /// The numbers of registers.
    pub sizes: Sizes,
    /// Registers with a constant value.
    pub constants: Vec<(RegisterPlace, StateId, u64)>,
    /// Registers that the hardware sets.
    pub specials: Vec<(RegisterPlace, StateId, Special)>,
    /// The text and line of each instruction.
    pub sites: Vec<Site>,
    /// The layout of a block's shared memory.
    pub shared: SpaceLayout,
    /// The layout of a thread's local memory.
    pub local: SpaceLayout,
    /// The layout of the kernel's parameters.
    pub parameters: SpaceLayout,
    /// The site of the first approximation, if there is one.
    pub first_approximation: u32,
    /// Whether blocks must run in order: the kernel has fences or strong accesses (volatile,
    /// relaxed, acquire, release), or calls of device functions.
    pub ordered: bool,
    /// The bound of each approximation, by site.
    pub bounds: HashMap<u32, &'static str>,
    /// The functions that are called with a stack.
    pub routines: Vec<Routine>,
    /// The registers of the stack, if the kernel has one.
    pub stack: Option<Stack>,
    /// Whether the kernel allocates or frees memory of the device's heap.
    pub allocates: bool,
    /// Whether the kernel has loads that [`MemoryAccess::read_only`] describes.
    pub has_read_only_loads: bool,
    /// Whether instructions pass a carry to others. [`Inst::reads`] does not state it.
    pub has_carry: bool,
}

impl Code {
    /// Returns the bytes of a thread's local memory. `stack` is the size of its stack; `None` means
    /// the default.
    pub fn local_bytes(&self, stack: Option<u32>) -> usize {
        match (self.stack, stack) {
            (Some(Stack { start, .. }), Some(bytes)) => start as usize + bytes.min(MAX_STACK) as usize,
            _ => self.local.bytes as usize,
        }
    }
}

/// The largest stack of a thread in bytes: the largest local memory of a thread on a GPU.
const MAX_STACK: u32 = 512 << 10;

/// The stack of each thread, in local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stack {
    /// The register of the stack's end.
    pub end: RegisterPlace,
    /// The register of the first byte of the running routine's frame.
    pub frame: RegisterPlace,
    /// The register of the end of the stack's memory, which is the end of local memory.
    pub limit: RegisterPlace,
    /// The offset of the stack in local memory.
    pub start: u32,
}

/// A function that is called with a stack: one that can call itself, or a possible function of an
/// indirect call. The function's variables are in a frame of the stack. A call saves its registers.
#[derive(Debug, Default)]
pub struct Routine {
    /// The first instruction.
    pub start: Pc,
    /// The size of the frame in bytes.
    pub bytes: u32,
    /// The size in bytes that the frame has in machine code at least.
    pub least_bytes: u32,
    /// The registers, without those that are constant in a block.
    pub registers: Vec<(RegisterPlace, StateId)>,
    /// The locations of its parameters.
    pub parameters: Vec<ParameterLocation>,
    /// The locations of its results.
    pub returns: Vec<ParameterLocation>,
}

/// The location of a parameter or result of a [`Routine`], or of a function of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ParameterLocation {
    /// A register.
    Register(Data),
    /// Bytes of the frame.
    Frame { offset: u32, bytes: u32 },
}

/// The location of an argument, or of a result that a caller receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum PassLocation {
    /// A register.
    Register(Data),
    /// Local memory, or the kernel's parameters.
    Memory { window: Window, offset: u32 },
    /// Memory of the caller's frame.
    Frame { offset: u32 },
    /// A constant.
    Constant(u64),
    /// An unused result.
    Nothing,
}

/// A call of a [`Routine`].
#[derive(Clone, Debug)]
pub struct RoutineCall {
    /// Index into [`Code::routines`].
    pub routine: usize,
    /// The arguments, in order.
    pub arguments: Vec<PassLocation>,
    /// The locations for the results.
    pub results: Vec<PassLocation>,
}

/// A function that the device provides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceFunction {
    /// `vprintf(format, arguments)`
    Print,
    /// `malloc(bytes)`
    Allocate,
    /// `free(address)`
    Free,
    /// `__assertfail(message, file, line, function, size of a character)`
    Assert,
    /// `cudaCGGetIntrinsicHandle(scope)`: a handle of the grid, or 0 if the launch is not
    /// cooperative.
    GridHandle,
    /// `cudaCGSynchronize(handle, flags)`: a barrier of all blocks.
    GridBarrier,
}

/// A call of a function that the device provides.
#[derive(Clone, Debug)]
pub struct Service {
    /// The function.
    pub function: DeviceFunction,
    /// The arguments, each with its size in bytes.
    pub arguments: Vec<(PassLocation, u32)>,
    /// The location and size of the result, if it is used.
    pub result: Option<(PassLocation, u32)>,
}

/// The value of a register that the hardware sets. Variants with a number have the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Special {
    Thread(u8),
    Threads(u8),
    Block(u8),
    Blocks(u8),
    Lane,
    Warp,
    Warps,
    Constant(u32),
    /// The lane's own bit.
    LanesEqual,
    /// The bits of the lower lanes, optionally with the lane's own.
    LanesBelow {
        inclusive: bool,
    },
    /// The bits of the higher lanes, optionally with the lane's own.
    LanesAbove {
        inclusive: bool,
    },
    DynamicShared,
    TotalShared,
    /// The start of the dynamically allocated part of a thread's local memory.
    Stack(u32),
}

impl Special {
    /// Returns whether the value is set at the start of each block; other values are constant
    /// throughout a launch.
    pub fn begins_with_the_block(self) -> bool {
        matches!(self, Special::Block(_) | Special::Stack(_))
    }
}

/// The origin of an instruction in the text.
#[derive(Clone, Debug)]
pub struct Site {
    /// The instruction as printed.
    pub text: String,
    /// The line of the instruction, if the module was read from text.
    pub line: Option<u32>,
    /// The function that contains the instruction.
    pub function: String,
    /// The file and line of the source, from `.loc`; without it, the comment above the instruction.
    pub origin: Option<String>,
}

/// Variables of a state space, each at its offset.
#[derive(Clone, Default, Debug)]
pub struct SpaceLayout {
    /// The variables, by ascending offset.
    pub variables: Vec<Variable>,
    /// The total size in bytes.
    pub bytes: u32,
    /// The name and the offset of a variable whose size the launch determines: `.extern .shared`.
    pub open: Option<(String, u32)>,
}

/// A variable, or a parameter.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Variable {
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
}

impl SpaceLayout {
    /// Adds an aligned variable at least `gap` bytes after the last one; returns its offset. An
    /// offset that exceeds 32 bits saturates, and so exceeds the limit of every state space, which
    /// rejects the entry.
    pub fn add(&mut self, name: &str, bytes: u32, align: u32, gap: u32) -> u32 {
        let start = if self.variables.is_empty() { 0 } else { self.bytes.saturating_add(gap) };
        let offset = start.checked_next_multiple_of(align.max(1)).unwrap_or(u32::MAX);
        self.variables.push(Variable { name: name.to_string(), offset, bytes });
        self.bytes = offset.saturating_add(bytes);
        offset
    }

    /// Returns the variable that contains all of these bytes.
    pub fn find(&self, offset: u64, bytes: u64) -> Option<&Variable> {
        let end = offset.checked_add(bytes)?;
        let next = self.variables.partition_point(|v| u64::from(v.offset) <= offset);
        let variable = &self.variables[next.checked_sub(1)?];
        (end <= u64::from(variable.offset) + u64::from(variable.bytes)).then_some(variable)
    }

    /// Returns the last variable that begins at or before `offset`, or the first variable.
    pub fn nearest(&self, offset: u64) -> Option<&Variable> {
        let next = self.variables.partition_point(|v| u64::from(v.offset) <= offset);
        self.variables.get(next.saturating_sub(1))
    }
}

/// A computation from registers to registers, on the lanes of a mask. The computation returns the
/// lanes whose result is undefined.
pub type Body = Box<dyn Fn(&mut Registers, u32) -> u32 + Send + Sync>;

/// An instruction.
pub struct Inst {
    /// The condition under which a lane executes the instruction.
    pub guard: Option<Condition>,
    /// The operation.
    pub kind: InstructionKind,
    /// The registers that the instruction reads.
    pub reads: SmallVec<[StateId; 4]>,
    /// The registers that the instruction writes.
    pub writes: SmallVec<[StateId; 2]>,
    /// Index into [`Code::sites`].
    pub site: u32,
}

/// A predicate, or its negation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Index among the predicates.
    pub predicate: u32,
    /// The index of the predicate's state.
    pub id: StateId,
    /// Whether the predicate is negated.
    pub negated: bool,
}

impl Condition {
    /// Returns the lanes where the condition holds.
    #[inline(always)]
    pub fn holds(self, registers: &Registers) -> u32 {
        let lanes = registers.predicates[self.predicate as usize];
        if self.negated { !lanes } else { lanes }
    }
}

/// The rule that derives in which lanes results are defined from those in which operands are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DefinednessRule {
    /// A result is defined where all operands are defined.
    All,
    /// For `selp`: only the chosen operand and the condition count.
    #[allow(missing_docs)]
    Chosen { yes: StateId, no: StateId, condition: StateId, predicate: u32 },
    /// For `and.pred` and `or.pred`: an operand that decides the result alone is enough.
    #[allow(missing_docs)]
    Decided { a: (StateId, u32), b: (StateId, u32), by: bool },
    /// The result does not depend on the operands' values: `xor a, a`, `sub a, a`.
    Always,
}

/// The operation of an instruction.
pub enum InstructionKind {
    /// A computation on registers.
    #[allow(missing_docs)]
    Compute { body: Body, follows: DefinednessRule, reason: &'static str },
    /// A load.
    Load(MemoryAccess),
    /// A volatile, relaxed or acquire load.
    StrongLoad(MemoryAccess),
    /// A store.
    Store(MemoryAccess),
    /// The start of a copy from global to shared memory: `cp.async`.
    Copy(Box<AsyncCopyAccess>),
    /// `cp.async.commit_group`
    CopyCommit,
    /// `cp.async.wait_group`, and `wait_all`, which has no number.
    CopyWait(Option<u32>),
    /// An atomic operation.
    Atomic(AtomicAccess),
    /// An access to a texture or a surface.
    Object(Box<ObjectAccess>),
    /// A jump.
    Branch(Pc),
    /// A jump to the target that an index selects.
    #[allow(missing_docs)]
    BranchIndexed { index: (RegisterPlace, StateId), targets: Box<[Pc]> },
    /// A call with a stack.
    Call(Box<RoutineCall>),
    /// The end of a routine.
    Return,
    /// A call of a function of the device.
    Service(Box<Service>),
    /// The end of the thread.
    Exit,
    /// The end of the launch, with the reason.
    Trap(&'static str),
    /// A barrier of the block, optionally with a reduction.
    Barrier(Barrier),
    /// `bar.warp.sync`.
    #[allow(missing_docs)]
    WarpBarrier { members: (RegisterPlace, StateId) },
    /// `shfl`.
    Shuffle(Shuffle),
    /// `vote`.
    Vote(Vote),
    /// `match` and `redux`.
    Gather(Gather),
    /// `activemask`.
    ActiveMask(RegisterPlace),
    /// Reads one half of the address of the grid's workspace, which only a cooperative launch has.
    #[allow(missing_docs)]
    Workspace { to: RegisterPlace, high: bool },
    /// Reads a clock, or its upper half. Each reading is later than the previous one.
    #[allow(missing_docs)]
    Clock { to: RegisterPlace, high: bool },
    /// An instruction that gives a hint or pauses, without effect.
    Nothing,
    /// A fence. All accesses happen in order here, so only the check of races needs it.
    #[allow(missing_docs)]
    Fence { is_of_block: bool },
}

/// The state space of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// No state space: the address determines the memory.
    Generic,
    /// The launch's buffers and the module's variables.
    Global,
    /// Constants of the module.
    Const,
    /// Shared memory of the block.
    Shared,
    /// Local memory of the thread, including parameters of functions.
    Local,
    /// Parameters of the kernel.
    Param,
}

impl Window {
    /// Returns the name in PTX.
    pub fn name(self) -> &'static str {
        match self {
            Window::Generic => "generic",
            Window::Global => Space::Global.spelling(),
            Window::Const => Space::Const.spelling(),
            Window::Shared => Space::Shared.spelling(),
            Window::Local => Space::Local.spelling(),
            Window::Param => Space::Param.spelling(),
        }
    }
}

/// An access to memory.
#[derive(Clone, Debug)]
pub struct MemoryAccess {
    /// The window of the addresses.
    pub window: Window,
    /// The register that holds the address, if it is not constant.
    pub base: Option<(RegisterPlace, StateId)>,
    /// The offset from the register, or the address if there is no register.
    pub offset: i64,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element: u32,
    /// Whether an element narrower than its register is sign-extended.
    pub signed: bool,
    /// The registers of the elements; `None` for an unused element.
    pub values: SmallVec<[Option<Data>; 4]>,
    /// The elements of a load up to the last one that an instruction reads.
    pub needed: u32,
    /// The order that other threads observe.
    pub strength: AccessStrength,
    /// Whether the access is a load of memory that no thread may write during the launch:
    /// `ld.global.nc`, `ldu`.
    pub read_only: bool,
}

/// The order of an access that other threads observe.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum AccessStrength {
    /// None: the access is plain.
    #[default]
    Weak,
    /// The order of fences around the access. Such an access is volatile, relaxed or acquiring, or
    /// an atomic operation.
    Strong,
    /// In addition to `Strong`, the order of a fence before the access: `.release`, `.acq_rel`.
    Releasing,
    /// `Strong` between threads of a block only: `.cta`.
    BlockStrong,
    /// `Releasing` to threads of the block only: `.cta`.
    BlockReleasing,
}

impl AccessStrength {
    /// Returns the strength with the scope of a block.
    pub fn of_block(self) -> AccessStrength {
        match self {
            AccessStrength::Strong => AccessStrength::BlockStrong,
            AccessStrength::Releasing => AccessStrength::BlockReleasing,
            other => other,
        }
    }

    /// Returns whether the access releases all earlier accesses of its block.
    pub fn releases(self) -> bool {
        matches!(self, AccessStrength::Releasing | AccessStrength::BlockReleasing)
    }

    /// Returns whether the scope is a block.
    pub fn is_of_block(self) -> bool {
        matches!(self, AccessStrength::BlockStrong | AccessStrength::BlockReleasing)
    }
}

/// `cp.async`
#[derive(Clone, Debug)]
pub struct AsyncCopyAccess {
    /// The destination: an access to all bytes, without registers.
    pub to: MemoryAccess,
    /// The source: an access to all bytes, without registers.
    pub from: MemoryAccess,
    /// The register with the number of bytes to read, if not all are read.
    pub read: Option<(RegisterPlace, StateId)>,
}

/// A register that is loaded or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// The position of the lanes.
    pub place: RegisterPlace,
    /// The index of the register's state.
    pub id: StateId,
    /// The width of the register in bits.
    pub bits: u32,
}

/// An atomic operation.
pub struct AtomicAccess {
    /// The access, without values.
    pub access: MemoryAccess,
    /// Whether the scope includes the host: `.sys`.
    pub of_system: bool,
    /// The register for the old value, if it is used.
    pub result: Option<Data>,
    /// The operands.
    pub operands: SmallVec<[Data; 2]>,
    /// The function that computes the new value.
    pub update: Update,
}

/// A function that computes the new value of an atomic operation. The arguments are the old value,
/// two operands, and whether the address is in shared memory.
pub type Update = Box<dyn Fn(u64, u64, u64, bool) -> u64 + Send + Sync>;

/// An access to a texture or a surface.
pub struct ObjectAccess {
    /// The operation.
    pub operation: ObjectOperation,
    /// The register with the handle.
    pub handle: Data,
    /// The register with the index of the layer, if the shape has layers.
    pub layer: Option<Data>,
    /// The coordinates.
    pub coordinates: SmallVec<[Data; 3]>,
    /// The offset in texels along each axis; empty without an offset.
    pub offset: SmallVec<[Data; 3]>,
    /// The registers for the results; `None` for an unused result.
    pub results: SmallVec<[Option<Data>; 4]>,
    /// The registers of the stored elements.
    pub values: SmallVec<[Data; 4]>,
}

/// The operation of an [`ObjectAccess`].
pub enum ObjectOperation {
    /// `tex`
    #[allow(missing_docs)]
    Sample { integer_coordinates: bool, halves: bool },
    /// `tld4`, of a channel.
    Gather(u32),
    /// `txq` and `suq`
    Query(Query),
    /// `suld.b`, of elements with a size in bytes.
    #[allow(missing_docs)]
    Load { element: u32, outside: Outside },
    /// `sust.b`
    #[allow(missing_docs)]
    Store { element: u32, outside: Outside },
    /// `sured.b`
    #[allow(missing_docs)]
    Reduce { element: u32, outside: Outside, update: Update },
}

/// A property of a texture or a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Query {
    Width,
    Height,
    Depth,
    Levels,
    Normalized,
}

/// The treatment of coordinates outside of a surface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// The launch ends.
    Trap,
    /// The nearest element inside.
    Clamp,
    /// A load gives 0, and a store has no effect.
    Zero,
}

/// A reduction at a barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierReduction {
    /// `bar.red.popc`: the number of threads whose predicate is true.
    Count,
    /// `bar.red.and`
    All,
    /// `bar.red.or`
    Any,
}

/// `bar`, `barrier`.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// The number of the barrier.
    pub number: (RegisterPlace, StateId),
    /// The number of threads, if not all threads take part.
    pub threads: Option<(RegisterPlace, StateId)>,
    /// Whether the instruction is `arrive`, which does not wait.
    pub arrive: bool,
    /// The reduction, its predicate and the register for the result.
    pub reduction: Option<(BarrierReduction, Condition, RegisterPlace)>,
}

/// The source lane of a shuffle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum ShuffleSource {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `shfl`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Shuffle {
    pub mode: ShuffleSource,
    pub result: Option<(RegisterPlace, StateId)>,
    /// The predicate that receives whether the source lane was in range.
    pub inside: Option<(u32, StateId)>,
    pub value: (RegisterPlace, StateId),
    pub selector: (RegisterPlace, StateId),
    pub clamp: (RegisterPlace, StateId),
    /// `None` in the form without `.sync`.
    pub members: Option<(RegisterPlace, StateId)>,
}

/// The result of a vote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Poll {
    All,
    Any,
    Uniform,
    Ballot,
}

/// `vote`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Vote {
    pub mode: Poll,
    pub result: RegisterPlace,
    pub condition: Condition,
    /// `None` in the form without `.sync`.
    pub members: Option<(RegisterPlace, StateId)>,
}

/// `match` and `redux`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Gather {
    pub function: MemberResult,
    pub result: Option<RegisterPlace>,
    /// The predicate that receives the second result.
    pub predicate: Option<u32>,
    pub value: (RegisterPlace, StateId),
    pub members: (RegisterPlace, StateId),
}

impl InstructionKind {
    /// Returns the name for `Debug`.
    fn name(&self) -> &'static str {
        match self {
            InstructionKind::Compute { .. } => "Compute",
            InstructionKind::Load(_) => "Load",
            InstructionKind::StrongLoad(_) => "StrongLoad",
            InstructionKind::Store(_) => "Store",
            InstructionKind::Copy(_) => "Copy",
            InstructionKind::CopyCommit => "CopyCommit",
            InstructionKind::CopyWait(_) => "CopyWait",
            InstructionKind::Atomic(_) => "Atomic",
            InstructionKind::Object(_) => "Object",
            InstructionKind::Branch(_) => "Branch",
            InstructionKind::BranchIndexed { .. } => "BranchIndexed",
            InstructionKind::Call(_) => "Call",
            InstructionKind::Return => "Return",
            InstructionKind::Service(_) => "Service",
            InstructionKind::Exit => "Exit",
            InstructionKind::Trap(_) => "Trap",
            InstructionKind::Barrier(_) => "Barrier",
            InstructionKind::WarpBarrier { .. } => "WarpBarrier",
            InstructionKind::Shuffle(_) => "Shuffle",
            InstructionKind::Vote(_) => "Vote",
            InstructionKind::Gather(_) => "Gather",
            InstructionKind::ActiveMask(_) => "ActiveMask",
            InstructionKind::Workspace { .. } => "Workspace",
            InstructionKind::Clock { .. } => "Clock",
            InstructionKind::Fence { .. } => "Fence",
            InstructionKind::Nothing => "Nothing",
        }
    }
}

impl fmt::Debug for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.kind.name()).field("guard", &self.guard).field("site", &self.site).finish_non_exhaustive()
    }
}
