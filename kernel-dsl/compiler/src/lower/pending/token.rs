//! Variables that hold tokens: registers for each kind of flight that they are ever given.

use super::{Kind, Slot};
use crate::Scalar;
use crate::hir::{self, LocalId, Pattern, Statement};
use crate::ir::{self, Op, Type};
use crate::lower::Lowerer;
use crate::lower::storage::Binding;
use crate::lower::value::{Storage, Val};

impl<'h> Lowerer<'h> {
    /// The variable that a statement makes for tokens.
    pub(in crate::lower) fn token_variable(&self, statement: &Statement) -> Option<LocalId> {
        let Statement::Let { pattern: Pattern::Local(id), value: Some(_), .. } = statement else { return None };
        let local = &self.function().locals[id.0 as usize];
        (local.mutable && matches!(self.ty(local.ty), hir::Type::Pending)).then_some(*id)
    }

    /// Binds a variable for tokens: registers for the flights of its first value, and for those that `later` says come.
    pub(in crate::lower) fn bind_token(&mut self, id: LocalId, value: Val) {
        let Val::Pending(flights) = &value else { return };
        let mut kinds: Vec<Kind> = flights.iter().map(|f| f.kind.clone()).collect();
        kinds.extend(self.later.get(&self.tokens).cloned().unwrap_or_default());
        let name = self.function().locals[id.0 as usize].name.clone();
        let mut local = |ty: Scalar| {
            let locals = &mut self.builder.kernel.locals;
            locals.push(ir::Local { name: name.clone(), element: Type::Scalar(ty), len: 1 });
            ir::LocalId(locals.len() as u32 - 1)
        };
        let slots = kinds.into_iter().map(|kind| Slot {
            begun: local(Scalar::Bool),
            prefix: (0..kind.prefix).map(|_| local(Scalar::Usize)).collect(),
            data: kind.types.iter().map(|ty| local(*ty)).collect(),
            kind,
        });
        let storage = Storage::Pending { token: self.tokens, slots: slots.collect() };
        self.tokens += 1;
        self.write_token(&storage, value);
        self.frame_mut().bindings[id.0 as usize] = Binding::Variable(storage);
    }

    /// Hands a token to a variable. Registers of copies that it has not are zero from here on: what they held is no more
    /// needed, and a loop that goes on without a copy does not keep it.
    pub(in crate::lower) fn write_token(&mut self, storage: &Storage, value: Val) {
        let (Storage::Pending { token, slots }, Val::Pending(mut flights)) = (storage, value) else { return };
        for slot in slots {
            let locals = std::iter::once(&slot.begun).chain(&slot.prefix).chain(&slot.data);
            match flights.iter().position(|f| f.kind == slot.kind) {
                Some(i) => {
                    let flight = flights.remove(i);
                    for (local, value) in locals.zip(flight.values()) {
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
        // Room for these is made when what follows the `let` is lowered again.
        self.unplaced.entry(*token).or_default().extend(flights.into_iter().map(|f| f.kind));
    }

    /// Takes a token out of a variable, as a move does.
    pub(in crate::lower) fn take_token(&mut self, slots: &[Slot]) -> Val {
        let mut flights = Vec::new();
        for slot in slots {
            let locals: Vec<ir::LocalId> = std::iter::once(slot.begun)
                .chain(slot.prefix.iter().copied())
                .chain(slot.data.iter().copied())
                .collect();
            let types: Vec<Type> = slot.kind.value_types().collect();
            let mut read = Vec::new();
            for (local, ty) in locals.into_iter().zip(types) {
                read.push(self.builder.value(Op::ReadLocal { local, index: None }, ty));
            }
            flights.extend(slot.kind.clone().flight(&mut read.into_iter()));
        }
        Val::Pending(flights)
    }

    /// Refuses a variable for tokens that is given what it holds, and another copy of the same kind.
    fn given_itself(&mut self, statement: &Statement) {
        let Some(id) = self.token_variable(statement) else { return };
        let local = &self.function().locals[id.0 as usize];
        let message = format!(
            "`{}` joins its own value with another copy, so the number of copies in flight is unknown",
            local.name
        );
        let help = "wait for the token before the next copy starts, or bind each copy to its own name and join them: `a.and(b)`";
        self.error_with_help(local.span, message, help);
    }

    /// Lowers the statements of a block from number `first` on, which makes a variable for tokens; again if the variable
    /// is given more than it had room for.
    pub(in crate::lower) fn with_token(&mut self, block: &'h hir::Block, first: usize) -> Val {
        let token = self.tokens;
        loop {
            let before = self.clone();
            self.statement(&block.statements[first]);
            let value = self.statements(block, first + 1);
            let Some(unplaced) = self.unplaced.remove(&token).filter(|kinds| !kinds.is_empty()) else { return value };
            let mut later = self.later.get(&token).cloned().unwrap_or_default();
            let known = later.len();
            // What kinds name by their number stays.
            let conversions = std::mem::take(&mut self.conversions);
            *self = Lowerer { conversions, ..before };
            for kind in unplaced {
                if !later.contains(&kind) {
                    later.push(kind);
                }
            }
            if later.len() == known {
                // It would never have room for what it has and one more of that.
                self.given_itself(&block.statements[first]);
                return value;
            }
            self.later.insert(token, later);
        }
    }
}
