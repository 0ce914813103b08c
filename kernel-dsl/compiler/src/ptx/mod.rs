//! PTX as data: what a module is made of, what each instruction may look like, and the text.
//!
//! Every instruction form is one row of [`table`], written in the PTX manual's own notation. The legality check reads it
//! ([`Builder::instruction`]), and so does whatever else wants to know of forms: examples for tests, a parser, an
//! interpreter. Opcodes, modifiers, types and special registers are the enumerations of [`words`], each declared with
//! its spelling.
//!
//! A [`Module`] comes from a [`Builder`] only, which checks each instruction against the table and the target as it is
//! appended. So a module that exists holds legal instructions, and its `.version` is the lowest that has them all.

#[macro_use]
pub mod words;

pub mod ast;
pub mod build;
pub mod check;
pub mod form;
pub mod parse;
pub mod print;
pub mod table;

pub use ast::{
    Address, Architecture, Base, Call, Callee, Callees, Declaration, Function, FunctionKind, Guard, Initialiser,
    Instruction, Item, Label, Linkage, Module, Operand, Parameter, Register, Selector, Statement, Symbol, Variable,
};
pub use build::Builder;
pub use check::Illegal;
pub use form::Row;
pub use parse::parse;
pub use print::{In, Names};
pub use words::{Modifier, Opcode, Space, SpecialRegister, Type, Version};
