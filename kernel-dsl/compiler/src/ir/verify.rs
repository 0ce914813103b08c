//! Invariants that hold for IR as lowered and between any two passes.
//!
//! * Each value has one definition, which precedes its uses in the same region or in nested
//!   regions.
//! * Operands, results, region parameters and the values of terminators have the types that the
//!   operation requires.
//! * Each region ends with its only terminator.
//! * `Break` and `Continue` name a construct around them.

use super::*;
use crate::error::{Error, Errors};
use std::collections::HashSet;

/// Checks `kernel`.
///
/// # Errors
/// All violations of the rules.
pub fn verify(kernel: &Kernel) -> Result<(), Errors> {
    let n = kernel.values.len();
    let mut v = Verifier {
        kernel,
        defined: vec![false; n],
        visible: vec![false; n],
        open: Vec::new(),
        labels: HashSet::new(),
        errors: Vec::new(),
    };
    v.region(&kernel.body, &[]);
    if v.errors.is_empty() { Ok(()) } else { Err(Errors(v.errors)) }
}

impl Kernel {
    /// Returns an error at `location`, or of the whole kernel if the location is unknown.
    pub fn error(&self, location: Location, message: impl Into<String>) -> Error {
        let place = self.locations.get(location.0 as usize);
        match place.and_then(|l| Some((self.sources.get(l.source as usize)?, l.span))) {
            Some((source, span)) => Error::at(source, span, message),
            None => Error::whole(message),
        }
    }
}

/// A construct around the current instruction that `Break` or `Continue` may name.
struct OpenConstruct<'a> {
    label: Label,
    /// The values that receive those of a `Break`.
    leave: &'a [Value],
    /// The values that receive those of a `Continue`; `None` if the construct is not a loop.
    next: Option<&'a [Value]>,
}

struct Verifier<'a> {
    kernel: &'a Kernel,
    defined: Vec<bool>,
    visible: Vec<bool>,
    open: Vec<OpenConstruct<'a>>,
    labels: HashSet<Label>,
    errors: Vec<Error>,
}

use Type::Scalar as S;

impl<'a> Verifier<'a> {
    fn error(&mut self, inst: &Inst, what: impl std::fmt::Display) {
        let text = self.kernel.text(inst).to_string();
        let line = text.lines().next().unwrap_or_default();
        self.errors.push(self.kernel.error(inst.location, format!("IR is malformed: {what}, in `{line}`")));
    }

    fn check(&mut self, inst: &Inst, holds: bool, what: impl std::fmt::Display) {
        if !holds {
            self.error(inst, what);
        }
    }

    fn ty(&self, v: Value) -> Type {
        // Undefined values are reported where they are used; their type does not matter then.
        self.kernel.values.get(v.0 as usize).copied().unwrap_or(S(Scalar::Bool))
    }

    fn define(&mut self, inst: Option<&Inst>, values: &[Value]) {
        for v in values {
            let fault = match self.defined.get_mut(v.0 as usize) {
                None => Some("is not in the kernel's table of values"),
                Some(d) if *d => Some("is defined twice"),
                Some(d) => {
                    *d = true;
                    self.visible[v.0 as usize] = true;
                    None
                }
            };
            if let Some(fault) = fault {
                match inst {
                    Some(i) => self.error(i, format_args!("{v} {fault}")),
                    None => self.errors.push(Error::whole(format!("IR is malformed: {v} {fault}"))),
                }
            }
        }
    }

    fn hide(&mut self, values: &[Value]) {
        for v in values {
            if let Some(slot) = self.visible.get_mut(v.0 as usize) {
                *slot = false;
            }
        }
    }

    /// Verifies a region. `yields` are values of the types that its `Yield` carries.
    fn region(&mut self, region: &'a Region, yields: &[Value]) {
        self.define(None, &region.parameters);
        for (i, inst) in region.insts.iter().enumerate() {
            let last = i + 1 == region.insts.len();
            if inst.op.is_terminator() != last {
                self.error(inst, if last { "a region ends without terminator" } else { "a terminator is not last" });
            }
            self.inst(inst, yields);
        }
        if region.insts.is_empty() {
            self.errors.push(Error::whole("IR is malformed: a region is empty"));
        }
        self.hide(&region.parameters);
        region.insts.iter().for_each(|i| self.hide(&i.results));
    }

    fn inst(&mut self, inst: &'a Inst, yields: &[Value]) {
        let mut unseen = None;
        inst.op.for_each_operand(|v| {
            if !self.visible.get(v.0 as usize).is_some_and(|d| *d) {
                unseen = Some(v);
            }
        });
        if let Some(v) = unseen {
            return self.error(inst, format_args!("{v} is used where it has no definition"));
        }
        self.operation(inst, yields);
        self.define(Some(inst), &inst.results);
    }

    /// Checks types, arities and indices of an instruction.
    fn operation(&mut self, inst: &'a Inst, yields: &[Value]) {
        let result = inst.results.first().map(|v| self.ty(*v));
        let out = result.unwrap_or(S(Scalar::Bool));
        let scalar = out.scalar();
        let results = inst.results.len();
        if inst.op.is_pure() && results != 1 {
            return self.error(inst, "it has one result");
        }
        match &inst.op {
            Op::Constant(bits) => {
                let mask = scalar.map_or(u64::from(u32::MAX), Scalar::mask);
                // Null is the initial value of an address variable.
                self.check(inst, out != Type::Global || *bits == 0, "an address in global memory is not constant");
                self.check(inst, bits & !mask == 0, "the constant has more bits than its type");
            }
            Op::Parameter(i) => {
                let ty = self.kernel.parameters.get(*i as usize).map(Parameter::ty);
                self.check(inst, ty == result, "the parameter has another type");
            }
            Op::Table(t) => self.check(
                inst,
                self.kernel.table(*t).is_some() && out.is_wide_address(),
                "the table does not exist, or the result is not an address",
            ),
            Op::Special(s) => {
                self.check(
                    inst,
                    s.axis() < 3 && out == S(Scalar::Usize),
                    "a special register has axis 0 to 2 and is usize",
                );
            }
            Op::Unary(op, a) => {
                let from = self.ty(*a).scalar();
                let fits = from.is_some_and(|s| match op {
                    Unary::Neg => s.is_float() || s.is_integer(),
                    Unary::Not => s.is_integer() || s == Scalar::Bool,
                    Unary::Abs => s.is_float() || s.is_signed(),
                    Unary::Sqrt | Unary::Floor | Unary::Ceil | Unary::Trunc | Unary::RoundEven => s.is_float(),
                    Unary::CountOnes | Unary::LeadingZeros | Unary::ReverseBits | Unary::SwapBytes => {
                        s.is_integer() && s.bits() >= 32
                    }
                });
                let to = match op {
                    Unary::CountOnes | Unary::LeadingZeros => Some(Scalar::U32),
                    _ => from,
                };
                self.check(inst, fits && scalar == to, "the operand's or result's type does not fit the operator");
            }
            Op::Binary(op, a, b) => {
                let (ta, tb) = (self.ty(*a).scalar(), self.ty(*b).scalar());
                let fits = ta.is_some_and(|s| match op {
                    Binary::Add | Binary::Sub | Binary::Mul | Binary::Div | Binary::Rem | Binary::Min | Binary::Max => {
                        s.is_integer() || s.is_float()
                    }
                    Binary::And | Binary::Or | Binary::Xor => s.is_integer() || s == Scalar::Bool,
                    Binary::RotateLeft => s.is_integer() && s.bits() == 32,
                    _ => s.is_integer(),
                });
                let second = if op.is_shift() { Some(Scalar::U32) } else { ta };
                self.check(
                    inst,
                    fits && tb == second && scalar == ta,
                    "operand and result types do not fit the operator",
                );
            }
            Op::MulAdd(a, b, c) => {
                let same = [*a, *b, *c].iter().all(|v| self.ty(*v) == out);
                self.check(inst, same && scalar.is_some_and(Scalar::is_float), "mul_add has one float type");
            }
            Op::Approximate(_, a) => {
                let fits = scalar == Some(Scalar::F32) && self.ty(*a) == out;
                self.check(inst, fits, "approximations have operand and result of type f32");
            }
            Op::Bits(what, operands) => {
                let types: Option<Vec<Scalar>> = operands.iter().map(|v| self.ty(*v).scalar()).collect();
                let to = types.and_then(|types| what.result(&types));
                self.check(inst, to.is_some() && to == scalar, "operand and result types do not fit the instruction");
            }
            Op::Compare(c, a, b) => {
                let ordered = self.ty(*a) != S(Scalar::Bool) || matches!(c, Comparison::Eq | Comparison::Ne);
                let fits = self.ty(*a) == self.ty(*b) && self.ty(*a).scalar().is_some_and(|s| !s.is_half()) && ordered;
                self.check(inst, fits && out == S(Scalar::Bool), "a comparison has one scalar type and gives bool");
            }
            Op::Select { condition, yes, no } => {
                let fits = self.ty(*condition) == S(Scalar::Bool) && self.ty(*yes) == out && self.ty(*no) == out;
                self.check(inst, fits, "select takes a bool and two values of the result's type");
            }
            Op::Cast(a) => {
                let fits = match (self.ty(*a).scalar(), scalar) {
                    (Some(Scalar::F16), Some(Scalar::F32)) | (Some(Scalar::F32), Some(Scalar::F16)) => true,
                    (Some(from), Some(to)) if from.is_half() || to.is_half() => from == to,
                    (Some(from), Some(to)) => {
                        from == to || (to != Scalar::Bool && !(from == Scalar::Bool && to.is_float()))
                    }
                    _ => false,
                };
                self.check(inst, fits, "Rust has no `as` cast between these types");
            }
            Op::Bitcast(a) => {
                let fits = self.ty(*a).scalar().map(Scalar::bits) == scalar.map(Scalar::bits) && scalar.is_some();
                self.check(inst, fits, "a bitcast is between types of one width");
            }
            Op::Offset { base, terms, .. } => {
                let mut values = terms.iter().flat_map(|(i, s)| [Some(*i), *s]).flatten();
                let fits = values.all(|v| self.ty(v) == S(Scalar::Usize));
                self.check(
                    inst,
                    fits && out == self.ty(*base) && scalar.is_none(),
                    "offset moves an address by usize terms",
                );
            }
            Op::Dynamic { array, extents } => {
                let rank = self.kernel.dynamic.get(array.0 as usize).map(|a| a.extents.len());
                let fits = extents.iter().all(|v| self.ty(*v) == S(Scalar::Usize)) && rank == Some(extents.len());
                self.check(
                    inst,
                    fits && out == Type::Shared && results == 1,
                    "it gives an address in shared memory, and has a usize extent for each dimension of its array",
                );
            }
            Op::Load { place, element, guard, .. } => {
                self.place(inst, place, *element, results as u32);
                let fits = inst.results.iter().all(|r| self.ty(*r) == S(*element)) && results > 0;
                self.check(inst, fits, "a load's results have its element type");
                if let Some(g) = guard {
                    let fits = self.ty(g.condition) == S(Scalar::Bool) && self.same(&g.otherwise, &inst.results);
                    self.check(inst, fits, "a guard is a bool and a value of the element type for each result");
                }
            }
            Op::Store { place, element, values, guard } => {
                self.place(inst, place, *element, values.len() as u32);
                let fits = values.iter().all(|r| self.ty(*r) == S(*element)) && !values.is_empty() && results == 0;
                self.check(inst, fits, "a store's values have its element type, and it has no result");
                self.check(inst, guard.is_none_or(|g| self.ty(g) == S(Scalar::Bool)), "a guard is a bool");
            }
            Op::MarkUndef { place, element, count, guard } => {
                self.place(inst, place, *element, *count);
                let shared = match place {
                    AccessPlace::Shared { .. } | AccessPlace::Dynamic { .. } => true,
                    AccessPlace::Address { base, .. } => self.ty(*base) == Type::Shared,
                    AccessPlace::Global { .. } => false,
                };
                self.check(
                    inst,
                    shared && results == 0,
                    "the marked elements are in shared memory, and there is no result",
                );
                self.check(inst, guard.is_none_or(|g| self.ty(g) == S(Scalar::Bool)), "a guard is a bool");
            }
            Op::CopyAsync(copy) => {
                let AsyncCopy { to, from, element, count, guard, inside, bytes } = &**copy;
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
                    spaces && size && results == 0,
                    "a copy moves 4, 8 or 16 bytes from global to shared memory",
                );
                let truths = [guard, inside].into_iter().flatten().all(|v| self.ty(*v) == S(Scalar::Bool));
                let fits = truths && bytes.is_none_or(|b| self.ty(b) == S(Scalar::Usize));
                self.check(inst, fits, "a copy has `bool` conditions and a usize number of bytes");
            }
            Op::CopyCommit => {
                self.check(inst, results == 1 && out == S(Scalar::Usize), "the number of a group of copies is usize");
            }
            Op::CopyWait(landing) => {
                let fits = match landing {
                    WaitGroup::UpTo(group) => self.ty(*group) == S(Scalar::Usize),
                    WaitGroup::AllBut(_) => true,
                };
                self.check(inst, fits && results == 0, "a wait is for a group, by its usize number, and has no result");
            }
            Op::LifetimeStart(array) => {
                let fits = (array.0 as usize) < self.kernel.shared.len() && results == 0;
                self.check(inst, fits, "there is no such shared array, or it has a result");
            }
            Op::DbgValue { value, .. } => {
                let fits = matches!(self.ty(*value), S(_)) && results == 0;
                self.check(inst, fits, "a variable is a scalar, and has no result");
            }
            Op::Atomic { operation, place, element, values } => {
                self.place(inst, place, *element, 1);
                let fits = values.iter().chain(&inst.results).all(|v| self.ty(*v) == S(*element));
                let most = usize::from(*operation != Atomic::Store);
                let counts = values.len() == operation.operands() && results <= most;
                self.check(
                    inst,
                    fits && counts,
                    "an atomic operation has one element type, and has one result at most",
                );
                self.check(inst, operation.takes(*element), "there is no such atomic operation on its element type");
            }
            Op::Inline { code, inputs } => {
                let source = code.source();
                let fits = source.inputs().map(|o| S(o.ty)).eq(inputs.iter().map(|v| self.ty(*v)))
                    && source.outputs().map(|o| S(o.ty)).eq(inst.results.iter().map(|v| self.ty(*v)));
                self.check(inst, fits, "inline PTX takes and gives values of the types of its operands");
            }
            Op::ReadLocal { local, index } => self.local(inst, *local, *index, (results == 1).then_some(out)),
            Op::WriteLocal { local, index, value } => {
                let ty = self.ty(*value);
                self.local(inst, *local, *index, (results == 0).then_some(ty));
            }
            Op::GridSync | Op::BlockSync | Op::WarpSync | Op::Fence(_) => {
                self.check(inst, results == 0, "it has no result")
            }
            Op::Shuffle { value, selector, width, .. } => {
                let wide = scalar.is_some_and(|s| s.bits() >= 32);
                let fits = results == 1 && self.ty(*value) == out && wide && self.ty(*selector) == S(Scalar::U32);
                self.check(inst, fits, "a shuffle exchanges a 32- or 64-bit value by a u32");
                self.check(inst, matches!(width, 2 | 4 | 8 | 16 | 32), "a shuffle's width is 2, 4, 8, 16 or 32");
            }
            Op::Vote { mode, value } => {
                let ty = if *mode == Vote::Ballot { Scalar::U32 } else { Scalar::Bool };
                let fits = results == 1 && self.ty(*value) == S(Scalar::Bool) && out == S(ty);
                self.check(inst, fits, "a vote takes a bool; a ballot gives u32, others bool");
            }
            Op::Match(value) => {
                let wide = self.ty(*value).scalar().is_some_and(|s| s.bits() >= 32);
                self.check(
                    inst,
                    results == 1 && wide && out == S(Scalar::U32),
                    "a match takes 32 or 64 bits and gives u32",
                );
            }
            Op::Reduce(operation, value) => {
                let narrow = scalar.is_some_and(|s| s.is_integer() && s.bits() == 32);
                let fits = results == 1 && narrow && self.ty(*value) == out;
                self.check(inst, fits, "a reduction has one type of integers of 32 bits");
                let known = matches!(operation, Binary::Add | Binary::Min | Binary::Max);
                self.check(inst, known, "a reduction is a sum, a minimum or a maximum");
            }
            Op::Panic { values, .. } => {
                let fits = values.iter().all(|v| matches!(self.ty(*v), S(_))) && results == 0;
                self.check(inst, fits, "a panic shows scalars, and has no result");
            }
            Op::Log { values, .. } => {
                use Scalar::{Bool, F64, I32, I64, U32, U64};
                let printed = |v: &Value| matches!(self.ty(*v), S(Bool | I32 | U32 | I64 | U64 | F64));
                let fits = values.iter().all(printed) && results == 0;
                self.check(inst, fits, "a log prints values that `printf` takes, and has no result");
            }
            Op::RecordViolation { record, values, .. } => {
                let numbers = values.iter().all(|v| self.ty(*v) == S(Scalar::Usize));
                let fits = numbers && values.len() <= record::MAX_VALUES && results == 0;
                self.check(
                    inst,
                    fits && self.ty(*record) == Type::Global,
                    "a report has an address and some usize values",
                );
            }
            Op::If { condition, then, otherwise } => {
                self.check(inst, self.ty(*condition) == S(Scalar::Bool), "an `if` takes a bool");
                for region in [then, otherwise] {
                    self.check(inst, region.parameters.is_empty(), "its regions have no parameters");
                    self.region(region, &inst.results);
                }
            }
            Op::For(l) => {
                let index = self.ty(l.start);
                let fits = index == self.ty(l.end) && index == self.ty(l.step);
                self.check(
                    inst,
                    fits && index.scalar().is_some_and(Scalar::is_integer),
                    "a range has one integer type",
                );
                let Some((first, carried)) = l.body.parameters.split_first() else {
                    return self.error(inst, "a `for` has an index");
                };
                let fits =
                    self.ty(*first) == index && self.same(&l.inits, carried) && self.same(carried, &inst.results);
                self.check(inst, fits, "first values, carried parameters and results differ in number or type");
                let open = OpenConstruct { label: l.label, leave: &inst.results, next: Some(carried) };
                self.within(inst, open, &l.body, carried);
            }
            Op::Loop { label, inits, body } => {
                self.check(inst, self.same(inits, &body.parameters), "first values and carried parameters differ");
                let open = OpenConstruct { label: *label, leave: &inst.results, next: Some(&body.parameters) };
                self.within(inst, open, body, &body.parameters);
            }
            Op::Block { label, body } => {
                self.check(inst, body.parameters.is_empty(), "a block has no parameters");
                let open = OpenConstruct { label: *label, leave: &inst.results, next: None };
                self.within(inst, open, body, &inst.results);
            }
            Op::Yield(values) => {
                let fits = self.same(values, yields) && results == 0;
                self.check(inst, fits, "the yielded values do not match the results of the construct");
            }
            Op::Break(label, values) | Op::Continue(label, values) => {
                let target = self.open.iter().find(|o| o.label == *label);
                let takes = target.and_then(|o| if matches!(inst.op, Op::Break(..)) { Some(o.leave) } else { o.next });
                match takes {
                    None => self.error(inst, "no enclosing construct has this label"),
                    Some(t) if !self.same(values, t) => {
                        self.error(inst, "the carried values do not match those of the target")
                    }
                    Some(_) => {}
                }
            }
            Op::Return => {}
        }
    }

    fn within(&mut self, inst: &Inst, open: OpenConstruct<'a>, body: &'a Region, yields: &[Value]) {
        let label = open.label;
        let new = self.labels.insert(label);
        self.check(inst, new, "another construct has the same label");
        self.open.push(open);
        self.region(body, yields);
        self.open.pop();
    }

    /// Returns whether `values` has the length and the types of `like`.
    fn same(&self, values: &[Value], like: &[Value]) -> bool {
        values.len() == like.len() && values.iter().zip(like).all(|(a, b)| self.ty(*a) == self.ty(*b))
    }

    /// Verifies an access to `n` scalars of type `scalar` at `place`.
    fn place(&mut self, inst: &Inst, place: &AccessPlace, scalar: Scalar, n: u32) {
        let index = |v: Value| self.ty(v) == S(Scalar::Usize);
        let fault = match place {
            AccessPlace::Global { dims, within: None, .. } if dims.is_empty() => Some("it has no dimensions"),
            AccessPlace::Global { base, .. } if !self.ty(*base).is_wide_address() => {
                Some("its base is not an address in global or constant memory")
            }
            AccessPlace::Global { base, .. } | AccessPlace::Address { base, .. }
                if self.ty(*base) == Type::Constant && !matches!(inst.op, Op::Load { .. }) =>
            {
                Some("constant memory is read-only")
            }
            AccessPlace::Dynamic { base, .. } if self.ty(*base) != Type::Shared => {
                Some("its base is not an address in shared memory")
            }
            AccessPlace::Global { dims, .. } | AccessPlace::Dynamic { dims, .. }
                if !dims.iter().all(|d| index(d.index) && index(d.extent) && d.stride.is_none_or(index)) =>
            {
                Some("indices, extents and strides are usize")
            }
            AccessPlace::Shared { array, indices, within } => match self.kernel.shared.get(array.0 as usize) {
                None => Some("there is no such shared array"),
                Some(a) if a.shape.len() != indices.len() => {
                    Some("the number of indices differs from the number of dimensions")
                }
                Some(_) if !indices.iter().all(|i| index(*i)) => Some("indices are usize"),
                Some(a) if within.as_ref().map_or(scalar.bytes(), |w| w.bytes) != a.element.bytes() => {
                    Some("the size of its elements differs from that of the array's")
                }
                Some(a) if a.swizzle().is_some() && n * scalar.bytes() > Swizzle::PIECE => {
                    Some("the access exceeds a unit of a swizzled row")
                }
                Some(_) => None,
            },
            AccessPlace::Address { base, .. } if self.ty(*base).scalar().is_some() => {
                Some("its base is not an address")
            }
            _ => None,
        };
        let fault = fault.or_else(|| {
            let within = place.within()?;
            let size = scalar.bytes();
            let last = within.indices.last();
            // A word of elements that are smaller.
            let several = within.offset == 0 && last.is_none() && within.bytes > 0 && size.is_multiple_of(within.bytes);
            if within.indices.iter().any(|step| !index(step.index)) {
                Some("indices are usize")
            } else if !several
                && (within.offset % size != 0 || within.bytes % size != 0 || within.offset >= within.bytes)
            {
                Some("a scalar in an element lies inside it, at a multiple of the scalar's size")
            } else if last.is_some_and(|step| step.bytes < n * size && n > step.extent) {
                Some("the access exceeds the array in the element")
            } else {
                None
            }
        });
        if let Some(fault) = fault {
            self.error(inst, fault);
        }
    }

    fn local(&mut self, inst: &Inst, local: LocalId, index: Option<Value>, ty: Option<Type>) {
        let found = self.kernel.locals.get(local.0 as usize);
        self.check(inst, found.is_some_and(|l| Some(l.element) == ty), "the local has another type");
        self.check(inst, index.is_none_or(|i| self.ty(i) == S(Scalar::Usize)), "an index is usize");
    }
}
