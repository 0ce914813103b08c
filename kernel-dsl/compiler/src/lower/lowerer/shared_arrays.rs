//! The shared arrays of a kernel: their lifetimes, and the arrays that share bytes or are chosen
//! at run time.

use super::mem_layout::MemLayout;
use super::value::Val;
use crate::Scalar;
use crate::hir::{self, TypeId};
use crate::ir::{self, Location, SharedId, SharedLayout, Value};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// The shared arrays of a kernel so far.
#[derive(Clone, Default)]
pub(in crate::lower) struct SharedArrays {
    pub plan: SharedArrayPlan,
    /// The arrays through which the threads of a block exchange values, by the type of their
    /// elements.
    exchange: Vec<(Scalar, SharedId)>,
    /// The arrays that variables and arrays of handles switch between.
    pub switched: SwitchedArrays,
    /// The addresses of the first elements of arrays of dynamic size, aligned to the widest access.
    pub dynamic_bases: Vec<ir::Value>,
}

impl SharedArrays {
    pub fn new(program: &hir::Program) -> SharedArrays {
        SharedArrays { switched: SwitchedArrays::new(program), ..SharedArrays::default() }
    }

    /// Returns exchange array number `number` with elements of type `ty`.
    pub fn exchange_array(&self, ty: Scalar, number: usize) -> Option<SharedId> {
        self.exchange.iter().filter(|(of, _)| *of == ty).nth(number).map(|(_, array)| *array)
    }

    /// Adds an exchange array with elements of type `ty`.
    pub fn add_exchange_array(&mut self, ty: Scalar, array: SharedId) {
        self.exchange.push((ty, array));
    }
}

/// The shared arrays that are rows of another array.
#[derive(Clone, Default)]
pub(in crate::lower) struct SwitchedArrays {
    /// The handle types of variables that are assigned, and of the elements of arrays of handles.
    pub types: HashSet<TypeId>,
    /// The arrays that can have more rows, with the braces that they were created in.
    pub open: Vec<(SharedId, Option<usize>)>,
    /// The row of a value.
    pub rows: HashMap<Value, u32>,
}

/// A shared array before it becomes a row.
pub(in crate::lower) struct SwitchedMember {
    pub name: String,
    pub shape: SmallVec<[u32; 3]>,
    pub pitch: u32,
    pub mem_layout: MemLayout,
    pub layout: SharedLayout,
}

impl SwitchedArrays {
    pub fn new(program: &hir::Program) -> SwitchedArrays {
        let mut types = HashSet::new();
        let is_shared = |function: &hir::Function, ty: TypeId| matches!(function.ty(ty), hir::Type::Shared { .. });
        for function in &program.functions {
            let assigned = function.locals.iter().filter(|local| local.mutable).map(|local| local.ty);
            let elements = function.types.iter().filter_map(|ty| match ty {
                hir::Type::Array(element, _) => Some(*element),
                _ => None,
            });
            types.extend(assigned.chain(elements).filter(|ty| is_shared(function, *ty)));
        }
        SwitchedArrays { types, ..SwitchedArrays::default() }
    }

    /// Prevents further rows from being added to an array.
    pub fn fix(&mut self, array: SharedId) {
        self.open.retain(|(open, _)| *open != array);
    }
}

/// The facts about a kernel's shared arrays that lowering collects.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(in crate::lower) struct SharedArrayPlan {
    /// The arrays whose pitch is to be chosen.
    pub padded: Vec<SharedId>,
    /// The lifetimes.
    pub events: Vec<SharedArrayEvent>,
    /// The arrays that reuse the bytes of arrays created before.
    pub aliases: Vec<Alias>,
}

impl SharedArrayPlan {
    /// Records an opening brace. Returns its position, which [`close`](Self::close) needs for the
    /// closing brace.
    pub fn open(&mut self) -> usize {
        self.events.push(SharedArrayEvent::Open);
        self.events.len() - 1
    }

    /// Returns the innermost braces that are open.
    pub fn innermost(&self) -> Option<usize> {
        let mut closed = 0;
        for (i, event) in self.events.iter().enumerate().rev() {
            match event {
                SharedArrayEvent::Declare(_) => {}
                SharedArrayEvent::Open if closed == 0 => return Some(i),
                SharedArrayEvent::Open => closed -= 1,
                SharedArrayEvent::Close(_) | SharedArrayEvent::CloseAll => closed += 1,
            }
        }
        None
    }

    /// Records a closing brace. Arrays that `value`, the value of the braces, refers to stay alive.
    pub fn close(&mut self, opened: usize, value: &Val) {
        if self.events.len() == opened + 1 {
            self.events.truncate(opened);
            return;
        }
        let (mut kept, mut any) = (Vec::new(), false);
        value.arrays(&mut |array| match array {
            Some(array) => kept.push(array),
            None => any = true,
        });
        self.events.push(if any { SharedArrayEvent::CloseAll } else { SharedArrayEvent::Close(kept) });
    }
}

/// An event in the lifetimes of shared arrays, in source order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) enum SharedArrayEvent {
    /// An array is created. Arrays without an event live as long as the kernel.
    Declare(SharedId),
    /// An opening brace.
    Open,
    /// A closing brace; these arrays stay alive in the enclosing braces.
    Close(Vec<SharedId>),
    /// A closing brace; all arrays stay alive.
    CloseAll,
}

/// An array that reuses the bytes of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::lower) struct Alias {
    pub array: SharedId,
    /// The number of outer dimensions whose extents and strides are those of the other array.
    pub kept: usize,
    /// Whether the alias is a cast: the contents of the other array with another element type.
    pub cast: bool,
    pub location: Location,
}
