//! PTX as data: modules, instruction forms and text.
//!
//! Every instruction form is one row of [`table`], in the notation of the PTX manual, beside the
//! class, rate and meaning of its instruction. The legality check ([`check`]) reads the table, and
//! through it the emitter's [`ModuleBuilder`] and the parser ([`parse()`]). Tests generate examples
//! from it. Opcodes, modifiers, types and special registers are the enumerations of [`words`], each
//! declared with its spelling.
//!
//! Only a [`ModuleBuilder`] or the parser creates a [`Module`]. Both check each instruction against
//! the table, for the module's target and version. Every module therefore contains only legal
//! instructions.
//! [`InlineBlock`] is a checked block of inline PTX.

#[macro_use]
pub mod words;

pub mod ast;
pub mod build;
pub mod check;
pub mod cost;
mod cost_of_instruction;
pub mod form;
pub mod inline;
pub mod link;
pub mod parse;
pub mod print;
pub mod table;

pub use ast::{
    Address, Base, Callee, Callees, Declaration, Function, FunctionCall, FunctionKind, Guard, Initializer, Instruction,
    Item, Label, Linkage, Module, Operand, Parameter, RegisterId, Selector, Statement, Symbol, TargetArchitecture,
    Texel, Variable,
};
pub use build::ModuleBuilder;
pub use check::Illegal;
pub use form::FormRow;
pub use inline::InlineBlock;
pub use link::link;
pub use parse::parse;
pub use print::{In, ValueNames};
pub use words::{Modifier, Opcode, Property, Sampling, Space, SpecialRegister, TargetOption, Type, Version};
