//! Atomic operations: `atom` where the previous value is used, `red` where it is not.
//!
//! The operations are relaxed and device-wide. PTX forms without scope and order mean that, and
//! sm_61 has no others. Loads and stores are `volatile`, which is relaxed too.
//!
//! The machine has no operations on 8 and 16 bits, and no minimum and maximum of floats. These
//! operations are loops: load the word of the element, compute the new word, and exchange it if the
//! word is still the same.

use super::{Emitter, memory_type, register_type};
use crate::ir::{AccessPlace, AtomicOperator, Type, Value};
use crate::ptx::{self, Address, Base, Guard, Modifier, Opcode, Operand, RegisterId};
use crate::scalar::Scalar;

/// Returns the type that names the element in a PTX instruction. A sum has the same bits for signed
/// and unsigned integers, so `.u64` replaces `.s64`, which `add` does not have.
fn named(operation: AtomicOperator, element: Scalar) -> Modifier {
    match (operation, element.bits()) {
        (AtomicOperator::Add, _) if element == Scalar::I64 => Modifier::U64,
        (AtomicOperator::Add | AtomicOperator::Min | AtomicOperator::Max, _) => memory_type(element).modifier(),
        (_, 64) => Modifier::B64,
        _ => Modifier::B32,
    }
}

impl Emitter<'_> {
    pub(super) fn atomic(
        &mut self,
        results: &[Value],
        operation: AtomicOperator,
        place: &AccessPlace,
        element: Scalar,
        values: &[Value],
    ) {
        let Some(access) = self.access(place) else { return };
        let typed = values.iter().chain(results).all(|v| self.ty(*v) == Type::Scalar(element));
        if !typed || !operation.takes(element) || values.len() != operation.operands() || results.len() > 1 {
            return self.malformed("an atomic operation that its element type does not have");
        }
        let operands: Vec<Operand> = values.iter().map(|v| self.operand(*v)).collect();
        let address = access.part(0, element);
        if operation == AtomicOperator::Store {
            let modifiers = [Modifier::Volatile, access.space, memory_type(element).modifier()];
            return self.guarded(None, Opcode::St, &modifiers, [address].into_iter().chain(operands));
        }
        let result = match results.first() {
            Some(result) => Some(self.define(*result)),
            // `red` cannot exchange or load.
            None if matches!(
                operation,
                AtomicOperator::Exchange | AtomicOperator::CompareExchange | AtomicOperator::Load
            ) =>
            {
                Some(self.register(register_type(Type::Scalar(element))))
            }
            None => None,
        };
        if operation.loops(element) {
            let loop_of = Exchanged { space: access.space, operation, element, result };
            return match element.bits() < 32 {
                true => self.exchange_part(loop_of, address, &operands),
                false => self.exchange_extreme(loop_of, address, &operands),
            };
        }
        let word = match operation {
            AtomicOperator::Add => Modifier::Add,
            AtomicOperator::Min => Modifier::Min,
            AtomicOperator::Max => Modifier::Max,
            AtomicOperator::And => Modifier::And,
            AtomicOperator::Or => Modifier::Or,
            AtomicOperator::Xor => Modifier::Xor,
            AtomicOperator::Exchange => Modifier::Exch,
            AtomicOperator::CompareExchange => Modifier::Cas,
            AtomicOperator::Load | AtomicOperator::Store => Modifier::Volatile,
        };
        let (opcode, modifiers) = match (operation, result) {
            (AtomicOperator::Load, _) => {
                (Opcode::Ld, [Modifier::Volatile, access.space, memory_type(element).modifier()])
            }
            (_, Some(_)) => (Opcode::Atom, [access.space, word, named(operation, element)]),
            (_, None) => (Opcode::Red, [access.space, word, named(operation, element)]),
        };
        let result = result.map(Operand::Register);
        self.guarded(None, opcode, &modifiers, result.into_iter().chain([address]).chain(operands));
    }

    /// Emits the minimum or maximum of floats.
    fn exchange_extreme(&mut self, of: Exchanged, address: Operand, operands: &[Operand]) {
        let [operand] = operands else { return self.malformed("an extreme of more than one operand") };
        let (bits, raw) = match of.element.bits() {
            64 => (ptx::Type::U64, Modifier::B64),
            _ => (ptx::Type::U32, Modifier::B32),
        };
        let float = register_type(Type::Scalar(of.element));
        let [word, new] = [self.register(bits), self.register(bits)];
        let [old, extreme] = [self.register(float), self.register(float)];
        let which = if of.operation == AtomicOperator::Min { Opcode::Min } else { Opcode::Max };
        let head = self.exchange_begin(of, word, address.clone());
        self.op(Opcode::Mov, [raw], [old.into(), word.into()]);
        self.op(which, [float.modifier()], [extreme.into(), old.into(), operand.clone()]);
        self.op(Opcode::Mov, [raw], [new.into(), extreme.into()]);
        self.exchange_end(of, (word, bits), new, address, head);
        if let Some(result) = of.result {
            self.op(Opcode::Mov, [raw], [result.into(), word.into()]);
        }
    }

    /// Emits an operation on 8 or 16 bits of a word.
    fn exchange_part(&mut self, of: Exchanged, address: Operand, operands: &[Operand]) {
        let Operand::Address(address) = address else { return self.malformed("an access without an address") };
        let (u32, wide) = (ptx::Type::U32, of.space == Modifier::Global);
        let (pointer, raw, unsigned) = match wide {
            true => (ptx::Type::U64, Modifier::B64, Modifier::U64),
            false => (u32, Modifier::B32, Modifier::U32),
        };
        // The address of the word, and the position of the element in the word.
        let [byte, aligned] = [self.register(pointer), self.register(pointer)];
        let [low, shift, mask, rest] = [(); 4].map(|()| self.register(u32));
        let base = match address.base {
            Base::Register(base) => base,
            Base::Symbol(_) => {
                let start = self.register(pointer);
                self.op(Opcode::Mov, [unsigned], [start.into(), base_of(&address)]);
                start
            }
        };
        let offset = Operand::Integer(address.offset.into());
        self.op(Opcode::Add, [unsigned], [byte.into(), base.into(), offset]);
        let truncated = if wide { Opcode::Cvt } else { Opcode::Mov };
        let types = if wide { vec![Modifier::U32, Modifier::U64] } else { vec![Modifier::U32] };
        self.guarded(None, truncated, &types, [low.into(), byte.into()]);
        self.op(Opcode::And, [raw], [aligned.into(), byte.into(), Operand::Integer(-4)]);
        self.op(Opcode::And, [Modifier::B32], [low.into(), low.into(), Operand::Integer(3)]);
        self.op(Opcode::Shl, [Modifier::B32], [shift.into(), low.into(), Operand::Integer(3)]);
        let ones = Operand::Integer((1 << of.element.bits()) - 1);
        self.op(Opcode::Mov, [Modifier::U32], [mask.into(), ones]);
        self.op(Opcode::Shl, [Modifier::B32], [mask.into(), mask.into(), shift.into()]);
        self.op(Opcode::Not, [Modifier::B32], [rest.into(), mask.into()]);

        let ty = register_type(Type::Scalar(of.element));
        let [word, field, put, new] = [(); 4].map(|()| self.register(u32));
        let [old, changed] = [self.register(ty), self.register(ty)];
        let at = Operand::Address(Address { base: Base::Register(aligned), offset: 0 });
        let head = self.exchange_begin(of, word, at.clone());
        self.op(Opcode::Shr, [Modifier::U32], [field.into(), word.into(), shift.into()]);
        self.extend(old, field.into(), of.element);
        let end = match (of.operation, operands) {
            (AtomicOperator::CompareExchange, [expected, value]) => {
                let number = self.flow.number();
                let end = self.builder.label(format!("$kept_{number}"));
                let differs = self.register(ptx::Type::Pred);
                self.op(Opcode::Setp, [Modifier::Ne, ty.modifier()], [differs.into(), old.into(), expected.clone()]);
                self.jump(Some(Guard { register: differs, negated: false }), end);
                self.copy(changed, value.clone());
                Some(end)
            }
            (AtomicOperator::Exchange, [value]) => {
                self.copy(changed, value.clone());
                None
            }
            (operation, [value]) => {
                let (opcode, modifier) = match operation {
                    AtomicOperator::Min => (Opcode::Min, ty.modifier()),
                    AtomicOperator::Max => (Opcode::Max, ty.modifier()),
                    AtomicOperator::And => (Opcode::And, Modifier::B32),
                    AtomicOperator::Or => (Opcode::Or, Modifier::B32),
                    AtomicOperator::Xor => (Opcode::Xor, Modifier::B32),
                    _ => (Opcode::Add, ty.modifier()),
                };
                self.op(opcode, [modifier], [changed.into(), old.into(), value.clone()]);
                None
            }
            _ => return self.malformed("an atomic operation without operand"),
        };
        self.op(Opcode::Shl, [Modifier::B32], [put.into(), changed.into(), shift.into()]);
        self.op(Opcode::And, [Modifier::B32], [put.into(), put.into(), mask.into()]);
        self.op(Opcode::And, [Modifier::B32], [new.into(), word.into(), rest.into()]);
        self.op(Opcode::Or, [Modifier::B32], [new.into(), new.into(), put.into()]);
        self.exchange_end(of, (word, u32), new, at, head);
        if let Some(end) = end {
            self.builder.place(end);
        }
        if let Some(result) = of.result {
            self.copy(result, old.into());
        }
    }

    /// Loads the word and begins the retry loop.
    fn exchange_begin(&mut self, of: Exchanged, word: RegisterId, address: Operand) -> ptx::Label {
        let ty = if of.element.bits() == 64 { Modifier::U64 } else { Modifier::U32 };
        self.op(Opcode::Ld, [Modifier::Volatile, of.space, ty], [word.into(), address]);
        let number = self.flow.number();
        let head = self.builder.label(format!("$exchange_{number}"));
        self.builder.place(head);
        head
    }

    /// Exchanges the word. If the word has changed meanwhile, repeats the loop with the new word.
    fn exchange_end(
        &mut self,
        of: Exchanged,
        (word, ty): (RegisterId, ptx::Type),
        new: RegisterId,
        address: Operand,
        head: ptx::Label,
    ) {
        let found = self.register(ty);
        let raw = if ty == ptx::Type::U64 { Modifier::B64 } else { Modifier::B32 };
        self.op(Opcode::Atom, [of.space, Modifier::Cas, raw], [found.into(), address, word.into(), new.into()]);
        let again = self.register(ptx::Type::Pred);
        self.op(Opcode::Setp, [Modifier::Ne, ty.modifier()], [again.into(), found.into(), word.into()]);
        self.copy(word, found.into());
        self.jump(Some(Guard { register: again, negated: false }), head);
    }
}

/// An atomic operation that is a loop of compare-and-swap.
#[derive(Clone, Copy)]
struct Exchanged {
    space: Modifier,
    operation: AtomicOperator,
    element: Scalar,
    result: Option<RegisterId>,
}

/// Returns the symbol of an address.
fn base_of(address: &Address) -> Operand {
    match address.base {
        Base::Symbol(symbol) => Operand::Symbol(symbol, 0),
        Base::Register(register) => Operand::Register(register),
    }
}
