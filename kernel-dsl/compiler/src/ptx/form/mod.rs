//! The notation in which [`table`](super::table) writes an instruction's form, read at compile time: a mistake in a
//! row is a compile error.
//!
//! It is the PTX manual's, made exact where the manual goes on in prose:
//!
//! ```text
//! mad.wide.type d:wide, a, b, c:wide; .type = {.u16, .u32, .s16, .s32}
//! ```
//!
//! Modifiers come in the given order; `{.ftz}` may be left out; a name that is set out after the semicolon stands for
//! one of its alternatives: those in braces, or those of a set that many rows share ([`SETS`]). Operands named `d` or
//! `p` are written, the others read. Each has the instruction's last type, or:
//!
//! | notation | the operand |
//! |---|---|
//! | `a:u32` | is of this type |
//! | `a:atype` | is of the type chosen for the modifier of that name |
//! | `d:wide` | is twice as wide as the instruction's type |
//! | `d:type+` | may be a wider register: loads, stores, conversions |
//! | `d:vec` | the same, and a vector where `.v2` or `.v4` is given |
//! | `a:b32x2`, `d:dtypex4` | is a vector of two `.b32`, of four of that type |
//! | `%a` | is a register, never a constant |
//! | `p`, `c:pred` | is a predicate; `{!}c:pred` perhaps negated |
//! | `{-}a` | is perhaps negated |
//! | `a{.part}`, `d.part` | may be a byte or a half of the register (`.b0`, `.h1`), is one |
//! | `a{.halves}`, `a{.bytes}` | may be chosen from the halves or bytes of two registers (`.h31`, `.b7531`) |
//! | `d{.half_mask}`, `d{.byte_mask}` | may be written in part (`.h1`, `.b31`) |
//! | `d{_}` | may be `_`, for a result that nobody wants |
//! | `d{\|p}` | may be followed by a second, predicate, destination |
//! | `[a]` | is an address |
//! | `[texture]`, `[surface]`, `[sampler]` | is one of these: a variable, or its handle in a register |
//! | `[own]` | is a texture that is its own sampler, as all are but in `texmode_independent` |
//! | `[texture, c:ctype]` | is a place in one, of as many coordinates as the shape (`.2d`) has |
//! | `e:offsets`, `x:slopes` | is a vector of as many `.s32` or `.f32` as the shape has axes |
//! | `label`, `symbol`, `sreg` | is a label, the address of a variable or function, a special register |
//! | `tlist` | is the name of a list of labels |
//! | `callee` | is all that a call has |
//! | `constant:u32` | is a constant |
//! | `event:u32` | is the number of an event: a constant below 16 |
//! | `barrier:u32` | is the number of a barrier: a constant is below 16 |
//! | `threads:u32` | is a number of threads: a constant is a multiple of 32 |
//! | `{, b:u32}` | may be left out |
//! | `{.op, c:pred}` | is there if the modifier `.op` is |

mod notation;

pub use notation::{SETS, row};

use super::words::{Modifier, Opcode, Type, Version};

/// One form of an instruction: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its first word.
    pub opcode: Opcode,
    /// The form as the table writes it.
    pub form: &'static str,
    /// First target that has it.
    pub target: u16,
    /// First `.version` that has it.
    pub version: Version,
    /// The first target that no longer has it, from the `.version` on that took it away.
    pub gone: Option<(u16, Version)>,
    /// Every modifier that can stand in one of its slots.
    pub modifiers: Set,
    slots: [Slot; MAX_SLOTS],
    slot_count: usize,
    operands: [OperandForm; MAX_OPERANDS],
    operand_count: usize,
}

/// Modifiers of a form at most.
pub const MAX_SLOTS: usize = 8;
/// Operands of a form at most.
pub const MAX_OPERANDS: usize = 6;

/// A place for a modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    /// What can stand there.
    pub alternatives: Set,
    /// Whether it may be left out.
    pub optional: bool,
}

/// A set of modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Set([u64; 4]);

const _: () = assert!(Modifier::ALL.len() <= 256, "a set has a bit for each modifier");

impl Set {
    const EMPTY: Set = Set([0; 4]);

    /// Whether `modifier` is one of them.
    pub const fn has(self, modifier: Modifier) -> bool {
        self.0[modifier as usize / 64] >> (modifier as usize % 64) & 1 == 1
    }

    const fn with(mut self, modifier: Modifier) -> Set {
        self.0[modifier as usize / 64] |= 1 << (modifier as usize % 64);
        self
    }

    const fn or(self, other: Set) -> Set {
        let (a, b) = (self.0, other.0);
        Set([a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]])
    }

    /// The set of these, each as the [plain](Modifier::plain) word.
    pub fn of(modifiers: &[Modifier]) -> Set {
        modifiers.iter().fold(Set::EMPTY, |set, m| set.with(m.plain()))
    }

    /// Whether all of them are in `other`.
    pub const fn within(self, other: Set) -> bool {
        let (a, b) = (self.0, other.0);
        a[0] & !b[0] == 0 && a[1] & !b[1] == 0 && a[2] & !b[2] == 0 && a[3] & !b[3] == 0
    }

    const fn only_types(self) -> bool {
        let types = (1 << Type::ALL.len()) - 1;
        self.0[0] & types != 0 && self.0[0] & !types == 0 && self.0[1] == 0 && self.0[2] == 0 && self.0[3] == 0
    }

    /// They, in the order of [`Modifier`].
    pub fn iter(self) -> impl Iterator<Item = Modifier> {
        Modifier::ALL.iter().copied().filter(move |m| self.has(*m))
    }
}

/// A place for an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandForm {
    /// What kind of thing stands there.
    pub kind: Kind,
    /// Of which type.
    pub ty: OperandType,
    /// Whether the instruction writes it.
    pub destination: bool,
    /// Whether a register may be wider than the type.
    pub wider: bool,
    /// Whether it may be `_`.
    pub sink: bool,
    /// Whether `!` may stand before it.
    pub negatable: bool,
    /// Whether a second destination, a predicate, may follow after a bar.
    pub paired: bool,
    /// Whether it must be there.
    pub presence: Presence,
    /// Whether it is never a constant.
    pub register: bool,
    /// Whether `-` may stand before it.
    pub signed: bool,
    /// What of the register may or must be chosen.
    pub selection: Selection,
    /// Which constants can stand there.
    pub limit: Limit,
}

impl OperandForm {
    const NONE: OperandForm = OperandForm {
        kind: Kind::Value,
        ty: OperandType::None,
        destination: false,
        wider: false,
        sink: false,
        negatable: false,
        paired: false,
        presence: Presence::Always,
        register: false,
        signed: false,
        selection: Selection::None,
        limit: Limit::None,
    };
}

/// Whether an operand must be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It must.
    Always,
    /// It may be left out.
    Optional,
    /// It must if there is a modifier in that slot, and cannot otherwise.
    With(u8),
}

/// What an instruction chooses of a register's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// Nothing: it has the whole.
    None,
    /// Perhaps a byte or a half.
    Part,
    /// A byte or a half.
    OnePart,
    /// Perhaps two halves out of the four of this register and the next.
    Halves,
    /// Perhaps four bytes out of the eight of this register and the next.
    Bytes,
    /// Perhaps the halves that are written.
    HalfMask,
    /// Perhaps the bytes that are written.
    ByteMask,
}

/// Which constants an operand can be, beside what its type says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Any.
    None,
    /// 0 to 15.
    Barrier,
    /// 0 to 15, and never a register.
    Event,
    /// A multiple of 32.
    Threads,
}

/// What kind of thing an operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A register, or a constant where it is read.
    Value,
    /// A constant.
    Constant,
    /// A register, a constant where it is read, or a vector of as many as the modifier `.v2` or `.v4` says.
    Vectorised,
    /// A vector of that many.
    Vector(u8),
    /// A place in memory.
    Address,
    /// A texture, a sampler or a surface.
    Object(Type),
    /// A texture that is its own sampler.
    OwnSampler,
    /// A place in a texture or surface.
    Texel(Type),
    /// A vector of as many as the shape has axes.
    Axes,
    /// The address of a variable.
    Symbol,
    /// A special register.
    Special,
    /// A label.
    Label,
    /// A list of labels.
    BranchTargets,
    /// All that a call has: a [`Call`](super::ast::Call).
    Callee,
}

/// Where an operand's type comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandType {
    /// There is none.
    None,
    /// Always this.
    Fixed(Type),
    /// The type in that slot.
    Slot(u8),
    /// Twice the width of the type in that slot.
    Wide(u8),
}

impl Row {
    /// Places for modifiers, in order.
    pub fn slots(&self) -> &[Slot] {
        &self.slots[..self.slot_count]
    }

    /// The row of a form that `target` and later ones no longer have, from `version` on.
    pub const fn gone(mut self, target: u16, version: Version) -> Row {
        self.gone = Some((target, version));
        self
    }

    /// Places for operands, in order.
    pub fn operands(&self) -> &[OperandForm] {
        &self.operands[..self.operand_count]
    }
}
