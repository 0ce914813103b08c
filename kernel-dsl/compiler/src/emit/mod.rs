//! Optimized IR to a PTX AST.
//!
//! Each value of the IR has its own register, with two exceptions. Constants become operands, and
//! casts that change no bits share the register of their operand. `control` defines when a
//! loop-carried value keeps one register throughout the loop.
//!
//! Integers of 8 and 16 bits live in 32-bit registers, sign- or zero-extended according to their
//! type. An instruction that could leave other upper bits is followed by an extension. A `bf16` is
//! stored like a `u16`. An `f16` has a 16-bit register, as `cvt` requires. A `bool` is a predicate
//! in registers and a byte in memory.
//!
//! Shared memory is one array of bytes, `$smem`, laid out by the IR. If the launch sets the size of
//! a part of the array, the launch sets the size of the whole array. A constant of [`Type::Shared`]
//! becomes part of an access's address: `[$smem+64]`. Other values of that type live in a register
//! that holds the full address: the base of the array is added where such a value is made from an
//! offset. `$smem` is read into a register once. ptxas knows the location of the array and folds
//! the addition.
//!
//! Each group of instructions follows a comment with its line of Rust. [`LineDirectives::Kept`]
//! adds the same information for tools, as `.file` and `.loc` directives.

mod arithmetic;
mod atomic;
mod bits;
mod carry;
mod cast;
mod control;
mod grid;
mod header;
mod inline;
mod lines;
mod local;
mod log;
mod memory;
mod moves;
mod packed;
mod report;
mod survey;
mod table;
mod warp;

use crate::error::{Error, Errors};
use crate::ir::{Kernel, LocalId, Location, Op, TableId, Type, Value, WaitGroup};
use crate::passes::Optimized;
use crate::ptx::{self, Guard, Instruction, Modifier, Opcode, Operand, RegisterId, Symbol};
use crate::scalar::Scalar;
use std::collections::HashMap;
use survey::KernelFacts;

pub use lines::{LineDirectives, file_name};

/// Returns the PTX module of one instance, without lines.
pub fn emit(kernel: &Optimized) -> Result<ptx::Module, Errors> {
    emit_with(kernel, LineDirectives::Omitted)
}

/// Returns the PTX module of one instance.
pub fn emit_with(kernel: &Optimized, lines: LineDirectives) -> Result<ptx::Module, Errors> {
    let mut emitter = Emitter::new(kernel, lines)?;
    emitter.header();
    emitter.parameters();
    emitter.shared_base();
    emitter.body();
    if emitter.errors.is_empty() { emitter.builder.finish() } else { Err(Errors(emitter.errors)) }
}

/// The name of the block's shared memory, which no Rust name can equal.
const SHARED: &str = "$smem";

struct Emitter<'k> {
    kernel: &'k Kernel,
    builder: ptx::ModuleBuilder,
    errors: Vec<Error>,
    /// The source location of the current instruction. `written` is the line that was written last.
    location: Option<Location>,
    written: Option<(u32, u16)>,
    lines: LineDirectives,
    /// The PTX form of each value that is defined so far.
    bindings: Vec<Option<ValueForm>>,
    flow: control::EmissionState,
    /// The registers of those parameters that are used.
    parameters: Vec<Option<RegisterId>>,
    shared: Option<Symbol>,
    /// The arrays in local memory that are declared.
    locals: HashMap<LocalId, Symbol>,
    /// The declared tables, by table and state space.
    tables: HashMap<(TableId, ptx::Space), Symbol>,
    /// The declarations for calls of `vprintf`, after the first call.
    log: Option<log::LogSymbols>,
    /// The register that holds the address of the block's shared memory, where one is needed.
    shared_base: Option<RegisterId>,
}

/// The PTX form of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ValueForm {
    Register(RegisterId),
    /// Bits, zero-extended.
    Constant(u64),
}

/// Returns the type of the registers that hold values of `ty`.
fn register_type(ty: Type) -> ptx::Type {
    match ty {
        Type::Scalar(s) => scalar_type(s),
        Type::Global | Type::Constant => ptx::Type::U64,
        Type::Shared => ptx::Type::U32,
    }
}

fn scalar_type(s: Scalar) -> ptx::Type {
    match s {
        Scalar::Bool => ptx::Type::Pred,
        Scalar::I8 | Scalar::I16 | Scalar::I32 => ptx::Type::S32,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::Usize => ptx::Type::U32,
        Scalar::I64 => ptx::Type::S64,
        // The IR has no `u128`, whose words are `u64`.
        Scalar::U64 | Scalar::U128 => ptx::Type::U64,
        Scalar::F16 => ptx::Type::B16,
        // Lowering packs and unpacks these types by integer operations.
        Scalar::Bf16 | Scalar::Custom(_) => ptx::Type::U32,
        Scalar::F32 => ptx::Type::F32,
        Scalar::F64 => ptx::Type::F64,
    }
}

/// Returns the type of an element in memory or of a parameter.
fn memory_type(s: Scalar) -> ptx::Type {
    match s {
        Scalar::Bool | Scalar::U8 => ptx::Type::U8,
        Scalar::I8 => ptx::Type::S8,
        Scalar::I16 => ptx::Type::S16,
        Scalar::U16 | Scalar::Bf16 | Scalar::Custom(_) => ptx::Type::U16,
        _ => scalar_type(s),
    }
}

/// Returns the bits of type `ty`, zero-extended, as an operand.
fn constant(ty: Type, bits: u64) -> Operand {
    match ty {
        Type::Scalar(Scalar::F32) => Operand::F32(bits as u32),
        Type::Scalar(Scalar::F64) => Operand::F64(bits),
        Type::Scalar(s) if s.is_signed() => {
            let unused = 64 - s.bits();
            Operand::Integer((bits << unused) as i64 >> unused)
        }
        _ => Operand::Integer(bits as i64),
    }
}

impl<'k> Emitter<'k> {
    fn new(kernel: &'k Kernel, lines: LineDirectives) -> Result<Emitter<'k>, Errors> {
        Ok(Emitter {
            kernel,
            builder: ptx::ModuleBuilder::new(kernel.target, &kernel.name)?,
            errors: Vec::new(),
            location: None,
            written: None,
            lines,
            bindings: vec![None; kernel.values.len()],
            flow: control::EmissionState::new(KernelFacts::new(kernel)),
            parameters: Vec::with_capacity(kernel.parameters.len()),
            shared: None,
            locals: HashMap::new(),
            tables: HashMap::new(),
            log: None,
            shared_base: None,
        })
    }

    /// Records an error at the current place.
    fn error(&mut self, error: Error) {
        let place = self.location.and_then(|l| {
            let at = self.kernel.locations.get(l.0 as usize)?;
            Some((self.kernel.sources.get(at.source as usize)?.clone(), at.span))
        });
        self.errors.push(Error { place: error.place.or(place), ..error });
    }

    /// Records that the IR is not in the form that emission accepts.
    fn malformed(&mut self, what: &str) {
        self.error(
            Error::without_span(format!("internal: emission met {what}"))
                .help("this is a mistake of the compiler's passes, not of the kernel; please report it"),
        );
    }

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// Returns the scalar type of a value that must have one.
    fn scalar(&mut self, value: Value) -> Option<Scalar> {
        let scalar = self.ty(value).scalar();
        if scalar.is_none() {
            self.malformed("arithmetic on an address");
        }
        scalar
    }

    fn register(&mut self, ty: ptx::Type) -> RegisterId {
        self.builder.register(ty)
    }

    fn bind(&mut self, value: Value, register: RegisterId) {
        self.bindings[value.0 as usize] = Some(ValueForm::Register(register));
        self.flow.occupy(register, value);
    }

    /// Returns the register for `value`, which is being defined. The register may be that of an
    /// operand, so the instruction that writes it must come after all reads of the operands.
    fn define(&mut self, value: Value) -> RegisterId {
        let register = match self.flow.assigned_register(value) {
            Some(register) => register,
            None => self.register(register_type(self.ty(value))),
        };
        self.bind(value, register);
        register
    }

    fn binding(&mut self, value: Value) -> ValueForm {
        let value = self.flow.survey.root(value);
        self.bindings[value.0 as usize].unwrap_or_else(|| {
            // After an error, the missing definition is not a second error.
            if self.errors.is_empty() {
                self.malformed("a value before its definition");
            }
            ValueForm::Constant(0)
        })
    }

    /// Returns the bits of `value`, if it is constant.
    fn constant(&mut self, value: Value) -> Option<u64> {
        match self.binding(value) {
            ValueForm::Constant(bits) => Some(bits),
            ValueForm::Register(_) => None,
        }
    }

    /// Returns `value` as an operand: its register, or the constant.
    fn operand(&mut self, value: Value) -> Operand {
        match self.binding(value) {
            ValueForm::Register(r) => Operand::Register(r),
            ValueForm::Constant(bits) => match (self.ty(value), self.shared) {
                (Type::Shared, Some(symbol)) => Operand::Symbol(symbol, bits as i32),
                (ty, _) => constant(ty, bits),
            },
        }
    }

    /// Returns a register with `value`: its register, or a new one for a constant.
    fn in_register(&mut self, value: Value) -> RegisterId {
        match self.operand(value) {
            Operand::Register(r) => r,
            constant => {
                let register = self.register(register_type(self.ty(value)));
                self.copy(register, constant);
                register
            }
        }
    }

    /// Appends an instruction.
    fn op<const M: usize, const N: usize>(&mut self, opcode: Opcode, modifiers: [Modifier; M], operands: [Operand; N]) {
        self.guarded(None, opcode, &modifiers, operands);
    }

    /// Appends an instruction that only some lanes execute.
    fn guarded(
        &mut self,
        guard: Option<Guard>,
        opcode: Opcode,
        modifiers: &[Modifier],
        operands: impl IntoIterator<Item = Operand>,
    ) {
        self.line();
        let modifiers = modifiers.iter().copied().collect();
        let operands = operands.into_iter().collect();
        if let Err(illegal) = self.builder.instruction(Instruction { guard, opcode, modifiers, operands }) {
            self.error(Error::without_span(illegal.to_string()));
        }
    }

    /// Appends a copy of `from` into `to`.
    fn copy(&mut self, to: RegisterId, from: Operand) {
        let mut ty = self.builder.entry().ty(to);
        if let Operand::Register(r) = from
            && self.builder.entry().ty(r) != ty
        {
            // Registers of different types: the copy moves untyped bits.
            ty = if ty.bits() == 64 { ptx::Type::B64 } else { ptx::Type::B32 };
        }
        self.op(Opcode::Mov, [ty.modifier()], [to.into(), from]);
    }

    /// Loads the parameters that the kernel uses.
    fn parameters(&mut self) {
        let kernel = self.kernel;
        for (i, p) in kernel.parameters.iter().enumerate() {
            let ty = match p.ty() {
                Type::Scalar(s) => memory_type(s),
                ty => register_type(ty),
            };
            let symbol = match self.builder.parameter(&p.name, ty) {
                Ok(symbol) => symbol,
                Err(e) => return self.errors.extend(e.0),
            };
            if i == 0 && self.flow.survey.parameters.contains(&true) {
                self.builder.comment("parameters");
            }
            let used = self.flow.survey.parameters[i];
            let register = used.then(|| self.load_parameter(p.ty(), ty, symbol));
            self.parameters.push(register);
        }
    }

    /// Reads the address of shared memory into a register, if the kernel needs one.
    fn shared_base(&mut self) {
        let bytes = self.kernel.shared_bytes();
        let declared = match (self.kernel.dynamic.is_empty(), bytes) {
            (true, 0) => return,
            (true, _) => self.builder.variable(SHARED, ptx::Space::Shared, 16, bytes),
            // The launch sets the size of all shared memory.
            (false, _) => self.builder.global(ptx::Variable {
                linkage: ptx::Linkage::Extern,
                dimensions: vec![None],
                ..ptx::Variable::bytes(ptx::Space::Shared, 16, SHARED, 0)
            }),
        };
        match declared {
            Ok(symbol) => self.shared = Some(symbol),
            Err(e) => return self.errors.extend(e.0),
        }
        if self.flow.survey.shared_base {
            let register = self.register(ptx::Type::U32);
            self.builder.comment("shared memory");
            self.copy(register, Operand::Symbol(self.shared.expect("it was just declared"), 0));
            self.shared_base = Some(register);
        }
    }

    fn body(&mut self) {
        let kernel = self.kernel;
        if self.region(&kernel.body, &[]) {
            // The end of the kernel belongs to no line.
            self.location = None;
            self.op(Opcode::Ret, [], []);
        }
    }

    /// Emits one instruction.
    fn instruction(&mut self, inst: &'k crate::ir::Inst) {
        self.location = Some(inst.location);
        let results = &inst.results;
        let expected = match &inst.op {
            op if op.is_pure() => 1,
            Op::ReadLocal { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Match(_) | Op::Reduce(..) => 1,
            _ => results.len(),
        };
        if results.len() != expected {
            return self.malformed("an instruction with a wrong number of results");
        }
        match &inst.op {
            Op::Constant(bits) => self.bindings[results[0].0 as usize] = Some(ValueForm::Constant(*bits)),
            Op::Parameter(i) => match self.parameters.get(*i as usize) {
                Some(&Some(r)) => self.bind(results[0], r),
                // A parameter without a register is not used.
                Some(None) => {}
                None => self.malformed("a parameter that the kernel does not have"),
            },
            Op::Special(s) => self.special(results[0], *s),
            Op::Table(table) => self.table(results[0], *table),
            Op::Unary(op, a) => self.unary(results[0], *op, *a),
            Op::Binary(op, a, b) => self.binary(results[0], *op, *a, *b),
            Op::MulAdd(a, b, c) => self.mul_add(results[0], *a, *b, *c),
            Op::Approximate(what, a) => self.approximate(results[0], *what, *a),
            Op::Bits(what, operands) => self.bits(results[0], *what, operands),
            Op::Compare(c, a, b) => self.compare(results[0], *c, *a, *b),
            Op::Select { condition, yes, no } => self.select(results[0], *condition, *yes, *no),
            Op::Cast(a) => self.cast(results[0], *a),
            Op::Bitcast(a) => self.bitcast(results[0], *a),
            Op::Offset { base, terms, bytes } => self.offset(results[0], *base, terms, *bytes),
            Op::Load { place, element, policy, guard } => self.load(results, place, *element, *policy, guard.as_ref()),
            Op::Store { place, element, values, guard } => self.store(place, *element, values, *guard),
            Op::Atomic { operation, place, element, values } => {
                self.atomic(results, *operation, place, *element, values);
            }
            Op::Inline { code, inputs } => self.inline(results, code, inputs),
            Op::ReadLocal { local, index } => self.read_local(results[0], *local, *index),
            Op::WriteLocal { local, index, value } => self.write_local(*local, *index, *value),
            Op::Dynamic { .. } => self.malformed("an array of dynamic size without an address"),
            Op::MarkUndef { .. } | Op::LifetimeStart(_) | Op::DbgValue { .. } => {
                self.malformed("an operation that only the oracle runs")
            }
            Op::CopyAsync(copy) => self.copy_async(copy),
            Op::CopyCommit => self.op(Opcode::Cp, [Modifier::Async, Modifier::CommitGroup], []),
            Op::CopyWait(WaitGroup::AllBut(n)) => {
                self.op(Opcode::Cp, [Modifier::Async, Modifier::WaitGroup], [Operand::Integer((*n).into())]);
            }
            Op::CopyWait(WaitGroup::UpTo(_)) => self.malformed("a wait for a group by its number"),
            Op::GridSync => self.grid_sync(),
            Op::BlockSync => self.op(Opcode::Bar, [Modifier::Sync], [Operand::Integer(0)]),
            Op::WarpSync => self.op(Opcode::Bar, [Modifier::Warp, Modifier::Sync], [warp::ALL_LANES]),
            Op::Fence(scope) => self.fence(*scope),
            Op::Match(value) => self.matching(results[0], *value),
            Op::Reduce(operation, value) => self.reduce(results[0], *operation, *value),
            Op::Shuffle { mode, value, selector, width } => self.shuffle(results[0], *mode, *value, *selector, *width),
            Op::Vote { mode, value } => self.vote(results[0], *mode, *value),
            Op::Panic { .. } => self.op(Opcode::Trap, [], []),
            Op::Log { format, values } => self.log(format, values),
            Op::RecordViolation { record, state, values } => self.report(*record, *state, values),
            Op::If { condition, then, otherwise } => self.branch(inst, *condition, then, otherwise),
            Op::For(l) => self.counted(inst, l),
            Op::Loop { label, inits, body } => self.endless(inst, *label, inits, body),
            Op::Block { label, body } => self.block(inst, *label, body),
            Op::Yield(_) | Op::Break(..) | Op::Continue(..) | Op::Return => {
                self.malformed("a terminator inside a region")
            }
        }
    }
}
