//! What a kernel is decoded to: a flat list of instructions, calls inlined, operands resolved to places.

use super::registers::{Id, Place, Registers, Sizes};
use super::structure::Structure;
use kernel_dsl::compiler::ptx::Space;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt;

/// Index of an instruction.
pub type Pc = u32;

/// No instruction.
pub const NOWHERE: Pc = Pc::MAX;

/// A kernel, ready to run.
#[derive(Debug, Default)]
pub struct Code {
    /// From the first.
    pub insts: Vec<Inst>,
    /// Where lanes that diverge reconverge.
    pub structure: Structure,
    /// How many registers there are.
    pub sizes: Sizes,
    /// Registers that hold a value from the start.
    pub constants: Vec<(Place, Id, u64)>,
    /// Registers that the hardware sets.
    pub specials: Vec<(Place, Id, Special)>,
    /// Where each text and line of an instruction is.
    pub sites: Vec<Site>,
    /// What a block's shared memory is made of.
    pub shared: Layout,
    /// What a thread's local memory is made of.
    pub local: Layout,
    /// What the kernel's parameters are made of.
    pub parameters: Layout,
    /// The first approximation's site, if there is one.
    pub first_approximation: u32,
    /// Whether it says in which order others see its accesses: then blocks may wait for one another.
    pub ordered: bool,
    /// By site, the bound of each approximation.
    pub bounds: HashMap<u32, &'static str>,
}

/// What a register holds that the hardware sets; a number is an axis.
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
    /// The bits of the lanes below, and perhaps its own.
    LanesBelow {
        inclusive: bool,
    },
    /// The bits of the lanes above, and perhaps its own.
    LanesAbove {
        inclusive: bool,
    },
    DynamicShared,
    TotalShared,
    /// Where what is allocated begins in a thread's local memory.
    Stack(u32),
}

impl Special {
    /// Whether it is not throughout a launch what it is when a block begins.
    pub fn begins_with_the_block(self) -> bool {
        matches!(self, Special::Block(_) | Special::Stack(_))
    }
}

/// An instruction of the text.
#[derive(Clone, Debug)]
pub struct Site {
    /// As it is printed.
    pub text: String,
    /// Its line, if the module was read from text.
    pub line: Option<u32>,
    /// The comment above it, if there is one: in PTX of our own, the line of Rust.
    pub comment: Option<String>,
    /// The function that it is in.
    pub function: String,
}

/// Variables of a state space, each at its offset.
#[derive(Clone, Default, Debug)]
pub struct Layout {
    /// By ascending offset.
    pub variables: Vec<Variable>,
    /// Bytes of all.
    pub bytes: u32,
}

/// A variable, or a parameter.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Variable {
    pub name: String,
    pub offset: u32,
    pub bytes: u32,
}

impl Layout {
    /// Adds a variable, aligned, `gap` bytes from the last at least.
    pub fn add(&mut self, name: &str, bytes: u32, align: u32, gap: u32) -> u32 {
        let start = if self.variables.is_empty() { 0 } else { self.bytes.saturating_add(gap) };
        let offset = start.next_multiple_of(align.max(1));
        self.variables.push(Variable { name: name.to_string(), offset, bytes });
        self.bytes = offset.saturating_add(bytes);
        offset
    }

    /// The variable that has all of these bytes.
    pub fn find(&self, offset: u64, bytes: u64) -> Option<&Variable> {
        let end = offset.checked_add(bytes)?;
        let next = self.variables.partition_point(|v| u64::from(v.offset) <= offset);
        let variable = &self.variables[next.checked_sub(1)?];
        (end <= u64::from(variable.offset) + u64::from(variable.bytes)).then_some(variable)
    }

    /// The variable that lies before that offset, or the first.
    pub fn nearest(&self, offset: u64) -> Option<&Variable> {
        let next = self.variables.partition_point(|v| u64::from(v.offset) <= offset);
        self.variables.get(next.saturating_sub(1))
    }
}

/// What computes registers from registers, on the lanes of a mask. It gives the lanes whose result is not defined.
pub type Body = Box<dyn Fn(&mut Registers, u32) -> u32 + Send + Sync>;

/// An instruction.
pub struct Inst {
    /// What decides which lanes execute it.
    pub guard: Option<Condition>,
    /// What it does.
    pub kind: Kind,
    /// The registers that it reads.
    pub reads: SmallVec<[Id; 4]>,
    /// The registers that it writes.
    pub writes: SmallVec<[Id; 2]>,
    /// Index into [`Code::sites`].
    pub site: u32,
}

/// A predicate, or its opposite.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Index among the predicates.
    pub predicate: u32,
    /// Under which its state is kept.
    pub id: Id,
    /// Whether it is the opposite.
    pub negated: bool,
}

impl Condition {
    /// The lanes where it holds.
    #[inline(always)]
    pub fn holds(self, registers: &Registers) -> u32 {
        let lanes = registers.predicates[self.predicate as usize];
        if self.negated { !lanes } else { lanes }
    }
}

/// How the definedness of results follows from that of operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Follows {
    /// A result is defined where all operands are.
    All,
    /// Of `selp`: the chosen operand and the condition count.
    #[allow(missing_docs)]
    Chosen { yes: Id, no: Id, condition: Id, predicate: u32 },
    /// Of `and.pred` and `or.pred`: an operand that decides alone is enough.
    #[allow(missing_docs)]
    Decided { a: (Id, u32), b: (Id, u32), by: bool },
    /// The operands say nothing: `xor a, a`, `sub a, a`.
    Always,
}

/// What an instruction does.
pub enum Kind {
    /// Computes.
    #[allow(missing_docs)]
    Compute { body: Body, follows: Follows, reason: &'static str },
    /// Loads.
    Load(Access),
    /// Stores.
    Store(Access),
    /// Begins a copy from global to shared memory: `cp.async`.
    Copy(Box<Copy>),
    /// `cp.async.commit_group`
    CopyCommit,
    /// `cp.async.wait_group`, and `wait_all`, which has no number.
    CopyWait(Option<u32>),
    /// Reads, computes and writes at once.
    Atomic(Atomic),
    /// Goes elsewhere.
    Branch(Pc),
    /// Goes to the place that the index names.
    #[allow(missing_docs)]
    BranchIndexed { index: (Place, Id), targets: Box<[Pc]> },
    /// Ends the thread.
    Exit,
    /// Ends the launch, for that reason.
    Trap(&'static str),
    /// Waits for the block, and perhaps tells of a predicate.
    Barrier(Barrier),
    /// `bar.warp.sync`.
    #[allow(missing_docs)]
    WarpBarrier { members: (Place, Id) },
    /// `shfl`.
    Shuffle(Shuffle),
    /// `vote`.
    Vote(Vote),
    /// `match` and `redux`.
    Gather(Gather),
    /// `activemask`.
    ActiveMask(Place),
    /// A clock, or its upper half: each reading is later.
    #[allow(missing_docs)]
    Clock { to: Place, high: bool },
    /// What orders accesses, or hints at them. All accesses happen in order here.
    Nothing,
}

/// A state space, as an access names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// None is named: the address says.
    Generic,
    /// Of the launch's buffers and the module's variables.
    Global,
    /// Constants of the module.
    Const,
    /// Of the block.
    Shared,
    /// Of the thread; parameters of functions too.
    Local,
    /// Parameters of the kernel.
    Param,
}

impl Window {
    /// As the text names it.
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
pub struct Access {
    /// Where its addresses lie.
    pub window: Window,
    /// The register that holds the address, if it is not constant.
    pub base: Option<(Place, Id)>,
    /// Bytes from there; without a register, the address.
    pub offset: i64,
    /// Bytes of an element: 1, 2, 4 or 8.
    pub element: u32,
    /// Whether an element narrower than its register is extended by its sign.
    pub signed: bool,
    /// The registers of the elements; `None` for one that nobody wants.
    pub values: SmallVec<[Option<Data>; 4]>,
}

/// `cp.async`
#[derive(Clone, Debug)]
pub struct Copy {
    /// Where it goes: all its bytes, of no registers.
    pub to: Access,
    /// Where it comes from, the same.
    pub from: Access,
    /// How many bytes are read, if not all.
    pub read: Option<(Place, Id)>,
}

/// A register that is loaded or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Data {
    /// Where its lanes are.
    pub place: Place,
    /// Under which its state is kept.
    pub id: Id,
    /// Bits of the register.
    pub bits: u32,
}

/// An atomic operation.
pub struct Atomic {
    /// Its place. No values.
    pub access: Access,
    /// What was there before goes here, if anywhere.
    pub result: Option<Data>,
    /// Its operands.
    pub operands: SmallVec<[Data; 2]>,
    /// What will be there, from what is there and the operands.
    pub update: Update,
}

/// What an atomic operation leaves: of the old value, the operands, and whether it is in shared memory.
pub type Update = Box<dyn Fn(u64, u64, u64, bool) -> u64 + Send + Sync>;

/// What a barrier tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// `bar.red.popc`: of how many threads the predicate is true.
    Count,
    /// `bar.red.and`
    All,
    /// `bar.red.or`
    Any,
}

/// `bar`, `barrier`.
#[derive(Clone, Debug)]
pub struct Barrier {
    /// Its number.
    pub number: (Place, Id),
    /// How many threads, if not all.
    pub threads: Option<(Place, Id)>,
    /// `arrive`: it does not wait.
    pub arrive: bool,
    /// What it tells, of what, where.
    pub reduction: Option<(Reduction, Condition, Place)>,
}

/// Where a shuffle reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Exchange {
    Up,
    Down,
    Butterfly,
    Index,
}

/// `shfl`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Shuffle {
    pub mode: Exchange,
    pub result: Option<(Place, Id)>,
    /// Whether the source was in range.
    pub inside: Option<(u32, Id)>,
    pub value: (Place, Id),
    pub selector: (Place, Id),
    pub clamp: (Place, Id),
    /// `None` in the form without `.sync`.
    pub members: Option<(Place, Id)>,
}

/// What a vote tells.
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
    pub result: Place,
    pub condition: Condition,
    /// `None` in the form without `.sync`.
    pub members: Option<(Place, Id)>,
}

/// What lanes are told of the values that all of them bring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// Which lanes have the value of the lane: `match.any`.
    Same,
    /// All members if they have one value, else none: `match.all`.
    AllSame,
    /// The sum: `redux.add`.
    Sum,
    /// The least of numbers without sign, or with one: `redux.min`.
    #[allow(missing_docs)]
    Least { signed: bool },
    /// The largest: `redux.max`.
    #[allow(missing_docs)]
    Most { signed: bool },
    /// `redux.and`.
    And,
    /// `redux.or`.
    Or,
    /// `redux.xor`.
    Xor,
}

/// `match` and `redux`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Gather {
    pub told: Told,
    pub result: Option<Place>,
    /// Whether all values are the same, of `match.all`.
    pub same: Option<u32>,
    pub value: (Place, Id),
    pub members: (Place, Id),
}

impl Kind {
    /// Its name, for `Debug`.
    fn name(&self) -> &'static str {
        match self {
            Kind::Compute { .. } => "Compute",
            Kind::Load(_) => "Load",
            Kind::Store(_) => "Store",
            Kind::Copy(_) => "Copy",
            Kind::CopyCommit => "CopyCommit",
            Kind::CopyWait(_) => "CopyWait",
            Kind::Atomic(_) => "Atomic",
            Kind::Branch(_) => "Branch",
            Kind::BranchIndexed { .. } => "BranchIndexed",
            Kind::Exit => "Exit",
            Kind::Trap(_) => "Trap",
            Kind::Barrier(_) => "Barrier",
            Kind::WarpBarrier { .. } => "WarpBarrier",
            Kind::Shuffle(_) => "Shuffle",
            Kind::Vote(_) => "Vote",
            Kind::Gather(_) => "Gather",
            Kind::ActiveMask(_) => "ActiveMask",
            Kind::Clock { .. } => "Clock",
            Kind::Nothing => "Nothing",
        }
    }
}

impl fmt::Debug for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.kind.name()).field("guard", &self.guard).field("site", &self.site).finish_non_exhaustive()
    }
}
