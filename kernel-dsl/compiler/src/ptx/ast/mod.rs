//! A PTX module as a tree. The lists of a module and of a function hold the names; uses refer to
//! them by index.

mod function;
mod module;
mod operand;

pub use function::{
    BranchTargets, CallTargets, Callee, Callees, Declaration, Directives, Function, FunctionCall, FunctionKind,
    Inlined, Instruction, Label, Lines, Location, Parameter, Pointer, RegisterId, SourcePosition, Statement,
};
pub use module::{
    ArchitectureVariant, File, Initializer, Item, Linkage, Module, PropertyValue, Section, TargetArchitecture, Variable,
};
pub use operand::{Address, Base, Guard, Operand, Selector, Symbol, Texel};
