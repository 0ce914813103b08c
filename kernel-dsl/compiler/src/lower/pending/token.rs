//! Variables that hold tokens: registers for each kind of copy that is ever assigned to them.

use crate::Scalar;
use crate::hir::{self, LocalId, Pattern, Statement};
use crate::ir::{self, Op, Type};
use crate::lower::lowerer::Lowerer;
use crate::lower::lowerer::copies::{CopyKind, CopySlot};
use crate::lower::lowerer::frame::LocalBinding;
use crate::lower::lowerer::value::{Storage, Val};

impl<'h> Lowerer<'h> {
    /// Returns the variable for tokens that a statement declares.
    pub(in crate::lower) fn token_variable(&self, statement: &Statement) -> Option<LocalId> {
        let Statement::Let { pattern: Pattern::Local(id), value: Some(_), .. } = statement else { return None };
        let local = &self.function().locals[id.0 as usize];
        (local.mutable && matches!(self.ty(local.ty), hir::Type::Pending)).then_some(*id)
    }

    /// Binds a variable for tokens: registers for the copies of its first value, and for those
    /// assigned later.
    pub(in crate::lower) fn bind_token(&mut self, id: LocalId, value: Val) {
        let Val::Pending(copies) = &value else { return };
        let mut kinds: Vec<CopyKind> = copies.iter().map(|f| f.kind.clone()).collect();
        let token = self.tokens.next_variable();
        kinds.extend(self.tokens.added_later(token));
        let name = self.function().locals[id.0 as usize].name.clone();
        let mut local = |ty: Scalar| {
            let locals = &mut self.builder.kernel.locals;
            locals.push(ir::Local { name: name.clone(), element: Type::Scalar(ty), len: 1, memory: false });
            ir::LocalId(locals.len() as u32 - 1)
        };
        let slots = kinds.into_iter().map(|kind| CopySlot {
            issued: local(Scalar::Bool),
            prefix: (0..kind.prefix).map(|_| local(Scalar::Usize)).collect(),
            data: kind.types.iter().map(|ty| local(*ty)).collect(),
            kind,
        });
        let storage = Storage::Pending { token, slots: slots.collect() };
        self.write_token(&storage, value);
        self.frame_mut().bindings[id.0 as usize] = LocalBinding::Variable(storage);
    }

    /// Assigns a token to a variable. Registers of copies that the token lacks become zero, so that
    /// a loop without the copy does not keep their old contents alive.
    pub(in crate::lower) fn write_token(&mut self, storage: &Storage, value: Val) {
        let (Storage::Pending { token, slots }, Val::Pending(mut copies)) = (storage, value) else { return };
        for slot in slots {
            let locals = std::iter::once(&slot.issued).chain(&slot.prefix).chain(&slot.data);
            match copies.iter().position(|f| f.kind == slot.kind) {
                Some(i) => {
                    let copy = copies.remove(i);
                    for (local, value) in locals.zip(copy.values()) {
                        self.builder.effect(Op::WriteLocal { local: *local, index: None, value });
                    }
                }
                None => {
                    for (local, ty) in locals.zip(slot.kind.value_types()) {
                        let value = self.builder.value(Op::Constant(0), ty);
                        self.builder.effect(Op::WriteLocal { local: *local, index: None, value });
                    }
                }
            }
        }
        // Registers for these are added when the code after the `let` is lowered again.
        self.tokens.add_missing(*token, copies.into_iter().map(|f| f.kind));
    }

    /// Moves a token out of a variable.
    pub(in crate::lower) fn take_token(&mut self, slots: &[CopySlot]) -> Val {
        let mut copies = Vec::new();
        for slot in slots {
            let locals: Vec<ir::LocalId> = std::iter::once(slot.issued)
                .chain(slot.prefix.iter().copied())
                .chain(slot.data.iter().copied())
                .collect();
            let types: Vec<Type> = slot.kind.value_types().collect();
            let mut read = Vec::new();
            for (local, ty) in locals.into_iter().zip(types) {
                read.push(self.builder.value(Op::ReadLocal { local, index: None }, ty));
            }
            copies.extend(slot.kind.clone().copy(&mut read.into_iter()));
        }
        Val::Pending(copies)
    }

    /// Rejects a variable for tokens that is assigned its own value and another copy of the same
    /// kind.
    fn reject_self_join(&mut self, statement: &Statement) {
        let Some(id) = self.token_variable(statement) else { return };
        let local = &self.function().locals[id.0 as usize];
        let message = format!(
            "`{}` joins its own value with another copy, so the number of copies in flight is unknown",
            local.name
        );
        let help = "wait for the token before the next copy starts, or bind each copy to its own name and join them: `a.and(b)`";
        self.error_with_help(local.span, message, help);
    }

    /// Lowers the statements of a block from number `first` on, the declaration of a variable for
    /// tokens. Lowers them again if the variable is assigned copies that it has no registers for.
    pub(in crate::lower) fn with_token(&mut self, block: &'h hir::Block, first: usize) -> Val {
        let token = self.tokens.variables;
        loop {
            let before = self.clone();
            self.statement(&block.statements[first]);
            let value = self.statements(block, first + 1);
            let Some(missing) = self.tokens.take_missing(token) else { return value };
            // Kinds name conversions by number, so the conversions stay.
            let conversions = std::mem::take(&mut self.tokens.conversions);
            *self = before;
            self.tokens.conversions = conversions;
            if !self.tokens.add_later(token, missing) {
                // The variable would never have room for its own copies and one more of the same
                // kind.
                self.reject_self_join(&block.statements[first]);
                return value;
            }
        }
    }
}
