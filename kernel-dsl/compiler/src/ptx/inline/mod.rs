//! Inline PTX: the instructions of a kernel's `ptx!(…)`, with typed operands.
//!
//! ```text
//! .reg .u32 t; mul.lo.u32 t, {a}, {b}; add.u32 {d}, t, {c};
//! ```
//!
//! A [`InlineSource`] is the block as written: the text, and the operands for the names in braces.
//! [`InlineSource::check`] returns an [`InlineBlock`], whose instructions are legal and mean the
//! same on every executor:
//!
//! * Each instruction is in the table, its operands have the declared types, and the target
//!   supports it.
//! * Each instruction computes registers from registers. Control flow, memory accesses and
//!   communication between lanes are rejected, with the language construct to use, which the oracle
//!   can check.
//! * The result bits are determined: there is no approximation, and no sum or product that the
//!   assembler may contract.
//! * Registers are written before they are read, in every lane, and so are the results. The carry
//!   does not enter or leave the block.
//!
//! So a block is a function of its operands, unless an instruction reads the state of the machine
//! ([`Effect`]).

mod rules;

pub(super) use rules::{effect_of, effect_of_special, reads_carry, refused, unspecified_result, writes_carry};

use super::ast::{ArchitectureVariant, Function, Instruction, Module, RegisterId, Statement, TargetArchitecture};
use super::parse;
use super::print::{In, ValueNames};
use super::words::Type;
use crate::scalar::Scalar;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A block as written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InlineSource {
    /// The instructions and register declarations. Several literals are joined by line breaks.
    pub text: String,
    /// The operands for the names in braces.
    pub operands: Vec<InlineOperand>,
}

/// The operand for a name in braces.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InlineOperand {
    /// The name.
    pub name: String,
    /// The direction.
    pub direction: Direction,
    /// The type in Rust.
    pub ty: Scalar,
}

/// The direction of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// An input, which the block does not write.
    In,
    /// An output.
    Out,
    /// An input and output.
    InOut,
}

impl Direction {
    /// Returns whether the operand is an input.
    pub fn enters(self) -> bool {
        self != Direction::Out
    }

    /// Returns whether the operand is an output.
    pub fn leaves(self) -> bool {
        self != Direction::In
    }

    /// Returns the keyword of the direction.
    pub fn name(self) -> &'static str {
        match self {
            Direction::In => "in",
            Direction::Out => "out",
            Direction::InOut => "inout",
        }
    }
}

/// The effect of a block besides computing its results from its operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Effect {
    /// Nothing.
    None,
    /// The block reads the identity of the thread, which never changes.
    Thread,
    /// The block reads the time or the location of the thread, or waits: it is neither moved nor
    /// removed.
    Machine,
}

/// A checked block.
#[derive(Clone, PartialEq, Debug)]
pub struct InlineBlock {
    source: InlineSource,
    /// The module: one function, whose first registers are the operands, in order.
    module: Box<Module>,
    effect: Effect,
}

/// An error in a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    /// The position of the error.
    pub place: InlinePosition,
    /// The message.
    pub message: String,
}

/// A position in a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InlinePosition {
    /// A line of the text, from 1.
    Line(u32),
    /// An operand, by its index.
    Operand(usize),
}

/// Returns the type of the register for an operand; `None` if PTX has no such registers.
pub fn register_type(ty: Scalar) -> Option<Type> {
    Some(match ty {
        Scalar::Bool => Type::Pred,
        Scalar::I8 | Scalar::U8 | Scalar::U128 => return None,
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

impl InlineSource {
    /// Returns the inputs, in order.
    pub fn inputs(&self) -> impl Iterator<Item = &InlineOperand> {
        self.operands.iter().filter(|o| o.direction.enters())
    }

    /// Returns the outputs, in order.
    pub fn outputs(&self) -> impl Iterator<Item = &InlineOperand> {
        self.operands.iter().filter(|o| o.direction.leaves())
    }

    /// Checks the block for `target`. Without a target, checks that the block is legal for at least
    /// one.
    pub fn check(&self, target: Option<Target>) -> Result<InlineBlock, Vec<Error>> {
        let mut errors = Vec::new();
        let mut wrong = |i: usize, message: String| errors.push(Error { place: InlinePosition::Operand(i), message });
        for (i, operand) in self.operands.iter().enumerate() {
            let name = &operand.name;
            if register_type(operand.ty).is_none() {
                let (bits, suitable) = match operand.ty {
                    Scalar::U128 => (128, "two operands of `u64`"),
                    ty if ty.is_signed() => (8, "`i32`"),
                    _ => (8, "`u32`"),
                };
                let why = format!("PTX has no {bits}-bit registers: make it {suitable}");
                wrong(i, format!("the operand `{name}` has {bits} bits, and {why}"));
            }
            if self.operands[..i].iter().any(|o| o.name == *name) {
                wrong(i, format!("duplicate operand `{name}`"));
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let any = TargetArchitecture { sm: u16::MAX, variant: ArchitectureVariant::General };
        let read = parse::inline(self, target.map_or(any, Into::into)).map_err(|parse::ParseErrors(all)| {
            let error =
                |e: &parse::Error| Error { place: InlinePosition::Line(e.line), message: e.mistake.to_string() };
            all.iter().map(error).collect::<Vec<_>>()
        })?;
        for (i, operand) in self.operands.iter().enumerate() {
            let name = &operand.name;
            if !read.named[i] {
                errors.push(Error {
                    place: InlinePosition::Operand(i),
                    message: format!("no instruction uses `{{{name}}}`"),
                });
            } else if operand.direction.leaves() && !read.written[i] {
                let message = match operand.direction {
                    Direction::InOut => format!("no instruction writes `{{{name}}}`: make it `in({})`", operand.ty),
                    _ => format!(
                        "every instruction that writes the output `{{{name}}}` is predicated: make it `inout`, which keeps its value if the predicate is false"
                    ),
                };
                errors.push(Error { place: InlinePosition::Operand(i), message });
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(InlineBlock { source: self.clone(), module: Box::new(read.module), effect: read.effect })
    }
}

impl InlineBlock {
    /// Returns the block as written.
    pub fn source(&self) -> &InlineSource {
        &self.source
    }

    /// Returns the effect of the block.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// Returns the module of the block: one function, which nothing calls.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Returns the function with the registers and instructions of the block.
    pub fn function(&self) -> &Function {
        &self.module.functions[0]
    }

    /// Returns the instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = &Instruction> {
        self.function().statements().iter().filter_map(|s| match s {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        })
    }

    /// Returns the register for the operand with this index.
    pub fn register(&self, operand: usize) -> RegisterId {
        RegisterId { declaration: operand as u32, number: 0 }
    }

    /// Returns the names that the printer needs for registers, variables and functions.
    pub fn names(&self) -> ValueNames<'_> {
        ValueNames { module: &self.module, function: self.function() }
    }
}

/// Formats the instructions on one line.
impl fmt::Display for InlineBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, instruction) in self.instructions().enumerate() {
            let before = if i > 0 { " " } else { "" };
            write!(f, "{before}{};", In(self.names(), instruction))?;
        }
        Ok(())
    }
}
