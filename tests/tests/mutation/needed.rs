//! Conditions under which the values of a kernel are demanded.
//!
//! A value that is demanded only where a condition holds may be anything elsewhere. For example,
//! `select c, a, b` that is used only where `c` holds is `a`. A masked load may give any value to
//! lanes outside its mask, if only lanes inside demand it. Such a value is always replaced in the
//! same way, by the other operand or by zero. Kernels that differ only there become equal.
//!
//! The analysis keeps sets of facts for each value; a fact is a condition and whether it holds.
//! Whenever a thread demands the value, by an effect or through other values, all facts of one set
//! hold. In the order of definitions, a replacement equals the value wherever these facts hold. The
//! facts of an operand include those of the value that uses it, and the facts that select it: the
//! condition of a select, or the side of a branch.
//!
//! If an index plus a constant is below an end, so is the index: as in the other rewrites, no
//! compared sum has wrapped. A fact counts only if its condition is defined before the value, and
//! so belongs to the same iteration of each loop. A loop-carried value is demanded in all
//! iterations or in none.

use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, Comparison, Inst, Kernel, Label, Location, Op, Region, Type, Unary, Value, Values,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Conditions, and whether they hold.
type Truths = BTreeSet<(Value, bool)>;

/// Maximum number of sets of facts for a value; beyond it, their intersection is kept.
const WAYS: usize = 4;

/// Replaces values where they are not demanded, and returns whether there was one.
pub fn needed(kernel: &mut Kernel) -> bool {
    let mut needs = Needs {
        asked: vec![Vec::new(); kernel.values.len()],
        order: vec![u32::MAX; kernel.values.len()],
        made_of: HashMap::new(),
        loops: HashMap::new(),
        zeros: HashSet::new(),
        outcomes: HashMap::new(),
        less: HashMap::new(),
        sums: HashMap::new(),
        constants: HashMap::new(),
        implied: HashMap::new(),
        next: 0,
    };
    needs.define(kernel, &kernel.body);
    needs.region(&kernel.body, &Truths::new(), End::Always);
    let mut body = std::mem::take(&mut kernel.body);
    let mut rewriter = Rewriter { needs, kernel, zeros: HashMap::new(), replacements: HashMap::new(), changed: false };
    rewriter.region(&mut body);
    replaced(&mut body, &rewriter.replacements);
    let (zeros, changed) = (rewriter.zeros, rewriter.changed);
    let zeros = zeros.into_values().map(|zero| Inst {
        op: Op::Constant(0),
        results: [zero].into_iter().collect(),
        location: Location(0),
    });
    body.insts.splice(0..0, zeros);
    kernel.body = body;
    changed
}

fn replaced(region: &mut Region, replacements: &HashMap<Value, Value>) {
    for inst in &mut region.insts {
        inst.op.map_operands(|mut value| {
            while let Some(replaced) = replacements.get(&value) {
                value = *replaced;
            }
            value
        });
        inst.op.regions_mut().into_iter().for_each(|inner| replaced(inner, replacements));
    }
}

/// The definition of a Boolean.
#[derive(Clone, Copy)]
enum Made {
    And(Value, Value),
    Or(Value, Value),
    Not(Value),
    /// A select with a constant on one side: where the result differs from it, the condition is
    /// `holds`.
    Other {
        condition: Value,
        constant: bool,
        holds: bool,
    },
}

struct Needs {
    /// The sets of facts under which each value is demanded; none if it never is.
    asked: Vec<Vec<Truths>>,
    /// The position of each value in the order of definitions.
    order: Vec<u32>,
    made_of: HashMap<Value, Made>,
    /// The parameters and results of each loop.
    loops: HashMap<Label, Carried>,
    /// Constants of zero.
    zeros: HashSet<Value>,
    /// Constant Booleans.
    outcomes: HashMap<Value, bool>,
    /// For each pair of values: comparisons of whether the first is less.
    less: HashMap<(Value, Value), Vec<Value>>,
    /// Indices that are the sum of another and a constant, and do not wrap.
    sums: HashMap<Value, (Value, u64)>,
    constants: HashMap<Value, u64>,
    /// Conditions that hold where a comparison does.
    implied: HashMap<Value, Vec<Value>>,
    next: u32,
}

/// The loop-carried values, by position.
#[derive(Clone, Default)]
struct Carried {
    parameters: Values,
    results: Values,
    /// Whether the results are the values that the last iteration yields.
    counted: bool,
}

impl Carried {
    fn of(op: &Op, results: &Values) -> Option<(Label, Carried)> {
        let (label, parameters, counted) = match op {
            Op::For(l) => (l.label, l.body.parameters.iter().skip(1).copied().collect(), true),
            Op::Loop { label, body, .. } => (*label, body.parameters.clone(), false),
            Op::Block { label, .. } => (*label, Values::new(), true),
            _ => return None,
        };
        Some((label, Carried { parameters, results: results.clone(), counted }))
    }

    /// Returns the values that the `i`-th yielded value becomes.
    fn becomes(&self, i: usize) -> impl Iterator<Item = Value> {
        let result = self.results.get(i).filter(|_| self.counted);
        self.parameters.get(i).into_iter().chain(result).copied().collect::<Values>().into_iter()
    }
}

/// The destination of the values that end a region.
#[derive(Clone, Copy)]
enum End<'r> {
    Always,
    /// The results of a branch.
    Side(&'r Values),
    Turn(Label),
}

impl Needs {
    fn define(&mut self, kernel: &Kernel, region: &Region) {
        let define = |needs: &mut Needs, value: &Value| {
            needs.order[value.0 as usize] = needs.next;
            needs.next += 1;
        };
        region.parameters.iter().for_each(|v| define(self, v));
        for inst in &region.insts {
            inst.op.regions().into_iter().for_each(|inner| self.define(kernel, inner));
            inst.results.iter().for_each(|v| define(self, v));
            if inst.op == Op::Constant(0) {
                self.zeros.extend(&inst.results);
            }
            if let Op::Compare(comparison @ (Comparison::Lt | Comparison::Gt), a, b) = inst.op {
                let pair = if comparison == Comparison::Lt { (a, b) } else { (b, a) };
                self.less.entry(pair).or_default().extend(&inst.results);
                self.imply(pair, inst.results[0]);
            }
            match &inst.op {
                Op::Constant(bits) if kernel.ty(inst.results[0]) == Type::Scalar(Scalar::Usize) => {
                    self.constants.insert(inst.results[0], *bits);
                }
                Op::Binary(Binary::Add, a, b) if kernel.ty(*a) == Type::Scalar(Scalar::Usize) => {
                    for (of, more) in [(a, b), (b, a)] {
                        // A constant above half of the range represents a negative number.
                        if let Some(more) = self.constants.get(more).filter(|more| **more < 1 << 31) {
                            self.sums.insert(inst.results[0], (*of, *more));
                        }
                    }
                }
                Op::Constant(bits) if kernel.ty(inst.results[0]) == Type::Scalar(Scalar::Bool) => {
                    self.outcomes.insert(inst.results[0], *bits != 0);
                }
                Op::Select { condition, yes, no } => self.choice(*condition, [*yes, *no], inst.results[0]),
                Op::If { condition, then, otherwise } => {
                    let ends = [then, otherwise].map(|side| side.yielded().cloned().unwrap_or_default());
                    for (i, result) in inst.results.iter().enumerate() {
                        if let [Some(yes), Some(no)] = [ends[0].get(i), ends[1].get(i)] {
                            self.choice(*condition, [*yes, *no], *result);
                        }
                    }
                }
                _ => {}
            }
            let made = match inst.op {
                // Integers are not conditions.
                Op::Binary(_, a, _) | Op::Unary(_, a) if kernel.ty(a) != Type::Scalar(Scalar::Bool) => continue,
                Op::Binary(Binary::And, a, b) => Made::And(a, b),
                Op::Binary(Binary::Or, a, b) => Made::Or(a, b),
                Op::Unary(Unary::Not, a) => Made::Not(a),
                _ => continue,
            };
            self.made_of.insert(inst.results[0], made);
        }
    }

    /// Records that an index below an end implies that smaller sums of the same index are below it
    /// too.
    fn imply(&mut self, (sum, end): (Value, Value), result: Value) {
        let Some(&(of, more)) = self.sums.get(&sum) else { return };
        let lesser = self.sums.iter().filter(|(_, (other, less))| *other == of && *less < more).map(|(v, _)| *v);
        let lesser: Vec<Value> = lesser.chain([of]).collect();
        let found = lesser.iter().filter_map(|index| self.less.get(&(*index, end))).flatten().copied().collect();
        self.implied.insert(result, found);
    }

    /// Records a Boolean that is a constant where a condition holds, or where it does not.
    fn choice(&mut self, condition: Value, [yes, no]: [Value; 2], result: Value) {
        let made = match [yes, no].map(|side| self.outcomes.get(&side).copied()) {
            [Some(constant), None] => Made::Other { condition, constant, holds: false },
            [None, Some(constant)] => Made::Other { condition, constant, holds: true },
            _ => return,
        };
        self.made_of.insert(result, made);
    }

    /// Adds a fact, and the facts that follow from it.
    fn add(&self, truths: &mut Truths, condition: Value, holds: bool) {
        if truths.insert((condition, holds)) {
            for implied in self.implied.get(&condition).into_iter().flatten().filter(|_| holds) {
                self.add(truths, *implied, true);
            }
            match (self.made_of.get(&condition), holds) {
                (Some(Made::And(a, b)), true) | (Some(Made::Or(a, b)), false) => {
                    self.add(truths, *a, holds);
                    self.add(truths, *b, holds);
                }
                (Some(Made::Not(a)), _) => self.add(truths, *a, !holds),
                (Some(Made::Other { condition, constant, holds: taken }), _) if *constant != holds => {
                    self.add(truths, *condition, *taken);
                }
                _ => {}
            }
        }
    }

    fn with(&self, truths: &Truths, condition: Value, holds: bool) -> Truths {
        let mut more = truths.clone();
        self.add(&mut more, condition, holds);
        more
    }

    /// Returns whether a fact is in the set, or follows from it.
    fn among(&self, truths: &Truths, condition: Value, holds: bool) -> bool {
        truths.contains(&(condition, holds))
            || match (self.made_of.get(&condition), holds) {
                (Some(Made::And(a, b)), true) | (Some(Made::Or(a, b)), false) => {
                    self.among(truths, *a, holds) && self.among(truths, *b, holds)
                }
                (Some(Made::And(a, b)), false) | (Some(Made::Or(a, b)), true) => {
                    self.among(truths, *a, holds) || self.among(truths, *b, holds)
                }
                (Some(Made::Not(a)), _) => self.among(truths, *a, !holds),
                _ => false,
            }
    }

    /// Records that a value is demanded where `truths` hold, unless they are contradictory.
    fn ask(&mut self, value: Value, truths: &Truths) {
        if truths.iter().any(|(condition, holds)| *holds && truths.contains(&(*condition, false))) {
            return;
        }
        let order = self.order[value.0 as usize];
        let before = |(condition, _): &(Value, bool)| self.order[condition.0 as usize] < order;
        let truths: Truths = truths.iter().filter(|truth| before(truth)).copied().collect();
        let ways = &mut self.asked[value.0 as usize];
        if ways.iter().any(|way| way.is_subset(&truths)) {
            return;
        }
        ways.retain(|way| !truths.is_subset(way));
        ways.push(truths);
        if ways.len() > WAYS {
            let all = ways.drain(..).reduce(|all, way| all.intersection(&way).copied().collect());
            ways.extend(all);
        }
    }

    /// Returns the sets of facts under which a result is demanded, for an instruction reached where
    /// `here` holds.
    fn of(&self, result: Value, here: &Truths) -> Vec<Truths> {
        self.asked[result.0 as usize].iter().map(|way| way.union(here).copied().collect()).collect()
    }

    fn is_asked(&self, value: Value) -> bool {
        !self.asked[value.0 as usize].is_empty()
    }

    /// Demands the values that an iteration or a jump passes on, if their destinations are
    /// demanded.
    fn hand_on(&mut self, label: Label, values: &Values, leaves: bool, here: &Truths) {
        let carried = self.loops.get(&label).cloned().unwrap_or_default();
        for (i, value) in values.iter().enumerate() {
            let mut becomes = match leaves {
                true => carried.results.get(i).copied().into_iter().collect::<Values>().into_iter(),
                false => carried.becomes(i).collect::<Values>().into_iter(),
            };
            if becomes.any(|of| self.is_asked(of)) {
                self.ask(*value, here);
            }
        }
    }

    fn region(&mut self, region: &Region, here: &Truths, end: End<'_>) {
        // Instructions after a side that jumps are reached by the other side.
        let mut heres = Vec::with_capacity(region.insts.len());
        let mut now = here.clone();
        for inst in &region.insts {
            heres.push(now.clone());
            if let Op::If { condition, then, otherwise } = &inst.op
                && leaves(then) != leaves(otherwise)
            {
                self.add(&mut now, *condition, leaves(otherwise));
            }
        }
        for (inst, here) in region.insts.iter().zip(heres).rev() {
            self.inst(inst, &here, end);
        }
    }

    fn inst(&mut self, inst: &Inst, here: &Truths, end: End<'_>) {
        match &inst.op {
            Op::Yield(values) => match end {
                End::Always => values.iter().for_each(|v| self.ask(*v, here)),
                End::Turn(label) => self.hand_on(label, values, false, here),
                End::Side(results) => {
                    for (value, result) in values.iter().zip(results) {
                        self.of(*result, here).iter().for_each(|truths| self.ask(*value, truths));
                    }
                }
            },
            Op::Continue(label, values) => self.hand_on(*label, values, false, here),
            Op::Break(label, values) => self.hand_on(*label, values, true, here),
            Op::For(_) | Op::Loop { .. } | Op::Block { .. } => self.turns(inst, here),
            Op::If { condition, then, otherwise } => {
                self.region(then, &self.with(here, *condition, true), End::Side(&inst.results));
                self.region(otherwise, &self.with(here, *condition, false), End::Side(&inst.results));
                self.ask(*condition, here);
            }
            Op::Select { condition, yes, no } => {
                for truths in self.of(inst.results[0], here) {
                    self.ask(*yes, &self.with(&truths, *condition, true));
                    self.ask(*no, &self.with(&truths, *condition, false));
                    self.ask(*condition, &truths);
                }
            }
            // The second operand is demanded where the first does not decide, and not both in
            // reverse.
            Op::Binary(op @ (Binary::And | Binary::Or), a, b) if self.made_of.contains_key(&inst.results[0]) => {
                for truths in self.of(inst.results[0], here) {
                    self.ask(*a, &truths);
                    self.ask(*b, &self.with(&truths, *a, *op == Binary::And));
                }
            }
            Op::Store { place, values, guard, .. } => {
                let inside = guard.map_or_else(|| here.clone(), |guard| self.with(here, guard, true));
                self.place(place, &inside);
                values.iter().for_each(|v| self.ask(*v, &inside));
                guard.iter().for_each(|guard| self.ask(*guard, here));
            }
            Op::Load { place, guard, .. } => {
                if !inst.results.iter().any(|v| self.is_asked(*v)) {
                    return;
                }
                let Some(guard) = guard else { return self.place(place, here) };
                self.place(place, &self.with(here, guard.condition, true));
                for (result, otherwise) in inst.results.iter().zip(&guard.otherwise) {
                    for truths in self.of(*result, here) {
                        self.ask(*otherwise, &self.with(&truths, guard.condition, false));
                    }
                }
                self.ask(guard.condition, here);
            }
            op if op.is_pure() => {
                let [result] = inst.results[..] else { return op.for_each_operand(|v| self.ask(v, here)) };
                for truths in self.of(result, here) {
                    op.for_each_operand(|v| self.ask(v, &truths));
                }
            }
            op => {
                for inner in op.regions() {
                    self.region(inner, here, End::Always);
                }
                op.for_each_operand(|v| self.ask(v, here));
            }
        }
    }

    /// Handles a loop or a block. Its carried values are demanded where an iteration demands them,
    /// possibly a later one.
    fn turns(&mut self, inst: &Inst, here: &Truths) {
        let Some((label, carried)) = Carried::of(&inst.op, &inst.results) else { return };
        self.loops.insert(label, carried.clone());
        // Inside a loop its start is below its end.
        let mut inside = here.clone();
        if let Op::For(l) = &inst.op {
            for entered in self.less.get(&(l.start, l.end)).cloned().unwrap_or_default() {
                self.add(&mut inside, entered, true);
            }
        }
        loop {
            let asked = |needs: &Needs| carried.parameters.iter().filter(|v| needs.is_asked(**v)).count();
            let before = asked(self);
            for inner in inst.op.regions() {
                self.region(inner, &inside, End::Turn(label));
            }
            if asked(self) == before {
                break;
            }
        }
        match &inst.op {
            Op::For(l) => {
                [l.start, l.end, l.step].into_iter().for_each(|v| self.ask(v, here));
                // If a loop has no iteration, its results are its initial values.
                for ((init, parameter), result) in l.inits.iter().zip(&carried.parameters).zip(&carried.results) {
                    match [result, parameter].map(|of| self.is_asked(*of)) {
                        [true, _] => self.ask(*init, here),
                        [false, true] => self.ask(*init, &inside),
                        [false, false] => {}
                    }
                }
            }
            Op::Loop { inits, .. } => self.hand_on(label, inits, false, here),
            _ => {}
        }
    }

    /// Demands the operands of a place, except for the bounds of checks.
    fn place(&mut self, place: &AccessPlace, truths: &Truths) {
        operands(place, |v| self.ask(v, truths));
    }
}

/// Calls `f` on the operands of an access, except for the bounds of checks.
fn operands(place: &AccessPlace, mut f: impl FnMut(Value)) {
    match place {
        AccessPlace::Global { base, dims, .. } | AccessPlace::Dynamic { base, dims, .. } => {
            f(*base);
            for dim in dims {
                f(dim.index);
                dim.stride.into_iter().for_each(&mut f);
            }
        }
        AccessPlace::Shared { indices, .. } => indices.iter().for_each(|v| f(*v)),
        AccessPlace::Address { base, .. } => f(*base),
    }
    place.within().into_iter().flat_map(|within| &within.indices).for_each(|step| f(step.index));
}

/// Returns whether a side of a branch ends with a jump.
fn leaves(region: &Region) -> bool {
    region.yielded().is_none()
}

struct Rewriter<'k> {
    needs: Needs,
    kernel: &'k mut Kernel,
    /// A zero of each type.
    zeros: HashMap<Scalar, Value>,
    replacements: HashMap<Value, Value>,
    changed: bool,
}

impl Rewriter<'_> {
    fn region(&mut self, region: &mut Region) {
        for mut inst in std::mem::take(&mut region.insts) {
            let results = inst.results.clone();
            match &mut inst.op {
                Op::Select { condition, yes, no } => {
                    let picked = match (
                        self.is_where(results[0], *condition, true),
                        self.is_where(results[0], *condition, false),
                    ) {
                        (true, false) => Some(*yes),
                        (false, true) => Some(*no),
                        _ => None,
                    };
                    if let Some(picked) = picked {
                        self.replacements.insert(results[0], picked);
                        self.changed = true;
                        continue;
                    }
                }
                Op::Load { guard: Some(guard), .. } => {
                    let condition = guard.condition;
                    for (result, otherwise) in results.iter().zip(&mut guard.otherwise) {
                        self.let_go(*result, condition, true, otherwise);
                    }
                }
                Op::If { condition, then, otherwise } => {
                    for (side, holds) in [(then, false), (otherwise, true)] {
                        if let Some(Inst { op: Op::Yield(values), .. }) = side.insts.last_mut() {
                            for (result, value) in results.iter().zip(values) {
                                self.let_go(*result, *condition, holds, value);
                            }
                        }
                    }
                }
                Op::Continue(label, values) => self.drop(*label, values),
                op => {
                    if let Some((label, carried)) = Carried::of(op, &results) {
                        self.needs.loops.insert(label, carried);
                        let inits = match &mut *op {
                            Op::For(l) => Some(&mut l.inits),
                            Op::Loop { inits, .. } => Some(inits),
                            _ => None,
                        };
                        inits.into_iter().for_each(|inits| self.drop(label, inits));
                        for inner in op.regions_mut() {
                            if let Some(Inst { op: Op::Yield(values), .. }) = inner.insts.last_mut() {
                                self.drop(label, values);
                            }
                        }
                    }
                }
            }
            inst.op.regions_mut().into_iter().for_each(|inner| self.region(inner));
            region.insts.push(inst);
        }
    }

    /// Replaces by zero the values that an iteration passes on and that are not demanded.
    fn drop(&mut self, label: Label, values: &mut Values) {
        let carried = self.needs.loops.get(&label).cloned().unwrap_or_default();
        for (i, value) in values.iter_mut().enumerate() {
            if !carried.becomes(i).any(|of| self.needs.is_asked(of))
                && let Type::Scalar(ty) = self.kernel.ty(*value)
            {
                self.zero(ty, value);
            }
        }
    }

    fn zero(&mut self, ty: Scalar, value: &mut Value) {
        if self.needs.zeros.contains(value) {
            return;
        }
        let kernel = &mut *self.kernel;
        let zero = *self.zeros.entry(ty).or_insert_with(|| kernel.value(Type::Scalar(ty)));
        self.changed |= std::mem::replace(value, zero) != zero;
    }

    /// Returns whether a value is demanded only where the condition has the value `holds`.
    fn is_where(&self, value: Value, condition: Value, holds: bool) -> bool {
        let ways = self.needs.asked.get(value.0 as usize).map_or(&[][..], Vec::as_slice);
        !ways.is_empty() && ways.iter().all(|truths| self.needs.among(truths, condition, holds))
    }

    /// Replaces `other` by zero and `result` by the remaining operand, if `other` is not demanded.
    fn let_go(&mut self, result: Value, condition: Value, holds: bool, other: &mut Value) {
        let Type::Scalar(ty) = self.kernel.ty(result) else { return };
        if self.is_where(result, condition, holds) {
            self.zero(ty, other);
        }
    }
}
