//! The checked form of an instance, which `launch` runs on a GPU. The form reports the violations
//! that a thread can detect alone.
//!
//! The checked form is the lowered program with three additions:
//!
//! * Each access to global and shared memory is predicated on its indices being in bounds. Out of
//!   bounds, a load gives 0, a store does nothing, and the kernel continues.
//! * Sums, differences and products of `usize`, and steps of a loop, wrap on overflow. No pass may
//!   assume that they do not, so that the address uses exactly the index that was compared. A loop
//!   ends before its index would wrap, and a loop whose step is not positive does not start.
//! * Each violation is reported ([`Op::RecordViolation`]) to a record. The address of the record is
//!   an additional last parameter, which counts as an argument. Here, each check has a branch. The
//!   pass [`report_merging`](crate::passes::report_merging) merges the branches of several checks.
//!
//! A misaligned vector access would destroy the context. So the optimized form splits a vector
//! access into parts of the alignment that is proven (`alignment`). If `requires` guarantees the
//! full alignment, the access stays in one part.
//!
//! Conditions that `facts` proves are not checked. One example is an index that a surrounding `if`
//! compares with the same extent. Others are the index of a loop to the extent, and a thread index
//! in a tile as wide as the block.
//!
//! Conditions that follow from the contract of the launch are checked in the form as lowered, but
//! not in the [optimized](CheckedKernel::optimized) form: [`decide_exactly`] decides them once
//! loops are unrolled. The function treats a sum as exact only if it cannot wrap. Where a sum
//! wraps, the checked form reports the overflow and continues with the wrapped index. Only a
//! comparison then keeps the access within its buffer. Launches whose extents are at most
//! [`MODERATE_ARGUMENT_LIMIT`] have a [separate form](CheckedKernel::with_arguments_up_to): in this
//! form, an index below an extent plus a constant cannot wrap.
//!
//! The checked form does not check for races, divergent barriers, reads of uninitialized memory and
//! division by zero. Only the oracle does. Overflow in moving a view is not checked either, because
//! each access after the move is checked.

mod alignment;
mod facts;
mod multiples;

use super::lower_monomorphic;
use crate::Scalar;
use crate::analyses::bounds::decide_exactly;
use crate::error::Errors;
use crate::hir::{self, Instance, Monomorphic, Program};
use crate::ir::record::MAX_VALUES;
use crate::ir::{
    self, Binary, Comparison, For, Guard, Inst, Label, Location, Op, Region, Role, Type, Unary, Value, Values,
};
use crate::passes::{self, Optimized};
use alignment::split_unaligned;
use facts::ValueFacts;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// A limit on extents, strides and `usize` arguments that nearly all launches meet: half of the
/// range of a `usize`, so that a sum of two does not wrap.
pub const MODERATE_ARGUMENT_LIMIT: u32 = u32::MAX / 2;

/// Returns the instance of `program` for `target` in its checked form.
pub fn checked(program: &Program, instance: &Instance, target: crate::Target) -> Result<CheckedKernel, Errors> {
    let program = hir::monomorphic(program, instance)?;
    Ok(CheckedKernel::of_instance(lower_monomorphic(&program, target)?, &program))
}

/// A kernel in its checked form, with the meaning of its reports.
#[derive(Clone, PartialEq, Debug)]
pub struct CheckedKernel {
    /// The instance whose contract each launch meets, if it is known.
    program: Option<Arc<Monomorphic>>,
    /// The IR before any pass. The last argument is the record: [`ir::record::WORDS`] words, all
    /// zero.
    pub kernel: ir::Kernel,
    /// The checked places, by the state of their [`Op::RecordViolation`] minus 1.
    pub sites: Vec<CheckSite>,
    /// The largest extent, stride and `usize` argument of its launches.
    largest: u32,
}

/// A place where something is checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckSite {
    /// The place in the Rust source.
    pub location: Location,
    /// The condition that is checked.
    pub check: ReportedCheck,
}

/// The kind of a check, which determines the values of its reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportedCheck {
    /// An access to a slice or view. The values are the index and extent of each dimension,
    /// outermost first.
    Global {
        /// The index of the argument in Rust; `None` if the argument depends on the path.
        argument: Option<u32>,
        /// The number of dimensions.
        rank: u32,
        /// The number of elements of the access, starting at the last index.
        elements: u32,
    },
    /// An access to an array in shared memory, with the values of `Global`.
    #[allow(missing_docs)]
    Shared { array: ir::SharedId, elements: u32 },
    /// An access to an array in shared memory of dynamic size, with the values of `Global`.
    #[allow(missing_docs)]
    Dynamic { array: Option<ir::DynamicId>, rank: u32, elements: u32 },
    /// An index into an array within an element, or into a table. The values are the index and
    /// extent of each enclosing array, outermost first.
    #[allow(missing_docs)]
    Within { table: Option<ir::TableId>, rank: u32, elements: u32 },
    /// An index into an array in local memory. The values are the index and the length.
    #[allow(missing_docs)]
    Local { array: ir::LocalId },
    /// `Add`, `Sub` or `Mul` on `usize`. The values are the operands.
    Overflow(Binary),
    /// An assertion or panic. The values are the words of scalars of these types: two of a 64-bit
    /// scalar, low word first, and one of each other scalar. Values beyond the record are missing.
    #[allow(missing_docs)]
    Assertion { message: Box<str>, types: Vec<Scalar> },
    /// A loop over a range of this type. The value is the step cast to `usize`, if the type has 32
    /// bits; otherwise there is no value.
    Step(Scalar),
}

impl CheckedKernel {
    /// Adds the checks to a lowered kernel. Lowering makes the extents of a moved view describe the
    /// rest of the buffer.
    pub fn of(kernel: impl Into<ir::Kernel>) -> CheckedKernel {
        CheckedKernel::with(kernel.into(), None)
    }

    /// Adds the checks to a lowered kernel of which each launch meets the contract of `program`.
    /// The optimized form does not check conditions that follow from `grid` and `requires`.
    pub fn of_instance(kernel: impl Into<ir::Kernel>, program: &Monomorphic) -> CheckedKernel {
        CheckedKernel::with(kernel.into(), Some(Arc::new(program.clone())))
    }

    /// Returns the form for launches whose extents, strides and `usize` arguments are at most
    /// `largest`. With [`MODERATE_ARGUMENT_LIMIT`], the optimized form has fewer checks.
    pub fn with_arguments_up_to(self, largest: u32) -> CheckedKernel {
        CheckedKernel { largest, ..self }
    }

    /// Returns the form after all passes, without the checks that no launch fails.
    ///
    /// # Errors
    /// The errors of [`passes::optimize`].
    pub fn optimized(&self) -> Result<Optimized, Errors> {
        let mut kernel = self.kernel.clone();
        // Loops are unrolled and branches are still branches, so that most facts are known.
        passes::run(&mut kernel, &[passes::FRONT, passes::SIMPLIFY])?;
        split_unaligned(&mut kernel, self.program.as_deref());
        if let Some(program) = &self.program {
            decide_exactly(&mut kernel, program, self.largest);
        }
        passes::optimize(kernel)
    }

    fn with(mut kernel: ir::Kernel, program: Option<Arc<Monomorphic>>) -> CheckedKernel {
        let argument = kernel.parameters.iter().map(|p| p.argument + 1).max().unwrap_or(0);
        let mut name = "record".to_string();
        while kernel.parameters.iter().any(|p| p.name == name) {
            name.push('_');
        }
        let role = Role::Address { element: Scalar::U32.into(), mutable: true };
        kernel.parameters.push(ir::Parameter { name, argument, role });
        let parameter = kernel.parameters.len() as u32 - 1;
        let record = kernel.value(Type::Global);
        let body = std::mem::take(&mut kernel.body);
        let mut guarder = CheckInserter {
            facts: ValueFacts::new(&kernel),
            kernel,
            record,
            growth: 1,
            sites: Vec::new(),
            loops: Vec::new(),
            out: Vec::new(),
        };
        let mut body = guarder.region(body, None);
        let read = Inst { op: Op::Parameter(parameter), results: smallvec![record], location: Location(0) };
        body.insts.insert(0, read);
        guarder.kernel.body = body;
        // A loop that can be unrolled in the lowered form can be unrolled here, although the copies
        // are longer.
        guarder.kernel.unrolled = guarder.kernel.unrolled.saturating_mul(guarder.growth);
        CheckedKernel { program, kernel: guarder.kernel, sites: guarder.sites, largest: u32::MAX }
    }
}

struct CheckInserter {
    kernel: ir::Kernel,
    facts: ValueFacts,
    record: Value,
    /// The largest number of instructions that replace one.
    growth: usize,
    sites: Vec<CheckSite>,
    /// The loops around the current instruction whose index may wrap.
    loops: Vec<CountedLoop>,
    /// The instructions of the region written so far.
    out: Vec<Inst>,
}

/// A loop whose index may wrap.
#[derive(Clone, Copy)]
struct CountedLoop {
    label: Label,
    index: Value,
    step: Value,
    location: Location,
}

const USIZE: Type = Type::Scalar(Scalar::Usize);
const BOOL: Type = Type::Scalar(Scalar::Bool);

/// Counts instructions, including those in nested regions.
fn count(insts: &[Inst]) -> usize {
    insts.iter().map(|inst| 1 + inst.op.regions().into_iter().map(|r| count(&r.insts)).sum::<usize>()).sum()
}

impl CheckInserter {
    /// Rewrites a region. `body` is the loop whose body the region is, if that loop is checked.
    fn region(&mut self, region: Region, body: Option<CountedLoop>) -> Region {
        let outer = std::mem::take(&mut self.out);
        let mark = self.facts.assumption_mark();
        for inst in region.insts {
            let (before, plain) = (self.out.len(), inst.op.regions().is_empty());
            self.inst(inst, body);
            if plain {
                self.growth = self.growth.max(count(&self.out[before..]));
            }
        }
        self.facts.forget(mark);
        Region { parameters: region.parameters, insts: std::mem::replace(&mut self.out, outer) }
    }

    fn emit(&mut self, op: Op, ty: Type, location: Location) -> Value {
        let value = self.kernel.value(ty);
        let inst = Inst { op, results: smallvec![value], location };
        self.facts.define(&self.kernel, &inst);
        self.out.push(inst);
        value
    }

    fn effect(&mut self, op: Op, location: Location) {
        self.out.push(Inst { op, results: Values::new(), location });
    }

    fn constant(&mut self, ty: Type, bits: u64, location: Location) -> Value {
        self.emit(Op::Constant(bits), ty, location)
    }

    fn both(&mut self, a: Option<Value>, b: Value, location: Location) -> Value {
        match a {
            Some(a) => self.emit(Op::Binary(Binary::And, a, b), BOOL, location),
            None => b,
        }
    }

    /// Reports a violation where `holds` is false.
    fn require(&mut self, holds: Value, check: ReportedCheck, values: Values, location: Location) {
        let then = self.ending(Vec::new(), location);
        let otherwise = self.failure(check, values, location);
        self.effect(Op::If { condition: holds, then, otherwise }, location);
    }

    /// Reports a violation where `fails` is true.
    fn refuse(&mut self, fails: Value, check: ReportedCheck, values: Values, location: Location) {
        let then = self.failure(check, values, location);
        let otherwise = self.ending(Vec::new(), location);
        self.effect(Op::If { condition: fails, then, otherwise }, location);
    }

    fn failure(&mut self, check: ReportedCheck, values: Values, location: Location) -> Region {
        let report = self.report(check, values, location);
        self.ending(vec![report], location)
    }

    fn report(&mut self, check: ReportedCheck, values: Values, location: Location) -> Inst {
        self.sites.push(CheckSite { location, check });
        let state = self.constant(Type::Scalar(Scalar::U32), self.sites.len() as u64, location);
        let op = Op::RecordViolation { record: self.record, state, values };
        Inst { op, results: Values::new(), location }
    }

    /// Returns a region of these instructions that yields no value.
    fn ending(&self, mut insts: Vec<Inst>, location: Location) -> Region {
        insts.push(Inst { op: Op::Yield(Values::new()), results: Values::new(), location });
        Region { parameters: Values::new(), insts }
    }

    fn inst(&mut self, mut inst: Inst, body: Option<CountedLoop>) {
        let at = inst.location;
        match &mut inst.op {
            Op::Load { place, element, guard, .. } => {
                let elements = inst.results.len() as u32;
                let condition = guard.as_ref().map(|g| g.condition);
                if let Some(inside) = self.access(place, *element, elements, condition, at) {
                    let zero = self.constant(Type::Scalar(*element), 0, at);
                    let otherwise = match guard.take() {
                        None => inst.results.iter().map(|_| zero).collect(),
                        Some(g) => {
                            let ty = Type::Scalar(*element);
                            let select = |other| Op::Select { condition: g.condition, yes: zero, no: other };
                            let other = |v: &Value| match self.facts.bits(*v) {
                                Some(0) => *v,
                                _ => self.emit(select(*v), ty, at),
                            };
                            g.otherwise.iter().map(other).collect()
                        }
                    };
                    *guard = Some(Guard { condition: inside, otherwise });
                }
            }
            Op::Store { place, element, values, guard } => {
                if let Some(inside) = self.access(place, *element, values.len() as u32, *guard, at) {
                    *guard = Some(inside);
                }
            }
            Op::CopyAsync(copy) => {
                // A check of the first element suffices: lowering limits the copy to the rest of
                // the row, or to the available bytes.
                let (from, element, count) = (copy.from.clone(), copy.element, copy.count);
                let guard = match (copy.guard, copy.inside) {
                    (Some(guard), Some(inside)) => Some(self.both(Some(guard), inside, at)),
                    (guard, inside) => guard.or(inside),
                };
                if let Some(there) = self.access(&from, element, 1, guard, at) {
                    copy.inside = Some(there);
                }
                if let Some(there) = self.access(&copy.to, element, count, copy.guard, at) {
                    copy.guard = Some(there);
                }
            }
            Op::Atomic { place, element, .. } => {
                let element = *element;
                if let Some(inside) = self.access(place, element, 1, None, at) {
                    return self.atomic_inside(inside, inst, element);
                }
            }
            Op::ReadLocal { local, index: Some(index) } if self.may_exceed(*local, *index) => {
                let (local, index, result, ty) = (*local, *index, inst.results[0], self.kernel.ty(inst.results[0]));
                let inside = self.within_local(local, index, at);
                let start = self.constant(USIZE, 0, at);
                let safe = self.emit(Op::Select { condition: inside, yes: index, no: start }, USIZE, at);
                let read = self.emit(Op::ReadLocal { local, index: Some(safe) }, ty, at);
                let zero = self.constant(ty, 0, at);
                let op = Op::Select { condition: inside, yes: read, no: zero };
                return self.push(Inst { op, results: smallvec![result], location: at });
            }
            Op::WriteLocal { local, index: Some(index), .. } if self.may_exceed(*local, *index) => {
                let condition = self.within_local(*local, *index, at);
                let (then, otherwise) = (self.ending(vec![inst], at), self.ending(Vec::new(), at));
                return self.effect(Op::If { condition, then, otherwise }, at);
            }
            Op::Binary(op, a, b) if self.kernel.ty(inst.results[0]) == USIZE => {
                let wrapping = match op {
                    Binary::Add => Binary::WrappingAdd,
                    Binary::Sub => Binary::WrappingSub,
                    Binary::Mul => Binary::WrappingMul,
                    _ => return self.push(inst),
                };
                if !self.facts.fits(*op, *a, *b) {
                    let (bare, a, b) = (*op, *a, *b);
                    *op = wrapping;
                    let result = inst.results[0];
                    self.push(inst);
                    let fails = self.overflows(bare, a, b, result, at);
                    return self.refuse(fails, ReportedCheck::Overflow(bare), smallvec![a, b], at);
                }
            }
            Op::If { condition, then, otherwise } => {
                let (condition, mark) = (*condition, self.facts.assumption_mark());
                self.facts.assume(condition, true);
                *then = self.region(std::mem::take(then), None);
                self.facts.forget(mark);
                self.facts.assume(condition, false);
                *otherwise = self.region(std::mem::take(otherwise), None);
                self.facts.forget(mark);
                // Threads that continue have taken the other arm.
                match (leaves(then), leaves(otherwise)) {
                    (true, false) => self.facts.assume(condition, false),
                    (false, true) => self.facts.assume(condition, true),
                    _ => {}
                }
            }
            Op::For(l) => {
                let end = l.end;
                self.begin(l, at);
                let mark = self.facts.assumption_mark();
                let index = l.body.parameters[0];
                let mut counted = None;
                if self.kernel.ty(index) == USIZE {
                    self.facts.assume_loop_index(index, end);
                }
                if !self.steps(end, l.step) {
                    counted = Some(CountedLoop { label: l.label, index, step: l.step, location: at });
                }
                self.loops.extend(counted);
                l.body = self.region(std::mem::take(&mut l.body), counted);
                if counted.is_some() {
                    self.loops.pop();
                }
                self.facts.forget(mark);
            }
            Op::Loop { body, .. } | Op::Block { body, .. } => *body = self.region(std::mem::take(body), None),
            Op::Panic { message, values, .. } => {
                let (message, values) = (message.clone(), std::mem::take(values));
                let types = values.iter().filter_map(|v| self.kernel.ty(*v).scalar()).collect();
                let words = self.words(&values, at);
                let report = self.report(ReportedCheck::Assertion { message, types }, words, at);
                return self.push(report);
            }
            Op::Yield(values) => {
                if let Some(counted) = body {
                    self.step(counted, values.clone());
                }
            }
            Op::Continue(label, values) => {
                if let Some(counted) = self.loops.iter().find(|c| c.label == *label).copied() {
                    self.step(counted, values.clone());
                }
            }
            // All operations by name, so that a new operation that accesses memory cannot be
            // forgotten.
            Op::Constant(_)
            | Op::Parameter(_)
            | Op::Special(_)
            | Op::Table(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::MulAdd(..)
            | Op::Approximate(..)
            | Op::Bits(..)
            | Op::Compare(..)
            | Op::Select { .. }
            | Op::Cast(_)
            | Op::Bitcast(_)
            | Op::Offset { .. }
            | Op::Dynamic { .. }
            // Operations for the oracle only.
            | Op::MarkUndef { .. }
            | Op::LifetimeStart(_)
            | Op::DbgValue { .. }
            // The operation accesses only registers.
            | Op::Inline { .. }
            | Op::CopyCommit
            | Op::CopyWait(_)
            | Op::ReadLocal { .. }
            | Op::WriteLocal { .. }
            | Op::GridSync
            | Op::BlockSync
            | Op::WarpSync
            | Op::Fence(_)
            | Op::Match(_)
            | Op::Reduce(..)
            | Op::Shuffle { .. }
            | Op::Vote { .. }
            | Op::Log { .. }
            | Op::RecordViolation { .. }
            | Op::Break(..)
            | Op::Return => {}
        }
        self.push(inst);
    }

    /// Returns whether an index into an array in local memory may be out of bounds.
    fn may_exceed(&self, local: ir::LocalId, index: Value) -> bool {
        let array = &self.kernel.locals[local.0 as usize];
        array.memory && !self.facts.at_most(index, array.len - 1)
    }

    /// Returns whether an index is within an array in local memory, and reports it if not.
    fn within_local(&mut self, local: ir::LocalId, index: Value, at: Location) -> Value {
        let len = self.constant(USIZE, self.kernel.locals[local.0 as usize].len.into(), at);
        let inside = self.emit(Op::Compare(Comparison::Lt, index, len), BOOL, at);
        self.require(inside, ReportedCheck::Local { array: local }, smallvec![index, len], at);
        inside
    }

    fn push(&mut self, inst: Inst) {
        self.facts.define(&self.kernel, &inst);
        self.out.push(inst);
    }

    /// Returns the words of scalars, at most [`MAX_VALUES`].
    fn words(&mut self, values: &[Value], at: Location) -> Values {
        let mut words = Values::new();
        for &value in values {
            let Some(ty) = self.kernel.ty(value).scalar() else { continue };
            let bits = match ty.bits() {
                _ if !ty.is_float() && !ty.is_half() => value,
                16 => self.emit(Op::Bitcast(value), Type::Scalar(Scalar::U16), at),
                32 => self.emit(Op::Bitcast(value), Type::Scalar(Scalar::U32), at),
                _ => self.emit(Op::Bitcast(value), Type::Scalar(Scalar::U64), at),
            };
            words.push(self.emit_cast(bits, at));
            if ty.bits() == 64 {
                let half = self.constant(Type::Scalar(Scalar::U32), 32, at);
                let ty = self.kernel.ty(bits);
                let high = self.emit(Op::Binary(Binary::Shr, bits, half), ty, at);
                words.push(self.emit_cast(high, at));
            }
        }
        words.truncate(MAX_VALUES);
        words
    }

    /// Returns an integer or `bool` as `usize`.
    fn emit_cast(&mut self, value: Value, at: Location) -> Value {
        if self.kernel.ty(value) == USIZE { value } else { self.emit(Op::Cast(value), USIZE, at) }
    }

    /// Performs an atomic operation in the lanes that are `inside`; the others get 0.
    fn atomic_inside(&mut self, inside: Value, mut inst: Inst, element: Scalar) {
        let (at, ty) = (inst.location, Type::Scalar(element));
        let results = inst.results.clone();
        let zeros: Values = results.iter().map(|_| self.constant(ty, 0, at)).collect();
        inst.results = results.iter().map(|_| self.kernel.value(ty)).collect();
        let found = Inst { op: Op::Yield(inst.results.clone()), results: Values::new(), location: at };
        let then = Region { parameters: Values::new(), insts: vec![inst, found] };
        let nothing = Inst { op: Op::Yield(zeros), results: Values::new(), location: at };
        let otherwise = Region { parameters: Values::new(), insts: vec![nothing] };
        self.push(Inst { op: Op::If { condition: inside, then, otherwise }, results, location: at });
    }

    /// Checks the indices of an access to `n` scalars. Returns the condition under which the access
    /// is made, if one is needed.
    fn access(
        &mut self,
        place: &ir::AccessPlace,
        scalar: Scalar,
        n: u32,
        guard: Option<Value>,
        at: Location,
    ) -> Option<Value> {
        let elements = place.reach(n, scalar);
        let dims: Dims = match place {
            ir::AccessPlace::Global { dims, .. } | ir::AccessPlace::Dynamic { dims, .. } => {
                dims.iter().map(|d| (d.index, CheckedExtent::Value(d.extent))).collect()
            }
            ir::AccessPlace::Shared { array, indices, .. } => {
                let shape = &self.kernel.shared[array.0 as usize].shape;
                indices.iter().zip(shape).map(|(i, n)| (*i, CheckedExtent::Constant(*n))).collect()
            }
            ir::AccessPlace::Address { .. } => return None,
        };
        let check = match place {
            ir::AccessPlace::Shared { array, .. } => ReportedCheck::Shared { array: *array, elements },
            ir::AccessPlace::Dynamic { base, .. } => {
                ReportedCheck::Dynamic { array: self.facts.dynamic(*base), rank: dims.len() as u32, elements }
            }
            ir::AccessPlace::Global { base, .. } => {
                ReportedCheck::Global { argument: self.facts.argument(*base), rank: dims.len() as u32, elements }
            }
            ir::AccessPlace::Address { .. } => return None,
        };
        let mut inside = self.below(check, dims, elements, guard, at);
        if let Some(within) = place.element_offset().filter(|w| !w.indices.is_empty()) {
            let last = within.indices.last().map_or(0, |step| step.bytes);
            let reach = if last == scalar.bytes() { n } else { 1 };
            let steps: Dims = within.indices.iter().map(|s| (s.index, CheckedExtent::Constant(s.extent))).collect();
            let table = match place {
                ir::AccessPlace::Global { base, .. } => self.facts.table(*base),
                _ => None,
            };
            let check = ReportedCheck::Within { table, rank: steps.len() as u32, elements: reach };
            inside = self.below(check, steps, reach, inside.or(guard), at).or(inside);
        }
        inside
    }

    /// Checks indices against extents, the last index for `elements` elements, in the lanes where
    /// `guard` holds. Returns the condition under which lanes may access, or `None` if every check
    /// is proven.
    fn below(
        &mut self,
        check: ReportedCheck,
        dims: Dims,
        elements: u32,
        guard: Option<Value>,
        at: Location,
    ) -> Option<Value> {
        let mark = self.facts.assumption_mark();
        if let Some(guard) = guard {
            self.facts.assume(guard, true);
        }
        let mut open: SmallVec<[_; 3]> = SmallVec::new();
        for (d, (index, extent)) in dims.iter().enumerate() {
            let n = if d + 1 == dims.len() { elements } else { 1 };
            let extent = match extent {
                CheckedExtent::Value(v) => {
                    self.facts.bits(*v).map_or(CheckedExtent::Value(*v), |n| CheckedExtent::Constant(n as u32))
                }
                constant => *constant,
            };
            let below = match extent {
                CheckedExtent::Value(v) => n == 1 && self.facts.less(*index, v),
                CheckedExtent::Constant(c) => c.checked_sub(n).is_some_and(|last| self.facts.at_most(*index, last)),
            };
            if !below {
                open.push((*index, extent, n));
            }
        }
        self.facts.forget(mark);
        let mut inside = None;
        for (index, extent, n) in open {
            let fits = self.fits(index, extent, n, at);
            inside = Some(self.both(inside, fits, at));
        }
        let inside = inside?;
        let mut values = Values::new();
        // The record has no room for more values: of many nested arrays, the innermost are not
        // reported.
        for (index, extent) in dims.into_iter().take(MAX_VALUES / 2) {
            let extent = match extent {
                CheckedExtent::Value(v) => v,
                CheckedExtent::Constant(n) => self.constant(USIZE, n.into(), at),
            };
            values.extend([index, extent]);
        }
        match guard {
            None => {
                self.require(inside, check, values, at);
                Some(inside)
            }
            Some(guard) => {
                let outside = self.emit(Op::Unary(Unary::Not, inside), BOOL, at);
                let fails = self.both(Some(guard), outside, at);
                self.refuse(fails, check, values, at);
                Some(self.both(Some(guard), inside, at))
            }
        }
    }

    /// Returns the test `index` + n ≤ `extent`, computed without a sum that may wrap.
    fn fits(&mut self, index: Value, extent: CheckedExtent, n: u32, at: Location) -> Value {
        match extent {
            CheckedExtent::Value(extent) if n == 1 => self.emit(Op::Compare(Comparison::Lt, index, extent), BOOL, at),
            CheckedExtent::Value(extent) => {
                let n = self.constant(USIZE, n.into(), at);
                let enough = self.emit(Op::Compare(Comparison::Ge, extent, n), BOOL, at);
                let last = self.emit(Op::Binary(Binary::WrappingSub, extent, n), USIZE, at);
                let below = self.emit(Op::Compare(Comparison::Le, index, last), BOOL, at);
                self.both(Some(enough), below, at)
            }
            CheckedExtent::Constant(extent) => match extent.checked_sub(n) {
                Some(last) => {
                    let last = self.constant(USIZE, last.into(), at);
                    self.emit(Op::Compare(Comparison::Le, index, last), BOOL, at)
                }
                None => self.constant(BOOL, 0, at),
            },
        }
    }

    /// Returns the test that a op b, whose wrapped value is `result`, overflowed.
    fn overflows(&mut self, op: Binary, a: Value, b: Value, result: Value, at: Location) -> Value {
        let (factor, by) = match (self.facts.bits(a), self.facts.bits(b)) {
            (_, Some(c)) => (a, Some(c)),
            (Some(c), _) => (b, Some(c)),
            _ => (a, None),
        };
        match (op, by) {
            (Binary::Sub, _) => self.emit(Op::Compare(Comparison::Lt, a, b), BOOL, at),
            (Binary::Mul, Some(c)) => {
                let most = self.constant(USIZE, u64::from(u32::MAX).checked_div(c).unwrap_or(u32::MAX.into()), at);
                self.emit(Op::Compare(Comparison::Gt, factor, most), BOOL, at)
            }
            (Binary::Mul, None) => {
                let wide = Type::Scalar(Scalar::U64);
                let [a, b] = [a, b].map(|v| self.emit(Op::Cast(v), wide, at));
                let product = self.emit(Op::Binary(Binary::WrappingMul, a, b), wide, at);
                let most = self.constant(wide, u32::MAX.into(), at);
                self.emit(Op::Compare(Comparison::Gt, product, most), BOOL, at)
            }
            _ => self.emit(Op::Compare(Comparison::Lt, result, a), BOOL, at),
        }
    }

    /// Rewrites the start of a loop: if the step is not positive, the loop has no iterations.
    fn begin(&mut self, l: &mut For, at: Location) {
        let ty = self.kernel.ty(l.step);
        let (Some(scalar), None | Some(0)) = (ty.scalar(), self.facts.bits(l.step)) else { return };
        let [zero, one] = [0, 1].map(|bits| self.constant(ty, bits, at));
        let stuck = self.emit(Op::Compare(Comparison::Le, l.step, zero), BOOL, at);
        let values = match scalar {
            Scalar::Usize => smallvec![l.step],
            _ if scalar.bits() == 32 => smallvec![self.emit(Op::Cast(l.step), USIZE, at)],
            _ => Values::new(),
        };
        self.refuse(stuck, ReportedCheck::Step(scalar), values, at);
        l.step = self.emit(Op::Select { condition: stuck, yes: one, no: l.step }, ty, at);
        l.end = self.emit(Op::Select { condition: stuck, yes: l.start, no: l.end }, ty, at);
    }

    /// Returns whether adding `step` to the index of a loop that ends at `end` cannot wrap.
    fn steps(&self, end: Value, step: Value) -> bool {
        let ty = self.kernel.ty(step);
        if ty == USIZE {
            return self.facts.steps(end, step);
        }
        let Some(scalar) = ty.scalar() else { return true };
        let mask = if scalar.is_signed() { scalar.mask() >> 1 } else { scalar.mask() };
        match (self.facts.bits(end), self.facts.bits(step)) {
            // The index is less than some end.
            (_, Some(1)) => true,
            // A negative end leaves more room.
            (Some(end), Some(step)) => end > mask || u128::from(end) + u128::from(step) <= u128::from(mask) + 1,
            _ => false,
        }
    }

    /// Ends an iteration: if the next index would wrap, the loop ends with the values that it would
    /// carry on.
    fn step(&mut self, counted: CountedLoop, carried: Values) {
        let CountedLoop { label, index, step, location } = counted;
        let ty = self.kernel.ty(step);
        let last = match ty.scalar() {
            Some(scalar) if scalar.is_signed() => {
                let most = self.constant(ty, scalar.mask() >> 1, location);
                self.emit(Op::Binary(Binary::WrappingSub, most, step), ty, location)
            }
            _ => self.emit(Op::Unary(Unary::Not, step), ty, location),
        };
        let beyond = self.emit(Op::Compare(Comparison::Gt, index, last), BOOL, location);
        // For other integer types this is not an error: the range ends there.
        let report =
            (ty == USIZE).then(|| self.report(ReportedCheck::Overflow(Binary::Add), smallvec![index, step], location));
        let leave = Inst { op: Op::Break(label, carried), results: Values::new(), location };
        let then = Region { parameters: Values::new(), insts: report.into_iter().chain([leave]).collect() };
        let otherwise = self.ending(Vec::new(), location);
        self.effect(Op::If { condition: beyond, then, otherwise }, location);
    }
}

/// Returns the index and extent of each dimension.
type Dims = SmallVec<[(Value, CheckedExtent); 3]>;

/// The number of elements in a dimension.
#[derive(Clone, Copy)]
enum CheckedExtent {
    Value(Value),
    Constant(u32),
}

/// Returns whether control never reaches the code after the region.
fn leaves(region: &Region) -> bool {
    matches!(region.insts.last(), Some(Inst { op: Op::Return | Op::Break(..) | Op::Continue(..), .. }))
}
