//! A normal form of a kernel that removes differences without an effect.
//!
//! A value that follows from the index of a thread alone is computed for each thread of the block,
//! and replaced by these numbers. Threads that do not reach its use have none. Where several lanes
//! or threads would store the same value to one location, only the first does. Kernels with one
//! normal form behave alike in every launch.

use super::threads::{Asked, Came, Comers, Threads};
use kernel_dsl::compiler::Scalar;
use kernel_dsl::compiler::analyses::uniformity::{Uniformity, WARPS};
use kernel_dsl::compiler::ir::{
    AccessPlace, Binary, Comparison, Inst, Kernel, Label, Location, Op, Parameter, Region, Role, Shuffle, Type, Value,
    Values,
};
use std::collections::HashMap;

/// All bits of a lane's index.
pub const LANES: u8 = 31;

/// Names of numbers by thread, shared by all kernels that are compared.
#[derive(Default)]
pub struct Names(Vec<(Scalar, Vec<u64>)>);

impl Names {
    fn of(&mut self, ty: Scalar, numbers: Vec<u64>) -> usize {
        let known = self.0.iter().position(|(of, same)| *of == ty && *same == numbers);
        known.unwrap_or_else(|| {
            self.0.push((ty, numbers));
            self.0.len() - 1
        })
    }
}

/// The steps of the normal form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Numbers by thread.
    Numbers,
    /// In addition, one thread for equal stores.
    Stores,
    /// In addition, numbers only for the threads that demand them.
    Threads,
}

/// Returns the normal form of `kernel`, whose additional parameters are the names.
pub fn normal(kernel: &Kernel, names: &mut Names, depth: Depth) -> Kernel {
    let mut form = kernel.clone();
    let mut body = form.body.clone();
    let threads = kernel.block.most_threads() as usize;
    // The oracle reports mutants with races.
    let uniformity = Uniformity::without_races(kernel);
    let here = Here { active: vec![true; threads], together: LANES | WARPS };
    let comers = match depth {
        Depth::Threads => {
            let (mut names, mut form, mut body) = (Names::default(), form.clone(), body.clone());
            let mut first = Normal::new(kernel, &uniformity, &mut names, depth, &mut form);
            first.region(&kernel.body, &mut body, here.clone());
            first.comers
        }
        _ => Comers::new(),
    };
    let asked = (depth == Depth::Threads).then(|| Asked::of(kernel, &uniformity, &comers));
    let mut normal = Normal { asked: asked.as_ref(), ..Normal::new(kernel, &uniformity, names, depth, &mut form) };
    normal.region(&kernel.body, &mut body, here);
    let symbols = std::mem::take(&mut normal.symbols);
    let mut first: Vec<Inst> = Vec::new();
    for (symbol, value) in symbols {
        let op = match symbol {
            Symbol::Named(name) => Op::Parameter((kernel.parameters.len() + name) as u32),
            Symbol::Constant(_, bits) => Op::Constant(bits),
        };
        first.push(Inst { op, results: [value].into_iter().collect(), location: Location(0) });
    }
    body.insts.splice(0..0, first);
    form.body = body;
    form.parameters.extend(names.0.iter().enumerate().map(|(i, (ty, _))| Parameter {
        name: format!("threads_{i}"),
        argument: u32::MAX,
        role: Role::Value(*ty),
    }));
    form
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Named(usize),
    Constant(Scalar, u64),
}

/// The threads that reach an instruction.
#[derive(Clone)]
struct Here {
    /// Threads that may reach it.
    active: Vec<bool>,
    /// Bits of the lane's index, and [`WARPS`]: among active threads that differ in these bits
    /// only, all reach it or none.
    together: u8,
}

impl Here {
    /// Returns the threads for which `numbers` are nonzero, if `holds`, or zero.
    fn with(&self, numbers: &[u64], holds: bool) -> Here {
        let active = self.active.iter().zip(numbers).map(|(active, n)| *active && (*n != 0) == holds).collect();
        Here { active, together: self.together }
    }
}

struct Normal<'a, 'k> {
    kernel: &'k Kernel,
    uniformity: &'a Uniformity<'k>,
    names: &'a mut Names,
    depth: Depth,
    /// The kernel in which new values are created.
    form: &'a mut Kernel,
    symbols: HashMap<Symbol, Value>,
    /// Values with an equal replacement.
    replacements: HashMap<Value, Value>,
    /// The operands of each conjunction.
    defined: HashMap<Value, [Value; 2]>,
    /// The operation and the result index that define each value.
    made: HashMap<Value, (&'k Op, usize)>,
    comers: Comers,
    /// The threads that demand each value, if already known.
    asked: Option<&'a Asked<'a, 'k>>,
}

impl<'a, 'k> Normal<'a, 'k> {
    fn new(
        kernel: &'k Kernel,
        uniformity: &'a Uniformity<'k>,
        names: &'a mut Names,
        depth: Depth,
        form: &'a mut Kernel,
    ) -> Normal<'a, 'k> {
        let (symbols, replacements) = (HashMap::new(), HashMap::new());
        let (defined, made, comers) = (HashMap::new(), HashMap::new(), Comers::new());
        Normal { kernel, uniformity, names, depth, form, symbols, replacements, defined, made, comers, asked: None }
    }

    /// Rewrites `new`, the copy of the analyzed region `old`.
    fn region(&mut self, old: &'k Region, new: &mut Region, mut here: Here) {
        let mut insts = Vec::with_capacity(new.insts.len());
        for (seen, mut inst) in old.insts.iter().zip(std::mem::take(&mut new.insts)) {
            if let Op::Binary(Binary::And, a, b) = seen.op
                && self.kernel.ty(a) == Type::Scalar(Scalar::Bool)
            {
                self.defined.insert(seen.results[0], [a, b]);
            }
            self.made.extend(seen.results.iter().enumerate().map(|(i, result)| (*result, (&seen.op, i))));
            self.same_in_all_lanes(seen, &here);
            let by_one = if self.depth >= Depth::Stores { self.by_one(seen, &here, &mut insts) } else { None };
            let one = |inside: Here| match &by_one {
                Some((_, active, _)) => Here { active: active.clone(), ..inside },
                None => inside,
            };
            if self.depth == Depth::Threads && self.asked.is_none() {
                self.comes(seen, &here, by_one.as_ref().map(|(_, active, rest)| (active.as_slice(), rest.clone())));
            }
            match (&seen.op, &mut inst.op) {
                (Op::Store { guard: Some(g), .. }, Op::Store { place, values, guard, .. }) => {
                    let inside = one(self.inside(*g, &here));
                    place_operands(place, |v| self.operand(v, &inside));
                    values.iter_mut().for_each(|v| *v = self.operand(*v, &inside));
                    *guard = Some(by_one.map_or_else(|| self.operand(*g, &here), |(first, ..)| first));
                }
                (Op::Store { guard: None, .. }, Op::Store { place, values, guard, .. }) if by_one.is_some() => {
                    let inside = one(here.clone());
                    place_operands(place, |v| self.operand(v, &inside));
                    values.iter_mut().for_each(|v| *v = self.operand(*v, &inside));
                    *guard = by_one.map(|(first, ..)| first);
                }
                (Op::Load { guard: Some(g), .. }, Op::Load { place, guard: Some(guard), .. }) => {
                    let inside = self.wanted(seen, &self.inside(g.condition, &here));
                    place_operands(place, |v| self.operand(v, &inside));
                    guard.condition = self.operand(g.condition, &here);
                    guard.otherwise.iter_mut().for_each(|v| *v = self.operand(*v, &here));
                }
                (Op::Select { condition: c, .. }, Op::Select { condition, yes, no }) if self.asked.is_some() => {
                    let wanted = self.wanted(seen, &here);
                    *yes = self.operand(*yes, &self.side(*c, &wanted, true));
                    *no = self.operand(*no, &self.side(*c, &wanted, false));
                    *condition = self.operand(*c, &wanted);
                }
                (
                    Op::If { condition, then, otherwise },
                    Op::If { condition: of, then: new_then, otherwise: new_otherwise },
                ) => {
                    let (yes, no) = (one(self.side(*condition, &here, true)), self.side(*condition, &here, false));
                    for (side, new_side, who) in [(then, &mut *new_then, yes), (otherwise, &mut *new_otherwise, no)] {
                        self.region(side, new_side, who.clone());
                        self.no_end_unasked(&seen.results, new_side, &who);
                    }
                    *of = by_one.map_or_else(|| self.operand(*condition, &here), |(first, ..)| first);
                    if leaves(then, &mut Vec::new()) || leaves(otherwise, &mut Vec::new()) {
                        let mut both = |v| here.together &= self.uniformity.indifferent(v);
                        both(*condition);
                        [then, otherwise].into_iter().for_each(|region| conditions(region, &mut both));
                    }
                }
                (op, new) => {
                    let wanted = self.wanted(seen, &here);
                    new.map_operands(|v| self.operand(v, &wanted));
                    self.no_term_of_zero(new);
                    if let (Op::For(l), Op::For(l_new)) = (op, &mut *new)
                        && let Some(once) = self.once([l.start, l.end, l.step], &here)
                    {
                        l_new.step = once;
                    }
                    let inner = self.of_loop(op, &here);
                    for (seen, inner_new) in op.regions().into_iter().zip(new.regions_mut()) {
                        self.region(seen, inner_new, inner.clone());
                    }
                    // Threads that left the loop may have left enclosing constructs too.
                    if op_leaves(op, &mut Vec::new()) {
                        here.together &= inner.together;
                    }
                }
            }
            self.unguarded(&mut inst.op);
            insts.push(inst);
        }
        new.insts = insts;
    }

    /// Records the threads that reach an instruction, and those among them that store or load.
    fn comes(&mut self, inst: &Inst, here: &Here, by_one: Option<(&[bool], Vec<Value>)>) {
        let of = |active: &[bool]| Threads::of(active.iter().copied());
        let guard = match &inst.op {
            Op::Store { guard, .. } => *guard,
            Op::Load { guard, .. } => guard.as_ref().map(|guard| guard.condition),
            _ => None,
        };
        let threads = of(&here.active);
        let inside = guard.map_or(threads, |guard| of(&self.inside(guard, here).active));
        let came = match by_one {
            Some((active, rest)) => Came { threads, inside: of(active), rest: Some(rest) },
            None => Came { threads, inside, rest: None },
        };
        self.comers.insert(std::ptr::from_ref(inst).addr(), came);
    }

    /// Returns the threads that demand the results of an instruction, if it has no other effect for
    /// the others with any operands.
    fn wanted(&self, inst: &Inst, here: &Here) -> Here {
        let gives = inst.op.is_pure() || matches!(inst.op, Op::Shuffle { .. }) || self.finds(inst, here);
        match self.asked.filter(|_| gives) {
            Some(asked) => {
                let by = asked.any(&inst.results);
                let active = here.active.iter().enumerate().map(|(t, active)| *active && by.has(t)).collect();
                Here { active, together: here.together }
            }
            None => here.clone(),
        }
    }

    /// Replaces by zero the yielded values of a side of a branch that no thread on that side
    /// demands.
    fn no_end_unasked(&mut self, results: &Values, side: &mut Region, who: &Here) {
        let Some((asked, Inst { op: Op::Yield(values), .. })) = self.asked.zip(side.insts.last_mut()) else { return };
        for (value, result) in values.iter_mut().zip(results) {
            let by = asked.any(&[*result]);
            if let Type::Scalar(ty) = self.kernel.ty(*result)
                && !who.active.iter().enumerate().any(|(t, active)| *active && by.has(t))
            {
                *value = self.symbol(ty, vec![0; who.active.len()], &who.active);
            }
        }
    }

    /// Returns whether an instruction loads from shared memory at indices that are in bounds for
    /// each thread.
    fn finds(&self, inst: &Inst, here: &Here) -> bool {
        let Op::Load { place: AccessPlace::Shared { array, indices, within: None }, .. } = &inst.op else {
            return false;
        };
        let shape = &self.kernel.shared[array.0 as usize].shape;
        let lies = |(i, (index, extent)): (usize, (&Value, &u32))| {
            let more = if i + 1 == shape.len() { inst.results.len() as u64 } else { 1 };
            let lies = |(n, active): (u64, &bool)| !active || n.saturating_add(more) <= u64::from(*extent);
            self.uniformity.numbers(*index).is_some_and(|numbers| numbers.into_iter().zip(&here.active).all(lies))
        };
        indices.len() == shape.len() && indices.iter().zip(shape).enumerate().all(lies)
    }

    /// Returns the threads that reach the body of a loop or block.
    fn of_loop(&self, op: &Op, here: &Here) -> Here {
        let mut here = here.clone();
        if let Op::For(l) = op {
            [l.start, l.end, l.step].into_iter().for_each(|v| here.together &= self.uniformity.indifferent(v));
        }
        for region in op.regions() {
            if leaves(region, &mut Vec::new()) {
                conditions(region, &mut |v| here.together &= self.uniformity.indifferent(v));
            }
        }
        here
    }

    /// Returns the threads that take a side of a branch.
    fn side(&self, condition: Value, here: &Here, holds: bool) -> Here {
        match self.uniformity.numbers(condition) {
            Some(numbers) => here.with(&numbers, holds),
            None if holds => self.inside(condition, here),
            None => Here { together: here.together & self.uniformity.indifferent(condition), ..here.clone() },
        }
    }

    /// Returns the threads for which a condition holds.
    fn inside(&self, condition: Value, here: &Here) -> Here {
        let mut inside = here.clone();
        for part in self.parts(condition) {
            match self.uniformity.numbers(part) {
                Some(numbers) => inside = inside.with(&numbers, true),
                None => inside.together &= self.uniformity.indifferent(part),
            }
        }
        inside
    }

    /// Returns the operands of a conjunction.
    fn parts(&self, condition: Value) -> Vec<Value> {
        match self.defined.get(&condition) {
            Some([a, b]) if self.uniformity.numbers(condition).is_none() => [self.parts(*a), self.parts(*b)].concat(),
            _ => vec![condition],
        }
    }

    /// Returns the replacement of an operand for the threads of `here`.
    fn operand(&mut self, value: Value, here: &Here) -> Value {
        let value = self.replacements.get(&value).copied().unwrap_or(value);
        let (Type::Scalar(ty), Some(mut numbers)) = (self.form.ty(value), self.known(value)) else { return value };
        numbers.iter_mut().zip(&here.active).filter(|(_, active)| !**active).for_each(|(n, _)| *n = 0);
        self.symbol(ty, numbers, &here.active)
    }

    fn known(&self, value: Value) -> Option<Vec<u64>> {
        let seen = (value.0 as usize) < self.kernel.values.len();
        if seen { self.uniformity.numbers(value) } else { None }
    }

    fn symbol(&mut self, ty: Scalar, numbers: Vec<u64>, active: &[bool]) -> Value {
        let mut of_active = numbers.iter().zip(active).filter(|(_, active)| **active).map(|(n, _)| *n);
        let first = of_active.next().unwrap_or(0);
        let symbol = match of_active.all(|n| n == first) {
            true => Symbol::Constant(ty, first),
            false => Symbol::Named(self.names.of(ty, numbers)),
        };
        let form = &mut *self.form;
        *self.symbols.entry(symbol).or_insert_with(|| form.value(Type::Scalar(ty)))
    }

    /// Replaces a shuffle of a uniform value by the value.
    fn same_in_all_lanes(&mut self, inst: &Inst, here: &Here) {
        let Op::Shuffle { mode: Shuffle::Index, value, width, .. } = inst.op else { return };
        let segment = (width - 1) as u8 & LANES;
        let same = self.uniformity.indifferent(value) & segment == segment && here.together & LANES == LANES;
        // Other lanes have ended, or the oracle reports them.
        if same && here.active.chunks(32).all(|warp| warp.iter().all(|active| *active) || !warp.contains(&true)) {
            let value = self.replacements.get(&value).copied().unwrap_or(value);
            self.replacements.insert(inst.results[0], value);
        }
    }

    /// Finds stores of equal values by several threads. Returns a condition that holds for the
    /// first thread of each group, these threads, and the uniform part of the original condition.
    fn by_one(&mut self, inst: &Inst, here: &Here, before: &mut Vec<Inst>) -> Option<(Value, Vec<bool>, Vec<Value>)> {
        let (condition, mut same) = match &inst.op {
            Op::Store { guard, place, values, .. } => (*guard, self.of_store(place, values)),
            Op::If { condition, then, otherwise } if inst.results.is_empty() && otherwise.insts.len() == 1 => {
                (Some(*condition), self.of_stores(then)?)
            }
            _ => return None,
        };
        same &= here.together;
        let (mut active, mut rest) = (here.active.clone(), Vec::new());
        let parts: Vec<Value> = condition.into_iter().flat_map(|condition| self.parts(condition)).collect();
        let more = if self.depth == Depth::Threads { self.between(&parts) } else { Vec::new() };
        for part in more.iter().chain(&parts).copied() {
            match self.uniformity.numbers(part) {
                Some(numbers) => active.iter_mut().zip(numbers).for_each(|(active, n)| *active &= n != 0),
                None => {
                    same &= self.uniformity.indifferent(part);
                    rest.push(part);
                }
            }
        }
        if same & LANES == 0 && more.is_empty() {
            return None;
        }
        // Among several warps, choose one that every block has.
        let warps = same & WARPS != 0;
        let least = self.kernel.block.least_threads() as usize;
        let mut first = vec![0; active.len()];
        for (thread, _) in active.iter().enumerate().filter(|(_, active)| **active) {
            let lane = (thread % 32) & !usize::from(same & LANES);
            match warps {
                true if thread >= least => return None,
                true => first[lane] = 1,
                false => first[thread - thread % 32 + lane] = 1,
            }
        }
        let everywhere = vec![true; active.len()];
        let these: Vec<bool> = first.iter().map(|n| *n != 0).collect();
        // The first threads are all threads that reach it.
        if self.depth == Depth::Threads && condition.is_none() && these == here.active {
            return None;
        }
        // The first thread must reach the instruction itself, because its values are stored.
        if self.depth == Depth::Threads && these.iter().zip(&here.active).any(|(this, comes)| *this && !comes) {
            return None;
        }
        let mut all = self.symbol(Scalar::Bool, first, &everywhere);
        let within = Here { active: these, together: here.together };
        for part in &rest {
            let part = self.operand(*part, &within);
            let both = self.form.value(Type::Scalar(Scalar::Bool));
            let op = Op::Binary(Binary::And, all, part);
            before.push(Inst { op, results: [both].into_iter().collect(), location: Location(0) });
            all = both;
        }
        Some((all, within.active, rest))
    }

    /// Returns further conditions that hold where all of `parts` do. If the parts require s < t and
    /// t ≤ s + v, v is not zero.
    fn between(&self, parts: &[Value]) -> Vec<Value> {
        let ordered = |part: &Value| match self.op(*part) {
            Some(Op::Compare(comparison @ (Comparison::Lt | Comparison::Le), a, b)) => Some((*comparison, *a, *b)),
            Some(Op::Compare(Comparison::Gt, a, b)) => Some((Comparison::Lt, *b, *a)),
            Some(Op::Compare(Comparison::Ge, a, b)) => Some((Comparison::Le, *b, *a)),
            _ => None,
        };
        let all: Vec<_> = parts.iter().filter_map(ordered).collect();
        let mut more = Vec::new();
        for (_, below, aim) in all.iter().filter(|(comparison, ..)| *comparison == Comparison::Lt) {
            for (_, _, reached) in all.iter().filter(|(comparison, a, _)| *comparison == Comparison::Le && a == aim) {
                match self.op(*reached) {
                    Some(Op::Binary(Binary::Add | Binary::WrappingAdd, a, b)) if self.is_integer(*a) => {
                        let addend = if a == below { Some(b) } else { Some(a).filter(|_| b == below) };
                        more.extend(addend.into_iter().flat_map(|addend| self.zero_unless(*addend)));
                    }
                    _ => {}
                }
            }
        }
        more.retain(|v| self.uniformity.numbers(*v).is_some());
        more
    }

    fn op(&self, value: Value) -> Option<&'k Op> {
        self.made.get(&value).map(|(op, _)| *op)
    }

    fn is_integer(&self, value: Value) -> bool {
        matches!(self.kernel.ty(value), Type::Scalar(ty) if ty.is_integer())
    }

    /// Returns conditions each of which holds wherever this integer is not zero.
    fn zero_unless(&self, value: Value) -> Vec<Value> {
        let zero = |v: &Value| matches!(self.op(*v), Some(Op::Constant(0)));
        match self.op(value) {
            _ if !self.is_integer(value) => Vec::new(),
            Some(Op::Load { guard: Some(guard), .. }) if guard.otherwise.iter().all(zero) => vec![guard.condition],
            Some(Op::Select { condition, yes, no }) if zero(no) => {
                let mut all = self.zero_unless(*yes);
                all.push(*condition);
                all
            }
            Some(Op::If { condition, otherwise, .. }) => match otherwise.yielded() {
                Some(values) if self.made.get(&value).is_some_and(|(_, i)| zero(&values[*i])) => {
                    vec![*condition]
                }
                _ => Vec::new(),
            },
            Some(Op::Cast(of)) | Some(Op::Binary(Binary::Shl, of, _)) => self.zero_unless(*of),
            Some(Op::Binary(Binary::Or, a, b)) => {
                let other = self.zero_unless(*b);
                self.zero_unless(*a).into_iter().filter(|condition| other.contains(condition)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the bits of the thread index that neither the place nor the values of a store depend
    /// on.
    fn of_store(&self, place: &AccessPlace, values: &Values) -> u8 {
        let mut same = LANES | WARPS;
        let mut place = place.clone();
        place_operands(&mut place, |v| {
            same &= self.uniformity.indifferent(v);
            v
        });
        values.iter().for_each(|v| same &= self.uniformity.indifferent(*v));
        same
    }

    /// Returns the same bits for all stores of a region without other effects.
    fn of_stores(&self, region: &Region) -> Option<u8> {
        let mut same = LANES | WARPS;
        for inst in &region.insts {
            match &inst.op {
                Op::Store { place, values, guard, .. } => {
                    same &= self.of_store(place, values);
                    guard.iter().for_each(|g| same &= self.uniformity.indifferent(*g));
                }
                Op::Load { .. } => {}
                Op::Yield(values) if values.is_empty() || self.depth == Depth::Threads => {}
                Op::If { condition, then, otherwise } if self.depth == Depth::Threads => {
                    same &= self.uniformity.indifferent(*condition);
                    same &= self.of_stores(then)? & self.of_stores(otherwise)?;
                }
                op if op.is_pure() => {}
                _ => return None,
            }
        }
        Some(same)
    }

    /// Removes a guard that holds for all threads that reach it.
    fn unguarded(&self, op: &mut Op) {
        let holds = |value: Value| {
            let known = self.symbols.iter().find(|(_, symbol)| **symbol == value);
            matches!(known, Some((Symbol::Constant(Scalar::Bool, 1), _)))
        };
        match op {
            Op::Store { guard, .. } if guard.is_some_and(holds) => *guard = None,
            Op::Load { guard, .. } if guard.as_ref().is_some_and(|guard| holds(guard.condition)) => *guard = None,
            _ => {}
        }
    }

    /// Removes a multiplication by an index of zero.
    fn no_term_of_zero(&self, op: &mut Op) {
        let zero = |value: &Value| {
            let known = self.symbols.iter().find(|(_, symbol)| *symbol == value);
            matches!(known, Some((Symbol::Constant(_, 0), _)))
        };
        if let Op::Offset { terms, .. } = op {
            terms.retain(|(index, _)| !zero(index));
        }
    }

    /// Returns the end of a loop as its step, if each thread runs at most one iteration.
    fn once(&mut self, [start, end, step]: [Value; 3], here: &Here) -> Option<Value> {
        let [from, to, by] = [self.known(start)?, self.known(end)?, self.known(step)?];
        let Type::Scalar(ty) = self.kernel.ty(end) else { return None };
        let once = |t: usize| !here.active[t] || to[t] > 0 && by[t] > 0 && from[t] + by[t] >= to[t];
        ((0..from.len()).all(once) && ty.is_integer() && !ty.is_signed()).then(|| self.operand(end, here))
    }
}

/// Replaces the operands of a place.
pub fn place_operands(place: &mut AccessPlace, mut f: impl FnMut(Value) -> Value) {
    let within = match place {
        AccessPlace::Global { base, dims, within } | AccessPlace::Dynamic { base, dims, within } => {
            *base = f(*base);
            for dim in dims {
                dim.index = f(dim.index);
                dim.extent = f(dim.extent);
                dim.stride = dim.stride.map(&mut f);
            }
            within
        }
        AccessPlace::Shared { indices, within, .. } => {
            indices.iter_mut().for_each(|index| *index = f(*index));
            within
        }
        AccessPlace::Address { base, .. } => {
            *base = f(*base);
            return;
        }
    };
    within.iter_mut().flat_map(|within| &mut within.indices).for_each(|step| step.index = f(step.index));
}

/// Returns whether a region contains a jump to a construct outside, other than those in `within`.
fn leaves(region: &Region, within: &mut Vec<Label>) -> bool {
    region.insts.iter().any(|inst| match &inst.op {
        Op::Return => true,
        Op::Break(label, _) | Op::Continue(label, _) => !within.contains(label),
        op => op_leaves(op, within),
    })
}

fn op_leaves(op: &Op, within: &mut Vec<Label>) -> bool {
    let label = match op {
        Op::For(l) => Some(l.label),
        Op::Loop { label, .. } | Op::Block { label, .. } => Some(*label),
        _ => None,
    };
    within.extend(label);
    let leaves = op.regions().into_iter().any(|region| leaves(region, within));
    if label.is_some() {
        within.pop();
    }
    leaves
}

/// Calls `f` on all conditions of a region.
fn conditions(region: &Region, f: &mut dyn FnMut(Value)) {
    for inst in &region.insts {
        match &inst.op {
            Op::If { condition, .. } => f(*condition),
            Op::For(l) => [l.start, l.end, l.step].into_iter().for_each(&mut *f),
            _ => {}
        }
        inst.op.regions().into_iter().for_each(|inner| conditions(inner, f));
    }
}
