//! Decodes the syntax tree of a module to code: one entry, with each instruction resolved. Calls
//! are inlined, except those of functions that can call themselves.
//!
//! Unsupported instructions are rejected here by name, before anything runs.

mod bits;
mod call;
mod compare;
mod control;
mod convert;
mod float;
mod frame;
mod integer;
mod memory;
mod moves;
mod operand;
mod place;
pub(super) mod special;
mod stack;
mod texture;
mod video;
mod words;

use super::code::{Code, Condition, Data, DefinednessRule, Inst, InstructionKind, NOWHERE, Pc, Site, SpaceLayout};
use super::global::Places;
use super::inline::{BlockInstruction, Inline, StepAction};
use super::program::Program;
use super::refused::{RefusedInstruction, Unsupported};
use super::registers::{RegisterPlace, StateId};
use super::structure::Structure;
use call::outlined;
use kernel_dsl_compiler::ptx::ast::SourcePosition;
use kernel_dsl_compiler::ptx::form::Set;
use kernel_dsl_compiler::ptx::{
    self, Callee, Function, In, Instruction, Item, Label, Modifier, Module, Opcode, Operand, RegisterId, Space,
    SpecialRegister, Statement, ValueNames, table,
};
use operand::OperandLocation;
pub use operand::VariableLocation;
use place::{declared_shared, reachable};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use words::Words;

/// Unused bytes between variables of one state space.
const VARIABLE_GAP: u32 = 16;

/// The function that decodes an instruction.
#[derive(Clone, Copy)]
enum DecodeFunction {
    Arithmetic,
    Float,
    Integer,
    Bits,
    Comparison,
    Conversion,
    Copy,
    AddressConversion,
    SpaceTest,
    Memory,
    Object,
    Video,
    Control,
    Stack,
    Unsupported,
}

/// Calls are decoded as statements, not as instructions. `istypep` is not supported.
const UNSUPPORTED: &[Opcode] = &[Opcode::Call, Opcode::Istypep];

const GROUPS: [(DecodeFunction, &[Opcode]); 15] = [
    (DecodeFunction::Arithmetic, integer::ARITHMETIC),
    (DecodeFunction::Float, float::OPCODES),
    (DecodeFunction::Integer, integer::OPCODES),
    (DecodeFunction::Bits, bits::OPCODES),
    (DecodeFunction::Comparison, compare::OPCODES),
    (DecodeFunction::Conversion, &[Opcode::Cvt]),
    (DecodeFunction::Copy, &[Opcode::Mov]),
    (DecodeFunction::AddressConversion, &[Opcode::Cvta]),
    (DecodeFunction::SpaceTest, &[Opcode::Isspacep]),
    (DecodeFunction::Memory, memory::OPCODES),
    (DecodeFunction::Object, texture::OPCODES),
    (DecodeFunction::Video, video::OPCODES),
    (DecodeFunction::Control, control::OPCODES),
    (DecodeFunction::Stack, stack::OPCODES),
    (DecodeFunction::Unsupported, UNSUPPORTED),
];

/// The group of each opcode.
static GROUP_OF: [DecodeFunction; Opcode::ALL.len()] = {
    let mut found = [None; Opcode::ALL.len()];
    let mut group = 0;
    while group < GROUPS.len() {
        let (name, opcodes) = GROUPS[group];
        let mut i = 0;
        while i < opcodes.len() {
            assert!(found[opcodes[i] as usize].is_none(), "an opcode is in one group");
            found[opcodes[i] as usize] = Some(name);
            i += 1;
        }
        group += 1;
    }
    let mut all = [DecodeFunction::Unsupported; Opcode::ALL.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = match found[i] {
            Some(group) => group,
            None => panic!("{}", Opcode::ALL[i].spelling()), // is decoded nowhere: add it to `OPCODES` of a file
        };
        i += 1;
    }
    all
};

/// A decoded instruction.
pub(super) struct Decoded {
    kind: InstructionKind,
    reads: SmallVec<[StateId; 4]>,
    writes: SmallVec<[StateId; 2]>,
}

/// An instruction, or the reason why it is rejected.
pub(super) type Result<T = Decoded> = std::result::Result<T, String>;

impl Decoded {
    /// Returns an instruction without registers.
    fn plain(kind: InstructionKind) -> Decoded {
        Decoded { kind, reads: SmallVec::new(), writes: SmallVec::new() }
    }
}

/// A function as it is inlined at one call.
pub(super) struct Frame<'m> {
    pub index: usize,
    pub function: &'m Function,
    registers: HashMap<RegisterId, OperandLocation>,
    labels: Vec<Pc>,
    /// Branches to labels that are not resolved yet.
    forward: Vec<(Pc, usize, Label)>,
    /// The returns to resolve, or `None` in the entry.
    returns_at: Option<Vec<Pc>>,
    variables: Vec<Option<VariableLocation>>,
    parameters: Vec<VariableLocation>,
    returns: Vec<VariableLocation>,
}

/// Decodes an entry of a module.
pub(super) struct Decoder<'m> {
    module: &'m Module,
    code: Code,
    constants: HashMap<(u64, operand::Width), OperandLocation>,
    specials: HashMap<SpecialRegister, OperandLocation>,
    /// The location of each of the module's variables.
    globals: Vec<Option<VariableLocation>>,
    /// Locations of function variables that all threads share, by function and variable.
    own: HashMap<(usize, usize), VariableLocation>,
    /// The registers of the stack's end and of the running routine's frame, if the kernel has a
    /// stack.
    stack: Option<(OperandLocation, OperandLocation)>,
    /// Every register, in the order of allocation.
    registers: Vec<(RegisterPlace, StateId)>,
    /// The functions that are called with a stack, by index in the module, each with its index
    /// among the routines.
    routines: HashMap<usize, usize>,
    /// The routines whose code is still to be decoded, by index in the module.
    pending: Vec<usize>,
    /// The functions that are called with a stack, rather than inlined.
    outlined: HashSet<usize>,
    /// The position in the source of the code, from `.loc`.
    source: Option<String>,
    refusals: Vec<RefusedInstruction>,
    /// Locations of variables that persist between launches; without them, each launch has its own
    /// variables.
    places: Option<&'m Places>,
    /// The functions being inlined, outermost first.
    chain: Vec<usize>,
    site: u32,
}

/// Decodes inline PTX, or returns the first instruction that is not supported.
pub fn decode_inline(code: &ptx::InlineBlock) -> std::result::Result<Inline, RefusedInstruction> {
    let mut decoder = Decoder::new(code.module());
    let mut frame = decoder.frame(0, Vec::new(), Vec::new());
    let mut steps = Vec::new();
    for instruction in code.instructions() {
        let text = In(code.names(), instruction).to_string();
        let divides = matches!(instruction.opcode, Opcode::Div | Opcode::Rem);
        let refuse = |why: String| RefusedInstruction { text: text.clone(), line: None, why };
        decoder.instruction(&mut frame, instruction).map_err(refuse)?;
        for Inst { guard, kind, .. } in std::mem::take(&mut decoder.code.insts) {
            let action = match kind {
                InstructionKind::Compute { body, reason, .. } => StepAction::Compute { body, reason },
                InstructionKind::Clock { to, high } => StepAction::Clock { to, high },
                InstructionKind::ActiveMask(to) => StepAction::ActiveMask(to),
                InstructionKind::Nothing | InstructionKind::Fence { .. } => StepAction::Nothing,
                _ => return Err(refuse("it does more than compute".to_string())),
            };
            steps.push(BlockInstruction { text: text.clone(), divides, guard, action });
        }
    }
    let operands = 0..code.source().operands.len();
    let operands = operands.map(|i| frame.registers.get(&code.register(i)).map(|s| s.place)).collect();
    let Code { sizes, constants, specials, .. } = decoder.code;
    Ok(Inline { steps, sizes, constants, specials, operands })
}

/// Returns whether a comment is one of this project's compiler, which names the source of the
/// instructions after it: `+4 let i = grid::index();`, or a called function before that.
fn names_source(comment: &str) -> bool {
    let is_line = |word: &str| word.strip_prefix('+').is_some_and(|digits| digits.parse::<u32>().is_ok());
    comment.split_whitespace().take(2).any(is_line)
}

impl Program {
    /// Decodes the entry with the given name.
    ///
    /// # Errors
    /// If the module does not define the entry, or the interpreter does not support an instruction
    /// that the entry can reach.
    pub fn decode(module: &Module, entry: &str) -> std::result::Result<Program, Unsupported> {
        decode(module, entry, None)
    }
}

/// Returns the bytes of shared memory that a kernel of the module declares, without decoding it.
pub fn shared_bytes_of(module: &Module, kernel: &str) -> u64 {
    let index = module.functions().iter().position(|f| f.is_entry() && f.body.is_some() && f.name == kernel);
    index.map_or(0, |index| declared_shared(module, &reachable(module, index)))
}

/// Decodes the entry of this name.
///
/// The module's variables are at the locations in `places`; without it, each launch has its own.
pub fn decode(module: &Module, name: &str, places: Option<&Places>) -> std::result::Result<Program, Unsupported> {
    let refuse = |why: String| {
        let refusal = RefusedInstruction { text: format!(".entry {name}"), line: None, why };
        Err(Unsupported { entry: name.to_string(), refusals: vec![refusal] })
    };
    let Some(index) = module.functions().iter().position(|f| f.is_entry() && f.body.is_some() && f.name == name) else {
        let names: Vec<&str> = module.entries().map(|e| e.name.as_str()).collect();
        return refuse(format!("the module does not define it; it has {}", names.join(", ")));
    };
    let reachable = reachable(module, index);
    let outlined = outlined(module, &reachable);
    let mut decoder = Decoder { places, outlined, ..Decoder::new(module) };
    let globals = decoder.place_globals(&reachable);
    let dynamic = decoder.place_shared(&reachable);
    let entry = &module.functions()[index];
    let parameters = entry
        .parameters
        .iter()
        .map(|p| VariableLocation::Memory {
            window: super::code::Window::Param,
            offset: decoder.code.parameters.add(&p.name, p.size(), p.alignment(), 0),
        })
        .collect();
    let mut frame = decoder.frame(index, parameters, Vec::new());
    frame.returns_at = None;
    decoder.function(&mut frame);
    // The end of the body is a return.
    let site = decoder.new_site("}".to_string(), None, None, &entry.name);
    decoder.push(None, Decoded::plain(InstructionKind::Exit), site);
    while let Some(function) = decoder.pending.pop() {
        decoder.routine_body(function);
    }
    if !decoder.refusals.is_empty() {
        return Err(Unsupported { entry: name.to_string(), refusals: decoder.refusals });
    }
    decoder.place_stack();
    let mut code = decoder.code;
    straight_to_the_end(&mut code.insts);
    find_needed_elements(&mut code.insts);
    code.structure = Structure::new(&code.insts);
    code.first_approximation = code.bounds.keys().copied().min().unwrap_or(0);
    let directives = &entry.directives;
    Ok(Program {
        name: name.to_string(),
        code,
        globals,
        dynamic,
        declared_shared: u32::try_from(declared_shared(module, &reachable)).unwrap_or(u32::MAX),
        parameters: entry.parameters.clone(),
        required_threads: directives.required_threads,
        max_threads: directives.max_threads,
        deciding: OnceLock::new(),
    })
}

/// Replaces each branch to an unpredicated `exit` by an `exit`.
fn straight_to_the_end(insts: &mut [Inst]) {
    for pc in 0..insts.len() {
        let InstructionKind::Branch(target) = insts[pc].kind else { continue };
        let end = &insts[target as usize];
        if end.guard.is_none() && matches!(end.kind, InstructionKind::Exit) {
            insts[pc].kind = InstructionKind::Exit;
        }
    }
}

/// Finds the last element of each vector load that an instruction reads. NVIDIA's compiler loads
/// neighbors as one aligned vector, whose other elements can be past the end of a buffer. If
/// nothing reads any element, all are needed.
fn find_needed_elements(insts: &mut [Inst]) {
    let guards = insts.iter().filter_map(|inst| inst.guard.map(|guard| guard.id));
    let read: HashSet<StateId> = insts.iter().flat_map(|inst| inst.reads.iter().copied()).chain(guards).collect();
    for inst in insts {
        let (InstructionKind::Load(access) | InstructionKind::StrongLoad(access)) = &mut inst.kind else { continue };
        let is_read = |data: &Option<Data>| data.is_some_and(|data| read.contains(&data.id));
        let last = access.values.iter().rposition(is_read);
        access.needed = last.map_or(access.values.len(), |last| last + 1) as u32;
    }
}

impl<'m> Decoder<'m> {
    fn new(module: &'m Module) -> Decoder<'m> {
        Decoder {
            module,
            code: Code::default(),
            constants: HashMap::new(),
            specials: HashMap::new(),
            globals: Vec::new(),
            own: HashMap::new(),
            stack: None,
            registers: Vec::new(),
            routines: HashMap::new(),
            pending: Vec::new(),
            outlined: HashSet::new(),
            source: None,
            refusals: Vec::new(),
            places: None,
            chain: Vec::new(),
            site: 0,
        }
    }

    fn refuse(&mut self, text: String, line: Option<u32>, why: String) {
        self.refusals.push(RefusedInstruction { text, line, why });
    }

    /// Returns the frame of function `index` for an inlined call.
    fn frame(&mut self, index: usize, parameters: Vec<VariableLocation>, returns: Vec<VariableLocation>) -> Frame<'m> {
        self.frame_with(index, parameters, returns, None)
    }

    /// Returns the frame of function `index`. The function's local variables are added to `layout`,
    /// the frame of a routine, or else to local memory.
    fn frame_with(
        &mut self,
        index: usize,
        parameters: Vec<VariableLocation>,
        returns: Vec<VariableLocation>,
        mut layout: Option<&mut SpaceLayout>,
    ) -> Frame<'m> {
        let function = &self.module.functions()[index];
        let variables = function.variables.iter().enumerate();
        let variables = variables
            .map(|(i, v)| match v.space {
                Space::Shared | Space::Global | Space::Const => self.own.get(&(index, i)).copied(),
                Space::Local | Space::Param => {
                    let bytes = v.size().and_then(|n| u32::try_from(n).ok())?;
                    Some(match &mut layout {
                        Some(layout) => {
                            VariableLocation::Frame { offset: layout.add(&v.name, bytes, v.alignment(), VARIABLE_GAP) }
                        }
                        None => {
                            VariableLocation::local(self.code.local.add(&v.name, bytes, v.alignment(), VARIABLE_GAP))
                        }
                    })
                }
            })
            .collect();
        Frame {
            index,
            function,
            registers: HashMap::new(),
            labels: vec![NOWHERE; function.labels.len()],
            forward: Vec::new(),
            returns_at: Some(Vec::new()),
            variables,
            parameters,
            returns,
        }
    }

    fn new_site(&mut self, text: String, line: Option<u32>, comment: Option<String>, function: &str) -> u32 {
        let origin = self.source.clone().or(comment);
        self.code.sites.push(Site { text, line, function: function.to_string(), origin });
        self.code.sites.len() as u32 - 1
    }

    /// Returns the index of the next instruction.
    fn next_pc(&self) -> Pc {
        self.code.insts.len() as Pc
    }

    fn push(&mut self, guard: Option<Condition>, decoded: Decoded, site: u32) {
        let Decoded { kind, reads, writes } = decoded;
        self.code.insts.push(Inst { guard, kind, reads, writes, site });
    }

    /// Decodes a function's body, and resolves its branches.
    fn function(&mut self, frame: &mut Frame<'m>) {
        self.chain.push(frame.index);
        let outer = self.source.take();
        let function = frame.function;
        let mut comment: Option<String> = None;
        for (i, statement) in function.statements().iter().enumerate() {
            let line = function.lines.of(i);
            match statement {
                Statement::Label(label) => frame.labels[label.0 as usize] = self.next_pc(),
                Statement::Comment(text) if names_source(text) => comment = Some(text.clone()),
                Statement::Comment(_) => {}
                Statement::Instruction(instruction) => {
                    let names = ValueNames { module: self.module, function };
                    let text = In(names, instruction).to_string();
                    self.site = self.new_site(text.clone(), line, comment.clone(), &function.name);
                    if let Err(why) = self.instruction(frame, instruction) {
                        self.refuse(text, line, why);
                    }
                }
                Statement::Call(call) => {
                    let name = match call.callee {
                        Callee::Function(f) => &self.module.functions()[f as usize].name,
                        Callee::Indirect { .. } => "a register",
                    };
                    let text = format!("call {name}");
                    self.site = self.new_site(text.clone(), line, comment.clone(), &function.name);
                    if let Err(why) = self.call(frame, call) {
                        self.refuse(text, line, why);
                    }
                }
                // Declarations are read where they are used. The other statements have no effect.
                Statement::Registers(_)
                | Statement::Variable(_)
                | Statement::BranchTargets(_)
                | Statement::CallTargets(_)
                | Statement::Open
                | Statement::Close
                | Statement::Pragma(_) => {}
                Statement::Location(location) => self.source = self.source_line(location.position),
            }
        }
        for (pc, which, label) in std::mem::take(&mut frame.forward) {
            let target = frame.labels[label.0 as usize];
            if target == NOWHERE {
                let name = &function.labels[label.0 as usize];
                self.refuse(format!("bra {name}"), None, "its label is not defined".to_string());
                continue;
            }
            match &mut self.code.insts[pc as usize].kind {
                InstructionKind::Branch(to) => *to = target,
                InstructionKind::BranchIndexed { targets, .. } => targets[which] = target,
                _ => {}
            }
        }
        self.chain.pop();
        self.source = outer;
    }

    /// Returns the file and line of a position.
    fn source_line(&self, position: SourcePosition) -> Option<String> {
        let file = self.module.items().iter().find_map(|item| match item {
            Item::File(file) if file.index == position.file => Some(&file.name),
            _ => None,
        })?;
        (position.line > 0).then(|| format!("{file}:{}", position.line))
    }

    fn instruction(&mut self, frame: &mut Frame<'m>, instruction: &Instruction) -> Result<()> {
        let guard = match instruction.guard {
            Some(guard) => Some(self.condition(frame, guard.register, guard.negated)?),
            None => None,
        };
        let flushed = self.flushed(instruction);
        let mut words = Words::new(flushed.as_deref().unwrap_or(&instruction.modifiers));
        let operands = &instruction.operands[..];
        let decoded = self.decoded(frame, instruction.opcode, &mut words, operands)?;
        if let Some(modifier) = words.left() {
            return Err(format!("the interpreter does not support `.{modifier}` of `{}`", instruction.opcode));
        }
        let site = self.site;
        self.push(guard, decoded, site);
        Ok(())
    }

    /// Returns the modifiers with `.ftz` added where the target implies it: before sm_20,
    /// arithmetic on singles flushes subnormals.
    fn flushed(&self, instruction: &Instruction) -> Option<Vec<Modifier>> {
        let given = Set::of(&instruction.modifiers);
        if self.module.target().sm >= 20 || !given.has(Modifier::F32) || given.has(Modifier::Ftz) {
            return None;
        }
        let modifiers: Vec<Modifier> = instruction.modifiers.iter().copied().chain([Modifier::Ftz]).collect();
        let added = Set::of(&modifiers);
        let has_form = table::rows(instruction.opcode).iter().any(|row| added.is_subset_of(row.modifiers));
        has_form.then_some(modifiers)
    }

    fn decoded(&mut self, frame: &mut Frame<'m>, opcode: Opcode, words: &mut Words, operands: &[Operand]) -> Result {
        match GROUP_OF[opcode as usize] {
            DecodeFunction::Arithmetic => self.arithmetic(frame, opcode, words, operands),
            DecodeFunction::Float => self.float(frame, opcode, words, operands),
            DecodeFunction::Integer => self.integer(frame, opcode, words, operands),
            DecodeFunction::Bits => self.bits(frame, opcode, words, operands),
            DecodeFunction::Comparison => self.comparison(frame, opcode, words, operands),
            DecodeFunction::Conversion => self.convert(frame, words, operands),
            DecodeFunction::Copy => self.copy(frame, words, operands),
            DecodeFunction::AddressConversion => self.convert_address(frame, words, operands),
            DecodeFunction::SpaceTest => self.is_space(frame, words, operands),
            DecodeFunction::Memory => self.memory(frame, opcode, words, operands),
            DecodeFunction::Object => self.object(frame, opcode, words, operands),
            DecodeFunction::Video => self.video(frame, opcode, words, operands),
            DecodeFunction::Control => self.control(frame, opcode, words, operands),
            DecodeFunction::Stack => self.allocation(frame, opcode, words, operands),
            DecodeFunction::Unsupported => Err(format!("the interpreter does not support `{opcode}`")),
        }
    }

    /// Returns a computation of `to` from operands, which it reads.
    fn compute(&self, to: OperandLocation, from: &[OperandLocation], body: super::code::Body) -> Decoded {
        Decoded {
            kind: InstructionKind::Compute { body, follows: DefinednessRule::All, reason: "its result is undefined" },
            reads: from.iter().map(|s| s.id).collect(),
            writes: smallvec![to.id],
        }
    }

    /// Returns a computation lane by lane.
    fn lanewise(
        &self,
        to: OperandLocation,
        from: &[OperandLocation],
        function: impl Fn([u64; 4]) -> u64 + Send + Sync + 'static,
    ) -> Decoded {
        let places: SmallVec<[RegisterPlace; 4]> = from.iter().map(|s| s.place).collect();
        self.compute(to, from, super::body::lanewise(to.place, places, Box::new(move |x| (function(x), true))))
    }

    /// Decodes a computation lane by lane whose result may be undefined, for `reason`: `function`
    /// returns the machine's result, and whether the result is defined.
    fn partial(
        &self,
        to: OperandLocation,
        from: &[OperandLocation],
        reason: &'static str,
        function: impl Fn([u64; 4]) -> (u64, bool) + Send + Sync + 'static,
    ) -> Decoded {
        let places: SmallVec<[RegisterPlace; 4]> = from.iter().map(|s| s.place).collect();
        let body = super::body::lanewise(to.place, places, Box::new(function));
        let mut decoded = self.compute(to, from, body);
        decoded.kind = match decoded.kind {
            InstructionKind::Compute { body, follows, .. } => InstructionKind::Compute { body, follows, reason },
            kind => kind,
        };
        decoded
    }
}
