//! Copies in flight, and the registers of variables that hold them.

use super::maybe_const::MaybeConst;
use super::mem_layout::MemLayout;
use crate::Scalar;
use crate::hir::{self, Expr, Pattern, TypeId};
use crate::ir::{self, SharedId, Type, Values};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A copy in flight, if it was issued.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) struct PendingCopy {
    pub kind: CopyKind,
    /// Whether the copy was issued.
    pub issued: MaybeConst,
    /// The first indices of the destination array.
    pub prefix: SmallVec<[ir::Value; 3]>,
    /// The loaded scalars, by element or pack of the thread's share.
    pub data: Values,
}

impl PendingCopy {
    pub fn array(&self) -> SharedId {
        self.kind.array
    }

    pub fn values(&self) -> impl Iterator<Item = ir::Value> + '_ {
        std::iter::once(self.issued.value).chain(self.prefix.iter().copied()).chain(self.data.iter().copied())
    }
}

/// The static properties of a copy.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) struct CopyKind {
    pub array: SharedId,
    pub mem_layout: MemLayout,
    /// The layout of an element in flight: that of the array, or that of the view before a
    /// conversion.
    pub held: MemLayout,
    pub prefix: usize,
    pub types: Vec<Scalar>,
    /// The number of elements of one access.
    pub at_once: u32,
    /// The conversion of each element at the wait, by its number in [`CopyTokens`].
    pub conversion: Option<u32>,
    /// Whether the copy bypasses registers. The data of such a copy is the number of its group.
    pub grouped: bool,
}

impl CopyKind {
    pub fn value_types(&self) -> impl Iterator<Item = Type> + '_ {
        let prefix = std::iter::repeat_n(Scalar::Usize, self.prefix);
        std::iter::once(Scalar::Bool).chain(prefix).chain(self.types.iter().copied()).map(Type::Scalar)
    }

    pub fn copy(self, values: &mut dyn Iterator<Item = ir::Value>) -> Option<PendingCopy> {
        let issued = MaybeConst::unknown(values.next()?);
        let prefix = values.take(self.prefix).collect();
        let data = values.take(self.types.len()).collect();
        Some(PendingCopy { kind: self, issued, prefix, data })
    }
}

/// The registers for a copy of one kind.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::lower) struct CopySlot {
    pub kind: CopyKind,
    pub issued: ir::LocalId,
    pub prefix: Vec<ir::LocalId>,
    pub data: Vec<ir::LocalId>,
}

/// A function, or a closure without captures, which can run later.
#[derive(Clone, Debug)]
pub(in crate::lower) enum DeferredConversion<'h> {
    Function(hir::FunctionId),
    Closure { function: &'h hir::Function, parameters: &'h [Pattern], types: &'h [TypeId], body: &'h Expr },
}

/// The variables for copy tokens of a kernel so far.
#[derive(Clone, Default)]
pub(in crate::lower) struct CopyTokens<'h> {
    /// The conversions of elements at the wait.
    pub conversions: Vec<DeferredConversion<'h>>,
    /// The number of variables so far.
    pub variables: u32,
    /// By variable, the kinds of copies that are assigned after the first value.
    later: HashMap<u32, Vec<CopyKind>>,
    /// By variable, the kinds of copies that it has no registers for.
    missing: HashMap<u32, Vec<CopyKind>>,
}

impl<'h> CopyTokens<'h> {
    /// Returns the conversion with this number.
    pub fn conversion(&self, number: u32) -> DeferredConversion<'h> {
        self.conversions[number as usize].clone()
    }

    /// Returns the number of a conversion; equal conversions share one.
    pub fn add_conversion(&mut self, conversion: DeferredConversion<'h>) -> u32 {
        let same = |c: &DeferredConversion| match (c, &conversion) {
            (DeferredConversion::Function(a), DeferredConversion::Function(b)) => a == b,
            (DeferredConversion::Closure { body: a, .. }, DeferredConversion::Closure { body: b, .. }) => {
                std::ptr::eq(*a, *b)
            }
            _ => false,
        };
        let known = self.conversions.iter().position(same);
        known.unwrap_or_else(|| {
            self.conversions.push(conversion);
            self.conversions.len() - 1
        }) as u32
    }

    /// Returns the number of a new variable.
    pub fn next_variable(&mut self) -> u32 {
        self.variables += 1;
        self.variables - 1
    }

    /// Returns the kinds of copies that are assigned to a variable after its first value.
    pub fn added_later(&self, variable: u32) -> Vec<CopyKind> {
        self.later.get(&variable).cloned().unwrap_or_default()
    }

    /// Records copies that a variable has no registers for.
    pub fn add_missing(&mut self, variable: u32, kinds: impl Iterator<Item = CopyKind>) {
        self.missing.entry(variable).or_default().extend(kinds);
    }

    /// Removes and returns the copies that a variable has no registers for, if there are any.
    pub fn take_missing(&mut self, variable: u32) -> Option<Vec<CopyKind>> {
        self.missing.remove(&variable).filter(|kinds| !kinds.is_empty())
    }

    /// Records that `kinds` are assigned to a variable after its first value. Returns whether one
    /// of them is new.
    pub fn add_later(&mut self, variable: u32, kinds: Vec<CopyKind>) -> bool {
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
