//! Variables that hold tokens: registers for each kind of flight that they are ever given.

use super::{Conversion, Kind, Slot};
use crate::Scalar;
use crate::hir::{self, LocalId, Pattern, Statement};
use crate::ir::{self, Op, Type};
use crate::lower::Lowerer;
use crate::lower::storage::Binding;
use crate::lower::value::{Storage, Val};
use std::collections::HashMap;

/// The variables for copy tokens of a kernel so far.
#[derive(Clone, Default)]
pub(in crate::lower) struct Tokens<'h> {
    /// What copies do with each element when they are waited for.
    conversions: Vec<Conversion<'h>>,
    /// The number of variables so far.
    variables: u32,
    /// By variable, the kinds of copies that it is given after its first value.
    later: HashMap<u32, Vec<Kind>>,
    /// By variable, the kinds of copies that it has no registers for.
    missing: HashMap<u32, Vec<Kind>>,
}

impl<'h> Tokens<'h> {
    /// Returns the conversion with this number.
    pub(super) fn conversion(&self, number: u32) -> Conversion<'h> {
        self.conversions[number as usize].clone()
    }

    /// Returns the number of a conversion; equal conversions share one.
    pub(super) fn add_conversion(&mut self, conversion: Conversion<'h>) -> u32 {
        let same = |c: &Conversion| match (c, &conversion) {
            (Conversion::Function(a), Conversion::Function(b)) => a == b,
            (Conversion::Closure { body: a, .. }, Conversion::Closure { body: b, .. }) => std::ptr::eq(*a, *b),
            _ => false,
        };
        let known = self.conversions.iter().position(same);
        known.unwrap_or_else(|| {
            self.conversions.push(conversion);
            self.conversions.len() - 1
        }) as u32
    }

    /// Returns the number of a new variable.
    fn next_variable(&mut self) -> u32 {
        self.variables += 1;
        self.variables - 1
    }

    /// Returns the kinds of copies that a variable is given after its first value.
    fn added_later(&self, variable: u32) -> Vec<Kind> {
        self.later.get(&variable).cloned().unwrap_or_default()
    }

    /// Notes copies that a variable has no registers for.
    fn add_missing(&mut self, variable: u32, kinds: impl Iterator<Item = Kind>) {
        self.missing.entry(variable).or_default().extend(kinds);
    }

    /// Removes and returns the copies that a variable has no registers for, if there are any.
    fn take_missing(&mut self, variable: u32) -> Option<Vec<Kind>> {
        self.missing.remove(&variable).filter(|kinds| !kinds.is_empty())
    }

    /// Notes that a variable is given `kinds` after its first value. Returns whether one of them is new.
    fn add_later(&mut self, variable: u32, kinds: Vec<Kind>) -> bool {
        let later = self.later.entry(variable).or_default();
        let known = later.len();
        for kind in kinds {
            if !later.contains(&kind) {
                later.push(kind);
            }
        }
        later.len() > known
    }
}

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
        let token = self.tokens.next_variable();
        kinds.extend(self.tokens.added_later(token));
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
        let storage = Storage::Pending { token, slots: slots.collect() };
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
        self.tokens.add_missing(*token, flights.into_iter().map(|f| f.kind));
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
                // The variable would never have room for its own copies and one more of the same kind.
                self.given_itself(&block.statements[first]);
                return value;
            }
        }
    }
}
