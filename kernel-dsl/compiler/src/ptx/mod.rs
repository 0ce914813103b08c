//! PTX as data: what a module is made of, what each instruction may look like, and the text.
//!
//! Every instruction form is one row of [`table`], written in the PTX manual's own notation. Whatever wants to know of
//! forms reads it: the legality check ([`check`]), and with it the emitter's [`Builder`] and the parser ([`parse()`]);
//! examples for tests; an interpreter. Opcodes, modifiers, types and special registers are the enumerations of
//! [`words`], each declared with its spelling.
//!
//! A [`Module`] comes from a [`Builder`] or from the parser, which check each instruction against the table for the
//! module's target and version. So a module that exists holds legal instructions. [`Inline`] is a part of one, which a kernel
//! has written itself.

#[macro_use]
pub mod words;

pub mod ast;
pub mod build;
pub mod check;
pub mod form;
pub mod inline;
mod meaning;
pub mod parse;
pub mod print;
pub mod table;

pub use ast::{
    Address, Architecture, Base, Call, Callee, Callees, Declaration, Function, FunctionKind, Guard, Initialiser,
    Instruction, Item, Label, Linkage, Module, Operand, Parameter, Register, Selector, Statement, Symbol, Texel,
    Variable,
};
pub use build::Builder;
pub use check::Illegal;
pub use form::Row;
pub use inline::Inline;
pub use parse::parse;
pub use print::{In, Names};
pub use words::{Modifier, Opcode, Property, Sampling, Space, SpecialRegister, TargetOption, Type, Version};
