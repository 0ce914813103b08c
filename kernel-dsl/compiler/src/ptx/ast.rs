//! A PTX module as a tree. Names live in the entry's lists; instructions refer to them by index.

use super::words::{Modifier, Opcode, Space, SpecialRegister, Type, Version};
use crate::target::Target;
use smallvec::SmallVec;

/// A module of one entry, all of whose instructions are legal for its target; [`Builder`](super::Builder) makes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    pub(super) version: Version,
    pub(super) target: Target,
    pub(super) header: Vec<String>,
    pub(super) entry: Entry,
}

impl Module {
    /// The lowest `.version` that has the target and all that the module uses.
    pub fn version(&self) -> Version {
        self.version
    }

    /// What it is for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// The comment at the top, line by line.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Its only entry.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// A kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// As the driver finds it.
    pub name: String,
    /// In the order of the launch.
    pub parameters: Vec<Parameter>,
    /// `.maxntid`: threads of a block at most, in x, y, z.
    pub max_threads: Option<[u32; 3]>,
    /// `.minnctapersm`: blocks that a multiprocessor is to hold.
    pub min_blocks: Option<u32>,
    /// `.maxnreg`: registers a thread at most.
    pub max_registers: Option<u32>,
    /// Registers, declared by true type.
    pub registers: Vec<Declaration>,
    /// Variables of the body.
    pub variables: Vec<Variable>,
    /// Names of the labels.
    pub labels: Vec<String>,
    /// What a thread does.
    pub body: Vec<Statement>,
}

/// A parameter of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Parameter {
    pub name: String,
    pub ty: Type,
}

/// `.reg .ty prefix<count>`: registers `prefix0`, `prefix1`, …
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Declaration {
    pub ty: Type,
    pub prefix: String,
    pub count: u32,
}

/// An array of bytes in a state space.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Variable {
    pub space: Space,
    pub align: u32,
    pub name: String,
    pub bytes: u32,
}

/// Register `number` of declaration `declaration`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub struct Register {
    pub declaration: u16,
    pub number: u32,
}

/// Index into [`Entry::labels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// Something with a name and an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// Index into [`Entry::parameters`].
    Parameter(u32),
    /// Index into [`Entry::variables`].
    Variable(u32),
}

/// A line of the body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// `$end_2:`
    Label(Label),
    /// A line of comment, without its slashes.
    Comment(String),
    /// An instruction.
    Instruction(Instruction),
}

/// An instruction with its guard.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// Lanes that execute it, if not all.
    pub guard: Option<Guard>,
    /// First word.
    pub opcode: Opcode,
    /// The words after it, in their order.
    pub modifiers: SmallVec<[Modifier; 6]>,
    /// Destination first.
    pub operands: SmallVec<[Operand; 4]>,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Guard {
    pub register: Register,
    pub negated: bool,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// `%r1`
    Register(Register),
    /// `!%p1`
    Not(Register),
    /// `%p1|%p2`
    Pair(Register, Register),
    /// `{%f1, %f2}`
    Vector(Vec<Operand>),
    /// An integer, written in decimal; of an unsigned 64-bit one the same bits.
    Integer(i64),
    /// An integer, written in hexadecimal.
    Bits(u64),
    /// `0f3F800000`, by its bits.
    F32(u32),
    /// `0d3FF0000000000000`, by its bits.
    F64(u64),
    /// `%tid.x`
    Special(SpecialRegister),
    /// `[%rd1+4]`
    Address(Address),
    /// The address of a variable, as a value.
    Symbol(Symbol, i32),
    /// Where a branch goes.
    Label(Label),
}

/// A place in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// From where.
    pub base: Base,
    /// Bytes from there.
    pub offset: i32,
}

/// What an address counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Base {
    Register(Register),
    Symbol(Symbol),
}

impl From<Register> for Operand {
    fn from(r: Register) -> Operand {
        Operand::Register(r)
    }
}

impl Entry {
    /// The type that a register is declared with.
    pub fn ty(&self, register: Register) -> Type {
        self.registers[usize::from(register.declaration)].ty
    }

    /// The name of a parameter or variable.
    pub fn symbol(&self, symbol: Symbol) -> &str {
        match symbol {
            Symbol::Parameter(i) => &self.parameters[i as usize].name,
            Symbol::Variable(i) => &self.variables[i as usize].name,
        }
    }
}
