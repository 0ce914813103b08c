//! Atomic operations: `atom` where the previous value is used, `red` where it is not.
//!
//! The operations are relaxed and device-wide. PTX forms without scope and order mean that, and
//! sm_61 has no others.

use super::{Emitter, memory_type};
use crate::ir::{Atomic, Place, Type, Value};
use crate::ptx::{Modifier, Opcode, Operand};
use crate::scalar::Scalar;

/// Returns the type by which an instruction of PTX names the element. Sums of signed and unsigned
/// integers are the same bits, and `.s64` has none by itself.
fn named(operation: Atomic, element: Scalar) -> Modifier {
    match (operation, element.bits()) {
        (Atomic::Add, _) if element == Scalar::I64 => Modifier::U64,
        (Atomic::Add | Atomic::Min | Atomic::Max, _) => memory_type(element).modifier(),
        (_, 64) => Modifier::B64,
        _ => Modifier::B32,
    }
}

impl Emitter<'_> {
    pub(super) fn atomic(
        &mut self,
        results: &[Value],
        operation: Atomic,
        place: &Place,
        element: Scalar,
        values: &[Value],
    ) {
        let Some(access) = self.access(place) else { return };
        let typed = values.iter().chain(results).all(|v| self.ty(*v) == Type::Scalar(element));
        if !typed || !operation.takes(element) || values.len() != operation.operands() || results.len() > 1 {
            return self.malformed("an atomic operation that its element type does not have");
        }
        let word = match operation {
            Atomic::Add => Modifier::Add,
            Atomic::Min => Modifier::Min,
            Atomic::Max => Modifier::Max,
            Atomic::And => Modifier::And,
            Atomic::Or => Modifier::Or,
            Atomic::Xor => Modifier::Xor,
            Atomic::Exchange => Modifier::Exch,
            Atomic::CompareExchange => Modifier::Cas,
        };
        let modifiers = [access.space, word, named(operation, element)];
        let operands: Vec<Operand> = values.iter().map(|v| self.operand(*v)).collect();
        let address = access.part(0, element);
        let result = match results.first() {
            Some(result) => Some(self.define(*result)),
            // There is no `red` that exchanges.
            None if matches!(operation, Atomic::Exchange | Atomic::CompareExchange) => {
                Some(self.register(memory_type(element)))
            }
            None => None,
        };
        let (opcode, result) = match result {
            Some(d) => (Opcode::Atom, Some(Operand::Register(d))),
            None => (Opcode::Red, None),
        };
        self.guarded(None, opcode, &modifiers, result.into_iter().chain([address]).chain(operands));
    }
}
