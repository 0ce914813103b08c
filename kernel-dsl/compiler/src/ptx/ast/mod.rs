//! A PTX module as a tree. The lists of a module and of a function hold the names; uses refer to
//! them by index.

mod function;
mod module;
mod operand;

pub use function::{
    BranchTargets, Call, CallTargets, Callee, Callees, Declaration, Directives, Function, FunctionKind, Inlined,
    Instruction, Label, Lines, Location, Parameter, Pointer, Position, Register, Statement,
};
pub use module::{Architecture, File, Initializer, Item, Linkage, Module, PropertyValue, Section, Variable, Variant};
pub use operand::{Address, Base, Guard, Operand, Selector, Symbol, Texel};
