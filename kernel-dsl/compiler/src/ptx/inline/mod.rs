//! Inline PTX: a few instructions of the user's own with typed operands, as a kernel's `ptx!(…)` has them.
//!
//! ```text
//! .reg .u32 t; mul.lo.u32 t, {a}, {b}; add.u32 {d}, t, {c};
//! ```
//!
//! A [`Source`] is what the kernel says: the text, and the operands that its names in braces stand for. [`Source::check`]
//! makes an [`Inline`] of it, whose instructions are legal and have a meaning that every executor can keep:
//!
//! * each is in the table, its operands of the types that are declared, and the target has it;
//! * it computes registers from registers. What moves control, touches memory, or works with other lanes has a
//!   construct of the language, which the oracle can check, and is refused by the name of that;
//! * its bits are determined: no approximation, no sum or product that the assembler may contract with another;
//! * what is read has been written, in every lane, and so have the results; the carry does not cross the block's
//!   borders.
//!
//! So a block is a function of its operands, unless an instruction asks the machine for something else ([`Effect`]).

mod rules;

pub(super) use rules::{Carry, contracts, effect_of, effect_of_special, refused};

use super::ast::{Architecture, Function, Instruction, Module, Register, Statement, Variant};
use super::parse;
use super::print::{In, Names};
use super::words::Type;
use crate::scalar::Scalar;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A block as a kernel says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Source {
    /// Instructions and declarations of registers. Several literals stand below one another.
    pub text: String,
    /// What the names in braces stand for.
    pub operands: Vec<Operand>,
}

/// What a name in braces stands for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Operand {
    /// The name.
    pub name: String,
    /// Which way its value goes.
    pub direction: Direction,
    /// Its type in Rust.
    pub ty: Scalar,
}

/// Which way the value of an operand goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// Into the block, which does not write it.
    In,
    /// Out of the block.
    Out,
    /// Both.
    InOut,
}

impl Direction {
    /// Whether a value comes in.
    pub fn enters(self) -> bool {
        self != Direction::Out
    }

    /// Whether a value comes out.
    pub fn leaves(self) -> bool {
        self != Direction::In
    }

    /// As a kernel writes it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::InOut => "inout",
        }
    }
}

/// What a block does beside computing its results from its operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effect {
    /// Nothing.
    None,
    /// It asks which thread this is; a thread always gets the same answer.
    Thread,
    /// It asks for the time, for the place where the thread runs, or waits: it is done where it stands, each time.
    Machine,
}

/// A block that was checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Inline {
    source: Source,
    /// One function, whose first registers are the operands, in their order.
    module: Box<Module>,
    effect: Effect,
}

/// A mistake in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// Where it is.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

/// A place in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A line of the text, from 1.
    Line(u32),
    /// An operand, by its index.
    Operand(usize),
}

/// The type of the register that stands for an operand; `None` where PTX has no such registers.
pub fn register_type(ty: Scalar) -> Option<Type> {
    Some(match ty {
        Scalar::Bool => Type::Pred,
        Scalar::I8 | Scalar::U8 => return None,
        Scalar::I16 => Type::S16,
        Scalar::U16 => Type::U16,
        Scalar::F16 | Scalar::Bf16 | Scalar::Custom(_) => Type::B16,
        Scalar::I32 => Type::S32,
        Scalar::U32 | Scalar::Usize => Type::U32,
        Scalar::I64 => Type::S64,
        Scalar::U64 => Type::U64,
        Scalar::F32 => Type::F32,
        Scalar::F64 => Type::F64,
    })
}

impl Source {
    /// The operands whose values come in, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|o| o.direction.enters())
    }

    /// The operands whose values come out, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &Operand> {
        self.operands.iter().filter(|o| o.direction.leaves())
    }

    /// The block, if `target` has all of its instructions; without one, if some target has.
    pub fn check(&self, target: Option<Target>) -> Result<Inline, Vec<Error>> {
        let mut errors = Vec::new();
        let mut wrong = |i: usize, message: String| errors.push(Error { place: Place::Operand(i), message });
        for (i, operand) in self.operands.iter().enumerate() {
            let name = &operand.name;
            if register_type(operand.ty).is_none() {
                let wide = if operand.ty.is_signed() { Scalar::I32 } else { Scalar::U32 };
                wrong(i, format!("the operand `{name}` has 8 bits, and PTX has no 8-bit registers: make it `{wide}`"));
            }
            if self.operands[..i].iter().any(|o| o.name == *name) {
                wrong(i, format!("duplicate operand `{name}`"));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let any = Architecture { sm: u16::MAX, variant: Variant::General };
        let read = parse::inline(self, target.map_or(any, Into::into)).map_err(|parse::Errors(all)| {
            let told = |e: &parse::Error| Error { place: Place::Line(e.line), message: e.mistake.to_string() };
            all.iter().map(told).collect::<Vec<_>>()
        })?;
        for (i, operand) in self.operands.iter().enumerate() {
            let name = &operand.name;
            if !read.named[i] {
                errors.push(Error { place: Place::Operand(i), message: format!("no instruction uses `{{{name}}}`") });
            } else if operand.direction.leaves() && !read.written[i] {
                let message = match operand.direction {
                    Direction::InOut => format!("no instruction writes `{{{name}}}`: make it `in({})`", operand.ty),
                    _ => format!(
                        "every instruction that writes the output `{{{name}}}` is predicated: make it `inout`, which keeps its value if the predicate is false"
                    ),
                };
                errors.push(Error { place: Place::Operand(i), message });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Inline { source: self.clone(), module: Box::new(read.module), effect: read.effect })
    }
}

impl Inline {
    /// As the kernel says it.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// What it does beside computing.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The module that holds it: one function, which nothing calls.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The function: its registers, and its instructions.
    pub fn function(&self) -> &Function {
        &self.module.functions[0]
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.function().statements().iter().filter_map(|s| match s {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// The register that stands for an operand, by its index.
    pub fn register(&self, operand: usize) -> Register {
        Register { declaration: operand as u32, number: 0 }
    }

    /// What its instructions refer to.
    pub fn names(&self) -> Names<'_> {
        Names { module: &self.module, function: self.function() }
    }
}

/// Its instructions on one line.
impl fmt::Display for Inline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, instruction) in self.instructions().enumerate() {
            let before = if i > 0 { " " } else { "" };
            write!(f, "{before}{};", In(self.names(), instruction))?;
        }
        Ok(())
    }
}
