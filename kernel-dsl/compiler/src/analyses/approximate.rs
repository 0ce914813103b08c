//! What comes of approximations ([`Op::Approximate`]): which arguments they reach, and what they decide.
//!
//! A GPU's approximation differs from the interpreter's within a bound, and so does what arithmetic makes of it: that is what a
//! kernel's tolerance is for. But where such a value decides which way a thread goes, which element it touches, or what an
//! integer is, the outcome differs by more than any bound, and that is told ([`Decision`]).
//!
//! Marks go from operands to results, through variables, shared memory and buffers, each as a whole, and to what is chosen by a
//! marked condition; not to what is computed behind a marked branch, which is told itself. So nothing is missed that
//! flows, and now and then something is marked that is not approximate.

use crate::error::Error;
use crate::ir::{DynamicId, Guard, Kernel, Label, Location, Op, Place, Region, Role, SharedId, Type, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Memory that values go through.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Memory {
    /// What an argument of the kernel points to, by its index.
    Argument(u32),
    Shared(SharedId),
    Dynamic(DynamicId),
    Local(u32),
}

/// What an approximation decides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Decided {
    /// Which way threads go, how often they run a loop, or whether an access is made.
    Branch,
    /// Which element is accessed, or which lane asked.
    Index,
    /// The value of an integer or truth value: a float cast to one, or one that is stored.
    Integer,
}

impl Decided {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Decided::Branch => "branch",
            Decided::Index => "index",
            Decided::Integer => "integer",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Decided::Branch => "an approximation decides here: on a GPU it may go the other way",
            Decided::Index => "this index comes of an approximation: on a GPU it may be another",
            Decided::Integer => "this integer comes of an approximation: on a GPU it may be another",
        }
    }
}

/// Something that an approximation decides, and where.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Decision {
    /// Where.
    pub location: Location,
    /// What.
    pub decided: Decided,
    /// The approximation that it comes of; of several, one.
    pub from: Location,
}

impl Decision {
    /// In words, with the lines.
    pub fn error(self, kernel: &Kernel) -> Error {
        let from = &kernel.locations[self.from.0 as usize];
        let source = &kernel.sources[from.source as usize];
        let (line, code) = (source.line + u32::from(from.span.line), source.line_code(u32::from(from.span.line)));
        let mut error = kernel.error(self.location, self.decided.message());
        error.notes.push(format!("it comes of line {line}, `{code}`"));
        error.help("decide by values that are the same everywhere, such as `math::` makes; or see to it that either way gives nearly the same")
    }
}

/// What comes of the approximations of a kernel as lowered.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Approximations {
    /// Arguments of the kernel, by index, in whose memory approximate values may be stored.
    pub reached: BTreeSet<u32>,
    /// What they decide, each place once, in the order of the program.
    pub decisions: Vec<Decision>,
}

impl Approximations {
    /// Of `kernel`, as lowered.
    pub fn of(kernel: &Kernel) -> Approximations {
        if !approximates(&kernel.body) {
            return Approximations::default();
        }
        let mut flow = Flow {
            kernel,
            values: HashMap::new(),
            bases: HashMap::new(),
            memory: BTreeMap::new(),
            behind: BTreeMap::new(),
            open: HashMap::new(),
            decisions: None,
            changed: true,
        };
        while std::mem::take(&mut flow.changed) {
            flow.region(&kernel.body, &[]);
        }
        flow.decisions = Some(BTreeSet::new());
        flow.region(&kernel.body, &[]);
        let reached = flow.memory.keys().filter_map(|m| if let Memory::Argument(i) = m { Some(*i) } else { None });
        Approximations { reached: reached.collect(), decisions: flow.decisions.into_iter().flatten().collect() }
    }
}

fn approximates(region: &Region) -> bool {
    let one = |op: &Op| matches!(op, Op::Approximate(..)) || op.regions().into_iter().any(approximates);
    region.insts.iter().any(|inst| one(&inst.op))
}

struct Flow<'k> {
    kernel: &'k Kernel,
    /// The marked values, and the approximation that each comes of.
    values: HashMap<Value, Location>,
    /// What an address may lie in.
    bases: HashMap<Value, BTreeSet<Memory>>,
    /// The memory in which marked values lie.
    memory: BTreeMap<Memory, Location>,
    /// What the addresses that lie in variables point to.
    behind: BTreeMap<Memory, BTreeSet<Memory>>,
    /// Results of the constructs, and parameters of the loops, by label.
    open: HashMap<Label, [Vec<Value>; 2]>,
    /// What was found; `None` while marks still spread.
    decisions: Option<BTreeSet<Decision>>,
    changed: bool,
}

impl Flow<'_> {
    fn mark(&mut self, value: Value, from: Option<Location>) {
        if let Some(from) = from
            && !self.values.contains_key(&value)
        {
            self.values.insert(value, from);
            self.changed = true;
        }
    }

    fn mark_memory(&mut self, memory: Memory, from: Option<Location>) {
        if let Some(from) = from
            && !self.memory.contains_key(&memory)
        {
            self.memory.insert(memory, from);
            self.changed = true;
        }
    }

    /// What `to` is, is `value`, too.
    fn flows(&mut self, value: Value, to: Value) {
        self.mark(to, self.values.get(&value).copied());
        if let Some(bases) = self.bases.get(&value).cloned() {
            self.lies(to, bases);
        }
    }

    fn lies(&mut self, address: Value, bases: impl IntoIterator<Item = Memory>) {
        let known = self.bases.entry(address).or_default();
        let before = known.len();
        known.extend(bases);
        self.changed |= known.len() > before;
    }

    fn all(&mut self, from: &[Value], to: &[Value]) {
        from.iter().zip(to).for_each(|(from, to)| self.flows(*from, *to));
    }

    fn decides(&mut self, decided: Decided, by: impl IntoIterator<Item = Value>, location: Location) {
        let Some(from) = by.into_iter().find_map(|v| self.values.get(&v).copied()) else { return };
        if let Some(found) = &mut self.decisions {
            found.insert(Decision { location, decided, from });
        }
    }

    /// The memory that a place may lie in; tells of indices that approximations decide.
    fn memories(&mut self, place: &Place, location: Location) -> Vec<Memory> {
        let mut indices: Vec<Value> = place.within().into_iter().flat_map(|w| &w.indices).map(|s| s.index).collect();
        let memories = match place {
            Place::Global { base, dims, .. } | Place::Dynamic { base, dims, .. } => {
                indices.extend(dims.iter().map(|d| d.index));
                self.bases.get(base).into_iter().flatten().copied().collect()
            }
            Place::Shared { array, indices: of_array, .. } => {
                indices.extend(of_array);
                vec![Memory::Shared(self.bytes_of(*array))]
            }
            Place::Address { base, .. } => self.bases.get(base).into_iter().flatten().copied().collect(),
        };
        self.decides(Decided::Index, indices, location);
        memories
    }

    /// The array whose bytes an array has.
    fn bytes_of(&self, mut array: SharedId) -> SharedId {
        while let Some(under) = self.kernel.shared[array.0 as usize].over {
            array = under;
        }
        array
    }

    /// Values that are stored in `memories`.
    fn stored(&mut self, memories: &[Memory], values: &[Value], location: Location) {
        let from = values.iter().find_map(|v| self.values.get(v).copied());
        memories.iter().for_each(|memory| self.mark_memory(*memory, from));
        let exact = values.iter().copied().filter(|v| !self.is_float(*v)).collect::<Vec<_>>();
        if memories.iter().any(|m| matches!(m, Memory::Argument(_))) {
            self.decides(Decided::Integer, exact, location);
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
                Op::Parameter(i) => {
                    let parameter = &self.kernel.parameters[*i as usize];
                    if let Role::Address { .. } = parameter.role {
                        self.lies(results[0], [Memory::Argument(parameter.argument)]);
                    }
                }
                Op::Dynamic { array, .. } => self.lies(results[0], [Memory::Dynamic(*array)]),
                Op::Offset { base, terms, .. } => {
                    self.flows(*base, results[0]);
                    self.decides(Decided::Index, terms.iter().map(|(index, _)| *index), at);
                }
                Op::Cast(a) => {
                    self.flows(*a, results[0]);
                    if self.is_float(*a) && !self.is_float(results[0]) {
                        self.decides(Decided::Integer, [*a], at);
                    }
                }
                Op::Load { place, guard, .. } => {
                    let memories = self.memories(place, at);
                    let from = memories.iter().find_map(|m| self.memory.get(m).copied());
                    results.iter().for_each(|r| self.mark(*r, from));
                    if let Some(Guard { condition, otherwise }) = guard {
                        self.decides(Decided::Branch, [*condition], at);
                        self.all(otherwise, results);
                    }
                }
                Op::Store { place, values, guard, .. } => {
                    let memories = self.memories(place, at);
                    self.stored(&memories, values, at);
                    self.decides(Decided::Branch, *guard, at);
                }
                Op::Atomic { place, values, .. } => {
                    let memories = self.memories(place, at);
                    self.stored(&memories, values, at);
                    let from = memories.iter().find_map(|m| self.memory.get(m).copied());
                    results.iter().for_each(|r| self.mark(*r, from));
                }
                Op::ReadLocal { local, index } => {
                    let memory = Memory::Local(local.0);
                    self.decides(Decided::Index, *index, at);
                    self.mark(results[0], self.memory.get(&memory).copied());
                    if let Some(bases) = self.behind.get(&memory).cloned() {
                        self.lies(results[0], bases);
                    }
                }
                Op::WriteLocal { local, index, value } => {
                    let memory = Memory::Local(local.0);
                    self.decides(Decided::Index, *index, at);
                    self.mark_memory(memory, self.values.get(value).copied());
                    if let Some(bases) = self.bases.get(value).cloned() {
                        let known = self.behind.entry(memory).or_default();
                        let before = known.len();
                        known.extend(bases);
                        self.changed |= known.len() > before;
                    }
                }
                Op::Shuffle { value, selector, .. } => {
                    self.flows(*value, results[0]);
                    self.decides(Decided::Index, [*selector], at);
                }
                Op::If { condition, then, otherwise } => {
                    self.decides(Decided::Branch, [*condition], at);
                    self.region(then, results);
                    self.region(otherwise, results);
                }
                Op::For(l) => {
                    self.decides(Decided::Branch, [l.start, l.end, l.step], at);
                    let carried = l.body.parameters[1..].to_vec();
                    if let Some(index) = l.body.parameters.first() {
                        self.flows(l.start, *index);
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

    /// What an operation makes of one of its operands.
    fn computed(&mut self, operand: Value, result: Value) {
        self.mark(result, self.values.get(&operand).copied());
        // A choice of addresses.
        if !matches!(self.kernel.ty(result), Type::Scalar(_))
            && let Some(bases) = self.bases.get(&operand).cloned()
        {
            self.lies(result, bases);
        }
    }
}
