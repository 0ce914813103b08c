//! Reports of the checked form: the first thread that fails a check claims the launch's record and
//! fills it.

use super::Emitter;
use super::arithmetic::special_register;
use crate::ir::record::{BLOCK, MAX_VALUES, STATE, THREAD, VALUES};
use crate::ir::{Special, Type, Value};
use crate::ptx::{self, Address, Base, Guard, Modifier, Opcode, Operand, RegisterId};

const _: () = assert!(
    THREAD == BLOCK + 3 && VALUES == THREAD + 3 && BLOCK.is_multiple_of(4),
    "the record has the layout in which it is stored"
);

impl Emitter<'_> {
    pub(super) fn report(&mut self, record: Value, state: Value, values: &[Value]) {
        if self.ty(record) != Type::Global || values.len() > MAX_VALUES {
            return self.malformed("a report without a record");
        }
        let base = self.in_register(record);
        let word = |index: usize| Operand::Address(Address { base: Base::Register(base), offset: 4 * index as i32 });
        let old = self.register(ptx::Type::U32);
        let (free, taken) = (Operand::Integer(0), self.operand(state));
        let exchange = [Modifier::Global, Modifier::Cas, Modifier::B32];
        self.op(Opcode::Atom, exchange, [old.into(), word(STATE), free.clone(), taken]);
        let first = self.register(ptx::Type::Pred);
        self.op(Opcode::Setp, [Modifier::Eq, Modifier::U32], [first.into(), old.into(), free]);
        let mut words: Vec<RegisterId> = Vec::new();
        for special in [Special::Block, Special::Thread] {
            for register in (0..3).filter_map(|axis| special_register(special(axis))) {
                let word = self.register(ptx::Type::U32);
                self.op(Opcode::Mov, [Modifier::U32], [word.into(), Operand::Special(register)]);
                words.push(word);
            }
        }
        words.extend(values.iter().map(|v| self.in_register(*v)));
        for (i, part) in words.chunks(4).enumerate() {
            let guard = Some(Guard { register: first, negated: false });
            let mut at = BLOCK + 4 * i;
            // Three remaining words are stored one by one, because a vector has two or four
            // elements.
            let step = if part.len() == 3 { 1 } else { part.len() };
            for piece in part.chunks(step) {
                let vector = match piece.len() {
                    4 => Some(Modifier::V4),
                    2 => Some(Modifier::V2),
                    _ => None,
                };
                let modifiers: Vec<_> = [Modifier::Global].into_iter().chain(vector).chain([Modifier::U32]).collect();
                let from = match piece {
                    [one] => Operand::Register(*one),
                    _ => Operand::Vector(piece.iter().map(|r| Operand::Register(*r)).collect()),
                };
                self.guarded(guard, Opcode::St, &modifiers, [word(at), from]);
                at += piece.len();
            }
        }
    }
}
