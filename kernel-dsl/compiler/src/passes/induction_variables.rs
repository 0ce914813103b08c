//! Induction variables: the pass finds addresses and products that advance by a constant distance
//! in each iteration. The loop carries them and advances them by an addition, instead of
//! recomputing them from the index.
//!
//! The pass looks at sums and products of the index of a `For` over `usize` with loop-invariant
//! values, and at addresses moved by them. These operations must be in the loop's body itself: code
//! in a branch may run rarely. A sum of the index costs one addition anyway and stays.
//!
//! An address in global memory is carried only if it advances by a constant and ptxas may unroll
//! the loop. ptxas then advances it once for all copies and reaches each copy by a constant offset.
//! Otherwise an advance of 64 bits takes two additions and copies. Base plus index takes two
//! instructions and no register. The rewrite is exact because `usize` does not wrap where a value
//! is used.

use super::rewrite::rewrite;
use super::simplify::Simplifier;
use crate::error::Errors;
use crate::ir::*;
use crate::scalar::Scalar;
use smallvec::smallvec;

const USIZE: Type = Type::Scalar(Scalar::Usize);

/// Turns values that loops compute from their indices into carried values.
pub fn induction_variables(kernel: &mut Kernel) -> Result<(), Errors> {
    let simplifier = Simplifier::of(kernel);
    let n = simplifier.types.len();
    let mut reducer =
        InductionReducer { simplifier, depth: 0, levels: vec![0; n], distances: vec![None; n], used: vec![false; n] };
    reducer.region(&mut kernel.body);
    reducer.simplifier.finish(kernel);
    Ok(())
}

struct InductionReducer {
    simplifier: Simplifier,
    depth: u32,
    /// The number of loops that each value is defined inside of.
    levels: Vec<u32>,
    /// The distance by which each value changes per iteration of the current loop; `None` if it
    /// varies. For addresses, the distance is in elements.
    distances: Vec<Option<Value>>,
    /// Whether an instruction that stays uses a value.
    used: Vec<bool>,
}

impl InductionReducer {
    fn region(&mut self, region: &mut Region) {
        self.define(&region.parameters);
        rewrite(&mut region.insts, |inst, before| {
            self.define(&inst.results);
            let looping = u32::from(matches!(inst.op, Op::For(_) | Op::Loop { .. }));
            self.depth += looping;
            inst.op.regions_mut().into_iter().for_each(|r| self.region(r));
            self.depth -= looping;
            if let Op::For(l) = &mut inst.op {
                self.counted(l, &mut inst.results, before);
            }
            true
        });
    }

    /// Records that `values` are defined at the current depth.
    fn define(&mut self, values: &[Value]) {
        for v in values {
            self.levels[v.0 as usize] = self.depth;
        }
    }

    fn distance(&self, v: Value) -> Option<Value> {
        self.distances[v.0 as usize]
    }

    /// Returns whether `v` is invariant in a loop at the current depth.
    fn invariant(&self, v: Value) -> bool {
        self.levels[v.0 as usize] <= self.depth
    }

    /// Emits `op` at the current depth, or returns the value that it simplifies to.
    fn push(&mut self, mut op: Op, ty: Type, location: Location, out: &mut Vec<Inst>) -> Value {
        let value = match self.simplifier.simplify(&mut op, ty) {
            Some(v) => v,
            None => {
                let value = self.simplifier.value(ty);
                self.simplifier.note(&op, value);
                out.push(Inst { op, results: smallvec![value], location });
                value
            }
        };
        let n = self.simplifier.types.len();
        let known = self.levels.len();
        self.levels.resize(n, 0);
        self.distances.resize(n, None);
        self.used.resize(n, false);
        if value.0 as usize >= known && self.simplifier.constants.bits(value).is_none() {
            self.levels[value.0 as usize] = self.depth;
        }
        value
    }

    /// Returns the distance by which the result of `op` changes, and emits its code before the
    /// loop.
    fn moves(&mut self, op: &Op, location: Location, out: &mut Vec<Inst>) -> Option<Value> {
        match *op {
            Op::Binary(Binary::Add, a, b) => match (self.distance(a), self.distance(b)) {
                (Some(d), None) if self.invariant(b) => Some(d),
                (None, Some(d)) if self.invariant(a) => Some(d),
                (Some(d), Some(e)) => Some(self.push(Op::Binary(Binary::Add, d, e), USIZE, location, out)),
                _ => None,
            },
            Op::Binary(Binary::Mul, a, b) => {
                let (d, by) = match (self.distance(a), self.distance(b)) {
                    (Some(d), None) if self.invariant(b) => (d, b),
                    (None, Some(d)) if self.invariant(a) => (d, a),
                    _ => return None,
                };
                Some(self.push(Op::Binary(Binary::Mul, d, by), USIZE, location, out))
            }
            Op::Offset { base, ref terms, .. } => match terms[..] {
                [(index, None)] if self.invariant(base) => self.distance(index),
                _ => None,
            },
            _ => None,
        }
    }

    /// Rewrites a loop at the current depth; `out` holds the code before the loop.
    fn counted(&mut self, l: &mut For, results: &mut Values, out: &mut Vec<Inst>) {
        let Some(index) = l.body.parameters.first().copied().filter(|i| self.simplifier.ty(*i) == USIZE) else {
            return;
        };
        self.distances[index.0 as usize] = Some(l.step);
        let mut derived = Vec::new();
        for (at, inst) in l.body.insts.iter().enumerate() {
            let [result] = inst.results[..] else { continue };
            let ty = self.simplifier.ty(result);
            if (ty == USIZE || ty.scalar().is_none())
                && let Some(d) = self.moves(&inst.op, inst.location, out)
            {
                // A moving address is not the base of another: their distances may be in elements
                // of different sizes.
                self.distances[result.0 as usize] = Some(d).filter(|_| ty == USIZE);
                derived.push((at, d));
            }
        }
        let carried = self.choose(l, &derived);
        if !carried.is_empty() {
            self.carry(l, results, &derived, &carried, out);
        }
        self.distances[index.0 as usize] = None;
    }

    fn constant(&self, v: Value) -> bool {
        self.simplifier.constants.bits(v).is_some()
    }

    /// Returns the derived values that are worth carrying: used addresses and products.
    fn choose(&mut self, l: &For, derived: &[(usize, Value)]) -> Vec<(usize, Value)> {
        let mut rest = derived.iter().map(|d| d.0).peekable();
        for (at, inst) in l.body.insts.iter().enumerate() {
            if rest.next_if_eq(&at).is_none() {
                use_all(inst, &mut self.used);
            }
        }
        let straight = super::pointer_strength_reduction::unrolls(&l.body, l.unroll);
        let mut carried = Vec::new();
        for (at, d) in derived.iter().rev() {
            let inst = &l.body.insts[*at];
            if !self.used[inst.results[0].0 as usize] {
                continue;
            }
            let power = |v: Value| self.simplifier.constants.bits(v).is_some_and(|c| c.is_power_of_two());
            match &inst.op {
                Op::Offset { .. }
                    if self.simplifier.ty(inst.results[0]) == Type::Shared || straight && self.constant(*d) =>
                {
                    carried.push((*at, *d))
                }
                Op::Binary(Binary::Mul, a, b) if !power(*a) && !power(*b) => carried.push((*at, *d)),
                op => op.for_each_operand(|v| self.used[v.0 as usize] = true),
            }
        }
        carried.reverse();
        carried
    }

    fn carry(
        &mut self,
        l: &mut For,
        results: &mut Values,
        derived: &[(usize, Value)],
        carried: &[(usize, Value)],
        out: &mut Vec<Inst>,
    ) {
        // The first iteration's values, before the loop.
        let mut first = std::collections::HashMap::from([(l.body.parameters[0], l.start)]);
        for (at, _) in derived {
            let inst = &l.body.insts[*at];
            let mut op = inst.op.clone();
            op.map_operands(|v| first.get(&v).copied().unwrap_or(v));
            let value = self.push(op, self.simplifier.ty(inst.results[0]), inst.location, out);
            first.insert(inst.results[0], value);
        }
        let mut steps = Vec::with_capacity(carried.len());
        let mut gone = carried.iter().map(|c| c.0).peekable();
        for (at, distance) in carried {
            let inst = &l.body.insts[*at];
            let value = inst.results[0];
            let op = match &inst.op {
                Op::Offset { bytes, .. } => {
                    Op::Offset { base: value, terms: smallvec![(*distance, None)], bytes: *bytes }
                }
                _ => Op::Binary(Binary::WrappingAdd, value, *distance),
            };
            steps.push((value, op, inst.location));
            l.inits.push(first[&value]);
            let ty = self.simplifier.ty(value);
            results.push(self.simplifier.value(ty));
        }
        let mut at = 0;
        l.body.insts.retain(|_| {
            at += 1;
            gone.next_if_eq(&(at - 1)).is_none()
        });
        // The same values become parameters of the body, so their uses need no change.
        l.body.parameters.extend(steps.iter().map(|s| s.0));
        self.depth += 1;
        self.terminate(&mut l.body, l.label, &steps, true);
        self.depth -= 1;
        let n = self.simplifier.types.len();
        self.levels.resize(n, self.depth);
        self.distances.resize(n, None);
        self.used.resize(n, false);
    }

    /// Passes the carried values to the next iteration, advanced, and out of the loop unchanged.
    fn terminate(&mut self, region: &mut Region, label: Label, steps: &[(Value, Op, Location)], body: bool) {
        for inst in &mut region.insts {
            inst.op.regions_mut().into_iter().for_each(|r| self.terminate(r, label, steps, false));
        }
        let Some(mut last) = region.insts.pop() else { return };
        match &mut last.op {
            Op::Break(l, values) if *l == label => values.extend(steps.iter().map(|s| s.0)),
            Op::Continue(l, _) if *l != label => {}
            Op::Yield(_) if !body => {}
            Op::Continue(_, values) | Op::Yield(values) => {
                for (value, op, location) in steps {
                    let ty = self.simplifier.ty(*value);
                    let next = self.push(op.clone(), ty, *location, &mut region.insts);
                    values.push(next);
                }
            }
            _ => {}
        }
        region.insts.push(last);
    }
}

/// Marks the values that an instruction and its regions use.
fn use_all(inst: &Inst, used: &mut [bool]) {
    inst.op.for_each_operand(|v| used[v.0 as usize] = true);
    for region in inst.op.regions() {
        region.insts.iter().for_each(|i| use_all(i, used));
    }
}
