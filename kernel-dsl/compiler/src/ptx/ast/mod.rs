//! A PTX module as a tree. Names live in the lists of a module and of a function; what uses them refers by index.

mod function;
mod module;
mod operand;

pub use function::{
    BranchTargets, Call, CallTargets, Callee, Callees, Declaration, Directives, Function, FunctionKind, Inlined,
    Instruction, Label, Lines, Location, Parameter, Pointer, Position, Register, Statement,
};
pub use module::{Architecture, File, Initialiser, Item, Linkage, Module, Section, Setting, Variable, Variant};
pub use operand::{Address, Base, Guard, Operand, Selector, Symbol, Texel};
