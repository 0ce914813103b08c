//! The notation of instruction forms in [`table`](super::table). Rows are parsed at compile time,
//! so a mistake in a row is a compile error.
//!
//! The notation is that of the PTX manual, made precise where the manual uses prose:
//!
//! ```text
//! mad.wide.type d:wide, a, b, c:wide; .type = {.u16, .u32, .s16, .s32}
//! ```
//!
//! Modifiers are in the given order; `{.ftz}` is optional. A name defined after the semicolon is
//! replaced by one of its alternatives: those in braces, or those of a shared set
//! ([`MODIFIER_SETS`]). Operands named `d` or `p` are written, the others are read. Each has the
//! last type of the instruction, or:
//!
//! | notation | the operand |
//! |---|---|
//! | `a:u32` | has this type |
//! | `a:atype` | has the type chosen for the modifier of this name |
//! | `d:wide` | is twice as wide as the instruction's type |
//! | `d:type+` | may be a wider register: loads, stores, conversions |
//! | `d:vec` | may be a wider register, and is a vector if `.v2` or `.v4` is given |
//! | `a:b32x2`, `d:dtypex4` | is a vector of two `.b32`, of four of that type |
//! | `%a` | is a register, never a constant |
//! | `p`, `c:pred` | is a predicate; `{!}c:pred` may be negated |
//! | `{-}a` | may be negated |
//! | `a{.part}` | may be a byte or a half of the register (`.b0`, `.h1`) |
//! | `d.part` | is a byte or a half of the register |
//! | `a{.halves}`, `a{.bytes}` | may be chosen from the halves or bytes of two registers (`.h31`, `.b7531`) |
//! | `d{.half_mask}`, `d{.byte_mask}` | may be written in part (`.h1`, `.b31`) |
//! | `d{_}` | may be `_`, for an unused result |
//! | `d{\|p}` | may be followed by a second, predicate, destination |
//! | `[a]` | is an address |
//! | `[texture]`, `[surface]`, `[sampler]` | is one of these: a variable, or its handle in a register |
//! | `[own]` | is a texture with its own sampler: any texture outside `texmode_independent` |
//! | `[texture, c:ctype]` | is a texture and its coordinates, one for each axis of the shape (`.2d`) |
//! | `e:offsets`, `x:slopes` | is a vector of `.s32` or `.f32`, one for each axis of the shape |
//! | `label`, `symbol`, `sreg` | is a label, the address of a variable or function, a special register |
//! | `tlist` | is the name of a list of labels |
//! | `callee` | is the results, the callee and the arguments of a call |
//! | `constant:u32` | is a constant |
//! | `event:u32` | is the number of an event: a constant below 16 |
//! | `barrier:u32` | is the number of a barrier: a constant is below 16 |
//! | `threads:u32` | is a number of threads: a constant is a multiple of 32 |
//! | `{, b:u32}` | may be left out |
//! | `{.op, c:pred}` | is present if the modifier `.op` is |

mod notation;

pub use notation::{MODIFIER_SETS, row};

use super::words::{Modifier, Opcode, Type, Version};

/// One form of an instruction: a row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormRow {
    /// The opcode.
    pub opcode: Opcode,
    /// The form as the table writes it.
    pub form: &'static str,
    /// The first target that supports the form.
    pub target: u16,
    /// The first `.version` that supports the form.
    pub version: Version,
    /// The first target that no longer supports the form, and the `.version` that removed it.
    pub removed: Option<(u16, Version)>,
    /// All modifiers that a slot can contain.
    pub modifiers: Set,
    slots: [FormSlot; MAX_SLOTS],
    slot_count: usize,
    operands: [OperandForm; MAX_OPERANDS],
    operand_count: usize,
}

/// The largest number of modifiers of a form.
pub const MAX_SLOTS: usize = 8;
/// The largest number of operands of a form.
pub const MAX_OPERANDS: usize = 6;

/// A slot for a modifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FormSlot {
    /// The allowed modifiers.
    pub alternatives: Set,
    /// Whether the modifier is optional.
    pub optional: bool,
}

/// A set of modifiers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Set([u64; 4]);

const _: () = assert!(Modifier::ALL.len() <= 256, "a set has a bit for each modifier");

impl Set {
    const EMPTY: Set = Set([0; 4]);

    /// Returns whether the set contains `modifier`.
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

    /// Returns the set of these modifiers, each as its [plain](Modifier::canonical) word.
    pub fn of(modifiers: &[Modifier]) -> Set {
        modifiers.iter().fold(Set::EMPTY, |set, m| set.with(m.canonical()))
    }

    /// Returns whether the set is a subset of `other`.
    pub const fn is_subset_of(self, other: Set) -> bool {
        let (a, b) = (self.0, other.0);
        a[0] & !b[0] == 0 && a[1] & !b[1] == 0 && a[2] & !b[2] == 0 && a[3] & !b[3] == 0
    }

    const fn only_types(self) -> bool {
        let types = (1 << Type::ALL.len()) - 1;
        self.0[0] & types != 0 && self.0[0] & !types == 0 && self.0[1] == 0 && self.0[2] == 0 && self.0[3] == 0
    }

    /// Iterates over the members in declaration order.
    pub fn iter(self) -> impl Iterator<Item = Modifier> {
        Modifier::ALL.iter().copied().filter(move |m| self.has(*m))
    }
}

/// The form of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperandForm {
    /// The kind of operand.
    pub kind: OperandKind,
    /// The type.
    pub ty: OperandType,
    /// Whether the instruction writes the operand.
    pub destination: bool,
    /// Whether a register may be wider than the type.
    pub wider: bool,
    /// Whether the operand may be `_`.
    pub sink: bool,
    /// Whether `!` may precede the operand.
    pub negatable: bool,
    /// Whether a second destination, a predicate, may follow after `|`.
    pub paired: bool,
    /// Whether the operand is required.
    pub presence: Presence,
    /// Whether the operand cannot be a constant.
    pub register: bool,
    /// Whether `-` may precede the operand.
    pub signed: bool,
    /// The selection of parts of the register.
    pub selection: Selection,
    /// The limit on constants.
    pub limit: ConstantLimit,
}

impl OperandForm {
    const NONE: OperandForm = OperandForm {
        kind: OperandKind::Value,
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
        limit: ConstantLimit::None,
    };
}

/// Whether an operand is required.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// The operand is required.
    Always,
    /// The operand is optional.
    Optional,
    /// The operand is required if the slot contains a modifier, and not allowed otherwise.
    With(u8),
}

/// The selection of bytes of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Selection {
    /// No selection: the whole register.
    None,
    /// Optionally a byte or a half.
    Part,
    /// A byte or a half.
    OnePart,
    /// Optionally two of the four halves of this register and the next.
    Halves,
    /// Optionally four of the eight bytes of this register and the next.
    Bytes,
    /// Optionally a mask of the written halves.
    HalfMask,
    /// Optionally a mask of the written bytes.
    ByteMask,
}

/// The limit on constants, in addition to the type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstantLimit {
    /// No limit.
    None,
    /// 0 to 15.
    Barrier,
    /// 0 to 15, and not a register.
    Event,
    /// A multiple of 32.
    Threads,
}

/// The kind of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// A register, or a constant if the operand is read.
    Value,
    /// A constant.
    Constant,
    /// A register, a constant if the operand is read, or a vector of the length of `.v2` or `.v4`.
    Vectorized,
    /// A vector of this length.
    Vector(u8),
    /// A memory address.
    Address,
    /// A texture, a sampler or a surface.
    Object(Type),
    /// A texture that includes its sampler.
    OwnSampler,
    /// A location in a texture or surface.
    Texel(Type),
    /// A vector with one element for each axis of the shape.
    Axes,
    /// The address of a variable.
    Symbol,
    /// A special register.
    Special,
    /// A label.
    Label,
    /// A list of labels.
    BranchTargets,
    /// The parts of a call: a [`FunctionCall`](super::ast::FunctionCall).
    Callee,
}

/// The source of an operand's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandType {
    /// No type.
    None,
    /// A fixed type.
    Fixed(Type),
    /// The type in this slot.
    Slot(u8),
    /// The type in this slot with twice the width.
    Wide(u8),
}

impl FormRow {
    /// Returns the slots for modifiers, in order.
    pub fn slots(&self) -> &[FormSlot] {
        &self.slots[..self.slot_count]
    }

    /// Returns the row of a form that was removed in `version` for `target` and later targets.
    pub const fn removed_in(mut self, target: u16, version: Version) -> FormRow {
        self.removed = Some((target, version));
        self
    }

    /// Returns the forms of the operands, in order.
    pub fn operands(&self) -> &[OperandForm] {
        &self.operands[..self.operand_count]
    }
}
