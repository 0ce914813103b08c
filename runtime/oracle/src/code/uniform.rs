//! Registers that are equal in all lanes or fixed across blocks, and need no computation by lane.
//!
//! A *uniform* register holds one value in all lanes that are active wherever it is read. The value
//! is computed from uniform registers alone. The index of a loop with uniform start and step is
//! uniform too, since the lanes in the body iterate together. Inactive lanes may hold another
//! value.
//!
//! A *fixed* register holds in each lane the same value in every block: the thread's index, and
//! values computed from fixed registers alone. Constants and parameters are both uniform and fixed.

use crate::code::{AccessLocation, AccessOp, Code, Dim, Inst, RowIndex, SharedDim, Split};
use kernel_dsl_compiler::Scalar;
use kernel_dsl_compiler::ir::Special;
use std::collections::HashMap;

/// The classification of a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RegisterClass {
    Constant,
    Uniform,
    Fixed,
    Varying,
}

impl RegisterClass {
    /// Returns the classification of a value computed from both.
    fn with(self, other: RegisterClass) -> RegisterClass {
        match (self, other) {
            (RegisterClass::Constant, kind) | (kind, RegisterClass::Constant) => kind,
            (a, b) if a == b => a,
            _ => RegisterClass::Varying,
        }
    }

    fn is_uniform(self) -> bool {
        matches!(self, RegisterClass::Constant | RegisterClass::Uniform)
    }
}

/// The classification of each row.
pub struct RegisterClasses(Vec<RegisterClass>);

impl RegisterClasses {
    /// Classifies the rows of `code`.
    pub fn of(code: &Code) -> RegisterClasses {
        RegisterClasses(kinds(code))
    }

    /// Returns whether the register at `row` is uniform.
    pub fn is_uniform(&self, row: RowIndex) -> bool {
        self.0[row as usize].is_uniform()
    }
}

/// Replaces instructions that need no computation by lane.
pub fn simplify(code: &mut Code, kinds: &RegisterClasses) {
    let of = |row: RowIndex| kinds.0[row as usize];
    let constants: HashMap<RowIndex, u64> = code.constants.iter().map(|(to, bits)| (to.row, *bits)).collect();
    for inst in &mut code.insts {
        if let Inst::Step { ty: ty @ (Scalar::U32 | Scalar::Usize), slot, index, step, limit, body } = *inst
            && of(index).is_uniform()
            && of(step).is_uniform()
            && of(limit).is_uniform()
        {
            *inst = Inst::StepUniform { ty, slot, index, step, limit, body };
        }
        if let Inst::EnterFor { ty, slot, step } = *inst
            && constants.get(&step).is_some_and(|bits| is_positive(ty, *bits))
        {
            *inst = Inst::Enter { slot };
        }
    }
    let mut memos = 0;
    for access in &mut code.accesses {
        access.split = split(access, memos, of);
        memos += u32::from(access.split.is_some());
        access.flat = is_flat(access, kinds);
    }
    code.memos = memos;
}

fn is_positive(ty: Scalar, bits: u64) -> bool {
    bits != 0 && !(ty.is_signed() && bits >> (ty.bits() - 1) & 1 == 1)
}

/// Divides the indices of an access to words of shared memory into fixed and uniform ones.
fn split(access: &AccessOp, memo: u32, of: impl Fn(RowIndex) -> RegisterClass) -> Option<Split> {
    let AccessLocation::Shared { dims, swizzle: None, offset, .. } = &access.place else { return None };
    let is_fixed = |dim: &SharedDim| matches!(of(dim.index), RegisterClass::Fixed | RegisterClass::Constant);
    let (fixed, uniform): (Vec<_>, Vec<_>) = dims.iter().copied().partition(is_fixed);
    let uniform: Box<[SharedDim]> = uniform.into();
    let known = access.is_word() && uniform.iter().all(|dim| of(dim.index).is_uniform());
    known.then(|| Split { first: offset / 4, fixed: fixed.into(), uniform, memo })
}

/// Returns whether an access is to one word of a buffer whose address, extents and strides are
/// uniform.
fn is_flat(access: &AccessOp, kinds: &RegisterClasses) -> bool {
    let (AccessLocation::Global { base, dims, .. }, within) = (&access.place, &access.within) else { return false };
    let one = access.count == 1 && access.values.len() == 1 && access.element.bytes() == 4;
    let whole = within.unit == 4 && within.offset == 0 && within.steps.is_empty() && within.reach == 1;
    let alike = |dim: &Dim| [Some(dim.extent), dim.stride].into_iter().flatten().all(|row| kinds.is_uniform(row));
    one && whole && kinds.is_uniform(*base) && dims.iter().all(alike)
}

fn kinds(code: &Code) -> Vec<RegisterClass> {
    let mut kinds = vec![RegisterClass::Varying; code.rows as usize];
    for (register, _) in &code.constants {
        kinds[register.row as usize] = RegisterClass::Constant;
    }
    for (register, _) in &code.parameters {
        kinds[register.row as usize] = RegisterClass::Constant;
    }
    for &(row, special) in &code.specials {
        kinds[row as usize] = match special {
            Special::Thread(_) => RegisterClass::Fixed,
            Special::BlockDim(_) | Special::Grid(_) => RegisterClass::Constant,
            Special::Block(_) => RegisterClass::Uniform,
        };
    }
    // A loop's index is written before the loop and at the end of each iteration.
    let steps: HashMap<RowIndex, RowIndex> = code.insts.iter().filter_map(step).collect();
    for inst in &code.insts {
        let of = |row: RowIndex| kinds[row as usize];
        let (to, kind) = match *inst {
            Inst::Unary { to, a, .. } | Inst::CheckedUnary { to, a, .. } | Inst::Cast { to, a, .. } => (to, of(a)),
            Inst::Binary { to, a, b, .. } | Inst::CheckedBinary { to, a, b, .. } | Inst::Compare { to, a, b, .. } => {
                (to, of(a).with(of(b)))
            }
            Inst::Select { to, condition, yes, no, .. } => (to, of(condition).with(of(yes)).with(of(no))),
            Inst::Bitcast { to, a, .. } => (to.row, of(a.row)),
            Inst::Offset(i) => {
                let offset = &code.offsets[i as usize];
                let rows = offset.terms.iter().flat_map(|(index, stride)| [Some(*index), *stride]).flatten();
                (offset.to.row, rows.fold(of(offset.base.row), |kind, row| kind.with(of(row))))
            }
            Inst::Copy { to, from } => match steps.get(&to.row) {
                Some(step) if of(from.row).with(of(*step)).is_uniform() => (to.row, RegisterClass::Uniform),
                Some(_) => (to.row, RegisterClass::Varying),
                None => (to.row, of(from.row)),
            },
            _ => continue,
        };
        kinds[to as usize] = kind;
    }
    kinds
}

/// Returns the index of a loop and its step.
fn step(inst: &Inst) -> Option<(RowIndex, RowIndex)> {
    match *inst {
        Inst::Step { index, step, .. } => Some((index, step)),
        _ => None,
    }
}
