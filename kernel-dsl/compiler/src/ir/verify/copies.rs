//! The rules of asynchronous copies to shared memory.

use super::{S, Verifier};
use crate::ir::*;
use crate::scalar::Scalar;

impl Verifier<'_> {
    pub(super) fn copy_async(&mut self, inst: &Inst, copy: &AsyncCopy) {
        let AsyncCopy { to, from, element, count, guard, inside, bytes } = copy;
        self.place(inst, to, *element, *count);
        self.place(inst, from, *element, *count);
        let space = |place: &AccessPlace| match place {
            AccessPlace::Shared { .. } | AccessPlace::Dynamic { .. } => Type::Shared,
            AccessPlace::Global { .. } => Type::Global,
            AccessPlace::Address { base, .. } => self.ty(*base),
        };
        let spaces = space(to) == Type::Shared && space(from) == Type::Global;
        let size = matches!(copy.size(), 4 | 8 | 16);
        self.check(
            inst,
            spaces && size && inst.results.is_empty(),
            "a copy moves 4, 8 or 16 bytes from global to shared memory",
        );
        let truths = [guard, inside].into_iter().flatten().all(|v| self.ty(*v) == S(Scalar::Bool));
        let fits = truths && bytes.is_none_or(|b| self.ty(b) == S(Scalar::Usize));
        self.check(inst, fits, "a copy has `bool` conditions and a usize number of bytes");
    }

    pub(super) fn copy_commit(&mut self, inst: &Inst) {
        let results = inst.results.len();
        self.check(
            inst,
            results == 1 && self.first_result_type(inst) == S(Scalar::Usize),
            "the number of a group of copies is usize",
        );
    }

    pub(super) fn copy_wait(&mut self, inst: &Inst, group: WaitGroup) {
        let fits = match group {
            WaitGroup::UpTo(group) => self.ty(group) == S(Scalar::Usize),
            WaitGroup::AllBut(_) => true,
        };
        self.check(
            inst,
            fits && inst.results.is_empty(),
            "a wait is for a group, by its usize number, and has no result",
        );
    }
}
