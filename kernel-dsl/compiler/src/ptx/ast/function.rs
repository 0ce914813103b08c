//! A kernel or function: its signature, declarations and body.

use super::module::{Linkage, Variable};
use super::operand::{Guard, Operand};
use crate::ptx::words::{Modifier, Opcode, Space, Type};
use smallvec::SmallVec;

/// A kernel or a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// The linkage.
    pub linkage: Linkage,
    /// Whether the function is launched or called.
    pub kind: FunctionKind,
    /// The name for the driver, the linker and calls.
    pub name: String,
    /// The returned values; none for an entry.
    pub returns: Vec<Parameter>,
    /// The parameters, in the order of a launch or call.
    pub parameters: Vec<Parameter>,
    /// The directives before the body.
    pub directives: Directives,
    /// The registers.
    pub registers: Vec<Declaration>,
    /// The variables of the body.
    pub variables: Vec<Variable>,
    /// The names of the labels. Different blocks of the body may contain the same name.
    pub labels: Vec<String>,
    /// The lists of possible targets of `brx.idx`.
    pub branch_targets: Vec<BranchTargets>,
    /// The declarations for indirect calls.
    pub call_targets: Vec<CallTargets>,
    /// The statements of the body, in source order; `None` if only the signature is given.
    pub body: Option<Vec<Statement>>,
    /// The source line of each statement, if the module was parsed.
    pub lines: Lines,
}

/// Whether a function is launched or called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: a function called on the device.
    Device,
}

/// The lines of statements, from 1. All values compare equal, because lines do not affect the
/// meaning of a module.
#[derive(Clone, Default, Debug)]
pub struct Lines(pub(in crate::ptx) Vec<u32>);

impl PartialEq for Lines {
    fn eq(&self, _: &Lines) -> bool {
        true
    }
}

impl Lines {
    /// Returns the source line of a statement, if the module was parsed.
    pub fn of(&self, statement: usize) -> Option<u32> {
        self.0.get(statement).copied()
    }
}

/// The directives of a function before its body.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Directives {
    /// `.maxntid`: the largest number of threads of a block in x, y, z.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: the exact number of threads of a block in x, y, z.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`: the number of blocks that a multiprocessor should hold.
    pub min_blocks: Option<u32>,
    /// `.maxnreg`: the largest number of registers of a thread.
    pub max_registers: Option<u32>,
    /// `.noreturn`: the function never returns.
    pub no_return: bool,
    /// `.pragma "…";`
    pub pragmas: Vec<String>,
}

/// A parameter or returned value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The name; `_` if a prototype omits it.
    pub name: String,
    /// The type of an element.
    pub ty: Type,
    /// `.align`, in bytes, if given.
    pub align: Option<u32>,
    /// The number of elements, if it is an array; `Some(None)` is `[]`.
    pub elements: Option<Option<u32>>,
    /// `.ptr`: the properties of the pointer's target.
    pub pointer: Option<Pointer>,
    /// The register, if the function takes the parameter in a register (`.reg` instead of
    /// `.param`).
    pub register: Option<RegisterId>,
}

impl Parameter {
    /// Creates a scalar parameter.
    pub fn scalar(name: &str, ty: Type) -> Parameter {
        Parameter { name: name.to_string(), ty, align: None, elements: None, pointer: None, register: None }
    }

    /// Returns the size in bytes; 0 for an array without a declared length.
    pub fn size(&self) -> u32 {
        let element = self.ty.bits().div_ceil(8);
        self.elements.map_or(element, |n| element.saturating_mul(n.unwrap_or(0)))
    }

    /// Returns the alignment in bytes: the declared one, or that of the type.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or(self.ty.bits().div_ceil(8))
    }
}

/// `.ptr .global .align 16`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Pointer {
    pub space: Option<Space>,
    pub align: Option<u32>,
}

/// A declaration of one register, or of numbered registers with a common prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Declaration {
    pub ty: Type,
    /// The name, or the prefix of numbered registers.
    pub prefix: String,
    /// `.reg .ty prefix<count>`: registers `prefix0`, `prefix1`, …; `None` for the single register
    /// `prefix`.
    pub count: Option<u32>,
}

impl Declaration {
    /// Returns the number of declared registers.
    pub fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }
}

/// Register `number` of declaration `declaration`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub struct RegisterId {
    pub declaration: u32,
    pub number: u32,
}

/// Index into [`Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// `$table: .branchtargets $a, $b;`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchTargets {
    /// The label of the list.
    pub name: String,
    /// The targets, by the index of the branch.
    pub labels: Vec<Label>,
}

/// `$proto: .callprototype …;` or `$table: .calltargets …;`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallTargets {
    /// The label of the list.
    pub name: String,
    /// The possible functions.
    pub callees: Callees,
}

/// The possible functions of an indirect call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callees {
    /// Functions with this signature.
    #[allow(missing_docs)]
    Prototype { returns: Vec<Parameter>, parameters: Vec<Parameter>, no_return: bool },
    /// The possible functions, by index into the module's functions.
    Functions(Vec<u32>),
}

/// A statement of a body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// `$end_2:`
    Label(Label),
    /// A line of comment, without its slashes.
    Comment(String),
    /// An instruction.
    Instruction(Instruction),
    /// A call.
    Call(Box<FunctionCall>),
    /// The declaration of registers with this index.
    Registers(u32),
    /// The declaration of the variable with this index.
    Variable(u32),
    /// The declaration of the list of branch targets with this index.
    BranchTargets(u32),
    /// The declaration for an indirect call with this index.
    CallTargets(u32),
    /// `{`: the scope of declarations up to the matching [`Close`](Statement::Close). Braces are
    /// balanced.
    Open,
    /// `}`
    Close,
    /// `.pragma "nounroll";`
    Pragma(String),
    /// `.loc`: the source position of the code.
    Location(Location),
}

/// `.loc 1 12 5`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The position.
    pub position: SourcePosition,
    /// The call that the code was inlined into, if any.
    pub inlined: Option<Inlined>,
}

/// A position in a source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourcePosition {
    /// The number of the `.file`.
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// The column, from 1; 0 for the whole line.
    pub column: u32,
}

/// `function_name $L__info_string0+16, inlined_at 1 7 3`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inlined {
    /// The label in the section of strings for the name of the inlined function.
    pub name: String,
    /// The offset from that label in bytes.
    pub offset: u32,
    /// The position of the call.
    pub at: SourcePosition,
}

/// An instruction with its guard.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// The guard, if the instruction is predicated.
    pub guard: Option<Guard>,
    /// The opcode.
    pub opcode: Opcode,
    /// The modifiers, in order.
    pub modifiers: SmallVec<[Modifier; 6]>,
    /// The operands, destination first.
    pub operands: SmallVec<[Operand; 4]>,
}

/// `call.uni (r), f, (a, b);`
#[derive(Clone, PartialEq, Debug)]
pub struct FunctionCall {
    /// The guard, if the instruction is predicated.
    pub guard: Option<Guard>,
    /// `.uni`: either all active lanes of a warp make the call, or none.
    pub uniform: bool,
    /// The destinations of the returned values: `.param` variables or registers.
    pub returns: Vec<Operand>,
    /// The callee.
    pub callee: Callee,
    /// `.param` variables, registers, or constants.
    pub arguments: Vec<Operand>,
}

/// The callee.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// The function with this index in the module.
    Function(u32),
    /// The function whose address is in the register.
    #[allow(missing_docs)]
    Indirect { register: RegisterId, targets: u32 },
}

impl Function {
    /// Creates an empty function with this name.
    pub(in crate::ptx) fn new(linkage: Linkage, kind: FunctionKind, name: &str) -> Function {
        Function {
            linkage,
            kind,
            name: name.to_string(),
            returns: Vec::new(),
            parameters: Vec::new(),
            directives: Directives::default(),
            registers: Vec::new(),
            variables: Vec::new(),
            labels: Vec::new(),
            branch_targets: Vec::new(),
            call_targets: Vec::new(),
            body: None,
            lines: Lines::default(),
        }
    }

    /// Returns whether both functions have the same parameters and results, apart from their names.
    pub fn has_signature_of(&self, other: &Function) -> bool {
        let shape = |list: &[Parameter]| -> Vec<_> {
            list.iter().map(|p| (p.ty, p.elements, p.alignment(), p.register.is_some())).collect()
        };
        shape(&self.returns) == shape(&other.returns) && shape(&self.parameters) == shape(&other.parameters)
    }

    /// Returns whether the function is a kernel.
    pub fn is_entry(&self) -> bool {
        self.kind == FunctionKind::Entry
    }

    /// Returns the declared type of a register.
    pub fn ty(&self, register: RegisterId) -> Type {
        self.registers[register.declaration as usize].ty
    }

    /// Renumbers the labels in the order of first use and drops unused labels. Labels `i` and
    /// `same[i]` get the same number.
    pub(in crate::ptx) fn number_labels(&mut self, same: &[u32]) {
        let mut names = Vec::new();
        let mut numbers: Vec<Option<Label>> = vec![None; self.labels.len()];
        let labels = &mut self.labels;
        let mut number = |label: &mut Label| {
            let old = same[label.0 as usize] as usize;
            *label = *numbers[old].get_or_insert_with(|| {
                names.push(std::mem::take(&mut labels[old]));
                Label(names.len() as u32 - 1)
            });
        };
        for statement in self.body.iter_mut().flatten() {
            match statement {
                Statement::Label(label) => number(label),
                Statement::Instruction(i) => i.operands.iter_mut().for_each(|o| {
                    if let Operand::Label(label) = o {
                        number(label);
                    }
                }),
                Statement::BranchTargets(i) => {
                    self.branch_targets[*i as usize].labels.iter_mut().for_each(&mut number);
                }
                _ => {}
            }
        }
        self.labels = names;
    }

    /// Returns the statements; none if only the signature is given.
    pub fn statements(&self) -> &[Statement] {
        self.body.as_deref().unwrap_or_default()
    }
}
