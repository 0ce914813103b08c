//! A kernel or a function: its signature, what it declares, and what a thread does.

use super::module::{Linkage, Variable};
use super::operand::{Guard, Operand};
use crate::ptx::words::{Modifier, Opcode, Space, Type};
use smallvec::SmallVec;

/// A kernel or a function.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// Who else sees it.
    pub linkage: Linkage,
    /// Whether it is launched or called.
    pub kind: FunctionKind,
    /// As the driver, the linker or a call finds it.
    pub name: String,
    /// What it returns; of an entry, nothing.
    pub returns: Vec<Parameter>,
    /// In the order of the launch or the call.
    pub parameters: Vec<Parameter>,
    /// What is said of it before the body.
    pub directives: Directives,
    /// Registers, declared by true type.
    pub registers: Vec<Declaration>,
    /// Variables of the body.
    pub variables: Vec<Variable>,
    /// Names of the labels. Two may be the same in different blocks of the body.
    pub labels: Vec<String>,
    /// Where each `brx.idx` may go.
    pub branch_targets: Vec<BranchTargets>,
    /// What is known of each indirect call.
    pub call_targets: Vec<CallTargets>,
    /// What a thread does, in the order of the text; `None` where only the signature is given.
    pub body: Option<Vec<Statement>>,
    /// The line of the text that each statement of the body begins on, if it was read from one.
    pub lines: Lines,
}

/// Whether a function is launched or called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FunctionKind {
    /// `.entry`: a kernel.
    Entry,
    /// `.func`: called by others on the device.
    Device,
}

/// Lines of statements, numbered from 1. What a module is does not depend on them: all are equal.
#[derive(Clone, Default, Debug)]
pub struct Lines(pub(in crate::ptx) Vec<u32>);

impl PartialEq for Lines {
    fn eq(&self, _: &Lines) -> bool {
        true
    }
}

impl Lines {
    /// The line of that statement, if the module was read from text.
    pub fn of(&self, statement: usize) -> Option<u32> {
        self.0.get(statement).copied()
    }
}

/// What is said of a function before its body.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Directives {
    /// `.maxntid`: threads of a block at most, in x, y, z.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: threads of a block exactly, in x, y, z.
    pub required_threads: Option<[u32; 3]>,
    /// `.minnctapersm`: blocks that a multiprocessor is to hold.
    pub min_blocks: Option<u32>,
    /// `.maxnreg`: registers a thread at most.
    pub max_registers: Option<u32>,
    /// `.noreturn`: it never comes back.
    pub no_return: bool,
    /// `.pragma "…";`
    pub pragmas: Vec<String>,
}

/// A parameter, or a value that is returned.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// `_` where a prototype leaves it out.
    pub name: String,
    /// Of an element.
    pub ty: Type,
    /// `.align`, in bytes, where given.
    pub align: Option<u32>,
    /// Elements, if it is an array; `Some(None)` is `[]`.
    pub elements: Option<Option<u32>>,
    /// `.ptr`: what the pointer points to.
    pub pointer: Option<Pointer>,
    /// The register that it is, of a function that takes it in one (`.reg` for `.param`).
    pub register: Option<Register>,
}

impl Parameter {
    /// A scalar.
    pub fn scalar(name: &str, ty: Type) -> Parameter {
        Parameter { name: name.to_string(), ty, align: None, elements: None, pointer: None, register: None }
    }

    /// Its bytes; 0 for an array of no declared length.
    pub fn size(&self) -> u32 {
        let element = self.ty.bits().div_ceil(8);
        self.elements.map_or(element, |n| element.saturating_mul(n.unwrap_or(0)))
    }

    /// Its alignment in bytes: the declared one, or that of its type.
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

/// Registers of one name or one prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub struct Declaration {
    pub ty: Type,
    /// The name; of several, what comes before their numbers.
    pub prefix: String,
    /// `.reg .ty prefix<count>`: registers `prefix0`, `prefix1`, …; without, the one register `prefix`.
    pub count: Option<u32>,
}

impl Declaration {
    /// How many registers it declares.
    pub fn count(&self) -> u32 {
        self.count.unwrap_or(1)
    }
}

/// Register `number` of declaration `declaration`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[allow(missing_docs)]
pub struct Register {
    pub declaration: u32,
    pub number: u32,
}

/// Index into [`Function::labels`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Label(pub u32);

/// `$table: .branchtargets $a, $b;`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchTargets {
    /// Its own label.
    pub name: String,
    /// By the branch's index.
    pub labels: Vec<Label>,
}

/// `$proto: .callprototype …;` or `$table: .calltargets …;`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallTargets {
    /// Its own label.
    pub name: String,
    /// What is known of the functions.
    pub callees: Callees,
}

/// What is known of the functions that a register can hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Callees {
    /// The signature that they have.
    #[allow(missing_docs)]
    Prototype { returns: Vec<Parameter>, parameters: Vec<Parameter>, no_return: bool },
    /// Which they are: indices into the module's functions.
    Functions(Vec<u32>),
}

/// A part of a body.
#[derive(Clone, PartialEq, Debug)]
pub enum Statement {
    /// `$end_2:`
    Label(Label),
    /// A line of comment, without its slashes.
    Comment(String),
    /// An instruction.
    Instruction(Instruction),
    /// A call.
    Call(Box<Call>),
    /// Here the registers of that declaration are declared.
    Registers(u32),
    /// Here the variable of that index is declared.
    Variable(u32),
    /// Here the list of that index is declared.
    BranchTargets(u32),
    /// Here what is known of an indirect call's functions is declared.
    CallTargets(u32),
    /// `{`: what is declared from here to its [`Close`](Statement::Close) is known in between only. They balance.
    Open,
    /// `}`
    Close,
    /// `.pragma "nounroll";`
    Pragma(String),
    /// `.loc`: where in the source the code comes from.
    Location(Location),
}

/// `.loc 1 12 5`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Location {
    /// The place.
    pub position: Position,
    /// Where the code was inlined to, if it was.
    pub inlined: Option<Inlined>,
}

/// A place in a source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    /// As `.file` numbers it.
    pub file: u32,
    /// From 1.
    pub line: u32,
    /// From 1; 0 for the whole line.
    pub column: u32,
}

/// `function_name $L__info_string0+16, inlined_at 1 7 3`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inlined {
    /// The label in the section of strings where the inlined function's name is.
    pub name: String,
    /// Bytes from that label.
    pub offset: u32,
    /// The call's place.
    pub at: Position,
}

/// An instruction with its guard.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// Lanes that execute it, if not all.
    pub guard: Option<Guard>,
    /// First word.
    pub opcode: Opcode,
    /// The words after it, in their order.
    pub modifiers: SmallVec<[Modifier; 6]>,
    /// Destination first.
    pub operands: SmallVec<[Operand; 4]>,
}

/// `call.uni (r), f, (a, b);`
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// Lanes that execute it, if not all.
    pub guard: Option<Guard>,
    /// `.uni`: the lanes of a warp do it together or not at all.
    pub uniform: bool,
    /// Where the returned values go: `.param` variables, or registers.
    pub returns: Vec<Operand>,
    /// What is called.
    pub callee: Callee,
    /// `.param` variables, registers, or constants.
    pub arguments: Vec<Operand>,
}

/// What is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// The function of that index in the module.
    Function(u32),
    /// The function whose address the register has.
    #[allow(missing_docs)]
    Indirect { register: Register, targets: u32 },
}

impl Function {
    /// A function of that name without anything else.
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

    /// Whether it is a kernel.
    pub fn is_entry(&self) -> bool {
        self.kind == FunctionKind::Entry
    }

    /// The type that a register is declared with.
    pub fn ty(&self, register: Register) -> Type {
        self.registers[register.declaration as usize].ty
    }

    /// Numbers the labels in the order in which the body first has them, and forgets the others; label `i` becomes what
    /// `same[i]` becomes.
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

    /// The statements; none where only the signature is given.
    pub fn statements(&self) -> &[Statement] {
        self.body.as_deref().unwrap_or_default()
    }
}
