//! Operands of instructions.

use super::function::{Label, RegisterId};
use crate::ptx::words::SpecialRegister;
use std::fmt;

/// A name with an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Symbol {
    /// Index into the function's parameters.
    Parameter(u32),
    /// Index into the function's return values.
    Return(u32),
    /// Index into the function's variables.
    Variable(u32),
    /// Index into [`Module::variables`](super::Module::variables).
    Global(u32),
    /// Index into [`Module::functions`](super::Module::functions).
    Function(u32),
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Guard {
    pub register: RegisterId,
    pub negated: bool,
}

/// An operand.
#[derive(Clone, PartialEq, Debug)]
pub enum Operand {
    /// `%r1`
    Register(RegisterId),
    /// `!%p1`
    Not(RegisterId),
    /// `-%r1`, in the video instructions.
    Negated(RegisterId, Option<Selector>),
    /// `%r1.b0`, in the video instructions.
    Selected(RegisterId, Selector),
    /// `%p1|%p2`; `None` is `_`, an unused result.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// `_`: an unused result.
    Sink,
    /// `{%f1, %f2}`
    Vector(Vec<Operand>),
    /// An integer, written in decimal; an unsigned 64-bit integer has the same bits.
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
    /// The address of a variable or function, used as a value.
    Symbol(Symbol, i32),
    /// `[t, {%f1, %f2}]`: a location in a texture or surface.
    Texel(Box<Texel>),
    /// `{%f1, %f2, %f3, %f4}|%p`: the result of a texture read, and whether all texels were
    /// resident.
    Resident(Vec<Operand>, RegisterId),
    /// The target of a branch.
    Label(Label),
    /// The possible targets of a `brx.idx`: an index into the function's lists of targets.
    BranchTargets(u32),
}

/// A selector of bytes or halves of a 32-bit operand, in video instructions: `.b0`, `.h1`,
/// `.b7640`, `.h10`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Selector {
    /// `.b` and one digit.
    Byte(u8),
    /// `.h` and one digit.
    Half(u8),
    /// `.b` and several digits. From the left, these are a mask of results, or the source byte for
    /// each byte of the operand, from the highest.
    Bytes([Option<u8>; 4]),
    /// `.h` and two digits.
    Halves([u8; 2]),
}

/// A memory address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// The base.
    pub base: Base,
    /// The offset in bytes.
    pub offset: i32,
}

/// A location in a texture or surface.
#[derive(Clone, PartialEq, Debug)]
pub struct Texel {
    /// The texture or surface: a variable, or its handle.
    pub object: Base,
    /// The sampler, if the target has independent textures and samplers.
    pub sampler: Option<Base>,
    /// The coordinates.
    pub coordinates: Vec<Operand>,
}

/// The base of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Base {
    Register(RegisterId),
    Symbol(Symbol),
}

impl Operand {
    /// Returns the operand with its registers replaced.
    pub fn renamed(&self, to: &mut dyn FnMut(RegisterId) -> RegisterId) -> Operand {
        match self {
            Operand::Register(r) => Operand::Register(to(*r)),
            Operand::Not(r) => Operand::Not(to(*r)),
            Operand::Negated(r, selector) => Operand::Negated(to(*r), *selector),
            Operand::Selected(r, selector) => Operand::Selected(to(*r), *selector),
            Operand::Pair(a, b) => Operand::Pair(a.map(&mut *to), b.map(to)),
            Operand::Vector(parts) => Operand::Vector(parts.iter().map(|o| o.renamed(to)).collect()),
            Operand::Address(Address { base: Base::Register(r), offset }) => {
                Operand::Address(Address { base: Base::Register(to(*r)), offset: *offset })
            }
            Operand::Texel(texel) => {
                let base = |base: &Base, to: &mut dyn FnMut(RegisterId) -> RegisterId| match base {
                    Base::Register(r) => Base::Register(to(*r)),
                    Base::Symbol(s) => Base::Symbol(*s),
                };
                let Texel { object, sampler, coordinates } = &**texel;
                Operand::Texel(Box::new(Texel {
                    object: base(object, to),
                    sampler: sampler.as_ref().map(|s| base(s, to)),
                    coordinates: coordinates.iter().map(|o| o.renamed(to)).collect(),
                }))
            }
            Operand::Resident(parts, p) => Operand::Resident(parts.iter().map(|o| o.renamed(to)).collect(), to(*p)),
            other => other.clone(),
        }
    }

    /// Calls `each` for each register of the operand, in order, with whether it is the second of a
    /// pair, which is a predicate.
    pub fn registers(&self, each: &mut dyn FnMut(RegisterId, bool)) {
        match self {
            Operand::Register(r) | Operand::Not(r) | Operand::Negated(r, _) | Operand::Selected(r, _) => {
                each(*r, false)
            }
            Operand::Address(Address { base: Base::Register(r), .. }) => each(*r, false),
            Operand::Pair(a, b) => {
                a.iter().for_each(|r| each(*r, false));
                b.iter().for_each(|r| each(*r, true));
            }
            Operand::Vector(v) => v.iter().for_each(|o| o.registers(each)),
            Operand::Resident(v, p) => {
                v.iter().for_each(|o| o.registers(each));
                each(*p, true);
            }
            Operand::Texel(texel) => {
                for base in [Some(texel.object), texel.sampler].into_iter().flatten() {
                    if let Base::Register(r) = base {
                        each(r, false);
                    }
                }
                texel.coordinates.iter().for_each(|o| o.registers(each));
            }
            Operand::Sink
            | Operand::Integer(_)
            | Operand::Bits(_)
            | Operand::F32(_)
            | Operand::F64(_)
            | Operand::Special(_)
            | Operand::Address(_)
            | Operand::Symbol(..)
            | Operand::Label(_)
            | Operand::BranchTargets(_) => {}
        }
    }
}

impl From<RegisterId> for Operand {
    fn from(r: RegisterId) -> Operand {
        Operand::Register(r)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Byte(n) => write!(f, ".b{n}"),
            Selector::Half(n) => write!(f, ".h{n}"),
            Selector::Bytes(digits) => {
                f.write_str(".b")?;
                digits.iter().flatten().try_for_each(|n| write!(f, "{n}"))
            }
            Selector::Halves([high, low]) => write!(f, ".h{high}{low}"),
        }
    }
}
