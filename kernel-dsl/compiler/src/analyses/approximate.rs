//! Propagation of approximate results ([`Op::Approximate`]): which arguments they reach, and what
//! they decide.
//!
//! A GPU's approximation differs from the interpreter's within a bound, and so do results computed
//! from it. A kernel's tolerance covers that difference. But where an approximate value decides a
//! branch, an index or an integer, the outcome may differ by more than any bound. Each such
//! [`Decision`] is reported.
//!
//! Marks propagate from operands to results, through variables, shared memory and buffers, and to
//! values that a marked condition selects. Marks do not propagate into a marked branch, which is
//! reported itself. The analysis misses no flow of data, and may mark a value that is exact.
//!
//! The analysis runs on IR with constant loops unrolled and variables as values where possible. So
//! a new value of a register array does not inherit the mark of the old one. Memory is marked by
//! column where an access has a constant last index: of pairs (maximum, sum) in a buffer, only the
//! second is marked. Otherwise memory is marked as a whole.

use crate::error::{Error, Errors};
use crate::ir::{AccessPlace, DynamicId, Guard, Kernel, Label, Location, Op, Region, Role, SharedId, Type, Value};
use crate::passes;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Memory through which values pass.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum MarkedMemory {
    /// Memory of the kernel's argument with this index.
    Argument(u32),
    Shared(SharedId),
    Dynamic(DynamicId),
    Local(u32),
}

/// Column of memory by the last index; `None` means an unknown column.
type Column = (MarkedMemory, Option<u32>);

/// Property that an approximation decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DecisionKind {
    /// The path of control, the number of iterations of a loop, or whether an access is executed.
    Branch,
    /// The accessed element, or the source lane of an exchange.
    Index,
    /// The value of an integer or truth value: a float cast to one, or a stored value.
    Integer,
}

impl DecisionKind {
    /// Returns the name of the decision in reports.
    pub fn name(self) -> &'static str {
        match self {
            DecisionKind::Branch => "branch",
            DecisionKind::Index => "index",
            DecisionKind::Integer => "integer",
        }
    }

    fn message(self) -> &'static str {
        match self {
            DecisionKind::Branch => "this condition depends on an approximate value: a GPU may decide it differently",
            DecisionKind::Index => "this index depends on an approximate value: a GPU may compute another index",
            DecisionKind::Integer => "this integer depends on an approximate value: a GPU may compute another integer",
        }
    }
}

/// Decision by an approximation, with its location.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Decision {
    /// Location of the decision.
    pub location: Location,
    /// Property that is decided.
    pub decided: DecisionKind,
    /// Location of the approximation; if there are several, one of their locations.
    pub from: Location,
}

impl Decision {
    /// Describes the decision with its source lines.
    pub fn error(self, kernel: &Kernel) -> Error {
        let from = &kernel.locations[self.from.0 as usize];
        let source = &kernel.sources[from.source as usize];
        let (line, code) = (source.line + u32::from(from.span.line), source.line_code(u32::from(from.span.line)));
        let mut error = kernel.error(self.location, self.decided.message());
        error.notes.push(format!("the approximate value is computed in line {line}, `{code}`"));
        error.help("compute the value with `math::` functions, which give the same result on every device; or make sure that both outcomes give nearly the same results")
    }
}

/// Results of the analysis of a kernel as lowered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Approximations {
    /// Arguments of the kernel, by index, in whose memory approximate values may be stored.
    pub reached: BTreeSet<u32>,
    /// Decisions in program order, each location once.
    pub decisions: Vec<Decision>,
}

impl Approximations {
    /// Analyzes `kernel` as lowered.
    pub fn of(kernel: &Kernel) -> Approximations {
        if !approximates(&kernel.body) {
            return Approximations::default();
        }
        match unrolled(kernel.clone()) {
            Ok(unrolled) => Approximations::find(&unrolled),
            // A kernel that unrolling rejects is analyzed without unrolling.
            Err(_) => Approximations::find(kernel),
        }
    }

    fn find(kernel: &Kernel) -> Approximations {
        let mut flow = MarkFlow {
            kernel,
            values: HashMap::new(),
            constants: HashMap::new(),
            bases: HashMap::new(),
            moved: HashSet::new(),
            memory: BTreeMap::new(),
            pointees: BTreeMap::new(),
            open: HashMap::new(),
            decisions: None,
            changed: true,
        };
        while std::mem::take(&mut flow.changed) {
            flow.region(&kernel.body, &[]);
        }
        flow.decisions = Some(BTreeSet::new());
        flow.region(&kernel.body, &[]);
        let reached =
            flow.memory.keys().filter_map(|(m, _)| if let MarkedMemory::Argument(i) = m { Some(*i) } else { None });
        let mut decisions: Vec<Decision> = flow.decisions.into_iter().flatten().collect();
        // Several instructions of one location give one decision.
        decisions.dedup_by_key(|decision| (decision.location, decision.decided));
        Approximations { reached: reached.collect(), decisions }
    }
}

/// Unrolls constant loops and turns variables into values. Branches stay branches.
fn unrolled(mut kernel: Kernel) -> Result<Kernel, Errors> {
    passes::run(&mut kernel, &[passes::FRONT, passes::SIMPLIFY])?;
    Ok(kernel)
}

fn approximates(region: &Region) -> bool {
    let one = |op: &Op| matches!(op, Op::Approximate(..)) || op.regions().into_iter().any(approximates);
    region.insts.iter().any(|inst| one(&inst.op))
}

struct MarkFlow<'k> {
    kernel: &'k Kernel,
    /// Marked values, each with the location of its approximation.
    values: HashMap<Value, Location>,
    constants: HashMap<Value, u64>,
    /// Memory that an address may point to.
    bases: HashMap<Value, BTreeSet<MarkedMemory>>,
    /// Addresses that may point past the first column of their memory.
    moved: HashSet<Value>,
    /// Memory that holds marked values.
    memory: BTreeMap<Column, Location>,
    /// Memory that addresses stored in variables point to.
    pointees: BTreeMap<MarkedMemory, BTreeSet<MarkedMemory>>,
    /// Results of the open constructs and parameters of the open loops, by label.
    open: HashMap<Label, [Vec<Value>; 2]>,
    /// Decisions that depend on marked values; `None` until all marks are known.
    decisions: Option<BTreeSet<Decision>>,
    changed: bool,
}

impl MarkFlow<'_> {
    fn mark(&mut self, value: Value, from: Option<Location>) {
        if let Some(from) = from
            && !self.values.contains_key(&value)
        {
            self.values.insert(value, from);
            self.changed = true;
        }
    }

    fn mark_memory(&mut self, column: Column, from: Option<Location>) {
        if let Some(from) = from
            && !self.memory.contains_key(&column)
        {
            self.memory.insert(column, from);
            self.changed = true;
        }
    }

    /// Returns a mark of `memories` in the `i`th column after `column`, if there is one.
    fn find_mark(&self, memories: &[MarkedMemory], column: Option<u32>, i: usize) -> Option<Location> {
        let column = column.map(|first| first.saturating_add(i as u32));
        memories.iter().find_map(|memory| match column {
            Some(_) => [column, None].into_iter().find_map(|c| self.memory.get(&(*memory, c)).copied()),
            None => self.memory.range((*memory, None)..=(*memory, Some(u32::MAX))).next().map(|(_, from)| *from),
        })
    }

    /// Returns the column of a place, if it is known and equal for all accesses.
    fn column(&self, place: &AccessPlace) -> Option<u32> {
        let last = match place {
            _ if place.element_offset().is_some() => return None,
            AccessPlace::Global { base, dims, .. } if !self.moved.contains(base) => {
                dims.last().filter(|dim| dim.stride.is_none()).map(|dim| dim.index)
            }
            AccessPlace::Shared { array, indices, .. } => {
                let alone = |(i, other): (usize, &crate::ir::SharedArray)| {
                    let of_it = i as u32 == array.0;
                    if of_it { other.over.is_none() } else { other.over != Some(*array) }
                };
                self.kernel.shared.iter().enumerate().all(alone).then_some(indices.last().copied()).flatten()
            }
            _ => None,
        };
        self.constants.get(&last?).and_then(|n| u32::try_from(*n).ok())
    }

    /// Propagates the mark and the memory of `value` to `to`.
    fn propagate(&mut self, value: Value, to: Value) {
        self.mark(to, self.values.get(&value).copied());
        if self.moved.contains(&value) {
            self.mark_moved(to);
        }
        if let Some(bases) = self.bases.get(&value).cloned() {
            self.add_bases(to, bases);
        }
    }

    fn add_bases(&mut self, address: Value, bases: impl IntoIterator<Item = MarkedMemory>) {
        let known = self.bases.entry(address).or_default();
        let before = known.len();
        known.extend(bases);
        self.changed |= known.len() > before;
    }

    fn mark_moved(&mut self, address: Value) {
        self.changed |= self.moved.insert(address);
    }

    fn all(&mut self, from: &[Value], to: &[Value]) {
        from.iter().zip(to).for_each(|(from, to)| self.propagate(*from, *to));
    }

    fn record_decision(&mut self, decided: DecisionKind, by: impl IntoIterator<Item = Value>, location: Location) {
        let Some(from) = by.into_iter().find_map(|v| self.values.get(&v).copied()) else { return };
        if let Some(found) = &mut self.decisions {
            found.insert(Decision { location, decided, from });
        }
    }

    /// Returns the memory that a place may lie in. Records indices that approximations decide.
    fn memories(&mut self, place: &AccessPlace, location: Location) -> Vec<MarkedMemory> {
        let mut indices: Vec<Value> =
            place.element_offset().into_iter().flat_map(|w| &w.indices).map(|s| s.index).collect();
        let memories = match place {
            AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
                indices.extend(dims.iter().map(|d| d.index));
                self.bases.get(base).into_iter().flatten().copied().collect()
            }
            AccessPlace::Shared { array, indices: of_array, .. } => {
                indices.extend(of_array);
                vec![MarkedMemory::Shared(self.bytes_of(*array))]
            }
            AccessPlace::Address { base, .. } => self.bases.get(base).into_iter().flatten().copied().collect(),
        };
        self.record_decision(DecisionKind::Index, indices, location);
        memories
    }

    /// Returns the array that provides the storage of `array`.
    fn bytes_of(&self, mut array: SharedId) -> SharedId {
        while let Some(under) = self.kernel.shared[array.0 as usize].over {
            array = under;
        }
        array
    }

    /// Marks the columns of `memories` by the stored values, from a column on.
    fn stored(&mut self, memories: &[MarkedMemory], column: Option<u32>, values: &[Value], location: Location) {
        for (i, value) in values.iter().enumerate() {
            let from = self.values.get(value).copied();
            let column = column.map(|first| first.saturating_add(i as u32));
            memories.iter().for_each(|memory| self.mark_memory((*memory, column), from));
        }
        let exact = values.iter().copied().filter(|v| !self.is_float(*v)).collect::<Vec<_>>();
        if memories.iter().any(|m| matches!(m, MarkedMemory::Argument(_))) {
            self.record_decision(DecisionKind::Integer, exact, location);
        }
    }

    fn is_float(&self, value: Value) -> bool {
        self.kernel.ty(value).scalar().is_some_and(|s| s.is_float() || s.is_half())
    }

    fn region(&mut self, region: &Region, yields: &[Value]) {
        for inst in &region.insts {
            let (at, results) = (inst.location, &inst.results[..]);
            match &inst.op {
                Op::Approximate(..) => self.mark(results[0], Some(at)),
                Op::Constant(bits) => _ = self.constants.insert(results[0], *bits),
                Op::Parameter(i) => {
                    let parameter = &self.kernel.parameters[*i as usize];
                    if let Role::Address { .. } = parameter.role {
                        self.add_bases(results[0], [MarkedMemory::Argument(parameter.argument)]);
                    }
                }
                Op::Dynamic { array, .. } => self.add_bases(results[0], [MarkedMemory::Dynamic(*array)]),
                Op::Offset { base, terms, .. } => {
                    self.propagate(*base, results[0]);
                    let first = |(index, stride): &(Value, Option<Value>)| {
                        stride.is_some() || self.constants.get(index) == Some(&0)
                    };
                    if !terms.iter().all(first) {
                        self.mark_moved(results[0]);
                    }
                    self.record_decision(DecisionKind::Index, terms.iter().map(|(index, _)| *index), at);
                }
                Op::Cast(a) => {
                    self.propagate(*a, results[0]);
                    if self.is_float(*a) && !self.is_float(results[0]) {
                        self.record_decision(DecisionKind::Integer, [*a], at);
                    }
                }
                Op::Load { place, guard, .. } => {
                    let (memories, column) = (self.memories(place, at), self.column(place));
                    for (i, result) in results.iter().enumerate() {
                        self.mark(*result, self.find_mark(&memories, column, i));
                    }
                    if let Some(Guard { condition, otherwise }) = guard {
                        self.record_decision(DecisionKind::Branch, [*condition], at);
                        self.all(otherwise, results);
                    }
                }
                Op::Store { place, values, guard, .. } => {
                    let (memories, column) = (self.memories(place, at), self.column(place));
                    self.stored(&memories, column, values, at);
                    self.record_decision(DecisionKind::Branch, *guard, at);
                }
                Op::Atomic { place, values, .. } => {
                    let (memories, column) = (self.memories(place, at), self.column(place));
                    // The operands of an exchange belong to one element, not to adjacent columns.
                    values.iter().for_each(|value| self.stored(&memories, column, &[*value], at));
                    let from = self.find_mark(&memories, column, 0);
                    results.iter().for_each(|r| self.mark(*r, from));
                }
                Op::CopyAsync(copy) => {
                    let (from, to) = (self.memories(&copy.from, at), self.memories(&copy.to, at));
                    let marked = self.find_mark(&from, None, 0);
                    to.iter().for_each(|memory| self.mark_memory((*memory, None), marked));
                    self.record_decision(DecisionKind::Branch, copy.guard.into_iter().chain(copy.inside), at);
                }
                Op::ReadLocal { local, index } => {
                    let memory = MarkedMemory::Local(local.0);
                    self.record_decision(DecisionKind::Index, *index, at);
                    self.mark(results[0], self.memory.get(&(memory, None)).copied());
                    if let Some(bases) = self.pointees.get(&memory).cloned() {
                        // The variable may hold any address that was stored to it, so the column is
                        // unknown.
                        self.mark_moved(results[0]);
                        self.add_bases(results[0], bases);
                    }
                }
                Op::WriteLocal { local, index, value } => {
                    let memory = MarkedMemory::Local(local.0);
                    self.record_decision(DecisionKind::Index, *index, at);
                    self.mark_memory((memory, None), self.values.get(value).copied());
                    if let Some(bases) = self.bases.get(value).cloned() {
                        let known = self.pointees.entry(memory).or_default();
                        let before = known.len();
                        known.extend(bases);
                        self.changed |= known.len() > before;
                    }
                }
                Op::Shuffle { value, selector, .. } => {
                    self.propagate(*value, results[0]);
                    self.record_decision(DecisionKind::Index, [*selector], at);
                }
                Op::If { condition, then, otherwise } => {
                    self.record_decision(DecisionKind::Branch, [*condition], at);
                    self.region(then, results);
                    self.region(otherwise, results);
                }
                Op::For(l) => {
                    self.record_decision(DecisionKind::Branch, [l.start, l.end, l.step], at);
                    let carried = l.body.parameters[1..].to_vec();
                    if let Some(index) = l.body.parameters.first() {
                        self.propagate(l.start, *index);
                    }
                    self.all(&l.inits, &carried);
                    self.all(&l.inits, results);
                    self.open.insert(l.label, [results.to_vec(), carried.clone()]);
                    self.region(&l.body, &carried);
                    self.all(&carried, results);
                }
                Op::Loop { label, inits, body } => {
                    self.all(inits, &body.parameters);
                    self.open.insert(*label, [results.to_vec(), body.parameters.to_vec()]);
                    self.region(body, &body.parameters);
                }
                Op::Block { label, body } => {
                    self.open.insert(*label, [results.to_vec(), Vec::new()]);
                    self.region(body, results);
                }
                Op::Yield(values) => self.all(values, yields),
                Op::Break(label, values) | Op::Continue(label, values) => {
                    let [leave, next] = self.open.get(label).cloned().unwrap_or_default();
                    self.all(values, if matches!(inst.op, Op::Break(..)) { &leave } else { &next });
                }
                op => {
                    let mut operands = Vec::new();
                    op.for_each_operand(|v| operands.push(v));
                    operands.iter().for_each(|a| results.iter().for_each(|r| self.computed(*a, *r)));
                }
            }
        }
    }

    /// Propagates the mark of an operand, and the memory that it points to, to a result.
    fn computed(&mut self, operand: Value, result: Value) {
        self.mark(result, self.values.get(&operand).copied());
        // An address that is computed from addresses may point to the memory of each.
        if !matches!(self.kernel.ty(result), Type::Scalar(_))
            && let Some(bases) = self.bases.get(&operand).cloned()
        {
            if self.moved.contains(&operand) {
                self.mark_moved(result);
            }
            self.add_bases(result, bases);
        }
    }
}
