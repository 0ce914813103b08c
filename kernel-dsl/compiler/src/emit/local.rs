//! Arrays in local memory. Each thread has its own copy, and indices need not be constant.

use super::{Emitter, memory_type, register_type};
use crate::ir::{LocalId, Type, Value};
use crate::ptx::{self, Address, Base, Modifier, Opcode, Operand};
use crate::scalar::Scalar;

/// Returns the type of an element in local memory.
fn stored(element: Type) -> ptx::Type {
    match element {
        Type::Scalar(s) => memory_type(s),
        ty => register_type(ty),
    }
}

impl Emitter<'_> {
    pub(super) fn read_local(&mut self, result: Value, local: LocalId, index: Option<Value>) {
        let Some((address, ty)) = self.local_address(local, index) else { return };
        let truth = self.ty(result) == Type::Scalar(Scalar::Bool);
        let to = if truth { self.register(ptx::Type::U32) } else { self.define(result) };
        self.op(Opcode::Ld, [Modifier::Local, ty.modifier()], [to.into(), address]);
        if truth {
            let d = self.define(result);
            self.truth(d, to);
        }
    }

    pub(super) fn write_local(&mut self, local: LocalId, index: Option<Value>, value: Value) {
        let Some((address, ty)) = self.local_address(local, index) else { return };
        let truth = self.ty(value) == Type::Scalar(Scalar::Bool);
        let value = if truth { self.byte(value) } else { self.operand(value) };
        self.op(Opcode::St, [Modifier::Local, ty.modifier()], [address, value]);
    }

    /// Emits the address of an element. Returns it with the type of the element in memory.
    fn local_address(&mut self, local: LocalId, index: Option<Value>) -> Option<(Operand, ptx::Type)> {
        let Some(array) = self.kernel.locals.get(local.0 as usize).filter(|array| array.memory) else {
            self.malformed("a variable that no pass replaced by values");
            return None;
        };
        let (ty, size) = (stored(array.element), array.element_bytes());
        let symbol = match self.locals.get(&local) {
            Some(symbol) => *symbol,
            None => {
                // No Rust name contains `$`, so this name is unique.
                let name = format!("$local_{}", self.locals.len());
                match self.builder.variable(&name, ptx::Space::Local, size, array.bytes()) {
                    Ok(symbol) => *self.locals.entry(local).or_insert(symbol),
                    Err(e) => {
                        self.errors.extend(e.0);
                        return None;
                    }
                }
            }
        };
        let address = match index.map(|i| (i, self.constant(i))) {
            None => Address { base: Base::Symbol(symbol), offset: 0 },
            Some((_, Some(i))) => Address { base: Base::Symbol(symbol), offset: (i as u32).wrapping_mul(size) as i32 },
            Some((i, None)) => {
                let (index, [base, at]) = (self.operand(i), [(); 2].map(|()| self.register(ptx::Type::U32)));
                self.copy(base, Operand::Symbol(symbol, 0));
                let size = Operand::Integer(size.into());
                self.op(Opcode::Mad, [Modifier::Lo, Modifier::U32], [at.into(), index, size, base.into()]);
                Address { base: Base::Register(at), offset: 0 }
            }
        };
        Some((Operand::Address(address), ty))
    }
}
