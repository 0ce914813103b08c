//! A PTX module as a tree. The lists of a module and of a function hold the names; uses refer to
//! them by index.

mod function;
mod module;
mod operand;

pub use function::{
    BranchTargets, Call, CallTargets, Callee, Callees, Declaration, Directives, Function, FunctionKind, Inlined,
    Instruction, Label, Lines, Location, Parameter, Pointer, Register, SourcePosition, Statement,
};
pub use module::{
    File, Initializer, Item, Linkage, Module, PropertyValue, Section, TargetArchitecture, Variable, Variant,
};
pub use operand::{Address, Base, Guard, Operand, Selector, Symbol, Texel};
